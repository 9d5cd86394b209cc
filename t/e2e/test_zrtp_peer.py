# SPDX-License-Identifier: GPL-2.0-or-later
"""ZRTP that ends at the relay, with the terminals of t/zrtp/zrtp_peer.py, which were written from RFC 6189 alone: either role, each agreement,
Commits that meet, retained secrets, preshared mode, enrolment and SASrelay, GoClear, Ping, errors, changed and lost packets."""
import contextlib
import itertools
import os
import time

from cryptography.hazmat.primitives.asymmetric import ec

import dtls
import idle
import ng
import relay
import zrtp
from baresip import wait_for
from run import cases
from test_zrtp import A, B, TERMINATE, Call, Sdes, Talk, cache_files, taken_over
from zrtp_terminal import Cache, Peer, Settings, Terminal, peer_wire

SAVP, AVP = {"transport_protocol": "RTP/SAVP"}, {"transport_protocol": "RTP/AVP"}


@contextlib.contextmanager
def daemon_of(net, *options):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", *options, addresses=("10.200.2.1",)).wait_ready()
    yield daemon
    assert daemon.stop() == 0


@contextlib.contextmanager
def calling(net, daemon, settings=None, **more):
    """A call from a terminal of ZRTP to one of SDES, before the exchange. more: flags of the answer, or what Terminal takes."""
    flags = more.pop("flags", {})
    a, b = Terminal(net, "caller", A, settings, **more), Sdes(net, "callee", B)
    call = Call(daemon, a, b, TERMINATE | flags, SAVP).offer().answer()
    call.before = completed(daemon)
    yield call
    a.close()
    b.close()


def completed(daemon):
    return daemon.statistics()["sessions"]["ZRTP"]["exchanges"]["completed"]


def talk(call, before):
    """Media both ways after one more exchange."""
    wait_for("the exchange", lambda: completed(call.daemon) > before)
    idle.wait_idle()
    call.exchange(5)


def secure(call):
    """The exchange, media both ways, and the same SAS, algorithms and suite at both ends."""
    before, a = call.before, call.a
    if not a.ticker:
        a.begin()
    a.secured()
    talk(call, before)
    m = call.query("a")
    assert m["keying"] == "ZRTP" and m["ZRTP"]["SAS"] == a.peer.sas and m["crypto suite"] == a.peer.suite(), (m, a.peer.sas, a.peer.suite())
    assert a.bad == call.b.bad == 0 and not a.peer.errors, (a.bad, call.b.bad, a.peer.alarms)
    return m


ROLES = "initiator", "responder"


def test_each_agreement_in_both_roles(net):
    rest = itertools.cycle((("S256", "AES1", "HS32", "B32 "), ("S384", "AES3", "HS80", "B256"), ("S256", "AES3", "HS32", "B32 ")))
    with daemon_of(net) as daemon:
        for role, agreement in itertools.product(ROLES, ("EC25", "X255", "DH3k", "EC38", "DH2k")):
            names = {**dict(zip(("hash", "cipher", "tag", "sas"), next(rest))), "agreement": agreement}
            if agreement == "EC38":
                names["hash"] = "S384"
            offers = {kind: [name.encode()] for kind, name in names.items()}
            with calling(net, daemon, Settings(offers=offers, role=role)) as call:
                secure(call)
                p = call.a.peer
                assert p.role == role[0] and {k: v.decode() for k, v in p.chosen.items()} == names, p.chosen
                call.end()


def test_answerer(net):
    """It is asked by an offer of a phone with RTP, and its Hello is not announced."""
    with daemon_of(net) as daemon:
        for role in ROLES:
            a, b = dtls.Plain(net, "caller", A), Terminal(net, "callee", B, Settings(role=role), announces=False)
            call = Call(daemon, a, b, {}, TERMINATE | AVP).offer().answer()
            before = completed(daemon)
            b.begin().secured()
            talk(call, before)
            assert call.query("b")["ZRTP"]["SAS"] == b.peer.sas and b.peer.role == role[0] and b.bad == 0
            for end in (a, b):
                end.close()


