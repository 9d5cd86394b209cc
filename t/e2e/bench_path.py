#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench: the packet path compared with Debian's rtpengine (userspace), in turns, with the same
topology and load.

t/tool/srtpload makes the load: SRTP encrypted before the clock starts. It checks every packet
for loss and order, and decrypts and compares one in 16. CPU: the relay's own user and system
time by the kernel's accounting, per received packet. Delay: between the kernel's time stamps
when a packet leaves the terminals' interface and when it returns, that is two links and the
relay. The load's own wait for a processor is not in it; the section delay also prints p99 with
that wait ("from the call"). The search for the highest rate uses the stricter "from the call",
because stamps of sent packets cost the load a sixth of its rate.
Columns for interference: "else" is the share of the machine that other programs and the
hypervisor took in the worst round, in percent. "waits" is the time for which the relay's threads
were ready without a processor, in milliseconds per second. "behind" is the p99 of how late the
load's packets left, in microseconds: late packets arrive in bursts, and their delay is not the
relay's.
Figures are medians of the rounds, with lowest and highest in brackets. Rates count both
directions together, delay is one way. "rt": threads that carry packets have real-time priority
(--worker-priority=1; rtpengine's --scheduling=rr).

Sections (--only picks some):
  cost      CPU per packet by relay and by security of both sides, and the floor: a bare loop
that only receives and sends
  delay     delay and CPU from 20 calls to thousands, with the floor for rows that have a target
  pairs     CPU of a few calls, 1 to 20
  rate      highest rate without loss and with p99 under 5 ms (bench_rate.py), and the limit of
the load program
  setup     call set-up: time, the relay's CPU, resident memory per call
  scale     CPU per packet by number of calls at the same packet rate, with the bare loops
  loop      xcipher-bench path: the worker loop on packets from memory, without system calls, and
its floor
  flood     forged packets during 20 calls: the relay's CPU per forged packet, loss and p99 of the
calls (bench_flood.py)
  flights   first packets of DTLS, ICE and ZRTP as floods at legs of these keyings, beside garbage
(bench_flood_keying.py)
  transcode calls between different codecs: the relay's CPU per packet, loss and delay
(bench_transcode.py)
Prints tables and targets, writes path.json and path-*.png, and reports progress on standard
error. --full: more rounds of the main table, more variants, up to 20,000 calls over two local
addresses. udp and rtpengine have no row there if descriptors are too few for a socket per port.
Sections share measurements."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench_flood  # noqa: E402
import bench_flood_keying  # noqa: E402
import bench_rate  # noqa: E402
import bench_transcode  # noqa: E402
import calls  # noqa: E402
import relay  # noqa: E402
from bench_measure import descriptors_for, floor, generator, measure, progress  # noqa: E402
from bench_pictures import pictures  # noqa: E402
from bench_rate import GENERATOR, best_rate, why_bounds  # noqa: E402
from bench_targets import PEER, mid, sound, targets_print  # noqa: E402

PAIRS = {"SRTP 80-32": ("80", "32"), "SRTP-RTP": ("80", "plain"), "RTP-RTP": ("plain", "plain"), "SRTP 80-80": ("80", "80")}


def xcipherd(steering, engine, *options):
    def start(net):
        if steering == "nfqueue" and "--nfqueue-send=raw" not in options:  # the upper bound: the host forwards packets that netfilter rewrote
            net.forward()
        return relay.Xcipherd(net, f"--steering={steering}", f"--engine={engine}", "--log-level=4", "--overload-age=50", "--port-min=2000",
                              "--port-max=65535", *options)
    return start


def relays(args):
    steerings = [s for s in ("udp", "nfqueue", "xdp") if s in relay.steerings()]
    r = {f"{s} opencl": xcipherd(s, "opencl") for s in steerings}
    r.update({f"{s} serial": xcipherd(s, "serial") for s in steerings})
    if args.full:
        r["nfqueue raw opencl"] = xcipherd("nfqueue", "opencl", "--nfqueue-send=raw")
    if relay.have_rtpengine():
        r[PEER] = lambda net: relay.Rtpengine(net, ports=(2000, 65535))
    return wanted(r, args.relays)


def real_time(names):
    """The same relays and names, with real-time priority for the threads that carry packets."""
    r = {f"{n} rt": xcipherd(*n.split(), "--worker-priority=1") for n in names if n != PEER}
    if PEER in names:
        r[f"{PEER} rt"] = lambda net: relay.Rtpengine(net, ports=(2000, 65535), options=("--scheduling=rr", "--priority=1"))
    return r


def one_worker(args):
    return wanted({f"{s} opencl": xcipherd(s, "opencl", "--workers=1") for s in ("udp", "nfqueue", "xdp") if s in relay.steerings()}, args.relays)


def wanted(variants, words):
    """The relays whose name contains one of the words."""
    return {k: v for k, v in variants.items() if not words or any(word in k for word in words.split(","))}


# --- Tables --------------------------------------------------------------------------------------------------------------

def spread(rows, key, digits=1):
    v = [r[key] for r in rows]
    return f"{statistics.median(v):.{digits}f} ({min(v):.{digits}f}-{max(v):.{digits}f})"


def ratios(rows, peer, key="cpu_us"):
    """Round by round, because the machine's other load changes from minute to minute."""
    v = [a[key] / b[key] for a, b in zip(rows, peer) if b[key] and sound(a) and sound(b)]
    return f"{statistics.median(v):.2f} ({min(v):.2f}-{max(v):.2f})" if v else "-"


HEAD = (f"{'':<26} {'CPU us/packet':>20} {'of rtpengine':>18} {'p50 us':>18} {'p99 us':>22} {'batch':>6} {'lost':>7} "
        f"{'wrong':>5} {'order':>5} {'else':>5} {'waits':>6} {'behind':>7}")


def line(name, rows, peer):
    print(f"{name:<26} {spread(rows, 'cpu_us'):>20} {ratios(rows, peer) if peer else '-':>18} {spread(rows, 'p50_us', 0):>18} "
          f"{spread(rows, 'p99_us', 0):>22} {mid(rows, 'mean_batch') if 'mean_batch' in rows[0] else 0:>6.1f} "
          f"{max(r['lost'] for r in rows):>7} {max(r['wrong'] + r['bad_auth'] + r['duplicates'] for r in rows):>5} "
          f"{max(r['reordered'] for r in rows):>5} {max(r['else_percent'] for r in rows):>4.0f}% {mid(rows, 'waits_ms'):>6.0f} {mid(rows, 'behind_p99_us'):>7.0f}")


def from_call(rows):
    print("  p99 from the load's call to send, with its own waiting, us: " + ", ".join(f"{n} {mid(r, 'call_p99_us'):.0f}" for n, r in rows.items()))


MEASURED = {}  # results by measurement, relay and variant


def by(name, start, count, total, pair, seconds):
    """A measurement for in_turns(). Skips those another section already made."""
    def run():
        return measure(start, count, total, pair, seconds)
    run.key = (name, count, total, pair, seconds)
    return run


def once(run, i, label):
    """The i-th result of a measurement."""
    rows = MEASURED.setdefault(run.key, []) if hasattr(run, "key") else []
    if len(rows) <= i:
        progress(label)
        rows.append(run())
        return rows[-1]
    return rows[i]


FAILS = (calls.Failed, TimeoutError, RuntimeError, OSError)


def in_turns(variants, rounds, label, less=None):
    """Each round begins with another relay, so that neighbours change. less: fewer rounds for one
    relay."""
    rows = {name: [] for name in variants}
    for i in range(rounds):
        names = list(rows)
        for name in names[i % max(len(names), 1):] + names[:i % max(len(names), 1)]:
            if less and i >= less(name):
                continue
            try:
                rows[name].append(once(variants[name], i, f"{label}, round {i + 1} of {rounds}: {name}"))
            except FAILS as why:  # more calls than the relay, or the limit of open files, allows
                progress(f"{name}: left out: {why}")
                del rows[name]
    return rows


# --- Sections --------------------------------------------------------------------------------------------------------------

def main_relays(args, count=0):
    """Relays that the later sections measure and that have enough descriptors for this many calls."""
    return {n: s for n, s in relays(args).items()
            if not n.endswith("serial") and " raw " not in n and (descriptors_for(count) or not n.startswith(("udp", PEER)))}


def floors(args, window_us, count, total, label=""):
    """The bare loops, measured in turns with the relays. label: of a section with measurements of
    its own."""
    def of(steering):
        def run():
            return floor(steering, window_us, count, total, args.seconds)
        run.key = (f"floor {steering}", label, window_us, count, total, args.seconds)
        return run
    return wanted({f"floor {s}": of(s) for s in ("udp", "nfqueue", "xdp")
                   if s in relay.steerings() and (s != "udp" or descriptors_for(count))}, args.relays)


def section_cost(args, out):
    for label, pair in wanted(PAIRS, args.sides).items():
        first = label == next(iter(PAIRS))
        variants = {name: by(name, start, args.calls, args.total, pair, args.seconds)
                    for name, start in (relays(args) if first else main_relays(args)).items()}
        if first:
            variants.update(floors(args, 250, args.calls, args.total))
        rows = in_turns(variants, args.rounds + (2 if args.full and first else 0), f"cost, {label}",
                        less=lambda name: (2 if args.full else 1) if name.endswith("serial") or " raw " in name else args.rounds + 2)
        print(f"\n{label}: {args.calls} calls, {args.total} packets per second, both directions together\n{HEAD}")
        for name, r in rows.items():
            line(name, r, rows.get(PEER))
        from_call(rows)
        out[label] = rows
    if PEER in out.get("SRTP 80-80", ()):
        print("\nour re-encryption (SRTP 80-32) beside rtpengine's pass-through (SRTP 80-80), round by round:")
        for name, r in out.get("SRTP 80-32", {}).items():
            if name != PEER:
                print(f"  {name:<24} {ratios(r, out['SRTP 80-80'][PEER])}")


MANY = 10000  # calls: setting up takes longer than measuring


def section_delay(args, out):
    sizes = [(20, 2000), (50, 5000), (150, 15000), (500, 50000), (2000, args.total), (MANY, args.total)] + ([(2 * MANY, args.total)] if args.full else [])
    for count, total in sizes:
        starts = main_relays(args, count)
        if count == 500:  # a delay without waiting for a processor
            starts.update(real_time(list(starts)))
        variants = {name: by(name, start, count, total, PAIRS["SRTP 80-32"], args.seconds) for name, start in starts.items()}
        if count in (20, 500):  # relays with a target; a single packet is not held back
            variants.update(floors(args, 0 if count == 20 else 250, count, total))
        rows = in_turns(variants, 1 if count >= MANY else args.rounds if count in (20, 500) else min(args.rounds, 2), f"delay, {count} calls")
        print(f"\n{count} calls, {total} packets per second, both directions together\n{HEAD}")
        for name, r in rows.items():
            line(name, r, rows.get(PEER))
        from_call(rows)
        out[str(count)] = rows
    print("else: percent of the machine that other programs and the hypervisor took; waits: ms per second that the relay's threads had no processor; "
          "behind: p99 in us of the load's own lateness.\nCPU is that of the relay's own process; what the kernel does for it in the load's (receiving, with "
          "nfqueue and xdp) is in nobody's figure.")


def section_pairs(args, out):
    print(f"\nCPU in percent of one core by number of calls, 50 packets per second each way\n{'calls':>6}", end="")
    print("".join(f"{n:>20}" for n in main_relays(args)))
    for count in (1, 5, 10, 20):
        rows = in_turns({n: by(n, s, count, 100 * count, PAIRS["SRTP 80-32"], args.seconds) for n, s in main_relays(args).items()},
                        min(args.rounds, 2), f"pairs, {count} calls")
        print(f"{count:>6}" + "".join(f"{spread(r, 'cpu_percent'):>20}" for r in rows.values()), flush=True)
        out[str(count)] = rows


SETTLE_S = 3  # waiting time before a spoilt try is repeated without other relays in between


def try_rate(run, total, tries, label):
    began = time.monotonic()
    try:
        r = run(total)
    except FAILS as why:
        r = {"error": str(why)}
    tries.append({**r, "total": total, "took_s": r.get("took_s", time.monotonic() - began)})
    tries[-1]["verdict"] = bench_rate.verdict(tries[-1])
    progress(f"{label}: {total:.0f}: {bench_rate.told(tries[-1])}")


def search_all(variants, out, settle_s=SETTLE_S):
    """One try of each relay in turn, so that other load affects all of them."""
    left = {name: run for name, run in variants.items()}
    for name in left:
        out.setdefault(name, [])
    while left:
        for name, run in list(left.items()):
            total = bench_rate.next_rate(out[name])
            if total is None:
                del left[name]
                continue
            if len(left) == 1 and out[name] and out[name][-1]["verdict"] == "spoilt":
                time.sleep(settle_s)
            try_rate(run, total, out[name], f"rate, {name}")


def section_rate(args, out):
    print(f"\nhighest rate without loss and with p99 under 5 ms, packets per second of both directions together, within 8 %, SRTP 80-32, {args.calls} calls\n"
          f"{'':<26} {'held':>10} {'p50 us':>10} {'p99 us':>10} {'CPU us/packet':>14} {'not held':>10} {'tries':>6} {'spoilt':>6}")
    starts = main_relays(args)
    if args.full:
        starts.update(real_time([n for n in starts if not n.startswith("udp")]))
    variants = {n: lambda t, s=s: measure(s, args.calls, t, PAIRS["SRTP 80-32"], 2, "call") for n, s in starts.items()}
    if not args.relays:
        variants[GENERATOR] = lambda t: generator(2 * args.calls, t, 2, "call")
    search_all(variants, out)
    why = why_bounds(out)
    for name, tries in out.items():
        best = best_rate(tries)
        over = min((r["total"] for r in tries if r["verdict"] != "held" and r["total"] > (best or 0)), default=0)
        rows = [r for r in tries if r["total"] == best and r["verdict"] == "held"]
        print(f"{name:<26} " + (f"{best:>10.0f} {mid(rows, 'p50_us'):>10.0f} {mid(rows, 'p99_us'):>10.0f} "
                                f"{mid(rows, 'cpu_us') if 'cpu_us' in rows[0] else 0:>14.1f}" if best else f"{'-':>47}") +
              f" {over:>10.0f} {len(tries):>6} {sum(r['verdict'] == 'spoilt' for r in tries):>6}", flush=True)
        if name in why:
            print(f"{'':<26} a lower bound: {why[name]}", flush=True)
    print("spoilt: tries that failed while others had more than 2 % of the machine; they are repeated, and count for nobody unless all were.")


def section_setup(args, out):
    sizes = (100, 1000, MANY) + ((2 * MANY,) if args.full else ())
    print(f"\ncall set-up (offer and answer with SDP, one client that waits for each reply) and memory\n{'':<26} {'calls':>7} "
          f"{'ms each':>22} {'a second':>9} {'relay CPU ms':>22} {'KiB per call':>20}")
    for count in sizes:
        # Many calls, as measured by the section delay.
        total, seconds = (args.total, args.seconds) if count >= MANY else (1000, 0.5)
        variants = {n: by(n, s, count, total, PAIRS["SRTP 80-32"], seconds) for n, s in main_relays(args, count).items()}
        rows = in_turns(variants, 1 if count >= MANY else args.rounds, f"setup, {count} calls")
        for name, r in rows.items():
            print(f"{name:<26} {count:>7} {spread(r, 'setup_ms', 2):>22} {mid(r, 'setups'):>9.0f} {spread(r, 'setup_cpu_ms', 2):>22} {spread(r, 'kib_per_call'):>20}",
                  flush=True)
        out[str(count)] = rows


def section_scale(args, out):
    """One worker in every row. By default xcipherd spreads calls for 1,000,000 packets per second
    over all workers, which would halve the batches here. The bare loops take the same turns:
    their cost shows the kernel's growth."""
    print(f"\nCPU per packet by number of calls, {args.total} packets per second, both directions together, SRTP 80-32, one worker\n{HEAD}")
    starts = {n: s for n, s in {**main_relays(args), **one_worker(args)}.items() if args.full or n != PEER}
    for rounds in range(1, min(args.rounds, 2) + 1):  # the numbers of calls take turns, too, because they are compared
        for count in (100, 1000, MANY):
            variants = {n: by(f"{n}, one worker", s, count, args.total, PAIRS["SRTP 80-32"], args.seconds) for n, s in starts.items()
                        if descriptors_for(count) or not n.startswith(("udp", PEER))}
            variants.update(floors(args, 250, count, args.total, "one worker"))
            out[str(count)] = in_turns(variants, rounds, f"scale, {count} calls")
    for count, rows in out.items():
        for name, r in rows.items():
            line(f"{name}, {count}", r, rows.get(PEER))


def section_loop(args, out):
    program = os.path.join(relay.BUILD, "xcipher-bench")
    if not os.access(program, os.X_OK):
        print("\nno xcipher-bench: make bench-program")
        return
    cpu = str(max(os.sched_getaffinity(0)))
    progress("loop")
    done = subprocess.run([program, "path", "--json", "--cpu=" + cpu, "--calls=100,1000,10000", "--seconds=" + str(max(1, round(args.seconds)))],
                          stdout=subprocess.PIPE, text=True, check=True)
    print(f"\nthe worker loop on packets from memory, one core, ns per packet; floor: a bare loop over the tables' lines, and the engine alone\n"
          f"{'calls':>7} {'loop':>8} {'spread':>8} {'prepare':>8} {'cipher':>8} {'complete':>8} {'floor':>8} {'lines':>8} {'engine':>8}")
    for text in done.stdout.splitlines():
        r = json.loads(text)
        out[str(r["calls"])] = r
        print(f"{r['calls']:>7} {r['ns_per_packet']:>8.0f} {100 * r['spread']:>7.0f}% {r['prepare']:>8.0f} {r['cipher']:>8.0f} {r['complete']:>8.0f} "
              f"{r['floor']:>8.0f} {r['floor_lines']:>8.0f} {r['floor_cipher']:>8.0f}")


def section_flood(args, out):
    bench_flood.section({n: s for n, s in relays(args).items() if n.endswith("serial") or n == PEER}, args, out)


def section_flights(args, out):
    bench_flood_keying.section([n.removesuffix(" serial") for n in relays(args) if n.endswith(" serial")], args, out)


def section_transcode(args, out):
    r = {f"{s} serial": xcipherd(s, "serial", *bench_transcode.PLUGINS, *args.options.split()) for s in ("udp", "nfqueue") if s in relay.steerings()}
    if relay.have_rtpengine():
        r[PEER] = relay.Rtpengine
    bench_transcode.section(wanted(r, args.relays), in_turns, args, out)


def sleep_us():
    """Every relay pays for each wake-up. Batches share that cost among packets."""
    done = subprocess.run([os.path.join(relay.BUILD, "t", "sleep_cost")], stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as f:
        model = next((row.split(":", 1)[1].strip() for row in f if row.startswith("model name")), "unknown processor")
    return f"{os.cpu_count()} x {model}, Linux {os.uname().release}"


SECTIONS = {"cost": section_cost, "delay": section_delay, "pairs": section_pairs, "rate": section_rate, "setup": section_setup,
            "scale": section_scale, "loop": section_loop, "flood": section_flood, "flights": section_flights, "transcode": section_transcode}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", help="sections, between commas", default=",".join(SECTIONS))
    p.add_argument("--relays", help="words of the relays' names, between commas", default="")
    p.add_argument("--sides", help="cost: words of what the sides speak, between commas", default="")
    p.add_argument("--streams", help="transcode: numbers of streams, between commas; default 50, with --full 50,500", default="")
    p.add_argument("--codecs", help="transcode: words of the rows' names, between commas, such as PCMU-G722", default="")
    p.add_argument("--options", help="transcode: more options of xcipherd, between blanks", default="")
    p.add_argument("--calls", type=int, default=500)
    p.add_argument("--total", type=int, default=40000, help="packets per second of all calls together")
    p.add_argument("--rounds", type=int)
    p.add_argument("--seconds", type=float, default=2.5)
    p.add_argument("--full", action="store_true")
    p.add_argument("--out", default=os.path.join(relay.BUILD, "bench"))
    args = p.parse_args()
    args.rounds = args.rounds or 3
    os.makedirs(args.out, exist_ok=True)
    if args.full:
        progress("all of it takes some 28 minutes on a quiet machine, 40 on a busy one")
    result = {"machine": machine(), "sleep_us": sleep_us(), "arguments": vars(args), "sections": {}}
    print("medians of rounds (lowest-highest); packets per second of both directions together; delay one way, terminal to terminal; rt: real-time priority")
    print(f"{result['machine']}; to sleep once for 250 us and wake up takes {result['sleep_us']:.0f} us of processor time")
    names = args.only.split(",")
    for i, name in enumerate(names):
        if name not in SECTIONS:
            sys.exit(f"bench_path.py: no section \"{name}\": {', '.join(SECTIONS)}")
        progress(f"section {i + 1} of {len(names)}: {name}")
        SECTIONS[name](args, result["sections"].setdefault(name, {}))
        with open(os.path.join(args.out, "path.json"), "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
    result["targets"] = targets_print(result["sections"])
    with open(os.path.join(args.out, "path.json"), "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
    pictures(result, args.out)
    print(f"\nwritten: path.json and path-*.png in {args.out}")


if __name__ == "__main__":
    main()
