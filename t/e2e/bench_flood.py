# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench, section flood: forged packets during running calls.

t/tool/forge sends from the address and port of one call's terminal, with its SSRC. "any": with any
sequence numbers and timestamps; "next": with those that the terminal uses now, which only
authentication tells apart. "stun", "dtls", "zrtp", "rtcp": packets of these protocols to a port of RTP.
"port": to a port of no call. CPU per forged packet: the relay's CPU time with the flood, less that
without, divided by the forged packets. What the kernel spends on them before the relay, in the
sender's turn, is not in it; for the XDP program "xdp_guard cost" measures it, for nfqueue's program
"xdp_guard cost 100000 tc".
"next, SCHEME": the calls have SRTP+ on both legs, and only the tags of forged packets are wrong.
Steering kernel: instructions of its module in a guest, as the last "t/kernel/run.py 54-tags" found them."""
import glob
import os
import re
import subprocess
import time

import calls
import netns
import relay
from bench_measure import FIRST_PORT, GATEWAY, TERMINAL, Elsewhere, judge, progress, quiet_terminal, set_up, setup, srtpload

CALLS = 20
RATE = 50  # packets per second of a leg
PAIR = ("80", "80")
RATES, RATES_OTHER = (2000, 20000, 50000, 100000, 200000, 0), (20000, 0)
KINDS = {"any": RATES, "next": RATES, "stun": RATES_OTHER, "dtls": RATES_OTHER, "zrtp": RATES_OTHER, "rtcp": RATES_OTHER, "port": RATES_OTHER,
         "next, sequence-aes": RATES, "next, header-siphash": RATES, "next, chain": RATES}
# rtpengine's log when it has found over 50 waiting packets at a port five times: it never reads that port again.
NO_CALL = 39998
GIVES_UP = "UDP receive queue exceeded"


class PlusCall(calls.Call):
    """Both terminals speak SRTP+."""
    scheme = None

    def body(self, side, tag=1):
        return re.sub(r"^(a=crypto:.*)\r$", rf"\1 -xcipher-preauth={self.scheme}\r", super().body(side, tag), flags=re.M)


def with_tags(daemon, scheme, count=CALLS):
    def made(number):
        call = PlusCall(daemon.client, number, *PAIR, ports=(FIRST_PORT + 4 * number, FIRST_PORT + 4 * number + 2))
        call.scheme, call.offer_flags = scheme, {"preauth": scheme}
        return set_up(call)
    return [made(i) for i in range(count)]


def forger(net, call, rate, seconds, kind, first):
    port = NO_CALL if kind == "port" else call.to_caller["port"]
    kind = "any" if kind == "port" else kind
    return net.spawn(net.terminal["caller"], [os.path.join(relay.BUILD, "t", "forge"), TERMINAL, str(FIRST_PORT), GATEWAY,
                                              str(port), str(rate), str(seconds), kind, str(RATE), str(first)],
                     stdout=subprocess.PIPE, text=True)


def load(net, daemon, talk, seconds, flood=None, skip=0, **tags):
    """One run of the calls; flood: (rate, kind), for the run's whole time. tags: as srtpload has it."""
    cpu, elsewhere = daemon.cpu_seconds(), Elsewhere(daemon.pid())
    p = forger(net, talk[0], flood[0], seconds, flood[1], skip) if flood else None
    r = judge(srtpload(net, "".join(c.spec() for c in talk), 2 * CALLS, 2 * CALLS * RATE, seconds, skip=skip, **tags))
    r["forged"], r["forge_seconds"] = 0, seconds
    if p:
        sent, took = p.communicate()[0].split()
        r["forged"], r["forge_seconds"] = int(sent), float(took)
    r["cpu_s"] = daemon.cpu_seconds() - cpu
    r.update(elsewhere.since(r["seconds"]))
    return r


def measure(start, rates, kind, seconds):
    """{rate: result} of one relay; None: it has no SRTP+. The calls continue from run to run."""
    kind, _, scheme = kind.partition(", ")
    tags = {"tags": scheme} if scheme else {}
    with netns.Net(("caller",)) as net:
        quiet_terminal(net)
        daemon = start(net).wait_ready()
        if scheme and not isinstance(daemon, relay.Xcipherd):
            daemon.stop()
            return None
        talk = with_tags(daemon, scheme) if scheme else setup(daemon, CALLS, PAIR)
        time.sleep(0.3)
        rows, skip = {}, 0
        calm = load(net, daemon, talk, seconds, skip=skip, **tags)
        for rate in rates:
            skip += int(RATE * seconds) + 1
            r = load(net, daemon, talk, seconds, (rate, kind), skip, **tags)
            r["forged_us"] = 1e6 * (r["cpu_s"] - calm["cpu_s"]) / max(r["forged"], 1)
            r["calm_p99_us"] = calm["p99_us"]
            r["gave_up"] = GIVES_UP in daemon.text()
            rows[rate] = r
        if isinstance(daemon, relay.Xcipherd):
            s = daemon.statistics()
            rows["dropped"] = {"drops": s["drops"], **{k: v for k, v in s.items() if k.startswith("guard:") and v}}
        daemon.stop()
    return rows


def guest_rows():
    """[(what, instructions)] of the last guest that counted; it needs no nf_xcipher in this kernel."""
    logs = sorted(glob.glob(os.path.join(relay.BUILD, "kernel", "console-*.log")), key=os.path.getmtime)
    for log in reversed(logs):
        with open(log, errors="replace", encoding="utf-8") as f:
            rows = re.findall(r"# (\S.*): (\d+) instructions per forged packet in the module", f.read())
        if rows:
            return rows
    return []


def print_guest_rows():
    print("\nsteering kernel, in a guest: instructions per forged packet from the link's ingress hook to the module's drop")
    rows = guest_rows()
    for what, instructions in rows:
        print(f"{what:<40} {instructions:>8}")
    if not rows:
        print("not counted yet: make kernel-tools; t/kernel/run.py 54-tags")


def section(starts, args, out):
    print(f"\nforged packets during {CALLS} calls, {2 * CALLS * RATE} packets per second; rate 0: as fast as the load can")
    for kind, rates in KINDS.items():
        print(f"\nforged packets: {kind}\n"
              f"{'':<20} {'rate':>8} {'sent/s':>8} {'CPU us/forged':>14} {'lost':>6} {'p99 us':>8} {'calm p99':>9} {'else':>5}")
        for name, start in starts.items():
            progress(f"flood, {kind}: {name}")
            rows = measure(start, rates, kind, args.seconds)
            if not rows:  # it knows no SRTP+
                continue
            out.setdefault(kind, {})[name] = rows
            for rate in rates:
                r = rows[rate]
                print(f"{name:<20} {rate:>8} {r['forged'] / r['forge_seconds']:>8.0f} {r['forged_us']:>14.2f} {r['lost']:>6} {r['p99_us']:>8.0f} "
                      f"{r['calm_p99_us']:>9.0f} {r['else_percent']:>4.0f}%{'  reads the attacked port no longer' if r['gave_up'] else ''}", flush=True)
    print_guest_rows()