def blind(end, kinds):
    """A stranger sends these from the terminal's address, without having seen a packet of the relay."""
    p = Peer(Settings(offers={"agreement": [b"EC25"]}), end.ssrc)
    chosen = {kind: p.offers[kind][0] for kind in peer_wire.KINDS}
    point = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    value = point.x.to_bytes(32, "big") + point.y.to_bytes(32, "big")
    texts = {"Hello": p.hello, "HelloACK": peer_wire.message(b"HelloACK"), "Commit": peer_wire.commit(p.chain, p.zid, chosen, bytes([255] * 32)),
             "DHPart1": peer_wire.dhpart(b"DHPart1 ", p.chain, [bytes(8)] * 4, value)}
    for number, kind in enumerate(kinds.split()):
        end.socket.sendto(peer_wire.packet(texts[kind], number, end.ssrc), end.to)


@cases(*itertools.product(("Hello HelloACK", "Hello Commit", "Hello HelloACK DHPart1"), (False, True)))
def test_a_stranger_was_there_before(net, kinds, failed):
    """The terminal begins while the relay waits for the stranger, or after that failed, which is reported. It gets its keys all the same."""
    answer = {"Hello HelloACK": b"Commit  ", "Hello Commit": b"DHPart1 "}.get(kinds, b"DHPart2 ")
    with daemon_of(net) as daemon:
        a, b = dtls.Plain(net, "caller", A), Terminal(net, "callee", B, announces=False)
        call = Call(daemon, a, b, {}, TERMINATE | AVP).offer().answer()
        blind(b, kinds)
        if failed:
            wait_for("it failed", lambda: "ZRTP failed" in daemon.text())
        else:
            wait_for("an answer", lambda: answer in b.seen)
        before = completed(daemon)
        b.begin().secured()
        talk(call, before)
        assert call.query("b")["ZRTP"]["SAS"] == b.peer.sas and b.bad == 0
        results = daemon.statistics()["sessions"]["ZRTP"]["exchanges"]
        assert results["completed"] == 1 and results["timeout"] == failed, results
        for end in (a, b):
            end.close()


def test_strangers_in_between(net):
    """They send these before each of the terminal's first messages: Hello, Commit, DHPart2."""
    left = []

    def first(packet):
        if left and peer_wire.kind_of(packet) in (b"Hello   ", b"Commit  ", b"DHPart1 ", b"DHPart2 "):
            blind(b, left.pop())
        return [packet]
    with daemon_of(net) as daemon:
        for kinds in ("Hello Commit", "Hello HelloACK Commit DHPart1"):
            left[:] = [kinds] * 3
            a, b = dtls.Plain(net, "caller", A), Terminal(net, "callee", B, announces=False)
            b.spoil_out = first
            call = Call(daemon, a, b, {}, TERMINATE | AVP).offer().answer()
            before = completed(daemon)
            b.begin().secured()
            talk(call, before)
            assert call.query("b")["ZRTP"]["SAS"] == b.peer.sas and not left, left
            for end in (a, b):
                end.close()


def test_a_stranger_commits_while_the_terminal_answers(net):
    """The relay has committed. It answers the greater Commit, which is the stranger's, and still knows its own when the terminal's DHPart1 arrives."""
    left = ["Hello Commit"]

    def first(packet):
        if left and peer_wire.kind_of(packet) == b"DHPart1 ":
            blind(b, left.pop())
        return [packet]
    with daemon_of(net) as daemon:
        a, b = dtls.Plain(net, "caller", A), Terminal(net, "callee", B, Settings(role="responder"), announces=False)
        b.spoil_out = first
        call = Call(daemon, a, b, {}, TERMINATE | AVP).offer().answer()
        before = completed(daemon)
        b.begin().secured()
        talk(call, before)
        assert call.query("b")["ZRTP"]["SAS"] == b.peer.sas and not left and b"DHPart1 " in b.seen, b.seen
        for end in (a, b):
            end.close()


