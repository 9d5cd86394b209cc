#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet rings on two processors: several workers and namespaces, rings that end while packets flow,
memory that the worker lost, changes or never owned, and the module unloaded meanwhile."""
import itertools
import os
import signal
import subprocess

import rig
from rig import equal, tap
import netns

MODULE = "/nf_xcipher.ko"
WAITS = itertools.cycle((0, 1))  # workers wait in epoll and in their bells by turns


def brief(r):
    return r["got"], r["dup"], r["late"], r["bad"]


def targets(nfx, w, port=30000, more="flags=bypass"):
    nfx.ok(w.target("queue", f"queue=99 {more}", port=port))
    nfx.ok(f"set +create addr={w.h} port={port + 2} action=queue queue=99")


def run(nfx, w, port=30000, to=5000, more="wake=16 window=1000000"):
    nfx.ok(f"ring run {w.h},{port + 2},{w.b},{to} {more} wait={next(WAITS)}")


def worker(w, owner, port=30000, to=5000, slots=256, grace=1000):
    nfx = rig.Nfx(w.net.gateway)
    nfx.hello(owner=owner, grace=grace)
    nfx.ok(f"ring open {slots} 64")
    targets(nfx, w, port)
    run(nfx, w, port, to)
    return nfx


def flood(w, port=30000, from_port=4000, to=5000, more=("--count", "100000", "--rate", "2000")):
    net = w.net
    return subprocess.Popen(["/build/t/pktx", "flow", "--from", f"{net.terminal['caller']},{w.a},{from_port}", "--to", f"{w.g},{port}",
                             "--recv", f"{net.terminal['callee']},{w.b},{to}", *more], stdout=subprocess.PIPE, text=True)


def end(p):
    p.send_signal(signal.SIGTERM)
    return {k: int(v) if v.isdigit() else v for k, v in (x.split("=", 1) for x in p.communicate()[0].split())}


def seen(nfx, w, port=30000):
    return nfx.ok(f"get addr={w.g} port={port}")[0]["RTP_PACKETS"]


def flows(look, w, more=20):
    start = seen(look, w)
    return rig.until(lambda: seen(look, w) >= start + more)


def workers(net, w):
    one, two = worker(w, 1), worker(w, 2, 30010, 5010)
    p = flood(w, 30010, 4010, 5010, ("--count", "3000", "--window", "32"))
    r = w.flow("--count", 3000, "--window", 32)[0]
    s = {k: int(v) if v.isdigit() else v for k, v in (x.split("=", 1) for x in p.communicate()[0].split())}
    equal(f"{w.name}: two workers, each its packets, in order", (brief(r), brief(s)), ((3000, 0, 0, 0),) * 2)
    (a, _), (b, _) = one.ring_stop(), two.ring_stop()
    equal(f"{w.name}: none took the other's", (a["got"], b["got"], a["failed"] + b["failed"]), (3000, 3000, 0))
    one.close()
    two.close()


def sixteen(net, w):
    rings = [worker(w, n + 1, 30000 + 10 * n, 5000 + 10 * n, slots=64) for n in range(16)]
    floods = [flood(w, 30000 + 10 * n, 4000 + n, 5000 + 10 * n, ("--count", "100", "--window", "8")) for n in range(16)]
    got = [brief({k: int(v) if v.isdigit() else v for k, v in (x.split("=", 1) for x in p.communicate()[0].split())}) for p in floods]
    equal(f"{w.name}: sixteen workers", got, [(100, 0, 0, 0)] * 16)
    equal(f"{w.name}: each its packets", [r.ring_stop()[0]["got"] for r in rings], [100] * 16)
    for r in rings:
        r.close()


def stopped(net, w):
    """A worker that hangs: its ring fills, and every packet is forwarded or counted."""
    nfx, look = worker(w, 1, slots=64), rig.Nfx(net.gateway)
    lost = lambda: look.ok(f"get addr={w.g} port=30000")[0]["RING_DROPS"]
    w.flow("--count", 20)
    before = lost()
    p = flood(w, more=("--count", "4000", "--rate", "1000"))
    good = []
    for _ in range(3):
        good.append(flows(look, w))
        now = lost()
        nfx.p.send_signal(signal.SIGSTOP)
        good.append(rig.until(lambda: lost() > now + 20))
        nfx.p.send_signal(signal.SIGCONT)
    r = {k: int(v) if v.isdigit() else v for k, v in (x.split("=", 1) for x in p.communicate()[0].split())}
    equal(f"{w.name}: a worker stopped three times: every packet is forwarded once, or counted",
          (good, r["sent"] - r["got"] - (lost() - before), r["dup"], r["late"], r["bad"]), ([True] * 6, 0, 0, 0, 0))
    nfx.ring_stop()
    nfx.close()
    look.close()


def namespaces(net, w):
    """The callee's namespace has a ring of its own, which sends to a socket of the gateway."""
    one, two = worker(w, 1), rig.Nfx(net.terminal["callee"])
    two.hello(owner=1)
    two.ok("ring open 64 64")
    two.ok(f"set +create addr={w.b} port=5000 action=queue queue=99")
    two.ok(f"ring run {w.b},5000,{w.h},30020 wake=4 window=500000")
    r = w.flow("--count", 500, "--window", 16, recv=[f"{net.gateway},{w.h},30020"])[0]
    equal(f"{w.name}: through the rings of two namespaces", brief(r), (500, 0, 0, 0))
    two.ring_stop()
    equal("a ring sends from targets of its namespace only", two.ok(f"ring send {w.h},30002,{w.h},30020")[0]["result"], 13)
    two.close()
    one.ring_stop()
    one.close()


