# SPDX-License-Identifier: GPL-2.0-or-later
"""SRTCP tags of 32 bits under ..._32 suites, where RFC 4568 6.2 has 80: detected and reported. They
are accepted and sent back only on request. The terminal's SRTCP comes from libsrtp2."""
import os
import socket
import struct

import calls
import ng
import srtp
from run import cases
from test_ng import Phone, finish, leaves, readable, start, wants
from baresip import wait_for


class Reporter(Phone):
    """A phone with an RTCP port; tag: bytes of its SRTCP tags."""

    def __init__(self, net, where, address, suite=None, tag=0):
        super().__init__(net, where, address, suite)
        self.tag = tag
        self.rtcp = ng.socket_in(net.terminal[where], socket.AF_INET)
        self.rtcp.bind((address, self.port + 1))
        self.rtcp_tx = srtp.Session(self.suite.name, self.key, srtp.OUTBOUND, tag) if suite else None
        self.rtcp_rx = None

    def told(self, sdp):
        super().told(sdp)
        if self.suite:
            key = next(c[2] for c in calls.parse(sdp)["crypto"] if c[1] == self.suite.name)
            self.rtcp_rx = srtp.Session(self.suite.name, key, srtp.INBOUND, self.tag)
        return self

    def report(self, forged=False):
        """Sends a sender report with a random time and returns that time."""
        word = os.urandom(8)
        packet = struct.pack("!BBHI", 0x80, 200, 6, self.ssrc) + word + bytes(12)
        packet = self.rtcp_tx.protect_rtcp(packet) if self.rtcp_tx else packet
        if forged:
            packet = packet[:-1] + bytes([packet[-1] ^ 1])
        self.rtcp.sendto(packet, (self.to[0], self.to[1] + 1))
        return word

    def told_of(self, timeout=0.3):
        """The time of the next report, or None. Fails if the report is not authentic."""
        if not readable(self.rtcp, timeout):
            return None
        packet = self.rtcp.recv(2048)
        packet = self.rtcp_rx.unprotect_rtcp(packet) if self.rtcp_rx else packet
        assert packet is not None, "not authentic"
        return packet[8:16]


def reports(a, b, timeout=30.0):
    word = a.report()
    return b.told_of(timeout) == word


def begin(net, tag, *options, flags=(), engine="serial"):
    daemon = start(net, *options, engine=engine)
    a, b = Reporter(net, "caller", "10.200.1.2", "32", tag), Reporter(net, "callee", "10.200.2.2")
    b.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), flags=list(flags), **wants(b)))["sdp"])
    a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
    for x, y in ((a, b), (b, a)):
        x.send(b"hello")
        assert y.hears() == (0, b"hello")
    return daemon, a, b


def drops(daemon):
    """Drops of the caller's RTCP, by cause."""
    return daemon.client.call("query", call_id="c")["tags"]["a"]["medias"][0]["streams"][1].get("drops", {})


def lines(daemon):
    return [x for x in daemon.text().splitlines() if "32-bit SRTCP tag" in x]


def test_short_tags_are_named_and_not_accepted(net):
    daemon, a, b = begin(net, 4)
    for n in range(1, 4):
        a.report()
        wait_for("the cause", lambda n=n: drops(daemon).get("srtcp-tag-32") == n)
    assert b.told_of() is None, "accepted"
    wait_for("a line of the log", lambda: lines(daemon))
    assert "srtcp-tag-32=yes" in lines(daemon)[0] and 'tag "a"' in lines(daemon)[0]
    explained = calls.ok(daemon.client.call("explain", call_id="c"))
    leg = explained["legs"][0]
    assert leg["RTCP dropped"] == "3 srtcp-tag-32" and "dropped" not in leg, leg
    assert leg["trouble"].startswith("32-bit SRTCP tag in 3 packets") and "--srtcp-tag-32=yes" in leg["trouble"], leg
    assert [e["tag"] for e in explained["events"] if "SRTCP tags have 32 bits" in e["text"]] == ["a"], explained["events"]
    # Each failure costs a second HMAC, so only some are tested.
    for _ in range(40):
        a.report()
    wait_for("the others", lambda: sum(drops(daemon).values()) == 43)
    assert drops(daemon)["srtcp-tag-32"] < 43, drops(daemon)
    assert len(lines(daemon)) == 1, lines(daemon)
    finish(daemon)


