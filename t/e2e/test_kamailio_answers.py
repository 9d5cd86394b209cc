# SPDX-License-Identifier: GPL-2.0-or-later
"""The shipped examples with stock and own module. SDP of a refused answer reaches no terminal.
Calls are forked before and by Kamailio. Terminals are sockets that speak SIP, so that a test
sees each message."""
import contextlib
import re
import tempfile

import ng
import relay
import sipp
from baresip import wait_for
from run import cases
from test_module import BOTH, needs, quoted

DENIED = "10.200.2.99"
CONTROL = 'loadmodule "kex.so"\nloadmodule "ctl.so"\nmodparam("ctl", "binrpc", XC_CTL)\nloadmodule "tm.so"'
COREX = 'loadmodule "corex.so"\nloadmodule "textops.so"'
EXAMPLES = (("kamailio-demo.cfg",), ("kamailio-module.cfg",), ("kamailio-module-kemi.cfg",))


class Agent:
    """A SIP terminal with one port. kind: Content-Type of its bodies; user: in its From as a caller; length: it sends Content-Length."""

    kind, user, called, length = "application/sdp", "a", "callee", True

    def __init__(self, net, name, address, port=5060):
        self.name, self.address, self.port = name, address, port
        self.socket = ng.socket_in(net.terminal[name])
        self.socket.bind((address, port))
        self.socket.settimeout(0.05)
        self.heard = []

    def listen(self):
        """All messages received so far."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.heard.append(self.socket.recv(65535).decode())
        return self.heard

    def wait(self, start, also=""):
        """The first message with this beginning and content."""
        return wait_for(f"{start} {also}at {self.port}", lambda: [m for m in self.listen() if m.startswith(start) and also in m])[0]

    def sdp(self, address=None, suite="AES_CM_128_HMAC_SHA1_32"):
        text = sipp.sdp(suite, callee=self.name == "callee").replace("[local_ip_type]", "4").replace("[media_ip_type]", "4")
        return text.replace("[local_ip]", self.address).replace("[media_ip]", address or self.address).replace("[media_port]", "9000").replace("\n", "\r\n") + "\r\n"

    def send(self, text, body, to):
        kind = f"Content-Type: {self.kind}\r\n" if body and self.kind else ""
        length = f"Content-Length: {len(body)}\r\n" if self.length else ""
        self.socket.sendto(f"{text}{kind}{length}\r\n{body}".encode(), to)

    def request(self, method, uri, branch, to_tag="", body="", cseq=1, routes=""):
        self.send(f"{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {self.address}:{self.port};branch=z9hG4bK{branch}\r\nFrom: <sip:{self.user}@{self.address}>;tag=a\r\n"
                  f"To: <sip:{self.called}@10.200.2.2>{to_tag and ';tag=' + to_tag}\r\nCall-ID: one\r\nCSeq: {cseq} {method}\r\nMax-Forwards: 70\r\n{routes}"
                  f"Contact: <sip:a@{self.address}:{self.port}>\r\n", body, ("10.200.1.1", 5060))

    def reply(self, code, to, body="", tag=None):
        """Sends a reply to this request."""
        head = "".join(f"{line}\r\n" for line in to.split("\r\n") if re.match(r"(?:Via|From|Call-ID|CSeq|Record-Route):", line))
        called = re.search(r"\r\n(To: [^\r]*)", to)[1]
        self.send(f"SIP/2.0 {code} Test\r\n{head}{called}{'' if ';tag=' in called else ';tag=' + (tag or f'u{self.port}')}\r\n"
                  f"Contact: <sip:callee@{self.address}:{self.port}>\r\n", body, ("10.200.2.1", 5060))


class Gateway:
    def __init__(self, net, folder, example, *swap, options=(), **defines):
        needs()
        self.example = example
        self.daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", f"--media-deny={DENIED}", *options, addresses=BOTH).wait_ready()
        more = [('loadmodule "textops.so"', COREX)]
        if example == "kamailio-demo.cfg":
            more.append(('loadmodule "tm.so"', CONTROL))
        if "kemi" in example:
            defines.setdefault("XC_SCRIPT", quoted(relay.ROOT + "/kamailio-cfg/xcipher-module.js"))
        self.kam = sipp.Kamailio(net, folder, example=example, swap=[*more, *swap], **defines)
        self.a = Agent(net, "caller", "10.200.1.2")
        self.b = Agent(net, "callee", "10.200.2.2")
        self.c = Agent(net, "callee", "10.200.2.2", 5070)

    def invite(self, branch, port=5060, **kw):
        self.a.request("INVITE", f"sip:callee@10.200.2.2:{port}", branch, body=self.a.sdp(suite="AES_CM_128_HMAC_SHA1_80"), **kw)

    def calls(self):
        return self.daemon.client.call("list")["calls"]

    def stop(self):
        log = self.kam.text()
        assert self.kam.stop() == 0, log[-3000:]
        assert self.daemon.stop() == 0, self.daemon.text()
        assert "CRITICAL" not in log.partition("Thank you for flying")[0], log[-3000:]


@contextlib.contextmanager
def gateway(net, example, *swap, options=(), **defines):
    with tempfile.TemporaryDirectory(prefix="xcipher-answers-") as folder:
        g = Gateway(net, folder, example, *swap, options=options, **defines)
        yield g
        g.stop()


def raw(agent):
    """Messages with the other side's unchanged SDP."""
    return [m for m in agent.listen() if "inline:Q2Fs" in m or "IP4 " + DENIED in m]


