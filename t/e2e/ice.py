# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal of plain RTP with ICE: it answers checks and sends its own, as far as a test tells it to."""
import hmac
import os
import re
import socket
import struct
import zlib

import dtls
from baresip import wait_for

MAGIC = 0x2112a442
REQUEST, SUCCESS = 0x0001, 0x0101
USERNAME, INTEGRITY, PRIORITY, USE_CANDIDATE, FINGERPRINT, CONTROLLING, MAPPED = 6, 8, 0x24, 0x25, 0x8028, 0x802a, 0x20


def attribute(kind, value):
    return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) % 4)


def message(kind, body, password, number=None):
    """With integrity and fingerprint (RFC 8489 14.5, 14.7)."""
    number = number or os.urandom(12)
    head = struct.pack("!HHI", kind, len(body) + 24, MAGIC) + number
    body += attribute(INTEGRITY, hmac.digest(password.encode(), head + body, "sha1"))
    head = struct.pack("!HHI", kind, len(body) + 8, MAGIC) + number
    return head + body + attribute(FINGERPRINT, struct.pack("!I", zlib.crc32(head + body) ^ 0x5354554e))


def mapped(address, number):
    """XOR-MAPPED-ADDRESS (RFC 8489 14.2)."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    plain, mask = socket.inet_pton(family, address[0]), struct.pack("!I", MAGIC) + number
    body = bytes(p ^ m for p, m in zip(plain, mask))
    return attribute(MAPPED, struct.pack("!BBH", 0, 2 if family == socket.AF_INET6 else 1, address[1] ^ MAGIC >> 16) + body)


class Ice(dtls.Plain):
    """ufrag and pwd are its own, peer the relay's. mute: it answers no checks. responses: success responses that came. nominated: whether it answered a
    check with USE-CANDIDATE."""

    def __init__(self, net, place, address, candidates=True):
        self.ufrag, self.pwd, self.peer = "term", "p" * 24, None
        self.candidates, self.mute, self.responses, self.requests, self.nominated = candidates, False, 0, 0, False
        super().__init__(net, place, address)

    def attributes(self):
        lines = f"a=ice-ufrag:{self.ufrag}\r\na=ice-pwd:{self.pwd}\r\na=rtcp-mux\r\n"
        return lines + (f"a=candidate:1 1 udp 2130706431 {self.address} {self.port} typ host\r\n" if self.candidates else "")

    def believe(self, sdp):
        super().believe(sdp)
        self.peer = re.search(r"a=ice-ufrag:(\S+)", sdp)[1], re.search(r"a=ice-pwd:(\S+)", sdp)[1]

    def check(self, nominate=True, by=None, to=None):
        """by: a socket of another address, and to: where its check goes."""
        ufrag, password = self.peer
        body = attribute(USERNAME, f"{ufrag}:{self.ufrag}".encode()) + attribute(PRIORITY, struct.pack("!I", 1 << 24))
        body += attribute(CONTROLLING, b"\xff" * 8) + (attribute(USE_CANDIDATE, b"") if nominate else b"")
        (by or self.socket).sendto(message(REQUEST, body, password), to or self.to)

    def connect(self):
        """Until a check is answered."""
        before = self.responses

        def answered():
            self.check()
            return self.responses > before
        wait_for("the check is answered", answered)

    def take(self, s, packet, source):
        super().take(s, packet, source)
        kind = int.from_bytes(packet[:2], "big")
        if packet[0] < 4 and kind == SUCCESS:
            self.responses += 1
        if packet[0] < 4 and kind == REQUEST:
            self.requests += 1
            if not self.mute:
                self.nominated |= attribute(USE_CANDIDATE, b"") in packet
                s.sendto(message(SUCCESS, mapped(source, packet[8:20]), self.pwd, packet[8:20]), source)


class Keyed(Ice, dtls.Dtls):
    """DTLS, too: it nominates a pair, over which OpenSSL's program makes the handshake."""

    def __init__(self, net, place, address, setup="active"):
        super().__init__(net, place, address)
        self.setup = setup

    def attributes(self):
        return Ice.attributes(self) + dtls.Dtls.attributes(self).replace("a=rtcp-mux\r\n", "")


class Lite(Ice):
    """It answers checks, and sends none (RFC 8445 2.5)."""

    def sdp(self):
        return super().sdp().replace("t=0 0\r\n", "t=0 0\r\na=ice-lite\r\n", 1)

    def connect(self):
        """Until a check that nominates is answered."""
        wait_for("the relay's nomination", lambda: self.nominated)


class LiteKeyed(Lite, Keyed):
    """The same with DTLS."""
