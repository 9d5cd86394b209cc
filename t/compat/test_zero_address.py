# SPDX-License-Identifier: GPL-2.0-or-later
"""Hold by address, as before RFC 3264: c=0.0.0.0."""
from compat import compat, compat_each
from text import audio, sdp, video

ZERO = sdp(audio()).replace("c=IN IP4 10.200.1.2", "c=IN IP4 0.0.0.0")
ZERO6 = sdp(audio(), ip="fd00:1::2").replace("c=IN IP6 fd00:1::2", "c=IN IP6 ::")
TO6 = {"direction": ["internal", "external"], "address_family": "IP6"}
TO4 = {"direction": ["internal", "external"], "address_family": "IP4"}


@compat_each("hold", "RFC 2543 appendix B.5, RFC 3264 section 8.4", [
    ("kept", ZERO, {}, "0.0.0.0"),
    ("zero-address", ZERO, {"replace": ["zero-address"]}, "10.200.1.1"),
    ("to IPv6", ZERO, TO6, "::"),
    ("to IPv6, zero-address", ZERO, {**TO6, "replace": ["zero-address"]}, "fd00:2::1"),
    ("to IPv4", ZERO6, TO4, "0.0.0.0"),
    ("from .invalid", ZERO6.replace("c=IN IP6 ::", "c=IN IP6 x.invalid"), TO4, "0.0.0.0"),
])
def test_hold_by_address_is_told_by_direction_too(relay, _, offer, keys, address):
    audio_line = relay.call().offer(offer, **keys).sdp.audio
    assert (audio_line.address, audio_line.direction) == (address, "sendonly"), audio_line


@compat_each("hold", "RFC 3264 section 8.4", [("sendonly", "sendonly"), ("recvonly", "inactive"), ("inactive", "inactive")])
def test_direction_is_not_lost(relay, said, told):
    assert relay.call().offer(ZERO.replace("sendrecv", said)).sdp.audio.direction == told


@compat("hold", "RFC 2543 appendix B.5")
def test_one_media_of_two_holds(relay):
    reply = relay.call().offer(sdp(audio("c=IN IP4 0.0.0.0"), video()), **TO6)
    assert [(m.address, m.direction) for m in reply.sdp.media] == [("::", "sendonly"), ("fd00:2::1", "sendrecv")], reply


@compat("hold", "RFC 3264 section 8.4")
def test_after_hold_by_address_media_flow_again(relay):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    call.talk(a, b)
    call.offer(a.sdp().replace(f"c=IN IP4 {a.ip}", "c=IN IP4 0.0.0.0"))
    call.answer(b.sdp())
    call.talk(a, b)


@compat("hold", "RFC 8840 section 4.1.1")
def test_no_candidate_yet_is_no_hold(relay):
    line = relay.call().offer(ZERO.replace("a=sendrecv", "a=ice-ufrag:abcd\r\na=sendrecv"), ICE="remove").sdp.audio
    assert (line.address, line.direction) == ("10.200.1.1", "sendrecv"), line
