# SPDX-License-Identifier: GPL-2.0-or-later
"""Terminals whose keys come in packets or in MIKEY, by the peers of t/e2e. Such a terminal has one m-line and the peer's socket."""
import base64
import os
import re
import threading

import baresip
import dtls
import ice
import srtpkey
import terminals
import test_mikey
import zrtp_terminal
from test_mikey import ALICE, BOB, GATEWAY, PSK

WAIT = 60  # seconds; only ends a failed test


def mikey_config(folder):
    """Writes the daemon's file of identities, and returns its path."""
    one = "psk-file = psk\nmodes = psk dhhmac\nrate = 1000\n"
    for name, text in (("psk", PSK.decode() + "\n"), ("mikey.ini", f"[self]\nidentity = {GATEWAY}\n[peer {ALICE}]\n{one}[peer {BOB}]\n{one}")):
        with open(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(text)
    return os.path.join(folder, "mikey.ini")


class DtlsPeer(dtls.Dtls):
    agreed = None

    def hear(self, packet):
        """The checker reads media on the wire."""


class IcePeer(ice.Ice, DtlsPeer):
    def attributes(self):
        return ice.Ice.attributes(self) + DtlsPeer.attributes(self).replace("a=rtcp-mux\r\n", "")


class Keyed(terminals.Terminal):
    """fresh: its next SDP begins another association, so there are no keys yet. honest: its SDP names its own address."""

    def __init__(self, net, sockets, place, random, natted=False):
        super().__init__(net, sockets, place, natted)
        self.net, self.random, self.peer, self.text = net, random, None, ""
        self.renew()

    @classmethod
    def far(cls, place, random):
        """Flags of an offer to such a terminal."""
        return cls.wanted

    def renew(self):
        """Another socket, and another identity."""
        self.close()
        self.peer = self.make()
        line = self.lines[0]
        line.port = line.source = self.peer.port
        self.forget()

    def forget(self):
        self.fresh, self.lines[0].key = True, None

    def listen(self):
        """Reads the socket again."""
        if self.peer.ended:
            self.peer.ended = False
            self.peer.thread = threading.Thread(target=self.peer.listen, daemon=True)
            self.peer.thread.start()

    def rest(self):
        """The exchange is over: no thread reads the socket from here on."""
        self.peer.ended = True
        self.peer.thread.join()

    def move(self):
        self.renew()

    def close(self):
        if self.peer:
            self.peer.close()
        self.peer = None

    def attributes(self):
        if not self.text:
            self.text = self.peer.attributes()
        return self.text

    def send(self, line, data, rtcp=False, to=None):
        address, port = to or line.to
        try:
            self.peer.socket.sendto(data, (address, port + (1 if rtcp and not self.mux else 0)))
        except OSError:
            pass

    def keyed(self, checker, leg, suite, ours, theirs):
        """Both ends have keys."""
        self.fresh, line = False, self.lines[0]
        line.key, line.seq, line.roc, line.rtcp_index = srtpkey.Key(suite, ours), 100, 0, 0
        for at in leg.ports:
            checker.event("told_key", *at, suite, theirs, self.keying)
        checker.count["keyed"] += 1

    def leg(self, party):
        """The daemon's port, if the peer can reach it."""
        leg = party.legs[0]
        return leg if leg and ":" not in leg.at[0] else None

    def honest(self, party):
        return party.written[0][:2] == (self.address, self.lines[0].port)


class Dtls(Keyed):
    keying, profile, mux = "DTLS", "UDP/TLS/RTP/SAVP", True
    wanted = {"transport_protocol": "UDP/TLS/RTP/SAVP", "rtcp_mux": ["offer"], "SDES": ["off"]}

    def make(self):
        self.theirs, self.text = None, ""
        peer = self.peer_at(self.random.choice(("active", "passive")))
        peer.profiles = self.random.choice((dtls.PROFILE, dtls.AES_256))
        return peer

    def peer_at(self, setup):
        return DtlsPeer(self.net, self.place, self.address, setup)

    def read(self, text, offer):
        """The daemon's SDP. Another certificate of the daemon is another association."""
        theirs = re.search(r"^a=fingerprint:(.*?)\r?$", text, re.M)
        if theirs and self.theirs not in (None, theirs[1]):
            self.forget()
        self.theirs = theirs and theirs[1]
        self.sdp = text

    def renew_keys(self):
        """Another certificate at the same address."""
        self.peer.cert, self.text = self.peer.make_certificate(f"cert{self.random.getrandbits(32)}"), ""
        self.forget()

    def ready(self, party):
        """Whether the handshake has to succeed."""
        return self.fresh and self.leg(party) and self.theirs and (self.honest(party) or self.peer.setup == "active")

    def begin(self, world, party):
        if not self.ready(party):
            return
        self.listen()
        peer, leg = self.peer, party.legs[0]
        peer.to = leg.at
        self.connect(world)
        peer.handshake()
        peer.keyed()
        self.net.stop(peer.process)  # the association is complete, and takes no further ones
        peer.process = peer.program = None
        self.keyed(world.checker, leg, *peer.agreed)
        self.connected()

    def connect(self, world):
        pass

    def connected(self):
        if self.keying == "DTLS":
            self.rest()


class IceDtls(Dtls):
    keying = "ICE"
    wanted = {**Dtls.wanted, "ICE": "force"}
    near = {"ICE": "force"}

    def peer_at(self, setup):
        peer = IcePeer(self.net, self.place, self.address)
        peer.setup, peer.ufrag, peer.pwd = setup, f"t{self.id:03}", os.urandom(12).hex()
        return peer

    def ready(self, party):
        return self.fresh and self.leg(party) and self.theirs and "a=ice-ufrag" in self.sdp

    def connect(self, world):
        peer = self.peer
        peer.believe(self.sdp)
        peer.responses = peer.requests = 0

        def checked():
            peer.check()
            return peer.responses and peer.requests
        baresip.wait_for("checks both ways", checked, WAIT)


def identity(place):
    return BOB if place == "west" else ALICE


class Mikey(Keyed):
    """A pre-shared key, without or with Diffie-Hellman. As an insider it also sends earlier messages again, in any call."""
    keying, profile = "MIKEY", "RTP/SAVP"
    earlier = []  # Initiators of all terminals

    def __init__(self, net, sockets, place, random, natted=False):
        self.me, self.mode, self.side, self.line, self.got = identity(place), "psk", None, None, None
        super().__init__(net, sockets, place, random, natted)

    @staticmethod
    def far(place, random):
        return {"transport_protocol": "RTP/SAVP", "MIKEY": ["require", random.choice(("psk", "dhhmac"))], "flags": ["MIKEY-peer=" + identity(place)]}

    def make(self):
        self.mode = self.random.choice(("psk", "dhhmac"))
        return dtls.Plain(self.net, self.place, self.address)

    def forget(self):
        self.fresh, self.side, self.line = True, None, None

    renew_keys = forget

    def offers(self):
        """Its next SDP is an offer."""
        if isinstance(self.side, test_mikey.peer.Initiator):
            return
        if Mikey.earlier and self.random.random() < 0.15:
            self.side, self.line = self.random.choice(Mikey.earlier)
        else:
            self.side = test_mikey.peer.Initiator(self.mode, self.me, GATEWAY, psk=PSK, suite=self.random.choice(list(srtpkey.SUITES)))
            self.line = self.side.message()
            Mikey.earlier.append((self.side, self.line))

    def attributes(self):
        return f"a=key-mgmt:mikey {base64.b64encode(self.line).decode()}\r\n" if self.line else ""

    def read(self, text, offer):
        line = test_mikey.LINE.search(text)
        message = line and base64.b64decode(line[1])
        if not message or message == self.got:
            return
        try:
            if offer:
                self.side = test_mikey.responder.Responder(self.me, psk=PSK, suites=tuple(srtpkey.SUITES))
                self.line = self.side.answer(message)
            else:
                self.side.read(message)
        except test_mikey.peer.Refused:
            return
        self.got, self.fresh = message, True

    def agreed(self, checker, leg):
        """Both SDPs are accepted."""
        keys = self.side and self.side.keys
        if self.fresh and keys:
            masters = [b"".join(keys.master(n)) for n in (1, 2)]
            self.keyed(checker, leg, keys.suite, *(masters if isinstance(self.side, test_mikey.peer.Initiator) else masters[::-1]))


class ZrtpPeer(zrtp_terminal.Terminal):
    def hear(self, packet):
        """The checker reads media on the wire."""


class Zrtp(Keyed):
    keying, profile = "ZRTP", "RTP/AVP"
    wanted, near = {"transport_protocol": "RTP/AVP", "ZRTP": "terminate"}, {"ZRTP": "terminate"}

    def make(self):
        self.text, self.told = "", False
        how = zrtp_terminal.Settings({"agreement": self.random.choice(([b"EC25"], [b"X255"], [b"DH3k"]))})
        peer = ZrtpPeer(self.net, self.place, self.address, how)
        self.lines[0].ssrc = peer.ssrc
        return peer

    def renew_keys(self):
        self.renew()

    def read(self, text, offer):
        if "a=zrtp-hash" in text:
            self.told = True
            self.peer.believe(text)

    def begin(self, world, party):
        leg, peer = self.leg(party), self.peer
        if not (self.fresh and leg and self.told and self.honest(party)):
            return
        peer.to = leg.at
        peer.begin().secured()
        p = peer.peer
        self.rest()
        self.keyed(world.checker, leg, p.suite(), p.sends(), p.receives())
        world.model.secured(leg, zrtp=True)


KINDS = {"dtls": Dtls, "ice": IceDtls, "mikey": Mikey, "zrtp": Zrtp}
