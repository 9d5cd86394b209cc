# SPDX-License-Identifier: GPL-2.0-or-later
"""Peers with audio and video: Chromium with its fake camera, and ffmpeg, which receives or sends RTP on ports of its own for each m-line."""
import base64
import os
import re
import tempfile

import browser
import call
import peer
import tone

FRAMES = 60  # decoded at each end
HERE = os.path.dirname(os.path.abspath(__file__))


class Chromium(browser.Chromium):
    """All media on one transport (max-bundle)."""
    options = (*browser.OPTIONS, "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")

    def __init__(self, net, place, kind, family=4, fault=""):
        super().__init__(net, place, kind, family, fault)
        # A camera is there for secure contexts only. A local file is one, about:blank is not.
        self.page = tempfile.NamedTemporaryFile(suffix=".html")
        self.page.write(b"<!doctype html><body></body>")
        self.page.flush()
        self.browser.open("file://" + self.page.name)
        self.browser.wait("location.protocol === 'file:' && document.readyState === 'complete'")
        for name in ("page.js", "video.js"):
            with open(os.path.join(HERE, name), encoding="utf-8") as f:
                self.browser.js(f.read() + ("\nwindow.Peer = Peer; window.ownPair = ownPair; 0" if name == "page.js" else "; 0"))
        self.browser.js(f"window.peer = new VideoPeer({call.TONE[place]}); 0")

    def close(self):
        super().close()
        self.page.close()


