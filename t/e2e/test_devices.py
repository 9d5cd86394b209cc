# SPDX-License-Identifier: GPL-2.0-or-later
"""Two OpenCL devices in one daemon (PoCL's basic, twice) fail one after the other while running.
Media continue without loss, the operator gets one report for each, and xcipherctl engine shows
it."""
import json
import os
import subprocess
import tempfile
import threading
import time

import calls
import relay
from test_relay import clean, finish

IPC_LOCK = 1 << 14  # kept if locked memory is limited
HERE = os.path.dirname(os.path.abspath(__file__))


class Faulty(relay.Xcipherd):
    """Preloads t/e2e/cl_faults.c before OpenCL."""

    def __init__(self, net, *options, slow_us=None, leaves=None):
        """leaves: the function whose memory is left to a hung device on purpose."""
        self.leaves = leaves
        self.slow = {"XC_SLOW_US": str(slow_us)} if slow_us else {}
        self.dir = tempfile.TemporaryDirectory(prefix="xcipher-faults-")
        self.shim = os.path.join(self.dir.name, "cl_faults.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-o", self.shim, os.path.join(HERE, "cl_faults.c"), "-ldl"], check=True)
        super().__init__(net, *options)

    def environment(self):
        env = super().environment()
        env.update(POCL_DEVICES="basic basic", LD_PRELOAD=self.shim, XC_FAULTS=self.dir.name)
        env.update(self.slow)
        if self.leaves:
            known = os.path.join(self.dir.name, "lsan.supp")
            with open(os.path.join(HERE, "lsan.supp"), encoding="ascii") as f, open(known, "w", encoding="ascii") as out:
                out.write(f.read() + f"leak:{self.leaves}\n")
            env["LSAN_OPTIONS"] = f"suppressions={known}:print_suppressions=0"
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return env

    def fail_device(self, index):
        with open(os.path.join(self.dir.name, str(index)), "w", encoding="ascii"):
            pass

    def hang_device(self, index):
        self.fail_device(f"hang{index}")


def break_one_by_one(daemon, enough, harm):
    """Fails the second device once statistics show work of both, then the first once it has worked
    alone. States decide, not the clock, because a busy machine may start late. Returns the
    thread, to be joined."""
    def run():
        deadline, alone = time.monotonic() + 60, None
        while time.monotonic() < deadline:
            s = daemon.statistics()
            first, second = s["devices"]
            if alone is None and enough(s):
                harm(1)
                alone = False
            elif alone is False and second["state"] == "lost":
                alone = first["batches"]
            elif alone and first["batches"] > alone + 20:
                return daemon.fail_device(0)
            elif first["state"] == second["state"] == "lost":
                return None
            time.sleep(0.05)
    t = threading.Thread(target=run)
    t.start()
    return t


def talk_until(net, daemon, faults, many, seconds):
    """Runs media until these faults have happened, and afterwards. On a busy machine that takes
    more than one load."""
    talk, over = [], False
    while not over:
        over = not faults.is_alive()
        talk += (more := [calls.Call(daemon.client, len(talk) + i, "80", "32").setup() for i in range(many)])
        clean(calls.load(net, relay.BUILD, more, rate=50, seconds=seconds))
    faults.join()
    return talk


def engine(net, *options):
    return subprocess.run(["ip", "netns", "exec", net.gateway, os.path.join(relay.BUILD, "xcipherctl"), *options, "engine"],
                          capture_output=True, check=True, text=True).stdout


class Gpu(Faulty):
    """PoCL's devices say that they are GPUs."""

    def environment(self):
        return {**super().environment(), "XC_GPU": "1"}


def test_drivers_begin_without_capabilities(net):
    """A driver creates threads with a context, and these keep the capabilities of its caller: of the engine, and of the device that
    helps codec threads."""
    daemon = Gpu(net, "--engine=opencl", "--codec-threads=2").wait_ready()
    with open(os.path.join(daemon.dir.name, "caps"), encoding="ascii") as f:
        caps = [int(line, 16) for line in f]
    assert len(caps) >= 2 and "G.722: " in daemon.text(), (caps, daemon.text())
    assert not any(c & ~IPC_LOCK for c in caps), [hex(c) for c in caps]
    assert daemon.stop() == 0, daemon.text()


def test_devices_lost_in_mid_run(net):
    daemon = Faulty(net, "--engine=opencl", "--opencl-device=0:1,1:2", "--opencl-min=1").wait_ready()
    before = daemon.statistics()["devices"]
    assert [(d["state"], d["weight"]) for d in before] == [("ok", 1), ("ok", 2)], before
    faults = break_one_by_one(daemon, lambda s: all(d["batches"] > 20 for d in s["devices"]), daemon.fail_device)
    talk = talk_until(net, daemon, faults, 12, 3)
    s = daemon.statistics()
    first, second = s["devices"]
    assert first["state"] == second["state"] == "lost", s["devices"]
    # First both devices worked, then one, then none.
    assert first["batches"] > 0 and second["batches"] > 0 and s["device jobs"] == first["jobs"] + second["jobs"] < s["jobs"], s
    lines = [line for line in daemon.text().splitlines() if "device lost" in line]
    assert all("No packet is lost" not in line and "--overload-age" in line for line in lines), lines  # packets that wait too long are shed
    assert len(lines) == 2 and "the other devices" in lines[0] and "the serial engine" in lines[1], daemon.text()
    assert engine(net).count("state lost") == 2
    assert [d["state"] for d in json.loads(engine(net, "--json"))["devices"]] == ["lost", "lost"]
    for c in talk:
        calls.ok(c.delete())
    finish(daemon)


def test_two_batches_in_flight(net):
    """As on a GPU: several batches in flight on a slow device, and changing keys. Then one device
    hangs, and one fails with all its batches. Every packet arrives once, in order and correct."""
    daemon = Faulty(net, "--engine=opencl", "--opencl-device=0:1,1:2", "--opencl-min=1", "--batches-in-flight=2", "--batch-max=64",
                    "--batch-window=50", "--opencl-timeout=2000", "--workers=1", slow_us=8000, leaves="opencl_copy_create").wait_ready()
    faults = break_one_by_one(daemon, lambda s: s["device batches overlapped"] > 30, daemon.hang_device)
    talk = talk_until(net, daemon, faults, 30, 2)
    s = daemon.statistics()
    assert [d["state"] for d in s["devices"]] == ["lost", "lost"], s["devices"]
    assert s["device batches overlapped"] > 30 and 0 < s["device jobs"] < s["jobs"], s
    for c in talk:
        calls.ok(c.delete())
    finish(daemon)
