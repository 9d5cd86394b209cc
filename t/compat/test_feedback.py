# SPDX-License-Identifier: GPL-2.0-or-later
"""Between terminals of AVPF everything that video needs passes unchanged: feedback, retransmissions, header extensions."""
import os
import struct

from compat import compat, compat_each
from test_rtcp import PSFB, RR, RTPFB, part, receive, send

PAIRS = [(None, None), (None, "80"), ("80", None), ("80", "GCM")]
RTX, VP8 = 97, 96
FEEDBACK = {
    "NACK": part(RTPFB, 7, struct.pack("!IHH", 9, 100, 0b101), 1),
    "TMMBR": part(RTPFB, 7, struct.pack("!III", 0, 9, 0x12345678), 3),
    "transport-cc": part(RTPFB, 7, struct.pack("!IHHIHBB", 9, 5, 2, 0x01020300, 0x2002, 4, 8), 15),
    "PLI": part(PSFB, 7, struct.pack("!I", 9), 1),
    "SLI": part(PSFB, 7, struct.pack("!II", 9, 0x00080001), 2),
    "FIR": part(PSFB, 7, struct.pack("!IIBxxx", 0, 9, 3), 4),
    "REMB": part(PSFB, 7, struct.pack("!I4sII", 0, b"REMB", 0x0104_0000, 9), 15),
}


def avpf_call(relay, x, y, lines=()):
    """Both speak AVPF."""
    a, b = relay.phone("caller", x), relay.phone("callee", y)
    call = relay.call()
    keys = {"transport_protocol": "RTP/SAVPF", "SDES": [f"only-{b.suite}"]} if y else {"transport_protocol": "RTP/AVPF"}
    lines = ("a=rtcp-mux", "a=rtcp-fb:* nack pli", "a=rtcp-fb:* ccm fir", "a=rtcp-fb:* goog-remb", "a=rtcp-fb:* transport-cc", "a=rtcp-rsize", *lines)
    offered = call.offer(a.sdp(*lines, kind="video", formats="96 97", profile="RTP/SAVPF" if x else "RTP/AVPF"), **keys).sdp.video
    b.told(offered)
    answered = call.answer(b.sdp(*lines, kind="video", formats="96 97", profile="RTP/SAVPF" if y else "RTP/AVPF")).sdp.video
    a.told(answered)
    for told in (offered, answered):
        assert len(told.attrs("rtcp-fb")) == 4 and told.has("rtcp-rsize"), told.lines
    for p, q in ((a, b), (b, a)):
        p.send(b"first", VP8)
        assert q.receive() == b"first"
    return a, b


@compat_each("feedback", "RFC 4585, RFC 5104, RFC 5506", PAIRS)
def test_feedback_passes_unchanged(relay, x, y):
    a, b = avpf_call(relay, x, y)
    for p, q in ((a, b), (b, a)):
        for kind, feedback in FEEDBACK.items():
            for packet in (feedback, part(RR, 7) + feedback):
                send(p, packet)
                assert receive(q, q.sock) == packet, kind


@compat_each("feedback", "RFC 4585 section 3.1", [(None, None), ("80", "80")])
def test_all_feedback_is_taken_out_towards_avp(relay, x, y):
    a, b = relay.phone("caller", x), relay.phone("callee", y)
    call = relay.call()
    keys = {"transport_protocol": "RTP/SAVP", "SDES": [f"only-{b.suite}"]} if y else {"transport_protocol": "RTP/AVP"}
    lines = ("a=rtcp-mux", "a=rtcp-fb:* nack pli", "a=rtcp-rsize")
    offered = call.offer(a.sdp(*lines, profile="RTP/SAVPF" if x else "RTP/AVPF"), **keys).sdp.audio
    assert not offered.has("rtcp-fb") and not offered.has("rtcp-rsize"), offered.lines
    b.told(offered)
    a.told(call.answer(b.sdp("a=rtcp-mux")).sdp.audio)
    a.send(b"first")
    assert b.receive() == b"first"
    rr = part(RR, a.ssrc)
    for kind, feedback in FEEDBACK.items():
        send(a, feedback)  # nothing is left of it
        send(a, rr + feedback)
        assert receive(b, b.sock) == rr, kind


def rtp(ssrc, seq, kind, payload, extension=b""):
    head = struct.pack("!BBHII", 0x90 if extension else 0x80, kind, seq, 9000, ssrc)
    return head + extension + payload


def arrives(p, q, packet):
    p.sock.sendto(p.tx.protect(packet) if p.tx else packet, p.to)
    got = q.sock.recv(2048)
    got = q.rx.unprotect(got) if q.rx else got
    assert got == packet, (packet, got)


