# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads of a daemon: stops one for a while, as a slow disk or device would, and shows where one waits."""
import contextlib
import ctypes
import os
import platform
import subprocess
import threading
import time

from run import Skip

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


# poll, ppoll, epoll_wait, epoll_pwait, epoll_pwait2, io_uring_enter
WAITS = {"x86_64": (7, 271, 232, 281, 441, 426), "aarch64": (73, 22, 441, 426)}[platform.machine()]


def waits(pid, tid):
    """Whether the thread was stopped while waiting for work. Elsewhere it may hold a lock, such as
    the allocator's, that others need."""
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as f:
        return f.read().split()[0] in map(str, WAITS)


@contextlib.contextmanager
def thread(pid, name):
    """Stops the daemon's first thread with this name prefix meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    tid = next(int(t) for t in os.listdir(f"/proc/{pid}/task") if open(f"/proc/{pid}/task/{t}/comm", encoding="ascii").read().strip().startswith(name))
    end = time.monotonic() + 60
    while True:
        if libc.ptrace(PTRACE_SEIZE, tid, None, None):
            raise Skip(f"no ptrace here: {os.strerror(ctypes.get_errno())}")
        assert libc.ptrace(PTRACE_INTERRUPT, tid, None, None) == 0
        os.waitpid(tid, WALL)
        if waits(pid, tid):
            break
        assert libc.ptrace(PTRACE_DETACH, tid, None, None) == 0
        assert time.monotonic() < end, f"{name} never waits"
        time.sleep(0.01)
    try:
        yield
    finally:
        assert libc.ptrace(PTRACE_DETACH, tid, None, None) == 0


# Kernel functions (wchan, proc(5)) in which a thread waits for a peer or a time: poll, select,
# connect, reading, writing, sleeping. Not included: ep_poll (the next event), locks, disks.
WAITS_FOR_A_PEER = ("poll_schedule_timeout", "do_poll", "do_sys_poll", "do_select", "connect", "skb_wait_for_more_packets", "sk_wait_data", "wait_woken", "sk_stream_wait",
                    "unix_stream_data_wait", "sock_alloc_send", "pipe_read", "pipe_write", "nanosleep")


class Sleeps:
    """Context manager that samples where a thread waits and collects the names in seen. The
    machine's load does not matter, because a runnable thread does not wait."""

    def __init__(self, pid, tid=None):
        self.path, self.seen, self.looks, self.over = f"/proc/{pid}/task/{tid or pid}/wchan", set(), 0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.over.wait(0.001):
            with open(self.path, encoding="ascii") as f:
                self.seen.add(f.read())
            self.looks += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def for_a_peer(self):
        words = [w for w in WAITS_FOR_A_PEER if w != "nanosleep" or "LATE_LIBRARY" not in os.environ]  # t/late lets threads sleep
        return {s for s in self.seen if any(w in s for w in words)}


def shows_waits():
    """Whether this kernel shows where a thread waits. Fails if the wait of a process on a pipe has
    an unknown name."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        with Sleeps(p.pid) as sleeps:
            end = time.monotonic() + 60
            while not sleeps.for_a_peer() and time.monotonic() < end and (sleeps.seen != {"0"} or sleeps.looks < 1000):
                time.sleep(0.01)
        p.stdin.close()
    assert sleeps.for_a_peer() or sleeps.seen == {"0"}, sleeps.seen
    return bool(sleeps.for_a_peer())


@contextlib.contextmanager
def never_waits(daemon):
    """Checks that the control thread (the first one) waits only for the next event, not for a
    client, Redis or DNS."""
    if not shows_waits():
        raise Skip("this kernel does not say where a thread waits")
    with Sleeps(daemon.pid()) as sleeps:
        yield
    assert sleeps.looks and not sleeps.for_a_peer(), sleeps.seen
