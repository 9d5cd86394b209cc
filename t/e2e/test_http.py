# SPDX-License-Identifier: GPL-2.0-or-later
"""ng over TCP, HTTP and WebSocket; permitted and refused clients; clients that are slow, many or malicious."""
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time

import calls
import hold
import ng
import redisrig
import relay
import web
from baresip import wait_for
from run import Skip, cases
from test_relay import clean, finish

TCP = ("127.0.0.1", 22223)
HTTP = ("127.0.0.1", 22280)
TOKEN = "0123456789abcdef0123456789abcdef"
PING, PONG = b"d7:command4:pinge", b"d6:result4:ponge"


def start(net, *options):
    return relay.Xcipherd(net, "--engine=serial", "--port-max=30999", "--listen-tcp-ng=127.0.0.1:22223",
                          "--listen-http=127.0.0.1:22280", *options).wait_ready()


def token_file(net, text=TOKEN + "\n", mode=0o600):
    path = f"/tmp/{net.id}-token"
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def offer(call_id, sdp_lines=0):
    sdp = "".join(f"{line}\r\n" for line in (
        "v=0", "o=- 1 1 IN IP4 10.200.1.2", "s=-", "c=IN IP4 10.200.1.2", "t=0 0", "m=audio 4000 RTP/AVP 8",
        *(f"a=x{i}:{'y' * 200}" for i in range(sdp_lines))))
    return ng.encode({"command": "offer", "call-id": call_id, "from-tag": "f", "sdp": sdp})


def read_until(s, end):
    got = b""
    while end not in got:
        x = s.recv(65536)
        assert x, got
        got += x
    return got


def test_calls_by_tcp(net):
    daemon = start(net)
    s = web.connect(net.gateway, TCP)
    s.sendall(b"1 " + PING + b"2 " + PING)
    assert read_until(s, b"2 " + PONG) == b"1 " + PONG + b"2 " + PONG
    big = b"3 " + offer("big", 300)
    assert len(big) > 60000
    for at in range(0, len(big), 7001):
        s.sendall(big[at:at + 7001])
        time.sleep(0.001)
    reply = read_until(s, b"result2:ok")
    assert reply.startswith(b"3 d")
    assert daemon.client.call("query", call_id="big")["result"] == "ok"
    s.close()
    assert daemon.client.call("delete", call_id="big", delete_delay=0)["result"] == "ok"
    finish(daemon)


