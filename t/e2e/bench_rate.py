# SPDX-License-Identifier: GPL-2.0-or-later
"""Searches for the highest rate a relay holds, for bench_path.py. Pure: from the tries so far it
returns the next rate, or the result and its certainty. A try is a result of measure() with
"total", its rate, and "took_s".

A try is spoilt if it fails while other programs or the hypervisor had more than ELSE_MOST
percent of the machine. It is repeated, then put off: higher rates are tried first, because a
rate held there includes lower ones, and other relays get their turns. After BUDGET_S of spoilt
tries they count as failed, and the result as a lower bound."""

FIRST, MOST, UP, FINE = 20000, 1000000, 1.5, 1.08
P99_MOST_US, LATE_MOST, ELSE_MOST = 5000, 3, 2
LEAST = 1000
GENERATOR = "the load itself"
AT_ONCE, BUDGET_S = 2, 60


def verdict(r):
    """Judges one try: "held", "failed" by the relay, "spoilt" by others, or the load itself was
    "late" or missed packets."""
    if "error" in r:
        return "failed"
    if not r["lost"] and r["p99_us"] < P99_MOST_US and r["late"] <= LATE_MOST:
        return "held"
    if r["else_percent"] > ELSE_MOST:
        return "spoilt"
    return "late" if r["late"] > LATE_MOST or r.get("overruns") else "failed"


def rate_held(tries, strict):
    """Judges the tries of one rate: True, False, or None (unknown). Two tries must agree, because a
    busy machine or a lucky second proves nothing. One suffices if p99 was far away. strict:
    spoilt tries count as failures."""
    verdicts = [verdict(r) for r in tries]
    good, spoilt = verdicts.count("held"), verdicts.count("spoilt")
    bad = len(verdicts) - good - spoilt
    easy = any(v == "held" and r["p99_us"] < P99_MOST_US / 10 for v, r in zip(verdicts, tries))
    if good >= 2 or (easy and not bad):
        return True
    return False if bad + (spoilt if strict else 0) >= 2 else None


def by_rate(tries):
    rates = {}
    for r in tries:
        rates.setdefault(r["total"], []).append(r)
    return rates


def bounds(tries, strict):
    """The highest rate held, or 0, and the lowest failed rate above it, or None."""
    known = {rate: rate_held(t, strict) for rate, t in by_rate(tries).items()}
    low = max((rate for rate, held in known.items() if held), default=0)
    return low, min((rate for rate, held in known.items() if held is False and rate > low), default=None)


def candidates(low, high):
    """The next rate between the bounds: the middle, and higher ones if that is spoilt."""
    if high is None:
        first = low * UP if low else FIRST
        return [rate for rate in (first, first * UP, first * UP * UP) if rate < MOST]
    if not low:
        return [high / 2] if high > LEAST else []
    middle = (low * high) ** 0.5
    return [middle, (middle * high) ** 0.5] if high / low > FINE else []


def spent(tries):
    return sum(r["took_s"] for r in tries if verdict(r) == "spoilt") >= BUDGET_S


def next_rate(tries):
    """The next rate, or None at the end."""
    rates = by_rate(tries)

    def visits(rate):
        return [verdict(r) for r in rates.get(rate, ())].count("spoilt") // AT_ONCE
    return min(candidates(*bounds(tries, spent(tries))), key=visits, default=None)


def best_rate(tries):
    """The highest rate held, or None."""
    return bounds(tries or (), False)[0] or None


def percent(tries, key):
    low, high = (f"{edge(r[key] for r in tries):.0f}" for edge in (min, max))
    return f"{low} %" if low == high else f"{low} to {high} %"


def why_bound(tries, own=("failed",)):
    """Why the best rate may be a lower bound, or None if the relay itself failed 8 % above. own:
    verdicts that the relay caused."""
    best = best_rate(tries) or 0
    above = {rate: [v for v in map(verdict, t) if v != "held"] for rate, t in by_rate(tries).items() if rate > best}
    sure = min((rate for rate, v in above.items() if sum(v.count(o) for o in own) >= 2), default=None)
    if sure and sure <= max(best * FINE, LEAST) * 1.001:
        return None
    doubtful = sorted(rate for rate, v in above.items() if v and (sure is None or rate < sure))
    if not doubtful:
        return "nothing above it was tried"
    rate, failed = doubtful[0], [r for r in tries if r["total"] == doubtful[0] and verdict(r) != "held"]
    spoilt, late = ([r for r in failed if verdict(r) == v] for v in ("spoilt", "late"))
    text = [f"others took {percent(spoilt, 'else_percent')} of the machine, the hypervisor {percent(spoilt, 'steal_percent')}, "
            f"in {len(spoilt)} of {len(failed)} failed tries"] if spoilt else []
    text += [f"the load's own program was late in {len(late)} of {len(failed)}"] if late else []
    return f"at {rate:.0f} " + (" and ".join(text) or "it failed only once")


def why_bounds(out):
    """Relays, by name, whose rate is only a lower bound, each with the reason."""
    limit, why = best_rate(out.get(GENERATOR)), {}
    for name, tries in out.items():
        why[name] = why_bound(tries, ("failed", "late") if name == GENERATOR else ("failed",))
    for name, tries in out.items():
        if limit and not why[GENERATOR] and name != GENERATOR and (best_rate(tries) or 0) > 0.8 * limit:
            why[name] = f"the load's own program can hardly do more ({limit:.0f})"
    return {name: text for name, text in why.items() if text}


def told(r):
    """Prints a try for the operator."""
    v = verdict(r)
    if "error" in r or v == "held":
        return r.get("error", v)
    return (f"{v}: {r['lost']} lost, p99 {r['p99_us']:.0f} us, others took {r['else_percent']:.0f} %, of that the hypervisor "
            f"{r['steal_percent']:.0f}, the relay waited {r['waits_ms']:.0f} ms/s" + (", the load was late" if r["late"] > LATE_MOST else ""))
