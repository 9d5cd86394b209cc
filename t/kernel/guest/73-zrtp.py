#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls with keys of ZRTP that ends at the relay, under kernel steering: the exchange and the media come by the module, with
the ring and without."""
import rig
from rig import equal, tap
import bzrtp
import dtls
import netns
import zrtp
from test_ng import start

A, B = "10.200.1.2", "10.200.2.2"
PACKETS = 100


class Call(dtls.Call):
    """From a terminal of ZRTP to one of RTP."""
    flags = {"transport_protocol": "RTP/AVP", "ICE": "remove", "replace": ["origin"]}

    def answer(self):
        self.a.believe(self.ask("answer", sdp=self.b.sdp(), from_tag="a", to_tag="b", ZRTP=["terminate", "hold"]))
        return self

    def begin(self):
        self.offer().answer()
        self.a.begin().secured()
        return self


def talk(net, way, *options):
    daemon = start(net, "--steering=kernel", "--workers=1", *options)
    a, b = zrtp.Zrtp(net, "caller", A), dtls.Plain(net, "callee", B)
    call = Call(daemon, a, b).begin()
    call.exchange(PACKETS)
    before = daemon.statistics()[way]
    call.exchange(PACKETS)
    s = daemon.statistics()
    media, sockets = s[way] - before, s["by fallback socket"]
    tap(media >= 2 * PACKETS and sockets == 0, f"by the module: {media} {way}, {sockets} by sockets")
    equal("every packet of the relay is authentic", a.bad, 0)
    equal("exchanges", s["sessions"]["ZRTP"]["exchanges"]["completed"], 1)
    leg = daemon.client.call("query", call_id=call.id)["tags"]["a"]["medias"][0]
    equal("the same SAS", leg["ZRTP"]["SAS"], a.sas())
    call.end()
    equal("no command failed", s["command errors"], 0)
    rig.note(daemon.text())
    equal("the daemon ends in order", daemon.stop(), 0)
    a.close()
    b.close()


def main():
    if not bzrtp.have():
        rig.note("skipped: no libbzrtp")
        return
    with netns.Net(("caller", "callee")) as net:
        talk(net, "received by ring")
        talk(net, "sent by verdict", "--kernel-ring=no")


rig.test(main)
