# SPDX-License-Identifier: GPL-2.0-or-later
"""The shipped Kamailio examples. The callee sends re-INVITEs (hold, resume, session timer), and the
caller's leg stays the same. Also an emergency call to an answering point that only speaks RTP.
Terminals are sockets that speak SIP and SRTP."""
import base64
import os
import re
import struct

import ng
import sipp
import srtp
from baresip import wait_for
from run import cases
from test_edge import DOMAIN, TERMINALS, edge
from test_kamailio_answers import EXAMPLES, gateway
from test_module import finish, quoted

S80, S32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
BLIND = {  # the profiles that the examples name for each side
    "as shipped": (S80, S32, []),
    "plain caller": (None, S80, ["RTP/SAVP", "ICE=remove replace-origin"]),
    "plain callee": (S80, None, ["RTP/AVP", "ICE=remove replace-origin"]),
}


def line(text, suite):
    """Tag and key of this suite in an SDP."""
    m = re.search(rf"a=crypto:(\d+) {suite} inline:([A-Za-z0-9+/=]+)", text)
    return int(m[1]), base64.b64decode(m[2])


class Terminal:
    """A SIP agent with media: port 9000 of its address."""

    def __init__(self, net, agent, suite):
        self.agent, self.suite, self.key, self.tag = agent, suite, os.urandom(30), 1
        self.media = ng.socket_in(net.terminal[agent.name])
        self.media.bind((agent.address, 9000))
        self.media.settimeout(30)
        self.tx = srtp.Session(suite, self.key, srtp.OUTBOUND) if suite else None
        self.rx = self.to = None
        self.seq = 0

    def sdp(self, direction="sendrecv"):
        crypto = f"a=crypto:{self.tag} {self.suite} inline:{base64.b64encode(self.key).decode()}\r\n" if self.suite else ""
        return (f"v=0\r\no=- 1 1 IN IP4 {self.agent.address}\r\ns=-\r\nc=IN IP4 {self.agent.address}\r\nt=0 0\r\n"
                f"m=audio 9000 {'RTP/SAVP' if self.suite else 'RTP/AVP'} 0\r\na=rtpmap:0 PCMU/8000\r\n{crypto}a={direction}\r\n")

    def told(self, message):
        """Reads an offer or answer, which must have this terminal's profile."""
        body = message.partition("\r\n\r\n")[2]
        m = re.search(r"m=audio (\d+) (\S+)", body)
        assert m[2] == ("RTP/SAVP" if self.suite else "RTP/AVP") and m[1] != "0", body
        suites = re.findall(r"a=crypto:\d+ (\S+)", body)
        assert (suites[:1] if self.to else [s for s in suites if s == self.suite]) == ([self.suite] if self.suite else []), body
        assert self.suite or not suites, body
        self.to = (re.search(r"c=IN IP4 (\S+)", body)[1], int(m[1]))
        if self.suite:
            tag, key = line(body, self.suite)
            if (tag, key) != getattr(self, "theirs", None):
                self.rx = srtp.Session(self.suite, key, srtp.INBOUND)
            self.tag, self.theirs = tag, (tag, key)

    def send(self, word):
        self.seq += 1
        packet = struct.pack("!BBHII", 0x80, 0, self.seq, self.seq * 160, 7) + word
        self.media.sendto(self.tx.protect(packet) if self.tx else packet, self.to)

    def hears(self, other):
        word = os.urandom(20)
        other.send(word)
        packet = self.media.recv(2048)
        packet = self.rx.unprotect(packet) if self.rx else packet
        assert packet and packet[12:] == word, packet


def swap(example, flags):
    """The example with these flags for offers and answers."""
    if not flags:
        return []
    name = "xcipher-module.js" if "kemi" in example else example
    assert name == example, "KEMI's flags are in another file"
    mine = "SDES-pad ICE=remove replace-origin"
    offer = f"RTP/SAVP SDES-only-{S32} {mine} direction=caller direction=callee"
    return [(offer, f"{flags[0]} {flags[1]} direction=caller direction=callee"), (f"RTP/SAVP SDES-only-{S80} {mine}", flags[1])]


