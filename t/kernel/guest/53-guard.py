#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Floods of forged SRTP from a terminal's own address, under kernel steering, with the ring and with
the queue, IPv4 and IPv6: the module drops most of them, and no true packet is lost. A guard does not
outlive its daemon."""
import time

import rig
from rig import equal, tap
import netns
import redisrig
import relay
from test_flood import flood, refused
from test_ng import Phone, leaves, talk

ADDRESSES = {"IPv4": ("10.200.1.2", "10.200.2.2", "10.200.1.1", "10.200.2.1"), "IPv6": ("fd00:1::2", "fd00:2::2", "fd00:1::1", "fd00:2::1")}
BEYOND = 300  # packets: more than a guard accepts after the newest


def started(net, ours, *options):
    return relay.Xcipherd(net, "--engine=serial", "--steering=kernel", *options, addresses=ours).wait_ready()


def phones(net, daemon, family):
    """Two terminals that talk."""
    for i, name in enumerate(("caller", "callee"), 1):  # each may be told the relay's address on the other link
        net.run(net.terminal[name], "ip", "-6", "route", "add", "default", "via", f"fd00:{i}::1")
    a, b = Phone(net, "caller", ADDRESSES[family][0], "80"), Phone(net, "callee", ADDRESSES[family][1], "80")
    talk(daemon.client, a, b, "c")
    return a, b


def attacked(daemon, a, b):
    """Until the module drops forged packets. How many so far."""
    end = time.monotonic() + 60 * rig.PATIENCE
    while not refused(daemon)[1] and time.monotonic() < end:
        flood(a, 20)
        if not leaves(a, b):
            break
    return refused(daemon)[1]


def main(name, family, *options):
    with netns.Net(("caller", "callee")) as net:
        daemon = started(net, ADDRESSES[family][2:], *options)
        a, b = phones(net, daemon, family)
        before = attacked(daemon, a, b)
        tap(before > 0, f"{name}: the module drops forged packets")
        good = 0
        for _ in range(100):
            flood(a, 10)
            good += leaves(a, b)
        equal(f"{name}: no true packet is lost", good, 100)
        after = refused(daemon)[1]
        tap(after - before > 500, f"{name}: most forged packets are dropped by the module: {after - before} of 1000")
        rig.note({k: v for k, v in daemon.statistics().items() if k.startswith("guard: ")})
        rig.note({k: v for k, v in daemon.statistics()["drops"].items() if v})
        equal(f"{name}: the daemon ends", daemon.stop(), 0)


def killed():
    """In mid-attack, and started again with the call. The attack is over, so the next process sets no guard."""
    if not redisrig.have():
        rig.note(f"skipped: no {redisrig.PROGRAM}")
        return
    with netns.Net(("caller", "callee")) as net:
        redis = redisrig.Redis(net)
        daemon = started(net, ADDRESSES["IPv4"][2:], *redis.daemon_options())
        a, b = phones(net, daemon, "IPv4")
        tap(attacked(daemon, a, b) > 0, "killed: the module drops forged packets")
        tap(rig.until(lambda: daemon.statistics()["redis"]["waiting"] == 0), "killed: the call is in Redis")
        daemon.process.kill()
        daemon.process.wait()
        daemon.client.close()
        daemon = started(net, ADDRESSES["IPv4"][2:], *redis.daemon_options())
        tap("1 calls restored" in daemon.text() and "taken over" in daemon.text(), "killed: the next process has the call and its targets")
        a.send(b"again")
        b.hears(1)  # a restart changes the SSRC
        heard = 0
        while heard < BEYOND and leaves(a, b):
            heard += 1
        equal("killed: true packets until the old guard refuses one", heard, BEYOND)
        rig.note({k: v for k, v in daemon.statistics().items() if k.startswith("guard: ")})
        equal("killed: the daemon ends", daemon.stop(), 0)
        redis.stop()


rig.test(lambda: main("ring", "IPv4"))
rig.test(lambda: main("ring, IPv6", "IPv6"))
rig.test(lambda: main("queue", "IPv4", "--kernel-ring=no"))
rig.test(killed)