def meet(a, wins):
    """The terminal commits when the relay's Commit is on its way, with a value that is greater or smaller. Returns a list of the relay's Commits."""
    late = []

    def arrives(packet):
        if peer_wire.kind_of(packet) == b"Commit  " and not late:
            late.append(packet)
            theirs = peer_wire.Commit.read(peer_wire.unpack(packet)[1]).weight()
            a.peer.draw = lambda commit: (commit.weight() > theirs) == wins
            a.peer.commit()
        return [packet]
    a.spoil_in = arrives
    return late


def test_two_commits_meet(net):
    """The terminal has sent its Commit when that of the relay arrives. The larger one counts."""
    with daemon_of(net) as daemon:
        for wins in (True, False):
            with calling(net, daemon, Settings(role="responder")) as call:
                late = meet(call.a, wins)
                secure(call)
                assert late and call.a.peer.role == ("i" if wins else "r"), call.a.peer.role


def test_second_line(net):
    """The second m-line uses the secret of the first: one SAS, no public keys."""
    with daemon_of(net) as daemon:
        for role in ROLES:
            before = completed(daemon)
            one = Terminal(net, "caller", A)
            two = Terminal(net, "caller", A, Settings(role=role), first=one)
            far = [Sdes(net, "callee", B), Sdes(net, "callee", B)]
            call = Call(daemon, zrtp.Lines(one, two), zrtp.Lines(*far), TERMINATE, SAVP).offer().answer()
            one.begin().secured()
            two.begin().secured()
            wait_for("both exchanges", lambda before=before: completed(daemon) == before + 2)
            idle.wait_idle()
            for near, other in zip((one, two), far):
                Call.exchange(Talk(near, other), 5)
            assert two.peer.chosen["agreement"] == b"Mult" and two.peer.role == role[0]
            assert b"DHPart1 " not in two.seen and b"DHPart2 " not in two.seen
            medias = daemon.client.call("query", call_id=call.id)["tags"]["a"]["medias"]
            assert [m["ZRTP"]["SAS"] for m in medias] == [one.peer.sas] * 2, medias
            for end in (two, one, *far):
                assert end.bad == 0
                end.close()


def test_retained_secrets(net):
    """Each call depends on the one before. A terminal that lost the last update still has the secret before it; a lost cache is noticed."""
    cache = Cache()
    with cache_files() as options, daemon_of(net, *options) as daemon:
        def one_call(role="either"):
            with calling(net, daemon, Settings(role=role), cache=cache) as call:
                m = secure(call)
                call.end()
                return call.a.peer, m["ZRTP"].get("retained secrets")
        first, said = one_call()
        zid = first.theirs.zid
        assert not first.matched and said is None and cache.found[zid]["rs1"] == first.keys.rs1
        for role in ("initiator", "responder"):
            old = dict(cache.found[zid])
            second, said = one_call(role)
            assert second.matched == {"rs1": old["rs1"]} and said is None and not second.mismatched, said
            cache.found[zid] = dict(old)  # the last packets of that call were lost
            third, said = one_call(role)
            assert third.matched == {"rs1": old["rs1"]} and said is None, said
        cache.found[zid] = {"rs1": os.urandom(32), "rs2": os.urandom(32)}
        lost, said = one_call()
        assert lost.mismatched and said == "mismatch", said


