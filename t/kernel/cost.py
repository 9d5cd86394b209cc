# SPDX-License-Identifier: GPL-2.0-or-later
"""run.py cost [--rows PART,...] [--media PART,...] [--tags SCHEME,...] [--once] [--profile] [--exact]: instructions per packet of
rtpengine in its kernel mode and of each way of xcipherd, in one guest each. Two guests run beside each other, and
the difference between them is printed; --once: one guest. --profile: consoles also tell where the time goes.
--exact: one guest; also exact counts by function (exact.py), which go to BUILD/bench/exact.txt.
--tags: also _80 to _32 with SRTP+ of these schemes on both legs. Writes BUILD/bench/kernel.json. guest/95-cost.py measures."""
import json
import os
import re
import threading

import exact
import image
import rtpengine
import run

# An instruction takes 1 ns, and time without work is skipped. Without erms the kernel copies and
# clears 8 bytes per instruction of a repeated string instruction; with it it would be 1 byte, and
# the emulator counts each repetition.
COUNT = ["-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=0,sleep=off", "-rtc", "clock=vm"]
CPU = os.environ.get("COST_CPU", "max,-cx16,-erms")
MEMORY = "1024"
SECONDS = 7200
PYTHON = ["base64", "bench_flood", "bench_measure", "sample", "zlib"]
PEER = "rtpengine, kernel mode"
CAVEAT = """Instructions are not cycles: caches, memory, locks between processors, and vector
instructions that cost more than others are not seen. The processor is emulated (qemu), with
AES-NI, AVX2 and VAES, without SHA-NI and AVX-512. Rows without "opencl" use the serial engine."""


def cells(log):
    """{(row, media, load): what the guest told}."""
    with open(log, errors="replace", encoding="utf-8") as f:
        told = [json.loads(x) for x in re.findall(r"# cost \| (\{.*\})", f.read())]
    return {(c["row"], c["media"], c["load"]): c for c in told}


def in_order(keys):
    return list(dict.fromkeys(keys))


def table(runs):
    """Markdown: thousands of instructions, in brackets the ratio to rtpengine's kernel mode."""
    first = runs[0]
    columns = in_order((m, n) for _, m, n in first)
    lines = ["| together | " + " | ".join(f"{m}, {n}" for m, n in columns) + " |", "|---" * (len(columns) + 1) + "|"]

    def mean(row, column):
        got = [r[row, *column]["instructions"] for r in runs if (row, *column) in r]
        return sum(got) / len(got) if got else None

    for row in in_order(r for r, _, _ in first):
        line = []
        for column in columns:
            value, peer = mean(row, column), mean(PEER, column)
            ratio = f" ({value / peer:.2f})" if value and peer and row != "direct" else ""
            line.append(f"{value / 1000:.1f}{ratio}" if value else "-")
        lines.append(f"| {row} | " + " | ".join(line) + " |")
    return "\n".join(lines)


def spread(runs):
    """The largest difference between runs, in percent of a cell's mean."""
    worst = 0, None
    for key in runs[0]:
        got = [r[key]["instructions"] for r in runs if key in r]
        worst = max(worst, ((max(got) - min(got)) / (sum(got) / len(got)) * 100, key), key=lambda w: w[0])
    return worst


def options(args):
    env = {}
    for name, variable in (("--rows", "COST_ROWS"), ("--media", "COST_MEDIA"), ("--tags", "COST_TAGS")):
        if name in args:
            env[variable] = args[args.index(name) + 1]
    if "--profile" in args:
        env["COST_PROFILE"] = "yes"
    if "--exact" in args:
        env["COST_EXACT"] = "yes"
    return env


def main(args):
    if "--help" in args:
        print(__doc__)
        return 0
    if os.geteuid() == 0:
        os.nice(5)
    kernel, folder = image.unpack(run.BASE)
    headers = f"/lib/modules/{kernel}/build"
    ko = run.module_build(kernel, headers)
    image.MODULES += rtpengine.MODULES
    run.PYTHON += PYTHON
    run.QEMU[run.QEMU.index("-m") + 1] = MEMORY
    run.QEMU[run.QEMU.index("-cpu") + 1] = CPU
    env = options(args)
    counts = None
    if "COST_EXACT" in env:
        plugin, counts = exact.plugin(run.BASE)
        run.QEMU += plugin
    version = []

    def extra(fs):
        version.append(rtpengine.add(fs, run.BASE, kernel, headers))
        fs.text("guest/symbols", image.run(["nm", "--defined-only", f"{run.BUILD}/xcipherd"]))
        fs.text("guest/cost.env", "".join(f"{k}={v}\n" for k, v in env.items()))

    archive = f"{run.BASE}/initramfs-cost"
    run.initramfs_write(archive, kernel, folder, ko, ["00-smoke.sh", "95-cost.py"], extra)
    names = ["count-1"] if counts or "--once" in args else ["count-1", "count-2"]
    wrong = {}

    def boot(name):
        run.GUESTS[name] = COUNT
        log = f"{run.BASE}/console-{name}.log"
        _, why = run.boot(name, kernel, folder, archive, SECONDS, log)
        with open(log, errors="replace", encoding="utf-8") as f:
            wrong[name] = ([why] if why else []) + run.judge(f.read())[0]

    threads = [threading.Thread(target=boot, args=(n,)) for n in names]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    runs = [cells(f"{run.BASE}/console-{n}.log") for n in names]
    os.makedirs(f"{run.BUILD}/bench", exist_ok=True)
    with open(f"{run.BUILD}/bench/kernel.json", "w", encoding="utf-8") as f:
        json.dump({"kernel": kernel, "rtpengine": version[0], "cpu": CPU, "runs": [list(r.values()) for r in runs]}, f, indent=1)
    print(f"\nThousands of instructions per packet, in brackets to rtpengine {version[0]} in its kernel mode; Linux {kernel}.\n")
    print(table(runs))
    if len(runs) > 1:
        percent, key = spread(runs)
        print(f"\nTwo guests differ by at most {percent:.1f} % ({', '.join(key)}).")
    if counts:
        symbols = f"{run.BASE}/symbols"
        with open(symbols, "w", encoding="utf-8") as f:
            f.write(image.run(["nm", "--defined-only", f"{run.BUILD}/xcipherd"]))
        with open(f"{run.BUILD}/bench/exact.txt", "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in exact.tables(f"{run.BASE}/console-count-1.log", counts, symbols, run.BASE))
        print(f"By function: {run.BUILD}/bench/exact.txt")
    print(CAVEAT)
    for name, why in wrong.items():
        for w in why:
            print(f"cost: {name}: {w}")
    return any(wrong.values())
