# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the guest's Python tests: TAP with the numbers of guest/lib.sh, the relay in its
namespaces, pktx."""
import ctypes
import os
import re
import subprocess
import sys
import time
import traceback

sys.path.insert(0, "/tree/t/e2e")
os.environ["BUILD"] = "/build"

PATIENCE = int(os.environ.get("PATIENCE", "1"))  # a kernel that checks itself is slower by this factor
NUMBER, FAILED = "/tmp/tap-number", "/tmp/tap-failed"


def tap(good, name):
    with open(NUMBER, encoding="ascii") as f:
        n = int(f.read()) + 1
    with open(NUMBER, "w", encoding="ascii") as f:
        f.write(f"{n}\n")
    if not good:
        with open(FAILED, "a", encoding="ascii") as f:
            f.write(name + "\n")
    print(f"{'ok' if good else 'not ok'} {n} - {name}", flush=True)
    return good


def equal(name, got, wanted):
    return tap(got == wanted, name if got == wanted else f"{name}: got {got!r}, wanted {wanted!r}")


def note(text):
    for line in str(text).splitlines():
        print("# " + line, flush=True)


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(text))


def run(args, check=True):
    p = subprocess.run([str(a) for a in args], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if check and p.returncode:
        raise RuntimeError(f"{' '.join(map(str, args))}: {p.stdout}")
    return p.stdout


def test(function):
    """Runs the test at once; an exception fails it."""
    try:
        function()
    except Exception:  # a test may fail in any way
        note(traceback.format_exc())
        tap(False, function.__name__ + " ran to its end")


def until(what, seconds=60):
    """Waits for a condition. Only a failure takes the whole time."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def settled():
    """Whether all sent packets are handled: no processor has packets waiting. For a test that sends
    and handles all on one processor."""
    def waiting():
        with open("/proc/net/softnet_stat", encoding="ascii") as f:
            return sum(int(line.split()[11], 16) for line in f)
    return until(lambda: waiting() == 0)


def one_processor():
    """For a test and its children from now on: packets keep their order and are handled before it
    continues."""
    os.sched_setaffinity(0, {0})


def free_kib():
    with open("/proc/meminfo", encoding="ascii") as f:
        return int(next(x for x in f if x.startswith("MemFree")).split()[1])


def sockets(pid):
    """Copies of a process's sockets, as another process gets them by SCM_RIGHTS."""
    copy = os.pidfd_open(pid)
    numbers = [int(n) for n in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{n}").startswith("socket:")]
    got = [ctypes.CDLL(None).syscall(438, copy, n, 0) for n in numbers]  # pidfd_getfd
    os.close(copy)
    return got


def pktx(*args):
    """A dictionary per receiver."""
    out = run(["/build/t/pktx", *args])
    return [{k: int(v) if v.lstrip("-").isdigit() else v for k, v in (w.split("=", 1) for w in part.split())}
            for part in out.strip().split(" | ")]


def track(ns):
    """Tracks connections of all packets in this namespace. Without a rule that needs it, the kernel
    does not."""
    run(["ip", "netns", "exec", ns, "nft", "add table inet look; add chain inet look c { type filter hook prerouting priority 0; }; "
         "add rule inet look c ct state new counter"])


def tracked(ns, ports=(30000, 39999)):
    """The tracked UDP connections with one of these ports, except those within the host: a client
    of ng may use any port, media ports included."""
    lines = run(["ip", "netns", "exec", ns, "cat", "/proc/net/nf_conntrack"]).splitlines()
    return [x for x in lines if " udp " in x and " src=127.0.0.1 dst=127.0.0.1 " not in x
            and any(ports[0] <= int(p) <= ports[1] for p in re.findall(r"port=(\d+)", x))]


class Nfx:
    """nfx in a namespace: one socket, which owns its targets. Each line gives (errno, the kernel's
    explanation, replies)."""

    def __init__(self, ns):
        args = ["ip", "netns", "exec", ns, "/build/t/nfx"]
        self.p = subprocess.Popen(args, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        return self._rows(line)

    def _rows(self, line):
        rows = []
        while True:
            said = self.p.stdout.readline()
            if not said:
                raise RuntimeError(f"nfx ended at: {line}")
            if said.startswith("= "):
                code, _, text = said[2:].rstrip().partition(" ")
                return int(code), text, rows
            rows.append({k: int(v) if v.isdigit() else v for k, v in (w.split("=", 1) for w in said.split() if "=" in w)})

    def ok(self, line):
        code, text, rows = self(line)
        if code:
            raise RuntimeError(f"{line}: {code} {text}")
        return rows

    def hello(self, owner=1, grace=1000):
        return self.ok(f"hello version=1 features=0x7ff owner={owner} grace={grace}")[0]

    def ring_stop(self):
        """Ends "ring run" and returns what it did. Any line ends it."""
        self.p.stdin.write("ring state\n")
        self.p.stdin.flush()
        return self._rows("ring run")[2][0], self._rows("ring state")[2][0]

    def close(self, kill=False):
        if kill:
            self.p.kill()
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()


class Way:
    """The addresses of one family in netns.Net: caller a, gateway g towards a and h towards b, callee b."""

    def __init__(self, net, v6):
        self.net, self.v6 = net, v6
        one, two = ("fd00:1::", "fd00:2::") if v6 else ("10.200.1.", "10.200.2.")
        self.a, self.g, self.h, self.b = one + "2", one + "1", two + "1", two + "2"
        self.name = "IPv6" if v6 else "IPv4"

    def neighbours(self):
        """Neighbours that never expire. Otherwise packets wait until one is resolved, later ones may
        overtake them on another processor, and too many are lost."""
        gateway = self.net.gateway
        for i, (name, near, far) in enumerate((("caller", self.g, self.a), ("callee", self.h, self.b)), 1):
            ns = self.net.terminal[name]
            for where, address, dev, other, other_dev in ((ns, near, f"t{i}", gateway, f"g{i}"), (gateway, far, f"g{i}", ns, f"t{i}")):
                mac = run(["ip", "netns", "exec", other, "cat", f"/sys/class/net/{other_dev}/address"]).strip()
                run(["ip", "-n", where, "neigh", "replace", address, "lladdr", mac, "dev", dev, "nud", "permanent"])

    def flow(self, *more, to=(None, 30000), recv=None, port=4000):
        """Sends from the caller's port to the gateway's; the callee's port 5000 receives unless
        specified."""
        g = self.net.gateway
        there = {"b": f"{self.net.terminal['callee']},{self.b},5000", "g": f"{g},{self.g},30000", "h": f"{g},{self.h},30002"}
        args = []
        for r in recv or ["b"]:
            args += ["--recv", there.get(r, r)]
        return pktx("flow", "--from", f"{self.net.terminal['caller']},{self.a},{port}", "--to", f"{to[0] or self.g},{to[1]}", *args, *more)

    def target(self, action="relay", more="", dest=True, port=30000):
        d = f" dest={self.b},5000,{self.h},30002" if dest and action == "relay" else ""
        return f"set +create addr={self.g} port={port} action={action} {more}{d}"
