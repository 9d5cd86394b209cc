# SPDX-License-Identifier: GPL-2.0-or-later
"""Replies that do not fit into a datagram, labels without a party, and keys in queries."""
import struct

from baresip import wait_for
from compat import compat, compat_each
from text import audio, sdp


def long_sdp(size, medias=1, **more):
    body = sdp(*[audio(**more)] * medias)
    return body + "".join(f"a=x-filler:{i:06d}\r\n" for i in range((size - len(body)) // 19))


def calls(relay):
    return relay.statistics()["currentstatistics"]["sessionstotal"]


def ports_used(relay, number):
    """Waits, because workers report and close ports after the reply."""
    wait_for(f"{number} ports in use", lambda: relay.daemon.statistics()["ports used"] == number)


# --- Replies larger than a datagram -------------------------------------------------------------------------------

LONGER = {"flags": ["full-rtcp-attribute", "generate-mid"]}  # the reply has more lines than the request


@compat("replies", "xcipher-ng(7) REPLIES: too long")
def test_a_publish_whose_reply_is_too_long_changes_nothing(relay):
    before = calls(relay)
    call = relay.call()
    call.request("publish", "Reply is too long", from_tag="p", sdp=long_sdp(65200, 8, direction="sendonly"), **LONGER)
    call.request("query", "Unknown call-id")
    assert calls(relay) == before
    # Control: a shorter one is accepted.
    assert call.request("publish", from_tag="p", sdp=long_sdp(60000, 8, direction="sendonly"), **LONGER).sdp.audio.port


@compat("replies", "xcipher-ng(7) REPLIES: too long")
def test_a_subscribe_request_whose_reply_is_too_long_changes_nothing(relay):
    ports_used(relay, 0)
    call = relay.call()
    for i in range(5):  # branches of a fork; the reply names each tag several times
        call.request("offer", from_tag="a", via_branch=f"v{i}", sdp=sdp(audio()))
        call.request("answer", from_tag="a", to_tag=f"{i}" + "t" * 9000, via_branch=f"v{i}", sdp=sdp(audio(), ip="10.200.2.2"))
    ports_used(relay, 6 * 2)  # six parties, RTP and RTCP
    call.request("subscribe request", "Reply is too long", flags=["all"])
    ports_used(relay, 6 * 2)
    # Control: the reply about one party fits.
    call.request("subscribe request", from_tag="a")
    ports_used(relay, 7 * 2)


# --- Labels -------------------------------------------------------------------------------------------------------


@compat_each("labels", "xcipher-ng(7), label, to-label; a label that no party has", [
    *[(name, {"label": "nobody"}) for name in ("block media", "unblock media", "silence media", "unsilence media", "block DTMF", "unblock DTMF",
                                               "subscribe request", "start recording")],
    ("block media", {"from_tag": "a", "to_label": "nobody"})], options=["--recording-dir={folder}"])
def test_a_label_that_no_party_has_is_an_error(relay, command, keys):
    call = relay.call()
    call.offer(sdp(audio()), label="caller")
    call.answer(sdp(audio(), ip="10.200.2.2"), label="callee")
    call.request(command, "No matching participant", **keys)
    # Control: the same command with a label that a party has.
    call.request(command, **{key: "callee" if "label" in key else value for key, value in keys.items()})


# --- Keys in query ------------------------------------------------------------------------------------------------


def media(call, tag):
    return call.query()["tags"][tag]["medias"][0]


@compat_each("query", "xcipher-ng(7), query: keying", [("RTP", None, {}, None), ("SDES", "80", {}, "SDES"),
                                                       ("passed through", "80", {"flags": ["passthrough"]}, "SDES end-to-end")])
def test_query_names_the_keying(relay, _name, suite, keys, keying):
    call = relay.call()
    there = call.offer(sdp(audio(suites=[suite] if suite else [])), transport_protocol="RTP/SAVP" if suite else "RTP/AVP", **keys).sdp.audio
    call.answer(sdp(audio(suites=["80"] if there.crypto else []), ip="10.200.2.2"), **keys)
    assert [media(call, tag).get("keying") for tag in "ab"] == [keying] * 2


def zrtp(kind):
    return struct.pack("!BBHII", 0x10, 0, 1, 0x5a525450, 7) + b"\x50\x5a\x00\x03" + kind + bytes(8)


# As terminals send them (RFC 6189 section 5, RFC 6347 section 4.1, RFC 8489 section 5): the packet,
# its counter, the resulting state.
OTHERS = [("ZRTP Hello", zrtp(b"Hello   "), {"ZRTP": 1}, None),
          ("ZRTP Conf2ACK", zrtp(b"Conf2ACK"), {"ZRTP": 1, "ZRTP Conf2ACK": 1}, "ZRTP end-to-end"),
          ("DTLS", struct.pack("!BHHIHH", 22, 0xfefd, 0, 0, 1, 41) + b"\x01" + bytes(40), {"DTLS": 1}, "DTLS end-to-end"),
          ("STUN", struct.pack("!HHI", 1, 0, 0x2112a442) + bytes(12), {"STUN": 1}, None)]


@compat_each("query", "xcipher-ng(7), query: end-to-end and keying", OTHERS)
def test_query_counts_what_passes_end_to_end(relay, _name, packet, counts, keying):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call().talk(a, b)
    assert "end-to-end" not in media(call, "a")["streams"][0]
    for x, y in ((a, b), (b, a)):
        x.sock.sendto(packet, x.to)
        assert y.sock.recv(2048) == packet
        if x is a:
            stream = media(call, "a")["streams"][0]
            assert "end-to-end" not in stream and stream["offered by one side"] == counts, stream
            assert "keying" not in media(call, "a"), media(call, "a")
    for tag in "ab":
        assert media(call, tag)["streams"][0]["end-to-end"] == counts, media(call, tag)
        assert media(call, tag).get("keying") == keying, media(call, tag)
