#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A subscriber to a plain call gets its copies from the kernel, like the peer. Subscribing and
unsubscribing loses no packet."""
import importlib.util
import socket

import rig
from rig import equal, tap
import calls
import netns
import ng
import relay

spec = importlib.util.spec_from_file_location("relayed", "/guest/60-relay.py")
relayed = importlib.util.module_from_spec(spec)
rig_test, rig.test = rig.test, lambda f: None  # imports its functions without running it
spec.loader.exec_module(relayed)
rig.test = rig_test

IP = ("10.200.1.2", "10.200.2.2")


class Ear:
    def __init__(self, net, daemon, port, call_id, from_tag):
        self.s = ng.socket_in(net.terminal["callee"])
        self.s.bind((IP[1], port))
        self.s.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE: it is read late
        self.s.settimeout(0)
        self.daemon, self.call_id = daemon, call_id
        reply = calls.ok(daemon.client.call("subscribe request", call_id=call_id, from_tag=from_tag, transport_protocol="RTP/AVP"))
        self.tag = reply["to-tag"]
        body = calls.sdp(IP[1], port).replace("a=sendrecv", "a=recvonly")
        calls.ok(daemon.client.call("subscribe answer", call_id=call_id, to_tag=self.tag, sdp=body))

    def leave(self):
        calls.ok(self.daemon.client.call("unsubscribe", call_id=self.call_id, to_tag=self.tag))

    def heard(self):
        """Sequence numbers received since the last call."""
        out = []
        while True:
            try:
                p = self.s.recv(2048)
            except BlockingIOError:
                return out
            out += [int.from_bytes(p[2:4], "big")] if p[1] < 192 else []


def gapless(numbers):
    return all((b - a) % 65536 == 1 for a, b in zip(numbers, numbers[1:]))


def subscribed(net, daemon):
    call = calls.Call(daemon.client, 1, "plain", "plain", ip=IP).setup()
    ears = [Ear(net, daemon, 6000, call.id, "a" + call.id)]
    f = relayed.Flows(net, call, 700, 80)
    tap(relayed.both(daemon), "a call with a listener goes to the kernel")
    ears[0].heard()
    now = []
    relayed.until(lambda: now.extend(ears[0].heard()) or len(now) > 40)
    tap(len(now) > 40 and gapless(now), f"which sends the copies, too ({len(now)})")
    ears.append(Ear(net, daemon, 6002, call.id, "a" + call.id))
    tap(relayed.both(daemon), "it returns with one more")
    ears[0].leave()
    tap(relayed.both(daemon), "and with one less")
    last = now[-1:] + ears[0].heard()
    tap(gapless(last), f"who left heard all until then ({len(last)})")
    relayed.stable("meanwhile nothing is lost, repeated, reordered between the parties", f.outcome(), 700)
    both = ears[1].heard()
    tap(len(both) > 100 and gapless(both), f"nor for who stayed ({len(both)})")
    q = calls.ok(daemon.client.call("query", call_id=call.id))["tags"][ears[1].tag]["medias"][0]["streams"][0]["stats_out"]["packets"]
    equal("all that was sent to it is counted", q, len(both))
    call.delete()


def main():
    with netns.Net(("caller", "callee")) as net:
        daemon = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1").wait_ready()
        try:
            subscribed(net, daemon)
        finally:
            rig.note(daemon.text())
            daemon.stop()


rig.test(main)
