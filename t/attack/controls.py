# SPDX-License-Identifier: GPL-2.0-or-later
"""Controls: each check gets a violation, which it must find, and the same case without the violation."""
import random
import struct

import checker
import g711
import knocks
import sdp
import srtp
import srtpkey
from sniffer import Packet

GATEWAY, EAST, WEST, STRANGER = "10.200.1.1", "10.200.1.2", "10.200.2.2", "10.200.3.2"
A, B = 20000, 20100  # the call's media ports: to east, to west


def rtp(sender, serial, seq=1, ssrc=7):
    return struct.pack("!BBHII", 0x80, 0, seq, 0, ssrc) + checker.mark(sender, serial) + b"words"


def rtcp(sender, serial, ssrc=7):
    return struct.pack("!BBHI4s", 0x80, 204, 5, ssrc, b"MARK") + checker.mark(sender, serial)


class Case:
    """A checker that knows one call: east uses plain RTP, west the suite."""

    def __init__(self, suite="AES_CM_128_HMAC_SHA1_80"):
        c = self.checker = checker.Checker({GATEWAY, "10.200.2.1"}, (20000, 21999))
        self.key = srtpkey.Key(suite, bytes(range(srtpkey.key_len(suite))))
        for port in (A, A + 1, B, B + 1):
            c.event("told_port", GATEWAY, port, "call-1")
        for port in (A, A + 1):
            c.event("told_plain", GATEWAY, port)
        for port in (B, B + 1):
            c.event("told_key", GATEWAY, port, suite, self.key.material)
        c.event("owner", GATEWAY, A, 1)
        c.event("owner", GATEWAY, B, 2)
        c.event("stranger", STRANGER)
        for sender in (1, 2):
            for serial in range(100):
                c.event("sends", sender, serial, "call-1", True)

    def leaves(self, data, sport=A, dst=EAST, dport=5000, link="g1"):
        self.checker.event("packet", Packet(link, GATEWAY, sport, dst, dport, data))
        return self

    def found(self):
        return {v.check for v in self.checker.found}


def good():
    c = Case()
    c.leaves(rtp(2, 1)).leaves(c.key.protect(rtp(1, 1)), B, WEST).leaves(c.key.protect(rtp(1, 2, 2)), B, WEST)
    c.leaves(c.key.protect(rtp(1, 3, 1), roc=1), B, WEST).leaves(c.key.protect_rtcp(rtcp(1, 4), 1), B + 1, WEST, 5001)
    return c.leaves(c.key.protect(rtp(1, 1)), B, WEST)  # a repeated packet is not a second plaintext


def reuse(suite):
    c = Case(suite)
    return c.leaves(c.key.protect(rtp(1, 1)), B, WEST).leaves(c.key.protect(rtp(1, 2)), B, WEST)


def reuse_rtcp(suite):
    c = Case(suite)
    return c.leaves(c.key.protect_rtcp(rtcp(1, 1), 5), B + 1, WEST).leaves(c.key.protect_rtcp(rtcp(1, 2), 5), B + 1, WEST)


def reuse_after_wrap():
    c = Case()
    for roc, seq, serial in ((0, 65535, 1), (1, 0, 2), (1, 9, 3), (2, 9, 4), (1, 9, 5)):
        c.leaves(c.key.protect(rtp(1, serial, seq), roc), B, WEST)
    return c


def spiral():
    """A port of another call is allowed, one of the same call is not."""
    c = Case()
    c.checker.event("told_port", "10.200.2.1", 21000, "call-2")
    return c.leaves(rtp(2, 1), dst="10.200.2.1", dport=21000)


def settled():
    c = Case()
    c.checker.event("sends", 99, 1, None, True)
    c.leaves(rtp(2, 1), dst=STRANGER)
    assert not c.found(), "a stranger may win a plain leg that was not heard"
    c.checker.event("settled", GATEWAY, A)
    return c.leaves(rtp(2, 2), dst=STRANGER)


def stranger_relayed(permitted):
    c = Case()
    c.checker.event("sends", 99, 1, None, permitted)
    return c.leaves(c.key.protect(rtp(99, 1)), B, WEST)


def early(permitted=True, answered=False, port=5000, data=rtp(99, 1)):
    """A packet to a terminal that offered plain RTP, from a port that it was not told."""
    c = Case()
    c.checker.event("awaits", EAST, 5000, "call-1")
    if answered:
        c.checker.event("answered", "call-1")
    c.checker.event("sends", 99, 1, None, permitted)
    return c.leaves(data, 20500, EAST, port)


def other_call():
    c = Case()
    c.checker.event("sends", 5, 1, "call-9", True)
    return c.leaves(rtp(5, 1))


def listener():
    c = Case()
    c.checker.event("sends", 5, 1, "call-1", False)
    return c.leaves(rtp(5, 1))


def loop():
    c = Case()
    for _ in range(checker.HOPS_MAX + 1):
        c.leaves(rtp(2, 1))
    return c


def forbidden(address):
    return Case().leaves(rtp(2, 1), dst=address, link="lo")


