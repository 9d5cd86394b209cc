# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal that speaks MIKEY by t/mikey. libsrtp2 protects its media."""
import base64
import os
import re
import sys

import dtls
import relay
import srtp

sys.path.append(os.path.join(relay.ROOT, "t", "mikey"))

import mikey_peer as peer  # noqa: E402
import responder  # noqa: E402

__all__ = ["LINE", "Mikey", "Secure", "peer", "responder"]
LINE = re.compile(r"^a=key-mgmt:mikey (\S+)\r?$", re.M)


class Secure(dtls.Plain):
    """A terminal of SRTP under keys that it takes with take_keys()."""
    profile = "RTP/SAVP"

    def take_keys(self, suite, send, receive):
        self.out, self.into = srtp.Session(suite, send, srtp.OUTBOUND), srtp.Session(suite, receive, srtp.INBOUND)

    def hear(self, packet):
        clear = self.into.unprotect(packet)
        if clear is None:
            self.bad += 1
        else:
            self.heard.append(clear[12:])

    def protect(self, packet):
        return self.out.protect(packet)


class Mikey(Secure):
    """side: an Initiator, which offers, or a Responder, which answers. session: the line is at session level."""
    session = False
    extra = ""
    change = staticmethod(lambda message: message)

    def use(self, side):
        self.side, self.line = side, None
        return self

    def attributes(self):
        return "" if self.session else self.own_line() + self.extra

    def own_line(self):
        if isinstance(self.side, peer.Initiator) and not self.line:
            self.line = self.change(self.side.message())
        return f"a=key-mgmt:mikey {base64.b64encode(self.line).decode()}\r\n" if self.line else ""

    def sdp(self):
        text = super().sdp()
        return text.replace("t=0 0\r\n", "t=0 0\r\n" + self.own_line()) if self.session else text

    def believe(self, sdp):
        super().believe(sdp)
        assert bool(LINE.search(sdp.split("m=")[0])) == self.session, sdp
        message = base64.b64decode(LINE.search(sdp)[1])
        if isinstance(self.side, peer.Initiator):
            self.side.read(message)
            ours, theirs = 1, 2
        else:
            self.line = self.change(self.side.answer(message))
            ours, theirs = 2, 1
        keys = self.side.keys
        self.take_keys(keys.suite, b"".join(keys.master(ours)), b"".join(keys.master(theirs)))
