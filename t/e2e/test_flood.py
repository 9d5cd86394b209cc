# SPDX-License-Identifier: GPL-2.0-or-later
"""Floods of forged SRTP from a terminal's own address and port, with its SSRC. Counts only: no
true packet is lost, and most forged ones are dropped before any cipher."""
import os
import random
import socket
import struct
import time

import relay
from baresip import wait_for
from preauth_phone import PlusPhone
from run import Skip, cases
from test_ng import Phone, finish, leaves, start, talk
from test_steer import in_namespace
from test_xdp import need_xdp

STEERINGS = {"udp": ["--steering=udp"], "nfqueue": ["--steering=nfqueue"], "xdp": ["--steering=xdp", "--xdp-mode=copy"],
             "xdp:skb": ["--steering=xdp", "--xdp-mode=skb"]}
NO_TCX = "under attack reach the queue"  # the daemon's log, before Linux 6.6
GUARD = ("source", "kind", "SSRC", "payload type", "index", "timestamp", "tag")


def forge(phone, seq=None, kind=0, ssrc=None):
    """A packet of the right length whose tag is wrong."""
    head = struct.pack("!BBHII", 0x80, kind, random.randrange(1 << 16) if seq is None else seq, random.randrange(1 << 32),
                       phone.ssrc if ssrc is None else ssrc)
    phone.sock.sendto(head + os.urandom(170), phone.to)


def flood(phone, n, **how):
    for _ in range(n):
        forge(phone, **how)


def refused(daemon):
    """Forged packets refused by guards: in the daemon, and before it."""
    s = daemon.statistics()
    return s["drops"].get("guard", 0), sum(s.get(f"guard: {g}", 0) for g in GUARD)


def drops_early(daemon, steering):
    """Whether guards drop packets before the daemon."""
    return steering != "udp" and NO_TCX not in daemon.text()


def attacked(daemon, net, steering):
    """Two calls, of which the first caller is flooded from its own address until it has a guard."""
    a, b = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2", "80")
    c, d = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2", "80")
    talk(daemon.client, a, b, "attacked")
    talk(daemon.client, c, d, "other")
    end = time.monotonic() + 60
    while not refused(daemon)[drops_early(daemon, steering)]:
        assert time.monotonic() < end, daemon.statistics()["drops"]
        flood(a, 40)
        assert leaves(a, b)
    return a, b, c, d


@cases((True,), (False,))
def test_the_programs_agree_with_the_daemon(net, perfmon):
    """Those of xdp and nfqueue, as root, and with the capabilities that the unit has."""
    need_xdp(net)
    less = [] if perfmon else ["setpriv", "--bounding-set=-perfmon,-sys_admin", "--inh-caps=-perfmon,-sys_admin"]
    for what in (("check", "20000"), ("follow", "20000"), ("limit", "20000"), ("wipe", "1"), ("refuse", "1"), ("check", "20000", "tc"), ("follow", "20000", "tc")):
        p = net.run(net.gateway, *less, os.path.join(relay.BUILD, "t", "xdp_guard"), *what, check=False)
        assert p.returncode == 0, p.stdout + p.stderr


@cases(*[(s,) for s in STEERINGS])
def test_a_flood_costs_no_packet_of_any_call(net, steering):
    if "xdp" in steering:
        need_xdp(net)
    daemon = start(net, *STEERINGS[steering])
    a, b, c, d = attacked(daemon, net, steering)
    before = refused(daemon)
    for _ in range(200):
        flood(a, 30)
        assert leaves(a, b) and leaves(c, d)
        assert leaves(b, a)
    end = time.monotonic() + 60
    while True:  # the daemon reads the counters of other programs at intervals
        inside, outside = (now - then for now, then in zip(refused(daemon), before))
        if inside + outside > 200 * 30 / 2:
            break
        assert time.monotonic() < end, (inside, outside, daemon.statistics()["drops"])
        time.sleep(0.05)
    assert (outside > inside) == drops_early(daemon, steering), (inside, outside)
    # Payload types and SSRCs that nobody uses.
    for how in ({"ssrc": 1}, {"kind": 0, "ssrc": 2}):
        for _ in range(20):
            flood(a, 30, **how)
            assert leaves(a, b) and leaves(c, d)
    # Media of a terminal that jumps pass again, while the flood continues.
    a.seq += 20000
    end = time.monotonic() + 60
    while True:
        flood(a, 5)
        a.send(b"jumped")
        if b.hears(0.02):
            break
        assert time.monotonic() < end
    for _ in range(20):
        flood(a, 30)
        while b.hears(0):
            pass
        assert leaves(c, d)
    finish(daemon)


