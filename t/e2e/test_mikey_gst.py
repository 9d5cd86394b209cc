# SPDX-License-Identifier: GPL-2.0-or-later
"""GStreamer's libgstsdp reads the daemon's MIKEY messages. It hangs on types of payloads that it does not know, and reads encrypted keys as
if they were in clear. So these payloads are removed, and the child process has a time limit."""
import base64
import ctypes.util
import json
import os
import subprocess
import sys

import dtls
import relay
import test_mikey
from run import Skip, cases
from test_mikey import BOB, LINE, Call, Mikey, bob, initiator, peer, rig, terminal

PREPARE = test_mikey.PREPARE

sys.path.append(os.path.join(relay.ROOT, "t", "mikey"))

import wire  # noqa: E402

READER = os.path.join(relay.ROOT, "t", "mikey", "gst_read.py")
KNOWN = (wire.T, wire.RAND, wire.SP, wire.PKE)


def reduced(data):
    """The daemon's bytes of the header and of known payloads; only the fields "next payload" are changed. The payloads kept."""
    m = wire.Message(data)
    kept = [p for p in m.payloads if p.kind in KNOWN]
    pieces = [bytearray(data[:m.payloads[0].start])] + [bytearray(data[p.start:p.end]) for p in kept]
    for i, piece in enumerate(pieces):
        piece[2 if i == 0 else 0] = kept[i].kind if i < len(kept) else wire.LAST
    return m, kept, b"".join(pieces)


def expected(p):
    if p.kind == wire.T:
        return [p.kind, p.type, p.value.hex()]
    if p.kind == wire.RAND:
        return [p.kind, p.data.hex()]
    if p.kind == wire.SP:
        return [p.kind, p.number, p.protocol, [[t, v.hex()] for t, v in p.params]]
    return [p.kind]


def check(data):
    m, kept, text = reduced(data)
    p = subprocess.run([sys.executable, READER, text.hex()], capture_output=True, text=True, timeout=60, check=False)
    assert p.returncode == 0, p.stderr
    h = m.header
    assert json.loads(p.stdout) == {"version": 1, "type": h.data_type, "verify": h.verify, "csb_id": h.csb_id,
                                    "sessions": [list(s) for s in h.sessions], "payloads": [expected(p) for p in kept]}, p.stdout
    assert wire.T in [p.kind for p in kept]


@cases(*((mode,) for mode in peer.MODES))
def test_libgstsdp_reads_it(net, mode):
    if not ctypes.util.find_library("gstsdp-1.0"):
        raise Skip("no libgstsdp: package libgstreamer-plugins-base1.0-0")
    with rig(net) as world:
        a = terminal(world, net, Mikey).use(initiator(world, mode))
        call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"), transport_protocol="RTP/AVP").offer()
        answer = call.ask("answer", sdp=call.b.sdp(), from_tag="a", to_tag="b")
        check(base64.b64decode(LINE.search(answer)[1]))
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        lines = test_mikey.two(terminal(world, net, dtls.Plain), terminal(world, net, dtls.Plain))
        offer = Call(world.daemon, None, b).ask("offer", sdp=lines, from_tag="a", transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                                                MIKEY=["require", mode], ICE="remove")
        check(base64.b64decode(LINE.search(offer)[1]))
