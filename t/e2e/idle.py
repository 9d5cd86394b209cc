# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits until the relays of a test are idle. After that no packet arrives, even on a busy machine
or under t/late. A test that expects no packet calls this first, so that no late thread can spoil
it."""
import os
import platform
import time

import relay

# nanosleep and clock_nanosleep: a thread that collects a batch, or that t/late delays. Both have
# work left.
PAUSES = {"x86_64": ("35", "230"), "aarch64": ("101", "115")}[platform.machine()]
# While it records, this thread looks for packets every 20 ms. It sends none.
RECORDER = "recording"
# In a guest whose clock counts instructions nothing is late, and this time costs nothing, but a look costs a second.
PAUSE = float(os.environ.get("IDLE_PAUSE", "0"))
BACKLOG = 11  # column of softnet_stat: packets the processor has not processed yet


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def threads(pid):
    """Each thread's system call and its number of sleeps. None: a thread is working. The main thread
    comes first and without that number: its timers wake it every 50 ms, and a busy machine takes
    longer for a look. If it gave work to another thread between two looks, that thread's number has changed."""
    seen = []
    for tid in sorted(map(int, os.listdir(f"/proc/{pid}/task")), key=lambda t: (t != pid, t)):
        task = f"/proc/{pid}/task/{tid}"
        status = read(f"{task}/status").splitlines()
        if status[0] == f"Name:\t{RECORDER}":
            continue
        call = read(f"{task}/syscall").split()
        if call[0] == "running" or call[0] in PAUSES:
            return None
        slept = next(line for line in status if line.startswith("voluntary"))
        seen.append((tid, call[0], None if tid == pid else slept))
    return seen


def sockets(pid):
    """Inode numbers of the process's sockets."""
    links = (os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    return {link[len("socket:["):-1] for link in links if link.startswith("socket:[")}


def no_backlog():
    """No packet waits for a processor on its way to a socket."""
    return not any(int(line.split()[BACKLOG], 16) for line in read("/proc/net/softnet_stat").splitlines() if len(line.split()) > BACKLOG)


def all_read(pid):
    """No packet waits for the relay, neither on the way to a socket nor in its UDP or netlink
    (NFQUEUE) sockets."""
    if not no_backlog():
        return False
    unread = set()
    for kind in ("udp", "udp6"):
        rows = [line.split() for line in read(f"/proc/{pid}/net/{kind}").splitlines()[1:]]
        unread |= {row[9] for row in rows if not row[4].endswith(":00000000")}
    rows = [line.split() for line in read(f"/proc/{pid}/net/netlink").splitlines()[1:]]
    unread |= {row[9] for row in rows if row[4] != "0"}
    return not unread or not unread & sockets(pid)


def looks_idle(pid):
    """The observed state, or None if the process is working."""
    try:
        before = threads(pid)
        return before if before and all_read(pid) and before == threads(pid) else None
    except (FileNotFoundError, ProcessLookupError):
        return None  # a thread or a descriptor has just gone


def has_a_sleeper(pid):
    """A thread of ThreadSanitizer sleeps and wakes all the time."""
    try:
        return "libtsan" in read(f"/proc/{pid}/maps")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


def wait_idle(seconds=120):
    """Waits for all daemons of this test. Returns at once where threads cannot be inspected.
    rtpengine's threads sleep and poll, so they never look idle."""
    if PAUSE:
        time.sleep(PAUSE)
        return
    for r in (r for r in relay.Relay.started if isinstance(r, relay.Xcipherd) and not has_a_sleeper(r.pid())):
        end = time.monotonic() + seconds
        last = None
        while r.process.poll() is None:
            try:
                seen = looks_idle(r.pid())
            except PermissionError:
                return
            # Twice in a row, because each thread wakes up once a second, perhaps in between.
            if seen and last:
                break
            assert time.monotonic() < end, f"{r.name} {r.pid()} is not idle within {seconds} s"
            last = seen
            time.sleep(0.002)
