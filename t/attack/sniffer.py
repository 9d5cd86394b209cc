# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that leave the gateway, by an AF_PACKET socket on all its interfaces, loopback included.

The checker uses no other source, so it does not rely on the daemon's own reports about packets. AF_XDP
bypasses the taps of the interface it sends by: with it the far ends of the links are read in addition.
"""
import ipaddress
import socket
import struct
import threading
import time
from collections import namedtuple

import ng

ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 3, 0x0800, 0x86dd
SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 33, 263, 6
PACKET_OUTGOING = 4
BUFFER = 64 << 20
READ_MAX = 20000  # a loop sends without end: this many suffice

Packet = namedtuple("Packet", "link src sport dst dport data")


def parse(link, frame):
    """The UDP packet in an Ethernet frame, or None. Addresses as text; an IPv4-mapped address is written as ::ffff:a.b.c.d."""
    kind = int.from_bytes(frame[12:14], "big")
    if kind == ETH_P_IP and len(frame) >= 42 and frame[23] == 17:
        n = 14 + 4 * (frame[14] & 15)
        src, dst = socket.inet_ntoa(frame[26:30]), socket.inet_ntoa(frame[30:34])
        if int.from_bytes(frame[20:22], "big") & 0x1fff:
            return None  # a later fragment has no ports
    elif kind == ETH_P_IPV6 and len(frame) >= 62 and frame[20] == 17:
        n = 54
        src, dst = (str(ipaddress.IPv6Address(frame[i:i + 16])) for i in (22, 38))
    else:
        return None
    sport, dport, length = struct.unpack_from("!HHH", frame, n)
    return Packet(link, src, sport, dst, dport, bytes(frame[n + 8:n + length]))


def packet_socket(ns):
    """An AF_PACKET socket on all interfaces of a namespace, later ones included."""
    made = []

    def make():
        with open(f"/run/netns/{ns}", "rb") as f:
            ng.libc_setns(f.fileno())
        made.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    s = made[0]
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    s.setblocking(False)
    return s


class Sniffer:
    """far_ends: namespaces whose incoming packets stand for what the gateway sent to them, for --steering=xdp."""

    def __init__(self, gateway, far_ends=()):
        self.near = packet_socket(gateway)
        self.far = [packet_socket(ns) for ns in far_ends]
        self.lost = 0

    def _read(self, s, wanted):
        out = []
        while len(out) < READ_MAX:
            try:
                frame, (link, _, kind, *_) = s.recvfrom(65536)
            except BlockingIOError:
                break
            if wanted(link, kind):
                p = parse(link, frame)
                if p:
                    out.append(p)
        return out

    def read(self):
        """All packets that left since the last call."""
        if not self.far:
            out = self._read(self.near, lambda link, kind: kind == PACKET_OUTGOING)
        else:
            out = self._read(self.near, lambda link, kind: kind == PACKET_OUTGOING and link == "lo")
            for s in self.far:
                out += self._read(s, lambda link, kind: kind != PACKET_OUTGOING and link != "lo")
        for s in (self.near, *self.far):
            # struct tpacket_stats: packets, drops since the last call (packet(7)).
            _, drops = struct.unpack("II", s.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
            self.lost += drops
        return out

    def close(self):
        for s in (self.near, *self.far):
            s.close()


def wait_until(what, seconds, message):
    """Waits for a state. The time limit only ends a failed test."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(message)
        time.sleep(0.01)
