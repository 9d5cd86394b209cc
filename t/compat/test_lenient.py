# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors in the SDP of deployed phones, and which of them are accepted."""
import re

from compat import compat, compat_each
from text import audio, crypto, sdp, video

BODY = sdp(audio(), video())


@compat_each("lenient SDP", "RFC 8866 section 5, accepted all the same", [
    ("empty line at session level", BODY.replace("t=0 0\r\n", "t=0 0\r\n\r\n")),
    ("empty line between media", BODY.replace("m=video", "\r\nm=video")),
    ("blanks only", BODY.replace("m=video", " \t\r\nm=video")),
    ("empty lines at the end", BODY + "\r\n\r\n"),
    ("NUL", BODY + "\0"),
    ("NUL and line end", BODY + "\0\r\n"),
    ("LF", BODY.replace("\r\n", "\n")),
])
def test_accepted(relay, _, body):
    reply = relay.call().offer(body)
    assert re.findall("^m=(\\w+)", reply["sdp"], re.M) == ["audio", "video"] and "\0" not in reply["sdp"], reply
    lines = reply["sdp"].replace("\r\n", "\n").removesuffix("\n").split("\n")
    assert all(line.strip() for line in lines), reply


@compat_each("lenient SDP", "RFC 3605 section 2.1", ["a=rtcp", "a=rtcp:", "a=rtcp:x", "a=rtcp:70000", "a=rtcp:4001 IN", "a=rtcp:4001 IN IP4"])
def test_malformed_rtcp_counts_as_absent(relay, line):
    reply = relay.call().offer(sdp(audio(line)))
    assert reply.sdp.audio.rtcp_port == reply.sdp.audio.port + 1 and reply["sdp"].count("a=rtcp") == 1, reply


@compat_each("lenient SDP", "RFC 8866 section 9", [
    ("CR only", BODY.replace("\r\n", "\r")),
    ("one CR", BODY.replace("s=-\r\n", "s=-\r")),
    ("LF CR", BODY.replace("\r\n", "\n\r")),
    ("NUL inside", BODY.replace("s=-", "s=\0")),
    ("no type", BODY.replace("s=-", "nonsense")),
])
def test_refused(relay, _, body):
    relay.call().offer(body, fails="Failed to parse SDP")


@compat("lenient SDP", "RFC 4568 section 6.3.7")
def test_a_parameter_with_a_hyphen_is_ignored(relay):
    call = relay.call()
    call.offer(sdp(audio(crypto("80", more="-FOO=1 -BAR"), profile="RTP/SAVP")), transport_protocol="RTP/AVP")
    line = call.answer(sdp(audio(), ip="10.200.2.2")).sdp.audio.crypto[0]
    assert (line.tag, line.rest) == (1, []), line.text


@compat("lenient SDP", "RFC 4568 section 6.3.7")
def test_an_unknown_parameter_excludes_its_line_only(relay):
    call = relay.call()
    call.offer(sdp(audio(crypto("GCM", 1, more="FOO=1"), crypto("80", 2), profile="RTP/SAVP")), transport_protocol="RTP/AVP")
    assert [c.tag for c in call.answer(sdp(audio(), ip="10.200.2.2")).sdp.audio.crypto] == [2]


@compat("lenient SDP", "RFC 4568 section 7.1.2")
def test_media_without_a_usable_crypto_line_are_rejected_and_the_others_stay(relay):
    """Otherwise a video without a common suite would end the call's audio, too."""
    for line in (crypto("80", more="FOO=1"), "a=ptime:20"):
        call = relay.call()
        secure = {"profile": "RTP/SAVP"}
        reply = call.offer(sdp(audio(suites=["80"]), video(line, **secure)))
        assert reply.sdp.audio.port and reply.sdp.audio.crypto and reply.sdp.video.port == 0, reply
        assert "media 2" in reply.warning, reply
        chosen = reply.sdp.audio.crypto[0]
        back = call.answer(sdp(audio(crypto(chosen.suite, chosen.tag), **secure), video(port=0, **secure), ip="10.200.2.2"))
        assert back.sdp.audio.crypto and back.sdp.video.port == 0, back
        # Control: if it is the only media, the call fails.
        relay.call().offer(sdp(video(line, **secure)), fails="No common crypto suite")


@compat_each("lenient SDP", "RFC 6188, names of deployed phones", [
    ("AES_CM_256_HMAC_SHA1_80", "AES_256_CM_HMAC_SHA1_80"), ("AES_CM_256_HMAC_SHA1_32", "AES_256_CM_HMAC_SHA1_32"),
    ("AES_CM_192_HMAC_SHA1_80", "AES_192_CM_HMAC_SHA1_80")])
def test_the_answer_uses_the_name_of_the_offer(relay, old, new):
    for name in (old, new):
        call = relay.call()
        offer = sdp(audio(crypto(new), profile="RTP/SAVP")).replace(new, name)
        for _ in "first", "again":
            call.offer(offer, transport_protocol="RTP/AVP")
            assert call.answer(sdp(audio(), ip="10.200.2.2")).sdp.audio.crypto[0].suite == name
        # Our offers to this phone use its name for the suite.
        back = call.offer(sdp(audio(), ip="10.200.2.2"), by=1, transport_protocol="RTP/SAVP")
        assert name in back.sdp.audio.suites, back


@compat("lenient SDP", "RFC 4585 section 4.2: no blank ends a=rtcp-fb, but pion writes one")
def test_blanks_at_the_end_of_an_attribute_are_removed(relay):
    told = relay.call().offer(sdp(audio("a=rtcp-fb:0 transport-cc ", "a=tool:x\t "), session=("a=info:y ",)), transport_protocol="RTP/SAVPF").sdp
    assert "a=rtcp-fb:0 transport-cc\r\n" in told.text and "a=tool:x\r\n" in told.text, told.text
    assert " \r\n" not in told.text, told.text
