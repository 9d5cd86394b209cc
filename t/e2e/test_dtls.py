# SPDX-License-Identifier: GPL-2.0-or-later
"""DTLS without ICE, with OpenSSL's programs as terminals: roles, new associations, what is hostile, and that nothing leaves in clear."""
import contextlib
import os
import shutil
import tempfile

import dtls
import relay
from baresip import wait_for
from run import Skip, cases

A, B = "10.200.1.2", "10.200.2.2"


@contextlib.contextmanager
def rig(net, *options, setup="active"):
    if not shutil.which("openssl"):
        raise Skip("the program openssl is not installed")
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", *options, addresses=("10.200.2.1",)).wait_ready()
    a, b = dtls.Plain(net, "caller", A), dtls.Dtls(net, "callee", B, setup)
    yield daemon, dtls.Call(daemon, a, b)
    a.close()
    b.close()
    assert daemon.stop() == 0


def history(daemon, call):
    return str(daemon.client.call("query", call_id=call.id))


@cases(("active",), ("passive",))
def test_media_both_ways(net, setup):
    with rig(net, setup=setup) as (daemon, call):
        call.begin().exchange()
        assert call.b.bad == 0
        sessions = daemon.statistics()["sessions"]
        assert sessions["handshakes"]["completed"] == sessions["handshake time"]["count"] == sessions["in use"] == 1, sessions
        call.end()
        wait_for("the session ended", lambda: daemon.statistics()["sessions"]["in use"] == 0)


@cases(("active",), ("passive",))
def test_nothing_in_clear_before_the_keys(net, setup):
    """The offerer talks all the time. The other leg gets no RTP until its handshake is over."""
    with rig(net, setup=setup) as (daemon, call):
        call.offer().answer()
        for _ in range(200):
            call.a.say(b"in clear" * 20)
        wait_for("the daemon dropped them", lambda: daemon.statistics()["packets received"] >= 200)
        assert call.b.count["rtp"] == 0
        call.b.handshake()
        call.b.keyed()
        call.exchange()
        assert call.b.bad == 0


@cases(("active",), ("passive",))
def test_wrong_fingerprint(net, setup):
    with rig(net, setup=setup) as (daemon, call):
        call.offer()
        call.b.fingerprint, right = (lambda: ":".join(["AB"] * 32)), call.b.fingerprint
        call.answer()
        call.b.fingerprint = right
        call.b.handshake()
        wait_for("it is told", lambda: "no media: certificate of the peer matches no fingerprint" in daemon.text())
        for _ in range(100):
            call.a.say(b"in clear" * 20)
        wait_for("the daemon dropped them", lambda: daemon.statistics()["packets received"] >= 100)
        assert call.b.count["rtp"] == 0 and daemon.text().count("no media:") == 1
        assert daemon.statistics()["sessions"]["handshakes"]["fingerprint"] == 1


def handshakes(daemon):
    return daemon.text().count("DTLS handshake completed")


def reinvite(call, one, sdp=None):
    """An offer of one, and the other's answer."""
    other = call.a if one is call.b else call.b
    mine, theirs = ("a", "b") if one is call.a else ("b", "a")
    flags = call.flags if one is call.a else {"transport_protocol": "RTP/AVP", "ICE": "remove", "replace": ["origin"]}
    other.believe(call.ask("offer", sdp=sdp or one.sdp(), from_tag=mine, to_tag=theirs, **flags))
    one.believe(call.ask("answer", sdp=other.sdp(), from_tag=mine, to_tag=theirs))


@cases(("active",), ("passive",))
def test_reinvite_keeps_the_association(net, setup):
    with rig(net, setup=setup) as (daemon, call):
        call.begin().exchange()
        for one in (call.a, call.b, call.b):
            reinvite(call, one)
            call.exchange()
        assert handshakes(daemon) == 1 and call.b.bad == 0


def test_old_hold_keeps_the_association(net):
    """c=0.0.0.0 of RFC 2543 is not another transport."""
    with rig(net) as (daemon, call):
        call.begin().exchange()
        reinvite(call, call.b, call.b.sdp().replace(f"c=IN IP4 {B}", "c=IN IP4 0.0.0.0"))
        reinvite(call, call.b)
        call.exchange()
        assert handshakes(daemon) == 1


@cases(("active",), ("passive",))
def test_new_fingerprint_is_a_new_association(net, setup):
    """Media go on under the old keys until there are new ones."""
    with rig(net, setup=setup) as (daemon, call):
        call.begin().exchange()
        old = call.b.process
        call.b.cert = call.b.make_certificate("cert2")
        reinvite(call, call.b)
        call.exchange()
        net.stop(old)
        call.b.handshake()
        call.b.keyed()
        call.exchange()
        wait_for("both handshakes are told", lambda: handshakes(daemon) == 2)


def test_blocked_and_silenced(net):
    with rig(net) as (daemon, call):
        call.begin().exchange()
        for off, on in (("block media", "unblock media"), ("silence media", "unsilence media")):
            call.ask(off, from_tag="a")
            before = daemon.statistics()["packets received"]
            heard = len(call.b.heard)
            for _ in range(50):
                call.a.say(b"not for them" * 10)
            wait_for("they arrived", lambda b=before: daemon.statistics()["packets received"] >= b + 50)
            assert b"not for them" * 10 not in call.b.heard[heard:]
            call.ask(on, from_tag="a")
            call.exchange()
        assert call.b.bad == 0


def test_recorded(net):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        with rig(net, f"--recording-dir={folder}") as (daemon, call):
            call.begin()
            call.ask("start recording", from_tag="a")
            call.exchange()
            words = os.urandom(160)
            wait_for("it was heard", lambda: call.b.say(words) and words in call.a.heard)
            call.ask("stop recording", from_tag="a")
            call.end()

            def recorded():
                files = [os.path.join(d, f) for d, _, names in os.walk(folder) for f in names]
                return any(words in open(f, "rb").read() for f in files)
            wait_for("the recording has it in clear", recorded)
