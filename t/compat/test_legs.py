# SPDX-License-Identifier: GPL-2.0-or-later
"""A leg keeps its profile in later offers, and never becomes less secure without an order."""
from compat import compat, compat_each
from text import audio, crypto, sdp, video

S80, S32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
CALLEE = "10.200.2.2"
STAY = "xcipher-ng(7), WHAT A LEG SPEAKS"
OSRTP = "RFC 8643 section 3.1"


def taken(line):
    """An a=crypto line that accepts one of ours."""
    return crypto(line.suite, line.tag)


def with_suite(media, suite):
    return next(c for c in media.crypto if c.suite == suite)


def answer_to(media, suite=None, ip="10.200.1.2", **more):
    """A terminal's answer to an offer of ours: with this suite, or plain."""
    lines = [taken(with_suite(media, suite))] if suite else []
    return sdp(audio(*lines, profile=more.pop("profile", "RTP/SAVP" if suite else "RTP/AVP"), **more), ip=ip)


def set_up(relay, caller, callee, offer_flags, answer_flags):
    """A call; caller and callee are suites, or None for RTP. The callee's line is kept for its re-INVITE."""
    call = relay.call()
    mine = [crypto(caller, 7)] if caller else []
    call.caller = sdp(audio(*mine, profile="RTP/SAVP" if caller else "RTP/AVP"))
    seen = call.offer(call.caller, **offer_flags).sdp.audio
    line = [taken(with_suite(seen, callee))] if callee else []
    call.callee = lambda **more: sdp(audio(*line, profile="RTP/SAVP" if callee else "RTP/AVP", **more), ip=CALLEE)
    told = call.answer(call.callee(), **answer_flags).sdp.audio
    assert told.suites == ([caller] if caller else []), told.suites
    return call


# Flags that a route file sends with every offer, and with every answer.
BLIND = {
    "plain caller": (None, S80, {"transport_protocol": "RTP/SAVP"}, {}),
    "plain caller, flags twice": (None, S80, {"transport_protocol": "RTP/SAVP"}, {"transport_protocol": "RTP/SAVP"}),
    "plain callee": (S80, None, {"transport_protocol": "RTP/AVP"}, {}),
    "plain callee, no SDES": (S80, None, {"transport_protocol": "RTP/AVP", "SDES": ["off"]}, {}),
    "80 and 32": (S80, S32, {"transport_protocol": "RTP/SAVP", "SDES": [f"only-{S32}"]}, {"transport_protocol": "RTP/SAVP", "SDES": [f"only-{S80}"]}),
    "80 and not 80": (S80, S32, {"transport_protocol": "RTP/SAVP", "SDES": [f"no-{S80}"]}, {"SDES": [f"no-{S32}"]}),
}


@compat_each("legs", STAY, [(name,) for name in BLIND])
def test_callee_holds_and_resumes_with_flags_of_the_first_offer(relay, name):
    caller, callee, offer, answer = BLIND[name]
    call = set_up(relay, caller, callee, offer, answer)
    for direction, back in (("sendonly", "recvonly"), ("sendrecv", "sendrecv")):
        seen = call.offer(call.callee(direction=direction), by=1, **offer).sdp.audio
        assert seen.profile == ("RTP/SAVP" if caller else "RTP/AVP"), seen.lines
        assert seen.suites[:1] == ([caller] if caller else []), seen.suites
        told = call.answer(answer_to(seen, caller, direction=back), **answer).sdp.audio
        assert told.suites == ([callee] if callee else []), told.suites
        # The caller's re-INVITE in between works as before.
        seen = call.offer(call.caller, **offer).sdp.audio
        assert seen.profile == ("RTP/SAVP" if callee else "RTP/AVP") and seen.suites[:1] == ([callee] if callee else [])
        call.answer(call.callee(), **answer)


@compat("legs", STAY)
def test_callee_adds_video_with_flags_of_the_first_offer(relay):
    call = set_up(relay, None, S80, {"transport_protocol": "RTP/SAVP"}, {})
    body = call.callee() + sdp(video(suites=[S80])).split("t=0 0\r\n")[1]
    seen = call.offer(body, by=1, transport_protocol="RTP/SAVP").sdp
    assert [m.profile for m in seen.media] == ["RTP/AVP", "RTP/AVP"] and not seen.video.crypto


@compat("legs", STAY)
def test_new_flags_are_obeyed(relay):
    """Control: an option that the first offer left open for the other side takes effect, and so
    does reset."""
    call = set_up(relay, None, S80, {"transport_protocol": "RTP/SAVP"}, {})
    assert call.offer(call.callee(), by=1, transport_protocol="RTP/AVPF").sdp.audio.profile == "RTP/AVPF"
    call = set_up(relay, None, S80, {"transport_protocol": "RTP/SAVP"}, {})
    assert call.offer(call.callee(), by=1, transport_protocol="RTP/SAVP").sdp.audio.profile == "RTP/AVP"
    assert call.offer(call.callee(), by=1, transport_protocol="RTP/SAVP", flags=["reset"]).sdp.audio.profile == "RTP/SAVP"


def weaker(relay, by):
    return relay.statistics()["totalstatistics"][f"srtptortpby{by}"]


@compat("legs", STAY)
def test_an_order_makes_a_leg_plain_and_is_counted(relay):
    before = weaker(relay, "flags"), weaker(relay, "terminal")
    call = set_up(relay, S80, S80, {}, {})
    seen = call.offer(call.caller, transport_protocol="RTP/AVP").sdp.audio
    assert seen.profile == "RTP/AVP" and not seen.crypto
    reply = call.answer(answer_to(seen, ip=CALLEE))
    assert reply.sdp.audio.suites == [S80] and f"from {S80} to RTP" in reply.warning, reply
    assert (weaker(relay, "flags"), weaker(relay, "terminal")) == (before[0] + 1, before[1])


