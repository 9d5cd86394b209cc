#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The same attacks against xcipherd and Debian's rtpengine (userspace). Prints the results as a markdown table. make attack-peers.

Each attack has its own namespaces and its own daemon, started with defaults. Nothing outside these namespaces is ever addressed.
A cell says what was measured at the wire or in a reply. Each attack first makes an ordinary call and fails if that one has no media.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import attacks  # noqa: E402
import netns  # noqa: E402
import peer_rig  # noqa: E402
import relay  # noqa: E402


def version(program):
    import re
    import subprocess
    p = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    m = re.search(r"\d+\.\d+(\.\d+)*", p.stdout + p.stderr)
    return m[0] if m else ""


def measure(attack, kind):
    with netns.Net(peer_rig.PLACES) as net:
        rig = peer_rig.Rig(net, kind)
        try:
            return attack(rig)
        except peer_rig.Refused as why:
            return f"refused: {why}"
        except (TimeoutError, OSError, RuntimeError) as why:
            return f"no reply ({why})" if rig.runs() else "the daemon died"
        finally:
            rig.close()


def main():
    wanted = sys.argv[1:]
    kinds = [k for k in ("rtpengine", "xcipherd") if k != "rtpengine" or relay.have_rtpengine()]
    names = {"rtpengine": "rtpengine " + version("/usr/bin/rtpengine"), "xcipherd": "xcipherd " + version(os.path.join(relay.BUILD, "xcipherd"))}
    print(f"| attack | {' | '.join(names[k] for k in kinds)} |\n|---|{'---|' * len(kinds)}")
    start = time.monotonic()
    for attack in attacks.ALL:
        if wanted and attack.__name__ not in wanted:
            continue
        cells = [measure(attack, k) for k in kinds]
        print(f"| {attack.__doc__.strip().splitlines()[0]} | {' | '.join(cells)} |", flush=True)
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
