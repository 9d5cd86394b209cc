# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws bench_path.py's results: path-*.png, one for each section."""
import math
import os
import statistics

from bench_rate import best_rate, why_bounds
from bench_targets import PEER, mid

COLOURS = {"floor": "#d9b26f", "udp": "#2a9d8f", "nfqueue": "#2a6fbb", "xdp": "#8e44ad", PEER: "#888888"}


def colour(name):
    return next((c for word, c in COLOURS.items() if word in name), "#444444")


def style(name):
    """A line's style: the steering's colour, dots for real-time priority, dash-dots for its floor."""
    kind = ":" if name.endswith(" rt") else "-." if name.startswith("floor") else "--" if "serial" in name or "raw" in name else "-"
    return {"color": colour(name.removeprefix("floor ")), "linestyle": kind}


def bars(axis, rows, key, label):
    names = list(rows)
    value = [mid(rows[n], key) for n in names]
    low = [v - min(r[key] for r in rows[n]) for n, v in zip(names, value)]
    high = [max(r[key] for r in rows[n]) - v for n, v in zip(names, value)]
    axis.barh(names, value, xerr=[low, high], color=[colour(n) for n in names])
    axis.invert_yaxis()
    axis.margins(x=0.12)
    axis.set_title(label, fontsize=10)
    for i, (v, more) in enumerate(zip(value, high)):
        axis.annotate(f"{v:.1f}", (v + more, i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)


def curves(axis, sizes, key, label, log):
    for name in dict.fromkeys(n for rows in sizes.values() for n in rows):
        x = [int(s) for s in sizes if name in sizes[s]]
        axis.plot(x, [mid(sizes[str(s)][name], key) for s in x], label=name, marker="D" if name.endswith(" rt") else "o", **style(name))
    axis.set_xlabel("calls")
    axis.set_title(label, fontsize=10)
    axis.set_xscale("log")
    axis.set_xticks([int(s) for s in sizes], [f"{int(s):,}" for s in sizes], minor=False)
    axis.minorticks_off()
    if log:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)


def distribution(axis, rows, label):
    """Delay by percentile for each relay. The scale puts 90, 99 and 99.9 % at equal distances."""
    for name, r in rows.items():
        at = [p for p, _ in r[0]["distribution"]]
        middle = [statistics.median(x["distribution"][i][1] for x in r) for i in range(len(at))]
        axis.plot([-math.log10(1.0005 - p / 1000) for p in at], middle, label=name, **style(name))
    marks = (500, 900, 990, 999)
    axis.set_xticks([-math.log10(1.0005 - p / 1000) for p in marks], [f"{p / 10:g} %" for p in marks], minor=False)
    axis.set_yscale("log")
    axis.set_title(label, fontsize=10)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)


