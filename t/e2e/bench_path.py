#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench: the packet path beside Debian's rtpengine (userspace), same topology, same load, one after the other and interleaved.

bench_path.py [--calls N] [--rounds N] [--seconds N] [--out FOLDER]

Load: N calls, 50 packets per second each way, AES_CM_128_HMAC_SHA1_80 on one side and _32 on the other, terminals are libsrtp2 and check
every packet. CPU is the relay's own user and system time by the kernel's accounting; delay is from the sending to the
receiving call of the terminals, two links and the relay in between. Prints a table, writes path.json and path.png.
"""
import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import calls  # noqa: E402
import netns  # noqa: E402
import relay  # noqa: E402


def variants():
    v = [(f"xcipherd {s} {e}", lambda net, s=s, e=e: relay.Xcipherd(net, f"--steering={s}", f"--engine={e}", "--log-level=4"))
         for s in ("udp", "nfqueue") for e in ("serial", "opencl")]
    if relay.have_rtpengine():
        v.append(("rtpengine userspace", relay.Rtpengine))
    return v


def measure(start, args):
    with netns.Net(("caller",)) as net:
        daemon = start(net).wait_ready()
        talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(args.calls)]
        time.sleep(0.5)
        before = daemon.cpu_seconds()
        result = calls.load(net, relay.BUILD, talk, rate=50, seconds=args.seconds)
        result["cpu_us"] = (daemon.cpu_seconds() - before) * 1e6 / max(result["received"], 1)
        if isinstance(daemon, relay.Xcipherd):
            s = daemon.statistics()
            result["mean_batch"] = float(s["mean batch"])
            result["own_p50_us"] = float(s["latency"]["p50_us"])
            result["own_p99_us"] = float(s["latency"]["p99_us"])
        daemon.stop()
    return result


def summary(rows, key):
    values = [r[key] for r in rows if key in r]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def show(s, digits=1):
    return "-" if s is None else f"{s['median']:.{digits}f} ({s['min']:.{digits}f}-{s['max']:.{digits}f})"


def plot(table, path, title):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    names = list(table)
    fig, axes = plt.subplots(1, 3, figsize=(14, 4.5))
    for axis, key, label in zip(axes, ("cpu_us", "p50_us", "p99_us"),
                                ("CPU per packet, µs", "delay p50, µs", "delay p99, µs (log)")):
        mid = [table[n][key]["median"] for n in names]
        low = [table[n][key]["median"] - table[n][key]["min"] for n in names]
        high = [table[n][key]["max"] - table[n][key]["median"] for n in names]
        colours = ["#888888" if n.startswith("rtpengine") else "#2a6fbb" for n in names]
        axis.barh(names, mid, xerr=[low, high], color=colours)
        axis.invert_yaxis()
        axis.set_xlabel(label)
        if key == "p99_us":
            axis.set_xscale("log")
    fig.suptitle(title)
    fig.tight_layout()
    fig.savefig(path, dpi=110)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--calls", type=int, default=40)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--out", default=os.path.join(relay.BUILD, "bench"))
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    rows = {name: [] for name, _ in variants()}
    for round_number in range(args.rounds):
        for name, start in variants():
            print(f"bench: round {round_number + 1} of {args.rounds}: {name}", file=sys.stderr, flush=True)
            rows[name].append(measure(start, args))
    keys = ("cpu_us", "p50_us", "p99_us", "max_us", "own_p50_us", "own_p99_us", "mean_batch", "lost", "reordered", "wrong", "bad_auth")
    table = {name: {k: summary(r, k) for k in keys} for name, r in rows.items()}
    title = f"{args.calls} calls, 50 packets per second each way, SRTP 80 to 32, {args.rounds} rounds of {args.seconds:.0f} s, median (min-max)"
    print(f"\n{title}\n")
    print(f"{'relay':<22} {'CPU us/packet':>20} {'delay p50 us':>20} {'delay p99 us':>24} {'inside p50':>16} {'inside p99':>18} "
          f"{'batch':>16} {'lost':>6} {'wrong':>6}")
    for name, t in table.items():
        wrong = sum(t[k]["max"] for k in ("wrong", "bad_auth", "reordered"))
        print(f"{name:<22} {show(t['cpu_us']):>20} {show(t['p50_us']):>20} {show(t['p99_us']):>24} {show(t['own_p50_us']):>16} "
              f"{show(t['own_p99_us']):>18} {show(t['mean_batch'], 2):>16} {t['lost']['max']:>6.0f} {wrong:>6.0f}")
    peer = table.get("rtpengine userspace")
    if peer:
        print("\nCPU per packet relative to rtpengine's, round by round:")
        for name in table:
            if name.startswith("rtpengine"):
                continue
            ratios = [a["cpu_us"] / b["cpu_us"] for a, b in zip(rows[name], rows["rtpengine userspace"]) if b["cpu_us"]]
            print(f"  {name:<22} {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
    with open(os.path.join(args.out, "path.json"), "w", encoding="utf-8") as f:
        json.dump({"title": title, "rows": rows}, f, indent=1)
    plot(table, os.path.join(args.out, "path.png"), title)
    print(f"\nwritten: {args.out}/path.json and path.png")


if __name__ == "__main__":
    main()
