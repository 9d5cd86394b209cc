# SPDX-License-Identifier: GPL-2.0-or-later
"""Codecs that are transcoded: PCMU and PCMA. The effect of each operation of "codec" on SDP and on
packets."""
import os
import select
import struct

import g711
from compat import WHERE, compat, compat_each
from text import audio, sdp

A, B = WHERE["caller"][0], WHERE["callee"][0]
DOC = "rtpengine's documentation, ng_control_protocol, codec manipulations"
PCMU, PCMA, EVENT = 0, 8, 101
OTHER = {PCMU: PCMA, PCMA: PCMU}
CONVERT = {PCMU: g711.to_alaw, PCMA: g711.to_ulaw}


def formats(reply):
    return " ".join(reply.sdp.audio.formats)


def agreed(call, offer, answer, **keys):
    """The formats in the offer and in the answer, as the terminals get them."""
    told = formats(call.offer(sdp(audio(formats=offer), ip=A), **keys))
    return told, formats(call.answer(sdp(audio(formats=answer), ip=B)))


@compat_each("transcoding", DOC, [
    # transcode: "allows codecs to be added to the list of offered codecs"
    ("0", {"transcode": ["PCMA"]}, "0 8", "8", "0"), ("0", {"transcode": ["PCMA"]}, "0 8", "0 8", "0"),
    ("8 101", {"transcode": ["PCMU"]}, "8 101 0", "0 101", "8 101"),
    # "if all codecs given were present in the original list, then no transcoding will be done"
    ("0 8", {"transcode": ["PCMA"]}, "0 8", "8", "8"),
    # strip: "as if they had never been in the SDP"; mask: "will still be accepted"
    ("0 8", {"strip": ["PCMA"], "transcode": ["PCMA"]}, "0 8", "8", "0"), ("0 8", {"mask": ["PCMA"], "transcode": ["PCMA"]}, "0 8", "8", "8"),
    ("0 18", {"strip": ["G729"], "transcode": ["PCMA"]}, "0 8", "8", "0"), ("0", {"mask": ["PCMU"], "transcode": ["PCMA"]}, "8", "8", "0"),
    # all: "it will simply restore it"; full: "does not apply"
    ("8 0", {"strip": ["all"], "transcode": ["PCMU"]}, "0", "0", "0"), ("0", {"mask": ["full"], "transcode": ["PCMA"]}, "8", "8", "0"),
    # accept: "if the remote peer rejects it, it will still be accepted towards the original offerer"
    ("0 8", {"accept": ["PCMU"]}, "0 8", "8", "8 0"), ("0 8", {"accept": ["PCMU"]}, "0 8", "0", "0"),
    # consume: "identical to mask but enables the transcoding engine"
    ("0 8", {"consume": ["PCMU"]}, "8", "8", "8 0"),
    # ignore: like strip; set: only options
    ("0 8", {"ignore": ["PCMU"], "transcode": ["PCMU"]}, "8 0", "0", "8"), ("0", {"set": ["PCMU/8000/1"]}, "0", "0", "0"),
    # except and offer with transcode
    ("0 8 18", {"strip": ["all"], "except": ["PCMU"], "transcode": ["PCMA"]}, "8 0", "8", "8")])
def test_operations(relay, offer, codec, told, answer, back):
    call = relay.call()
    assert agreed(call, offer, answer, codec=codec) == (told, back)


@compat_each("transcoding", DOC + ": flags and keys", [
    {"flags": ["codec-transcode-PCMA"]}, {"flags": ["codec-transcode=PCMA"]}, {"flags": ["transcode-PCMA"]}, {"rtpp_flags": "transcode=PCMA"},
    {"rtpp_flags": "codec=[transcode=[PCMA]]"}, {"rtpp_flags": "codec-transcode-PCMA/8000/1/64000"}, {"codec": {"transcode": ["pcma/8000"]}}])
def test_spellings(relay, keys):
    assert agreed(relay.call(), "0", "8", **keys) == ("0 8", "0")


