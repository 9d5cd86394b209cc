# SPDX-License-Identifier: GPL-2.0-or-later
"""A relay, two peers and a call between them by ng, in namespaces of their own: peer a - gateway - peer b, no forwarding."""
import contextlib
import importlib
import json
import os
import re
import select
import tempfile
import time

import kinds
import peer
import relay
from baresip import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = ("a", "b")
TONE = {"a": 440, "b": 1000}
OWN_MIN, OTHER_MAX = 1000, 50  # levels of the expected tone, and of the peer's own tone, which must not arrive


class Failed(Exception):
    """A call did not go as it must."""


BOTH = 46  # of IPv4 and IPv6


def address(place, family=4):
    i = PLACES.index(place) + 1
    if family == BOTH:
        return f"{address(place)},{address(place, 6)}"
    return f"10.200.{i}.2" if family == 4 else f"fd00:{i}::2"


class Program:
    """A peer that is a program of its own (peer.py)."""

    def __init__(self, net, place, kind, family=4, fault=""):
        self.net, self.kind = net, kind
        self.log = tempfile.TemporaryFile("w+")
        name, *options = kinds.KINDS[kind].program
        args = [os.path.join(HERE, name)] if os.sep not in name else [name]
        if name.endswith(".py"):
            args.insert(0, "/usr/bin/python3")
        args += [*options, f"--tone={TONE[place]}", f"--address={address(place, family)}"] + ([f"--fault={fault}"] if fault else [])
        self.process = net.spawn(net.terminal[place], args, stdin=-1, stdout=-1, stderr=self.log, bufsize=0)
        self.buffer = b""
        self.read()  # it is ready

    def read(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], max(end - time.monotonic(), 0))[0]:
                raise Failed(f"{self.kind} does not answer")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                raise Failed(f"{self.kind} ended: {relay.text_of(self.log)[-2000:]}")
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        out = json.loads(line)
        if "error" in out:
            raise Failed(f"{self.kind}: {out['error']}")
        return out

    def do(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")
        return self.read()

    def offer(self):
        return self.do("offer")["sdp"]

    def answer(self, sdp):
        return self.do("answer", sdp=sdp)["sdp"]

    def accept(self, sdp):
        self.do("accept", sdp=sdp)

    def restart(self):
        """A new offer that restarts ICE."""
        return self.do("restart")["sdp"]

    def moved(self):
        """These programs leave the old pair at once: that media go on is the proof."""
        return True

    def report(self):
        return self.do("report")

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.write(b'{"do": "quit"}\n')
        self.net.stop(self.process)
        self.log.close()


def make_peer(net, place, kind, family=4, fault=""):
    program, maker = kinds.KINDS[kind].program, Program
    if isinstance(program, str):
        module, _, name = program.partition(".")
        maker = getattr(importlib.import_module(module), name)
    return maker(net, place, kind, family, fault)


def start_relay(net, name, number=0, names=PLACES, options=()):
    """With an interface of this name to each place, both families. Several relays in the same namespaces have different numbers. options:
    of xcipherd."""
    addresses = [f"{p}/{a}" for i, p in enumerate(names, 1) for a in (f"10.200.{i}.1", f"fd00:{i}::1")]
    first = 30000 + 4000 * number
    if name == "rtpengine":
        return relay.Rtpengine(net, addresses, 22222 + 10 * number, (first, first + 3999)).wait_ready()
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", f"--listen-ng=127.0.0.1:{22222 + 10 * number}",
                            f"--port-min={first}", f"--port-max={first + 3999}", *options, addresses=addresses)
    daemon.ng_port = 22222 + 10 * number
    return daemon.wait_ready()


def merged(one, other):
    """Flags of two sources: lists are joined."""
    out = dict(one)
    for k, v in other.items():
        out[k] = out[k] + v if k in out and isinstance(v, list) else v
    return out


def bundled(sdp):
    """With a BUNDLE group of the one m-line, if the relay wrote none."""
    mid = re.search(r"^a=mid:(\S+)", sdp, re.M)
    if "a=group:BUNDLE" in sdp or not mid:
        return sdp
    return re.sub(r"(?m)^(t=.*?\r?\n)", rf"\1a=group:BUNDLE {mid[1]}\r\n", sdp, count=1)


