# SPDX-License-Identifier: GPL-2.0-or-later
"""Behaviour of rtpengine that route files rely on: loops, rejected m-lines, opportunistic SRTP,
codecs."""
from compat import compat, compat_each
from text import audio, crypto, sdp

B = "10.200.2.2"
S80 = "AES_CM_128_HMAC_SHA1_80"
LOOP = "xcipher-ng(7), loop-protect"
STAY = "xcipher-ng(7), WHAT A LEG SPEAKS"
OSRTP = "xcipher-ng(7), OSRTP; RFC 8643 section 3.2"
CODEC = "xcipher-ng(7), codec"
MARKED = {"flags": ["loop-protect"]}


# --- Loops --------------------------------------------------------------------------------------------------------


@compat_each("loops", LOOP, [{}, {"via_branch": "z9hG4bK-other"}, {"transport_protocol": "RTP/SAVP"}])
def test_an_offer_comes_back(relay, keys):
    call = relay.call()
    told = call.offer(sdp(audio()), **MARKED)["sdp"]
    assert call.offer(told, **MARKED, **keys)["sdp"] == told
    back = call.answer(sdp(audio(), ip=B), **MARKED)["sdp"]
    assert call.answer(back, **MARKED)["sdp"] == back
    assert call.request("offer", from_tag="a", sdp=told, **MARKED, **keys)["sdp"] == told


@compat("loops", LOOP)
def test_srtp_comes_back(relay):
    call = relay.call()
    told = call.offer(sdp(audio()), transport_protocol="RTP/SAVP", **MARKED)
    assert told.sdp.audio.crypto
    assert call.offer(told["sdp"], transport_protocol="RTP/SAVP", **MARKED)["sdp"] == told["sdp"]


@compat("loops", LOOP)
def test_other_origin_lines_do_not_matter(relay):
    call = relay.call()
    told = call.offer(sdp(audio()), **MARKED)["sdp"].replace("o=- 1 1", "o=- 1 2").replace("s=-", "s=proxy")
    assert call.offer(told, **MARKED)["sdp"] == told


@compat("loops", LOOP)
def test_a_mark_is_of_its_sdp_only(relay):
    """A terminal that copies a received mark must not get its SDP past the relay."""
    mark = "a=xcipher:" + relay.call().offer(sdp(audio()), **MARKED).sdp.session.attr("xcipher")
    for body in (sdp(audio(), session=[mark]), sdp(audio(), session=["a=xcipher:" + "0" * 32])):
        told = relay.call().offer(body, transport_protocol="RTP/SAVP", **MARKED).sdp.audio
        assert told.profile == "RTP/SAVP" and told.address != "10.200.1.2"


@compat("loops", LOOP)
def test_a_mark_is_of_its_call_only(relay):
    """A party of another call that copies a marked SDP is relayed like any other."""
    told = relay.call().offer(sdp(audio()), **MARKED)
    again = relay.call().offer(told["sdp"], **MARKED)
    assert again["sdp"] != told["sdp"] and again.sdp.audio.port != told.sdp.audio.port


@compat_each("loops", LOOP, [("m=audio ", "a=candidate:1 1 udp 1 10.200.1.2 4000 typ host\r\nm=audio "), ("a=sendrecv", "a=fingerprint:sha-1 AB"),
                             ("c=IN IP4 10.200.1.1", "c=IN IP4 10.200.1.2"), ("RTP/AVP 0 8", "RTP/AVP 8 0")])
def test_a_changed_sdp_is_not_passed(relay, old, new):
    told = relay.call().offer(sdp(audio()), **MARKED)["sdp"]
    assert old in told
    changed = told.replace(old, new)
    again = relay.call().request("offer", from_tag="a", sdp=changed, **MARKED)
    assert again["sdp"] != changed and again.sdp.audio.address == "10.200.1.1"


