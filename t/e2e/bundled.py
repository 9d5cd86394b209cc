# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls between a terminal with audio and video on one port (RFC 9143), ICE and DTLS, and a plain terminal with a port for each. Neither
writes MIDs: payload types tell the m-lines apart."""
import os

import dtls
import ice
from baresip import wait_for

LINES = ("audio", 0, "PCMU/8000"), ("video", 96, "VP8/90000")


class Bundled(ice.Keyed):
    """Each m-line has an SSRC of its own. got: received payloads by payload type."""

    def __init__(self, *args):
        self.ssrcs = [int.from_bytes(os.urandom(4), "big") for _ in LINES]
        self.got = {number: [] for _, number, _ in LINES}
        super().__init__(*args)

    def sdp(self):
        head, audio = super().sdp().split("m=audio", 1)
        video = audio.replace(" 0\r\na=rtpmap:0 PCMU/8000", " 96\r\na=rtpmap:96 VP8/90000", 1)
        return f"{head}a=group:BUNDLE 0 1\r\nm=audio{audio}a=mid:0\r\nm=video{video}a=mid:1\r\n"

    def say_as(self, line, payload):
        self.media, self.ssrc = LINES[line], self.ssrcs[line]
        self.say(payload)
        self.media = LINES[0]

    def hear(self, packet):
        super().hear(packet)
        if self.rx and self.heard:
            self.got[packet[1] & 0x7f].append(self.heard[-1])


class Pair:
    """Audio and video of a plain terminal, on a port each."""

    def __init__(self, net, place, address):
        self.line = [dtls.Plain(net, place, address) for _ in LINES]
        for terminal, media in zip(self.line, LINES):
            terminal.media = media

    def sdp(self):
        audio, video = (t.sdp() for t in self.line)
        return audio + video[video.index("m=video"):]

    def believe(self, sdp):
        for terminal in self.line:
            terminal.believe(sdp)

    def close(self):
        for terminal in self.line:
            terminal.close()


VIDEO = LINES[1]


class Twins(Bundled):
    """A camera and a screen, with the same payload type. SDP names their SSRCs (RFC 9143 9.2)."""

    def sdp(self):
        head, first, second = super().sdp().split("m=")
        first = first.replace("audio", "video", 1).replace(" 0\r\na=rtpmap:0 PCMU/8000", " 96\r\na=rtpmap:96 VP8/90000", 1)
        return head + "".join(f"m={m}a=ssrc:{ssrc} cname:c\r\n" for m, ssrc in zip((first, second), self.ssrcs))

    def believe(self, sdp):
        self.media = VIDEO
        super().believe(sdp)

    def say_as(self, line, payload):
        self.ssrc = self.ssrcs[line]
        self.say(payload)


class TwinPair(Pair):
    def __init__(self, *args):
        super().__init__(*args)
        for terminal in self.line:
            terminal.media = VIDEO

    def sdp(self):
        first, second = (t.sdp() for t in self.line)
        return first + second[second.index("m=video"):]

    def believe(self, sdp):
        head, *lines = sdp.split("m=video")
        for terminal, line in zip(self.line, lines):
            terminal.believe(f"{head}m=video{line}")


def hears(bundled, ends):
    """Words on both m-lines, each of which reaches this m-line of all ends, and no other."""
    words = [os.urandom(160) for _ in LINES]
    for i, word in enumerate(words):
        wait_for(f"{LINES[i][0]} is heard", lambda i=i, w=word: bundled.say_as(i, w) or all(w in e.line[i].heard for e in ends))
    assert not any(words[i] in e.line[1 - i].heard for i in range(2) for e in ends)
    return words


class Call(dtls.Call):
    """a: a Pair, b: a Bundled, which offers if offers is true."""
    to_plain = {"transport_protocol": "RTP/AVP", "ICE": "remove", "SDES": ["off"], "replace": ["origin"]}

    def __init__(self, daemon, a, b, offers, **more):
        super().__init__(daemon, a, b, ICE="force", **more)
        self.offers = offers

    def begin(self):
        if not self.offers:
            self.offer(bundle=["offer"])
            assert "a=group:BUNDLE" in self.offered, self.offered
            return self.connect(self.ask("answer", sdp=self.b.sdp(), from_tag="a", to_tag="b"))
        offered = self.ask("offer", sdp=self.b.sdp(), from_tag="b", bundle=["accept"], rtcp_mux=["demux"], **self.to_plain, **self.more_offer())
        self.a.believe(offered)
        answered = self.ask("answer", sdp=self.a.sdp(), from_tag="b", to_tag="a", rtcp_mux=["accept"], replace=["origin"])
        assert "a=group:BUNDLE 0 1" in answered, answered
        self.b.believe(answered)
        return self.connect(offered)

    def more_offer(self):
        """The directions of an offer in the other direction."""
        more = {k: v for k, v in self.more.items() if k != "ICE"}
        return more | ({"direction": more["direction"][::-1]} if "direction" in more else {})

    def connect(self, for_plain):
        """for_plain: the SDP that the plain terminal gets."""
        self.a.believe(for_plain)
        self.b.connect()
        self.b.handshake()
        self.b.keyed()
        return self

    def exchange(self, packets=20):
        """Both m-lines both ways, so many packets of each. Each reaches its own m-line only."""
        for _ in range(packets):
            hears(self.b, [self.a])
        for i, (kind, number, _) in enumerate(LINES):
            word, other = os.urandom(160), LINES[1 - i][1]

            def heard(i=i, word=word, number=number):
                self.a.line[i].say(word)
                return self.b.got[number].count(word) >= packets
            wait_for(f"{kind} is heard by the bundled terminal", heard)
            assert word not in self.b.got[other]
