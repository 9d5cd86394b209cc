# SPDX-License-Identifier: GPL-2.0-or-later
"""Summarises bench_path.py's results: medians and ratios of rounds, and whether targets are met.
Pure except for the printing."""
import statistics

from bench_rate import best_rate, why_bounds

PEER = "rtpengine"


def mid(rows, key):
    return statistics.median(r[key] for r in rows)


def sound(r):
    """Nearly no packet was lost. With losses, the cost per packet means nothing."""
    return r.get("lost", 0) <= r.get("sent", 0) / 1000


def ratio(rows, name, peer, key="cpu_us"):
    """The median ratio of rounds in which neither relay lost packets, or None."""
    v = [a[key] / b[key] for a, b in zip(rows.get(name, ()), rows.get(peer, ())) if b[key] and sound(a) and sound(b)]
    return statistics.median(v) if v else None


def growth(few, many, name):
    """Cost of many calls divided by that of few, round by round."""
    return ratio({"many": many.get(name, ()), "few": few.get(name, ())}, "many", "few")


def value(rows, name, key):
    return mid(rows[name], key) if rows.get(name) else None


def over(a, b):
    return a / b if a is not None and b else None


def flood(rows):
    """Forged packets (bench_flood.py): CPU per forged packet, lost packets of the calls, and their p99."""
    if not rows:
        return []
    own, out = "without the program's own time: xdp_guard cost", []
    plus = [k for k in rows if k.startswith("next, ")] or ["next, sequence-aes"]
    for kind, bound, steerings in [(k, 1.0, ("udp", "nfqueue", "xdp")) for k in ("any", "next")] + [(k, 0.1, ("xdp",)) for k in plus]:
        for s in steerings:
            for rate in (20000, 100000):
                r = rows.get(kind, {}).get(f"{s} serial", {}).get(rate, {})
                name = f"flood, {s} serial: {kind}, {rate} per second"
                out += [(f"{name}: CPU us per forged packet", r.get("forged_us"), bound, False, None, own if s != "udp" else ""),
                        (f"{name}: packets of calls lost", r.get("lost"), 0, False, None),
                        (f"{name}: p99 to that without a flood", over(r.get("p99_us"), r.get("calm_p99_us")), 1, False, None)]
    return out


def cpu_row(differing, steering, most):
    """The bound of nfqueue is its floor, if that is higher."""
    floor = ratio(differing, f"floor {steering}", PEER)
    most = max(most, floor or 0) if steering == "nfqueue" else most
    return f"{steering} opencl: CPU per packet to rtpengine's, suites differing", ratio(differing, f"{steering} opencl", PEER), most, False, floor


def targets(sections):
    """The targets: (name, value, bound, whether the bound is the least, the bare loop's value on
    that path or None, reasons for uncertainty)."""
    cost, delay, rate = (sections.get(k, {}) for k in ("cost", "delay", "rate"))
    scale, loop, last = (sections.get(k, {}) for k in ("scale", "loop", "setup"))
    steerings = ("udp", "nfqueue", "xdp")
    ours = [f"{s} opencl" for s in steerings]
    differing, same = cost.get("SRTP 80-32", {}), cost.get("SRTP 80-80", {})
    few, many = delay.get("20", {}), delay.get("500", {})
    rows = [cpu_row(differing, s, most) for s, most in zip(steerings, (0.42, 0.25, 0.22))]
    rows += [(f"{n}: CPU of re-encrypting to rtpengine's passing through, same call", ratio(same, n, PEER), 1, False, None) for n in ours]
    low = why_bounds(rate)
    rows += [(f"{n}: highest rate to rtpengine's", over(best_rate(rate.get(n)), best_rate(rate.get(PEER))), least, True, None,
              ", ".join(f"{who} is a lower bound" for who, key in (("ours", n), ("rtpengine's", PEER)) if key in low))
             for n, least in zip(ours[1:], (3, 4))]
    for s, n in zip(steerings, ours):
        bare = f"floor {s}"
        rows += [(f"{n}: 20 calls, p50 to rtpengine's", ratio(few, n, PEER, "p50_us"), 1, False, ratio(few, bare, PEER, "p50_us")),
                 (f"{n}: 20 calls, p99 in us", value(few, n, "p99_us"), 200, False, value(few, bare, "p99_us")),
                 (f"{n}: 500 calls, p99 in us", value(many, n, "p99_us"), 1000, False, value(many, bare, "p99_us")),
                 (f"{n}: the same with --worker-priority=1", value(many, f"{n} rt", "p99_us"), 1000, False, None)]
    rows += [(f"loop, {calls} calls: {text}", loop.get(calls, {}).get(key), most, False, loop.get(calls, {}).get(floor))
             for calls, text, key, most, floor in (("1000", "ns per packet", "ns_per_packet", 160, "floor"),
                                                   ("10000", "ns per packet", "ns_per_packet", 200, "floor"),
                                                   ("1000", "of that the cipher", "cipher", 100, "floor_cipher"))]
    few, many = scale.get("100", {}), scale.get("10000", {})
    rows += [(f"{n}: CPU per packet at 10,000 calls to that at 100", growth(few, many, n), 1.1, False, growth(few, many, f"floor {s}"))
             for s, n in zip(steerings, ours)]
    most_calls = last.get(max((c for c in last if PEER in last[c]), key=int, default=""), {})
    for n in ours:
        rows += [(f"{n}: set-ups per second to rtpengine's, one client that waits", ratio(most_calls, PEER, n, "setup_ms"), 2, True, None),
                 (f"{n}: the same per second of the relay's CPU", ratio(most_calls, PEER, n, "setup_cpu_ms"), 2, True, None)]
    rows += flood(sections.get("flood", {}))
    return [(*r, "") if len(r) == 5 else r for r in rows]


def told(number):
    return "-" if number is None else format(number, ".2f" if number < 100 else ".0f")


def targets_print(sections):
    """Prints the floor, too: a bare loop without look-up, check or cipher, and for the loop from
    memory also the cipher alone. No relay can cost less."""
    rows = targets(sections)
    print(f"\n{'target':<80}{'value':>9}{'bound':>17}{'floor':>9}")
    for name, v, bound, least, bare, doubt in rows:
        met = "not measured" if v is None else "met" if (v >= bound if least else v <= bound) else "NOT met"
        print(f"{name:<80}{told(v):>9}{'at least' if least else 'at most':>10}{bound:>7g}{told(bare) if bare is not None else '':>9}  {met}"
              + (f" ({doubt})" if doubt and v is not None else ""))
    return [{"target": n, "value": v, "bound": b, "least": least, "floor": bare, "doubt": doubt} for n, v, b, least, bare, doubt in rows]