@cases(("option", "serial"), ("option", "opencl"), ("flag", "serial"))
def test_short_tags_are_accepted_and_answered_in_kind(net, how, engine):
    daemon, a, b = begin(net, 4, *(["--srtcp-tag-32=yes"] if how == "option" else []),
                         flags=["SRTCP-tag-32"] if how == "flag" else [], engine=engine)
    a.report()
    wait_for("the cause", lambda: drops(daemon).get("srtcp-tag-32") == 1)
    for _ in range(3):
        assert reports(a, b) and reports(b, a)
    a.report(forged=True)
    wait_for("the forgery", lambda: drops(daemon).get("bad-tag") == 1)
    assert b.told_of() is None and reports(a, b)
    wait_for("a line of the log", lambda: lines(daemon))
    assert "answered in kind" in lines(daemon)[0]
    # A session refresh changes nothing.
    calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", to_tag="b", sdp=a.sdp(), **wants(b)))
    calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp()))
    assert reports(a, b) and reports(b, a) and leaves(a, b) and leaves(b, a)
    finish(daemon)


def cut(a, b, before):
    """An attacker truncates an authentic packet's tag to 32 bits, repeatedly. before: the
    terminal's own packet arrives first."""
    for n in range(4):
        packet = a.rtcp_tx.protect_rtcp(struct.pack("!BBHI", 0x80, 200, 6, a.ssrc) + os.urandom(8) + bytes(12))
        if before:
            a.rtcp.sendto(packet, (a.to[0], a.to[1] + 1))
            assert b.told_of(30)
        a.rtcp.sendto(packet[:-6], (a.to[0], a.to[1] + 1))


@cases(("no",), ("yes",))
def test_a_truncated_tag_of_80_bits_is_no_short_one(net, option):
    daemon, a, b = begin(net, 0, f"--srtcp-tag-32={option}")
    cut(a, b, before=True)
    wait_for("all of them", lambda: sum(drops(daemon).values()) == 4)
    assert reports(a, b) and reports(b, a), drops(daemon)
    assert "srtcp-tag-32" not in drops(daemon) and not lines(daemon), lines(daemon)
    finish(daemon)


def test_the_first_tag_of_80_bits_ends_short_ones(net):
    """Truncated before the relay received a tag of 80 bits."""
    daemon, a, b = begin(net, 0, "--srtcp-tag-32=yes")
    cut(a, b, before=False)
    wait_for("the first", lambda: drops(daemon).get("srtcp-tag-32") == 1)
    while b.told_of():
        pass

    def back():
        a.report()
        return b.told_of() is not None

    wait_for("tags of 80 bits", back)
    assert reports(a, b) and reports(b, a), drops(daemon)
    cut(a, b, before=True)
    assert reports(a, b) and reports(b, a), drops(daemon)
    finish(daemon)


@cases(("no",), ("yes",))
def test_tags_of_80_bits_stay(net, option):
    """The same while an attacker forges short tags."""
    daemon, a, b = begin(net, 0, f"--srtcp-tag-32={option}")
    assert reports(a, b) and reports(b, a)
    sound, a.rtcp_tx = a.rtcp_tx, srtp.Session(a.suite.name, os.urandom(30), srtp.OUTBOUND, 4)
    for _ in range(4):
        a.report()
    wait_for("forgeries", lambda: drops(daemon).get("bad-tag") == 4)
    a.rtcp_tx = sound
    assert reports(a, b) and reports(b, a) and "srtcp-tag-32" not in drops(daemon)
    finish(daemon)
