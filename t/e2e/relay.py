# SPDX-License-Identifier: GPL-2.0-or-later
"""A relay under test in the gateway: xcipherd, or Debian's rtpengine in userspace as a peer."""
import os
import re
import subprocess
import tempfile
import time

import ng

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
READY_SECONDS = 400  # without a cache, one slow processor compiles the kernels of several tests for minutes


def cpu_seconds_of(pid):
    """User and system time of all its threads, in nanoseconds' resolution: the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def text_of(log):
    """The whole contents of a file that a child writes. seek() would also move the child's position
    and overwrite the start."""
    return os.pread(log.fileno(), 1 << 26, 0).decode("utf-8", "replace")


def logs(length=3000):
    """The last log lines of each relay, for a failed test."""
    return "".join(f"--- {r.name} {r.pid()}{'' if r.process.poll() is None else ', which ended'}:\n{r.text()[-length:]}" for r in Relay.started)


class Relay:
    name = "relay"
    ng_port = 22222
    started = []

    def __init__(self, net, args, ng_key=None):
        self.net, self.ng_key = net, ng_key
        self.log = tempfile.TemporaryFile("w+")
        self.process = net.spawn(net.gateway, args, stdout=self.log, stderr=self.log, env=self.environment())
        self.client = None
        Relay.started.append(self)

    def environment(self):
        return dict(os.environ)

    def wait_ready(self, timeout=READY_SECONDS):
        self.client = ng.Client(self.net.gateway, ("127.0.0.1", self.ng_port), self.ng_key)
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended at start:\n{self.text()}")
            try:
                if self.client.call("ping", tries=1).get("result") == "pong":
                    return self
            except (TimeoutError, OSError):
                time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not answer:\n{self.text()}")

    def pid(self):
        """The daemon's own process id: `ip netns exec` replaces itself with it."""
        return self.process.pid

    def cpu_seconds(self):
        return cpu_seconds_of(self.pid())

    def rss_kib(self):
        with open(f"/proc/{self.pid()}/status", encoding="ascii") as f:
            for line in f:
                if line.startswith("VmRSS"):
                    return int(line.split()[1])
        return 0

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid()}/fd"))

    def text(self):
        return text_of(self.log)

    def stop(self):
        if self.client:
            self.client.close()
        return self.net.stop(self.process, 60)


# Tests count packets, and a sanitized daemon on a busy machine falls behind. Unless a test asks
# otherwise, it keeps old packets, gives up no device, and waits until its kernels are compiled.
NO_SHEDDING = ("--overload-age=0",)
PATIENT = ("--opencl-timeout=20000", "--opencl-start-timeout=600")


def engine(options):
    """The options of the engine. A start with OpenCL takes three seconds of a processor, because the device is tested and measured, and
    a few calls make no batches large enough for it. So a test that needs OpenCL must ask for it by an option."""
    if "--engine=serial" in options:
        return []
    if any(o.startswith(("--engine=", "--opencl-")) for o in options):
        return list(PATIENT)
    return ["--engine=serial"]


WEB_OPTIONS = ("--listen-http=", "--http-token-file=", "--http-host=")


class XcipherWeb(Relay):
    """Serves HTTP for a daemon, whose Unix socket is at path."""
    name = "xcipher-web"

    def __init__(self, net, *options, path="/nowhere", wrap=()):
        super().__init__(net, [*wrap, os.path.join(BUILD, "xcipher-web"), "--config-file=none", "--log-stderr=yes", f"--daemon={path}", *options])

    def wait_ready(self, timeout=READY_SECONDS):
        end = time.monotonic() + timeout
        while "xcipherd answers at" not in self.text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name} is not ready:\n{self.text()}")
            time.sleep(0.01)
        return self


class Xcipherd(Relay):
    """Options of xcipher-web start that program, too. Its log and descriptors count as the
    daemon's."""
    name = "xcipherd"
    sockets = 0

    def __init__(self, net, *options, addresses=("10.200.1.1",), build=None, user=None, wrap=(), ng_key=None):
        self.web, self.web_options = None, [o for o in options if o.startswith(WEB_OPTIONS)]
        options = [o for o in options if not o.startswith(WEB_OPTIONS)]
        Xcipherd.sockets += 1
        self.socket = f"/tmp/{net.id}-{Xcipherd.sockets}.ng"
        if self.web_options:
            options.append(f"--listen-ng-unix={self.socket}")
        interfaces = [f"--interface={a}" for a in addresses]
        always = list(NO_SHEDDING) + engine(options)
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        super().__init__(net, [*wrap, *become, os.path.join(build or BUILD, "xcipherd"), "--config-file=none", "--foreground",
                               "--listen-ng=127.0.0.1:22222", *interfaces, *always, *options], ng_key)

    def environment(self):
        env = super().environment()
        if "LATE_LIBRARY" in env:  # t/late/README.md
            env["LD_PRELOAD"] = env["LATE_LIBRARY"]
        # PoCL and the OpenCL loader free some memory only when the process ends.
        env.setdefault("LSAN_OPTIONS", "suppressions=" + os.path.join(ROOT, "t", "e2e", "lsan.supp") + ":print_suppressions=0")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        return env

    def wait_ready(self, timeout=READY_SECONDS):
        super().wait_ready(timeout)
        if self.web_options and not self.web:
            self.web = XcipherWeb(self.net, *self.web_options, path=self.socket).wait_ready()
        return self

    def text(self):
        return super().text() + (self.web.text() if self.web else "")

    def descriptors(self):
        return super().descriptors() + (self.web.descriptors() if self.web else 0)

    def stop(self):
        code = self.web.stop() if self.web else 0
        return super().stop() or code

    def statistics(self):
        return self.client.call("statistics")["statistics"]["xcipher"]


class Rtpengine(Relay):
    name = "rtpengine"

    def __init__(self, net, addresses=("10.200.1.1",), ng_port=22222, ports=(30000, 39999), options=()):
        interfaces = [f"--interface={a}" for a in addresses]
        self.ng_port = ng_port
        super().__init__(net, ["/usr/bin/rtpengine", "--config-file=none", "--table=-1", "--foreground", "--log-stderr",
                               "--log-level=3", f"--listen-ng=127.0.0.1:{ng_port}", f"--port-min={ports[0]}", f"--port-max={ports[1]}",
                               *interfaces, *options])


def have_rtpengine():
    return os.access("/usr/bin/rtpengine", os.X_OK) and subprocess.run(
        ["/usr/bin/rtpengine", "--version"], capture_output=True, check=False).returncode == 0


def steerings():
    """The steerings this build of xcipherd supports here. Without the module, kernel falls back to
    nfqueue."""
    text = subprocess.run([os.path.join(BUILD, "xcipherd"), "--help"], capture_output=True, text=True, check=True).stdout
    ways = re.search(r"--steering=([a-z|]+)", text).group(1).split("|")
    return [w for w in ways if w != "kernel" or os.path.exists("/sys/module/nf_xcipher")]
