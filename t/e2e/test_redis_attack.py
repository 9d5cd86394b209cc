# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks by a client that writes to Redis, or by a false server. They may lose stored calls, never a live one. Each has a control: the
same path works for a genuine node."""
import os
import socket
import subprocess
import tempfile
import threading
import time

import calls
import ng
import relay
from redisrig import PROGRAM, Load, Redis, have, reply
from run import Skip, cases
from test_redis import BAD, SERIAL, followed, kill, pair, rig, settled, state, talk_of, until

# The rights in the man page: xcipherd(8), REDIS.
ACL = ["resetkeys", "resetchannels", "~xcipher:*", "&xcipher:*", "-@all", "+ping", "+select", "+get", "+set", "+hset", "+hmget", "+del", "+expire", "+scan", "+time", "+publish",
       "+subscribe", "+unsubscribe"]


def frame(field, call_id, value=b""):
    call_id = call_id.encode()
    return field.encode() + len(call_id).to_bytes(2, "big") + call_id + value


class Ear:
    """Receives the messages of nodes, as an attacker can."""

    def __init__(self, redis, *channels):
        self.s = ng.socket_in(redis.ns, kind=socket.SOCK_STREAM)
        self.s.settimeout(30)
        self.s.connect((redis.addr, redis.port))
        self.f = self.s.makefile("rb")
        words = [b"SUBSCRIBE", *(c.encode() for c in channels)]
        self.s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        for _ in channels:
            reply(self.f)
        self.heard = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        try:
            while True:
                kind, channel, text = reply(self.f)
                if kind == b"message":
                    self.heard.append((channel.decode(), text))
        except (OSError, ValueError, ConnectionError):
            pass

    def of(self, channel, start=b""):
        return [t for c, t in self.heard if c == channel and t.startswith(start)]


def refused(node):
    return state(node)["refused"]


def test_a_forged_removal_is_not_believed(net):
    """Forged messages neither remove calls from the standby nor fill its memory."""
    redis, there, first, second = pair(net)
    talk = talk_of(first, 4)
    followed(second, 4)
    before = refused(second) if "refused" in state(second) else None
    for c in talk[:2]:
        redis("PUBLISH", "xcipher:0", frame("d", c.id))
    for i in range(50):
        redis("PUBLISH", "xcipher:0", frame("c", f"made-up-{i}", b"rubbish"))
    redis("PUBLISH", "xcipher:0", frame("c", talk[2].id, b"rubbish"))
    redis("PUBLISH", "xcipher:0", b"")
    redis("PUBLISH", "xcipher:0", b"d\xff\xff")
    # Control: after it, a genuine call and a genuine removal by the same channel.
    calls.ok(talk[3].delete())
    more = calls.Call(first.client, 9, "80", "32").setup()
    until(lambda: redis("EXISTS", f"xcipher:call:{more.id}") == 1)
    followed(second, 4)
    assert before is not None and refused(second) >= before + 54, state(second)
    assert "redis: refused " in second.text(), second.text()
    kill(first)
    there.take_addresses()
    calls.ok(second.client.call("active"))
    until(lambda: state(second)["mode"] == "active")
    assert state(second)["restored"] == 4 and state(second)["skipped"] == 0, state(second)
    assert "made-up" not in second.text() and "changed since" not in second.text(), second.text()
    assert second.stop() == 0
    redis.stop()


def test_a_message_counts_once(net):
    """An attacker replays genuine messages of the active node."""
    redis, _, first, second = pair(net)
    ear = Ear(redis, "xcipher:0")
    talk = talk_of(first, 2)
    followed(second, 2)
    calls.ok(talk[0].delete())
    followed(second, 1)
    until(lambda: ear.of("xcipher:0", b"d") and ear.of("xcipher:0", b"c"))
    before, kept = refused(second), ear.of("xcipher:0")
    assert any(m[:1] == b"c" and talk[0].id.encode() in m for m in kept)
    for m in kept:
        redis("PUBLISH", "xcipher:0", m)  # a call that has ended, and its removal
    first_call = next(m for m in kept if m[:1] == b"c" and talk[0].id.encode() in m)
    value = first_call[3 + len(talk[0].id):]
    redis("PUBLISH", "xcipher:0", frame("c", talk[1].id, value))  # another call's
    redis("PUBLISH", "xcipher:1", first_call)  # another channel
    until(lambda: refused(second) >= before + len(kept) + 1)
    followed(second, 1)
    # Control
    calls.ok(talk[1].delete())
    followed(second, 0)
    assert first.stop() == 0 and second.stop() == 0
    redis.stop()


def test_an_old_claim_ends_nothing(net):
    """Replayed claims of a formerly active node end no calls of the active node, and do not prevent its start."""
    redis, there, first, second = pair(net)
    ear = Ear(redis, "xcipher:0:owner")
    talk_of(first, 2)
    followed(second, 2)
    # The second node takes over three times, so that its claims have a high number.
    there.take_addresses()
    for _ in range(3):
        calls.ok(second.client.call("active"))
        until(lambda: state(first)["mode"] == "standby" and state(second)["mode"] == "active")  # control: genuine claims work
        calls.ok(first.client.call("active"))
        until(lambda: state(second)["mode"] == "standby" and state(first)["mode"] == "active")
    calls.ok(second.client.call("active"))
    until(lambda: state(first)["mode"] == "standby")
    key = redis("GET", "xcipher:owner")
    there.give_addresses_back()
    kill(first)
    kill(second)
    # All nodes lose their state; the attacker keeps their claims.
    redis("FLUSHALL")
    redis("SET", "xcipher:owner", key)
    first = relay.Xcipherd(net, SERIAL, f"--redis-key-file={redis.key_file}", "--redis=127.0.0.1:6379").wait_ready()
    until(lambda: state(first)["mode"] == "active")
    talk = talk_of(first, 3)
    load = Load(net, relay.BUILD, talk, 50, 100)
    for text in ear.of("xcipher:0:owner") + [key, b"", b"c", b"c" + bytes(100), b"q" + bytes(100)]:
        redis("PUBLISH", "xcipher:0:owner", text)
    redis("SET", "xcipher:owner", key)
    redis("CLIENT", "KILL", "TYPE", "normal")
    redis("CLIENT", "KILL", "TYPE", "pubsub")
    until(lambda: "is reachable again" in first.text())
    for text in ear.of("xcipher:0:owner"):
        redis("PUBLISH", "xcipher:0:owner", text)
    settled(first)
    until(lambda: first.statistics()["packets sent"] > 900)
    assert state(first)["mode"] == "active" and len(redis("KEYS", "xcipher:call:*")) == 3, first.text()
    result = load.enough()
    assert not any(result[k] for k in (*BAD, "lost")), result
    assert "releasing all calls" not in first.text(), first.text()
    assert first.stop() == 0
    redis.stop()


def test_a_record_belongs_to_its_call(net):
    """Records copied to another key or database, or with exchanged fields, are refused. If they are removed, calls continue."""
    redis, daemon = rig(net)
    talk = talk_of(daemon, 5)
    load = Load(net, relay.BUILD, talk[3:], 50, 100)
    settled(daemon)
    key = [f"xcipher:call:{c.id}" for c in talk]
    whole = [redis("HGET", k, "c") for k in key]
    redis("DEL", *key)
    until(lambda: daemon.statistics()["packets sent"] > 100)
    result = load.enough()
    assert not any(result[k] for k in (*BAD, "lost")), result
    kill(daemon)
    redis("FLUSHALL")
    redis("HSET", key[0], "c", whole[1])
    redis("HSET", key[1], "c", whole[1], "s", whole[1])  # this field is not a valid state, so the other one is used
    redis("HSET", key[2], "c", whole[2])  # control
    redis("HSET", "xcipher:call:stranger", "c", whole[2])
    daemon = relay.Xcipherd(net, *redis.daemon_options(), SERIAL).wait_ready()
    until(lambda: state(daemon)["mode"] == "active")
    s = state(daemon)
    assert s["restored"] == 2 and s["skipped"] == 2, (s, daemon.text())
    kill(daemon)
    # The same bytes in another database.
    daemon = relay.Xcipherd(net, SERIAL, f"--redis={redis.url(5)}", f"--redis-key-file={redis.key_file}").wait_ready()
    kill(daemon)
    redis("COPY", key[2], key[2], "DB", 5)
    daemon = relay.Xcipherd(net, SERIAL, f"--redis={redis.url(5)}", f"--redis-key-file={redis.key_file}").wait_ready()
    until(lambda: state(daemon)["mode"] == "active")
    assert state(daemon)["restored"] == 0 and state(daemon)["skipped"] == 1, (state(daemon), daemon.text())
    assert daemon.stop() == 0
    redis.stop()


# --- In the place of Redis ----------------------------------------------------------------------------------------------


class Hostile:
    """A false server: replies to all commands correctly up to one, which gets the given reply."""

    GOOD = {b"PING": b"+PONG\r\n", b"AUTH": b"+OK\r\n", b"SELECT": b"+OK\r\n", b"GET": b"$-1\r\n", b"SET": b"+OK\r\n", b"HSET": b":2\r\n",
            b"EXPIRE": b":1\r\n", b"DEL": b":1\r\n", b"PUBLISH": b":1\r\n", b"SCAN": b"*2\r\n$1\r\n0\r\n*0\r\n", b"HMGET": b"*2\r\n$-1\r\n$-1\r\n",
            b"TIME": b"*2\r\n$1\r\n9\r\n$1\r\n9\r\n"}

    def __init__(self, net, evil=None, port=6379):
        self.evil, self.seen = dict(evil or {}), []
        self.listener = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(50)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        with s, s.makefile("rb") as f:
            try:
                while True:
                    words = reply(f)
                    self.seen.append(words[0])
                    answer = self.evil.get(words[0])
                    if callable(answer):
                        answer(s)
                    elif answer is not None:
                        s.sendall(answer)
                    elif words[0] == b"SUBSCRIBE":
                        s.sendall(b"*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n" % (len(words[1]), words[1]))
                    else:
                        s.sendall(self.GOOD[words[0]])
            except (OSError, ConnectionError, ValueError, IndexError):
                pass

    def close(self):
        self.listener.close()


def endless(piece):
    def send(s):
        while True:
            s.sendall(piece)
    return send


def memory(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


FLOOD = b"*3\r\n$7\r\nmessage\r\n$15\r\nxcipher:0:owner\r\n$100\r\n" + b"c" * 100 + b"\r\n"
EVIL = {
    "surplus": {b"PING": b"+PONG\r\n+PONG\r\n:1\r\n"},
    "surplus later": {b"SET": b"+OK\r\n+OK\r\n"},
    "nil for a page": {b"SCAN": b"$-1\r\n"},
    "number for a page": {b"SCAN": b":0\r\n"},
    "no cursor": {b"SCAN": b"*2\r\n$3\r\nabc\r\n*0\r\n"},
    "endless walk": {b"SCAN": b"*2\r\n$1\r\n7\r\n*0\r\n"},
    "number for a call": {b"SCAN": b"*2\r\n$1\r\n0\r\n*1\r\n$14\r\nxcipher:call:x\r\n", b"HMGET": b":0\r\n"},
    "huge array": {b"SCAN": b"*2147483647\r\n"},
    "huge string": {b"GET": b"$2147483647\r\n"},
    "string without end": {b"GET": endless(b"$1000000\r\n" + b"x" * 1000000 + b"\r\n")},
    "line without end": {b"PING": endless(b"+" * 65536)},
    "deep": {b"GET": b"*1\r\n" * 100000},
    "no RESP": {b"GET": b"HTTP/1.1 400 Bad Request\r\n\r\n"},
    "silence": {b"GET": lambda s: time.sleep(1000)},
    "flood": {b"SUBSCRIBE": lambda s: (s.sendall(b"*3\r\n$9\r\nsubscribe\r\n$15\r\nxcipher:0:owner\r\n:1\r\n"), endless(FLOOD * 500)(s))},
    "status for a number": {b"HSET": b"+OK\r\n"},
    "number for a time": {b"TIME": b":0\r\n"},
    "time of words": {b"TIME": b"*2\r\n$3\r\nabc\r\n$1\r\n0\r\n"},
}


class Measured(relay.Xcipherd):
    """Its memory is measured, so the sanitizer keeps little freed memory."""

    def environment(self):
        env = super().environment()
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=4:thread_local_quarantine_size_kb=64"
        return env


@cases(*[(name,) for name in EVIL])
def test_a_hostile_server_costs_persistence_only(net, name):
    with tempfile.NamedTemporaryFile("w", suffix=".key") as key:
        key.write("ab" * 32)
        key.flush()
        os.chmod(key.name, 0o600)
        options = [SERIAL, "--redis=127.0.0.1:6379", f"--redis-key-file={key.name}"]
        control = Hostile(net, port=6380)
        daemon = relay.Xcipherd(net, SERIAL, "--redis=127.0.0.1:6380", f"--redis-key-file={key.name}").wait_ready()
        until(lambda: state(daemon)["mode"] == "active")  # control: correct replies are accepted
        calls.ok(calls.Call(daemon.client, 1, "80", "32").setup().delete())
        settled(daemon)
        assert daemon.stop() == 0
        control.close()
        server = Hostile(net, EVIL[name])
        daemon = Measured(net, *options).wait_ready()
        talk = talk_of(daemon, 4)
        load = Load(net, relay.BUILD, talk, 50, 100)
        until(lambda: daemon.statistics()["packets sent"] > 600)
        used = memory(daemon)
        until(lambda: daemon.statistics()["packets sent"] > 1200)
        result = load.enough()
        assert not any(result[k] for k in (*BAD, "lost")), result
        for c in talk:
            calls.ok(c.delete())
        assert memory(daemon) < used + 32768, (used, memory(daemon))
        assert "0 calls restored" not in daemon.text() or name in ("flood", "surplus later", "silence", "status for a number"), daemon.text()
        assert daemon.process.poll() is None, daemon.text()
        assert daemon.stop() == 0
        server.close()


# --- TLS and users --------------------------------------------------------------------------------------------------


class Authority:
    """Certificates, made by openssl."""

    def __init__(self, folder, name):
        self.dir, self.name = folder, name
        self.ca = self.path("ca.pem")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", f"/CN={name}",
                     "-keyout", self.path("ca.key"), "-out", self.ca)

    def path(self, name):
        return os.path.join(self.dir, f"{self.name}-{name}")

    @staticmethod
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def issue(self, name, alternative, expired=False):
        """(certificate, key)"""
        cert, key, request, extra = (self.path(f"{name}.{x}") for x in ("pem", "key", "csr", "ext"))
        with open(extra, "w", encoding="ascii") as f:
            f.write(f"subjectAltName={alternative}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.path("ca.key"), "-CAcreateserial", "-extfile", extra,
                     "-days", "-1" if expired else "30", "-out", cert)
        os.chmod(key, 0o600)
        return cert, key


class TlsRedis(Redis):
    """Plain on a port that only the test uses; TLS on 6390."""

    def __init__(self, net, authority, certificate, clients=True, **kw):
        super().__init__(net, options=["--tls-port", "6390", "--tls-cert-file", certificate[0], "--tls-key-file", certificate[1],
                                       "--tls-ca-cert-file", authority.ca, "--tls-auth-clients", "yes" if clients else "no"], **kw)
        self("ACL", "SETUSER", "xcipher", "on", ">pass word:@/%", *ACL)
        self("ACL", "SETUSER", "default", "nocommands", "+@all")

    def secret(self, text, mode=0o600):
        path = os.path.join(self.dir.name, "password")
        with open(path, "w", encoding="ascii") as f:
            f.write(text + "\n")
        os.chmod(path, mode)
        return path


class Other(relay.Xcipherd):
    ng_port = 22299


def tls_options(redis, authority, host="localhost", user="xcipher@"):
    return [SERIAL, f"--redis=rediss://{user}{host}:6390/0", f"--redis-tls-ca={authority.ca}", f"--redis-key-file={redis.key_file}",
            f"--redis-password-file={redis.secret('pass word:@/%')}"]


def test_tls_with_a_user_of_the_least_rights(net):
    """Calls are saved, restored, followed and taken over with only the rights in the man page, and certificates on both sides."""
    if not have():
        raise Skip(f"no {PROGRAM}")
    with tempfile.TemporaryDirectory(prefix="xc-tls-") as folder:
        authority = Authority(folder, "ours")
        client = authority.issue("node", "DNS:node.example")
        redis = TlsRedis(net, authority, authority.issue("redis", "DNS:localhost,DNS:redis.example,IP:127.0.0.1"))
        options = [*tls_options(redis, authority, "127.0.0.1"), f"--redis-tls-cert={client[0]}", f"--redis-tls-key={client[1]}"]
        daemon = relay.Xcipherd(net, *options).wait_ready()
        talk = talk_of(daemon, 4)
        load = Load(net, relay.BUILD, talk, 50, 100)
        settled(daemon)
        assert redis("ACL", "LOG") == [], redis("ACL", "LOG")
        with open(f"/proc/{daemon.process.pid}/cmdline", "rb") as f:
            assert b"pass word" not in f.read()
        assert "pass word" not in daemon.text()
        assert "in the clear" not in daemon.text(), daemon.text()
        kill(daemon)
        daemon = relay.Xcipherd(net, *options).wait_ready()
        until(lambda: state(daemon)["restored"] == 4)
        redis("CLIENT", "KILL", "TYPE", "normal")
        until(lambda: "is reachable again" in daemon.text())
        settled(daemon)
        assert not any(load.enough()[k] for k in BAD)
        # A second node on the same machine; its ng port makes it an instance of its own.
        other = Other(net, *tls_options(redis, authority), f"--redis-tls-cert={client[0]}", f"--redis-tls-key={client[1]}", "--standby=yes",
                      "--listen-ng=127.0.0.1:22299").wait_ready()
        followed(other, 4)
        talk[0].client = daemon.client
        calls.ok(talk[0].delete())
        followed(other, 3)
        calls.ok(other.client.call("active"))
        until(lambda: state(daemon)["mode"] == "standby" and state(other)["mode"] == "active")
        assert redis("ACL", "LOG") == [], redis("ACL", "LOG")
        # Control: without any one of these rights, an error is logged.
        redis("ACL", "SETUSER", "xcipher", "-publish", "-hset")
        calls.Call(other.client, 50, "80", "32").setup()
        until(lambda: "permission" in other.text() or "NOPERM" in other.text())
        assert daemon.stop() == 0 and other.stop() == 0
        redis.stop()


@cases(("right",), ("right name",), ("wrong authority",), ("wrong name",), ("expired",), ("plain",), ("plain client",), ("no certificate of ours",), ("wrong password",))
def test_tls_never_goes_on_unverified(net, what):
    if not have():
        raise Skip(f"no {PROGRAM}")
    with tempfile.TemporaryDirectory(prefix="xc-tls-") as folder:
        authority, strangers = Authority(folder, "ours"), Authority(folder, "strangers")
        name = "DNS:elsewhere.example" if what in ("wrong name", "right name") else "DNS:localhost,IP:127.0.0.1"
        certificate = authority.issue("redis", name, expired=what == "expired")
        redis = TlsRedis(net, authority, certificate, clients=what == "no certificate of ours")
        options = tls_options(redis, strangers if what == "wrong authority" else authority)
        if what == "right name":
            options.append("--redis-tls-name=elsewhere.example")
        if what == "plain":
            options[1] = f"--redis=rediss://xcipher@127.0.0.1:{redis.port}/0"
        if what == "plain client":
            options[1:3] = ["--redis=redis://xcipher@127.0.0.1:6390/0"]
        if what == "wrong password":
            redis.secret("something else")
        daemon = relay.Xcipherd(net, *options).wait_ready()
        if what.startswith("right"):
            talk_of(daemon, 2)
            settled(daemon)
            until(lambda: len(redis("KEYS", "xcipher:call:*")) == 2)
        else:
            until(lambda: "is unreachable (" in daemon.text())
            why = {"wrong authority": "certificate", "wrong name": "mismatch", "expired": "expired", "plain": "TLS", "plain client": "",
                   "no certificate of ours": "", "wrong password": "WRONGPASS"}[what]
            assert why in daemon.text(), daemon.text()
            talk_of(daemon, 2)
            assert state(daemon)["state"] == "away"
            assert redis("KEYS", "xcipher:*") == []
            assert what == "wrong password" or not any("xcipher" in line for line in redis("CLIENT", "LIST").decode().splitlines() if "user=xcipher" in line)
        assert "pass word" not in daemon.text()
        assert daemon.stop() == 0
        redis.stop()


@cases((0o644,), (0o660,), (0o600,))
def test_secret_files_that_others_may_touch_are_refused(net, mode):
    with tempfile.TemporaryDirectory(prefix="xc-secret-") as folder:
        path = os.path.join(folder, "secret")
        with open(path, "w", encoding="ascii") as f:
            f.write("ab" * 32 + "\n")
        os.chmod(path, mode)
        for option in ("--redis-key-file", "--redis-password-file"):
            good = os.path.join(folder, "good")
            with open(good, "w", encoding="ascii") as f:
                f.write("ab" * 32 + "\n")
            os.chmod(good, 0o600)
            files = {"--redis-key-file": good, "--redis-password-file": good, option: path}
            try:
                daemon = relay.Xcipherd(net, SERIAL, "--redis=127.0.0.1:1", *(f"{k}={v}" for k, v in files.items())).wait_ready()
                assert mode == 0o600, daemon.text()
                assert daemon.stop() == 0
            except RuntimeError as e:
                assert mode != 0o600 and option in str(e) and "chmod 600" in str(e), e