def ends(net, w):
    """Closed, killed, its memory unmapped: always under traffic."""
    look = rig.Nfx(net.gateway)
    nfx = worker(w, 1, grace=60000 * rig.PATIENCE)
    p = flood(w)
    good = []
    for _ in range(5):
        good.append(flows(look, w))
        nfx.ring_stop()
        nfx.ok("ring close")
        equal("a closed ring has no doorbell", nfx("ring bell")[0], -2)
        good.append(flows(look, w))  # to the queue, which nobody reads
        nfx.ok("ring open 256 64")
        run(nfx, w)
    equal(f"{w.name}: closed and opened five times under traffic", good, [True] * 10)
    nfx.ring_stop()
    nfx.ok("ring drop")  # memory and descriptors; the ring does not notice
    good = flows(look, w, 300)
    equal(f"{w.name}: a ring without memory, eventfd and doorbell stays until it is closed", (good, nfx("ring open 16 16")[0]), (True, -16))
    nfx.close(kill=True)
    good = flows(look, w)
    nfx = rig.Nfx(net.gateway)
    said = nfx.hello(owner=1, grace=1000)
    nfx.ok("ring open 256 64")
    run(nfx, w)
    before = net_got(net, w)
    tap(good and said["targets"] >= 2 and rig.until(lambda: net_got(net, w) > before + 20), f"{w.name}: killed under traffic, its successor takes over")
    r = end(p)
    equal(f"{w.name}: nothing twice, nothing changed, order kept", (r["dup"], r["late"], r["bad"], r["got"] > 0), (0, 0, 0, True))
    nfx.ring_stop()
    nfx.close()
    look.close()


def net_got(net, w):
    """UDP datagrams that sockets of the callee received."""
    name = "Udp6InDatagrams" if w.v6 else "Udp:"
    text = rig.run(["ip", "netns", "exec", net.terminal["callee"], "cat", "/proc/net/snmp6" if w.v6 else "/proc/net/snmp"])
    lines = [x.split() for x in text.splitlines() if x.startswith(name)]
    return int(lines[-1][1])


def forked(net, w):
    nfx = worker(w, 1)
    w.flow("--count", 20)
    nfx.ring_stop()
    nfx.ok("ring fork")
    run(nfx, w)
    equal(f"{w.name}: what a child writes does not reach the ring", brief(w.flow("--count", 500, "--window", 32)[0]), (500, 0, 0, 0))
    nfx.ring_stop()
    nfx.close()


