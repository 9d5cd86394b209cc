#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the end-to-end tests: run.py [NAME-PART...]. Each test is a function test_* of a file test_*.py, gets a fresh set of
namespaces, and fails by raising. BUILD names the folder of the programs, default build. Last line: N passed, N failed."""
import importlib
import inspect
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import netns  # noqa: E402


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


def main():
    count = {"passed": 0, "failed": 0, "skipped": 0}
    tests = list(collect(sys.argv[1:]))
    for number, (label, function, case) in enumerate(tests, 1):
        start = time.monotonic()
        try:
            with netns.Net(getattr(function, "terminals", ("caller", "callee"))) as net:
                function(net, *case)
            outcome, word = "passed", "ok"
        except Skip as why:
            outcome, word = "skipped", f"skip ({why})"
        except Exception:  # a test may fail in any way
            traceback.print_exc()
            outcome, word = "failed", "NOT OK"
        count[outcome] += 1
        print(f"{number}/{len(tests)} {word} {label} ({time.monotonic() - start:.1f} s)", flush=True)
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{count['passed']} passed, {count['failed']} failed{skipped}")
    sys.exit(1 if count["failed"] or not count["passed"] else 0)


if __name__ == "__main__":
    sys.modules["run"] = sys.modules["__main__"]
    main()