@compat("loops", LOOP)
def test_without_the_flag_or_the_mark_it_is_refused(relay):
    call = relay.call()
    told = call.offer(sdp(audio()), **MARKED)["sdp"]
    call.offer(told, fails="Media address is not allowed")
    bare = "".join(line + "\r\n" for line in told.splitlines() if "xcipher" not in line)
    call.offer(bare, fails="Media address is not allowed", **MARKED)


# --- Rejected m-lines ---------------------------------------------------------------------------------------------


def rejected(profile):
    return sdp(audio(port=0, formats="0", profile=profile), ip=B)


@compat("legs", STAY)
def test_a_callee_that_rejected_all_is_offered_srtp_again(relay):
    call = relay.call()
    call.offer(sdp(audio()), transport_protocol="RTP/SAVP")
    assert call.answer(rejected("RTP/SAVP")).sdp.audio.port == 0
    seen = call.offer(sdp(audio())).sdp.audio
    assert seen.profile == "RTP/SAVP" and S80 in seen.suites


@compat("legs", STAY)
def test_an_srtp_caller_that_was_rejected_is_offered_srtp(relay):
    call = relay.call()
    call.offer(sdp(audio(suites=["80"])), transport_protocol="RTP/AVP")
    call.answer(rejected("RTP/AVP"))
    seen = call.offer(sdp(audio(), ip=B), by=1).sdp.audio
    assert seen.profile == "RTP/SAVP" and S80 in seen.suites


@compat("legs", STAY)
def test_an_rtp_callee_that_rejected_all_is_offered_rtp(relay):
    call = relay.call()
    call.offer(sdp(audio(suites=["80"])), transport_protocol="RTP/AVP")
    call.answer(rejected("RTP/AVP"))
    seen = call.offer(sdp(audio(suites=["80"]))).sdp.audio
    assert seen.profile == "RTP/AVP" and not seen.crypto


@compat("legs", STAY)
def test_an_offer_that_nobody_answered_decides_nothing(relay):
    """A script may try SRTP first, and then RTP."""
    call = relay.call()
    call.offer(sdp(audio()), transport_protocol="RTP/SAVP")
    assert call.offer(sdp(audio())).sdp.audio.profile == "RTP/AVP"


@compat("legs", STAY)
def test_an_order_counts_after_a_rejection(relay):
    call = relay.call()
    call.offer(sdp(audio()), transport_protocol="RTP/SAVP")
    call.answer(rejected("RTP/SAVP"))
    assert call.offer(sdp(audio()), transport_protocol="RTP/AVP").sdp.audio.profile == "RTP/AVP"


# --- Opportunistic SRTP -------------------------------------------------------------------------------------------


def opportunistic(relay, offer, answer):
    call = relay.call()
    seen = call.offer(sdp(audio(suites=["80"], profile="RTP/AVP")), **offer).sdp.audio
    return seen, call.answer(sdp(audio(profile=seen.profile), ip=B), **answer).sdp.audio


@compat_each("OSRTP", OSRTP, ["RTP/AVP", "RTP/AVPF"])
def test_srtp_where_possible(relay, profile):
    seen, told = opportunistic(relay, {"transport_protocol": profile}, {})
    assert seen.profile == profile and not seen.crypto
    assert told.profile == "RTP/AVP" and told.suites == [S80]


@compat_each("OSRTP", OSRTP, [({"OSRTP": ["off"]}, {}), ({}, {"OSRTP": ["off"]}), ({"SDES": ["off"]}, {}), ({}, {"SDES": ["off"]})])
def test_flags_refuse_srtp(relay, offer, answer):
    seen, told = opportunistic(relay, {"transport_protocol": "RTP/AVP", **offer}, answer)
    assert not seen.crypto and not told.crypto


# --- Codecs -------------------------------------------------------------------------------------------------------


def formats(relay, *lines, codec, types, flags=()):
    return relay.call().offer(sdp(audio(*lines, formats=types)), codec=codec, flags=list(flags)).sdp.audio.formats


