#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""xcipherd hands plain media to the kernel and takes them back without loss, repetition or
reordering. Its counters include the kernel's."""
import os
import shutil
import subprocess
import time

import rig
from rig import equal, tap
import calls
import netns
import relay


class Flows:
    """pktx in both directions of a call at once, for some seconds. Each run has its own SSRCs:
    terminals never repeat packets, and a stream watched for circles would drop them."""

    number = 0x1000

    def __init__(self, net, call, count, rate, v6=False):
        a, b = net.terminal["caller"], net.terminal["callee"]
        pa, pb = call.ports
        ia, ib = call.ip
        near, far = call.to_caller, call.to_callee
        Flows.number += 2
        ssrc = (Flows.number, Flows.number + 1)
        self.p = [subprocess.Popen(["/build/t/pktx", "flow", "--from", f"{x[0]},{x[1]},{x[2]}", "--to", f"{n['ip']},{n['port']}", "--ssrc", str(s),
                                    "--recv", f"{x[0]},{x[1]},{x[2]}", "--count", str(count), "--rate", str(rate), "--wait", "1500",
                                    "--peer-ssrc", str(o), "--delay", "600"],
                                   stdout=subprocess.PIPE, text=True)
                  for x, n, s, o in (((a, ia, pa), near, ssrc[0], ssrc[1]), ((b, ib, pb), far, ssrc[1], ssrc[0]))]

    def outcome(self):
        return [{k: int(v) if v.isdigit() else v for k, v in (x.split("=", 1) for x in p.communicate()[0].split())} for p in self.p]


def steering(daemon):
    s = daemon.statistics()
    s = s.get("packets path", s)
    return find(s, "streams relayed by the kernel"), find(s, "packets relayed by the kernel"), find(s, "moves to the kernel and back")


def find(tree, key):
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]
        for v in tree.values():
            got = find(v, key)
            if got is not None:
                return got
    return None


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.3)
    return False


def both(daemon):
    if until(lambda: steering(daemon)[0] == 2):
        return True
    rig.note(steering(daemon))
    rig.note(rig.run(["ip", "netns", "exec", daemon.net.gateway, "sh", "-c", "echo get +dump | nfx"]))
    return False


def stable(name, out, count):
    equal(name, [(r["got"], r["dup"], r["late"], r["bad"]) for r in out], [(count, 0, 0, 0)] * 2)


def queried(daemon, call):
    q = daemon.client.call("query", call_id=call.id)
    packets = {}
    for tag in q["tags"].values():
        for m in tag.get("medias", []):
            for s in m.get("streams", []):
                packets[s.get("local port")] = s.get("stats", {}).get("packets")
    return q, packets


def life(net, daemon):
    call = calls.Call(daemon.client, 1, "plain", "plain", ip=("10.200.1.2", "10.200.2.2")).setup()
    f = Flows(net, call, 500, 80)
    tap(both(daemon), "both directions of a plain call go to the kernel")
    out = f.outcome()
    stable("on their way there nothing is lost, repeated, reordered", out, 500)
    streams, packets, _ = steering(daemon)
    tap(packets > 150, f"the kernel relayed {packets} of 1000")
    q, got = queried(daemon, call)
    ports = [call.to_caller["port"], call.to_callee["port"]]
    equal("query counts what both relayed", [got.get(p) for p in ports], [500, 500])
    equal("the host tracks connections, but none of media's", rig.tracked(net.gateway), [])
    # During media a re-INVITE comes twice, then recording starts, then the terminal changes its
    # SSRC.
    f = Flows(net, call, 700, 80)
    time.sleep(2.5)
    tap(both(daemon), "they are in the kernel under new SSRCs")
    moves = steering(daemon)[2]
    call.setup(again=True)
    time.sleep(2.5)
    call.setup(again=True)
    tap(both(daemon), "re-INVITEs that change nothing leave them in the kernel")
    stable("two re-INVITEs lose, repeat, reorder nothing", f.outcome(), 700)
    tap(steering(daemon)[2] == moves, f"they stayed there ({steering(daemon)[2] - moves} moves)")
    f = Flows(net, call, 250, 80)
    stable("other SSRCs are relayed at once", f.outcome(), 250)
    f = Flows(net, call, 500, 80)
    tap(both(daemon), "and stay in the kernel soon")
    stable("without losing any", f.outcome(), 500)
    recorded(net, daemon, call)
    call.delete()
    tap(until(lambda: steering(daemon)[0] == 0), "nothing is left after the call")


def recorded(net, daemon, call):
    f = Flows(net, call, 800, 80)
    tap(both(daemon), "in the kernel before it is recorded")
    daemon.client.call("start recording", call_id=call.id)
    gone = until(lambda: steering(daemon)[0] == 0)

    def size():
        return sum(os.path.getsize(os.path.join(d, x)) for d, _, names in os.walk("/tmp/rec") for x in names)
    grown = until(lambda: size() > 20000)
    daemon.client.call("stop recording", call_id=call.id)
    tap(gone and grown, f"it comes back to be recorded ({size()} bytes)")
    tap(both(daemon), "and returns afterwards")
    stable("all that loses nothing", f.outcome(), 800)


def killed(net):
    """SIGKILL while media flow: they continue, and the next daemon takes over."""
    first = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1").wait_ready()
    call = calls.Call(first.client, 2, "plain", "plain", ip=("10.200.1.2", "10.200.2.2")).setup()
    f = Flows(net, call, 800, 80)
    tap(both(first), "media is in the kernel when the daemon is killed")
    first.process.kill()
    first.process.wait()
    second = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1").wait_ready()
    stable("nothing of it is lost over kill and start", f.outcome(), 800)
    tap("taken over" in second.text(), "the next daemon says that it took targets over")
    again = calls.Call(second.client, 3, "80", "plain", ip=("10.200.1.2", "10.200.2.2"))
    again.setup()
    again.delete()
    rig.note(second.text())
    second.stop()


def main():
    with netns.Net(("caller", "callee")) as net:
        shutil.rmtree("/tmp/rec", ignore_errors=True)
        os.makedirs("/tmp/rec")
        rig.track(net.gateway)
        daemon = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1", "--recording-dir=/tmp/rec").wait_ready()
        try:
            life(net, daemon)
        finally:
            rig.note(daemon.text())
            daemon.stop()
        killed(net)


rig.test(main)
