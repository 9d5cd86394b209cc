# SPDX-License-Identifier: GPL-2.0-or-later
"""Spellings of keys, and names of recordings."""
import os

from baresip import wait_for
from compat import compat, compat_each
from text import audio, sdp


def echoes(a, b, word):
    """A receives its own packet."""
    a.send(word)
    return a.receive() == word


@compat_each("words", "xcipher-ng(7), media-echo", ["backwards", "backward", "reverse", "back", "bkw", "bk", "both"])
def test_media_echo_to_the_offerer(relay, word):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    b.told(call.offer(a.sdp(), media_echo=word).sdp.audio)
    reply = call.answer(b.sdp())
    a.told(reply.sdp.audio)
    assert not reply.warning and echoes(a, b, b"echo")


@compat_each("words", "xcipher-ng(7), media-echo", ["forward", "fwd", "fw", "both"])
def test_media_echo_to_the_answerer(relay, word):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    reply = call.offer(a.sdp(), media_echo=word)
    b.told(reply.sdp.audio)
    a.told(call.answer(b.sdp()).sdp.audio)
    assert not reply.warning and echoes(b, a, b"echo")


@compat_each("words", "xcipher-ng(7), alias-key", [("none", ""), ("off", ""), ("sdp", "alias-key")])
def test_alias_key(relay, word, warning):
    reply = relay.call().offer(sdp(audio()), alias_key=word)
    assert warning in reply.warning if warning else not reply.warning, reply


FOLDER = ["--recording-dir={folder}"]


@compat("words", "xcipherd(8) --recording-dir", options=FOLDER)
def test_a_recording_is_named_by_its_path(relay):
    folder, number = relay.folder.name, 0
    for good in ("tape", folder + "/whole"):
        call = relay.call()
        call.offer(sdp(audio()))
        call.answer(sdp(audio(), ip="10.200.2.2"))
        reply = call.request("start recording", recording_file=good)
        assert os.path.basename(good) in str(reply), reply
        call.delete()
    call = relay.call()
    call.offer(sdp(audio()))
    for bad in ("/tmp/tape", folder, folder + "/", folder + "/a/b", folder + "/../x", folder + "//x", folder + "x/tape", "../x", folder + "/.x"):
        call.request("start recording", recording_file=bad, fails="not a plain file name")
        number += 1
    assert number == 9
    call.request("start recording", recording_pattern="a/%c", fails="pattern makes no plain file name")


@compat("words", "xcipher-ng(7) recording-file", options=FOLDER)
def test_a_recording_that_runs_keeps_its_file(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    call.answer(sdp(audio(), ip="10.200.2.2"))
    first = call.request("start recording", recording_file="first")
    again = call.request("start recording", recording_file=relay.folder.name + "/first")
    assert again["recording"] == first["recording"] and "warning" not in again, again
    other = call.request("start recording", recording_file="second")
    assert other["recording"] == first["recording"] and "is being recorded as first" in other["warning"], other
    wait_for("the warning in the log", lambda: "recording-file is ignored" in relay.daemon.text())
    call.delete()


ALIASES = ["--interface=inside=internal", "--interface=outside=external"]


@compat_each("words", "xcipherd(8) --interface", [("outside", "IP4", "10.200.2.1"), ("outside", "IP6", "fd00:2::1"), ("inside", "IP4", "10.200.1.1"),
                                                 ("external", "IP4", "10.200.2.1")], options=ALIASES)
def test_an_alias_of_an_interface(relay, name, family, address):
    reply = relay.call().offer(sdp(audio()), direction=["inside", name], address_family=family)
    assert reply.sdp.audio.address == address and not reply.warning, reply
    assert "no interface nowhere" in relay.call().offer(sdp(audio()), direction=["inside", "nowhere"]).warning
