# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets between two phones, and the effect of flags and commands on them. t/e2e and t/unit test
packets in detail."""
import os
import struct

from compat import compat, compat_each, reaches
from text import audio, sdp

EVENT, VOICE = 101, 0


def talking(relay, a=None, b=None, **keys):
    phones = relay.phone("caller", a), relay.phone("callee", b)
    return (relay.call().talk(*phones, **keys), *phones)


def passes(a, b, kind=VOICE, does=True):
    word = os.urandom(20)
    a.send(word, kind)
    return (b.receive(30.0 if does else 0.2) == word) == does


@compat_each("media", "RFC 3711, RFC 4568 section 6.2", [(None, None), (None, "80"), ("80", None), ("80", "32"), ("GCM256", "80"), ("GCM", "GCM")])
def test_phones_hear_each_other(relay, a, b):
    talking(relay, a, b)


@compat("media", "RFC 4566 section 5.7; xcipher-ng(7), address-family")
def test_ipv4_to_ipv6(relay):
    b = relay.phone("callee", ipv6=True)
    relay.call().talk(relay.phone("caller"), b, address_family="IP6", direction=["internal", "external"])
    assert b.to[0] == "fd00:2::1"


@compat("media", "RFC 3550 section 5.1")
def test_headers_of_plain_rtp_stay(relay):
    _, a, b = talking(relay)
    packet = struct.pack("!BBHII", 0x80, 0x80, 65535, 0xfffffff0, a.ssrc) + b"x" * 160
    a.sock.sendto(packet, a.to)
    assert b.sock.recv(2048) == packet


@compat("media", "RFC 3550 section 11; RFC 3605")
def test_rtcp_goes_to_the_next_port(relay):
    call, a, b = talking(relay)
    report = struct.pack("!BBHI", 0x80, 201, 1, a.ssrc)
    ears = [relay.phone_rtcp(p) for p in (a, b)]
    for ear, phone in zip(ears, (a, b)):
        ear.sendto(report, (phone.to[0], phone.to[1] + 1))
    assert ears[1].recv(2048) == report


@compat("media", "RFC 5761 section 5")
def test_rtcp_on_the_same_port(relay):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    b.told(call.offer(a.sdp("a=rtcp-mux")).sdp.audio)
    a.told(call.answer(b.sdp("a=rtcp-mux")).sdp.audio)
    assert reaches(a, b) and reaches(b, a)
    report = struct.pack("!BBHI", 0x80, 201, 1, a.ssrc)
    a.sock.sendto(report, a.to)
    assert b.sock.recv(2048) == report


# --- Learned sources ----------------------------------------------------------------------------------------------


@compat("sources", "xcipher-ng(7), strict-source")
def test_a_strangers_packets_are_dropped(relay):
    _, a, b = talking(relay, flags=["strict-source"])
    stranger = relay.phone("callee")
    stranger.to = a.to
    assert reaches(stranger, b, does=False) and reaches(a, b)


@compat("sources", "xcipher-ng(7), asymmetric")
def test_asymmetric(relay):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    b.told(call.offer(a.sdp(), flags=["asymmetric"]).sdp.audio)
    told = call.answer(b.sdp()).sdp.audio
    other = relay.phone("caller")
    other.told(told)
    for _ in range(6):  # followed by now at the latest, but media still go to the address in the SDP
        other.send(b"from another port")
    assert reaches(b, a) and other.receive(0.2) is None


@compat("sources", "xcipher-ng(7), endpoint-learning")
def test_learning_off(relay):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    b.told(call.offer(a.sdp(), **{"endpoint-learning": "off"}).sdp.audio)
    told = call.answer(b.sdp()).sdp.audio
    other = relay.phone("caller").told(told)
    for _ in range(8):
        other.send(b"from another port")
    assert reaches(b, a) and other.receive(0.2) is None


@compat_each("sources", "xcipher-ng(7), endpoint-learning", ["off", "immediate", "delayed", "heuristic"])
def test_words_of_learning(relay, word):
    assert not relay.call().offer(sdp(audio()), endpoint_learning=word).warning
    assert not relay.call().offer(sdp(audio()), flags=[f"endpoint-learning-{word}"]).warning


@compat("sources", "xcipher-ng(7), NAT-wait")
def test_nat_wait(relay):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    b.told(call.offer(a.sdp(), flags=["NAT-wait"]).sdp.audio)
    a.told(call.answer(b.sdp()).sdp.audio)
    assert reaches(b, a, does=False) and reaches(a, b) and reaches(b, a)


@compat("sources", "xcipher-ng(7), pierce-NAT")
def test_pierce_nat(relay):
    a, b = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    call.offer(a.sdp(), flags=["pierce-NAT"])
    call.answer(b.sdp())
    assert a.receive() is not None


@compat("sources", "xcipher-ng(7), media-handover")
def test_media_handover_is_accepted(relay):
    talking(relay, flags=["media-handover"])


# --- Blocked ------------------------------------------------------------------------------------------------------


@compat("block", "xcipher-ng(7), block media, unblock media")
def test_block_media(relay):
    call, a, b = talking(relay)
    call.request("block media")
    assert passes(a, b, does=False) and passes(b, a, does=False) and passes(a, b, EVENT)
    call.request("unblock media")
    assert passes(a, b) and passes(b, a)


@compat_each("block", "xcipher-ng(7), block media, label, from-label, address, from-tag, all", [
    {"from_tag": "a"}, {"label": "caller"}, {"from_label": "caller"}, {"address": "10.200.1.2"}, {"from_tag": "b", "label": "caller"}])
def test_block_one_side(relay, who):
    call, a, b = talking(relay, label="caller")
    call.request("block media", **who)
    assert passes(a, b, does=False) and passes(b, a)
    call.request("unblock media", flags=["all"])
    assert passes(a, b)


@compat("block", "xcipher-ng(7), to-tag, to-label, all")
def test_block_a_flow(relay):
    call, a, b = talking(relay)
    ear = relay.phone("callee")
    offer = call.request("subscribe request", from_tag="a", to_tag="ear", set_label="ear")
    call.request("subscribe answer", to_tag="ear", sdp=ear.sdp(direction="recvonly"))
    ear.told(offer.sdp.audio)
    for keys, heard in (({"to_tag": "ear"}, (True, False)), ({"to_label": "ear"}, (True, False)), ({"all": "offer-answer"}, (False, True)),
                        ({"all": "except-offer-answer"}, (True, False)), ({"all": "flows"}, (False, False))):
        call.request("block media", from_tag="a", **keys)
        word = os.urandom(20)
        a.send(word)
        assert (b.receive(30 if heard[0] else 0.2) == word, ear.receive(30 if heard[1] else 0.2) == word) == heard, keys
        call.request("unblock media", from_tag="a", **keys)
    assert passes(a, b)


@compat("block", "xcipher-ng(7), block DTMF, unblock DTMF; RFC 4733")
def test_block_dtmf(relay):
    call, a, b = talking(relay)
    call.request("block DTMF", from_tag="a")
    assert passes(a, b, EVENT, does=False) and passes(b, a, EVENT) and passes(a, b)
    call.request("unblock DTMF", from_tag="a")
    assert passes(a, b, EVENT)


@compat("block", "xcipher-ng(7), block-DTMF; RFC 4733")
def test_flag_block_dtmf(relay):
    _, a, b = talking(relay, flags=["block-DTMF"])
    assert passes(a, b, EVENT, does=False) and passes(b, a, EVENT)


@compat("block", "xcipher-ng(7), silence media, unsilence media; RFC 3551 section 4.5.14")
def test_silence_media(relay):
    call, a, b = talking(relay)
    assert not call.request("silence media", from_tag="a").warning
    a.send(b"spoken" * 20, VOICE)
    assert b.receive() == b"\xff" * 120
    call.request("unsilence media", from_tag="a")
    assert passes(a, b)


@compat("block", "xcipher-ng(7), drop-traffic")
def test_drop_traffic(relay):
    call, a, b = talking(relay)
    for word, does in (("start", False), ("stop", True)):
        call.offer(a.sdp(), drop_traffic=word)
        call.answer(b.sdp())
        assert passes(a, b, does=does) and passes(b, a, does=does)


@compat("block", "xcipher-ng(7), media-echo")
def test_media_echo(relay):
    call, a, b = talking(relay)
    call.offer(a.sdp(), media_echo="backwards")
    call.answer(b.sdp())
    a.send(b"echo")
    assert a.receive() == b"echo" and b.receive(0.2) is None
    call.offer(a.sdp(), media_echo="blackhole")
    call.answer(b.sdp())
    assert passes(a, b, does=False) and passes(a, a, does=False)


@compat("media", "xcipher-ng(7), TOS; RFC 2474")
def test_tos(relay):
    _, _, b = talking(relay, TOS=184)
    call, a, b = talking(relay, TOS=184)
    b.sock.setsockopt(0, 13, 1)  # IP_RECVTOS
    a.send(b"marked")
    _, more, _, _ = b.sock.recvmsg(2048, 64)
    assert [data[0] for level, kind, data in more if (level, kind) == (0, 1)] == [184]


# --- One way ------------------------------------------------------------------------------------------------------


@compat("publish", "xcipher-ng(7), publish, subscribe request, subscribe answer, unsubscribe")
def test_published_media_is_heard(relay):
    a, ear = relay.phone("caller"), relay.phone("callee")
    call = relay.call()
    told = call.request("publish", from_tag="studio", sdp=a.sdp(direction="sendonly"))
    assert told.sdp.audio.direction == "recvonly" and told["from-tag"] == "studio"
    a.told(told.sdp.audio)
    offer = call.request("subscribe request", from_tag="studio")
    call.request("subscribe answer", to_tag=offer["to-tag"], sdp=ear.sdp(direction="recvonly"))
    assert reaches(a, ear)


@compat("publish", "xcipher-ng(7), publish, media-echo")
def test_published_media_is_echoed(relay):
    a = relay.phone("caller")
    call = relay.call()
    offered = a.sdp() + "a=loopback:rtp-pkt-loopback rtp-media-loopback\r\na=loopback-source\r\n"
    told = call.request("publish", from_tag="test", sdp=offered, media_echo="backwards")
    assert told.sdp.audio.direction == "sendrecv"
    assert "a=loopback:rtp-media-loopback\r\na=loopback-mirror\r\n" in told["sdp"] and "loopback-source" not in told["sdp"]
    a.told(told.sdp.audio)
    a.send(b"echo")
    assert a.receive() == b"echo"
    assert call.request("publish", from_tag="test", sdp=a.sdp(direction="sendonly"), media_echo="backwards").sdp.audio.direction == "recvonly"
    # The tag of the other end is that of a SIP server.
    call.request("delete", from_tag="test", to_tag="server", delete_delay=0)
    a.send(b"gone")
    assert a.receive(0.2) is None


@compat("publish", "xcipher-ng(7), publish")
def test_names_are_made_up(relay):
    told = relay.request("publish", sdp=sdp(audio(direction="sendonly")))
    assert told["call-id"] and told["from-tag"]
    relay.request("delete", call_id=told["call-id"], delete_delay=0)


@compat("subscribe", "xcipher-ng(7), inactive")
def test_an_inactive_subscription(relay):
    call, _, _ = talking(relay)
    assert call.request("subscribe request", from_tag="a", flags=["inactive"]).sdp.audio.direction == "inactive"
    assert relay.call().offer(sdp(audio()), flags=["inactive"]).warning


@compat_each("subscribe", "xcipher-ng(7), rtcp-mirror, mirror-RTCP", ["rtcp-mirror", "mirror-RTCP"])
def test_a_listeners_rtcp_goes_to_the_source(relay, flag):
    call, a, _ = talking(relay)
    ear = relay.phone("callee")
    offer = call.request("subscribe request", from_tag="a", flags=[flag])
    call.request("subscribe answer", to_tag=offer["to-tag"], sdp=ear.sdp(direction="recvonly"))
    ear.told(offer.sdp.audio)
    hears, says = relay.phone_rtcp(a), relay.phone_rtcp(ear)
    report = struct.pack("!BBHI", 0x80, 201, 1, ear.ssrc)
    says.sendto(report, (ear.to[0], offer.sdp.audio.rtcp_port))
    assert hears.recv(2048) == report