SPECIAL = ("127.0.0.1", "127.3.2.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "10.200.1.255", "::1", "::", "ff02::1",
           "::ffff:127.0.0.1", "::ffff:224.0.0.1", GATEWAY)


def keyed_later(leaves, before=False):
    """A port without keys in SDP, which a handshake gave keys. before: the packet leaves before that."""
    c = Case()
    key = srtpkey.Key("AES_CM_128_HMAC_SHA1_80", bytes(range(1, 31)))
    c.checker.event("told_port", GATEWAY, 20200, "call-1")
    c.checker.event("told_side", GATEWAY, 20200)
    if not before:
        c.checker.event("told_key", GATEWAY, 20200, key.suite, key.material, "DTLS")
    return c.leaves(leaves(key), 20200, WEST)


def side(data, knock=0):
    """From a port where the daemon makes handshakes, to a stranger who sent so many bytes."""
    c = Case()
    c.checker.event("told_side", GATEWAY, B)
    c.checker.event("settled", GATEWAY, B)
    c.checker.event("knocks", GATEWAY, B, (STRANGER, 5000), knock)
    return c.leaves(data if data[0] >> 6 != 2 else c.key.protect(data), B, STRANGER)


def knock_relayed(make, port):
    """A stranger's STUN, DTLS or ZRTP leaves to a terminal: with plain RTP, or with a handshake."""
    c = Case()
    c.checker.event("told_side", GATEWAY, B)
    c.checker.event("sends", 99, 1, None, False)
    return c.leaves(make(random.Random(1), checker.mark(99, 1)), port, EAST if port == A else WEST)


def early_side(data):
    c = Case()
    c.checker.event("awaits", EAST, 5000, "call-1", False, True)
    return c.leaves(data, 20500)


def secured(then=lambda c: None):
    """A port that sent plain RTP, until both SDPs agreed on keys."""
    c = Case()
    c.leaves(rtp(2, 1))
    c.checker.event("secured", GATEWAY, A)
    then(c.checker)
    return c.leaves(rtp(2, 2))


def plus(scheme, other=False):
    """Packets with tags: a repeated index has another block of "chain", or the same packet another tag."""
    c = Case()
    key = srtpkey.Key(f"{c.key.suite}/{scheme}", bytes(range(2, 32)))
    c.checker.event("told_key", GATEWAY, B, f"{c.key.suite}/{scheme}", key.material)
    for serial in (1, 2):
        c.leaves(key.protect(rtp(1, serial, serial)), B, WEST)
    packet = key.protect(rtp(1, 3 if other else 2, 2))
    c.leaves(packet[:-1] + bytes([packet[-1] ^ 1]), B, WEST)
    # Without tags under the same key: the terminal declined them, and the keystream is the same.
    bare = srtpkey.Key(c.key.suite, key.material)
    return c.leaves(bare.protect(rtp(1, 9, 2 if other else 9)), B, WEST)


def converted(law, sender=2):
    """G.711 that the relay converted: the mark is found in its samples."""
    c = Case()
    c.checker.event("sends", 99, 1, None, False)
    samples = checker.audible(checker.mark(sender, 1), law)
    other = g711.to_alaw(samples) if law == 0 else g711.to_ulaw(samples)
    return c.leaves(struct.pack("!BBHII", 0x80, 8 - 8 * law, 1, 0, 7) + bytes(12) + other, dst=WEST)


