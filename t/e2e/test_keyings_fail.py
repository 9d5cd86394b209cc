# SPDX-License-Identifier: GPL-2.0-or-later
"""A keying that fails falls back to what the operator allows. It is logged and counted. Where nothing is allowed, no media pass."""
import dtls
import test_mikey
from baresip import wait_for
from run import cases
from test_keyings import ADDRESS, EVERY, KINDS, Call, relay_of, talk
from test_mikey import GATEWAY, PSK, peer
from zrtp_terminal import Settings, Terminal, peer_wire

EVE = "sip:eve@example.org"
RTP, SRTP = {"transport_protocol": "RTP/AVP"}, {"transport_protocol": "RTP/SAVP"}
EMERGENCY = {"flags": ["emergency"]}


def ends(net, offerer, answerer):
    return KINDS[offerer].make(net, "caller"), KINDS[answerer].make(net, "callee")


def nothing_arrives(c):
    """The caller's media are dropped."""
    before = c.daemon.statistics()["packets received"]
    for _ in range(50):
        c.a.say(b"not in clear" * 10)
    wait_for("they were dropped", lambda: c.daemon.statistics()["packets received"] >= before + 50)
    assert c.b.count["rtp"] == 0, c.b.count


def fallbacks(daemon):
    return daemon.client.call("statistics")["statistics"]["totalstatistics"]["keyingfallbacks"]


def refused(c, command, **keys):
    reply = c.daemon.client.call(command, call_id=c.id, **EVERY, **keys)
    assert reply["result"] == "error", reply
    return reply["error-reason"]


@cases((True,), (False,))
def test_zrtp_that_is_not_answered(net, allowed):
    """In clear, unless ZRTP=require."""
    with relay_of(net) as daemon:
        a, b = ends(net, "sdes", "plain")
        c = Call(daemon, a, b, RTP | EMERGENCY | {"ZRTP": "terminate" if allowed else "require"}, {}).begin()
        nothing_arrives(c)
        text = "does not answer ZRTP: its media are in clear" if allowed else "ZRTP failed: the terminal does not answer"
        wait_for("it is logged", lambda: text in daemon.text())
        assert daemon.statistics()["sessions"]["ZRTP"]["exchanges"]["no answer"] == 1
        assert fallbacks(daemon) == allowed
        if allowed:
            talk(c)
            assert c.keying("b") == ""
        else:
            nothing_arrives(c)
        for end in (a, b):
            end.close()


class Silent(dtls.Plain):
    """It announces ZRTP, and sends none of its packets."""
    def attributes(self):
        return "a=zrtp-hash:1.10 " + "5a" * 32 + "\r\n"


@cases((True,), (False,))
def test_zrtp_that_was_announced_and_is_not_answered(net, allowed):
    """In clear with ZRTP=fallback only."""
    with relay_of(net) as daemon:
        a, b = KINDS["sdes"].make(net, "caller"), Silent(net, "callee", ADDRESS["callee"])
        c = Call(daemon, a, b, RTP | EMERGENCY | {"ZRTP": ["terminate"] + ["fallback"] * allowed}, {}).begin()
        nothing_arrives(c)
        text = "as the request allows (ZRTP=fallback)" if allowed else "ZRTP failed: the terminal does not answer"
        wait_for("it is logged", lambda: text in daemon.text())
        assert fallbacks(daemon) == allowed
        if allowed:
            talk(c)
        else:
            nothing_arrives(c)
        for end in (a, b):
            end.close()


@cases(("initiator", True), ("responder", True), ("responder", False))
def test_zrtp_that_begins_and_ends_half_way(net, role, allowed):
    """The terminal agrees to an exchange, and sends nothing after its Commit, or after the relay's. In clear with ZRTP=fallback only."""
    with relay_of(net) as daemon:
        a, b = KINDS["sdes"].make(net, "caller"), Terminal(net, "callee", ADDRESS["callee"], Settings(role=role))
        b.spoil_out = lambda packet: [packet] if peer_wire.kind_of(packet) in (b"Hello   ", b"HelloACK", b"Commit  ") else []
        c = Call(daemon, a, b, RTP | EMERGENCY | {"ZRTP": ["terminate"] + ["fallback"] * allowed}, {}).begin()
        b.begin()
        text = "as the request allows (ZRTP=fallback)" if allowed else "ZRTP failed: the peer did not complete the exchange"
        wait_for("it is logged", lambda: text in daemon.text())
        assert (b"Commit  " in b.seen or b"DHPart1 " in b.seen) and fallbacks(daemon) == allowed, b.seen
        if allowed:
            talk(c)
        else:
            nothing_arrives(c)
        for end in (a, b):
            end.close()


