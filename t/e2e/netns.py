# SPDX-License-Identifier: GPL-2.0-or-later
"""Network namespaces for one test run: a gateway and terminals, each on its own link.

caller 10.200.1.2 --- 10.200.1.1 gateway 10.200.2.1 --- 10.200.2.2 callee
fd00:1::2  --- fd00:1::1          fd00:2::1  --- fd00:2::2

Names contain the process id. All namespaces are removed at the end, also after an interrupt; the
next run removes those of a killed one. Nothing outside them changes."""
import atexit
import ctypes
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

PREFIX = "xc"
FOLDER = "/run/netns"
CLONE_NEWNET, SIOCGIFFLAGS, IFF_RUNNING = 0x40000000, 0x8913, 0x40


def sh(*args, check=True, **kw):
    return subprocess.run(args, check=check, text=True, capture_output=True, **kw)


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False
    except PermissionError:
        return True


def remove_left_overs():
    for name in os.listdir(FOLDER) if os.path.isdir(FOLDER) else ():
        m = re.fullmatch(PREFIX + r"-(\d+)-\w+", name)
        if m and not alive(int(m.group(1))):
            sh("ip", "netns", "del", name, check=False)


OURS = ("xcipherd", "xcipher-web")  # programs whose exit status every test checks


def ended_badly(p):
    """What was wrong with the end of a process started by spawn(); None for other programs than ours. A program that was told
    to end must exit with 0, or by that signal, before it handles any. One that ended by itself must not have crashed."""
    name = next((n for n in map(os.path.basename, p.args) if n in OURS), None)
    code = p.returncode
    if not name or code is None or code == 0:
        return None
    if getattr(p, "hung", False):
        return f"{name} {p.pid} did not end when told to"
    if code < 0 and -code not in (signal.SIGKILL, signal.SIGTERM):
        return f"{name} {p.pid} crashed: {signal.Signals(-code).name}"
    if getattr(p, "told", False) and code > 0:
        return f"{name} {p.pid} was told to end, and exited with {code}"
    return None


PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def die_with_us(number):
    """In the child: asks for this signal if the parent is killed."""
    return lambda: libc.prctl(PR_SET_PDEATHSIG, number)


def batch(ns, *lines):
    """Runs commands of ip(8) in one process, in a namespace or in ours."""
    sh("ip", *(["-n", ns] if ns else []), "-batch", "-", input="\n".join(lines))


def inside(ns, function, *args):
    """Calls a function in a thread that entered the namespace."""
    def enter():
        with open(f"{FOLDER}/{ns}", "rb") as f:
            if libc.setns(f.fileno(), CLONE_NEWNET):
                raise OSError(f"cannot enter {ns}")
        function(*args)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()


def no_dad():
    """New links begin without duplicate detection. Until it ends (1 to 2 s), a link-local address cannot resolve neighbours, and
    packets from other addresses over that link are lost."""
    if HAVE_IPV6:
        with open("/proc/sys/net/ipv6/conf/default/dad_transmits", "w", encoding="ascii") as f:
            f.write("0")


def wait_running(devices):
    """The kernel lets a link send some time after it was set up, at most a second. It drops earlier packets."""
    end = time.monotonic() + 10
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for device in devices:
            request = struct.pack("40s", device.encode())
            while not struct.unpack_from("16xH", fcntl.ioctl(s, SIOCGIFFLAGS, request))[0] & IFF_RUNNING and time.monotonic() < end:
                time.sleep(0.005)


HAVE_IPV6 = os.path.exists("/proc/net/if_inet6")


