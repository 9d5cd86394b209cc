# SPDX-License-Identifier: GPL-2.0-or-later
"""ZRTP that ends at the relay, with libbzrtp as terminal: either role, every kind of leg on the other side, policy, restart, strangers."""
import base64
import contextlib
import os
import random
import re
import tempfile
import threading

import bzrtp
import dtls
import idle
import ng
import redisrig
import relay
import srtp
import test_module
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


def uses_keys_of(daemon, number):
    """Waits until this many exchanges are complete and the relay protects media by the newest. Terminals that have its keys before count media
    under older ones as bad."""
    wait_for("the exchange", lambda: daemon.statistics()["sessions"]["ZRTP"]["exchanges"]["completed"] == number)
    idle.wait_idle()


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


@cases(("plain",), ("sdes",))
def test_answerer_that_announces_it_alone(net, other):
    """It was offered RTP without a=zrtp-hash, as linphone is by a phone without ZRTP. The policy says that the exchange ends here."""
    make = {"plain": dtls.Plain, "sdes": Sdes}[other]
    with talking(net, make, zrtp.Zrtp, {}, {"transport_protocol": "RTP/AVP"}, ("--zrtp=terminate",)) as (daemon, call):
        call.offer()
        assert "a=zrtp-hash" not in call.offered, call.offered
        call.answer().answer()
        assert "zrtp-hash" not in call.answered
        call.b.begin().secured()
        call.exchange()
        call.answer()
        call.exchange()
        assert sas_of(call, "b") == call.b.sas() and call.b.bad == 0


def test_first_packets_under_keys_opposite_clear_media(net):
    """They arrive before the workers have the keys: none is lost, and none is relayed as it is."""
    with talking(net, zrtp.Zrtp, dtls.Plain, TERMINATE) as (daemon, call):
        call.offer().answer()
        clear, said = b"in clear" * 20, [b"%03d" % n * 40 for n in range(20)]
        call.a.say(clear)
        wait_for("clear media", lambda: call.b.heard)
        call.a.look = lambda look=call.a.look: (look(), call.a.tx and said and [call.a.say(said.pop(0)) for _ in range(len(said))])
        everything = list(said)
        call.a.begin().secured()
        wait_for("all packets", lambda: len(call.b.heard) >= 1 + len(everything))
        assert call.b.heard == [clear, *everything], call.b.heard
        call.exchange()
        assert call.a.bad == call.b.bad == 0


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


def bzrtp_call(net, daemon):
    a, b = zrtp.Zrtp(net, "caller", A), Sdes(net, "caller", A)
    call = Call(daemon, zrtp.Lines(a), zrtp.Lines(b), TERMINATE, {"transport_protocol": "RTP/SAVP"})
    call.offer().answer()
    a.begin().secured()
    Call.exchange(Talk(a, b))
    return call, a, b


@contextlib.contextmanager
def taken_over(net, end, begin=bzrtp_call, more=()):
    """A call with a terminal of ZRTP, whose daemon was killed. end: restart or standby, whichever has the call then. begin(net, daemon): the call
    with both terminals. more: options of the daemon and of its restart."""
    if not redisrig.have():
        raise Skip("no redis-server")
    if begin is bzrtp_call and not bzrtp.have():
        raise Skip("no libbzrtp")
    redis = redisrig.Redis(net, addr="0.0.0.0")
    there = redisrig.Elsewhere(net)
    options = ("--engine=serial", "--workers=1", f"--redis-key-file={redis.key_file}")
    here = (*options, *more, "--redis=127.0.0.1:6379")
    first = relay.Xcipherd(net, *here, addresses=("10.200.1.1",)).wait_ready()
    standby = None
    if end == "standby":
        standby = relay.Xcipherd(there, *options, "--redis=10.200.9.1:6379", "--standby=yes", addresses=("10.200.1.1",)).wait_ready()
    call, a, b = begin(net, first)
    test_redis.settled(first)
    if standby:
        wait_for("the standby follows", lambda: standby.statistics()["redis"]["followed"] == 1)
    test_redis.kill(first)
    if standby:
        there.take_addresses()
        assert standby.client.call("active")["result"] == "ok"
    call.daemon = standby or relay.Xcipherd(net, *here, addresses=("10.200.1.1",)).wait_ready()
    wait_for("the call", lambda: call.daemon.statistics()["redis"]["restored"] == 1)
    yield call, a, b
    a.close()
    b.close()
    assert call.daemon.stop() == 0
    redis.stop()


