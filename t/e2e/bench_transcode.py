# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench, section transcode: calls between terminals with different codecs, SRTP on both sides.

t/tool/codecload plays the terminals. Two streams make a call. A relay that lacks a codec gets a
dash. The row PCMU-PCMU is re-encryption alone: no codec is needed. CPU is that of all threads of
the relay, per packet that arrived. Late: packets that the load sent over 20 ms after their time,
because it had too little processor time."""
import functools
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

import calls
import netns
import relay
from bench_measure import FIRST_PORT, Elsewhere, judge, progress
from bench_targets import PEER, mid

PAIR = ("80", "32")
# name: as in a=rtpmap, payload type, a=fmtp
CODECS = {"PCMU": ("PCMU/8000", 0, ""), "PCMA": ("PCMA/8000", 8, ""), "G722": ("G722/8000", 9, ""), "G729": ("G729/8000", 18, ""),
          "opus": ("opus/48000/2", 96, ""), "AMR-WB": ("AMR-WB/16000", 97, "octet-align=1")}
ROWS = (("PCMU", "PCMU"), ("PCMU", "PCMA"), ("PCMU", "G722"), ("PCMU", "opus"), ("PCMU", "G729"), ("AMR-WB", "opus"))
PLUGINS = (f"--codec-dir={os.path.abspath(relay.BUILD)}/codecs", f"--codec-worker={os.path.abspath(relay.BUILD)}/xcipher-codec-worker",
           "--codec-isolation=none")
# The highest ratio to rtpengine's CPU.
RELAYED = 20  # calls beside transcoded ones
GOALS = {"PCMU-G722": 0.2, "PCMU-opus": 0.5, "PCMU-G729": 0.5}


class Call(calls.Call):
    """codecs: of the caller and of the callee, each terminal's only one."""

    def __init__(self, client, number, codecs):
        super().__init__(client, number, *PAIR, ports=(FIRST_PORT + 4 * number, FIRST_PORT + 4 * number + 2))
        self.codecs = codecs
        if codecs[0] != codecs[1]:
            self.offer_flags = {"codec": {"transcode": [codecs[1]]}}

    def body(self, side, tag=1):
        name, kind, fmtp = CODECS[self.codecs[side]]
        text = super().body(side, tag).replace("AVP 0\r\na=rtpmap:0 PCMU/8000", f"AVP {kind}\r\na=rtpmap:{kind} {name}")
        return text + (f"a=fmtp:{kind} {fmtp}\r\n" if fmtp else "")


def word(codec):
    """The codec in codecload's notation."""
    name, kind, fmtp = CODECS[codec]
    return f"{name.removesuffix('/2')}:{kind}" + (f":{fmtp}" if fmtp else "")


def offered(call):
    """Whether the relay offers the callee its codec."""
    return re.search(rf"^a=rtpmap:\d+ {CODECS[call.codecs[1]][0]}", call.told["sdp"], re.M | re.I)


