#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Millions of packets through packet rings: two namespaces with eight workers each. Workers lose
wake-ups, are stopped, killed and restarted, and the module is unloaded, all under load. Every packet
arrives once and in order, or is counted. RING_PACKETS sets how many are sent, RING_SEED the events.

A round begins and ends without packets on their way, so its counters are exact. In some rounds
workers are killed, in others the module is unloaded: that forgets the counters of targets, but a
worker that lives has those of its ring."""
import os
import random
import signal
import subprocess
import time

import rig
from rig import equal, tap
import netns

MODULE = "/nf_xcipher.ko"
PACKETS = int(os.environ.get("RING_PACKETS", "10000000" if rig.PATIENCE == 1 else "100000"))
SEED = int(os.environ.get("RING_SEED", "1"))
ROUNDS = 20 if PACKETS >= 1000000 else 4
WORKERS, STEP, STREAM_MAX = 8, 10, 8000000
NEVER = 600000  # ms, the longest grace: no worker is dead for that long
BYPASS_FLAG, EMERGENCY_FLAG = 1, 8
EVENTS = 20  # of a round


class SecondNet(netns.Net):
    """The same addresses in namespaces of other names."""

    def _add(self, *parts):
        return super()._add(*(part + "2" for part in parts))


def cpus():
    return sorted(os.sched_getaffinity(0))


def quiet():
    """No packet waits or is being handled. A process runs on a processor only between packets, and a
    packet of a test passes at most two links without a worker."""
    mine = os.sched_getaffinity(0)
    for _ in range(3):
        rig.settled()
        for cpu in mine:
            os.sched_setaffinity(0, {cpu})
        os.sched_setaffinity(0, mine)
    return rig.settled()


def count(ns, v6, name):
    """A counter of UDP in a namespace."""
    with subprocess.Popen(["ip", "netns", "exec", ns, "cat", "/proc/net/snmp6" if v6 else "/proc/net/snmp"], text=True, stdout=subprocess.PIPE) as p:
        text = p.communicate()[0]
    if v6:
        return next(int(x.split()[1]) for x in text.splitlines() if x.startswith(f"Udp6{name} "))
    names, values = (x.split() for x in text.splitlines() if x.startswith("Udp: "))
    return int(values[names.index(name)])


class Worker:
    """A worker of nfx, its target and its stream. Always on the same processor, or its packets could
    overtake each other."""

    def __init__(self, side, n):
        self.side, self.n, self.nfx, self.state = side, n, None, "dead"
        self.cpu = cpus()[n % len(cpus())]

    def start(self):
        s, port, flags = self.side, 30000 + STEP * self.n, BYPASS_FLAG | (EMERGENCY_FLAG if self.n == 0 else 0)
        self.nfx = rig.Nfx(s.net.gateway)
        os.sched_setaffinity(self.nfx.p.pid, {self.cpu})
        self.nfx.hello(owner=self.n + 1, grace=NEVER)
        self.nfx.ok(f"set +create addr={s.w.g} port={port} action=queue queue=99 flags={flags}")
        self.nfx.ok(f"set +create addr={s.w.h} port={port + 2} action=queue queue=99 flags={flags}")
        self.nfx.ok("ring open 256 64")
        self.run()

    def run(self):
        s, port = self.side, 30000 + STEP * self.n
        # Half of them wait in their bells, the others in epoll.
        self.nfx.ok(f"ring run {s.w.h},{port + 2},{s.w.b},{5000 + STEP * self.n} wake=32 window=2000000 lose=20 again=40 seed={self.n + 1} wait={self.n % 2}")
        self.state = "runs"

    def signal(self, name):
        self.nfx.p.send_signal(name)

    def stop(self):
        self.signal(signal.SIGSTOP)
        self.state = "stopped"

    def go_on(self):
        self.signal(signal.SIGCONT)
        self.state = "runs"

    def kill(self):
        self.nfx.close(kill=True)
        self.state = "dead"

    def finish(self):
        """Takes all that waits, and ends. Returns what it did, and the ring's counters."""
        got = self.nfx.ring_stop()
        self.state = "ended"
        return got

    def change(self, rnd, may_kill):
        """A random event. Returns its name."""
        if self.state == "dead":
            self.start()
            return "restarted"
        if may_kill and rnd.random() < (0.2 if self.state == "stopped" else 0.5):
            self.kill()
            return "killed"
        if self.state == "stopped":
            self.go_on()
            return "continued"
        self.stop()
        return "stopped"


