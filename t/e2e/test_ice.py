# SPDX-License-Identifier: GPL-2.0-or-later
"""The ICE agent (t/tool/ice_peer) with an independent implementation: aioice."""
import os
import subprocess
import sys
import time

import relay
from run import Skip, cases

HERE = os.path.dirname(os.path.abspath(__file__))
# tools/webrtc-peers.sh fetches aiortc into it, which brings aioice.
FOLDER = os.environ.get("ICE_PYTHON", os.path.join(HERE, "../../build/webrtc/python"))
WAIT = 60


def need_aioice():
    code = "import sys; sys.path.append(sys.argv[1]); import aioice"
    if subprocess.run([sys.executable, "-c", code, FOLDER], capture_output=True, check=False).returncode:
        raise Skip("the Python module aioice is not installed: tools/webrtc-peers.sh fetches it")


class End:
    """A process that speaks lines."""

    def __init__(self, net, namespace, args):
        self.p = net.spawn(namespace, args, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        os.set_blocking(self.p.stdout.fileno(), False)
        self.lines = []
        self.rest = b""

    def until(self, wanted):
        """Lines up to the first one that begins with this, and that one; those after it stay."""
        end = time.monotonic() + WAIT
        while True:
            for i, line in enumerate(self.lines):
                if line.startswith(wanted):
                    got, self.lines = self.lines[:i + 1], self.lines[i + 1:]
                    return got
            data = self.p.stdout.read()
            if data:
                *lines, self.rest = (self.rest + data).split(b"\n")
                self.lines += [line.decode() for line in lines]
            elif data == b"":
                raise AssertionError(f"ended before {wanted!r}: {self.lines}")
            elif time.monotonic() > end:
                raise AssertionError(f"no {wanted!r} in {WAIT} s: {self.lines}")
            else:
                time.sleep(0.02)

    def tell(self, lines):
        self.p.stdin.write("".join(line + "\n" for line in lines).encode())
        self.p.stdin.flush()


def connect(net, ours, lite, components):
    """Both connected, ours in the gateway as offer or answer; each gets the other's lines when the offer's are there."""
    need_aioice()
    addresses = [f"{a}:{5000 + c}/{c}" for c in range(1, components + 1) for a in ("10.200.1.1", "[fd00:1::1]")]
    us = End(net, net.gateway, [os.path.join(relay.BUILD, "t/ice_peer"), ours, "lite" if lite else "full", *addresses])
    them = End(net, net.terminal["caller"], [sys.executable, os.path.join(HERE, "ice_aioice.py"), FOLDER, "answer" if ours == "offer" else "offer",
                                 str(components), *(["lite"] if lite else [])])
    our_lines, their_lines = us.until("end"), them.until("end")
    them.tell(our_lines)
    us.tell(their_lines)
    them.until("connected")
    us.until("state completed")
    for component in range(1, components + 1):
        them.until(f"echo {component}")
    return us, them


@cases(("offer", False, 1), ("answer", False, 1), ("offer", False, 2), ("answer", True, 1))
def test_ice_with_aioice(net, ours, lite, components):
    us, them = connect(net, ours, lite, components)
    assert us.p.poll() is None and them.p.poll() is None


def test_ice_consent_with_aioice(net):
    """The peer vanishes: consent is lost."""
    us, them = connect(net, "answer", False, 1)
    them.p.kill()
    us.until("state consent lost")
