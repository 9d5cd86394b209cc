#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SRTP+ in the kernel module, with the ring and with the queue. A flood that only tags tell from media, while the terminal loses,
reorders and jumps. All true packets pass. The module drops and counts wrong tags, and used ones of schemes with a window. Tags are those of a
second implementation."""
import os
import random
import struct
import time

import rig
from rig import equal, tap
import netns
from preauth_phone import PlusPhone
from test_ng import Phone, leaves, start, talk

# Whether there is a ring, and true packets: more than a window has.
CASES = {"sequence-aes": ("yes", 560), "chain": ("no", 240), "header-siphash": ("yes", 240), "sequence-fips": ("no", 160), "chain/8/8/64": ("yes", 160)}
FORGED, REPLAYED = 10, 30  # FORGED for each tenth of the true packets
REACH = {"chain/8/8/64": 4}  # how far ahead of the terminal forged packets are: their tags are known
COST = 1000
INSTRUCTION_NS = 4  # of this guest's clock


def dropped(daemon):
    return daemon.statistics().get("guard: tag", 0)


def chances(scheme):
    """One forged tag of so many is right."""
    return {"chain": 16, "chain/8/8/64": 256}.get(scheme, 1 << 32)


def forged_seen(daemon, a, b):
    """Wrong tags: dropped by the module, and by the daemon, which reads the module's counters with every eighth authentic packet."""
    tap(all(leaves(a, b) for _ in range(9)), f"{a.scheme}: media pass")
    s = daemon.statistics()
    return s.get("guard: tag", 0), s["drops"].get("forged-tag", 0)


def forge(phone, n):
    """Packets that only their tag gives away: the next sequence numbers, with their timestamps. Of "chain" a tag that may be right."""
    for _ in range(n):
        seq = phone.seq + 1 + random.randrange(REACH.get(phone.scheme, 20))
        tag = bytes([random.randrange(chances(phone.scheme))]) if phone.scheme.startswith("chain") else os.urandom(4)
        phone.sock.sendto(struct.pack("!BBHII", 0x80, 0, seq, seq * 160, phone.ssrc) + os.urandom(170) + tag, phone.to)


def guarded(daemon, a, b):
    end = time.monotonic() + 60 * rig.PATIENCE
    while not dropped(daemon) and time.monotonic() < end:
        forge(a, 40)
        if not leaves(a, b):
            break
    return dropped(daemon) > 0


def media(a, b):
    """True packets with a twentieth lost and some reordered, and forged ones between them. (true packets that did not arrive,
    forged packets)."""
    missing, forged = 0, 0
    for i in range(CASES[a.scheme][1]):
        if i % 10 == 0:
            forge(a, FORGED)
            forged += FORGED
        if i % 20 == 7:
            a.packet(b"lost")
        elif i % 20 == 13:
            late = a.packet(b"late")
            missing += not leaves(a, b)
            a.sock.sendto(late, a.to)
            missing += b.hears() != (0, b"late")
        else:
            missing += not leaves(a, b)
    return missing, forged


def busy_ns(a, packets, to):
    begin = time.monotonic_ns()
    for p in packets:
        a.sock.sendto(p, to)
    return time.monotonic_ns() - begin


def cost(net, a, ssrc):
    """Instructions by which the module drops a packet of this SSRC with a wrong tag: less those of a packet that netdev's ingress hook
    drops."""
    port = 9
    net.run(net.gateway, "nft", "add table netdev t; delete table netdev t; add table netdev t; add chain netdev t c { type filter hook ingress device g1 priority 0; }; "
            f"add rule netdev t c udp dport {port} drop")
    made = [struct.pack("!BBHII", 0x80, 0, a.seq + 1 + i % 8, a.seq * 160, ssrc) + os.urandom(174) for i in range(COST)]
    busy_ns(a, made, a.to)
    there = busy_ns(a, made, a.to)
    base = busy_ns(a, made, (a.to[0], port))
    return (there - base) / COST / INSTRUCTION_NS