def talk(a, b):
    for x, y in ((a, b), (b, a)) * 2:
        x.hears(y)


def routes(message, reverse):
    found = re.findall(r"Record-Route: ([^\r]*)", message)
    return "".join(f"Route: {r}\r\n" for r in (reversed(found) if reverse else found))


def establish(g, a, b):
    a.agent.request("INVITE", "sip:callee@10.200.2.2:5060", "one", body=a.sdp())
    invite = b.agent.wait("INVITE")
    b.told(invite)
    b.agent.reply(200, invite, b.sdp())
    ok = a.agent.wait("SIP/2.0 200")
    a.told(ok)
    a.agent.request("ACK", "sip:callee@10.200.2.2:5060", "ack", to_tag="u5060", routes=routes(ok, True))
    b.agent.wait("ACK")
    talk(a, b)
    return invite, ok


def within(agent, method, cseq, invite, body=""):
    """A request from the callee."""
    caller = re.search(r"\r\nFrom: ([^\r]*)", invite)[1]
    uri = re.search(r"\r\nContact: <([^>]*)>", invite)[1]
    agent.send(f"{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {agent.address}:{agent.port};branch=z9hG4bKb{method}{cseq}\r\n"
               f"From: <sip:callee@10.200.2.2>;tag=u5060\r\nTo: {caller}\r\nCall-ID: one\r\nCSeq: {cseq} {method}\r\nMax-Forwards: 70\r\n"
               f"{routes(invite, False)}Contact: <sip:callee@{agent.address}:{agent.port}>\r\n", body, ("10.200.2.1", 5060))


def reanswer(agent, request, body):
    """The caller's 200 to a request from the callee."""
    head = "".join(f"{x}\r\n" for x in request.split("\r\n") if re.match(r"(?:Via|From|To|Call-ID|CSeq|Record-Route):", x))
    agent.send(f"SIP/2.0 200 OK\r\n{head}Contact: <sip:a@{agent.address}:{agent.port}>\r\n", body, ("10.200.1.1", 5060))


@cases(*[(e, how) for (e,) in EXAMPLES for how in BLIND if how == "as shipped" or "kemi" not in e])
def test_the_callee_holds_and_resumes(net, example, how):
    caller, callee, flags = BLIND[how]
    with gateway(net, example, *swap(example, flags)) as g:
        a, b = Terminal(net, g.a, caller), Terminal(net, g.b, callee)
        invite, _ = establish(g, a, b)
        for cseq, (direction, back) in enumerate((("sendonly", "recvonly"), ("sendrecv", "sendrecv")), 1):
            within(b.agent, "INVITE", cseq, invite, b.sdp(direction))
            again = a.agent.wait("INVITE", f"CSeq: {cseq} INVITE")
            a.told(again)
            reanswer(a.agent, again, a.sdp(back))
            b.told(b.agent.wait("SIP/2.0 200", f"CSeq: {cseq} INVITE"))
            within(b.agent, "ACK", cseq, invite)
            a.agent.wait("ACK", f"CSeq: {cseq} ACK")
        talk(a, b)
        within(b.agent, "BYE", 9, invite)
        reanswer(a.agent, a.agent.wait("BYE"), "")
        wait_for("the call's end", lambda: g.calls() == [])


def answered(g, a, invite, b, cseq):
    """The callee answers in RTP; both receive each other."""
    m = re.search(r"m=audio (\d+)", invite)
    b.to = ("10.200.2.1", int(m[1]))
    b.agent.reply(200, invite, b.sdp())
    ok = a.agent.wait("SIP/2.0 200", f"CSeq: {cseq} INVITE")
    a.told(ok)
    a.agent.request("ACK", "sip:callee@10.200.2.2:5060", f"ack{cseq}", to_tag="u5060", cseq=cseq, routes=routes(ok, True))
    b.agent.wait("ACK", f"CSeq: {cseq} ACK")
    talk(a, b)


