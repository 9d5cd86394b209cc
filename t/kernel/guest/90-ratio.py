#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets per second of the guest by each steering, with the same plain call through the same
xcipherd. Only ratios mean anything here. Not part of an ordinary run: run.py ratio."""
import itertools
import time

import rig
import calls
import netns
import relay

ANY = "--kernel-port-rate=0"
WAYS = [("plain sockets", ["--steering=udp", "--udp-io=plain"]), ("nfqueue, raw sockets", ["--steering=nfqueue", "--nfqueue-send=raw"]),
        ("kernel: queue, raw sockets", ["--steering=kernel", "--kernel-relay=no", "--kernel-ring=no", "--nfqueue-send=raw", ANY]),
        ("kernel: queue, by verdict", ["--steering=kernel", "--kernel-relay=no", "--kernel-ring=no", ANY]),
        ("kernel: ring", ["--steering=kernel", "--kernel-relay=no", ANY]), ("kernel: relay", ["--steering=kernel", ANY])]
COUNT, ROUNDS = 3000, 4


ssrcs = itertools.count(1)  # a terminal never repeats packets


def flow(net, call, side, *more):
    here, there = (0, 1) if side == "caller" else (1, 0)
    to = call.to_caller if side == "caller" else call.to_callee
    other = "callee" if side == "caller" else "caller"
    return rig.pktx("flow", "--from", f"{net.terminal[side]},{call.ip[here]},{call.ports[here]}", "--to", f"{to['ip']},{to['port']}", "--recv",
                    f"{net.terminal[other]},{call.ip[there]},{call.ports[there]}", "--ssrc", next(ssrcs), *more)[0]


def measure(net, number, options):
    daemon = relay.Xcipherd(net, *options, "--engine=serial", "--workers=1", "--log-level=4").wait_ready()
    try:
        call = calls.Call(daemon.client, number, "plain", "plain", ip=("10.200.1.2", "10.200.2.2")).setup()
        for side in ("callee", "caller"):
            flow(net, call, side, "--count", 20, "--rate", 200)
        if "--kernel-relay=no" not in options and "--steering=kernel" in options:
            end = time.monotonic() + 8
            while '"streams relayed by the kernel": 2' not in str(daemon.statistics()).replace("'", '"') and time.monotonic() < end:
                for side in ("callee", "caller"):
                    flow(net, call, side, "--count", 5, "--rate", 50)
        best = 0
        for _ in range(ROUNDS):
            r = flow(net, call, "caller", "--count", COUNT, "--window", 48, "--wait", 1000)
            if r["got"] == COUNT:
                best = max(best, COUNT * 1e6 / r["us"])
        return best
    finally:
        daemon.stop()


def main():
    with netns.Net(("caller", "callee")) as net:
        net.forward()
        w = rig.Way(net, False)
        rig.run(["ip", "netns", "exec", net.gateway, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
        best = max(COUNT * 1e6 / rig.pktx("flow", "--from", f"{net.terminal['caller']},{w.a},4000", "--to", f"{w.b},5000", "--recv",
                                          f"{net.terminal['callee']},{w.b},5000", "--count", COUNT, "--window", 48)[0]["us"] for _ in range(ROUNDS))
        rows = [("no relay: the kernel forwards", best)]
        rows += [(name, measure(net, n, options)) for n, (name, options) in enumerate(WAYS, 1)]
        base = dict(rows)["plain sockets"] or 1
        for name, rate in rows:
            rig.note(f"ratio | {name:30} | {rate:8.0f} packets/s | {rate / base:5.2f}")
        rig.tap(all(rate for _, rate in rows), "every way moves packets")
        rig.tap(dict(rows)["kernel: relay"] > dict(rows)["kernel: queue, by verdict"], "what stays in the kernel is faster than what does not")


rig.test(main)
