# SPDX-License-Identifier: GPL-2.0-or-later
"""MIKEY with the terminals of t/mikey, which share no code with the daemon: every mode in both roles, to SDES and RTP, media by libsrtp2; and
messages that must be refused, each with one clear error."""
import base64
import contextlib
import datetime
import os
import re
import sys
import tempfile

import dtls
import redisrig
import relay
import sipp
from baresip import wait_for
from mikey_terminal import LINE, Mikey, Secure, peer, responder
from run import Skip, cases
from test_module import S80, finish
from test_proven import answered, call, gateway
from test_redis import kill, settled

sys.path.append(os.path.join(relay.ROOT, "t", "mikey"))

import certs  # noqa: E402

PREPARE = certs.prepare
A, B = "10.200.1.2", "10.200.2.2"
GATEWAY, ALICE, BOB = "sip:gateway@example.org", "sip:alice@example.org", "sip:bob@example.org"
PSK = b"a key that both of them know"
SUITE = "AES_CM_128_HMAC_SHA1_80"


class World:
    """Certificates and the daemon's files."""

    def __init__(self, folder, peers="", own=""):
        self.folder, self.root = folder, certs.Authority()
        self.gateway, self.alice, self.bob = (self.root.party(name) for name in (GATEWAY, ALICE, BOB))
        self.write("self.pem", self.gateway.chain_pem() + self.gateway.key_pem())
        self.write("roots.pem", self.root.pem())
        self.write("psk", PSK + b"\n")
        self.write("alice.pem", self.alice.chain_pem())
        self.write("bob.pem", self.bob.chain_pem())
        self.ini(peers, own)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
            f.write(data)
        return path

    def ini(self, peers="", own=""):
        every = "modes = psk pke dh dhhmac rsa-r\npsk-file = psk\n"
        peers = peers or f"[peer {ALICE}]\n{every}certificate = alice.pem\n[peer {BOB}]\n{every}certificate = bob.pem\n"
        text = f"[self]\nidentity = {GATEWAY}\ncertificate = self.pem\nroots = roots.pem\n{own}\n{peers}"
        self.path = self.write("mikey.ini", text.encode())

    def how(self, party):
        return {"psk": PSK, "party": party, "roots": [self.root.cert]}


class Sdes(Secure):
    key, tag = None, 1

    def attributes(self):
        self.key = self.key or os.urandom(30)
        return f"a=crypto:{self.tag} {SUITE} inline:{base64.b64encode(self.key).decode()}\r\n"

    def believe(self, sdp):
        super().believe(sdp)
        line = re.search(rf"^a=crypto:(\d+) {SUITE} inline:([^\s|]+)", sdp, re.M)
        self.tag = line[1]
        self.attributes()
        self.take_keys(SUITE, self.key, base64.b64decode(line[2]))


class Call(dtls.Call):
    flags = {"ICE": "remove", "replace": ["origin"]}

    def begin(self):
        return self.offer().answer()

    def refused(self, command, **keys):
        reply = self.daemon.client.call(command, call_id=self.id, **keys)
        assert reply.get("result") == "error", reply
        return reply["error-reason"]

    def leg(self, tag):
        return self.daemon.client.call("query", call_id=self.id)["tags"][tag]["medias"][0]


@contextlib.contextmanager
def rig(net, *options, peers="", own=""):
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, peers, own)
        world.start = lambda: relay.Xcipherd(net, "--engine=serial", "--workers=1", f"--mikey-config={world.path}", *options,
                                             addresses=("10.200.2.1",)).wait_ready()
        world.daemon, world.made = world.start(), []
        try:
            yield world
        finally:
            for t in world.made:
                t.close()
        secret = PSK.decode() in world.daemon.text()
        assert world.daemon.stop() == 0
        assert not secret, "the log has a key"


def terminal(world, net, kind, place="caller", **more):
    t = kind(net, place, A if place == "caller" else B)
    for name, value in more.items():
        setattr(t, name, value)
    world.made.append(t)
    return t


def initiator(world, mode, **how):
    return peer.Initiator(mode, ALICE, GATEWAY, **{**world.how(world.alice), "peer_cert": world.gateway.chain[0], **how})


def bob(world, **how):
    return responder.Responder(BOB, **{**world.how(world.bob), "suites": tuple(peer.SUITES), **how})


