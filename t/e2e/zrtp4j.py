# SPDX-License-Identifier: GPL-2.0-or-later
"""Terminals of ZRTP by GNU ZRTP4J (t/zrtp/zrtp4j/Peer.java), which make check-zrtp builds. libsrtp2 protects their media."""
import os
import subprocess

import relay
import zrtp

CIPHERS = {16: "AES_CM_128_HMAC_SHA1_", 32: "AES_256_CM_HMAC_SHA1_"}  # by length of a key
JAVA = os.path.join(relay.ROOT, "build", "zrtp", "java")
PATH = f"{JAVA}/fix:{JAVA}/bcprov-jdk15on-1.66.jar", f"{JAVA}/zrtp4j-light-4.1.2.jar:{JAVA}"
ALL = "S256,AES1,HS32,EC25,MULT,B32"


def have():
    return os.path.exists(f"{JAVA}/Peer.class")


class Machine:
    """The process with the streams of one terminal, in the order of their numbers."""

    def __init__(self, cache):
        self.streams = []
        self.process = subprocess.Popen(("java", f"-Xbootclasspath/a:{PATH[0]}", "-cp", PATH[1], "Peer"), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.ask("cache", cache)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        for line in iter(self.process.stdout.readline, ".\n"):
            assert line, "Peer.java ended"
            number, kind, *rest = line.split()
            self.streams[int(number)].results(kind, rest)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class End:
    """One stream, as bzrtp.End. agreements: (algorithms, role), as Peer.java has them. cache: the name of a file."""

    def __init__(self, send, ssrc, start=True, agreements=(ALL, ""), cache=None, first=None):
        self.send, self.ssrc, self.number = send, ssrc, len(first.machine.streams) if first else 0
        self.secure, self.sas, self.verified, self.keys, self.said, self.hello, self.theirs = False, None, None, {}, [], None, None
        self.algorithms, self.role = agreements
        self.cipher = self.suite = None
        self.machine = first.machine if first else Machine(cache)
        self.machine.streams.append(self)
        self.machine.ask("more" if first else "new", ssrc, self.algorithms, self.role)
        if start:
            self.start()

    def results(self, kind, rest):
        if kind == "send":
            self.send(bytes.fromhex(rest[0]))
        elif kind in ("rx", "tx"):
            key, salt, bits = rest
            self.keys[kind] = bytes.fromhex(key + salt)
            self.suite = CIPHERS[len(key) // 2] + bits
        elif kind == "secure":
            sas, verified, self.cipher, _, self.theirs = rest
            self.secure, self.sas, self.verified = True, sas.encode(), verified == "true"
        elif kind == "hello":
            self.hello = " ".join(rest)
        else:
            self.said.append(" ".join((kind, *rest)))

    def start(self):
        """A further stream may begin when the first one is secure."""
        self.machine.ask("start", self.number)

    def hello_hash(self):
        return self.hello

    def expect(self, value):
        """Compared by the tests: ZRTP4J leaves that to its users."""

    def tick(self, now_ms):
        """Its clock goes at a quarter of the speed: ZRTP4J gives up after few retries, and the daemon, or this thread, may be late."""
        self.machine.ask("time", now_ms // 4)

    def take(self, packet):
        self.machine.ask("packet", self.number, packet.hex())

    def verify(self):
        self.machine.ask("verify", self.number)

    def close(self):
        if not self.number:
            self.machine.close()


class Terminal(zrtp.Zrtp):
    """commits: whether the terminal or the relay begins the exchange. None: the faster one. An end without a HelloACK does not begin, nor does
    ZRTP4J if a HelloACK comes before the Hello."""

    def __init__(self, net, place, address, algorithms=ALL, role="", commits=None, **more):
        self.commits, self.greeted = commits, False
        super().__init__(net, place, address, agreements=(algorithms, role), make=End, **more)

    def send_packet(self, packet):
        if not (self.commits is True and packet[16:24] == b"HelloACK"):
            super().send_packet(packet)

    def take(self, s, packet, source):
        self.greeted |= self.running and packet[16:24] == b"Hello   "
        if packet[16:24] != b"HelloACK" or self.commits is None or (self.commits and self.greeted):
            super().take(s, packet, source)
