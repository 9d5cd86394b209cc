# SPDX-License-Identifier: GPL-2.0-or-later
"""Steering alone, without media: netfilter rules, the queue, verdicts, the raw socket. steer_probe
reports packets and obeys a payload's first letter: D drop, P pass on, E send back, A drop and
serve the late port from now on."""
import collections
import ctypes
import os
import select
import signal
import socket
import struct
import subprocess
import time

import idle
from baresip import wait_for
from run import cases

BUILD = os.environ.get("BUILD", "build")
QUEUE, PORTS, BURST = 40, (30000, 30099), 64
V4, V6 = ("10.200.1.1", "10.200.1.2"), ("fd00:1::1", "fd00:1::2")
CLONE_NEWNET = 0x40000000
UDP_SEGMENT = 103

Packet = collections.namedtuple("Packet", "addr port src len sum via when")


def in_namespace(name, make):
    """Runs make() inside a network namespace. The socket stays there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as mine, open(f"/run/netns/{name}") as other:
        assert libc.setns(other.fileno(), CLONE_NEWNET) == 0
        try:
            return make()
        finally:
            assert libc.setns(mine.fileno(), CLONE_NEWNET) == 0


class Probe:
    def __init__(self, net, steering="nfqueue", workers=1, addrs=(V4[0], V6[0])):
        self.args = [steering, str(QUEUE), str(workers), f"{PORTS[0]}-{PORTS[1]}", *addrs]
        self.net = net
        self.program = os.path.join(BUILD, "t", "steer_probe")

    def once(self, what):
        self.net.run(self.net.gateway, self.program, what, *self.args)
        return self

    def start(self):
        self.process = self.net.spawn(self.net.gateway, [self.program, "run", *self.args],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.text = b""
        self.ports = collections.defaultdict(list)
        for line in self._lines(lambda line: line == "ready"):
            if line.startswith("port"):
                self.ports[int(line.split()[1])].append(int(line.split()[2]))
            elif line.startswith("late"):
                self.late = int(line.split()[1])
        return self

    def _lines(self, last, timeout=60):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            while b"\n" in self.text:
                line, self.text = self.text.split(b"\n", 1)
                yield line.decode()
                if last(line.decode()):
                    return
            if select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                more = os.read(self.process.stdout.fileno(), 65536)
                if not more:
                    return
                self.text += more

    def unused(self, v6=False):
        """A port of our range without a socket."""
        return next(p for p in range(*PORTS) if p & ~1 not in (*self.ports[v6], self.late))

    def packets(self, n, wait=30, settle=0.15):
        """Expects n packets, and no more within the time to settle."""
        got = []

        def add(line):
            if line.startswith("in "):
                f = line.split()
                got.append(Packet(int(f[1]), int(f[2]), f[3], int(f[4]), int(f[5]), f[6], f[7]))
            return n > 0 and len(got) == n

        if n:
            list(self._lines(add, wait))
        list(self._lines(lambda line: add(line) and False, settle))
        assert len(got) == n, f"{len(got)} packets instead of {n}: {got}"
        return got

    def finish(self):
        """The counters, after steer_probe has ended without an error."""
        self.process.stdin.close()
        last = list(self._lines(lambda line: line.startswith("counters")))
        assert self.process.wait(60) == 0
        f = last[-1].split()
        c = {name: int(value) for name, value in zip(f[1::2], f[2::2])}
        return dict(c, recv=c["recv_packets"], send=c["send_packets"], calls=c["send_calls"], errors=c["send_errors"],
                    checksum=c["checksum_errors"])


def terminal(net, v6):
    def make():
        s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(((V6 if v6 else V4)[1], 0))
        s.settimeout(30)
        return s
    return in_namespace(net.terminal["caller"], make)


def told(payload):
    """steer_probe's sum of a payload."""
    s = 0
    for b in payload:
        s = (s * 31 + b) & 0xffffffff
    return s


def checksum(data):
    data += b"\0" * (len(data) % 2)
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return s ^ 0xffff


def saved(net):
    """All rules, without counters, comments and empty tables."""
    text = []
    for tool in (["iptables-save"], ["ip6tables-save"], ["nft", "list", "ruleset"]):
        text += net.run(net.gateway, *tool, check=False).stdout.splitlines()
    return [line.split("[")[0] for line in text if line.startswith(("-", ":", "*", "table", "\t"))]


