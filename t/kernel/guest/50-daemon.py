#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole xcipherd, serial engine, relays SRTP in the guest; libsrtp2 checks both ends."""
import rig
import calls
import netns
import relay


def relayed(steering):
    with netns.Net(("caller", "callee")) as net:
        daemon = relay.Xcipherd(net, f"--steering={steering}", "--engine=serial", "--workers=1").wait_ready()
        try:
            some = [calls.Call(daemon.client, n, "80", "plain").setup() for n in range(4)]
            got = calls.load(net, "/build", some, 50, 1)
            rig.note(got)
            rig.equal(f"{steering}: all packets arrive once, in order, authentic",
                      (got["lost"], got["duplicates"], got["reordered"], got["wrong"], got["bad_auth"]), (0, 0, 0, 0, 0))
        finally:
            rig.note(daemon.text())
            daemon.stop()


for way in ("udp", "nfqueue", "kernel"):
    rig.test(lambda: relayed(way))