class Ffmpeg:
    """As answerer it decodes, as offerer it sends a test picture and a tone. Its ports have the numbers of the relay's."""
    KINDS = ("audio", "video")

    def __init__(self, net, place, kind, family=4, _fault=""):
        self.net, self.place, self.kind = net, place, kind
        self.address = call.address(place, family)
        self.folder = tempfile.TemporaryDirectory(prefix="xc-ffmpeg-", ignore_cleanup_errors=True)
        self.process, self.sdp = None, ""

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, *options):
        self.process = self.net.spawn(self.net.terminal[self.place],
                                      ["ffmpeg", "-nostdin", "-hide_banner", "-v", "warning", "-progress", self.path("progress"), *options],
                                      stdout=open(self.path("log"), "w", encoding="utf-8"), stderr=-2)

    def bound(self, port):
        with open(f"/proc/{self.process.pid}/net/udp", encoding="ascii") as f:
            return f":{port:04X} " in f.read()

    def own(self, media):
        """An SDP of ours; media: kind, port, payload type, codec, further lines."""
        lines = ["v=0", f"o=- 1 1 IN IP4 {self.address}", "s=-", f"c=IN IP4 {self.address}", "t=0 0"]
        for kind, port, pt, codec, more in media:
            lines += [f"m={kind} {port} RTP/{'SAVP' if 'crypto' in ''.join(more) else 'AVP'} {pt}", f"a=rtpmap:{pt} {codec}", *more]
        return "\r\n".join(lines) + "\r\n"

    def answer(self, sdp):
        """ffmpeg sends nothing but RTCP, and that in the clear: the key that is answered is never used."""
        sections = re.split(r"(?m)^m=", sdp)[1:]
        relay, media = re.search(r"(?m)^c=IN IP4 (\S+)", sdp)[1], []
        for kind, section, codec in zip(self.KINDS, sections, ("PCMU/8000", "VP8/90000")):
            pt = re.search(rf"(?m)^a=rtpmap:(\d+) {codec}", section) or re.search(r"^audio \d+ \S+ .*\b(0)\b", section)
            crypto = re.findall(r"(?m)^(a=crypto:\S+ AES_CM_128_HMAC_SHA1_80 .*?)\r?$", section)[:1]
            media.append((kind, int(section.split()[1]), pt[1], codec, crypto))
        with open(self.path("in.sdp"), "w", encoding="ascii") as f:
            f.write(self.own(media).replace(f"c=IN IP4 {self.address}", f"c=IN IP4 {relay}"))
        self.start("-protocol_whitelist", "file,udp,rtp", "-i", self.path("in.sdp"), "-map", "0:v", "-f", "null", "-",
                   "-map", "0:a", "-ar", "8000", "-f", "s16le", "-flush_packets", "1", self.path("audio"))
        # It asks for no key frame, so it must be there for the first.
        call.wait_for("ffmpeg's ports", lambda: all(self.bound(m[1]) for m in media))
        return self.own([(*m[:4], [*map(with_key, m[4]), "a=recvonly"]) for m in media])

    def offer(self):
        return self.own([("audio", 6000, 0, "PCMU/8000", ["a=sendonly"]), ("video", 6010, 97, "VP8/90000", ["a=sendonly"])])

    def accept(self, sdp):
        relay = re.search(r"(?m)^c=IN IP4 (\S+)", sdp)[1]
        audio, video = re.findall(r"(?m)^m=\S+ (\d+)", sdp)
        volume = tone.AMPLITUDE / 4096  # of the source sine, which has an amplitude of 1/8
        self.start("-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=20", "-re", "-f", "lavfi", "-i",
                   f"sine=frequency={call.TONE[self.place]}:sample_rate=8000,volume={volume},asetnsamples=160",
                   "-map", "0:v", "-c:v", "libvpx", "-deadline", "realtime", "-g", "20", "-b:v", "300k", "-payload_type", "97",
                   "-f", "rtp", f"rtp://{relay}:{video}?localrtpport=6010&pkt_size=1200",
                   "-map", "1:a", "-c:a", "pcm_mulaw", "-payload_type", "0", "-f", "rtp", f"rtp://{relay}:{audio}?localrtpport=6000&pkt_size=172")

    def progress(self, name):
        try:
            with open(self.path("progress"), encoding="ascii") as f:
                return ([0] + [int(n) for n in re.findall(rf"(?m)^{name}=\s*(\d+)", f.read())])[-1]
        except FileNotFoundError:
            return 0

    def report(self):
        ear, samples = tone.Ear(), b""
        if os.path.exists(self.path("audio")):
            with open(self.path("audio"), "rb") as f:
                samples = f.read()
        heard = memoryview(samples[:len(samples) // 2 * 2]).cast("h").tolist()
        ear.hear(heard[-10 * tone.BLOCK:])
        with open(self.path("log"), encoding="utf-8", errors="replace") as f:
            log = f.read().splitlines()[-3:]
        return peer.REPORT | {"frames": self.progress("frame"), "tones": ear.levels(), "blocks": len(heard) // tone.BLOCK, "log": log}

    def close(self):
        if self.process:
            self.net.stop(self.process)
        self.folder.cleanup()


def with_key(crypto):
    """The same crypto line with a key of ours."""
    return re.sub(r"inline:\S+", "inline:" + base64.b64encode(os.urandom(30)).decode(), crypto)


def level(report, hertz):
    return report["tones"].get(str(hertz), report["tones"].get(hertz, 0))


def check(c):
    """Frames are decoded wherever video comes in, and the other's tone is heard there. On a busy machine ffmpeg encodes too slowly, so its
    audio has gaps, and a report may come from a gap."""
    receives = [not (isinstance(p, Ffmpeg) and p is c.a) and not (isinstance(other, Ffmpeg) and other is c.b)
                for p, other in ((c.a, c.b), (c.b, c.a))]

    hears = [call.TONE[place] for place in reversed(call.PLACES)]

    def both():
        reports = c.a.report(), c.b.report()
        good = all(not r or (x["frames"] >= FRAMES and x["blocks"] >= 8 and level(x, hertz) >= call.OWN_MIN)
                   for x, r, hertz in zip(reports, receives, hears))
        return reports if good else None
    try:
        reports = call.wait_for("frames and tones", both, c.patience)
    except AssertionError:
        raise call.Failed(f"no {FRAMES} frames, or no tone: {c.a.report()}; {c.b.report()}") from None
    words = []
    for place, report, receiving in zip(call.PLACES, reports, receives):
        if report.get("transports", 1) != 1:
            raise call.Failed(f"{place} has {report['transports']} transports")
        words.append(f"{report['frames']} frames" if receiving else "sends")
    return " / ".join(words)
