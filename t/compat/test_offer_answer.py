# SPDX-License-Identifier: GPL-2.0-or-later
"""Offers and answers: the SDP passed on."""
from compat import compat, compat_each
from text import accept, audio, media, sdp, video

B = "10.200.2.2"


def offered(relay, *medias, session=(), **keys):
    """The SDP for the callee."""
    return relay.call().offer(sdp(*medias or [audio()], session=session), **keys).sdp


# --- RFC 3264 -----------------------------------------------------------------------------------------------------


@compat("offer/answer", "RFC 3264 section 5; xcipher-ng(7), offer, answer, sdp")
def test_addresses_and_ports_are_the_relays(relay):
    call = relay.call()
    offer = call.offer(sdp(audio(), video())).sdp
    answer = call.answer(sdp(audio(), video(), ip=B)).sdp
    for told in (offer, answer):
        assert [m.address for m in told.media] == ["10.200.1.1"] * 2 and told.kinds == ["audio", "video"]
        assert all(30000 <= m.port < 40000 and m.port % 2 == 0 and m.rtcp_port == m.port + 1 for m in told.media)
    assert len({m.port for told in (offer, answer) for m in told.media}) == 4


@compat("offer/answer", "RFC 3264 section 6")
def test_a_refused_media_stays_refused(relay):
    call = relay.call()
    call.offer(sdp(audio(), video()))
    answer = call.answer(sdp(audio(), video(port=0), ip=B)).sdp
    assert [bool(m.port) for m in answer.media] == [True, False]


@compat("offer/answer", "RFC 3264 section 8.2")
def test_a_media_is_removed_and_comes_back(relay):
    call = relay.call()
    call.offer(sdp(audio(), video()))
    call.answer(sdp(audio(), video(), ip=B))
    assert not call.offer(sdp(audio(), video(port=0))).sdp.video.port
    call.answer(sdp(audio(), video(port=0), ip=B))
    assert call.offer(sdp(audio(), video())).sdp.video.port


@compat("offer/answer", "RFC 3264 section 8.1")
def test_a_media_is_added(relay):
    call = relay.call()
    first = call.offer(sdp(audio())).sdp
    call.answer(sdp(audio(), ip=B))
    then = call.offer(sdp(audio(), video())).sdp
    assert then.kinds == ["audio", "video"] and then.audio.port == first.audio.port and then.video.port


@compat("offer/answer", "RFC 3264 section 8")
def test_a_refresh_changes_nothing(relay):
    call = relay.call()
    bodies = [sdp(audio()), sdp(audio(), ip=B)]
    first = call.offer(bodies[0]).sdp, call.answer(bodies[1]).sdp
    for by in (0, 1, 0):
        told = call.offer(bodies[by], by=by).sdp, call.answer(bodies[1 - by]).sdp
        assert [t.text for t in told] == [f.text for f in (first if by == 0 else first[::-1])]


@compat("offer/answer", "RFC 3264 section 5.1")
def test_attributes_pass(relay):
    lines = ["a=ptime:20", "a=maxptime:40", "a=fmtp:101 0-15", "a=x-own:anything", "b=AS:64"]
    told = offered(relay, audio(*lines))
    assert all(line in told.audio.lines for line in lines) and told.audio.formats == ["0", "8", "101"]


@compat("offer/answer", "RFC 3264 section 6; RFC 5888")
def test_an_answer_with_fewer_media_is_accepted(relay):
    call = relay.call()
    call.offer(sdp(audio(), video()))
    assert call.answer(sdp(audio(), ip=B)).sdp.audio.port


# --- Profiles -----------------------------------------------------------------------------------------------------

SECURE = {"RTP/SAVP", "RTP/SAVPF"}


@compat_each("transport", "xcipher-ng(7), transport-protocol; RFC 4585 section 4.2", [
    (a, b) for a in ("RTP/AVP", "RTP/SAVP", "RTP/AVPF", "RTP/SAVPF") for b in ("RTP/AVP", "RTP/SAVP", "RTP/AVPF", "RTP/SAVPF")])
