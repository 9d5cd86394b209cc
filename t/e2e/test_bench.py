# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench cannot rot: a tiny run of it, all floors included, that writes what it promises."""
import json
import os
import subprocess
import sys
import tempfile

import bench_path

HERE = os.path.dirname(os.path.abspath(__file__))


def test_bench_runs(_net):
    with tempfile.TemporaryDirectory() as out:
        run = subprocess.run([sys.executable, os.path.join(HERE, "bench_path.py"), "--only=cost", "--sides=RTP-RTP",
                              "--relays=udp,floor", "--rounds=1", "--seconds=0.3", "--calls=5", "--total=500", f"--out={out}"],
                             capture_output=True, text=True, check=False, timeout=120)
        assert run.returncode == 0, run.stdout + run.stderr
        with open(os.path.join(out, "path.json"), encoding="utf-8") as f:
            result = json.load(f)
        assert os.path.getsize(os.path.join(out, "path-cost.png"))
    rows = {name: r[0] for name, r in result["sections"]["cost"]["RTP-RTP"].items()}
    assert {"udp opencl", "floor udp", "floor nfqueue", "floor xdp"} == set(rows), rows.keys()
    for name, r in rows.items():
        assert r["received"] > 100 and r["cpu_us"] > 0 and not r["wrong"] + r["bad_auth"] + r["duplicates"], (name, r)
    assert len(result["targets"]) > 20 and "not measured" in run.stdout


def test_a_disturbed_try_counts_for_nobody(_net):
    """What fails while others have the machine is tried again; what fails without them, or every time, is not held."""
    good, ours, theirs = ({"lost": 0, "p99_us": p99, "late": 0, "else_percent": other, "steal_percent": 0, "waits_ms": 0}
                          for p99, other in ((4000, 50), (6000, 1), (6000, 50)))
    for tries, held, used in (([good, good], True, 2), ([ours, ours], False, 2), ([ours, good, good], True, 3), ([theirs, good, good], True, 3),
                              ([theirs, theirs, theirs, good, good], True, 5), ([theirs] * 5, False, 5), ([theirs, ours, theirs, good, ours], False, 5)):
        left, out = [dict(t) for t in tries], []
        assert bench_path.holds(lambda _total, left=left: left.pop(0), 1000, out, "test") is held, tries
        assert len(out) == used and all(t["held"] is held for t in out), (tries, out)
