# SPDX-License-Identifier: GPL-2.0-or-later
"""Hold and resume."""
from compat import compat, compat_each
from text import audio, sdp


def answered(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    call.answer(sdp(audio(), ip="10.200.2.2"))
    return call


@compat_each("hold", "RFC 3264 section 8.4", [("sendonly", "recvonly"), ("inactive", "inactive"), ("recvonly", "sendonly")])
def test_directions_pass(relay, offered, answered_with):
    call = answered(relay)
    held = call.offer(sdp(audio(direction=offered)))
    assert held.sdp.audio.direction == offered
    assert call.answer(sdp(audio(direction=answered_with), ip="10.200.2.2")).sdp.audio.direction == answered_with


@compat("hold", "RFC 3264 section 8.4")
def test_hold_keeps_the_port(relay):
    call = answered(relay)
    before = call.offer(sdp(audio(direction="sendonly"))).sdp.audio
    call.answer(sdp(audio(direction="recvonly"), ip="10.200.2.2"))
    after = call.offer(sdp(audio())).sdp.audio
    assert (after.port, after.address, after.direction) == (before.port, before.address, "sendrecv")


@compat("hold", "RFC 3264 section 8.4")
def test_callee_holds(relay):
    call = answered(relay)
    held = call.offer(sdp(audio(direction="sendonly"), ip="10.200.2.2"), by=1)
    assert held.sdp.audio.direction == "sendonly" and held.sdp.audio.profile == "RTP/AVP"
    assert call.answer(sdp(audio(direction="recvonly"))).sdp.audio.direction == "recvonly"
