#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the ends of zrtp_peer.py against each other, in simulated time, and against the vectors of reference.py. Last line: "ok"."""
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import peer_agree  # noqa: E402
import peer_keys  # noqa: E402
import peer_sas  # noqa: E402
import peer_wire as wire  # noqa: E402
from zrtp_peer import EITHER, INITIATOR, RESPONDER, Peer, Settings  # noqa: E402
from peer_cache import Cache  # noqa: E402


class Line:
    """Two ends, and the packets between them. spoil(sender, packet): packets that arrive for it."""

    def __init__(self, a, b, spoil=lambda sender, packet: [packet]):
        self.ends, self.spoil, self.now, self.seen = (a, b), spoil, 0.0, []

    def run(self, until, seconds=60):
        end = self.now + seconds
        while not until():
            assert self.now < end, ([(e.state, e.alarms, e.errors) for e in self.ends], self.seen[-20:])
            for sender, taker in (self.ends, self.ends[::-1]):
                packets, sender.out = sender.out, []
                for packet in packets:
                    self.seen.append(wire.kind_of(packet))
                    for arriving in self.spoil(sender, packet):
                        taker.take(arriving, self.now)
            self.now += 0.01
            for e in self.ends:
                e.tick(self.now)
        return self

    def begin(self):
        for e in self.ends:
            e.start(self.now)
        return self

    def secure(self):
        self.run(lambda: all(e.state == "secure" for e in self.ends))
        a, b = self.ends
        assert a.sends() == b.receives() and a.receives() == b.sends() and a.sends() != b.sends() and a.suite() == b.suite()
        assert a.sas == b.sas and a.role != b.role
        return self


def pair(a=None, b=None, **how):
    """Settings of both ends."""
    return Line(Peer(a or Settings(), 1, how.get("cache_a")), Peer(b or Settings(), 2, how.get("cache_b")), how.get("spoil", lambda s, p: [p]))


def check_combinations():
    for agreement in peer_agree.SIZES:
        for hash_name, cipher, tag, sas in ((b"S256", b"AES1", b"HS32", b"B32 "), (b"S384", b"AES3", b"HS80", b"B256")):
            offers = {"agreement": [agreement], "hash": [hash_name, b"S384"], "cipher": [cipher], "tag": [tag], "sas": [sas]}
            for roles in ((INITIATOR, RESPONDER), (EITHER, EITHER)):
                line = pair(*(Settings(offers=offers, role=role) for role in roles)).begin().secure()
                a = line.ends[0]
                assert a.chosen["agreement"] == agreement and a.chosen["tag"] == tag and a.chosen["sas"] == sas
                assert roles[0] != INITIATOR or a.role == peer_keys.INITIATOR
                assert not a.alarms or set(a.alarms) == {"a Commit that loses"}, a.alarms


def check_losses():
    """Half of all packets are lost, and others are repeated or changed."""
    rng = random.Random(1)

    def spoil(_sender, packet):
        packet = bytearray(packet)
        if rng.random() < 0.2:
            packet[rng.randrange(len(packet))] ^= 1 << rng.randrange(8)
        return [bytes(packet)] * rng.choice((0, 0, 1, 2))
    for _ in range(40):
        pair(Settings(retries=100), Settings(retries=100), spoil=spoil).begin().secure()


def check_contention():
    for larger in (True, False):
        line = pair()
        a, b = line.ends
        commits = {}

        def draw(commit, end, commits=commits, larger=larger):
            """The second Commit is larger, or smaller, than the first."""
            if commits:
                return (commit.weight() > next(iter(commits.values()))) == larger
            commits[end] = commit.weight()
            return True
        a.draw, b.draw = lambda c, d=draw: d(c, "a"), lambda c, d=draw: d(c, "b")
        line.begin().secure()
        assert (b if larger else a).role == peer_keys.INITIATOR, (a.role, b.role)


