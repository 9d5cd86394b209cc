# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds a kernel that checks itself, for the tests of the kernel module: Debian's source with
KASAN, lockdep, kmemleak and failing allocations (debug.config), all drivers built in. Debian has
no such package. The build takes half an hour on two cores and 4 GB of disk, once. KERNEL_DEBUG
names the folder of an existing build."""
import glob
import os
import subprocess

import image

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = "linux-source-6.1"
NEEDS = ["flex", "bison", "bc"]  # and the requirements of headers


def make(source, build, *targets, **env):
    args = ["make", "-s", "-C", source, f"O={build}", f"-j{os.cpu_count()}", *targets]
    p = subprocess.run(args, env=dict(os.environ, **env), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if p.returncode:
        raise image.Missing(f"the debug kernel does not build ({targets[0]}): " + "\n".join(p.stdout.splitlines()[-5:]))


def configure(source, build):
    wanted = f"{HERE}/debug.config"
    make(source, build, "allnoconfig", KCONFIG_ALLCONFIG=wanted)
    with open(f"{build}/.config", encoding="ascii") as f:
        got = set(f.read().splitlines())
    with open(wanted, encoding="ascii") as f:
        lost = [x for x in f.read().splitlines() if x.startswith("CONFIG") and x not in got]
    if lost:
        raise image.Missing(f"the debug kernel cannot have {', '.join(lost)}")


def build_in(folder):
    source, build = f"{folder}/{SOURCE}", f"{folder}/build"
    os.makedirs(build, exist_ok=True)
    if not os.path.exists(f"{source}/Makefile"):
        image.fetch_package(folder, SOURCE)
        deb = glob.glob(f"{folder}/{SOURCE}_*.deb")[0]
        print(f"== {os.path.basename(deb)} is unpacked and built with KASAN, lockdep and kmemleak: half an hour", flush=True)
        image.run(["dpkg-deb", "-x", deb, folder])
        image.run(["tar", "-xf", f"{folder}/usr/src/{SOURCE}.tar.xz", "-C", folder])
    configure(source, build)
    make(source, build, "bzImage", "modules")
    return build


def get(base):
    """(release, folder with boot/vmlinuz-RELEASE, folder to build modules against)."""
    build = os.environ.get("KERNEL_DEBUG") or f"{base}/debug/build"
    if not os.path.exists(f"{build}/arch/x86/boot/bzImage"):
        missing = [n for n in NEEDS if subprocess.run(["which", n], stdout=subprocess.DEVNULL, check=False).returncode]
        if missing:
            raise image.Missing(f"no {', '.join(missing)} to build a debug kernel with (packages of the same names)")
        build = build_in(f"{base}/debug")
    with open(f"{build}/include/config/kernel.release", encoding="ascii") as f:
        release = f.read().strip()
    folder = f"{base}/image-{release}"
    os.makedirs(f"{folder}/boot", exist_ok=True)
    image.run(["cp", f"{build}/arch/x86/boot/bzImage", f"{folder}/boot/vmlinuz-{release}"])
    return release, folder, build
