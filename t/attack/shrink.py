# SPDX-License-Identifier: GPL-2.0-or-later
"""Shortens a list of steps that violates a check: drops steps, replays, and keeps lists that still
violate it.

Steps carry their own seeds, so the remaining ones behave as before. Each replay has its own
namespaces and daemon. SSRCs, ports and keys differ from run to run. So a replay that passes
proves nothing; one that fails does."""


def shrink(steps, violates, budget=60, say=print):
    """violates(steps) returns the number of steps until the violation, or None. Returns the shortest list found within the replays."""
    n = max(1, len(steps) // 2)
    while budget > 0 and len(steps) > 1:
        at, shorter = 0, False
        while at < len(steps) and budget > 0:
            fewer = steps[:at] + steps[at + n:]
            budget -= 1
            took = violates(fewer) if fewer else None
            if took is not None:
                steps, shorter = fewer[:took], True
                say(f"    {len(steps)} steps left")
            else:
                at += n
        if n == 1 and not shorter:
            break
        n = max(1, n // 2)
    return steps
