# SPDX-License-Identifier: GPL-2.0-or-later
"""MIKEY on one side of Kamailio, each other keying on the other, in both directions, with media. A terminal that is refused learns it by
488."""
import re
import tempfile
import threading
import types

import dtls
import ng
import test_keyings
import test_mikey
import test_zrtp
from baresip import wait_for
from run import Skip, cases
from test_keyings import KINDS
from test_mikey import ALICE, BOB, PSK, World, bob, flip, initiator
from test_module import S80
from test_proven import gateway

PREPARE = test_mikey.PREPARE

CALLEE = "sip:callee@10.200.2.2:5060"
# Offer and answer of the script.
TO_MIKEY = ("RTP/SAVP ICE=remove replace-origin MIKEY=require MIKEY-peer=" + BOB, "ICE=remove replace-origin")
TO_SDES = ("RTP/SAVP ICE=remove replace-origin SDES-only-" + S80, "ICE=remove replace-origin")
# Offer to a callee of this keying.
FLAGS = {"plain": "RTP/AVP ICE=remove replace-origin", "sdes": TO_SDES[0], "zrtp": "RTP/AVP ICE=remove replace-origin ZRTP=terminate",
         "dtls": "UDP/TLS/RTP/SAVP ICE=remove replace-origin rtcp-mux-offer SDES-off"}


# Logs whom MIKEY proved the parties to be.
ASK = """
	if (is_method("BYE"))
		xcipher_query("", "ASKED");
	route(XCIPHER);
}

route[ASKED] {
	xlog("L_WARN", "test: MIKEY of $xcipher(mikey_from) and $xcipher(mikey_to)\\n");
	route(XCIPHER);
}
"""
ASKED = ("\n\troute(XCIPHER);\n}\n", ASK)


class Callee:
    """Answers every INVITE with the SDP of the terminal."""

    def __init__(self, net, terminal):
        self.terminal, self.requests, self.answer, self.ended = terminal, [], None, False
        self.socket = ng.socket_in(net.terminal["callee"])
        self.socket.bind((terminal.address, 5060))
        self.socket.settimeout(0.2)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended:
            try:
                data, source = self.socket.recvfrom(65536)
            except OSError:
                continue
            self.take(data.decode(), source)

    def take(self, text, source):
        method = text.split(" ")[0]
        self.requests.append(method)
        if method == "INVITE":
            if self.answer is None:
                self.terminal.believe(text.split("\r\n\r\n", 1)[1])
                self.answer = self.terminal.sdp()
            self.reply(text, source, self.answer)
        elif method != "ACK":
            self.reply(text, source, "")

    def reply(self, request, source, body, status="200 OK", more=()):
        kept = re.findall(r"^(?:Via|From|Call-ID|CSeq|Record-Route):.*$", request, re.M | re.I)
        to = re.search(r"^To:[^\r]*", request, re.M | re.I)[0]
        head = [f"SIP/2.0 {status}", *more, *(line.strip() for line in kept), to if ";tag=" in to else to + ";tag=b", "Contact: <" + CALLEE + ">",
                *(["Content-Type: application/sdp"] if body else []), f"Content-Length: {len(body)}", "", body]
        self.socket.sendto("\r\n".join(head).encode(), source)

    def close(self):
        self.ended = True
        self.thread.join()
        self.socket.close()
        self.terminal.close()


def callee(world, net, **how):
    terminal = test_mikey.Mikey(net, "callee", "10.200.2.2").use(bob(world, **how))
    return Callee(net, terminal)


@cases(*(("ours", far, side) for far in FLAGS for side in ("caller", "callee")), ("stock", "plain", "caller"), ("stock", "sdes", "callee"))
def test_media(net, how, far, side):
    """MIKEY at one side of the proxy, another keying at the other. Each end hears the other under its own keys. Our module tells the script
    whom MIKEY proved."""
    kinds = {place: KINDS["mikey" if place == side else far] for place in ("caller", "callee")}
    if not KINDS[far].have():
        raise Skip(f"no program or library for {far}")
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        flags = (FLAGS[far] if side == "caller" else TO_MIKEY[0], FLAGS[far] if side == "callee" and far == "zrtp" else TO_MIKEY[1])
        with gateway(net, how, [f + " direction=caller direction=callee" for f in flags], options=(f"--mikey-config={world.path}",),
                     swap=[ASKED] if how == "ours" else []) as kam:
            a, b = phones = [test_zrtp.Phone(kind.make(net, place)) for place, kind in kinds.items()]
            a.call(CALLEE)
            b.accept()
            a.answered()
            b.receive("ACK")
            for step in ("start", "keyed"):
                for phone, kind in zip(phones, kinds.values()):
                    getattr(kind, step)(phone.terminal)
            c = types.SimpleNamespace(a=a.terminal, b=b.terminal)
            test_keyings.talk(c)
            test_keyings.check_ends(c, *("mikey" if place == side else far for place in kinds))
            mode = "dhhmac responder" if side == "caller" else "psk initiator"
            assert kam.daemon.statistics()["MIKEY"][mode + " completed"] >= 1
            ended = threading.Thread(target=b.end)
            ended.start()
            a.hang_up()
            ended.join()
            said = f"test: MIKEY of {ALICE} and <null>" if side == "caller" else f"test: MIKEY of <null> and {BOB}"
            assert how == "stock" or said in kam.text(), kam.text()
            for phone in phones:
                phone.terminal.close()
                phone.socket.close()


