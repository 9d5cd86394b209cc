# SPDX-License-Identifier: GPL-2.0-or-later
"""Each keying with each other one, in both directions: RTP in clear, SDES, DTLS-SRTP, ZRTP and MIKEY, with media both ways."""
import contextlib
import os
import shutil
import tempfile

import bzrtp
import dtls
import relay
import test_mikey
import zrtp
from baresip import wait_for
from run import Skip, cases
from test_mikey import ALICE, BOB, GATEWAY, PSK, peer, responder

ADDRESS = {"caller": "10.200.1.2", "callee": "10.200.2.2"}
PACKETS = 20


# --- The kinds of terminals -------------------------------------------------------------------------------------------------------

class Kind:
    """offer_flags go with the offer to a terminal that answers, answer_flags with the answer to one that offered. Its SRTP terminals count
    in `bad` what does not verify."""
    name = ""  # of the keying, in query
    offer_flags, answer_flags = {"transport_protocol": "RTP/AVP"}, {}
    have = staticmethod(lambda: True)

    @staticmethod
    def make(net, place):
        """A terminal, which is called if place is "callee"."""
        return dtls.Plain(net, place, ADDRESS[place])

    @staticmethod
    def start(terminal):
        """Both descriptions are exchanged: it begins to agree on keys."""

    @staticmethod
    def keyed(terminal):
        """Waits until it has keys."""


class Sdes(Kind):
    name, offer_flags = "SDES", {"transport_protocol": "RTP/SAVP"}

    @staticmethod
    def make(net, place):
        return test_mikey.Sdes(net, place, ADDRESS[place])


class Actpass(dtls.Dtls):
    """Leaves its role to the answerer (RFC 8842 5.2)."""
    def believe(self, sdp):
        super().believe(sdp)
        if self.setup == "actpass":
            self.setup = "passive" if "a=setup:active" in sdp else "active"


class Dtls(Kind):
    name = "DTLS-SRTP"
    offer_flags = {"transport_protocol": "UDP/TLS/RTP/SAVP", "rtcp_mux": ["offer"], "SDES": ["off"]}
    have = staticmethod(lambda: shutil.which("openssl"))
    start = staticmethod(dtls.Dtls.handshake)
    keyed = staticmethod(dtls.Dtls.keyed)

    @staticmethod
    def make(net, place):
        return Actpass(net, place, ADDRESS[place], "active" if place == "callee" else "actpass")


class Zrtp(Kind):
    name = "ZRTP"
    offer_flags, answer_flags = {"transport_protocol": "RTP/AVP", "ZRTP": "terminate"}, {"ZRTP": "terminate"}
    have = staticmethod(bzrtp.have)
    start = staticmethod(zrtp.Zrtp.begin)
    keyed = staticmethod(zrtp.Zrtp.secured)

    @staticmethod
    def make(net, place):
        return zrtp.Zrtp(net, place, ADDRESS[place])


class Mikey(Kind):
    name = "MIKEY"
    offer_flags = {"transport_protocol": "RTP/SAVP", "MIKEY": ["require", "dhhmac"], "flags": ["MIKEY-peer=" + BOB]}

    @staticmethod
    def make(net, place):
        if place == "callee":
            side = responder.Responder(BOB, psk=PSK, suites=tuple(peer.SUITES))
        else:
            side = peer.Initiator("dhhmac", ALICE, GATEWAY, psk=PSK)
        return test_mikey.Mikey(net, place, ADDRESS[place]).use(side)


KINDS = {"plain": Kind, "sdes": Sdes, "dtls": Dtls, "zrtp": Zrtp, "mikey": Mikey}
EVERY = {"ICE": "remove", "replace": ["origin"]}


# --- Calls ------------------------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def relay_of(net, *options):
    with tempfile.TemporaryDirectory(prefix="xc-keyings-") as folder:
        for name, text in (("psk", PSK + b"\n"), ("mikey.ini", f"[self]\nidentity = {GATEWAY}\n[peer {ALICE}]\npsk-file = psk\nmodes = psk dhhmac\n"
                                                  f"[peer {BOB}]\npsk-file = psk\nmodes = psk dhhmac\n".encode())):
            with open(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
                f.write(text)
        daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", f"--mikey-config={folder}/mikey.ini", *options,
                                addresses=("10.200.2.1",)).wait_ready()
        yield daemon
        assert daemon.stop() == 0


