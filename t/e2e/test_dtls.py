# SPDX-License-Identifier: GPL-2.0-or-later
"""DTLS without ICE, with OpenSSL's programs as terminals: roles, new associations, what is hostile, and that nothing leaves in clear."""
import contextlib
import os
import shutil

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
    with rig(net, setup=setup) as (_, call):
        call.begin().exchange()
        assert call.b.bad == 0


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
