#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Delay of running media while a thousand exchanges of MIKEY or ZRTP arrive at once: bench_exchanges.py [--mode dh|...|zrtp] [--count 1000]
[--rounds 3] [--priority]. As root. mikey-config sets no limits, which is the worst case. A round has three turns: without exchanges; with exchanges that
another xcipherd takes, which relays nothing; with exchanges that the relay takes. What only the last one shows is not due to the shared processors."""
import argparse
import base64
import os
import statistics
import sys
import tempfile
import threading
import time

import ng
import relay
import test_mikey
from bench_measure import Elsewhere, judge, progress, quiet_terminal, setup, srtpload
from netns import Net

ADDRESS = "10.200.1.2"
PORT = 3000  # of the first terminal of ZRTP; quiet_terminal() drops packets to high ports
KINDS = ("idle", "elsewhere", "busy")
TERMINATE = {"ICE": "remove", "transport_protocol": "RTP/AVP", "ZRTP": "terminate"}


def offers(world, mode, count):
    """Offers of this many callers, prepared before the run."""
    head = f"v=0\r\no=- 1 1 IN IP4 {ADDRESS}\r\ns=-\r\nc=IN IP4 {ADDRESS}\r\nt=0 0\r\nm=audio 6000 RTP/SAVP 0\r\n"
    return [head + "a=key-mgmt:mikey " + base64.b64encode(test_mikey.initiator(world, mode).message()).decode() + "\r\n" for _ in range(count)]


class Other(relay.Xcipherd):
    ng_port = 22223


class Burst:
    """Sends offers as fast as the daemon answers. took: seconds for all of them; slowest: seconds for one."""

    def __init__(self, daemon, made):
        self.client, self.made = ng.Client(daemon.net.gateway, ("127.0.0.1", daemon.ng_port)), made
        self.failed, self.took, self.slowest = 0, 0.0, 0.0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        began = time.monotonic()
        for i, sdp in enumerate(self.made):
            before = time.monotonic()
            reply = self.client.call("offer", call_id=f"burst-{i}", from_tag="a", sdp=sdp, ICE="remove", transport_protocol="RTP/AVP")
            self.slowest = max(self.slowest, time.monotonic() - before)
            self.failed += reply["result"] != "ok"
        self.took = time.monotonic() - began


def plain(port):
    return f"v=0\r\no=- 1 1 IN IP4 {ADDRESS}\r\ns=-\r\nc=IN IP4 {ADDRESS}\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\n"


class ZrtpBurst(Burst):
    """Calls to terminals of ZRTP, which the daemon begins exchanges with when it has the answers. failed: terminals without keys."""

    def __init__(self, daemon, count):
        super().__init__(daemon, range(count))
        self.peers = daemon.net.spawn(daemon.net.terminal["caller"], [os.path.join(relay.BUILD, "t", "zrtp_peers"), ADDRESS, str(PORT), str(count or 1), "30"],
                                      stdout=-1, text=True)
        assert self.peers.stdout.readline() == "ready\n"

    def run(self):
        began = time.monotonic()
        for i in self.made:
            before = time.monotonic()
            call = {"call_id": f"burst-{i}", "from_tag": "a"}
            for more in ({"sdp": plain(6000), **TERMINATE}, {"to_tag": "b", "sdp": plain(PORT + 2 * i), "ICE": "remove"}):
                reply = self.client.call("answer" if "to_tag" in more else "offer", **call, **more)
                assert reply["result"] == "ok", reply
            self.slowest = max(self.slowest, time.monotonic() - before)
        if self.made:
            self.failed = len(self.made) - int(self.peers.stdout.readline().split()[0])
        self.took = time.monotonic() - began


def one(args, world, kind):
    """Starts a daemon and some seconds of media. The burst begins after one second."""
    count = 0 if kind == "idle" else args.count
    with Net(("caller",)) as net:
        quiet_terminal(net)
        options = ["--steering=udp", "--engine=serial", "--log-level=4", f"--mikey-config={world.path}", *(["--worker-priority=1"] if args.priority else [])]
        daemon = taker = relay.Xcipherd(net, "--port-min=40000", "--port-max=65535", *options).wait_ready()
        if kind == "elsewhere":
            taker = Other(net, "--listen-ng=127.0.0.1:22223", "--port-min=2000", "--port-max=39999", *options).wait_ready()
        spec = "".join(c.spec() for c in setup(daemon, args.calls, ("80", "32")))
        made = range(count) if args.mode == "zrtp" else offers(world, args.mode, count)  # not before the start, or they are refused
        burst = ZrtpBurst(taker, count) if args.mode == "zrtp" else Burst(taker, made)
        elsewhere = Elsewhere(daemon.pid())
        timer = threading.Timer(1, burst.thread.start)
        timer.start()
        r = judge(srtpload(net, spec, 2 * args.calls, 100 * args.calls, args.seconds))
        timer.join()
        burst.thread.join()
        r.update(elsewhere.since(r["seconds"]))
        if taker is not daemon:
            taker.stop()
        daemon.stop()
    if made:
        progress(f"{kind}: {len(made) - burst.failed} of {len(made)} exchanges in {burst.took:.1f} s, slowest reply {1e3 * burst.slowest:.0f} ms")
    return r


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--mode", default="dh")
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--calls", type=int, default=20)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=6)
    p.add_argument("--priority", action="store_true", help="real-time priority for workers")
    args = p.parse_args()
    if os.geteuid():
        sys.exit("bench_exchanges.py: run it as root")
    out = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        world = test_mikey.World(folder, own="rate = 0\npeer-rate = 0\n")
        for _ in range(args.rounds):
            for kind in KINDS:
                out[kind].append(one(args, world, kind))
    for name, rows in out.items():
        def row(key, rows=rows):
            v = [r[key] for r in rows]
            return f"{statistics.median(v):.0f} ({min(v):.0f}-{max(v):.0f})"
        print(f"{name}: delay p50 {row('p50_us')}, p99 {row('p99_us')} us, lost {row('lost')}, else {row('else_percent')} %")


if __name__ == "__main__":
    main()
