#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Failing allocations and memory leaks. Needs a kernel with failslab and kmemleak, which Debian's
lacks; without them it reports so."""
import os
import time

import rig
from rig import equal, tap
import netns

DEBUG = "/sys/kernel/debug"


def failslab(probability, tasks, atomic_only):
    rig.write(f"{DEBUG}/failslab/probability", 0)  # first, because the other tests depend on it
    for name, value in (("task-filter", "Y" if tasks else "N"), ("ignore-gfp-wait", "Y" if atomic_only else "N"), ("verbose", 0),
                        ("interval", 1), ("times", -1), ("probability", probability)):
        rig.write(f"{DEBUG}/failslab/{name}", value)


def control(w, nfx):
    """Each request succeeds or reports a lack of memory."""
    codes = {}
    rig.write(f"/proc/{nfx.p.pid}/make-it-fail", 1)
    failslab(15, True, False)
    for n in range(150):
        for line in (w.target(more=f"cookie={n}", port=30000 + n % 7 * 2), f"get addr={w.g} port=30000", "stats",
                     f"del addr={w.g} port={30000 + n % 5 * 2}"):
            try:
                code = nfx(line)[0]
            except (RuntimeError, OSError):
                code = "nfx ended"
            codes[code] = codes.get(code, 0) + 1
    failslab(0, False, True)
    rig.note(f"{w.name}: {codes}")
    tap(codes.get(0, 0) > 50 and codes.get(-12, 0) > 10, f"{w.name}: requests fail for want of memory, and only they")


def packets(w, nfx):
    nfx.ok(w.target() + f" dest={w.b},5002,{w.h},30002" * 3)
    w.flow("--count", 1)
    failslab(5, False, True)
    try:
        r = w.flow("--count", 500, "--rate", 500)[0]
    finally:
        failslab(0, False, True)
    c = nfx.ok(f"get addr={w.g} port=30000")[0]
    tap(c["NO_MEMORY"] > 0 and 0 < r["got"] < 500 and not r["bad"], f"{w.name}: copies without memory are counted ({c['NO_MEMORY']}, {r['got']} arrived)")
    got = w.flow("--count", 50)[0]["got"]
    tap(got >= 50, f"{w.name}: with memory all arrive again ({got}, late ones of the flow before among them)")
    nfx.ok("flush")


def leaks():
    for _ in range(3):
        time.sleep(6)
        rig.write(f"{DEBUG}/kmemleak", "scan")
    with open(f"{DEBUG}/kmemleak", encoding="ascii") as f:
        found = f.read().split("unreferenced object")[1:]
    ours = [x for x in found if "nf_xcipher" in x]
    rig.note(f"{len(found)} suspects in all")
    for x in ours[:3]:
        rig.note(x)
    equal("no memory of the module's is lost", len(ours), 0)


def main():
    if not os.path.exists(f"{DEBUG}/failslab"):
        rig.run(["mount", "-t", "debugfs", "debugfs", DEBUG], check=False)
    if not os.path.exists(f"{DEBUG}/failslab") or not os.path.exists(f"{DEBUG}/kmemleak"):
        rig.note("skipped: this kernel has neither failslab nor kmemleak")
        return
    with netns.Net(("caller", "callee")) as net:
        for v6 in (False, True):
            w = rig.Way(net, v6)
            nfx = rig.Nfx(net.gateway)
            nfx.hello(owner=3)
            packets(w, nfx)
            control(w, nfx)
            nfx.close()
    leaks()


rig.test(main)
