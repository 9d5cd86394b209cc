#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""DTLS handshakes and running calls on one xcipherd: delay of 500 SRTP calls with and without 200 handshakes per second, in turns. Sudo; needs
python3-openssl.

    bench_handshakes.py [--calls=500] [--rate=200 | --burst=1000] [--seconds=3] [--rounds=6] [--worker-priority=1]
                        [--load-priority=0]

A round has one turn of each kind, in changing order: without handshakes; with handshakes that another xcipherd takes, which relays nothing; with
handshakes that the relay takes. Ratios are those of two turns of a round. The clients are OpenSSL by Python on the same machine, and take more processor
time than the relay. What only the last kind shows is due to the handshakes' place in the relay; the rest is due to the processors that are shared. With
--load-priority=1 the clients cannot delay the program that sends the media: a late sender sends larger bursts, which take longer in any relay. The calls
are signalled before the clock starts. "else" is the share of the machine that all other programs took, the clients included. With --burst a turn has so
many handshakes, which begin at once.

On a busy machine p99 says little, so each turn also reports what the threads did: processor time of the worker per packet, time that it waited
for a processor, and processor time of the keying threads per handshake. Handshakes that ran on the worker would raise the first."""
import argparse
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import bench_measure  # noqa: E402
import calls  # noqa: E402
import handshakes  # noqa: E402
import netns  # noqa: E402
import relay  # noqa: E402

FIRST = 10000
AT_ONCE = 10 ** 9  # terminals per second
KINDS = ("without", "elsewhere", "with")


def dtls_call(daemon, number, fingerprint, port):
    """A plain terminal and a DTLS client. Returns the relay's port for the client."""
    call_id, tags = f"dtls-{number}", {"from_tag": "a"}
    sdp = calls.sdp("10.200.1.2", 8000)
    offered = calls.ok(daemon.client.call("offer", call_id=call_id, sdp=sdp, transport_protocol="UDP/TLS/RTP/SAVP", ICE="remove",
                                          rtcp_mux=["offer"], SDES=["off"], direction=["a", "b"], **tags))["sdp"]
    answer = calls.sdp(handshakes.ADDRESS, port, profile="UDP/TLS/RTP/SAVP",
                       extra=f"a=setup:active\r\na=rtcp-mux\r\na=fingerprint:sha-256 {fingerprint}\r\n")
    calls.ok(daemon.client.call("answer", call_id=call_id, sdp=answer, to_tag="b", **tags))
    return calls.parse(offered)["port"]


class Threads:
    """Processor time of xcipherd's threads, and their waits for a processor, in ns by the beginning of their names."""

    def __init__(self, pid):
        self.pid = pid
        self.before = self.look()

    def look(self):
        out = {}
        for t in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{t}/comm", encoding="ascii") as f:
                name = f.read().split("-")[0].strip()
            with open(f"/proc/{self.pid}/task/{t}/schedstat", encoding="ascii") as f:
                ran, waited = map(int, f.read().split()[:2])
            a, b = out.get(name, (0, 0))
            out[name] = a + ran, b + waited
        return out

    def since(self, name):
        now, before = self.look().get(name, (0, 0)), self.before.get(name, (0, 0))
        return now[0] - before[0], now[1] - before[1]


class Other(relay.Xcipherd):
    ng_port = 22223


class Rig:
    def __init__(self, net, folder, args):
        self.net, self.args, self.number = net, args, 0
        self.cert, self.print = handshakes.certificate(folder)
        options = {"addresses": ("a/10.200.1.1", "b/10.200.2.1")}
        self.daemon = relay.Xcipherd(net, "--engine=auto", "--workers=1", f"--worker-priority={args.worker_priority}", **options).wait_ready()
        self.other = Other(net, "--engine=auto", "--workers=1", "--listen-ng=127.0.0.1:22223", "--port-min=50000", "--port-max=60000", **options).wait_ready()

    def terminals(self, daemon, count):
        """Calls that await a handshake."""
        made = []
        for _ in range(count):
            port = FIRST + self.number % 9000
            made.append({"port": port, "to": dtls_call(daemon, self.number, self.print, port), "ice": None})
            self.number += 1
        return made

    def end(self, daemon, first_number, count):
        for i in range(count):
            daemon.client.call("delete", call_id=f"dtls-{first_number + i}", from_tag="a", delete_delay=0)


