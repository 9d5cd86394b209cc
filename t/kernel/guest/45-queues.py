#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""AF_XDP with two queues on an interface and two workers, on two processors: SRTP of all calls is
relayed, whichever queue a packet arrives by."""
import rig
import calls
import netns
import relay

PER_LEG, SECONDS = 25, 2


def two_queues(net):
    """Replaces g1 and t1 by links with two queues each."""
    queues = "numtxqueues 2 numrxqueues 2"
    me = net.terminal["caller"]
    net.run(net.gateway, *"ip link del g1".split())
    net.run(net.gateway, *f"ip link add g1 {queues} type veth peer name t1 {queues} netns {me}".split())
    for where, dev, host in ((net.gateway, "g1", 1), (me, "t1", 2)):
        net.run(where, *f"ip addr add 10.200.1.{host}/24 dev {dev}".split())
        net.run(where, *f"ip link set {dev} up".split())


def relayed(*options):
    name = " ".join(("xdp",) + options)
    with netns.Net(("caller", "callee")) as net:
        two_queues(net)
        # Without a window, calls are spread over the workers from the first one on.
        daemon = relay.Xcipherd(net, "--steering=xdp", "--engine=serial", "--workers=2", "--batch-window=0", *options).wait_ready()
        try:
            some = [calls.Call(daemon.client, n, "80", "32").setup() for n in range(8)]
            got = calls.load(net, "/build", some, PER_LEG, SECONDS)
            rig.note(got)
            rig.equal(f"{name}: all packets arrive once, in order, authentic",
                      (got["lost"], got["duplicates"], got["reordered"], got["wrong"], got["bad_auth"]), (0, 0, 0, 0, 0))
            s = daemon.statistics()
            rig.equal(f"{name}: losses of the steering", (s["overruns"], s["send errors"]), (0, 0))
            rig.tap(s["handed over between workers"] > 0, f"{name}: a packet in the wrong queue goes to its worker")
        finally:
            rig.note(daemon.text())
            rig.equal(f"{name}: exit status", daemon.stop(), 0)


for mode in ((), ("--xdp-mode=skb",)):
    rig.test(lambda: relayed(*mode))
