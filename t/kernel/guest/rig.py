# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guest's Python tests share: TAP with the numbers of guest/lib.sh, the relay in its namespaces, pktx."""
import os
import subprocess
import sys
import traceback

sys.path.insert(0, "/tree/t/e2e")
os.environ["BUILD"] = "/build"

NUMBER, FAILED = "/tmp/tap-number", "/tmp/tap-failed"


def tap(good, name):
    with open(NUMBER, encoding="ascii") as f:
        n = int(f.read()) + 1
    with open(NUMBER, "w", encoding="ascii") as f:
        f.write(f"{n}\n")
    if not good:
        with open(FAILED, "a", encoding="ascii") as f:
            f.write(name + "\n")
    print(f"{'ok' if good else 'not ok'} {n} - {name}", flush=True)
    return good


def equal(name, got, wanted):
    return tap(got == wanted, name if got == wanted else f"{name}: got {got!r}, wanted {wanted!r}")


def note(text):
    for line in str(text).splitlines():
        print("# " + line, flush=True)


def run(args, check=True):
    p = subprocess.run([str(a) for a in args], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if check and p.returncode:
        raise RuntimeError(f"{' '.join(map(str, args))}: {p.stdout}")
    return p.stdout


def test(function):
    """Runs it now; what it raises is a failed test."""
    try:
        function()
    except Exception:  # a test may fail in any way
        note(traceback.format_exc())
        tap(False, function.__name__ + " ran to its end")


def pktx(*args):
    """A dictionary per receiver."""
    out = run(["/build/t/pktx", *args])
    return [{k: int(v) if v.lstrip("-").isdigit() else v for k, v in (w.split("=", 1) for w in part.split())}
            for part in out.strip().split(" | ")]
