# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys in SDP (RFC 4568): which suites are offered and answered, and under which conditions."""
from compat import compat, compat_each, reaches
from text import accept, audio, crypto, media, sdp

B = "10.200.2.2"
A80, A32, GCM = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32", "AEAD_AES_128_GCM"
STRONG = ["AEAD_AES_256_GCM", "AEAD_AES_128_GCM", "AES_256_CM_HMAC_SHA1_80", "AES_256_CM_HMAC_SHA1_32", "AES_192_CM_HMAC_SHA1_80",
          "AES_192_CM_HMAC_SHA1_32", A80, A32, "F8_128_HMAC_SHA1_80", "F8_128_HMAC_SHA1_32"]
NULLS = ["NULL_HMAC_SHA1_80", "NULL_HMAC_SHA1_32"]


def to_srtp(relay, body=None, **keys):
    """The audio m-line offered to the callee in SRTP."""
    return relay.call().offer(body or sdp(audio()), transport_protocol="RTP/SAVP", **keys).sdp.audio


# --- Offered suites -----------------------------------------------------------------------------------------------


@compat("suites", "RFC 4568 section 5.1.1; xcipherd(8) --sdes-offer")
def test_every_suite_that_encrypts_is_offered(relay):
    assert to_srtp(relay).suites == STRONG


@compat("suites", "RFC 4568 section 5.1.1, RFC 3711 section 8.2")
def test_tags_and_keys_are_unique(relay):
    told = to_srtp(relay)
    assert len({c.tag for c in told.crypto}) == len({c.key for c in told.crypto}) == len(STRONG)


@compat("suites", "xcipherd(8) --sdes-offer")
def test_the_offerers_suites_come_first(relay):
    assert to_srtp(relay, sdp(audio(suites=["32", "80"]))).suites[:2] == [A32, A80]


@compat_each("suites", "xcipher-ng(7), SDES; RFC 4568, RFC 6188, RFC 7714", STRONG + NULLS)
def test_each_suite_is_offered_and_answered(relay, suite):
    call = relay.call()
    told = call.offer(sdp(audio(suites=["80"])), transport_protocol="RTP/SAVP", SDES=[f"only-{suite}"]).sdp.audio
    assert told.suites == [suite]
    length = len(told.crypto[0].key)
    back = call.answer(sdp(audio(accept(told, key=bytes(range(1, length + 1))), profile="RTP/SAVP"), ip=B)).sdp.audio
    assert back.suites == [A80] and back.crypto[0].tag == 1


@compat_each("SDES", "xcipher-ng(7), SDES", [
    (["only-" + A80], [A80]), (["only-" + A32, "only-" + A80], [A80, A32]), (["only-" + GCM, "no-" + GCM], [GCM]),
    (["order:" + A32 + ";" + A80 + ";", "only-" + A80, "only-" + A32], [A32, A80]),
    (["offerer_pref:" + A32 + ";" + GCM + ";", "only-" + A32, "only-" + GCM], [A32, GCM])])
def test_words_choose_suites(relay, words, suites):
    assert sorted(to_srtp(relay, SDES=words).suites) == sorted(suites)
    if any(":" in w for w in words):
        assert to_srtp(relay, SDES=words).suites == suites


@compat("SDES", "xcipher-ng(7), SDES")
def test_words_about_lines(relay):
    assert A80 not in to_srtp(relay, SDES=["no-" + A80]).suites
    assert to_srtp(relay, sdp(audio(suites=["80"])), SDES=["nonew"]).suites == [A80]
    assert all("|2^" in c.key_text for c in to_srtp(relay, SDES=["lifetime"]).crypto)
    assert not any("|" in c.key_text for c in to_srtp(relay).crypto)
    assert not relay.call().offer(sdp(audio()), SDES=["static", "prefer", "pad"]).warning
    relay.call().offer(sdp(audio()), transport_protocol="RTP/SAVP", SDES=["off"], fails=True)


@compat("SDES", "xcipher-ng(7), pad-crypto; RFC 4648 section 3.2")
def test_keys_are_padded(relay):
    for keys in ({}, {"flags": ["pad-crypto"]}):
        assert all(len(c.key_text) % 4 == 0 for c in to_srtp(relay, **keys).crypto)
    call = relay.call()
    line = crypto("GCM256").rstrip("=")
    call.offer(sdp(audio(line, profile="RTP/SAVP")), transport_protocol="RTP/AVP")
    assert call.answer(sdp(audio(), ip=B)).sdp.audio.suites == ["AEAD_AES_256_GCM"]


@compat("SDES", "xcipher-ng(7), SDES: require")
def test_require(relay):
    words = {"SDES": [f"require:{GCM};"]}
    relay.call().offer(sdp(audio(suites=["GCM", "80"])), **words)
    relay.call().offer(sdp(audio(suites=["80"])), fails=True, **words)
    relay.call().offer(sdp(audio()), fails=True, **words)


