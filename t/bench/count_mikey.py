#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions of MIKEY's exchanges: count_mikey.py [BUILD]. Unlike the times of "xcipher-bench mikey", they do not depend on the machine's load.
It runs that program under valgrind's callgrind, once for each mode, which takes two minutes on an idle machine.

The floor is what the primitives of the mode need alone: signatures, RSA encryption, exponentiations. The rest is our own code, HMAC and AES, random numbers,
and the check of the peer's certificate."""
import os
import re
import subprocess
import sys
import tempfile

COUNT = 3  # exchanges of each mode
SIGN, VERIFY, ENCRYPT, DECRYPT, PUBLIC, SHARED = PRIMITIVES = ("mikey_sign", "mikey_verify", "mikey_encrypt", "mikey_decrypt", "mikey_dh_public",
                                                              "mikey_dh_shared")
# Primitives of the initiator and of the responder.
NEEDS = {"psk": ((), ()), "pke": ((SIGN, ENCRYPT), (VERIFY, DECRYPT)), "dh": ((SIGN, VERIFY, PUBLIC, SHARED),) * 2, "dhhmac": ((PUBLIC, SHARED),) * 2,
         "rsa-r": ((SIGN, VERIFY, DECRYPT), (SIGN, VERIFY, ENCRYPT))}
SIDES = ("mikey_initiate", "mikey_finish"), ("mikey_respond",)


def costs(path):
    """By function: calls, and instructions of it and of all that it calls."""
    found, names, callee = {}, {}, None
    with open(path, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line)
            if m:
                names[m[2]] = m[3] or names[m[2]]
                callee = names[m[2]] if m[1] else callee
            elif line.startswith("calls="):
                calls, cost = found.get(callee, (0, 0))
                found[callee] = calls + int(line[6:].split()[0]), cost + int(next(f).split()[1])
    return found


def measured(build, mode):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-pos=no", os.path.join(build, "xcipher-bench"),
                        "mikey", f"--count={COUNT}", f"--mode={mode}"], check=True, capture_output=True)
        return costs(out)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    print(f"thousands of instructions, mean of {COUNT}\n{'mode':8} {'initiator':>12} {'floor':>12} {'responder':>12} {'floor':>12}")
    single = {}
    for mode, needs in NEEDS.items():
        found = measured(build, mode)
        for name in PRIMITIVES:
            if name in found:
                single.setdefault(name, found[name][1] / found[name][0])
        row = []
        for tops, parts in zip(SIDES, needs):
            row += [sum(found[top][1] for top in tops) / COUNT, sum(found[p][1] / found[p][0] for p in parts)]
        print(f"{mode:8} " + " ".join(f"{v / 1000:12,.0f}" for v in row), flush=True)
    for name, cost in single.items():
        print(f"{name:16} {cost / 1000:12,.0f}")


if __name__ == "__main__":
    main()