def links_lost():
    """Packets that found the queue of a virtual link full (netdev_max_backlog), on all processors."""
    with open("/proc/net/softnet_stat", encoding="ascii") as f:
        return sum(int(line.split()[1], 16) for line in f)


def hostile(net, w):
    """Memory and bells change at random. Another worker must not notice. Its packets share the virtual
    links with those that the hostile one sends without a pause, so the links must lose none."""
    bad, good = worker(w, 1), worker(w, 2, 30010, 5010)
    bad.ring_stop()
    p = flood(w)
    for seed in range(3):
        bad.p.stdin.write(f"ring hostile {2000 * rig.PATIENCE} {seed} {w.h},30002,{w.b},5004\n")
        bad.p.stdin.flush()
        before = links_lost()
        r = w.flow("--count", 300, "--window", 16, to=(w.g, 30010), recv=[f"{net.terminal['callee']},{w.b},5010"], port=4010)[0]
        rows = bad._rows("hostile")[2]
        rig.note(rows)
        tap(brief(r) == (300, 0, 0, 0) and rows[0]["good"] > 0 and rows[0]["bad"] > 0,
            f"{w.name}: a hostile worker disturbs no other ({r}, links lost {links_lost() - before})")
    end(p)
    bad.ok("ring close")
    bad.ok("ring open 256 64")
    run(bad, w)
    equal(f"{w.name}: and nothing is left of it", brief(w.flow("--count", 300, "--window", 16)[0]), (300, 0, 0, 0))
    bad.close(kill=True)
    good.close(kill=True)


def unload():
    with netns.Net(("caller", "callee")) as net:
        w = rig.Way(net, False)
        outcomes = []
        for n in range(6):
            nfx, look = worker(w, 1), rig.Nfx(net.gateway)
            p = flood(w, more=("--count", "100000", "--window", "64"))
            good = flows(look, w)
            if n >= 4:  # as many bells as possible
                nfx.ring_stop()
                nfx.p.stdin.write(f"ring hostile {1000 * rig.PATIENCE} {n} {w.h},30002,{w.b},5000\n")
                nfx.p.stdin.flush()
            rig.run(["rmmod", "nf_xcipher"])
            if n >= 4:
                nfx._rows("hostile")
                state = 2
            else:
                ran, now = nfx.ring_stop()
                state = now["state"]
            outcomes.append((good, state, nfx("ring bell")[0]))
            rig.run(["insmod", MODULE])
            end(p)
            nfx.close()
            look.close()
        equal("unloaded six times under traffic: the worker is told", outcomes, [(True, 2, -92)] * 6)
        nfx = worker(w, 1)
        equal("and works again", brief(w.flow("--count", 300, "--window", 16)[0]), (300, 0, 0, 0))
        nfx.close()


def gone():
    """Namespaces end with rings and traffic in them."""
    for _ in range(2):
        with netns.Net(("caller", "callee")) as net:
            w = rig.Way(net, False)
            nfx, look = worker(w, 1), rig.Nfx(net.gateway)
            p = flood(w)
            tap(flows(look, w), "traffic before a namespace ends")
            look.close()
        p.kill()
        p.communicate()
        nfx.close(kill=True)


GROUP = "/run/cg/ring"
PAGE, MIB = 4096, 1 << 20


def group_bytes(name="memory.current"):
    with open(f"{GROUP}/{name}", encoding="ascii") as f:
        return int(f.read())


def pinned_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("VmPin:"))


