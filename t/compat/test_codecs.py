# SPDX-License-Identifier: GPL-2.0-or-later
"""Codecs that codec threads transcode: SDP, and packets with a tone that must come through."""
import itertools
import math
import os
import select
import shutil
import struct

import relay as relays
from baresip import wait_for
from compat import compat, compat_each
from test_transcode import DOC, formats
from text import audio, sdp, video

BUILD = os.path.abspath(relays.BUILD)
PLUGINS = (f"--codec-dir={BUILD}/codecs", f"--codec-worker={BUILD}/xcipher-codec-worker", "--codec-isolation=none")
LATE = f"{BUILD}/t/codecs/late.so"
TONE, PACKET = 1000, 160  # Hz, samples of 20 ms at 8000 Hz
PCMU, G722, G729, EVENT = 0, 9, 18, 101
OPUS = "a=rtpmap:96 opus/48000/2"
FREESWITCH = "a=fmtp:96 useinbandfec=1; maxaveragebitrate=30000; maxplaybackrate=48000; ptime=20; minptime=10; maxptime=40"


def linear(byte):
    """G.711 (RFC 3551 4.5.14): mu-law to linear."""
    byte = ~byte & 0xFF
    value = ((byte & 15) * 2 + 33 << (byte >> 4 & 7)) - 33
    return -value if byte & 0x80 else value


ULAW = {}
for code in range(255, -1, -1):
    ULAW[linear(code)] = code
LEVELS = sorted(ULAW)


def ulaw(value):
    return ULAW[min(LEVELS, key=lambda level: abs(level - value))]


def tone(packet):
    """20 ms of a sine at half of the full scale, as PCMU."""
    return bytes(ulaw(4000 * math.sin(2 * math.pi * TONE * (packet * PACKET + i) / 8000)) for i in range(PACKET))


PERIOD = tone(0)  # TONE divides 8000, so that all packets are the same


def share(payload):
    """The share of the tone in the energy of a payload of PCMU."""
    x = [linear(b) for b in payload]
    re = sum(v * math.cos(2 * math.pi * TONE * i / 8000) for i, v in enumerate(x))
    im = sum(v * math.sin(2 * math.pi * TONE * i / 8000) for i, v in enumerate(x))
    return 2 * (re * re + im * im) / (len(x) * (sum(v * v for v in x) or 1))


def plain(body):
    """Without the rtpmap that text.media() gives to type 96."""
    return body.replace("a=rtpmap:96 VP8/90000\r\n", "")


class Heard:
    """An RTP packet."""

    def __init__(self, packet):
        first, second, self.seq, self.time, self.ssrc = struct.unpack("!BBHII", packet[:12])
        assert first == 0x80, packet[:12]
        self.kind, self.marker, self.payload = second & 0x7F, second >> 7, packet[12:]


def hear(phone):
    assert select.select([phone.sock], [], [], 30)[0], "no packet"
    packet = phone.sock.recv(2048)
    packet = phone.rx.unprotect(packet) if phone.rx else packet
    assert packet is not None, "a packet is not authentic"
    return Heard(packet)


def meet(relay, theirs, codec, suite_a=None, suite_b=None, **keys):
    """A with PCMU, and B with theirs: a format, and its rtpmap."""
    a, b, call = relay.phone("caller", suite_a), relay.phone("callee", suite_b), relay.call()
    kind, *lines = theirs
    offer = {"transport_protocol": "RTP/SAVP", "SDES": [f"only-{b.suite}"]} if suite_b else {"transport_protocol": "RTP/AVP"}
    b.told(call.offer(a.sdp(formats="0 101"), codec={"transcode": [codec]}, **{**offer, **keys}).sdp.audio)
    told = call.answer(plain(b.sdp(*lines, formats=kind))).sdp.audio
    assert told.formats[0] == "0", told.formats
    a.told(told)
    return call, a, b


AHEAD = 3  # packets that a session may hold back: a resampler needs some samples more


