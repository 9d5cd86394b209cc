# SPDX-License-Identifier: GPL-2.0-or-later
"""Trickle ICE by SIP INFO (RFC 8840) through the shipped examples, with stock and own module. The terminal answers checks and begins none, so the relay
learns its address only from candidates."""
import re
import tempfile

import ice
import ng
import relay
from baresip import wait_for
from run import cases
from test_kamailio_answers import EXAMPLES, gateway
from test_module import quoted

TO = "sip:callee@10.200.2.2:5060"
KIND = "application/trickle-ice-sdpfrag"
# Both sides are offered ICE, and told that candidates may come later.
FLAGS = ("ICE=remove", "ICE=force trickle-ICE")


class Trap:
    """A port that nobody should check."""

    def __init__(self, net, address):
        self.socket = ng.socket_in(net.terminal["caller"])
        self.socket.bind((address, 0))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]

    def caught(self):
        try:
            return self.socket.recv(2048)[:2] == b"\0\1"
        except BlockingIOError:
            return False


def fragment(terminal, ports, pwd=None):
    lines = "".join(f"a=candidate:{n} 1 udp {2130706431 - n} {terminal.address} {port} typ host\r\n" for n, port in enumerate(ports, 1))
    return f"a=ice-ufrag:{terminal.ufrag}\r\na=ice-pwd:{pwd or terminal.pwd}\r\nm=audio 9 RTP/AVP 0\r\na=mid:7\r\n{lines}"


def script_with(folder, example):
    """KEMI's script with FLAGS: Gateway's option."""
    if "kemi" not in example:
        return {}
    with open(relay.ROOT + "/kamailio-cfg/xcipher-module.js", encoding="utf-8") as f, open(folder + "/script.js", "w", encoding="utf-8") as to:
        to.write(f.read().replace(*FLAGS))
    return {"XC_SCRIPT": quoted(folder + "/script.js")}


@cases(*EXAMPLES)
def test_candidates_by_info(net, example):
    """Each INFO is answered by Kamailio, and the callee gets none. A candidate counts only in a well-formed fragment of this call, with the terminal's
    password. Then the relay checks it, and uses the pair that the terminal nominates."""
    with tempfile.TemporaryDirectory(prefix="xcipher-trickle-") as folder:
        swap = [] if "kemi" in example else [FLAGS]
        with gateway(net, example, *swap, **script_with(folder, example)) as g:
            terminal = ice.Ice(net, "caller", "10.200.1.2", candidates=False)
            bad, good = Trap(net, "10.200.1.2"), Trap(net, "10.200.1.2")
            offer = g.a.sdp(address="0.0.0.0", suite="AES_CM_128_HMAC_SHA1_80").replace("m=audio 9000", "m=audio 9")
            g.a.request("INVITE", TO, "one", body=offer + terminal.attributes() + "a=ice-options:trickle\r\na=mid:7\r\n")
            invite = g.b.wait("INVITE")
            assert "a=ice-options:trickle" in invite and "a=end-of-candidates" in invite, invite
            g.b.reply(200, invite, g.b.sdp(), "b")
            answer = g.a.wait("SIP/2.0 200")
            assert "a=ice-options:trickle" in answer, answer
            terminal.believe(answer)
            routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", answer)))
            g.a.request("ACK", TO, "ack", "b", routes=routes)
            cseq = 1

            def info(body, who=g.a, call_id="one", kind=KIND, tag=";tag=b"):
                """Its status code."""
                nonlocal cseq
                cseq += 1
                text = (f"INFO {TO} SIP/2.0\r\nVia: SIP/2.0/UDP {who.address}:{who.port};branch=z9hG4bKi{cseq}\r\nFrom: <sip:a@10.200.1.2>;tag=a\r\n"
                        f"To: <sip:callee@10.200.2.2>{tag}\r\nCall-ID: {call_id}\r\nCSeq: {cseq} INFO\r\nMax-Forwards: 70\r\n{routes}"
                        f"Info-Package: trickle-ice\r\nContent-Disposition: Info-Package\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}")
                who.socket.sendto(text.encode(), ("10.200.1.1" if who is g.a else "10.200.2.1", 5060))
                return who.wait("SIP/2.0", f"CSeq: {cseq} INFO").split()[1]

            assert info("m=audio\nno line\r\n" + fragment(terminal, [bad.port])) == "400"
            assert info(fragment(terminal, [bad.port]), call_id="another") == "400"
            code = info(fragment(terminal, [bad.port]), who=g.c, tag="")
            assert code == ("481" if "kemi" in example else "405"), code
            # Outsiders: one knows all but the password, one sends from elsewhere.
            assert info(fragment(terminal, [bad.port], pwd="q" * 24)) == "200", g.kam.text()[-3000:]
            assert info(fragment(terminal, [bad.port], pwd="q" * 24), who=g.c) == "200"
            assert info(fragment(terminal, [good.port, terminal.port]), kind=KIND.upper() + ";charset=utf-8") == "200"
            wait_for("a check of each candidate", lambda: terminal.requests and good.caught())
            terminal.check()

            def used():
                streams = [s for t in g.daemon.client.call("query", call_id="one")["tags"].values() for m in t["medias"] for s in m["streams"]]
                return [s for s in streams if s.get("endpoint", {}).get("port") == terminal.port]
            wait_for("the pair", used)
            assert not bad.caught()
            # Control: an INFO of another kind is for the callee.
            g.a.socket.settimeout(0.05)
            g.a.kind = "application/dtmf-relay"
            g.a.request("INFO", TO, "dtmf", "b", "Signal=1", cseq=90, routes=routes)
            assert "Signal=1" in g.b.wait("INFO") and not [m for m in g.b.listen() if "candidate" in m and m.startswith("INFO")]
            terminal.close()
