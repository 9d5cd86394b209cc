#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets, owners, namespaces and the module itself come and go, with packets flowing."""
import subprocess
import time

import rig
from rig import equal, tap
import netns

TABLE = 20000


def free_kib():
    with open("/proc/meminfo", encoding="ascii") as f:
        v = {x.split(":")[0]: int(x.split()[1]) for x in f}
    return v["MemFree"]


def traffic(w, count=1000, rate=500, port=4000):
    """Runs beside what the test does; says in the end what became of it."""
    net = w.net
    return subprocess.Popen(["/build/t/pktx", "flow", "--from", f"{net.terminal['caller']},{w.a},{port}", "--to", f"{w.g},30000", "--recv",
                             f"{net.terminal['callee']},{w.b},5000", "--rate", str(rate), "--count", str(count)],
                            stdout=subprocess.PIPE, text=True)


def outcome(p):
    return {k: int(v) if v.isdigit() else v for k, v in (x.split("=", 1) for x in p.communicate()[0].split())}


def table(net, nfx):
    w = rig.Way(net, False)
    nfx.ok(w.target())
    alone = w.flow("--count", 2000, "--window", 32)[0]
    before = free_kib()
    took = nfx.ok(f"fill {TABLE} action=relay dest={w.b},5000,{w.h},30002")[0]["ns"]
    used = before - free_kib()
    rig.note(f"{TABLE} targets: {took / TABLE / 1000:.1f} us and {used * 1024 // TABLE} bytes each (emulated, 2 processors)")
    tap(used > 0, "the table's memory can be told")
    full = w.flow("--count", 2000, "--window", 32)[0]
    equal(f"with {TABLE} targets packets pass", (full["got"], full["dup"]), (2000, 0))
    tap(full["us"] < 2 * rig.PATIENCE * alone["us"] + 500000, f"and take no longer ({alone['us'] // 2} and {full['us'] // 2} ns each)")
    equal("all of them are told", len(nfx.ok("get +dump")), TABLE + 1)
    start = time.monotonic()
    nfx.ok("flush")
    rig.note(f"flushed in {time.monotonic() - start:.2f} s")
    equal("none is left", len(nfx.ok("get +dump")), 0)
    for _ in range(2):
        nfx.ok(f"fill {TABLE} action=relay dest={w.b},5000,{w.h},30002")
        nfx.ok("flush")
    time.sleep(0.5)  # RCU
    tap(before - free_kib() < used * 3 // 2, f"three tables take the memory of one ({before - free_kib()} and {used} KiB)")


def change(net, nfx, w):
    nfx.ok(w.target())
    w.flow("--count", 1)
    p = traffic(w)
    n = 0
    while p.poll() is None:  # the same work under new plans
        nfx.ok(w.target(more=f"cookie={n}"))
        n += 1
    r = outcome(p)
    equal(f"{w.name}: {n} changes under traffic lose nothing", (r["sent"] - r["got"], r["dup"], r["late"], r["bad"]), (0, 0, 0, 0))
    p = traffic(w, 800)
    n = 0
    while p.poll() is None:
        nfx(f"del addr={w.g} port=30000")
        nfx.ok(w.target())
        n += 1
    r = outcome(p)
    tap(0 < r["got"] <= 800 and not r["dup"], f"{w.name}: removed and made {n} times under traffic ({r['got']} of 800 found it there)")


def killed(net, w):
    """As a daemon that is killed and started again: its targets go on, and are taken over."""
    first = rig.Nfx(net.gateway)
    first.hello(owner=5, grace=3000 * rig.PATIENCE)
    first.ok(w.target(more="cookie=9"))
    w.flow("--count", 1)
    p = traffic(w, 1000)
    time.sleep(0.5)
    first.close(kill=True)
    time.sleep(0.5)
    second = rig.Nfx(net.gateway)
    said = second.hello(owner=5, grace=1000)
    equal("the next one is told how many targets there are", said["targets"], 1)
    equal("and what they are", [r.get("cookie") for r in second.ok("get +dump owner=5")], [9])
    second.ok(w.target(more="cookie=10"))
    r = outcome(p)
    equal("no packet was lost meanwhile", (r["sent"] - r["got"], r["dup"], r["late"]), (0, 0, 0))
    second.close(kill=True)
    time.sleep(1.5)
    equal("nobody comes: they go after the grace time", w.flow("--count", 5)[0]["got"], 0)
    third = rig.Nfx(net.gateway)
    equal("and the number is free again", third.hello(owner=5)["targets"], 0)
    third.close()


def namespaces():
    for n in range(4):
        with netns.Net(("caller", "callee")) as net:
            w = rig.Way(net, n % 2 == 1)
            nfx = rig.Nfx(net.gateway)
            nfx.hello()
            nfx.ok(w.target())
            nfx.ok(f"fill 50 action=relay dest=10.0.0.1,5000,10.0.0.2,6")
            w.flow("--count", 1)
            p = traffic(w, 100000)
            time.sleep(0.2)
            if n % 3:
                nfx.close()
            # the namespace goes with targets, routes and packets in it
        p.kill()
        p.communicate()
        if n % 3 == 0:
            nfx.close()
    with netns.Net(("caller", "callee")) as net:
        w = rig.Way(net, False)
        nfx = rig.Nfx(net.gateway)
        nfx.hello()
        other = subprocess.run(["ip", "netns", "exec", net.terminal["callee"], "/build/t/nfx"], input="get +dump\nstats\n", text=True,
                               stdout=subprocess.PIPE, check=False).stdout
        nfx.ok(w.target())
        tap("addr=" not in other, "a namespace sees its own targets only")
        equal("four namespaces came and went with traffic, a fifth works", w.flow("--count", 20)[0]["got"], 20)
        nfx.close()


def unload():
    with netns.Net(("caller", "callee")) as net:
        w = rig.Way(net, False)
        for _ in range(3):
            nfx = rig.Nfx(net.gateway)
            nfx.hello()
            nfx.ok(w.target())
            nfx.ok(f"fill 200 action=relay dest={w.b},5000,{w.h},30002")
            w.flow("--count", 1)
            p = traffic(w, 400)
            for _ in range(100):  # it flows
                if nfx.ok(f"get addr={w.g} port=30000")[0]["RTP_PACKETS"] > 20:
                    break
                time.sleep(0.02)
            rig.run(["rmmod", "nf_xcipher"])
            time.sleep(0.1)
            code, text, _ = nfx("get +dump")
            rig.run(["insmod", "/nf_xcipher.ko"])
            r = outcome(p)
            nfx.close()
        tap(0 < r["got"] < 400 and not r["dup"], f"unloaded three times under traffic ({r['got']} of 400 were before)")
        tap(code == -2, f"who asks hears that it is gone ({code} {text})")


def main():
    with netns.Net(("caller", "callee")) as net:
        nfx = rig.Nfx(net.gateway)
        nfx.hello()
        table(net, nfx)
        for v6 in (False, True):
            change(net, nfx, rig.Way(net, v6))
        nfx.ok("flush")
        killed(net, rig.Way(net, True))
        nfx.close()


rig.test(main)
rig.test(namespaces)
rig.test(unload)
