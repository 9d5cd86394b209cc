# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal that speaks ZRTP: libbzrtp or another engine agrees on keys, and libsrtp2 protects media."""
import re
import threading
import time

import bzrtp
import dtls
import srtp
from baresip import wait_for


class Zrtp(dtls.Plain):
    """announces: its SDP has a=zrtp-hash. Before there are keys its media are in clear. make: creates the engine, as bzrtp.End does."""
    suite = None

    def __init__(self, net, place, address, announces=True, agreements=(), cache=None, first=None, make=bzrtp.End):
        srtp.lib()  # it is not started by two threads at once
        super().__init__(net, place, address)
        self.announces, self.lock = announces, first.lock if first else threading.RLock()
        self.rx = self.tx = None
        self.tap = lambda packet: None  # sees each packet of the engine
        self.make, self.make_engine = make, lambda: make(self.send_packet, self.ssrc, start=False, agreements=agreements, cache=cache,
                                                        first=first and first.engine)
        self.engine = self.make_engine()
        self.hello = self.engine.hello_hash()
        self.running, self.ticker, self.older = False, None, []

    def send_packet(self, packet):
        self.tap(packet)
        self.socket.sendto(packet, self.to)

    def attributes(self):
        return f"a=zrtp-hash:{self.hello}\r\n" if self.announces else ""

    def believe(self, sdp):
        super().believe(sdp)
        self.told = re.search(r"^a=zrtp-hash:(.*?)\r?$", sdp, re.M)

    def begin(self):
        """Starts the exchange. It must know where to."""
        with self.lock:
            if self.told:
                self.engine.expect(self.told[1])
            self.engine.start()
            self.running = True
        self.ticker = threading.Thread(target=self.tick, daemon=True)
        self.ticker.start()
        return self

    def tick(self):
        while not self.ended:
            with self.lock:
                self.engine.tick(int(time.monotonic() * 1000))
            time.sleep(0.02)

    def take(self, s, packet, source):
        if packet[:1] == b"\x10":
            self.count["zrtp"] += 1
            with self.lock:
                if self.running:
                    self.engine.take(packet)
                    self.look()
        else:
            super().take(s, packet, source)

    def look(self):
        if len(self.engine.keys) == 2 and not self.tx:
            self.suite = self.engine.suite
            self.rx = srtp.Session(self.suite, self.engine.keys["rx"], srtp.INBOUND)
            self.tx = srtp.Session(self.suite, self.engine.keys["tx"], srtp.OUTBOUND)

    def again(self):
        """Another stream takes the place of this one in mid-call: another SSRC, and an exchange of its own by the secret of the first."""
        self.ssrc ^= 0x00ff00ff
        with self.lock:
            older, self.engine = self.engine, self.make(self.send_packet, self.ssrc, first=self.engine)
            self.older.append(older)
            self.tx = None
        return self

    def anew(self):
        """The terminal lost its state, and announces another exchange in its next SDP."""
        with self.lock:
            self.older.append(self.engine)
            self.engine, self.tx = self.make_engine(), None
            self.hello = self.engine.hello_hash()

    def resume(self):
        """Starts the exchange that it announced."""
        with self.lock:
            self.engine.expect(self.told[1])
            self.engine.start()
        return self

    def secured(self):
        wait_for("ZRTP", lambda: self.engine.secure and self.tx)
        return self

    def sas(self):
        return self.engine.sas.decode()

    def hear(self, packet):
        clear = self.rx.unprotect(packet) if self.rx else packet
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
        for engine in (self.engine, *reversed(self.older)):
            engine.close()


class Lines:
    """A terminal with several m-lines, each of which is a terminal of its own kind."""

    def __init__(self, *lines):
        self.lines = lines

    def sdp(self):
        rest = [line.sdp().partition("m=")[2] for line in self.lines[1:]]
        return self.lines[0].sdp() + "".join(f"m={text}" for text in rest)

    def believe(self, sdp):
        head, *medias = re.split(r"^(?=m=)", sdp, flags=re.M)
        for line, media in zip(self.lines, medias):
            line.believe(head + media)