def test_calls_by_http(net):
    daemon = start(net)
    for method, path, body, status, want in (
            ("GET", "/ping", None, 200, b"pong\n"),
            ("POST", "/ng", b"1 " + PING, 200, b"1 " + PONG),
            ("POST", "/ng", b'2 {"command":"ping"}', 200, b'2 {"result":"pong"}'),
            ("POST", "/ng-plain", b'{"command":"ping"}', 200, b'{"result":"pong"}'),
            ("POST", "/ng-plain", PING, 200, PONG),
            ("POST", "/ng-plain", b"hello", 200, b'{"result":"error","error-reason":"Invalid NG data format"}')):
        got = web.ask(web.connect(net.gateway, HTTP), method, path, body)
        assert (got[0], got[2]) == (status, want), got
        assert got[1]["connection"] == "close"
    for method, path, body, status, fields in (
            ("POST", "/ng", b"hello", 400, {}),
            ("POST", "/ng", b"", 400, {}),
            ("POST", "/elsewhere", b"1 " + PING, 404, {}),
            ("GET", "/elsewhere", None, 404, {}),
            ("GET", "/ng", None, 405, {}),
            ("PUT", "/ng", b"1 " + PING, 405, {}),
            ("POST", "/ng", None, 411, {}),
            ("POST", "/ng", None, 501, {"Transfer_Encoding": "gzip"}),
            ("POST", "/ng", b"1 ", 400, {"Content_Length": 262145}),  # and its length: twice
            ("POST", "/ng", None, 413, {"Content_Length": 262145})):
        s = web.connect(net.gateway, HTTP)
        got = web.ask(s, method, path, body, **fields)
        assert got[0] == status, (path, got)
        s.close()
    def repeated():
        """Uses one connection, because ng.Client repeats a slow request."""
        reply = web.ask(web.connect(net.gateway, HTTP), "POST", "/ng-plain", b'{"command":"statistics"}')[2]
        return json.loads(reply)["statistics"]["controlstatistics"]["totalduplicatecount"]

    s = web.WebSocket(web.connect(net.gateway, HTTP), "ng.rtpengine.com")
    before = repeated()
    s.send(b"9 " + offer("h", 300), 2)
    got = s.receive()[1]
    s.send(b"9 " + offer("h", 300), 2)
    again = s.receive()[1]
    assert b"result2:ok" in got and len(got) > 60000 and again == got
    assert repeated() == before + 1
    # the same cookie from elsewhere is another request
    assert b"result2:ok" in web.ask(web.connect(net.gateway, HTTP), "POST", "/ng", b"9 " + offer("i", 300))[2]
    assert repeated() == before + 1
    # in chunks; a second request behind it gets no reply, because a connection carries one request
    s = web.connect(net.gateway, HTTP)
    big = b"11 " + offer("j", 300)
    s.sendall(b"POST /ng HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
              + b"".join(b"%x\r\n%s\r\n" % (len(big[at:at + 5000]), big[at:at + 5000]) for at in range(0, len(big), 5000))
              + b"0\r\n\r\nGET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
    status, fields = web.head(s)
    assert status == 200 and b"result2:ok" in web.receive(s, int(fields["content-length"]))
    assert s.recv(1) == b""
    finish(daemon)


@cases(("ng.rtpengine.com", b"1 "), ("ng-plain.rtpengine.com", b""))
def test_calls_by_websocket(net, protocol, cookie):
    daemon = start(net)
    s = web.WebSocket(web.connect(net.gateway, HTTP), protocol)
    assert s.status == 101
    s.send(cookie + PING)
    assert s.receive() == (1, cookie + PONG)
    s.send(cookie.replace(b"1", b"2") + b'{"command":"ping"}', 2)
    assert s.receive() == (2, cookie.replace(b"1", b"2") + b'{"result":"pong"}')
    s.s.sendall(b"".join(s.frame((b"n%d " % i if cookie else b"") + PING) for i in range(100)))
    for i in range(100):
        assert s.receive()[1] == (b"n%d " % i if cookie else b"") + PONG
    big = (b"x " if cookie else b"") + offer("ws", 300)
    s.s.sendall(s.frame(big[:50000], 1, False) + s.frame(big[50000:], 0))
    assert b"result2:ok" in s.receive()[1]
    assert daemon.client.call("list")["calls"] == ["ws"]
    # invalid text is not sent as text
    s.send((b"y " if cookie else b"") + offer(b"\xff"), 2)
    assert s.receive()[0] == 2
    s.send((b"z " if cookie else b"") + b"d7:command4:liste")
    opcode, got = s.receive()
    assert opcode == 2 and b"1:\xff" in got
    s.send(b"x" * 262145)
    assert s.receive() == (8, b"\x03\xf1")  # 1009: too big
    finish(daemon)


def test_strangers_are_refused(net):
    path = token_file(net)
    daemon = start(net, f"--http-token-file={path}", "--http-host=relay.example.com,other.example.com")
    good = {"Authorization": f"Bearer {TOKEN}"}
    for status, method, where, fields in (
            (200, "GET", "/ping", {}),
            (401, "POST", "/ng", {}),
            (401, "GET", "/metrics", {}),
            (200, "GET", "/metrics", good),
            (401, "POST", "/ng-plain", {"Authorization": "Bearer " + TOKEN[:-1]}),
            (401, "POST", "/ng", {"Authorization": "Bearer " + TOKEN + "0"}),
            (401, "POST", "/ng", {"Authorization": "Basic " + TOKEN}),
            (401, "POST", "/ng", {"Authorization": "Bearer " + "x" * 3000}),
            (200, "POST", "/ng", good),
            # another site's page in a browser
            (403, "POST", "/ng", {**good, "Origin": "http://evil.example"}),
            (403, "POST", "/ng", {**good, "Origin": "null"}),
            (200, "POST", "/ng", {**good, "Origin": "http://localhost"}),
            # another site's name that resolves to us
            (403, "GET", "/ping", {"Host": "evil.example"}),
            (403, "POST", "/ng", {**good, "Host": "evil.example", "Origin": "http://evil.example"}),
            (200, "POST", "/ng", {**good, "Host": "relay.example.com"}),
            (200, "POST", "/ng", {**good, "Host": "other.example.com:8443", "Origin": "https://other.example.com:8443"}),
            (200, "GET", "/ping", {"Host": "[::1]:80"}),
            (200, "GET", "/ping", {"Host": "192.0.2.1"})):
        s = web.connect(net.gateway, HTTP)
        got = web.ask(s, method, where, b"1 " + PING if method == "POST" else None, **fields)
        assert got[0] == status, (fields, got)
        s.close()
    for status, protocol, fields in (
            (101, "ng.rtpengine.com", good), (401, "ng.rtpengine.com", {}), (400, "nothing.example.com", good), (400, None, good),
            (403, "ng.rtpengine.com", {**good, "Origin": "http://evil.example"}),
            (403, "ng.rtpengine.com", {**good, "Host": "evil.example"})):
        s = web.WebSocket(web.connect(net.gateway, HTTP), protocol, **fields)
        assert s.status == status, (protocol, fields, s.status)
        s.s.close()
    assert TOKEN not in daemon.text()
    finish(daemon)
    os.remove(path)


@cases((0o644, TOKEN), (0o600, "short"), (0o600, ""), (0o600, "with a blank 0123456789"))
def test_a_bad_token_file_stops_the_start(net, mode, text):
    path = token_file(net, text, mode)
    program = relay.XcipherWeb(net, "--listen-http=127.0.0.1:22280", f"--http-token-file={path}")
    assert program.process.wait(60) == 1
    assert "--http-token-file=" in program.text() and "0123" not in program.text(), program.text()
    os.remove(path)


WORDS = (b"GET /ping HTTP/1.1\r\n", b"POST /ng HTTP/1.1\r\n", b"POST /ng-plain HTTP/1.1\r\n", b"Host: localhost\r\n", b"Content-Length: 19\r\n",
         b"Content-Length: 0\r\n", b"Content-Length: -5\r\n", b"Content-Length: 99999999999999999999\r\n", b"\r\n", b"\r\n", b"1 " + PING, b"\n",
         b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
         b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ng.rtpengine.com\r\n\r\n",
         b"\x81\x80\0\0\0\0", b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x88\x80\0\0\0\0", b"\x89\x80\0\0\0\0", b"\x01\x85\0\0\0\0hello",
         b"\x80\x81\0\0\0\0h", b"Expect: 100-continue\r\n", b"Transfer-Encoding: chunked\r\n", b"Upgrade: h2c\r\nConnection: Upgrade\r\n",
         b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"13\r\n1 " + PING + b"\r\n", b"0\r\n", b"HEAD /ping HTTP/1.1\r\n", b"x" * 5000, b"Connection: close\r\n",
         b"GET /" + b"a/../" * 50 + b"%00%ff HTTP/1.1\r\n", b"Cookie: " + b"a" * 3000 + b"\r\n", b"OPTIONS * HTTP/1.0\r\n")


def cpu_ticks(pid):
    """CPU time of the control thread."""
    with open(f"/proc/{pid}/task/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))


def test_mad_clients_harm_nobody(net):
    """Garbage, pipelined requests, half requests, silence: ng still gets replies at once, and no
    connection or busy loop remains."""
    daemon = start(net)
    assert web.ask(web.connect(net.gateway, HTTP), "GET", "/ping")[0] == 200
    before = daemon.descriptors()
    rnd = random.Random(7)
    with hold.never_waits(daemon):
        for _ in range(400):
            s = web.connect(net.gateway, rnd.choice((HTTP, HTTP, TCP)))
            try:
                for _ in range(rnd.randint(1, 12)):
                    s.sendall(rnd.choice(WORDS) if rnd.random() < .95 else rnd.randbytes(20))
            except OSError:
                pass
            assert daemon.client.call("ping")["result"] == "pong"
            s.close()
    # data after a request causes no busy loop
    s = web.connect(net.gateway, HTTP)
    s.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n"
              b"POST /ng HTTP/1.1\r\nHost: localhost\r\nContent-Length: 19\r\n\r\n1 " + PING + b"GET /ping HTTP/1.1\r\n\r\n")
    time.sleep(.3)
    pids = (daemon.pid(), daemon.web.pid())
    ticks = [cpu_ticks(pid) for pid in pids]
    time.sleep(.5)
    assert all(cpu_ticks(pid) - before < 10 for pid, before in zip(pids, ticks))
    assert web.ask(web.connect(net.gateway, HTTP), "GET", "/ping")[0] == 200
    s.close()
    wait_for("an end of all connections", lambda: daemon.descriptors() <= before)
    finish(daemon)


def test_too_many_clients_are_refused_and_then_not(net):
    daemon = start(net)
    before = daemon.descriptors()
    many = [web.connect(net.gateway, HTTP) for _ in range(64)]
    wait_for("all connections", lambda: daemon.descriptors() >= before + 64)
    late = web.connect(net.gateway, HTTP)
    try:
        late.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert late.recv(1) == b""
    except ConnectionError:
        pass
    assert web.ask(many[5], "GET", "/ping")[0] == 200
    for s in many:
        s.close()

    def served():
        try:
            return web.ask(web.connect(net.gateway, HTTP), "GET", "/ping")[0] == 200
        except (EOFError, ConnectionResetError, BrokenPipeError):
            return False  # the other end's close was not seen yet
    wait_for("room again", served)
    assert "refused, 64 are open" in daemon.text()
    finish(daemon)


def test_who_reads_no_replies_holds_up_nobody(net):
    """Large replies that clients do not read, over all three transports: other clients are served
    meanwhile."""
    daemon = start(net)
    for i in range(50):
        assert daemon.client.call("offer", call_id=f"{'c' * 200}{i}", from_tag="f", sdp=ng.decode(offer("x"))["sdp"])["result"] == "ok"
    ask = b'{"command":"list","limit":4096}'
    slow = [web.connect(net.gateway, TCP), web.connect(net.gateway, HTTP), web.WebSocket(web.connect(net.gateway, HTTP), "ng.rtpengine.com").s]
    for s in slow:
        s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    frame = web.WebSocket.frame
    request = {0: b"1 " + ask, 1: b"POST /ng-plain HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(ask) + ask,
               2: frame(b"1 " + ask)}
    with hold.never_waits(daemon):
        for round_ in range(200):
            for i, s in enumerate(slow):
                try:
                    s.send(request[i] if i else b"%d " % round_ + ask)
                except OSError:
                    pass
            if round_ % 20 == 0:
                assert daemon.client.call("ping")["result"] == "pong"
                assert web.ask(web.connect(net.gateway, HTTP), "GET", "/ping")[0] == 200
    assert daemon.rss_kib() < 2 << 20
    finish(daemon)


def scrape(net, **fields):
    got = web.ask(web.connect(net.gateway, HTTP), "GET", "/metrics", **fields)
    assert got[0] == 200 and got[1]["content-type"].startswith("text/plain; version=0.0.4"), got
    return got[2].decode()


def values(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}


def expressions():
    """The expressions of alerts and dashboard."""
    folder = os.path.join(relay.ROOT, "monitoring")
    with open(os.path.join(folder, "xcipher-dashboard.json"), encoding="utf-8") as f:
        board = json.load(f)
    with open(os.path.join(folder, "xcipher-alerts.yml"), encoding="utf-8") as f:
        alerts = f.read()
    return [t["expr"] for p in board["panels"] for t in p["targets"]] + re.findall(r"expr: (.*(?:\n {10}.*)*)", alerts)


def test_metrics_count_calls_and_packets(net):
    daemon = relay.Xcipherd(net, "--listen-http=127.0.0.1:22280").wait_ready()
    first = scrape(net)
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(2)]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    text = scrape(net)
    old, new = values(first), values(text)
    assert new["xcipher_sessions"] == 2 and new["xcipher_sessions_total"] == 2
    assert new['xcipher_media{suite="AES_CM_128_HMAC_SHA1_80"}'] == 2
    assert new['xcipher_requests_total{command="offer"}'] == 2
    assert new['xcipher_packets_total{direction="in"}'] == new['xcipher_packets_total{direction="out"}'] >= 200
    assert new["xcipher_packet_delay_seconds_count"] >= 200
    assert new['xcipher_packet_delay_seconds_bucket{le="+Inf"}'] == new["xcipher_packet_delay_seconds_count"]
    assert new['xcipher_batch_packets_total{engine="opencl"}'] + new['xcipher_batch_packets_total{engine="serial"}'] >= 200
    assert set(old) == set(new), "series must not come and go with calls"
    assert len(new) < 1000, len(new)
    talk[0].delete()
    assert values(scrape(net))['xcipher_closed_sessions_total{reason="regular"}'] == 1
    finish(daemon)