def test_preshared_mode_is_not_offered(net):
    """A terminal that would use it sees that, and uses public keys. One that commits to it all the same gets an Error, and no keys."""
    cache = Cache()
    with cache_files() as options, daemon_of(net, *options) as daemon:
        for role in ("initiator", "either"):
            with calling(net, daemon, Settings(role=role, preshared=True), cache=cache) as call:
                secure(call)
                assert b"Prsh" not in call.a.peer.theirs.lists["agreement"] and call.a.peer.is_dh()
                call.end()
        with calling(net, daemon, Settings(role="initiator", preshared=True), cache=cache) as call:
            p = call.a.peer
            p.best = lambda: b"Prsh"
            call.a.begin()
            wait_for("an Error", lambda: p.errors)
            assert p.errors[0] == 0x53 and not p.keys, p.errors


def test_preshared_mode(net):
    """With --zrtp-preshared=yes each end commits by a retained secret, and each exchange changes it. A terminal without one uses public keys."""
    cache = Cache()
    with cache_files() as options, daemon_of(net, *options, "--zrtp-preshared=yes") as daemon:
        def one_call(role, preshared=True):
            with calling(net, daemon, Settings(role=role, preshared=preshared), cache=cache) as call:
                m = secure(call)
                call.end()
                p = call.a.peer
                assert b"Prsh" in p.theirs.lists["agreement"] and p.is_dh() == (b"DHPart2 " in p.messages), p.messages.keys()
                return p, m["ZRTP"].get("retained secrets")
        assert one_call("initiator")[0].is_dh()  # there is no secret yet
        for role in ROLES * 2:
            before = dict(cache.found[one_call(role, preshared=False)[0].theirs.zid])
            p, said = one_call(role)
            assert p.role == role[0] and p.chosen["agreement"] == b"Prsh", (p.role, p.chosen)
            assert p.matched == {"rs1": before["rs1"]} and said is None, said
            assert cache.found[p.theirs.zid]["rs1"] == p.keys.rs1 != before["rs1"]
        for wins in (True, False):  # both commit by it: that of the gateway is discarded (4.2), whichever nonce is greater
            with calling(net, daemon, Settings(role="responder", preshared=True), cache=cache) as call:
                late = meet(call.a, wins)
                secure(call)
                p = call.a.peer
                assert late and p.role == "i" and p.chosen["agreement"] == b"Prsh", (p.role, p.chosen)
                call.end()
        for role in ("initiator", "either"):  # the terminal's secret is another one: public keys, and a warning
            cache.found[p.theirs.zid] = {"rs1": os.urandom(32), "rs2": os.urandom(32)}
            p, said = one_call(role)
            assert p.is_dh() and said == "mismatch", (p.chosen, said)


def enrol(net, daemon, cache):
    with calling(net, daemon, Settings(enrols=True), cache=cache, flags={"ZRTP": ["terminate", "enrol"]}) as call:
        secure(call)
        assert call.a.peer.enrolment_offered and "pbx" in cache.found[call.a.peer.theirs.zid]
        call.end()


@contextlib.contextmanager
def two_terminals(net, daemon, caches, settings=(None, None), flags=TERMINATE):
    """A call of two terminals, whose ZRTP both ends here, with both exchanges complete."""
    a, b = (Terminal(net, place, at, s, cache=cache) for place, at, s, cache in zip(("caller", "callee"), (A, B), settings, caches))
    call = Call(daemon, a, b, flags, flags | AVP).offer().answer()
    before = completed(daemon)
    for end in (a, b):
        end.begin()
    for end in (a, b):
        end.secured()
    wait_for("both exchanges", lambda: completed(daemon) == before + 2)
    yield call
    a.close()
    b.close()


def shows_far_sas(net, daemon, caches, who):
    """One call. who: the enrolled ones of caller and callee."""
    settings = Settings(offers={"sas": [b"B256"]}), Settings(offers={"sas": [b"B32 "], "cipher": [b"AES3"], "hash": [b"S384"]})
    with two_terminals(net, daemon, caches, settings) as call:
        a, b = call.a, call.b
        if who:
            wait_for("the SAS of the far end", lambda: a.peer.relayed or b.peer.relayed)
        idle.wait_idle()
        call.exchange(5)
        enrolled = [call.query(tag)["ZRTP"].get("enrolled") for tag in "ab"]
        assert enrolled == ["yes" if name in who else None for name in ("caller", "callee")], enrolled
        assert a.peer.sas != b.peer.sas and (a.peer.shown() == b.peer.shown()) == bool(who), (who, a.peer.shown(), b.peer.shown())
        got = [name for name, end in (("caller", a), ("callee", b)) if end.peer.relayed]
        assert got == list(who[:1]), (who, got)
        alarms = set(a.peer.alarms + b.peer.alarms) - {"a Commit that loses"}
        assert not alarms and a.bad == b.bad == 0, alarms
        call.end()


