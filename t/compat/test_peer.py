# SPDX-License-Identifier: GPL-2.0-or-later
"""Where route files written for rtpengine count on its behaviour: loops, rejected m-lines, opportunistic SRTP, codecs."""
from compat import compat, compat_each
from text import audio, sdp

B = "10.200.2.2"
LOOP = "xcipher-ng(7), loop-protect"
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
    """A terminal that copies a mark it received must not get its SDP past the relay."""
    mark = "a=xcipher:" + relay.call().offer(sdp(audio()), **MARKED).sdp.session.attr("xcipher")
    for body in (sdp(audio(), session=[mark]), sdp(audio(), session=["a=xcipher:" + "0" * 32])):
        told = relay.call().offer(body, transport_protocol="RTP/SAVP", **MARKED).sdp.audio
        assert told.profile == "RTP/SAVP" and told.address != "10.200.1.2"


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
