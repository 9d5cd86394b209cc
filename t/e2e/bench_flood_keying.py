#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Floods of real first flights at legs of DTLS, ICE and ZRTP: bench_flood_keying.py [--count] [--rounds=N] [--packets=N] [--rate=N] [--steering=X] [LEG...]

Each leg is flooded by turns with garbage of its protocol (t/tool/forge: a right header, then random bytes), with its real first packet, and with forged SRTP. Each comes
from the terminal's address, with the terminal's port ("signalled") and with another one ("stranger"). First packets: ClientHellos of OpenSSL, with the record's header and
another random each; binding requests with the right USERNAME, a right FINGERPRINT and a wrong MESSAGE-INTEGRITY; Hellos of ZRTP with a right CRC, of another terminal each.
"waits": the leg's handshake or checks have not begun. "open": the leg has keys, or a pair.

Printed are the daemon's CPU per packet, without what it takes when idle, medians of rounds, and the ratio to garbage of each round. --count prints instructions of the daemon in
user space instead, by callgrind, which the load of the machine does not change. The flooded terminal's media must go on behind a flood."""
import argparse
import contextlib
import os
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import dtls  # noqa: E402
import ice  # noqa: E402
import netns  # noqa: E402
import ng  # noqa: E402
import relay  # noqa: E402
import zrtp_terminal  # noqa: E402
from baresip import wait_for  # noqa: E402
from bench_measure import progress  # noqa: E402

TERMINAL, GATEWAY = "10.200.1.2", "10.200.1.1"
VARIANTS = 64
RANDOM_AT = 13 + 12 + 2  # of a ClientHello's random in its datagram: behind the headers of record and handshake, and the version


