# SPDX-License-Identifier: GPL-2.0-or-later
"""xcipherctl with a real daemon: tables, limits, draining, log level, reload, recording, and top in
a terminal."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time

import calls
import ng
import relay
from baresip import wait_for
from test_relay import finish

CTL = os.path.join(relay.BUILD, "xcipherctl")


def ctl(net, *args, width=None):
    env = dict(os.environ)
    env.pop("COLUMNS", None)
    if width:
        env["COLUMNS"] = str(width)
    return subprocess.run(["ip", "netns", "exec", net.gateway, CTL, *args], capture_output=True, text=True, check=False, env=env,
                          timeout=120)


def said(net, *args, **more):
    p = ctl(net, *args, **more)
    assert p.returncode == 0 and not p.stderr, p
    return p.stdout


def test_calls_fit_any_terminal(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--timeout=3600").wait_ready()
    assert said(net, "calls") == "no calls\n"
    talk = [calls.Call(daemon.client, n, "80", "AEAD_AES_256_GCM").setup() for n in range(3)]
    calls.load(net, relay.BUILD, talk, rate=50, seconds=1)
    lines = said(net, "calls").splitlines()
    assert len(lines) == 4 and lines[0].startswith("CALL-ID") and all(t.id in "".join(lines) for t in talk), lines
    assert re.search(r"CM128_80 +GCM256 +1\d\d +0 ", lines[1]), lines
    for width in (100, 80, 60, 40, 20):
        lines = said(net, "calls", width=width).splitlines()
        assert len(lines) == 4 and max(map(len, lines)) <= width, (width, lines)
    assert len(said(net, "calls", talk[1].id).splitlines()) == 2
    assert "of 3 calls" in said(net, "--limit=1", "calls")
    assert len(json.loads(said(net, "--json", "calls"))["calls"]) == 3
    one = said(net, "call", talk[0].id)
    assert "CM128_80" in one and "GCM256" in one and "RTP,filled,confirmed" in one, one
    assert max(map(len, said(net, "call", talk[0].id, width=80).splitlines())) <= 80
    assert "calls   3 now" in said(net, "stats") and "AEAD_AES_256_GCM" in said(net, "stats")
    # Every error names a remedy.
    p = ctl(net, "call", "nobody")
    assert p.returncode == 1 and "Unknown call-id" in p.stderr and "xcipherctl calls" in p.stderr, p
    assert said(net, "kill", talk[0].id) == "call ended\n"
    for words, code, advice in ((["kill", talk[0].id], 1, "xcipherctl calls"), (["active"], 1, "--redis-key-file"), (["--limit=x", "list"], 2, "--limit needs"),
                                (["--bogus"], 2, "--bogus. --help"), (["--timeout"], 2, "--timeout needs a value"), (["--json=1", "list"], 2, "--json takes no value"),
                                (["--server=127.0.0.1:1", "--timeout=1", "ping"], 3, "Does xcipherd run there")):
        p = ctl(net, *words)
        assert p.returncode == code and advice in p.stderr and not p.stdout, p
    assert len(said(net, "list").split()) == 2
    p = subprocess.Popen(["ip", "netns", "exec", net.gateway, CTL, "--watch=0.1", "list"], stdout=subprocess.PIPE, text=True)
    seen, give_up = 0, threading.Timer(60, p.kill)
    give_up.start()
    while seen < 3:  # repeatedly
        line = p.stdout.readline()
        assert line, "it ended by itself"
        seen += talk[1].id in line
    give_up.cancel()
    p.send_signal(signal.SIGINT)
    p.communicate()
    finish(daemon)


def refused(daemon, number):
    try:
        calls.Call(daemon.client, number, "80", "32").setup()
    except calls.Failed as why:
        return "load limit" in str(why) or "session limit" in str(why)
    return False


def test_limits_and_draining(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    first = calls.Call(daemon.client, 0, "80", "32").setup()
    said(net, "limits", "sessions=2", "max-cpu=100")
    text = said(net, "limits")
    assert re.search(r"sessions +1.00 +2.00", text) and re.search(r"cpu .* 100.00", text), text
    calls.Call(daemon.client, 1, "80", "32").setup()
    assert refused(daemon, 2)
    # A wrong command changes nothing.
    assert ctl(net, "limits", "sessions=5", "load=much").returncode == 1
    assert ctl(net, "limits", "fish=5").returncode == 2
    assert ctl(net, "limits", "sessions=5", "cpu=100.1").returncode == 1
    assert refused(daemon, 2)
    said(net, "limits", "sessions=0")
    assert not refused(daemon, 2)
    assert "3 calls" not in said(net, "drain") and refused(daemon, 3)
    assert "reached: drain" in said(net, "limits")
    assert "not draining" in said(net, "drain", "off") and not refused(daemon, 3)
    said(net, "drain")
    for call in said(net, "list").split()[1:]:
        said(net, "kill", call)
    time.sleep(1.5)
    assert daemon.process.poll() is None, "a call is still there"
    first.delete()
    assert daemon.process.wait(60) == 0 and "drained" in daemon.text(), daemon.text()
    daemon.client.close()


def test_level_and_reload(net):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
        def write(text):
            f.seek(0)
            f.truncate()
            f.write("[xcipher]\n" + text)
            f.flush()

        write("max-sessions = 1\nworkers = 1\n")
        daemon = relay.Xcipherd(net, "--engine=serial", "--config-file=" + f.name).wait_ready()
        call = calls.Call(daemon.client, 0, "80", "32").setup()
        assert refused(daemon, 1)
        assert said(net, "loglevel") == "log level 6\n" and said(net, "loglevel", "debug") == "log level 7\n"
        daemon.client.call("query", call_id=call.id)
        assert f'debug: call-id "{call.id}": query: ok' in daemon.text()
        assert ctl(net, "loglevel", "9").returncode == 2
        write("max-sessions = 2\nworkers = 2\nlog-level = 6\n")
        os.kill(daemon.pid(), signal.SIGHUP)
        wait_for("reload", lambda: "workers has changed, which needs a restart" in daemon.text())
        assert not refused(daemon, 1) and refused(daemon, 2), daemon.text()
        assert "timeout has" not in daemon.text(), daemon.text()
        write("max-sessions = 3\nfish = 1\n")
        p = ctl(net, "reload")
        assert p.returncode == 1 and 'unknown option "fish"' in p.stderr, p
        assert refused(daemon, 2)
        write("sdes-accept = AES_CM_128_HMAC_SHA1_80\nmax-sessions = 9\nworkers = 2\n")
        assert said(net, "reload") == "2 options changed\nworkers has changed, but needs a restart\n"
        assert said(net, "reload") == "0 options changed\nworkers has changed, but needs a restart\n"
        result = calls.load(net, relay.BUILD, [call], rate=50, seconds=1)
        assert result["received"] == result["sent"] if "received" in result else result, result
        finish(daemon)


def test_recording_by_ctl(net):
    with tempfile.TemporaryDirectory() as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", "--recording-dir=" + folder).wait_ready()
        call = calls.Call(daemon.client, 0, "80", "32").setup()
        said(net, "record", call.id)
        said(net, "record", call.id, "pause")
        said(net, "record", call.id, "stop")
        assert ctl(net, "record", call.id, "dance").returncode == 2
        wait_for("the recording", lambda: [n for n in os.listdir(folder) if n.endswith(".pcap")])
        finish(daemon)


def test_top_in_a_terminal(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    talk = [calls.Call(daemon.client, n, "80", "32").setup() for n in range(30)]
    assert ctl(net, "top").returncode == 2
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("ip", ["ip", "netns", "exec", net.gateway, CTL, "--watch=0.2", "top"])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 72, 0, 0))
    seen, end = b"", time.monotonic() + 60
    while time.monotonic() < end and seen.count(b"\x1b[J") < 4:
        if select.select([fd], [], [], 0.5)[0]:
            seen += os.read(fd, 65536)
    os.write(fd, b"q")
    tail = b""
    with contextlib.suppress(OSError):  # EIO: the other end was closed
        while more := os.read(fd, 65536):
            tail += more
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    screen = re.sub(r"\x1b\[[?0-9]*[A-Za-z]", "", seen.decode(errors="replace").split("\x1b[J")[-2]).replace("\r", "").splitlines()
    assert len(screen) <= 20 and max(map(len, screen)) <= 72, screen
    assert "calls   30 now" in "\n".join(screen) and "packets" in screen[2] and "/s in" in screen[2], screen
    assert f"of {len(talk)} calls" in screen[-1], screen
    assert b"\x1b[?1049l" in tail, "the terminal must be given back"
    finish(daemon)


def test_one_call_is_debugged_and_not_the_others(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    quiet = calls.Call(daemon.client, 0, "80", "32").setup()
    talk = calls.Call(daemon.client, 1, "80", "32").setup()
    assert "debug:" not in daemon.text()
    assert said(net, "call", talk.id, "debug", "on") == "debug log of this call: on\n"
    assert f'debug: call-id "{talk.id}", tag "a{talk.id}", media 1 RTP: active, port' in daemon.text(), daemon.text()
    calls.load(net, relay.BUILD, [quiet, talk], rate=50, seconds=1)
    for call in (quiet, talk):
        said(net, "call", call.id)
    assert f'call-id "{talk.id}": query: ok' in daemon.text()
    assert not [x for x in daemon.text().splitlines() if quiet.id in x and "debug:" in x], daemon.text()
    said(net, "kill", talk.id)
    last = [line for line in daemon.text().splitlines() if f'tag "b{talk.id}", media 1 RTP:' in line][-1]
    assert re.search(r"from it AES_CM_128_HMAC_SHA1_32.*: [1-9]\d* packets in, [1-9]\d* out, 0 dropped$", last), last
    said(net, "call", quiet.id, "debug")
    assert said(net, "call", quiet.id, "debug", "off") == "debug log of this call: off\n"
    before = daemon.text()
    said(net, "call", quiet.id)
    assert daemon.text() == before
    flagged = calls.Call(daemon.client, 2, "80", "32", flags={"flags": ["debug"]}).setup()
    assert f'call-id "{flagged.id}", tag "a{flagged.id}": offer: ok' in daemon.text(), daemon.text()
    for key in (*flagged.key, *flagged.wire):
        assert key.hex() not in daemon.text()
    finish(daemon)


def test_the_journal_gets_fields(net):
    """Runs a journal of our own in a mount namespace, in the place of the service manager's."""
    with tempfile.TemporaryDirectory() as folder:
        # The kernel queues only this many datagrams for us, and the reader may be late.
        net.run(net.gateway, "sysctl", "-q", "-w", "net.unix.max_dgram_qlen=500")
        sock = ng.socket_in(net.gateway, socket.AF_UNIX, socket.SOCK_DGRAM)
        os.mkdir(folder + "/journal")
        sock.bind(folder + "/journal/socket")
        got = []
        thread = threading.Thread(target=read_all, args=(sock, got), daemon=True)
        thread.start()
        start = (f"mount -t tmpfs none /run/systemd && mkdir /run/systemd/journal && mount --bind {folder}/journal /run/systemd/journal && "
                 'read -r dev ino < <(stat -L -c "%d %i" /dev/stderr) && JOURNAL_STREAM=$dev:$ino exec "$0" "$@"')
        os.makedirs("/run/systemd", exist_ok=True)
        daemon = relay.Xcipherd(net, "--engine=serial", wrap=["unshare", "-m", "bash", "-c", start]).wait_ready()
        call = calls.Call(daemon.client, 0, "80", "32").setup()
        daemon.client.call("answer", call_id=call.id + "\nPRIORITY=0", from_tag="x", to_tag="y", sdp="v=0")
        said(net, "call", call.id, "debug", "on")
        # The last expected line; all others are there by then.
        wait_for("a word on the call", lambda: any(f"\nCALL_ID={call.id}\nSIDE=b{call.id}\nSTREAM=media 1 RTCP\nMESSAGE=" in m for m in list(got)))
        assert any("MESSAGE=xcipherd " in m and "PRIORITY=6\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=xcipherd\n" in m for m in got), got
        stream = [m for m in got if f"\nCALL_ID={call.id}\nSIDE=b{call.id}\nSTREAM=media 1 RTCP\nMESSAGE=" in m]
        assert stream and stream[0].startswith("PRIORITY=7\n"), got
        assert not any("\nPRIORITY=0" in m or m.startswith("PRIORITY=0") for m in got) and any("?PRIORITY=0" in m for m in got), got
        assert daemon.text() == "", daemon.text()
        # Without a journal, the log is text again.
        sock.shutdown(socket.SHUT_RDWR)
        thread.join(60)
        sock.close()
        said(net, "loglevel", "7")
        said(net, "ping")
        assert "ping: ok" in daemon.text(), daemon.text()
        finish(daemon)


def read_all(sock, got):
    while True:
        message = sock.recv(65536)
        if not message:
            return
        got.append(message.decode())


def completed(program, *words):
    """The completions bash would offer with the cursor at the end."""
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    line = " ".join(shlex.quote(w) for w in (os.path.join(relay.BUILD, program), *words))
    script = (f"compopt() {{ :; }}; . {shlex.quote(os.path.join(root, 'tools/completion', program + '.bash'))}; COMP_WORDS=({line}); "
              f"COMP_CWORD={len(words)}; _{program.replace('-', '_')}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_names_are_completed_once_and_whole(net):
    for program in ("xcipherd", "xcipherctl"):
        got = completed(program, "--")
        assert len({x.rstrip("=") for x in got}) == len(got) > 10, (program, got)
    assert completed("xcipherd", "--b2b-u") == ["--b2b-url="] and completed("xcipherd", "--srtcp-tag") == ["--srtcp-tag-32="]
    assert completed("xcipherctl", "--watc") == ["--watch"] and completed("xcipherctl", "--ser") == ["--server="]
    assert completed("xcipherctl", "cal") == ["call", "calls"]
