#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions per packet of each relay, by what both sides speak and by how packets arrive. In
this guest an instruction takes 1 ns, so time that is not idle counts instructions. The cost of a
relay is the busy time with it, minus that of the same load over one link: receive, relay, send,
and one link more. Only run.py cost runs this; it makes a table of the lines "cost | ...".
COST_ROWS and COST_MEDIA in /guest/cost.env pick some by parts of their names. With COST_PROFILE it
also tells where the time goes (sample.py), with COST_EXACT where symbols are (exact.py). COST_TAGS names schemes of SRTP+, which the second kind of media then has on both legs."""
import base64
import itertools
import json
import math
import os
import re
import subprocess
import time
import zlib

import rig
import bench_flood
import bench_measure as bench
import calls
import netns
import relay
import sample

with open("/guest/cost.env", encoding="ascii") as env:
    os.environ.update(line.rstrip("\n").split("=", 1) for line in env)
MEDIA = {"RTP to RTP": ("plain", "plain"), "_80 to _32": ("80", "32"), "_80 to RTP": ("80", "plain")}
TAGS = {f"_80 to _32, {scheme}": scheme for scheme in os.environ.get("COST_TAGS", "").split(",") if scheme}
MEDIA.update({name: ("80", "32") for name in TAGS})
# How packets arrive: calls, packets that arrive together, seconds. Each leg sends 50 packets per second.
# Load and drain take whole seconds, because relays have work to do once a second.
FEW, MANY, PER_LEG = 20, 100, 50
LOADS = {"1": (FEW, 1, 1.9), "8": (MANY, 8, 0.94), "32": (MANY, 32, 0.94)}
# Before it is measured each call has one packet per second for longer than rtpengine takes to learn
# addresses (3 s) and xcipherd watches a new plain stream for circles (14 s).
WARM_SECONDS = 20
KERNEL_SHARE = 0.99  # of media that the kernel is to relay; a stream may move some packets later
COUNTERS_SECONDS = 5  # the oldest that xcipherd's counters of the kernel are
DIRECT = "direct"
PLACES = itertools.count(1)
SECTIONS = itertools.count(1)  # loads, each of which has marks for the counters of --exact


def found(tree, key):
    """The value of a key anywhere in a tree."""
    if not isinstance(tree, dict):
        return None
    return tree[key] if key in tree else next((v for v in (found(t, key) for t in tree.values()) if v is not None), None)


def xcipherd(*options, forward=False, relayed=False):
    """forward: the host forwards what netfilter rewrote, which costs less than raw sockets.
    relayed: plain media have to be relayed by the module."""
    def start(net, media):
        if forward:
            net.forward()
        daemon = relay.Xcipherd(net, *options, "--workers=1", "--log-level=4").wait_ready()
        if relayed and media == "RTP to RTP":
            daemon.relayed = lambda: found(daemon.statistics(), "packets relayed by the kernel")
        return daemon
    return start


def rtpengine(net, _media):
    return relay.Rtpengine(net, ports=(2000, 65535)).wait_ready()


def kernel_packets():
    """Counters of rtpengine's module."""
    with open("/proc/rtpengine/0/list", encoding="ascii") as f:
        return sum(int(n) for n in re.findall(r"stats: +\d+ bytes, +(\d+) packets", f.read()))


def rtpengine_kernel(net, _media):
    """With the rules of Debian's rtpengine-iptables-setup."""
    for rule in ("-N rtpengine", "-I INPUT -p udp -j rtpengine", "-I rtpengine -p udp -j RTPENGINE --id 0"):
        net.run(net.gateway, "iptables", *rule.split())
    daemon = relay.Rtpengine(net, ports=(2000, 65535), options=("--table=0",)).wait_ready()
    daemon.relayed = kernel_packets
    return daemon


