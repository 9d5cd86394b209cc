// SPDX-License-Identifier: GPL-2.0-or-later
// The page of demo/webrtc_page.py: registers by JsSIP, calls the phone on a click, shows state and levels. SETTINGS is in settings.js.
"use strict";

const element = (id) => document.getElementById(id);
let session = null, sound = null;

function show(text) {
	element("state").textContent = text;
}

// Moves a meter with the level of a stream.
function measure(stream, id) {
	const analyser = sound.createAnalyser(), samples = new Float32Array(2048);
	sound.createMediaStreamSource(stream).connect(analyser);
	analyser.fftSize = samples.length;
	const timer = setInterval(() => {
		analyser.getFloatTimeDomainData(samples);
		element(id).value = session ? Math.min(1, 2 * Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length)) : 0;
		if (!session)
			clearInterval(timer);
	}, 100);
}

// The microphone, or a tone if there is none.
async function source() {
	try {
		return await navigator.mediaDevices.getUserMedia({ audio: true });
	} catch {
		const oscillator = sound.createOscillator(), quiet = sound.createGain(), out = sound.createMediaStreamDestination();
		quiet.gain.value = 0.3;
		oscillator.frequency.value = 440;
		oscillator.connect(quiet).connect(out);
		oscillator.start();
		return out.stream;
	}
}

function hear(event) {
	const stream = new MediaStream([event.track]), player = new Audio();
	player.srcObject = stream;
	player.play();
	measure(stream, "in");
}

async function details() {
	const stats = session ? [...(await session.connection.getStats()).values()] : [];
	const of = (type) => stats.find((s) => s.type === type) || {};
	if (session)
		element("details").textContent = `DTLS ${of("transport").dtlsState}, ${of("transport").srtpCipher || "no keys yet"}\n` +
			`${of("outbound-rtp").packetsSent || 0} packets sent, ${of("inbound-rtp").packetsReceived || 0} received, ${of("inbound-rtp").packetsLost || 0} lost`;
}

function ended(why) {
	session = null;
	show(why);
	element("call").textContent = "Call";
	element("call").className = "";
}

async function call() {
	sound = sound || new AudioContext();
	await sound.resume();
	const stream = await source();
	session = ua.call(SETTINGS.phone, { mediaStream: stream, pcConfig: { iceServers: [] }, mediaConstraints: { audio: true, video: false } });
	session.connection.addEventListener("track", hear);
	measure(stream, "out");
	show("calling");
	element("call").textContent = "Hang up";
	element("call").className = "end";
	session.on("confirmed", () => show("talking"));
	session.on("ended", (e) => ended(`ended: ${e.cause}`));
	session.on("failed", (e) => ended(`failed: ${e.cause}`));
}

const ua = new JsSIP.UA({ sockets: [new JsSIP.WebSocketInterface(SETTINGS.server)], uri: SETTINGS.uri, password: SETTINGS.password, session_timers: false });
ua.on("registered", () => {
	show("ready");
	element("call").disabled = false;
});
ua.on("registrationFailed", (e) => show(`registration failed: ${e.cause}`));
ua.on("disconnected", () => show("connecting"));
element("call").onclick = () => session ? session.terminate() : call();
setInterval(details, 500);
ua.start();
