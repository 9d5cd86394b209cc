#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls with DTLS keys under kernel steering: the handshake and the media come by the module, both roles, with ICE and without,
with the ring and without, and a killed daemon goes on with the keys and the pair in Redis, without a second handshake."""
import os

import rig
from rig import equal, tap
import dtls
import ice
import netns
import redisrig
from test_ng import start

A, B = "10.200.1.2", "10.200.2.2"
PACKETS = 100
KINDS = dtls.Dtls, ice.Keyed


def terminals(net, setup, kind):
    return dtls.Plain(net, "caller", A), kind(net, "callee", B, setup)


def call_of(daemon, a, b):
    return dtls.Call(daemon, a, b, **({"ICE": "force"} if isinstance(b, ice.Keyed) else {})).begin()


def close(*phones):
    for p in phones:
        p.close()


def by_module(daemon, way, before):
    s = daemon.statistics()
    media, sockets = s[way] - before, s["by fallback socket"]
    tap(media >= 2 * PACKETS and sockets == 0, f"by the module: {media} {way}, {sockets} by sockets")


def roles(net, way, *options):
    daemon = start(net, "--steering=kernel", "--workers=1", *options)
    for done, (setup, kind) in enumerate((s, k) for k in KINDS for s in ("active", "passive")):
        a, b = terminals(net, setup, kind)
        call = call_of(daemon, a, b)
        before = daemon.statistics()[way]
        call.exchange(PACKETS)
        equal(f"{kind.__name__}, {setup}: every packet of the relay is authentic", b.bad, 0)
        by_module(daemon, way, before)
        equal(f"{kind.__name__}, {setup}: handshakes", daemon.statistics()["sessions"]["handshakes"]["completed"], done + 1)
        call.end()
        close(a, b)
    equal("no command failed", daemon.statistics()["command errors"], 0)
    rig.note(daemon.text())
    equal("the daemon ends in order", daemon.stop(), 0)


def killed(net, kind):
    """In mid-call. The terminals notice nothing."""
    redis = redisrig.Redis(net)
    options = ["--steering=kernel", "--workers=1", *redis.daemon_options()]
    daemon = start(net, *options)
    a, b = terminals(net, "active", kind)
    call = call_of(daemon, a, b)
    call.exchange(PACKETS)
    tap(rig.until(lambda: daemon.statistics()["redis"]["waiting"] == 0), "the call is in Redis")
    daemon.process.kill()
    daemon.process.wait()
    daemon.client.close()
    call.daemon = daemon = start(net, *options)
    tap("1 calls restored" in daemon.text(), "killed: the next daemon has the call")
    call.exchange(PACKETS)
    equal("its media go on at once, without sockets", daemon.statistics()["by fallback socket"], 0)
    tap(rig.until(lambda: "packets use a ring" in daemon.text()), "the ring follows once targets of the killed daemon are gone")
    before = daemon.statistics()["received by ring"]
    call.exchange(PACKETS)
    by_module(daemon, "received by ring", before)
    equal("no second handshake", (daemon.statistics()["sessions"]["handshakes"]["completed"], b.bad), (0, 0))
    call.end()
    close(a, b)
    rig.note(daemon.text())
    equal("the daemon ends in order", daemon.stop(), 0)
    redis.stop()


def main():
    rig.write("/tmp/openssl.cnf", "[req]\ndistinguished_name = name\n[name]\n")
    os.environ["OPENSSL_CONF"] = "/tmp/openssl.cnf"  # for the terminals' programs only
    with netns.Net(("caller", "callee")) as net:
        roles(net, "received by ring")
        roles(net, "sent by verdict", "--kernel-ring=no")
        if redisrig.have():
            for kind in KINDS:
                killed(net, kind)
        else:
            rig.note(f"skipped: no {redisrig.PROGRAM}")


rig.test(main)
