# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits and overload: refused calls and their error text, requests that pass nevertheless, packets
that a flooded worker drops. Thousands of calls at once cost no more per call than a hundred."""
import os
import re
import statistics
import time

import calls
import relay
from baresip import wait_for
from bench_measure import quiet_terminal, srtpload
from redisrig import Load
from run import Skip, alone, cases
from test_ng import Phone, leaves, talk
from test_ng import start as started
from test_relay import clean, finish


def offer(daemon, number, **keys):
    """Sends a new call's offer. Returns the raw reply."""
    return daemon.client.call("offer", call_id=f"limit-{number}", from_tag="a", sdp=calls.sdp("10.200.1.2", 4000), replace=["origin"], **keys)


def refused(daemon, name, message):
    """Kamailio's module tries its next node on this result: its own one for nodes that announce it,
    else an error."""
    end = time.monotonic() + 60
    reply = {"result": "ok"}
    number = 0
    while reply["result"] == "ok" and time.monotonic() < end:  # measured once a second
        reply = offer(daemon, f"{name}-{number}", supports=["load limit"])
        number += 1
        time.sleep(0.1)
    assert reply == {"result": "load limit", "message": message}, reply
    assert offer(daemon, f"{name}-old") == {"result": "error", "error-reason": "Parallel session limit reached"}
    limits = daemon.statistics()["limits"]
    assert limits["reached"] == name and limits[name]["refused"] == 2, limits
    emergency = offer(daemon, f"{name}-emergency", flags=["emergency"], supports=["load limit"])
    assert emergency["result"] == "ok", emergency
    assert daemon.statistics()["limits"]["emergency calls"] == 1
    assert message in daemon.text(), daemon.text()