def test_profiles(relay, caller, callee):
    call = relay.call()
    offer = call.offer(sdp(audio(profile=caller, suites=["80"] if caller in SECURE else [])), transport_protocol=callee).sdp.audio
    assert offer.profile == callee and bool(offer.crypto) == (callee in SECURE)
    keys = [accept(offer)] if callee in SECURE else []
    answer = call.answer(sdp(audio(*keys, profile=callee), ip=B)).sdp.audio
    assert answer.profile == caller and bool(answer.crypto) == (caller in SECURE)


DTLS_PROFILES = ["UDP/TLS/RTP/SAVP", "UDP/TLS/RTP/SAVPF"]


@compat_each("transport", "xcipher-ng(7), transport-protocol; RFC 5764 section 8", DTLS_PROFILES)
def test_dtls_profiles(relay, profile):
    told = offered(relay, transport_protocol=profile).audio
    assert told.profile == profile and told.has("fingerprint") and told.attr("setup") == "actpass" and told.crypto
    assert not offered(relay, transport_protocol=profile, SDES=["off"]).audio.crypto


@compat_each("transport", "xcipher-ng(7), transport-protocol; xcipherd(8), keying-threads", DTLS_PROFILES, options=["--keying-threads=0"])
def test_dtls_profiles_become_sdes(relay, profile):
    reply = relay.call().offer(sdp(audio()), transport_protocol=profile)
    assert reply.sdp.audio.profile == profile.removeprefix("UDP/TLS/") and reply.sdp.audio.crypto and "DTLS" in reply.warning


# --- Flags that change SDP ----------------------------------------------------------------------------------------


@compat("replace", "xcipher-ng(7), replace")
def test_replace(relay):
    head = "o=alice 77 5 IN IP4 10.200.1.2"
    for words, want in ((["origin"], "alice 77 5 IN IP4 10.200.1.1"), (["username"], "- 77 5 IN IP4 10.200.1.2"), ([], "alice 77 5 IN IP4 10.200.1.2"),
                        (["origin-full"], "- 77 5 IN IP4 10.200.1.1")):
        told = relay.call().offer(sdp(audio(), head=head), replace=words).sdp
        assert told.session.line("o") == want, told.session.line("o")
    assert relay.call().offer(sdp(audio()).replace("s=-", "s=secret"), replace=["session-name"]).sdp.session.line("s") == "-"
    assert not relay.call().offer(sdp(audio()), replace=["session-connection"]).warning


@compat("replace", "xcipher-ng(7), replace; RFC 3264 section 8")
def test_sdp_version(relay):
    call = relay.call()

    def version(**keys):
        return int(call.offer(sdp(audio(direction=keys.pop("direction", "sendrecv"))), **keys).sdp.session.line("o").split()[2])

    first = version(replace=["SDP-version"])
    assert version(replace=["SDP-version"]) == first
    assert version(replace=["SDP-version"], direction="sendonly") == first + 1
    assert version(replace=["force-increment-sdp-ver"], direction="sendonly") == first + 2


@compat("address", "xcipher-ng(7), media-address")
def test_media_address(relay):
    assert offered(relay, media_address="203.0.113.9").audio.address == "203.0.113.9"
    relay.call().offer(sdp(audio()), media_address="127.0.0.1", fails=True)


@compat_each("address", "xcipher-ng(7), direction, interface, from-interface, to-interface", [
    {"direction": ["internal", "external"]}, {"interface": ["internal", "external"]}, {"from_interface": "internal", "to_interface": "external"}])
def test_interfaces(relay, keys):
    call = relay.call()
    assert call.offer(sdp(audio()), **keys).sdp.audio.address == "10.200.2.1"
    assert call.answer(sdp(audio(), ip=B)).sdp.audio.address == "10.200.1.1"


@compat("address", "xcipher-ng(7), address-family; RFC 4566 section 5.7")
def test_address_family(relay):
    call = relay.call()
    told = call.offer(sdp(audio()), address_family="IP6").sdp.audio
    assert (told.family, told.address) == ("IP6", "fd00:1::1")
    assert call.answer(sdp(audio(), ip="fd00:2::2")).sdp.audio.family == "IP4"


@compat("address", "xcipher-ng(7), trust-address, SIP-source-address, received-from")
def test_source_of_addresses(relay):
    def endpoint(**keys):
        call = relay.call()
        call.offer(sdp(audio()), received_from=["IP4", "10.200.1.77"], **keys)
        call.answer(sdp(audio(), ip=B))
        return call.query()["tags"]["a"]["medias"][0]["streams"][0]["endpoint"]["address"]

    assert endpoint() == endpoint(flags=["trust-address"]) == "10.200.1.2"
    assert endpoint(flags=["SIP-source-address"]) == "10.200.1.77"


