#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Malformed packets and messages: they break nothing and are not relayed, and good packets still
pass."""
import os

import rig
from rig import equal, tap
import netns

# The fate of five packets of each: "relayed", "socket" (the host's own stack takes them),
# "dropped".
KINDS = {
    False: {"good": "relayed", "options": "socket", "empty": "any", "byte": "any", "bad-checksum": "dropped", "no-checksum": "relayed",
            "udp-long": "dropped", "udp-short": "dropped", "udp-zero": "dropped", "udp-less": "any", "cut": "dropped", "cut-ip": "dropped",
            "cut-all": "dropped", "frag-first": "any", "frag-rest": "any", "ihl-4": "dropped", "ihl-15": "dropped", "total-long": "dropped",
            "total-short": "dropped", "ttl-1": "dropped"},
    True: {"good": "relayed", "empty": "any", "byte": "any", "bad-checksum": "dropped", "no-checksum": "dropped", "udp-long": "dropped",
           "udp-short": "dropped", "udp-zero": "any", "udp-less": "any", "cut": "dropped", "cut-ip": "dropped", "cut-all": "dropped",
           "hop": "socket", "dest": "socket", "frag-first": "any", "frag-rest": "any", "ext-long": "dropped", "ttl-1": "dropped"},
}


def mac(ns, dev):
    return rig.run(["ip", "netns", "exec", ns, "cat", f"/sys/class/net/{dev}/address"]).strip()


def sent(w, nfx):
    return nfx.ok(f"get addr={w.g} port=30000")[0]["SENT"]


def raw(w, kind, *more):
    ns = w.net.terminal["caller"]
    return rig.run(["/build/t/pktx", "raw", "--dev", f"{ns},t1,{mac(w.net.gateway, 'g1')}", "--from", f"{w.a},4000", "--to", f"{w.g},30000",
                    "--kind", kind, *more]).strip()


def kinds(w, nfx, of=""):
    wrong, told = [], []
    for kind, what in KINDS[w.v6].items():
        before = sent(w, nfx)
        raw(w, kind, "--count", 5)
        rig.settled()
        got = sent(w, nfx) - before
        told.append(f"{kind} {got}")
        if what != "any" and got != {"relayed": 5, "socket": 0, "dropped": 0}[what]:
            wrong.append((kind, what, got))
    equal(f"{w.name}: {len(KINDS[w.v6])} kinds of malformed packets{of}", wrong, [])
    rig.note(f"{w.name}, of 5 each left: " + ", ".join(told))
    damaged = rig.run(["ip", "netns", "exec", w.net.terminal["callee"], "cat", "/proc/net/snmp6" if w.v6 else "/proc/net/snmp"])
    rig.note(" ".join(x for x in damaged.splitlines() if x.startswith("Udp: ") or x.startswith("Udp6InCsumErrors")))


def fuzz(w, nfx, ms=2000):
    raw(w, "fuzz", "--ms", ms, "--seed", 7)
    rig.settled()
    r = w.flow("--count", 50)[0]
    equal(f"{w.name}: after {ms // 1000} s of random packets good ones pass", (r["got"], r["bad"]), (50, 0))
    rig.note(nfx.ok("stats")[0])


def messages(net, nfx):
    other = rig.Nfx(net.gateway)
    other.hello(owner=7)
    w = rig.Way(net, False)
    busy = [rig.subprocess.Popen(["/build/t/pktx", "flow", "--from", f"{net.terminal['caller']},{w.a},4000", "--to", f"{w.g},30000",
                                  "--recv", f"{net.terminal['callee']},{w.b},5000", "--rate", "500", "--count", "1200"],
                                 stdout=rig.subprocess.PIPE, text=True)]
    code, _, rows = other("fuzz 2500 11")
    tap(code == 0, f"2.5 s of random and mutated messages ({rows})")
    said = busy[0].communicate()[0]
    tap("sent=1200 got=1200 dup=0 late=0" in said, f"while packets are relayed ({said.strip()})")
    tap(nfx("get +dump")[0] == 0, "the table can be read afterwards")
    other.close()


def main():
    with netns.Net(("caller", "callee")) as net:
        nfx = rig.Nfx(net.gateway)
        nfx.hello()
        for v6 in (False, True):
            w = rig.Way(net, v6)
            nfx.ok(w.target())
            w.flow("--count", 1)  # neighbours are known from here on
            processors = os.sched_getaffinity(0)
            rig.one_processor()
            kinds(w, nfx)
            fuzz(w, nfx)
            nfx.ok(w.target(more="flags=unread"))
            kinds(w, nfx, ", target with flag unread")
            fuzz(w, nfx, 1000)
            os.sched_setaffinity(0, processors)
        messages(net, nfx)
        nfx.close()


rig.test(main)