@compat_each("codecs", CODEC + "; RFC 8866 section 6.6", [("strip", "8"), ("mask", "8"), ("except", "0")])
def test_one_channel(relay, op, left):
    codec = {op: ["PCMU/8000/1"], **({"strip": ["all"]} if op == "except" else {})}
    assert formats(relay, types="0 8", codec=codec) == [left]


@compat("codecs", CODEC + "; RFC 8866 section 6.6")
def test_one_channel_is_offered_first(relay):
    assert formats(relay, types="0 8", codec={"offer": ["PCMA/8000/1"]})[0] == "8"


@compat_each("codecs", CODEC + "; RFC 8866 section 6.6", ["L16/44100", "L16/44100/1", "L16/44100/2"])
def test_channels_count(relay, rule):
    lines = ("a=rtpmap:97 L16/44100/1", "a=rtpmap:98 L16/44100/2")
    assert formats(relay, *lines, types="0 97 98", codec={"strip": [rule]}) == ["0", "97" if rule.endswith("2") else "98"]


@compat_each("codecs", CODEC + "; RFC 4733 section 2.1", [{"strip": ["AMR-WB"]}, {"strip": ["all"], "except": ["PCMU", "telephone-event"]}])
def test_events_without_a_codec_of_their_rate(relay, codec):
    lines = ("a=rtpmap:98 AMR-WB/16000", "a=rtpmap:102 telephone-event/16000", "a=fmtp:102 0-15")
    told = relay.call().offer(sdp(audio(*lines, formats="0 98 101 102")), codec=codec).sdp.audio
    assert told.formats == ["0", "101"] and not any("102" in line for line in told.lines[1:] if "rtcp" not in line), told.lines


@compat("codecs", CODEC + "; RFC 4733 section 2.1")
def test_events_of_a_codec_that_stays(relay):
    lines = ("a=rtpmap:98 AMR-WB/16000", "a=rtpmap:99 AMR-WB/16000", "a=rtpmap:97 speex/16000", "a=rtpmap:102 telephone-event/16000")
    assert formats(relay, *lines, types="0 97 98 101 102", codec={"strip": ["AMR-WB"]}) == ["0", "97", "101", "102"]
    assert formats(relay, *lines, types="0 101 102", codec={"strip": ["G729"]}) == ["0", "101", "102"]
    assert formats(relay, *lines, types="98 102", codec={"strip": ["AMR-WB"]}) == ["102"]


# --- Differences --------------------------------------------------------------------------------------------------


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Opportunistic offers", [({}, [S80]), ({"SDES": ["off"]}, [])])
def test_opportunistic_offers(relay, answer, suites):
    seen, told = opportunistic(relay, {}, answer)
    assert S80 in seen.suites and told.suites == suites


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Spirals")
def test_spirals(relay):
    call = relay.call()
    told = call.offer(sdp(audio()))["sdp"]
    call.offer(told, fails="Media address is not allowed")
    assert call.offer(call.offer(sdp(audio()), **MARKED)["sdp"], **MARKED)["sdp"]


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Answers of another profile", [True, False])
def test_answers_of_another_profile(relay, secure):
    call = relay.call()
    told = call.offer(sdp(audio()), transport_protocol="RTP/SAVP" if secure else "RTP/AVP").sdp.audio
    other = audio() if secure else audio(crypto("80"), profile="RTP/SAVP")
    call.answer(sdp(other, ip=B), fails="No usable crypto line in answer")
    if secure:
        assert "allow-RTP-answer" in call.answer(sdp(other, ip=B), flags=["allow-RTP-answer"]).warning
    else:
        call.answer(sdp(other, ip=B), fails="No usable crypto line in answer", flags=["allow-RTP-answer"])
    assert bool(told.crypto) == secure


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: M-lines without a codec", [False, True])
def test_no_codec_left(relay, keep):
    flags = ["allow-no-codec-media"] if keep else []
    told = relay.call().offer(sdp(audio()), codec={"strip": ["all"]}, flags=flags).sdp.audio
    assert bool(told.port) == keep and (told.formats == ["0", "8", "101"] if keep else True)