def tables(net):
    """Built-in chains exist once they were listed, so list them before the comparison."""
    for tool in ("iptables-nft", "ip6tables-nft"):
        net.run(net.gateway, tool, "-t", "mangle", "-A", "INPUT", "-p", "tcp", "--dport", "9", "-j", "ACCEPT")


def test_rules_come_once_and_go(net):
    tables(net)
    before = saved(net)
    Probe(net, workers=3).once("setup")
    three = saved(net)
    text = "\n".join(three)
    for part in ("30000:30031", "30032:30065", "30066:30099", f"--queue-num {QUEUE + 2}"):
        assert part in text or part.replace(":", "-") in text or part.replace("--queue-num", "num") in text, text
    Probe(net, workers=3).once("setup")
    assert saved(net) == three, "a second start adds nothing"
    Probe(net, workers=2).once("setup")
    assert "30066" not in "\n".join(saved(net)), "another layout replaces the old"
    Probe(net, workers=2).once("teardown").once("teardown")
    assert saved(net) == before
    Probe(net, addrs=("0.0.0.0", "::")).once("setup").once("teardown")
    assert saved(net) == before


@cases((False,), (True,))
def test_queue_brings_packets_and_verdicts_take_them(net, v6):
    probe = Probe(net).once("setup").start()
    s = terminal(net, v6)
    gateway, me = V6 if v6 else V4
    src = f"[{me}]:{s.getsockname()[1]}" if v6 else f"{me}:{s.getsockname()[1]}"
    # Dropped: received once.
    for size in (1, 2, 172, 1400):
        payload = b"D" + os.urandom(size - 1)
        s.sendto(payload, (gateway, probe.ports[v6][1]))
        assert probe.packets(1) == [Packet(v6, probe.ports[v6][1], src, size, told(payload), "queue", "now")]
    # Passed on: received again, by the socket.
    s.sendto(b"PASS", (gateway, probe.ports[v6][2] + 1))
    assert [(p.via, p.port, p.len) for p in probe.packets(2)] == \
        [(via, probe.ports[v6][2] + 1, 4) for via in ("queue", "socket")]
    # A burst of both kinds.
    for i in range(40):
        s.sendto(b"PD"[i % 2:i % 2 + 1] + bytes([i]), (gateway, probe.ports[v6][i % 4]))
    got = probe.packets(60)
    assert collections.Counter(p.via for p in got) == {"queue": 40, "socket": 20}
    # Without a program on that port, the rule has no effect.
    unused = probe.unused(v6)
    s.connect((gateway, unused))
    s.send(b"D")
    try:
        s.recv(1)
        assert False, "nobody can have answered"
    except ConnectionRefusedError:
        pass
    probe.packets(0)
    counters = probe.finish()
    assert counters["fallback"] == counters["overruns"] == 0, counters
    probe.once("teardown")


@cases((False,), (True,))
def test_results_leave_with_right_headers(net, v6):
    probe = Probe(net).once("setup").start()
    s = terminal(net, v6)
    gateway, me = V6 if v6 else V4
    tap = in_namespace(net.terminal["caller"], lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)))
    tap.bind(("t1", 0x86dd if v6 else 0x0800))
    tap.settimeout(30)
    sent = {}
    os.kill(probe.process.pid, signal.SIGSTOP)  # so that they arrive together
    for i in range(30):
        payload = b"E" + bytes([i]) + os.urandom(i * 40 + i % 3)
        sent[payload] = probe.ports[v6][i % 4] + i % 2
        s.sendto(payload, (gateway, sent[payload]))
    os.kill(probe.process.pid, signal.SIGCONT)
    back = dict(s.recvfrom(4096) for _ in sent)
    assert {p: a[1] for p, a in back.items()} == sent, "each from the port it came to"
    assert {a[0] for a in back.values()} == {gateway}
    seen = 0
    while seen < len(sent):
        packet, where = tap.recvfrom(65536)
        if where[2] == socket.PACKET_OUTGOING or (packet[6] if v6 else packet[9]) != 17:
            continue
        hdr = 40 if v6 else 20
        addrs = packet[8:40] if v6 else packet[12:20]
        udp = packet[hdr:]
        assert struct.unpack("!H", udp[4:6])[0] == len(udp)
        assert checksum(addrs + struct.pack("!HH", 17, len(udp)) + udp) == 0, "UDP checksum"
        assert (struct.unpack("!H", packet[:2])[0] >> 4 & 0xff if v6 else packet[1]) == 0xb8
        assert packet[7 if v6 else 8] == 64
        assert v6 or checksum(packet[:20]) == 0
        seen += 1
    probe.packets(len(sent))
    counters = probe.finish()
    assert counters["send"] == len(sent) and counters["errors"] == 0, counters
    assert counters["calls"] < len(sent), f"bursts leave together: {counters}"
    probe.once("teardown")