@compat("legs", STAY)
def test_a_terminal_decides_on_its_own_leg_only(relay):
    """RFC 3264 8.3 allows it to offer RTP; the other leg stays."""
    before = weaker(relay, "terminal")
    call = set_up(relay, S80, S80, {}, {})
    seen = call.offer(sdp(audio())).sdp.audio
    assert seen.profile == "RTP/SAVP" and S80 in seen.suites
    reply = call.answer(call.callee())
    assert reply.sdp.audio.profile == "RTP/AVP" and not reply.sdp.audio.crypto and f"from {S80} to RTP" in reply.warning, reply
    assert weaker(relay, "terminal") == before + 1


@compat("legs", STAY)
def test_a_script_may_forbid_even_that(relay):
    call = set_up(relay, S80, S80, {}, {})
    call.offer(sdp(audio()), SDES=["require:" + S80], fails="No common crypto suite")


def osrtp(relay, accept=True, offer_flags=None, answer_flags=None, suite=S80):
    """Sends an opportunistic offer. Returns the offer to the callee and the answer to the caller."""
    call = relay.call()
    call.caller = sdp(audio(crypto(S80, 3), profile="RTP/AVP"))
    seen = call.offer(call.caller, **(offer_flags or {})).sdp.audio
    call.callee = answer_to(seen, suite if accept else None, ip=CALLEE, profile="RTP/AVP")
    return call, seen, call.answer(call.callee, **(answer_flags or {})).sdp.audio


@compat_each("osrtp", OSRTP, [(True, [S80]), (False, [S80])])
def test_an_opportunistic_offer_is_handed_on(relay, accept, suites):
    _, seen, told = osrtp(relay, accept)
    assert seen.profile == "RTP/AVP" and S80 in seen.suites
    assert told.profile == "RTP/AVP" and told.suites == suites


@compat_each("osrtp", "xcipher-ng(7), OSRTP", [({}, {"OSRTP": ["accept"]}), ({"OSRTP": ["accept"]}, {}), ({}, {"OSRTP": ["accept-RFC"]}), ({}, {})])
def test_accept_takes_it_though_the_answer_is_plain(relay, offer, answer):
    _, _, told = osrtp(relay, False, offer, answer)
    assert told.profile == "RTP/AVP" and told.suites == [S80]


@compat("osrtp", "xcipher-ng(7), OSRTP")
def test_it_is_taken_where_the_answer_is_srtp(relay):
    call = relay.call()
    seen = call.offer(sdp(audio(crypto(S80, 3), profile="RTP/AVP")), transport_protocol="RTP/SAVP").sdp.audio
    assert call.answer(answer_to(seen, S32, ip=CALLEE)).sdp.audio.suites == [S80]


@compat_each("osrtp", "xcipher-ng(7), OSRTP", [{"OSRTP": ["off"]}, {"OSRTP": ["reject"]}, {"SDES": ["off"]}])
def test_flags_switch_it_off(relay, flags):
    call = relay.call()
    seen = call.offer(sdp(audio(crypto(S80, 3), profile="RTP/AVP")), **flags).sdp.audio
    assert seen.profile == "RTP/AVP" and not seen.crypto
    assert not call.answer(sdp(audio(), ip=CALLEE), **flags).sdp.audio.crypto


@compat("osrtp", OSRTP)
def test_an_answer_with_a_key_that_was_not_offered_is_refused(relay):
    """The terminal would send SRTP, and the relay would treat it as RTP."""
    call = relay.call()
    call.offer(sdp(audio(crypto(S80, 3), profile="RTP/AVP")))
    call.answer(sdp(audio(crypto(S80, 77), profile="RTP/AVP"), ip=CALLEE), fails="No usable crypto line")


@compat_each("osrtp", STAY, [({"OSRTP": ["offer"], "transport_protocol": "RTP/AVP"}, {}), ({"OSRTP": ["offer"], "transport_protocol": "RTP/AVP"},
                                                                                        {"transport_protocol": "RTP/AVP"})])
def test_a_re_invite_without_osrtp_flags_keeps_srtp(relay, first, later):
    call = relay.call()
    seen = call.offer(sdp(audio()), **first).sdp.audio
    answer = answer_to(seen, S80, ip=CALLEE, profile="RTP/AVP")
    call.answer(answer)
    seen = call.offer(sdp(audio()), **later).sdp.audio
    assert seen.profile == "RTP/AVP" and seen.suites[0] == S80
    call.answer(answer)
    assert call.query()["tags"]["b"]["medias"][0]["crypto suite"] == S80


@compat("osrtp", STAY)
def test_either_side_may_re_invite_an_opportunistic_call(relay):
    call, _, _ = osrtp(relay)
    for by, own, other in ((1, call.callee, "10.200.1.2"), (0, call.caller, CALLEE)):
        seen = call.offer(own, by=by).sdp.audio
        assert seen.profile == "RTP/AVP" and seen.suites[0] == S80
        assert call.answer(answer_to(seen, S80, ip=other, profile="RTP/AVP")).sdp.audio.suites == [S80]


@compat("legs", "xcipher-ng(7), allow-RTP-answer")
def test_rtp_as_the_answer_to_srtp(relay):
    """Refused if the callee would send RTP where the script requires SRTP; accepted where the
    script permits RTP."""
    call = relay.call()
    call.offer(sdp(audio()), transport_protocol="RTP/SAVP")
    call.answer(sdp(audio(), ip=CALLEE), fails="No usable crypto line in answer")
    reply = call.answer(sdp(audio(), ip=CALLEE), flags=["allow-RTP-answer"])
    assert reply.sdp.audio.profile == "RTP/AVP" and "RTP accepted" in reply.warning