def check_secrets():
    """Retained secrets, a lost update, a mismatch, preshared mode and its fall-back to public keys."""
    a, b = Cache(), Cache()
    first = pair(cache_a=a, cache_b=b).begin().secure()
    assert a.found[b.zid] == b.found[a.zid] and "rs1" in a.found[b.zid] and not first.ends[0].matched.get("rs1")
    for end in first.ends:
        end.compared()
    second = pair(cache_a=a, cache_b=b).begin().secure()
    assert all(e.matched["rs1"] and e.verified and not e.mismatched for e in second.ends)
    old = dict(a.found[b.zid])
    pair(cache_a=a, cache_b=b).begin().secure()
    a.found[b.zid] = dict(old)  # its Conf2ACK was lost for good
    assert all(e.matched["rs1"] == old["rs1"] for e in pair(cache_a=a, cache_b=b).begin().secure().ends)
    by_prsh = pair(Settings(preshared=True), Settings(preshared=True, role=RESPONDER), cache_a=a, cache_b=b).begin().secure()
    assert all(e.chosen["agreement"] == b"Prsh" for e in by_prsh.ends) and b"DHPart1 " not in by_prsh.seen
    assert a.found[b.zid]["rs1"] == b.found[a.zid]["rs1"]
    del b.found[a.zid]
    back = pair(Settings(preshared=True), Settings(preshared=True), cache_a=a, cache_b=b)
    back.begin().secure()
    assert all(e.chosen["agreement"] != b"Prsh" for e in back.ends) and back.ends[0].mismatched


def check_streams():
    line = pair(cache_a=Cache(), cache_b=Cache()).begin().secure()
    for roles in ((EITHER, EITHER), (INITIATOR, RESPONDER), (RESPONDER, INITIATOR)):
        more = Line(*(Peer(Settings(role=role), 3, first=end) for end, role in zip(line.ends, roles))).begin().secure()
        assert all(e.chosen["agreement"] == b"Mult" and e.sas is None for e in more.ends) and b"DHPart2 " not in more.seen
        assert more.ends[0].sends() != line.ends[0].sends()


def check_clear():
    allowed = Settings(allow_clear=True)
    line = pair(allowed, allowed).begin().secure()
    a, b = line.ends
    before = a.sends()
    a.go_clear(line.now)
    line.run(lambda: a.state == b.state == "clear")
    b.secure_again(line.now)
    line.secure()
    assert a.chosen["agreement"] == b"Mult" and before not in (a.sends(), b.sends())
    line = pair().begin().secure()
    a, b = line.ends
    a.go_clear(line.now)
    line.run(lambda: a.errors == [0x100])
    assert a.state == b.state == "secure"


def check_pbx():
    """A PBX enrols one terminal, and relays the SAS of the other one to it alone."""
    caches = Cache(), Cache(), Cache()
    pbx, phone = Settings(mitm=True, asks_enrol=True), Settings(enrols=True)
    enrolled = pair(pbx, phone, cache_a=caches[0], cache_b=caches[1]).begin().secure()
    assert enrolled.ends[1].enrolment_offered and caches[1].found[caches[0].zid]["pbx"] == caches[0].found[caches[1].zid]["pbx"]
    near = pair(Settings(mitm=True), cache_a=caches[0], cache_b=caches[1]).begin().secure()
    words = {"sas": [b"B256"]}
    far = pair(Settings(mitm=True, offers=words), Settings(offers=words), cache_a=caches[0], cache_b=caches[2]).begin().secure()
    near.ends[0].relay_sas(b"B256", far.ends[0].sas_hash, near.now)
    far.ends[0].relay_sas(b"B256", near.ends[0].sas_hash, far.now)
    for line in (near, far):
        line.run(lambda line=line: line.ends[1].relays and not line.ends[0].after_timer.text)
    assert near.ends[1].shown() == far.ends[1].shown() == far.ends[1].sas and ":" in far.ends[1].sas
    assert far.ends[1].relayed is None and far.ends[1].relays == [(b"B256", bytes(32))]


