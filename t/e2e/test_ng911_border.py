# SPDX-License-Identifier: GPL-2.0-or-later
"""The border of an emergency network, as kamailio-cfg/ng911/esrp.cfg asks xcipherd for it (NENA-STA-010.3 4.1.1). The cases follow the public conformance
suite's TD_BCF_011 and TD_BCF_012: whatever comes from outside, audio, video or real-time text, enters as DTLS-SRTP with AES-256 and in no
other way. TD_BCF_008 (bodies unchanged) is part of test_ng911."""
import base64
import os
import re
import socket

import dtls
import relay
import srtp
from baresip import wait_for
from run import cases

TO_NETWORK = {"DTLS": ["NENA"], "ICE": "remove", "replace": ["origin"], "direction": ["outside", "esinet"], "address_family": "IP4"}
TO_CALLER = {"ICE": "remove", "replace": ["origin"]}
AUDIO, VIDEO, TEXT = ("audio", 0, "PCMU/8000"), ("video", 99, "H264/90000"), ("text", 98, "t140/1000")
V4, V6 = "10.200.1.2", "fd00:1::2"


class Caller(dtls.Plain):
    """Outside. suite: of its SDES-SRTP, or None for RTP in clear."""

    def __init__(self, net, address, media, profile, suite):
        self.media, self.profile, self.suite, self.rx = media, profile, suite, None
        if suite:
            self.key = os.urandom({"AES_CM_128_HMAC_SHA1_80": 30, "AES_256_CM_HMAC_SHA1_80": 46, "AEAD_AES_256_GCM": 44}[suite])
            self.tx = srtp.Session(suite, self.key, srtp.OUTBOUND)
        super().__init__(net, "caller", address)

    def attributes(self):
        return f"a=crypto:1 {self.suite} inline:{base64.b64encode(self.key).decode()}\r\n" if self.suite else ""

    def believe(self, sdp):
        super().believe(sdp)
        if self.suite:
            self.rx = srtp.Session(self.suite, base64.b64decode(re.search(rf"a=crypto:1 {self.suite} inline:(\S+)", sdp)[1]), srtp.INBOUND)

    def protect(self, packet):
        return self.tx.protect(packet) if self.suite else packet

    def hear(self, packet):
        clear = self.rx.unprotect(packet) if self.suite else packet
        if clear:
            super().hear(clear)


class Taker(dtls.Dtls):
    """The terminal inside. It reads the mark (DSCP) of packets."""
    profiles = dtls.AES_256

    def __init__(self, net, media, profile):
        self.media, self.profile = media, profile
        super().__init__(net, "callee", "10.200.2.2")
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)

    def mark(self, speak):
        """The mark of the packet that speak() causes. The packet is consumed."""
        self.ended = True
        self.thread.join()
        speak()
        self.socket.settimeout(60)
        _, notes, _, _ = self.socket.recvmsg(2048, 64)
        return [data[0] for level, kind, data in notes if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)]


def payload_of(media):
    """T.140 is UTF-8 text (RFC 4103)."""
    return "fire at the Käsestraße\u2028".encode() if media is TEXT else os.urandom(160)


@cases((V4, "RTP/AVP", None, AUDIO), (V4, "RTP/AVPF", None, VIDEO), (V4, "RTP/SAVP", "AES_CM_128_HMAC_SHA1_80", TEXT), (V4, "RTP/SAVPF", "AES_256_CM_HMAC_SHA1_80", VIDEO),
       (V6, "RTP/SAVP", "AEAD_AES_256_GCM", AUDIO), (V6, "RTP/AVP", None, TEXT))
def test_what_enters_is_protected(net, address, profile, suite, media):
    border = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", "--tos=184", addresses=("outside/10.200.1.1", "outside/fd00:1::1", "esinet/10.200.2.1")).wait_ready()
    inside = "UDP/TLS/RTP/SAVP" + "F" * profile.endswith("F")
    caller, taker = Caller(net, address, media, profile, suite), Taker(net, media, inside)
    call = dtls.Call(border, caller, taker)
    offered = call.ask("offer", sdp=caller.sdp(), from_tag="a", **TO_NETWORK)
    kind, number, codec = media
    assert re.search(rf"^m={kind} \d+ {inside} {number}\r$", offered, re.M) and f"a=rtpmap:{number} {codec}\r\n" in offered, offered
    assert "a=fingerprint:sha-256" in offered and "a=crypto" not in offered and "c=IN IP4 10.200.2.1" in offered, offered
    taker.believe(offered)
    answered = call.ask("answer", sdp=taker.sdp(), from_tag="a", to_tag="b", **TO_CALLER)
    assert f" {profile} {number}\r\n" in answered and "a=fingerprint" not in answered and ("a=crypto" in answered) == bool(suite), answered
    caller.believe(answered)
    taker.handshake()
    taker.keyed()
    payload = payload_of(media)
    for one, other in ((taker, caller), (caller, taker)):
        before = len(other.heard)

        def spoken(one=one, other=other, before=before):
            one.say(payload)
            return other.heard[before:].count(payload) >= 10
        wait_for("media one way", spoken)
        assert dtls.since(other.heard, payload, before) == {payload}, "media were changed"
    assert taker.bad == 0 and "DTLS handshake completed: AEAD_AES_256_GCM" in border.text(), (taker.bad, border.text())
    assert taker.mark(lambda: caller.say(payload)) == [184]
    call.end()
    caller.close()
    taker.close()
    border.stop()