@compat_each("SDES", "xcipher-ng(7), SDES; RFC 4568 section 6.3", ["UNENCRYPTED_SRTCP", "UNENCRYPTED_SRTP", "UNAUTHENTICATED_SRTP"])
def test_session_parameters(relay, parameter):
    told = to_srtp(relay, SDES=[parameter, "only-" + A80])
    assert told.crypto[0].rest == [parameter]
    relay.call().offer(sdp(audio(crypto("80", more=parameter), profile="RTP/SAVP")), fails=f"{parameter} is not accepted")


# --- Answered suites ----------------------------------------------------------------------------------------------


@compat("suites", "RFC 4568 section 5.1.2")
def test_the_answer_has_one_line_with_the_offers_tag(relay):
    call = relay.call()
    call.offer(sdp(audio(crypto("32", 7), crypto("80", 3), profile="RTP/SAVP")), transport_protocol="RTP/AVP")
    told = call.answer(sdp(audio(), ip=B)).sdp.audio
    assert len(told.crypto) == 1 and (told.suites[0], told.crypto[0].tag) in ((A80, 3), (A32, 7))


@compat("suites", "RFC 4568 section 5.1.3")
def test_an_answer_must_fit_the_offer(relay):
    call = relay.call()
    told = call.offer(sdp(audio()), transport_protocol="RTP/SAVP", SDES=["only-" + A80]).sdp.audio
    call.answer(sdp(audio(crypto("80", told.crypto[0].tag + 1), profile="RTP/SAVP"), ip=B), fails="No usable crypto line")
    call.answer(sdp(audio(crypto("32", told.crypto[0].tag), profile="RTP/SAVP"), ip=B), fails="No usable crypto line")
    call.answer(sdp(audio(accept(told), profile="RTP/SAVP"), ip=B))


@compat("suites", "RFC 4568 section 7.1.4; RFC 3264 section 8")
def test_keys_stay_in_a_refresh(relay):
    call, body = relay.call(), sdp(audio(suites=["80"]))
    first = call.offer(body, transport_protocol="RTP/SAVP").sdp.audio
    answer = sdp(audio(accept(first), profile="RTP/SAVP"), ip=B)
    back = call.answer(answer).sdp.audio
    again = call.offer(body, transport_protocol="RTP/SAVP").sdp.audio
    assert again.crypto[0].text == first.crypto[0].text and call.answer(answer).sdp.audio.crypto[0].text == back.crypto[0].text


@compat("suites", "RFC 4568 section 6.1")
def test_lifetime_and_mki(relay):
    call = relay.call()
    call.offer(sdp(audio(crypto("80", lifetime="|2^31|1:4"), profile="RTP/SAVP")), transport_protocol="RTP/AVP")
    assert call.answer(sdp(audio(), ip=B)).sdp.audio.suites == [A80]


@compat("suites", "RFC 4568 section 5.1.2; xcipher-ng(7) TEXT")
def test_unusable_lines_are_skipped(relay):
    call = relay.call()
    body = sdp(audio("a=crypto:1 NO_SUCH_SUITE inline:AAAA", crypto("80", 2, bytes(30)), crypto("32", 3), profile="RTP/SAVP"))
    call.offer(body, transport_protocol="RTP/AVP")
    told = call.answer(sdp(audio(), ip=B)).sdp.audio
    assert (told.suites, told.crypto[0].tag) == ([A32], 3)
    relay.call().offer(sdp(audio(crypto("80", 1, bytes(30)), profile="RTP/SAVP")), fails=True)


@compat("suites", "xcipher-ng(7) TEXT")
def test_a_key_of_ours_is_refused(relay):
    call = relay.call()
    told = call.offer(sdp(audio()), transport_protocol="RTP/SAVP").sdp.audio
    echo = accept(told, key=told.crypto[0].key)
    call.answer(sdp(audio(echo, profile="RTP/SAVP"), ip=B), fails=True)


@compat("suites", "xcipherd(8) --sdes-accept")
def test_suites_that_only_authenticate_are_refused(relay):
    relay.call().offer(sdp(audio(crypto("NULL_HMAC_SHA1_80"), profile="RTP/SAVP")), fails=True)


@compat_each("suites", "xcipherd(8) --sdes-accept", [("NULL_HMAC_SHA1_80", ""), ("80", "UNENCRYPTED_SRTCP"), ("80", "UNENCRYPTED_SRTP"),
                                                  ("80", "UNAUTHENTICATED_SRTP")], options=["--sdes-accept=all"])
def test_a_laxer_policy(relay, suite, parameter):
    call = relay.call()
    call.offer(sdp(audio(crypto(suite, more=parameter), profile="RTP/SAVP")), transport_protocol="RTP/AVP")
    told = call.answer(sdp(audio(), ip=B)).sdp.audio
    assert len(told.suites) == 1 and told.crypto[0].rest == parameter.split()