def accounts(net, w):
    """A ring's memory belongs to the worker that opened it: to its pinned memory, and to its control
    group, from which it cannot escape."""
    os.makedirs("/run/cg", exist_ok=True)
    if not os.path.ismount("/run/cg"):
        rig.run(["mount", "-t", "cgroup2", "none", "/run/cg"])
    rig.write("/run/cg/cgroup.subtree_control", "+memory")
    os.makedirs(GROUP, exist_ok=True)
    rig.write(f"{GROUP}/memory.max", 64 * MIB)
    nfx, other = rig.Nfx(net.gateway), rig.Nfx(net.gateway)
    rig.write(f"{GROUP}/cgroup.procs", nfx.p.pid)
    nfx.hello(owner=1)
    other.hello(owner=2)
    slots, sends = 8192, 256
    pages = -(-(slots * 2048 + 128) // PAGE) + -(-(320 + (slots + sends) * 64) // PAGE)
    before, free = group_bytes(), pinned_kib(nfx.p.pid)
    nfx.ok(f"ring open {slots} {sends}")
    equal("pinned pages are the worker's, and nobody else's", (free, pinned_kib(nfx.p.pid), pinned_kib(other.p.pid)), (0, pages * PAGE // 1024, 0))
    used = group_bytes() - before
    tap(pages * PAGE * 9 // 10 <= used < pages * PAGE * 5 // 4, f"and its control group's ({used} bytes for {pages * PAGE})")
    nfx.ok("ring close")
    tap(rig.until(lambda: pinned_kib(nfx.p.pid) == 0), "a closed ring pins nothing")
    other.ok(f"ring open {slots} {sends}")
    nfx.ok(f"ring open {slots} {sends}")
    nfx.close(kill=True)
    tap(rig.until(lambda: group_bytes() < 2 * MIB), f"a killed worker's control group gets all back ({group_bytes()} bytes)")
    equal("and another worker keeps its own", pinned_kib(other.p.pid), pages * PAGE // 1024)
    other.close()
    # Too little for a ring: the kernel kills in this group, or refuses. It takes nothing elsewhere.
    rig.write(f"{GROUP}/memory.max", 8 * MIB)
    nfx = rig.Nfx(net.gateway)
    rig.write(f"{GROUP}/cgroup.procs", nfx.p.pid)
    nfx.hello(owner=1)
    try:
        code = nfx(f"ring open {slots} {sends}")[0]
    except RuntimeError:
        code = "killed"
    tap(code in ("killed", -12), f"a ring larger than its control group is not opened ({code})")
    nfx.close(kill=True)
    tap(rig.until(lambda: group_bytes() < 2 * MIB), f"and nothing of it stays ({group_bytes()} bytes)")
    rig.until(lambda: not rig.run(["cat", f"{GROUP}/cgroup.procs"]).strip())
    os.rmdir(GROUP)


def memory(net, w):
    nfx = rig.Nfx(net.gateway)
    nfx.hello(owner=1)
    for n in range(20):  # until the allocator is warm
        nfx.ok("ring open 1024 256")
        nfx.ok("ring close")
    before = rig.free_kib()
    for n in range(200):
        nfx.ok("ring open 1024 256")
        nfx.ok("ring close")
    lost = lambda: before - rig.free_kib()
    tap(rig.until(lambda: lost() < 8000), f"200 rings of 2 MiB leave nothing ({lost()} KiB)")
    code, text, _ = nfx("ring open 1024 256 memlock=65536")
    tap(code == -1 and "RLIMIT_MEMLOCK" in text, f"memory is counted against its limit ({code} {text})")
    for n in range(5):
        rig.until(lambda: nfx("ring open 16 16 memlock=65536")[0] == 0)
        code = nfx("ring close")[0]
    equal("and is given back", code, 0)
    nfx.close()


os.sched_setaffinity(0, {0, 1} & os.sched_getaffinity(0))
rig.write("/proc/sys/net/core/netdev_max_backlog", 1000000)  # the links themselves lose nothing
with netns.Net(("caller", "callee")) as net:
    for w in (rig.Way(net, False), rig.Way(net, True)):
        w.neighbours()
        for part in (workers, stopped, namespaces, ends, forked, hostile):
            rig.test(lambda: part(net, w))
    rig.test(lambda: sixteen(net, w))
    rig.test(lambda: memory(net, w))
    rig.test(lambda: accounts(net, w))
rig.test(gone)
rig.test(unload)
