# SPDX-License-Identifier: GPL-2.0-or-later
"""Sets up calls over ng with real SDP, as Kamailio would, and writes the file from which
t/tool/rtpload.c plays both terminals."""
import base64
import json
import os
import re
import subprocess
import tempfile

import idle

SHORT = {"80": "AES_CM_128_HMAC_SHA1_80", "32": "AES_CM_128_HMAC_SHA1_32"}
MKI_LEN = 4


class Suite:
    """A terminal's security as text: plain or a suite's name (80, 32 for short). Then, separated by
    ',': session parameters of RFC 4568, MKI (numbers keys from 1), LIFETIME=PACKETS."""

    def __init__(self, text):
        self.name, *words = text.split(",")
        self.name = SHORT.get(self.name, self.name)
        self.plain = self.name == "plain"
        self.mki = "MKI" in words
        self.lifetime = next((w.removeprefix("LIFETIME=") for w in words if w.startswith("LIFETIME=")), None)
        self.params = [w for w in words if w.startswith("UN")]
        aead = self.name.startswith("AEAD")
        self.key_len = 0 if self.plain else (12 if aead else 14) + (32 if "256" in self.name else 24 if "192" in self.name else 16)

    def line(self, tag, keys):
        life = f"|{self.lifetime}" if self.lifetime else ""
        inline = ";".join(f"inline:{base64.b64encode(k).decode()}{life}" + (f"|{n}:{MKI_LEN}" if self.mki else "")
                          for n, k in enumerate(keys, 1))
        return " ".join([f"a=crypto:{tag} {self.name}", inline, *self.params]) + "\r\n"

    def load(self, keys, mki=False, more=()):
        """The suite's two columns in rtpload's file."""
        words = [self.name, *self.params, *(["MKI"] if mki else []), *more]
        return ",".join(words) + " " + (",".join(k.hex() for k in keys) or "-")


def sdp(ip, port, suite=None, key=None, tag=1, extra="", profile=None):
    keys = key if isinstance(key, list) else [key]
    crypto = Suite(suite).line(tag, keys) if suite else ""
    profile = profile or ("RTP/SAVP" if suite else "RTP/AVP")
    return (f"v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio {port} {profile} 0\r\n"
            f"a=rtpmap:0 PCMU/8000\r\n{crypto}{extra}a=sendrecv\r\n")


def parse(text):
    """Parses the first audio media: address, ports, profile, and crypto lines as (tag, suite, key)."""
    m = re.search(r"^m=audio (\d+) (\S+)", text, re.M)
    c = re.search(r"^c=IN IP[46] (\S+)", text, re.M)
    r = re.search(r"^a=rtcp:(\d+)", text, re.M)
    port = int(m.group(1))
    crypto = [(int(t), s, base64.b64decode(k + "=" * (-len(k) % 4)))
              for t, s, k in re.findall(r"^a=crypto:(\d+) (\S+) inline:([A-Za-z0-9+/]+)", text, re.M)]
    return {"ip": c.group(1), "port": port, "rtcp": int(r.group(1)) if r else port + 1, "profile": m.group(2),
            "crypto": crypto}


class Failed(Exception):
    pass


def ok(reply):
    if reply.get("result") != "ok":
        raise Failed(f"ng said {reply}")
    return reply


class Call:
    """One call with a Suite for the caller and one for the callee."""

    def __init__(self, client, number, caller="80", callee="32", ip=("10.200.1.2", "10.200.1.2"), ports=None, flags=None, profile=(None, None)):
        self.client, self.id = client, f"call-{number}-{os.urandom(4).hex()}"
        self.text = (caller, callee)
        self.suite = (Suite(caller), Suite(callee))
        self.ip = ip
        self.ports = ports or (20000 + 4 * number, 20002 + 4 * number)
        self.key = [os.urandom(s.key_len) for s in self.suite]
        self.keys = [[k] if k else [] for k in self.key]  # one at first
        self.flags = flags or {}
        self.offer_flags = {}  # of the offer only
        self.profile = profile  # if not the suite's usual profile
        self.later = [b"", b""]  # a key not signalled yet
        self.switch = [0, 0]  # the second key is used from this packet on

    def body(self, side, tag=1):
        secure = not self.suite[side].plain
        return sdp(self.ip[side], self.ports[side], self.text[side] if secure else None, self.keys[side], tag, profile=self.profile[side])

    def setup(self, again=False):
        """Sends offer and answer with the keys in self.keys; again: as a re-INVITE."""
        caller, callee = self.suite
        offer = {"call_id": self.id, "from_tag": "a" + self.id, "replace": ["origin"], "ICE": "remove",
                 "transport_protocol": "RTP/AVP" if callee.plain else "RTP/SAVP", **self.flags, **self.offer_flags}
        if again:
            offer["to_tag"] = "b" + self.id
        if not callee.plain:
            offer["SDES"] = [f"only-{callee.name}", "pad", *callee.params]
        self.told = ok(self.client.call("offer", sdp=self.body(0), **offer))
        self.to_callee = parse(self.told["sdp"])
        tag, wire_key = 1, b""
        if not callee.plain:
            match = [(t, k) for t, s, k in self.to_callee["crypto"] if s == callee.name]
            if not match:
                raise Failed(f"callee was not offered {callee.name}: {self.to_callee}")
            tag, wire_key = match[0]
        reply = ok(self.client.call("answer", sdp=self.body(1, tag), call_id=self.id, from_tag="a" + self.id,
                                    to_tag="b" + self.id, ICE="remove", replace=["origin"], **self.flags))
        self.to_caller = parse(reply["sdp"])
        if not caller.plain and [s for _, s, _ in self.to_caller["crypto"]] != [caller.name]:
            raise Failed(f"caller must be answered {caller.name}: {self.to_caller}")
        self.wire = [b"" if caller.plain else self.to_caller["crypto"][0][2], wire_key]
        return self

    def spec(self):
        """Two lines for rtpload. Each terminal sends under its own key and receives under the
        relay's, or under the other's if passed through."""
        lines = []
        for side, near in ((0, self.to_caller), (1, self.to_callee)):
            suite = self.suite[side]
            switch = [f"{'SWITCH' if suite.mki else 'RENEW'}={self.switch[side]}"] if self.switch[side] else []
            keys = self.keys[side] + ([self.later[side]] if self.later[side] else [])
            lines.append(f"{self.ip[side]} {self.ports[side]} {self.ports[side] + 1} {near['ip']} {near['port']} {near['rtcp']} "
                         + suite.load(keys, suite.mki, switch) + " "
                         + suite.load([self.wire[side]] if self.wire[side] else [], suite.mki and self.wire[side] == self.key[1 - side]))
        return "\n".join(lines) + "\n"

    def delete(self):
        return self.client.call("delete", call_id=self.id, from_tag="a" + self.id, **{"delete_delay": 0})


def load(net, build, calls, rate, seconds, payload=160, terminal="caller"):
    """Runs rtpload for these calls in a terminal's namespace and returns its result. All workers
    already know ports and keys."""
    idle.wait_idle()
    with tempfile.NamedTemporaryFile("w", suffix=".spec") as f:
        f.write("".join(c.spec() for c in calls))
        f.flush()
        p = subprocess.run(["ip", "netns", "exec", net.terminal[terminal], os.path.join(build, "t", "rtpload"), f.name,
                            str(rate), str(seconds), str(payload)], capture_output=True, text=True, check=False)
    if p.returncode:
        raise Failed(f"rtpload: {p.stderr}")
    return json.loads(p.stdout)
