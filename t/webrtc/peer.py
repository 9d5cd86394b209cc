# SPDX-License-Identifier: GPL-2.0-or-later
"""What all peers have in common. A peer is a program in a namespace:

    peer_KIND.py --tone=440 --address=10.200.1.2 [--fault=fingerprint] [options of this kind]

It reads commands from stdin, one JSON object a line, and writes one JSON object per command to stdout:

    {"do": "offer"}                 its offer                     {"sdp": "v=0..."}
    {"do": "answer", "sdp": "..."}  takes an offer, answers it    {"sdp": "v=0..."}
    {"do": "restart"}               an offer that restarts ICE    {"sdp": "v=0..."}, only programs that can
    {"do": "accept", "sdp": "..."}  takes the answer to its offer {}
    {"do": "report"}                see Report                    {...}
    {"do": "quit"}                  the program ends

A command that fails gives {"error": "..."}. Times are nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share."""
import argparse
import asyncio
import json
import os
import sys
import time
import traceback

REPORT = {
    "state": "new",         # new, connected, failed, closed: ICE and DTLS together
    "dtls": "none",         # state of DTLS, or none
    "profile": "",          # SRTP profile or suite in use
    "pair": "",             # selected pair: local address and port, remote ones
    "packets_in": 0,        # RTP packets that were authentic
    "packets_out": 0,
    "lost": 0,              # gaps in the sequence numbers
    "tones": {},            # level of each tone in what was received, amplitude of 16-bit samples
    "blocks": 0,            # pieces of 200 ms that were received
    "first_in_ns": 0,       # the first packet_in, 0 if none
    "first_out_ns": 0,
    "log": [],              # what the peer complains about
}


def arguments(**more):
    """The common command line. more: further options and their defaults."""
    p = argparse.ArgumentParser()
    p.add_argument("--tone", type=int, default=440)
    p.add_argument("--address", default="127.0.0.1")
    p.add_argument("--fault", choices=("", "fingerprint"), default="")
    for name, default in more.items():
        p.add_argument("--" + name.replace("_", "-"), default=default)
    return p.parse_args()


def wrong_fingerprint(sdp):
    """The same SDP with another certificate's fingerprints: each hexadecimal digit is replaced."""
    lines = sdp.split("\r\n")
    for i, line in enumerate(lines):
        if line.startswith("a=fingerprint:"):
            name, _, value = line.partition(" ")
            lines[i] = name + " " + value.upper().translate(str.maketrans("0123456789ABCDEF", "123456789ABCDEF0"))
    return "\r\n".join(lines)


class Losses:
    """Counts gaps in the sequence numbers of each SSRC."""

    def __init__(self):
        self.seen, self.got = {}, 0

    def take(self, ssrc, seq):
        self.got += 1
        first, highest, n = self.seen.get(ssrc, (seq, seq, 0))
        ahead = (seq - highest + 0x8000 & 0xffff) - 0x8000
        self.seen[ssrc] = (first, highest + max(ahead, 0), n + 1)

    def lost(self):
        return sum(highest - first + 1 - n for first, highest, n in self.seen.values())


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


async def obey(peer, order):
    what = order["do"]
    if what == "offer":
        return {"sdp": await peer.offer()}
    if what == "answer":
        return {"sdp": await peer.answer(order["sdp"])}
    if what == "accept":
        await peer.accept(order["sdp"])
        return {}
    if what == "report":
        return REPORT | await peer.report()
    raise ValueError(f"unknown command {what}")


async def serve(peer):
    """Until stdin ends."""
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps({"ready": True}), flush=True)
    while line := await reader.readline():
        order = json.loads(line)
        if order["do"] == "quit":
            break
        try:
            out = await obey(peer, order)
        except Exception as why:  # a library may fail in any way
            traceback.print_exc()
            out = {"error": f"{type(why).__name__}: {why}"}
        print(json.dumps(out), flush=True)
    sys.stdout.flush()
    os._exit(0)  # the runner has its report; libraries take seconds to close
