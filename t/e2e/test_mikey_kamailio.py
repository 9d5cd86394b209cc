# SPDX-License-Identifier: GPL-2.0-or-later
"""MIKEY on one side of Kamailio, SDES or RTP on the other, in both directions, with a scripted SIP peer. A terminal that is refused learns
it by 488."""
import re
import tempfile
import threading

import dtls
import ng
import sipp
import test_mikey
import test_zrtp
from baresip import wait_for
from run import cases
from test_mikey import BOB, PSK, World, bob, calling, flip, initiator
from test_module import S80, finish
from test_proven import answered, call, gateway

CALLEE = "sip:callee@10.200.2.2:5060"
# Offer and answer of the script.
TO_MIKEY = ("RTP/SAVP ICE=remove replace-origin MIKEY=require MIKEY-peer=" + BOB, "ICE=remove replace-origin")
TO_SDES = ("RTP/SAVP ICE=remove replace-origin SDES-only-" + S80, "ICE=remove replace-origin")


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


@cases((S80,), (None,))
def test_to_a_callee_of_mikey(net, suite):
    """The caller speaks SDES or RTP."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with gateway(net, "ours", TO_MIKEY, options=(f"--mikey-config={world.path}",)) as kam:
            b = callee(world, net)
            finish(call(net, kam, sipp.caller(suite, CALLEE)), 1)
            wait_for("its BYE", lambda: "BYE" in b.requests)
            b.close()
            assert b.terminal.side.keys and kam.daemon.statistics()["MIKEY"]["psk initiator completed"] >= 1


def test_a_callee_whose_answer_was_changed(net):
    """The caller gets 488."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with gateway(net, "ours", TO_MIKEY, options=(f"--mikey-config={world.path}",)) as kam:
            b = callee(world, net)
            b.terminal.change = flip(-1)
            finish(call(net, kam, sipp.caller(S80, CALLEE, 488)), 1)
            b.close()
            assert kam.daemon.statistics()["MIKEY"]["psk initiator auth"] >= 1
            assert "MIKEY exchange failed" in kam.text()


def test_from_a_caller_of_mikey_to_sdes(net):
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with gateway(net, "ours", TO_SDES, options=(f"--mikey-config={world.path}",)) as kam:
            b = answered(net, kam, sipp.callee(S80))
            finish(call(net, kam, calling(initiator(world, "dhhmac"))), 1)
            finish(b, 1)


def test_a_refused_caller_learns_why(net):
    """488 with the reason of the daemon's refusal, for a changed message and an unknown identity."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with gateway(net, "ours", TO_SDES, options=(f"--mikey-config={world.path}",)) as kam:
            stranger = test_mikey.peer.Initiator("psk", "sip:eve@example.net", test_mikey.GATEWAY, psk=PSK)
            for side, change, text in ((initiator(world, "dh"), flip(-1), "MAC or signature does not verify"),
                                       (stranger, lambda m: m, "identity is unknown")):
                finish(call(net, kam, calling(side, 488, change)), 1)
                assert text in kam.text() or text in kam.daemon.text(), text


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
