#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The module relays no packets whose source the host would refuse at that interface. It obeys rp_filter and accept_local."""
import rig
from rig import equal
import netns

# Without the module, the host refuses the IPv4 ones except the last two, and the first two IPv6 ones.
MARTIANS = {False: ("127.0.0.1", "127.9.9.9", "0.0.0.0", "224.0.0.9", "255.255.255.255", "10.200.1.1", "10.200.2.1", "0.1.2.3", "10.200.1.255"),
            True: ("::1", "ff02::9", "::", "fd00:1::1", "fd00:2::1", "::ffff:10.200.1.2")}


def sent(w, nfx):
    return nfx.ok(f"get addr={w.g} port=30000")[0]["SENT"]


def relayed(w, nfx, source):
    """The number of five packets from this source that are relayed."""
    before = sent(w, nfx)
    ns, gateway = w.net.terminal["caller"], w.net.gateway
    mac = rig.run(["ip", "netns", "exec", gateway, "cat", "/sys/class/net/g1/address"]).strip()
    rig.run(["/build/t/pktx", "raw", "--dev", f"{ns},t1,{mac}", "--from", f"{source},4000",
             "--to", f"{w.g},30000", "--kind", "good", "--count", 5])
    rig.settled()
    return sent(w, nfx) - before


def sysctl(w, **keys):
    for key, value in keys.items():
        w.net.run(w.net.gateway, "sh", "-c", f"echo {value} > /proc/sys/net/ipv4/conf/g1/{key}")


def sources(w, nfx):
    nfx.ok(w.target())
    equal(f"{w.name}: control: the caller's packets are relayed", relayed(w, nfx, w.a), 5)
    equal(f"{w.name}: sources that cannot be are not relayed", {s: relayed(w, nfx, s) for s in MARTIANS[w.v6]}, dict.fromkeys(MARTIANS[w.v6], 0))
    equal(f"{w.name}: the caller's still are", relayed(w, nfx, w.a), 5)


def settings(w, nfx):
    nfx.ok(w.target())
    equal("control: without rp_filter the callee's address may come by the caller's link", relayed(w, nfx, w.b), 5)
    sysctl(w, rp_filter=1)
    rig.until(lambda: relayed(w, nfx, w.b) == 0)
    equal("rp_filter 1: the way back must lead out of the interface", [relayed(w, nfx, s) for s in (w.b, "203.0.113.9", w.a)], [0, 0, 5])
    sysctl(w, rp_filter=2)
    equal("rp_filter 2: there must be a way back", [relayed(w, nfx, s) for s in (w.b, "203.0.113.9", w.a)], [5, 0, 5])
    sysctl(w, rp_filter=0, accept_local=1)
    equal("accept_local: our own address is accepted", relayed(w, nfx, w.h), 5)
    sysctl(w, accept_local=0)
    equal("and then no longer", relayed(w, nfx, w.h), 0)


def main():
    rig.one_processor()
    with netns.Net(("caller", "callee")) as net:
        nfx = rig.Nfx(net.gateway)
        nfx.hello()
        for v6 in (False, True):
            w = rig.Way(net, v6)
            rig.test(lambda w=w: sources(w, nfx))
        rig.test(lambda: settings(rig.Way(net, False), nfx))
        nfx.close()


rig.test(main)
