#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet rings, what review found: memory of a file, damaged packets while others gather, large
datagrams of virtual machines, a killed worker's bell, and interfaces that do not exist."""
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading
import time

import rig
from rig import equal, tap
import netns

TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 2, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_UFO = 1, 2, 0x10
GSO_UDP, NEEDS_CSUM = 3, 1
WINDOW_NS = 1000000000  # the longest


def in_namespace(ns, function):
    """A thread of its own enters the namespace."""
    got = []

    def run():
        with open(f"/run/netns/{ns}", "rb") as f:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(f.fileno(), 0x40000000):
                raise OSError("setns")
        got.append(function())

    t = threading.Thread(target=run)
    t.start()
    t.join()
    return got[0]


def targets(nfx, w):
    nfx.ok(w.target("queue", "queue=99"))
    nfx.ok(f"set +create addr={w.h} port=30002 action=queue queue=99")


def memory(nfx, w):
    code, text, _ = nfx("ring open 16 16 file=1")
    tap(code == -22 and "anonymous" in text, f"a private mapping of a file is refused, even if its pages are anonymous by now ({code} {text})")


def gathers(nfx, w):
    """A window is counted from the first packet that waits, whatever arrives in between. Damaged
    packets arrive more often than a window lasts."""
    nfx.ok("ring open 64 16")
    targets(nfx, w)
    raw = in_namespace(w.net.terminal["caller"], lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP))
    rtp = bytes([0x80, 0]) + bytes(98)

    def send(checksum):  # 0: none, which IPv4 allows
        raw.sendto(struct.pack("!HHHH", 4000, 30000, 8 + len(rtp), checksum) + rtp, (w.g, 0))

    equal("armed", nfx.ok(f"ring bell flags=1 wake=64 window={WINDOW_NS}")[0]["armed"], 1)
    send(0)
    nfx.ok("ring wait 1")
    begin, armed, damaged = time.monotonic(), 1, 0
    while armed and time.monotonic() < begin + 20:
        send(1)
        damaged += 1
        time.sleep(0.1)
        armed = nfx.ok("ring state")[0]["armed"]
    equal(f"{damaged} damaged packets do not restart the window", (armed, damaged > 2), (0, True))
    counted = nfx.ok(f"get addr={w.g} port=30000")[0]["MALFORMED"]
    equal("none of them is published, all are counted", (nfx.ok("ring state")[0]["published"], counted), (1, damaged))
    nfx.ok("ring bell taken=1")
    equal("the window woke once", nfx.ok("ring state")[0]["WAKES_WINDOW"], 1)
    raw.close()
    nfx.ok("ring close")


def interfaces(nfx, w):
    nfx.ok("ring open 16 16")
    targets(nfx, w)
    ends = f"{w.h},30002,{w.b},5000"
    result = lambda more: nfx.ok(f"ring send {more}")[0]["result"]
    equal(f"{w.name}: an interface is of no meaning for a global address", (result(f"{ends} ifindex=999"), result(ends)), (0, 0))
    if w.v6:
        index = int(rig.run(["ip", "netns", "exec", w.net.gateway, "cat", "/sys/class/net/g2/ifindex"]))
        local = f"{w.h},30002,fe80::1234,5000"
        equal("a link-local address needs one that exists", (result(f"{local} ifindex={index}"), result(f"{local} ifindex=999")), (0, 101))
    nfx.ok("ring close")


def sent(look, w):
    return look.ok(f"get addr={w.h} port=30012")[0]["SENT"]


def killed(nfx, w):
    """A bell with as many packets as there may be."""
    worker, most = rig.Nfx(w.net.gateway), 65536
    worker.hello(owner=2, grace=600000)
    worker.ok(f"ring open 16 {most}")
    worker.ok(f"set +create addr={w.h} port=30012 action=pass")
    worker.p.stdin.write(f"ring send {w.h},30012,{w.b},5000 times={most}\n")
    worker.p.stdin.flush()
    began = rig.until(lambda: sent(nfx, w) > 0)
    worker.close(kill=True)
    got = sent(nfx, w)
    tap(began and got < most, f"the bell of a killed worker ends early ({got} of {most} packets)")


def tap_frame(w, mac, size):
    """A UDP datagram of this size, which the receiver would split into IP fragments."""
    src, dst = socket.inet_aton("10.201.0.2"), socket.inet_aton(w.g)
    data = bytes([0x80, 0]) + bytes(i & 0xff for i in range(size - 2))
    udp = struct.pack("!HHHH", 4000, 30000, 8 + size, 0)
    pseudo = sum(struct.unpack("!6H", src + dst + struct.pack("!HH", 17, 8 + size)))
    while pseudo >> 16:
        pseudo = (pseudo & 0xffff) + (pseudo >> 16)
    udp = udp[:6] + struct.pack("!H", pseudo)  # CHECKSUM_PARTIAL: the rest is left to the device
    ip = bytearray(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + size, 1, 0, 64, 17, 0, src, dst))
    total = sum(struct.unpack("!10H", ip))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    ip[10:12] = struct.pack("!H", ~total & 0xffff)
    head = struct.pack("<BBHHHH", NEEDS_CSUM, GSO_UDP, 14 + 20 + 8, 1480, 34, 6)
    return head + mac + b"\x02\0\0\0\0\x02" + b"\x08\0" + bytes(ip) + udp + data, data


def open_tap():
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"vm0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_UFO)
    return fd


