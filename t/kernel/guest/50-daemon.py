#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole xcipherd with the serial engine relays SRTP in the guest; libsrtp2 checks both ends.
Media relayed by the kernel module are not in the host's connection tracking."""
import rig
import calls
import netns
import relay


def relayed(name, *options):
    steering = name.split()[0]
    with netns.Net(("caller", "callee")) as net:
        rig.track(net.gateway)
        daemon = relay.Xcipherd(net, f"--steering={steering}", "--engine=serial", "--workers=1", *options).wait_ready()
        try:
            some = [calls.Call(daemon.client, n, "80", "plain").setup() for n in range(4)]
            got = calls.load(net, "/build", some, 50, 1)
            rig.note(got)
            rig.equal(f"{name}: all packets arrive once, in order, authentic",
                      (got["lost"], got["duplicates"], got["reordered"], got["wrong"], got["bad_auth"]), (0, 0, 0, 0, 0))
            entries = rig.tracked(net.gateway)
            rig.note(f"{len(entries)} entries of connection tracking" + "".join(f"\n{e}" for e in entries[:2]))
            if steering not in ("nfqueue", "xdp"):  # rules of nfqueue follow; the first packets of xdp may reach the ordinary sockets
                rig.tap((len(entries) == 0) == (steering == "kernel"), f"{name}: {len(entries)} entries of connection tracking are media's")
            if steering == "kernel":
                by_ring = statistic(daemon, "received by ring")
                rig.tap(by_ring >= got["sent"] if not options else by_ring == 0, f"{name}: {by_ring} packets by the ring")
        finally:
            rig.note(daemon.text())
            daemon.stop()


def statistic(daemon, key):
    return next(int(x.split(": ")[1].strip(" }")) for x in str(daemon.statistics()).split(",") if f"'{key}'" in x)


for way in (("udp",), ("nfqueue",), ("xdp",), ("kernel",), ("kernel by queue", "--kernel-ring=no")):
    rig.test(lambda: relayed(*way))
