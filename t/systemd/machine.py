# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine whose first process is systemd, without being one: a folder with Debian in it, in namespaces of its own (processes,
mounts, cgroups, network, names), as containers are. It shares nothing with this machine but the kernel, may neither load modules
nor set clocks, and is gone with the test."""
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import netns  # noqa: E402
from netns import sh  # noqa: E402


class Unable(Exception):
    """This machine cannot have such a thing; says why."""


NOT_FOR_IT = "sys_module,sys_time,sys_boot,sys_rawio,mac_admin,mac_override,wake_alarm,audit_control"
DEVICES = "null zero full random urandom tty"

# By the shell in its namespaces: $1 is the folder. /dev, /sys and /run are its own, and what is in /proc/sys it may only read.
BOOT = r"""
set -e
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc -o nosuid,nodev,noexec proc proc
mount --bind proc/sys proc/sys && mount --bind proc/sys/net proc/sys/net && mount -o remount,bind,ro proc/sys
mount -t sysfs -o nosuid,nodev,noexec sysfs sys
mount -t cgroup2 -o nosuid,nodev,noexec cgroup sys/fs/cgroup
mount -o remount,bind,ro sys
mount -t tmpfs -o mode=755,nosuid tmpfs dev
for name in DEVICES; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs var/log
pivot_root . .
umount -l .
exec env -i container=xcipher-check PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
	setpriv --bounding-set=NOT_FOR_IT --inh-caps=NOT_FOR_IT /lib/systemd/systemd --show-status=no
""".replace("DEVICES", DEVICES).replace("NOT_FOR_IT", ",".join("-" + c for c in NOT_FOR_IT.split(",")))


def cgroup2():
    """The mount point."""
    for line in open("/proc/self/mountinfo", encoding="utf-8"):
        left, right = line.split(" - ")
        if right.split()[0] == "cgroup2":
            return left.split()[4]
    raise Unable("no cgroup2 is mounted")


class Machine:
    def __init__(self, root, ns):
        if os.geteuid():
            raise Unable("namespaces need root")
        self.root = os.path.abspath(root)
        self.cgroup = os.path.join(cgroup2(), f"xcipher-check-{os.getpid()}")
        self.console = tempfile.TemporaryFile("w+")
        try:
            os.mkdir(self.cgroup)
        except OSError as e:
            raise Unable(f"no cgroup can be made: {e}") from e
        self.outer = subprocess.Popen(
            ["ip", "netns", "exec", ns, "unshare", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--fork", "--kill-child",
             "sh", "-c", BOOT, "boot", self.root],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=self.console, start_new_session=True, preexec_fn=self._enter)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _enter(self):
        netns.die_with_us(signal.SIGKILL)()
        with open(os.path.join(self.cgroup, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write("0")

    def text(self):
        self.console.seek(0)
        return self.console.read()

    def _wait(self):
        """Until systemd has started all there is to start; self.init is its process as we see it."""
        end = time.monotonic() + 60
        state = "nothing"
        while time.monotonic() < end and self.outer.poll() is None:
            time.sleep(0.2)
            children = sh("ps", "-o", "pid=,comm=", "--ppid", str(self.outer.pid), check=False).stdout.split()
            if len(children) != 2 or children[1] != "systemd":
                continue
            self.init = int(children[0])
            state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
            if state in ("running", "degraded"):
                return
        raise Unable(f"systemd does not come up here ({state}): {self.text()[-1000:]}")

    def run(self, *args, check=True, **kw):
        """A program inside it, as root."""
        p = sh("nsenter", "--target", str(self.init), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--wd=/",
               "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", *args, check=False, **kw)
        if check and p.returncode:
            raise RuntimeError(f"{' '.join(args)}: {p.returncode}\n{p.stdout}{p.stderr}")
        return p

    def host_pid(self, inner):
        """The PID outside the machine of a process inside."""
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/status", encoding="utf-8") as f:
                    for line in f:
                        if line.startswith("NSpid:") and line.split()[2:] == [str(inner)] and name.isdigit() \
                                and os.readlink(f"/proc/{name}/ns/pid") == os.readlink(f"/proc/{self.init}/ns/pid"):
                            return int(name)
            except OSError:
                continue
        raise RuntimeError(f"no process {inner} inside")

    def close(self):
        if self.outer.poll() is None:
            self.outer.kill()  # the first process inside dies with it, and so do all
            self.outer.wait()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            for path, _, _ in os.walk(self.cgroup, topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    pass
            if not os.path.exists(self.cgroup):
                return
            time.sleep(0.1)
