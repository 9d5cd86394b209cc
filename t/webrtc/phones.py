# SPDX-License-Identifier: GPL-2.0-or-later
"""Real SIP phones as peers: they record what they hear, and their SDP comes and goes by SIP (sip.py)."""
import array
import glob
import os
import re
import tempfile

import baresip
import call
import peer
import sip
import tone

MODULES = "module dtls_srtp.so\nmodule ice.so\n"


class SipPhone:
    """What baresip and linphone have in common. Recordings are WAV, whose header may be wrong while they grow."""
    recorded = tone.RATE  # samples per second

    def __init__(self, net, place, kind, family, _fault):
        self.net, self.place, self.kind = net, place, kind
        self.address = call.address(place, family)
        self.folder = tempfile.TemporaryDirectory(prefix="xc-phone-", ignore_cleanup_errors=True)
        self.own = self.address.rpartition(":" if family == 6 else ".")[0] + (":1" if family == 6 else ".1")
        self.agent = sip.Agent(net.gateway, self.own, self.address)
        self.start()

    def dialled(self):
        return f"sip:relay@{sip.Agent.host(self.own)}:{sip.PORT}"

    def offer(self):
        self.dial()
        return self.agent.called()

    def answer(self, sdp):
        return self.agent.call(sdp)

    def accept(self, sdp):
        self.agent.accept(sdp)

    def samples(self):
        path = self.recording()
        if not path or os.path.getsize(path) <= 44:
            return array.array("h")
        with open(path, "rb") as f:
            raw = f.read()[44:]
        # Tones remain tones if only each nth sample is taken.
        return array.array("h", raw[:len(raw) // 2 * 2])[::self.recorded // tone.RATE]

    def report(self):
        ear = tone.Ear()
        heard = self.samples()
        # The beginning may be silence that the phone made itself.
        start = next((i for i, s in enumerate(heard) if abs(s) > 500), len(heard))
        ear.hear(list(heard[start:][-10 * tone.BLOCK:]))
        n = len(heard) - start
        return peer.REPORT | {"state": "connected" if n else "new", "packets_in": n // tone.FRAME, "tones": ear.levels(), "blocks": n // tone.BLOCK,
                              "profile": self.profile(), "log": self.complaints()}

    def close(self):
        self.agent.hang_up()
        self.stop()
        self.agent.close()
        self.folder.cleanup()


class Baresip(SipPhone):
    ACCOUNT = {"baresip_sdes": "mediaenc=srtp-mand", "baresip_osrtp": "mediaenc=srtp", "baresip_dtls": "mediaenc=dtls_srtp",
               "baresip_ice": "mediaenc=dtls_srtp;medianat=ice"}

    def start(self):
        account = f"<sip:phone@{sip.Agent.host(self.address)};transport=udp>;regint=0;answermode=auto;{self.ACCOUNT[self.kind]}"
        self.phone = baresip.Phone(self.net, self.folder.name, "phone", self.place, self.address, account, call.TONE[self.place], MODULES)

    def dial(self):
        self.phone.tell(f"/dial {self.dialled()}")

    def recording(self):
        return baresip.phone.recording(self.phone.folder)

    def forget(self):
        """Recordings of earlier calls."""
        for path in glob.glob(os.path.join(self.phone.folder, "dump-*")):
            os.unlink(path)

    def profile(self):
        found = re.findall(r"DTLS-SRTP complete \(\S+ Profile=(\S+)\)|(?:srtp|sdes).*?(AE\w+_\w+)", self.phone.log())
        return next((a or b for a, b in reversed(found)), "")

    def digits(self):
        """Telephone events that have ended. It detects no tones."""
        return "".join(re.findall(r"received event: '(.)' \(end=1\)", self.phone.log()))

    def rates(self):
        """The latest ones of both directions, bits per second: (sent, received)."""
        return tuple(map(int, (re.findall(r"audio=(\d+)/(\d+)", self.phone.log()) or [(0, 0)])[-1]))

    def complaints(self):
        return re.findall(r"^.*(?:failed|mismatch|error).*$", self.phone.log(), re.M)[-3:]

    def stop(self):
        self.phone.stop()


RC = """[sip]
sip_port=5060
sip_tcp_port=0
sip_tls_port=0
default_proxy=%s
media_encryption=%s
media_encryption_mandatory=1
[net]
mtu=1300
[rtp]
audio_rtp_port=7078
audio_adaptive_jitt_comp_enabled=0
[sound]
echocancellation=0
[video]
enabled=0
capture=0
display=0
[misc]
store_rtp_log=0
[audio_codec_0]
mime=%s
rate=%d
channels=%d
enabled=1
"""


PROFILES = {"1": "AES_CM_128_HMAC_SHA1_80", "2": "AES_CM_128_HMAC_SHA1_32"}  # as linphone numbers them


def only_payload(sdp, kind):
    """The same SDP with this payload type alone."""
    sdp = re.sub(r"(?m)^(m=audio \d+ \S+) .*?(\r?)$", rf"\1 {kind}\2", sdp)
    return re.sub(rf"(?m)^a=(rtpmap|fmtp|rtcp-fb):(?!{kind} |\*)\d+ .*\n", "", sdp)


class Linphone(SipPhone):
    """Its configuration cannot name a single codec, so its offer is shortened."""
    codec = ("PCMU", 8000, 1)

    def offer(self):
        return only_payload(super().offer(), 0)

    def more(self):
        """Further sections of its configuration, with a proxy."""
        return ""

    def start(self):
        home = self.folder.name
        os.makedirs(os.path.join(home, ".local/share/linphone"))
        baresip.phone.write_tone(os.path.join(home, "tone.wav"), call.TONE[self.place], 60)
        rc = os.path.join(home, "rc")
        with open(rc, "w", encoding="ascii") as f:
            f.write(RC % ("0" if self.more() else "-1", next((e for e in ("dtls", "zrtp") if e in self.kind), "srtp"), *self.codec) + self.more())
        self.log_path = os.path.join(home, "log")
        self.out_path = os.path.join(home, "out")
        with open(self.out_path, "w", encoding="utf-8") as out:
            self.process = self.net.spawn(self.net.terminal[self.place], ["/usr/bin/linphonec", "-c", rc, "-a", "-d", "6", "-l", self.log_path], stdin=-1,
                                          stdout=out, stderr=out, env=dict(os.environ, HOME=home), text=True, bufsize=1)
        for line in ("soundcard use files", f"play {home}/tone.wav", f"record {home}/heard.wav"):
            self.process.stdin.write(line + "\n")
        baresip.wait_for("linphone's start", lambda: "heard.wav" in self.text(self.log_path) or "linphonec>" in self.text(self.out_path))

    @staticmethod
    def text(path):
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def dial(self):
        self.process.stdin.write(f"call {self.dialled()}\n")

    def recording(self):
        return next(iter(glob.glob(os.path.join(self.folder.name, "heard.wav"))), None)

    def sas(self):
        """Of ZRTP, as its user reads it."""
        return next(iter(re.findall(r"ZRTP secrets on: SAS is (\S+)", self.text(self.log_path))[-1:]), "")

    def profile(self):
        if "zrtp" in self.kind:
            return f"SAS {self.sas()}" if self.sas() else ""
        found = re.findall(r"DTLS Handshake on RTP channel successful, srtp protection profile (\d)", self.text(self.log_path))
        return PROFILES.get(found[-1], found[-1]) if found else ""

    def complaints(self):
        return re.findall(r"^.*(?:error|fail).*$", self.text(self.log_path), re.M)[-3:]

    def stop(self):
        self.net.stop(self.process)


class LinphoneOpus(Linphone):
    """Opus is its only codec."""
    codec = ("opus", 48000, 2)
    recorded = 48000

    def offer(self):
        sdp = SipPhone.offer(self)
        return only_payload(sdp, re.search(r"(?mi)^a=rtpmap:(\d+) opus/48000", sdp)[1])
