#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls with DTLS keys under kernel steering: the handshake and the media come by the module, both roles, with ICE and without,
with the ring and without, and a killed daemon goes on with the keys and the pair in Redis, without a second handshake. The same with audio
and video on one port. A terminal whose consent expires gets no more media, from the daemon or from the module."""
import os
import time

import rig
from rig import equal, tap
import bundled
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


def restarted(net, call, redis_options):
    """Kills the daemon of a call, and returns the next one."""
    old = call.daemon
    tap(rig.until(lambda: old.statistics()["redis"]["waiting"] == 0), "the call is in Redis")
    old.process.kill()
    old.process.wait()
    old.client.close()
    call.daemon = daemon = start(net, *redis_options)
    tap("1 calls restored" in daemon.text(), "killed: the next daemon has the call")
    return daemon


def bundle(net, offers):
    """Audio and video on one port, killed in mid-call."""
    redis = redisrig.Redis(net)
    options = ["--steering=kernel", "--workers=1", *redis.daemon_options()]
    daemon = start(net, *options)
    a, b = bundled.Pair(net, "caller", A), bundled.Bundled(net, "callee", B)
    call = bundled.Call(daemon, a, b, offers).begin()
    call.exchange()
    s = daemon.statistics()
    tap(s["received by ring"] >= 80 and s["by fallback socket"] == 0, f"bundle: {s['received by ring']} packets by the ring, {s['by fallback socket']} by sockets")
    daemon = restarted(net, call, options)
    call.exchange()
    s = daemon.statistics()
    equal("a bundle's media go on without sockets or a second handshake, all of them authentic",
          (s["by fallback socket"], s["sessions"]["handshakes"]["completed"], b.bad), (0, 0, 0))
    call.end()
    close(a, b)
    equal("the daemon ends in order", daemon.stop(), 0)
    redis.stop()


def consent(net, kind):
    """Of a terminal of DTLS, or one of RTP whose media the module relays."""
    daemon = start(net, "--steering=kernel", "--workers=1")
    a, b = dtls.Plain(net, "caller", A), kind(net, "callee", B)
    if kind is ice.Keyed:
        call = call_of(daemon, a, b)
    else:
        call = dtls.Call(daemon, a, b, ICE="force", transport_protocol="RTP/AVP").offer().answer()
        b.connect()
    call.exchange()
    if kind is ice.Ice:
        tap(rig.until(lambda: call.exchange(1) or daemon.statistics()["streams relayed by the kernel"] == 2), "the module relays RTP of a terminal with ICE")
    b.mute = True
    for _ in range(60):
        a.say(b"voice" * 32)
        time.sleep(1)
        if daemon.statistics()["sessions"]["consent lost"]:
            break
    equal("consent expired", daemon.statistics()["sessions"]["consent lost"], 1)
    tap(rig.until(lambda: daemon.statistics()["streams relayed by the kernel"] == 0), "the module relays nothing to it")
    before, dropped = b.count["rtp"], daemon.statistics()["drops"]["no-destination"]
    for _ in range(50):
        a.say(b"nobody" * 20)
    tap(rig.until(lambda: daemon.statistics()["drops"]["no-destination"] == dropped + 50), "media to it are dropped")
    equal("it gets none", (b.count["rtp"], b.bad), (before, 0))
    b.mute = False
    b.connect()
    call.exchange()
    tap(True, "it checks again, and the call continues")
    call.end()
    close(a, b)
    equal("the daemon ends in order", daemon.stop(), 0)


def main():
    rig.write("/tmp/openssl.cnf", "[req]\ndistinguished_name = name\n[name]\n")
    os.environ["OPENSSL_CONF"] = "/tmp/openssl.cnf"  # for the terminals' programs only
    with netns.Net(("caller", "callee")) as net:
        roles(net, "received by ring")
        roles(net, "sent by verdict", "--kernel-ring=no")
        for kind in (ice.Keyed, ice.Ice):
            consent(net, kind)
        if redisrig.have():
            for kind in KINDS:
                killed(net, kind)
            for offers in (True, False):
                bundle(net, offers)
        else:
            rig.note(f"skipped: no {redisrig.PROGRAM}")


rig.test(main)
