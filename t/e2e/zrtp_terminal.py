# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal of ZRTP by t/zrtp/zrtp_peer.py, which was written from the RFC alone. libsrtp2 protects its media."""
import os
import re
import sys
import threading
import time

import dtls
import relay
import srtp
from baresip import wait_for

sys.path.append(os.path.join(relay.ROOT, "t", "zrtp"))

import peer_kdf  # noqa: E402
import peer_wire  # noqa: E402
from zrtp_peer import Peer, Settings  # noqa: E402
from peer_cache import Cache  # noqa: E402

__all__ = ["Cache", "Peer", "Settings", "Terminal", "peer_kdf", "peer_wire"]
RETRIES = 400  # of each message: the daemon, or this thread, may be late


class Terminal(dtls.Plain):
    """settings, cache, first: as Peer has them; first is another terminal of this kind. announces: its SDP has a=zrtp-hash."""

    def __init__(self, net, place, address, settings=None, **more):
        srtp.lib()  # it is not started by two threads at once
        super().__init__(net, place, address)
        first = more.get("first")
        self.settings, self.announces = settings or Settings(), more.get("announces", True)
        self.settings.offers.setdefault("cipher", (b"AES1", b"AES3"))  # libsrtp2 2.5 computes AES-192 wrongly
        self.settings.retries = RETRIES
        self.lock = first.lock if first else threading.RLock()
        self.peer = Peer(self.settings, self.ssrc, more.get("cache"), first and first.peer)
        self.spoil_out = self.spoil_in = lambda packet: [packet]  # what is sent, or arrives, in place of a packet of ZRTP
        self.rx = self.tx = self.ticker = self.told = None
        self.seen = []  # types of messages that arrived
        self.announced = "1.10 " + self.peer.zrtp_hash().split()[1]  # whatever the version in its Hello

    def attributes(self):
        return f"a=zrtp-hash:{self.announced}\r\n" if self.announces else ""

    def believe(self, sdp):
        super().believe(sdp)
        self.told = re.search(r"^a=zrtp-hash:(.*?)\r?$", sdp, re.M)

    def begin(self):
        with self.lock:
            if self.told:
                self.peer.expect(self.told[1])
            self.peer.start(time.monotonic())
            self.flush()
        self.ticker = threading.Thread(target=self.tick, daemon=True)
        self.ticker.start()
        return self

    def flush(self):
        packets, self.peer.out = self.peer.out, []
        for packet in packets:
            for spoiled in self.spoil_out(packet):
                self.socket.sendto(spoiled, self.to)

    def tick(self):
        while not self.ended:
            self.do(lambda p: p.tick(time.monotonic()))
            time.sleep(0.02)

    def do(self, what):
        """Calls what(peer), and sends what comes of it."""
        with self.lock:
            what(self.peer)
            self.look()
            self.flush()

    def take(self, s, packet, source):
        if packet[:1] != b"\x10":
            super().take(s, packet, source)
            return
        self.count["zrtp"] += 1
        self.seen.append(peer_wire.kind_of(packet))
        if self.ticker:
            for spoiled in self.spoil_in(packet):
                self.do(lambda p, spoiled=spoiled: p.take(spoiled, time.monotonic()))

    def look(self):
        """Takes keys, and gives them up. An initiator opens media from Confirm1 on, and protects its own from Conf2ACK on."""
        p = self.peer
        if p.state == "clear":
            self.rx = self.tx = None
        elif p.state in ("confirm2", "secure") and not self.rx:
            self.rx = srtp.Session(p.suite(), p.receives(), srtp.INBOUND)
        if p.state == "secure" and not self.tx:
            self.tx = srtp.Session(p.suite(), p.sends(), srtp.OUTBOUND)

    def stream(self):
        """Another stream takes the place of this one: another SSRC, and an exchange of its own by the secret of the call."""
        with self.lock:
            self.ssrc ^= 0x00ff00ff
            self.peer = Peer(self.settings, self.ssrc, first=self.peer)
            self.rx = self.tx = None
            self.peer.start(time.monotonic())
            self.flush()
        return self

    def secured(self):
        wait_for("ZRTP", lambda: self.peer.state in ("secure", "failed"))
        assert self.peer.state == "secure", (self.peer.error, self.peer.errors, self.peer.alarms)
        return self

    def hear(self, packet):
        with self.lock:
            clear = self.rx.unprotect(packet) if self.rx else packet
            if clear and self.rx:
                self.peer.srtp_seen()
                self.look()
        self.bad += clear is None
        if clear:
            super().hear(clear)

    def protect(self, packet):
        with self.lock:
            return self.tx.protect(packet) if self.tx else packet

    def close(self):
        super().close()
        if self.ticker:
            self.ticker.join()
