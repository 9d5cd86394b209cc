# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources that the host's own stack would refuse. A neighbour on the caller's link writes Ethernet
frames, so it chooses the source address. Media from an impossible source must not reach the
other terminal with any steering. Control: a frame with a possible source on the same path."""
import socket
import struct
import time

import calls
import idle
import ng
import relay
from run import cases
from test_relay import finish
from test_steer import in_namespace
from test_xdp import frame, need_xdp, wire

STEERINGS = ("udp", "nfqueue raw", "nfqueue verdict", "xdp")
BYPASS = ("nfqueue verdict", "xdp")  # these take IPv4 packets before the kernel has checked their source

# Sources that Linux refuses by default, and sources that it accepts but no host may have.
IMPOSSIBLE = {4: ("127.0.0.1", "127.9.9.9", "0.0.0.0", "224.0.0.9", "255.255.255.255", "10.200.1.1", "10.200.2.1"), 6: ("::1", "ff02::9")}
BYPASSED = {4: ("0.1.2.3", "10.200.1.255"), 6: ("fd00:1::1", "fd00:2::1", "::ffff:10.200.1.2", "::ffff:127.0.0.1", "::")}


def start(net, steering, *options, v6=False):
    if steering == "xdp":
        need_xdp(net)
    way, _, send = steering.partition(" ")
    more = ["--xdp-interface=g1,g2"] if way == "xdp" else [f"--nfqueue-send={send}"] if way == "nfqueue" else []
    if send == "verdict":
        net.forward()
    # Without strict-source, packets of every accepted source are relayed.
    return relay.Xcipherd(net, f"--steering={way}", "--engine=serial", "--strict-source=no", *more, *options,
                          addresses=("10.200.1.1", "fd00:1::1") if v6 else ("10.200.1.1",)).wait_ready()


class Call:
    """A plain call. The callee is a socket. The test's frames stand for the caller."""

    def __init__(self, net, daemon, v6=False):
        self.net, self.v6, self.seq = net, v6, 0
        me, peer = ("fd00:1::2", "fd00:2::2") if v6 else ("10.200.1.2", "10.200.2.2")
        self.near = "fd00:1::1" if v6 else "10.200.1.1"
        self.me = me
        self.callee = ng.socket_in(net.terminal["callee"], socket.AF_INET6 if v6 else socket.AF_INET)
        self.callee.bind((peer, 5000))
        self.callee.settimeout(60)
        call = calls.Call(daemon.client, 1, "plain", "plain", ip=(me, peer), ports=(4000, 5000),
                          flags={"address_family": "IP6"} if v6 else {})
        if v6:
            body = call.body
            call.body = lambda side, tag=1: body(side, tag).replace("IN IP4", "IN IP6")
        call.setup()
        self.port, self.callee_port, self.call = call.to_caller["port"], call.to_callee["port"], call
        self.wire = wire(net)

    def rtp(self, text):
        self.seq += 1
        return struct.pack("!BBHII", 0x80, 0, self.seq, 160 * self.seq, 7) + text.encode().ljust(160, b".")

    def send(self, source, text, port=None, sport=4000):
        self.wire.send(frame(self.net, self.rtp(text), port or self.port, v6=self.v6, source=sport, to=(self.near, source)))

    def heard(self):
        """The next packet that the callee receives."""
        return self.callee.recv(2048)[12:].rstrip(b".").decode()


def martians(daemon):
    return daemon.statistics()["drops"].get("martian", 0)


@cases(*[(s, v) for s in STEERINGS for v in (4, 6)])
def test_no_media_from_a_source_that_cannot_be_there(net, steering, version):
    daemon = start(net, steering, v6=version == 6)
    c = Call(net, daemon, version == 6)
    checked = steering in BYPASS or (version == 6 and steering != "udp")
    # On ordinary sockets Linux believes all its IPv6 addresses; those of media are refused by the sockets' filter.
    sources = IMPOSSIBLE[version] + (BYPASSED[version] if checked else () if version == 4 else ("fd00:1::1",))
    for i, source in enumerate(sources):
        for _ in range(3):
            c.send(source, f"from {source}")
        c.send(c.me, f"control {i}")
        got = c.heard()
        assert got == f"control {i}", f"the callee heard a packet {got}"
    # xcipherd does not count packets that the kernel drops.
    idle.wait_idle()
    dropped = martians(daemon)
    if steering in BYPASS and version == 4 or steering == "xdp":
        assert dropped == 3 * len(sources), dropped
    finish(daemon, drops=("martian", "inactive", "no-destination"))


