#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A standby in another namespace takes over calls of browsers in mid-call: xcipherd is killed, and its addresses move. Media continue,
consent is asked for and given, and nobody begins a handshake. The SDP has neither a=ssrc nor a=ssrc-group, because SRTP then has other SSRCs.
Video goes on, too, and lost packets of it are sent again as RTX. make check-webrtc.

    takeover.py [OFFERER-ANSWERER...]"""
import contextlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "e2e"), HERE]  # both have a run.py

import call  # noqa: E402
import kinds  # noqa: E402
import netns  # noqa: E402
import redisrig  # noqa: E402
import relay  # noqa: E402
import test_dtls_cert  # noqa: E402
import test_webrtc  # noqa: E402
import webrtc  # noqa: E402
from baresip import wait_for  # noqa: E402

CALLS = ("chromium-chromium", "chromium-sdes", "sdes-chromium", "chromium-baresip_sdes", "aiortc-chromium", "chromium_video-chromium_video")
ADDRESSES = ("a/10.200.1.1", "b/10.200.2.1")


def start(net, *options):
    return relay.Xcipherd(net, *webrtc.SERIAL, *options, addresses=ADDRESSES).wait_ready()


@contextlib.contextmanager
def back(there):
    """Gives the addresses back at the end, because phones hang up through the first machine."""
    try:
        yield
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            there.give_addresses_back()


def phone_hears(c):
    """baresip reports what it hears, instead of packets."""
    packets, blocks = c.a.report()["packets_in"], c.b.report()["blocks"]
    wait_for("media both ways", lambda: c.a.report()["packets_in"] >= packets + 50 and c.b.report()["blocks"] >= blocks + 5)


@contextlib.contextmanager
def loss(ns):
    """Each twentieth packet to this terminal is lost, if it is long: video."""
    def nft(*words):
        netns.sh("ip", "netns", "exec", ns, "nft", *words)
    nft("add", "table", "inet", "loss")
    try:
        nft("add chain inet loss in { type filter hook input priority 0; }")
        nft("add rule inet loss in udp length > 400 numgen random mod 20 == 0 drop")
        yield
    finally:
        nft("delete", "table", "inet", "loss")


def video_goes_on(c, ns):
    """Chromium counts the frames of a new SSRC from zero, so call this after the change."""
    frames, again = c.b.report()["frames"], c.b.report()["rtx"][1]
    with loss(ns):
        wait_for("lost packets of video come again", lambda: c.b.report()["rtx"][1] >= again + 5)
        wait_for("frames are decoded", lambda: c.b.report()["frames"] >= frames + 60)


def goes_on(c, net):
    if c.b.kind.startswith("baresip"):
        phone_hears(c)
    else:
        webrtc.hear_more(c)
    if c.b.kind == "chromium_video":
        wait_for("video", lambda: c.b.report()["frames"])
        video_goes_on(c, net.terminal["b"])


def taken_over(net, a, b):
    with tempfile.TemporaryDirectory() as folder:
        redis, there = redisrig.Redis(net, addr="0.0.0.0"), redisrig.Elsewhere(net)
        options = [f"--dtls-cert={test_dtls_cert.make(folder, 'cert')}.both", f"--redis-key-file={redis.key_file}"]
        first = start(net, *options, "--redis=127.0.0.1:6379")
        second = start(there, *options, "--redis=10.200.9.1:6379", "--standby=yes")
        browsers = [k for k in (a, b) if kinds.KINDS[k].keying == "dtls"]
        with webrtc.talk(net, first, a, b, more={"bundle": ["accept", "offer"], **test_webrtc.NO_SSRC}) as c, back(there):
            c.talks()
            if a.startswith("chromium") and b.startswith("chromium"):
                webrtc.write_no_mids(c)
            test_dtls_cert.saved(first)
            wait_for("the standby follows", lambda: second.statistics()["redis"]["followed"] == 1)
            test_dtls_cert.kill(first)
            there.take_addresses()
            if second.client.call("active")["result"] != "ok":
                raise call.Failed("the standby does not become active")
            wait_for("the call was restored", lambda: second.statistics()["redis"]["restored"] == 1)
            c.relay = second
            goes_on(c, net)

            def consent():
                ice = second.statistics()["sessions"]["ICE"]
                return min(ice["requests"], ice["responses"]) >= 2 * len(browsers)
            wait_for("browser and relay ask for consent, and get it", consent)
            goes_on(c, net)
            for p in (c.a, c.b):
                if p.kind in browsers and p.report()["state"] != "connected":
                    raise call.Failed(call.brief(p.report()))
            if "DTLS handshake" in second.text() or second.statistics()["sessions"]["ICE states"]["completed"] != len(browsers):
                raise call.Failed(second.text()[-3000:])
            c.end()
        if second.stop():
            raise call.Failed("exit status of the standby")
        redis.stop()


def main():
    failed = ran = 0
    for name in sys.argv[1:] or CALLS:
        a, b = name.split("-")
        missing = next(filter(None, (kinds.KINDS[k].missing() for k in (a, b))), None if redisrig.have() else redisrig.PROGRAM)
        if missing:
            print(f"take-over, {name}: skipped: {os.path.basename(missing)} is not installed", flush=True)
            continue
        ran += 1
        try:
            with netns.Net(call.PLACES) as net:
                taken_over(net, a, b)
            print(f"take-over, {name}: ok", flush=True)
        except (call.Failed, AssertionError, TimeoutError) as why:
            failed += 1
            print(f"take-over, {name}: NOT OK: {why}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
