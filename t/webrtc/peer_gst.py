#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A WebRTC terminal by GStreamer's webrtcbin: ICE by libnice, DTLS by OpenSSL, SRTP by libsrtp2. --bundle selects its bundle-policy."""
import asyncio
import struct

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstWebRTC", "1.0")
gi.require_version("GstSdp", "1.0")
from gi.repository import Gst, GstSdp, GstWebRTC  # noqa: E402

import peer  # noqa: E402
import tone  # noqa: E402

PIPELINE = ("webrtcbin name=bin latency=0 audiotestsrc is-live=true wave=sine freq={hertz} volume={volume} samplesperbuffer=160 ! "
            "audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay min-ptime=20000000 max-ptime=20000000 ! "
            "application/x-rtp,media=audio,encoding-name=PCMU,clock-rate=8000,payload=0 ! bin.")


class Terminal:
    def __init__(self, args):
        self.args = args
        self.ear, self.losses, self.complaints = tone.Ear(), peer.Losses(), []
        self.out = self.first_in = self.first_out = 0
        self.pipeline = Gst.parse_launch(PIPELINE.format(hertz=args.tone, volume=tone.AMPLITUDE / 32768))
        self.bin = self.pipeline.get_by_name("bin")
        if args.bundle:
            self.bin.set_property("bundle-policy", args.bundle)
        self.bin.connect("pad-added", self.on_media)
        # Kept: GStreamer 1.22 gives away its own reference, and the end of ours would be the agent's.
        self.agent = self.bin.get_property("ice-agent")
        self.agent.emit("add-local-ip-address", args.address)
        self.ready = False
        self.connected = False
        self.bin.connect("on-negotiation-needed", self.on_ready)
        self.bin.connect("notify::connection-state", self.on_state)
        rtp = self.bin.get_by_name("rtpbin")
        rtp.connect("pad-added", self.on_transport)
        for pad in rtp.pads:
            self.on_transport(rtp, pad)
        self.pipeline.set_state(Gst.State.PLAYING)

    def on_ready(self, _):
        """Media have a format; an offer before would be empty."""
        self.ready = True

    def on_state(self, *_):
        """Kept here, because the threads of media must not ask: they could wait for each other."""
        self.connected = self.state("connection-state") == "connected"

    def on_transport(self, _, pad):
        """The session's pads: packets just decrypted, and packets just before their encryption."""
        if pad.name.startswith("recv_rtp_sink"):
            pad.add_probe(Gst.PadProbeType.BUFFER, self.received)
        if pad.name.startswith("send_rtp_src"):
            pad.add_probe(Gst.PadProbeType.BUFFER | Gst.PadProbeType.BUFFER_LIST, self.sent)

    def on_media(self, _, pad):
        """Media that nobody takes would stop the pipeline."""
        if pad.direction == Gst.PadDirection.SRC:
            sink = Gst.ElementFactory.make("fakesink")
            sink.set_property("sync", False)
            sink.set_property("async", False)
            self.pipeline.add(sink)
            sink.sync_state_with_parent()
            pad.link(sink.get_static_pad("sink"))

    def received(self, _, info):
        arrived, packet = peer.now_ns(), info.get_buffer()
        packet = packet.extract_dup(0, packet.get_size())
        if 64 <= packet[1] & 0x7f < 96:
            return Gst.PadProbeReturn.OK  # RTCP of a muxed transport
        self.first_in = self.first_in or arrived
        seq, _, ssrc = struct.unpack("!HII", packet[2:12])
        self.losses.take(ssrc, seq)
        start = 12 + 4 * (packet[0] & 15)
        if packet[0] & 0x10:
            start += 4 + 4 * int.from_bytes(packet[start + 2:start + 4], "big")
        self.ear.hear([tone.LINEAR[b] for b in packet[start:]])
        return Gst.PadProbeReturn.OK

    def sent(self, _, info):
        if self.connected:
            self.out += 1 if info.type & Gst.PadProbeType.BUFFER else info.get_buffer_list().length()
            self.first_out = self.first_out or peer.now_ns()
        return Gst.PadProbeReturn.OK

    def state(self, name):
        return self.bin.get_property(name).value_nick

    def ask(self, signal, *args):
        """The reply of webrtcbin, which it gives from a thread of its own."""
        promise = Gst.Promise.new()
        self.bin.emit(signal, *args, promise)
        promise.wait()
        reply = promise.get_reply()
        if reply and reply.has_field("error"):
            raise ValueError(f"{signal}: {reply.get_value('error').message}")
        # The promise owns the reply, and what is in it.
        return (promise, reply)

    async def local(self, kind):
        made = self.ask(f"create-{kind}", None)
        description = made[1].get_value(kind)
        self.ask("set-local-description", description)
        while self.state("ice-gathering-state") != "complete":
            await asyncio.sleep(0.005)
        sdp = self.bin.get_property("local-description").sdp.as_text()
        return peer.wrong_fingerprint(sdp) if self.args.fault == "fingerprint" else sdp

    def remote(self, kind, sdp):
        code, message = GstSdp.SDPMessage.new_from_text(sdp)
        if code != GstSdp.SDPResult.OK:
            raise ValueError(f"GStreamer does not parse the {kind}: {code}")
        kind = GstWebRTC.WebRTCSDPType.OFFER if kind == "offer" else GstWebRTC.WebRTCSDPType.ANSWER
        self.ask("set-remote-description", GstWebRTC.WebRTCSessionDescription.new(kind, message))

    async def offer(self):
        while not self.ready:
            await asyncio.sleep(0.005)
        return await self.local("offer")

    async def answer(self, sdp):
        self.remote("offer", sdp)
        return await self.local("answer")

    async def accept(self, sdp):
        self.remote("answer", sdp)

    def profile(self):
        """Cipher and authentication of the decrypting element, by GStreamer's names."""
        found = self.bin.iterate_all_by_element_factory_name("dtlsdec")
        code, dec = found.next()
        if code != Gst.IteratorResult.OK:
            return "", "new"
        return "-".join(str(dec.get_property(f"srtp-{p}")) for p in ("cipher", "auth")), dec.get_property("connection-state").value_nick

    def errors(self):
        while message := self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR | Gst.MessageType.WARNING):
            parse = message.parse_error if message.type == Gst.MessageType.ERROR else message.parse_warning
            self.complaints.append(f"{message.src.name}: {parse()[0].message}")
        return self.complaints[-5:]

    async def report(self):
        profile, dtls = self.profile()
        return {"state": self.state("connection-state"), "dtls": dtls, "profile": profile, "packets_in": self.losses.got,
                "packets_out": self.out, "lost": self.losses.lost(), "tones": self.ear.levels(), "blocks": self.ear.heard_blocks(),
                "first_in_ns": self.first_in, "first_out_ns": self.first_out, "log": self.errors()}


async def main():
    Gst.init(None)
    await peer.serve(Terminal(peer.arguments(bundle="")))


asyncio.run(main())
