# SPDX-License-Identifier: GPL-2.0-or-later
"""Flags and keys of xcipher's own: early media, short SRTCP tags, reset, and pages of calls."""
import os
import re
import struct

import srtp
from baresip import wait_for
from compat import compat, compat_each, reaches
from text import accept, audio, sdp

# --- Early media --------------------------------------------------------------------------------------------------


@compat_each("early media", "xcipher-ng(7), no-early-media; RFC 3261 section 13.2.2.4", [([], True), (["no-early-media"], False)])
def test_plain_media_before_the_answer(relay, flags, relayed):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    b.told(call.offer(a.sdp(), transport_protocol="RTP/AVP", flags=flags).sdp.audio)
    for i in range(20):
        b.send(bytes([i]) * 20)
    assert (a.receive(30 if relayed else 0.3) is not None) == relayed
    a.told(call.answer(b.sdp()).sdp.audio)
    while a.receive(0.1):
        pass
    assert reaches(b, a) and reaches(a, b)


# --- SRTP+ ------------------------------------------------------------------------------------------------------------


@compat_each("flags", "xcipher-ng(7), preauth; RFC 4568 section 6.3.7",
             [("offer", "sequence-aes"), ("offer:header-siphash", "header-siphash"), ("accept", None), ("off", None)])
def test_srtp_plus_is_offered_by_a_session_parameter(relay, value, scheme):
    lines = [line for line in relay.call().offer(sdp(audio()), transport_protocol="RTP/SAVP", preauth=value).sdp.audio.lines if "crypto:" in line]
    named = [re.findall(r"-xcipher-preauth=(\S+)", line) for line in lines]
    assert lines and named == [[scheme] if scheme else []] * len(lines), lines


# --- SRTCP tags of 32 bits ----------------------------------------------------------------------------------------


@compat_each("SRTCP tags", "xcipher-ng(7), SRTCP-tag-32; RFC 4568 section 6.2 requires 80 bits", [(["SRTCP-tag-32"], True), ([], False)])
def test_srtcp_tags_of_32_bits(relay, flags, accepted):
    a, b = relay.phone("caller", "32"), relay.phone("callee")
    sockets = relay.phone_rtcp(a), relay.phone_rtcp(b)
    call = relay.call().talk(a, b, flags=flags)
    tx = srtp.Session(a.suite, a.key, srtp.OUTBOUND, 4)
    rx = srtp.Session(a.suite, a.theirs, srtp.INBOUND, 4 if accepted else 10)

    def report(protect=None):
        packet = struct.pack("!BBHI", 0x80, 200, 6, a.ssrc) + os.urandom(20)
        return packet, protect(packet) if protect else packet

    def stream():
        return call.query()["tags"]["a"]["medias"][0]["streams"][1]

    for i in range(3):
        sent, packet = report(tx.protect_rtcp)
        sockets[0].sendto(packet, (a.to[0], a.to[1] + 1))
        if accepted and i:  # detects the short tag, and is dropped
            assert sockets[1].recv(2048)[8:] == sent[8:]
        else:
            wait_for("the drop", lambda i=i: stream().get("drops", {}).get("srtcp-tag-32") == i + 1)
    wait_for("the event", lambda: [e for e in call.request("explain")["events"] if e.get("tag") == "a" and "SRTCP tags have 32 bits" in e["text"]])
    wait_for("the log line", lambda: [line for line in relay.log().splitlines() if call.id in line and "SRTCP" in line])
    # The terminal receives tags of the length that it sends.
    sent, packet = report()
    sockets[1].sendto(packet, (b.to[0], b.to[1] + 1))
    got = rx.unprotect_rtcp(sockets[0].recv(2048))
    assert got and got[8:] == sent[8:], got


# --- Profile of a leg, and reset ----------------------------------------------------------------------------------


@compat_each("legs", "xcipher-ng(7), reset: WHAT A LEG SPEAKS", [([], "RTP/AVP"), (["reset"], "RTP/SAVP")])
def test_reset_applies_the_flags_of_the_first_offer(relay, flags, profile):
    call = relay.call()
    there = call.offer(sdp(audio()), transport_protocol="RTP/SAVP").sdp.audio
    callee = sdp(audio(accept(there), profile="RTP/SAVP"), ip="10.200.2.2")
    call.answer(callee)
    assert call.offer(callee, by=1, transport_protocol="RTP/SAVP", flags=flags).sdp.audio.profile == profile


# --- Pages of calls -----------------------------------------------------------------------------------------------


@compat("operator", "xcipher-ng(7), filter, sort, after, limit")
def test_calls_by_filter_in_pages(relay):
    made = []
    for suites in ([], ["80"], []):
        made.append(relay.call(call_id=f"page-{len(made)}-{os.urandom(4).hex()}"))
        there = made[-1].offer(sdp(audio(suites=suites))).sdp.audio
        made[-1].answer(sdp(audio(*[accept(there)] if suites else [], profile="RTP/SAVP" if suites else "RTP/AVP"), ip="10.200.2.2"))

    def page(**keys):
        reply = relay.request("calls", **keys)
        return [c["id"] for c in reply["calls"] if c["id"].startswith("page-")], reply.get("next")

    assert page(filter="plain page-", sort="new") == ([made[2].id, made[0].id], None)
    assert page(filter="suite=AES_CM_128_HMAC_SHA1_80 page-") == ([made[1].id], None)
    assert page(filter="page-", sort="age")[0] == [c.id for c in made]
    first, after = page(filter="page-", sort="new", limit=2)
    assert first == [made[2].id, made[1].id] and after
    assert page(filter="page-", sort="new", limit=2, after=after) == ([made[0].id], None)
    relay.request("calls", True, filter="no-such-word=1")


@compat("operator", "xcipher-ng(7), explain; xcipherctl(1)")
def test_explain(relay):
    a, b = relay.phone("caller", "80"), relay.phone("callee")
    call = relay.call().talk(a, b)
    reply = call.request("explain")
    assert reply["summary"] and all(isinstance(line, str) for line in reply["summary"]), reply
    assert {leg["suite in"] for leg in reply["legs"]} == {"AES_CM_128_HMAC_SHA1_80", "plain"}, reply["legs"]
    assert {"role", "media", "suite in", "suite out", "why", "source", "received", "sent"} <= set(reply["legs"][0]), reply["legs"]
    assert reply["events"] and {"time", "event", "tag", "text"} <= set(reply["events"][0]), reply["events"]
    relay.request("explain", "Unknown call-id", call_id="nobody")