def check_errors():
    """Each wrong value ends the exchange with its own Error, which the other end confirms."""
    def after(a, b, code, spoil=lambda s, p: [p], ready=lambda line: None):
        line = pair(a, b, spoil=spoil)
        ready(line)
        line.begin().run(lambda: any(e.error == code and not e.error_timer.text for e in line.ends))
        assert any(code in e.errors for e in line.ends), code
    after(Settings(version=b"1.00"), None, 0x30)
    after(None, None, 0x90, ready=lambda line: setattr(line.ends[0], "zid", line.ends[1].zid) or
          setattr(line.ends[0], "hello", line.ends[0].make_hello(b"1.10")))
    for kind, code in (("hash", 0x51), ("cipher", 0x52), ("agreement", 0x53), ("tag", 0x54), ("sas", 0x55)):
        def other(line, kind=kind):
            a = line.ends[0]
            right = a.choose
            a.choose = lambda agreement: {**right(agreement), kind: {"hash": b"N256"}.get(kind, b"2FS1")}
            a.is_dh = lambda: True
            a.part = lambda name: wire.dhpart(name, a.chain, [bytes(8)] * 4, bytes(64))
            if kind == "hash":
                peer_keys.peer_kdf.HASHES["N256"] = peer_keys.peer_kdf.HASHES["S256"]
        after(Settings(role=INITIATOR), Settings(role=RESPONDER), code, ready=other)
    peer_keys.peer_kdf.HASHES.pop("N256")

    def small(line):
        right = line.ends[0].part
        line.ends[0].part = lambda name: right(name) and wire.dhpart(name, line.ends[0].chain, [bytes(8)] * 4, (1).to_bytes(384, "big"))
    after(Settings(role=INITIATOR, offers={"agreement": [b"DH3k"]}), Settings(role=RESPONDER), 0x61, ready=small)

    def unbound(line):
        line.ends[0].draw = lambda commit: line.ends[0].messages.update({b"DHPart2 ": line.ends[0].part(b"DHPart2 ")}) is None
    after(Settings(role=INITIATOR), Settings(role=RESPONDER), 0x62, ready=unbound)


def check_signalling():
    line = pair()
    a, b = line.ends
    a.expect(b.zrtp_hash())
    b.expect(a.zrtp_hash())
    line.begin().secure()
    line = pair()
    line.ends[0].expect("1.10 " + "00" * 32)
    line.begin().run(lambda: "hash of a Hello" in line.ends[0].alarms)
    assert line.ends[0].theirs is None


def check_ping():
    line = pair().begin().secure()
    a, b = line.ends
    a.ping(b"endpoint")
    line.run(lambda: a.acks)
    assert a.acks == [[b"1.10", b.zid[:8], b"endpoint", (1).to_bytes(4, "big")]]


def check_vectors():
    with open(os.path.join(HERE, "..", "vectors", "zrtp.json"), encoding="ascii") as f:
        vectors = json.load(f)
    kinds = {wire.KINDS[0]: "hash", "cipher": "cipher", "agreement": "agreement"}
    for v in vectors:
        v = {k: bytes.fromhex(x) if isinstance(x, str) and k not in (*kinds.values(), "sas") else x for k, x in v.items()}
        chosen = {k: v[k].encode() for k in kinds.values()}
        messages = [v["hello_r"], v["commit"]] + ([v["dhpart1"], v["dhpart2"]] if v["result"] else [])
        shared = {name: v[name] for name in v["shared"]}
        k = peer_keys.Keys(chosen, v["zid_i"] + v["zid_r"], messages, shared, session=v["session"], result=v["result"])
        assert k.srtp("i") == v["srtp_key_i"] + v["srtp_salt_i"] and k.sas_hash == v["sas_hash"] and k.rs1 == v["new_rs1"] and k.pbx == v["new_pbx"]
        for role in "ir":
            assert b"".join(peer_keys.identifiers(v["hash"], v, role, v["hello_" + role][32:64])) == v["ids_" + role]
            ids = [v["ids_" + role][i:i + 8] for i in range(0, 32, 8)]
            assert peer_keys.matching(v["hash"], v, role, v["hello_" + role][32:64], ids) == {n: v[n] for n in ("rs1", "aux", "pbx")}
    assert peer_sas.render(b"B256", bytes.fromhex("e582")) == "topmost:Istanbul"  # of the list's description
    assert wire.crc32c(b"123456789") == 0xe3069283


if __name__ == "__main__":
    for name, function in list(globals().items()):
        if name.startswith("check_"):
            function()
    print("ok")