@cases(("restart",), ("standby",))
def test_a_stream_begins_after_a_crash(net, end):
    """The terminal begins a stream with another SSRC. It uses the secret of an exchange with the process that was killed, and has its SAS."""
    with taken_over(net, end) as (call, a, b):
        first, sas = a.engine.keys["tx"], a.sas()
        Call.exchange(Talk(a, b))
        a.again().secured()
        assert a.engine.keys["tx"] != first
        uses_keys_of(call.daemon, 1)
        Call.exchange(Talk(a, b))
        assert sas_of(call, "a") == sas and a.bad == b.bad == 0, (a.bad, b.bad)


@cases(("restart",), ("standby",))
def test_a_line_is_added_after_a_crash(net, end):
    """A re-INVITE adds an m-line. Its exchange uses the secret of the first line's: the SAS is the same, and no public keys are needed."""
    with taken_over(net, end) as (call, a, b):
        two, other = zrtp.Zrtp(net, "caller", A, first=a), Sdes(net, "caller", A)
        call.a, call.b = zrtp.Lines(a, two), zrtp.Lines(b, other)
        call.offer(to_tag="b").answer()
        two.begin().secured()
        uses_keys_of(call.daemon, 1)
        Call.exchange(Talk(a, b))
        Call.exchange(Talk(two, other))
        medias = call.daemon.client.call("query", call_id=call.id)["tags"]["a"]["medias"]
        assert [m["ZRTP"]["SAS"] for m in medias] == [a.sas()] * 2, medias
        assert two.bad == other.bad == 0, (two.bad, other.bad)
        two.close()
        other.close()


def test_further_lines_use_the_secret_of_the_first(net):
    """Multistream mode, as linphone needs it: one ZID, one exchange by public keys, one SAS."""
    with daemon_of(net) as daemon:
        one = zrtp.Zrtp(net, "caller", A)
        two = zrtp.Zrtp(net, "caller", A, first=one)
        far = [Sdes(net, "callee", B), Sdes(net, "callee", B)]
        call = Call(daemon, zrtp.Lines(one, two), zrtp.Lines(*far), TERMINATE, {"transport_protocol": "RTP/SAVP"})
        call.offer().answer()
        one.begin().secured()
        two.begin().secured()
        for near, other in zip((one, two), far):
            Call.exchange(Talk(near, other))
        medias = daemon.client.call("query", call_id=call.id)["tags"]["a"]["medias"]
        assert [m["ZRTP"]["SAS"] for m in medias] == [one.sas()] * 2, medias
        for end in (two, one, *far):
            end.close()


class Talk:
    """Two terminals, for Call.exchange()."""

    def __init__(self, a, b):
        self.a, self.b = a, b


