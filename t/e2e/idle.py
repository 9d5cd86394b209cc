# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits until the relays of a test have nothing left to do. A packet that has not come by then does not come, on a busy machine and
under t/late too. Tests that expect no packet call this first, and then need no time limit that a late thread could exceed."""
import os
import platform
import time

import relay

# nanosleep and clock_nanosleep: a thread that lets a batch gather, or one that t/late makes late. Both still have something to do.
PAUSES = {"x86_64": ("35", "230"), "aarch64": ("101", "115")}[platform.machine()]
BACKLOG = 11  # column of softnet_stat: packets that the processor has not yet passed on


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def threads(pid):
    """Each thread's system call, and how often it has slept so far. None: one has something to do."""
    seen = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        task = f"/proc/{pid}/task/{tid}"
        call = read(f"{task}/syscall").split()
        if call[0] == "running" or call[0] in PAUSES:
            return None
        slept = next(line for line in read(f"{task}/status").splitlines() if line.startswith("voluntary"))
        seen.append((tid, call[0], slept))
    return sorted(seen)


def sockets(pid):
    """Inode numbers of its sockets."""
    links = (os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    return {link[len("socket:["):-1] for link in links if link.startswith("socket:[")}


def all_read(pid):
    """Nothing waits for the relay: neither on the way to a socket, nor in a UDP or netlink socket (NFQUEUE) of its own."""
    if any(int(line.split()[BACKLOG], 16) for line in read("/proc/net/softnet_stat").splitlines() if len(line.split()) > BACKLOG):
        return False
    unread = set()
    for kind in ("udp", "udp6"):
        rows = [line.split() for line in read(f"/proc/{pid}/net/{kind}").splitlines()[1:]]
        unread |= {row[9] for row in rows if not row[4].endswith(":00000000")}
    rows = [line.split() for line in read(f"/proc/{pid}/net/netlink").splitlines()[1:]]
    unread |= {row[9] for row in rows if row[4] != "0"}
    return not unread or not unread & sockets(pid)


def looks_idle(pid):
    """What was seen of it, or None if it has something to do."""
    try:
        before = threads(pid)
        return before if before and all_read(pid) and before == threads(pid) else None
    except (FileNotFoundError, ProcessLookupError):
        return None  # a thread or a descriptor has just ended


def has_a_sleeper(pid):
    """ThreadSanitizer has a thread of its own that sleeps between looks."""
    try:
        return "libtsan" in read(f"/proc/{pid}/maps")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


def wait_idle(seconds=60):
    """For all daemons of this test. Where threads cannot be looked at it returns at once. rtpengine's threads sleep between looks, so
    nothing shows whether it is idle."""
    for r in (r for r in relay.Relay.started if isinstance(r, relay.Xcipherd) and not has_a_sleeper(r.pid())):
        end = time.monotonic() + seconds
        last = None
        while r.process.poll() is None:
            try:
                seen = looks_idle(r.pid())
            except PermissionError:
                return
            if seen and seen == last:
                break
            assert time.monotonic() < end, f"{r.name} {r.pid()} is not idle within {seconds} s"
            last = seen
            time.sleep(0.002)
