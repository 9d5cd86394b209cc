#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal of plain RTP (--keying=rtp), SDES-SRTP (sdes) or opportunistic SRTP (osrtp: RTP/AVP and a=crypto), with Debian's libsrtp2."""
import asyncio
import base64
import os
import re
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import peer  # noqa: E402
import srtp  # noqa: E402
import tone  # noqa: E402

SUITE = "AES_CM_128_HMAC_SHA1_80"


class Terminal:
    def __init__(self, args):
        self.keying, self.address, self.hertz = args.keying, args.address, args.tone
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        self.rtp, self.rtcp = self.two_sockets(family)
        self.key, self.tag = os.urandom(30), "1"
        self.tx = self.rx = self.to = self.task = None
        self.their_key = ""
        self.ear, self.losses = tone.Ear(), peer.Losses()
        self.out = self.bad = self.first_in = self.first_out = 0
        self.ssrc = int.from_bytes(os.urandom(4), "big")
        self.others = []
        asyncio.get_running_loop().add_reader(self.rtp, self.take)

    def two_sockets(self, family):
        while True:
            a, b = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
            a.bind((self.address, 0))
            try:
                b.bind((self.address, a.getsockname()[1] ^ 1))
            except OSError:
                continue
            pair = sorted((a, b), key=lambda s: s.getsockname()[1])
            for s in pair:
                s.setblocking(False)
            return pair

    def sdp(self):
        family = "IP6" if ":" in self.address else "IP4"
        profile = "RTP/SAVP" if self.keying == "sdes" else "RTP/AVP"
        crypto = "" if self.keying == "rtp" else f"a=crypto:{self.tag} {SUITE} inline:{base64.b64encode(self.key).decode()}\r\n"
        # m-lines other than audio are rejected (RFC 3264 6).
        others = "".join(f"m={kind} 0 {rest}\r\n" for kind, rest in self.others)
        return (f"v=0\r\no=- {self.ssrc} 1 IN {family} {self.address}\r\ns=-\r\nc=IN {family} {self.address}\r\nt=0 0\r\n"
                f"m=audio {self.rtp.getsockname()[1]} {profile} 0\r\na=rtpmap:0 PCMU/8000\r\na=ptime:20\r\na=sendrecv\r\n{crypto}{others}")

    def believe(self, sdp):
        """The destination, and the other terminal's key."""
        m = re.search(r"^c=IN IP[46] (\S+)", sdp, re.M)
        port = int(re.search(r"^m=audio (\d+)", sdp, re.M)[1])
        crypto = re.search(rf"^a=crypto:(\d+) {SUITE} inline:([^|\s]+)", sdp, re.M)
        if self.keying == "sdes" and not crypto:
            raise ValueError("no a=crypto of " + SUITE)
        if crypto and self.keying != "rtp":
            self.tag = crypto[1]  # an answer repeats that of the offer
            if crypto[2] != self.their_key:
                self.rx = srtp.Session(SUITE, base64.b64decode(crypto[2]), srtp.INBOUND)
            self.their_key = crypto[2]
            self.tx = self.tx or srtp.Session(SUITE, self.key, srtp.OUTBOUND)
        self.to = (m[1], port)
        self.others = re.findall(r"^m=((?!audio)\S+) \d+ (.*?)\r?$", sdp, re.M)

    def take(self):
        while True:
            try:
                packet = self.rtp.recv(2048)
            except BlockingIOError:
                return
            arrived = peer.now_ns()
            if len(packet) < 12 or packet[0] >> 6 != 2:
                continue
            clear = self.rx.unprotect(packet) if self.rx else packet
            if not clear:
                self.bad += 1
                continue
            self.first_in = self.first_in or arrived
            seq, _, ssrc = struct.unpack("!HII", clear[2:12])
            self.losses.take(ssrc, seq)
            start = 12 + 4 * (clear[0] & 15)
            if clear[0] & 0x10:
                start += 4 + 4 * int.from_bytes(clear[start + 2:start + 4], "big")
            self.ear.hear([tone.LINEAR[b] for b in clear[start:]])

    async def speak(self):
        loop, frames, number = asyncio.get_running_loop(), tone.frames(self.hertz), 0
        start = loop.time()
        while True:
            packet = struct.pack("!BBHII", 0x80, 0, number & 0xffff, number * tone.FRAME & 0xffffffff, self.ssrc) + next(frames)
            try:
                self.rtp.sendto(self.tx.protect(packet) if self.tx else packet, self.to)
                self.out += 1
                self.first_out = self.first_out or peer.now_ns()
            except OSError:
                pass
            number += 1
            await asyncio.sleep(max(0, start + 0.02 * number - loop.time()))

    def start(self):
        self.task = self.task or asyncio.create_task(self.speak())

    async def offer(self):
        return self.sdp()

    async def answer(self, sdp):
        self.believe(sdp)
        self.start()
        return self.sdp()

    async def accept(self, sdp):
        self.believe(sdp)
        self.start()

    async def report(self):
        return {"state": "connected" if self.losses.got else "new", "profile": SUITE if self.rx else "", "packets_in": self.losses.got,
                "packets_out": self.out, "lost": self.losses.lost(), "tones": self.ear.levels(), "blocks": self.ear.heard_blocks(),
                "first_in_ns": self.first_in, "first_out_ns": self.first_out, "pair": f"{self.rtp.getsockname()} {self.to}",
                "log": [f"{self.bad} packets not authentic"] if self.bad else []}


async def main():
    await peer.serve(Terminal(peer.arguments(keying="sdes")))


asyncio.run(main())