def replay(a, b):
    """Sends packets a second time. The module knows their tags as used, but for the last ones, which were not reported yet."""
    sent = []
    for _ in range(REPLAYED + 20):
        sent.append(a.packet(b"once"))
        a.sock.sendto(sent[-1], a.to)
        b.hears()
    for p in sent[:REPLAYED]:
        a.sock.sendto(p, a.to)


def judge(scheme, forged, got, bad):
    """got: what the module dropped, and the daemon; bad: what SRTP refused."""
    if scheme.startswith("chain"):  # some tags are right by chance
        right = 1 / chances(scheme)
        tap(abs(bad - forged * right) < 6 * (forged * right * (1 - right)) ** 0.5 + 1, f"{scheme}: of {forged} forged packets SRTP refuses {bad}")
    else:
        equal(f"{scheme}: a forged packet that SRTP had to refuse", bad, 0)
    used = 0 if scheme == "header-siphash" else REPLAYED  # the tag of a header stays right: SRTP knows the replay
    equal(f"{scheme}: wrong and used tags that were dropped", sum(got) + bad, forged + used)
    tap(got[0] > 0.8 * forged, f"{scheme}: most of them by the module: {got[0]}")


def main(scheme):
    with netns.Net(("caller", "callee")) as net:
        net.forward()
        daemon = start(net, "--steering=kernel", f"--kernel-ring={CASES[scheme][0]}")
        a, b = PlusPhone(net, "caller", "10.200.1.2", scheme), Phone(net, "callee", "10.200.2.2", "80")
        talk(daemon.client, a, b, "attacked")
        tap(guarded(daemon, a, b), f"{scheme}: the module drops wrong tags")
        before, bad = forged_seen(daemon, a, b), daemon.statistics()["drops"]["bad-tag"]
        forge(a, 40)
        begun = leaves(a, b)  # the guard is there again if it ended meanwhile
        missing, forged = media(a, b)
        equal(f"{scheme}: true packets that do not arrive, with loss and reordering", missing + (not begun), 0)
        replay(a, b)
        equal(f"{scheme}: media pass after a replay, both ways", leaves(a, b) and leaves(b, a), True)
        jump(a, b, scheme)
        after = forged_seen(daemon, a, b)
        judge(scheme, forged + 40, [y - x for x, y in zip(before, after)], daemon.statistics()["drops"]["bad-tag"] - bad)
        long_jump(a, b, scheme)
        rig.note(f"{scheme}: {cost(net, a, a.ssrc):.0f} instructions per forged packet in the module")
        # A wrong tag does not count here: the guard of a stream without SRTP+ drops these, too.
        rig.note(f"{scheme}, other SSRC: {cost(net, a, a.ssrc ^ 1):.0f} instructions per forged packet in the module")
        rig.note({k: v for k, v in daemon.statistics().items() if k.startswith("guard: ") and v})
        rig.note({k: v for k, v in daemon.statistics()["drops"].items() if v})
        equal(f"{scheme}: the daemon ends", daemon.stop(), 0)


def jump(a, b, scheme):
    """By less than the window has."""
    if scheme == "sequence-aes":
        a.seq += 300
        tap(leaves(a, b), f"{scheme}: a jump within the window passes at once")


def long_jump(a, b, scheme):
    a.seq += 20000
    end = time.monotonic() + 60 * rig.PATIENCE
    while time.monotonic() < end:
        forge(a, 5)
        a.send(b"jumped")
        if b.hears(0.02):
            break
    tap(time.monotonic() < end, f"{scheme}: a longer jump passes after a while")
    while b.hears(0.3):
        pass
    tap(all(leaves(a, b) for _ in range(40)), f"{scheme}: media pass after the jump")


random.seed(1)
for s in CASES:
    rig.test(lambda s=s: main(s))
