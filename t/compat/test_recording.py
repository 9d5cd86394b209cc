# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings: names, contents, and sides."""
import os
import time

from compat import compat, compat_each, reaches
from text import audio, sdp

OPTIONS = ["--recording-dir={folder}"]
RTP = b"\x80\x00"


def talking(relay, **keys):
    phones = relay.phone("caller"), relay.phone("callee")
    return (relay.call().talk(*phones, **keys), *phones)


def files(relay):
    return sorted(f for f in os.listdir(relay.folder.name) if f.endswith(".pcap"))


def recorded(relay, words, absent=()):
    """Waits until these texts are in a recording; the others must not be."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        text = b""
        for name in files(relay):
            with open(os.path.join(relay.folder.name, name), "rb") as f:
                text += f.read()
        if all(w in text for w in words):
            return not any(w in text for w in absent)
        time.sleep(0.02)
    raise AssertionError(f"not recorded: {words}")


def named(relay, start):
    """Waits for a recording whose name starts so: the daemon creates its file after the reply."""
    end = time.monotonic() + 60
    while not any(f.startswith(start) for f in files(relay)):
        assert time.monotonic() < end, files(relay)
        time.sleep(0.02)


def say(a, b):
    word = os.urandom(20)
    a.send(word)
    assert b.receive() == word
    return word


@compat("recording", "xcipher-ng(7), start recording, pause recording, stop recording", options=OPTIONS)
def test_start_pause_and_stop(relay):
    call, a, b = talking(relay)
    call.request("start recording")
    first = say(a, b)
    call.request("pause recording")
    second = say(b, a)
    call.request("start recording")
    third = say(b, a)
    call.request("stop recording")
    fourth = say(a, b)
    assert recorded(relay, [first, third], [second, fourth])


@compat("recording", "xcipher-ng(7), pause", options=OPTIONS)
def test_stop_with_pause_is_pause(relay):
    call, a, b = talking(relay)
    call.request("start recording")
    call.request("stop recording", flags=["pause"])
    silent = say(a, b)
    call.request("start recording")
    call.request("stop recording", pause="yes")
    call.request("start recording")
    heard = say(a, b)
    call.delete()
    assert recorded(relay, [heard], [silent])


@compat_each("recording", "xcipher-ng(7), record-call", [{"flags": ["record-call"]}, {"record_call": "yes"}], options=OPTIONS)
def test_record_call(relay, keys):
    call, a, b = talking(relay, **keys)
    word = say(a, b)
    call.delete()
    assert recorded(relay, [word])


@compat("recording", "xcipher-ng(7), recording-file", options=OPTIONS)
def test_recording_file(relay):
    call, a, b = talking(relay)
    call.request("start recording", recording_file="chosen")
    say(a, b)
    call.delete()
    named(relay, "chosen")
    call, _, _ = talking(relay)
    call.request("start recording", True, recording_file="../outside")


@compat("recording", "xcipher-ng(7), recording-pattern", options=OPTIONS)
def test_recording_pattern(relay):
    call, a, b = talking(relay)
    call.request("start recording", recording_pattern="p-%c")
    say(a, b)
    named(relay, f"p-{call.id}")


@compat("recording", "xcipher-ng(7), metadata", options=OPTIONS)
def test_metadata(relay):
    call, a, b = talking(relay)
    call.request("start recording", metadata="who:alice")
    say(a, b)
    call.delete()
    end, text = time.monotonic() + 60, ""
    while "who:alice" not in text and time.monotonic() < end:
        for name in os.listdir(relay.folder.name):
            if not name.endswith(".pcap"):
                with open(os.path.join(relay.folder.name, name), encoding="utf-8") as f:
                    text += f.read()
    assert "who:alice" in text


@compat("recording", "xcipher-ng(7), metadata", options=OPTIONS)
def test_metadata_changes(relay):
    """Later requests of a recorded call replace it. The text file has each value, and in no other line. The ones with control characters are refused."""
    call, a, b = talking(relay)
    path = call.request("start recording", metadata="who:alice|call:urn:emergency:uid:callid:0123456789:example")["recording"]["metadata file"]
    call.request("start recording", True, metadata="who:mallory\nmetadata: forged")
    call.request("start recording", metadata="who:carol")
    call.request("start recording", metadata="who:carol")
    say(a, b)
    assert call.request("query")["metadata"] == "who:carol"
    call.delete()
    end, text = time.monotonic() + 60, ""
    while "packets:" not in text:
        assert time.monotonic() < end, text
        time.sleep(0.02)
        with open(path, encoding="utf-8") as f:
            text = f.read()
    lines = [x for x in text.splitlines() if x.startswith("metadata: ")]
    assert lines == ["metadata: who:alice|call:urn:emergency:uid:callid:0123456789:example", "metadata: who:carol"], text


@compat("recording", "xcipher-ng(7), discard-recording", options=OPTIONS)
def test_discard_recording(relay):
    call, a, b = talking(relay)
    call.request("start recording", recording_file="unwanted")
    say(a, b)
    named(relay, "unwanted")
    call.request("stop recording", flags=["discard-recording"])
    end = time.monotonic() + 60
    while any(f.startswith("unwanted") for f in os.listdir(relay.folder.name)):
        assert time.monotonic() < end
        time.sleep(0.02)


@compat_each("recording", "xcipher-ng(7), directional, label, exclude-recording", [
    {"flags": ["directional"], "from_tag": "a"}, {"label": "caller"}], options=OPTIONS)
def test_one_side(relay, who):
    call, a, b = talking(relay, label="caller")
    call.request("start recording", **who)
    other, mine = say(b, a), say(a, b)
    call.delete()
    assert recorded(relay, [mine], [other])


@compat("recording", "xcipher-ng(7), exclude-recording", options=OPTIONS)
def test_excluded(relay):
    first, a, b = talking(relay)
    second, c, d = talking(relay, flags=["exclude-recording"])
    second.request("start recording")
    first.request("start recording")
    other, mine = say(c, d), say(a, b)
    second.delete()
    first.delete()
    assert recorded(relay, [mine], [other])


@compat("recording", "xcipher-ng(7), start recording: needs --recording-dir")
def test_no_folder(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    call.request("start recording", True)
    assert "recorded" in relay.call().offer(sdp(audio()), flags=["record-call"]).warning


@compat("recording", "xcipher-ng(7), record-call; RFC 3711", options=OPTIONS)
def test_srtp_is_recorded_in_clear(relay):
    a, b = relay.phone("caller", "80"), relay.phone("callee", "GCM")
    call = relay.call().talk(a, b, flags=["record-call"])
    assert reaches(a, b)
    word = say(b, a)
    call.delete()
    assert recorded(relay, [word])