def test_enrolled_terminal_shows_the_far_sas(net):
    """Both users read the same SAS if at least one of them is enrolled. Of two such terminals only one gets the SAS of the other (RFC 6189 7.3)."""
    a, b = Cache(), Cache()
    with cache_files() as options, daemon_of(net, *options) as daemon:
        shows_far_sas(net, daemon, (a, b), ())
        enrol(net, daemon, a)
        shows_far_sas(net, daemon, (a, b), ("caller",))
        shows_far_sas(net, daemon, (b, a), ("callee",))
        enrol(net, daemon, b)
        shows_far_sas(net, daemon, (a, b), ("caller", "callee"))


def test_who_may_disclose_says_so(net):
    """The flag D (RFC 6189 11): a terminal's is shown to the operator and to the far terminal, if that is enrolled.
    xcipherd's own is set by an option."""
    enrolled, other = Cache(), Cache()
    with cache_files() as options:
        with daemon_of(net, *options) as daemon:
            enrol(net, daemon, enrolled)
            for discloses in (False, True):
                with two_terminals(net, daemon, (enrolled, other), (None, Settings(discloses=discloses))) as call:
                    a, b = call.a.peer, call.b.peer
                    wait_for("the SAS of the far end", lambda a=a: a.relayed)
                    assert (a.disclosed, b.disclosed, a.far_discloses) == (False, False, discloses)
                    assert ("discloses" in call.query("b")["ZRTP"]) == discloses and "discloses" not in call.query("a")["ZRTP"]
                    assert ("may disclose keys or media" in daemon.text()) == discloses
                    call.end()
        with daemon_of(net, *options, "--zrtp-disclosure=yes") as daemon:
            with two_terminals(net, daemon, (enrolled, other)) as call:
                a, b = call.a.peer, call.b.peer
                wait_for("the SAS of the far end", lambda: a.relayed)
                assert (a.disclosed, b.disclosed, a.far_discloses) == (True, True, True)
                assert "discloses" not in call.query("a")["ZRTP"]


def test_flags_of_sasrelay(net):
    """A and V (RFC 6189 5.13), which replace those of the Confirm: whether GoClear is allowed, and whether the far terminal's SAS was compared."""
    enrolled, other = Cache(), Cache()
    with cache_files() as options, daemon_of(net, *options) as daemon:
        enrol(net, daemon, enrolled)
        for clear, verified in ((False, False), (True, False), (False, True)):
            flags = {"ZRTP": ["terminate", "goclear"] if clear else "terminate"}
            with two_terminals(net, daemon, (enrolled, other), flags=flags) as call:
                a, b = call.a.peer, call.b.peer
                wait_for("the SAS of the far end", lambda a=a: a.relayed)
                assert a.peer_clears == clear and a.far_flags == peer_wire.CLEAR * clear + peer_wire.VERIFIED * verified, a.far_flags
                if clear:
                    assert daemon.client.call("verify SAS", call_id=call.id, from_tag="b")["result"] == "ok"
                    other.put(b.theirs.zid, "verified", True)
                call.end()


