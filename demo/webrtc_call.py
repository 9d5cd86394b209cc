#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A call from a browser to a phone, through Kamailio and xcipherd. make check-webrtc.

    Chromium with JsSIP 10.200.1.2 ---- 10.200.1.1 gateway 10.200.2.1 ---- 10.200.2.2 baresip
       SIP over WebSocket               Kamailio, xcipherd                 SIP over UDP
       DTLS-SRTP, ICE                                                      SDES-SRTP

Chromium has no window. Everything is in network namespaces of this run and is removed at the end. The exit status is 0 only if all of it
worked."""
import argparse
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "t", "webrtc"), os.path.join(ROOT, "t", "e2e")]

import call  # noqa: E402
import netns  # noqa: E402
import websocket  # noqa: E402
from baresip import wait_for  # noqa: E402

TALK_SECONDS = 10


def progress(text):
    print(f"demo: {text}", flush=True)


def levels(report):
    """The share of each tone."""
    total = sum(report["tones"].values()) or 1
    return {int(hertz): 100 * level / total for hertz, level in report["tones"].items()}


def lines(rig, page, phone, setup_ms):
    one, other = page.report(), phone.report()
    client = rig.relay.client
    parties = client.call("query", call_id=client.call("list")["calls"][0])["tags"].values()
    media = [party["medias"][0] for party in parties]
    mine, theirs = levels(one), levels(other)
    return call.judge((one, other)), [
        ("call set-up", f"{setup_ms:.0f} ms from the browser's call to an established call"),
        ("keying", " to ".join(m["keying"] for m in media)),
        ("toward the browser", f"{one['profile']}, ICE pair {one['pair']}"),
        ("toward the phone", other["profile"]),
        ("browser received", f"{one['packets_in']} packets, {mine[1000]:.1f}% of the tones is the phone's 1000 Hz"),
        ("phone received", f"{other['packets_in']} packets, {theirs[440]:.1f}% of the tones is the browser's 440 Hz"),
    ]


def talk(rig, page, phone):
    """What was wrong; empty: nothing."""
    page.is_("registration", "registered")
    progress("the browser has registered by WebSocket, and calls the phone")
    start = time.monotonic()
    page.browser.js(f"user.call('sip:phone@{websocket.DOMAIN}')")
    page.is_("state", "confirmed")
    setup_ms = 1000 * (time.monotonic() - start)
    wait_for("media both ways", lambda: all(r["blocks"] >= 8 for r in (page.report(), phone.report())))
    progress(f"both hear each other; they talk for {TALK_SECONDS} seconds")
    wait_for("the end of the talk", lambda: page.report()["packets_in"] >= 50 * TALK_SECONDS)
    wrong, rows = lines(rig, page, phone, setup_ms)
    print()
    for name, value in rows:
        print(f"    {name:<20} {value}")
    print()
    return wrong


def main():
    for path in (websocket.JSSIP, "/usr/bin/chromium", "/usr/bin/baresip", "/usr/sbin/kamailio"):
        if not os.path.exists(path):
            print(f"demo: {os.path.basename(path)} is not installed", file=sys.stderr)
            return 1
    with netns.Net(call.PLACES) as net, tempfile.TemporaryDirectory(prefix="xc-demo-") as folder:
        progress("starting Kamailio, xcipherd, Chromium and baresip")
        rig = websocket.Rig(net, folder, argparse.Namespace(relay="xcipherd", module="stock", tls=False, restart=False))
        try:
            page, phone = websocket.Page(net), websocket.Phone(net)
            wrong = talk(rig, page, phone)
            page.close()
        except BaseException:
            print(rig.kam.text()[-4000:], rig.relay.text()[-2000:], file=sys.stderr)
            raise
        rig.kam.stop()
        rig.relay.stop()
    print("demo: " + ("wrong: " + "; ".join(wrong) if wrong else "it works"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
