# SPDX-License-Identifier: GPL-2.0-or-later
"""Opportunistic SRTP (RFC 8643): crypto lines within RTP/AVP, in both directions, accepted or not.
libsrtp2's terminals then use the negotiated suites."""
import os

import calls
import relay
from run import cases
from test_relay import clean, finish

S80, S32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
OFFER, ACCEPT = {"OSRTP": ["offer"], "transport_protocol": "RTP/AVP"}, {"OSRTP": ["accept"]}
LEGACY = {"OSRTP": ["offer-legacy", "accept-legacy"], "transport_protocol": "RTP/SAVP"}
BOTH = {"OSRTP": ["offer", "accept"], "transport_protocol": "RTP/AVP"}
AVP = "RTP/AVP"

# caller, its profile; callee, its profile; flags; suites offered to the callee; whether the
# caller's answer has crypto
CALLS = (
    ("plain", None, "80", AVP, OFFER, S80),  # offered and accepted
    ("plain", None, "plain", None, OFFER, S80),  # offered and not accepted: plain on both sides
    ("80", AVP, "32", None, ACCEPT, S32),  # received and accepted; SRTP on the other side
    ("80", AVP, "plain", None, ACCEPT, None),  # received and accepted; RTP on the other side
    ("80", AVP, "32", AVP, BOTH, S32),  # both sides
    ("80", AVP, "plain", None, BOTH, S80),  # offered on both sides, refused by one
    ("80", None, "32", AVP, OFFER, S32),  # SAVP to opportunistic
    ("AEAD_AES_256_GCM", AVP, "80", AVP, BOTH, S80),
    ("plain", None, "32", None, LEGACY, S32),  # two m-lines, the first is accepted
)


@cases(("serial",), ("opencl",))
def test_what_is_offered_opportunistically_is_spoken_if_it_is_taken(net, engine):
    daemon = relay.Xcipherd(net, f"--engine={engine}", "--opencl-min=1").wait_ready()
    talk = []
    for number, (caller, caller_profile, callee, callee_profile, flags, offered) in enumerate(CALLS):
        c = calls.Call(daemon.client, number, caller, callee, flags=flags, profile=(caller_profile, callee_profile)).setup()
        seen, told = c.to_callee, c.to_caller
        assert seen["profile"] == (callee_profile or ("RTP/AVP" if callee == "plain" else "RTP/SAVP")), (number, seen)
        assert (offered in [s for _, s, _ in seen["crypto"]]) if offered else not seen["crypto"], (number, seen)
        # A terminal that offered RTP/AVP gets RTP/AVP with one suite.
        assert told["profile"] == (caller_profile or ("RTP/AVP" if caller == "plain" else "RTP/SAVP")), (number, told)
        assert [s for _, s, _ in told["crypto"]] == ([] if caller == "plain" else [c.suite[0].name]), (number, told)
        talk.append(c)
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    for c, row in zip(talk, CALLS):
        query = calls.ok(daemon.client.call("query", call_id=c.id))
        spoken = [query["tags"][t + c.id]["medias"][0].get("crypto suite", "plain") for t in "ab"]
        assert spoken == [s.name for s in c.suite], (row, spoken)
    finish(daemon)


def test_nobody_asked_for_it(net):
    """With OSRTP=off, crypto lines in RTP/AVP are ignored, in offers of both parties."""
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    key = os.urandom(30)
    body = calls.sdp("10.200.1.2", 4000, "80", key, profile=AVP)
    names = {"call_id": "o", "ICE": "remove", "replace": ["origin"]}
    seen = calls.parse(calls.ok(daemon.client.call("offer", sdp=body, from_tag="a", OSRTP=["off"], **names))["sdp"])
    assert seen["profile"] == AVP and not seen["crypto"], seen
    told = calls.parse(calls.ok(daemon.client.call("answer", sdp=calls.sdp("10.200.1.2", 4002), from_tag="a", to_tag="b", **names))["sdp"])
    assert told["profile"] == AVP and not told["crypto"], told
    # The callee's re-INVITE is opportunistic, and passed on that way.
    body = calls.sdp("10.200.1.2", 4002, "32", os.urandom(30), profile=AVP)
    seen = calls.parse(calls.ok(daemon.client.call("offer", sdp=body, from_tag="b", to_tag="a", OSRTP=["offer", "accept"], **names))["sdp"])
    assert seen["profile"] == AVP and S80 in [s for _, s, _ in seen["crypto"]], seen
    tag = next(t for t, s, _ in seen["crypto"] if s == S80)
    told = calls.parse(calls.ok(daemon.client.call("answer", sdp=calls.sdp("10.200.1.2", 4000, "80", key, tag, profile=AVP), from_tag="b", to_tag="a",
                                                   **names))["sdp"])
    assert told["profile"] == AVP and [s for _, s, _ in told["crypto"]] == [S32], told
    query = calls.ok(daemon.client.call("query", call_id="o"))
    assert [query["tags"][t]["medias"][0].get("crypto suite") for t in "ab"] == [S80, S32], query
    finish(daemon)