class Stream:
    """The packets of one session, in order and under one SSRC."""

    def __init__(self, phone, kind, step, others):
        self.phone, self.kind, self.step, self.others, self.last = phone, kind, step, others, None

    def next(self):
        p = hear(self.phone)
        assert p.kind == self.kind and p.ssrc not in self.others, vars(p)
        if self.last:
            assert p.ssrc == self.last.ssrc and p.seq == self.last.seq + 1 & 0xFFFF, (self.last.seq, p.seq)
            assert p.time == self.last.time + self.step & 0xFFFFFFFF, (self.last.time, p.time)
        self.last = p
        return p.payload


def send_back(b, kind, step, payload):
    b.seq += 1
    packet = struct.pack("!BBHII", 0x80, kind, b.seq, b.seq * step, b.ssrc) + payload
    b.sock.sendto(b.tx.protect(packet) if b.tx else packet, b.to)


def round_trip(a, b, kind, step, back_as=None):
    """A's tone reaches B in the other codec; B sends it back, and A hears the tone. step: of the
    timestamp in B's codec. back_as: B's payload type, if it is not the one that it gets."""
    there, back, shares = Stream(b, kind, step, (a.ssrc, b.ssrc)), Stream(a, PCMU, PACKET, (a.ssrc, b.ssrc)), []
    for _ in range(AHEAD):
        a.send(PERIOD, PCMU)
    for n in range(30):
        a.send(PERIOD, PCMU)
        send_back(b, back_as or kind, step, there.next())
        if n >= AHEAD:
            payload = back.next()
            assert len(payload) == PACKET
            shares.append(share(payload))
    assert min(shares[12:]) > 0.9, shares


@compat_each("transcoding", DOC + ", packets", [
    (x, y) for x in (None, "AES_CM_128_HMAC_SHA1_80") for y in (None, "AEAD_AES_128_GCM")], options=PLUGINS)
def test_g722(relay, suite_a, suite_b):
    call, a, b = meet(relay, ("9 101",), "G722", suite_a, suite_b)
    round_trip(a, b, G722, 160)
    medias = {tag: t["medias"][0] for tag, t in call.query()["tags"].items()}
    assert medias["a"]["transcoded"] == "PCMU to G722" and medias["b"]["transcoded"] == "G722 to PCMU", medias
    assert all("transcoding" in m["flags"] for m in medias.values())
    assert {"chain": "PCMU to G722", "num": 1} in relay.statistics()["transcoders"]


@compat_each("transcoding", DOC + ", packets of plug-ins", [
    ("opus", ("96", OPUS), 96, 960), ("opus", ("96", OPUS, FREESWITCH), 96, 960), ("G729", ("18",), G729, 160), ("AMR", ("96", "a=rtpmap:96 AMR/8000", "a=fmtp:96 octet-align=1"), 96, 160),
    ("AMR-WB", ("96", "a=rtpmap:96 AMR-WB/16000", "a=fmtp:96 octet-align=1"), 96, 320), ("GSM", ("3",), 3, 160)], options=PLUGINS)
def test_plug_ins(relay, codec, theirs, kind, step):
    _, a, b = meet(relay, theirs, codec)
    round_trip(a, b, kind, step)


def only_late():
    """A folder with the plug-in that does harm when a payload asks for it."""
    folder = os.path.join(BUILD, "t", "codecs-late")
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(LATE):
        shutil.copy(LATE, folder)
    return folder


@compat("transcoding", "xcipher-codec(7), ISOLATION: a plug-in that crashes in mid-call costs its stream one packet",
        options=[f"--codec-dir={only_late()}", PLUGINS[1], "--codec-isolation=all"])
def test_a_plug_in_crashes_in_mid_call(relay):
    _, a, b = meet(relay, ("96", "a=rtpmap:96 x-bad/8000"), "x-bad/8000")
    there, back = Stream(b, 96, PACKET, (a.ssrc, b.ssrc)), Stream(a, PCMU, PACKET, (a.ssrc, b.ssrc))
    for n in range(20):
        a.send(PERIOD, PCMU)
        payload = there.next()
        send_back(b, 96, PACKET, b"DIES" + payload[4:] if n == 10 else payload)
        if n != 10:
            back.next()
    back.next()  # the one that was concealed
    faults = relay.daemon.client.call("codecs")["plug-ins"][0]
    assert faults["crashed"] == 1 and faults["restarted"] >= 1 and faults["given_up"] == 0, faults


