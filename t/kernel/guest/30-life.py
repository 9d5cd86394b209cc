#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets, owners, namespaces and the module itself are created and removed while packets flow."""
import signal
import subprocess
import time

import rig
from rig import equal, tap
import netns

def traffic(w, count=1000, rate=500, port=4000):
    """Runs in parallel with the test and reports the result at the end."""
    net = w.net
    return subprocess.Popen(["/build/t/pktx", "flow", "--from", f"{net.terminal['caller']},{w.a},{port}", "--to", f"{w.g},30000", "--recv",
                             f"{net.terminal['callee']},{w.b},5000", "--rate", str(rate), "--count", str(count)],
                            stdout=subprocess.PIPE, text=True)


def outcome(p):
    return {k: int(v) if v.isdigit() else v for k, v in (x.split("=", 1) for x in p.communicate()[0].split())}


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
    """Like a daemon that is killed and restarted: its targets keep working and are taken over."""
    first = rig.Nfx(net.gateway)
    first.hello(owner=5, grace=60000 * rig.PATIENCE)  # no packet waits for it
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
    third = rig.Nfx(net.gateway)
    start = time.monotonic()
    second.close(kill=True)
    gone = rig.until(lambda: not third.ok("get +dump owner=5"))
    took = time.monotonic() - start
    tap(gone and took >= 1, f"nobody comes: they go after the grace time, not before ({took:.2f} s)")
    equal("and relay no more", w.flow("--count", 5)[0]["got"], 0)
    equal("and the number is free again", third.hello(owner=5)["targets"], 0)
    third.close()


def namespaces():
    for n in range(4):
        with netns.Net(("caller", "callee")) as net:
            w = rig.Way(net, n % 2 == 1)
            nfx = rig.Nfx(net.gateway)
            nfx.hello()
            nfx.ok(w.target())
            nfx.ok("fill 50 action=relay dest=10.0.0.1,5000,10.0.0.2,6")
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

        def refused():
            """The host itself sends: without a target, its packets reach a port without a socket."""
            lines = rig.run(["ip", "netns", "exec", net.gateway, "cat", "/proc/net/snmp"]).splitlines()
            names, values = (x.split() for x in lines if x.startswith("Udp: "))
            return int(values[names.index("NoPorts")])

        outcomes = []
        for _ in range(3):
            nfx = rig.Nfx(net.gateway)
            nfx.hello()
            nfx.ok(w.target())
            nfx.ok(f"fill 200 action=relay dest={w.b},5000,{w.h},30002")
            w.flow("--count", 1)
            p = traffic(w, 100000)
            flows = rig.until(lambda: nfx.ok(f"get addr={w.g} port=30000")[0]["RTP_PACKETS"] > 20)
            before = refused()
            rig.run(["rmmod", "nf_xcipher"])
            ends = rig.until(lambda: refused() > before + 5)
            code, text, _ = nfx("get +dump")
            rig.run(["insmod", "/nf_xcipher.ko"])
            p.send_signal(signal.SIGTERM)
            r = outcome(p)
            outcomes.append((flows and ends, 0 < r["got"] < r["sent"], r["dup"], r["bad"]))
            nfx.close()
        equal(f"unloaded three times under traffic ({r['got']} of {r['sent']} were before)", outcomes, [(True, True, 0, 0)] * 3)
        tap(code == -2, f"who asks hears that it is gone ({code} {text})")


def main():
    with netns.Net(("caller", "callee")) as net:
        nfx = rig.Nfx(net.gateway)
        nfx.hello()
        for v6 in (False, True):
            change(net, nfx, rig.Way(net, v6))
        nfx.ok("flush")
        killed(net, rig.Way(net, True))
        nfx.close()


rig.test(main)
rig.test(namespaces)
rig.test(unload)
