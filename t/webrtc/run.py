#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls between kinds of peers through a relay, offerer by answerer, as a table. make check-webrtc.

    run.py [--relay=rtpengine|xcipherd] [--kinds=aiortc,sdes,...] [--cheap] [--patience=SECONDS] [CELL...]      a cell is OFFERER-ANSWERER

--cheap selects a few cells of peers that start fast. A cell passes if both peers hear the other's tone and not their own, and no packet is missing. Cells whose programs are not installed
are skipped. The exit status is 1 if a cell fails."""
import argparse
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import bench_transcode  # noqa: E402
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
    call.Call.patience = 5 if name in cells.KNOWN.get(the_relay.name, {}) else run_cell.patience
    return (cell.check if cell else cells.two_way)(net, the_relay, a, b)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--relay", choices=("rtpengine", "xcipherd"), default="rtpengine")
    p.add_argument("--kinds", default=",".join(kinds.KINDS))
    p.add_argument("--cheap", action="store_true")
    p.add_argument("--patience", type=float, default=60)
    p.add_argument("cells", nargs="*")
    args = p.parse_args()
    run_cell.patience = args.patience
    names = [n for n in args.kinds.split(",") if args.relay == "xcipherd" or kinds.KINDS[n].keying != "zrtp"]
    args.cells = args.cells or (cells.CHEAP if args.cheap else cells.chosen(names))
    return args


def main():
    args = arguments()
    if args.relay == "rtpengine" and not relay.have_rtpengine():
        print("skipped: rtpengine is not installed")
        return 0
    count = {"ok": 0, "NOT OK": 0, "skip": 0, "known": 0}
    print(f"relay: {args.relay}\n| offerer - answerer | result | figures |\n|---|---|---|")
    start = time.monotonic()
    with netns.Net(call.PLACES) as net:
        the_relay = call.start_relay(net, args.relay, options=bench_transcode.PLUGINS if any("_opus" in name for name in args.cells) else ())
        for name in args.cells:
            try:
                word, text = "ok", run_cell(the_relay, name, net)
                known = cells.KNOWN.get(args.relay, {}).get(name)
                if known:
                    word, text = "NOT OK", f"passes, although: {known}"
            except Skip as why:
                word, text = "skip", why
            except (call.Failed, AssertionError, TimeoutError) as why:
                word, text = "NOT OK", why
            except Exception as why:  # one cell must not end the others
                traceback.print_exc()
                word, text = "NOT OK", repr(why)
            if word == "NOT OK" and cells.KNOWN.get(args.relay, {}).get(name) and not str(text).startswith("passes"):
                word, text = "known", cells.KNOWN[args.relay][name]
            count[word] += 1
            print(f"| {name} | {word} | {text} |", flush=True)
        if count["NOT OK"]:
            print(the_relay.text()[-3000:], file=sys.stderr)
        the_relay.stop()
    print(f"{count['ok']} passed, {count['NOT OK']} failed, {count['known']} failed as known, {count['skip']} skipped, {time.monotonic() - start:.0f} s")
    return 1 if count["NOT OK"] or not count["ok"] and not count["skip"] else 0


if __name__ == "__main__":
    sys.exit(main())
