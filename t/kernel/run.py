#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the kernel module in virtual machines: run.py [--debug] [--seconds N] [NAME-PART...]. Boots Debian's kernel in qemu under software
emulation, with an initramfs of busybox, the system's network tools, our programs, the module, and the scripts of guest/; these
print TAP to the serial console, which is read here. Three guests run beside each other, each with its scripts: one that has two processors
at once and the machine's time, and two with a clock of their own (GUESTS). A crash, a warning of the kernel's, a hang or a missing plan fails; so does a failed
test, unless its script then passes twice in a row in a guest of its own: that is told as unsteady (as t/e2e/run.py has it).
"run.py cost" counts instructions per packet instead, beside rtpengine's kernel module (cost.py). BUILD names the folder of the programs, default build. --debug takes a kernel that looks for its own faults, built on the spot
(debug_kernel.py; KERNEL_DEBUG names a folder where that is done already). Says "skipped: ..." and exits 0 where there is no qemu, kernel or headers."""
import glob
import os
import re
import select
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import debug_kernel  # noqa: E402
import image  # noqa: E402
import ipsec_image  # noqa: E402
from initramfs import Initramfs  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
BASE = f"{BUILD}/kernel"
SECONDS = 1800  # a hang ends here; the usual time is two minutes, and six times that on a busy machine
SECONDS_DEBUG = 5400
UNSTEADY_MAX = 2  # scripts; more is no accident
TOOLS = ["/usr/sbin/ip", "/usr/sbin/nft", "/usr/sbin/tc", "/usr/bin/redis-server", "/usr/bin/openssl"]
PROGRAMS = ["nfx", "pktx", "rtpload", "srtpload"]
PYTHON = ["test_flood", "test_privileges", "bundled", "dtls", "zrtp", "bzrtp", "mikey_terminal", "ice", "not_rtp", "srtp", "ctypes", "ctypes.util", "rig", "netns", "ng", "calls", "relay", "redisrig", "glob", "random", "threading", "importlib.util", "shutil", "fcntl"]  # of guest/ and t/e2e/, with whatever they import
# What t/attack/run.py imports, and what cryptography imports inside its functions.
ATTACK = ["argparse", "collections", "checker", "controls", "shrink", "steps", "world", "cryptography.hazmat.backends.openssl.backend"]
# Libraries that are loaded by name: NSS by libsrtp2, and libbzrtp.
LOADED = [f"/usr/lib/x86_64-linux-gnu/{n}.*" for n in ("libsoftokn3", "libfreebl3", "libfreeblpriv3", "libbzrtp")]
# -cx16: with it this emulator crashes newer guests at random. -erms: with it the kernel and libc clear and copy memory by string
# instructions, which are emulated byte by byte. panic_on_warn: whatever the kernel complains of is a failed test.
QEMU = ["qemu-system-x86_64", "-M", "pc", "-cpu", "max,-cx16,-erms", "-m", "512", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
        "-serial", "stdio"]
# All are emulated. "parallel" ends first, and then each of the others has a processor of the machine.
# parallel: two processors that really run at once, so that packets meet changes of the tables on another processor.
# clock, clock2: one processor, on which packets keep their order by themselves, and whose clock counts its instructions (4 ns each) and jumps
# over the time in which it has nothing to do. However slow or busy the machine is, in the guest nothing comes late, and waiting costs
# nothing.
CLOCK = ["-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=2,sleep=off", "-rtc", "clock=vm"]
GUESTS = {"parallel": ["-accel", "tcg,thread=multi", "-smp", "2"], "clock": CLOCK, "clock2": CLOCK}
# Scripts by the first letters of their names. The others go to "clock".
PARALLEL, CLOCK2 = ("20", "30", "40", "45", "90", "92"), ("60", "62", "64", "66", "68", "70", "72", "73", "74")
CMDLINE = "kmemleak=on console=ttyS0 loglevel=4 panic=-1 oops=panic panic_on_warn=1 mitigations=off nokaslr"
PASSED_ON = ("RING_PACKETS", "RING_SEED", "ATTACK_SEEDS", "ATTACK_STEPS")  # the kernel gives them to the guest's environment
TROUBLE = re.compile(r"BUG:|Oops|Kernel panic|WARNING: CPU|rcu.*(stall|detected)|WARNING: (possible|suspicious|bad|inconsistent)|KASAN|hung task|blocked for more than|general protection")


def guest_of(script):
    return "parallel" if script.startswith(PARALLEL) else "clock2" if script.startswith(CLOCK2) else "clock"


def module_build(kernel, headers):
    """The .ko, built from a copy, so that the tree stays clean. None before there is a module."""
    source = f"{TOP}/kernel-module"
    if not os.path.isdir(source) or not glob.glob(f"{source}/*.c"):
        return None
    work = f"{BASE}/module-{kernel}"
    subprocess.run(["mkdir", "-p", work], check=True)
    subprocess.run(["cp", "-ruT", source, work], check=True)
    for header in ("packet/guard.h", "srtp/preauth_window.h", "srtp/preauth_header.h"):  # shared with the daemon
        os.makedirs(os.path.dirname(f"{work}/{header}"), exist_ok=True)
        subprocess.run(["cp", "-u", f"{TOP}/daemon/{header}", f"{work}/{header}"], check=True)  # else all is built again
    built = subprocess.run(["make", "-s", "-C", headers, f"M={work}", "W=1", "modules"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = "\n".join(x for x in built.stdout.splitlines() if "Skipping BTF" not in x)
    if built.returncode or "warning:" in said:
        sys.exit(f"the module does not build without warnings:\n{said}")
    ko = glob.glob(f"{work}/*.ko")[0]
    stripped = f"{BASE}/{os.path.basename(ko)}"
    subprocess.run(["strip", "--strip-debug", "-o", stripped, ko], check=True)
    return stripped


def initramfs_write(path, kernel, folder, ko, tests, extra=None):
    fs = Initramfs()
    for name in ("proc", "sys", "dev", "tmp", "run", "etc", "var/log", "root"):
        fs.dir(name)
    fs.char("dev/console", 5, 1)
    fs.char("dev/null", 1, 3)
    fs.file("bin/busybox", "/usr/bin/busybox")
    fs.program("bin/sh", "/usr/bin/dash")  # busybox's own prefers its applets to real tools
    fs.text("etc/passwd", "root:x:0:0::/root:/bin/sh\n")
    fs.text("etc/group", "root:x:0:\n")
    fs.text("etc/hosts", "127.0.0.1 localhost\n")
    for tool in TOOLS:
        if os.path.exists(tool):
            fs.program(tool, tool)
    for name in PROGRAMS:
        fs.program(f"build/t/{name}", f"{BUILD}/t/{name}")
    for source in sorted(f for pattern in LOADED for f in glob.glob(pattern)):
        (fs.program if source.endswith(".so") else fs.file)(source, source)
    for name in ("xcipherd", "xcipherctl"):
        fs.program(f"build/{name}", f"{BUILD}/{name}")
    ipsec = any("ipsec" in t for t in tests)
    order = image.modules(kernel, folder, image.MODULES + (ipsec_image.MODULES if ipsec else [])) if os.path.isdir(f"{folder}/lib/modules") else []  # else all is built in
    for number, source in enumerate(order):
        fs.file(f"modules/{number:02}-{os.path.basename(source)}", source)
    if ko:
        fs.file("nf_xcipher.ko", ko)
    for source in sorted(glob.glob(f"{HERE}/guest/*.*")):
        fs.file(f"guest/{os.path.basename(source)}", source)
    if ipsec:
        ipsec_image.add(fs, TOP)
    attack = any("attack" in t for t in tests)
    if attack:
        fs.file("tree/t/attack/run.py", f"{TOP}/t/attack/run.py")
        for provider in glob.glob("/usr/lib/*/ossl-modules/legacy.so"):  # without it cryptography does not start
            fs.program(provider, provider)
    fs.python(TOP, [f"{HERE}/guest", f"{TOP}/t/e2e", f"{TOP}/t/attack"], PYTHON + (["ipsec"] if ipsec else []) + (ATTACK if attack else []))
    fs.text("guest/tests", "".join(f"{t}\n" for t in tests))
    if extra:
        extra(fs)
    fs.link("init", "guest/init.sh")
    fs.write(path)


def boot(name, kernel, folder, archive, seconds, log):
    """Runs the guest of this name to its end. (seconds it took, None) or (seconds, why it was ended)."""
    args = QEMU + GUESTS[name] + ["-kernel", f"{folder}/boot/vmlinuz-{kernel}", "-initrd", archive, "-append",
                                   " ".join([CMDLINE] + [f"{n}={os.environ[n]}" for n in PASSED_ON if n in os.environ])]
    start = time.monotonic()
    vm = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    why = None
    with open(log, "wb") as out:
        line = b""
        while True:
            left = start + seconds - time.monotonic()
            if left <= 0:
                why = f"it was not done after {seconds} s"
                break
            if not select.select([vm.stdout], [], [], left)[0]:
                continue
            data = os.read(vm.stdout.fileno(), 65536)
            if not data:
                break
            out.write(data)
            out.flush()
            *lines, line = (line + data).split(b"\n")
            for text in lines:
                text = text.decode(errors="replace").rstrip("\r")
                if re.match(r"(not ok|ok|#(?! symbols )|1\.\.)", text):
                    print(f"{name:8} {time.monotonic() - start:6.1f} {text}\n", end="", flush=True)
    if why:
        vm.kill()
    _, status, used = os.wait4(vm.pid, 0)
    vm.returncode = code = os.waitstatus_to_exitcode(status)
    print(f"{name:8} {time.monotonic() - start:6.1f} ended after {used.ru_utime + used.ru_stime:.0f} s of processor time\n", end="", flush=True)
    if not why and code:
        why = f"qemu ended with {code}"
    return time.monotonic() - start, why


def judge(text):
    """(what is wrong with this console output, empty: nothing; the scripts of failed tests if that is all that is wrong)."""
    lines = [x.rstrip("\r") for x in text.splitlines()]
    oks = sum(1 for x in lines if re.match(r"ok \d", x))
    wrong, scripts, script = [], [], None
    bad = [x for x in lines if x.startswith("not ok")]
    for line in lines:
        begun = re.match(r"# (\S+), guest up ", line)
        script = begun[1] if begun else script
        if line in bad and script not in scripts:
            scripts.append(script)
    plan = [int(x[3:]) for x in lines if re.fullmatch(r"1\.\.\d+", x)]
    if bad:
        wrong.append(f"{len(bad)} failed: " + "; ".join(bad[:5]))
    if len(plan) != 1 or plan[0] != oks + len(bad) or oks == 0:
        wrong.append(f"plan {plan}, but {oks} ok and {len(bad)} not ok")
    if not any(x.startswith("GUEST-RC ") for x in lines):
        wrong.append("the guest did not come to its end")
    wrong += [f"the kernel says: {x}" for x in lines if TROUBLE.search(x)][:3]
    return wrong, scripts if len(wrong) == 1 else []


def main():
    args = sys.argv[1:]
    lacks = [name for name in PROGRAMS if not os.path.exists(f"{BUILD}/t/{name}")]
    if lacks:
        sys.exit(f"check-kernel: no {', '.join(lacks)} in {BUILD}/t: run make kernel-tools")
    if args[:1] == ["cost"]:
        import cost
        sys.exit(cost.main(args[1:]))
    debug = args[:1] == ["--debug"]
    args = args[debug:]
    seconds = SECONDS_DEBUG if debug else SECONDS
    if args and args[0] == "--seconds":
        seconds = int(args[1])
        args = args[2:]
    if not shutil.which("qemu-system-x86_64"):
        raise image.Missing("no qemu-system-x86_64 (package qemu-system-x86)")
    if not os.path.exists("/usr/bin/busybox"):
        raise image.Missing("no /usr/bin/busybox (package busybox-static)")
    if debug:
        kernel, folder, headers = debug_kernel.get(BASE)
        QEMU[QEMU.index("-m") + 1] = "2048"
    else:
        kernel, folder = image.unpack(BASE)
        headers = f"/lib/modules/{kernel}/build"
    ko = module_build(kernel, headers)
    tests = [os.path.basename(t) for t in sorted(glob.glob(f"{HERE}/guest/[0-9]*"))]
    # Those from 90 on measure, or last long: only if they are asked for. Those from 50 on want a daemon and media in time, which a debug
    # kernel has not. It runs 92 with fewer packets.
    tests = [t for t in tests if ((t < "50" or t.startswith("92") if debug else t < "90") if not args else t.startswith("00") or any(a in t for a in args))]

    def guest(name, scripts, log, out):
        """Writes to out: (seconds it took, what is wrong, the scripts that may be tried again)."""
        archive = f"{BASE}/initramfs-{name}"
        initramfs_write(archive, kernel, folder, ko, scripts)
        took, why = boot(name, kernel, folder, archive, seconds, log)
        with open(log, errors="replace") as f:
            text = f.read()
        wrong, failed = judge(text)
        if why:
            wrong, failed = [why] + wrong, []
        if wrong:
            print(f"--- the last lines of the console of {name}:", *text.splitlines()[-40:], "---", sep="\n")
        for w in wrong:
            print(f"check-kernel: {name}: {w}")
        out[name] = took, wrong, failed

    def beside(scripts, suffix=""):
        """The guests that have scripts of these to run, beside each other. As guest(), over all."""
        always = [t for t in tests if t.startswith("00")]
        parts = {n: [t for t in scripts if guest_of(t) == n and t not in always] for n in GUESTS}
        parts = {n: always + t for n, t in parts.items() if t} or {"clock": always}
        print(f"== {kernel} in qemu under software emulation, guests: {', '.join(parts)}", flush=True)
        out = {}
        threads = [threading.Thread(target=guest, args=(n, t, f"{BASE}/console-{n}{suffix}.log", out)) for n, t in parts.items()]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        got = [out.get(n, (0, [f"{n} did not run"], [])) for n in parts]
        wrong = [w for g in got for w in g[1]]
        # To be tried again only if nothing else is wrong anywhere.
        failed = [t for g in got for t in g[2]] if all(g[2] for g in got if g[1]) else []
        return max(g[0] for g in got), wrong, failed

    took, wrong, failed = beside(tests)
    if 0 < len(failed) <= UNSTEADY_MAX:
        # The emulator has as much processor as the machine's other users leave it.
        print(f"== again, twice: {' '.join(failed)}", flush=True)
        wrong = beside([t for t in failed for _ in range(2)], "-again")[1]
        print(f"check-kernel: {'NOT OK' if wrong else 'UNSTEADY'} {' '.join(failed)}")
    if wrong:
        sys.exit(1)
    print(f"check-kernel: passed in {took:.1f} s (consoles: {BASE}/console-*.log)")


if __name__ == "__main__":
    try:
        main()
    except image.Missing as missing:
        print(f"check-kernel skipped: {missing}")
