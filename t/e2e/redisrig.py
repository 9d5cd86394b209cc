# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis of the test's own: Debian's program, in the gateway's namespace, its files in a folder that goes with it."""
import json
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time

import calls
import ng

PROGRAM = "/usr/bin/redis-server"


def have():
    return os.access(PROGRAM, os.X_OK)


class Redis:
    def __init__(self, net, ns=None, port=6379, options=(), addr="127.0.0.1"):
        self.net, self.ns, self.port, self.addr = net, ns or net.gateway, port, addr
        self.options = list(options)
        self.dir = tempfile.TemporaryDirectory(prefix="xc-redis-")
        self.key_file = os.path.join(self.dir.name, "key")
        with open(self.key_file, "w", encoding="ascii") as f:
            f.write(secrets.token_hex(32) + "\n")
        os.chmod(self.key_file, 0o600)
        self.process = None
        self.start()

    def start(self):
        # Killed, it writes nothing; stopped in order it saves what it has, as an operator's does.
        self.process = self.net.spawn(self.ns, [PROGRAM, "--port", str(self.port), "--bind", self.addr, "--dir", self.dir.name,
                                                "--protected-mode", "no", "--save", "", "--appendonly", "no", *self.options],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                if self("PING") == b"PONG":
                    return self
            except (OSError, ConnectionError):
                time.sleep(0.02)
        raise RuntimeError("redis-server does not answer")

    def url(self, db=0):
        return f"{self.addr}:{self.port}/{db}"

    def daemon_options(self, db=0):
        return [f"--redis={self.url(db)}", f"--redis-key-file={self.key_file}"]

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.net.stop(self.process)
        self.dir.cleanup()

    def __call__(self, *words):
        """One command, by a connection of its own, inside the namespace."""
        with ng.socket_in(self.ns, kind=socket.SOCK_STREAM) as s:
            s.settimeout(5)
            s.connect((self.addr, self.port))
            return ask(s, words)


def ask(s, words):
    with s.makefile("rb") as f:
        out = b"*%d\r\n" % len(words)
        for w in words:
            w = w if isinstance(w, bytes) else str(w).encode()
            out += b"$%d\r\n%s\r\n" % (len(w), w)
        s.sendall(out)
        return reply(f)


def reply(f):
    line = f.readline()
    if not line:
        raise ConnectionError("closed")
    kind, rest = line[:1], line[1:-2]
    if kind == b"-":
        raise RuntimeError(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"$":
        n = int(rest)
        return None if n < 0 else f.read(n + 2)[:-2]
    if kind == b"*":
        return [reply(f) for _ in range(int(rest))]
    return rest


class Load:
    """rtpload in the background; result() waits for it."""

    def __init__(self, net, build, all_calls, rate, seconds, terminal="caller"):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".spec")
        self.file.write("".join(c.spec() for c in all_calls))
        self.file.flush()
        self.process = net.spawn(net.terminal[terminal], [os.path.join(build, "t", "rtpload"), self.file.name, str(rate), str(seconds)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self):
        out, err = self.process.communicate(timeout=120)
        if self.process.returncode:
            raise calls.Failed(f"rtpload: {err}")
        return json.loads(out)
