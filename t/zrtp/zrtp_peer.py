# SPDX-License-Identifier: GPL-2.0-or-later
"""One end of ZRTP, written from RFC 6189 alone: an implementation that shares nothing with daemon/keying. It has neither socket nor clock.

    p = Peer(Settings(), ssrc)
    p.start(now), p.take(packet, now), p.tick(now): afterwards the packets in p.out are to be sent.

This file finds the peer: Hello, HelloACK, versions, retransmission. peer_exchange.py agrees on keys, peer_after.py does what is possible after
that. State: idle, discovery, commit, dhpart1, dhpart2, confirm1, confirm2 (the last message that it sent), secure, clear, failed."""
import dataclasses
import os

import peer_wire as wire
from peer_after import After
from peer_exchange import Exchange
from peer_wire import Dropped, Failed

ALL = {"hash": (b"S256", b"S384"), "cipher": (b"AES1", b"AES3", b"AES2"), "tag": (b"HS32", b"HS80"),
       "agreement": (b"EC25", b"X255", b"DH3k", b"EC38", b"DH2k"), "sas": (b"B32 ", b"B256")}
HELLO_STEPS, HELLO_CAP = 0.05, 0.2  # T1
STEPS, CAP = 0.15, 1.2              # T2
EITHER, INITIATOR, RESPONDER = "either", "initiator", "responder"


@dataclasses.dataclass
class Settings:
    """role: an initiator sends its Commit in place of HelloACK, so that the other end cannot commit; a responder never commits and says so;
    else both may commit. retries: of each message, 10 in the RFC."""
    offers: dict = dataclasses.field(default_factory=dict)  # by kind; a missing kind is that of ALL
    role: str = EITHER
    version: bytes = wire.VERSION
    preshared: bool = False  # commits to it if there is a retained secret
    allow_clear: bool = False
    discloses: bool = False  # sets the flag D
    mitm: bool = False       # is a PBX
    asks_enrol: bool = False  # as a PBX
    enrols: bool = False     # the user agrees to an enrolment
    retries: int = 10


class Timer:
    """Repeats one message."""

    def __init__(self):
        self.text = None

    def begin(self, text, now, step, cap, left):
        self.text, self.due, self.step, self.cap, self.left = text, now + step, step, cap, left

    def stop(self):
        self.text = None

    def rings(self, now):
        if self.text is None or now < self.due:
            return False
        self.left -= 1
        self.step = min(2 * self.step, self.cap)
        self.due = now + self.step
        return True


class Session:
    """What the streams of one call share: the ZID, the secret for further streams, nonces that were used."""

    def __init__(self, zid):
        self.zid, self.key, self.hash, self.nonces = zid, None, None, set()


class Peer(Exchange, After):
    def __init__(self, settings, ssrc, cache=None, first=None):
        """first: another stream of this call, which has been secure before this one commits."""
        self.settings, self.ssrc, self.cache, self.first = settings, ssrc, cache, first
        self.session = first.session if first else Session(cache.zid if cache else os.urandom(12))
        self.zid, self.number = self.session.zid, int.from_bytes(os.urandom(2), "big")
        self.offers = {kind: list(settings.offers.get(kind, ALL[kind])) for kind in wire.KINDS}
        self.offers["agreement"] += [b"Prsh"] * settings.preshared + [b"Mult"]
        h0 = os.urandom(32)
        self.chain = [h0, wire.sha(h0), wire.sha(wire.sha(h0)), wire.sha(wire.sha(wire.sha(h0)))]
        self.hello = self.make_hello(settings.version)
        self.state, self.out, self.alarms, self.now = "idle", [], [], 0
        self.expected, self.theirs, self.acked = None, None, False
        self.hello_timer, self.timer, self.after_timer, self.error_timer = Timer(), Timer(), Timer(), Timer()
        self.errors, self.error = [], None  # codes: received, and sent
        self.begin_exchange()
        self.begin_after()

    def make_hello(self, version):
        s = self.settings
        flags = wire.MITM * s.mitm + wire.PASSIVE * (s.role == RESPONDER)
        return wire.hello(self.chain, self.zid, flags, self.offers, version)

    def zrtp_hash(self):
        """The value of a=zrtp-hash."""
        return f"{self.settings.version.decode()} {wire.sha(self.hello).hex()}"

    def expect(self, value):
        """The peer's a=zrtp-hash."""
        version, _, digest = value.partition(" ")
        if version[:3] == "1.1":
            self.expected = bytes.fromhex(digest)

    # --- Packets out ---

    def send(self, text):
        self.number += 1
        self.out.append(wire.packet(text, self.number, self.ssrc))

    def repeat(self, timer, text):
        """Sends it until the timer is stopped."""
        self.send(text)
        timer.begin(text, self.now, STEPS, CAP, self.settings.retries)

    def start(self, now):
        self.now, self.state = now, "discovery"
        self.send(self.hello)
        self.hello_timer.begin(self.hello, now, HELLO_STEPS, HELLO_CAP, 20)

    def tick(self, now):
        self.now = now
        for timer in (self.hello_timer, self.timer, self.after_timer, self.error_timer):
            if timer.rings(now):
                if timer.left >= 0:
                    self.send(timer.text)
                else:
                    timer.stop()
                    self.exhausted(timer)

    def exhausted(self, timer):
        if timer is self.timer:
            self.fail(0xb0)
        elif timer is self.after_timer and self.state == "clear":
            self.forget()

    def fail(self, code):
        """Ends the exchange, and says why."""
        self.state, self.error = "failed", code
        for timer in (self.hello_timer, self.timer):
            timer.stop()
        self.repeat(self.error_timer, wire.message(b"Error   ", code.to_bytes(4, "big")))

    # --- Packets in ---

    def take(self, packet, now):
        self.now = now
        try:
            kind, text, ssrc = wire.unpack(packet)
            if self.state == "idle":
                raise Dropped("not started")
            handler = self.HANDLERS.get(kind)
            if not handler:
                raise Dropped("type")
            if kind == b"Ping    ":
                return self.on_ping(text, ssrc)
            handler(self, text)
        except Dropped as why:
            self.alarms.append(str(why))
        except Failed as why:
            self.fail(why.code)
        return None

    def on_hello(self, text):
        hello = wire.Hello.read(text)
        if self.expected and wire.sha(text) != self.expected:
            raise Dropped("hash of a Hello")
        if self.theirs and self.theirs.text != text and (self.state != "discovery" or self.expected):
            raise Dropped("another Hello")
        if hello.version[:3] != self.settings.version[:3]:
            self.send(wire.message(b"HelloACK"))
            if hello.version[:3] < self.settings.version[:3]:
                raise Failed(0x30)
            raise Dropped("version")
        if hello.zid == self.zid:
            raise Failed(0x90)
        if not self.theirs and self.hello_timer.text:
            self.hello_timer.left = 60  # it is there: at least 12 seconds
        self.theirs = hello
        if self.settings.role != INITIATOR or self.state in ("secure", "clear"):
            self.send(wire.message(b"HelloACK"))
        elif self.state == "commit":
            self.send(self.timer.text)
        self.maybe_commit()

    def on_hello_ack(self, _text):
        self.acked = True
        self.hello_timer.stop()
        self.maybe_commit()

    def maybe_commit(self):
        ready = not self.first or self.first.state in ("secure", "clear")
        if self.state == "discovery" and self.theirs and self.acked and ready and self.settings.role != RESPONDER:
            self.commit()

    HANDLERS = {b"Hello   ": on_hello, b"HelloACK": on_hello_ack, **Exchange.HANDLERS, **After.HANDLERS}