def has_mode(there, a, b, step, request, mode):
    """B requests a mode of AMR in its packets (RFC 4867, octet-aligned) until a packet to it has this
    mode. The request and A's audio take different ways through the daemon, so that any number of
    packets may pass before."""
    def comes():
        a.send(PERIOD, PCMU)
        payload = there.next()
        send_back(b, there.kind, step, bytes([request << 4]) + payload[1:])
        return payload[1] >> 3 & 15 == mode
    wait_for(f"mode {mode}", comes)


@compat_each("transcoding", DOC + ", mode requests of the terminal", [("AMR", 8000, 160, 7), ("AMR-WB", 16000, 320, 8)], options=PLUGINS)
def test_modes(relay, codec, clock, step, best):
    _, a, b = meet(relay, ("96", f"a=rtpmap:96 {codec}/{clock}", "a=fmtp:96 octet-align=1"), codec)
    there = Stream(b, 96, step, (a.ssrc, b.ssrc))
    for _ in range(AHEAD):
        a.send(PERIOD, PCMU)
    for request, mode in ((15, best), (0, 0), (3, 3), (15, best)):
        has_mode(there, a, b, step, request, mode)


@compat("transcoding", DOC + ": telephone events are added at the clock rate of the codec", options=PLUGINS)
def test_events_of_opus(relay):
    call = relay.call()
    told = call.offer(sdp(audio(formats="0 101")), codec={"transcode": ["opus"]}).sdp.audio
    assert told.formats == ["0", "101", "96", "97"], told.formats
    assert "96 opus/48000/2" in told.attrs("rtpmap") and "97 telephone-event/48000" in told.attrs("rtpmap"), told.attrs("rtpmap")
    back = call.answer(plain(sdp(audio(OPUS, "a=rtpmap:97 telephone-event/48000", formats="96 97"), ip="10.200.2.2")))
    assert formats(back) == "0 101", formats(back)


KEYPAD = (770, 1336)  # frequencies of digit 5 (ITU-T Q.23)


def key(packet):
    """20 ms of digit 5."""
    at = range(packet * PACKET, (packet + 1) * PACKET)
    return [int(6000 * sum(math.sin(2 * math.pi * f * i / 8000) for f in KEYPAD)) for i in at]


def is_key(samples):
    """Both frequencies have nearly all of the energy."""
    def power(hertz):
        parts = [sum(v * f(2 * math.pi * hertz * i / 8000) for i, v in enumerate(samples)) for f in (math.cos, math.sin)]
        return 2 * sum(v * v for v in parts) / (len(samples) * (sum(v * v for v in samples) or 1))
    low, high = map(power, KEYPAD)
    return low + high > 0.8 and min(low, high) > 0.3


@compat_each("transcoding", DOC + ": digits where one terminal has no telephone events; RFC 4733", [
    (None, None), ("AES_CM_128_HMAC_SHA1_80", None)], options=PLUGINS)
def test_digits_without_events(relay, suite_a, suite_b):
    _, a, b = meet(relay, ("96", "a=rtpmap:96 L16/8000"), "L16/8000", suite_a, suite_b)
    before = relay.statistics()["totalstatistics"]["digitsheard"]
    for n in range(5):  # the last is sent three times
        for _ in range(3 if n == 4 else 1):
            a.seq += 1
            end = 0x80 if n == 4 else 0
            packet = struct.pack("!BBHIIBBH", 0x80, EVENT if n else EVENT | 0x80, a.seq, 160, a.ssrc, 5, 10 | end, 160 * (n + 1))
            a.sock.sendto(a.tx.protect(packet) if a.tx else packet, a.to)
    for _ in range(5):
        heard = hear(b)
        assert heard.kind == 96 and is_key(struct.unpack("!160h", heard.payload)), vars(heard)
    for n in range(20):
        send_back(b, 96, 160, struct.pack("!160h", *(key(n) if n < 5 else [0] * PACKET)))
    ends = 0
    while ends < 3:
        heard = hear(a)
        if heard.kind == EVENT:
            assert heard.payload[0] == 5, heard.payload
            ends += heard.payload[1] >> 7
    wait_for("two digits", lambda: relay.statistics()["totalstatistics"]["digitsheard"] == before + 2)


