# SPDX-License-Identifier: GPL-2.0-or-later
"""xcipher-ng(7), DIFFERENCES FROM RTPENGINE: each row, and the way to get rtpengine's behaviour."""
from compat import compat, compat_each, reaches
from text import accept, audio, crypto, sdp, video

B = "10.200.2.2"
WEAK = ["NULL_HMAC_SHA1_80", "NULL_HMAC_SHA1_32"]


def stranger_is_heard(relay, does):
    a, b, stranger = relay.phone("caller"), relay.phone("callee"), relay.phone("callee")
    relay.call().talk(a, b)
    stranger.to = a.to
    return reaches(stranger, b, does=does)


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Strict sources")
def test_strict_sources(relay):
    assert stranger_is_heard(relay, False)


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Strict sources", options=["--strict-source=no"])
def test_other_sources(relay):
    assert stranger_is_heard(relay, True)


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Re-encryption", [False, True])
def test_whose_keys(relay, passthrough):
    a, b = relay.phone("caller", "80"), relay.phone("callee", "80")
    call = relay.call()
    told = call.offer(a.sdp(), flags=["passthrough"] if passthrough else []).sdp.audio
    assert (a.key in [c.key for c in told.crypto]) == passthrough
    b.told(told)
    a.told(call.answer(b.sdp()).sdp.audio)
    assert reaches(a, b)


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Weak suites", WEAK)
def test_weak_suites(relay, suite):
    assert suite not in relay.call().offer(sdp(audio()), transport_protocol="RTP/SAVP").sdp.audio.suites
    relay.call().offer(sdp(audio(suites=[suite])), fails="No common crypto suite")


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Weak suites", WEAK, options=["--sdes-offer=all", "--sdes-accept=all"])
def test_weak_suites_that_are_wanted(relay, suite):
    assert suite in relay.call().offer(sdp(audio(suites=[suite])), transport_protocol="RTP/SAVP").sdp.audio.suites


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Transport of an answer; RFC 3264 section 6.1", [
    ("RTP/AVP", "RTP/SAVP"), ("RTP/AVP", "UDP/TLS/RTP/SAVP"), ("RTP/SAVP", "RTP/AVP")])
def test_transport_of_an_answer(relay, offered, word):
    call = relay.call()
    call.offer(sdp(audio(profile=offered, **({"suites": ["80"]} if "SAVP" in offered else {}))), transport_protocol="RTP/AVP")
    reply = call.answer(sdp(audio(), ip=B), transport_protocol=word)
    assert reply.sdp.audio.profile == offered and "transport-protocol" in reply.warning, reply


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: SRTP without keys; RFC 4568 section 5.1", ["RTP/AVP", "RTP/SAVP"])
def test_srtp_without_keys(relay, transport):
    bare = audio(profile="RTP/SAVP")
    relay.call().offer(sdp(bare), fails="No common crypto suite", transport_protocol=transport)
    call = relay.call()
    call.offer(sdp(audio()), transport_protocol="RTP/SAVP")
    call.answer(sdp(bare, ip=B), fails="No usable crypto line")


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Aliases of parties")
def test_aliases(relay):
    assert "alias-key" in relay.call().offer(sdp(audio()), alias_key="via-branch").warning


