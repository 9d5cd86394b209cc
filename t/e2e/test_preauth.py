# SPDX-License-Identifier: GPL-2.0-or-later
"""SRTP+: terminals in Python with libsrtp2 and the tags of t/preauth/reference.py, and two xcipherds in a row. Others notice
nothing of it."""
import os
import re
import subprocess
import tempfile

import calls
import idle
import redisrig
import relay
import test_ctl
import test_ng
import test_record
import test_redis
import test_transcode
from baresip import wait_for
from preauth_phone import PLUS, PlusPhone, reference, written
from run import Skip, cases
from test_module import BOTH, needs, proxy, quoted


def drops(daemon, reason):
    return daemon.statistics()["drops"][reason]


def schemes_of(daemon, call_id):
    """The scheme of each party, by its tag."""
    tags = calls.ok(daemon.client.call("query", call_id=call_id))["tags"]
    return {name: t["medias"][0].get("SRTP+") for name, t in tags.items()}


@cases(*[(s,) for s in (*reference.SCHEMES, "chain/32/16/64")])
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
    assert a.unknown == (1 if a.sent.chain else 0)  # of "chain" the first tag was not announced
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
        wait_for("the end of the file", lambda: test_record.closed(path))
        got = [p[3][12:] for p in test_record.packets(path)]
        assert got == [bytes(160)] * 5, [len(g) for g in got]
        test_ng.finish(daemon)


class Second(relay.Xcipherd):
    """A second daemon in the gateway."""
    ng_port = 22223

    def __init__(self, net, *options, **how):
        super().__init__(net, "--listen-ng=127.0.0.1:22223", *options, **how)


@cases(*[(s,) for s in (*reference.SCHEMES, "chain/32/16/64")])
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


PSK = b"a key that both of them know"
# Keyings of the leg between two xcipherds: what is ordered of the first and the second one, and what its SDP has.
BETWEEN = {"DTLS": ({"transport_protocol": "UDP/TLS/RTP/SAVP"}, {}, "a=fingerprint:"),
           "ZRTP": ({"transport_protocol": "RTP/AVP", "ZRTP": ["terminate"]}, {"ZRTP": ["terminate"]}, "a=zrtp-hash:"),
           "MIKEY": ({"transport_protocol": "RTP/SAVP", "MIKEY": ["require", "psk"], "flags": ["MIKEY-peer=sip:two@example.com"]}, {},
                     "a=key-mgmt:mikey ")}


def mikey(folder, own, other):
    """The option for a daemon that shares a key with another."""
    path = os.path.join(folder, own + ".ini")
    for name, data in ((path, f"[self]\nidentity = sip:{own}@example.com\n[peer sip:{other}@example.com]\nmodes = psk\npsk-file = psk\n".encode()),
                       (os.path.join(folder, "psk"), PSK + b"\n")):
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
            f.write(data)
    return f"--mikey-config={path}"


class Pair:
    """Two phones, and two xcipherds in a row that may keep their calls in a Redis."""
    both = ("--engine=serial", "--media-allow=10.200.1.1", "--media-allow=10.200.2.1")

    def __init__(self, net, folder, keying, redis=None):
        self.net, self.redis, self.folder = net, redis, folder
        self.orders, self.orders_back, self.line = BETWEEN[keying]
        self.a, self.b = test_ng.Phone(net, "caller", "10.200.1.2", "80"), test_ng.Phone(net, "callee", "10.200.2.2", "32")
        self.one, self.two = self.start("one"), self.start("two")

    def start(self, name):
        stored = self.redis.daemon_options(int(name == "two")) if self.redis else ()
        if name == "one":
            return relay.Xcipherd(self.net, *self.both, *stored, mikey(self.folder, "one", "two"), addresses=("10.200.1.1",)).wait_ready()
        return Second(self.net, *self.both, *stored, mikey(self.folder, "two", "one"), "--port-min=50000", "--port-max=50100",
                      addresses=("10.200.2.1",)).wait_ready()

    def crash(self, name):
        """Its next process restores the call."""
        test_redis.settled(getattr(self, name))
        test_redis.kill(getattr(self, name))
        setattr(self, name, self.start(name))
        wait_for("the call", lambda: getattr(self, name).statistics()["redis"]["restored"] == 1)

    def invite(self, **how):
        """The schemes in the SDP between them, of the offer and of the answer."""
        one, two, a, b = self.one, self.two, self.a, self.b
        dialog = {"to_tag": "b"} if a.to else {}
        keys = (a.rx, b.rx) if a.to else None
        first = calls.ok(one.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), **self.orders, **how, **dialog))["sdp"]
        second = calls.ok(two.client.call("offer", call_id="c", from_tag="a", sdp=first, **test_ng.wants(b), **dialog))["sdp"]
        b.told(second)
        back = calls.ok(two.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp(), **self.orders_back))["sdp"]
        last = calls.ok(one.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=back))["sdp"]
        a.told(last)
        assert self.line in first and self.line in back and "preauth" not in second + last
        if keys:
            a.rx, b.rx = keys  # libsrtp2's state: the keys are the same
        idle.wait_idle()
        return [re.findall("a=xcipher-preauth:(.*)\r\n", x) for x in (first, back)]

    def relayed(self, tags):
        one, two, a, b = self.one, self.two, self.a, self.b
        wait_for("keys", lambda: schemes_of(one, "c")["b"] == schemes_of(two, "c")["a"] == tags and test_ng.leaves(a, b))
        assert schemes_of(one, "c")["a"] is None and schemes_of(two, "c")["b"] is None
        for i in range(30):
            assert test_ng.leaves(a, b) and test_ng.leaves(b, a), i

    def end(self):
        for daemon in (self.one, self.two):
            assert drops(daemon, "forged-tag") == drops(daemon, "bad-tag") == drops(daemon, "replay") == 0, daemon.statistics()["drops"]
            test_ng.finish(daemon)


