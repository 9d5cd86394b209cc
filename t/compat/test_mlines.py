# SPDX-License-Identifier: GPL-2.0-or-later
"""m-lines of offer and answer: their number, their profile, and the unusable ones."""
from compat import compat, compat_each
from text import audio, media, sdp, video

B = {"ip": "10.200.2.2"}


@compat_each("m-lines", "RFC 3264 section 6", [1, 2])
def test_missing_m_lines_are_filled_up(relay, offers):
    call = relay.call()
    for n in range(offers):
        call.offer(sdp(audio(), video(formats="96 31"), audio(port=4020, suites=["80"])), to_tag="b" if n else "")
        reply = call.answer(sdp(audio(), **B))
        assert [(m.kind, bool(m.port), m.profile) for m in reply.sdp.media] == [
            ("audio", True, "RTP/AVP"), ("video", False, "RTP/AVP"), ("audio", False, "RTP/SAVP")], reply
        assert reply.sdp.media[1].formats, reply


@compat("m-lines", "RFC 3264 section 6")
def test_all_m_lines_are_rejected_with_an_empty_answer(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    reply = call.answer(sdp(**B))
    assert [(m.kind, m.port) for m in reply.sdp.media] == [("audio", 0)], reply


@compat("m-lines", "RFC 3264 section 6")
def test_surplus_m_lines_go(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    reply = call.answer(sdp(audio(), video(), **B))
    assert [m.kind for m in reply.sdp.media] == ["audio"] and "not offered" in reply.warning, reply


@compat_each("m-lines", "xcipher-ng(7) codec", [
    ({"codec": {"strip": ["PCMU", "PCMA", "telephone-event"]}},), ({"codec": {"mask": ["PCMU", "PCMA", "telephone-event"]}},),
    ({"flags": ["codec-strip-PCMU", "codec-strip-PCMA", "codec-strip-telephone-event"]},),
    ({"codec": {"strip": ["all"], "except": ["VP8"]}},)])
def test_media_that_lose_all_codecs_are_rejected(relay, keys):
    call = relay.call()
    reply = call.offer(sdp(audio(), video()), **keys)
    assert [bool(m.port) for m in reply.sdp.media] == [False, True] and "media 1" in reply.warning, reply
    assert reply.sdp.audio.formats, reply
    back = call.answer(sdp(audio(port=0), video(), **B))
    assert [bool(m.port) for m in back.sdp.media] == [False, True], back
    # The next offer may use them again.
    assert call.offer(sdp(audio(), video()), to_tag="b").sdp.audio.port


@compat("m-lines", "xcipher-ng(7), allow-no-codec-media")
def test_media_that_lose_all_codecs_stay_by_flag(relay):
    reply = relay.call().offer(sdp(audio()), codec={"strip": ["all"]}, flags=["allow-no-codec-media"])
    assert reply.sdp.audio.port and "not stripped" in reply.warning, reply


@compat("m-lines", "RFC 9143 section 7.3.3")
def test_one_m_line_stays_in_a_bundle(relay):
    call = relay.call()
    group = {"session": ["a=group:BUNDLE 0 1", "a=group:LS 0 1"]}
    a, v = audio("a=mid:0"), video("a=mid:1", "a=bundle-only")
    reply = call.offer(sdp(a, v, **group))
    for groups in (["LS 0 1"], ["LS 0 1", "BUNDLE 0"]):
        assert reply.sdp.session.attrs("group") == groups and not reply.sdp.video.has("bundle-only"), reply
        assert [m.attr("mid") for m in reply.sdp.media] == ["0", "1"] and reply.sdp.audio.port != reply.sdp.video.port, reply
        reply = call.answer(sdp(a, v, **group, **B))


MUX = sdp(audio("a=rtcp-mux"))


@compat("m-lines", "xcipher-ng(7) rtcp-mux, via-branch")
def test_demux_of_one_branch_survives_the_offer_of_another(relay):
    call = relay.call()
    assert not call.offer(MUX, via_branch="1", rtcp_mux=["demux"]).sdp.audio.has("rtcp-mux")
    assert call.offer(MUX, via_branch="2").sdp.audio.has("rtcp-mux")
    assert call.answer(sdp(audio(), **B), via_branch="1", to_tag="b1").sdp.audio.has("rtcp-mux")


@compat("m-lines", "xcipher-ng(7) rtcp-mux, via-branch")
def test_demux_of_one_branch_is_not_of_another(relay):
    call = relay.call()
    call.offer(MUX, via_branch="1")
    call.offer(MUX, via_branch="2", rtcp_mux=["demux"])
    assert not call.answer(sdp(audio(), **B), via_branch="1", to_tag="b1").sdp.audio.has("rtcp-mux")


@compat_each("m-lines", "xcipher-ng(7) transport-protocol", [
    # offer, m-lines of the answer, the answerer's m-lines, the offerer's m-lines, warning
    ("RTP/AVP", "", "RTP/AVPF", "RTP/AVP", ""),
    ("RTP/AVP", "accept", "RTP/AVPF", "RTP/AVPF", ""),
    ("RTP/AVP", "RTP/AVPF", "RTP/AVP", "RTP/AVPF", ""),
    ("RTP/AVPF", "RTP/AVP", "RTP/AVP", "RTP/AVP", ""),
    ("RTP/SAVPF", "accept", "RTP/AVP", "RTP/SAVP", ""),
    ("RTP/SAVPF", "RTP/SAVP", "RTP/AVP", "RTP/SAVP", ""),
    ("RTP/AVP", "RTP/SAVP", "RTP/AVP", "RTP/AVP", "transport-protocol"),
    ("RTP/SAVP", "RTP/AVP", "RTP/AVP", "RTP/SAVP", "transport-protocol"),
])
def test_transport_protocol_in_an_answer(relay, offered, word, said, told, warning):
    call = relay.call()
    secure = {"suites": ["80"]} if "SAVP" in offered else {}
    call.offer(sdp(audio(profile=offered, **secure)), transport_protocol="RTP/AVP")
    reply = call.answer(sdp(audio(profile=said), **B), **({"transport_protocol": word} if word else {}))
    assert reply.sdp.audio.profile == told and bool(reply.sdp.audio.crypto) == bool(secure), reply
    assert warning in reply.warning if warning else not reply.warning, reply


@compat("m-lines", "RFC 4585 section 3.1")
def test_feedback_goes_towards_avp_and_stays_towards_avpf(relay):
    offer = sdp(video("a=rtcp-fb:96 nack pli", "a=rtcp-fb:* ccm fir", profile="RTP/AVPF"))
    assert not relay.call().offer(offer, transport_protocol="RTP/AVP").sdp.video.has("rtcp-fb")
    assert len(relay.call().offer(offer).sdp.video.attrs("rtcp-fb")) == 2


@compat("m-lines", "RFC 3264 section 5.1")
def test_media_that_are_not_known_keep_their_place(relay):
    reply = relay.call().offer(sdp(audio(), media("application", 0, "x", profile="UDP/FOO"), video()))
    assert [m.kind for m in reply.sdp.media] == ["audio", "application", "video"], reply


@compat_each("m-lines", "RFC 3264 section 6.1", [
    # the answer's kinds, kinds and ports for the offerer, media named in the warning
    (["video", "audio"], [("audio", False), ("video", False)], ["media 1", "media 2"]),
    (["audio", "audio"], [("audio", True), ("video", False)], ["media 2"]),
    (["AUDIO", "video"], [("audio", True), ("video", True)], []),
])
def test_an_m_line_of_another_kind_is_refused(relay, kinds, told, warned):
    call = relay.call()
    write = {"audio": audio, "AUDIO": lambda port: media("AUDIO", port, "0"), "video": video}
    for to_tag in ("", "b"):
        call.offer(sdp(audio(), video()), to_tag=to_tag)
        reply = call.answer(sdp(*(write[k](port=4100 + 2 * i) for i, k in enumerate(kinds)), **B))
        assert [(m.kind.lower(), bool(m.port)) for m in reply.sdp.media] == told, reply
        assert [w for w in ("media 1", "media 2") if w in reply.warning] == warned, reply
    # The next answer may accept them again.
    call.offer(sdp(audio(), video()), to_tag="b")
    reply = call.answer(sdp(audio(), video(), **B))
    assert all(m.port for m in reply.sdp.media) and not reply.warning, reply
