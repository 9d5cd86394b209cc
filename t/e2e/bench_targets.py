# SPDX-License-Identifier: GPL-2.0-or-later
"""What bench_path.py's results say: medians and ratios of rounds, and the targets, told as met or not. Pure but for the printing."""
import statistics

PEER = "rtpengine"


def mid(rows, key):
    return statistics.median(r[key] for r in rows)


def ratio(rows, name, peer, key="cpu_us"):
    """The median of the rounds' ratios, or None."""
    v = [a[key] / b[key] for a, b in zip(rows.get(name, ()), rows.get(peer, ())) if b[key]]
    return statistics.median(v) if v else None


def best_rate(tries):
    held = [r["total"] for r in tries or () if r.get("held")]
    return max(held, default=None)


def value(rows, name, key):
    return mid(rows[name], key) if rows.get(name) else None


def over(a, b):
    return a / b if a is not None and b else None


def targets(sections):
    """What is wanted: (name, value, bound, whether the bound is the least)."""
    cost, delay, rate = (sections.get(k, {}) for k in ("cost", "delay", "rate"))
    scale, loop, last = (sections.get(k, {}) for k in ("scale", "loop", "setup"))
    ours = [f"{s} opencl" for s in ("udp", "nfqueue", "xdp")]
    differing, same = cost.get("SRTP 80-32", {}), cost.get("SRTP 80-80", {})
    rows = [(f"{n}: CPU per packet to rtpengine's, suites differing", ratio(differing, n, PEER), most, False)
            for n, most in zip(ours, (0.5, 0.25, 0.25))]
    rows += [(f"{n}: CPU of re-encrypting to rtpengine's passing through, same call", ratio(same, n, PEER), 1, False) for n in ours]
    rows += [(f"{n}: highest rate to rtpengine's", over(best_rate(rate.get(n)), best_rate(rate.get(PEER))), least, True)
             for n, least in zip(ours[1:], (3, 4))]
    for n in ours:
        few, many = delay.get("20", {}), delay.get("500", {})
        rows += [(f"{n}: 20 calls, p50 to rtpengine's", ratio(few, n, PEER, "p50_us"), 1, False),
                 (f"{n}: 20 calls, p99 in us", value(few, n, "p99_us"), 200, False),
                 (f"{n}: 500 calls, p99 in us", value(many, n, "p99_us"), 1000, False),
                 (f"{n}: the same with --worker-priority=1", value(many, f"{n} rt", "p99_us"), 1000, False)]
    rows += [(f"loop, {calls} calls: ns per packet", loop.get(calls, {}).get("ns_per_packet"), most, False)
             for calls, most in (("1000", 160), ("10000", 200))]
    rows.append(("loop, 1000 calls: of that the cipher", loop.get("1000", {}).get("cipher"), 100, False))
    rows += [(f"{n}: CPU per packet at 10,000 calls to that at 100",
              over(value(scale.get("10000", {}), n, "cpu_us"), value(scale.get("100", {}), n, "cpu_us")), 1.2, False) for n in ours]
    most_calls = last.get(max(last, key=int, default=""), {})
    for n in ours:
        rows += [(f"{n}: set-ups per second to rtpengine's, one client that waits", ratio(most_calls, PEER, n, "setup_ms"), 2, True),
                 (f"{n}: the same per second of the relay's CPU", ratio(most_calls, PEER, n, "setup_cpu_ms"), 2, True)]
    return rows


def targets_print(sections):
    rows = targets(sections)
    print(f"\n{'target':<80}{'value':>9}{'bound':>17}")
    for name, v, bound, least in rows:
        met = "" if v is None else "met" if (v >= bound if least else v <= bound) else "NOT met"
        print(f"{name:<80}{'-' if v is None else format(v, '.2f'):>9}{'at least' if least else 'at most':>10}{bound:>7g}  {met or 'not measured'}")
    return [{"target": n, "value": v, "bound": b, "least": least} for n, v, b, least in rows]
