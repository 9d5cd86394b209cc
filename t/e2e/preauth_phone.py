# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal that speaks SRTP+: libsrtp2 and the tags of t/preauth/reference.py."""
import os
import re
import struct
import sys

import calls
import relay
import test_ng

sys.path.insert(0, os.path.join(relay.ROOT, "t", "preauth"))
import reference  # pylint: disable=wrong-import-position

PLUS = "-xcipher-preauth"


def written(sdp):
    """The schemes that the crypto lines of an SDP name."""
    return re.findall(PLUS + r"=(\S+)", sdp)


class PlusPhone(test_ng.Phone):
    """A terminal that speaks SRTP+, if its peer does. scheme: what its crypto line has."""

    def __init__(self, net, where, address, scheme, suite="80"):
        super().__init__(net, where, address, suite)
        self.scheme, self.agreed, self.sent, self.rx_tags, self.unknown = scheme, None, None, {}, 0

    def sdp(self, direction="sendrecv"):
        return re.sub(r"^(a=crypto:.*)\r$", rf"\1 {PLUS}={self.scheme}\r", super().sdp(direction), flags=re.M)

    def told(self, sdp):
        super().told(sdp)
        self.agreed = written(sdp) == [self.scheme]
        self.theirs = next(k for _, n, k in calls.parse(sdp)["crypto"] if n == self.suite.name)
        self.sent = reference.Tags(self.scheme, self.key[:16], self.key[16:], self.ssrc)
        return self

    def packet(self, payload, kind=0, wrong=0, spoil=False):
        """wrong: changes the tag; spoil: changes a byte that SRTP authenticates."""
        self.seq += 1
        head = struct.pack("!BBHII", 0x80, kind, self.seq, self.seq * 160, self.ssrc)
        if not self.agreed:
            return self.tx.protect(head + payload)
        block = self.sent.block(self.seq) if self.sent.chain else b""
        packet = bytearray(self.tx.protect(head + payload + block))
        packet[14] ^= spoil
        tag = bytearray(self.sent.make(self.seq, head))
        tag[-1] ^= wrong
        return bytes(packet + tag)

    def send(self, payload, kind=0, **how):
        self.sock.sendto(self.packet(payload, kind, **how), self.to)

    def hears(self, timeout=30.0):
        if not self.agreed:
            return super().hears(timeout)
        if not test_ng.readable(self.sock, timeout):
            return None
        packet = self.sock.recv(2048)
        seq, ssrc = struct.unpack("!xxH4xI", packet[:12])
        tags = self.rx_tags.setdefault(ssrc, reference.Tags(self.scheme, self.theirs[:16], self.theirs[16:], ssrc))
        right = tags.is_right(seq, packet, packet[-tags.length:])
        assert right is not False, f"wrong tag of packet {seq}"
        self.unknown += right is None
        plain = self.rx.unprotect(packet[:-tags.length])
        assert plain is not None, "not authentic"
        return plain[1] & 0x7f, tags.take(seq, plain[12:])
