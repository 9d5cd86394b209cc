// SPDX-License-Identifier: GPL-2.0-or-later
// What a browser's page does as a peer: plays a tone into a call, measures tones in what it receives. browser.py calls it.
"use strict";

const TONES = [440, 1000];

// Amplitude of this tone in samples -1..1, as of 16-bit samples, with a Hann window.
function level(samples, rate, hertz) {
	const turn = 2 * Math.cos(2 * Math.PI * hertz / rate);
	let s1 = 0, s2 = 0;
	for (let i = 0; i < samples.length; i++) {
		const w = 1 - Math.cos(2 * Math.PI * i / samples.length);
		[s1, s2] = [samples[i] * w + turn * s1 - s2, s1];
	}
	return 32768 * 2 * Math.sqrt(Math.max(s1 * s1 + s2 * s2 - turn * s1 * s2, 0)) / samples.length;
}

class Sound {
	constructor() {
		this.context = new AudioContext();
		this.firstPlayed = 0;
		this.levels = {};
	}

	// A stream with this tone.
	tone(hertz) {
		const o = this.context.createOscillator(), g = this.context.createGain(), out = this.context.createMediaStreamDestination();
		o.frequency.value = hertz;
		g.gain.value = 12000 / 32768;
		o.connect(g).connect(out);
		o.start();
		this.context.resume();
		return out.stream;
	}

	// Measures this track from now on.
	hear(track, receiver) {
		const stream = new MediaStream([track]), analyser = this.context.createAnalyser();
		// Chromium decodes only what an element plays.
		this.element = new Audio();
		this.element.muted = true;
		this.element.srcObject = stream;
		this.element.play();
		analyser.fftSize = 8192;
		this.context.createMediaStreamSource(stream).connect(analyser);
		const samples = new Float32Array(analyser.fftSize);
		setInterval(() => {
			analyser.getFloatTimeDomainData(samples);
			for (const t of TONES)
				this.levels[t] = Math.round(level(samples, this.context.sampleRate, t));
		}, 100);
		const poll = setInterval(() => {
			if (receiver.getSynchronizationSources().length) {
				this.firstPlayed = performance.timeOrigin + performance.now();
				clearInterval(poll);
			}
		}, 4);
	}
}

// The report of peer.py on this connection.
async function report(pc, sound) {
	const stats = [...(await pc.getStats()).values()], of = (type) => stats.find((s) => s.type === type && (s.kind || "audio") === "audio") || {};
	const video = stats.find((s) => s.type === "inbound-rtp" && s.kind === "video") || {};
	const incoming = of("inbound-rtp"), transport = of("transport");
	const pair = stats.find((s) => s.id === transport.selectedCandidatePairId) || {};
	const end = (id) => {
		const c = stats.find((s) => s.id === id) || {};
		return `${c.candidateType} ${c.address}:${c.port}`;
	};
	return {
		state: pc.connectionState, dtls: transport.dtlsState || "new", profile: transport.srtpCipher || "", lost: incoming.packetsLost || 0,
		pair: pair.id ? `${end(pair.localCandidateId)} ${end(pair.remoteCandidateId)}` : "", packets_in: incoming.packetsReceived || 0,
		packets_out: of("outbound-rtp").packetsSent || 0, tones: sound.levels, blocks: Math.floor((incoming.packetsReceived || 0) / 10),
		first_in_ms: sound.firstPlayed, frames: video.framesDecoded || 0, transports: stats.filter((s) => s.type === "transport").length,
		// For a person who looks into a failure
		each: stats.filter((s) => s.type === "inbound-rtp").map((s) => `${s.ssrc}: ${s.packetsReceived}`), transport_in: transport.packetsReceived || 0,
	};
}