def refusal(terminal):
    """The refusal of a call from this terminal."""
    a = test_zrtp.Phone(terminal)
    a.call(CALLEE)
    reply = a.receive("SIP/2.0 [3-6]")
    a.socket.close()
    terminal.close()
    return reply


def is_488_with(reply, text):
    """text: in the Warning header; empty: there is none."""
    assert reply.startswith("SIP/2.0 488 Not Acceptable Here\r\n"), reply
    warning = re.findall(r'^Warning: 399 xcipher "(.*)"\r$', reply, re.M)
    assert len(warning) == bool(text) and text in "".join(warning), reply


def test_a_callee_whose_answer_was_changed(net):
    """The caller gets 488, and learns why."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with gateway(net, "ours", TO_MIKEY, options=(f"--mikey-config={world.path}",)) as kam:
            b = callee(world, net)
            b.terminal.change = flip(-1)
            reply = refusal(test_mikey.Sdes(net, "caller", "10.200.1.2"))
            is_488_with(reply, "MIKEY exchange failed")
            assert "MAC or signature does not verify" in reply, reply
            b.close()
            assert kam.daemon.statistics()["MIKEY"]["psk initiator auth"] >= 1
            assert "MIKEY exchange failed" in kam.text()


def test_a_refused_caller_learns_why(net):
    """488 with the reason of the daemon's refusal, for a changed message and an unknown identity. Reasons that name addresses are not told."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with gateway(net, "ours", TO_SDES, options=(f"--mikey-config={world.path}",)) as kam:
            stranger = test_mikey.peer.Initiator("psk", "sip:eve@example.net", test_mikey.GATEWAY, psk=PSK)
            for side, change, text in ((initiator(world, "dh"), flip(-1), "MAC or signature does not verify"),
                                       (stranger, lambda m: m, "identity is unknown")):
                terminal = test_mikey.Mikey(net, "caller", "10.200.1.2").use(side)
                terminal.change = change
                reply = refusal(terminal)
                is_488_with(reply, "MIKEY exchange failed")
                assert text in reply and text in kam.text(), reply
            terminal = test_mikey.Sdes(net, "caller", "10.200.1.2")
            sdp = terminal.sdp().replace("10.200.1.2", "127.0.0.1")
            terminal.sdp = lambda: sdp
            is_488_with(refusal(terminal), "")
            assert "Media address is not allowed" in kam.text()


class Refuser(Callee):
    """Refuses every INVITE with this status and these headers."""

    def __init__(self, net, status, headers):
        self.status, self.headers, self.invite = status, headers, None
        super().__init__(net, dtls.Plain(net, "callee", "10.200.2.2"))

    def take(self, text, source):
        if text.startswith("INVITE "):
            self.invite = text
            self.reply(text, source, "", self.status, self.headers)


@cases(("420 Bad Extension", ["Unsupported: sec-agree"]), ("428 Use Identity Header", []), ("488 Not Acceptable Here", ["Warning: 304 b.example.org \"No MIKEY\""]),
       ("606 Not Acceptable", ["Warning: 399 b.example.org \"No common key management\""]))
def test_a_callees_refusal_passes(net, status, headers):
    """The caller gets status, reason phrase and headers as the callee wrote them, and the callee gets the caller's Require. The daemon forgets the
    call."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with gateway(net, "ours", TO_SDES, options=(f"--mikey-config={world.path}",)) as kam:
            b = Refuser(net, status, headers)
            a = test_zrtp.Phone(test_mikey.Mikey(net, "caller", "10.200.1.2").use(initiator(world, "dhhmac")))
            a.call(CALLEE, ["Require: sec-agree"])
            reply = a.receive("SIP/2.0 [3-6]")
            assert reply.startswith(f"SIP/2.0 {status}\r\n") and all(h in reply for h in headers), reply
            assert "Require: sec-agree" in b.invite and "m=audio" in b.invite and "RTP/SAVP" in b.invite, b.invite
            wait_for("an end without calls", lambda: kam.daemon.client.call("list")["calls"] == [])
            b.close()
            a.terminal.close()
