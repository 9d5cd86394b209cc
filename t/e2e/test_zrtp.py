# SPDX-License-Identifier: GPL-2.0-or-later
"""ZRTP that ends at the relay, with libbzrtp as terminal: either role, every kind of leg on the other side, policy, restart, strangers."""
import base64
import contextlib
import os
import re

import bzrtp
import dtls
import redisrig
import relay
import srtp
import test_redis
import zrtp
from baresip import wait_for
from run import Skip, cases

A, B = "10.200.1.2", "10.200.2.2"


class Sdes(dtls.Plain):
    """A terminal of SDES with one suite."""
    profile = "RTP/SAVP"

    def __init__(self, net, place, address):
        self.key, self.tag = os.urandom(30), "1"
        self.rx, self.tx = None, srtp.Session("AES_CM_128_HMAC_SHA1_80", self.key, srtp.OUTBOUND)
        super().__init__(net, place, address)

    def attributes(self):
        return f"a=crypto:{self.tag} AES_CM_128_HMAC_SHA1_80 inline:{base64.b64encode(self.key).decode()}\r\n"

    def believe(self, sdp):
        super().believe(sdp)
        line = re.search(r"^a=crypto:(\d+) AES_CM_128_HMAC_SHA1_80 inline:(\S+?)(?:\||\s|$)", sdp, re.M)
        self.tag, key = line[1], base64.b64decode(line[2])
        if not self.rx or key != self.theirs:
            self.theirs, self.rx = key, srtp.Session("AES_CM_128_HMAC_SHA1_80", key, srtp.INBOUND)

    def hear(self, packet):
        clear = self.rx.unprotect(packet) if self.rx else None
        self.bad += clear is None
        if clear:
            super().hear(clear)

    def protect(self, packet):
        return self.tx.protect(packet)


class Call(dtls.Call):
    """Flags towards each terminal."""
    to_b = {"replace": ["origin"], "ICE": "remove"}
    to_a = {"replace": ["origin"], "ICE": "remove"}

    def __init__(self, daemon, a, b, to_a=None, to_b=None):
        super().__init__(daemon, a, b)
        self.to_a, self.to_b = self.to_a | (to_a or {}), self.to_b | (to_b or {})

    def offer(self, **more):
        self.offered = self.ask("offer", sdp=self.a.sdp(), from_tag="a", **(self.to_b | more))
        self.b.believe(self.offered)
        return self

    def answer(self, **more):
        self.answered = self.ask("answer", sdp=self.b.sdp(), from_tag="a", to_tag="b", **(self.to_a | more))
        self.a.believe(self.answered)
        return self

    def query(self, tag):
        return self.daemon.client.call("query", call_id=self.id)["tags"][tag]["medias"][0]


@contextlib.contextmanager
def daemon_of(net, *options):
    if not bzrtp.have():
        raise Skip("no libbzrtp")
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", *options, addresses=("10.200.2.1",)).wait_ready()
    yield daemon
    assert daemon.stop() == 0


@contextlib.contextmanager
def talking(net, make_a, make_b, to_a=None, to_b=None, options=()):
    with daemon_of(net, *options) as daemon:
        a, b = make_a(net, "caller", A), make_b(net, "callee", B)
        yield daemon, Call(daemon, a, b, to_a, to_b)
        a.close()
        b.close()


TERMINATE = {"ZRTP": "terminate"}
DTLS = {"transport_protocol": "UDP/TLS/RTP/SAVP", "rtcp_mux": ["offer"], "SDES": ["off"]}


def sas_of(call, tag):
    return call.query(tag)["ZRTP"]["SAS"]


@cases(("terminate",), ("policy",))
def test_offerer_of_zrtp_and_answerer_of_sdes(net, how):
    ordered = how == "terminate"
    with talking(net, zrtp.Zrtp, Sdes, TERMINATE if ordered else {}, {"transport_protocol": "RTP/SAVP"},
                 () if ordered else ("--zrtp=terminate",)) as (daemon, call):
        call.offer()
        assert "zrtp-hash" not in call.offered and "a=crypto" in call.offered
        call.answer()
        assert "RTP/AVP" in call.answered and "a=zrtp-hash:1.10 " in call.answered and "a=crypto" not in call.answered
        for _ in range(50):
            call.b.say(b"before the keys" * 10)
        wait_for("they were dropped", lambda: daemon.statistics()["packets received"] >= 50)
        assert call.a.count["rtp"] == 0
        call.a.begin().secured()
        call.exchange()
        m = call.query("a")
        assert m["keying"] == "ZRTP" and m["ZRTP"] == {"SAS": call.a.sas(), "verified": "no"} and m["crypto suite"] == call.a.suite, m
        assert "SDES" not in m["flags"] and call.a.bad == call.b.bad == 0
        assert f"SAS {call.a.sas()}" in daemon.text()
        call.end()
        wait_for("the session ended", lambda: daemon.statistics()["sessions"]["in use"] == 0)