MODES = tuple((mode,) for mode in peer.MODES)
FAR = {"sdes": (Sdes, {"transport_protocol": "RTP/SAVP"}), "plain": (dtls.Plain, {"transport_protocol": "RTP/AVP"})}


@cases(*MODES)
def test_offered_by_the_terminal(net, mode):
    """To SDES and to RTP; the suite is the initiator's."""
    with rig(net) as world:
        for far, (kind, flags) in FAR.items():
            for suite in (SUITE, "AEAD_AES_256_GCM") if far == "plain" else ("AES_256_CM_HMAC_SHA1_80",):
                a = terminal(world, net, Mikey).use(initiator(world, mode, suite=suite))
                call = Call(world.daemon, a, terminal(world, net, kind, "callee"), **flags).begin()
                call.exchange()
                leg = call.leg("a")
                assert {"MIKEY", f"MIKEY mode {mode}"} <= set(leg["flags"]) and "SDES" not in leg["flags"], leg
                assert leg["MIKEY"] == {"peer": ALICE} and "MIKEY" not in call.leg("b"), leg
                assert a.bad == 0 and call.b.__dict__.get("bad", 0) == 0
                call.end()
        assert world.daemon.statistics()["MIKEY"][f"{mode} responder completed"] == 3


@cases(*MODES)
def test_offered_to_the_terminal(net, mode):
    with rig(net) as world:
        for kind in (Sdes, dtls.Plain):
            b = terminal(world, net, Mikey, "callee").use(bob(world))
            call = Call(world.daemon, terminal(world, net, kind), b, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                        MIKEY=["require", mode]).begin()
            assert "a=crypto" not in call.offered
            call.exchange()
            leg = call.leg("b")
            assert {"MIKEY", f"MIKEY mode {mode}"} <= set(leg["flags"]) and leg["MIKEY"] == {"peer": BOB}, leg
            assert "MIKEY peer" in str(world.daemon.client.call("explain", call_id=call.id))
            call.end()
        assert world.daemon.statistics()["MIKEY"][f"{mode} initiator completed"] == 2


def test_mikey_to_mikey_at_session_level(net):
    with rig(net) as world:
        a = terminal(world, net, Mikey, session=True).use(initiator(world, "dh"))
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        call = Call(world.daemon, a, b, transport_protocol="RTP/SAVP", MIKEY=["require", "psk"], flags=["MIKEY-peer=" + BOB]).begin()
        call.exchange()
        # The same offer again, as in a re-INVITE that refreshes the session: keys stay, or both get new ones.
        call.offer().answer()
        call.exchange()
        call.end()


def two(first, second):
    """One SDP of two terminals, which are the two m-lines of a party."""
    return first.sdp() + second.sdp()[second.sdp().index("m=audio"):]


def test_one_message_for_two_m_lines(net):
    """At session level: crypto sessions 1 and 2 are of the first m-line, 3 and 4 of the second (RFC 4567 7.1)."""
    with rig(net) as world:
        a = [terminal(world, net, Mikey, session=True).use(initiator(world, "psk", lines=2)), terminal(world, net, Secure)]
        b = [terminal(world, net, dtls.Plain, "callee") for _ in range(2)]
        talk = Call(world.daemon, None, None)
        offered = talk.ask("offer", sdp=two(*a), from_tag="a", transport_protocol="RTP/AVP", **Call.flags)
        answer = talk.ask("answer", sdp=two(*b), from_tag="a", to_tag="b")
        assert len(LINE.findall(answer)) == 1
        a[0].believe(answer)
        keys = a[0].side.keys
        a[1].take_keys(keys.suite, b"".join(keys.master(3)), b"".join(keys.master(4)))
        for i in range(2):
            a[i].to, b[i].to = (("10.200.2.1", int(re.findall(r"^m=audio (\d+)", text, re.M)[i])) for text in (answer, offered))
            talk.a, talk.b = a[i], b[i]
            talk.exchange()
        # In an answer that takes the same offer again, both m-lines still have their keys.
        talk.ask("offer", sdp=two(*a), from_tag="a", transport_protocol="RTP/AVP", **Call.flags)
        assert LINE.findall(talk.ask("answer", sdp=two(*b), from_tag="a", to_tag="b")) == LINE.findall(answer)
        talk.exchange()
        talk.end()


CRYPTO = "a=crypto:1 " + SUITE + " inline:" + base64.b64encode(bytes(range(30))).decode() + "\r\n"