@cases((False,), (True,))
def test_long_and_joined_datagrams(net, v6):
    probe = Probe(net).once("setup").start()
    s = terminal(net, v6)
    to = (V6[0] if v6 else V4[0], probe.ports[v6][0])
    # Fragments, reassembled before or after the hook. The reply is too long for the raw socket.
    payload = b"E" + os.urandom(1999)
    s.sendto(payload, to)
    assert s.recv(4096) == payload
    assert probe.packets(1)[0].len == 2000
    # Longer than the largest packet: reported with its length, so that it can be counted.
    for size in (2049, 3000, 20000):
        s.sendto(b"E" * size, to)
        assert probe.packets(1)[0].len == size
    # Several coalesced datagrams: the socket splits them.
    s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 200)
    s.sendto(b"D" * 2000, to)
    got = probe.packets(10)
    assert {p.len for p in got} == {200}, got
    assert probe.finish()["errors"] == 0
    probe.once("teardown")


def test_checksums_and_options(net):
    probe = Probe(net).once("setup").start()
    s = terminal(net, False)
    to = (V4[0], probe.ports[0][0])
    raw = in_namespace(net.terminal["caller"], lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP))
    pseudo = socket.inet_aton(V4[1]) + socket.inet_aton(V4[0])

    def send(change):
        udp = struct.pack("!HHHH", 4000, to[1], 12, 0) + b"Dabc"
        good = checksum(pseudo + struct.pack("!HH", 17, len(udp)) + udp)
        raw.sendto(udp[:6] + struct.pack("!H", change(good)) + udp[8:], (to[0], 0))

    send(lambda good: good)
    assert probe.packets(1)[0].src == f"{V4[1]}:4000"
    send(lambda good: good ^ 0x0100)
    probe.packets(0)
    send(lambda good: 0)  # no checksum, which IPv4 allows
    assert probe.packets(1)[0].via == "queue"
    s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b"\1\1\1\0")
    s.sendto(b"Doptions", to)
    got = probe.packets(1)[0]
    assert (got.via, got.len, got.sum) == ("queue", 8, told(b"Doptions"))
    assert probe.finish()["checksum"] == 1
    probe.once("teardown")


def test_without_rules_the_sockets_serve(net):
    """A flush removes the rules: media continue through the ordinary sockets."""
    probe = Probe(net).start()
    s = terminal(net, False)
    s.sendto(b"Eback", (V4[0], probe.ports[0][0]))
    assert s.recvfrom(100) == (b"Eback", (V4[0], probe.ports[0][0]))
    assert probe.packets(1)[0].via == "socket"
    probe.once("setup")
    s.sendto(b"D", (V4[0], probe.ports[0][0]))
    assert probe.packets(1)[0].via == "queue"
    probe.once("teardown")
    s.sendto(b"D", (V4[0], probe.ports[0][0]))
    assert probe.packets(1)[0].via == "socket"
    assert probe.finish()["fallback"] == 2


