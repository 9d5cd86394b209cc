# SPDX-License-Identifier: GPL-2.0-or-later
"""What guest/80-ipsec.py needs in the guest: strongSwan, Kamailio with its modules, openssl, our configurations, and the kernel's ESP."""
import glob
import os
import re
import subprocess

# The kernel would load these by itself, but the guest has no modprobe.
MODULES = ["xfrm_user", "esp4", "ctr", "ghash-generic", "gcm", "sha512_generic", "jitterentropy_rng", "drbg", "seqiv", "aesni-intel"]
PROGRAMS = ["/usr/sbin/charon-systemd", "/usr/sbin/swanctl", "/usr/sbin/kamailio", "/usr/bin/openssl"]
PLUGINS = "/usr/lib/ipsec/plugins"


def kamailio_modules(top):
    """Files of the modules that psap.cfg loads, in Debian's folder."""
    multiarch = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()
    names = set()
    for name in ("psap.cfg", "ng911-common.cfg", "ng911-notify.cfg"):
        with open(f"{top}/kamailio-cfg/ng911/{name}", encoding="utf-8") as f:
            names |= set(re.findall(r'^loadmodule "(\w+[.]so)"', f.read(), re.M))
    found = {n: f"/usr/lib/{multiarch}/kamailio/modules/{n}" for n in names}
    return [path for path in found.values() if os.path.exists(path)]


def add(fs, top):
    """Without strongSwan or Kamailio the guest says that it skips the test."""
    if not all(os.path.exists(p) for p in PROGRAMS):
        return
    for path in PROGRAMS + glob.glob(f"{PLUGINS}/*.so") + kamailio_modules(top):
        fs.program(path, path)
    fs.file("usr/lib/ssl/openssl.cnf", "/etc/ssl/openssl.cnf")
    for path in glob.glob(f"{top}/kamailio-cfg/**/*.c*f*", recursive=True):
        fs.file(path.replace(top, "tree", 1), path)
