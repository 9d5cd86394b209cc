# SPDX-License-Identifier: GPL-2.0-or-later
"""xcipher-web and the daemon: either may end and return, and neither trusts the other."""
import json
import os
import socket
import stat
import subprocess
import tempfile

import relay
import web
from baresip import wait_for
from test_http import HTTP, TOKEN, start, token_file
from test_ng_attack import KEY, signed_daemon
from test_page import browser, listen, page, snapshot
from test_relay import finish

PING = b"d7:command4:pinge"


def status(net, path="/ping", method="GET", body=None):
    return web.ask(web.connect(net.gateway, HTTP), method, path, body)[0]


def unix(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)  # without a timeout it waits for room in the backlog
    s.settimeout(30)
    return s


def test_a_daemon_that_ends_and_comes_back(net):
    """Requests get 503 meanwhile, and the page continues by itself on its connection."""
    daemon = start(net)
    serving = daemon.web
    s = page(net.gateway)
    assert snapshot(s)["sessions"]["current"] == 0
    daemon.web = None
    assert daemon.stop() == 0
    while listen(s) != {"daemon": 0}:
        pass
    assert status(net) == status(net, "/metrics") == status(net, "/ng", "POST", b"1 " + PING) == 503
    assert status(net, "/") == 200
    again = relay.Xcipherd(net, "--engine=serial", "--port-max=30999", f"--listen-ng-unix={daemon.socket}").wait_ready()
    assert snapshot(s)["sessions"]["current"] == 0
    assert status(net) == status(net, "/metrics") == status(net, "/ng", "POST", b"1 " + PING) == 200
    assert "xcipherd does not answer at" in serving.text()
    assert serving.stop() == 0, serving.text()
    finish(again)


def test_the_page_says_that_the_daemon_is_gone(net):
    b = browser(net)
    daemon = start(net)
    serving, daemon.web = daemon.web, None
    b.open("http://127.0.0.1:22280/")
    b.wait("document.querySelector('#state').className == 'live'")
    assert daemon.stop() == 0
    b.wait("document.querySelector('#state').innerText.includes('xcipherd does not answer') && document.body.classList.contains('stale')")
    again = relay.Xcipherd(net, "--engine=serial", "--port-max=30999", f"--listen-ng-unix={daemon.socket}").wait_ready()
    b.wait("document.querySelector('#state').className == 'live' && !document.body.classList.contains('stale')")
    assert not b.complaints(), b.complaints()
    b.close()
    assert serving.stop() == 0
    finish(again)


def test_only_the_group_may_connect(net):
    """xcipher-web as its own user: with the socket's group it is served. Without it is not, even if
    the mode would allow it."""
    path = f"/tmp/{net.id}-group.ng"
    daemon = relay.Xcipherd(net, "--engine=serial", "--port-max=30999", f"--listen-ng-unix={path}", "--ng-unix-group=daemon").wait_ready()
    s = os.stat(path)
    assert stat.S_IMODE(s.st_mode) == 0o660 and s.st_gid == 1
    inside = ["setpriv", "--reuid=65534", "--regid=1", "--clear-groups"]
    outside = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    served = relay.XcipherWeb(net, "--listen-http=127.0.0.1:22280", path=path, wrap=inside).wait_ready()
    with open(f"/proc/{served.pid()}/status", encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    assert all(int(fields[name], 16) == 0 for name in ("CapEff", "CapPrm", "CapAmb")) and fields["NoNewPrivs"].strip() == "1"
    assert status(net, "/metrics") == 200
    assert served.stop() == 0
    for mode in (0o660, 0o666):
        os.chmod(path, mode)
        refused = relay.XcipherWeb(net, "--listen-http=127.0.0.1:22280", path=path, wrap=outside)
        wait_for("the refusal", lambda r=refused: "xcipherd does not answer at" in r.text())
        assert status(net, "/metrics") == 503 and "xcipherd answers at" not in refused.text()
        assert refused.stop() == 0
    assert "its user is not in the socket's group" in daemon.text()
    finish(daemon)


def test_a_hostile_program_on_the_socket_harms_nobody(net):
    """Half messages, unread replies, garbage: ng over UDP still gets replies meanwhile, and
    connections are bounded."""
    daemon = start(net)
    before = daemon.descriptors()
    ask = b'{"command":"statistics"}'
    slow = unix(daemon.socket)
    slow.setblocking(False)
    for i in range(200):
        try:
            slow.send(b"plain none - %d\n" % len(ask) + ask)
        except OSError:
            pass
        s = unix(daemon.socket)
        s.sendall((b"plain none - 262144\nx", b"\n", b"plain none - 262145\n", os.urandom(300), b"cookie none 1.2.3.4:5 5\nhello")[i % 5])
        assert daemon.client.call("ping")["result"] == "pong"
        s.close()
    many = [unix(daemon.socket) for _ in range(100)]
    assert daemon.client.call("ping")["result"] == "pong"
    for s in [slow, *many]:
        s.close()
    wait_for("an end of all connections", lambda: daemon.descriptors() <= before)
    wait_for("xcipher-web's own connection", lambda: status(net) == 200)
    finish(daemon)


def test_with_keys_the_daemon_itself_wants_the_token(net):
    """A program on the socket reports no client as knowing the token: it gets no command through,
    but replies to its own queries."""
    path = f"/tmp/{net.id}-keys.ng"
    with signed_daemon(net, KEY, options=(f"--listen-ng-unix={path}",)):
        s = unix(path)
        f = s.makefile("rb")
        assert f.readline() == b"xcipher-ng 1 keys\n"
        for who, reply in ((b"none 192.0.2.1:5", b"denied 0\n"), (b"token 192.0.2.1:5", b"ok 16\n"), (b"none -", b"ok 16\n")):
            s.sendall(b"plain %s %d\n%s" % (who, len(PING), PING))
            assert f.readline() == reply
            if reply != b"denied 0\n":
                assert f.read(16) == b"d6:result4:ponge"
        s.close()


def test_it_listens_nowhere_else(net):
    """Without netlink sockets libwebsockets listens on all addresses, without an error. Control:
    with them it listens on the configured one."""
    listening = ["ss", "-Hltn", "sport = :22280"]
    with tempfile.TemporaryDirectory(prefix="xcipher-web-") as folder:
        shim = os.path.join(folder, "no_netlink.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-o", shim, os.path.join(os.path.dirname(__file__), "no_netlink.c")], check=True)
        options = [f"{relay.BUILD}/xcipher-web", "--config-file=none", "--listen-http=10.200.1.1:22280", f"--daemon={folder}/none"]
        web = net.spawn(net.gateway, options)
        out = ""
        while not out:
            out = net.run(net.gateway, *listening).stdout
            assert web.poll() is None
        assert "10.200.1.1:22280" in out and "0.0.0.0:22280" not in out, out
        net.stop(web, 60)
        # The sanitizers must be the first library.
        env = {**os.environ, "LD_PRELOAD": shim, "ASAN_OPTIONS": "verify_asan_link_order=0"}
        web = net.spawn(net.gateway, options, env=env, stderr=subprocess.PIPE, text=True)
        assert web.wait(60) == 1 and "AF_NETLINK" in web.stderr.read()