@cases(*EXAMPLES)
def test_a_refused_answer_reaches_no_caller(net, example):
    """The callee's address is denied. A provisional reply goes on without its body; a final one
    gives the caller a 488. Control: the same callee with its real address is answered."""
    with gateway(net, example) as g:
        g.invite("one")
        invite = g.b.wait("INVITE")
        g.b.reply(183, invite, g.b.sdp(DENIED))
        early = g.a.wait("SIP/2.0 183")
        assert "m=audio" not in early and "Content-Type" not in early and "Content-Length: 0" in early, early
        for _ in range(3):  # it repeats the reply until it gets an ACK
            g.b.reply(200, invite, g.b.sdp(DENIED))
            g.a.wait("SIP/2.0 4", "CSeq: 1 INVITE")
        wait_for("the daemon's end of it", lambda: g.calls() == [])
        assert not raw(g.a) and not [m for m in g.a.listen() if m.startswith("SIP/2.0 2")], g.a.heard
        g.a.request("ACK", "sip:callee@10.200.2.2:5060", "one", to_tag="u5060")
        g.a.heard.clear()
        g.b.heard.clear()
        g.invite("two", cseq=2)
        g.b.reply(200, g.b.wait("INVITE", "CSeq: 2 "), g.b.sdp(), "other")
        assert "c=IN IP4 10.200.1.1" in g.a.wait("SIP/2.0 200"), g.a.heard
        assert not raw(g.a)


@cases(*EXAMPLES)
def test_an_answering_point_in_an_esinet(net, example):
    """XC_NENA: an emergency call is offered DTLS-SRTP with AES-256, and fails if the answer has other keys. The caller keeps its own. An ordinary call is offered
    what it would be offered without."""
    with gateway(net, example, XC_NENA=1, XC_FALLBACK=quoted("")) as g:
        g.invite("one")
        ordinary = g.b.wait("INVITE")
        assert " RTP/SAVP 0" in ordinary and "a=crypto" in ordinary, ordinary
        g.b.reply(486, ordinary)
        g.a.wait("SIP/2.0 486")
        g.a.request("ACK", "sip:callee@10.200.2.2:5060", "one", to_tag="u5060")
        wait_for("the end of it", lambda: g.calls() == [])
        dtls = g.b.sdp(suite=None).replace("RTP/AVP", "UDP/TLS/RTP/SAVP") + f"a=setup:active\r\na=fingerprint:sha-256 {':'.join(['AB'] * 32)}\r\n"
        for cseq, branch, body, wanted in ((2, "two", g.b.sdp(), "SIP/2.0 4"), (3, "three", dtls, "SIP/2.0 200")):
            g.a.request("INVITE", "sip:112@10.200.2.2:5060", branch, body=g.a.sdp(suite="AES_CM_128_HMAC_SHA1_80"), cseq=cseq)
            invite = g.b.wait("INVITE sip:112@", f"CSeq: {cseq} ")
            assert " UDP/TLS/RTP/SAVP 0" in invite and "a=fingerprint" in invite and "a=crypto" not in invite, invite
            g.b.reply(200, invite, body, branch)
            answer = g.a.wait(wanted, f"CSeq: {cseq} INVITE")
            if cseq == 2:
                assert "m=audio" not in answer, answer
                g.a.request("ACK", "sip:112@10.200.2.2:5060", branch, to_tag=branch, cseq=cseq)
                wait_for("the end of it", lambda: g.calls() == [])
        assert " RTP/SAVP 0" in answer and "a=crypto" in answer and "a=fingerprint" not in answer, answer