@compat_each("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Media addresses", ["127.0.0.1", "224.0.0.1", "::1"])
def test_media_addresses(relay, address):
    relay.call().offer(sdp(audio(), ip=address), fails=True)


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Media addresses", options=["--media-allow=127.0.0.0/8"])
def test_allowed_media_addresses(relay):
    relay.call().offer(sdp(audio(), ip="127.0.0.1"))


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Dialogs")
def test_dialogs(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    call.answer(sdp(audio(), ip=B), sip_code=200)
    stranger = sdp(audio(), ip="10.200.1.66")
    call.request("offer", "Invalid dialogue association", from_tag="a", sdp=stranger)
    call.request("answer", "Invalid dialogue association", from_tag="b", to_tag="x", sdp=stranger)
    assert call.request("delete", from_tag="a", to_tag="x", flags=["to-tag"], delete_delay=0).warning
    call.query()


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Padded keys; RFC 4648 section 3.2")
def test_padded_keys(relay):
    told = relay.call().offer(sdp(audio()), transport_protocol="RTP/SAVP").sdp.audio
    assert any(c.key_text.endswith("=") for c in told.crypto) and all(len(c.key_text) % 4 == 0 for c in told.crypto)


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Bad keys")
def test_bad_keys(relay):
    relay.call().offer(sdp(audio(crypto("80", key=bytes(30)), profile="RTP/SAVP")), fails=True)
    call, key = relay.call(), bytes(range(30))
    told = call.offer(sdp(audio(crypto("80", key=key), profile="RTP/SAVP"))).sdp.audio
    for bad in (key, told.crypto[0].key):
        call.answer(sdp(audio(accept(told, "80", bad), profile="RTP/SAVP"), ip=B), fails=True)
    call.answer(sdp(audio(accept(told, "80"), profile="RTP/SAVP"), ip=B))


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Unknown words")
def test_unknown_words(relay):
    assert "no-such-flag" in relay.call().offer(sdp(audio()), flags=["no-such-flag"]).warning


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Labels of subscriptions")
def test_labels(relay):
    call = relay.call()
    call.offer(sdp(audio("a=label:mine")))
    call.answer(sdp(audio(), ip=B))
    told = call.request("subscribe request", from_tag="a")
    assert told.sdp.audio.attrs("label") == list(told["media-labels"]) != ["mine"]


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Subscriptions that change; RFC 3264 section 8")
def test_a_subscription_changes(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    call.answer(sdp(audio(), ip=B))
    first = call.request("subscribe request", from_tag="a", to_tag="ear").sdp
    then = call.request("subscribe request", from_tag="b", to_tag="ear").sdp
    assert [bool(m.port) for m in first.media] == [True] and [bool(m.port) for m in then.media] == [False, True]


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Loop protection")
def test_loop_protection(relay):
    told = relay.call().offer(sdp(audio()), flags=["loop-protect"]).sdp.session
    assert told.has("xcipher") and not told.has("rtpengine")


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Audio codecs")
def test_audio_codecs(relay):
    relay.request("transform", "transcodes only between parties of a call", call_id="any", from_tag="a")
    assert "no such codec here" in relay.call().offer(sdp(audio()), codec={"transcode": ["EVS"]}).warning


SHA1 = ["a=fingerprint:sha-1 " + ":".join(["AB"] * 20), "a=setup:actpass"]
SHA256 = ["a=fingerprint:sha-256 " + ":".join(["AB"] * 32), "a=setup:actpass"]


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Fingerprints by SHA-1; RFC 8122 section 5")
def test_sha1_is_refused(relay):
    relay.call().offer(sdp(audio(*SHA1, profile="UDP/TLS/RTP/SAVPF")), fails="No usable a=fingerprint", transport_protocol="RTP/AVP")


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Fingerprints by SHA-1", options=["--dtls-sha1=yes"])
def test_sha1_that_is_wanted(relay):
    call = relay.call()
    call.offer(sdp(audio(*SHA1, profile="UDP/TLS/RTP/SAVPF")), transport_protocol="RTP/AVP")
    assert call.answer(sdp(audio(), ip=B)).sdp.audio.has("fingerprint")


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Candidates; RFC 8839 section 4.2.1")
def test_candidates(relay):
    theirs = ["a=ice-ufrag:abcd", "a=ice-pwd:0123456789012345678901", "a=candidate:1 1 UDP 2130706431 10.200.1.2 4000 typ host"]
    told = relay.call().offer(sdp(audio(*theirs)), ICE="force-relay").sdp.audio
    candidates = told.attrs("candidate")
    assert len(candidates) == 4 and all("typ host" in c for c in candidates), candidates  # both families
    assert [told.address in c for c in candidates] == [True, True, False, False], candidates
    assert not any("10.200.1.2" in c for c in candidates), candidates


@compat("differences", "xcipher-ng(7) DIFFERENCES FROM RTPENGINE: Groups with BUNDLE; RFC 9143 section 7.3.3")
def test_bundle(relay):
    media = [m(*SHA256, f"a=mid:{mid}", profile="UDP/TLS/RTP/SAVPF") for m, mid in ((audio, "x"), (video, "y"))]
    call = relay.call()
    call.offer(sdp(*media, session=["a=group:BUNDLE x y"]), transport_protocol="RTP/AVP")
    told = call.answer(sdp(audio(), video(), ip=B)).sdp
    assert told.session.attr("group") == "BUNDLE x" and told.media[0].port != told.media[1].port, told