class Call:
    """Between a peer at place a, which offers, and one at place b. started: when the offerer got the answer, ns."""
    number = 0

    def __init__(self, the_relay, a, b, family=4, more=None):
        Call.number += 1
        self.relay, self.a, self.b = the_relay, a, b
        self.id = f"call-{os.getpid()}-{Call.number}"
        self.common = {"call_id": self.id, "from_tag": "a", "replace": ["origin", "session-connection"],
                       "address_family": f"IP{family}"}
        self.more = more or {}
        self.started = 0

    def ask(self, command, **keys):
        reply = self.relay.client.call(command, **keys)
        if reply.get("result") != "ok":
            raise Failed(f"{command}: {reply.get('error-reason', reply)}")
        return reply

    def begin(self):
        for_b, for_a = kinds.KINDS[self.b.kind].flags, kinds.KINDS[self.a.kind].flags
        self.offered = self.ask("offer", sdp=self.written(self.a.offer()), direction=list(PLACES), **merged(merged(self.common, for_b), self.more))["sdp"]
        there = self.b.answer(bundled(self.offered) if kinds.KINDS[self.b.kind].needs_bundle else self.offered)
        for_a = for_a | kinds.KINDS[self.a.kind].quirks.get(self.relay.name, {})
        self.answered = self.ask("answer", to_tag="b", sdp=self.written(there), **merged(merged(self.common, for_a), self.more))["sdp"]
        # For rtpengine, which writes no group; xcipherd does.
        self.answered = bundled(self.answered) if kinds.KINDS[self.a.kind].needs_bundle and self.relay.name == "rtpengine" else self.answered
        self.started = peer.now_ns()
        self.a.accept(self.answered)
        return self

    def renew(self, sdp, by):
        """A later offer of the peer at a or b. Returns what it gets as answer."""
        offerer, answerer = (self.a, self.b) if by == "a" else (self.b, self.a)
        for_answerer, for_offerer = kinds.KINDS[answerer.kind].flags, kinds.KINDS[offerer.kind].flags
        tags = self.common | {"from_tag": by, "to_tag": "b" if by == "a" else "a"}
        offered = self.ask("offer", sdp=self.written(sdp), direction=[by, tags["to_tag"]], **merged(merged(tags, for_answerer), self.more))["sdp"]
        there = answerer.answer(bundled(offered) if kinds.KINDS[answerer.kind].needs_bundle else offered)
        answered = self.ask("answer", sdp=self.written(there), **merged(merged(tags, self.more), for_offerer | kinds.KINDS[offerer.kind].quirks.get(self.relay.name, {})))["sdp"]
        offerer.accept(answered)
        return answered

    def written(self, sdp):
        """rtpengine 10.5 takes 0.0.0.0 without a=ice-options:trickle for a hold, whatever the candidates. pion writes that."""
        return sdp.replace("c=IN IP4 0.0.0.0", "c=IN IP4 0.0.0.0\r\na=ice-options:trickle") if self.relay.name == "rtpengine" and \
            "ice-options" not in sdp and "a=candidate" in sdp else sdp

    def end(self):
        with contextlib.suppress(TimeoutError):
            self.relay.client.call("delete", call_id=self.id, from_tag="a", delete_delay=0)

    patience = 60  # seconds for media to begin; only a failure takes so long

    def talks(self, blocks=8):
        """Waits until both peers have heard so many pieces of 200 ms, and hear the other's tone. On a busy machine audio has gaps. Returns both
        reports."""
        def both():
            reports = self.a.report(), self.b.report()
            heard = (own_level(r, here) >= OWN_MIN and r["blocks"] >= blocks for r, here in zip(reports, PLACES))
            return reports if all(heard) else None
        try:
            return wait_for("media both ways", both, self.patience)
        except AssertionError:
            raise Failed("; ".join(f"{p.kind}: {brief(p.report())}" for p in (self.a, self.b))) from None


def brief(report):
    keys = ("state", "dtls", "packets_in", "packets_out", "lost", "tones", "log", "each", "transport_in")
    return ", ".join(f"{k} {report[k]}" for k in keys if report.get(k))


def own_level(report, here):
    """The level of the tone that the peer at this place has to hear."""
    return report["tones"].get(str(TONE[PLACES[1 - PLACES.index(here)]]), 0)


def judge(reports):
    """What is wrong with both sides' reports, as a list of sentences."""
    wrong = []
    for r, here in zip(reports, PLACES):
        own, other = own_level(r, here), r["tones"].get(str(TONE[here]), 0)
        if own < OWN_MIN:
            wrong.append(f"{here} hears the other's tone at {own}")
        if other > OTHER_MAX:
            wrong.append(f"{here} hears its own tone at {other}")
        if r["lost"]:
            wrong.append(f"{here} misses {r['lost']} of {r['packets_in'] + r['lost']} packets")
    return wrong


def first_media_ms(call, reports):
    """From the answer to the first authentic packet, at the offerer and at the answerer."""
    return tuple((r["first_in_ns"] - call.started) / 1e6 if r["first_in_ns"] else None for r in reports)
