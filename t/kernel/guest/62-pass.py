#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Passed-through SRTP and its RTCP stay in the kernel: libsrtp2 at both ends shares keys end to
end. Media return to the daemon for recording and changes without loss. Their sequence numbers
are reported, so that the index is known for re-encryption."""
import importlib.util
import os
import threading

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

PASS = {"flags": ["passthrough", "strict-source"]}
IP = ("10.200.1.2", "10.200.2.2")


def authentic(net, daemon):
    some = [calls.Call(daemon.client, n, s, s, flags=PASS).setup() for n, s in enumerate(("80", "AEAD_AES_128_GCM"))]
    equal("keys are shared end to end", [c.wire for c in some], [[c.key[1], c.key[0]] for c in some])
    got = {}
    t = threading.Thread(target=lambda: got.update(calls.load(net, "/build", some, 50, 5)))
    t.start()
    tap(relayed.until(lambda: relayed.steering(daemon)[0] == 8), "RTP and RTCP of both calls go to the kernel")
    rig.note(relayed.steering(daemon))
    t.join()
    rig.note(got)
    equal("all packets arrive once, in order, authentic", [got[k] for k in ("lost", "duplicates", "reordered", "wrong", "bad_auth")], [0] * 5)
    equal("RTCP too", got["rtcp_received"], got["rtcp_sent"])
    streams, packets, _ = relayed.steering(daemon)
    tap(packets > 200, f"the kernel relayed {packets} of {got['sent'] + got['rtcp_sent']}")
    _, counted = relayed.queried(daemon, some[0])
    equal("query counts what both relayed", [counted[c["port"]] for c in (some[0].to_caller, some[0].to_callee)], [got["sent"] // 4] * 2)
    for c in some:
        c.delete()
    tap(relayed.until(lambda: relayed.steering(daemon)[0] == 0), "nothing is left after the calls")


def there(daemon):
    return relayed.until(lambda: relayed.steering(daemon)[0] == 2)


def changes(net, daemon):
    call = calls.Call(daemon.client, 9, "80", "80", ip=IP, flags=PASS).setup()
    nfx = rig.Nfx(net.gateway)
    target = f"get addr={call.to_caller['ip']} port={call.to_caller['port']}"
    f = relayed.Flows(net, call, 800, 80)
    tap(there(daemon), "what nobody can decipher goes as well")
    first = nfx.ok(target)[0].get("seq")
    relayed.until(lambda: nfx.ok(target)[0].get("seq") != first)
    second = nfx.ok(target)[0].get("seq")
    tap(first is not None and 0 < second - first < 800, f"its sequence numbers are told ({first}, {second})")
    call.setup(again=True)
    tap(there(daemon), "after a re-INVITE it returns to the kernel")
    daemon.client.call("start recording", call_id=call.id)
    tap(relayed.until(lambda: relayed.steering(daemon)[0] == 0), "it comes back to be recorded")
    daemon.client.call("stop recording", call_id=call.id)
    tap(there(daemon), "and returns afterwards")
    relayed.stable("all that loses, repeats, reorders nothing", f.outcome(), 800)
    call.flags = {}
    call.setup(again=True)
    tap(relayed.until(lambda: relayed.steering(daemon)[0] == 0), "re-encrypted, it is the daemon's")
    nfx.close()
    call.delete()


def main():
    with netns.Net(("caller", "callee")) as net:
        os.makedirs("/tmp/rec", exist_ok=True)
        daemon = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1", "--recording-dir=/tmp/rec").wait_ready()
        try:
            authentic(net, daemon)
            changes(net, daemon)
        finally:
            rig.note(daemon.text())
            daemon.stop()


rig.test(main)
