#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Inbound policies of IPsec. Packets that a policy refuses reach neither ring, queue nor relay, and no
socket. Packets that came by the right security association do. Those of other terminals, which no
policy names, do, too."""
import rig
from rig import equal
import netns

KEY = "0x" + "11" * 20
REFUSED = "XfrmInTmplMismatch"


def brief(r):
    return r["got"], r["dup"], r["late"], r["bad"]


def ip(ns, *args):
    rig.run(["ip", "-n", ns, *args])


def refused(ns):
    """Packets that the stack refused because of a policy."""
    text = rig.run(["ip", "netns", "exec", ns, "cat", "/proc/net/xfrm_stat"])
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(REFUSED + " ") or line.startswith(REFUSED + "\t")))


def policy(w, on, source):
    """Datagrams from this address to port 30000 must come by ESP."""
    args = ["dir", "in", "src", source, "dst", w.g, "proto", "17", "dport", "30000"]
    if on:
        args += ["tmpl", "proto", "esp", "mode", "transport", "level", "required"]
    ip(w.net.gateway, "xfrm", "policy", "add" if on else "delete", *args)


def association(w):
    """From caller to gateway: the state at both, and the caller's policy to use it."""
    caller, ends = w.net.terminal["caller"], ["src", w.a, "dst", w.g]
    state = [*ends, "proto", "esp", "spi", "0x1000", "mode", "transport", "enc", "ecb(cipher_null)", "", "auth", "hmac(sha1)", KEY]
    for ns in (caller, w.net.gateway):
        ip(ns, "xfrm", "state", "add", *state)
    ip(caller, "xfrm", "policy", "add", "dir", "out", *ends, "proto", "17", "dport", "30000", "tmpl", *ends, "proto", "esp", "mode", "transport")


def release(w):
    for ns in (w.net.terminal["caller"], w.net.gateway):
        ip(ns, "xfrm", "state", "flush")
        ip(ns, "xfrm", "policy", "flush")


def flow(w, count=20, recv="b"):
    return brief(w.flow("--count", count, recv=[recv])[0])


def way(nfx, w, name, seen):
    """seen(): packets that the module took so far."""
    before, drops = seen(), refused(w.net.gateway)
    policy(w, True, w.b)
    equal(f"{w.name}, {name}: a policy for another source changes nothing", flow(w), (20, 0, 0, 0))
    equal(f"{w.name}, {name}: the module takes all", seen() - before, 20)
    policy(w, True, w.a)
    equal(f"{w.name}, {name}: in clear against the policy: none arrives", flow(w), (0, 0, 0, 0))
    rig.settled()
    equal(f"{w.name}, {name}: the module took none, the stack refused and counted all", (seen() - before, refused(w.net.gateway) - drops >= 20), (20, True))
    if not w.v6:
        association(w)
        equal(f"{w.name}, {name}: by the security association: all arrive", flow(w), (20, 0, 0, 0))
        equal(f"{w.name}, {name}: the module takes all of these", seen() - before, 40)
    release(w)
    equal(f"{w.name}, {name}: without policies as before", flow(w), (20, 0, 0, 0))


def counted(nfx, w, name):
    return lambda: nfx.ok(f"get addr={w.g} port=30000")[0][name]


def ring(nfx, w):
    nfx.ok("ring open 64 64")
    nfx.ok(w.target("queue", "queue=99"))
    nfx.ok(f"set +create addr={w.h} port=30002 action=queue queue=99")
    nfx.ok(f"ring run {w.h},30002,{w.b},5000 wake=1 window=0")
    look = rig.Nfx(w.net.gateway)
    try:
        way(look, w, "ring", counted(look, w, "QUEUED"))
    finally:
        look.close()
        nfx.ring_stop()
        nfx.ok("ring close")


def relay(nfx, w):
    nfx.ok(w.target())
    way(nfx, w, "relay", counted(nfx, w, "RELAYED"))


def default(nfx, w):
    """Without any policy, but with the rule that everything needs one."""
    nfx.ok(w.target())
    seen = counted(nfx, w, "RELAYED")
    before = seen()
    ip(w.net.gateway, "xfrm", "policy", "setdefault", "in", "block")
    equal(f"{w.name}: by default refused: none arrives", (flow(w), seen() - before), ((0, 0, 0, 0), 0))
    ip(w.net.gateway, "xfrm", "policy", "setdefault", "in", "accept")
    equal(f"{w.name}: by default accepted: all arrive", flow(w), (20, 0, 0, 0))


with netns.Net(("caller", "callee")) as net:
    rig.one_processor()
    nfx = rig.Nfx(net.gateway)
    nfx.hello(owner=1)
    for w in (rig.Way(net, False), rig.Way(net, True)):
        for part in (ring, relay, default):
            rig.test(lambda: part(nfx, w))
            release(w)
    nfx.close()