def ufo(nfx, w):
    """The host's stack takes it whole, and the socket gets it."""
    nfx.ok("ring open 64 16")
    targets(nfx, w)
    ns = w.net.gateway
    fd = in_namespace(ns, open_tap)
    for command in ("ip link set vm0 up", "ip addr add 10.201.0.1/24 dev vm0"):
        rig.run(["ip", "netns", "exec", ns, *command.split()])
    mac = bytes.fromhex(rig.run(["ip", "netns", "exec", ns, "cat", "/sys/class/net/vm0/address"]).strip().replace(":", ""))
    s = in_namespace(ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    s.bind((w.g, 30000))
    s.settimeout(60)
    before = nfx.ok(f"get addr={w.g} port=30000")[0]
    frame, data = tap_frame(w, mac, 4000)
    os.write(fd, frame)
    equal("a datagram that would be split into fragments reaches the socket whole", s.recv(65536) == data, True)
    after = nfx.ok(f"get addr={w.g} port=30000")[0]
    equal("the module leaves it alone", [n for n in after if after[n] != before[n] and n not in ("last_seen", "seen")], [])
    frame, data = tap_frame(w, mac, 500)
    os.write(fd, bytes([NEEDS_CSUM, 0]) + frame[2:])
    nfx.ok("ring wait 1")
    equal("a usual one of the same device comes by the ring", nfx.ok("ring look")[0]["len"], 500)
    s.close()
    os.close(fd)
    nfx.ok("ring close")


class Stranger(rig.Nfx):
    """Anybody may create a user namespace, and is the administrator of the networks in it."""

    def __init__(self):
        unshare = ctypes.CDLL(None, use_errno=True).unshare

        def leave():
            unshare(0x50000000)  # CLONE_NEWUSER, CLONE_NEWNET
            rig.write("/proc/self/uid_map", "0 0 1")

        self.p = subprocess.Popen(["/build/t/nfx"], text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=leave)


def strangers(_, __):
    """Polling an epoll asks the files in it. One of FUSE answers when its owner likes, and generic
    netlink would wait, for the whole host."""
    nfx = Stranger()
    agreed = nfx.ok("hello version=1 features=0x1fff owner=1 grace=1000")[0]["features"]
    equal("a user namespace: bells that wait are not offered", agreed & 0x1400, 0x400)
    code, text, _ = nfx("ring open 16 16")
    tap(code == -1 and "epoll" in text, f"a user namespace: a ring cannot name an epoll ({code} {text})")
    equal("a user namespace: a ring without", nfx("ring open 16 16 poll=0xffffffff")[0], 0)
    equal("a user namespace: its bells do not wait", nfx("ring bell flags=3 wake=1")[0], -22)
    nfx.close()


def users(nfx, w):
    """A ring lives as long as its netlink socket. So its user has the limit, not one process. 64 KiB
    are enough for one ring."""
    one, two = rig.Nfx(w.net.gateway), rig.Nfx(w.net.gateway)
    one.hello(owner=3)
    two.hello(owner=4)
    one.ok("ring open 16 16 memlock=65536")
    code, text, _ = two("ring open 16 16 memlock=65536")
    tap(code == -1 and "RLIMIT_MEMLOCK" in text, f"processes of one user share the limit ({code} {text})")
    kept = rig.sockets(one.p.pid)
    one.close(kill=True)
    equal("a ring whose process ended still counts, as its socket is open", (len(kept) > 1, two("ring open 16 16")[0]), (True, -1))
    for fd in kept:
        os.close(fd)
    tap(rig.until(lambda: two("ring open 16 16")[0] == 0), "with the socket it is given back")
    two.close()


def reused(nfx, w):
    """The worker opens the next ring in the memory of one that has ended."""
    nfx.ok("ring open 64 16")
    targets(nfx, w)
    w.flow("--count", 20, recv=[])
    nfx.ok("ring wait 20")
    nfx.ok("ring bell flags=1 wake=64 window=20000000 taken=19")
    nfx.ok("ring close")
    state = nfx.ok("ring state")[0]
    equal("an ended ring has its last counters", (state["state"], state["PACKETS"], state["armed"]), (1, 20, 0))
    equal("the packet whose slot was not returned is reported to the next one", nfx.ok("ring register")[0].get("ring_lost"), 1)
    equal("armed", nfx.ok("ring bell flags=1 wake=64 window=20000000")[0]["armed"], 1)
    changes = []
    for _ in range(100):
        state = nfx.ok("ring state")[0]
        if (state["PACKETS"], state["armed"], state["state"]) != (0, 1, 0):
            changes.append(state)
        time.sleep(0.01)
    equal("the next ring in its memory sees nothing of it", changes[:1], [])
    nfx.ok("ring close")
    equal("and reported once", nfx.ok("ring register")[0].get("ring_lost"), 0)
    nfx.ok("ring close")


with netns.Net(("caller", "callee")) as net:
    rig.one_processor()
    nfx = rig.Nfx(net.gateway)
    nfx.hello(owner=1)
    four, six = rig.Way(net, False), rig.Way(net, True)
    parts = [(memory, four), (gathers, four), (interfaces, four), (interfaces, six), (killed, four), (strangers, four), (users, four), (reused, four)]
    if os.path.exists("/dev/net/tun"):
        parts.append((ufo, four))
    for part, w in parts:
        rig.test(lambda: part(nfx, w))
        nfx("ring close")
    nfx.close()
