#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--source-rate under nfqueue steering, by nftables, whose counter the daemon reads, and under kernel steering, by the module; IPv4 and
IPv6. A flood takes none of the packets of another address."""
import time

import rig
from rig import equal, tap
import netns
import relay
from test_flood import flood
from test_ng import Phone, leaves, talk

ADDRESSES = {"IPv4": ("10.200.1.2", "10.200.2.2", "10.200.1.1", "10.200.2.1"), "IPv6": ("fd00:1::2", "fd00:2::2", "fd00:1::1", "fd00:2::1")}
RATE, FORGED = 20, 1000


def main(steering, family):
    name = f"{steering}, {family}"
    caller, callee, *ours = ADDRESSES[family]
    with netns.Net(("caller", "callee")) as net:
        daemon = relay.Xcipherd(net, "--engine=serial", f"--steering={steering}", f"--source-rate={RATE}", addresses=ours).wait_ready()
        for i, where in enumerate(("caller", "callee"), 1):  # each may be told the relay's address on the other link
            net.run(net.terminal[where], "ip", "-6", "route", "add", "default", "via", f"fd00:{i}::1")
        begun = time.monotonic()
        a, b = Phone(net, "caller", caller, "80"), Phone(net, "callee", callee, "80")
        talk(daemon.client, a, b, "c")
        flood(a, FORGED)
        tap(leaves(b, a), f"{name}: another address is heard during the flood")

        def over():
            return daemon.statistics()["over source rate"]

        passed = 25 * (time.monotonic() - begun) + 30
        # With nfqueue a worker reads its counter when a packet comes. With the module the daemon reads it every two seconds.
        tap(rig.until(lambda: (a.send(b"again"), over() >= FORGED - passed)[1]), f"{name}: what was over the rate is counted: {over()}")
        tap(rig.until(lambda: (a.send(b"again"), b.hears(0.1))[1]), f"{name}: the first address is heard again")
        equal(f"{name}: the daemon ends", daemon.stop(), 0)


for s in ("nfqueue", "kernel"):
    rig.test(lambda s=s: main(s, "IPv4"))
    rig.test(lambda s=s: main(s, "IPv6"))