@contextlib.contextmanager
def cache_files():
    with tempfile.TemporaryDirectory(prefix="xc-zrtp-") as folder:
        key = os.path.join(folder, "key")
        with open(key, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(os.urandom(32).hex())
        yield (f"--zrtp-cache={folder}/secrets", f"--zrtp-cache-key={key}")


def one_call(net, daemon, cache, verify=()):
    a, b = zrtp.Zrtp(net, "caller", A, cache=cache), Sdes(net, "callee", B)
    call = Call(daemon, a, b, TERMINATE, {"transport_protocol": "RTP/SAVP"})
    call.offer().answer()
    a.begin().secured()
    call.exchange()
    wait_for("the keys", lambda: "ZRTP" in call.query("a"))
    found = call.query("a")["ZRTP"]
    if "relay" in verify:
        assert daemon.client.call("verify SAS", call_id=call.id, from_tag="a")["result"] == "ok"
        assert call.query("a")["ZRTP"]["verified"] == "yes"
    if "user" in verify:
        with a.lock:
            a.engine.verify()
    call.end()
    a.close()
    b.close()
    return found["verified"], found.get("retained secrets"), a.engine.verified


def test_a_compared_sas_stays_verified(net):
    """Both sides keep the result over a restart: the terminal in libbzrtp's cache, the relay in its encrypted file."""
    with cache_files() as options:
        cache = bzrtp.Cache() if bzrtp.have() else None
        with daemon_of(net, *options) as daemon:
            assert daemon.client.call("verify SAS", call_id="none")["error-reason"]
            assert one_call(net, daemon, cache, ("relay", "user"))[:2] == ("no", None)
            assert one_call(net, daemon, cache) == ("yes", None, 1)
        path = options[0].partition("=")[2]
        assert os.stat(path).st_mode & 0o777 == 0o600
        with daemon_of(net, *options) as daemon:
            assert one_call(net, daemon, cache) == ("yes", None, 1)
            # The terminal lost its secrets, and keeps its ZID: nothing is verified, and everybody is warned.
            cache.sqlite.sqlite3_exec(cache.db, b"UPDATE zrtp SET rs1=randomblob(32), rs2=randomblob(32)", None, None, None)
            assert one_call(net, daemon, cache)[:2] == ("no", "mismatch")
            assert "retained secrets of the terminal do not match" in daemon.text()
        with open(path, "r+b") as f:
            f.seek(60)
            f.write(b"damage")
        daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", *options, addresses=("10.200.2.1",))
        wait_for("it refuses to start", lambda: daemon.process.poll() is not None)
        assert "damaged" in daemon.text() and daemon.process.returncode != 0
        cache.close()


def test_ssrc_change_and_hold(net):
    """The far terminal changes its SSRC in mid-call; hold and resume keep the exchange."""
    with talking(net, zrtp.Zrtp, Sdes, TERMINATE, {"transport_protocol": "RTP/SAVP"}) as (daemon, call):
        call.offer().answer()
        call.a.begin().secured()
        call.exchange()
        sas, seen = call.a.sas(), call.a.count["zrtp"]
        for end in (call.b, call.a):
            end.ssrc ^= 0x5a5a5a5a
            call.exchange()
        idle.wait_idle()  # no packet is on its way while SDP changes keys
        sdp = call.a.sdp
        for direction in ("sendonly", "sendrecv"):
            call.a.sdp = lambda d=direction: sdp().replace("sendrecv", d)
            call.offer().answer()
        call.exchange()
        assert sas_of(call, "a") == sas and call.a.count["zrtp"] == seen, (call.a.count, seen)
        assert call.a.bad == call.b.bad == 0, (call.a.bad, call.b.bad)


@contextlib.contextmanager
def secured(net, who):
    """A call whose offerer or answerer has keys by ZRTP, and its other side by SDES: the daemon, the call, that end and its tag."""
    with talking(net, *((zrtp.Zrtp, Sdes, TERMINATE, {"transport_protocol": "RTP/SAVP"}) if who == "offerer" else
                        (Sdes, zrtp.Zrtp, {}, TERMINATE | {"transport_protocol": "RTP/AVP"}))) as (daemon, call):
        call.offer().answer()
        end, tag = (call.a, "a") if who == "offerer" else (call.b, "b")
        end.begin().secured()
        call.exchange()
        yield daemon, call, end, tag


@cases(("offerer",), ("answerer",))
def test_another_stream_in_mid_call(net, who):
    """The terminal begins a stream with another SSRC and an exchange of its own. Its secret is that of the first, and so is the SAS."""
    with secured(net, who) as (daemon, call, end, tag):
        sas, first = end.sas(), end.engine.keys["tx"]
        end.again().secured()
        assert end.engine.keys["tx"] != first
        uses_keys_of(daemon, 2)
        call.exchange()
        assert sas_of(call, tag) == sas and call.a.bad == call.b.bad == 0, (call.a.bad, call.b.bad)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def forged(rng, packet):
    """This packet, or one of random bytes, with changes and a right checksum."""
    types = (b"Hello   ", b"HelloACK", b"Commit  ", b"DHPart1 ", b"DHPart2 ", b"Confirm1", b"Confirm2", b"Conf2ACK", b"Error   ", b"ErrorACK", b"GoClear ",
             b"ClearACK", b"SASrelay", b"RelayACK", b"Ping    ", b"PingACK ")
    body = bytearray(packet[12:-4])
    if rng.random() < 0.5:
        body = bytearray(b"PZ\0\0" + rng.choice(types) + rng.randbytes(4 * rng.randrange(0, 110)))
    elif rng.random() < 0.5:
        body[32:64] = rng.randbytes(32)  # another H3 under the terminal's ZID
    else:
        body[rng.randrange(4, len(body))] ^= 1 << rng.randrange(8)
    body[2:4] = (len(body) // 4).to_bytes(2, "big")
    out = packet[:12] + bytes(body)
    return out + crc32c(out).to_bytes(4, "little")


def test_forged_packets_in_mid_call(net):
    """From the terminal's own address, with its ZID: media go on, and the keys and the SAS stay."""
    rng = random.Random(18)
    with talking(net, zrtp.Zrtp, Sdes, TERMINATE, {"transport_protocol": "RTP/SAVP"}) as (daemon, call):
        sent, send = [], call.a.socket.sendto
        call.offer().answer()
        call.a.tap = sent.append
        call.a.begin().secured()
        call.exchange()
        sas, hello = call.a.sas(), next(p for p in sent if p[16:24] == b"Hello   ")
        for n in range(2000):
            send(forged(rng, hello), call.a.to)
            if n % 100 == 0:
                call.exchange(3)
        assert sas_of(call, "a") == sas and call.a.bad == call.b.bad == 0, (call.a.bad, call.b.bad)
        assert daemon.statistics()["sessions"]["ZRTP"]["exchanges"]["completed"] == 1
        call.a.tap = lambda packet: None
        for _ in range(1000):
            send(forged(rng, hello), call.a.to)
        first = call.a.engine.keys["tx"]
        call.a.again().secured()  # its first packets find the queues full
        assert call.a.engine.keys["tx"] != first
        uses_keys_of(daemon, 2)
        call.exchange()
        assert sas_of(call, "a") == sas and call.a.bad == call.b.bad == 0, (call.a.bad, call.b.bad)


@cases(("offerer",), ("answerer",))
def test_a_terminal_that_lost_its_keys(net, who):
    """It sends a new offer with another a=zrtp-hash, or answers one with it: another exchange by public keys, another SAS, and media go on."""
    with secured(net, who) as (daemon, call, end, tag):
        sas = end.sas()
        end.anew()
        call.offer(to_tag="b").answer()
        idle.wait_idle()  # no packet under the old keys is on its way
        end.resume().secured()
        uses_keys_of(daemon, 2)
        call.exchange()
        assert sas_of(call, tag) == end.sas() != sas, (sas, end.sas(), sas_of(call, tag))
        assert call.a.bad == call.b.bad == 0, (call.a.bad, call.b.bad)


def test_branches_have_hellos_of_their_own(net):
    """Each offer with a via-branch announces another Hello; one branch cannot forge messages of another."""
    with talking(net, Sdes, zrtp.Zrtp, {}, TERMINATE | {"transport_protocol": "RTP/AVP"}) as (daemon, call):
        hashes = {re.search("a=zrtp-hash:(.*)", call.ask("offer", sdp=call.a.sdp(), from_tag="a", via_branch=f"z{i}", **call.to_b))[1] for i in range(3)}
        assert len(hashes) == 3
        call.end()


@cases(("nfqueue",), ("xdp",))
def test_other_steerings(net, steering):
    """The other tests use udp; t/kernel/guest/73-zrtp.py uses kernel."""
    with talking(net, zrtp.Zrtp, Sdes, TERMINATE, {"transport_protocol": "RTP/SAVP"}, (f"--steering={steering}",)) as (daemon, call):
        call.offer().answer()
        call.a.begin().secured()
        call.exchange()
        assert sas_of(call, "a") == call.a.sas() and call.a.bad == call.b.bad == 0


ASK = """
	if (is_method("BYE"))
		xcipher_query("", "ASKED");
	route(XCIPHER);
}

route[ASKED] {
	xlog("L_WARN", "test: SAS $xcipher(sas_from) $xcipher(verified_from), $xcipher(sas_to) $xcipher(verified_to)\\n");
	route(XCIPHER);
}
"""


class Phone:
    """The SIP of a terminal, for one call through the proxy."""

    def __init__(self, terminal, port=5060):
        self.terminal, self.tag = terminal, os.urandom(4).hex()
        self.socket = ng.socket_in(terminal.ns)
        self.socket.bind((terminal.address, port))
        self.socket.settimeout(60)

    @staticmethod
    def fields(message, name):
        return re.findall(rf"^{name}: *(.*?)\r$", message, re.M)

    def send(self, first, headers, body, to):
        kind = ["Content-Type: application/sdp"] if body else []
        text = "\r\n".join([first, *headers, f"Contact: <sip:t@{self.terminal.address}:5060>", *kind, f"Content-Length: {len(body)}", "", body])
        self.socket.sendto(text.encode(), (to, 5060))

    def receive(self, want):
        while True:
            message = self.socket.recv(65536).decode()
            if re.match(want, message):
                return message

    def request(self, method, target, remote, number, routes=(), body="", more=()):
        here = self.terminal.address
        self.send(f"{method} {target} SIP/2.0", [f"Via: SIP/2.0/UDP {here}:5060;branch=z9hG4bK{os.urandom(6).hex()}", *[f"Route: {r}" for r in routes],
                                                 f"From: <sip:a@{here}>;tag={self.tag}", f"To: {remote}", f"Call-ID: zrtp-{self.tag}", f"CSeq: {number} {method}",
                                                 "Max-Forwards: 70", *more], body, "10.200.1.1")

    def call(self, target, more=()):
        """more: further headers."""
        self.request("INVITE", target, f"<{target}>", 1, body=self.terminal.sdp(), more=more)

    def answered(self):
        reply = self.receive("SIP/2.0 2")
        self.routes, self.remote = self.fields(reply, "Record-Route")[::-1], self.fields(reply, "To")[0]
        self.target = re.search(r"<([^>]+)>", self.fields(reply, "Contact")[0])[1]
        self.terminal.believe(reply.partition("\r\n\r\n")[2])
        self.request("ACK", self.target, self.remote, 1, self.routes)

    def hang_up(self):
        self.request("BYE", self.target, self.remote, 2, self.routes)
        self.receive("SIP/2.0 200")

    def reply(self, message, body="", status="200 OK"):
        copied = [f"{name}: {value}" for name in ("Via", "Record-Route", "From", "Call-ID", "CSeq") for value in self.fields(message, name)]
        to = self.fields(message, "To")[0]
        self.send(f"SIP/2.0 {status}", [*copied, f"To: {to}" + ("" if "tag=" in to else f";tag={self.tag}")], body, "10.200.2.1")

    def accept(self, early=False):
        """early: a 183 with the SDP first. Returns a function that sends the 200 with it."""
        invite = self.receive("INVITE")
        self.terminal.believe(invite.partition("\r\n\r\n")[2])
        if early:
            self.reply(invite, self.terminal.sdp(), "183 Session Progress")
            return lambda: self.reply(invite, self.terminal.sdp())
        return self.reply(invite, self.terminal.sdp())

    def early(self):
        """The callee's SDP in a 183."""
        self.terminal.believe(self.receive("SIP/2.0 183").partition("\r\n\r\n")[2])

    def end(self):
        self.reply(self.receive("BYE"))


@contextlib.contextmanager
def sip_call(net, folder, **settings):
    """Two terminals of ZRTP and their SIP, and a proxy with our module that lets both exchanges end at the relay. The phones and the processes."""
    test_module.needs()
    if not bzrtp.have():
        raise Skip("no libbzrtp")
    flags = "RTP/AVP ZRTP=terminate ICE=remove replace-origin"
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=test_module.BOTH).wait_ready()
    kam = test_module.proxy(net, folder, XC_OFFER_FLAGS=test_module.quoted(flags + " direction=caller direction=callee"),
                            XC_ANSWER_FLAGS=test_module.quoted(flags), **settings)
    a, b = zrtp.Zrtp(net, "caller", A), zrtp.Zrtp(net, "callee", B)
    one, other = Phone(a), Phone(b)
    yield daemon, kam, one, other
    assert kam.stop() == 0 and daemon.stop() == 0
    for end in (a, b):
        end.close()
    for phone in (one, other):
        phone.socket.close()


def sas_of_all(daemon):
    call_id = daemon.client.call("list")["calls"][0]
    tags = daemon.client.call("query", call_id=call_id)["tags"]
    return {t["medias"][0]["ZRTP"]["SAS"] for t in tags.values()}


def test_early_media(net):
    """A 183 with SDP: both exchanges complete, and media pass before the call is answered. The 200 with the same SDP changes nothing."""
    with tempfile.TemporaryDirectory(prefix="xc-zrtp-") as folder, sip_call(net, folder) as (daemon, _, one, other):
        a, b = one.terminal, other.terminal
        one.call("sip:callee@10.200.2.2:5060")
        answer = other.accept(early=True)
        one.early()
        for end in (a.begin(), b.begin()):
            end.secured()
        uses_keys_of(daemon, 2)
        Call.exchange(Talk(a, b))
        before = a.count["zrtp"], b.count["zrtp"]
        answer()
        one.answered()
        other.receive("ACK")
        Call.exchange(Talk(a, b))
        assert (a.count["zrtp"], b.count["zrtp"]) == before and a.bad == b.bad == 0, (before, a.count, b.count)
        assert sas_of_all(daemon) == {a.sas(), b.sas()}


def test_both_sas_through_kamailio(net):
    """Two terminals whose ZRTP ends here, one call by SIP: both SAS in the script's variables, the log and query."""
    with tempfile.TemporaryDirectory(prefix="xc-zrtp-") as folder, \
            sip_call(net, folder, swap=("\n\troute(XCIPHER);\n}\n", ASK)) as (daemon, kam, one, other):
        a, b = one.terminal, other.terminal
        one.call("sip:callee@10.200.2.2:5060")
        other.accept()
        one.answered()
        other.receive("ACK")
        for end in (a.begin(), b.begin()):
            end.secured()
        Call.exchange(Talk(a, b))
        assert sas_of_all(daemon) == {a.sas(), b.sas()} and a.sas() != b.sas()
        call_id = daemon.client.call("list")["calls"][0]
        assert daemon.client.call("verify SAS", call_id=call_id, from_tag=one.tag)["result"] == "ok"
        ended = threading.Thread(target=other.end)
        ended.start()
        one.hang_up()
        ended.join()
        wait_for("the variables", lambda: "test: SAS" in kam.text())
        assert f"test: SAS {a.sas()} yes, {b.sas()} no" in kam.text(), kam.text()
        assert f"SAS {a.sas()}" in daemon.text() and f"SAS {b.sas()}" in daemon.text()
