# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmarks' load detects the faults of a bad relay. A small relay here makes them on purpose."""
import select
import socket
import threading

from bench_measure import FIRST_PORT, GATEWAY, TERMINAL, quiet_terminal, srtpload
from run import Skip
from test_steer import in_namespace

LEGS, EACH = 4, 32  # the same number of packets; two of each leg are checked


class Relay:
    """Sends packets from a leg's port on to its partner, in the order and form that spoil()
    returns."""

    def __init__(self, net, spoil):
        self.spoil = spoil
        self.socks = [in_namespace(net.gateway, self.bound) for _ in range(LEGS)]
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    @staticmethod
    def bound():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((GATEWAY, 0))
        return s

    def spec(self):
        return "".join(f"{TERMINAL} {FIRST_PORT + 2 * k} 1 {GATEWAY} {s.getsockname()[1]} 1 plain - plain -\n" for k, s in enumerate(self.socks))

    def run(self):
        first = {}
        while not self.ended.is_set():
            for s in select.select(self.socks, [], [], 0.1)[0]:
                to = self.socks.index(s) ^ 1
                packet = s.recv(2048)
                sequence = int.from_bytes(packet[2:4], "big")
                number = (sequence - first.setdefault(to, sequence)) & 0xffff
                for p in self.spoil(to, number, packet):
                    self.socks[to].sendto(p, (TERMINAL, FIRST_PORT + 2 * to))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        for s in self.socks:
            s.close()


def load(net, spoil):
    with Relay(net, spoil) as r:
        return srtpload(net, r.spec(), LEGS, LEGS * EACH * 2, 0.5, drain_ms=3000)  # this relay may have to wait for a processor


def test_the_load_sees_what_a_relay_spoils(net):
    quiet_terminal(net)
    kept = {}

    def spoil(to, number, packet):
        """Legs 1 and 3 get another last byte. Leg 0 loses a packet, gets one twice and one late.
        Leg 2 gets a longer one."""
        if to % 2:
            return [packet[:-1] + bytes([packet[-1] ^ 1])]
        if to == 2:
            return [packet + b"!" * (number == 5)]
        kept[number] = packet
        return [kept[n] for n in {5: [], 8: [8, 3], 10: [], 11: [11, 10]}.get(number, [number])]

    r = load(net, spoil)
    assert r["sent"] == LEGS * EACH and r["sampled"] == LEGS * EACH / 16, r
    assert r["wrong"] == 4 + 1 and r["lost"] == 1 + 1 and r["duplicates"] == 1 and r["reordered"] == 1, r
    r = load(net, lambda to, number, packet: [packet[:-1] + bytes([packet[-1] ^ (to % 2 == 0)])])
    assert r["wrong"] == 4 and not (r["lost"] or r["duplicates"] or r["reordered"] or r["bad_auth"]), r


def test_delay_begins_where_a_packet_leaves_the_terminal(net):
    """Waiting before that point, here in a slow queue of the terminal, is caused by the load, not
    by a relay."""
    quiet_terminal(net)
    net.forward()
    slow = net.run(net.terminal["caller"], "tc", "qdisc", "add", "dev", "t1", "root", "tbf", "rate", "256kbit", "burst", "2000", "latency", "10s", check=False)
    if slow.returncode:
        raise Skip(f"this kernel has no such queue: {slow.stderr.strip()}")
    spec = "".join(f"{TERMINAL} {FIRST_PORT + 2 * k} 1 {TERMINAL} {FIRST_PORT + 2 * (k ^ 1)} 1 plain - plain -\n" for k in range(LEGS))
    r = srtpload(net, spec, LEGS, 2000, 0.05, drain_ms=3000, burst_us=100000)  # 100 packets sent at once, 6.7 ms each
    assert r["received"] > 80 and not r["unstamped"] and r["call_p50_us"] > 150000 > 3 * r["p50_us"], r
    r = srtpload(net, spec, LEGS, 2000, 0.01, drain_ms=300, stamps="call")
    assert r["received"] and r["p50_us"] == r["call_p50_us"], r
