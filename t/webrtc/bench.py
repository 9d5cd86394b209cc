#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How soon media start: from the answer at the offerer to the first authentic packet at each peer. make bench-webrtc.

    bench.py [--relays=rtpengine,xcipherd] [--calls=30] [--cells=aiortc-sdes,...]

The relays take turns, call by call, so that both see the same machine. All run in namespaces of one machine; peers are started before
the clock. Prints the median and the 90th percentile in milliseconds."""
import argparse
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import call  # noqa: E402
import cells  # noqa: E402
import kinds  # noqa: E402
import netns  # noqa: E402
import relay  # noqa: E402

CELLS = "aiortc-sdes,sdes-aiortc,aiortc-aiortc,sdes-sdes"


def sample(net, the_relay, name):
    """Milliseconds at the offerer and at the answerer, and SRTP packets that the offerer sent and the answerer did not receive."""
    def check(c):
        reports = c.talks(blocks=3)
        return (*call.first_media_ms(c, reports), max(0, reports[0]["packets_out"] - reports[1]["packets_in"] - 2))
    return cells.talk(net, the_relay, *name.split("-"), check=check)


def figures(values):
    s = sorted(values)
    return f"{statistics.median(s):.0f} ({s[len(s) * 9 // 10]:.0f})"


def measure(relays, names, calls):
    got = {(r, n): [] for r in relays for n in names}
    with netns.Net(call.PLACES) as net:
        running = {r: call.start_relay(net, r, i) for i, r in enumerate(relays)}
        for i in range(calls):
            for name in names:
                for r in relays[i % len(relays):] + relays[:i % len(relays)]:
                    got[r, name].append(sample(net, running[r], name))
    return got


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--relays", default="rtpengine")
    p.add_argument("--calls", type=int, default=30)
    p.add_argument("--cells", default=CELLS)
    args = p.parse_args()
    if missing := kinds.KINDS["aiortc"].missing():
        print(f"skipped: {os.path.basename(missing)} is not installed")
        return
    relays, names = args.relays.split(","), args.cells.split(",")
    if "rtpengine" in relays and not relay.have_rtpengine():
        print("skipped: rtpengine is not installed")
        return
    got = measure(relays, names, args.calls)
    print(f"{args.calls} calls each, by turns; milliseconds from answer to first packet: median (90th percentile)")
    print("| offerer - answerer | relay | at the offerer | at the answerer | packets the offerer sent in vain, mean |\n|---|---|---|---|---|")
    for name in names:
        for r in relays:
            rows = list(zip(*got[r, name]))
            print(f"| {name} | {r} | {figures(rows[0])} | {figures(rows[1])} | {statistics.mean(rows[2]):.1f} |")


if __name__ == "__main__":
    main()
