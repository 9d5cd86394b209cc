# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the processor's time goes: samples by the kernel's clock event, without perf. Context
manager; top() has (share, where) afterwards, the most frequent first. Idle time is left out. Code
that runs with interrupts disabled counts where they are enabled again."""
import bisect
import collections
import ctypes
import mmap
import os
import struct

PERIOD_NS, PAGES = 24989, 1024
SOFTWARE, CPU_CLOCK, IP_AND_TID = 1, 0, 3
PERF_EVENT_OPEN, ENABLE, DISABLE = 298, 0x2400, 0x2401
IDLE = ("default_idle", "native_safe_halt", "mwait_idle", "acpi_idle_do_entry", "acpi_safe_halt", "pv_native_safe_halt", "cpuidle_enter_state",
        "acpi_processor_ffh_cstate_enter", "default_idle_call", "default_enter_idle", "do_idle")
SYMBOLS = "/guest/symbols"  # of xcipherd, by nm

libc = ctypes.CDLL(None, use_errno=True)


class Table:
    """Symbols by address."""

    def __init__(self, path):
        rows = []
        with open(path, encoding="utf-8") as f:
            for line in f:
                address, kind, name = line.split()[:3]
                if kind in "tTwW":
                    rows.append((int(address, 16), name))
        rows.sort()
        self.at, self.names = [a for a, _ in rows], [n for _, n in rows]

    def name(self, address):
        i = bisect.bisect_right(self.at, address) - 1
        return self.names[i] if i >= 0 else "?"


def maps_of(pid):
    """[(from, to, offset, path)]."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            rows = [line.split() for line in f]
    except OSError:
        return []
    return [(*(int(x, 16) for x in r[0].split("-")), int(r[2], 16), r[5] if len(r) > 5 else "") for r in rows if "x" in r[1]]


class Samples:
    def __enter__(self):
        attr = struct.pack("<IIQQQQQ", SOFTWARE, 112, CPU_CLOCK, PERIOD_NS, IP_AND_TID, 0, 1).ljust(112, b"\0")
        self.fd = libc.syscall(PERF_EVENT_OPEN, ctypes.c_char_p(attr), -1, 0, -1, 0)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "perf_event_open")
        self.map = mmap.mmap(self.fd, (PAGES + 1) * mmap.PAGESIZE)
        libc.ioctl(self.fd, ENABLE, 0)
        return self

    def __exit__(self, *_):
        libc.ioctl(self.fd, DISABLE, 0)
        head = struct.unpack_from("<Q", self.map, 1024)[0]
        data, size = mmap.PAGESIZE, PAGES * mmap.PAGESIZE
        head = min(head, size)
        self.raw, at = [], 0
        while at < head:
            kind, _, length = struct.unpack_from("<IHH", self.map, data + at)
            if kind == 9:  # a sample
                self.raw.append(struct.unpack_from("<QI", self.map, data + at + 8))
            at += length or head
        self.map.close()
        os.close(self.fd)

    def top(self, count):
        kernel, own = Table("/proc/kallsyms"), Table(SYMBOLS)
        maps, seen = {}, collections.Counter()
        for ip, pid in self.raw:
            if ip >> 63:
                seen[kernel.name(ip)] += 1
                continue
            if pid not in maps:
                maps[pid] = maps_of(pid)
            where = next((m for m in maps[pid] if m[0] <= ip < m[1]), None)
            if not where:
                seen["load"] += 1  # it has ended
                continue
            file = os.path.basename(where[3])
            seen[f"{file}: {own.name(ip - where[0] + where[2])}" if file == "xcipherd" else file] += 1
        for name in IDLE:
            seen.pop(name, None)
        total = sum(seen.values()) or 1
        return [(n / total, name) for name, n in seen.most_common(count)], total
