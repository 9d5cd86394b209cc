# SPDX-License-Identifier: GPL-2.0-or-later
"""ZRTP that ends at the relay, with a terminal of GNU ZRTP4J, which is neither ours nor libbzrtp: keys, SAS, media both ways, a second m-line,
retained secrets, enrolment and SASrelay. make check-zrtp runs these tests; without its programs they are skipped."""
import contextlib
import itertools
import os
import tempfile

import idle
import zrtp
import zrtp4j
from baresip import wait_for
from run import Skip
from test_zrtp import A, B, TERMINATE, Call, Sdes, Talk, cache_files
from test_zrtp_peer import AVP, SAVP, completed, talk
from test_zrtp_peer import daemon_of as daemon_of_peers
from zrtp_terminal import Settings
from zrtp_terminal import Terminal as OurTerminal


@contextlib.contextmanager
def daemon_of(net, *options):
    """A daemon, and a folder for the terminals' caches."""
    if not zrtp4j.have():
        raise Skip("no GNU ZRTP4J: make check-zrtp has it")
    with tempfile.TemporaryDirectory() as folder, daemon_of_peers(net, *options) as daemon:
        yield daemon, folder


@contextlib.contextmanager
def calling(net, daemon, cache, flags=None, **more):
    """A call from a terminal of ZRTP4J to one of SDES, with keys and media."""
    a, b = zrtp4j.Terminal(net, "caller", A, cache=cache, **more), Sdes(net, "callee", B)
    call = Call(daemon, a, b, TERMINATE | (flags or {}), SAVP).offer().answer()
    before = completed(daemon)
    a.begin().secured()
    talk(call, before)
    m = call.query("a")
    assert m["keying"] == "ZRTP" and m["ZRTP"]["SAS"] == a.sas() and m["crypto suite"] == a.suite, (m, a.sas(), a.suite)
    assert a.engine.theirs == a.told[1].split()[1] and a.bad == b.bad == 0, (a.engine.theirs, a.told[1], a.bad, b.bad)
    yield call, m["ZRTP"]
    call.end()
    a.close()
    b.close()


def test_each_agreement_in_both_roles(net):
    rest = itertools.cycle((("S256", "AES1", "HS32", "B32"), ("S384", "AES3", "HS80", "B256")))
    with daemon_of(net) as (daemon, folder):
        for commits, agreement in itertools.product((True, False), ("EC25", "EC38", "DH3K", "DH2K")):
            hash_of, cipher, tag, sas = next(rest)
            cipher = "AES1" if agreement == "DH2K" else cipher  # with DH2k it commits to AES-128
            names = ",".join((hash_of, cipher, tag, agreement, "MULT", sas))
            with calling(net, daemon, f"{folder}/zid", algorithms=names, commits=commits) as (call, _):
                a = call.a
                assert f"[Info{'Init' if commits else 'Resp'}" in " ".join(a.engine.said), a.engine.said
                if not commits:  # it commits to mandatory algorithms even if its settings lack them
                    assert a.suite == ("AES_256_CM" if cipher == "AES3" else "AES_CM_128") + f"_HMAC_SHA1_{tag[2:]}", a.suite
                    assert (":" in a.sas()) == (sas == "B256"), a.sas()


def test_answerer(net):
    """The offer to it has no ZRTP."""
    with daemon_of(net) as (daemon, folder):
        a, b = Sdes(net, "caller", A), zrtp4j.Terminal(net, "callee", B, cache=f"{folder}/zid")
        call = Call(daemon, a, b, {}, TERMINATE | AVP).offer().answer()
        before = completed(daemon)
        b.begin().secured()
        talk(call, before)
        assert call.query("b")["ZRTP"]["SAS"] == b.sas() and a.bad == b.bad == 0
        for end in (a, b):
            end.close()