@cases(*[(k, s) for k in BETWEEN for s in ("sequence-aes", "chain")])
def test_two_xcipherds_with_another_keying(net, keying, scheme):
    """Tags of the leg between them begin with the keys of the handshake, and a re-INVITE ends them under the same keys."""
    with tempfile.TemporaryDirectory() as folder:
        pair = Pair(net, folder, keying)
        assert pair.invite(preauth=f"offer:{scheme}") == [[scheme], [scheme]]
        pair.relayed(scheme)
        assert pair.invite() == [[scheme], [scheme]]
        pair.relayed(scheme)
        assert pair.invite(preauth="off") == [[], []]
        pair.relayed(None)
        pair.end()


# With DTLS a re-INVITE after a restart begins another association, if the certificate is not from a file: then some packets are lost.
@cases(*[(k, s) for k in ("ZRTP", "MIKEY") for s in ("sequence-aes", "chain/8/16/128")])
def test_tags_of_another_keying_survive_a_crash(net, keying, scheme):
    """Each of the two is killed in turn. Tags go on under the same keys, and a re-INVITE keeps them, then ends them."""
    if not redisrig.have():
        raise Skip("no redis-server")
    redis = redisrig.Redis(net)
    with tempfile.TemporaryDirectory() as folder:
        pair = Pair(net, folder, keying, redis)
        assert pair.invite(preauth=f"offer:{scheme}") == [[scheme], [scheme]]
        pair.relayed(scheme)
        for name in ("two", "one"):
            pair.crash(name)
            pair.relayed(scheme)
        assert pair.invite() == [[scheme], [scheme]]
        pair.relayed(scheme)
        assert pair.invite(preauth="off") == [[], []]
        pair.relayed(None)
        pair.end()
    redis.stop()


def library(folder):
    """t/preauth/baresip_plus.c, by which baresip speaks SRTP+."""
    path = os.path.join(folder, "baresip_plus.so")
    parts = [f"srtp/{n}.c" for n in ("preauth", "preauth_kind", "preauth_window", "kdf", "ref", "sha1_block", "suite", "g711")] + [f"base/{n}.c" for n in ("bytes", "secmem")]
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-std=gnu17", "-Wall", "-fvisibility=hidden", "-D_GNU_SOURCE", "-Idaemon", "-Ikernels", "-o", path,
                    "t/preauth/baresip_plus.c", *[f"daemon/{p}" for p in parts], "-ldl"], cwd=relay.ROOT, check=True)
    return path


def test_phones_that_speak_it(net):
    """Two baresips with a preloaded library. The caller offers SRTP+, and xcipherd offers it to the callee."""
    needs()
    if not os.access("/usr/bin/baresip", os.X_OK):
        raise Skip("baresip is not installed")
    daemon = relay.Xcipherd(net, "--engine=serial", "--preauth=offer", "--delete-delay=0", addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-plus-") as folder:
        plus = {"preload": library(folder), "codec": "PCMU"}
        kam = proxy(net, folder, XC_OFFER_FLAGS=quoted("RTP/SAVP ICE=remove replace-origin"), XC_ANSWER_FLAGS=quoted("ICE=remove replace-origin"))
        callee = test_transcode.baresip(net, folder, "callee", "SRTP", **plus)
        caller = test_transcode.baresip(net, folder, "caller", "SRTP", dial=f"sip:callee@{test_transcode.ADDRESS['callee']}", **plus)
        for phone in (caller, callee):
            phone.talks()
        for phone in (caller, callee):
            phone.records()
            said = wait_for("its count", lambda phone=phone: re.findall(r"SRTP\+: (\d+) right, (\d+) not known, (\d+) wrong", phone.log()))
            right, unknown, wrong = map(int, said[-1])
            assert right and unknown == 1 and not wrong, said  # nothing is known before the first packet
        schemes = schemes_of(daemon, daemon.client.call("list")["calls"][0])
        assert list(schemes.values()) == ["sequence-aes"] * 2, schemes
        assert drops(daemon, "forged-tag") == drops(daemon, "bad-tag") == 0, daemon.statistics()["drops"]
        for phone in (caller, callee):
            phone.stop()
        assert caller.heard(callee) > 0.9 and callee.heard(caller) > 0.9, (caller.heard(callee), callee.heard(caller))
        assert kam.stop() == 0
    daemon.stop()
