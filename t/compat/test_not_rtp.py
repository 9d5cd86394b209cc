# SPDX-License-Identifier: GPL-2.0-or-later
"""Media that are not RTP in SDP; t/e2e/test_raw.py tests their packets. Also ZRTP where the keys
are xcipher's."""
import struct

from compat import compat, compat_each
from text import audio, media, sdp

B = "10.200.2.2"
TEXT = "xcipher-ng(7) TEXT"
RELAYED = [  # kind, transport, format, attributes that must be passed on
    ("image", "udptl", "t38", ["a=T38FaxVersion:0", "a=T38FaxUdpEC:t38UDPRedundancy"]),
    ("image", "UDP/TLS/UDPTL", "t38", ["a=fingerprint:sha-256 AA:BB", "a=setup:actpass"]),
    ("application", "UDP/BFCP", "*", ["a=floorctrl:c-s", "a=confid:1"]),
    ("application", "UDP/DTLS/SCTP", "webrtc-datachannel", ["a=fingerprint:sha-256 AA:BB", "a=setup:actpass", "a=sctp-port:5000"])]
PASSED = [("message", "TCP/MSRP", "*", ["a=path:msrp://10.200.1.2:4020/x;tcp", "a=accept-types:text/plain"]),
          ("application", "TCP/BFCP", "*", ["a=floorctrl:c-s", "a=setup:active", "a=connection:new"]),
          ("application", "TCP", "x", ["a=setup:active"])]


def other(kind, transport, formats, lines, port=4020):
    return media(kind, port, formats, *lines, profile=transport, direction=None)


def both(relay, row):
    """The m-line after an audio, in an offer and an answer. Returns both sides' SDP."""
    call = relay.call()
    return call, call.offer(sdp(audio(), other(*row)), direction=["internal", "external"]), call.answer(sdp(audio(), other(*row, port=4024), ip=B))


@compat_each("not RTP", TEXT + "; ITU-T T.38 annex D, RFC 8856, RFC 8841", RELAYED)
def test_datagrams_pass_through_ports_of_the_relay(relay, kind, transport, formats, lines):
    _, there, back = both(relay, (kind, transport, formats, lines))
    for reply, theirs, address in ((there, 4020, "10.200.2.1"), (back, 4024, "10.200.1.1")):
        line = reply.sdp.media[1]
        assert (line.kind, line.profile, line.formats) == (kind, transport, [formats]), line.lines
        assert line.port not in (0, theirs) and line.address == address, line.lines
        assert set(lines) <= set(line.lines) and not line.has("rtcp"), line.lines
        assert "m=audio 0" not in reply["sdp"] and not reply.warning


@compat_each("not RTP", TEXT + "; RFC 4145, RFC 4975, RFC 8856", PASSED)
def test_tcp_passes_with_the_terminals_own_address(relay, kind, transport, formats, lines):
    _, there, back = both(relay, (kind, transport, formats, lines))
    for reply, theirs, address in ((there, 4020, "10.200.1.2"), (back, 4024, B)):
        line = reply.sdp.media[1]
        assert (line.kind, line.profile, line.port, line.address) == (kind, transport, theirs, address), line.lines
        assert set(lines) <= set(line.lines) and reply.sdp.audio.address != address, reply["sdp"]


@compat_each("not RTP", TEXT + "; RFC 3264 section 6", ["DCCP/RTP/AVP", "SCTP", "RTP/XYZ"])
def test_what_cannot_be_relayed_is_refused_to_both_sides(relay, transport):
    call = relay.call()
    there = call.offer(sdp(audio(), other("application", transport, "5", [])))
    assert there.sdp.media[1].port == 0 and transport in there.warning and there.sdp.audio.port, there
    back = call.answer(sdp(audio(), other("application", transport, "5", [], port=0), ip=B))
    assert back.sdp.media[1].port == 0 and back.sdp.audio.port, back


@compat("not RTP", TEXT + ": an answer of another transport is refused; RFC 3264 section 6")
def test_an_answer_of_another_transport_is_refused(relay):
    call = relay.call()
    call.offer(sdp(other(*RELAYED[0])))
    call.answer(sdp(other("image", "TCP", "t38", []), ip=B), fails="udptl")
    assert call.answer(sdp(other(*RELAYED[0]), ip=B)).sdp.media[0].port