def test_a_lost_sasrelay_is_repeated(net):
    cache = Cache()
    with cache_files() as options, daemon_of(net, *options) as daemon:
        enrol(net, daemon, cache)
        with two_terminals(net, daemon, (cache, Cache())) as call:
            lost = []

            def loses(packet):
                if peer_wire.kind_of(packet) == b"SASrelay" and len(lost) < 2:
                    lost.append(packet)
                    return []
                return [packet]
            call.a.spoil_in = loses
            wait_for("the SAS of the far end", lambda: call.a.peer.relayed)
            assert call.a.peer.shown() == call.b.peer.sas


@cases((True,), (False,))
def test_goclear(net, allowed):
    """SRTP ends if the request allows it. The terminal goes secure again by another stream and the secret that is left."""
    with daemon_of(net) as daemon, calling(net, daemon, Settings(allow_clear=True), flags={"ZRTP": ["terminate", "goclear"]} if allowed else {}) as call:
        secure(call)
        a = call.a
        assert a.peer.peer_clears == allowed
        a.do(lambda p: p.go_clear(time.monotonic()))
        if not allowed:
            wait_for("the refusal", lambda: a.peer.errors)
            assert a.peer.errors[0] == 0x100 and a.peer.state == "secure"
            call.exchange(5)
            assert call.query("a")["crypto suite"] == a.peer.suite() and a.bad == call.b.bad == 0
            return
        wait_for("ClearACK", lambda: a.peer.state == "clear")
        wait_for("it is in the log", lambda: "GoClear" in daemon.text())
        idle.wait_idle()
        call.exchange(5)
        # Another stream uses the secret that GoClear left, and ends the clear media.
        before, sas = completed(daemon), a.peer.sas
        a.stream().secured()
        talk(call, before)
        assert a.peer.chosen["agreement"] == b"Mult" and call.query("a")["ZRTP"]["SAS"] == sas and a.bad == call.b.bad == 0


@cases(("address translation",), ("re-INVITE",))
def test_a_terminal_that_moves(net, how):
    """Its packets from another port are taken, and ours go there. The old one hears nothing. SDP names the same a=zrtp-hash."""
    with daemon_of(net) as daemon:
        a, b = Terminal(net, "caller", A, Settings(allow_clear=True)), Sdes(net, "callee", B)
        more = {"flags": ["media-handover"]} if how == "address translation" else {}
        call = Call(daemon, a, b, {"ZRTP": ["terminate", "goclear"]} | more, SAVP | more).offer().answer()
        call.before = completed(daemon)
        secure(call)
        old = a.socket
        a.socket = ng.socket_in(a.ns)
        a.socket.bind((a.address, 0))
        if how == "re-INVITE":
            a.port = a.socket.getsockname()[1]
            call.offer(to_tag="b").answer()
        here = b"from another port" * 9
        wait_for("its media", lambda: a.say(here) and here in b.heard)
        call.exchange(5)
        a.do(lambda p: p.go_clear(time.monotonic()))
        wait_for("ClearACK", lambda: a.peer.state == "clear")
        wait_for("it is in the log", lambda: "GoClear" in daemon.text())
        idle.wait_idle()
        call.exchange(5)
        assert a.bad == b.bad == 0
        old.close()
        a.close()
        b.close()


@cases(("restart", False), ("restart", True), ("standby", True))
def test_goclear_after_a_crash(net, end, streams):
    """The exchange took place with the process that was killed. SRTP ends all the same, and another stream uses the secret that GoClear left.
    streams: the keys are of a stream begun in mid-call."""
    def begin(net, daemon):
        a, b = Terminal(net, "caller", A, Settings(allow_clear=True)), Sdes(net, "caller", A)
        call = Call(daemon, a, b, {"ZRTP": ["terminate", "goclear"]}, SAVP).offer().answer()
        a.begin().secured()
        talk(call, 0)
        if streams:
            a.stream().secured()
            talk(call, 1)
        return call, a, b

    with taken_over(net, end, begin) as (call, a, b):
        sas = call.query("a")["ZRTP"]["SAS"]
        call.exchange(5)
        assert a.peer.state == "secure" and a.bad == b.bad == 0
        a.do(lambda p: p.go_clear(time.monotonic()))
        wait_for("ClearACK", lambda: a.peer.state == "clear")
        wait_for("it is in the log", lambda: "GoClear" in call.daemon.text())
        idle.wait_idle()
        call.exchange(5)
        a.stream().secured()
        talk(call, 0)
        assert a.peer.chosen["agreement"] == b"Mult" and call.query("a")["ZRTP"]["SAS"] == sas and a.bad == b.bad == 0