def labels(text):
    """The labels of a series or selector: (name, operator, value) each."""
    return re.findall(r'(\w+)(=~|!=|=)"((?:[^"\\]|\\.)*)"', text)


def asked_for():
    """(metric, labels) of each selector in alerts and dashboard, and the labels that are summed by."""
    for expression in expressions():
        for metric, selector in re.findall(r"(xcipher_\w+)(?:\{([^}]*)\})?", expression):
            by = [w.strip() for g in re.findall(r"\bby \(([^)]*)\)", expression) for w in g.split(",")]
            yield metric, labels(selector), by


def test_all_metrics_at_once(net):
    """With all metrics present, promtool finds no fault, and each series of alerts and dashboard
    exists with its labels."""
    if not redisrig.have():
        raise Skip(f"no {redisrig.PROGRAM}")
    redis = redisrig.Redis(net)
    with tempfile.TemporaryDirectory() as folder:
        mikey = os.path.join(folder, "mikey.ini")
        with open(mikey, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write("[self]\nidentity = sip:gateway@example.org\n")
        daemon = relay.Xcipherd(net, "--listen-http=127.0.0.1:22280", f"--recording-dir={folder}", "--homer=127.0.0.1:9060", "--listen-tcp-ng=127.0.0.1:22223",
                                f"--mikey-config={mikey}", "--engine=auto",
                                "--b2b-url=http://127.0.0.1:9/", *redis.daemon_options()).wait_ready()
        call = calls.Call(daemon.client, 1, "80", "32").setup()
        calls.ok(daemon.client.call("start recording", call_id=call.id))
        clean(calls.load(net, relay.BUILD, [call], rate=50, seconds=1))
        calls.ok(daemon.client.call("stop recording", call_id=call.id))
        text, end = scrape(net), time.monotonic() + 60
        while values(text)["xcipher_recordings"] and time.monotonic() < end:
            time.sleep(0.05)
            text = scrape(net)
        now = values(text)
        assert now["xcipher_recording_packets_total"] > 100 and now["xcipher_recording_lost_packets_total"] == 0 and now["xcipher_recordings_total"] == 1
        assert now["xcipher_redis_up"] == 1
        series = [(name.split("{")[0], dict((k, v) for k, _, v in labels(name))) for name in now]
        for metric, wanted, by in asked_for():
            there = [have for name, have in series if name == metric]
            assert there, f"{metric} is asked for, and is nowhere"
            for k, operator, v in wanted:
                assert k in ("instance", "job") or operator == "=~" and any(k in have for have in there) or any(have.get(k) == v for have in there), (metric, k, v)
            assert all(k in ("instance", "job") or k in there[0] for k in by), (metric, by)
        if not shutil.which("promtool"):
            raise Skip("no promtool: package prometheus")
        p = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert p.returncode == 0 and not p.stdout + p.stderr, p.stdout + p.stderr
        p = subprocess.run(["promtool", "check", "rules", os.path.join(relay.ROOT, "monitoring", "xcipher-alerts.yml")], capture_output=True,
                           text=True, check=False)
        assert p.returncode == 0, p.stdout + p.stderr
        finish(daemon)
    redis.stop()


def chunks(message):
    """The chunks of a HEP3 message: type to value."""
    assert message[:4] == b"HEP3" and int.from_bytes(message[4:6], "big") == len(message)
    found, at = {}, 6
    while at < len(message):
        vendor, kind, length = struct.unpack(">HHH", message[at:at + 6])
        assert vendor == 0 and length >= 6
        found[kind] = message[at + 6:at + length]
        at += length
    return found


def test_reports_reach_homer_and_query(net):
    """A sender report one way, a receiver report with loss the other way. Homer gets both; query
    and the page show the quality."""
    homer = ng.socket_in(net.gateway)
    homer.bind(("127.0.0.1", 9060))
    homer.settimeout(30)
    daemon = start(net, "--homer=127.0.0.1:9060", "--homer-id=77")
    began = time.monotonic()
    talk = calls.Call(daemon.client, 1, "plain", "plain").setup()
    near, far = (ng.socket_in(net.terminal["caller"]) for _ in range(2))
    near.bind((talk.ip[0], talk.ports[0] + 1))
    far.bind((talk.ip[1], talk.ports[1] + 1))
    speech = ng.socket_in(net.terminal["caller"])
    speech.bind((talk.ip[0], talk.ports[0]))
    speech.sendto(struct.pack(">BBHII", 0x80, 0, 1, 160, 7) + bytes(160), (talk.to_caller["ip"], talk.to_caller["port"]))
    lsr = 0x11112222
    near.sendto(struct.pack(">BBHIIIIII", 0x80, 200, 6, 7, 0x00001111, 0x22220000, 5000, 100, 16000), (talk.to_caller["ip"], talk.to_caller["rtcp"]))
    far.settimeout(30)
    assert len(far.recv(1500)) == 28
    block = struct.pack(">IIIIII", 7, 128 << 24 | 9, 70000, 240, lsr, 0)
    far.sendto(struct.pack(">BBHI", 0x81, 201, 7, 9) + block, (talk.to_callee["ip"], talk.to_callee["rtcp"]))
    got = [chunks(homer.recv(65536)) for _ in range(2)]
    for c, source, kind in zip(got, (talk.ports[0] + 1, talk.ports[1] + 1), (200, 201)):
        assert c[11] == b"\x05" and c[12] == (77).to_bytes(4, "big") and c[17] == talk.id.encode()
        assert socket.inet_ntoa(c[3]) == "10.200.1.2" and int.from_bytes(c[7], "big") == source and socket.inet_ntoa(c[4]) == "10.200.1.1"
        assert json.loads(c[15])["type"] == kind
    assert json.loads(got[0][15])["sender_information"]["packets"] == 100
    assert json.loads(got[1][15])["report_blocks"] == [{"source_ssrc": 7, "highest_seq_no": 70000, "fraction_lost": 128, "ia_jitter": 240,
                                                        "packets_lost": 9, "lsr": lsr, "dlsr": 0}]
    media = talk.client.call("query", call_id=talk.id)["tags"]["a" + talk.id]["medias"][0]
    heard = media["ingress SSRCs"][0]
    assert heard["SSRC"] == 7 and heard["cumulative loss"] == 9
    assert heard["average MOS"]["packet loss"] == 50 and heard["average MOS"]["jitter"] == 30 and heard["average MOS"]["samples"] == 1
    assert 10 <= heard["average MOS"]["MOS"] < 20 and heard["average MOS"]["round-trip time leg"] > 0
    assert heard["lowest MOS"]["reported at"] > 0 and "highest MOS" in heard
    s = web.WebSocket(web.connect(net.gateway, HTTP), "page.xcipher")
    told = {}
    while "calls" not in told:
        told = json.loads(s.receive()[1])
    leg = told["calls"][0]["legs"][0]
    assert leg["loss"] == 5000 and leg["lost"] == 9 and leg["MOS"] < 200
    now = values(scrape(net))
    assert now["xcipher_rtcp_mos_count"] == 1 and now["xcipher_rtcp_mos_sum"] < 2
    assert now['xcipher_homer_reports_total{result="sent"}'] == 2
    assert now["xcipher_one_way_sessions_total"] == 0
    talk.delete()  # only one of their sides ever sent
    now = values(scrape(net))
    assert now["xcipher_one_way_sessions_total"] == now["xcipher_zero_packet_streams_total"] == now["xcipher_answered_sessions_total"] == 1
    assert 0 < now["xcipher_call_duration_seconds_total"] < time.monotonic() - began
    homer.close()  # no client is left: no effect
    far.sendto(struct.pack(">BBHI", 0x81, 201, 7, 9) + block, (talk.to_callee["ip"], talk.to_callee["rtcp"]))
    time.sleep(1.2)
    assert daemon.client.call("ping")["result"] == "pong"
    finish(daemon)