class Side:
    """A gateway with its workers, and the streams through it."""

    def __init__(self, net, v6):
        self.net, self.v6, self.w = net, v6, rig.Way(net, v6)
        self.workers = [Worker(self, n) for n in range(WORKERS)]
        self.look, self.load = None, None
        self.w.neighbours()

    def begin(self, seed):
        for w in self.workers:
            w.start()
        self.look = rig.Nfx(self.net.gateway)
        w, t = self.w, self.net.terminal
        self.before = self.counters()
        self.load = subprocess.Popen(["/build/t/pktx", "bulk", f"{t['caller']},{w.a},4000", f"{w.g},30000", f"{t['callee']},{w.b},5000", f"{self.net.gateway},{w.g},30000", str(WORKERS), str(STEP),
                                      str(STREAM_MAX), str(seed)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, command):
        """Returns the number of packets sent."""
        self.load.stdin.write(command + "\n")
        self.load.stdin.flush()
        return int(self.load.stdout.readline().split("=")[1])

    def streams(self):
        out = self.load.communicate("end\n")[0]
        rows = [{k: int(v) for k, v in (x.split("=") for x in line.split())} for line in out.splitlines()]
        return {k: sum(r[k] for r in rows) for k in ("sent", "got", "passed", "dup", "late", "bad")}, min(r["got"] for r in rows)

    def counters(self):
        """Of the module for this namespace, and of sockets."""
        c = dict(self.look.ok("stats")[0])
        c["no_socket"] = count(self.net.gateway, self.v6, "NoPorts") + count(self.net.gateway, self.v6, "RcvbufErrors")
        c["no_room"] = count(self.net.terminal["callee"], self.v6, "RcvbufErrors")
        return c

    def since(self):
        now = self.counters()
        return {k: now[k] - self.before.get(k, 0) for k in now}

    def end(self):
        for w in self.workers:
            w.nfx.close()
        self.look.close()


def progress(sides):
    return sum(s.ask("progress") for s in sides)


def events(sides, rnd, packets, may_kill, between=None):
    """Random events while these packets are sent. Returns how often each happened."""
    happened = {}
    for n in range(1, EVENTS + 1):
        while progress(sides) < packets * n // EVENTS:
            time.sleep(1)  # each look costs as much as some hundred packets
        workers = [w for s in sides for w in s.workers]
        down = [w for w in workers if w.state != "runs"]
        what = rnd.choice(down if down and rnd.random() < 0.6 else workers).change(rnd, may_kill)
        happened[what] = happened.get(what, 0) + 1
        if between and n in (EVENTS // 3, EVENTS * 2 // 3):
            between()
    return happened


def wake_all(sides):
    """Every worker runs again."""
    for s in sides:
        for w in s.workers:
            if w.state == "stopped":
                w.go_on()
            elif w.state == "dead":
                w.start()


def calm(sides):
    """Ends sending. Workers take what waits. Returns what they did, for each side."""
    for s in sides:
        s.ask("quiet")
    quiet()
    did = [[w.finish() for w in s.workers] for s in sides]
    quiet()
    return did


def orderly(name, sums):
    equal(f"{name}: none twice, none late, none changed", [(x["dup"], x["late"], x["bad"]) for x in sums], [(0, 0, 0)] * len(sums))


def killing(sides, rnd, packets, name):
    """Workers are killed and restarted. The module counts for each namespace."""
    for s in sides:
        s.begin(rnd.getrandbits(30))
    happened = events(sides, rnd, packets, True)
    wake_all(sides)
    did = calm(sides)
    sums = [s.streams()[0] for s in sides]

    def lost(s, x):
        c = s.since()
        counted = {k: c[k] for k in ("no_socket", "no_room", "RING_DROPS", "RING_ENDED", "NO_ROUTE", "NO_MEMORY")}
        return x["sent"] - x["got"] - x["passed"] - sum(counted.values()), c["QUEUED"] - x["sent"], c["SENT"] - x["got"] - c["no_room"], counted

    rig.until(lambda: all(lost(s, x)[:3] == (0, 0, 0) for s, x in zip(sides, sums)))  # an ended ring is counted a little later
    got = [lost(s, x) for s, x in zip(sides, sums)]
    equal(f"{name}: every packet was queued, and arrived or is counted", [x[:3] for x in got], [(0, 0, 0)] * len(sides))
    orderly(name, sums)
    rig.note(f"{happened}, {sum(d[0]['lost'] for side in did for d in side)} wake-ups lost by those that lived; {sums}; {[x[3] for x in got]}")
    for s in sides:
        s.end()
    return sums, happened


class Reloads:
    """Unloads the module under load and loads it again. Keeps the counters of the rings that ended."""

    def __init__(self, sides):
        self.sides, self.ended, self.count = sides, [[] for _ in sides], 0

    def __call__(self):
        for s in self.sides:
            s.look.close()
        rig.run(["rmmod", "nf_xcipher"])
        for s, ended in zip(self.sides, self.ended):
            for w in s.workers:
                if w.state == "stopped":
                    w.go_on()
                ended.append(w.finish())
                w.nfx.close()
        rig.run(["insmod", MODULE])
        for s in self.sides:
            for w in s.workers:
                w.start()
            s.look = rig.Nfx(s.net.gateway)
        self.count += 1


def unloading(sides, rnd, packets, name):
    """The module is unloaded. The rings count."""
    for s in sides:
        s.begin(rnd.getrandbits(30))
    reloads = Reloads(sides)
    happened = events(sides, rnd, packets, False, reloads)
    happened["unloaded"] = reloads.count
    wake_all(sides)
    rings = [a + b for a, b in zip(reloads.ended, calm(sides))]
    sums = [s.streams()[0] for s in sides]
    equal(f"{name}: the module told the workers", [sum(state["state"] == 2 for _, state in r) for r in rings], [WORKERS * reloads.count] * len(sides))
    got = []
    for s, x, ring in zip(sides, sums, rings):
        c, states = s.since(), [state for _, state in ring]
        total = lambda key, states=states: sum(x[key] for x in states)
        put, full = total("PACKETS"), total("FULL") + total("FULL_EMERGENCY") + total("TOO_LONG")
        left = sum((x["published"] - x["taken"]) % 2 ** 32 for x in states)
        failed = total("BAD_SENDS") + total("FAILED_SENDS")
        sent, same = total("SENT"), sum(x["published"] for x in states)
        counted = {"no_socket": c["no_socket"], "no_room": c["no_room"], "full": full, "left": left, "failed": failed}
        got.append((x["sent"] - x["got"] - x["passed"] - sum(counted.values()), x["sent"] - put - full - x["passed"] - c["no_socket"], sent - x["got"] - c["no_room"], put - same, counted))
    equal(f"{name}: every packet came to a ring or passed, and arrived or is counted", [x[:4] for x in got], [(0, 0, 0, 0)] * len(sides))
    orderly(name, sums)
    rig.note(f"{happened}, {sum(ran['lost'] for r in rings for ran, _ in r)} wake-ups lost; {sums}; {[x[4] for x in got]}")
    for s in sides:
        s.end()
    return sums, happened


def main():
    rig.note(f"{PACKETS} packets, seed {SEED}")
    rig.write("/proc/sys/net/core/netdev_max_backlog", 1000000)  # the links themselves lose nothing
    with netns.Net(("caller", "callee")) as one, SecondNet(("caller", "callee")) as two:
        sides, rnd = [Side(one, False), Side(two, True)], random.Random(SEED)
        totals, seen = {"sent": 0, "got": 0}, {}
        for n in range(ROUNDS):
            kind = unloading if n % 4 == 3 else killing
            sums, happened = kind(sides, rnd, PACKETS // ROUNDS, f"round {n + 1}, {kind.__name__}")
            for key in totals:
                totals[key] += sum(x[key] for x in sums)
            seen = {k: seen.get(k, 0) + happened.get(k, 0) for k in {*seen, *happened}}
        rig.note(f"{totals}; {seen}")
        tap(totals["sent"] >= PACKETS and totals["got"] > totals["sent"] // 2, f"{totals['sent']} packets were sent, and most arrived ({totals['got']})")
        tap(min(seen.get(k, 0) for k in ("stopped", "killed", "restarted", "continued", "unloaded")) > 0, "each kind of event happened")


os.sched_setaffinity(0, {0, 1} & os.sched_getaffinity(0))
rig.test(main)
