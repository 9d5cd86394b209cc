#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the module tells by itself: floods are dropped, logged and counted, silence ends calls, another source is followed where that is
allowed. Without the module in mid-call, media go on by the ordinary sockets."""
import importlib.util
import os
import time

import rig
from rig import tap
import calls
import netns
import relay

spec = importlib.util.spec_from_file_location("relayed", "/guest/60-relay.py")
relayed = importlib.util.module_from_spec(spec)
rig_test, rig.test = rig.test, lambda f: None  # its functions, not its run
spec.loader.exec_module(relayed)
rig.test = rig_test

IP = ("10.200.1.2", "10.200.2.2")


def told(daemon, kind):
    return relayed.find(daemon.statistics(), "kernel events")[kind]


def in_kernel(daemon, n):
    return relayed.until(lambda: relayed.steering(daemon)[0] == n)


def flood(net, daemon):
    call = calls.Call(daemon.client, 1, "plain", "plain", ip=IP).setup()
    to = call.to_caller
    got = rig.pktx("flow", "--from", f"{net.terminal['caller']},{IP[0]},{call.ports[0]}", "--to", f"{to['ip']},{to['port']}", "--ssrc", "7",
                   "--recv", f"{net.terminal['callee']},{IP[1]},{call.ports[1]}", "--count", "1500", "--rate", "1000", "--wait", "500")[0]["got"]
    tap(50 < got < 1000, f"of a flood of 1500 packets {got} get through")
    tap(relayed.until(lambda: told(daemon, "flood") > 0), "the daemon is told")
    text = daemon.text()
    tap(text.count("flood: the kernel drops packets to 10.200.1.1") == 1, "and says it once")
    call.delete()


def silence(net, daemon):
    call = calls.Call(daemon.client, 2, "plain", "plain", ip=IP).setup()
    f = relayed.Flows(net, call, 200, 60)
    tap(in_kernel(daemon, 2), "a call is in the kernel")
    f.outcome()
    end = time.monotonic()
    tap("created" in daemon.client.call("query", call_id=call.id), "it lives")
    tap(relayed.until(lambda: "created" not in daemon.client.call("query", call_id=call.id), 14), "it ends when it is silent")
    tap(3 < time.monotonic() - end < 11 and told(daemon, "silence") >= 2, f"{time.monotonic() - end:.1f} s later, as told")


def remote_port(daemon, call):
    tags = daemon.client.call("query", call_id=call.id)["tags"]
    return tags["a" + call.id]["medias"][0]["streams"][0]["endpoint"]["port"]


def moved(net, daemon):
    call = calls.Call(daemon.client, 3, "plain", "plain", ip=IP, flags={"flags": ["media-handover"]}).setup()
    f = relayed.Flows(net, call, 250, 60)
    tap(in_kernel(daemon, 2), "who may move is relayed by the kernel, too")
    relayed.stable("without losing any", f.outcome(), 250)
    before = told(daemon, "source")
    old, call.ports = call.ports, (call.ports[0] + 1000, call.ports[1])
    f = relayed.Flows(net, call, 300, 60)
    tap(relayed.until(lambda: remote_port(daemon, call) == call.ports[0]), f"the terminal is followed from {old[0]} to {call.ports[0]}")
    tap(told(daemon, "source") > before, "as told by the kernel")
    tap(in_kernel(daemon, 2), "and the kernel goes on with the new address")
    got = [r["got"] for r in f.outcome()]
    tap(got[0] > 280 and got[1] == 300, f"both hear each other ({got})")
    call.delete()


def unloaded(net, daemon):
    call = calls.Call(daemon.client, 4, "plain", "plain", ip=IP).setup()
    f = relayed.Flows(net, call, 450, 60)
    tap(in_kernel(daemon, 2), "a call is in the kernel when the module goes")
    rig.run(["rmmod", "nf_xcipher"])
    tap(relayed.until(lambda: "was unloaded" in daemon.text()), "the operator is told")
    srtp = calls.Call(daemon.client, 5, "80", "80").setup()
    got = calls.load(net, "/build", [srtp], 50, 2)
    rig.note(got)
    tap(got["received"] == got["sent"] and got["bad_auth"] == 0, "a new call's SRTP is relayed by the ordinary sockets")
    out = [r["got"] for r in f.outcome()]
    tap(min(out) > 440, f"the call goes on by them ({out} of 450)")
    tap(daemon.text().count("was unloaded") == 1 and relayed.steering(daemon)[0] == 0, "told once")
    for c in (call, srtp):
        c.delete()


def main():
    with netns.Net(("caller", "callee")) as net:
        daemon = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1", "--kernel-port-rate=250", "--timeout=6").wait_ready()
        try:
            flood(net, daemon)
            silence(net, daemon)
            moved(net, daemon)
            unloaded(net, daemon)
        finally:
            rig.note(daemon.text())
            daemon.stop()
            if not os.path.exists("/sys/module/nf_xcipher"):
                rig.run(["insmod", "/nf_xcipher.ko"])


os.sched_setaffinity(0, {0})  # as in 60-relay.py
rig.test(main)