@compat_each("transcoding", "xcipher-ng(7), always-transcode, always-transcoding; rtpengine's documentation: always transcode is codec-accept=all", [
    "always-transcode", "always transcode", "always-transcoding"])
def test_always_transcode(relay, flag):
    assert agreed(relay.call(), "0 8 101", "8 101", flags=[flag]) == ("0 8 101", "8 101 0")


ALONE = ("--codec-threads=0",)


@compat_each("transcoding", "xcipher-ng(7) codec: other codecs give a warning", ["transcode", "accept", "consume", "set"], options=ALONE)
def test_without_codec_threads(relay, op):
    reply = relay.call().offer(sdp(audio(formats="0 101")), codec={op: ["opus/48000/2"]})
    assert "only PCMU and PCMA are transcoded" in reply.warning and formats(reply) == "0 101", reply


@compat_each("transcoding", "xcipher-ng(7) codec: a codec that the relay does not have", ["transcode", "accept", "consume", "set"])
def test_unknown_codecs(relay, op):
    reply = relay.call().offer(sdp(audio(formats="0 101")), codec={op: ["EVS/16000"]})
    assert "codec EVS/16000: no such codec here" in reply.warning and formats(reply) == "0 101", reply


@compat("transcoding", "xcipher-ng(7) codec: telephone events that the offerer does not have are not added")
def test_no_telephone_events_of_ours(relay):
    reply = relay.call().offer(sdp(audio(formats="0")), codec={"transcode": ["telephone-event"]})
    assert "telephone-event: not added" in reply.warning and formats(reply) == "0", reply
    reply = relay.call().offer(sdp(audio(formats="0 101")), codec={"transcode": ["telephone-event"]})
    assert not reply.warning and formats(reply) == "0 101", reply


@compat_each("transcoding", "xcipher-ng(7), ptime, ptime-reverse: without codec threads a warning", ["ptime", "ptime_reverse"], options=ALONE)
def test_no_resizing_without_codec_threads(relay, key):
    reply = relay.call().offer(sdp(audio("a=ptime:20")), **{key: 40})
    assert "packets are not resized" in reply.warning and reply.sdp.audio.attr("ptime") == "20", reply


@compat_each("transcoding", "xcipher-ng(7), asymmetric-codecs, allow-asymmetric-codecs", ["asymmetric-codecs", "allow asymmetric codecs"])
def test_asymmetric_codecs(relay, flag):
    call = relay.call()
    call.offer(sdp(audio(formats="0")), codec={"transcode": ["PCMA"]})
    assert formats(call.answer(sdp(audio(formats="0"), ip=B), flags=[flag])) == "0"


@compat("transcoding", "xcipher-ng(7) codec: there must be G.711 to transcode")
def test_nothing_to_transcode(relay):
    reply = relay.call().offer(sdp(audio(formats="18")), codec={"transcode": ["PCMA"]})
    assert "PCMA: not offered" in reply.warning and formats(reply) == "18", reply


@compat_each("transcoding", DOC + ": only processed in offer messages", ["transcode", "mask", "accept", "consume"])
def test_answers(relay, op):
    call = relay.call()
    call.offer(sdp(audio(formats="0 8")))
    assert formats(call.answer(sdp(audio(formats="8 0"), ip=B), codec={op: ["PCMU"]})) == "8 0"


@compat_each("transcoding", "xcipher-ng(7), reuse-codecs, no-codec-renegotiation; rtpengine's documentation", ["reuse-codecs", "no-codec-renegotiation"])
def test_reuse_codecs(relay, flag):
    call = relay.call()
    agreed(call, "0 8", "8")
    assert formats(call.offer(sdp(audio(formats="0 8"), ip=A), flags=[flag])) == "8 0"
    assert formats(call.offer(sdp(audio(formats="0 8"), ip=A))) == "0 8"