// True once media use a pair of the current ICE credentials: during a restart the old pair goes on.
async function ownPair(pc) {
	const stats = [...(await pc.getStats()).values()], of = (id) => stats.find((s) => s.id === id) || {};
	const transport = stats.find((s) => s.type === "transport") || {};
	const own = of(of(transport.selectedCandidatePairId).localCandidateId).usernameFragment;
	return Boolean(own) && pc.currentLocalDescription.sdp.includes(`a=ice-ufrag:${own}\r\n`);
}

// names: "PCMU", or with digits "opus telephone-event".
function onlyCodecs(pc, names) {
	const types = names.split(" ").map((n) => `audio/${n}`);
	for (const t of pc.getTransceivers())
		t.setCodecPreferences(RTCRtpReceiver.getCapabilities("audio").codecs.filter((c) => types.includes(c.mimeType)));
}

class Peer {
	constructor(hertz, codecs = "PCMU") {
		this.codecs = codecs;
		this.sound = new Sound();
		this.stream = this.sound.tone(hertz);
		this.pc = new RTCPeerConnection({ iceServers: [] });
		this.pc.ontrack = (e) => this.sound.hear(e.track, e.receiver);
	}

	async local(description) {
		await this.pc.setLocalDescription(description);
		// One candidate suffices: the host has one address.
		while (this.pc.iceGatheringState !== "complete" && !this.pc.localDescription.sdp.includes("a=candidate:"))
			await new Promise((done) => setTimeout(done, 5));
		return this.pc.localDescription.sdp;
	}

	async offer() {
		this.pc.addTrack(this.stream.getAudioTracks()[0], this.stream);
		onlyCodecs(this.pc, this.codecs);
		return this.local(await this.pc.createOffer());
	}

	// A later offer, with other codecs or another direction.
	async again(codecs, direction) {
		onlyCodecs(this.pc, codecs);
		this.pc.getTransceivers()[0].direction = direction;
		return this.local(await this.pc.createOffer());
	}

	async restart() {
		return this.local(await this.pc.createOffer({ iceRestart: true }));
	}

	async answer(sdp) {
		await this.pc.setRemoteDescription({ type: "offer", sdp });
		if (!this.pc.getSenders().some((s) => s.track))
			this.pc.addTrack(this.stream.getAudioTracks()[0], this.stream);
		onlyCodecs(this.pc, this.codecs);
		return this.local(await this.pc.createAnswer());
	}

	async accept(sdp) {
		await this.pc.setRemoteDescription({ type: "answer", sdp });
	}

	// Digits as a user presses them. Returns when the last has ended.
	press(digits) {
		const sender = this.pc.getSenders()[0].dtmf;
		const ended = new Promise((done) => sender.ontonechange = (e) => e.tone || done(0));
		sender.insertDTMF(digits, 100, 70);
		return ended;
	}

	report() {
		return report(this.pc, this.sound);
	}
}

// A page keeps it, so that a new connection replaces the old one (RFC 5626).
const INSTANCE = "8f1fa16a-1165-4a96-8341-785b1ef24f12";

// A SIP user by JsSIP (jssip.js), for calls in both directions. Registration and calls are told by promises.
class User {
	constructor(server, uri, password, hertz, iceServers = []) {
		this.hertz = hertz;
		this.options = { mediaConstraints: { audio: true, video: false }, pcConfig: { iceServers } };
		this.ua = new JsSIP.UA({
			sockets: [new JsSIP.WebSocketInterface(server)], uri, password, session_timers: false, register: true, register_expires: 120,
			instance_id: INSTANCE,
		});
		this.log = [];
		this.registration = "none";
		this.ua.on("registered", () => this.registration = "registered");
		this.ua.on("registrationFailed", (e) => this.registration = `failed: ${e.cause} ${e.response ? e.response.status_code : ""}`);
		this.ua.on("disconnected", (e) => this.log.push(`disconnected ${e.code} ${e.reason}`));
		this.ua.on("newRTCSession", (e) => this.take(e.session, e.originator));
		this.ua.start();
	}

