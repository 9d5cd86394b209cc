# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows results of bench_ng911.py: a table, bars like figure 6 of the study, its goals, and a picture. A row: the factors, and "calls", a list
of seconds by part."""

PARTS = {"client LoST": "L", "TLS": "T", "vsp": "V", "esrp": "E", "psap": "P", "rest": "r"}
COLOURS = ("#d9b26f", "#8e44ad", "#2a9d8f", "#2a6fbb", "#c0504d", "#999999")
FACTORS = ("caller", "servers", "IPsec", "LoST by", "LoST over", "connections")
STUDIED = {"the study, nothing secured": 460, "the study, all secured": 720}  # ms: its scenarios 11 and 18
STUDY = "The study's improved client needed 460 ms without security (its scenario 11) and 720 ms with all of it (18), on three machines."
BAR_LETTERS = 100  # of the longest bar


def mean(row, part):
    return sum(c[part] for c in row["calls"]) / len(row["calls"]) * 1000


def percentile(row, part):
    totals = sorted(c["total"] for c in row["calls"])
    return totals[min(len(totals) - 1, int(len(totals) * part))] * 1000


def head():
    cells = [*FACTORS, "calls", "mean", "p50", "p95", *(p.upper() if p in ("vsp", "esrp", "psap") else p for p in PARTS), "full handshakes", "resumed"]
    return "| " + " | ".join(cells) + " |\n|" + "---|" * len(cells)


def line(row):
    cells = [*(row[f] for f in FACTORS), str(len(row["calls"])), f"{mean(row, 'total'):.1f}", f"{percentile(row, .5):.1f}", f"{percentile(row, .95):.1f}",
             *(f"{mean(row, p):.2f}" for p in PARTS), *(f"{n:.1f}" for n in row["handshakes"])]
    return "| " + " | ".join(cells) + " |"


def title(row):
    return " ".join(("caller " + row["caller"], "servers " + row["servers"], row["IPsec"].replace("none", "-"), row["LoST by"] + " asks", row["LoST over"]))


def bars(rows):
    """Text bars: a letter for each part, as wide as its mean."""
    step = max(mean(r, "total") for r in rows) / BAR_LETTERS
    out = [f"Each letter is {step:.2f} ms: " + ", ".join(f"{sign} {part}" for part, sign in PARTS.items())]
    for kind in ("kept", "new"):
        some = [r for r in rows if r["connections"] == kind]
        out += [f"Connections {kind}:"] * bool(some)
        for r in sorted(some, key=lambda r: mean(r, "total")):
            out.append(f"  {title(r):<46}{mean(r, 'total'):6.1f} " + "".join(s * round(mean(r, p) / step) for p, s in PARTS.items()))
    # These bars are cut: on their scale ours would be shorter than a letter.
    longest = max(mean(r, "total") for r in rows)
    out += ["The study:"] + [f"  {name:<46}{ms:6.1f} {'s' * min(BAR_LETTERS, round(ms / step))}{'>' * (ms > longest)} {ms / longest:.0f} times our longest" for name, ms in STUDIED.items()]
    return "\n".join(out + [STUDY])


def pick(rows, **factors):
    return next((r for r in rows if all(r[k.replace("_", " ")] == v for k, v in factors.items())), None)


def goals(rows):
    out = []
    secured = {"caller": "tls", "servers": "tls", "IPsec": "ipsec", "LoST_by": "vsp", "LoST_over": "https"}
    none = {"caller": "tcp", "servers": "tcp", "IPsec": "none", "LoST_by": "vsp", "LoST_over": "http"}

    def told(met, text):
        out.append(f"{'met' if met else 'NOT met'}: {text}")
    for kind, limit50, limit95 in (("kept", 8, 15), ("new", 30, None)):
        for name, row in (("IPsec in user space", pick(rows, **secured, connections=kind)), ("no IPsec", pick(rows, **{**secured, "IPsec": "none"}, connections=kind))):
            if row:
                fifty, most = percentile(row, .5), percentile(row, .95)
                told(fifty <= limit50 and (limit95 is None or most <= limit95), f"all secured, {name}, connections {kind}: p50 {fifty:.1f} ms (at most {limit50}), p95 {most:.1f} ms"
                     + (f" (at most {limit95})" if limit95 else ""))
    for name, more in (("IPsec in user space", {}), ("no IPsec", {"IPsec": "none"})):
        most, least = pick(rows, **{**secured, **more}, connections="kept"), pick(rows, **none, connections="kept")
        if most and least:
            cost = percentile(most, .5) - percentile(least, .5)
            told(cost <= 1, f"all security ({name}) costs {cost:.1f} ms of p50 where connections are kept (at most 1)")
    return "\n".join(out)


def picture(rows, path):
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return "no picture: python3-matplotlib is not installed"
    kinds = [k for k in ("kept", "new") if any(r["connections"] == k for r in rows)]
    # The study has its own scale, because its bars are a hundred times as long.
    figure, axes = plt.subplots(1, len(kinds) + 1, figsize=(9 * len(kinds) + 5, 10), squeeze=False, gridspec_kw={"width_ratios": [9] * len(kinds) + [5]})
    for axis, kind in zip(axes[0], kinds):
        some = [r for r in rows if r["connections"] == kind]
        left = [0.0] * len(some)
        for part, colour in zip(PARTS, COLOURS):
            widths = [mean(r, part) for r in some]
            axis.barh([title(r) for r in some], widths, left=left, color=colour, label=part)
            left = [a + b for a, b in zip(left, widths)]
        axis.invert_yaxis()
        axis.set_title(f"set-up delay, connections {kind}")
        axis.set_xlabel("ms, mean")
        axis.tick_params(axis="y", labelsize=7)
    axes[0][0].legend(fontsize=8)
    ours = {f"ours, {k}, slowest row": max(mean(r, "total") for r in rows if r["connections"] == k) for k in kinds}
    both = {**STUDIED, **ours}
    axes[0][-1].barh(list(both), list(both.values()), color=["#555555"] * len(STUDIED) + ["#2a6fbb"] * len(ours))
    axes[0][-1].invert_yaxis()
    axes[0][-1].set_title("compared with the study")
    axes[0][-1].set_xlabel("ms, mean")
    axes[0][-1].tick_params(axis="y", labelsize=7)
    figure.text(0.5, 0.01, STUDY, ha="center", fontsize=8)
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    figure.savefig(path, dpi=100)
    return f"picture: {path}"