RING = "--kernel-ring="
HELP = rig.run(["/build/xcipherd", "--help"])
SERIAL = "--engine=serial"
NO_RING = [RING + "no"] if RING in HELP else []
# (name, how it starts, word of xcipherd's --help without which the row is left out)
ROWS = [
    ("rtpengine, kernel mode", rtpengine_kernel, ""),
    ("rtpengine, userspace", rtpengine, ""),
    ("udp", xcipherd("--steering=udp", SERIAL), ""),
    ("nfqueue", xcipherd("--steering=nfqueue", SERIAL, forward=True), ""),
    ("kernel (netlink)", xcipherd("--steering=kernel", *NO_RING, SERIAL, forward=True, relayed=True), ""),
    ("kernel (ring)", xcipherd("--steering=kernel", RING + "yes", SERIAL, forward=True, relayed=True), RING),
    ("xdp", xcipherd("--steering=xdp", SERIAL), ""),
    ("xdp, opencl", xcipherd("--steering=xdp", "--engine=opencl"), "--opencl-device" if os.path.exists("/etc/OpenCL/vendors/pocl.icd") else "absent"),
]


def srtpload(net, spec, legs, rate, seconds, **words):
    r = bench.srtpload(net, spec, legs, legs * rate, seconds, drain_ms=round(1e3 * (math.ceil(seconds) - seconds)) or 200, stamps="call", busy="yes", **words)
    r["section"] = next(SECTIONS)
    wrong = {k: r[k] for k in ("lost", "wrong", "bad_auth", "duplicates", "reordered", "send_errors", "late", "overruns") if r[k]}
    if wrong:
        rig.note(f"cost: {wrong}")
    return r, not wrong


def tags_of(media):
    """Words of srtpload."""
    return {"tags": TAGS[media]} if media in TAGS else {}


def burst_us(legs, together):
    return 0 if together == 1 else 1e6 * together / (legs * PER_LEG)


def direct_spec(count, pair):
    """Legs as of calls, but each sends straight to the other."""
    lines = []
    for i in range(count):
        port = (bench.FIRST_PORT + 4 * i, bench.FIRST_PORT + 4 * i + 2)
        suites = [calls.Suite(s) for s in pair]
        keys = [[os.urandom(s.key_len)] if s.key_len else [] for s in suites]
        for a, b in ((0, 1), (1, 0)):
            lines.append(f"{bench.TERMINAL} {port[a]} 1 {bench.TERMINAL} {port[b]} 1 {suites[a].load(keys[a])} {suites[b].load(keys[b])}\n")
    return "".join(lines)


def direct(media, load):
    """Busy microseconds of the load over one link."""
    count, together, seconds = LOADS[load]
    with netns.Net(("caller",)) as net:
        bench.quiet_terminal(net)
        ns = net.terminal["caller"]
        for command in ("ip link add d1 type veth peer name d2", "ip link set d1 up", "ip link set d2 up"):
            net.run(ns, *command.split())
        net.run(ns, "nft", "add chain netdev bench d { type filter hook ingress device d2 priority 0; }; "
                f"add rule netdev bench d udp dport {bench.FIRST_PORT}-65535 drop")
        r, good = srtpload(net, direct_spec(count, MEDIA[media]), 2 * count, PER_LEG, seconds, burst_us=burst_us(2 * count, together), receiver="d2",
                           device="d1", **tags_of(media))
    rig.tap(good, f"{DIRECT}, {media}, {load} together: every packet arrives")
    tell(DIRECT, media, load, r, r["busy_us"] / r["sent"])
    return r["busy_us"] / r["sent"]


def tell(row, media, load, r, us):
    rig.note("cost | " + json.dumps({"row": row, "media": media, "load": load, "instructions": round(1e3 * us), "packets": r["sent"],
                                     "section": r["section"], "together": round(r["sent"] / r["bursts"], 2)}))


def measure(name, start, media, base):
    with netns.Net(("caller",)) as net:
        bench.quiet_terminal(net)
        daemon = start(net, media)
        for count in (FEW, MANY):
            talk = bench_flood.with_tags(daemon, TAGS[media], count) if media in TAGS else bench.setup(daemon, count, MEDIA[media])
            loads(name, media, daemon, talk, base)
            for call in talk:
                call.delete()
        if os.environ.get("COST_EXACT"):
            places(name, media, daemon)
        rig.equal(f"{name}, {media}: exit status", daemon.stop(), 0)


