#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""IPv6 through the daemon with kernel steering, by its ring or its queue: results leave, although the
host does not forward."""
import rig
import calls
import netns
import relay


class Call6(calls.Call):
    def body(self, side, tag=1):
        return super().body(side, tag).replace("IN IP4", "IN IP6")


def through(counter, *options):
    with netns.Net(("caller", "callee")) as net:
        daemon = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1", *options, addresses=("fd00:1::1",)).wait_ready()
        rig.run(["ip", "-n", net.terminal["callee"], "-6", "route", "add", "default", "via", "fd00:2::1"])
        rig.run(["ip", "-n", net.terminal["caller"], "-6", "route", "add", "default", "via", "fd00:1::1"])
        try:
            call = Call6(daemon.client, 6, "plain", "plain", ip=("fd00:1::2", "fd00:2::2")).setup()
            got = []
            for ssrc in range(1, 4):  # a terminal never repeats packets
                for side, other, to in (("caller", "callee", call.to_caller), ("callee", "caller", call.to_callee)):
                    here = 0 if side == "caller" else 1
                    r = rig.pktx("flow", "--from", f"{net.terminal[side]},{call.ip[here]},{call.ports[here]}", "--to", f"{to['ip']},{to['port']}",
                                 "--recv", f"{net.terminal[other]},{call.ip[1 - here]},{call.ports[1 - here]}", "--count", 100, "--rate", 80, "--ssrc", ssrc)[0]
                    got.append((r["got"], r["dup"], r["bad"]))
            s = str(daemon.statistics())
            rig.note([x for x in s.split(",") if "verdict" in x or "kernel" in x or "by ring" in x])
            rig.equal(f"IPv6 {' '.join(options)}: all packets, once, unchanged", got, [(100, 0, 0)] * 6)
            rig.tap(f"'{counter}': 0" not in s, f"they were {counter}")
        finally:
            rig.note(daemon.text())
            daemon.stop()


rig.test(lambda: through("received by ring", "--kernel-relay=no"))
rig.test(lambda: through("sent by verdict", "--kernel-relay=no", "--kernel-ring=no"))
