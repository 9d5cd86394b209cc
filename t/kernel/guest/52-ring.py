#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The packet ring under xcipherd: the module is unloaded and loaded again under load, the daemon is killed and starts again, two workers
have a ring each, and a daemon without traffic sleeps."""
import importlib.util
import os
import threading
import time

import rig
from rig import equal, tap
import calls
import netns
import relay

spec = importlib.util.spec_from_file_location("relayed", "/guest/60-relay.py")
rig_test, rig.test = rig.test, lambda f: None
relayed = importlib.util.module_from_spec(spec)
spec.loader.exec_module(relayed)
rig.test = rig_test


def start(net, *options):
    return relay.Xcipherd(net, "--steering=kernel", "--engine=serial", *options).wait_ready()


def statistic(daemon, key):
    return relayed.find(daemon.statistics(), key)


def outcome(got):
    return {k: got[k] for k in ("sent", "lost", "duplicates", "reordered", "wrong", "bad_auth")}


SETSOCKOPT, EPOLL_WAIT = "54", "232"


def call_of(daemon, thread):
    """Number of the system call in which a thread sleeps."""
    for task in os.listdir(f"/proc/{daemon.pid()}/task"):
        with open(f"/proc/{daemon.pid()}/task/{task}/comm", encoding="ascii") as f:
            if f.read().strip() != thread:
                continue
        with open(f"/proc/{daemon.pid()}/task/{task}/syscall", encoding="ascii") as f:
            return f.read().split()[0]
    return None


def sleeps(daemon, name, call):
    """A worker that did not sleep would take all of the time."""
    tap(rig.until(lambda: call_of(daemon, "worker-0") == call), f"{name}: the worker sleeps in system call {call}")
    before = daemon.cpu_seconds()
    time.sleep(1)
    took = daemon.cpu_seconds() - before
    tap(took < 0.5, f"{name}: the daemon sleeps ({took:.3f} s of a second)")


def reloaded(net):
    daemon = start(net, "--workers=1")
    got = []
    try:
        some = [calls.Call(daemon.client, n, "80", "32").setup() for n in range(4)]
        sleeps(daemon, "with a ring", SETSOCKOPT)
        load = threading.Thread(target=lambda: got.append(calls.load(net, "/build", some, 50, 12)))
        load.start()
        tap(rig.until(lambda: statistic(daemon, "received by ring") > 200), "media use the ring")
        rig.run(["rmmod", "nf_xcipher"])
        tap(rig.until(lambda: "was unloaded" in daemon.text()), "the module is gone")
        before = statistic(daemon, "received by ring")
        tap(rig.until(lambda: statistic(daemon, "by fallback socket") > 50), "media use the sockets")
        equal("none the ring", statistic(daemon, "received by ring"), before)
        rig.run(["insmod", "/nf_xcipher.ko"])
        tap(rig.until(lambda: statistic(daemon, "received by ring") > before + 200), "media use a new ring")
        load.join()
        rig.note(got)
        o = outcome(got[0])
        equal("none twice, none out of order, none changed", [o[k] for k in ("duplicates", "reordered", "wrong", "bad_auth")], [0] * 4)
        rig.note(o)
        equal("none is lost", o["lost"], 0)
        sleeps(daemon, "with the new ring", SETSOCKOPT)
        rig.run(["rmmod", "nf_xcipher"])
        tap(rig.until(lambda: daemon.text().count("was unloaded") == 2), "the module is gone again")
        sleeps(daemon, "without the module", EPOLL_WAIT)
    finally:
        rig.note(daemon.text())
        daemon.stop()
        if not os.path.exists("/sys/module/nf_xcipher"):
            rig.run(["insmod", "/nf_xcipher.ko"])


def workers(net):
    daemon = start(net, "--workers=2", "--busy-poll=no", "--batch-window=0")
    try:
        some = [calls.Call(daemon.client, n, "80", "plain").setup() for n in range(8)]
        got = calls.load(net, "/build", some, 50, 2)
        o = outcome(got)
        equal("two workers: all packets arrive once, in order", [o[k] for k in ("lost", "duplicates", "reordered", "wrong", "bad_auth")], [0] * 5)
        tap(statistic(daemon, "received by ring") >= o["sent"], "by their rings")
        tap(daemon.text().count("packets use a ring") == 2, "which the log names")
        # Killed: the next daemon takes the ports over, and opens rings of its own.
        daemon.process.kill()
        daemon.process.wait()
        daemon = start(net, "--workers=2")
        tap(rig.until(lambda: "packets use a ring" in daemon.text()), "the next daemon has a ring, too")
        one = calls.Call(daemon.client, 20, "80", "plain").setup()
        o = outcome(calls.load(net, "/build", [one], 50, 2))
        equal("its packets arrive", [o[k] for k in ("lost", "duplicates", "reordered", "wrong", "bad_auth")], [0] * 5)
    finally:
        rig.note(daemon.text())
        daemon.stop()


def main():
    with netns.Net(("caller", "callee")) as net:
        reloaded(net)
        workers(net)


rig.test(main)