def test_a_line_outside_of_the_section_is_named(_net):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
        f.write("; no section\nlisten-http = 127.0.0.1:1\n")
        f.flush()
        p = subprocess.run([f"{relay.BUILD}/xcipher-web", f"--config-file={f.name}"], capture_output=True, text=True, check=False, timeout=60)
    assert p.returncode == 1 and f"{f.name}, line 2:" in p.stderr and "[xcipher-web]" in p.stderr, p


# libwebsockets ends a name at other separators than commas and blanks, too.
LISTS = [f"ng{plain}.rtpengine.com{end}, page.xcipher" for plain in ("", "-plain") for end in (";q=1", "/1", '"', "=", ":", "@", " x", "")]


def commands(s):
    """Whether ng replies over this WebSocket."""
    if s.status != 101:
        return False
    try:
        s.send(b"x d7:command4:liste")
        while (message := s.receive())[0] in (1, 2):
            if b"result" in message[1]:
                return True
    except (EOFError, OSError):
        pass  # closed
    return False


def test_no_list_of_protocols_gets_round_the_token(net):
    """A WebSocket that may see the page without the token may not send commands. Control: with the
    token it may."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--port-max=30999", "--listen-http=10.200.1.1:22280", f"--http-token-file={token_file(net)}").wait_ready()
    at = ("10.200.1.1", 22280)
    for protocols in (*LISTS, "page.xcipher, ng.rtpengine.com", "page.xcipher;ng.rtpengine.com"):
        assert not commands(web.WebSocket(web.connect(net.terminal["caller"], at), protocols)), protocols
    assert commands(web.WebSocket(web.connect(net.terminal["caller"], at), "ng.rtpengine.com", Authorization=f"Bearer {TOKEN}"))
    finish(daemon)


def test_strangers_hold_no_place_of_the_page(net):
    """Pages that never send the token do not count toward the limit of open pages. Control: those
    that sent it do."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--port-max=30999", "--listen-http=10.200.1.1:22280", f"--http-token-file={token_file(net)}").wait_ready()
    at = ("10.200.1.1", 22280)
    strangers = [page(net.terminal["caller"], at) for _ in range(9)]
    assert [s.status for s in strangers] == [101] * 9
    known = [page(net.gateway, at) for _ in range(9)]
    answers = []
    for s in known:
        assert listen(s) == {"need": "token"}
        s.send(json.dumps({"token": TOKEN}).encode(), 1)
        answers.append(s.receive()[0])
    assert answers == [1] * 8 + [8], answers
    assert page(net.gateway, at).status == 503
    finish(daemon)