@cases(("restart",), ("standby",))
def test_sasrelay_after_a_crash(net, end):
    """The next process relays the far SAS again, because it does not know whether the terminal has it. A standby has no cache of the first."""
    cache = Cache()

    def begin(net, daemon):
        a, b = Terminal(net, "caller", A, cache=cache), Terminal(net, "caller", A, cache=Cache())
        call = Call(daemon, a, b, TERMINATE, TERMINATE | AVP).offer().answer()
        for end in (a, b):
            end.begin()
        for end in (a, b):
            end.secured()
        wait_for("the SAS of the far end", lambda: a.peer.relayed)
        idle.wait_idle()
        a.do(lambda p: p.ping(b"endpoint"))
        wait_for("PingACK, after which no SASrelay of this process comes", lambda: a.peer.acks)
        a.peer.relayed = None
        return call, a, b

    with cache_files() as options:
        with daemon_of(net, *options) as daemon:
            enrol(net, daemon, cache)
        with taken_over(net, end, begin, options) as (call, a, b):
            wait_for("the SAS of the far end", lambda: a.peer.relayed)
            call.exchange(5)
            assert a.peer.shown() == b.peer.sas != a.peer.sas and call.query("a")["ZRTP"]["enrolled"] == "yes"
            assert completed(call.daemon) == a.bad == b.bad == 0 and not b.peer.relayed


def test_ping(net):
    """During the exchange and after it."""
    with daemon_of(net) as daemon, calling(net, daemon) as call:
        a = call.a
        a.begin()
        # A Ping that overtakes the announced Hello comes from a stranger, so it is repeated.
        wait_for("PingACK", lambda: a.peer.acks or a.do(lambda p: p.ping(b"endpoint")))
        secure(call)
        count = len(a.peer.acks)
        a.do(lambda p: p.ping(b"again   "))
        wait_for("PingACK", lambda: len(a.peer.acks) > count and a.peer.acks[-1][2] == b"again   ")
        assert a.peer.acks[0][2] == b"endpoint" and {(ack[0], ack[3]) for ack in a.peer.acks} == {(b"1.10", a.ssrc.to_bytes(4, "big"))}


def test_sasrelay_of_another_gateway(net):
    """The relay is not enrolled there: it acknowledges SASrelay, and does not complain."""
    with daemon_of(net) as daemon, calling(net, daemon, Settings(mitm=True)) as call:
        secure(call)
        a = call.a
        a.do(lambda p: p.relay_sas(b"B256", os.urandom(32), time.monotonic()))
        wait_for("RelayACK", lambda: not a.peer.after_timer.text)
        assert b"RelayACK" in a.seen and not a.peer.errors
        call.exchange(5)


def test_errors(net):
    """Whatever makes an exchange impossible is answered by its Error, again and again until the terminal has it."""
    def lies(kind, name):
        def prepare(p):
            right = p.choose
            p.choose = lambda agreement: {**right(agreement), kind: name}
        return prepare

    def small(p):
        right = p.part
        p.part = lambda kind: right(kind) and peer_wire.dhpart(kind, p.chain, [bytes(8)] * 4, (1).to_bytes(384, "big"))
    initiator = Settings(role="initiator", offers={"agreement": [b"DH3k"]})
    rows = ((0x30, Settings(version=b"1.00"), lambda p: None), (0x52, initiator, lies("cipher", b"2FS1")), (0x54, initiator, lies("tag", b"SK64")),
            (0x55, initiator, lies("sas", b"B99 ")), (0x61, initiator, small))
    with daemon_of(net) as daemon:
        for code, settings, prepare in rows:
            with calling(net, daemon, settings) as call:
                prepare(call.a.peer)
                call.a.begin()
                wait_for(f"Error {code:#x}", lambda call=call: call.a.peer.errors or call.a.peer.state == "secure")
                assert call.a.peer.errors[0] == code, (hex(code), call.a.peer.errors)
                call.end()


