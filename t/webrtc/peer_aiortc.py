#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A WebRTC terminal by aiortc: full ICE, DTLS-SRTP, rtcp-mux. Host candidates of its address only; several with commas."""
import asyncio
import fractions
import logging
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.environ.get("BUILD_WEBRTC", os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "webrtc")), "python"))

import aioice.ice  # noqa: E402
import aiortc  # noqa: E402
import aiortc.rtcdtlstransport  # noqa: E402
import aiortc.rtcrtpreceiver  # noqa: E402
import av  # noqa: E402

import peer  # noqa: E402
import tone  # noqa: E402


class Tone(aiortc.MediaStreamTrack):
    kind = "audio"

    def __init__(self, hertz):
        super().__init__()
        self.second, self.number, self.start = tone.samples(hertz), 0, None

    async def recv(self):
        at = self.number * tone.FRAME
        self.start = self.start or time.monotonic() - 0.02 * self.number
        await asyncio.sleep(max(0, self.start + 0.02 * self.number - time.monotonic()))
        frame = av.AudioFrame(format="s16", layout="mono", samples=tone.FRAME)
        begin = at % tone.RATE
        frame.planes[0].update(b"".join(s.to_bytes(2, "little", signed=True) for s in self.second[begin:begin + tone.FRAME]))
        frame.sample_rate, frame.pts, frame.time_base = tone.RATE, at, fractions.Fraction(1, tone.RATE)
        self.number += 1
        return frame


class Terminal(logging.Handler):
    def __init__(self, args):
        super().__init__(logging.WARNING)
        self.args, self.complaints = args, []
        logging.getLogger().addHandler(self)
        aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: args.address.split(",")
        self.ear, self.losses = tone.Ear(), peer.Losses()
        self.first_in = self.first_out = self.out = 0
        self.watch_packets()
        self.pc = aiortc.RTCPeerConnection(aiortc.RTCConfiguration(iceServers=[]))
        self.pc.on("track", lambda track: asyncio.ensure_future(self.hear(track)))

    def emit(self, record):
        self.complaints.append(record.getMessage()[:200])

    def watch_packets(self):
        """Packets are seen where aiortc has just decrypted them, ahead of its jitter buffer, and where it sends them."""
        receive, send = aiortc.rtcrtpreceiver.RTCRtpReceiver._handle_rtp_packet, aiortc.rtcdtlstransport.RTCDtlsTransport._send_rtp

        async def received(receiver, packet, arrival_time_ms):
            self.first_in = self.first_in or peer.now_ns()
            self.losses.take(packet.ssrc, packet.sequence_number)
            await receive(receiver, packet, arrival_time_ms)

        async def sent(transport, data):
            await send(transport, data)
            if not 64 <= data[1] & 0x7f < 96:  # RTCP
                self.out += 1
                self.first_out = self.first_out or peer.now_ns()

        aiortc.rtcrtpreceiver.RTCRtpReceiver._handle_rtp_packet = received
        aiortc.rtcdtlstransport.RTCDtlsTransport._send_rtp = sent

    async def hear(self, track):
        resampler = av.AudioResampler(format="s16", layout="mono", rate=tone.RATE)
        while True:
            try:
                frame = await track.recv()
            except aiortc.mediastreams.MediaStreamError:
                return
            for f in resampler.resample(frame):
                self.ear.hear(memoryview(bytes(f.planes[0])[:2 * f.samples]).cast("h"))

    def only_pcmu(self):
        wanted = [c for c in aiortc.RTCRtpSender.getCapabilities("audio").codecs if c.mimeType == "audio/PCMU"]
        for t in self.pc.getTransceivers():
            t.setCodecPreferences(wanted)

    def local(self):
        sdp = self.pc.localDescription.sdp
        return peer.wrong_fingerprint(sdp) if self.args.fault == "fingerprint" else sdp

    async def offer(self):
        self.pc.addTrack(Tone(self.args.tone))
        self.only_pcmu()
        await self.pc.setLocalDescription(await self.pc.createOffer())
        return self.local()

    async def answer(self, sdp):
        await self.pc.setRemoteDescription(aiortc.RTCSessionDescription(sdp, "offer"))
        if not any(s.track for s in self.pc.getSenders()):
            self.pc.addTrack(Tone(self.args.tone))
        self.only_pcmu()
        await self.pc.setLocalDescription(await self.pc.createAnswer())
        return self.local()

    async def accept(self, sdp):
        await self.pc.setRemoteDescription(aiortc.RTCSessionDescription(sdp, "answer"))

    def transport(self):
        """Of DTLS, ICE connection of aioice."""
        t = self.pc.getTransceivers()
        dtls = t[0].receiver.transport if t else None
        return dtls, getattr(dtls.transport, "_connection", None) if dtls else None

    async def report(self):
        dtls, ice = self.transport()
        pair = ice._nominated.get(1) if ice else None
        profile = dtls._ssl.get_selected_srtp_profile() if dtls and dtls._ssl else b""
        return {"state": self.pc.connectionState, "dtls": dtls.state if dtls else "new", "profile": profile.decode(),
                "pair": f"{pair.local_addr} {pair.remote_addr}" if pair else "", "packets_in": self.losses.got, "packets_out": self.out,
                "lost": self.losses.lost(), "tones": self.ear.levels(), "blocks": self.ear.heard_blocks(), "first_in_ns": self.first_in,
                "first_out_ns": self.first_out, "log": self.complaints[-5:]}


async def main():
    await peer.serve(Terminal(peer.arguments()))


asyncio.run(main())
