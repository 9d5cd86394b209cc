#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory runs out while targets are created, in a control group with a small limit. (Debian's
kernel has no CONFIG_FAULT_INJECTION.) The creator is killed or refused, its targets are removed,
and those of others stay."""
import os
import subprocess

import rig
from rig import equal, tap
import netns

GROUP = "/run/cg/small"  # not below /sys: "ip netns exec" has one of its own


def starve(net, w):
    """A process that creates targets until memory runs out. Returns how it ended, and how many it
    created."""
    p = subprocess.Popen(["ip", "netns", "exec", net.gateway, "sh", "-c", f"echo 0 > {GROUP}/cgroup.procs; exec nfx"], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    said = p.communicate(f"hello version=1 features=0x7f owner=8 grace=0\nfill 30000 action=relay dest={w.b},5000,{w.h},30002\n")[0]
    return p.returncode, said.strip().split("\n")[-1]


def main():
    os.makedirs("/run/cg", exist_ok=True)
    if not os.path.ismount("/run/cg"):
        rig.run(["mount", "-t", "cgroup2", "none", "/run/cg"])
    with open("/run/cg/cgroup.subtree_control", "w", encoding="ascii") as f:
        f.write("+memory")
    os.makedirs(GROUP, exist_ok=True)
    with open(f"{GROUP}/memory.max", "w", encoding="ascii") as f:
        f.write("6M")
    with netns.Net(("caller", "callee")) as net:
        w = rig.Way(net, False)
        nfx = rig.Nfx(net.gateway)
        nfx.hello()
        nfx.ok(w.target())
        w.flow("--count", 1)
        before = rig.free_kib()
        for n in range(3):
            code, said = starve(net, w)
            rig.note(f"ended with {code}: {said}")
            tap(code == -9 or code == 137 or "= -12" in said, f"memory runs out ({n + 1})")
            equal("what others have goes on", w.flow("--count", 50)[0]["got"], 50)
        rig.until(lambda: len(nfx.ok("get +dump")) == 1)
        equal("what was made is gone", len(nfx.ok("get +dump")), 1)
        rig.until(lambda: before - rig.free_kib() < 12000)  # RCU
        tap(before - rig.free_kib() < 12000, f"and its memory ({before - rig.free_kib()} KiB)")
        nfx.close()


rig.test(main)