def begin(net, folder, talk, pair, seconds):
    """Starts a load."""
    with tempfile.NamedTemporaryFile("w", suffix=".spec", dir=folder, delete=False) as f:
        f.write("".join(c.spec() for c in talk))
    return net.spawn(net.terminal["caller"], [os.path.join(relay.BUILD, "t", "codecload"), f.name, os.path.join(relay.BUILD, "codecs"),
                                              *map(word, pair), str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(p):
    out, err = p.communicate()
    if p.returncode:
        raise RuntimeError(f"codecload: {err}")
    return json.loads(out)


def load(net, talk, pair, seconds):
    with tempfile.TemporaryDirectory(prefix="xcipher-codecload-") as folder:
        return result(begin(net, folder, talk, pair, seconds))


def beside(start, pair, streams, seconds):
    """Relayed calls alone, or with streams of the pair in the same relay at the same time: what the relayed calls see."""
    with netns.Net(("caller",)) as net, tempfile.TemporaryDirectory(prefix="xcipher-codecload-") as folder:
        daemon = start(net).wait_ready()
        relayed = [Call(daemon.client, i, ROWS[0]).setup() for i in range(RELAYED)]
        talk = [Call(daemon.client, RELAYED + i, pair).setup() for i in range(streams // 2)]
        time.sleep(0.3)
        loads = [begin(net, folder, relayed, ROWS[0], seconds)] + ([begin(net, folder, talk, pair, seconds)] if talk else [])
        elsewhere = Elsewhere(daemon.pid())
        r = [result(p) for p in loads][0]
        r.update(elsewhere.since(r["seconds"]))
        daemon.stop()
    return judge(r) if r["received"] else None


def measure(start, pair, streams, seconds):
    """One relay and pair of codecs. None: the relay lacks a codec."""
    with netns.Net(("caller",)) as net:
        daemon = start(net).wait_ready()
        talk = [Call(daemon.client, i, pair) for i in range(streams // 2)]
        for call in talk:
            call.setup()
            if pair[0] != pair[1] and not offered(call):
                daemon.stop()
                return None
        time.sleep(0.3)
        elsewhere, cpu = Elsewhere(daemon.pid()), daemon.cpu_seconds()
        r = load(net, talk, pair, seconds)
        r["cpu_us"] = 1e6 * (daemon.cpu_seconds() - cpu) / max(r["received"], 1)
        r.update(elsewhere.since(r["seconds"]))
        daemon.stop()
    return judge(r) if r["received"] else None


def section(relays, in_turns, args, out):
    """relays: name to start. in_turns: of bench_path.py."""
    for streams in map(int, args.streams.split(",")) if args.streams else (50, 500) if args.full else (50,):
        rows = out.setdefault(str(streams), {})
        print(f"\ntranscoding {streams} streams of 20 ms packets, SRTP on both sides; delay with the codecs' look-ahead\n"
              f"{'':<14} {'':<20} {'CPU us/packet':>20} {'of rtpengine':>18} {'p50 us':>8} {'p99 us':>8} {'lost':>6} {'late':>6} {'wrong':>6} {'else':>5}")
        for pair in ROWS:
            name = "-".join(pair)
            if args.codecs and not any(word in name for word in args.codecs.split(",")):
                continue
            progress(f"transcode, {streams} streams: {name}")
            rows[name] = in_turns({n: lambda s=s, pair=pair: measure(s, pair, streams, args.seconds) for n, s in relays.items()}, args.rounds,
                                  f"transcode, {streams} streams, {name}")
            show(name, rows[name])
        calls_beside(relays, in_turns, args, streams, rows)


def calls_beside(relays, in_turns, args, streams, rows):
    wanted = [p for p in ROWS[2:] if not args.codecs or any(word in "-".join(p) for word in args.codecs.split(","))]
    if not wanted:
        return
    print(f"\n{RELAYED} relayed calls (PCMU-PCMU), alone and with {streams} transcoded streams\n"
          f"{'':<14} {'':<20} {'p50 us':>18} {'p99 us':>22} {'lost':>6} {'late':>6} {'else':>5}")
    for name, start in relays.items():
        variants = {"alone": lambda s=start: beside(s, ROWS[0], 0, args.seconds)}
        variants.update({"-".join(p): lambda s=start, p=p: beside(s, p, streams, args.seconds) for p in wanted if start_has(name, p)})
        rows[f"beside, {name}"] = in_turns(variants, args.rounds, f"transcode, calls beside, {name}")
        for what, tries in rows[f"beside, {name}"].items():
            got = [r for r in tries if r]
            if got:
                print(f"{what:<14} {name:<20} {spread(got, 'p50_us'):>18} {spread(got, 'p99_us'):>22} {max(r['lost'] for r in got):>6} "
                      f"{max(r['late'] for r in got):>6} {max(r['else_percent'] for r in got):>4.0f}%", flush=True)


def spread(rows, key):
    values = [r[key] for r in rows]
    return f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})"


@functools.cache
def peer_codecs():
    """What rtpengine encodes and decodes. It depends on the libavcodec that is installed."""
    shown = subprocess.run(["/usr/bin/rtpengine", "--codecs"], capture_output=True, text=True, timeout=60, check=False)
    return set(re.findall(r"^\s*(\S+): fully supported", shown.stdout + shown.stderr, re.M))


def start_has(name, pair):
    return name != PEER or all(codec in peer_codecs() for codec in pair)


def show(name, relays):
    peer = [r for r in relays.get(PEER, ()) if r]
    for who, tries in relays.items():
        got = [r for r in tries if r]
        if not got:
            print(f"{name:<14} {who:<20} {'-':>20}")
            continue
        cpu = [r["cpu_us"] for r in got]
        ratios = sorted(a["cpu_us"] / b["cpu_us"] for a, b in zip(got, peer) if b["cpu_us"])
        ratio = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})" if ratios else "-"
        goal = f"  goal: {GOALS[name]}" if name in GOALS and who != PEER else ""
        spread = f"{mid(got, 'cpu_us'):.1f} ({min(cpu):.1f}-{max(cpu):.1f})"
        print(f"{name:<14} {who:<20} {spread:>20} "
              f"{ratio:>18} {mid(got, 'p50_us'):>8.0f} {mid(got, 'p99_us'):>8.0f} {max(r['lost'] for r in got):>6} {max(r['late'] for r in got):>6} "
              f"{max(r['wrong'] + r['bad_auth'] for r in got):>6} {max(r['else_percent'] for r in got):>4.0f}%{goal}", flush=True)