@compat("transcoding", "RFC 3264 section 6.1, RFC 8866 section 6.6")
def test_answer_is_described_once(relay):
    call = relay.call()
    call.offer(sdp(audio("a=rtpmap:0 PCMU/8000", "a=ptime:20", formats="0 101")), codec={"transcode": ["PCMA"]})
    told = call.answer(sdp(audio("a=rtpmap:8 PCMA/8000", "a=rtpmap:0 PCMU/8000", "a=ptime:20", formats="8 0 101"), ip=B)).sdp.audio
    assert told.formats == ["0", "101"] and sorted(told.attrs("rtpmap")) == ["0 PCMU/8000", "101 telephone-event/8000"] and told.has("ptime")


# --- Packets --------------------------------------------------------------------------------------


def hear(phone):
    """Payload type, sequence number, timestamp and payload of the next packet."""
    assert select.select([phone.sock], [], [], 30)[0], "no packet"
    packet = phone.sock.recv(2048)
    packet = phone.rx.unprotect(packet) if phone.rx else packet
    assert packet is not None, "a packet is not authentic"
    _, kind, seq, time, _ = struct.unpack("!BBHII", packet[:12])
    return kind & 0x7F, seq, time, packet[12:]


def passes(a, b, kind, becomes=None):
    """A packet of this payload type from a reaches b, converted or as it was."""
    word = bytes(range(256)) if becomes is not None else os.urandom(160)
    a.send(word, kind)
    assert hear(b) == (kind if becomes is None else becomes, a.seq, a.seq * 160, word if becomes is None else CONVERT[kind](word))


def meet(relay, suite_a=None, suite_b=None, **keys):
    """A with PCMU and B with PCMA, and the call."""
    a, b, call = relay.phone("caller", suite_a), relay.phone("callee", suite_b), relay.call()
    keys.setdefault("codec", {"mask": ["PCMU"], "transcode": ["PCMA"]})
    offer = {"transport_protocol": "RTP/SAVP", "SDES": [f"only-{b.suite}"]} if suite_b else {"transport_protocol": "RTP/AVP"}
    b.told(call.offer(a.sdp(formats="0 101"), **{**offer, **keys}).sdp.audio)
    a.told(call.answer(b.sdp(formats="8 101")).sdp.audio)
    return call, a, b


def talk(a, b):
    for _ in range(3):
        passes(a, b, PCMU, PCMA)
        passes(b, a, PCMA, PCMU)
    for kind in (EVENT, 13):  # telephone events and comfort noise
        passes(a, b, kind)
        passes(b, a, kind)


@compat_each("transcoding", "ITU-T G.711 tables 3 and 4; RFC 3551 section 4.5.14", [
    (x, y) for x in (None, "AES_CM_128_HMAC_SHA1_80") for y in (None, "AES_CM_128_HMAC_SHA1_80", "AEAD_AES_128_GCM")])
def test_packets(relay, suite_a, suite_b):
    call, a, b = meet(relay, suite_a, suite_b)
    talk(a, b)
    medias = {tag: t["medias"][0] for tag, t in call.query()["tags"].items()}
    assert medias["a"]["transcoded"] == "PCMU to PCMA" and medias["b"]["transcoded"] == "PCMA to PCMU", medias
    assert all("transcoding" in m["flags"] for m in medias.values())
    assert medias["a"]["codec"] == "PCMU/8000" and medias["b"]["codec"] == "PCMA/8000"


@compat("transcoding", "RFC 3264 section 8")
def test_another_codec_in_mid_call(relay):
    call, a, b = meet(relay)
    talk(a, b)
    assert relay.statistics()["transcoders"] == [{"chain": "PCMU to PCMA", "num": 1}, {"chain": "PCMA to PCMU", "num": 1}]
    assert relay.statistics()["currentstatistics"]["transcodedmedia"] == 2
    # on hold and back, with the same codecs
    for direction in ("sendonly", "sendrecv"):
        call.offer(a.sdp(f"a={direction}", formats="0 101"), codec={"mask": ["PCMU"], "transcode": ["PCMA"]})
        call.answer(b.sdp(formats="8 101"))
    talk(a, b)
    # a re-INVITE of the other party, for which the script gives the opposite
    call.offer(b.sdp(formats="8 101"), by=1, codec={"mask": ["PCMA"], "transcode": ["PCMU"]})
    assert formats(call.answer(a.sdp(formats="0 101"))) == "8 101"
    talk(a, b)
    # both have PCMA now
    call.offer(a.sdp(formats="8 101"))
    call.answer(b.sdp(formats="8 101"))
    passes(a, b, PCMA)
    passes(b, a, PCMA)
    assert relay.statistics()["transcoders"] == []


