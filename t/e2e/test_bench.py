# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench cannot rot: a tiny run of it, all floors included, that writes what it promises."""
import json
import os
import subprocess
import sys
import tempfile

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
