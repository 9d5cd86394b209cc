# SPDX-License-Identifier: GPL-2.0-or-later
"""SRTP+: terminals in Python with libsrtp2 and the tags of t/preauth/reference.py, and two xcipherds in a row. Others notice
nothing of it."""
import os
import re
import struct
import sys

import calls
import idle
import relay
import test_ctl
import test_ng
import test_record
from baresip import wait_for
from run import cases

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
        block = self.sent.block(self.seq) if self.scheme == "chain" else b""
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


def drops(daemon, reason):
    return daemon.statistics()["drops"][reason]


def schemes_of(daemon, call_id):
    """The scheme of each party, by its tag."""
    tags = calls.ok(daemon.client.call("query", call_id=call_id))["tags"]
    return {name: t["medias"][0].get("SRTP+") for name, t in tags.items()}


@cases(*[(s,) for s in reference.SCHEMES])
def test_a_terminal_with_tags_and_one_without(net, scheme):
    daemon = test_ng.start(net)
    a, b = PlusPhone(net, "caller", "10.200.1.2", scheme), test_ng.Phone(net, "callee", "10.200.2.2", "32")
    offer = calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), **test_ng.wants(b)))["sdp"]
    assert PLUS not in offer
    calls.ok(daemon.client.call("delete", call_id="c", from_tag="a", delete_delay=0))
    test_ng.talk(daemon.client, a, b, "d")
    assert a.agreed
    assert schemes_of(daemon, "d") == {"a": scheme, "b": None}
    for i in range(40):
        assert test_ng.leaves(a, b) and test_ng.leaves(b, a), i
    assert a.unknown == (1 if scheme == "chain" else 0)  # of "chain" the first tag was not announced
    assert drops(daemon, "forged-tag") == drops(daemon, "bad-tag") == 0
    for i in range(10):  # wrong tags, in front of true packets
        a.send(b"forged", wrong=1 + i % 15)
    assert test_ng.leaves(a, b)
    wait_for("ten forged packets", lambda: drops(daemon, "forged-tag") == 10)
    a.send(b"forged", spoil=True)  # a right tag proves nothing
    wait_for("SRTP's refusal", lambda: drops(daemon, "bad-tag") == 1)
    assert test_ng.leaves(a, b) and test_ng.leaves(b, a)
    test_ng.finish(daemon)


def test_who_does_not_know_it_notices_nothing(net):
    """It is offered. One terminal ignores it, and one answers with another scheme."""
    daemon = test_ng.start(net, "--preauth=offer")
    a, b = test_ng.Phone(net, "caller", "10.200.1.2", "80"), test_ng.Phone(net, "callee", "10.200.2.2", "80")
    test_ng.talk(daemon.client, a, b, "c")
    assert schemes_of(daemon, "c") == {"a": None, "b": None} and test_ng.leaves(a, b) and test_ng.leaves(b, a)
    other = PlusPhone(net, "callee", "10.200.2.2", "chain")
    offer = calls.ok(daemon.client.call("offer", call_id="d", from_tag="a", sdp=a.sdp(), **test_ng.wants(other)))["sdp"]
    assert set(written(offer)) == {"sequence-aes"}
    other.told(offer)
    reply = daemon.client.call("answer", call_id="d", from_tag="a", to_tag="b", sdp=other.sdp())
    assert reply["result"] == "error", reply
    test_ng.finish(daemon)


def test_a_recording_has_no_tags_and_no_block(net):
    with test_record.Folder() as folder:
        daemon = test_ng.start(net, f"--recording-dir={folder.path}")
        a, b = PlusPhone(net, "caller", "10.200.1.2", "chain"), test_ng.Phone(net, "callee", "10.200.2.2", "AEAD_AES_128_GCM")
        test_ng.talk(daemon.client, a, b, "c")
        path = test_record.reply_file(daemon.client.call("start recording", call_id="c"))
        for _ in range(5):
            a.send(bytes(160))
            assert b.hears() == (0, bytes(160))
        calls.ok(daemon.client.call("stop recording", call_id="c"))
        test_record.closed(path)
        assert [p[3][12:] for p in test_record.packets(path)] == [bytes(160)] * 5
        test_ng.finish(daemon)


class Second(relay.Xcipherd):
    """A second daemon in the gateway."""
    ng_port = 22223

    def __init__(self, net, *options, **how):
        super().__init__(net, "--listen-ng=127.0.0.1:22223", *options, **how)


@cases(*[(s,) for s in reference.SCHEMES])
def test_two_xcipherds_in_a_row(net, scheme):
    """Only the leg between them has tags. A hold and its end keep them, a re-INVITE with "off" ends them."""
    both = ("--engine=serial", "--media-allow=10.200.1.1", "--media-allow=10.200.2.1")
    one = relay.Xcipherd(net, *both, addresses=("10.200.1.1",)).wait_ready()
    two = Second(net, *both, "--port-min=50000", "--port-max=50100", addresses=("10.200.2.1",)).wait_ready()
    a, b = test_ng.Phone(net, "caller", "10.200.1.2", "80"), test_ng.Phone(net, "callee", "10.200.2.2", "32")

    def invite(direction="sendrecv", **how):
        trunk = {"transport_protocol": "RTP/SAVP"}
        dialog = {"to_tag": "b"} if a.to else {}
        first = calls.ok(one.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(direction), **how, **trunk, **dialog))["sdp"]
        second = calls.ok(two.client.call("offer", call_id="c", from_tag="a", sdp=first, **test_ng.wants(b), **dialog))["sdp"]
        b.told(second)
        back = calls.ok(two.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"]
        last = calls.ok(one.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=back))["sdp"]
        a.told(last)
        idle.wait_idle()
        assert not written(second) + written(last)
        return set(written(first)), written(back)

    assert invite(preauth=f"offer:{scheme}") == ({scheme}, [scheme])
    assert f"  SRTP+: {scheme}\n" in test_ctl.said(net, "explain", "c")
    assert schemes_of(one, "c") == {"a": None, "b": scheme} and schemes_of(two, "c") == {"a": scheme, "b": None}
    for i in range(30):
        assert test_ng.leaves(a, b) and test_ng.leaves(b, a), i
    keys = (a.rx, b.rx)
    assert invite("sendonly") == invite() == ({scheme}, [scheme])
    a.rx, b.rx = keys  # libsrtp2's state: the keys are the same
    for i in range(30):
        assert test_ng.leaves(a, b) and test_ng.leaves(b, a), i
    assert invite(preauth="off") == (set(), [])
    a.rx, b.rx = keys
    assert test_ng.leaves(a, b) and test_ng.leaves(b, a)
    for daemon in (one, two):
        assert drops(daemon, "forged-tag") == drops(daemon, "bad-tag") == drops(daemon, "replay") == 0, daemon.statistics()["drops"]
        test_ng.finish(daemon)
