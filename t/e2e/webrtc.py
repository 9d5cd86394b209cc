# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of terminals with ICE and DTLS for end-to-end tests, with the peers of t/webrtc."""
import contextlib
import os
import sys

import relay
from baresip import wait_for
from run import Skip

sys.path.append(os.path.join(relay.ROOT, "t", "webrtc"))

import call  # noqa: E402
import kinds  # noqa: E402

TERMINALS = call.PLACES
ADDRESSES = [f"{p}/{a}" for i, p in enumerate(TERMINALS, 1) for a in (f"10.200.{i}.1", f"fd00:{i}::1")]
SERIAL = ("--engine=serial", "--workers=1")


def needs(*names):
    """Skips the test if a program of these kinds is not installed."""
    for name in names:
        if missing := kinds.KINDS[name].missing():
            raise Skip(f"{os.path.basename(missing)} is not installed: tools/webrtc-peers.sh fetches it")


def start(net, *options):
    return relay.Xcipherd(net, *SERIAL, *options, addresses=ADDRESSES).wait_ready()


@contextlib.contextmanager
def talk(net, daemon, a="aiortc", b="sdes", more=None, family=4):
    """A call that was answered. family: of the addresses of terminal a."""
    peers = []
    try:
        for place, kind, of in zip(TERMINALS, (a, b), (family, 4)):
            peers.append(call.make_peer(net, place, kind, of))
        yield call.Call(daemon, *peers, more=more).begin()
    finally:
        for p in peers:
            p.close()


def write_no_mids(c):
    """Waits until two browsers write no MIDs any more, because each has reported the other's SSRCs. Chromium finds new SSRCs by MID only, so after a
    restart the relay has to write them."""
    hear_more(c, 500)


def hear_more(c, packets=50):
    """Waits until each peer received so many more packets. Returns the reports."""
    before = c.a.report(), c.b.report()

    def both():
        now = c.a.report(), c.b.report()
        return now if all(n["packets_in"] >= o["packets_in"] + packets for n, o in zip(now, before)) else None
    try:
        return wait_for("media both ways", both)
    except AssertionError:
        heard = "; ".join(f"{p.kind}: {call.brief(p.report())}" for p in (c.a, c.b))
        about = c.relay.client.call("query", call_id=c.id)["tags"], c.relay.statistics()["sessions"]
        raise call.Failed(f"{heard}; the relay: {about}") from None