def test_second_line(net):
    """The second m-line uses the secret of the first."""
    with daemon_of(net) as (daemon, folder):
        for commits in (True, False):
            before = completed(daemon)
            one = zrtp4j.Terminal(net, "caller", A, cache=f"{folder}/zid")
            two = zrtp4j.Terminal(net, "caller", A, commits=commits, first=one)
            far = [Sdes(net, "callee", B), Sdes(net, "callee", B)]
            call = Call(daemon, zrtp.Lines(one, two), zrtp.Lines(*far), TERMINATE, SAVP).offer().answer()
            one.begin().secured()
            two.begin().secured()
            wait_for("both exchanges", lambda before=before: completed(daemon) == before + 2)
            idle.wait_idle()
            for near, other in zip((one, two), far):
                Call.exchange(Talk(near, other), 5)
            assert one.engine.sas != b"-" == two.engine.sas and not [s for s in two.engine.said if "DH" in s], two.engine.said
            medias = daemon.client.call("query", call_id=call.id)["tags"]["a"]["medias"]
            assert [m["ZRTP"]["SAS"] for m in medias] == [one.sas()] * 2, medias
            for end in (two, one, *far):
                assert end.bad == 0
                end.close()


def test_another_stream_in_mid_call(net):
    """It has another SSRC, the same SAS, and keys of the first secret."""
    with daemon_of(net) as (daemon, folder), calling(net, daemon, f"{folder}/zid") as (call, _):
        before, sas, key = completed(daemon), call.a.sas(), call.a.engine.keys["tx"]
        call.a.again().secured()
        talk(call, before)
        m = call.query("a")
        assert m["ZRTP"]["SAS"] == sas and call.a.engine.keys["tx"] != key and call.a.bad == call.b.bad == 0, m


def test_retained_secrets(net):
    """The next call knows the last one's secret. A terminal that lost its secrets has another ZID. Both ends notice other secrets under the same ZID."""
    with cache_files() as options, daemon_of(net, *options) as (daemon, folder):
        zid, older = f"{folder}/zid", f"{folder}/older"

        def one_call():
            with calling(net, daemon, zid) as (call, said):
                return " ".join(call.a.engine.said), said.get("retained secrets")
        says, said = one_call()
        assert "WarningNoRSMatch" in says and said is None
        with open(zid, "rb") as file:
            first = file.read()
        for _ in range(2):
            says, said = one_call()
            assert "InfoRSMatchFound" in says and said is None, (says, said)
        with open(older, "wb") as file:
            file.write(first)
        os.replace(older, zid)  # what it knew two calls ago
        says, said = one_call()
        assert "WarningNoExpectedRSMatch" in says and said == "mismatch", (says, said)


def test_enrolled_terminal_shows_the_far_sas(net):
    """Both users read the same SAS."""
    with cache_files() as options, daemon_of(net, *options) as (daemon, folder):
        zid = f"{folder}/zid"
        with calling(net, daemon, zid, {"ZRTP": ["terminate", "enrol"]}, role="terminal") as (call, _):
            assert "says EnrollmentOk" in call.a.engine.said, call.a.engine.said
        for commits in (True, False):
            a = zrtp4j.Terminal(net, "caller", A, role="terminal", commits=commits, cache=zid)
            b = OurTerminal(net, "callee", B, Settings(offers={"sas": [b"B32 "]}))
            call = Call(daemon, a, b, TERMINATE, TERMINATE | AVP).offer().answer()
            before = completed(daemon)
            for end in (a, b):
                end.begin()
            for end in (a, b):
                end.secured()
            wait_for("both exchanges", lambda before=before: completed(daemon) == before + 2)
            wait_for("the SAS of the far end", lambda a=a: "/SASviaMitM" in a.engine.cipher)
            assert a.sas() == b.peer.sas and call.query("a")["ZRTP"]["enrolled"] == "yes"
            assert call.query("a")["ZRTP"]["SAS"] != a.sas()
            call.exchange(5)
            assert a.bad == b.bad == 0
            call.end()
            for end in (a, b):
                end.close()
