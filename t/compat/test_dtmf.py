# SPDX-License-Identifier: GPL-2.0-or-later
"""Digits that the other party must not get: DTMF-security in every mode, for telephone events and for
tones, and the digits that begin and end it."""
import math
import select
import struct
import time

import g711
import idle
from baresip import wait_for
from compat import compat, compat_each
from test_player import talking

DOC = "rtpengine's documentation, ng_control_protocol, block DTMF"
EVENT, ROWS, COLUMNS = 101, (697, 770, 852, 941), (1209, 1336, 1477, 1633)
PAD = "123A456B789C*0#D"
SECRET = "7"


def ulaw(sample):
    """G.711, from its definition."""
    sign, x = (0x80, -sample) if sample < 0 else (0, sample)
    x = min(x, 32635) + 132
    exponent = max(x.bit_length() - 8, 0)
    return ~(sign | exponent << 4 | x >> (exponent + 3) & 15) & 0xFF


def linear(code):
    code = ~code & 0xFF
    x = ((code & 15) << 3 | 132) << (code >> 4 & 7)
    return (132 - x) if code & 0x80 else (x - 132)


def tones(digit):
    return ROWS[PAD.index(digit) // 4], COLUMNS[PAD.index(digit) % 4]


def power(samples, hertz):
    angle = 2 * math.pi * hertz / 8000
    s, c = (sum(x * f(angle * i) for i, x in enumerate(samples)) for f in (math.sin, math.cos))
    return (s * s + c * c) / len(samples)


def has_digit(samples, digit):
    """Whether any 20 ms have both tones of the digit."""
    for at in range(0, len(samples) - 160, 80):
        part = samples[at:at + 160]
        energy = sum(x * x for x in part)
        if energy > 160 * 200 ** 2 and min(power(part, f) for f in tones(digit)) > energy / 8:
            return True
    return False


AHEAD = 1  # seconds of audio sent before its time; the relay drops what is two seconds early


class Line:
    """Sends a phone's packets faster than real time, and collects those that its peer gets."""

    def __init__(self, phone, peer):
        self.phone, self.peer, self.ts, self.got = phone, peer, 0, []
        self.until = time.monotonic()

    def say(self, kind, payload, marker=False, step=160):
        self.phone.seq += 1
        packet = struct.pack("!BBHII", 0x80, kind | marker << 7, self.phone.seq, self.ts, self.phone.ssrc) + payload
        self.phone.sock.sendto(self.phone.tx.protect(packet) if self.phone.tx else packet, self.phone.to)
        self.ts += step
        self.until = max(self.until, time.monotonic()) + step / 8000
        time.sleep(max(self.until - time.monotonic() - AHEAD, 0))
        self.hear(0)

    def hear(self, timeout):
        """Reads the packets that have arrived. Returns whether there were any."""
        if not select.select([self.peer.sock], [], [], timeout)[0]:
            return False
        packet = self.peer.sock.recv(2048)
        packet = self.peer.rx.unprotect(packet) if self.peer.rx else packet
        self.got.append((packet[1] & 0x7F, packet[12:]))
        return True

    def audio(self, samples):
        for at in range(0, len(samples), 160):
            self.say(0, bytes(ulaw(x) for x in samples[at:at + 160]))

    def silence(self, ms):
        self.audio([0] * (8 * ms))

    def tone(self, digit, ms=100):
        low, high = tones(digit)
        self.audio([int(6000 * (math.sin(2 * math.pi * low * i / 8000) + math.sin(2 * math.pi * high * i / 8000))) for i in range(8 * ms)])
        self.silence(200)

    def event(self, digit):
        code = "0123456789*#ABCD".index(digit)
        for i, lasts in enumerate((160, 320, 480, 640, 640, 640)):
            self.say(EVENT, struct.pack("!BBH", code, 10 | (i >= 3) << 7, lasts), i == 0, 0)
        self.ts += 800
        self.until += 0.1

    def all(self, at_least=1):
        """Everything that the peer got, as events and samples. The relay has finished its work, so it has
        acted upon each digit, too."""
        while len(self.got) < at_least:
            assert self.hear(60), self.got
        idle.wait_idle()
        while self.hear(0.05):
            pass
        got, self.got = self.got, []
        return ({"0123456789*#ABCD"[p[0]] for kind, p in got if kind == EVENT},
                [linear(b) if kind == 0 else linear(g711.to_ulaw(bytes([b]))[0]) for kind, p in got if kind in (0, 8) for b in p])


MODES = [(mode, suites) for mode in ("drop", "silence", "tone", "random", "zero", "DTMF") for suites in ((None, None), ("80", "32"))]


def right_events(mode, events):
    want = {"drop": set(), "silence": set(), "tone": set(), "zero": {"0"}, "DTMF": {"#"}}
    return len(events) == 1 and events <= set("0123456789") if mode == "random" else events == want[mode]


@compat_each("DTMF", "xcipher-ng(7), block DTMF, DTMF-security, code, digit, volume, frequency, frequencies; RFC 4733; " + DOC, MODES)
def test_modes(relay, mode, suites):
    call, a, b = talking(relay, suites, formats="0 101")
    line = Line(a, b)
    line.silence(200)
    assert not call.request("block DTMF", from_tag="a", **{"DTMF-security": mode, "code": "#", "frequency": 600, "volume": 8}).warning
    line.all()
    line.silence(100)
    line.event(SECRET)
    line.silence(100)
    events, samples = line.all(5)
    assert right_events(mode, events) and not has_digit(samples, SECRET), (mode, events)
    assert mode != "tone" or power(samples, 600) > 100 * power(samples, 900), power(samples, 600)
    heard = set()
    for _ in range(6 if mode == "random" else 1):  # one random digit in ten is the same one
        line.tone(SECRET)
        _, samples = line.all(5)
        heard.add(has_digit(samples, SECRET))
    assert (False in heard) if mode == "random" else heard == {mode == "drop"}, mode  # drop is for events only
    assert mode != "DTMF" or has_digit(samples, "#")
    assert mode != "zero" or has_digit(samples, "0")
    back = Line(b, a)  # the other direction stays
    back.event(SECRET)
    assert SECRET in back.all()[0]
    call.request("unblock DTMF", from_tag="a")
    line.event(SECRET)
    line.tone(SECRET)
    events, samples = line.all(5)
    assert events == {SECRET} and has_digit(samples, SECRET), events


@compat("DTMF", "xcipher-ng(7), DTMF-security, trigger, trigger-end, end-trigger, DTMF-security-trigger, DTMF-security-trigger-end, detect-DTMF; " + DOC)
def test_digits_that_begin_and_end_it(relay):
    for ends, words in (("trigger-end", {}), ("end-trigger", {}), ("trigger-end", {"tone": True})):
        call, a, b = talking(relay, (None, None), formats="0 101")
        line = Line(a, b)
        say = line.tone if words else line.event
        line.silence(100)
        call.request("block DTMF", from_tag="a", **{"DTMF-security": "silence", "trigger": "*1", ends: "##"})
        line.all()
        heard = []
        for digit in "5*17##8":
            say(digit)
            line.silence(200)
            events, samples = line.all(5)
            heard.append(digit in events or has_digit(samples, digit))
        assert heard == [True, True, True, False, False, False, True], (ends, words, heard)


@compat("DTMF", "xcipher-ng(7), trigger-end-digits, DTMF-security-trigger-end-digits, trigger-end-time, trigger-end-ms, DTMF-security-trigger-end-ms, detect-DTMF; " + DOC)
def test_other_ends(relay):
    for keys in ({"trigger-end-digits": 2}, {"DTMF-security-trigger-end-digits": 2}):
        call, a, b = talking(relay, (None, None), formats="0 101")
        line = Line(a, b)
        line.silence(100)
        call.request("block DTMF", from_tag="a", **{"DTMF-security": "random", "trigger": "9", **keys})
        line.all()
        heard = []
        for digit in "9#*D":
            line.event(digit)
            line.silence(100)
            heard.append(digit in line.all(5)[0])
        assert heard == [True, False, False, True], (keys, heard)
    for key in ("trigger-end-time", "trigger-end-ms", "DTMF-security-trigger-end-ms"):
        call, a, b = talking(relay, (None, None), formats="0 101")
        line = Line(a, b)
        line.silence(100)
        call.request("block DTMF", from_tag="a", **{"DTMF-security": "silence", "trigger": "9", key: 1})
        line.event("9")

        def passes():
            line.event("8")
            line.silence(100)
            return "8" in line.all()[0]
        wait_for("the end of the block", passes)


@compat("DTMF", "xcipher-ng(7), DTMF-security, DTMF-security-trigger, detect-DTMF; " + DOC)
def test_in_an_offer(relay):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    lines = ["a=rtpmap:101 telephone-event/8000"]
    b.told(call.offer(a.sdp(*lines, formats="0 101"), flags=["detect-DTMF"], **{"DTMF-security": "DTMF", "code": "4"}).sdp.audio)
    a.told(call.answer(b.sdp(*lines, formats="0 101")).sdp.audio)
    line = Line(a, b)
    line.silence(100)
    line.event(SECRET)
    assert line.all()[0] == {"4"}
    call.request("block DTMF", from_tag="a", fails="Invalid DTMF trigger", **{"DTMF-security": "zero", "trigger": "12x"})
    call.request("block DTMF", from_tag="a", fails="Invalid DTMF code", **{"DTMF-security": "DTMF", "code": "x"})
    assert call.request("block DTMF", from_tag="a", **{"DTMF-security": "loud"}).warning
