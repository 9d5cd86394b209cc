#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls with keys of MIKEY under kernel steering: in mode dhhmac, offered by the terminal and to it."""
import os

import rig
from rig import equal, tap
import dtls
import netns
from mikey_terminal import Mikey, peer, responder
from test_ng import start

A, B = "10.200.1.2", "10.200.2.2"
GATEWAY, ALICE, BOB = "sip:gateway@example.org", "sip:alice@example.org", "sip:bob@example.org"
PSK = "a key that both of them know"
MODE = "modes = dhhmac\npsk-file = psk\n"
PACKETS = 40


class Call(dtls.Call):
    """From a terminal of MIKEY to one of RTP, or the other way."""

    def __init__(self, net, daemon, offers):
        here, there = ("caller", A), ("callee", B)
        if offers:
            a, b = Mikey(net, *here).use(peer.Initiator("dhhmac", ALICE, GATEWAY, psk=PSK.encode())), dtls.Plain(net, *there)
            self.flags = {"transport_protocol": "RTP/AVP"}
        else:
            a, b = dtls.Plain(net, *here), Mikey(net, *there).use(responder.Responder(BOB, psk=PSK.encode(), suites=tuple(peer.SUITES)))
            self.flags = {"transport_protocol": "RTP/SAVP", "MIKEY": ["require", "dhhmac"], "flags": ["MIKEY-peer=" + BOB]}
        super().__init__(daemon, a, b, ICE="remove", replace=["origin"])
        self.secure = a if offers else b
        self.offer().answer()

    def close(self):
        self.end()
        self.a.close()
        self.b.close()


def calls(net):
    daemon = start(net, "--steering=kernel", "--workers=1", "--mikey-config=/tmp/mikey.ini")
    for offers, name in ((True, "offered by the terminal"), (False, "offered to it")):
        call = Call(net, daemon, offers)
        call.exchange(1)
        before = daemon.statistics()["received by ring"]
        call.exchange(PACKETS)
        s = daemon.statistics()
        media, sockets = s["received by ring"] - before, s["by fallback socket"]
        tap(media >= 2 * PACKETS and sockets == 0, f"{name}, by the module: {media} received by ring, {sockets} by sockets")
        equal(f"{name}: every packet of the relay is authentic", call.secure.bad, 0)
        call.close()
    s = daemon.statistics()
    equal("exchanges", [s["MIKEY"][f"dhhmac {role} completed"] for role in ("responder", "initiator")], [1, 1])
    equal("no command failed", s["command errors"], 0)
    rig.note(daemon.text())
    equal("the daemon ends in order", daemon.stop(), 0)


def main():
    os.umask(0o077)
    rig.write("/tmp/psk", PSK + "\n")
    rig.write("/tmp/mikey.ini", f"[self]\nidentity = {GATEWAY}\n[peer {ALICE}]\n{MODE}[peer {BOB}]\n{MODE}")
    with netns.Net(("caller", "callee")) as net:
        calls(net)


rig.test(main)
