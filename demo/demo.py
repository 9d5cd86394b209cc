#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Demonstrates the main task: two phones that require SRTP with different suites, through Kamailio
and xcipherd.

caller (baresip) 10.200.1.2 ---- 10.200.1.1 gateway 10.200.2.1 ---- 10.200.2.2 callee (baresip)
AES_CM_128_HMAC_SHA1_80        Kamailio, xcipherd             AES_CM_128_HMAC_SHA1_32

Everything runs in three network namespaces, which are removed at the end. Exit status 0 only if
all steps worked."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "t", "e2e"))

import netns  # noqa: E402
import phone  # noqa: E402
import relay  # noqa: E402

TALK_SECONDS = 10
TONE = {"caller": 440, "callee": 1000}
SUITE = {"caller": "AES_CM_128_HMAC_SHA1_80", "callee": "AES_CM_128_HMAC_SHA1_32"}
ADDRESS = {"caller": "10.200.1.2", "callee": "10.200.2.2"}
GATEWAY = {"caller": "10.200.1.1", "callee": "10.200.2.1"}


class Wrong(Exception):
    """A step failed; the text says which, and where to look."""


def progress(text):
    print(f"demo: {text}", flush=True)


def wait_for(what, check, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.02)
    raise Wrong(f"{what} did not happen within {seconds} s")


