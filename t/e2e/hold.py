# SPDX-License-Identifier: GPL-2.0-or-later
"""A thread of a daemon that stands still for a while, as if its disk or device did."""
import contextlib
import ctypes
import os

from run import Skip

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


@contextlib.contextmanager
def thread(pid, name):
    """The daemon's first thread whose name begins so stands still meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    tid = next(int(t) for t in os.listdir(f"/proc/{pid}/task") if open(f"/proc/{pid}/task/{t}/comm", encoding="ascii").read().strip().startswith(name))
    if libc.ptrace(PTRACE_SEIZE, tid, None, None):
        raise Skip(f"no ptrace here: {os.strerror(ctypes.get_errno())}")
    assert libc.ptrace(PTRACE_INTERRUPT, tid, None, None) == 0
    os.waitpid(tid, WALL)
    try:
        yield
    finally:
        assert libc.ptrace(PTRACE_DETACH, tid, None, None) == 0
