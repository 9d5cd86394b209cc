# SPDX-License-Identifier: GPL-2.0-or-later
"""BUNDLE (RFC 9143): aiortc or Chromium with audio and video on one transport, and a plain terminal with two ports of RTP and two of RTCP.
The plain terminal writes no MIDs. What aiortc receives has them."""
import contextlib
import json
import os
import re
import select
import struct
import subprocess
import sys
import threading

import chromium
import ng
import redisrig
import webrtc
from baresip import wait_for
from run import Skip, cases
from test_redis import saved, settled

HERE = os.path.dirname(os.path.abspath(__file__))
A, B = "10.200.1.2", "10.200.2.2"
FOR_PLAIN = {"transport_protocol": "RTP/AVP", "ICE": "remove", "DTLS": "off", "rtcp_mux": ["demux"]}
FOR_AIORTC = {"transport_protocol": "UDP/TLS/RTP/SAVPF", "ICE": "force", "rtcp_mux": ["offer"], "SDES": ["off"]}


def terminals(function):
    function.terminals = webrtc.TERMINALS
    return function


class Bundled:
    def __init__(self, net, policy):
        self.net = net
        self.process = net.spawn(net.terminal["a"], [sys.executable, os.path.join(HERE, "bundle_peer.py"),
                                                     os.path.join(webrtc.kinds.WEBRTC, "python"), A, policy],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self):
        self.net.stop(self.process)

    def do(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        assert "failed" not in reply, reply
        return reply


PAGE = """
class Bundled {
	constructor(policy) {
		this.pc = new RTCPeerConnection({ iceServers: [], bundlePolicy: policy });
	}

	add() {
		const context = new AudioContext(), tone = context.createOscillator(), sound = context.createMediaStreamDestination();
		tone.connect(sound);
		tone.start();
		const canvas = document.createElement("canvas"), draw = canvas.getContext("2d");
		setInterval(() => { draw.fillStyle = `hsl(${Date.now() / 20 % 360} 90% 50%)`; draw.fillRect(0, 0, 300, 150); }, 50);
		this.keep = [context, tone, canvas];
		for (const stream of [sound.stream, canvas.captureStream(20)])
			this.pc.addTrack(stream.getTracks()[0], stream);
		for (const t of this.pc.getTransceivers()) {
			const kind = t.sender.track.kind, all = RTCRtpReceiver.getCapabilities(kind).codecs;
			t.setCodecPreferences(all.filter((c) => ["audio/PCMU", "video/VP8", "video/rtx"].includes(c.mimeType)));
		}
	}

	async local(description) {
		await this.pc.setLocalDescription(description);
		while (this.pc.iceGatheringState !== "complete")
			await new Promise((done) => setTimeout(done, 5));
		return { sdp: this.pc.localDescription.sdp };
	}

	async offer() {
		this.add();
		return this.local(await this.pc.createOffer());
	}

	async answer(sdp) {
		await this.pc.setRemoteDescription({ type: "offer", sdp });
		this.add();
		return this.local(await this.pc.createAnswer());
	}

	async accept(sdp) {
		await this.pc.setRemoteDescription({ type: "answer", sdp });
		return {};
	}

	async report() {
		const stats = [...(await this.pc.getStats()).values()], heard = { audio: {}, video: {} }, reports = {};
		for (const s of stats.filter((s) => s.type === "inbound-rtp"))
			heard[s.kind][s.ssrc] = s.packetsReceived;
		for (const s of stats.filter((s) => s.type === "remote-inbound-rtp"))
			reports[s.kind] = true;
		return { heard, reports, state: this.pc.connectionState, transports: stats.filter((s) => s.type === "transport").length };
	}
}
"""


class Browser:
    """Chromium, with the commands of bundle_peer.py."""

    def __init__(self, net, policy):
        self.net, self.policy = net, policy
        self.start()

    def start(self):
        self.browser = chromium.Browser(self.net, self.net.terminal["a"], ("--autoplay-policy=no-user-gesture-required",))
        self.browser.js(f"{PAGE}\nwindow.peer = new Bundled({json.dumps(self.policy)}); 0")

    def do(self, what, sdp=""):
        return self.browser.js(f"peer.{what}({json.dumps(sdp)})")

    def offer(self):
        """Some instances of the browser never complete their first offer, before anything of ours is asked."""
        for _ in range(3):
            self.browser.ws.s.settimeout(20)
            try:
                return self.do("offer")
            except TimeoutError:
                self.browser.close()
                self.start()
        raise Skip("Chromium makes no offer")

    def close(self):
        self.browser.close()


class Plain:
    """RTP and RTCP on ports of their own for each m-line. It sends back what it hears, under SSRCs of its own, and a receiver report
    about its own m-line for every 20th packet."""
    kinds = ("audio", "video")

    def __init__(self, net):
        self.sockets = {}
        for kind in self.kinds:
            for rtcp in (False, True):
                s = ng.socket_in(net.terminal["b"])
                s.bind((B, (6000 if kind == "audio" else 6010) + rtcp))
                self.sockets[s] = (kind, rtcp)
        self.ssrc = {"audio": 0xa0d10, "video": 0x71de0}
        self.to, self.heard, self.reports, self.ended = {}, {k: {} for k in self.kinds}, {k: set() for k in self.kinds}, False
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def socket(self, kind, rtcp):
        return next(s for s, what in self.sockets.items() if what == (kind, rtcp))

    def listen(self):
        while not self.ended:
            for s in select.select(list(self.sockets), [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.take(*self.sockets[s], s.recv(2048))

    def take(self, kind, rtcp, packet):
        if rtcp:
            self.reports[kind].add(about(packet))
            return
        ssrc = struct.unpack_from("!I", packet, 8)[0]
        count = self.heard[kind]
        count[ssrc] = count.get(ssrc, 0) + 1
        if kind not in self.to:
            return
        body = 12  # it has no header extensions of its own
        if packet[0] & 0x10:
            body += 4 + 4 * struct.unpack_from("!H", packet, 14)[0]
        header = bytes([packet[0] & ~0x10]) + packet[1:8] + struct.pack("!I", self.ssrc[kind])
        self.socket(kind, False).sendto(header + packet[body:], self.to[kind][0])
        if count[ssrc] % 20 == 0:
            report = struct.pack("!BBHIIIIIII", 0x81, 201, 7, self.ssrc[kind], ssrc, 0, struct.unpack_from("!H", packet, 2)[0], 0, 0, 0)
            self.socket(kind, True).sendto(report, self.to[kind][1])

    def sdp(self, formats):
        lines = [f"v=0\r\no=- 1 1 IN IP4 {B}\r\ns=-\r\nc=IN IP4 {B}\r\nt=0 0\r\n"]
        for kind, (pt, codec), port in zip(self.kinds, formats, (6000, 6010)):
            lines.append(f"m={kind} {port} RTP/AVP {pt}\r\na=rtpmap:{pt} {codec}\r\na=sendrecv\r\n")
        return "".join(lines)

    def believe(self, sdp):
        address = re.search(r"^c=IN IP4 (\S+)", sdp, re.M)[1]
        for section in re.split(r"(?m)^m=", sdp)[1:]:
            kind, port = section.split()[:2]
            rtcp = re.search(r"(?m)^a=rtcp:(\d+)", section)
            self.to[kind] = ((address, int(port)), (address, int(rtcp[1]) if rtcp else int(port) + 1))

    def close(self):
        self.ended = True
        self.thread.join()
        for s in self.sockets:
            s.close()


def about(packet):
    """The SSRCs that a compound packet reports on."""
    out, at = [], 0
    while at + 8 <= len(packet):
        first, kind, words = struct.unpack_from("!BBH", packet, at)
        block = at + (28 if kind == 200 else 8)
        for i in range(first & 31 if kind in (200, 201) else 0):
            out.append(struct.unpack_from("!I", packet, block + 24 * i)[0])
        at += 4 + 4 * words
    return tuple(out)


def formats_of(sdp):
    """PCMU, and VP8 with the payload type that this SDP has."""
    return (0, "PCMU/8000"), (int(re.search(r"(?m)^a=rtpmap:(\d+) VP8/90000", sdp)[1]), "VP8/90000")


def ports(sdp):
    return [int(p) for p in re.findall(r"(?m)^m=\S+ (\d+)", sdp)]


class Call:
    def __init__(self, net, daemon, policy, peer):
        self.daemon, self.a, self.b = daemon, (Browser if peer == "chromium" else Bundled)(net, policy), Plain(net)

    def ask(self, command, **keys):
        reply = self.daemon.client.call(command, call_id="bundle", address_family="IP4", replace=["origin"], **keys)
        assert reply.get("result") == "ok", reply
        return reply["sdp"]

    def from_bundled(self, max_bundle=False):
        sdp = (self.a.offer() if isinstance(self.a, Browser) else self.a.do("offer"))["sdp"]
        if max_bundle:  # as browsers write it: RFC 9143 7.2
            head, audio, video = re.split(r"(?m)^(?=m=)", sdp)
            video = re.sub(r"(?m)^m=video \d+", "m=video 0", video)
            video = re.sub(r"(?m)^a=(candidate|end-of|ice-|fingerprint|setup).*\r\n", "", video) + "a=bundle-only\r\n"
            sdp = head + audio + video
        offered = self.ask("offer", sdp=sdp, from_tag="a", direction=["a", "b"], bundle=["accept"], **FOR_PLAIN)
        assert len(set(ports(offered))) == 2 and "BUNDLE" not in offered, offered
        self.b.believe(offered)
        answered = self.ask("answer", sdp=self.b.sdp(formats_of(offered)), from_tag="a", to_tag="b", **FOR_AIORTC)
        assert len(set(ports(answered))) == 1 and "a=group:BUNDLE 0 1" in answered, answered
        self.a.do("accept", sdp=answered)

    def to_bundled(self):
        offered = self.ask("offer", sdp=self.b.sdp(((0, "PCMU/8000"), (97, "VP8/90000"))), from_tag="b", direction=["b", "a"],
                           bundle=["offer"], **FOR_AIORTC)
        assert len(set(ports(offered))) == 2 and "a=group:BUNDLE 1 2" in offered, offered
        answered = self.ask("answer", sdp=self.a.do("answer", sdp=offered)["sdp"], from_tag="b", to_tag="a", **FOR_PLAIN)
        assert len(set(ports(answered))) == 2 and "BUNDLE" not in answered, answered
        self.b.believe(answered)

    def more(self, packets=60):
        """Both m-lines go both ways, each to its own end only."""
        before = self.a.do("report")["heard"]

        def there():
            now = self.a.do("report")
            return now if all(now["heard"][k].get(str(self.b.ssrc[k]), 0) >= before[k].get(str(self.b.ssrc[k]), 0) + packets
                              for k in Plain.kinds) else None
        report = wait_for("audio and video both ways", there)
        assert set(report["heard"]["audio"]) == {str(self.b.ssrc["audio"])}, report
        assert set(report["heard"]["video"]) == {str(self.b.ssrc["video"])}, report
        assert not set(self.b.heard["audio"]) & set(self.b.heard["video"]), self.b.heard
        assert report["state"] == "connected" and report["transports"] == 1, report
        if "mids" in report:
            assert report["mids"] == {kind: [mid] for kind, mid in report["own_mids"].items()}, report
        return report

    def reported(self):
        """Reports reach the m-line that they are about, on either side."""
        wait_for("the bundled terminal got reports on both", lambda: set(self.a.do("report")["reports"]) == set(Plain.kinds))
        wait_for("the plain terminal got reports on both",
                 lambda: all(any(self.b.ssrc[k] in r for r in self.b.reports[k]) for k in Plain.kinds))


@contextlib.contextmanager
def call(net, daemon, policy="balanced", peer="aiortc"):
    webrtc.needs(peer)
    c = Call(net, daemon, policy, peer)
    try:
        yield c
    finally:
        c.b.close()
        c.a.close()


@cases(("balanced", False), ("max-bundle", False), ("max-bundle", True), ("balanced", False, "chromium"), ("max-bundle", False, "chromium"))
@terminals
def test_a_bundled_offerer(net, policy, later_ports_0, peer="aiortc"):
    daemon = webrtc.start(net)
    with call(net, daemon, policy, peer) as c:
        c.from_bundled(later_ports_0)
        c.more()
        c.reported()
        q = daemon.client.call("query", call_id="bundle")["tags"]
        assert q["a"]["medias"][1]["streams"][0]["crypto suite"], q
        sessions = daemon.statistics()["sessions"]
        assert sessions["in use"] == sessions["handshakes"]["completed"] == 1, sessions
    assert daemon.stop() == 0


@cases(("balanced",), ("max-bundle",), ("balanced", "chromium"), ("max-bundle", "chromium"))
@terminals
def test_a_bundled_answerer(net, policy, peer="aiortc"):
    daemon = webrtc.start(net)
    with call(net, daemon, policy, peer) as c:
        c.to_bundled()
        c.more()
        c.reported()
        assert daemon.statistics()["sessions"]["in use"] == 1
    assert daemon.stop() == 0


@terminals
def test_a_bundle_survives_a_killed_daemon(net):
    if not redisrig.have():
        raise Skip("no redis-server here")
    redis = redisrig.Redis(net)
    daemon = webrtc.start(net, *redis.daemon_options())
    with call(net, daemon) as c:
        c.from_bundled()
        c.more()
        settled(daemon)
        saved(daemon, [c])
        daemon.process.kill()
        daemon.process.wait()
        daemon = c.daemon = webrtc.start(net, *redis.daemon_options())
        c.b.reports = {k: set() for k in Plain.kinds}
        before = {k: sum(v.values()) for k, v in c.b.heard.items()}
        wait_for("both m-lines reach the plain terminal again",
                 lambda: all(sum(c.b.heard[k].values()) > before[k] + 60 for k in Plain.kinds))
        heard = {k: sum(v.values()) for k, v in c.a.do("report")["heard"].items()}
        wait_for("and the bundled one", lambda: all(sum(v.values()) > heard[k] + 60 for k, v in c.a.do("report")["heard"].items()))
    assert daemon.stop() == 0
