#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls between kinds of peers through a relay, offerer by answerer, as a table. make check-webrtc.

    run.py [--relay=rtpengine|xcipherd] [--kinds=aiortc,sdes,...] [CELL...]      a cell is OFFERER-ANSWERER

A cell passes if both peers hear the other's tone and not their own, and no packet is missing. Cells whose programs are not installed
are skipped. The exit status is 1 if a cell fails."""
import argparse
import itertools
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import call  # noqa: E402
import cells  # noqa: E402
import kinds  # noqa: E402
import netns  # noqa: E402
import relay  # noqa: E402


class Skip(Exception):
    pass


def run_cell(the_relay, name, net):
    """The word for the table."""
    cell = cells.SPECIAL.get(name)
    a, b = cell.peers if cell else name.split("-", 1)
    for kind in (a, b):
        if missing := kinds.KINDS[kind].missing():
            raise Skip(f"{os.path.basename(missing)} is not installed")
    return (cell.check if cell else cells.two_way)(net, the_relay, a, b)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--relay", choices=("rtpengine", "xcipherd"), default="rtpengine")
    p.add_argument("--kinds", default=",".join(kinds.KINDS))
    p.add_argument("cells", nargs="*")
    args = p.parse_args()
    names = args.kinds.split(",")
    every = [f"{a}-{b}" for a, b in itertools.product(names, names)] + [n for n, c in cells.SPECIAL.items() if set(c.peers) <= set(names)]
    args.cells = args.cells or every
    return args


def main():
    args = arguments()
    if args.relay == "rtpengine" and not relay.have_rtpengine():
        print("skipped: rtpengine is not installed")
        return 0
    count = {"ok": 0, "NOT OK": 0, "skip": 0}
    print(f"relay: {args.relay}\n| offerer - answerer | result | figures |\n|---|---|---|")
    start = time.monotonic()
    with netns.Net(call.PLACES) as net:
        the_relay = call.start_relay(net, args.relay)
        for name in args.cells:
            try:
                word, text = "ok", run_cell(the_relay, name, net)
            except Skip as why:
                word, text = "skip", why
            except (call.Failed, AssertionError, TimeoutError) as why:
                word, text = "NOT OK", why
            except Exception as why:  # one cell must not end the others
                traceback.print_exc()
                word, text = "NOT OK", repr(why)
            count[word] += 1
            print(f"| {name} | {word} | {text} |", flush=True)
        if count["NOT OK"]:
            print(the_relay.text()[-3000:], file=sys.stderr)
        the_relay.stop()
    print(f"{count['ok']} passed, {count['NOT OK']} failed, {count['skip']} skipped, {time.monotonic() - start:.0f} s")
    return 1 if count["NOT OK"] or not count["ok"] and not count["skip"] else 0


if __name__ == "__main__":
    sys.exit(main())
