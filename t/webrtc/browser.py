# SPDX-License-Identifier: GPL-2.0-or-later
"""Chromium without a window as a peer (page.js)."""
import json
import os
import time

import call
import chromium
import peer

OPTIONS = ("--autoplay-policy=no-user-gesture-required",)


class Chromium:
    """A page with a raw RTCPeerConnection. Its host candidate is a name for mDNS, which nobody resolves."""
    options = OPTIONS
    codecs = "PCMU"

    def __init__(self, net, place, kind, family=4, fault=""):
        self.kind, self.fault, self.family = kind, fault, family
        self.browser = chromium.Browser(net, net.terminal[place], self.options)
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.js"), encoding="utf-8") as f:
            self.browser.js(f.read() + f"\nwindow.peer = new Peer({call.TONE[place]}, {json.dumps(self.codecs)}); 0")

    def js(self, expression):
        try:
            return self.browser.js(expression)
        except AssertionError as why:
            raise call.Failed(f"{self.kind}: {why.args[0]['exceptionDetails']['exception'].get('description')}") from None

    def local(self, sdp):
        return peer.wrong_fingerprint(sdp) if self.fault == "fingerprint" else sdp

    def offer(self):
        return self.local(self.js("peer.offer()"))

    def answer(self, sdp):
        return self.local(self.js(f"peer.answer({json.dumps(sdp)})"))

    def accept(self, sdp):
        self.js(f"peer.accept({json.dumps(sdp)})")

    def restart(self):
        return self.local(self.js("peer.restart()"))

    def again(self, codecs, direction="sendrecv"):
        """A later offer."""
        return self.local(self.js(f"peer.again({json.dumps(codecs)}, {json.dumps(direction)})"))

    def press(self, digits):
        self.js(f"peer.press({json.dumps(digits)})")

    def moved(self):
        return self.js("ownPair(peer.pc)")

    def report(self):
        return in_our_clock(self.js("peer.report()"))

    def close(self):
        self.browser.close()


class ChromiumAddress(Chromium):
    """With its address as candidate."""
    options = (*OPTIONS, "--disable-features=WebRtcHideLocalIpsWithMdns")


class ChromiumOpus(Chromium):
    """Its only codec is Opus, and it can send digits."""
    codecs = "opus telephone-event"


class ChromiumData(Chromium):
    """It also offers a data channel."""

    def offer(self):
        self.js('peer.channel = peer.pc.createDataChannel("data"); 0')
        return super().offer()


def in_our_clock(report):
    """A page has the time of day."""
    at = report.pop("first_in_ms")
    ahead = time.time_ns() - peer.now_ns()
    return peer.REPORT | report | {"first_in_ns": int(at * 1e6) - ahead if at else 0}