def test_what_came_before_the_queue_had_the_port_goes_first(net):
    """After a restart in mid-call, media comes to a port's socket until the worker serves the port."""
    probe = Probe(net, addrs=V4[:1]).once("setup").start()
    s = terminal(net, False)
    early, after = [b"D%d" % i for i in range(2)], [b"D%d" % i for i in range(2, 6)]
    # One burst during which the port becomes ours, and the next burst.
    os.kill(probe.process.pid, signal.SIGSTOP)
    for payload in early:
        s.sendto(payload, (V4[0], probe.late))
    for payload in [b"A"] + [b"D"] * (BURST - len(early) - 1):
        s.sendto(payload, (V4[0], probe.ports[0][0]))
    for payload in after:
        s.sendto(payload, (V4[0], probe.late))
    os.kill(probe.process.pid, signal.SIGCONT)
    said = list(probe._lines(lambda line: f" {told(after[-1])} " in line))
    assert "added 0 before" in said, said
    came = [(line.split()[5], line.split()[6]) for line in said if line.startswith(f"in 0 {probe.late} ")]
    assert came == [(str(told(p)), "socket") for p in early] + [(str(told(p)), "queue") for p in after], came
    probe.finish()
    probe.once("teardown")


def test_what_is_passed_on_comes_back_before_what_follows(net):
    """After a restart in mid-call, a port is served a moment before its media are known."""
    probe = Probe(net, addrs=V4[:1]).once("setup").start()
    s = terminal(net, False)
    os.kill(probe.process.pid, signal.SIGSTOP)
    for payload in [b"P"] + [b"D"] * (BURST - 1) + [b"Dnext"]:
        s.sendto(payload, (V4[0], probe.ports[0][0]))
    os.kill(probe.process.pid, signal.SIGCONT)
    came = [(p.via, p.len) for p in probe.packets(BURST + 2)]
    assert came == [("queue", 1)] * BURST + [("socket", 1), ("queue", 5)], came
    probe.finish()
    probe.once("teardown")


def test_killed_instance_harms_nobody(net):
    probe = Probe(net).once("setup").start()
    s = terminal(net, False)
    os.kill(int(net.run(net.gateway, "ip", "netns", "pids", net.gateway).stdout.split()[0]), signal.SIGKILL)
    probe.process.wait(60)
    # The rule exists, but no program reads the queue: bypass.
    other = in_namespace(net.gateway, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    other.bind((V4[0], probe.ports[0][0]))
    other.settimeout(30)
    s.sendto(b"through", other.getsockname())
    assert other.recv(100) == b"through"
    other.close()
    probe = Probe(net).once("setup").start()
    s.sendto(b"D", (V4[0], probe.ports[0][0]))
    probe.packets(1)
    probe.finish()
    probe.once("teardown")


def test_a_port_of_another_program_is_left_to_it(net):
    """Another program's socket within our range."""
    other = in_namespace(net.gateway, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    probe = Probe(net).once("setup").start()
    port = probe.unused()
    other.bind((V4[0], port))
    other.settimeout(30)
    s = terminal(net, False)
    s.sendto(b"Dns or whatever", other.getsockname())
    assert other.recv(100) == b"Dns or whatever"
    probe.packets(0)
    probe.finish()
    probe.once("teardown")


@cases((False, 20000), (True, 30000))
def test_a_full_queue_fails_open_or_not_and_what_is_lost_is_counted(net, closed, many):
    """A worker is stuck: its queue fills, then packets fall back to the sockets, unless the policy
    is to drop. When these are full, too, packets are lost."""
    probe = Probe(net, "nfqueue:closed" if closed else "nfqueue", addrs=V4[:1]).once("setup").start()
    s = terminal(net, False)
    os.kill(probe.process.pid, signal.SIGSTOP)
    for i in range(many):
        s.sendto(b"D", (V4[0], probe.ports[0][i % 4]))
        if i % 100 == 99:  # the backlog holds a thousand, and may wait for a processor
            wait_for("an empty backlog", idle.no_backlog)
    wait_for("an empty backlog", idle.no_backlog)
    os.kill(probe.process.pid, signal.SIGCONT)
    got = collections.Counter()

    def all_told():
        done = idle.looks_idle(probe.process.pid)
        more = [line.split()[6] for line in probe._lines(lambda line: False, 0.2) if line.startswith("in ")]
        got.update(more)
        return done and not more
    wait_for("the last packet", all_told)
    counters = probe.finish()
    probe.once("teardown")
    assert got["queue"] > 15000 and (got["socket"] > 400) != closed, got
    assert counters["fallback"] == got["socket"], counters
    assert counters["overruns"] == many - got["queue"] - got["socket"] > 0, (got, counters)
