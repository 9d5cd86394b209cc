#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the compatibility tests: run.py [--tests=FOLDER] [NAME-PART...]. NAME-PART selects tests or
categories. Prints a table by category and fails unless every test passed, or was unsteady (t/e2e/unsteady.py).
BUILD names the folder of the programs, default build."""
import importlib
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
    """Runs tests that share a daemon, and yields each with its result. If the daemon does not end
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
    folder, wanted = HERE, []
    for word in sys.argv[1:]:
        if word.startswith("--tests="):
            folder = word.removeprefix("--tests=")
        else:
            wanted.append(word)
    start, groups = time.monotonic(), {}
    for case in collect(folder, wanted):
        groups.setdefault(case.options, []).append(case)
    if not groups:
        print("no test has such a name")
        sys.exit(NO_TEST)
    with netns.Net() as net:
        outcomes = [o for options, cases in groups.items() for o in run_group(net, options, cases)]
        failed = [case for case, passed in outcomes if not passed]
        shaky = len(unsteady(failed, lambda case: run_group(net, case.options, [case])[0][1]))
    table(outcomes)
    passed, wrong = len(outcomes) - len(failed), len(failed) - shaky
    more = f", {shaky} unsteady" if shaky else ""
    print(f"{passed} passed, {wrong} failed{more} ({time.monotonic() - start:.0f} s)")
    sys.exit(1 if wrong or not passed else 0)


if __name__ == "__main__":
    main()
