#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The capabilities of xcipherd's threads under kernel steering, with the ring and without, as root and as another user: CAP_NET_ADMIN and
CAP_NET_RAW, as xcipherd(8) says, and CAP_IPC_LOCK only where the limit of locked memory is finite. Media that the module relays show
that they suffice."""
import rig
from rig import equal, tap
import calls
import netns
import relay
import test_privileges as privileges

NEEDED = privileges.NET_ADMIN | privileges.NET_RAW


def by_thread(daemon):
    """{set: capabilities of any thread}, those of the main thread that are in force, names."""
    found, lock = privileges.threads(daemon)
    any_of = dict.fromkeys(privileges.SETS, 0)
    for _, fields in found:
        for which in privileges.SETS:
            any_of[which] |= int(fields[which], 16) & ~lock
    main = next(int(fields["CapEff"], 16) & ~lock for _, fields in found if fields["Pid"] == str(daemon.pid()))
    return any_of, main, {name for name, _ in found}


def kept(name, *options):
    with netns.Net(("caller", "callee")) as net:
        daemon = relay.Xcipherd(net, "--steering=kernel", "--engine=serial", "--workers=1", *options).wait_ready()
        try:
            any_of, main, names = by_thread(daemon)
            tap(names >= {"xcipherd", "worker-0"}, f"{name}: threads {sorted(names)}")
            equal(f"{name}: capabilities in force after the start", main, NEEDED)
            equal(f"{name}: no set of a thread has others", {k: v & ~NEEDED for k, v in any_of.items()}, dict.fromkeys(any_of, 0))
            some = [calls.Call(daemon.client, n, "80", "plain").setup() for n in range(2)]
            got = calls.load(net, "/build", some, 50, 1)
            equal(f"{name}: media are relayed", (got["lost"], got["wrong"], got["bad_auth"]), (0, 0, 0))
            equal(f"{name}: and the same afterwards", by_thread(daemon)[:2], (any_of, main))
            equal(f"{name}: the daemon ends", daemon.stop(), 0)
        finally:
            rig.note(daemon.text())


for title, how in (("root", ()), ("without the ring", ("--kernel-ring=no",)), ("another user", ("--user=65534",))):
    rig.test(lambda title=title, how=how: kept(title, *how))
