#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Very many targets: their cost, look-ups as fast as among few, and removal of all."""
import time

import rig
from rig import equal, tap
import netns

TABLE = 20000


def told(net):
    """The number of targets in a dump."""
    return int(rig.run(["ip", "netns", "exec", net.gateway, "sh", "-c", "echo get +dump | nfx | grep -c addr="], check=False))


def main():
    with netns.Net(("caller", "callee")) as net:
        nfx = rig.Nfx(net.gateway)
        nfx.hello()
        w = rig.Way(net, False)
        nfx.ok(w.target())
        w.flow("--count", 1)
        alone = w.flow("--count", 2000, "--window", 32)[0]
        before = rig.free_kib()
        took = nfx.ok(f"fill {TABLE} action=relay dest={w.b},5000,{w.h},30002")[0]["ns"]
        used = before - rig.free_kib()
        rig.note(f"{TABLE} targets: {took / TABLE / 1000:.1f} us and {used * 1024 // TABLE} bytes each (emulated)")
        tap(used > 0, "the table's memory can be told")
        full = w.flow("--count", 2000, "--window", 32)[0]
        equal(f"with {TABLE} targets packets pass", (full["got"], full["dup"]), (2000, 0))
        tap(full["us"] < 1.2 * alone["us"], f"and take no longer ({alone['us'] // 2} and {full['us'] // 2} ns each)")
        equal("all of them are told", told(net), TABLE + 1)
        start = time.monotonic()
        nfx.ok("flush")
        rig.note(f"flushed in {time.monotonic() - start:.2f} s")
        equal("none is left", told(net), 0)
        for _ in range(2):
            nfx.ok(f"fill {TABLE} action=relay dest={w.b},5000,{w.h},30002")
            nfx.ok("flush")
        rig.until(lambda: before - rig.free_kib() < used * 3 // 2)  # RCU
        tap(before - rig.free_kib() < used * 3 // 2, f"three tables take the memory of one ({before - rig.free_kib()} and {used} KiB)")
        nfx.close()


rig.test(main)
