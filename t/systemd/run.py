#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""run.py FOLDER: what the units of the packages promise, under a real systemd (machine.py) in FOLDER, a Debian with the packages and
systemd installed. The terminals are libsrtp2, outside of it. BUILD names the folder of t/rtpload. Exit status 0 also where a
machine cannot create such namespaces, reported as "skipped: why"."""
import ctypes
import json
import os
import re
import shutil
import sys
import time

from machine import Machine, Unable, netns  # puts t/e2e into the path

import calls  # noqa: E402
import ng  # noqa: E402
import redisrig  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
UNIT, WEB = "xcipherd", "xcipher-web"
CAPABILITIES = 1 << 12 | 1 << 13 | 1 << 14 | 1 << 38 | 1 << 39  # CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_PERFMON, CAP_BPF
BAD = ("lost", "reordered", "duplicates", "wrong", "bad_auth")


class Relay:
    def __init__(self, net, machine):
        self.net, self.machine = net, machine
        self.client = None
        self.conf = os.path.join(machine.root, "etc/xcipher/xcipherd.conf")
        with open(self.conf, encoding="utf-8") as f:
            self.installed = f.read()
        self.overrides = os.path.join(machine.root, f"etc/systemd/system/{UNIT}.service.d")

    def leave_as_it_was(self):
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(self.installed)
        shutil.rmtree(self.overrides, ignore_errors=True)

    def override(self, name, setting):
        os.makedirs(self.overrides, exist_ok=True)
        with open(os.path.join(self.overrides, f"{name}.conf"), "w", encoding="ascii") as f:
            f.write(f"[Service]\n{setting}\n")
        self.machine.run("systemctl", "daemon-reload")

    def be_patient(self):
        """Compiling kernels may take minutes on a busy machine."""
        with open(self.conf, "a", encoding="utf-8") as f:
            f.write("opencl-start-timeout = 900\n")
        self.override("start", "TimeoutStartSec=1000")

    def configure(self, **keys):
        """As an operator does: a line of the installed file is turned on and changed."""
        with open(self.conf, encoding="utf-8") as f:
            text = f.read()
        for key, value in keys.items():
            text, n = re.subn(rf"(?m)^#?{key} = .*$", f"{key} = {value}", text, count=1)
            assert n == 1, key
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(text)

    def ctl(self, *words, check=True):
        return self.machine.run("systemctl", *words, UNIT, check=check)

    def show(self, name):
        return self.machine.run("systemctl", "show", "-P", name, UNIT).stdout.strip()

    def start(self):
        p = self.ctl("start", check=False)
        if p.returncode:
            raise AssertionError(f"does not start: {p.stderr}{self.journal_text()}")
        self.connect()

    def connect(self):
        if self.client:
            self.client.close()
        self.client = ng.Client(self.net.gateway)

    def journal(self):
        out = self.machine.run("journalctl", "-b", "-u", UNIT, "-o", "json").stdout
        return [json.loads(line) for line in out.splitlines()]

    def journal_text(self):
        return "\n".join(str(line["MESSAGE"]) for line in self.journal()[-20:])

    def inner_pid(self):
        return int(self.show("MainPID"))

    def pid(self):
        return self.machine.host_pid(self.inner_pid())

    def steering(self):
        return re.findall(r"is ready: .* steering (\w+)", "\n".join(str(line["MESSAGE"]) for line in self.journal()))[-1]

    def talk(self, number=0, seconds=1):
        """A call with media both ways, checked by libsrtp2."""
        c = calls.Call(self.client, number, "80", "32").setup()
        result = calls.load(self.net, BUILD, [c], 50, seconds)
        assert result["received"] == result["sent"] and not any(result[k] for k in BAD), result
        return c


def until(what, why, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, why
        time.sleep(0.1)


def status(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


# --- Checks, in this order ---------------------------------------------------------------------------------------------------


def starts_and_is_ready_when_it_says_so(relay):
    relay.configure(interface="10.200.1.1", **{"overload-age": "0", "port-max": "30999"})
    relay.be_patient()
    start = time.monotonic()
    relay.start()
    assert relay.client.call("ping", tries=1)["result"] == "pong", "ready, and does not answer"
    assert relay.show("Type") == "notify" and relay.show("StatusText") == "relaying" and relay.show("WatchdogUSec") == "30s"
    return f"{time.monotonic() - start:.1f} s, kernels compiled in the sandbox"


def runs_as_its_own_user_with_these_capabilities_only(relay):
    s = status(relay.pid())
    uid = relay.machine.run("id", "-u", "xcipher").stdout.strip()
    assert s["Uid"].split() == [uid] * 4, s["Uid"]
    assert int(s["CapBnd"], 16) == CAPABILITIES, s["CapBnd"]
    assert relay.steering() == "udp"
    for task in os.listdir(f"/proc/{relay.pid()}/task"):
        t = status(f"{relay.pid()}/task/{task}")
        for which in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            # udp needs none; CAP_IPC_LOCK stays where the limit of locked memory cannot be lifted.
            assert int(t[which], 16) & ~(1 << 14) == 0, (t["Name"], which, t[which])
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2"
    assert int(s["VmLck"].split()[0]) > 1000, "keys are not locked in memory"
    for line in relay.journal():
        assert int(line["PRIORITY"]) > 4, line["MESSAGE"]
    return "no warning in the journal"


def is_in_its_sandbox(relay):
    """What the unit says of files and processes, seen from inside its mount namespace and as its user."""
    m = relay.machine
    look = """
