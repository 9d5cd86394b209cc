#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Floods of forged SRTP from a terminal's own address, under kernel steering, with the ring and with
the queue: the module drops most of them, and no true packet is lost."""
import os
import random
import struct
import time

import rig
from rig import equal, tap
import calls
import netns
import relay
import srtp


class Phone:
    def __init__(self, net, where, address):
        import ng
        self.sock = ng.socket_in(net.terminal[where])
        self.sock.bind((address, 0))
        self.sock.settimeout(60)
        self.address, self.port, self.seq, self.ssrc = address, self.sock.getsockname()[1], 0, random.randrange(1 << 32)
        self.suite = calls.Suite("80")
        self.key = os.urandom(self.suite.key_len)
        self.tx = srtp.Session(self.suite.name, self.key, srtp.OUTBOUND)

    def sdp(self, tag=1):
        return calls.sdp(self.address, self.port, "80", [self.key], tag)

    def told(self, text):
        p = calls.parse(text)
        self.to = (p["ip"], p["port"])
        self.tag, _, key = next(c for c in p["crypto"] if c[1] == self.suite.name)
        self.rx = srtp.Session(self.suite.name, key, srtp.INBOUND)

    def send(self, payload):
        self.seq += 1
        self.sock.sendto(self.tx.protect(struct.pack("!BBHII", 0x80, 0, self.seq, self.seq * 160, self.ssrc) + payload), self.to)

    def forge(self, n):
        for _ in range(n):
            head = struct.pack("!BBHII", 0x80, 0, random.randrange(1 << 16), random.randrange(1 << 32), self.ssrc)
            self.sock.sendto(head + os.urandom(170), self.to)

    def hears(self):
        packet = self.rx.unprotect(self.sock.recv(2048))
        return packet and packet[12:]


def heard(a, b):
    word = os.urandom(8)
    a.send(word)
    return b.hears() == word


def guarded(s):
    return sum(v for k, v in s.items() if k.startswith("guard: "))


def flood(ring):
    with netns.Net(("caller", "callee")) as net:
        net.forward()
        daemon = relay.Xcipherd(net, "--engine=serial", "--steering=kernel", *([] if ring else ["--kernel-ring=no"]),
                                addresses=("10.200.1.1", "10.200.2.1")).wait_ready()
        name = "ring" if ring else "queue"
        a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
        b.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), transport_protocol="RTP/SAVP"))["sdp"])
        a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp(b.tag)))["sdp"])
        tap(heard(a, b) and heard(b, a), f"{name}: media pass")
        end = time.monotonic() + 60 * rig.PATIENCE
        while not guarded(daemon.statistics()) and time.monotonic() < end:
            a.forge(20)
            if not heard(a, b):
                break
        before = guarded(daemon.statistics())
        tap(before > 0, f"{name}: the module drops forged packets")
        good = 0
        for _ in range(100):
            a.forge(10)
            good += heard(a, b)
        s = daemon.statistics()
        equal(f"{name}: no true packet is lost", good, 100)
        tap(guarded(s) - before > 500, f"{name}: most forged packets are dropped by the module: {guarded(s) - before} of 1000")
        rig.note({k: v for k, v in s.items() if k.startswith("guard: ")})
        rig.note({k: v for k, v in s["drops"].items() if v})
        equal(f"{name}: the daemon ends", daemon.stop(), 0)


rig.test(lambda: flood(True))
rig.test(lambda: flood(False))