@compat("suites", "xcipherd(8) --sdes-offer, --sdes-accept", options=["--sdes-offer=" + A80, "--sdes-accept=" + A80])
def test_a_stricter_policy(relay):
    assert to_srtp(relay).suites == [A80]
    relay.call().offer(sdp(audio(suites=["32"])), fails=True)


# --- Opportunistic SRTP -------------------------------------------------------------------------------------------


@compat_each("OSRTP", "xcipher-ng(7), OSRTP; RFC 8643 section 3.1", ["offer", "offer-RFC"])
def test_osrtp_is_offered(relay, word):
    call = relay.call()
    told = call.offer(sdp(audio()), OSRTP=[word]).sdp.audio
    assert told.profile == "RTP/AVP" and told.suites == STRONG
    back = call.answer(sdp(audio(accept(told, "80"), profile="RTP/AVP"), ip=B)).sdp.audio
    assert back.profile == "RTP/AVP" and not back.crypto


@compat("OSRTP", "xcipher-ng(7), OSRTP; RFC 8643 section 3.2")
def test_an_answer_without_keys_is_plain(relay):
    call = relay.call()
    call.offer(sdp(audio()), OSRTP=["offer"])
    assert call.answer(sdp(audio(), ip=B)).sdp.audio.port
    a, b = (call.query()["tags"][tag]["medias"][0]["protocol"] for tag in "ab")
    assert a == b == "RTP/AVP"


@compat_each("OSRTP", "xcipher-ng(7), OSRTP; RFC 8643 section 3.2", ["accept", "accept-RFC"])
def test_osrtp_is_accepted(relay, word):
    call = relay.call()
    call.offer(sdp(audio(suites=["80"], profile="RTP/AVP")), transport_protocol="RTP/AVP", OSRTP=[word])
    told = call.answer(sdp(audio(), ip=B)).sdp.audio
    assert told.profile == "RTP/AVP" and told.suites == [A80]


@compat("OSRTP", "xcipher-ng(7), OSRTP: offer-legacy")
def test_the_older_form_is_offered(relay):
    call = relay.call()
    told = call.offer(sdp(audio()), OSRTP=["offer-legacy"]).sdp
    assert [m.profile for m in told.media] == ["RTP/SAVP", "RTP/AVP"] and told.media[0].port == told.media[1].port
    body = sdp(audio(accept(told.media[0], "80"), profile="RTP/SAVP"), audio(port=0), ip=B)
    assert call.answer(body).sdp.kinds == ["audio"]


@compat("OSRTP", "xcipher-ng(7), OSRTP: accept-legacy")
def test_the_older_form_is_accepted(relay):
    call = relay.call()
    body = sdp(audio(suites=["80"]), audio())
    assert call.offer(body, OSRTP=["accept-legacy"], transport_protocol="RTP/AVP").sdp.kinds == ["audio"]
    told = call.answer(sdp(audio(), ip=B)).sdp
    assert [bool(m.port) for m in told.media] == [True, False] and told.media[0].suites == [A80]


# --- Passing through ----------------------------------------------------------------------------------------------


@compat("pass-through", "xcipher-ng(7), passthrough")
def test_lines_pass(relay):
    call = relay.call()
    mine, theirs = crypto("80"), crypto("80")
    told = call.offer(sdp(audio(mine, profile="RTP/SAVP")), flags=["passthrough"]).sdp.audio
    assert f"a=crypto:{told.crypto[0].text}" == mine
    back = call.answer(sdp(audio(theirs, profile="RTP/SAVP"), ip=B)).sdp.audio
    assert f"a=crypto:{back.crypto[0].text}" == theirs


@compat("pass-through", "xcipher-ng(7), recrypt, passthrough")
def test_recrypt_wins(relay):
    for flags in ([], ["recrypt"], ["recrypt", "passthrough"]):
        mine = crypto("80")
        told = relay.call().offer(sdp(audio(mine, profile="RTP/SAVP")), flags=flags).sdp.audio
        assert mine.split("inline:")[1] not in (c.key_text for c in told.crypto), flags
    assert relay.call().offer(sdp(audio()), flags=["passthrough"], transport_protocol="RTP/SAVP").warning


@compat("pass-through", "xcipher-ng(7), passthrough; RFC 3711")
def test_media_pass_under_the_phones_keys(relay):
    a, b = relay.phone("caller", "80"), relay.phone("callee", "80")
    call = relay.call()
    b.told(call.offer(a.sdp(), flags=["passthrough"]).sdp.audio)
    a.told(call.answer(b.sdp()).sdp.audio)
    assert reaches(a, b) and reaches(b, a)


@compat("suites", "RFC 4568 section 5; RFC 3264 section 6")
def test_each_media_has_its_own_keys(relay):
    told = relay.call().offer(sdp(audio(), media("video", 4002, 96)), transport_protocol="RTP/SAVP").sdp
    assert not {c.key for c in told.audio.crypto} & {c.key for c in told.video.crypto}
