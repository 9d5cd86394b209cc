# SPDX-License-Identifier: GPL-2.0-or-later
"""A fax over Debian's Kamailio: sipp sets up an audio call, the callee re-INVITEs to T.38 (image, udptl), and back to audio. The
terminals' media are sockets of the test."""
import base64
import os
import re
import struct

import ng
import sipp
import srtp
from run import cases
from test_module import S32, finish
from test_proven import SRTP, TO_32, answered, asked, call, gateway, wait_for
from test_raw import udptl

PORT = 9000
PLAIN = ("RTP/AVP ICE=remove replace-origin direction=caller direction=callee", SRTP[1])
HEAD = "v=0\no=- 1 1 IN IP4 [local_ip]\ns=-\nc=IN IP4 [local_ip]\nt=0 0\n"
FAX = HEAD + f"m=image {PORT} udptl t38\na=T38FaxVersion:0\na=T38FaxUdpEC:t38UDPRedundancy"
WHERE = {"caller": ("10.200.1.2", "10.200.1.1"), "callee": ("10.200.2.2", "10.200.2.1")}


class Terminal:
    """A media socket. key: of its SRTP, if it speaks SRTP."""

    def __init__(self, net, name, suite=None):
        self.name, self.suite, self.seq = name, suite, 0
        self.sock = ng.socket_in(net.terminal[name])
        self.sock.bind((WHERE[name][0], PORT))
        self.sock.settimeout(30)
        self.key = os.urandom(30) if suite else None
        self.tx = srtp.Session(suite, self.key, srtp.OUTBOUND) if suite else None
        self.rx = self.to = None

    def audio(self):
        crypto = f"a=crypto:1 {self.suite} inline:{base64.b64encode(self.key).decode()}\n" if self.suite else ""
        return HEAD + f"m=audio {PORT} {'RTP/SAVP' if self.suite else 'RTP/AVP'} 0\n{crypto}a=rtpmap:0 PCMU/8000"

    def rtp(self):
        self.seq += 1
        return struct.pack("!BBHII", 0x80, 0, self.seq, self.seq * 160, 7) + os.urandom(20)

    def hears(self, other, clear):
        """The packet arrives as it was sent; SRTP is protected and unprotected by libsrtp2."""
        other.sock.sendto(other.tx.protect(clear) if other.tx and clear[0] == 0x80 else clear, other.to)
        got = self.sock.recv(2048)
        got = self.rx.unprotect(got) if self.rx and clear[0] == 0x80 else got
        assert got is not None and got[12 if clear[0] == 0x80 else 0:] == clear[12 if clear[0] == 0x80 else 0:], (self.name, got, clear)


KEY = '<ereg regexp="a=crypto:1 [A-Z0-9_]* inline:[A-Za-z0-9+/=]*" search_in="body" assign_to="3"/><log message="[$3]"/>'


def requests(bodies):
    """The steps of a callee. It sends re-INVITEs with these bodies, then BYE, each on an INFO."""
    head = f"""Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch]
From: <sip:callee@[local_ip]>;tag=[pid]u[call_number]
To: [$2]
Call-ID: [call_id]
CSeq: %d %s{sipp.CONTACT}
Max-Forwards: 70
[routes]"""
    steps = []
    for cseq, body in enumerate(bodies, 1):
        invite = sipp.message("INVITE [next_url] SIP/2.0", head % (cseq, "INVITE"), body)
        ack = sipp.message("ACK [next_url] SIP/2.0", head % (cseq, "ACK"))
        steps += ['<recv request="INFO"/>', f'<send retrans="500" start_txn="again{cseq}">{invite}</send>', *sipp.provisional(f"again{cseq}"),
                  f'<recv response="200" response_txn="again{cseq}"><action>{KEY}<log message="again"/></action></recv>',
                  f'<send ack_txn="again{cseq}">{ack}</send>']
    bye = sipp.message("BYE [next_url] SIP/2.0", head % (len(bodies) + 1, "BYE"))
    return [*steps, '<recv request="INFO"/>', f'<send retrans="500" start_txn="bye">{bye}</send>', *sipp.provisional("bye", 100),
            '<recv response="200" response_txn="bye"/>']


def callee(first, *bodies):
    """Answers with the first body, then sends re-INVITEs with the others. Logs its peer's crypto
    line."""
    head = sipp.REPLY.replace("[last_To:]", "[last_To:];tag=[pid]u[call_number]") + sipp.CONTACT + "\n[last_Record-Route:]"
    peer = '<ereg regexp="[^ ].*" search_in="hdr" header="From:" check_it="true" assign_to="2"/>'
    return sipp.scenario([f'<recv request="INVITE" rrs="true"><action>{peer}{KEY}</action></recv>',
                          f'<send retrans="{sipp.PATIENCE}">{sipp.message("SIP/2.0 200 OK", head, first)}</send>',
                          '<recv request="ACK"><action><log message="[call_id]"/></action></recv>', *requests(bodies)])