def pair_counts(relay):
    """What codec threads counted for PCMU to G722."""
    return next((p for p in relay.daemon.client.call("codecs")["pairs"] if p["codecs"] == "PCMU to G722"), {})


def lossy(a):
    """Packets of A's tone: each twentieth is missing, each seventh changes places with the next one."""
    held = None
    for n in itertools.count():
        a.seq += 1
        packet = struct.pack("!BBHII", 0x80, PCMU, a.seq & 0xFFFF, a.seq * PACKET & 0xFFFFFFFF, a.ssrc) + PERIOD
        packet = a.tx.protect(packet) if a.tx else packet
        if n % 20 == 10:
            continue
        if n % 7 == 3:
            held = packet
            continue
        yield packet
        if held:
            yield held
            held = None


@compat_each("transcoding", DOC + ", 5 % of the packets are lost and others arrive in another order",
             [(None,), ("AES_CM_128_HMAC_SHA1_80",)], options=PLUGINS)
def test_loss_and_order(relay, suite):
    """Both get numbers and timestamps without gaps, and the audio that B gets and sends back has the tone."""
    call, a, b = meet(relay, ("9 101",), "G722", suite, suite)
    before = pair_counts(relay)
    there, back, shares = Stream(b, G722, 160, (a.ssrc, b.ssrc)), Stream(a, PCMU, PACKET, (a.ssrc, b.ssrc)), []
    for packet in itertools.islice(lossy(a), 1000):
        a.sock.sendto(packet, a.to)
        while select.select([b.sock], [], [], 0.02)[0]:
            send_back(b, G722, 160, there.next())
        while select.select([a.sock], [], [], 0)[0]:
            shares.append(share(back.next()))
        if len(shares) >= 150:
            break
    assert len(shares) >= 150, len(shares)
    seen = call.query()["tags"]["a"]["medias"][0]["transcoder"]
    assert seen["decoded"] >= 130 and seen["lost"] >= 5 and seen["concealed"] == seen["lost"], seen
    assert "concealed" in relay.request("explain", call_id=call.id)["legs"][0]["audio"]
    after = pair_counts(relay)
    assert all(after[k] >= before.get(k, 0) + 5 for k in ("decoded", "lost", "concealed")), (before, after)
    assert sum(shares[12:]) / len(shares[12:]) > 0.95 and min(shares[12:]) > 0.5, sorted(shares[12:])[:10]


@compat_each("transcoding", "RFC 3264 section 6.1: an answerer sends the payload types of the offer, whatever its answer has",
             [(98,), (96,)], options=PLUGINS)
def test_an_answerer_with_a_number_of_its_own(relay, sent):
    call, a, b = meet(relay, ("98", "a=rtpmap:98 L16/16000"), "L16/16000")
    round_trip(a, b, 98, 320, sent)
    seen = call.query()["tags"]["b"]["medias"][0]["transcoder"]
    assert seen["decoded"] >= 27, seen


@compat("transcoding", DOC + ", metrics by pair of codecs", options=[*PLUGINS, "--listen-ng-unix={folder}/ng"])
def test_pairs_in_metrics(relay):
    _, a, b = meet(relay, ("96", "a=rtpmap:96 L16/16000"), "L16/16000")
    round_trip(a, b, 96, 320)
    lines = dict(line.rsplit(" ", 1) for line in relay.request("metrics")["metrics"].splitlines() if not line.startswith("#"))
    for pair in ("PCMU to L16", "L16 to PCMU"):
        assert int(lines[f'xcipher_transcoded_packets_total{{codecs="{pair}"}}']) >= 25, pair
        for name in ("lost_packets", "concealed_packets", "late_packets", "passed_packets"):
            assert lines[f'xcipher_transcoded_{name}_total{{codecs="{pair}"}}'] == "0", (name, pair)
        assert float(lines[f'xcipher_transcoded_cpu_seconds_total{{codecs="{pair}"}}']) >= 0


