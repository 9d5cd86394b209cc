#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the end-to-end tests: run.py [-jN] [--also=BUILD:NAME-PART,...] [NAME-PART...].

A test is a function test_* of a file test_*.py. It runs in its own process with fresh
namespaces, and fails by raising. Tests wait for most of their time, so -jN runs several at
a time (default: eight per processor, at most 16). Tests with the attribute alone measure something
and run last, one by one. A file's function PREPARE is called once before all tests, for what they
share. BUILD is the folder of the programs, default build. --also repeats these tests with another
folder. Each line tells how long a test took and how much of that a processor
worked for it. Last lines: the failed tests, each with its error; N passed, N failed, and how many
were skipped or unsteady."""
import importlib
import inspect
import os
import signal
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import netns  # noqa: E402
import relay  # noqa: E402
from unsteady import LATE, unsteady  # noqa: E402

TEST_SECONDS = 600  # a test that runs longer has hung
WHY_MAX = 300  # characters of an error in the list of failed tests
OUTCOMES = ("passed", "failed", "skipped")
WORDS = {"passed": "ok", "failed": "NOT OK"}


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


class Test:
    def __init__(self, label, function, case, build=None):
        self.label, self.function, self.case, self.build = label, function, case, build
        self.alone = getattr(function, "alone", False)
        self.punctual = getattr(function, "punctual", False)

    def run(self):
        """Runs the test in this process: (outcome, text)."""
        if self.build:
            os.environ["BUILD"] = relay.BUILD = self.build
        try:
            with netns.Net(getattr(self.function, "terminals", ("caller", "callee"))) as net:
                self.function(net, *self.case)
            return "passed", "ok"
        except Skip as why:
            return "skipped", f"skip ({why})"
        except Exception as why:  # a test may fail in any way
            traceback.print_exc()
            print(relay.logs(), file=sys.stderr)
            print(f"{type(why).__name__}: {str(why)[:WHY_MAX]!r}", file=sys.stderr)
            return "failed", "NOT OK"


class Running:
    """Runs a test in its own process and keeps its output until the end, so that outputs do not
    mix."""

    def __init__(self, test):
        self.test, self.start = test, time.monotonic()
        self.output = tempfile.TemporaryFile("w+", errors="replace")
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            self.child()

    def child(self):
        status = 1
        try:
            os.setpgid(0, 0)  # run.py handles an interrupt at the terminal and ends us in order
            netns.die_with_us(signal.SIGTERM)()
            signal.signal(signal.SIGALRM, too_long)
            signal.alarm(TEST_SECONDS)
            os.dup2(self.output.fileno(), 1)
            os.dup2(self.output.fileno(), 2)
            outcome, self.word = self.test.run()
            status = OUTCOMES.index(outcome)
            if outcome == "skipped":
                print(self.word)
        except SystemExit:
            print("interrupted")
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def over(self, status):
        """(outcome, text, output)."""
        code = os.waitstatus_to_exitcode(status)
        self.output.seek(0)
        text = self.output.read()
        outcome = OUTCOMES[code] if 0 <= code < len(OUTCOMES) else "failed"
        if outcome == "skipped":
            text, _, word = text.rstrip("\n").rpartition("\n")
            return outcome, word, text
        return outcome, WORDS[outcome], text


def cases(*rows):
    """Decorator: run the test once per row of arguments."""
    def wrap(function):
        function.cases = rows
        return function
    return wrap


def alone(function):
    """Decorator: no other test runs at the same time."""
    function.alone = True
    return function


def punctual(function):
    """Decorator: the test checks a time limit that a late daemon exceeds, so t/late skips it."""
    function.punctual = True
    return function


def too_long(_number, _frame):
    raise TimeoutError(f"the test has run for {TEST_SECONDS} s")


def collect(wanted, build=None):
    for name in sorted(os.listdir(HERE)):
        if not (name.startswith("test_") and name.endswith(".py")):
            continue
        module = importlib.import_module(name[:-3])
        for title, function in inspect.getmembers(module, inspect.isfunction):
            if not title.startswith("test_") or function.__module__ != module.__name__:
                continue
            for case in getattr(function, "cases", [()]):
                label = f"{module.__name__}.{title}" + (f"[{'-'.join(map(str, case))}]" if case else "")
                if not wanted or any(w in label for w in wanted):
                    yield Test(label + (f" with {os.path.basename(build)}" if build else ""), function, case, build)


def arguments(words):
    """Jobs, tests."""
    jobs, wanted, also = min(16, 8 * (os.cpu_count() or 1)), [], []
    for w in words:
        if w.startswith("-j"):
            jobs = int(w[2:])
        elif w.startswith("--also="):
            build, _, names = w.removeprefix("--also=").partition(":")
            also += collect(names.split(","), build)
        else:
            wanted.append(w)
    # Puts first the tests that may wait for a minute.
    return jobs, [t for t in also + list(collect(wanted)) if not (LATE and (t.alone or t.punctual))]


def in_turn(tests, jobs):
    """Runs the tests, several at a time, and yields each with its outcome, its duration and its
    processor time, both in seconds."""
    running, waiting = {}, [t for t in tests if not t.alone] + [t for t in tests if t.alone]
    try:
        while waiting or running:
            while waiting and len(running) < (1 if waiting[0].alone else jobs) and not any(r.test.alone for r in running.values()):
                r = Running(waiting.pop(0))
                running[r.pid] = r
            pid, status, used = os.wait4(-1, 0)
            r = running.pop(pid, None)
            if r:
                yield (r.test, *r.over(status), time.monotonic() - r.start, used.ru_utime + used.ru_stime)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGTERM)
        for pid in running:
            os.waitpid(pid, 0)


NO_TEST = 5  # the exit status if no test has such a name


def again(test):
    """Runs a test by itself, and returns whether it passed."""
    _, outcome, _, text, *_ = list(in_turn([test], 1))[0]
    print(text, end="")
    return outcome == "passed"


def stop(number, _frame):
    raise SystemExit(128 + number)


def main():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    count = {"passed": 0, "failed": 0, "skipped": 0, "unsteady": 0}
    jobs, tests = arguments(sys.argv[1:])
    if not tests:
        print("no test has such a name")
        sys.exit(NO_TEST)
    for prepare in {getattr(sys.modules[t.function.__module__], "PREPARE", None) for t in tests} - {None}:
        prepare()
    failed, why = [], {}
    for number, (test, outcome, word, text, seconds, cpu) in enumerate(in_turn(tests, jobs), 1):
        count[outcome] += 1
        if outcome == "failed":
            failed.append(test)
            why[test.label] = text.rstrip("\n").rpartition("\n")[2]
        print(f"{text}{number}/{len(tests)} {word} {test.label} ({seconds:.1f} s, {cpu:.1f} of a processor)", flush=True)
    count["unsteady"] = len(unsteady(failed, again))
    count["failed"] -= count["unsteady"]
    for label, line in why.items():
        print(f"failed: {label}: {line}")
    more = "".join(f", {count[k]} {k}" for k in ("skipped", "unsteady") if count[k])
    print(f"{count['passed']} passed, {count['failed']} failed{more}")
    sys.exit(1 if count["failed"] or not count["passed"] else 0)


if __name__ == "__main__":
    sys.modules["run"] = sys.modules["__main__"]
    main()