def test_sessions_beyond_the_limit_are_refused_but_no_emergency(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--max-sessions=2").wait_ready()
    talk = [calls.Call(daemon.client, 1, "80", "32").setup()]
    refused(daemon, "sessions", "Parallel session limit reached")
    calls.ok(offer(daemon, "sessions-0"))  # the same call's next offer
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    daemon.stop()


@cases(("cpu", "--max-cpu=0.01", "CPU usage limit exceeded"), ("bandwidth", "--max-bandwidth=1000", "Bandwidth limit exceeded"))
def test_a_busy_machine_takes_no_new_calls_but_keeps_those_it_has(net, name, option, message):
    daemon = relay.Xcipherd(net, "--engine=serial", option).wait_ready()
    talk = [calls.Call(daemon.client, 1, "80", "32").setup()]
    load = Load(net, relay.BUILD, talk, rate=100, seconds=6)  # all the time, because the limit uses means of a few seconds
    refused(daemon, name, message)
    clean(load.result())
    talk[0].setup(again=True)
    daemon.stop()


def test_a_loaded_machine_takes_no_new_calls(net):
    if os.getloadavg()[0] < 0.1:
        raise Skip("a machine at rest has no load to speak of")
    daemon = relay.Xcipherd(net, "--engine=serial", "--max-load=0.01").wait_ready()
    refused(daemon, "load", "Load limit exceeded")
    daemon.stop()


def limited(net, files, *options, **keys):
    """xcipherd with few descriptors."""
    daemon = relay.Xcipherd.__new__(relay.Xcipherd)
    spawn = net.spawn
    net.spawn = lambda ns, args, **kw: spawn(ns, ["prlimit", f"--nofile={files}:{files}", *args], **kw)
    try:
        daemon.__init__(net, *options, **keys)
    finally:
        net.spawn = spawn
    return daemon.wait_ready()


@cases(("udp",), ("nfqueue",), ("xdp",))
def test_without_descriptors_calls_are_refused_and_the_limit_is_named(net, steering):
    """Every port has a socket. Without one, a call would be mute when packets take the sockets, as
    after a flush of netfilter's rules."""
    daemon = limited(net, 400, f"--steering={steering}", "--engine=serial", "--workers=1", "--port-max=30999")
    room = int(re.search(r"room for (\d+) calls", daemon.text()).group(1))
    held = []
    reply = {}
    for i in range(200):
        try:
            held.append(calls.Call(daemon.client, i, "80", "32").setup())
        except calls.Failed:
            reply = offer(daemon, "more", supports=["load limit"])
            break
    assert reply == {"result": "error", "error-reason": "Ran out of ports"}, reply
    assert 50 < len(held) <= room < 100, (len(held), room)
    assert "descriptors are allowed" in daemon.text() and "out of descriptors: raise LimitNOFILE" in daemon.text(), daemon.text()
    assert daemon.statistics()["shortages"] >= 1
    if steering == "nfqueue":
        net.run(net.gateway, "nft", "flush", "ruleset")
    result = calls.load(net, relay.BUILD, held, rate=10, seconds=1)  # the rings have room for what waits for a late worker
    clean(result)
    for call in held:
        calls.ok(call.delete())
    daemon.stop()


def test_ports_that_run_out_are_named(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--port-min=30000", "--port-max=30003").wait_ready()
    calls.Call(daemon.client, 1, "80", "32").setup()
    assert offer(daemon, "more", flags=["emergency"]) == {"result": "error", "error-reason": "Ran out of ports"}
    assert "out of local ports: widen port-min" in daemon.text(), daemon.text()
    daemon.stop()


def test_a_thousand_calls_at_once_cost_no_more_each_and_leave_nothing(net):
    """Processor time, not elapsed time, because other tests use the machine. Walking all calls for
    each one would cost four times as much."""
    count, part = 1000, 250
    net.run(net.gateway, "ip", "addr", "add", "10.200.9.1/32", "dev", "lo")
    daemon = relay.Xcipherd(net, "--engine=serial", "--log-level=4", addresses=("a/10.200.1.1", "b/10.200.9.1")).wait_ready()
    held, cost = [], []
    for start in range(0, count, part):
        before = daemon.cpu_seconds()
        held += [calls.Call(daemon.client, i, "80", "32", ports=(4000, 4002), flags={"direction": ["a", "b"]}).setup()
                 for i in range(start, start + part)]
        cost.append(daemon.cpu_seconds() - before)
    s = daemon.statistics()
    assert s["streams used"] == s["ports used"] == 4 * count and s["contexts used"] == 2 * count, s
    assert cost[-1] < 3 * cost[0] + 0.1, cost
    before = daemon.cpu_seconds()
    time.sleep(1.5)  # timers visit every call
    assert daemon.cpu_seconds() - before < 0.5
    for c in held:
        calls.ok(c.delete())
    finish(daemon)
    assert daemon.process.returncode == 0


def packets(daemon, call):
    """Packets of this call that the relay received, and that it dropped."""
    reply = daemon.client.call("query", call_id=call.id)
    streams = [s for t in reply["tags"].values() for m in t["medias"] for s in m["streams"]]
    return sum(s["stats"]["packets"] for s in streams), sum(s["stats"]["errors"] for s in streams)


@alone
def test_a_flooded_worker_keeps_its_delay_and_emergency_calls(net):
    """Far more than one worker can do: surplus packets are dropped by age, ordinary calls first,
    and sent packets are not late."""
    quiet_terminal(net)
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--overload-age=20", "--batch-max=64").wait_ready()
    talk = [calls.Call(daemon.client, i, "80", "32", ports=(20000 + 4 * i, 20002 + 4 * i),
                       flags={"flags": ["emergency"]} if i < 2 else {}).setup() for i in range(100)]
    r = srtpload(net, "".join(c.spec() for c in talk), 200, 150000, 1, drain_ms=3000)
    s = daemon.statistics()
    took = [packets(daemon, c) for c in talk]
    assert not (r["wrong"] or r["bad_auth"] or r["duplicates"] or r["reordered"]), r
    if s["drops"]["overload"] < r["sent"] / 100:
        daemon.stop()
        raise Skip("this machine keeps up with the flood, or could not send it")
    # every loss is counted, except what a full socket lost after its last packet was read
    counted = r["received"] + s["drops"]["overload"] + s["drops"]["overload-emergency"] + s["overruns"]
    assert 0.98 * r["sent"] < counted <= r["sent"], (counted, r, s["drops"], s["overruns"])
    # Three ages, plus other load; full sockets alone hold more than a second. Not a timed test: a
    # factor of ten.
    assert float(s["latency"]["p50_us"]) < 600e3, s["latency"]
    lost = [errors / (packets_in + errors) for packets_in, errors in took]
    assert statistics.mean(lost[:2]) < 0.9 * statistics.mean(lost[2:]), (lost[:2], lost[2:])
    daemon.stop()


def test_a_terminal_over_the_media_rate_loses_only_its_own(net):
    """One terminal sends as fast as it can, and no more than the limit is relayed. Media to it, and of other calls, all arrive."""
    daemon = started(net, "--media-rate=50", "--workers=1")
    begun = time.monotonic()
    a, b = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2", "80")
    c, d = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2", None)
    talk(daemon.client, a, b, "fast")
    talk(daemon.client, c, d, "usual")

    def dropped():
        return daemon.statistics()["drops"].get("media-rate", 0)

    sent = 0
    while dropped() < 2000:
        for _ in range(100):
            a.send(b"fast")
        sent += 100
        assert leaves(b, a) and leaves(c, d) and leaves(d, c)
    arrived = 0
    while b.hears(0.2):
        arrived += 1
    # 256 packets may come before the second is counted, and the last of them belong to another second.
    assert arrived <= 2 * 256 + 50 * (2 + time.monotonic() - begun), (arrived, sent)
    wait_for("media within the limit again", lambda: (a.send(b"again"), b.hears(0.05))[1])
    finish(daemon, drops=("media-rate",))