def test_with_sdes_in_the_offer(net):
    """MIKEY goes first; SDES serves if it is preferred, or if the request ignores MIKEY."""
    with rig(net) as world:
        for more, flags, is_mikey in (({}, [], True), ({}, ["SDES-prefer"], False), ({"MIKEY": "off"}, [], False)):
            side = peer.Initiator("psk", ALICE, GATEWAY, **world.how(None))
            a = terminal(world, net, Mikey, extra=CRYPTO).use(side)
            call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"), transport_protocol="RTP/AVP", **more).offer()
            answer = call.ask("answer", sdp=call.b.sdp(), from_tag="a", to_tag="b", flags=flags)
            assert bool(LINE.search(answer)) == is_mikey and ("a=crypto" in answer) != is_mikey, answer
            call.end()


def test_offered_beside_sdes(net):
    """A terminal that has no MIKEY answers with SDES."""
    with rig(net, "--mikey=offer") as world:
        b = terminal(world, net, Sdes, "callee")
        call = Call(world.daemon, terminal(world, net, dtls.Plain), b, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                    SDES=["only-" + SUITE]).begin()
        assert LINE.search(call.offered) and "a=crypto" in call.offered
        call.exchange()
        assert "SDES" in call.leg("b")["flags"]
        call.end()
        # The default is for identities that have a section.
        reply = world.daemon.client.call("offer", call_id="other", from_tag="a", sdp=call.a.sdp(), transport_protocol="RTP/SAVP",
                                         flags=["MIKEY-peer=sip:eve@example.net"])
        assert reply["result"] == "ok" and "warning" not in reply and not LINE.search(reply["sdp"]), reply


def test_off(net):
    """Without identities, and with MIKEY=off: no line passes, and an offer of MIKEY alone is refused."""
    with rig(net) as world:
        a = terminal(world, net, Mikey).use(initiator(world, "psk"))
        call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"))
        assert call.refused("offer", sdp=a.sdp(), from_tag="a", MIKEY="off", transport_protocol="RTP/AVP").startswith("No common crypto suite")
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", addresses=("10.200.2.1",)).wait_ready()
    reply = daemon.client.call("offer", call_id="1", from_tag="a", sdp=a.sdp().replace("RTP/SAVP", "RTP/AVP"))
    assert "key-mgmt" not in reply["sdp"]
    assert daemon.stop() == 0


def flip(at):
    def change(message):
        bad = bytearray(message)
        bad[at] ^= 0x10
        return bytes(bad)
    return change


def refusals(world):
    """(name, initiator, change of the message, expected text)"""
    stranger = certs.Authority("stranger")
    old = world.root.party(ALICE, end=datetime.datetime(2021, 1, 1))
    yield "changed MAC", initiator(world, "psk"), flip(-1), "MAC or signature"
    yield "changed policy", initiator(world, "dhhmac"), flip(140), ""
    yield "changed signature", initiator(world, "dh"), flip(-1), "MAC or signature"
    yield "cut", initiator(world, "psk"), lambda m: m[:-5], "malformed"
    yield "other key", initiator(world, "psk", psk=b"another key of enough length"), None, "MAC or signature"
    yield "clock", initiator(world, "psk", now=lambda: 1000000000), None, "clock skew"
    yield "other root", initiator(world, "dh", party=stranger.party(ALICE)), None, "trusted root"
    yield "expired", initiator(world, "dh", party=old), None, "expired"
    yield "other name", initiator(world, "dh", party=world.bob), None, "identity"
    yield "list of protocols", initiator(world, "psk", sdp_ids="mikey;better"), None, "list of key management protocols"
    yield "stranger", peer.Initiator("psk", "sip:eve@example.org", GATEWAY, **world.how(None)), None, "identity is unknown"
    yield "other gateway", peer.Initiator("psk", ALICE, "sip:other@example.org", **world.how(None)), None, "identity is unknown"
    yield "data type", initiator(world, "psk"), lambda m: m[:1] + b"\x0f" + m[2:], "data type is not expected"
    yield "suite", initiator(world, "psk", suite="NULL_HMAC_SHA1_80"), None, "no SRTP policy in common"