class Call(dtls.Call):
    def __init__(self, daemon, a, b, to_b, to_a):
        super().__init__(daemon, a, b)
        self.to_b, self.to_a = EVERY | to_b, EVERY | to_a

    def begin(self):
        self.offered = self.ask("offer", sdp=self.a.sdp(), from_tag="a", **self.to_b)
        self.b.believe(self.offered)
        self.answered = self.ask("answer", sdp=self.b.sdp(), from_tag="a", to_tag="b", **self.to_a)
        self.a.believe(self.answered)
        return self

    def keying(self, tag):
        return self.daemon.client.call("query", call_id=self.id)["tags"][tag]["medias"][0].get("keying", "")


@contextlib.contextmanager
def call(net, offerer, answerer, terminate=True):
    """A call in which both legs have keys. terminate: ZRTP ends here, between two terminals of it, too."""
    a, b = KINDS[offerer], KINDS[answerer]
    for kind in (a, b):
        if not kind.have():
            raise Skip(f"no program or library for {kind.name}")
    with relay_of(net) as daemon, contextlib.ExitStack() as made:
        ends = [kind.make(net, place) for kind, place in ((a, "caller"), (b, "callee"))]
        for end in ends:
            made.callback(end.close)
        to_b = b.offer_flags if terminate else {"transport_protocol": "RTP/AVP"}
        c = Call(daemon, *ends, to_b, a.answer_flags if terminate else {}).begin()
        for kind, end in ((a, c.a), (b, c.b)):
            kind.start(end)
        for kind, end in ((a, c.a), (b, c.b)):
            kind.keyed(end)
        yield c
        c.end()


def greet(c):
    """Until each has heard the other once: the daemon may have the keys a moment later than the terminal."""
    greeting = {c.a: b"a is here" * 10, c.b: b"b is here" * 10}
    for one, other in ((c.b, c.a), (c.a, c.b)):
        wait_for("a first packet", lambda one=one, other=other: one.say(greeting[one]) and greeting[one] in other.heard)
    return greeting


def talk(c):
    """Each end hears the other's packets in order, each once, unchanged, and nothing else."""
    greeting = greet(c)
    said = {end: [os.urandom(160) for _ in range(PACKETS)] for end in (c.a, c.b)}
    for i in range(PACKETS):
        for end, words in said.items():
            end.say(words[i])
    for one, other in ((c.a, c.b), (c.b, c.a)):
        def words(one=one, other=other):
            return [w for w in other.heard if w != greeting[one]]
        wait_for("their packets", lambda one=one, words=words: len(words()) >= len(said[one]))
        assert words() == said[one], "media were changed, repeated or of somebody else"


def check_ends(c, offerer, answerer):
    """Each terminal received media and packets of its own keying, and no others."""
    for end, kind in ((c.a, offerer), (c.b, answerer)):
        assert getattr(end, "bad", 0) == 0, f"{kind}: {end.bad} packets do not verify"
        assert end.count["rtp"] == len(end.heard), (kind, end.count)
        for packets in ("stun", "dtls", "zrtp"):
            assert packets == kind or not end.count.get(packets), (kind, end.count)


@cases(*((a, b) for a in KINDS for b in KINDS))
def test_call(net, offerer, answerer):
    with call(net, offerer, answerer) as c:
        assert (c.keying("a"), c.keying("b")) == (KINDS[offerer].name, KINDS[answerer].name)
        talk(c)
        check_ends(c, offerer, answerer)
        if offerer == answerer == "zrtp":
            assert c.a.sas() != c.b.sas()


def test_call_of_zrtp_end_to_end(net):
    with call(net, "zrtp", "zrtp", terminate=False) as c:
        talk(c)
        check_ends(c, "zrtp", "zrtp")
        assert c.a.sas() == c.b.sas()
        assert (c.keying("a"), c.keying("b")) == ("ZRTP end-to-end",) * 2