import os
def can(f):
    try:
        f()
        return True
    except OSError:
        return False
def make(path):
    with open(path + "/xcipher-probe", "w"):
        pass
    os.unlink(path + "/xcipher-probe")
print({"writes": [d for d in ("/", "/usr", "/etc", "/etc/xcipher", "/run", "/var/lib", "/var/lib/xcipher", "/var/cache/xcipher",
    "/run/xcipher", "/tmp", "/dev") if can(lambda: make(d))], "tmp": [f for f in os.listdir("/tmp") if f == "xcipher-outside"],
    "home": can(lambda: os.listdir("/root")),
    "tunables": can(lambda: open("/proc/sys/net/ipv4/ip_forward", "w").close()),
    "others": sum(f.isdigit() and not can(lambda: os.listdir(f"/proc/{f}/fd")) for f in os.listdir("/proc"))})
"""
    m.run("touch", "/tmp/xcipher-outside")
    seen = m.run("nsenter", "--target", str(relay.inner_pid()), "--mount", "--wd=/", "setpriv", "--reuid=xcipher", "--regid=xcipher",
                 "--clear-groups", "--inh-caps=-all", "python3", "-c", look).stdout
    seen = eval(seen)  # of our own program
    assert seen == {"writes": ["/var/lib/xcipher", "/var/cache/xcipher", "/run/xcipher", "/tmp"], "tmp": [], "home": False,
                    "tunables": False, "others": 0}, seen
    modes = m.run("stat", "-c", "%a %U", "/var/lib/xcipher", "/var/cache/xcipher", "/etc/xcipher/xcipherd.conf").stdout.split("\n")
    assert modes[:3] == ["700 xcipher"] * 2 + ["640 root"], modes
    return "writes only where it should, sees only itself"


def relays_by(way):
    def relays(relay):
        relay.ctl("stop")
        relay.configure(steering=way)
        relay.start()
        assert relay.steering() == way, relay.steering()
        s = relay.client.call("statistics")["statistics"]["xcipher"]
        relay.talk()
        return f"sockets by {s.get('socket calls', '?')} calls" if way == "udp" else "one call, nothing lost"
    relays.__name__ = f"relays_by_{way}"
    return relays


def reload_keeps_calls(relay):
    pid = relay.inner_pid()
    c = calls.Call(relay.client, 7, "80", "32").setup()
    load = redisrig.Load(relay.net, BUILD, [c], 50, 3)
    time.sleep(1)
    relay.configure(**{"log-level": "7"})
    relay.ctl("reload")
    result = load.result()
    assert not any(result[k] for k in BAD), result
    assert relay.inner_pid() == pid and relay.show("ActiveState") == "active"
    relay.configure(**{"log-level": "6"})
    relay.ctl("reload")
    assert relay.client.call("query", call_id=c.id)["result"] == "ok"
    return f"{result['received']} packets over it, none lost"


def journal_has_fields(relay):
    c = calls.Call(relay.client, 8, "80", "32", flags={"flags": ["debug"]}).setup()
    until(lambda: any(line.get("CALL_ID") == c.id for line in relay.journal()), f"no line of the call: {relay.journal_text()}", 5)
    line = next(line for line in relay.journal() if line.get("CALL_ID") == c.id)
    assert line["SYSLOG_IDENTIFIER"] == "xcipherd", line
    assert "SIDE" in line and line["STREAM"] == "media 1 RTP", line
    return "call, side and stream"


def restarted(relay, before, cause, seconds=30):
    until(lambda: relay.show("ActiveState") == "active" and relay.inner_pid() not in (0, before), f"not restarted after {cause}", seconds)
    relay.connect()
    relay.talk(9)


def is_started_again_when_killed(relay):
    pid = relay.inner_pid()
    start = time.monotonic()
    os.kill(relay.pid(), 9)
    restarted(relay, pid, "SIGKILL")
    return f"{time.monotonic() - start:.1f} s until media flowed"


def a_short_watchdog(relay):
    """30 s is what the unit says; nobody wants to wait for that twice."""
    relay.override("watchdog", "WatchdogSec=4")
    relay.ctl("restart")
    relay.connect()
    time.sleep(6)
    assert relay.show("NRestarts") == "0", "barks at who is well"
    return "lives through one and a half of its times"


def bites(relay, pid, cause, meanwhile=lambda: None):
    n = int(relay.show("NRestarts"))
    until(lambda: meanwhile() or int(relay.show("NRestarts")) == n + 1, f"the watchdog does not mind {cause}", 60)
    restarted(relay, pid, cause)
    assert any(re.search("atchdog (timeout|request)", str(line["MESSAGE"])) for line in relay.journal()), relay.journal_text()


def a_stopped_daemon_is_started_again(relay):
    pid = relay.inner_pid()
    start = time.monotonic()
    os.kill(relay.pid(), 19)
    bites(relay, pid, "SIGSTOP")
    return f"{time.monotonic() - start:.1f} s"


PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000


def a_single_worker_that_hangs_is_enough(relay):
    """The control thread goes on and could feed the watchdog: it must not."""
    pid, inner = relay.pid(), relay.inner_pid()
    threads = {name: int(t) for t in os.listdir(f"/proc/{pid}/task") for name in [open(f"/proc/{pid}/task/{t}/comm", encoding="ascii").read().strip()]}
    worker = next(t for name, t in threads.items() if "worker" in name)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(PTRACE_SEIZE, worker, None, None) == 0, os.strerror(ctypes.get_errno())
    assert libc.ptrace(PTRACE_INTERRUPT, worker, None, None) == 0
    assert relay.client.call("ping")["result"] == "pong"
    start = time.monotonic()

    def bury():
        """The parent of a thread has to collect its exit status."""
        try:
            os.waitpid(worker, os.WNOHANG | WALL)
        except ChildProcessError:
            pass
    bites(relay, inner, "a worker that hangs", bury)
    assert any("is stuck for" in str(line["MESSAGE"]) for line in relay.journal()), relay.journal_text()
    return f"{time.monotonic() - start:.1f} s"


def xcipher_web_serves_without_privileges(relay):
    """Its own unit, with the configuration of its package as installed."""
    m = relay.machine
    relay.ctl("stop")
    relay.configure(**{"listen-ng-unix": "/run/xcipher/ng", "ng-unix-group": WEB})
    relay.start()
    m.run("systemctl", "start", WEB)
    get = "import sys, urllib.request; print(urllib.request.urlopen('http://127.0.0.1:2226' + sys.argv[1], timeout=60).read().decode())"

    def page(path):
        return m.run("python3", "-c", get, path, check=False).stdout

    def journal():
        return m.run("journalctl", "-b", "-u", WEB, "-n", "20", "--no-pager").stdout

    try:
        until(lambda: "# TYPE xcipher_" in page("/metrics"), f"no metrics: {journal()}", 60)
        assert "<html" in page("/").lower(), journal()
        s = status(m.host_pid(int(m.run("systemctl", "show", "-P", "MainPID", WEB).stdout)))
        uid = m.run("id", "-u", WEB).stdout.strip()
        assert s["Uid"].split() == [uid] * 4, s["Uid"]
        assert all(int(s[which], 16) == 0 for which in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), s
        assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2"
    finally:
        m.run("systemctl", "stop", WEB)
    return "page and metrics, no capabilities"


def stops_clean(relay):
    relay.talk(10)
    start = time.monotonic()
    relay.ctl("stop")
    took = time.monotonic() - start
    assert took < 5 and relay.show("Result") == "success" and relay.show("ActiveState") == "inactive"
    m = relay.machine
    assert not os.path.exists(os.path.join(relay.machine.cgroup, f"system.slice/{UNIT}.service")), "something of it still runs"
    left = m.run("sh", "-c", "nft list ruleset; iptables-save; ls -d /run/xcipher", check=False).stdout
    assert "xcipher" not in left.lower() and "NFQUEUE" not in left and "queue" not in left, left
    assert "signal 15: stopping" in relay.journal_text()
    return f"{took:.1f} s, no rule and no process left"


def logs_hold_no_key(relay):
    text = json.dumps(relay.journal())
    assert "inline:" not in text and "BEGIN PRIVATE" not in text
    return f"{len(relay.journal())} lines"


STEPS = [starts_and_is_ready_when_it_says_so, runs_as_its_own_user_with_these_capabilities_only, is_in_its_sandbox, relays_by("udp"),
         relays_by("xdp"), relays_by("nfqueue"), reload_keeps_calls, journal_has_fields, is_started_again_when_killed, a_short_watchdog,
         a_stopped_daemon_is_started_again, a_single_worker_that_hangs_is_enough,
         xcipher_web_serves_without_privileges, stops_clean, logs_hold_no_key]


def main():
    try:
        with netns.Net(("caller",)) as net:
            machine = Machine(sys.argv[1], net.gateway)
            relay = Relay(net, machine)
            try:
                for step in STEPS:
                    print(f"unit: {step.__name__.replace('_', ' ')}: ", end="", flush=True)
                    print(step(relay), flush=True)
            except Exception:
                print("NOT OK", flush=True)
                print(machine.run("journalctl", "-b", "-n", "40", "--no-pager", check=False).stdout, file=sys.stderr)
                raise
            finally:
                relay.leave_as_it_was()
                machine.close()
    except Unable as why:
        print(f"unit: skipped: {why}")


if __name__ == "__main__":
    main()