@compat("transcoding", "xcipher-ng(7), via-branch")
def test_forks(relay):
    """Two branches with different codecs: the caller receives each in its own."""
    a, call = relay.phone("caller"), relay.call()
    for tag, codec in (("b1", PCMA), ("b2", PCMU)):
        b = relay.phone("callee")
        told = call.request("offer", from_tag="a", sdp=a.sdp(formats="0"), via_branch=tag, codec={"transcode": ["PCMA"]}).sdp.audio
        assert told.formats == ["0", "8"]
        b.told(told)
        back = call.request("answer", from_tag="a", to_tag=tag, sdp=b.sdp(formats=str(codec)), via_branch=tag).sdp.audio
        assert back.formats == ["0"]
        a.told(back)
        for _ in range(3):
            passes(b, a, codec, PCMU if codec == PCMA else None)
            passes(a, b, PCMU, PCMA if codec == PCMA else None)


@compat("transcoding", "xcipher-ng(7), subscribe request")
def test_subscribers_get_what_the_terminal_sends(relay):
    call, a, b = meet(relay)
    ear = relay.phone("callee")
    told = call.request("subscribe request", from_tag="a", to_tag="ear").sdp.audio
    assert told.formats == ["0", "101"]
    call.request("subscribe answer", to_tag="ear", sdp=ear.sdp("a=recvonly", formats="0 101"))
    passes(a, b, PCMU, PCMA)
    word = os.urandom(160)
    a.send(word, PCMU)
    assert hear(ear)[0] == PCMU and hear(ear)[3] == word and hear(b)[3] == g711.to_alaw(word)


@compat("transcoding", "xcipher-ng(7), connect")
def test_connected_parties(relay):
    phones, call = {}, relay.call()
    for x, y, codec in (("a", "b", PCMU), ("c", "d", PCMA)):
        dialog = call if x == "a" else relay.call((x, y), call.id)
        phones[x], phones[y] = relay.phone("caller"), relay.phone("callee")
        phones[y].told(dialog.offer(phones[x].sdp(formats=str(codec))).sdp.audio)
        phones[x].told(dialog.answer(phones[y].sdp(formats=str(codec))).sdp.audio)
        passes(phones[x], phones[y], codec)
        passes(phones[y], phones[x], codec)
    call.request("connect", from_tag="a", to_tag="d")
    for _ in range(2):
        passes(phones["a"], phones["d"], PCMU, PCMA)
        passes(phones["d"], phones["a"], PCMA, PCMU)


@compat("transcoding", "xcipher-ng(7), passthrough")
def test_media_that_are_passed_through(relay):
    a = relay.phone("caller", "AES_CM_128_HMAC_SHA1_80")
    reply = relay.call().offer(a.sdp(formats="0"), flags=["passthrough"], codec={"transcode": ["PCMA"]})
    assert formats(reply) == "0" and "passed through" in reply.warning, reply


@compat("transcoding", "xcipherctl(1), explain; xcipherd(8), --cdr-file")
def test_explain(relay):
    call, a, b = meet(relay)
    talk(a, b)
    assert [leg["transcoded"] for leg in call.request("explain")["legs"]] == ["PCMU to PCMA", "PCMA to PCMU"]


@compat("transcoding", "xcipher-ng(7), silence media")
def test_silence(relay):
    call, a, b = meet(relay)
    talk(a, b)
    call.request("silence media", from_tag="a")
    a.send(os.urandom(160), PCMU)
    assert hear(b)[::3] == (PCMA, b"\xd5" * 160)
