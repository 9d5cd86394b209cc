# SPDX-License-Identifier: GPL-2.0-or-later
"""A thread of a daemon that stands still for a while, as if its disk or device did."""
import contextlib
import ctypes
import os
import platform
import time

from run import Skip

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


# poll, ppoll, epoll_wait, epoll_pwait, epoll_pwait2, io_uring_enter
WAITS = {"x86_64": (7, 271, 232, 281, 441, 426), "aarch64": (73, 22, 441, 426)}[platform.machine()]


def waits(pid, tid):
    """Whether it was stopped where it waits for work. Anywhere else it may have a lock, of the allocator's for one, that others need."""
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as f:
        return f.read().split()[0] in map(str, WAITS)


@contextlib.contextmanager
def thread(pid, name):
    """The daemon's first thread whose name begins so stands still meanwhile."""
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