@cases((False,), (True,))
def test_refused_offers(net, beside):
    """Also with SDES beside: whoever damages a message does not get the call to use SDES."""
    with rig(net) as world:
        for name, side, change, text in refusals(world):
            a = terminal(world, net, Mikey, extra=CRYPTO if beside else "").use(side)
            a.change = change or (lambda m: m)
            call = Call(world.daemon, a, None)
            why = call.refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
            assert why.startswith("MIKEY exchange failed") and text in why, (name, why)
            assert call.refused("query").startswith("Unknown call-id"), name


def test_a_refused_offer_is_not_remembered(net):
    """Somebody adds a protocol to the SDP. The same message without it is accepted later."""
    with rig(net) as world:
        for mode in peer.MODES:
            a = terminal(world, net, Mikey, extra="a=key-mgmt:other AAAA\r\n").use(initiator(world, mode, sdp_ids="mikey"))
            why = Call(world.daemon, a, None).refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
            assert "list of key management protocols" in why, (mode, why)
            a.extra = ""
            call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"), transport_protocol="RTP/AVP").begin()
            call.exchange()
            call.end()


def test_replay(net):
    """In another dialog, and after the call, it is refused. The same offer within the call is answered again."""
    with rig(net) as world:
        a = terminal(world, net, Mikey).use(initiator(world, "psk"))
        call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"), transport_protocol="RTP/AVP").begin()
        call.exchange()
        call.offer().answer()
        call.exchange()
        other = Call(world.daemon, a, None)
        why = other.refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
        assert "received before" in why, why
        call.end()
        why = call.refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
        assert "received before" in why, why


def test_refused_answers(net):
    """A changed answer is refused, and the right one is then accepted."""
    with rig(net) as world:
        for mode in peer.MODES:
            b = terminal(world, net, Mikey, "callee").use(bob(world))
            call = Call(world.daemon, terminal(world, net, dtls.Plain), b, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                        MIKEY=["require", mode]).offer()
            good = b.line
            for bad, text in ((flip(-1)(good), "MAC or signature"), (good[:-3], "malformed"), (b"", "No usable")):
                b.line = bad
                why = call.refused("answer", sdp=b.sdp(), from_tag="a", to_tag="b")
                assert text in why or why.startswith("MIKEY exchange failed"), (mode, why)
            b.line = good
            call.answer().exchange()
            call.end()


def test_what_a_peer_may_do(net):
    peers = f"[peer {ALICE}]\npsk-file = psk\nmodes = dhhmac\n[peer *@example.org]\npsk-file = psk\nmay = respond\n"
    with rig(net, peers=peers) as world:
        a = terminal(world, net, Mikey).use(initiator(world, "psk"))
        assert "forbids" in Call(world.daemon, a, None).refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
        a.use(peer.Initiator("psk", "sip:carol@example.org", GATEWAY, **world.how(None)))
        assert "forbids" in Call(world.daemon, a, None).refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        call = Call(world.daemon, terminal(world, net, dtls.Plain), b, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                    MIKEY="require").begin()
        call.exchange()
        # A reload takes the key away. The call stays, the next one is refused.
        world.ini(f"[peer {ALICE}]\npsk-file = psk\n")
        assert world.daemon.client.call("reload")["result"] == "ok"
        call.exchange()
        why = Call(world.daemon, None, None).refused("offer", sdp=call.a.sdp(), from_tag="a", transport_protocol="RTP/SAVP", MIKEY="require",
                                                     flags=["MIKEY-peer=" + BOB])
        assert "no section" in why, why
        call.end()


def test_a_certificate_of_the_file(net):
    """The message has no certificate: the one in the peer's section proves it. A peer without one is refused."""
    with rig(net) as world:
        for mode in ("pke", "dh", "rsa-r"):
            a = terminal(world, net, Mikey).use(initiator(world, mode, named=False))
            call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"), transport_protocol="RTP/AVP").begin()
            call.exchange()
            call.end()
        a.use(initiator(world, "dh", named=False, party=world.bob))
        assert "MAC or signature" in Call(world.daemon, a, None).refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
        world.ini(f"[peer {ALICE}]\nmodes = dh\n")
        assert world.daemon.client.call("reload")["result"] == "ok"
        a.use(initiator(world, "dh", named=False))
        assert "certificate is absent" in Call(world.daemon, a, None).refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")


