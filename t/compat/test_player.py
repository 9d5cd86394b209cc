# SPDX-License-Identifier: GPL-2.0-or-later
"""Files and digits that are played to terminals, to the byte: the files are mu-law, as the terminals
are, so that each byte of a file is a byte of a payload."""
import base64
import struct

from compat import WHERE, compat, compat_each
from text import audio, sdp

DOC = "rtpengine's documentation, ng_control_protocol"
NOTE = "".join(chr(48 + i % 70) for i in range(480))  # 60 ms
OPTIONS = ["--play-dir={folder}", f"file:note.ul={NOTE}", "file:text.wav=hello"]
EVENT = 'a=rtpmap:101 telephone-event/8000'


def talking(relay, suites=(None, None), formats="0"):
    lines = [EVENT] if "101" in formats else []
    a, b = relay.phone("caller", suites[0]), relay.phone("callee", suites[1])
    call = relay.call()
    transport = "RTP/SAVP" if suites[1] else "RTP/AVP"
    more = {"SDES": [f"only-{b.suite}"]} if b.suite else {}
    b.told(call.offer(a.sdp(*lines, formats=formats), transport_protocol=transport, **more).sdp.audio)
    a.told(call.answer(b.sdp(*lines, formats=formats)).sdp.audio)
    return call, a, b


def hears(phone, want):
    got = b""
    while len(got) < len(want):
        got += phone.receive()
    assert got == want, (got, want)


@compat_each("player", "xcipher-ng(7), play media, file, block-egress; " + DOC, [
    (None, None), ("80", None), ("80", "32"), ("GCM256", "80")], options=OPTIONS)
def test_file(relay, *suites):
    call, a, b = talking(relay, suites)
    for tag, phone in (("a", a), ("b", b), ("a", a)):
        reply = call.request("play media", from_tag=tag, file="note.ul", flags=["block-egress"])
        assert reply["duration"] == 60
        hears(phone, NOTE.encode())


@compat("player", "xcipher-ng(7), play media, start-pos, repeat-times, repeat-duration, blob64, blob; " + DOC, options=OPTIONS)
def test_parts_of_a_file(relay):
    call, a, _ = talking(relay)
    note = NOTE.encode()
    call.request("play media", from_tag="a", file="note.ul", start_pos=320, repeat_times=2, flags=["block-egress"])
    hears(a, note[320:] + note)
    call.request("play media", from_tag="a", file="note.ul", repeat_duration=100, flags=["block-egress"])
    hears(a, note + note[:320])
    wav = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 7, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", 480) + note
    call.request("play media", from_tag="a", blob64=base64.b64encode(wav).decode(), flags=["block-egress"])
    hears(a, note)
    call.request("play media", from_tag="a", blob=wav, flags=["block-egress"])
    hears(a, note)


@compat("player", "xcipher-ng(7), play media, all, label, address; " + DOC, options=OPTIONS)
def test_who_hears_it(relay):
    call, a, b = talking(relay)
    call.request("play media", file="note.ul", flags=["all", "block-egress"])
    hears(a, NOTE.encode())
    hears(b, NOTE.encode())
    call.request("play media", address=WHERE["callee"][0], file="note.ul", flags=["block-egress"])
    hears(b, NOTE.encode())


@compat("player", "xcipher-ng(7), stop media; " + DOC, options=OPTIONS)
def test_stop(relay):
    call, a, _ = talking(relay)
    call.request("play media", from_tag="a", file="note.ul", repeat_times=100000)
    a.receive()
    assert 0 <= call.request("stop media", from_tag="a")["last-frame-pos"] < 480
    assert call.request("stop media", from_tag="a")["last-frame-pos"] == 0


@compat_each("player", "xcipher-ng(7), play DTMF, code, digit, duration, volume, pause; RFC 4733 section 2.5.1; " + DOC, [
    ({"code": "7"}, 7, 8, 2000), ({"digit": "#", "duration": 100, "volume": -20, "pause": 200}, 11, 20, 800), ({"code": 15, "duration": 1}, 15, 8, 800)])
def test_digit(relay, keys, event, volume, lasts):
    call, _, b = talking(relay, formats="0 101")
    call.request("play DTMF", from_tag="a", **keys)
    ends, last = 0, 0
    while ends < 3:
        payload = b.receive()
        if len(payload) != 4:
            continue
        assert payload[0] == event and payload[1] & 0x3f == volume
        ends += payload[1] >> 7
        last = struct.unpack("!H", payload[2:])[0]
    assert lasts <= last < lasts + 160


@compat_each("player", "xcipher-ng(7), play media, play DTMF, db-id", [
    ("play media", {"from_tag": "a"}, "No media file specified"), ("play media", {"file": "note.ul"}, "No participant party specified"),
    ("play media", {"from_tag": "x", "file": "note.ul"}, "No matching participant"), ("play media", {"from_tag": "a", "db_id": 1}, "db-id"),
    ("play media", {"from_tag": "a", "file": "../note.ul"}, "out of play-dir"), ("play media", {"from_tag": "a", "file": "/etc/passwd"}, "out of play-dir"),
    ("play media", {"from_tag": "a", "file": "none.wav"}, "no such file"), ("play media", {"from_tag": "a", "file": "text.wav"}, "format is not known"),
    ("play media", {"from_tag": "a", "file": "note.ul", "start_pos": 480}, "beyond its end"), ("play DTMF", {"from_tag": "a"}, "Invalid DTMF code"),
    ("play DTMF", {"from_tag": "a", "code": "16"}, "Invalid DTMF code"), ("play DTMF", {"code": "1"}, "No participant")], options=OPTIONS)
def test_refused(relay, command, keys, fails):
    call, _, _ = talking(relay)
    call.request(command, fails=fails, **keys)


@compat("player", "xcipher-ng(7), play media", options=OPTIONS)
def test_unanswered_call_plays_nothing(relay):
    call = relay.call()
    call.offer(sdp(audio(formats="0")))
    call.request("play media", fails="No matching participant", from_tag="a", file="note.ul")
