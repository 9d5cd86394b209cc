# SPDX-License-Identifier: GPL-2.0-or-later
"""Each keying with each other one, in both directions: RTP in clear, SDES, DTLS-SRTP, ZRTP and MIKEY, with media both ways. And each of them when the
daemon is killed, or a standby takes over."""
import contextlib
import os
import shutil
import tempfile

import bzrtp
import dtls
import redisrig
import relay
import test_mikey
import zrtp
from baresip import wait_for
from run import Skip, cases
from test_mikey import ALICE, BOB, GATEWAY, PSK, peer, responder
from test_redis import kill, settled

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
    def make(net, place, at=None):
        """A terminal, which is called if place is "callee". at: the place that it has in the network."""
        return dtls.Plain(net, at or place, ADDRESS[at or place])

    @staticmethod
    def start(terminal):
        """Both descriptions are exchanged: it begins to agree on keys."""

    @staticmethod
    def keyed(terminal):
        """Waits until it has keys."""

    @staticmethod
    def renew(terminal):
        """It will make another offer."""


class Sdes(Kind):
    name, offer_flags = "SDES", {"transport_protocol": "RTP/SAVP"}

    @staticmethod
    def make(net, place, at=None):
        return test_mikey.Sdes(net, at or place, ADDRESS[at or place])


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
    def make(net, place, at=None):
        return Actpass(net, at or place, ADDRESS[at or place], "active" if place == "callee" else "actpass")


class Zrtp(Kind):
    name = "ZRTP"
    offer_flags, answer_flags = {"transport_protocol": "RTP/AVP", "ZRTP": "terminate"}, {"ZRTP": "terminate"}
    have = staticmethod(bzrtp.have)
    start = staticmethod(zrtp.Zrtp.begin)
    keyed = staticmethod(zrtp.Zrtp.secured)

    @staticmethod
    def make(net, place, at=None):
        return zrtp.Zrtp(net, at or place, ADDRESS[at or place])


class Mikey(Kind):
    name = "MIKEY"
    offer_flags = {"transport_protocol": "RTP/SAVP", "MIKEY": ["require", "dhhmac"], "flags": ["MIKEY-peer=" + BOB]}

    @staticmethod
    def make(net, place, at=None):
        terminal = test_mikey.Mikey(net, at or place, ADDRESS[at or place])
        if place == "callee":
            return terminal.use(responder.Responder(BOB, psk=PSK, suites=tuple(peer.SUITES)))
        Mikey.renew(terminal)
        return terminal

    @staticmethod
    def renew(terminal):
        terminal.use(peer.Initiator("dhhmac", ALICE, GATEWAY, psk=PSK))


KINDS = {"plain": Kind, "sdes": Sdes, "dtls": Dtls, "zrtp": Zrtp, "mikey": Mikey}
EVERY = {"ICE": "remove", "replace": ["origin"]}


# --- Calls ------------------------------------------------------------------------------------------------------------------------

def options_of(folder):
    """Writes the files of MIKEY."""
    for name, text in (("psk", PSK + b"\n"), ("mikey.ini", f"[self]\nidentity = {GATEWAY}\n[peer {ALICE}]\npsk-file = psk\nmodes = psk dhhmac\n"
                                              f"[peer {BOB}]\npsk-file = psk\nmodes = psk dhhmac\n".encode())):
        with open(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
            f.write(text)
    return "--engine=serial", "--workers=1", f"--mikey-config={folder}/mikey.ini"


@contextlib.contextmanager
def relay_of(net, *options):
    with tempfile.TemporaryDirectory(prefix="xc-keyings-") as folder:
        daemon = relay.Xcipherd(net, *options_of(folder), *options, addresses=("10.200.2.1",)).wait_ready()
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
def begun(net, daemon, offerer, answerer, terminate=True, at=None):
    """A call in which both legs have keys. terminate: ZRTP ends here, between two terminals of it, too. at: the place of both terminals."""
    a, b = KINDS[offerer], KINDS[answerer]
    for kind in (a, b):
        if not kind.have():
            raise Skip(f"no program or library for {kind.name}")
    with contextlib.ExitStack() as made:
        ends = [kind.make(net, place, at) for kind, place in ((a, "caller"), (b, "callee"))]
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


@contextlib.contextmanager
def call(net, *how, **more):
    with relay_of(net) as daemon, begun(net, daemon, *how, **more) as c:
        yield c


def greet(c):
    """Until each has heard the other once: the daemon may have the keys a moment later than the terminal."""
    greeting = {c.a: b"a is here" * 10, c.b: b"b is here" * 10}
    for one, other in ((c.b, c.a), (c.a, c.b)):
        wait_for("a first packet", lambda one=one, other=other: one.say(greeting[one]) and greeting[one] in other.heard)
    return greeting


def talk(c):
    """Each end hears the other's packets in order, each once, unchanged, and nothing else."""
    before = {end: len(end.heard) for end in (c.a, c.b)}
    greeting = greet(c)
    said = {end: [os.urandom(160) for _ in range(PACKETS)] for end in (c.a, c.b)}
    for i in range(PACKETS):
        for end, words in said.items():
            end.say(words[i])
    for one, other in ((c.a, c.b), (c.b, c.a)):
        def words(one=one, other=other):
            return [w for w in other.heard[before[other]:] if w != greeting[one]]
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


@cases(("restart",), ("standby",))
def test_calls_of_each_keying_go_on(net, how):
    """Five calls, so that each keying is offered and answered once. The daemon is killed and restores them, or a standby takes them over. Media
    continue under the same keys, and after a re-INVITE."""
    if not redisrig.have():
        raise Skip(f"no {redisrig.PROGRAM}")
    pairs = tuple(zip(KINDS, [*KINDS][1:] + [*KINDS][:1]))
    redis = redisrig.Redis(net, addr="0.0.0.0")
    there = redisrig.Elsewhere(net) if how == "standby" else None
    with tempfile.TemporaryDirectory(prefix="xc-keyings-") as folder, contextlib.ExitStack() as made:
        options = (*options_of(folder), f"--redis-key-file={redis.key_file}")

        def start():
            return relay.Xcipherd(net, *options, "--redis=127.0.0.1:6379", addresses=("10.200.1.1",)).wait_ready()
        first, standby = start(), there and relay.Xcipherd(there, *options, "--redis=10.200.9.1:6379", "--standby=yes",
                                                           addresses=("10.200.1.1",)).wait_ready()
        calls = [made.enter_context(begun(net, first, *pair, at="caller")) for pair in pairs]
        for c in calls:
            talk(c)
        settled(first)
        if standby:
            wait_for("the standby follows", lambda: standby.statistics()["redis"]["followed"] == len(calls))
        kill(first)
        if standby:
            there.take_addresses()
            assert standby.client.call("active")["result"] == "ok"
        daemon = standby or start()
        wait_for("the calls", lambda: daemon.statistics()["redis"]["restored"] == len(calls))
        for c, (offerer, answerer) in zip(calls, pairs):
            c.daemon = daemon
            for again in (False, True):
                if again:
                    KINDS[offerer].renew(c.a)
                    c.to_b = c.to_b | {"to_tag": "b"}
                    c.begin()
                assert (c.keying("a"), c.keying("b")) == (KINDS[offerer].name, KINDS[answerer].name)
                talk(c)
                check_ends(c, offerer, answerer)
        made.close()
        assert daemon.stop() == 0
    redis.stop()