def test_dtls_that_is_not_answered(net):
    """No media until another offer, such as a re-INVITE in RTP, tries something else."""
    with relay_of(net) as daemon:
        a, b = ends(net, "sdes", "dtls")
        b.setup = "passive"
        c = Call(daemon, a, b, KINDS["dtls"].offer_flags | EMERGENCY, {}).begin()
        nothing_arrives(c)
        wait_for("it is logged", lambda: "no media: " in daemon.text())
        assert daemon.statistics()["sessions"]["handshakes"]["timeout"] == 1
        nothing_arrives(c)
        c.b = KINDS["plain"].make(net, "callee")
        c.to_b = EVERY | RTP | {"flags": ["emergency", "reset"], "to_tag": "b"}
        c.begin()
        talk(c)
        for end in (a, b, c.b):
            end.close()


def test_dtls_that_is_not_answered_in_an_emergency(net):
    """With allow-RTP-answer, an emergency call continues in clear."""
    with relay_of(net) as daemon:
        a, b = ends(net, "sdes", "dtls")
        b.setup = "passive"
        flags = {"flags": ["allow-RTP-answer", "emergency"]}
        c = Call(daemon, a, b, KINDS["dtls"].offer_flags | flags, flags).begin()
        nothing_arrives(c)
        wait_for("it is logged", lambda: "media of this emergency call are in clear" in daemon.text())
        assert daemon.statistics()["sessions"]["handshakes"]["timeout"] == 1
        assert fallbacks(daemon) == 1
        b.protect, b.hear = (lambda packet: packet), (lambda packet: b.heard.append(packet[12:]))
        talk(c)
        for end in (a, b):
            end.close()


@cases((True,), (False,))
def test_dtls_that_is_refused_in_sdp(net, allowed):
    """The answer is in RTP."""
    with relay_of(net) as daemon:
        a, b = ends(net, "sdes", "plain")
        c = Call(daemon, a, b, KINDS["dtls"].offer_flags | EMERGENCY, {})
        c.b.believe(c.ask("offer", sdp=a.sdp(), from_tag="a", **c.to_b))
        answer = {"sdp": b.sdp(), "from_tag": "a", "to_tag": "b"}
        if allowed:
            c.a.believe(c.ask("answer", flags=["allow-RTP-answer"], **answer))
            assert "allow-RTP-answer" in daemon.text() and fallbacks(daemon) == 1
            talk(c)
            # The same answer again is the same fall-back.
            c.ask("answer", flags=["allow-RTP-answer"], **answer)
            assert fallbacks(daemon) == 1
        else:
            assert "RTP as the answer to SRTP" in refused(c, "answer", **answer)
        for end in (a, b):
            end.close()


@cases(("sdes",), ("nothing",))
def test_mikey_of_a_stranger(net, beside):
    """The offerer's identity is unknown: in an emergency SDES of the same offer serves. Without it the offer is refused."""
    with relay_of(net) as daemon:
        a, b = ends(net, "mikey", "plain")
        a.use(peer.Initiator("psk", EVE, GATEWAY, psk=PSK))
        c = Call(daemon, a, b, RTP | EMERGENCY, {})
        if beside == "nothing":
            assert "identity is unknown" in refused(c, "offer", sdp=a.sdp(), from_tag="a", **RTP)
        else:
            line, offer = test_mikey.Sdes(net, "caller", ADDRESS["caller"]), a.sdp()
            line.key, c.a = None, line
            crypto = line.attributes()
            offer = line.sdp().replace(crypto, a.own_line() + crypto)
            b.believe(c.ask("offer", sdp=offer, from_tag="a", **c.to_b))
            line.believe(c.ask("answer", sdp=b.sdp(), from_tag="a", to_tag="b"))
            talk(c)
            assert c.keying("a") == "SDES"
            assert "MIKEY: identity is unknown; another keying serves instead" in daemon.text()
            assert fallbacks(daemon) == 1
            line.close()
        assert daemon.statistics()["MIKEY"]["psk responder identity"] == 1
        for end in (a, b):
            end.close()


@cases(("offer",), ("require",))
def test_mikey_to_a_stranger(net, how):
    """The callee's identity is unknown: with MIKEY=offer it is offered SDES, with require the offer is refused."""
    with relay_of(net) as daemon:
        a, b = ends(net, "plain", "sdes")
        c = Call(daemon, a, b, SRTP | {"MIKEY": how, "flags": ["emergency", "MIKEY-peer=" + EVE]}, {})
        if how == "require":
            order = {k: v for k, v in c.to_b.items() if k not in EVERY}
            assert "no section for MIKEY-peer" in refused(c, "offer", sdp=a.sdp(), from_tag="a", **order)
        else:
            c.begin()
            talk(c)
            assert c.keying("b") == "SDES" and "MIKEY not offered: no section for MIKEY-peer" in daemon.text()
            assert fallbacks(daemon) == 1
        assert daemon.statistics()["MIKEY"]["unknown initiator identity"] == 1
        for end in (a, b):
            end.close()
