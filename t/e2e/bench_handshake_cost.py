#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Processor time of a DTLS-SRTP handshake in xcipherd and in rtpengine, in turns. Sudo; needs python3-openssl.

    bench_handshake_cost.py [--handshakes=300] [--rate=100] [--rounds=5]

Each turn has a relay of its own. Its calls, from RTP to DTLS-SRTP with rtcp-mux and without ICE, are signalled first. The time is that of the whole process from
then on until all handshakes are over, packets and wake-ups included. Idle time, measured for two seconds afterwards, is subtracted."""
import argparse
import statistics
import tempfile
import time

import bench_handshakes
import handshakes
import netns
import relay

ADDRESSES = ("a/10.200.1.1", "b/10.200.2.1")
RELAYS = {"xcipherd": lambda net: relay.Xcipherd(net, "--engine=auto", "--workers=1", addresses=ADDRESSES),
          "rtpengine": lambda net: relay.Rtpengine(net, addresses=ADDRESSES, ports=(20000, 39999))}


def turn(name, cert, args):
    """Microseconds per handshake."""
    with netns.Net(("caller", "callee")) as net:
        daemon = RELAYS[name](net).wait_ready()
        terminals = [{"port": 10000 + i, "to": bench_handshakes.dtls_call(daemon, i, cert[1], 10000 + i), "ice": None} for i in range(args.handshakes)]
        time.sleep(1)
        before, begun = daemon.cpu_seconds(), time.monotonic()
        process = handshakes.spawn(net, cert[0], args.rate, terminals)
        completed, _ = process.stdout.readline().split()
        used, took = daemon.cpu_seconds() - before, time.monotonic() - begun
        process.stdin.close()
        process.wait()
        idle = daemon.cpu_seconds()
        time.sleep(2)
        idle = (daemon.cpu_seconds() - idle) / 2
        daemon.stop()
    assert int(completed) == args.handshakes, f"{name}: {completed} of {args.handshakes} handshakes completed"
    return 1e6 * (used - idle * took) / args.handshakes


def main():
    p = argparse.ArgumentParser()
    for name, default in (("handshakes", 300), ("rate", 100), ("rounds", 5)):
        p.add_argument("--" + name, type=int, default=default)
    args = p.parse_args()
    got = {name: [] for name in RELAYS}
    with tempfile.TemporaryDirectory() as folder:
        cert = handshakes.certificate(folder)
        for _ in range(args.rounds):
            for name, values in got.items():
                values.append(turn(name, cert, args))
                print(f"{name}: {values[-1]:.0f} us per handshake", flush=True)
    ratios = sorted(a / b for a, b in zip(got["xcipherd"], got["rtpengine"]))
    for name, values in got.items():
        print(f"{name:10} median {statistics.median(values):.0f} us of processor time, {1e6 / statistics.median(values):.0f} handshakes per second and core")
    print(f"xcipherd / rtpengine {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
