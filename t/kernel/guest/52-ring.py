#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The packet ring under xcipherd: the module is unloaded and loaded again under load, the daemon is killed under load and starts again, two
workers have a ring each, and a daemon without traffic sleeps."""
import importlib.util
import os
import signal
import socket
import struct
import threading
import time

import rig
from rig import equal, tap
import calls
import netns
import redisrig
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
GENERIC, RING_CLOSE = 16, 9  # NETLINK_GENERIC, NFX_CMD_RING_CLOSE


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


def family_number():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC) as s:
        name = b"nf_xcipher\0\0"  # with its zero, padded
        s.send(struct.pack("=IHHIIBBHHH", 20 + 4 + len(name), 16, 1, 1, 0, 3, 1, 0, 4 + 11, 2) + name)
        said, at = s.recv(65536), 20
        while at < len(said):
            length, kind = struct.unpack_from("=HH", said, at)
            if kind == 1:
                return struct.unpack_from("=H", said, at + 4)[0]
            at += (length + 3) & ~3
    raise RuntimeError("no family nf_xcipher")


def ring_close(daemon):
    """Closes the worker's ring behind its back: RING_CLOSE on all its sockets of generic netlink. It skips answers that it did not ask for."""
    for fd in rig.sockets(daemon.pid()):
        with socket.socket(fileno=fd) as s:
            if s.family == socket.AF_NETLINK and s.proto == GENERIC:
                s.send(struct.pack("=IHHIIBBH", 20, family_number(), 1, 0xfffffff0, 0, RING_CLOSE, 1, 0))


def ended(net):
    """While the module stays loaded."""
    daemon = start(net, "--workers=1")
    got = []
    try:
        some = [calls.Call(daemon.client, n, "80", "plain").setup() for n in range(4)]
        load = threading.Thread(target=lambda: got.append(calls.load(net, "/build", some, 50, 5)))
        load.start()
        tap(rig.until(lambda: statistic(daemon, "received by ring") > 200), "media use the ring")
        ring_close(daemon)
        tap(rig.until(lambda: "the packet ring ended (it was closed)" in daemon.text()), "the log says that the ring ended")
        before = statistic(daemon, "received by ring")
        load.join()
        o = outcome(got[0])
        equal("its media use the queue, and none is lost", ([o[k] for k in ("lost", "duplicates", "reordered", "wrong", "bad_auth")], statistic(daemon, "received by ring")),
              ([0] * 5, before))
        equal("the log says it once", daemon.text().count("the packet ring ended"), 1)
    finally:
        rig.note(daemon.text())
        daemon.stop()


def without_socket(net):
    """Datagrams that found no socket on the gateway."""
    lines = rig.run(["ip", "netns", "exec", net.gateway, "cat", "/proc/net/snmp"]).splitlines()
    names, values = [x.split() for x in lines if x.startswith("Udp: ")]
    return int(values[names.index("NoPorts")])


def killed(net):
    """In mid-stream, with packets in its ring. Its successor restores the calls, and uses the queue until it opens a ring. Every lost
    packet is in a counter: of the ring that ended, or of datagrams that found no socket while no daemon ran."""
    if not redisrig.have():
        rig.note(f"skipped: no {redisrig.PROGRAM}")
        return
    redis = redisrig.Redis(net)
    options = ["--workers=1", *redis.daemon_options()]
    daemon = start(net, *options)
    got = []
    try:
        some = [calls.Call(daemon.client, n, "80", "plain").setup() for n in range(4)]
        load = threading.Thread(target=lambda: got.append(calls.load(net, "/build", some, 50, 25)))
        load.start()
        tap(rig.until(lambda: statistic(daemon, "received by ring") > 200), "media use the ring")
        before = without_socket(net)
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        daemon.process.kill()
        daemon.process.wait()
        daemon.client.close()
        daemon = start(net, *options)
        for call in some:
            call.client = daemon.client
        tap("4 calls restored" in daemon.text(), "the next daemon has the calls")
        tap(rig.until(lambda: statistic(daemon, "packets received") > 400 and not statistic(daemon, "received by ring")), "whose media use the queue")
        tap(rig.until(lambda: statistic(daemon, "received by ring") > 400), "and a ring ten seconds later")
        load.join()
        o = outcome(got[0])
        rig.note(o)
        equal("killed: none twice, none out of order, none changed", [o[k] for k in ("duplicates", "reordered", "wrong", "bad_auth")], [0] * 4)
        ended, none = statistic(daemon, "lost in an ended ring"), without_socket(net) - before
        tap(ended >= 100 and "packets were lost in the ring" in daemon.text(), f"the successor reports what was in the ring ({ended} packets)")
        lost = o["lost"] + got[0]["rtcp_sent"] - got[0]["rtcp_received"]
        tap(lost <= ended + none, f"killed: none is lost that is not counted ({lost} lost, {ended} in the ring, {none} without a socket)")
        tap(lost >= ended + none - 64, "and no more than a burst is counted in addition")
    finally:
        rig.note(daemon.text())
        daemon.stop()
        redis.stop()


def main():
    with netns.Net(("caller", "callee")) as net:
        reloaded(net)
        workers(net)
        ended(net)
        killed(net)


rig.test(main)