class Phone:
    def __init__(self, net, folder, name, answer):
        self.folder = os.path.join(folder, name)
        self.name = name
        tone = os.path.join(folder, f"{name}.wav")
        phone.write_tone(tone, TONE[name])
        phone.write_config(self.folder, name, ADDRESS[name], GATEWAY[name], tone, answer)
        self.log_path = os.path.join(folder, f"{name}.log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            args = ["/usr/bin/baresip", "-f", self.folder, "-v"]
            if not answer:
                args += ["-e", f"/dial sip:callee@{ADDRESS['callee']}"]
            # baresip reads commands from standard input: an open pipe keeps it running.
            # SIGTERM would make it hang up first.
            self.process = net.spawn(net.terminal[name], args, death=signal.SIGKILL, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()


def start_kamailio(net, folder):
    log = open(os.path.join(folder, "kamailio.log"), "w", encoding="utf-8")
    cfg = os.path.join(ROOT, "kamailio-cfg", "kamailio-demo.cfg")
    run_dir = os.path.join(folder, "kamailio")
    os.makedirs(run_dir)
    p = net.spawn(net.gateway, ["/usr/sbin/kamailio", "-f", cfg, "-DD", "-E", "-w", run_dir, "-Y", run_dir, "-P",
                                os.path.join(run_dir, "pid"), "-m", "32", "-M", "8"], stdout=log, stderr=log)

    def listening():
        if p.poll() is not None:
            raise Wrong("kamailio ended:\n" + open(log.name, encoding="utf-8").read()[-2000:])
        return ":5060" in net.run(net.gateway, "ss", "-Hlnu").stdout
    wait_for("kamailio's start", listening, 60)
    # its children open their sockets a moment later
    time.sleep(0.5)
    return p


def streams(query, component="RTP"):
    """The counters of a query reply, per side, for that side's RTP or RTCP stream."""
    found = {}
    for tag in query["tags"].values():
        for media in tag["medias"]:
            for s in media["streams"]:
                if component not in s.get("flags", []):
                    continue
                for name, address in ADDRESS.items():
                    if s["endpoint"]["address"] == address:
                        found[name] = s
    return found


def observe_call(daemon):
    calls = daemon.client.call("list")["calls"]
    if not calls:
        raise Wrong("the relay knows no call")
    return daemon.client.call("query", call_id=calls[0])


def settled(daemon, seconds=20):
    """Query and statistics. On a busy machine phones are late and packets are still inside the
    relay: then asks again."""
    end = time.monotonic() + seconds
    while True:
        query, stats = observe_call(daemon), daemon.statistics()
        said = [left for _, left in counts(query).values()]
        if time.monotonic() > end or (not under_way(query) and min(said) >= TALK_SECONDS * 40 and rtcp_to_callee(query) and
                                      stats["device jobs"] == stats["jobs"]):
            return query, stats
        time.sleep(0.1)


def counts(query):
    """For each direction, named by the sender: packets in, out."""
    side = streams(query)
    return {a: (side.get(a, {}).get("stats", {}).get("packets", 0), side.get(b, {}).get("stats_out", {}).get("packets", 0))
            for a, b in (("caller", "callee"), ("callee", "caller"))}


def under_way(query):
    lost = sum(abs(came - left) for came, left in counts(query).values())
    # a packet in flight while the reply is written is counted on one side only
    return 0 if lost <= 1 else lost


def rtcp_to_callee(query):
    return streams(query, "RTCP").get("callee", {}).get("stats_out", {}).get("packets", 0)


def report(lines):
    width = max(len(k) for k, _ in lines)
    print()
    for key, value in lines:
        print(f"  {key:<{width}}  {value}")
    print()


def talk(net, folder, options):
    progress("starting xcipherd (steering nfqueue, engine opencl for every batch, however small)")
    daemon = relay.Xcipherd(net, "--steering=nfqueue", "--engine=opencl", "--opencl-min=1", *options,
                            addresses=("caller/10.200.1.1", "callee/10.200.2.1"))
    daemon.wait_ready()
    progress("starting Kamailio with kamailio-cfg/kamailio-demo.cfg")
    start_kamailio(net, folder)
    progress("starting the phones: both insist on SDES-SRTP")
    callee = Phone(net, folder, "callee", answer=True)
    wait_for("the callee's start", lambda: "baresip is ready" in callee.log(), 60)
    dialled = time.monotonic()
    caller = Phone(net, folder, "caller", answer=False)
    # Set-up time as a person sees it: from dialling, including baresip's start, until the call is
    # established.
    wait_for("an established call", lambda: "Call established" in caller.log() or "call established" in caller.log().lower(), 60)
    setup = time.monotonic() - dialled
    for second in range(TALK_SECONDS):
        progress(f"they talk: {second + 1} of {TALK_SECONDS} s")
        time.sleep(1)
    query, stats = settled(daemon)
    progress("hanging up")
    for p in (caller, callee):
        net.stop(p.process)
    status = daemon.stop()
    return setup, query, stats, status, caller, callee


def rtcp_line(query, drops):
    """RTCP is counted separately, because baresip 1.0 violates the RFCs and the relay rightly
    refuses it. Its first RTCP packet leaves before SRTP is on. Under AES_CM_128_HMAC_SHA1_32 it
    uses SRTCP tags of 32 bits, where RFC 4568 6.2.2 has 80."""
    side = streams(query, "RTCP")
    came = sum(s["stats"]["packets"] for s in side.values())
    left = sum(s["stats_out"]["packets"] for s in side.values())
    refused = sum(s["stats"]["errors"] for s in side.values())
    why = ", ".join(f"{v} {k}" for k, v in drops.items())
    return f"{came} in, {left} out" + (f", {refused} refused ({why}: baresip's first RTCP is unprotected, its SRTCP tag for ..._32 is "
                                       "too short)" if refused else "")


def judge(setup, query, stats, status, caller, callee):
    wrong = []
    side = streams(query)
    lines = [("call set-up", f"{setup * 1000:.0f} ms from starting the caller's phone to an established call")]
    for name in ("caller", "callee"):
        suite = side.get(name, {}).get("crypto suite", "none")
        lines.append((f"suite toward the {name}", suite))
        if suite != SUITE[name]:
            wrong.append(f"the {name} speaks {suite}, not {SUITE[name]}")
    lost, rejected = under_way(query), 0
    for a, b in (("caller", "callee"), ("callee", "caller")):
        came, left = counts(query)[a]
        lines.append((f"{a} to {b}", f"{came} packets in, {left} out"))
        rejected += side.get(a, {}).get("stats", {}).get("errors", 0)
        if left < TALK_SECONDS * 40:
            wrong.append(f"only {left} packets went from {a} to {b}")
    drops = {k: v for k, v in stats["drops"].items() if v}
    lines += [("lost", str(lost)), ("rejected", str(rejected)),
              ("RTCP", rtcp_line(query, drops)),
              ("batches", f"{stats['batches']}, mean size {stats['mean batch']}, {stats['device jobs']} of {stats['jobs']} "
                          f"packets on the device"),
              ("device", stats["device"]),
              ("added latency", f"p50 {stats['latency']['p50_us']} µs, p99 {stats['latency']['p99_us']} µs, "
                                f"max {stats['latency']['max_us']} µs")]
    # A phone sends media with its 200, which takes longer: until the relay has the answer, these
    # packets are on probation.
    if lost or rejected > drops.get("probation", 0):
        wrong.append(f"{lost} packets lost, {rejected} rejected: {drops}")
    if not rtcp_to_callee(query):
        wrong.append("no RTCP reached the callee")
    if stats["engine"] != "opencl" or stats["device jobs"] != stats["jobs"] or not stats["jobs"]:
        wrong.append("not every packet went through OpenCL")
    if stats["steering"] != "nfqueue" or stats["by fallback socket"]:
        wrong.append("packets did not come by netfilter")
    for who, other in ((caller, "callee"), (callee, "caller")):
        mine = TONE[who.name]
        heard, own, seconds = phone.hears(phone.recording(who.folder), TONE[other], mine)
        lines.append((f"{who.name}'s recording", f"{seconds:.1f} s, {heard:.1%} of its energy at the {other}'s {TONE[other]} Hz, "
                                                 f"{own:.1%} at its own {mine} Hz"))
        if heard < 0.9 or seconds < TALK_SECONDS - 2:
            wrong.append(f"the {who.name} did not hear the {other}")
    if status:
        wrong.append(f"xcipherd ended with status {status}")
    report(lines)
    return wrong


def main():
    keep = os.environ.get("XCIPHER_DEMO_KEEP")
    folder = tempfile.mkdtemp(prefix="xcipher-demo-")
    try:
        with netns.Net() as net:
            try:
                wrong = judge(*talk(net, folder, sys.argv[1:]))
            except (Wrong, RuntimeError, TimeoutError) as e:
                wrong = [str(e)]
                for log in ("caller.log", "callee.log", "kamailio.log"):
                    path = os.path.join(folder, log)
                    if os.path.exists(path):
                        text = re.sub(r"\x1b\[[0-9;]*m", "", open(path, encoding="utf-8", errors="replace").read())
                        print(f"--- {log}\n{text[-1500:]}", file=sys.stderr)
    finally:
        if keep:
            print(f"demo: files are in {folder}")
        else:
            subprocess.run(["rm", "-rf", folder], check=False)
    for what in wrong:
        print(f"demo: WRONG: {what}", file=sys.stderr)
    if not wrong:
        print("demo: everything worked")
    return 1 if wrong else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