def test_an_own_certificate_of_another_identity(net):
    """The log warns at a reload and at a start."""
    text = f"self.pem: the certificate does not have the identity {GATEWAY}"
    with rig(net) as world:
        assert "peers may refuse" not in world.daemon.text()
        world.write("self.pem", world.bob.chain_pem() + world.bob.key_pem())
        assert world.daemon.client.call("reload")["result"] == "ok"
        wait_for("a warning after the reload", lambda: world.daemon.text().count(text) == 1)
        assert world.daemon.stop() == 0
        world.daemon = world.start()
        wait_for("a warning at start", lambda: world.daemon.text().count(text) == 1)


def test_a_revoked_certificate(net):
    with rig(net) as world:
        bad = world.root.party(ALICE)
        world.root.revoke(bad)
        world.write("crl.pem", world.root.crl_pem())
        world.ini(own="crl = crl.pem\n")
        assert world.daemon.client.call("reload")["result"] == "ok"
        for party, text in ((bad, "revoked"), (world.alice, None)):
            a = terminal(world, net, Mikey).use(initiator(world, "dh", party=party))
            call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"), transport_protocol="RTP/AVP")
            if text:
                assert text in call.refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
            else:
                call.begin().exchange()
                call.end()


def test_a_restart_keeps_the_keys(net):
    """The daemon is killed and restores the calls. A re-INVITE of its own side then has a new exchange."""
    if not redisrig.have():
        raise Skip(f"no {redisrig.PROGRAM}")
    redis = redisrig.Redis(net)
    with rig(net, *redis.daemon_options()) as world:
        a = terminal(world, net, Mikey).use(initiator(world, "dhhmac"))
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        talk = Call(world.daemon, a, b, transport_protocol="RTP/SAVP", MIKEY=["require", "dh"], flags=["MIKEY-peer=" + BOB]).begin()
        talk.exchange()
        settled(world.daemon)
        kill(world.daemon)
        world.daemon = talk.daemon = world.start()
        talk.exchange()
        assert {"MIKEY", "MIKEY mode dhhmac"} <= set(talk.leg("a")["flags"]) and {"MIKEY", "MIKEY mode dh"} <= set(talk.leg("b")["flags"])
        # The caller repeats its message, to which the daemon has no response any more: both keep their keys.
        talk.offer()
        assert not LINE.search(talk.ask("answer", sdp=b.sdp(), from_tag="a", to_tag="b"))
        talk.exchange()
        a.use(initiator(world, "psk"))
        # The identity of the callee is known from before the restart.
        talk.more.pop("flags")
        talk.offer(to_tag="b").answer()
        talk.exchange()
        talk.end()
    redis.kill()


LINE_OF_SIPP = re.compile(r"a=crypto:1 \S+ inline:\S+")
LOGGED = '<action><ereg regexp="a=key-mgmt:mikey [A-Za-z0-9+/=]*" search_in="body" check_it="true" assign_to="3"/><log message="[$3]"/></action>'


def calling(side, expect=200, change=lambda message: message):
    """sipp offers the message, and logs the line of the answer."""
    line = "a=key-mgmt:mikey " + base64.b64encode(change(side.message())).decode()
    text = LINE_OF_SIPP.sub(line, sipp.caller(S80, "sip:callee@10.200.2.2:5060", expect))
    return text.replace('rrs="true" response_txn="invite"/>', f'rrs="true" response_txn="invite">{LOGGED}</recv>')


@cases(("stock",), ("ours",))
def test_calls_through_kamailio(net, how):
    """A caller with MIKEY reaches a phone of RTP. One whose message was changed is refused, and the phone does not ring: 488 of our module, 503
    of the demo's script, because the stock module does not tell why it failed. Calls with media: test_mikey_kamailio.test_media."""
    flags = ("RTP/AVP ICE=remove replace-origin direction=caller direction=callee", "ICE=remove replace-origin")
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with gateway(net, how, flags, options=(f"--mikey-config={world.path}",)) as kam:
            for mode in ("psk", "dh"):
                side = initiator(world, mode)
                b = answered(net, kam, sipp.callee(None))
                a = call(net, kam, calling(side))
                finish(a, 1)
                finish(b, 1)
                with open(a.base + ".log", encoding="ascii") as f:
                    side.read(base64.b64decode(f.read().split()[1]))
            finish(call(net, kam, calling(initiator(world, "psk"), 488 if how == "ours" else 503, flip(-1))), 1)
            assert kam.daemon.statistics()["MIKEY"]["psk responder auth"] >= 1
