#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet rings on one processor: what arrives, what is sent, full rings, wake-ups, and requests that
must be refused."""
import socket

import rig
from rig import equal, tap
import netns
import ng

UDP_SEGMENT = 103
# How many of five packets of each kind reach the ring. "any": kinds with hardly any payload.
KINDS = {
    False: {"good": 5, "options": 5, "bad-checksum": 0, "no-checksum": 5, "udp-long": 0, "udp-short": 0, "udp-zero": 0, "cut": 0, "cut-ip": 0, "cut-all": 0,
            "ihl-4": 0, "ihl-15": 0, "total-long": 0, "total-short": 0, "ttl-1": 5, "udp-less": "any", "frag-first": 0, "frag-rest": 0},
    True: {"good": 5, "bad-checksum": 0, "no-checksum": 0, "udp-long": 0, "udp-short": 0, "udp-zero": "any", "cut": 0, "cut-ip": 0, "cut-all": 0,
           "hop": 5, "dest": 5, "ext-long": 0, "ext-ah": 0, "ttl-1": 5, "udp-less": "any", "frag-first": 0, "frag-rest": 0},
}


def brief(r):
    return r["got"], r["dup"], r["late"], r["bad"]


def targets(nfx, w, more=""):
    """Port 30000 receives to the ring; port 30002 is where it sends from."""
    nfx.ok(w.target("queue", f"queue=99 {more}"))
    nfx.ok(f"set +create addr={w.h} port=30002 action=queue queue=99")


def run(nfx, w, more):
    nfx.ok(f"ring run {w.h},30002,{w.b},5000 {more}")


def forwards(nfx, w):
    targets(nfx, w, "cookie=77")
    run(nfx, w, "wake=16 window=5000000")
    r = w.flow("--count", 500, "--rate", 5000, "--tos", 0x20)[0]
    equal(f"{w.name}: the ring loses, repeats, reorders, changes nothing, over many rounds", brief(r), (500, 0, 0, 0))
    equal(f"{w.name}: packets leave from the worker's port, with its TOS", (r["from"], r["tos"]), (f"{w.h},30002", 0x20))
    ran, state = nfx.ring_stop()
    equal(f"{w.name}: every packet once", (ran["got"], ran["failed"], ran["ended"]), (500, 0, 0))
    tap(ran["wakes"] < 250 and ran["largest"] > 1, f"{w.name}: several packets a wake-up ({ran})")
    c = nfx.ok(f"get addr={w.g} port=30000")[0]
    equal(f"{w.name}: counted", (c["RTP_PACKETS"], c["QUEUED"], c["RING_DROPS"]), (500, 500, 0))
    equal(f"{w.name}: sending too", nfx.ok(f"get addr={w.h} port=30002")[0]["SENT"], 500)
    run(nfx, w, "wake=1 window=0")
    equal(f"{w.name}: large packets pass", brief(w.flow("--count", 50, "--size", 1400)[0]), (50, 0, 0, 0))
    for kind in ("stun", "dtls"):
        equal(f"{w.name}: {kind} goes to the socket", brief(w.flow("--count", 5, "--kind", kind, recv=["g"])[0]), (5, 0, 0, 0))
    equal(f"{w.name}: RTCP goes to the ring", brief(w.flow("--count", 5, "--kind", "rtcp")[0]), (5, 0, 0, 0))
    equal(f"{w.name}: that is all", nfx.ring_stop()[0]["got"], 55)


def wakes(nfx, w, wait):
    how = "in its bell" if wait else "in epoll"
    nfx.ok("ring open 64 64")
    targets(nfx, w)
    run(nfx, w, f"wake=8 window=1000000000 wait={wait}")
    r = w.flow("--count", 64, "--rate", 2000)[0]
    ran, state = nfx.ring_stop()
    equal(f"{w.name}, {how}: woken at eight packets", (brief(r), state["WAKES_PACKETS"], state["WAKES_WINDOW"], ran["largest"]), ((64, 0, 0, 0), 8, 0, 8))
    nfx.ok("ring close")
    nfx.ok("ring open 64 64")
    run(nfx, w, f"wake=64 window=10000000 wait={wait}")
    r = w.flow("--count", 50, "--rate", 1000)[0]
    ran, state = nfx.ring_stop()
    equal(f"{w.name}, {how}: a window loses nothing", brief(r), (50, 0, 0, 0))
    tap(state["WAKES_PACKETS"] == 0 and 0 < state["WAKES_WINDOW"] <= 10, f"{w.name}, {how}: woken once a window ({state['WAKES_WINDOW']} for 50 ms)")
    nfx.ok("ring close")


def full(nfx, w):
    """32 slots: 28 for ordinary packets."""
    nfx.ok("ring open 32 32")
    targets(nfx, w, "cookie=5")
    w.flow("--count", 40, "--size", 200, "--tos", 8, recv=[])
    nfx.ok("ring wait 28")
    seen = nfx.ok("ring look")
    equal(f"{w.name}: a full ring keeps the first packets", len(seen), 28)
    equal(f"{w.name}: with all that is known about them",
          {(x["len"], x["emergency"], x["tos"], x["cookie"], x["first"], x["age"], x["from"], x["addr"]) for x in seen},
          {(200, 0, 8, 5, 128, 1, f"{w.a},4000", f"{w.g},30000")})
    equal(f"{w.name}: the others are counted", nfx.ok(f"get addr={w.g} port=30000")[0]["RING_DROPS"], 12)
    targets(nfx, w, "flags=emergency")
    w.flow("--count", 10, recv=[])
    nfx.ok("ring wait 32")
    equal(f"{w.name}: emergency calls have the last slots", [x["emergency"] for x in nfx.ok("ring look")], [0] * 28 + [1] * 4)
    nfx.ok("ring bell taken=32")
    s = nfx.ok("ring state")[0]
    equal(f"{w.name}: dropped ones are counted apart", (s["FULL"], s["FULL_EMERGENCY"], s["PACKETS"]), (12, 6, 32))
    targets(nfx, w)
    w.flow("--count", 20, recv=[])
    nfx.ok("ring wait 52")
    equal(f"{w.name}: freed slots are used again", len(nfx.ok("ring look")), 20)
    equal(f"{w.name}: armed while packets wait: not asleep", nfx.ok("ring bell flags=1 released=32 taken=32 wake=1")[0]["armed"], 0)
    equal(f"{w.name}: armed when all are taken", nfx.ok("ring bell flags=1 taken=52 wake=1")[0]["armed"], 1)
    w.flow("--count", 1, "--size", 1472 if not w.v6 else 1452, recv=[])
    nfx.ok("ring wait 53")
    equal(f"{w.name}: a packet disarms", nfx.ok("ring state")[0]["armed"], 0)
    nfx.ok("ring close")
    equal(f"{w.name}: a closed ring has no doorbell", nfx("ring bell")[0], -2)
    nfx.ok("ring open 16 16 room=100")
    w.flow("--count", 3, "--size", 101, recv=[])
    w.flow("--count", 1, "--size", 100, recv=[])
    nfx.ok("ring wait 1")
    nfx.ok("ring bell")
    equal(f"{w.name}: what is longer than a slot is dropped", nfx.ok("ring state")[0]["TOO_LONG"], 3)
    nfx.ok("ring close")


def malformed(nfx, w):
    nfx.ok("ring open 256 16")
    targets(nfx, w)
    mac = rig.run(["ip", "netns", "exec", w.net.gateway, "cat", "/sys/class/net/g1/address"]).strip()
    published, wrong = 0, []
    for kind, wanted in KINDS[w.v6].items():
        rig.run(["/build/t/pktx", "raw", "--dev", f"{w.net.terminal['caller']},t1,{mac}", "--from", f"{w.a},4000", "--to", f"{w.g},30000",
                 "--kind", kind, "--count", 5])
        rig.settled()
        got, published = nfx.ok("ring state")[0]["published"] - published, nfx.ok("ring state")[0]["published"]
        if wanted not in (got, "any"):
            wrong.append((kind, got, wanted))
    equal(f"{w.name}: {len(KINDS[w.v6])} kinds of malformed packets", wrong, [])
    nfx.ok("ring close")


def coalesced(nfx, w):
    """One system call sends four datagrams, which veth passes on as one."""
    nfx.ok("ring open 16 16")
    targets(nfx, w)
    counters = lambda: [nfx.ok(f"get addr={w.g} port=30000")[0][name] for name in ("RTP_PACKETS", "QUEUED", "RING_DROPS")]
    before = counters()
    with ng.socket_in(w.net.terminal["caller"], socket.AF_INET6 if w.v6 else socket.AF_INET) as s:
        s.bind((w.a, 4000))
        s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 100)
        s.sendto(b"".join(bytes([0x80, 0]) + bytes(97) + bytes([n]) for n in range(4)), (w.g, 30000))
    nfx.ok("ring wait 4")
    equal(f"{w.name}: coalesced packets are split", [(x["len"], x["first"], x["last"]) for x in nfx.ok("ring look")], [(100, 128, n) for n in range(4)])
    equal(f"{w.name}: and counted", [a - b for a, b in zip(counters(), before)], [4, 4, 0])
    nfx.ok("ring close")


def refused(nfx, w):
    for said in ("slots=48", "slots=8", "slots=131072", "first=32", "stride=96", "stride=0", "room=0", "room=4096", "length=4096", "length=0", "length=999999999",
                 "memory=4097", "control=4097", "sends=0", "sends=99999999", "event=0", "bell=0", "poll=0", "poll=3", "poll=99", "shared=1", "unmapped=1", "readonly=1",
                 "memory=0xffff800000000000", "control=0x7ffffffff000", "slots=65536 stride=65472"):
        code, text, _ = nfx(f"ring open 16 16 {said}")
        tap(code < 0 and text, f"{w.name}: a ring with {said} is refused ({code} {text})")
    nfx.ok("ring open 16 16")
    equal("one ring an owner", nfx("ring open 16 16")[0], -16)


def nobody(other):
    other.ok("ring prepare 16 16")
    other.ok("ring register")
    code, text, _ = other("ring register nobody=1")
    equal("a process that has lost CAP_NET_ADMIN opens no ring, though it owns targets", (code, text), (-1, ""))
    equal("and closes none", other("ring close")[0], -1)


def sends(nfx, w, other):
    nfx.ok("ring open 16 16")
    targets(nfx, w)
    ends = f"{w.h},30002,{w.b},5000"
    result = lambda more: nfx.ok(f"ring send {more}")[0]["result"]
    equal(f"{w.name}: a right descriptor", result(ends), 0)
    equal(f"{w.name}: as long as UDP allows", result(f"{ends} len=30000"), 0)
    for bad in ("len=0", "len=65508", "off=0xffffffff", "off=36800 len=200", "family=0", "family=99", "reserved=1", "ifindex=0xffffffff"):
        equal(f"{w.name}: {bad} is refused", result(f"{ends} {bad}"), 22)
    zero, multi = ("::", "ff02::1") if w.v6 else ("0.0.0.0", "224.0.0.1")
    equal(f"{w.name}: no destination", (result(f"{w.h},30002,{zero},5000"), result(f"{w.h},30002,{w.b},0")), (22, 22))
    equal(f"{w.name}: multicast", result(f"{w.h},30002,{multi},5000"), 101)
    equal(f"{w.name}: from a port without target", result(f"{w.h},30004,{w.b},5000"), 13)
    other.ok(f"set +create addr={w.h} port=30006 action=pass")
    equal(f"{w.name}: from another owner's port", result(f"{w.h},30006,{w.b},5000"), 13)
    nfx.ok(f"set +create addr={w.h.replace('1', '9')} port=30008 action=pass")
    if not w.v6:  # IPv6 sends from any target's address, as relays do
        equal(f"{w.name}: from an address that is not ours", result(f"{w.h.replace('1', '9')},30008,{w.b},5000"), 101)
    for bad in ("released=1 taken=0", "taken=1", "released=0xffffffff taken=0", "flags=2", "flags=1 wake=0", "flags=1 wake=17", "sends=17",
                "window=1000000001", "reserved=1"):
        equal(f"{w.name}: a bell with {bad} is refused", nfx(f"ring bell {bad}")[0], -22)
    equal(f"{w.name}: another ring's bell", (nfx("ring bell number=5")[0], nfx("ring bell number=63")[0]), (-2, -2))
    equal(f"{w.name}: no bell", nfx("ring bell number=64")[0], -92)
    other.ok("ring open 16 16")
    equal(f"{w.name}: another owner's ring", (other("ring bell number=0")[0], nfx("ring bell number=1")[0], other("ring bell")[0]), (-1, -1, 0))
    other.ok("ring close")
    nfx.ok("ring bell")
    s = nfx.ok("ring state")[0]
    equal(f"{w.name}: all are counted", (s["SENT"], s["SENT_BYTES"], s["BAD_SENDS"], s["FAILED_SENDS"]), (2, 30100, 12, 1 if w.v6 else 2))
    nfx.ok("ring close")


with netns.Net(("caller", "callee")) as net:
    rig.one_processor()
    nfx, other = rig.Nfx(net.gateway), rig.Nfx(net.gateway)
    code, text, _ = nfx("ring open 16 16")
    equal("no ring without HELLO", code, -1)
    nfx.hello(owner=1)
    other.hello(owner=2)
    for w in (rig.Way(net, False), rig.Way(net, True)):
        nfx.ok("ring open 64 64")
        rig.test(lambda: forwards(nfx, w))
        nfx("ring close")
        rig.test(lambda: full(nfx, w))
        nfx("ring close")
        for wait in (0, 1):
            rig.test(lambda: wakes(nfx, w, wait))
        nfx("ring close")
        rig.test(lambda: sends(nfx, w, other))
        nfx("ring close")
        rig.test(lambda: malformed(nfx, w))
        nfx("ring close")
        rig.test(lambda: coalesced(nfx, w))
        nfx("ring close")
    rig.test(lambda: refused(nfx, w))
    rig.test(lambda: nobody(other))
    nfx.close()
    other.close()