def places(name, media, daemon):
    """Where the relay's programs and the kernel's symbols are, those of BPF programs included."""
    number = next(PLACES)
    with open("/proc/kallsyms", "rb") as f:
        symbols = base64.b64encode(zlib.compress(f.read())).decode()
    rig.note("places | " + json.dumps({"row": name, "media": media, "number": number, "maps": sample.maps_of(daemon.pid())}))
    for i in range(0, len(symbols), 4000):
        rig.note(f"symbols {number} | {symbols[i:i + 4000]}")


def loads(name, media, daemon, talk, base):
    """All loads with this many calls."""
    spec, count, sent = "".join(c.spec() for c in talk), len(talk), 0
    relayed = getattr(daemon, "relayed", None)
    rate = 8 if media in TAGS else 1  # xcipherd checks the tags of the first 128 packets only
    _, good = srtpload(net=daemon.net, spec=spec, legs=2 * count, rate=rate, seconds=WARM_SECONDS, sample=1, burst_us=0, **tags_of(media))
    skip = rate * WARM_SECONDS
    rig.tap(good, f"{name}, {media}, {count} calls: every packet is relayed and right")
    if relayed:
        time.sleep(COUNTERS_SECONDS)
        before = relayed()
    for load, (_, together, seconds) in ((k, v) for k, v in LOADS.items() if v[0] == count):
        r, good = srtpload(daemon.net, spec, 2 * count, PER_LEG, seconds, burst_us=burst_us(2 * count, together), skip=skip, **tags_of(media))
        skip += int(PER_LEG * seconds)
        sent += r["sent"]
        tell(name, media, load, r, r["busy_us"] / r["sent"] - base[media, load])
        if not rig.tap(good, f"{name}, {media}, {load} together: every packet is relayed") and isinstance(daemon, relay.Xcipherd):
            rig.note(json.dumps(daemon.statistics()))
    if relayed:
        time.sleep(COUNTERS_SECONDS)
        got = relayed() - before
        rig.tap(got >= KERNEL_SHARE * sent, f"{name}, {media}, {count} calls: {got} of {sent} packets are relayed by the kernel")
    if os.environ.get("COST_PROFILE"):
        profile(name, media, daemon, spec, count, skip)


def profile(name, media, daemon, spec, count, skip):
    """Where the time of a load goes. The load itself is part of it."""
    _, together, seconds = LOADS["32" if count == MANY else "1"]
    with sample.Samples() as samples:
        srtpload(daemon.net, spec, 2 * count, PER_LEG, seconds, burst_us=burst_us(2 * count, together), skip=skip)
    top, total = samples.top(60)
    for share, where in top:
        rig.note(f"profile | {name} | {media} | {together} together | {100 * share:5.1f} % | {where}")
    rig.note(f"profile | {total} samples")


def wanted(names, variable):
    words = [w for w in os.environ.get(variable, "").split(",") if w]
    return [n for n in names if not words or any(w in n for w in words)]


def main():
    with open("/sys/devices/system/clocksource/clocksource0/current_clocksource", encoding="ascii") as f:
        rig.note("clock " + f.read().strip())
    base = {(m, load): direct(m, load) for m in wanted(MEDIA, "COST_MEDIA") for load in LOADS}
    rows = {name: start for name, start, need in ROWS if need in HELP}
    for name in wanted(rows, "COST_ROWS"):
        for media in wanted(MEDIA, "COST_MEDIA"):
            rig.test(lambda n=name, m=media: measure(n, rows[n], m, base))


if os.path.exists("/xt_RTPENGINE.ko"):
    subprocess.run(["insmod", "/xt_RTPENGINE.ko"], check=True)
if os.environ.get("COST_EXACT"):
    with open("/proc/sys/net/core/bpf_jit_kallsyms", "w", encoding="ascii") as switch:
        switch.write("1")
rig.test(main)