@compat("transcoding", "RFC 3264 section 8: another codec in mid-call", options=PLUGINS)
def test_another_codec_in_mid_call(relay):
    call, a, b = meet(relay, ("9 101",), "G722")
    round_trip(a, b, G722, 160)
    for direction in ("sendonly", "sendrecv"):  # on hold and back
        call.offer(a.sdp(f"a={direction}", formats="0 101"), codec={"transcode": ["G722"]})
        call.answer(b.sdp(formats="9 101"))
    round_trip(a, b, G722, 160)
    call.offer(a.sdp(formats="0 101"))
    call.answer(b.sdp(formats="0 101"))
    a.send(PERIOD, PCMU)
    there = hear(b)
    while there.ssrc != a.ssrc:  # of the session, on its way
        there = hear(b)
    assert there.kind == PCMU and there.payload == PERIOD
    assert "transcoded" not in call.query()["tags"]["a"]["medias"][0]


SOURCE = ("a=ssrc:7 cname:x", "a=ssrc-group:FID 7 8")


def exchange(call, a, b, theirs, **keys):
    """Whether a=ssrc of A, and of B, reaches the other. theirs: B's payload type."""
    offered = call.offer(a.sdp(*SOURCE, formats="0 101"), transport_protocol="RTP/AVP", **keys).sdp.audio
    answered = call.answer(b.sdp(*SOURCE, formats=theirs)).sdp.audio
    told = [{m.has("ssrc"), m.has("ssrc-group")} for m in (offered, answered)]
    assert all(len(t) == 1 for t in told), told
    return [t.pop() for t in told]


@compat("transcoding", "RFC 5576 section 4.1: a=ssrc names an SSRC that is sent, and a session sends under its own", options=PLUGINS)
def test_sources_are_named_only_if_they_are_sent(relay):
    """Chromium drops packets of an SSRC that a=ssrc does not name."""
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    assert exchange(call, a, b, "0") == [True, True]
    assert exchange(call, a, b, "9", codec={"transcode": ["G722"]}) == [False, False]
    assert exchange(relay.call(), a, b, "0", ptime=40) == [False, False]
    call = relay.call()
    assert exchange(call, a, b, "0") == [True, True]
    call.request("block DTMF", from_tag="a", **{"DTMF-security": "silence"})
    assert exchange(call, a, b, "0") == [False, False]
    told = call.offer(sdp(audio(*SOURCE, formats="0"), video(*SOURCE)), transport_protocol="RTP/AVP").sdp.media
    assert [m.has("ssrc") for m in told] == [False, True]


@compat("transcoding", "xcipher-ng(7), ptime, ptime-reverse")
def test_packets_are_resized(relay):
    a, b, call = relay.phone("caller"), relay.phone("callee"), relay.call()
    told = call.offer(a.sdp("a=ptime:20", formats="0"), ptime=40, ptime_reverse=10).sdp.audio
    assert told.attr("ptime") == "40", told.attr("ptime")
    b.told(told)
    told = call.answer(b.sdp("a=ptime:20", formats="0")).sdp.audio
    assert told.attr("ptime") == "10", told.attr("ptime")
    a.told(told)
    for sender, hearer in ((a, b), (b, a)):  # the first packet passes: its duration is not known yet
        sender.send(PERIOD, PCMU)
        hear(hearer)
    for _ in range(5):
        a.send(PERIOD, PCMU)
        a.send(PERIOD, PCMU)
        assert len(hear(b).payload) == 320
        b.send(PERIOD, PCMU)
        assert [len(hear(a).payload) for _ in range(2)] == [80, 80]