def dropped(daemon, why):
    return daemon.statistics()["sessions"]["ZRTP"]["drops"][why]


def test_public_value_without_commitment(net):
    """DHPart2 is not the one that the Commit promised: it is dropped each time, and there are no keys."""
    with daemon_of(net) as daemon, calling(net, daemon, Settings(role="initiator")) as call:
        p = call.a.peer
        p.draw = lambda commit: p.messages.update({b"DHPart2 ": p.part(b"DHPart2 ")}) is None
        call.a.begin()
        wait_for("it was dropped", lambda: dropped(daemon, "hvi") >= 2)
        assert p.state == "dhpart2" and b"Confirm1" not in call.a.seen and completed(daemon) == 0


def test_wrong_hash_in_sdp(net):
    """The Hello is not the announced one: no exchange, and the terminal hears nothing but Hello."""
    with daemon_of(net) as daemon:
        a, b = Terminal(net, "caller", A), Sdes(net, "callee", B)
        a.announced = "1.10 " + "5a" * 32
        Call(daemon, a, b, TERMINATE, SAVP).offer().answer()
        a.begin()
        wait_for("it is known", lambda: "ZRTP failed" in daemon.text())
        assert set(a.seen) == {b"Hello   "} and a.peer.state == "discovery", a.seen
        a.close()
        b.close()


def changed(packet, at):
    """With one bit of the message changed and a right checksum."""
    body = bytearray(packet[:-4])
    body[12 + at if at >= 0 else at] ^= 1
    return bytes(body) + peer_wire.crc32c(bytes(body)).to_bytes(4, "little")


def test_changed_messages_do_no_harm(net):
    """Before each message arrive some with another checksum, length, type or hash image. Before those of the terminal, whose fields the relay can
    check, also some with other contents; a DHPart1 proves its contents too late (RFC 6189 9). Few at once: a session's queue has eight places."""
    def spoils(places, kinds):
        def spoil(packet):
            kind, forged = peer_wire.kind_of(packet), [packet[:-1] + bytes([packet[-1] ^ 1])]
            if kind in (b"Commit  ", b"DHPart1 ", b"DHPart2 ", b"Confirm1", b"Confirm2"):
                forged += [changed(packet, at) for at in places]
            if kind in kinds:
                forged.append(changed(packet, -1))
            return forged + [packet]
        return spoil
    with daemon_of(net) as daemon:
        for places, role in itertools.product(((0, 2, 4), (12, 40)), ROLES):
            with calling(net, daemon, Settings(role=role)) as call:
                call.a.spoil_out, call.a.spoil_in = spoils(places, (b"Commit  ", b"DHPart2 ", b"Confirm1", b"Confirm2")), spoils(places, ())
                secure(call)
                call.end()
        assert completed(daemon) == 4 and dropped(daemon, "crc") and dropped(daemon, "chain") and dropped(daemon, "mac")


def test_lost_and_repeated_messages(net):
    """The first packet of each kind is lost in each direction, and all others arrive twice."""
    def loses():
        lost = set()

        def spoil(packet):
            kind = peer_wire.kind_of(packet)
            if kind not in lost:
                lost.add(kind)
                return []
            return [packet, packet]
        return spoil
    with daemon_of(net) as daemon:
        for role in ROLES:
            with calling(net, daemon, Settings(role=role)) as call:
                call.a.spoil_out, call.a.spoil_in = loses(), loses()
                secure(call)
