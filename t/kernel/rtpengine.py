# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's rtpengine with its kernel module, for the guest. The module is built from Debian's
source package for DKMS. Packages are fetched and unpacked below BUILD/kernel, never installed; only
the daemon has to be installed, because of its libraries. No service is started."""
import glob
import os
import subprocess

import image

DAEMON, RULE, SOURCE = "rtpengine-daemon", "rtpengine-iptables", "rtpengine-kernel-dkms"
XTABLES = "usr/lib/x86_64-linux-gnu/xtables"
# Modules that a host with rtpengine loads by itself: the ciphers and hashes for processors with AES instructions.
MODULES = ["x_tables", "aesni_intel", "sha1_ssse3", "sha1_generic", "hmac", "ctr", "gcm", "ghash_clmulni_intel", "sha256_ssse3"]


def unpack(base, package, version):
    folder = f"{base}/rtpengine/{package}-{version}"
    if not os.path.exists(f"{folder}/usr"):
        deb = image.fetch_package(f"{base}/download", package, version)
        os.makedirs(folder, exist_ok=True)
        image.run(["dpkg-deb", "-x", deb, folder])
    return folder


def build(base, kernel, headers, version):
    folder = unpack(base, SOURCE, version)
    source = glob.glob(f"{folder}/usr/src/rtpengine-*")[0]
    ko = f"{base}/rtpengine/xt_RTPENGINE-{version}-{kernel}.ko"
    if not os.path.exists(ko):
        said = subprocess.run(["make", "-s", "-C", headers, f"M={source}", f'RTPENGINE_VERSION="{version}"', "modules"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if said.returncode:
            raise image.Missing(f"rtpengine's kernel module does not build: {said.stdout.splitlines()[-5:]}")
        image.run(["strip", "--strip-debug", "-o", ko, f"{source}/xt_RTPENGINE.ko"])
    return ko


def add(fs, base, kernel, headers):
    """Adds the daemon, its module and its netfilter rule to an initramfs."""
    version = image.version_of(DAEMON)
    if not version or not os.path.exists("/usr/sbin/iptables"):
        raise image.Missing(f"no {DAEMON} or no iptables (sudo make deps-bench-kernel)")
    fs.file("xt_RTPENGINE.ko", build(base, kernel, headers, version))
    fs.program("usr/bin/rtpengine", "/usr/bin/rtpengine")
    fs.program("usr/sbin/iptables", "/usr/sbin/iptables")
    fs.file(f"{XTABLES}/libxt_udp.so", f"/{XTABLES}/libxt_udp.so")
    fs.file(f"{XTABLES}/libxt_RTPENGINE.so", f"{unpack(base, RULE, version)}/{XTABLES}/libxt_RTPENGINE.so")
    return version
