# SPDX-License-Identifier: GPL-2.0-or-later
"""Master key identifiers in packets (RFC 3711 section 3.1, RFC 7714 section 8)."""
import os

import srtp
from compat import compat_each
from text import KEY_LEN, audio, crypto, sdp, suite_name


class Marked:
    """A session whose packets carry an MKI, because libsrtp2 needs another set-up for each key."""

    def __init__(self, session, mki, behind):
        self.session, self.mki, self.behind = session, mki, behind

    def protect(self, packet):
        packet = self.session.protect(packet)
        return packet[:len(packet) - self.behind] + self.mki + packet[len(packet) - self.behind:]

    def unprotect(self, packet):
        at = len(packet) - self.behind
        assert packet[at - len(self.mki):at] == self.mki
        return self.session.unprotect(packet[:at - len(self.mki)] + packet[at:])


@compat_each("MKI", "RFC 4568 sections 6.1 and 9.2", [("80", 1, 1), ("80", 16, 2 ** 128 - 1), ("80", 17, 5), ("80", 128, 2 ** 100), ("GCM", 128, 9),
                                             ("32", 128, 0)])
def test_mki_of_the_caller(relay, suite, length, number):
    mki = number.to_bytes(length, "big")
    a, b = relay.phone("caller", suite), relay.phone("callee")
    name, key = suite_name(suite), os.urandom(KEY_LEN.get(suite_name(suite), 30))
    behind = {"80": 10, "32": 4, "GCM": 0}[suite]
    a.key, a.tx = key, Marked(srtp.Session(name, key, srtp.OUTBOUND), mki, behind)
    call = relay.call()
    offer = sdp(audio(crypto(suite, key=key, lifetime=f"|{number}:{length}"), port=a.port, profile="RTP/SAVP"))
    b.told(call.offer(offer, transport_protocol="RTP/AVP").sdp.audio)
    a.told(call.answer(b.sdp()).sdp.audio)
    for n in range(3):
        word = b"word %d" % n
        a.send(word)
        assert b.receive() == word
        b.send(word)
        assert a.receive() == word
    a.tx.mki = bytes(length - 1) + bytes([number + 1 & 0xff])
    a.send(b"other MKI")
    assert b.receive(0.2) is None


@compat_each("MKI", "xcipher-ng(7) SDES", [("|1:129",), ("|1:0",), (f"|{2 ** 128}:17",), ("|x:4",)])
def test_impossible_mki_is_refused(relay, lifetime):
    offer = sdp(audio(crypto("80", lifetime=lifetime), profile="RTP/SAVP"))
    relay.call().offer(offer, fails="MKI")
