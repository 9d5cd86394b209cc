#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""linphone with ZRTP and JsSIP in Chromium with DTLS-SRTP, through Kamailio with kamailio-webrtc.cfg as it is: each calls the other. Both hear
the other's tone, and the SAS that linphone shows is the one of query. make check-webrtc.

    linphone_browser.py [--module=stock|ours]"""
import argparse
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import call  # noqa: E402
import netns  # noqa: E402
import relay  # noqa: E402
import websocket  # noqa: E402
from baresip import wait_for  # noqa: E402
from linphone import Linphone, sas_of  # noqa: E402

# linphone records other codecs than PCMU at other rates.
ONLY_PCMU = "codec-strip-all codec-except-PCMU"
SETTINGS = {"XC_SIP_MEDIA": f'"RTP/AVP ZRTP=terminate DTLS=off ICE=remove rtcp-mux-demux replace-origin {ONLY_PCMU}"',
            "XC_WS_MEDIA": f'"UDP/TLS/RTP/SAVPF ICE=force rtcp-mux-require SDES-off generate-mid replace-origin {ONLY_PCMU}"'}


def keyings(daemon):
    """What each side of the only call agreed on, sorted."""
    calls = daemon.client.call("list")["calls"]
    tags = daemon.client.call("query", call_id=calls[0])["tags"]
    return sorted(word for t in tags.values() for m in t["medias"] for word in m["flags"] if word in ("ZRTP", "DTLS-SRTP", "SDES"))


def judge(rig, page, phone, title):
    websocket.both_hear(page, phone, title)
    if sas_of(rig.relay) != [phone.sas()] or not phone.sas():
        raise call.Failed(f"{title}: linphone shows {phone.sas()!r}, query {sas_of(rig.relay)}")
    if keyings(rig.relay) != ["DTLS-SRTP", "ZRTP"]:
        raise call.Failed(f"{title}: query shows {keyings(rig.relay)}")


def no_calls(rig):
    wait_for("an end without calls", lambda: rig.calls() == [])


def browser_calls(rig, page, phone):
    page.browser.js(f"user.call('sip:phone@{websocket.DOMAIN}')")
    page.is_("state", "confirmed")
    judge(rig, page, phone, "browser calls linphone with ZRTP")
    page.browser.js("user.session.terminate()")
    no_calls(rig)


def linphone_calls(rig, page, phone):
    phone.call(websocket.DOMAIN, "alice")
    page.is_("state", "confirmed")
    judge(rig, page, phone, "linphone with ZRTP calls browser")
    phone.hang_up()
    page.is_("state", "ended")
    no_calls(rig)


def one_call(net, args, make):
    with tempfile.TemporaryDirectory(prefix="xc-linphone-") as folder:
        rig, page, phone = websocket.Rig(net, folder, args, **SETTINGS), None, None
        try:
            page, phone = websocket.Page(net), Linphone(net, "b")
            page.is_("registration", "registered")
            make(rig, page, phone)
        except BaseException:
            print(rig.kam.text()[-4000:], rig.relay.text()[-2000:], phone.complaints() if phone else "", file=sys.stderr)
            raise
        finally:
            for end in (page, phone):
                if end:
                    end.close()
        assert rig.kam.stop() == 0 and rig.relay.stop() == 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--module", choices=("stock", "ours"), default="ours")
    args = p.parse_args()
    args.relay, args.tls = "xcipherd", False
    for path in (websocket.JSSIP, "/usr/bin/chromium", "/usr/bin/linphonec", "/usr/sbin/kamailio", os.path.join(relay.BUILD, "xcipher.so")):
        if not os.path.exists(path):
            print(f"skipped: {os.path.basename(path)} is not installed")
            return 0
    with netns.Net(call.PLACES) as net:
        for make in (browser_calls, linphone_calls):
            one_call(net, args, make)
    return 0


if __name__ == "__main__":
    sys.exit(main())
