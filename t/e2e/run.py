#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the end-to-end tests: run.py [NAME-PART...]. Each test is a function test_* of a file test_*.py, gets a fresh set of
namespaces, and fails by raising. BUILD names the folder of the programs, default build. Last line: N passed, N failed,
and how many were skipped or unsteady."""
import importlib
import inspect
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import netns  # noqa: E402


UNSTEADY_MAX = 3  # more is no accident


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


def collect(wanted):
    for name in sorted(os.listdir(HERE)):
        if not (name.startswith("test_") and name.endswith(".py")):
            continue
        module = importlib.import_module(name[:-3])
        for title, function in inspect.getmembers(module, inspect.isfunction):
            if not title.startswith("test_") or function.__module__ != module.__name__:
                continue
            cases = getattr(function, "cases", [()])
            for case in cases:
                label = f"{module.__name__}.{title}" + (f"[{'-'.join(map(str, case))}]" if case else "")
                if not wanted or any(w in label for w in wanted):
                    yield label, function, case


def cases(*rows):
    """Decorator: run the test once per row of arguments."""
    def wrap(function):
        function.cases = rows
        return function
    return wrap


def once(label, function, case):
    """(outcome, word) of one run."""
    try:
        with netns.Net(getattr(function, "terminals", ("caller", "callee"))) as net:
            function(net, *case)
        return "passed", "ok"
    except Skip as why:
        return "skipped", f"skip ({why})"
    except Exception:  # a test may fail in any way
        traceback.print_exc()
        return "failed", "NOT OK"


def main():
    count = {"passed": 0, "failed": 0, "skipped": 0, "unsteady": 0}
    tests = list(collect(sys.argv[1:]))
    failed = []
    for number, test in enumerate(tests, 1):
        start = time.monotonic()
        outcome, word = once(*test)
        count[outcome] += 1
        if outcome == "failed":
            failed.append(test)
        print(f"{number}/{len(tests)} {word} {test[0]} ({time.monotonic() - start:.1f} s)", flush=True)
    # Real phones, daemons and clocks on a machine that others use, too: what fails alone among hundreds, and then passes twice
    # in a row, is told as unsteady and does not fail the run.
    for test in failed if len(failed) <= UNSTEADY_MAX else []:
        passes = all(once(*test)[0] == "passed" for _ in range(2))
        print(f"again, twice: {'UNSTEADY' if passes else 'NOT OK'} {test[0]}", flush=True)
        count["failed"] -= passes
        count["unsteady"] += passes
    more = "".join(f", {count[k]} {k}" for k in ("skipped", "unsteady") if count[k])
    print(f"{count['passed']} passed, {count['failed']} failed{more}")
    sys.exit(1 if count["failed"] or not count["passed"] else 0)


if __name__ == "__main__":
    sys.modules["run"] = sys.modules["__main__"]
    main()
