# SPDX-License-Identifier: GPL-2.0-or-later
"""AF_XDP steering: alone (steer_probe tells what comes in and does what a payload's first letter wants: D drop, E send back), and
in the daemon with media flowing. veth links: the kernel copies, in the driver ("xdp:copy") or behind it ("xdp:skb")."""
import collections
import fcntl
import os
import signal
import socket
import struct
import time

import calls
import relay
from run import Skip, cases
from test_steer import PORTS, V4, V6, Packet, Probe, checksum, in_namespace, terminal, told

MODES = ("xdp:copy", "xdp:skb")


def need_xdp(net):
    """Skips where the kernel has no AF_XDP."""
    try:
        in_namespace(net.gateway, lambda: socket.socket(44, socket.SOCK_RAW, 0)).close()
    except OSError as why:
        raise Skip(f"no AF_XDP in this kernel: {why}") from why


def attached(net):
    """Interfaces of the gateway with an XDP program."""
    return [line.split()[1].split("@")[0] for line in net.run(net.gateway, "ip", "-o", "link").stdout.splitlines()
            if "xdp" in line]


@cases(*[(m, v6) for m in MODES for v6 in (False, True)])
def test_queue_brings_packets(net, mode, v6):
    need_xdp(net)
    probe = Probe(net, mode).start()
    assert attached(net) == ["g1"]
    s = terminal(net, v6)
    gateway, me = V6 if v6 else V4
    src = f"[{me}]:{s.getsockname()[1]}" if v6 else f"{me}:{s.getsockname()[1]}"
    for size in (1, 2, 3, 172, 1400):
        payload = b"D" + os.urandom(size - 1)
        s.sendto(payload, (gateway, probe.ports[v6][1]))
        assert probe.packets(1) == [Packet(v6, probe.ports[v6][1], src, size, told(payload), "queue", "now")]
    for i in range(200):
        s.sendto(b"D" + bytes([i]), (gateway, probe.ports[v6][i % 4] + i % 2))
    assert {p.via for p in probe.packets(200)} == {"queue"}
    # Nobody has that port: as if there were no program.
    unused = next(p for p in range(PORTS[0], PORTS[1]) if p & ~1 not in probe.ports[v6])
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
    assert attached(net) == []


@cases(*[(m, v6) for m in MODES for v6 in (False, True)])
def test_results_leave_with_right_headers(net, mode, v6):
    need_xdp(net)
    probe = Probe(net, mode).start()
    s = terminal(net, v6)
    gateway, me = V6 if v6 else V4
    tap = in_namespace(net.terminal["caller"], lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
    tap.bind(("t1", 0x86dd if v6 else 0x0800))
    tap.settimeout(2)
    sent = {}
    for i in range(30):
        payload = b"E" + bytes([i]) + os.urandom(i * 40 + i % 3)
        sent[payload] = probe.ports[v6][i % 4] + i % 2
        s.sendto(payload, (gateway, sent[payload]))
    back = dict(s.recvfrom(4096) for _ in sent)
    assert {p: a[1] for p, a in back.items()} == sent, "each from the port it came to"
    assert {a[0] for a in back.values()} == {gateway}
    seen, short, ids = 0, 0, []
    while seen < len(sent):
        frame, where = tap.recvfrom(65536)
        packet = frame[14:]
        if where[2] == socket.PACKET_OUTGOING or (packet[6] if v6 else packet[9]) != 17:
            continue
        short += len(frame) < 60
        hdr = 40 if v6 else 20
        addrs = packet[8:40] if v6 else packet[12:20]
        whole = hdr + struct.unpack("!H", packet[4:6])[0] if v6 else struct.unpack("!H", packet[2:4])[0]
        udp = packet[hdr:whole]
        assert struct.unpack("!H", udp[4:6])[0] == len(udp)
        assert checksum(addrs + struct.pack("!HH", 17, len(udp)) + udp) == 0, "UDP checksum"
        assert (struct.unpack("!H", packet[:2])[0] >> 4 & 0xff if v6 else packet[1]) == 0xb8
        assert packet[7 if v6 else 8] == 64
        assert v6 or checksum(packet[:20]) == 0
        ids.append(packet[4:6])
        seen += 1
    assert short <= 1, "frames are filled up, but for the one that goes the kernel's way"
    assert v6 or len(set(ids)) == len(ids), "fragments of two packets must not be mixed up"
    probe.packets(len(sent))
    counters = probe.finish()
    assert counters["send"] == len(sent) and counters["errors"] == 0, counters
    assert counters["calls"] < len(sent), f"bursts leave together: {counters}"
