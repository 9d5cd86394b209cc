#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The model-based attack test (t/attack) with kernel steering, for which the module must be in the kernel. ATTACK_SEEDS and ATTACK_STEPS
choose the sequences."""
import contextlib
import importlib.util
import os
import sys

import rig
import netns

FOLDER = "/tree/t/attack"


class Notes:
    """Prints lines as comments, so that they do not count as results of this script."""

    def __init__(self):
        self.line = ""

    def write(self, text):
        *lines, self.line = (self.line + text).split("\n")
        for line in lines:
            print(f"# {line}", file=sys.__stdout__, flush=True)

    def flush(self):
        pass


def sequence(seed):
    sys.argv = ["run.py", "--steering=kernel", f"--seed={seed}", f"--steps={os.environ.get('ATTACK_STEPS', '120')}", "--no-shrink"]
    code = None
    with contextlib.redirect_stdout(Notes()):
        try:
            attack.main()
        except SystemExit as ended:
            code = ended.code
    rig.equal(f"seed {seed}: no rule is broken, and enough was relayed", code, 0)


def main():
    with netns.Net(("caller",)) as net:
        look = rig.Nfx(net.gateway)
        before = look.ok("stats")[0]
        look.close()
    rig.note(f"the module is there: {before}")
    for seed in os.environ.get("ATTACK_SEEDS", "12").split(","):
        rig.test(lambda seed=seed: sequence(seed))


spec = importlib.util.spec_from_file_location("attack_run", f"{FOLDER}/run.py")
attack = importlib.util.module_from_spec(spec)
spec.loader.exec_module(attack)
rig.test(main)