@cases(("plain",), ("sdes",), ("dtls",))
def test_answerer_of_zrtp(net, other):
    make = {"plain": dtls.Plain, "sdes": Sdes, "dtls": dtls.Dtls}[other]
    with talking(net, make, zrtp.Zrtp, {}, TERMINATE | {"transport_protocol": "RTP/AVP"}) as (daemon, call):
        call.offer()
        assert "RTP/AVP" in call.offered and "a=zrtp-hash:1.10 " in call.offered, call.offered
        call.answer()
        assert "zrtp-hash" not in call.answered
        call.b.begin()
        if other == "dtls":
            call.a.handshake()
            call.a.keyed()
        call.b.secured()
        call.exchange()
        assert sas_of(call, "b") == call.b.sas() and call.a.bad == call.b.bad == 0


def test_answerer_of_dtls(net):
    with talking(net, zrtp.Zrtp, dtls.Dtls, TERMINATE, DTLS) as (daemon, call):
        call.offer().answer()
        call.b.handshake()
        call.b.keyed()
        call.a.begin().secured()
        call.exchange()
        assert sas_of(call, "a") == call.a.sas() and call.a.bad == call.b.bad == 0


def test_both_legs_end_here(net):
    """Two exchanges: the SAS differ, and both are known here."""
    with talking(net, zrtp.Zrtp, zrtp.Zrtp, TERMINATE, TERMINATE) as (daemon, call):
        call.offer().answer()
        call.a.begin()
        call.b.begin()
        call.a.secured()
        call.b.secured()
        call.exchange()
        assert (sas_of(call, "a"), sas_of(call, "b")) == (call.a.sas(), call.b.sas())


def test_default_is_end_to_end(net):
    with talking(net, zrtp.Zrtp, zrtp.Zrtp, TERMINATE) as (daemon, call):
        call.offer().answer()
        assert call.a.hello in call.offered and call.b.hello in call.answered
        call.b.say(b"hello")
        call.a.say(b"hello")
        call.a.begin()
        call.b.begin()
        call.a.secured()
        call.b.secured()
        assert call.a.sas() == call.b.sas()
        call.exchange()
        assert call.query("a")["keying"] == "ZRTP end-to-end" and "ZRTP" not in call.query("a")


@cases((True,), (False,))
def test_a_terminal_that_does_not_announce_it_is_asked(net, speaks):
    """Without an answer to Hello its media go on in clear, and that is logged."""
    make_b = (lambda *at: zrtp.Zrtp(*at, announces=False)) if speaks else dtls.Plain
    with talking(net, Sdes, make_b, {}, TERMINATE | {"transport_protocol": "RTP/AVP"}) as (daemon, call):
        call.offer().answer()
        if speaks:
            call.b.begin().secured()
        else:
            wait_for("it is logged", lambda: "does not answer ZRTP: its media are in clear" in daemon.text())
        call.exchange()
        assert ("ZRTP" in call.query("b")) == speaks


def test_require_never_falls_back(net):
    with talking(net, Sdes, dtls.Plain, {}, {"ZRTP": "require", "transport_protocol": "RTP/AVP"}) as (daemon, call):
        call.offer().answer()
        wait_for("it is known", lambda: "ZRTP failed" in daemon.text())
        before = daemon.statistics()["packets received"]
        for _ in range(50):
            call.a.say(b"not for them" * 10)
        wait_for("they were dropped", lambda: daemon.statistics()["packets received"] >= before + 50)
        assert b"not for them" * 10 not in call.b.heard


def test_wrong_hello_hash(net):
    with talking(net, zrtp.Zrtp, Sdes, TERMINATE, {"transport_protocol": "RTP/SAVP"}) as (daemon, call):
        right = call.a.hello
        call.a.hello = right[:-2] + ("00" if right[-2:] != "00" else "11")
        call.offer().answer()
        call.a.begin()
        wait_for("it is known", lambda: "ZRTP failed" in daemon.text())
        assert not call.a.engine.secure


def test_keys_survive_a_crash(net):
    """No second exchange: the terminal would not take part in one."""
    if not redisrig.have():
        raise Skip("no redis-server")
    if not bzrtp.have():
        raise Skip("no libbzrtp")
    redis = redisrig.Redis(net)
    options = ("--engine=serial", "--workers=1", *redis.daemon_options())
    daemon = relay.Xcipherd(net, *options, addresses=("10.200.2.1",)).wait_ready()
    a, b = zrtp.Zrtp(net, "caller", A), Sdes(net, "callee", B)
    call = Call(daemon, a, b, TERMINATE, {"transport_protocol": "RTP/SAVP"})
    call.offer().answer()
    a.begin().secured()
    call.exchange()
    sas = sas_of(call, "a")
    assert sas == a.sas()
    test_redis.settled(daemon)
    test_redis.kill(daemon)
    call.daemon = daemon = relay.Xcipherd(net, *options, addresses=("10.200.2.1",)).wait_ready()
    wait_for("the call", lambda: daemon.client.call("query", call_id=call.id)["result"] == "ok")
    hellos = a.count["zrtp"]
    call.exchange()
    assert sas_of(call, "a") == sas and a.count["zrtp"] == hellos and a.bad == b.bad == 0
    a.close()
    b.close()
    assert daemon.stop() == 0
    redis.stop()
