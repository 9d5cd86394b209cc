#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the tests of ng911/ that need no namespaces: run.py [NAME-PART...]. A test is a function test_* of a file test_*.py here. It may be
a coroutine. Last line: N passed, N failed, N skipped."""
import asyncio
import importlib
import inspect
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from lostrig import Skip  # noqa: E402


def tests(wanted):
    for name in sorted(os.listdir(HERE)):
        if name.startswith("test_") and name.endswith(".py"):
            module = importlib.import_module(name[:-3])
            for title, function in inspect.getmembers(module, inspect.isfunction):
                label = f"{module.__name__}.{title}"
                if title.startswith("test_") and function.__module__ == module.__name__ and (not wanted or any(w in label for w in wanted)):
                    yield label, function


def run(function):
    try:
        asyncio.run(function()) if inspect.iscoroutinefunction(function) else function()
        return "passed", "ok"
    except Skip as why:
        return "skipped", f"skip ({why})"
    except Exception:  # a test may fail in any way
        traceback.print_exc()
        return "failed", "NOT OK"


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for label, function in tests(sys.argv[1:]):
        start = time.monotonic()
        outcome, word = run(function)
        counts[outcome] += 1
        print(f"{label}: {word} ({time.monotonic() - start:.1f} s)", flush=True)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    sys.exit(bool(counts["failed"] or not counts["passed"]))


if __name__ == "__main__":
    main()
