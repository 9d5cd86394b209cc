#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""linphone with ZRTP through Kamailio, with our module and kamailio-cfg/kamailio-module.cfg as it is: it calls a baresip phone with SDES and one
with RTP, and is called by them. Both hear the other's tone, and the SAS that linphone shows is the one of query. make check-webrtc."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import call  # noqa: E402
import netns  # noqa: E402
import phones  # noqa: E402
import relay  # noqa: E402
import sipp  # noqa: E402
from baresip import wait_for  # noqa: E402
from websocket import both_hear  # noqa: E402

SIDES = ("caller", "callee")  # of the interfaces, as kamailio-module.cfg names them
PROXY = {"a": "10.200.1.1", "b": "10.200.2.1"}
FLAGS = {"rtp": "RTP/AVP", "sdes": "RTP/SAVP SDES-pad"}


class Linphone(phones.Linphone):
    """All its calls go by the proxy."""

    def __init__(self, net, place="a"):
        super().__init__(net, place, "linphone_zrtp", 4, "")

    def more(self):
        proxy = PROXY[self.place]
        return (f"[proxy_0]\nreg_proxy=<sip:{proxy}>\nreg_route=<sip:{proxy};lr>\nreg_identity=sip:phone@{self.address}\n"
                "reg_sendregister=0\n")

    def call(self, address, user="phone"):
        self.process.stdin.write(f"call sip:{user}@{address}\n")

    def hang_up(self):
        self.process.stdin.write("terminate\n")

    def close(self):
        self.stop()
        self.agent.close()
        self.folder.cleanup()


class Baresip(phones.Baresip):
    ACCOUNT = {kind: f'{enc};outbound="sip:{PROXY["b"]}:5060;transport=udp"'
               for kind, enc in (("sdes", "mediaenc=srtp-mand"), ("rtp", "regint=0"))}

    def __init__(self, net, kind):
        super().__init__(net, "b", kind, 4, "")

    def call(self, address):
        self.phone.tell(f"/dial sip:phone@{address}")

    def hang_up(self):
        self.phone.tell("/hangup")

    close = Linphone.close


def sas_of(daemon):
    """The reply of query about the only call."""
    calls = daemon.client.call("list")["calls"]
    tags = daemon.client.call("query", call_id=calls[0])["tags"] if len(calls) == 1 else {}
    return [m["ZRTP"]["SAS"] for t in tags.values() for m in t["medias"] if "ZRTP" in m]


def one_call(net, kind, first):
    """first: the place of the phone that calls."""
    flags = f"{FLAGS[kind] if first == 'a' else 'RTP/AVP'} ICE=remove replace-origin direction=%s direction=%s" % (SIDES if first == "a" else SIDES[::-1])
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--delete-delay=0", "--zrtp=terminate",
                            addresses=[f"{side}/{PROXY[p]}" for side, p in zip(SIDES, "ab")]).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xc-linphone-") as folder:
        kam = sipp.Kamailio(net, folder, XC_OFFER_FLAGS=f'"{flags}"', XC_ANSWER_FLAGS='"ICE=remove replace-origin"')
        ends = []
        try:
            ends += [Linphone(net), Baresip(net, kind)]
            caller, called = ends if first == "a" else ends[::-1]
            caller.call(called.address)
            both_hear(*ends, f"linphone with ZRTP {'calls' if first == 'a' else 'is called by'} baresip with {kind.upper()}")
            if sas_of(daemon) != [ends[0].sas()]:
                raise call.Failed(f"linphone shows {ends[0].sas()}, query {sas_of(daemon)}")
            caller.hang_up()
            wait_for("an end without calls", lambda: daemon.client.call("list")["calls"] == [])
        except BaseException:
            print(kam.text()[-3000:], daemon.text()[-2000:], *(e.complaints() for e in ends), file=sys.stderr)
            raise
        finally:
            for e in ends:
                e.close()
        assert kam.stop() == 0 and daemon.stop() == 0


def main():
    for path in ("/usr/bin/linphonec", "/usr/bin/baresip", "/usr/sbin/kamailio", os.path.join(relay.BUILD, "xcipher.so")):
        if not os.path.exists(path):
            print(f"skipped: {os.path.basename(path)} is not installed")
            return 0
    with netns.Net(call.PLACES) as net:
        for kind in FLAGS:
            for first in "ab":
                one_call(net, kind, first)
    return 0


if __name__ == "__main__":
    sys.exit(main())
