#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Killed and restarted with the calls in Redis: the kernel keeps relaying, and the next daemon
restores the call, its ports and its counters. Reports if there is no redis-server."""
import importlib.util
import time

import rig
from rig import equal, tap
import calls
import netns
import redisrig
import relay

spec = importlib.util.spec_from_file_location("relayed", "/guest/60-relay.py")
relayed = importlib.util.module_from_spec(spec)
rig_test, rig.test = rig.test, lambda f: None  # imports its functions without running it
spec.loader.exec_module(relayed)
rig.test = rig_test

COUNT = 1800  # packets, half a minute of them
GRACE = 9.5  # seconds that targets stay without their daemon, and a bit less
IP = ("10.200.1.2", "10.200.2.2")


def settled(daemon):
    return relayed.until(lambda: relayed.find(daemon.statistics(), "redis")["waiting"] == 0)


def main():
    if not redisrig.have():
        rig.note(f"skipped: no {redisrig.PROGRAM}")
        return
    with netns.Net(("caller", "callee")) as net:
        redis = redisrig.Redis(net)
        options = ["--steering=kernel", "--engine=serial", "--workers=1", *redis.daemon_options()]
        daemon = relay.Xcipherd(net, *options).wait_ready()
        call = calls.Call(daemon.client, 1, "plain", "plain", ip=IP).setup()
        there = False
        for _ in range(8):  # a busy guest may be slow
            f = relayed.Flows(net, call, 200, 60)
            there = there or relayed.until(lambda: relayed.steering(daemon)[0] == 2, 5)
            f.outcome()
            if there:
                break
        tap(there and settled(daemon), "a call is in the kernel and in Redis")
        # Its SSRCs are new: the daemon gets them first, and waits longer after each return.
        before = relayed.steering(daemon)[1]
        f = relayed.Flows(net, call, COUNT, 60)
        tap(relayed.until(lambda: relayed.steering(daemon)[0] == 2 and relayed.steering(daemon)[1] > before + 120, 20), "the next streams are, too")
        start = time.monotonic()
        daemon.process.kill()
        daemon.process.wait()
        daemon.client.close()
        daemon = relay.Xcipherd(net, *options).wait_ready()
        text, took = daemon.text(), time.monotonic() - start
        rig.note(f"started again after {took:.1f} s")
        tap("1 calls restored" in text, "killed: the next daemon has the call")
        call.client = daemon.client
        ports = (call.to_caller["port"], call.to_callee["port"])
        got = f.outcome()
        if took < GRACE:  # otherwise this machine is too slow for the test
            tap("taken over" in text, "and the kernel's targets")
            tap(all(r["dup"] == r["bad"] == 0 and r["got"] >= COUNT - 10 for r in got), f"what the kernel relays is not lost meanwhile ({[r['got'] for r in got]} of {COUNT})")
        call.setup(again=True)
        equal("its ports are what they were", (call.to_caller["port"], call.to_callee["port"]), ports)
        call.delete()
        rig.note(daemon.text())
        daemon.stop()
        redis.stop()


rig.test(main)