def caller(first, *answers):
    """Sends the INVITE with the first body, then answers re-INVITEs until BYE. Each must match its
    pattern."""
    to = "sip:callee@10.200.2.2:5060"
    values = {"to": to, "extra": ""}
    invite = sipp.message(f"INVITE {to} SIP/2.0", sipp.in_dialog("INVITE", 1, "") % values, first)
    ack = sipp.message("ACK [next_url] SIP/2.0", sipp.in_dialog("ACK", 1) % {"to": to, "extra": "[routes]\n"})
    steps = [f'<send retrans="500" start_txn="invite">{invite}</send>', *sipp.provisional("invite"),
             '<recv response="200" rrs="true" response_txn="invite"/>', f'<send ack_txn="invite">{ack}</send>']
    for pattern, body in answers:
        steps += [f'<recv request="INVITE">{sipp.expect(pattern)}</recv>',
                  f'<send retrans="{sipp.PATIENCE}">{sipp.message("SIP/2.0 200 OK", sipp.REPLY + sipp.CONTACT + chr(10) + "[last_Record-Route:]", body)}</send>',
                  '<recv request="ACK"/>']
    return sipp.scenario([*steps, '<recv request="BYE"/>', f"<send>{sipp.message('SIP/2.0 200 OK', sipp.REPLY)}</send>", '<Reference variables="1"/>'])


def ports(kam):
    """The relay's port towards each terminal, and the profile of its m-line."""
    query = kam.daemon.client.call("query", call_id=kam.daemon.client.call("list")["calls"][0])
    media = [(t["medias"][0], t["medias"][0]["streams"][0]) for t in query["tags"].values()]
    return {s["endpoint"]["address"]: (s["local port"], m["type"], m["protocol"], m.get("crypto suite")) for m, s in media if "endpoint" in s}


@cases(("stock", None), ("ours", S32))
def test_the_callee_changes_to_fax_and_back(net, how, suite):
    with gateway(net, how, TO_32 if suite else PLAIN) as kam:
        a, b = Terminal(net, "caller"), Terminal(net, "callee", suite)
        theirs = answered(net, kam, callee(b.audio(), FAX, b.audio()))
        mine = call(net, kam, caller(a.audio(), ("m=image [1-9][0-9]* udptl t38", FAX), ("m=audio [1-9][0-9]* RTP/AVP ", a.audio())))

        def log():
            return open(theirs.base + ".log", encoding="ascii").read().splitlines() if os.path.exists(theirs.base + ".log") else []

        def speaks(state, kind, protocols, number):
            """Both sides have these m-lines once this many re-INVITEs were answered."""
            want = {"10.200.1.2": (kind, protocols[0]), "10.200.2.2": (kind, protocols[1])}
            wait_for(state, lambda: log().count("again") == number and {ip: p[1:3] for ip, p in ports(kam).items()} == want)
            for ip, port in ((ip, p[0]) for ip, p in ports(kam).items()):
                next(t for t in (a, b) if WHERE[t.name][0] == ip).to = (WHERE["caller" if ip == "10.200.1.2" else "callee"][1], port)

        def again(number):
            theirs.hang_up(net, [line for line in log() if "@" in line], number)

        rtp = ("RTP/AVP", "RTP/SAVP" if suite else "RTP/AVP")
        wait_for("the ACK", lambda: any("@" in line for line in log()))
        for number, (kind, protocols) in enumerate((("audio", rtp), ("image", ("udptl", "udptl")), ("audio", rtp))):
            speaks(f"{kind}, {number} re-INVITEs", kind, protocols, number)
            if suite and kind == "audio":  # from the last SDP sent to the callee
                key = re.findall(rf"a=crypto:1 {suite} inline:(\S+)", "\n".join(log()))[-1]
                b.rx = srtp.Session(suite, base64.b64decode(key), srtp.INBOUND)
            for seq in range(10):
                for x, y in ((a, b), (b, a)):
                    x.hears(y, y.rtp() if kind == "audio" else udptl(seq, bytes(seq + 1)))
            again(number + 1)
        finish(mine, 1)
        finish(theirs, 1)
        assert (asked(kam, "offer"), asked(kam, "answer"), asked(kam, "delete")) == (3, 3, 1)
        a.sock.close()
        b.sock.close()
