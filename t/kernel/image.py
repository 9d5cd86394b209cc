# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's kernel for the tests of the kernel module. The package is fetched and unpacked below
BUILD/kernel, never installed. Its version is that of the installed headers, because a module
fits one kernel only."""
import glob
import os
import shutil
import subprocess

# Modules that the guest loads before the tests, and their dependencies.
MODULES = ["veth", "dummy", "tun", "nfnetlink_queue", "nf_conntrack", "nft_queue", "nft_ct", "nft_limit", "nft_objref", "nf_tables", "nft_compat", "xt_NFQUEUE",
           "fuse", "xfrm_user", "esp4", "authenc"]
# The unpacked parts of the package; the rest is drivers.
PARTS = ["./boot/vmlinuz-*", "./boot/config-*"] + [
    f"./lib/modules/*/{p}" for p in ("modules.builtin*", "modules.order", "kernel/net/*", "kernel/drivers/net/veth.ko*",
                                     "kernel/drivers/net/dummy.ko*", "kernel/drivers/net/tun.ko*", "kernel/fs/fuse/fuse.ko*", "kernel/lib/*", "kernel/crypto/*", "kernel/arch/x86/crypto/*")]


class Missing(Exception):
    """An external requirement of the tests is missing; the text names it."""


def run(args, **kw):
    return subprocess.run(args, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw).stdout


def release():
    """The newest kernel with complete headers."""
    for build in sorted(glob.glob("/lib/modules/*/build"), key=os.path.getmtime, reverse=True):
        name = build.split("/")[3]
        if name.endswith("-amd64") and os.path.exists(build + "/Makefile"):
            return name
    raise Missing("no kernel headers (package linux-headers-amd64)")


def version_of(package):
    try:
        return run(["dpkg-query", "-W", "-f", "${Version}", package])
    except (OSError, subprocess.CalledProcessError):
        return ""


def fetch_package(folder, package, version=""):
    """The package file, through apt. The newest version, if the wanted one no longer exists."""
    os.makedirs(folder, exist_ok=True)
    said = ""
    for what in ([f"{package}={version}"] if version else []) + [package]:
        try:
            run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", what], cwd=folder)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "output", str(error)).strip().split("\n")[-1]
        found = glob.glob(f"{folder}/{package}_*.deb")
        if found:
            return found[0]
    raise Missing(f"{package} cannot be fetched ({said})")


def was_unpacked(folder):
    """Whether the folder has the parts that are wanted today."""
    try:
        with open(f"{folder}/ready", encoding="ascii") as f:
            return f.read() == "\n".join(PARTS)
    except OSError:
        return False


def unpack(base):
    """(release, folder): boot/vmlinuz-RELEASE and lib/modules/RELEASE are in the folder."""
    kernel = release()
    folder = f"{base}/image-{kernel}"
    if was_unpacked(folder):
        return kernel, folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    deb = (glob.glob(f"{base}/download/linux-image-{kernel}_*.deb") or [None])[0] or fetch_package(
        f"{base}/download", f"linux-image-{kernel}", version_of(f"linux-headers-{kernel}"))
    tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", folder, "--no-same-owner", "--wildcards", *PARTS], stdin=tar.stdout, stderr=subprocess.DEVNULL)
    if tar.wait() or not os.path.exists(f"{folder}/boot/vmlinuz-{kernel}"):
        os.unlink(deb)
        raise Missing(f"{os.path.basename(deb)} does not unpack")
    run(["/sbin/depmod", "-b", folder, kernel])
    with open(f"{folder}/ready", "w", encoding="ascii") as f:
        f.write("\n".join(PARTS))
    return kernel, folder


def modules(kernel, folder, names):
    """Files in the order of loading."""
    out = []
    for name in names:
        said = run(["/sbin/modprobe", "-d", folder, "-S", kernel, "--show-depends", name])
        for line in said.splitlines():
            words = line.split()
            if words and words[0] == "insmod" and words[1] not in out:
                out.append(words[1])
    return out