def running(rig):
    """Calls are new in each turn, because srtpload begins with index 0."""
    return [calls.Call(rig.daemon.client, i, "80", "32", flags={"direction": ["a", "a"]}).setup() for i in range(rig.args.calls)]


def turn(rig, kind):
    args, number, process, talk = rig.args, rig.number, None, running(rig)
    taker, busy = rig.other if kind == "elsewhere" else rig.daemon, kind != "without"
    if busy:
        terminals = rig.terminals(taker, args.burst or args.rate * args.seconds)
        process = handshakes.spawn(rig.net, rig.cert, AT_ONCE if args.burst else args.rate, terminals)
    elsewhere, threads = bench_measure.Elsewhere(rig.daemon.pid()), Threads(rig.daemon.pid())
    keying = Threads(taker.pid())
    r = bench_measure.srtpload(rig.net, "".join(c.spec() for c in talk), 2 * len(talk), 100 * len(talk), args.seconds,
                               priority=args.load_priority)
    r.update(elsewhere.since(r["seconds"]))
    ran, waited = threads.since("worker")
    packets = 100 * len(talk) * args.seconds
    r["worker_ns_per_packet"], r["worker_waits_ms_per_s"] = round(ran / packets), round(waited / 1e6 / r["seconds"], 2)
    if busy:
        completed, seconds = process.stdout.readline().split()
        r["handshakes"], r["in_seconds"] = int(completed), float(seconds)
        r["keying_us_per_handshake"] = round(keying.since("keying")[0] / 1e3 / max(int(completed), 1))
        process.stdin.close()
        process.wait()
    rig.end(taker, number, rig.number - number)
    for c in talk:
        c.delete()
    words = ("p50_us", "p99_us", "max_us", "lost", "worker_ns_per_packet", "worker_waits_ms_per_s", "keying_us_per_handshake", "handshakes", "in_seconds",
             "else_percent")
    print(f"{kind:<9}", {k: round(r[k], 2) for k in words if k in r}, flush=True)
    return r


def ratio(rounds, word, above, below):
    """Other programs make single turns slow, so half of the rounds lie within the range."""
    r = sorted(turns[above][word] / turns[below][word] for turns in rounds if turns[below][word])
    return (f"{above} to {below} {statistics.median(r):.2f} (half of them {r[len(r) // 4]:.2f} to {r[-1 - len(r) // 4]:.2f}, "
            f"all {r[0]:.2f} to {r[-1]:.2f})")


def ratios(rounds, word):
    medians = ", ".join(f"{kind} {statistics.median(turns[kind][word] for turns in rounds):.0f}" for kind in KINDS)
    return f"{word}: {medians}; ratio of a round: {ratio(rounds, word, 'with', 'without')}; {ratio(rounds, word, 'with', 'elsewhere')}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--worker-priority", default="1")
    for name, default in (("calls", 500), ("rate", 200), ("burst", 0), ("seconds", 3), ("rounds", 6), ("load-priority", 0)):
        p.add_argument("--" + name, type=int, default=default)
    args = p.parse_args()
    with netns.Net(("caller", "callee")) as net, tempfile.TemporaryDirectory() as folder:
        rig, rounds = Rig(net, folder, args), []
        bench_measure.quiet_terminal(net)
        turn(rig, "without")  # not counted: it fills the relay's memory
        for n in range(args.rounds):
            rounds.append({kind: turn(rig, kind) for kind in KINDS[n % 3:] + KINDS[:n % 3]})
            time.sleep(1)
        print(f"{args.calls} calls, {f'{args.burst} handshakes at once' if args.burst else f'{args.rate} handshakes per second'}; medians of {args.rounds} rounds")
        for word in ("p50_us", "p99_us", "worker_ns_per_packet"):
            print(ratios(rounds, word), flush=True)
        rig.other.stop()
        rig.daemon.stop()


if __name__ == "__main__":
    main()
