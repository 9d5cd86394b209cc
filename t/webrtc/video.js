// SPDX-License-Identifier: GPL-2.0-or-later
// A peer with a microphone (a tone) and the browser's fake camera, on one transport. After page.js; video.py calls it.
"use strict";

window.VideoPeer = class extends Peer {
	constructor(hertz) {
		super(hertz);
		this.pc.close();
		this.pc = new RTCPeerConnection({ iceServers: [], bundlePolicy: "max-bundle" });
		this.pc.ontrack = (e) => e.track.kind === "audio" ? this.sound.hear(e.track, e.receiver) : this.watch(e.track);
	}

	// Decoded for an element that plays it.
	watch(track) {
		this.screen = document.createElement("video");
		this.screen.muted = true;
		this.screen.srcObject = new MediaStream([track]);
		document.body.append(this.screen);
		this.screen.play();
	}

	async add() {
		const camera = await navigator.mediaDevices.getUserMedia({ video: { width: 320, height: 240, frameRate: 20 } });
		this.pc.addTrack(this.stream.getAudioTracks()[0], this.stream);
		this.pc.addTrack(camera.getVideoTracks()[0], camera);
		for (const t of this.pc.getTransceivers()) {
			const all = RTCRtpReceiver.getCapabilities(t.sender.track.kind).codecs;
			t.setCodecPreferences(all.filter((c) => ["audio/PCMU", "video/VP8", "video/rtx"].includes(c.mimeType)));
		}
	}

	async offer() {
		await this.add();
		return this.local(await this.pc.createOffer());
	}

	async answer(sdp) {
		await this.pc.setRemoteDescription({ type: "offer", sdp });
		await this.add();
		return this.local(await this.pc.createAnswer());
	}

	async report() {
		const stats = [...(await this.pc.getStats()).values()];
		const video = (type) => stats.find((s) => s.type === type && s.kind === "video") || {};
		const incoming = video("inbound-rtp"), outgoing = video("outbound-rtp");
		return {
			...await super.report(), frames: incoming.framesDecoded || 0, frames_lost: incoming.framesDropped || 0,
			video_lost: incoming.packetsLost || 0, mid: incoming.mid || "", frames_sent: outgoing.framesSent || 0,
			feedback: [outgoing.pliCount || 0, outgoing.firCount || 0, outgoing.nackCount || 0],
			rtx: [outgoing.retransmittedPacketsSent || 0, incoming.retransmittedPacketsReceived || 0],
			transports: stats.filter((s) => s.type === "transport").length,
		};
	}
};
