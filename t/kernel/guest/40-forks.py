#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets that relay to targets of the same host, even to themselves; packets that are too large
for the link, or several coalesced."""
import subprocess

import rig
from rig import equal, tap
import netns

PACKETS, SEGMENTS, SIZE = 5, 8, 172
# One system call sends SEGMENTS datagrams: veth passes them on as one.
SEND = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[2], 4000))
s.setsockopt(17, 103, {size})
for n in range({packets}):
    s.sendto(b''.join(b'\\x80\\x00' + (n * {segments} + i).to_bytes(2, 'big') + bytes({size} - 4) for i in range({segments})), (sys.argv[1], 30000))
"""
RECEIVE = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 5000))
s.settimeout(float(sys.argv[2]))
print('ready', flush=True)
got = []
try:
    while len(got) < {total}:
        p = s.recv(4096)
        got.append(int.from_bytes(p[2:4], 'big') if len(p) == {size} else -1)
except TimeoutError:
    pass
print(*got)
"""


def counters(nfx, addr, port):
    return nfx.ok(f"get addr={addr} port={port}")[0]


def chain(w, nfx):
    nfx.ok(f"set +create addr={w.g} port=30000 action=relay dest={w.h},30010,{w.g},30020")
    nfx.ok(f"set +create addr={w.h} port=30010 action=relay source={w.g} source_port=30020 dest={w.b},5000,{w.h},30002")
    r = w.flow("--count", 100, "--rate", 2000, "--ttl", 64)[0]
    equal(f"{w.name}: over two targets of one host", (r["got"], r["dup"], r["late"], r["bad"], r["ttl"]), (100, 0, 0, 0, 62))
    one, two = counters(nfx, w.g, 30000), counters(nfx, w.h, 30010)
    equal(f"{w.name}: each counts", (one["SENT"], two["RTP_PACKETS"], two["SENT"], two["SENT_BYTES"]), (100, 100, 100, 100 * SIZE))
    nfx.ok(f"set addr={w.h} port=30010 action=pass")
    r = w.flow("--count", 20, recv=[f"{w.net.gateway},{w.h},30010"])[0]
    equal(f"{w.name}: a target that does not relay gets it by the host's own way", (r["got"], r["dup"]), (20, 0))
    nfx.ok("flush")


def circle(w, nfx):
    itself = f" dest={w.g},30000,{w.h},30002"
    nfx.ok(w.target(more=itself * 3))
    w.flow("--count", PACKETS)
    rig.settled()
    c = counters(nfx, w.g, 30000)
    tap(0 < c["SENT"] <= PACKETS * 64 and c["TTL"] > 0, f"{w.name}: a target that forks to itself thrice ends ({c['SENT']} sent for {PACKETS})")
    nfx.ok(w.target())
    equal(f"{w.name}: and relays as before when it does not", w.flow("--count", 20)[0]["got"], 20)


def large(w, nfx):
    nfx.ok("flush")
    nfx.ok(w.target())
    gw = ["ip", "-n", w.net.gateway] + (["-6"] if w.v6 else [])
    dev = rig.run(gw + ["route", "get", w.b]).split(" dev ")[1].split()[0]
    rig.run(gw + ["route", "replace", w.b, "dev", dev, "mtu", 1300])
    r = w.flow("--count", 20, "--size", 1400)[0]
    equal(f"{w.name}: what is too large for the way leaves in fragments", (r["got"], r["bad"]), (20, 0))
    equal(f"{w.name}: that is counted", counters(nfx, w.g, 30000)["TOO_BIG"], 20)
    rig.run(gw + ["route", "del", w.b, "dev", dev, "mtu", 1300])


def glued(w, nfx):
    nfx.ok("flush")
    nfx.ok(w.target())
    at = {"size": SIZE, "packets": PACKETS, "segments": SEGMENTS, "total": PACKETS * SEGMENTS}
    inside = ["ip", "netns", "exec"]
    p = subprocess.Popen(inside + [w.net.terminal["callee"], "/usr/bin/python3", "-c", RECEIVE.format(**at), w.b, str(30 * rig.PATIENCE)], text=True,
                         stdout=subprocess.PIPE)
    p.stdout.readline()
    rig.run(inside + [w.net.terminal["caller"], "/usr/bin/python3", "-c", SEND.format(**at), w.g, w.a])
    got = [int(x) for x in p.communicate()[0].split()]
    equal(f"{w.name}: what came many in one leaves one by one", got, list(range(at["total"])))
    c = counters(nfx, w.g, 30000)
    equal(f"{w.name}: and is counted so", (c["RTP_PACKETS"], c["RTP_BYTES"], c["SENT"]), (at["total"], at["total"] * SIZE, at["total"]))
    nfx.ok("flush")


def main():
    with netns.Net(("caller", "callee")) as net:
        nfx = rig.Nfx(net.gateway)
        nfx.hello()
        for v6 in (False, True):
            for part in (chain, circle, large, glued):
                part(rig.Way(net, v6), nfx)
        totals = nfx.ok("stats")[0]
        tap(totals["SENT"] > 200 and totals["TTL"] > 0, "the namespace's totals keep what targets counted that are gone")
        nfx.close()


rig.one_processor()
rig.test(main)
