#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Events of the module: floods are dropped, logged and counted, silence ends calls, and the
signalled address is followed once it sends. If the module is unloaded during a call, media
continue over the ordinary sockets until it is loaded again."""
import importlib.util
import os
import time

import rig
from rig import equal, tap
import calls
import netns
import relay

spec = importlib.util.spec_from_file_location("relayed", "/guest/60-relay.py")
relayed = importlib.util.module_from_spec(spec)
rig_test, rig.test = rig.test, lambda f: None  # imports its functions without running it
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
    tap(text.count("flood: packets to 10.200.1.1") == 1, "and says it once")
    call.delete()


def silence(net, daemon):
    call = calls.Call(daemon.client, 2, "plain", "plain", ip=IP).setup()
    f = relayed.Flows(net, call, 200, 60)
    tap(in_kernel(daemon, 2), "a call is in the kernel")
    f.outcome()
    end = time.monotonic()  # the last packet may have come a little earlier
    tap("created" in daemon.client.call("query", call_id=call.id), "it lives")
    tap(relayed.until(lambda: "created" not in daemon.client.call("query", call_id=call.id)), "it ends when it is silent")
    tap(time.monotonic() - end > 3 and told(daemon, "silence") >= 2, f"{time.monotonic() - end:.1f} s later, as told")


def remote_port(daemon, call):
    tags = daemon.client.call("query", call_id=call.id)["tags"]
    return tags["a" + call.id]["medias"][0]["streams"][0]["endpoint"]["port"]


def moved(net, daemon):
    """A terminal sends from another port than its SDP names, then from that port. Until then strangers' packets reach the daemon."""
    call = calls.Call(daemon.client, 3, "plain", "plain", ip=IP).setup()
    named, call.ports = call.ports, (call.ports[0] + 1000, call.ports[1])
    f = relayed.Flows(net, call, 500, 60)
    tap(in_kernel(daemon, 2), "a terminal behind address translation is relayed by the kernel")
    got = [r["got"] for r in f.outcome()]
    tap(min(got) > 450, f"both hear each other ({got} of 500)")
    before = told(daemon, "source")
    old, call.ports = call.ports, named
    f = relayed.Flows(net, call, 900, 60)
    tap(relayed.until(lambda: remote_port(daemon, call) == call.ports[0]), f"the terminal is followed from {old[0]} to {call.ports[0]}")
    tap(told(daemon, "source") > before, "as told by the kernel")
    tap(in_kernel(daemon, 2), "and the kernel goes on with the new address")
    got = [r["got"] for r in f.outcome()]
    tap(min(got) > 810, f"both hear each other ({got} of 900)")
    call.delete()


def unloaded(net, daemon, by_ring=True):
    call = calls.Call(daemon.client, 4, "plain", "plain", ip=IP).setup()
    later = calls.Call(daemon.client, 6, "80", "80").setup()
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
    returned(net, daemon, call, later, by_ring)
    for c in (call, srtp, later):
        c.delete()


def statistic(daemon, key):
    return relayed.find(daemon.statistics(), key)


BY = {True: "received by ring", False: "sent by verdict"}


def returned(net, daemon, call, srtp, by_ring):
    """The same calls after the module is loaded again: only the daemon's own search for it brings
    them back."""
    counted = relayed.queried(daemon, call)[1][call.to_caller["port"]]
    rig.run(["insmod", "/nf_xcipher.ko"])
    tap(relayed.until(lambda: statistic(daemon, "kernel module returns") == 1), "the module is back, and used again without a restart")
    nfx = rig.Nfx(net.gateway)
    tap(relayed.until(lambda: nfx(f"get addr={srtp.to_caller['ip']} port={srtp.to_caller['port']}")[0] == 0), "ports are the module's again")
    nfx.close()
    tap("nf_xcipher is back" in daemon.text() and statistic(daemon, "kernel module gone") == 0, "the operator is told that, too")
    before = [statistic(daemon, k) for k in ("by fallback socket", BY[by_ring])]
    got = calls.load(net, "/build", [srtp], 50, 2)
    rig.note(got)
    by_socket, by_module = [statistic(daemon, k) - b for k, b in zip(("by fallback socket", BY[by_ring]), before)]
    tap(got["lost"] == got["bad_auth"] == 0 and got["sent"] > 100, "SRTP of a call that was there before is relayed")
    tap(by_module >= got["sent"] and by_socket == 0, f"by a new ring, or the queue and its present mark ({by_module} {BY[by_ring]}, {by_socket} by sockets)")
    f = relayed.Flows(net, call, 250, 60)
    tap(in_kernel(daemon, 2), "the call that was in the kernel when the module went is there again")
    out = f.outcome()
    equal("nothing of it is lost or repeated on the way", [(r["got"], r["dup"], r["bad"]) for r in out], [(250, 0, 0)] * 2)
    equal("query counts what the kernel relayed before and after", relayed.queried(daemon, call)[1][call.to_caller["port"]], counted + 250)


def with_daemon(net, parts, *options):
    daemon = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1", *options).wait_ready()
    try:
        for part in parts:
            part(net, daemon)
    finally:
        rig.note(daemon.text())
        daemon.stop()
        if not os.path.exists("/sys/module/nf_xcipher"):
            rig.run(["insmod", "/nf_xcipher.ko"])


def main():
    with netns.Net(("caller", "callee")) as net:
        with_daemon(net, (flood, silence, moved), "--kernel-port-rate=250", "--timeout=6")
        with_daemon(net, (unloaded,))
        with_daemon(net, (lambda n, d: unloaded(n, d, False),), "--kernel-ring=no")


rig.test(main)