@compat("attributes", "xcipher-ng(7), no-rtcp-attribute, full-rtcp-attribute; RFC 3605")
def test_rtcp_attribute(relay):
    port = offered(relay).audio
    assert port.attr("rtcp") == str(port.port + 1)
    assert not offered(relay, flags=["no-rtcp-attribute"]).audio.has("rtcp")
    full = offered(relay, flags=["full-rtcp-attribute"]).audio
    assert full.attr("rtcp") == f"{full.port + 1} IN IP4 10.200.1.1"


@compat("attributes", "xcipher-ng(7), generate-mid; RFC 5888")
def test_generate_mid(relay):
    assert [m.attr("mid") for m in offered(relay, audio(), video("a=mid:own"), flags=["generate-mid"]).media] == ["1", "own"]
    assert not offered(relay).audio.has("mid")


@compat("attributes", "xcipher-ng(7), strip-extmap; RFC 8285")
def test_strip_extmap(relay):
    line = "a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    assert offered(relay, audio(line)).audio.has("extmap")
    assert not offered(relay, audio(line), flags=["strip-extmap"]).audio.has("extmap")


@compat("attributes", "xcipher-ng(7), loop-protect")
def test_loop_protect(relay):
    call = relay.call()
    first = call.offer(sdp(audio()), flags=["loop-protect"])
    assert first.sdp.session.has("xcipher")
    assert call.offer(first["sdp"], flags=["loop-protect"])["sdp"] == first["sdp"]


@compat("attributes", "xcipher-ng(7), sdp-attr")
def test_sdp_attr(relay):
    told = offered(relay, audio("a=ptime:20", "a=x-old:1"), sdp_attr={
        "audio": {"add": ["x-new:1"], "remove": ["ptime:20"], "substitute": [["x-old:1", "x-old:2"]]}, "global": {"add": ["x-all"]}})
    assert told.audio.attr("x-new") == "1" and not told.audio.has("ptime") and told.audio.attr("x-old") == "2" and told.session.has("x-all")
    assert offered(relay, rtpp_flags="sdp-attr-add-audio-fmtp:101..0-15").audio.attr("fmtp") == "101 0-15"


@compat("attributes", "xcipher-ng(7), sdp-media-remove; RFC 3264 section 6")
def test_media_that_is_not_told(relay):
    call = relay.call()
    assert call.offer(sdp(audio(), video()), sdp_media_remove=["video"]).sdp.kinds == ["audio"]
    answer = call.answer(sdp(audio(), ip=B)).sdp
    assert answer.kinds == ["audio", "video"] and not answer.video.port


# --- Codecs -------------------------------------------------------------------------------------------------------


@compat_each("codecs", "xcipher-ng(7), codec", [
    ({"strip": ["PCMA"]}, "0 18 101"), ({"mask": ["PCMA"]}, "0 18 101"), ({"strip": ["all"], "offer": ["PCMA"]}, "8"),
    ({"strip": ["all"], "except": ["PCMU", "telephone-event"]}, "0 101"), ({"strip": ["PCMA", "G729"]}, "0 101")])
def test_codecs(relay, codec, formats):
    told = offered(relay, audio(formats="0 8 18 101"), codec=codec).audio
    assert told.formats == formats.split()
    assert {line.split()[0] for line in told.attrs("rtpmap")} <= set(told.formats)


@compat("codecs", "xcipher-ng(7), codec")
def test_codec_words(relay):
    for words in ("codec-strip-PCMA", "codec-strip=PCMA", "codec-mask-PCMA"):
        assert "8" not in offered(relay, rtpp_flags=words).audio.formats, words
    assert relay.call().offer(sdp(audio()), codec={"transcode": ["G729"]}).warning