@cases(("udp", 1), ("nfqueue raw", 1), ("nfqueue verdict", 1), ("nfqueue verdict", 2), ("xdp", 1), ("xdp", 2))
def test_rp_filter_is_obeyed(net, steering, rp_filter):
    """1: the route back must use the interface. 2: a route back must exist. The frames' source is
    the callee's own address."""
    loose = rp_filter == 2
    stranger = "203.0.113.9" if loose else "10.200.2.2"
    daemon = start(net, steering)
    c = Call(net, daemon)
    c.send(stranger, "control: no rp_filter")
    assert c.heard() == "control: no rp_filter", "the way of the attack does not work"
    net.run(net.gateway, "sysctl", "-q", "-w", f"net.ipv4.conf.g1.rp_filter={rp_filter}")
    # Netlink announces the change, but packets may arrive first.
    refused = 0
    for i in range(1000):
        c.send(stranger, f"attack {i}")
        c.send("10.200.2.2" if loose else c.me, f"control {i}")
        got = c.heard()
        if got.startswith("attack"):
            assert not refused, "refused once, then believed"
            got = c.heard()
            time.sleep(0.01)
        else:
            refused += 1
        assert got == f"control {i}"
        if refused == 3:
            break
    assert refused == 3, "the source is still believed"
    net.run(net.gateway, "sysctl", "-q", "-w", "net.ipv4.conf.g1.rp_filter=0")
    c.callee.settimeout(0.2)
    for i in range(300):
        c.send(stranger, "again")
        try:
            assert c.heard() == "again"
            break
        except TimeoutError:
            continue
    else:
        raise AssertionError("rp_filter is off, but the source is not accepted")
    finish(daemon, drops=("martian",))


@cases(("xdp",))
def test_the_terminals_own_address_at_another_interface(net, steering):
    """The callee is confirmed at its own link. A neighbour of the caller then sends from the
    callee's address and port."""
    daemon = start(net, steering)
    net.run(net.gateway, "sysctl", "-q", "-w", "net.ipv4.conf.all.rp_filter=1")
    c = Call(net, daemon)
    caller = in_namespace(net.terminal["caller"], lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    caller.bind(("10.200.1.2", 4000))
    caller.settimeout(60)
    for i in range(20):
        c.callee.sendto(c.rtp(f"callee {i}"), ("10.200.1.1", c.callee_port))
        assert caller.recv(2048)[12:].rstrip(b".") == b"callee %d" % i
    for i in range(3):
        c.send("10.200.2.2", "attack", port=c.callee_port, sport=5000)
        c.seq -= 1
        c.callee.sendto(c.rtp(f"control {i}"), ("10.200.1.1", c.callee_port))
        assert caller.recv(2048)[12:].rstrip(b".") == b"control %d" % i
    finish(daemon, drops=("martian",))


def test_accept_local_is_obeyed(net):
    daemon = start(net, "xdp")
    c = Call(net, daemon)
    c.send("10.200.2.1", "attack")
    c.send(c.me, "control")
    assert c.heard() == "control"
    net.run(net.gateway, "sysctl", "-q", "-w", "net.ipv4.conf.g1.accept_local=1")
    # Linux does not announce this change; cached results expire after two seconds.
    c.callee.settimeout(0.2)
    for _ in range(300):
        c.send("10.200.2.1", "allowed")
        try:
            assert c.heard() == "allowed"
            break
        except TimeoutError:
            continue
    else:
        raise AssertionError("accept_local is on, but the source is not accepted")
    finish(daemon, drops=("martian",))
