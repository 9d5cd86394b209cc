# SPDX-License-Identifier: GPL-2.0-or-later
"""xcipherctl finds calls: unlimited pages, filters, orders, suites of all m-lines, and ending the
calls that match."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading

import calls
import ng
import relay
from baresip import wait_for
from test_ctl import CTL, ctl, said
from test_relay import finish

KEY = "inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"
CM80, CM32 = calls.SHORT["80"], calls.SHORT["32"]


def body(*media):
    """SDP with m-lines (kind, port, suite or None)."""
    text = "v=0\r\no=- 1 1 IN IP4 10.200.1.2\r\ns=-\r\nc=IN IP4 10.200.1.2\r\nt=0 0\r\n"
    for kind, port, suite in media:
        text += f"m={kind} {port} RTP/{'SAVP' if suite else 'AVP'} {0 if kind == 'audio' else 96}\r\n"
        text += "a=rtpmap:96 VP8/90000\r\n" if kind == "video" else ""
        text += f"a=crypto:1 {suite} {KEY}\r\n" if suite else ""
    return text


def ids(net, *args):
    return [c["id"] for c in json.loads(said(net, "--json", *args, "calls"))["calls"]]


def test_more_calls_than_a_datagram_takes(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--timeout=3600").wait_ready()
    names = [f"{n:04}-" + "x" * 300 for n in range(400)]
    for name in names:
        calls.ok(daemon.client.call("offer", call_id=name, from_tag="a", sdp=body(("audio", 4000, CM80))))
    assert ids(net, "--limit=400") == names[::-1], "all, the newest first"
    assert ids(net, "--all") == names[::-1] and ids(net, "--all", "--sort=age") == names
    assert len(said(net, "--limit=350", "calls").splitlines()) == 352 and "350 of 400 calls" in said(net, "--limit=350", "calls")
    assert len(ids(net)) == 100, "unless more are asked for"
    finish(daemon)


def test_suites_of_all_media_by_side(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    client = daemon.client
    calls.ok(client.call("offer", call_id="video", from_tag="a", sdp=body(("audio", 4000, CM80), ("video", 4002, CM80)), transport_protocol="RTP/AVP"))
    calls.ok(client.call("answer", call_id="video", from_tag="a", to_tag="b", sdp=body(("audio", 5000, None), ("video", 5002, None))))
    line = said(net, "calls").splitlines()[1]
    assert re.search(r" CM128_80 +plain +0 ", line), line
    assert line.endswith("PCMU/8000+VP8/90000"), line
    finish(daemon)


def test_filters(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    client = daemon.client
    plain = calls.Call(client, 0, "plain", "32").setup()
    secret = calls.Call(client, 1, "80", "AEAD_AES_256_GCM").setup()
    calls.ok(client.call("offer", call_id="early", from_tag="a", sdp=body(("audio", 4000, CM80))))
    held = calls.Call(client, 3, "80", "32").setup()
    for side, tag, other in ((0, "a", "b"), (1, "b", "a")):
        text = held.body(side).replace("a=sendrecv", "a=sendonly" if side == 0 else "a=recvonly")
        command = "offer" if side == 0 else "answer"
        calls.ok(client.call(command, call_id=held.id, from_tag="a" + held.id, to_tag="b" + held.id, sdp=text))
    assert ids(net, "--plain") == [plain.id]
    assert ids(net, "--suite=GCM256") == [secret.id] == ids(net, "--suite=aead")
    assert ids(net, "--early") == ["early"] and ids(net, "--hold") == [held.id]
    assert len(ids(net, "--ip=10.200.1.2")) == 4 and ids(net, "--ip=10.200.1.3") == []
    assert len(ids(net, "--since=1h")) == 4 and len(ids(net, "--codec=pcmu", "--suite=plain")) == 1
    assert ids(net, "--mos-below=3.5") == []
    for wrong in ("--mos-below=good", "--ip=here", "--since=soon", "--sort=colour"):
        p = ctl(net, wrong, "calls")
        assert p.returncode == 1 and wrong[2:].split("=")[0] in p.stderr, p
    finish(daemon)


@contextlib.contextmanager
def talking(net, call, side=0):
    """One terminal of a plain call sends RTP meanwhile."""
    near = (call.to_caller, call.to_callee)[side]
    sock = ng.socket_in(net.terminal["caller"])
    sock.bind((call.ip[side], call.ports[side]))
    over = threading.Event()

    def send():
        n = 0
        while not over.wait(0.02):
            n += 1
            sock.sendto(struct.pack("!BBHII", 0x80, 0, n & 0xffff, 160 * n, 77) + bytes(160), (near["ip"], near["port"]))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sock.close()


def test_one_way_calls(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    call = calls.Call(daemon.client, 0, "plain", "plain").setup()
    quiet = calls.Call(daemon.client, 1, "plain", "plain").setup()
    with talking(net, call):
        wait_for("one-way media", lambda: ids(net, "--one-way") == [call.id])
        assert ids(net, "--trouble") == [call.id] and quiet.id in ids(net)
        assert re.search(call.id + " +one-way ", said(net, "calls")), said(net, "calls")
        with talking(net, call, side=1):
            wait_for("media both ways", lambda: not ids(net, "--one-way"))
    finish(daemon)


def in_a_terminal(net, answer, *args):
    """The output of xcipherctl with a question answered, and its exit status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("ip", ["ip", "netns", "exec", net.gateway, CTL, *args])
    seen, answered = b"", False
    with contextlib.suppress(OSError):  # EIO: the program has ended
        while more := os.read(fd, 65536):
            seen += more
            if b"[y/N]" in seen and not answered:
                os.write(fd, answer)
                answered = True
    os.close(fd)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_terminate_asks(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    plain = [calls.Call(daemon.client, n, "plain", "plain").setup() for n in range(3)]
    other = calls.Call(daemon.client, 9, "80", "32").setup()
    p = ctl(net, "--plain", "terminate")
    assert p.returncode == 2 and "--yes" in p.stderr, p
    p = ctl(net, "--yes", "terminate")
    assert p.returncode == 2 and "--all" in p.stderr, "not all calls by accident"
    text, status = in_a_terminal(net, b"\n", "--plain", "terminate")
    assert status == 0 and "Terminate 3 calls? [y/N]" in text and plain[0].id in text and len(ids(net)) == 4, text
    text, status = in_a_terminal(net, b"y\n", "--plain", "--limit=1", "terminate")
    assert status == 0 and "1 call terminated" in text and len(ids(net)) == 3, text
    assert "2 calls terminated" in said(net, "--plain", "--yes", "terminate") and ids(net) == [other.id]
    assert said(net, "terminate", other.id) == "call ended\n" and ids(net) == []
    finish(daemon)


def test_keys_in_top(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    plain = calls.Call(daemon.client, 0, "plain", "plain").setup()
    others = [calls.Call(daemon.client, n, "80", "32").setup() for n in range(1, 4)]
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("ip", ["ip", "netns", "exec", net.gateway, CTL, "--watch=0.2", "top"])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    seen = b""

    def shows(what):
        nonlocal seen
        while select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
        screens = seen.decode(errors="replace").split("\x1b[J")
        last = re.sub(r"\x1b\[[?0-9]*[A-Za-z]", "", screens[-2] if len(screens) > 1 else "")
        return last if re.search(what, last) else None

    def until(what, keys=""):
        os.write(fd, keys.encode())
        return wait_for(what, lambda: shows(what))

    text = until(f"> {others[2].id}")
    assert re.search(r"delay +- median, - p99 in the last \d+ s", text) and "new first" in text, text
    until(f"age first[^>]*> {plain.id}", "s")
    until(f"> {others[0].id}", "\x1b[B")
    until("filter: plain_", "/plain")
    text = until(f"filter: plain\\.[^>]*> {plain.id}", "\r")
    assert not any(o.id in text for o in others), text
    text = until("What happened", "\r")
    assert "the terminal's offer had no a=crypto line" in text and plain.id in text, text
    until(f"> {plain.id}", "\x1b")
    text = until("error: a filter is one of", "/colour=red\r")
    assert "no calls" not in text and "filter: colour=red" in text, text
    text = until("filter: hold\\.[^>]*no calls", "/hold\r")
    until(f"filter: plain\\.[^>]*> {plain.id}", "/plain\r")
    os.write(fd, b"q")
    with contextlib.suppress(OSError):  # EIO: the program has ended
        while os.read(fd, 65536):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(fd)
    finish(daemon)


def test_a_reply_that_no_datagram_takes(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--listen-tcp-ng=127.0.0.1:22222").wait_ready()
    names = [f"{n:04}-" + "x" * 400 for n in range(200)]
    for name in names:
        calls.ok(daemon.client.call("offer", call_id=name, from_tag="a", sdp=body(("audio", 4000, CM80))))
    assert json.loads(said(net, "--json", "--limit=200", "list"))["calls"] == names
    daemon.stop()
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    for name in names:
        calls.ok(daemon.client.call("offer", call_id=name, from_tag="a", sdp=body(("audio", 4000, CM80))))
    p = ctl(net, "--limit=200", "list")
    assert p.returncode == 1 and "Reply is too long" in p.stderr and "--listen-tcp-ng" in p.stderr, p
    assert daemon.stop() == 0


def test_wrong_words_have_one_cause(_net):
    def says(*words):
        done = subprocess.run([os.path.join(relay.BUILD, "xcipherctl"), *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1, done
        return done.stderr

    for words, want in ((["cals"], "no command cals. Did you mean calls?"), (["qqq"], 'no command qqq. "xcipherctl help"'), (["help", "cals"], "Did you mean calls?"),
                        (["--limt=3", "calls"], "Did you mean --limit?"), (["--limit"], "--limit needs a value"), (["--yes=1"], "--yes takes no value"),
                        (["--s=1"], "--s is ambiguous"), (["calls", "a", "b"], "one word too many")):
        assert want in says(*words), (words, says(*words))
    done = subprocess.run([os.path.join(relay.BUILD, "xcipherctl"), "help", "calls"], capture_output=True, text=True, check=True)
    assert "calls" in done.stdout and done.stdout.count("\n") == 2, done
