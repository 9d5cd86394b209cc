# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks on the control protocol: datagrams that are not ng, forged and replayed requests, floods.
Each test sends a valid request by the same socket. So a missing reply means that the attack was
refused, not that the path is broken."""
import contextlib
import os
import re
import socket
import tempfile
import threading
import time

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
    """An attack by SDP makes the gateway relay RTP to its own ng port. Here a terminal's socket stands for the relay."""
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


# --- Signatures --------------------------------------------------------------------------------------------------

KEY, OTHER, NEXT = bytes(range(32)), bytes(range(1, 33)), bytes(range(2, 34))
PING = b"d7:command4:pinge"


def key_file(folder, *keys, name="ng.key", mode=0o600):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as f:
        f.write("# for the test\n" + "".join(k.hex() + "\n" for k in keys))
    os.chmod(path, mode)
    return path


@contextlib.contextmanager
def signed_daemon(net, *keys, options=()):
    """(daemon, path of the key file). The daemon's client signs with KEY."""
    with tempfile.TemporaryDirectory(prefix="xcipher-ng-") as folder:
        path = key_file(folder, *keys)
        d = relay.Xcipherd(net, "--engine=serial", f"--ng-key-file={path}", *options, ng_key=KEY).wait_ready()
        yield d, path
        log = d.text()
        for k in (*keys, OTHER, NEXT):
            assert k.hex() not in log.lower()
        stop(d)


def udp(net):
    sock = ng.socket_in(net.gateway)
    sock.connect(("127.0.0.1", 22222))
    return sock


def signed(key, cookie, body, seconds=None):
    return ng.sign(key, cookie, body, seconds) + b" " + body


def offers(d):
    return int(d.client.call("statistics")["statistics"]["controlstatistics"]["totaloffercount"])


OFFER_BODY = ng.encode({"command": "offer", "call-id": "replayed", "from-tag": "f", "sdp": "v=0\r\no=- 1 1 IN IP4 10.200.1.2\r\ns=-\r\nc=IN IP4 10.200.1.2\r\n"
                        "t=0 0\r\nm=audio 5000 RTP/AVP 0\r\n"})


@cases(("unsigned",), ("forged",), ("another body",), ("a reply",), ("past",), ("future",))
def test_what_is_not_signed_is_dropped(net, what):
    """The request is dropped and counted. Signed by the key, it gets a reply on the same socket."""
    with signed_daemon(net, KEY) as (d, _):
        sock, now = udp(net), int(time.time())
        sock.send(signed(KEY, b"control", PING))
        assert first_reply(sock).endswith(b" d6:result4:ponge")
        cookie = ng.sign(KEY, b"r", PING)
        message, reason = {
            "unsigned": (b"x " + PING, "unsigned"),
            "forged": (signed(OTHER, b"x", PING), "forged"),
            "another body": (ng.sign(KEY, b"x", PING) + LIST, "forged"),
            "a reply": (cookie[:-32] + ng.reply_mac(KEY, cookie, b"d6:result4:ponge") + b" d6:result4:ponge", "forged"),
            "past": (signed(KEY, b"x", PING, now - 300), "clock"),
            "future": (signed(KEY, b"x", PING, now + 300), "clock"),
        }[what]
        before = dropped(d, reason)
        sock.send(message)
        sock.send(signed(KEY, b"after", PING))
        assert first_reply(sock).startswith(b"after~"), what
        assert dropped(d, reason) == before + 1
        assert "ng message from 127.0.0.1:" in d.text(), d.text()


def test_replies_are_signed(net):
    """Replies are signed by the request's key over its whole cookie, so they cannot be forged or
    moved to another request."""
    with signed_daemon(net, OTHER, KEY) as (_, __):
        sock = udp(net)
        for key in (KEY, OTHER):
            cookie = ng.sign(key, b"1_2_3", PING)
            sock.send(cookie + b" " + PING)
            said, _, body = first_reply(sock).partition(b" ")
            assert body == b"d6:result4:ponge" and said == cookie[:-32] + ng.reply_mac(key, cookie, body), said


def test_a_copy_is_never_executed_again(net):
    """The same socket gets the stored reply, byte for byte. Any other address gets none."""
    with signed_daemon(net, KEY) as (d, _):
        sock, thief = udp(net), udp(net)
        message = signed(KEY, b"1", OFFER_BODY)
        sock.send(message)
        reply = first_reply(sock)
        assert b"result2:ok" in reply and offers(d) == 1, reply
        for _ in range(20):
            sock.send(message)
            assert first_reply(sock) == reply
            thief.send(message)
        thief.send(signed(KEY, b"control", PING))  # control: the path works
        assert first_reply(thief).startswith(b"control~")
        assert offers(d) == 1 and dropped(d, "replay") == 20
        # another cookie or time makes another request
        sock.send(signed(KEY, b"2", OFFER_BODY))
        assert b"result2:ok" in first_reply(sock) and offers(d) == 2
        d.client.call("delete", call_id="replayed", delete_delay=0)


def test_keys_change_while_calls_go_on(net):
    """A reload accepts both keys, then only the new one. A reload with an invalid file changes nothing."""
    with signed_daemon(net, OTHER, KEY) as (d, path):
        folder = os.path.dirname(path)

        def answers(key):
            sock = udp(net)
            unique = os.urandom(8).hex().encode()  # the same text in the same second would be a repetition
            sock.send(signed(key, b"x" + unique, PING))
            sock.send(signed(KEY, b"after" + unique, PING))  # KEY stays valid all the time
            return first_reply(sock).startswith(b"x")

        assert answers(OTHER) and answers(KEY) and not answers(NEXT)
        key_file(folder, NEXT, KEY)
        assert answers(OTHER), "nothing changes before it is told"
        d.client.call("reload")
        assert answers(NEXT) and answers(KEY) and not answers(OTHER)
        with open(path, "a", encoding="ascii") as f:
            f.write("not a key\n")
        assert "line 4" in d.client.call("reload")["error-reason"]
        os.chmod(path, 0o644)
        assert "chmod" in d.client.call("reload")["error-reason"]
        assert answers(NEXT) and answers(KEY) and not answers(OTHER)
        key_file(folder, KEY)


