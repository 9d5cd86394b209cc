# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis for the test: Debian's program in the gateway's namespace, with a temporary folder."""
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
from netns import sh

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
        # A killed Redis saves nothing. One that is stopped saves its data, as an operator's does.
        self.process = self.net.spawn(self.ns, [PROGRAM, "--port", str(self.port), "--bind", self.addr, "--dir", self.dir.name,
                                                "--protected-mode", "no", "--save", "", "--appendonly", "no", *self.options],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
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
        """Sends one command by a new connection inside the namespace."""
        with ng.socket_in(self.ns, kind=socket.SOCK_STREAM) as s:
            s.settimeout(5)
            s.connect((self.addr, self.port))
            if "--requirepass" in self.options:
                ask(s, ("AUTH", self.options[self.options.index("--requirepass") + 1]))
            return ask(s, words)


def mac(ns, device):
    return json.loads(sh("ip", "-j", "-n", ns, "link", "show", "dev", device).stdout)[0]["address"]


class Elsewhere:
    """A second machine next to the gateway, linked to it and to the terminals. The gateway's
    addresses can move to it."""

    def __init__(self, net):
        self.net = net
        self.gateway = net.add("standby")  # where relay.Relay starts its programs
        self.id, self.spawn, self.stop = net.id, net.spawn, net.stop
        net.link(net.gateway, "s0", "10.200.9.1/24", self.gateway, "s0", "10.200.9.2/24")
        for i, ns in enumerate(net.terminal.values(), 1):
            net.link(self.gateway, f"m{i}", None, ns, f"s{i}", None)
            # No duplicate address detection: it could take a second, which is not measured.
            sh("ip", "-n", ns, "neigh", "replace", f"10.200.{i}.1", "lladdr", mac(self.gateway, f"m{i}"), "dev", f"s{i}", "nud", "permanent")
            sh("ip", "-n", self.gateway, "neigh", "replace", f"10.200.{i}.2", "lladdr", mac(ns, f"s{i}"), "dev", f"m{i}", "nud", "permanent")

    def take_addresses(self):
        """Moves the addresses as keepalived would. The terminals' routes stand for a switch that
        learns the move."""
        for i, ns in enumerate(self.net.terminal.values(), 1):
            sh("ip", "-n", self.net.gateway, "addr", "del", f"10.200.{i}.1/24", "dev", f"g{i}")
            sh("ip", "-n", self.gateway, "addr", "add", f"10.200.{i}.1/24", "dev", f"m{i}")
            sh("ip", "-n", ns, "route", "replace", f"10.200.{i}.1/32", "dev", f"s{i}", "src", f"10.200.{i}.2")

    def give_addresses_back(self):
        for i, ns in enumerate(self.net.terminal.values(), 1):
            sh("ip", "-n", self.gateway, "addr", "del", f"10.200.{i}.1/24", "dev", f"m{i}")
            sh("ip", "-n", self.net.gateway, "addr", "add", f"10.200.{i}.1/24", "dev", f"g{i}")
            sh("ip", "-n", ns, "route", "del", f"10.200.{i}.1/32", "dev", f"s{i}")


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
    """Runs rtpload in the background; result() waits for it."""

    def __init__(self, net, build, all_calls, rate, seconds, terminal="caller"):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".spec")
        self.file.write("".join(c.spec() for c in all_calls))
        self.file.flush()
        self.process = net.spawn(net.terminal[terminal], [os.path.join(build, "t", "rtpload"), self.file.name, str(rate), str(seconds)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment(build))

    @staticmethod
    def environment(build):
        """Uses libsrtp2 on OpenSSL if it was built (make peer-libsrtp), because Debian's is too
        slow for a thousand calls."""
        fast = os.path.join(build, "peers", "libsrtp2-openssl.so")
        return {**os.environ, "LD_PRELOAD": fast} if os.access(fast, os.R_OK) and "FULL" in os.environ else None

    def enough(self):
        """Ends it and returns its result."""
        self.process.send_signal(signal.SIGUSR1)
        return self.result()

    def result(self):
        out, err = self.process.communicate(timeout=120)
        if self.process.returncode:
            raise calls.Failed(f"rtpload: {err}")
        return json.loads(out)