	take(session, originator) {
		this.session = session;
		if (this.trickling)
			this.trickle(session);
		this.state = "new";
		session.on("confirmed", () => this.state = "confirmed");
		session.on("ended", (e) => this.state = `ended: ${e.cause}`);
		session.on("failed", (e) => this.state = `failed: ${e.cause}`);
		if (originator === "remote") {
			session.on("peerconnection", (e) => this.watch(e.peerconnection));
			const mediaStream = this.stream();
			if (this.video)
				mediaStream.addTrack(this.picture());
			session.answer({ ...this.options, mediaConstraints: { audio: true, video: Boolean(this.video) }, mediaStream });
		}
	}

	// The SDP leaves at once, without candidates. They follow in INFO when the call is set up (RFC 8840).
	trickle(session) {
		const candidates = [];
		this.told = "none";
		session.on("icecandidate", (e) => {
			candidates.push(e.candidate.candidate);
			e.ready();
		});
		session.on("sdp", (e) => {
			if (e.originator === "local")
				e.sdp = e.sdp.replace(/a=(candidate|end-of-candidates).*\r\n/g, "").replace(/m=audio \d+/, "m=audio 9")
					.replace(/c=IN IP4 .*/g, "c=IN IP4 0.0.0.0");
			else
				this.canTrickle = e.sdp.includes("a=ice-options:trickle");
		});
		session.on("newInfo", (e) => {
			e.info.on("succeeded", () => this.told = `done ${candidates.length}`);
			e.info.on("failed", (f) => this.told = `failed: ${f.response.status_code}`);
		});
		session.on("confirmed", () => {
			const sdp = session.connection.localDescription.sdp, line = (name) => sdp.match(new RegExp(`a=${name}:.*\r\n`))[0];
			const body = line("ice-ufrag") + line("ice-pwd") + "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\n" + line("mid") +
				candidates.map((c) => `a=${c}\r\n`).join("") + "a=end-of-candidates\r\n";
			this.told = `sent ${candidates.length}`;
			session.sendInfo("application/trickle-ice-sdpfrag", body,
				{ extraHeaders: ["Info-Package: trickle-ice", "Content-Disposition: Info-Package"] });
		});
	}

	stream() {
		this.sound = new Sound();
		return this.sound.tone(this.hertz);
	}

	watch(pc) {
		this.pc = pc;
		pc.addEventListener("track", (e) => e.track.kind === "audio" ? this.sound.hear(e.track, e.receiver) : this.see(e.track));
	}

	// Decoded for an element that plays it.
	see(track) {
		this.screen = document.createElement("video");
		this.screen.muted = true;
		this.screen.srcObject = new MediaStream([track]);
		document.body.append(this.screen);
		this.screen.play();
	}

	// picture: also with video, of a canvas.
	call(to, picture = false) {
		const mediaStream = this.stream();
		if (picture)
			mediaStream.addTrack(this.picture());
		this.watch(this.ua.call(to, { ...this.options, mediaStream }).connection);
	}

	picture() {
		const canvas = document.createElement("canvas"), draw = canvas.getContext("2d");
		setInterval(() => { draw.fillStyle = `hsl(${Date.now() / 20 % 360} 90% 50%)`; draw.fillRect(0, 0, 300, 150); }, 50);
		return canvas.captureStream(20).getTracks()[0];
	}

	// These resolve when the phone has answered the new offer.
	hold() {
		return new Promise((done) => this.session.hold({}, done));
	}

	resume() {
		return new Promise((done) => this.session.unhold({}, done));
	}

	// late: the page takes the answer so many ms later. Its new port checks before that, with the relay's old name.
	restart(late = 0) {
		const pc = this.pc, take = pc.setRemoteDescription;
		pc.setRemoteDescription = async (answer) => {
			pc.setRemoteDescription = take;
			await new Promise((done) => setTimeout(done, late));
			return pc.setRemoteDescription(answer);
		};
		return new Promise((done) => this.session.renegotiate({ rtcOfferConstraints: { iceRestart: true } }, done));
	}

	report() {
		return report(this.pc, this.sound);
	}
}