def rows():
    """(what, the checks that must fail, the case)."""
    yield "good traffic", set(), good()
    for suite in srtpkey.SUITES:
        yield f"SRTP, {suite}", {"reuse"}, reuse(suite)
        yield f"SRTCP, {suite}", {"reuse"}, reuse_rtcp(suite)
    yield "SRTP over wraps", {"reuse"}, reuse_after_wrap()
    for address in SPECIAL:
        yield f"to {address}", {"forbidden"}, forbidden(address)
    yield "to its own call", {"forbidden"}, Case().leaves(rtp(2, 1), dst=GATEWAY, dport=B)
    yield "to another call", set(), spiral()
    yield "to ng by lo", {"ng"}, Case().leaves(rtp(2, 1), dst="127.0.0.1", dport=22222, link="lo")
    yield "to ng by an address of the gateway", {"ng"}, Case().leaves(rtp(2, 1), dst="10.200.2.1", dport=22222, link="lo")
    yield "a stranger, who may", set(), stranger_relayed(True)
    yield "a stranger, who may not", {"source"}, stranger_relayed(False)
    yield "a mark that nobody sent", {"source"}, Case().leaves(rtp(77, 1))
    yield "early media", set(), early()
    yield "early media after the answer", {"unknown"}, early(answered=True)
    yield "early media to another port", {"unknown"}, early(port=5002)
    c = Case()
    c.checker.event("awaits", EAST, 5000, "call-1")
    c.checker.event("awaits", EAST, 5000, "call-2", False, True)
    yield "early media to an address that another call names, too", set(), c.leaves(rtp(1, 1), 20500)
    c.checker.event("answered", "call-1")
    yield "after the answer of the call that may have them", {"unknown"}, c.leaves(rtp(1, 2), 20500)
    yield "early media that cannot be read", {"unknown"}, early(data=Case().key.protect(rtp(99, 1)))
    yield "early media of a stranger, who may not", {"source"}, early(permitted=False)
    yield "another call's terminal", {"source"}, other_call()
    yield "a listener", {"source"}, listener()
    yield "to a stranger, once heard", {"stranger"}, settled()
    yield "round and round", {"loop"}, loop()
    yield "in clear", {"clear"}, Case().leaves(rtp(1, 1), B, WEST)
    yield "back to its sender", {"echo"}, Case().leaves(rtp(1, 1))
    c = Case()
    c.checker.event("echoes", (1, 1))
    yield "back to its sender by an echo test", set(), c.leaves(rtp(1, 1))
    yield "and another of its packets", {"echo"}, c.leaves(rtp(1, 2))
    c = Case()
    for scheme in srtpkey.reference.SCHEMES:
        yield f"SRTP+, {scheme}", set(), plus(scheme)
        yield f"SRTP+, {scheme}, an index again", {"reuse"}, plus(scheme, True)
    yield "under the key of a handshake", set(), keyed_later(lambda k: k.protect(rtp(1, 1)))
    yield "before the handshake", {"unknown"}, keyed_later(lambda k: k.protect(rtp(1, 1)), before=True)
    yield "in clear before the handshake", {"clear"}, keyed_later(lambda k: rtp(1, 1), before=True)
    yield "in clear after the handshake", {"clear"}, keyed_later(lambda k: rtp(1, 1))
    yield "in clear after SDPs with keys", {"clear"}, secured()
    won = Case()
    won.checker.event("secured", GATEWAY, B, True)
    yield "SRTP to a stranger who won the plain leg before", set(), won.leaves(won.key.protect(rtp(1, 1)), B, STRANGER)
    won.checker.event("settled", GATEWAY, B)
    yield "and after the terminal was heard", {"stranger"}, won.leaves(won.key.protect(rtp(1, 2, 2)), B, STRANGER)
    yield "in clear after a restart", set(), secured(lambda c: c.event("unsecured"))
    yield "in clear after another SDP", set(), secured(lambda c: c.event("told_plain", GATEWAY, A))
    yield "an answer to a stranger", set(), side(b"\x16\xfe\xfd" + bytes(20), 23)
    yield "a longer answer", {"answers"}, side(b"\x16\xfe\xfd" + bytes(20), 22)
    for make in (knocks.check, knocks.response, knocks.client_hello, knocks.hello, knocks.commit):
        for port in (A, B):
            yield f"a stranger's {make.__name__} relayed", {"source"}, knock_relayed(make, port)
    yield "media to a stranger", {"stranger"}, side(rtp(1, 1))
    yield "a check before the answer", set(), early_side(b"\0\1" + bytes(18))
    yield "media before the answer to a terminal that wants keys", {"unknown"}, early_side(rtp(2, 1))
    for law in (0, 1):
        yield f"converted from law {law}", set(), converted(law)
        yield f"a stranger's, converted from law {law}", {"source"}, converted(law, 99)
    yield "under a key that nobody was told", {"unknown"}, c.leaves(srtpkey.Key(c.key.suite, bytes(30)).protect(rtp(1, 1)), B, WEST)
    yield "from a port that nobody was told", {"unknown"}, Case().leaves(rtp(1, 1), 20500)


def all_found():
    missed = [f"{what}: found {c.found() or 'nothing'}, wanted {wanted or 'nothing'}" for what, wanted, c in rows() if c.found() != wanted]
    for text, bad in (("a=x\r\n", False), ("a=x\ry\r\n", True), ("a=\0\r\n", True), ("a=\x1b\r\n", True), ("k=clear:x\r\n", True),
                      ("a=key-mgmt:mikey x\r\n", True)):
        if bool(sdp.unclean(text)) != bad:
            missed.append(f"SDP {text!r}")
    for line in sdp.HOSTILE_LINES[:2]:  # also where the daemon has MIKEY of its own
        if not sdp.unclean(line, True):
            missed.append(f"SDP {line!r} with MIKEY")
    against_libsrtp()
    for line in missed:
        print(f"NOT OK control: {line}")
    if not missed:
        print(f"ok controls: {len(list(rows())) + 8}")
    return not missed


def against_libsrtp():
    """srtpkey.py and Debian's libsrtp2 can read each other's packets."""
    for suite in srtpkey.SUITES:
        if suite not in srtp.SET:
            continue
        material = bytes(range(srtpkey.key_len(suite)))
        key = srtpkey.Key(suite, material)
        assert srtp.Session(suite, material, srtp.INBOUND).unprotect(key.protect(rtp(1, 1))) == rtp(1, 1), suite
        assert key.open(srtp.Session(suite, material, srtp.OUTBOUND).protect(rtp(1, 1)), 0) == rtp(1, 1), suite