@compat("codecs", "xcipher-ng(7), single-codec")
def test_single_codec(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    assert call.answer(sdp(audio(), ip=B), flags=["single-codec"]).sdp.audio.formats == ["0", "101"]


# --- ICE and DTLS-SRTP --------------------------------------------------------------------------------------------

THEIR_ICE = ["a=ice-ufrag:abcd", "a=ice-pwd:0123456789012345678901", "a=candidate:1 1 UDP 2130706431 10.200.1.2 4000 typ host"]
DTLS = ["a=fingerprint:sha-256 " + ":".join(["AB"] * 32), "a=setup:actpass"]


def offers_ice(told):
    """The relay's own attributes: the terminal's are never passed on."""
    assert "abcd" not in told.lines and not any("10.200.1.2 4000" in line for line in told.lines)
    assert bool(told.attrs("candidate")) == told.has("ice-ufrag") == told.has("ice-pwd")
    return told.has("ice-ufrag")


@compat_each("ICE", "xcipher-ng(7), ICE; RFC 8839 section 4.2.1", [
    ("remove", False, False), ("default", False, True), ("optional", False, True), ("force", True, True), ("force-relay", True, True)])
def test_ice_of_an_offer(relay, ice, without, with_theirs):
    assert offers_ice(offered(relay, ICE=ice).audio) == without
    assert offers_ice(offered(relay, audio(*THEIR_ICE), ICE=ice).audio) == with_theirs


@compat_each("ICE", "xcipher-ng(7), ICE, reject-ICE; RFC 8839 section 4.2.2", [
    ({}, True), ({"ICE": "remove"}, False), ({"flags": ["reject-ICE"]}, False), ({"ICE": "force"}, True)])
def test_ice_of_an_answer(relay, keys, expected):
    call = relay.call()
    call.offer(sdp(audio(*THEIR_ICE)), ICE="remove")
    assert offers_ice(call.answer(sdp(audio(), ip=B), **keys).sdp.audio) == expected
    call = relay.call()
    call.offer(sdp(audio()))
    assert not offers_ice(call.answer(sdp(audio(), ip=B), **keys).sdp.audio)


HOST = "a=candidate:1 1 UDP 2130706431 %s 4000 typ host"
NAMED = "a=candidate:2 1 UDP 2130706430 0f0e0d0c.local 4002 typ host"


@compat_each("ICE", "xcipher-ng(7), ICE; RFC 8839 section 4.2.5", [
    ("10.200.1.2", 4000, [HOST % "10.200.1.2"], False), ("10.200.1.2", 4000, [HOST % "10.200.1.3"], True), ("10.200.1.2", 4002, [HOST % "10.200.1.2"], True),
    ("10.200.1.2", 4000, [HOST % "10.200.1.2", HOST % "10.200.1.3"], False),
    # The address may belong to a candidate with a name, or is not known yet.
    ("10.200.1.2", 4002, [HOST % "10.200.1.3", NAMED], False), ("10.200.1.2", 4002, [NAMED], False), ("10.200.1.2", 4000, [], False),
    ("0.0.0.0", 9, [HOST % "10.200.1.3"], False), ("10.200.1.2", 9, [HOST % "10.200.1.3"], False), ("0.0.0.0", 4000, [HOST % "10.200.1.3"], False)])
def test_an_offer_that_was_changed_on_its_way(relay, address, port, candidates, mismatch):
    call = relay.call()
    offer = sdp(audio(*THEIR_ICE[:2], *candidates, port=port), ip=address)
    told = call.offer(offer).sdp.audio
    assert offers_ice(told) != mismatch, told
    assert not told.has("ice-mismatch")
    answer = call.answer(sdp(audio("a=ice-mismatch"), ip=B)).sdp.audio
    assert (offers_ice(answer), answer.has("ice-mismatch")) == (not mismatch, mismatch), answer


@compat_each("ICE", "xcipher-ng(7), ICE; RFC 8835 section 3.4", ["UDP/TLS/RTP/SAVP", "UDP/TLS/RTP/SAVPF", "RTP/SAVPF", "RTP/AVP"])
def test_a_browser_keeps_ice_whoever_changed_its_offer(relay, profile):
    call = relay.call()
    call.offer(sdp(audio(*THEIR_ICE[:2], HOST % "10.200.1.3", *DTLS, port=4000, profile=profile), ip="10.200.1.2"), transport_protocol="RTP/AVP")
    answer = call.answer(sdp(audio(), ip=B)).sdp.audio
    assert offers_ice(answer) and not answer.has("ice-mismatch"), answer


@compat_each("ICE", "xcipher-ng(7), ICE, reject-ICE; RFC 8839 section 4.2.5", [({"ICE": "remove"},), ({"flags": ["reject-ICE"]},)])
def test_no_mismatch_is_told_without_ice(relay, keys):
    call = relay.call()
    call.offer(sdp(audio(*THEIR_ICE[:2], HOST % "10.200.1.3", port=4000), ip="10.200.1.2"))
    assert not call.answer(sdp(audio(), ip=B), **keys).sdp.audio.has("ice-mismatch")


@compat_each("ICE", "xcipher-ng(7), ICE-lite; RFC 8839 section 5.3", [
    ("off", False, False), ("forward", True, False), ("backward", False, True), ("both", True, True)])
def test_ice_lite(relay, lite, in_offer, in_answer):
    call = relay.call()
    assert call.offer(sdp(audio(*THEIR_ICE)), **{"ICE-lite": lite}).sdp.session.has("ice-lite") == in_offer
    assert call.answer(sdp(audio(), ip=B)).sdp.session.has("ice-lite") == in_answer


@compat("ICE", "xcipher-ng(7), trickle-ICE; RFC 8840 section 8")
def test_all_candidates_are_in_the_sdp(relay):
    assert offered(relay, audio(*THEIR_ICE), flags=["trickle-ICE"]).audio.has("end-of-candidates")


@compat_each("ICE", "xcipher-ng(7), trickle-ICE; RFC 8840 section 5", [({}, False), ({"flags": ["trickle-ICE"]}, True), ({"ICE": ["trickle"]}, True)])
def test_the_sdp_says_that_fragments_are_taken(relay, keys, expected):
    call = relay.call()
    for description in (call.offer(sdp(audio(*THEIR_ICE)), **keys).sdp, call.answer(sdp(audio(*THEIR_ICE), ip=B), **keys).sdp):
        assert ("trickle" in description.audio.attr("ice-options").split()) == expected, description


CREDENTIALS = "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"


@compat_each("ICE", "xcipher-ng(7), fragment; RFC 8840 section 9", [
    (CREDENTIALS, "10.200.1.2", ""), (CREDENTIALS, "127.0.0.1", "ignored candidates: 1"),
    (CREDENTIALS.replace("abcd", "efgh"), "10.200.1.2", "ignored candidates: 1"),
    # A stranger saw ufrag in a check, and cannot know the password.
    (CREDENTIALS.replace("8901", "8902"), "10.200.1.2", "ignored candidates: 1"),
    (CREDENTIALS.split("\n")[0] + "\n", "10.200.1.2", "ignored candidates: 1"), ("", "10.200.1.2", "ignored candidates: 1")])
def test_trickled_candidates(relay, credentials, address, warning):
    call = relay.call()
    call.offer(sdp(audio(*THEIR_ICE, "a=mid:7")))
    fragment = f"{credentials}m=audio 9 RTP/AVP 0\r\na=mid:7\r\n" \
        f"a=candidate:2 1 UDP 2130706430 {address} 4002 typ host\r\na=end-of-candidates\r\n"
    reply = call.offer(fragment, flags=["fragment"])
    assert warning in reply.warning and bool(warning) == bool(reply.warning), reply.warning
    assert "sdp" not in reply


FRAGMENT = "a=ice-ufrag:%s\r\na=ice-pwd:0123456789012345678901\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\n" \
    "a=candidate:2 1 UDP 2130706430 10.200.1.2 4002 typ host\r\na=end-of-candidates\r\n"


@compat("ICE", "xcipher-ng(7), fragment; xcipherd(8), keying-threads", options=["--keying-threads=0"])
def test_fragments_are_ignored_without_ice(relay):
    assert "fragment was ignored" in relay.request("offer", call_id="any", from_tag="a", sdp=FRAGMENT % "abcd", flags=["fragment"]).warning


@compat("ICE", "xcipherd(8), keying-threads", options=["--keying-threads=0"])
def test_ice_is_removed_without_keying_threads(relay):
    reply = relay.call().offer(sdp(audio(*THEIR_ICE)), ICE="force")
    assert not offers_ice(reply.sdp.audio) and "ICE is not available" in reply.warning


SHA1 = "a=fingerprint:sha-1 " + ":".join(["AB"] * 20)


def dtls_call(relay, answer=(), setup="actpass", **offer):
    """The SDP for the offerer, after an answer in RTP."""
    call = relay.call()
    call.offer(sdp(audio(DTLS[0], f"a=setup:{setup}", profile="UDP/TLS/RTP/SAVPF")), transport_protocol="RTP/AVP", **offer)
    return call.answer(sdp(audio(), ip=B), **dict(answer)).sdp.audio


@compat_each("DTLS-SRTP", "xcipher-ng(7), DTLS; RFC 5763 section 5", [
    ("actpass", "active", "active"), ("actpass", "passive", "passive"), ("active", "active", "passive"), ("passive", "passive", "active")])
def test_roles(relay, theirs, asked, ours):
    told = dtls_call(relay, setup=theirs, DTLS=asked)
    assert (told.profile, told.attr("setup"), told.crypto) == ("UDP/TLS/RTP/SAVPF", ours, [])
    assert DTLS[0] not in told.lines and told.has("fingerprint")


@compat_each("DTLS-SRTP", "xcipher-ng(7), DTLS-fingerprint; RFC 8122 section 5", [1, 224, 256, 384, 512])
def test_hash_of_our_certificate(relay, bits):
    assert dtls_call(relay, {"DTLS-fingerprint": f"SHA-{bits}"}).attr("fingerprint").startswith(f"sha-{bits} ")


@compat_each("MIKEY", "xcipher-ng(7), MIKEY, MIKEY-peer; RFC 4567 section 3.1", [
    {"MIKEY": "off"}, {"MIKEY": ["require", "psk"], "MIKEY-peer": "sip:bob@example.org"}, {"rtpp_flags": "MIKEY=offer MIKEY-peer=sip:bob@example.org"}])
def test_mikey_without_identities(relay, keys):
    """Nothing is configured: the flags are known, SDES is offered, and no line of MIKEY passes."""
    said = relay.call().offer(sdp(audio("a=key-mgmt:mikey AQAF", suites=["80"])), transport_protocol="RTP/SAVP", **keys)
    assert said.sdp.audio.crypto and not said.sdp.audio.has("key-mgmt") and "unknown" not in said.warning, said.warning


@compat("DTLS-SRTP", "xcipher-ng(7), DTLS: NENA, and SDES; neither of both keyings, or not the one that was offered")
def test_an_answer_without_what_was_offered(relay):
    secure, suites = "UDP/TLS/RTP/SAVP", {"suites": ["80"]}
    for keys, answer in (({}, sdp(audio(profile=secure), ip=B)), ({"SDES": ["off"]}, sdp(audio(profile=secure, **suites), ip=B)),
                         ({"DTLS": "NENA"}, sdp(audio(profile=secure, **suites), ip=B)), ({}, sdp(audio(SHA1, profile=secure, **suites), ip=B))):
        call = relay.call()
        call.offer(sdp(audio()), transport_protocol=secure, **keys)
        call.answer(answer, fails=True)


@compat("DTLS-SRTP", "xcipher-ng(7), no-tls-id; RFC 8842 section 4")
def test_tls_id(relay):
    assert dtls_call(relay).has("tls-id") and not dtls_call(relay, {"flags": ["no-tls-id"]}).has("tls-id")


@compat_each("DTLS-SRTP", "xcipher-ng(7), DTLS", ["off", "no", "disable"])
def test_no_dtls_for_the_callee(relay, word):
    told = offered(relay, audio(*DTLS, profile="UDP/TLS/RTP/SAVPF", suites=["80"]), DTLS=word).audio
    assert told.crypto and not told.has("fingerprint") and not told.has("setup")


@compat_each("DTLS-SRTP", "xcipher-ng(7), transport-protocol, SDES: both keyings in one offer, and the answer decides", [
    ("UDP/TLS/RTP/SAVP", (DTLS[0], "a=setup:active"), (), "DTLS-SRTP"), ("UDP/TLS/RTP/SAVP", (), ("80",), "SDES"),
    ("UDP/TLS/RTP/SAVP", (DTLS[0], "a=setup:active"), ("80",), "DTLS-SRTP")])
def test_sdes_beside_dtls(relay, profile, lines, suites, keying):
    call = relay.call()
    told = call.offer(sdp(audio()), transport_protocol=profile, SDES=["only-AES_CM_128_HMAC_SHA1_80"]).sdp.audio
    assert told.profile == profile and told.has("fingerprint") and told.crypto, told.lines
    call.answer(sdp(audio(*lines, profile=profile, suites=list(suites)), ip=B))
    said = call.query()["tags"]["b"]["medias"][0]
    assert said["keying"].startswith(keying), said


@compat_each("DTLS-SRTP", "RFC 8643 section 3.1: a=fingerprint in RTP/AVP", ["RTP/AVP", "RTP/AVPF"])
def test_fingerprint_in_an_opportunistic_offer(relay, profile):
    """The answer keeps the profile, and has our fingerprint."""
    call = relay.call()
    call.offer(sdp(audio(*DTLS, profile=profile)), transport_protocol="RTP/AVP")
    told = call.answer(sdp(audio(), ip=B)).sdp.audio
    assert told.profile == profile and told.attr("setup") == "active" and DTLS[0] not in told.lines and told.has("fingerprint"), told.lines
    assert call.query()["tags"]["a"]["medias"][0]["keying"].startswith("DTLS-SRTP")


# --- RTCP on one port ---------------------------------------------------------------------------------------------


@compat("rtcp-mux", "xcipher-ng(7), rtcp-mux; RFC 5761")
def test_rtcp_mux(relay):
    def told(*words, offered=True):
        call = relay.call()
        there = call.offer(sdp(audio("a=rtcp-mux") if offered else audio()), rtcp_mux=list(words)).sdp.audio
        back = call.answer(sdp(audio("a=rtcp-mux") if there.has("rtcp-mux") else audio(), ip=B)).sdp.audio
        return there.has("rtcp-mux"), back.has("rtcp-mux")

    assert told() == (True, True)
    assert told("demux") == (False, True)
    assert told("reject") == (True, False)
    assert told("offer", offered=False) == (True, False)
    assert told(offered=False) == (False, False)
    assert relay.call().offer(sdp(audio()), rtcp_mux=["offer", "require"]).sdp.audio.has("rtcp-mux")
    call = relay.call()
    call.offer(sdp(audio("a=rtcp-mux")), rtcp_mux=["accept"])
    assert call.answer(sdp(audio(), ip=B)).sdp.audio.has("rtcp-mux")


@compat_each("rtcp-mux", "RFC 8858 section 4.3: the answer has a=rtcp-mux, and never a=rtcp-mux-only", [
    (["demux"], False), ([], True), (["require"], True)])
def test_an_offerer_that_has_only_one_port(relay, words, muxed):
    call = relay.call()
    there = call.offer(sdp(audio("a=rtcp-mux", "a=rtcp-mux-only")), rtcp_mux=words).sdp.audio
    assert there.has("rtcp-mux") == muxed and there.has("rtcp-mux-only") == ("require" in words), there.lines
    back = call.answer(sdp(audio("a=rtcp-mux") if muxed else audio(), ip=B)).sdp.audio
    assert back.has("rtcp-mux") and not back.has("rtcp-mux-only"), back.lines


# --- Words --------------------------------------------------------------------------------------------------------


@compat("flags", "xcipher-ng(7), flags; rtpengine's rtpp-flags")
def test_words_of_a_script(relay):
    told = offered(relay, rtpp_flags="RTP/SAVP replace-origin ICE=remove SDES-only-AES_CM_128_HMAC_SHA1_80 direction=internal direction=external")
    assert told.audio.profile == "RTP/SAVP" and told.audio.suites == ["AES_CM_128_HMAC_SHA1_80"] and told.audio.address == "10.200.2.1"


CONF = "file:conf=[xcipher]\ntemplates = words\n[words]\nphones = RTP/SAVP SDES-only-AES_CM_128_HMAC_SHA1_32\n"


@compat("flags", "xcipher-ng(7), template, reload; xcipherd(8) --templates", options=[CONF, "--config-file={folder}/conf"])
def test_template(relay):
    for keys in ({"template": "phones"}, {"rtpp_flags": "template=phones"}):
        assert offered(relay, **keys).audio.suites == ["AES_CM_128_HMAC_SHA1_32"]
    assert offered(relay, template="phones", transport_protocol="RTP/AVP").audio.profile == "RTP/AVP"
    assert relay.call().offer(sdp(audio()), template="nobody").warning
    relay.request("reload")


@compat("flags", "xcipher-ng(7), symmetric, port-latching, audio-player, generate-RTCP")
def test_what_is_done_always(relay):
    for keys in ({"flags": ["symmetric", "port-latching"]}, {"audio_player": "off"}, {"generate-RTCP": "off"}):
        assert not relay.call().offer(sdp(audio()), **keys).warning, keys
    for keys in ({"audio_player": "always"}, {"generate-RTCP": "on"}):
        assert relay.call().offer(sdp(audio()), **keys).warning, keys


@compat("flags", "xcipher-ng(7), xmlrpc-callback")
def test_a_callback_without_b2b_url(relay):
    assert relay.call().offer(sdp(audio()), xmlrpc_callback="10.200.1.2").warning


# --- Dialogs ------------------------------------------------------------------------------------------------------


@compat("dialogs", "xcipher-ng(7), via-branch, sip-code: DIALOGS")
def test_a_final_answer_closes_the_fork(relay):
    call = relay.call()
    call.offer(sdp(audio()), via_branch="one", received_from=["IP4", "10.200.1.2"])
    call.answer(sdp(audio(), ip=B), via_branch="one", sip_code=183)
    call.answer(sdp(audio(), ip=B), via_branch="one", to_tag="c", sip_code=200)
    call.request("offer", "Invalid dialogue association", from_tag="a", via_branch="two", received_from=["IP4", "10.200.1.2"], sdp=sdp(audio()))


@compat("dialogs", "xcipher-ng(7), to-tag: DIALOGS")
def test_a_stranger_changes_nothing(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    call.answer(sdp(audio(), ip=B), sip_code=200)
    call.request("offer", "Invalid dialogue association", from_tag="a", to_tag="a", sdp=sdp(audio(), ip="10.200.1.66"))
    call.request("answer", "Invalid dialogue association", from_tag="x", to_tag="y", sdp=sdp(audio(), ip="10.200.1.66"))
    assert call.query()["tags"]["a"]["medias"][0]["streams"][0]["endpoint"]["address"] == "10.200.1.2"


# --- Refused SDP --------------------------------------------------------------------------------------------------


@compat_each("errors", "RFC 4566 section 9; xcipher-ng(7) TEXT", [
    ("nonsense", "hello"), ("empty", "\r\n"), ("cut", "v=0\r\no=- 1 1 IN IP4"), ("port", sdp(audio(port=70000))), ("host", sdp(audio(), ip="host.example")),
    ("control", sdp(audio("a=x:\x01"))), ("loopback", sdp(audio(), ip="127.0.0.1")), ("multicast", sdp(audio(), ip="224.0.0.1"))])
def test_sdp_that_is_refused(relay, _name, body):
    relay.call().offer(body, fails=True)


@compat("errors", "xcipher-ng(7) TEXT")
def test_the_error_names_the_line(relay):
    body = sdp(audio("a=x:\x01"))
    at = body[:body.index("a=x")].count("\n") + 1
    relay.call().offer(body, fails=f"line {at}")


@compat("hold", "xcipher-ng(7) TEXT; RFC 3264 section 8.4")
def test_an_invalid_name_means_hold(relay):
    call = relay.call()
    call.offer(sdp(audio()))
    call.answer(sdp(audio(), ip=B))
    assert call.offer(sdp(audio(), ip="0.0.0.0")).sdp.audio.port
    assert call.offer(sdp(audio()).replace("IP4 10.200.1.2\r\nt=", "IP4 phone.invalid\r\nt=")).sdp.audio.port


@compat("errors", "xcipher-ng(7) TEXT")
def test_what_does_not_act_here_is_removed(relay):
    told = offered(relay, audio("a=key-mgmt:mikey AQAF", "a=zrtp-hash:1.10 ab", "a=tcap:1 RTP/SAVP", "a=pcfg:1 t=1", "a=alt:1 1 : x y 10.0.0.1 5000",
                                "a=source-filter: incl IN IP4 * 10.0.0.1"))
    assert not any(told.audio.has(n) for n in ("key-mgmt", "zrtp-hash", "tcap", "pcfg", "alt", "source-filter")), told.text


@compat("offer/answer", "RFC 4566 section 5.14")
def test_formats_of_any_number(relay):
    told = offered(relay, media("audio", 4000, " ".join(map(str, range(96, 127)))))
    assert told.audio.formats == [str(n) for n in range(96, 127)]