def client_hellos(net):
    """Datagrams of ClientHello. OpenSSL makes the first one."""
    with ng.socket_in(net.terminal["caller"]) as s, tempfile.TemporaryDirectory() as folder:
        s.bind(("127.0.0.1", 0))
        s.settimeout(30)
        p = net.spawn(net.terminal["caller"], ["openssl", "s_client", "-dtls1_2", "-use_srtp", dtls.PROFILE, "-connect", f"127.0.0.1:{s.getsockname()[1]}"],
                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
        hello = s.recv(2048)
        net.stop(p)
    assert hello[0] == 22 and hello[13] == 1, hello
    return [hello[:RANDOM_AT] + os.urandom(32) + hello[RANDOM_AT + 32:] for _ in range(VARIANTS)]


def binding_requests(terminal):
    ufrag, _ = terminal.peer
    body = ice.attribute(ice.USERNAME, f"{ufrag}:{terminal.ufrag}".encode()) + ice.attribute(ice.PRIORITY, struct.pack("!I", 1 << 24))
    body += ice.attribute(ice.CONTROLLING, b"\xff" * 8) + ice.attribute(ice.USE_CANDIDATE, b"")
    return [ice.message(ice.REQUEST, body, "wrong" * 5) for _ in range(VARIANTS)]


def zrtp_hellos():
    hellos = []
    for number in range(VARIANTS):
        peer = zrtp_terminal.Peer(zrtp_terminal.Settings(), number + 1)
        peer.start(0)
        hellos.append(peer.out[0])
    return hellos


class Leg:
    """A call between a plain terminal and the one to be flooded."""

    def __init__(self, net, daemon, name):
        self.kind, _, state = name.partition(" ")
        self.net, self.open = net, state == "open"
        a = dtls.Plain(net, "caller", TERMINAL)
        b = {"dtls": dtls.Dtls, "ice": ice.Keyed, "zrtp": zrtp_terminal.Terminal}[self.kind](net, "caller", TERMINAL)
        b.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # forge shares the port
        more = {"dtls": {}, "ice": {"ICE": "force"}, "zrtp": {"transport_protocol": "RTP/AVP", "ZRTP": "terminate"}}[self.kind]
        self.call = dtls.Call(daemon, a, b, **more)
        if self.kind == "ice" and not self.open:
            b.mute = True
        self.call.offer().answer()
        if self.open and self.kind == "zrtp":
            b.begin().secured()
        elif self.open:
            b.connect()
            b.handshake()
            b.keyed()
        self.check()
        self.packets = {"dtls": lambda: client_hellos(net), "ice": lambda: binding_requests(b), "zrtp": zrtp_hellos}[self.kind]()

    def check(self):
        """Media go both ways, if the leg has keys."""
        if self.open:
            self.call.exchange(5)

    def close(self):
        self.call.end()
        self.call.a.close()
        self.call.b.close()


def kinds(leg, folder):
    """What forge is asked for."""
    path = os.path.join(folder, "first")
    with open(path, "wb") as f:
        f.write(b"".join(struct.pack("!H", len(p)) + p for p in leg.packets))
    return {"garbage": {"ice": "stun"}.get(leg.kind, leg.kind), "first flight": f"@{path}", "SRTP": "any"}


class Flood:
    def __init__(self, net, daemon, args):
        self.net, self.daemon, self.args = net, daemon, args

    def send(self, leg, kind, signalled):
        """Until the daemon has processed what it got of the flood."""
        b = leg.call.b
        with ng.socket_in(leg.net.terminal["caller"]) as s:  # a port that nobody uses
            s.bind((TERMINAL, 0))
            other = s.getsockname()[1]
        seconds = self.args.packets / self.args.rate
        p = self.net.spawn(self.net.terminal["caller"], [os.path.join(relay.BUILD, "t", "forge"), TERMINAL, str(b.port if signalled else other), *map(str, b.to),
                                                         str(self.args.rate), str(seconds), kind, "50", "0"], stdout=subprocess.PIPE, text=True)
        out = p.communicate()[0]
        assert p.returncode == 0, out
        wait_for("the end of the flood", self.rests, 120)

    def rests(self):
        """A question to the daemon would cost instructions."""
        before = self.daemon.cpu_seconds()
        time.sleep(0.3)
        return self.daemon.cpu_seconds() - before < 0.06

    def received(self):
        return self.daemon.statistics()["packets received"]

    def measure(self, leg, kind, signalled):
        """Cost per packet that the daemon received."""
        before = self.received()
        self.begin()
        began = time.monotonic()
        self.send(leg, kind, signalled)
        took = time.monotonic() - began
        cost = self.spent()
        return (cost - took * self.idle) / max(1, self.received() - before)

    def calm(self):
        self.begin()
        began = time.monotonic()
        time.sleep(2)
        took = time.monotonic() - began
        self.idle = self.spent() / took


class Time(Flood):
    """Nanoseconds of CPU."""
    unit = "ns"

    def begin(self):
        self.cpu = self.daemon.cpu_seconds()

    def spent(self):
        return 1e9 * (self.daemon.cpu_seconds() - self.cpu)


class Count(Flood):
    """Instructions in user space."""
    unit = "instructions"

    def __init__(self, net, daemon, args, folder):
        super().__init__(net, daemon, args)
        self.folder, self.dumps = folder, 0

    def control(self, what):
        subprocess.run(["callgrind_control", what, str(self.daemon.pid())], check=True, capture_output=True)

    def begin(self):
        self.control("--zero")

    def spent(self):
        self.control("--dump")
        self.dumps += 1
        path = os.path.join(self.folder, f"out.{self.dumps}")

        def total():
            with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as f:
                return re.search(r"(?m)^totals: (\d+)", f.read())
        return int(wait_for("callgrind's file", total)[1])


LEGS = "dtls waits", "dtls open", "ice waits", "ice open", "zrtp waits", "zrtp open"


def rows(meter, leg, rounds):
    """{(source, kind): [value of each round]}. The order changes from round to round."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        todo = [(source, kind, what) for source in ("stranger", "signalled") for kind, what in kinds(leg, folder).items()]
        meter.calm()
        for i in range(rounds):
            for source, kind, what in todo if i % 2 == 0 else reversed(todo):
                found.setdefault((source, kind), []).append(meter.measure(leg, what, source == "signalled"))
    return found


def show(name, found, unit):
    for source in ("stranger", "signalled"):
        garbage = found[source, "garbage"]
        for kind in ("garbage", "first flight", "SRTP"):
            values = found[source, kind]
            ratios = sorted(v / g if g > 0 else float("nan") for v, g in zip(values, garbage))
            print(f"{name:<12} {source:<10} {kind:<14} {statistics.median(values):>9.0f} {unit:<13} {statistics.median(ratios):>6.2f} of garbage ({ratios[0]:.2f} to {ratios[-1]:.2f})",
                  flush=True)


def run(args, steering):
    """{leg: rows()} of one daemon, which must end in order."""
    found = {}
    with netns.Net(("caller",)) as net, tempfile.TemporaryDirectory() as folder:
        wrap = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/out"] if args.count else []
        daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", f"--steering={steering}", wrap=wrap).wait_ready()
        meter = Count(net, daemon, args, folder) if args.count else Time(net, daemon, args)
        for name in LEGS:
            if args.legs and not any(part in name for part in args.legs):
                continue
            leg = Leg(net, daemon, name)
            found[name] = rows(meter, leg, args.rounds)
            show(name, found[name], meter.unit)
            leg.check()
            leg.close()
        assert daemon.stop() == 0
    return found


def section(ways, args, out):
    """Of make bench. ways: steerings."""
    args = argparse.Namespace(count=False, rounds=5 if args.full else 2, packets=10000, rate=20000, legs=[])
    for steering in ways:
        progress(f"flights: {steering}")
        print(f"\nfirst flights at legs of DTLS, ICE and ZRTP, {steering}, {args.rate:,} per second; ratios of paired rounds")
        out[steering] = {name: {f"{source}, {kind}": values for (source, kind), values in found.items()} for name, found in run(args, steering).items()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", action="store_true", help="instructions by callgrind")
    p.add_argument("--rounds", type=int, help="default: 5, with --count 3")
    p.add_argument("--packets", type=int, help="of each flood; default: 40,000, with --count 8,000")
    p.add_argument("--rate", type=int, default=20000, help="packets per second; default: 20,000")
    p.add_argument("--steering", default="udp")
    p.add_argument("legs", nargs="*", help=f"parts of: {', '.join(LEGS)}")
    args = p.parse_args()
    args.rounds = args.rounds or (3 if args.count else 5)
    args.packets = args.packets or (8000 if args.count else 40000)
    run(args, args.steering)


if __name__ == "__main__":
    main()