class Net:
    """gateway, and terminals by name; use as a context manager or call close()."""

    def __init__(self, terminals=("caller", "callee")):
        if os.geteuid() != 0:
            sys.exit("network namespaces need root: run with sudo")
        remove_left_overs()
        self.id = f"{PREFIX}-{os.getpid()}"
        self.names = []
        self.children = []
        atexit.register(self.close)
        for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(sig, self._signalled)
        self.gateway, *terminal = self._add("gateway", *terminals)
        self.terminal = dict(zip(terminals, terminal))
        # A link whose ends have the same index gets its carrier up to a second later.
        up = [line for i, ns in enumerate(terminal, 1) for line in (f"link add g{i} index {100 + i} type veth peer name t{i} netns {ns}", *self._end(f"g{i}", i, 1))]
        if up:
            batch(self.gateway, *up)
        for i, ns in enumerate(terminal, 1):
            batch(ns, *self._end(f"t{i}", i, 2), f"route add default via 10.200.{i}.1")
            inside(ns, wait_running, [f"t{i}"])
        inside(self.gateway, wait_running, [f"g{i}" for i in range(1, len(terminal) + 1)])

    def _signalled(self, number, _frame):
        print(f"\ninterrupted (signal {number}): cleaning up", file=sys.stderr)
        raise SystemExit(128 + number)  # unwinds through close() and other cleanup

    def _add(self, *parts):
        """New namespaces; the names end with these parts."""
        names = [f"{self.id}-{part}" for part in parts]
        self.names += names
        batch(None, *(f"netns add {name}" for name in names))
        for name in names:
            inside(name, no_dad)
            batch(name, "link set lo up")
        return names

    @staticmethod
    def _end(device, i, host):
        """Addresses of one end of a link."""
        yield f"addr add 10.200.{i}.{host}/24 dev {device}"
        if HAVE_IPV6:
            yield f"addr add fd00:{i}::{host}/64 dev {device} nodad"
        yield f"link set {device} up"

    def add(self, what):
        """Adds another namespace, which is removed with the others."""
        return self._add(what)[0]

    @staticmethod
    def link(ns, name, address, other, other_name, other_address):
        """A link between two namespaces, with addresses or without."""
        batch(ns, f"link add {name} type veth peer name {other_name} netns {other}")
        for where, device, addr in ((ns, name, address), (other, other_name, other_address)):
            batch(where, *([f"addr add {addr} dev {device}"] if addr else []), f"link set {device} up")

    def spawn(self, ns, args, death=signal.SIGTERM, **kw):
        """Starts a process in a namespace. It ends with the test, or gets the signal death if the
        test is killed."""
        p = subprocess.Popen(["ip", "netns", "exec", ns, *args], start_new_session=True, preexec_fn=die_with_us(death), **kw)
        self.children.append(p)
        return p

    def run(self, ns, *args, check=True, **kw):
        return sh("ip", "netns", "exec", ns, *args, check=check, **kw)

    def forward(self):
        """Lets the gateway forward packets that its netfilter hooks rewrote, even from its own
        addresses: --nfqueue-send=verdict."""
        links = ["all"] + [f"g{i}" for i in range(1, len(self.terminal) + 1)]
        self.run(self.gateway, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1",
                 *[f"net.ipv4.conf.{link}.{k}" for link in links for k in ("accept_local=1", "rp_filter=0", "send_redirects=0")])

    @staticmethod
    def stop(p, timeout=10):
        """Ends a process started by spawn() and returns its exit status."""
        if p.poll() is None:
            p.told = True
            p.terminate()
            try:
                p.wait(timeout)
            except subprocess.TimeoutExpired:
                p.hung = True
                p.kill()
                p.wait()
        return p.returncode

    def close(self):
        """Ends all processes and removes the namespaces. Returns what was wrong with the ends of our programs."""
        for p in reversed(self.children):
            self.stop(p, 60)
        bad = [x for x in map(ended_badly, self.children) if x]
        self.children.clear()
        for name in reversed(self.names):
            sh("ip", "netns", "del", name, check=False)
        self.names.clear()
        return bad

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        bad = "; ".join(self.close())
        if bad and kind is None:
            raise AssertionError(bad)
        if bad:
            print(bad, file=sys.stderr)
