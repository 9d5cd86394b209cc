#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the compatibility tests: run.py [-jN] [--tests=FOLDER] [NAME-PART...]. NAME-PART selects tests or
categories. Prints a table by category and fails unless every test passed, or was unsteady (t/e2e/unsteady.py).
Tests mostly wait, so -jN runs several daemons side by side, each in its own namespaces (default: three per processor, at most 12).
BUILD names the folder of the programs, default build."""
import contextlib
import importlib
import io
import multiprocessing
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import compat  # noqa: E402
import netns  # noqa: E402
from unsteady import unsteady  # noqa: E402

LOG_END = 2000  # bytes of the daemon's log that a failure shows
SHARE_MAX = 25  # tests that share a daemon
SHARES = []  # [tests]: the processes that run them are forked from this one


def collect(folder, wanted):
    sys.path.insert(0, folder)
    for name in sorted(os.listdir(folder)):
        if name.startswith("test_") and name.endswith(".py"):
            importlib.import_module(name[:-3])
    return [c for c in compat.CASES if not wanted or any(w in c.label or w == c.category for w in wanted)]


def attempt(case, relay):
    """Runs a test and returns whether it passed."""
    try:
        case.function(relay)
        assert relay.alive(), "the daemon ended"
        relay.clear()
        return True
    except Exception:  # a test may fail in any way
        traceback.print_exc(file=sys.stdout)
        print(f"NOT OK {case.label} ({case.source})\n{relay.log()[-LOG_END:]}", flush=True)
        return False


def run_group(net, options, cases):
    """Runs tests that share a daemon, and returns each with its result. If the daemon does not end
    cleanly, the last test fails."""
    outcomes, relay = [], None
    for case in cases:
        relay = relay or compat.Relay(net, options)
        outcomes.append((case, attempt(case, relay)))
        if not outcomes[-1][1]:  # its state may affect the next test
            relay.stop()
            relay = None
    status = relay.stop() if relay else 0
    if status:
        print(f"the daemon ended with {status}:\n{relay.log()[-LOG_END:]}")
        outcomes[-1] = (outcomes[-1][0], False)
    return outcomes


def run_share(number):
    """Runs the tests of a share, in a process of its own: (number, whether each passed, what was printed)."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), netns.Net() as net:
        outcomes = run_group(net, SHARES[number][0].options, SHARES[number])
    return number, [passed for _, passed in outcomes], said.getvalue()


def run_all(cases, jobs):
    """Runs all tests. Yields each with its result."""
    groups = {}
    for case in cases:
        groups.setdefault(case.options, []).append(case)
    for group in sorted(groups.values(), key=len, reverse=True):
        SHARES.extend(group[i:i + SHARE_MAX] for i in range(0, len(group), SHARE_MAX))
    with multiprocessing.get_context("fork").Pool(min(jobs, len(SHARES))) as pool:
        for number, passed, said in pool.imap_unordered(run_share, range(len(SHARES))):
            print(said, end="", flush=True)
            yield from zip(SHARES[number], passed)
        pool.close()
        pool.join()


def table(outcomes):
    count = {}
    for case, passed in outcomes:
        row = count.setdefault(case.category, [0, 0])
        row[0] += 1
        row[1] += passed
    width = max(map(len, ["category", *count]))
    print(f"| {'category':{width}} | tests | pass |\n|{'-' * (width + 2)}|------:|-----:|")
    for category, (tests, passed) in sorted(count.items()):
        print(f"| {category:{width}} | {tests:5} | {passed:4} |")


NO_TEST = 5  # the exit status if no test has such a name


def main():
    folder, wanted, jobs = HERE, [], min(12, 3 * (os.cpu_count() or 1))
    for word in sys.argv[1:]:
        if word.startswith("--tests="):
            folder = word.removeprefix("--tests=")
        elif word.startswith("-j"):
            jobs = int(word[2:])
        else:
            wanted.append(word)
    start, cases = time.monotonic(), collect(folder, wanted)
    if not cases:
        print("no test has such a name")
        sys.exit(NO_TEST)
    outcomes = list(run_all(cases, jobs))
    failed = [case for case, passed in outcomes if not passed]
    with netns.Net() as net:
        shaky = len(unsteady(failed, lambda case: run_group(net, case.options, [case])[0][1]))
    table(outcomes)
    passed, wrong = len(outcomes) - len(failed), len(failed) - shaky
    more = f", {shaky} unsteady" if shaky else ""
    print(f"{passed} passed, {wrong} failed{more} ({time.monotonic() - start:.0f} s)")
    sys.exit(1 if wrong or not passed else 0)


if __name__ == "__main__":
    main()