@cases(("is moved",), ("is removed",))
def test_a_reload_is_answered_by_the_key_that_asked(net, what):
    """A reload replaces the keys before its own reply is signed."""
    keys, key = ((NEXT, KEY), KEY) if what == "is moved" else ((KEY, OTHER), OTHER)
    with signed_daemon(net, *keys) as (_, path):
        key_file(os.path.dirname(path), KEY)
        sock, body = udp(net), b"d7:command6:reloade"
        cookie = ng.sign(key, b"r", body)
        sock.send(cookie + b" " + body)
        said, _, reply = first_reply(sock).partition(b" ")
        assert reply.startswith(b"d6:result2:ok") and said == cookie[:-32] + ng.reply_mac(key, cookie, reply), (said, reply)
        sock.send(signed(KEY, b"after", PING))
        assert first_reply(sock).startswith(b"after~")


@cases(("others", 0o644), ("the group writes", 0o660), ("others write", 0o602), ("fine", 0o640))
def test_key_files_are_private(net, _what, mode):
    with tempfile.TemporaryDirectory(prefix="xcipher-ng-") as folder:
        path = key_file(folder, KEY, mode=mode)
        d = relay.Xcipherd(net, "--engine=serial", f"--ng-key-file={path}", ng_key=KEY)
        if mode == 0o640:
            d.wait_ready()
            stop(d)
            return
        assert d.process.wait(60) != 0
        assert re.search(r"--ng-key-file=\S+ has mode 0\d{3}, so others can read or change it: chmod 600", d.text()), d.text()


def test_tcp_must_be_signed_and_http_have_a_token(net):
    with signed_daemon(net, KEY, options=("--listen-tcp-ng=127.0.0.1:22223", "--listen-http=127.0.0.1:2226")) as (d, _):
        for message, answered in ((signed(KEY, b"x", PING), True), (b"x " + PING, False), (signed(OTHER, b"x", PING), False), (b"x nonsense ", False)):
            sock = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
            sock.connect(("127.0.0.1", 22223))
            sock.send(message)
            assert (first_reply(sock) != b"") == answered, message
            sock.close()
        sock = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
        sock.connect(("127.0.0.1", 2226))
        sock.send(b"POST /ng HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\nx " % (len(PING) + 2) + PING)
        assert first_reply(sock).startswith(b"HTTP/1.1 401 ")
        assert "--listen-http refuses ng commands" in d.text()


def test_xcipherctl_signs(net):
    with signed_daemon(net, KEY) as (_, path):
        def ctl(*args):
            return net.run(net.gateway, os.path.join(relay.BUILD, "xcipherctl"), *args, check=False)

        assert ctl("--timeout=30", f"--ng-key-file={path}", "ping").returncode == 0
        wrong = key_file(os.path.dirname(path), OTHER, name="wrong.key")
        for p in (ctl("--timeout=1", "ping"), ctl("--timeout=1", f"--ng-key-file={wrong}", "ping")):
            assert p.returncode == 3 and "--ng-key-file" in p.stderr, p
        os.chmod(wrong, 0o644)
        p = ctl(f"--ng-key-file={wrong}", "ping")
        assert p.returncode == 2 and "chmod" in p.stderr and OTHER.hex() not in p.stderr + p.stdout, p


def test_xcipherctl_takes_no_forged_reply(net):
    """Another program took the port and replies first; its unsigned replies are ignored."""
    with tempfile.TemporaryDirectory(prefix="xcipher-ng-") as folder:
        sock = ng.socket_in(net.gateway)
        sock.bind(("127.0.0.1", 22222))
        forged = []

        def answer():
            for _ in range(2):
                datagram, source = sock.recvfrom(65536)
                cookie = datagram.partition(b" ")[0]
                forged.append(cookie)
                sock.sendto(cookie + b" d6:result4:ponge", source)
                sock.sendto(cookie[:-32] + b"0" * 32 + b" d6:result4:ponge", source)
                sock.sendto(b"x d6:result4:ponge", source)

        for args, code in (((), 0), ((f"--ng-key-file={key_file(folder, KEY)}",), 3)):
            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            p = net.run(net.gateway, os.path.join(relay.BUILD, "xcipherctl"), "--timeout=2" if code else "--timeout=30", *args, "ping", check=False)
            assert p.returncode == code, p
            if not args:  # the second datagram of the first thread
                udp(net).send(b"end " + PING)
            thread.join(30)
        sock.close()


def test_addresses_that_many_reach_are_warned_of(net):
    d = daemon(net, "--listen-ng=0.0.0.0:22222", "--listen-tcp-ng=10.200.1.1:22223", "--listen-http=127.0.0.1:2226")
    log = d.text()
    assert "--listen-ng=0.0.0.0:22222: any host that reaches" in log and "--listen-ng=0.0.0.0:22222 is also a media address" in log, log
    assert "--listen-tcp-ng=10.200.1.1:22223: any host that reaches" in log and "--listen-tcp-ng=10.200.1.1:22223 is also" in log, log
    assert "--listen-http" not in log, log
    stop(d)
