# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls set up over ng with real SDP, as Kamailio would, and the spec file that t/tool/rtpload.c needs to be both terminals."""
import base64
import json
import os
import re
import subprocess
import tempfile

SUITES = {"80": "AES_CM_128_HMAC_SHA1_80", "32": "AES_CM_128_HMAC_SHA1_32"}


def sdp(ip, port, suite=None, key=None, tag=1, extra="", profile=None):
    crypto = f"a=crypto:{tag} {SUITES[suite]} inline:{base64.b64encode(key).decode()}\r\n" if suite else ""
    profile = profile or ("RTP/SAVP" if suite else "RTP/AVP")
    return (f"v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio {port} {profile} 0\r\n"
            f"a=rtpmap:0 PCMU/8000\r\n{crypto}{extra}a=sendrecv\r\n")


def parse(text):
    """Of the first audio media: address, ports, profile, and crypto lines as (tag, suite, key)."""
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
    """One call: what the caller speaks (80, 32, plain) and what the callee does."""

    def __init__(self, client, number, caller="80", callee="32", ip=("10.200.1.2", "10.200.1.2"), ports=None, flags=None):
        self.client, self.id = client, f"call-{number}-{os.urandom(4).hex()}"
        self.suite = (caller, callee)
        self.ip = ip
        self.ports = ports or (20000 + 4 * number, 20002 + 4 * number)
        self.key = [os.urandom(30) if s in SUITES else b"" for s in self.suite]
        self.flags = flags or {}

    def setup(self):
        caller, callee = self.suite
        offer = {"call_id": self.id, "from_tag": "a" + self.id, "replace": ["origin"], "ICE": "remove",
                 "transport_protocol": "RTP/SAVP" if callee in SUITES else "RTP/AVP", **self.flags}
        if callee in SUITES:
            offer["SDES"] = [f"only-{SUITES[callee]}", "pad"]
        body = sdp(self.ip[0], self.ports[0], caller if caller in SUITES else None, self.key[0])
        self.to_callee = parse(ok(self.client.call("offer", sdp=body, **offer))["sdp"])
        tag, wire_key = 1, b""
        if callee in SUITES:
            match = [(t, k) for t, s, k in self.to_callee["crypto"] if s == SUITES[callee]]
            if not match:
                raise Failed(f"callee was not offered {SUITES[callee]}: {self.to_callee}")
            tag, wire_key = match[0]
        body = sdp(self.ip[1], self.ports[1], callee if callee in SUITES else None, self.key[1], tag)
        reply = ok(self.client.call("answer", sdp=body, call_id=self.id, from_tag="a" + self.id, to_tag="b" + self.id,
                                    ICE="remove", replace=["origin"], **self.flags))
        self.to_caller = parse(reply["sdp"])
        if caller in SUITES and [s for _, s, _ in self.to_caller["crypto"]] != [SUITES[caller]]:
            raise Failed(f"caller must be answered {SUITES[caller]}: {self.to_caller}")
        self.wire = [self.to_caller["crypto"][0][2] if caller in SUITES else b"", wire_key]
        return self

    def spec(self):
        """Two lines for rtpload: what each terminal sends is under its own key, what it gets under the relay's."""
        lines = []
        for side, near in ((0, self.to_caller), (1, self.to_callee)):
            suite = self.suite[side]
            lines.append(f"{self.ip[side]} {self.ports[side]} {self.ports[side] + 1} {near['ip']} {near['port']} {near['rtcp']} "
                         f"{suite} {self.key[side].hex() or '-'} {suite} {self.wire[side].hex() or '-'}")
        return "\n".join(lines) + "\n"

    def delete(self):
        return self.client.call("delete", call_id=self.id, from_tag="a" + self.id, **{"delete_delay": 0})


def load(net, build, calls, rate, seconds, payload=160, terminal="caller"):
    """Run rtpload for these calls in a terminal's namespace; its result."""
    with tempfile.NamedTemporaryFile("w", suffix=".spec") as f:
        f.write("".join(c.spec() for c in calls))
        f.flush()
        p = subprocess.run(["ip", "netns", "exec", net.terminal[terminal], os.path.join(build, "t", "rtpload"), f.name,
                            str(rate), str(seconds), str(payload)], capture_output=True, text=True, check=False)
    if p.returncode:
        raise Failed(f"rtpload: {p.stderr}")
    return json.loads(p.stdout)