@cases(*[(e, code) for (e,) in EXAMPLES for code in (200, 488) if "demo" not in e or code == 200])
def test_an_emergency_call_to_who_only_speaks_rtp(net, example, code):
    """A call to the emergency number: RTP is accepted as the answer to SRTP, and after a 488 the
    call is sent again in RTP. The stock module's file offers opportunistically, as shipped.
    Control: to another number the call fails."""
    with gateway(net, example) as g:
        a, b = Terminal(net, g.a, S80), Terminal(net, g.b, None)
        for cseq, user in enumerate(("1120", "112"), 1):
            a.agent.request("INVITE", f"sip:{user}@10.200.2.2:5060", f"i{cseq}", body=a.sdp(), cseq=cseq)
            invite = b.agent.wait("INVITE", f"CSeq: {cseq} INVITE")
            opportunistic = "demo" in example and user == "112"
            assert ("RTP/AVP" if opportunistic else "RTP/SAVP") in invite and "a=crypto" in invite, invite
            if code == 488:
                b.agent.reply(488, invite)
                b.agent.wait("ACK", f"CSeq: {cseq} ACK")
            if user == "1120":
                if code == 200:
                    b.agent.reply(200, invite, b.sdp(), "first")
                a.agent.wait("SIP/2.0 488", f"CSeq: {cseq} INVITE")
                a.agent.request("ACK", f"sip:{user}@10.200.2.2:5060", f"i{cseq}", to_tag="first", cseq=cseq)
                continue
            if code == 488:
                invite = wait_for("a second INVITE", lambda: [m for m in b.agent.listen() if m.startswith("INVITE") and "CSeq: 2 " in m and "RTP/AVP" in m])[0]
                assert "crypto" not in invite and invite.count("m=audio") == 1, invite
            answered(g, a, invite, b, cseq)
            if "demo" not in example:
                assert g.kam.counter("emergency_fallbacks") == 1, g.kam.text()
            if example == "kamailio-module.cfg" and code == 488:
                assert "sent again in RTP" in g.kam.text()
            within(b.agent, "BYE", 9, invite)
            reanswer(a.agent, a.agent.wait("BYE"), "")
            wait_for("the call's end", lambda: g.calls() == [])


def test_the_edge_sends_an_emergency_call_again_in_rtp(net):
    """The call to the carrier, which was offered SRTP and replied 488."""
    head = sipp.REPLY.replace("[last_To:]", "[last_To:];tag=[pid]u[call_number]")
    steps = [f'<recv request="INVITE">{sipp.expect("RTP/SAVP")}</recv>', f"<send retrans=\"500\">{sipp.message('SIP/2.0 488 No', head)}</send>",
             '<recv request="ACK"/>', f'<recv request="INVITE" rrs="true">{sipp.expect("RTP/AVP")}</recv>',
             f"<send retrans=\"3000\">{sipp.message('SIP/2.0 200 OK', head + sipp.CONTACT + chr(10) + '[last_Record-Route:]', sipp.sdp(None))}</send>",
             '<recv request="ACK" optional="true"/>', '<recv request="BYE"/>', f"<send>{sipp.message('SIP/2.0 200 OK', sipp.REPLY)}</send>",
             '<Reference variables="1"/>']
    with edge(net, XC_UDP_MEDIA=quoted("RTP/SAVP")) as e:
        sos = sipp.Sipp(net, e.folder, "carrier", sipp.scenario(steps), "-p", "5060", "-m", "1")
        a = sipp.Sipp(net, e.folder, "bob", sipp.caller(None, f"sip:112@{DOMAIN}"), "10.200.1.1:5060", "-m", "1", "-p", "5090")
        finish(a, 1)
        finish(sos, 1)
        assert "sent again in RTP" in e.kam.text()


test_the_edge_sends_an_emergency_call_again_in_rtp.terminals = TERMINALS