def stages(axis, loop):
    """The loop's parts on top of each other."""
    names, base = list(loop), [0.0] * len(loop)
    legible = 0.04 * max(r["ns_per_packet"] for r in loop.values())
    labels = [f"{int(n):,}" for n in names]
    for part, shade in (("prepare", "#2a6fbb"), ("cipher", "#d1495b"), ("complete", "#2a9d8f"), ("the loop itself", "#bbbbbb")):
        v = [loop[n][part] if part in loop[n] else max(0.0, loop[n]["ns_per_packet"] - b) for n, b in zip(names, base)]
        axis.bar(labels, v, bottom=base, label=part, color=shade, width=0.55)
        for i, (x, b) in enumerate(zip(v, base)):
            if x >= legible:
                axis.annotate(f"{x:.0f}", (i, b + x / 2), ha="center", va="center", fontsize=9, color="white")
        base = [b + x for b, x in zip(base, v)]
    for i, b in enumerate(base):
        axis.annotate(f"{b:.0f}", (i, b), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=10)
    axis.set_xlabel("calls")
    axis.set_ylabel("ns per packet, one core")
    axis.margins(y=0.1)
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def rates(axis, tries):
    best, low = {n: best_rate(t) or 0 for n, t in tries.items()}, why_bounds(tries)
    axis.barh(list(best), [v / 1000 for v in best.values()], color=[colour(n) for n in best])
    axis.invert_yaxis()
    axis.margins(x=0.12)
    axis.set_title("highest rate without loss, p99 under 5 ms: thousand packets/s, both directions together\n≥: a lower bound, others or the load spoilt what is above", fontsize=9)
    for i, (n, v) in enumerate(best.items()):
        axis.annotate(f"{'≥ ' if n in low else ''}{v / 1000:.0f}", (v / 1000, i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)


def flood(axis, rows, key, label):
    """rows: {relay: {rate: result}}."""
    for name, by_rate in rows.items():
        points = sorted((r["forged"] / r["forge_seconds"], r[key]) for r in by_rate.values() if "forged" in r)
        axis.plot([p[0] for p in points], [p[1] for p in points], label=name, marker="o", **style(name))
    axis.set_xlabel("forged packets per second")
    axis.set_ylim(bottom=0)
    axis.set_title(label, fontsize=9)
    axis.legend(fontsize=7)


def pictures(result, folder):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    s = result["sections"]
    note = "\nmedians of rounds, whiskers: lowest and highest; delay one way\nrt: real-time priority; floor: a bare loop, receives and sends only"

    def figure(name, *parts):
        """parts: functions that draw on an axis, at most two side by side."""
        columns = min(len(parts), 2)
        lines = (len(parts) + columns - 1) // columns
        fig, axes = plt.subplots(lines, columns, figsize=(6.5 * columns, 0.8 + 3.8 * lines), squeeze=False)
        for axis, draw in zip(axes.flat, parts):
            draw(axis)
        for axis in list(axes.flat)[len(parts):]:
            axis.set_visible(False)
        fig.suptitle(f"{name}: {result['machine']}" + ("" if name in ("rate", "loop") else note), fontsize=8)
        fig.tight_layout(rect=(0, 0, 1, 1 - 0.5 / (0.8 + 3.8 * lines)))  # below its title
        fig.savefig(os.path.join(folder, f"path-{name}.png"), dpi=110)
        plt.close(fig)

    def by_calls(name, *keys):
        if s.get(name):
            figure(name, *[lambda a, k=k, label=label, log=log: curves(a, s[name], k, label, log) for k, label, log in keys])

    if s.get("cost"):
        figure("cost", *[lambda a, r=rows, label=label: bars(a, r, "cpu_us", f"{label}: CPU per packet, µs") for label, rows in s["cost"].items()])
    by_calls("delay", ("p50_us", "delay p50, µs", True), ("p90_us", "delay p90, µs", True), ("p99_us", "delay p99, µs", True),
             ("p999_us", "delay p99.9, µs", True), ("cpu_us", "CPU per packet, µs", False))
    if s.get("delay"):
        figure("distribution", *[lambda a, n=n, rows=rows: distribution(a, rows, f"{int(n):,} calls: delay that so many have at most, µs")
                                 for n, rows in s["delay"].items() if rows])
    by_calls("pairs", ("cpu_percent", "CPU, percent of one core", False))
    by_calls("setup", ("setups", "set-ups per second, one client that waits", False), ("setup_ms", "set-up, ms per call", False), ("setup_cpu_ms", "set-up, the relay's CPU, ms per call", False),
             ("kib_per_call", "memory, KiB per call", False))
    by_calls("scale", ("cpu_us", "CPU per packet, µs, at the same rate of packets", False))
    if s.get("rate"):
        figure("rate", lambda a: rates(a, s["rate"]))
    if s.get("flood"):
        figure("flood", *[lambda a, k=k, key=key, label=label: flood(a, s["flood"][k], key, f"{k}: {label}")
                          for k in s["flood"] for key, label in (("forged_us", "the relay's CPU per forged packet, µs"), ("p99_us", "p99 of the calls, µs"))])
    if s.get("loop"):
        figure("loop", lambda a: stages(a, s["loop"]))
