#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions that the ciphers of SRTP cost inside the kernel, by its crypto API (srtp/srtp_bench.c). One guest, whose clock counts
instructions."""
import os
import re
import subprocess
import sys

import cost
import image
import run

SECONDS = 900
MODULES = ["ctr", "aesni-intel", "sha1-ssse3"]
HERE = os.path.dirname(os.path.abspath(__file__))


def build(headers):
    work = f"{run.BASE}/srtp"
    subprocess.run(["mkdir", "-p", work], check=True)
    subprocess.run(["cp", "-ruT", f"{HERE}/srtp", work], check=True)
    image.run(["make", "-s", "-C", headers, f"M={work}", "W=1", "modules"])
    return f"{work}/srtp_bench.ko"


def main():
    kernel, folder = image.unpack(run.BASE)
    ko = build(f"/lib/modules/{kernel}/build")
    image.MODULES += MODULES
    run.QEMU[run.QEMU.index("-cpu") + 1] = cost.CPU
    run.GUESTS["srtp"] = cost.COUNT
    archive, log = f"{run.BASE}/initramfs-srtp", f"{run.BASE}/console-srtp.log"
    run.initramfs_write(archive, kernel, folder, None, ["00-smoke.sh", "96-srtp.sh"], lambda fs: fs.file("srtp_bench.ko", ko))
    why = run.boot("srtp", kernel, folder, archive, SECONDS, log)[1]
    with open(log, errors="replace", encoding="utf-8") as f:
        text = f.read()
    wrong = ([why] if why else []) + run.judge(text)[0]
    print(f"\nLinux {kernel}, AES_CM_128_HMAC_SHA1_80 to _32, 172 bytes of RTP:")
    print("\n".join(re.findall(r"# .*srtp_bench: (.* instructions .*)", text)))
    for w in wrong:
        print(f"srtp: {w}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