@compat_each("not RTP", TEXT + "; ITU-T T.38 D.2.2.4", [0, 1])
def test_a_call_becomes_a_fax_and_a_call_again(relay, by):
    """By a re-INVITE of either side, with the first offer's flags, which concern RTP."""
    call = relay.call()
    flags = {"transport_protocol": "RTP/AVP"}
    ips = ("10.200.1.2", B)
    ports = [call.offer(sdp(audio()), **flags).sdp.audio.port, call.answer(sdp(audio(), ip=B)).sdp.audio.port]
    for line in (other(*RELAYED[0]), audio()):
        there = call.offer(sdp(line, ip=ips[by]), by=by, **flags).sdp.media[0]
        back = call.answer(sdp(line, ip=ips[1 - by])).sdp.media[0]
        assert there.kind == back.kind and [there.port, back.port] == (ports[::-1] if by else ports), (there.lines, back.lines)
        assert there.profile == back.profile and there.profile in ("udptl", "RTP/AVP"), there.lines


@compat("not RTP", TEXT + ": ZRTP passes only where xcipher has no keys; RFC 6189 section 5")
def test_zrtp_does_not_pass_where_the_keys_are_the_relays(relay):
    a, b = relay.phone("caller", "80"), relay.phone("callee")
    call = relay.call().talk(a, b)
    hello = struct.pack("!BBHII", 0x10, 0, 1, 0x5a525450, 7) + b"\x50\x5a\x00\x03Hello   " + bytes(8)
    for x, y in ((a, b), (b, a)):
        x.sock.sendto(hello, x.to)
        assert y.receive(0.2) is None
    assert "end-to-end" not in call.query()["tags"]["a"]["medias"][0]["streams"][0]


CONVERSATION = [("audio", "udp"), ("audio", "UDP/RTP/AVP"), ("audio", "udptl"), ("audio", "UDP/BFCP"), ("audio", "TCP/RTP/AVP"), ("audio", "TCP/TLS/RTP/SAVP"),
                ("AUDIO", "UDPTL"), ("video", "UDP/RTP/AVPF"), ("text", "udp"), ("application", "TCP/RTP/AVP"), ("application", "UDP/RTP/AVP")]
REQUIRED = {"transport_protocol": "RTP/SAVP", "SDES": ["require:AES_CM_128_HMAC_SHA1_80"]}


@compat_each("not RTP", TEXT + ": voice, video and text are relayed as RTP or SRTP only", CONVERSATION)
def test_a_conversation_is_never_relayed_raw(relay, kind, transport):
    """In a first offer and in a re-INVITE of an SRTP call, with and without flags that require
    SRTP."""
    line = other(kind, transport, "0", [])
    for flags in ({}, REQUIRED):
        for established in (False, True):
            call = relay.call()
            if established:
                call.offer(sdp(audio(suites=["80"])), **flags)
                offered = call.answer(sdp(audio(suites=["80"]), ip=B)).sdp.audio
                assert offered.suites, offered.lines
            there = call.offer(sdp(line), **flags)
            assert there.sdp.media[0].port == 0 and transport in there.warning, (transport, flags, there)
            back = call.answer(sdp(line, ip=B))
            assert back.sdp.media[0].port == 0, (transport, flags, back)
    control = relay.call()
    assert control.offer(sdp(audio(suites=["80"])), **REQUIRED).sdp.audio.suites


@compat("not RTP", TEXT + ": an answer of another kind is refused; RFC 3264 section 6")
def test_a_conversation_is_no_answer_to_a_fax(relay):
    call = relay.call()
    assert call.offer(sdp(audio(), other(*RELAYED[0]))).sdp.media[1].port
    back = call.answer(sdp(audio(), other("audio", "udptl", "t38", []), ip=B))
    assert back.sdp.media[1].port == 0 and back.sdp.audio.port and "media 2" in back.warning, back


@compat("not RTP", TEXT + ": a fax is not encrypted; the end of SRTP is reported and counted")
def test_srtp_that_becomes_a_fax_is_reported(relay):
    call = relay.call()
    call.offer(sdp(audio(suites=["80"])), **REQUIRED)
    call.answer(sdp(audio(suites=["80"]), ip=B))
    before = relay.request("statistics")["statistics"]["totalstatistics"]["srtptortpbyterminal"]
    assert call.offer(sdp(other(*RELAYED[0])), **REQUIRED).sdp.media[0].port
    back = call.answer(sdp(other(*RELAYED[0]), ip=B))
    assert back.sdp.media[0].port and "SRTP ended" in back.warning, back
    assert relay.request("statistics")["statistics"]["totalstatistics"]["srtptortpbyterminal"] == before + 2
