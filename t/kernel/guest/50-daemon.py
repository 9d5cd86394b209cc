#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole xcipherd with the serial engine relays SRTP in the guest; libsrtp2 checks both ends.
Media relayed by the kernel module are not in the host's connection tracking."""
import rig
import calls
import netns
import relay


def relayed(steering):
    with netns.Net(("caller", "callee")) as net:
        rig.track(net.gateway)
        daemon = relay.Xcipherd(net, f"--steering={steering}", "--engine=serial", "--workers=1").wait_ready()
        try:
            some = [calls.Call(daemon.client, n, "80", "plain").setup() for n in range(4)]
            got = calls.load(net, "/build", some, 50, 1)
            rig.note(got)
            rig.equal(f"{steering}: all packets arrive once, in order, authentic",
                      (got["lost"], got["duplicates"], got["reordered"], got["wrong"], got["bad_auth"]), (0, 0, 0, 0, 0))
            entries = rig.tracked(net.gateway)
            rig.note(f"{len(entries)} entries of connection tracking" + "".join(f"\n{e}" for e in entries[:2]))
            if steering != "nfqueue":  # its rules follow
                rig.tap((len(entries) == 0) == (steering == "kernel"), f"{steering}: {len(entries)} entries of connection tracking are media's")
        finally:
            rig.note(daemon.text())
            daemon.stop()


for way in ("udp", "nfqueue", "kernel"):
    rig.test(lambda: relayed(way))