@compat_each("feedback", "RFC 4588 sections 4 and 8.6: retransmissions have an SSRC and a payload type of their own", PAIRS)
def test_retransmissions_pass_unchanged(relay, x, y):
    lines = ["a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96", "a=ssrc-group:FID 1 2", "a=ssrc:1 cname:x", "a=ssrc:2 cname:x"]
    a, b = avpf_call(relay, x, y, lines)
    for p, q in ((a, b), (b, a)):
        again = p.ssrc ^ 0x5a5a
        for i in range(5):
            arrives(p, q, rtp(p.ssrc, p.seq + 1 + i, VP8, os.urandom(50)))
            arrives(p, q, rtp(again, 40000 + i, RTX, struct.pack("!H", 990 + i) + os.urandom(50)))


@compat_each("feedback", "RFC 8285 sections 4.2 and 4.3", PAIRS)
def test_header_extensions_pass_unchanged(relay, x, y):
    maps = ["a=extmap-allow-mixed", "a=extmap:1 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
            "a=extmap:2/sendonly urn:ietf:params:rtp-hdrext:ssrc-audio-level vad=on", "a=extmap:5 urn:ietf:params:rtp-hdrext:sdes:mid"]
    a, b = avpf_call(relay, x, y, maps)
    one = b"\xbe\xde\x00\x02" + b"\x12abc" + b"\x500\x00\x00"
    two = b"\x10\x00\x00\x03" + b"\x01\x03abc" + b"\x02\x00" + b"\x05\x030v1"
    for p, q in ((a, b), (b, a)):
        for i, extension in enumerate((one, two, b"\xab\xcd\x00\x00")):
            arrives(p, q, rtp(p.ssrc, p.seq + 1 + i, VP8, os.urandom(30), extension))


@compat_each("feedback", "RFC 8285 section 6", [(None, None), ("80", "GCM")])
def test_the_answerer_chooses_ids_of_header_extensions(relay, x, y):
    """The offer has IDs from 4096 on, which are not used in packets. The answer replaces one of them and refuses the other."""
    offer = ["a=extmap:4096 urn:ietf:params:rtp-hdrext:ssrc-audio-level", "a=extmap:4097/sendonly urn:ietf:params:rtp-hdrext:toffset"]
    answer = ["a=extmap:3 urn:ietf:params:rtp-hdrext:ssrc-audio-level"]
    a, b = relay.phone("caller", x), relay.phone("callee", y)
    call = relay.call()
    keys = {"transport_protocol": "RTP/SAVP", "SDES": [f"only-{b.suite}"]} if y else {"transport_protocol": "RTP/AVP"}
    offered = call.offer(a.sdp(*offer), **keys).sdp.audio
    b.told(offered)
    answered = call.answer(b.sdp(*answer)).sdp.audio
    a.told(answered)
    assert ["a=extmap:" + e for e in offered.attrs("extmap")] == offer, offered.lines
    assert ["a=extmap:" + e for e in answered.attrs("extmap")] == answer, answered.lines
    for p, q in ((a, b), (b, a)):
        arrives(p, q, rtp(p.ssrc, p.seq + 1, 0, os.urandom(30), b"\xbe\xde\x00\x01" + b"\x30\x85\x00\x00"))


@compat("feedback", "RFC 8285 section 5")
def test_maps_of_header_extensions_are_relayed(relay):
    lines = ["a=extmap:1 urn:ietf:params:rtp-hdrext:toffset", "a=extmap:5/recvonly urn:ietf:params:rtp-hdrext:sdes:mid"]
    a = relay.phone("caller")
    told = relay.call().offer(a.sdp(*lines, profile="RTP/AVPF"), transport_protocol="RTP/SAVPF").sdp.audio
    assert ["a=extmap:" + e for e in told.attrs("extmap")] == lines, told.lines


@compat("feedback", "RFC 9143 section 9.2")
def test_listeners_are_not_told_of_the_sources_mid(relay):
    """The MID in the packets is the source's. A browser would discard packets whose MID none of its m-lines has."""
    level = "a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    mid = ["a=extmap:5 urn:ietf:params:rtp-hdrext:sdes:mid", "a=extmap:6/sendrecv urn:ietf:params:rtp-hdrext:sdes:mid"]
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    b.told(call.offer(a.sdp(*mid, level)).sdp.audio)
    a.told(call.answer(b.sdp(level)).sdp.audio)
    for source in ("a", "b"):
        told = call.request("subscribe request", from_tag=source).sdp.audio
        assert ["a=extmap:" + e for e in told.attrs("extmap")] == [level], told.lines
