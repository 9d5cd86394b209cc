# SPDX-License-Identifier: GPL-2.0-or-later
"""The second chance of a failed test, for the runners of t/e2e and t/compat. Tests use real phones,
daemons and clocks on a shared machine. A failure that then passes twice in a row, each time
with a fresh daemon, is reported as UNSTEADY and does not fail the run. Under t/late there is none."""
import os

LATE = "LATE_LIBRARY" in os.environ  # t/late/README.md
# A machine that stands still for some seconds fails several tests that run at that time. More
# failures have another cause.
UNSTEADY_MAX = 0 if LATE else 6


def unsteady(failed, again):
    """Runs failed tests again and returns those that pass. again: runs a test by itself and returns
    whether it passed."""
    found = []
    for test in failed if len(failed) <= UNSTEADY_MAX else []:
        passes = all([again(test), again(test)])
        print(f"again, twice: {'UNSTEADY' if passes else 'NOT OK'} {test.label}", flush=True)
        found += [test] if passes else []
    return found