@cases(*[(s,) for s in STEERINGS if s != "udp"])
def test_a_source_over_the_rate_takes_none_of_others(net, steering):
    """One address sends as fast as it can, and few of its packets reach the daemon. Those of the other address all do."""
    if "xdp" in steering:
        need_xdp(net)
    daemon = start(net, *STEERINGS[steering], "--source-rate=20")
    begun = time.monotonic()
    a, b = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2", "80")
    talk(daemon.client, a, b, "c")
    before, sent, passed = daemon.statistics()["packets received"], 0, 0
    while sent - passed < 1000:
        flood(a, 500)
        sent += 500
        assert leaves(b, a)
        passed = daemon.statistics()["packets received"] - before
        assert passed <= 30 + sent // 500 + 25 * (time.monotonic() - begun), (passed, sent)
    wait_for("media of the first address", lambda: (a.send(b"again"), b.hears(0.05))[1])
    finish(daemon)


@cases(("nfqueue",), ("xdp",))
def test_the_rate_of_a_source_counts_only_our_addresses(net, steering):
    """Another program has the same port on another address of the machine. It gets all packets of a source that is far over the rate."""
    if steering == "xdp":
        need_xdp(net)
    net.run(net.gateway, "ip", "address", "add", "10.200.1.9/24", "dev", "g1")
    daemon = start(net, *STEERINGS[steering], "--source-rate=20")
    a, b = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2", "80")
    talk(daemon.client, a, b, "c")
    theirs = in_namespace(net.gateway, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    theirs.bind(("10.200.1.9", a.to[1]))
    theirs.settimeout(30)
    for i in range(200):
        a.sock.sendto(b"%d" % i, ("10.200.1.9", a.to[1]))
        assert theirs.recv(9) == b"%d" % i
    theirs.close()
    finish(daemon)


def forge_tags(phone, n):
    """Packets that only their SRTP+ tag gives away: the next sequence numbers, with their timestamps."""
    for _ in range(n):
        seq = phone.seq + 1 + random.randrange(20)
        phone.sock.sendto(struct.pack("!BBHII", 0x80, 0, seq, seq * 160, phone.ssrc) + os.urandom(174), phone.to)


@cases(("xdp", "sequence-aes"), ("xdp", "header-siphash"), ("xdp:skb", "chain"), ("xdp", "chain/8/32/128"), ("nfqueue", "sequence-aes"), ("nfqueue", "header-siphash"),
       ("nfqueue", "chain"), ("nfqueue", "sequence-fips"))
def test_the_kernel_drops_wrong_tags(net, steering, scheme):
    """A flood that only tags tell from media. The terminal sends more packets than a window has tags."""
    if "xdp" in steering:
        need_xdp(net)
    daemon = start(net, *STEERINGS[steering])
    if not drops_early(daemon, steering):
        daemon.stop()
        raise Skip("no tcx in this kernel: it needs Linux 6.6")
    a, b = PlusPhone(net, "caller", "10.200.1.2", scheme), Phone(net, "callee", "10.200.2.2", "80")
    talk(daemon.client, a, b, "attacked")
    assert a.agreed

    def dropped():
        return daemon.statistics().get("guard: tag", 0)

    end = time.monotonic() + 60
    while not dropped():
        assert time.monotonic() < end, daemon.statistics()["drops"]
        forge_tags(a, 40)
        assert leaves(a, b)
    before = dropped()
    for i in range(600):
        if i % 6 == 0:
            forge_tags(a, 30)
        assert leaves(a, b), i
    assert leaves(b, a)
    wait_for("drops of most forged packets", lambda: dropped() - before > 2000)
    # A right tag proves nothing: SRTP refuses the packet.
    refused_before = daemon.statistics()["drops"]["bad-tag"]
    for _ in range(10):
        a.send(b"spoiled", spoil=True)
    wait_for("SRTP's refusal", lambda: daemon.statistics()["drops"]["bad-tag"] >= refused_before + 10)
    assert leaves(a, b)
    finish(daemon)
