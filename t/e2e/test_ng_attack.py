# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks on the control protocol: datagrams that are no ng, forged and replayed requests, floods. Each test sends the legitimate request by the
same socket, so a missing reply means that the daemon refused the attack and not that the path is broken."""
import socket

import ng
import relay
from run import cases

# A header as RTP has it: version 2, sequence number, timestamp, SSRC. No blank, so it could be read as a cookie.
RTP = bytes.fromhex("8000123400005678deadbeef")
LIST = b" d7:command4:liste"
COOKIES = {
    "RTP": RTP,
    "RTP with marker": b"\x80\x88" + RTP[2:],
    "RTCP": b"\x81\xc9\x00\x07" + RTP[4:],
    "STUN": b"\x01\x01\x00\x08\x21\x12\xa4\x42" + RTP,
    "a tab": b"a\tb",
    "a line end": b"a\nb",
    "NUL": b"\0",
    "DEL": b"a\x7f",
    "Latin-1": "grün".encode("latin-1"),
    "UTF-8": "grün".encode(),
    "too long": b"x" * 256,
}


def daemon(net, *options, **kw):
    return relay.Xcipherd(net, "--engine=serial", *options, **kw).wait_ready()


def stop(d):
    assert d.stop() == 0, d.text()


def first_reply(sock):
    sock.settimeout(30)
    return sock.recv(65536)


def dropped(d, reason):
    return d.client.call("statistics")["statistics"]["controlstatistics"]["dropped"][reason]


@cases(("RTP",), ("RTP with marker",), ("RTCP",), ("STUN",), ("a tab",), ("a line end",), ("NUL",), ("DEL",), ("Latin-1",), ("UTF-8",), ("too long",))
def test_what_is_no_cookie_gets_no_reply(net, what):
    """A datagram whose first word is not printable ASCII is dropped. The request behind it is a valid one. The reply of a later ping arrives first."""
    d = daemon(net)
    sock = ng.socket_in(net.gateway)
    sock.connect(("127.0.0.1", 22222))
    sock.send(b"control" + LIST)
    assert first_reply(sock) == b"control d6:result2:ok5:callslee"
    sock.send(COOKIES[what] + LIST)
    sock.send(b"after d7:command4:pinge")
    assert first_reply(sock) == b"after d6:result4:ponge", f"a reply to {what}"
    stop(d)


def test_rtp_from_a_media_address_gets_no_reply(net):
    """The shape of the attack by SDP: the gateway relays RTP to its own ng port. A terminal's socket stands for the relay here."""
    d = daemon(net, "--listen-ng=0.0.0.0:22222")
    for name, address in (("caller", "10.200.1.1"), ("callee", "10.200.2.1")):
        sock = ng.socket_in(net.terminal[name])
        sock.connect((address, 22222))
        sock.send(b"control" + LIST)
        assert first_reply(sock).startswith(b"control d6:result2:ok")
        for sequence in range(100):
            sock.send(b"\x80\x00" + sequence.to_bytes(2, "big").replace(b" ", b"_") + RTP[4:] + LIST)
        sock.send(b"after d7:command4:pinge")
        assert first_reply(sock) == b"after d6:result4:ponge"
    stop(d)


def test_what_is_no_cookie_ends_a_tcp_connection_in_silence(net):
    d = daemon(net, "--listen-tcp-ng=127.0.0.1:22223")
    for cookie in COOKIES.values():
        sock = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
        sock.connect(("127.0.0.1", 22223))
        sock.send(b"control d7:command4:pinge")
        assert first_reply(sock) == b"control d6:result4:ponge"
        sock.send(cookie + LIST)
        assert first_reply(sock) == b"", "a reply to what is no cookie"
        sock.close()
    stop(d)


def test_http_refuses_what_is_no_cookie(net):
    d = daemon(net, "--listen-http=127.0.0.1:2226")

    def post(body):
        sock = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
        sock.connect(("127.0.0.1", 2226))
        sock.send(b"POST /ng HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        reply = b""
        while chunk := first_reply(sock):
            reply += chunk
        sock.close()
        return reply

    assert post(b"control" + LIST).endswith(b"\r\ncontrol d6:result2:ok5:callslee")
    for cookie in COOKIES.values():
        reply = post(cookie + LIST)
        assert reply.startswith(b"HTTP/1.1 400 ") and b"result" not in reply, reply
    stop(d)