@cases(*EXAMPLES)
def test_a_call_forked_before_kamailio(net, example):
    """A proxy before us sends three INVITEs of one call. Two phones answer: both answers are valid,
    and the second waits. The CANCEL of the third branch ends only that branch. So does the first
    phone's BYE."""
    with gateway(net, example) as g:
        invites = []
        for phone, branch in ((g.b, "one"), (g.c, "two"), (g.c, "three")):
            g.invite(branch, phone.port)
            invites.append(phone.wait("INVITE", f"z9hG4bK{branch}"))
        assert len({re.search(r"m=audio (\d+)", m)[1] for m in invites}) == 3, "phones are told one port"
        for phone, invite, tag in ((g.b, invites[0], "b"), (g.c, invites[1], "c")):
            phone.reply(200, invite, phone.sdp(), tag)
            answer = g.a.wait("SIP/2.0 200", f"tag={tag}\r")
            assert "c=IN IP4 10.200.1.1" in answer, answer
        g.c.reply(180, invites[2], tag="d")
        g.a.wait("SIP/2.0 180")
        g.a.request("CANCEL", "sip:callee@10.200.2.2:5070", "three")
        g.c.reply(487, g.c.wait("INVITE", "z9hG4bKthree") if g.c.wait("CANCEL") else "", tag="d")
        g.a.wait("SIP/2.0 487")
        query = g.daemon.client.call("query", call_id="one")
        assert {"a", "b", "c"} <= set(query["tags"]), query
        routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", answer)))
        g.a.request("BYE", "sip:callee@10.200.2.2:5060", "bye", "b", cseq=2, routes=routes)
        g.b.wait("BYE")
        wait_for("the end of one dialog", lambda: "b" not in g.daemon.client.call("query", call_id="one")["tags"])
        assert g.calls() == ["one"] and not raw(g.a)


@cases(*EXAMPLES[:2])
def test_a_call_forked_by_kamailio(net, example):
    """Both phones of one user answer at the same time. They share one offer, so the late answer is refused; the first phone keeps the call."""
    relayed = "\troute(XCIPHER);\n\tif (!t_relay" if example == "kamailio-demo.cfg" else "\t# Relays the request"
    fork = '\tif (is_method("INVITE") && !has_totag()) {\n\t\tappend_branch("sip:callee@10.200.2.2:5070");\n\t}\n'
    with gateway(net, example, (relayed, fork + relayed)) as g:
        g.invite("one")
        first, second = g.b.wait("INVITE"), g.c.wait("INVITE")
        g.b.reply(200, first, g.b.sdp())
        g.a.wait("SIP/2.0 200", "tag=u5060")
        for _ in range(2):
            g.c.reply(200, second, g.c.sdp())
        wait_for("the refusal", lambda: "refused" in g.kam.text())
        if example != "kamailio-demo.cfg":
            g.c.wait("BYE")
        query = g.daemon.client.call("query", call_id="one")
        assert "u5060" in query["tags"] and "u5070" not in query["tags"], query["tags"]
        assert not [m for m in g.a.listen() if "tag=u5070" in m and m.startswith("SIP/2.0 2")] and not raw(g.a), g.a.heard


@cases(*EXAMPLES)
def test_a_delayed_offer(net, example):
    """The callee offers in its 200, the caller answers in its ACK. Neither gets the other's
    original SDP. A call cancelled earlier ends."""
    with gateway(net, example) as g:
        to = "sip:callee@10.200.2.2:5060"
        g.a.request("INVITE", to, "early")
        invite = g.b.wait("INVITE")
        g.b.reply(183, invite, g.b.sdp())
        g.a.wait("SIP/2.0 183")
        assert g.calls() == ["one"]
        g.a.request("CANCEL", to, "early")
        g.b.wait("CANCEL")
        wait_for("the end of the first", lambda: g.calls() == [])
        g.b.reply(487, invite)
        g.a.wait("SIP/2.0 487")
        g.a.request("ACK", to, "early", to_tag="u5060")
        g.a.heard.clear()
        g.b.heard.clear()
        g.a.request("INVITE", to, "two", cseq=2)
        g.b.reply(200, g.b.wait("INVITE"), g.b.sdp(), "v")
        offer = g.a.wait("SIP/2.0 200", "CSeq: 2 INVITE")
        assert "c=IN IP4 10.200.1.1" in offer and not raw(g.a), offer
        routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", offer)))
        g.a.request("ACK", to, "ack", "v", g.a.sdp(suite="AES_CM_128_HMAC_SHA1_80"), cseq=2, routes=routes)
        ack = g.b.wait("ACK", "m=audio")
        assert re.search(r"c=IN IP4 10\.200\.[12]\.1\r", ack) and "inline:WVNf" not in ack, ack
        assert set(g.daemon.client.call("query", call_id="one")["tags"]) == {"a", "v"}
