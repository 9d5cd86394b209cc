# SPDX-License-Identifier: GPL-2.0-or-later
"""RTCP: the ports it uses, and the parts that reach the other side."""
import os
import select
import socket
import struct
import time

import idle
import ng
from compat import compat, compat_each
from text import audio, sdp

RR, APP, RTPFB, PSFB = 201, 204, 205, 206


def part(kind, ssrc, body=b"", count=0):
    """One packet of a compound: header, sender's SSRC, body."""
    return struct.pack("!BBHI", 0x80 | count, kind, 1 + len(body) // 4, ssrc) + body


def rtcp_socket(relay, where, phone):
    """The phone's RTCP port: the one above that of its RTP."""
    sock = ng.socket_in(relay.net.terminal[where], socket.AF_INET)
    sock.bind((phone.ip, phone.port + 1))
    return sock


def receive(phone, sock, timeout=30.0):
    if timeout < 30:
        idle.wait_idle()
    if not select.select([sock], [], [], timeout)[0]:
        return None
    packet = sock.recv(2048)
    return phone.rx.unprotect_rtcp(packet) if phone.rx else packet


def send(phone, packet, sock=None, port=None):
    packet = phone.tx.protect_rtcp(packet) if phone.tx else packet
    (sock or phone.sock).sendto(packet, (phone.to[0], phone.to[1] + (port or 0)))


@compat_each("RTCP", "RFC 3550 section 11, accepted at the RTP port too", [(None, None), (None, "80"), ("80", None), ("80", "GCM")])
def test_rtcp_at_the_rtp_port_without_mux(relay, x, y):
    a, b = relay.phone("caller", x), relay.phone("callee", y)
    call = relay.call()
    call.talk(a, b)
    other = rtcp_socket(relay, "callee", b)
    word = part(RR, a.ssrc) + part(APP, a.ssrc, b"name" + os.urandom(8))
    send(a, word)
    assert receive(b, other) == word
    # RTP still goes to the RTP port, from the same source.
    b.send(b"still RTP")
    assert a.receive() == b"still RTP"
    other.close()


@compat("RTCP", "RFC 5761 section 4")
def test_payload_types_of_rtcp_are_rtp_without_mux(relay):
    """Type 70 with the marker looks like RTCP's type 198."""
    a, b = relay.phone("caller"), relay.phone("callee")
    relay.call().talk(a, b)
    a.send(b"marked", kind=0x80 | 70)
    assert b.receive() == b"marked"


@compat("RTCP", "xcipher-ng(7) strict-source")
def test_rtcp_at_the_rtp_port_does_not_move_rtp(relay):
    a, b = relay.phone("caller"), relay.phone("callee")
    relay.call().talk(a, b, flags=["strict-source"])
    other, stranger = rtcp_socket(relay, "callee", b), rtcp_socket(relay, "caller", a)
    word = part(RR, 7) + part(APP, 7, b"name" + os.urandom(8))
    send(a, word, stranger)
    assert receive(b, other, 0.2) is None
    send(a, word)
    assert receive(b, other) == word
    b.send(b"to the phone")
    assert a.receive() == b"to the phone"
    other.close()
    stranger.close()


def feedback_call(relay, x, y, answer_lines=()):
    """A uses AVPF, B is offered AVP."""
    a, b = relay.phone("caller", x), relay.phone("callee", y)
    call = relay.call()
    keys = {"transport_protocol": "RTP/SAVP", "SDES": [f"only-{b.suite}"]} if y else {"transport_protocol": "RTP/AVP"}
    lines = ("a=rtcp-mux", "a=rtcp-fb:* nack pli")
    b.told(call.offer(a.sdp(*lines, profile="RTP/SAVPF" if x else "RTP/AVPF"), **keys).sdp.audio)
    a.told(call.answer(b.sdp("a=rtcp-mux", *answer_lines)).sdp.audio)
    for p, q in ((a, b), (b, a)):
        p.send(b"first")
        assert q.receive() == b"first"
    return a, b


FB = part(PSFB, 7, struct.pack("!I", 9), 1) + part(RTPFB, 7, struct.pack("!III", 9, 1, 2), 1)
PAIRS = [(None, None), (None, "80"), ("80", None), ("80", "32"), ("GCM", "80"), ("80", "GCM256")]


@compat_each("RTCP", "RFC 4585 section 3.1, RFC 3550 section 6.1", PAIRS)
def test_feedback_is_taken_out_towards_avp(relay, x, y):
    a, b = feedback_call(relay, x, y)
    rr, app = part(RR, a.ssrc), part(APP, a.ssrc, b"name" + os.urandom(8))
    for sent, got in ((rr + FB + app, rr + app), (rr + app + FB, rr + app), (rr + app, rr + app), (FB + rr, rr)):
        send(a, FB)  # all of it is removed, and the following packets still pass
        send(a, sent)
        assert receive(b, b.sock) == got
    send(b, rr + FB)
    assert receive(a, a.sock) == rr + FB


@compat("RTCP", "RFC 4585 section 4.2")
def test_feedback_stays_towards_a_terminal_that_asks_for_it(relay):
    """Many video phones write a=rtcp-fb under RTP/AVP."""
    a, b = feedback_call(relay, None, None, ["a=rtcp-fb:* nack pli"])
    send(a, part(RR, 7) + FB)
    assert receive(b, b.sock) == part(RR, 7) + FB


# --- One port only ------------------------------------------------------------------------------------------------


@compat("RTCP", "xcipher-ng(7), rtcp-mux: require; RFC 8858 section 4.2")
def test_an_offer_that_demands_mux_names_one_port(relay):
    told = relay.call().offer(sdp(audio()), rtcp_mux=["offer", "require"]).sdp.audio
    assert told.has("rtcp-mux") and told.attr("rtcp") == str(told.port), told.lines
    told = relay.call().offer(sdp(audio("a=rtcp-mux", "a=rtcp-mux-only")), rtcp_mux=["require"], flags=["full-rtcp-attribute"]).sdp.audio
    assert told.has("rtcp-mux-only") and told.attr("rtcp").split()[0] == str(told.port), told.lines
    # Control: otherwise the offer names the port for an answerer without mux (RFC 5761 section 5.1.1).
    told = relay.call().offer(sdp(audio()), rtcp_mux=["offer"]).sdp.audio
    assert told.has("rtcp-mux") and told.attr("rtcp") == str(told.port + 1), told.lines


@compat_each("RTCP", "RFC 3550 section 6.4; xcipher-ng(7), detect-DTMF", [(None, None), ("80", "32")])
def test_quality_where_rtcp_ends(relay, x, y):
    """A codec thread ends RTCP: the callee's report about packets of the relay is the quality of the
    caller's media, with the round trip since the relay's sender report."""
    a, b = relay.phone("caller", x), relay.phone("callee", y)
    call = relay.call()
    more = {"SDES": [f"only-{b.suite}"]} if y else {}
    b.told(call.offer(a.sdp(formats="0"), transport_protocol="RTP/SAVP" if y else "RTP/AVP", flags=["detect-DTMF"], **more).sdp.audio)
    a.told(call.answer(b.sdp(formats="0")).sdp.audio)
    other = rtcp_socket(relay, "callee", b)
    for i in range(10):
        a.send(bytes([0x55 + i] * 160))
        assert len(b.receive()) == 160
    report = receive(b, other)
    assert report[1] == 200, report
    ssrc, ntp = struct.unpack("!I", report[4:8])[0], struct.unpack("!I", report[10:14])[0]
    block = struct.pack("!IIIIII", ssrc, 64 << 24 | 5, 10, 80, ntp, 0)
    send(b, part(RR, b.ssrc, block, count=1), other, 1)
    end = time.monotonic() + 30
    while True:
        said = call.query()["SSRC"].get(str(a.ssrc), {}).get("average MOS")
        if said:
            break
        assert time.monotonic() < end, call.query()["SSRC"]
        time.sleep(0.05)
    assert said["packet loss"] == 25 and 10 <= said["jitter"] < 60 and 10 <= said["MOS"] < 40 and said["samples"] == 1, said
    other.close()
