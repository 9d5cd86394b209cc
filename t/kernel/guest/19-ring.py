#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet rings make nobody else wait: neither when they close, nor if their process's memory lock is
held for ever. Any user can do that: a thread reads its own process through /proc/self/mem, from a
mapping of a FUSE file whose server is silent. Nobody else may wait for it: not generic netlink, not
namespaces that end, not the module's unloading."""
import ctypes
import os
import select
import struct
import subprocess
import threading

import rig
from rig import equal, tap
import netns

PATH, MODULE = "/run/stall", "/nf_xcipher.ko"
LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, INTERRUPT = 1, 2, 3, 14, 15, 26, 36
ENOSYS = 38


def attributes(node):
    mode = 0o40755 if node == 1 else 0o100644
    return struct.pack("<QQQQQQ10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class Silent:
    """A file system with one file, PATH/file. It never answers a read."""

    def __init__(self):
        os.makedirs(PATH, exist_ok=True)
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        self.asked = threading.Event()
        self.end_r, self.end_w = os.pipe()
        said = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0".encode()
        if ctypes.CDLL(None, use_errno=True).mount(b"silent", PATH.encode(), b"fuse", 0, said):
            raise OSError(ctypes.get_errno(), "mount")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def answer(self, op, node):
        if op == INIT:  # version 7.31, asynchronous reads
            return 0, struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 1, 8, 6, 65536, 1, 16, 0, *[0] * 8)
        if op == LOOKUP:
            return 0, struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2)
        if op == GETATTR:
            return 0, struct.pack("<QII", 3600, 0, 0) + attributes(node)
        if op == OPEN:
            return 0, struct.pack("<QII", 1, 0, 0)
        return -ENOSYS, b""

    def serve(self):
        while True:
            ready = select.select([self.fd, self.end_r], [], [])[0]
            if self.end_r in ready:
                return
            head = os.read(self.fd, 1 << 17)
            op, unique, node = struct.unpack_from("<IQQ", head, 4)
            if op == READ:
                self.asked.set()
            elif op not in (FORGET, INTERRUPT):
                error, data = self.answer(op, node)
                os.write(self.fd, struct.pack("<IiQ", 16 + len(data), error, unique) + data)

    def close(self):
        """All that wait for an answer get an error."""
        os.write(self.end_w, b"x")
        self.thread.join()
        os.close(self.fd)
        rig.run(["umount", "-l", PATH])


def answered(nfx, line, seconds=20):
    """nfx's answer, or None if there is none. Only a failure takes the time."""
    nfx.p.stdin.write(line + "\n")
    nfx.p.stdin.flush()
    return nfx._rows(line) if select.select([nfx.p.stdout], [], [], seconds)[0] else None


def ends(args, seconds=20):
    p = subprocess.Popen(args)
    try:
        return p.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def waits_to_map(pid):
    """Whether a thread is in mmap(), which only returns if it gets the lock."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/syscall", encoding="ascii") as f:
            if f.read().split()[0] == "9":
                return True
    return False


def stall(nfx):
    nfx.ok(f"ring stall {PATH}/file")


def opens(net, server):
    """A reader holds the lock, so another reader gets it. A writer waits, so nobody gets it."""
    nfx = rig.Nfx(net.gateway)
    nfx.hello(owner=1)
    nfx.ok("ring prepare 16 16")
    stall(nfx)
    tap(server.asked.wait(60), "the lock of the address space is held")
    got = answered(nfx, "ring register")
    good = equal("a ring is opened", got and got[0], 0)
    if good:
        equal("and closed", (answered(nfx, "ring close") or [None])[0], 0)
        answered(nfx, "ring map")
        tap(rig.until(lambda: waits_to_map(nfx.p.pid)), "now another thread waits for the lock as a writer")
        got = answered(nfx, "ring register")
        equal("a ring is refused at once", got and (got[0], "try again" in got[1]), (-11, True))
    equal("others use generic netlink meanwhile", ends(["ip", "netns", "exec", net.gateway, "sh", "-c", "echo hello version=1 features=1 owner=7 grace=1 | nfx >/dev/null"]), 0)
    nfx.p.kill()
    return nfx


def frees(net, server):
    """The lock is held while a ring ends."""
    nfx = rig.Nfx(net.gateway)
    nfx.hello(owner=1)
    nfx.ok("ring open 16 16")
    stall(nfx)
    tap(server.asked.wait(60), "the lock of the address space is held, and a ring is open")
    nfx.p.kill()
    nfx.p.stdin.close()
    equal("the module is unloaded meanwhile", ends(["rmmod", "nf_xcipher"]), 0)
    return nfx


def sleeps(nfx):
    """How often nfx has slept. It waits for the next command, which is the last time."""
    path = f"/proc/{nfx.p.pid}"

    def waits():
        with open(f"{path}/syscall", encoding="ascii") as f:
            return f.read().split()[0] == "0"  # read()
    rig.until(waits)
    with open(f"{path}/status", encoding="ascii") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("voluntary_ctxt_switches:"))


def closes(net):
    """All users of generic netlink share one lock, which is held while a ring closes. So that must not
    sleep, as one does for an RCU grace period: processes that close rings without a pause would make
    everybody wait. A refused command sleeps only until the next one comes."""
    nfx = rig.Nfx(net.gateway)
    nfx.hello(owner=1)
    slept, rounds, codes = {"refused": 0, "closed": 0}, 40, {"refused": set(), "closed": set()}
    for _ in range(rounds):
        for what in slept:
            if what == "closed":
                nfx.ok("ring open 16 16")
            before = sleeps(nfx)
            codes[what].add(nfx("ring close")[0])
            slept[what] += sleeps(nfx) - before
    equal("every ring was closed", codes, {"refused": {-2}, "closed": {0}})
    tap(slept["closed"] - slept["refused"] < rounds // 2, f"closing {rounds} rings waits for nothing ({slept} sleeps)")
    nfx.close()


def stalled(function, net):
    server = Silent()
    nfx = None
    try:
        nfx = function(net, server)
    finally:
        server.close()
        if nfx:
            nfx.p.wait()


with netns.Net(("caller", "callee")) as net:
    rig.test(lambda: closes(net))
    if os.path.exists("/dev/fuse"):
        rig.test(lambda: stalled(opens, net))
        rig.test(lambda: stalled(frees, net))
        tap(rig.until(lambda: not os.path.exists("/sys/module/nf_xcipher")), "it is gone")
        rig.run(["insmod", MODULE])
