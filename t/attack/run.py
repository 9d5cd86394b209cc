#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks the daemon at random and checks the wire. BUILD names the folder of the programs, default build.

run.py [--seed=N,...] [--random=N] [--seconds=N] [--steps=N] [--steering=udp|nfqueue|xdp] [--checks=NAME,...|all] [--skip=NAME,...] [--without=STEP,...]
       [--option=OPTION] [--no-redis] [--no-shrink] [--keep-going] [--replay=STEP:NUMBER,...]

--seed: these sequences. --random: this many more, whose seeds are printed. --seconds: more until this much time has passed.
--replay: exactly these steps, as a failure prints them. --without leaves steps out.
--checks and --skip choose what counts as a violation (see checker.py); default all. --option: one more for the daemon.
Controls come first: each check is fed a violation and must find it. Exit status 0: no violation, and enough was relayed.
"""
import argparse
import collections
import os
import random
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "e2e"), HERE]  # `run` is that of t/e2e

import checker  # noqa: E402
import controls  # noqa: E402
import netns  # noqa: E402
import shrink  # noqa: E402
import steps  # noqa: E402
import world  # noqa: E402

FLOORS = {"relayed": 50, "SRTP": 20, "ng ok": 20}  # for all sequences together: a run that relays too little proves nothing
FLOOR_STEPS = 100  # shorter runs are for development


def play(args, todo, verbose=False):
    """(violations, steps done, counts) of a list of steps, in namespaces and with a daemon of its own."""
    with netns.Net(world.PLACES) as net:
        w = world.World(net, args.option, enabled(args), not args.no_redis, args.steering)
        done = 0
        try:
            for name, number in todo:
                if verbose:
                    print(f"      {name}:{number}", flush=True)
                done += 1
                steps.run(w, name, number)
                if w.checker.found and not args.keep_going:
                    break
            else:
                w.finish()
                w.flush_wire()
        except world.Silent:
            pass
        except Exception:  # the test itself failed: print where, and count it as a failure
            log = w.daemon.text() if w.daemon else w.log
            w.violation("alive", f"the test failed in step {done}:\n{traceback.format_exc()}\n{log[-3000:]}")
        finally:
            w.close()
        w.checker.count["ng ok"], w.checker.count["ng refused"] = w.taken, w.refused
        return w.checker.found, done, w.checker.count


def enabled(args):
    names = set(checker.CHECKS) if args.checks == "all" else set(args.checks.split(","))
    names -= set(filter(None, args.skip.split(",")))
    unknown = names - set(checker.CHECKS)
    if unknown:
        sys.exit(f"no such check: {', '.join(unknown)}; there are {', '.join(checker.CHECKS)}")
    return names


def report(args, title, todo, found, done):
    print(f"NOT OK {title}: {len(found)} violations, the first after step {done}")
    for f in found[:1 if not args.keep_going else 30]:
        print(f"  {f}")
    if args.no_shrink or args.keep_going:
        return

    def violates(fewer):
        again, took, _ = play(args, fewer)
        return took if any(a.check == found[0].check for a in again) else None
    few = shrink.shrink(todo[:done], violates, args.shrink_runs)
    print(f"  least steps found: --replay={','.join(f'{n}:{s}' for n, s in few)}", flush=True)


def one(args, title, todo, total):
    found, done, count = play(args, todo, args.verbose)
    total.update(count)
    total["steps"] += done
    if found:
        report(args, title, todo, found, done)
        print(f"  all counts: {dict(count)}")
    else:
        print(f"ok {title}: {len(todo)} steps, " + ", ".join(f"{v} {k}" for k, v in count.items()), flush=True)
    return not found


def enough(total):
    wanting = [k for k, floor in FLOORS.items() if total[k] < floor] if total["steps"] >= FLOOR_STEPS else []
    if wanting:
        print(f"NOT OK too little happened to prove anything: {', '.join(f'{total[k]} {k}' for k in wanting)}")
    return not wanting


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", default="")
    p.add_argument("--random", type=int, default=0)
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--steering", default="udp")
    p.add_argument("--checks", default="all")
    p.add_argument("--skip", default="")
    p.add_argument("--without", default="")
    p.add_argument("--option", action="append", default=[])
    p.add_argument("--replay")
    p.add_argument("--shrink-runs", type=int, default=40)
    for flag in ("--no-redis", "--no-shrink", "--keep-going", "--verbose"):
        p.add_argument(flag, action="store_true")
    return p.parse_args()


def seeds(args):
    end = time.monotonic() + args.seconds
    yield from (int(s) for s in args.seed.split(",") if s)
    n = 0
    while n < args.random or time.monotonic() < end:
        n += 1
        yield random.SystemRandom().getrandbits(32)


def main():
    args = arguments()
    good, total = controls.all_found(), collections.Counter()
    if args.replay:
        todo = [(n, int(s)) for n, s in (w.split(":") for w in args.replay.split(","))]
        good &= one(args, f"replay, {args.steering}", todo, total)
    for seed in seeds(args):
        todo = [s for s in steps.sequence(seed, args.steps) if s[0] not in args.without.split(",")]
        good &= one(args, f"seed {seed}, {args.steering}", todo, total)
    good &= enough(total)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
