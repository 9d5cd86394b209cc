#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Resident memory of xcipherd per call, from RTP to a terminal with SDES, DTLS-SRTP, the same with ICE, and with ICE and BUNDLE; and between two
terminals with SDES, and with DTLS-SRTP and ICE. Sudo; needs python3-openssl.

    bench_memory.py [--calls=2000] [--rate=150] [--rounds=3] [--kinds="SDES;DTLS"]

A kind has one xcipherd of its own. Its first half of the calls fills what all calls share and is not counted. Terminals complete their handshakes and
send one SRTP packet. Memory is read after 12 s: the relay keeps OpenSSL's memory for 10 s if no SRTP arrives. "median more than SDES" is the
result, per leg: a call with BUNDLE is compared with SDES of two m-lines, and one between two terminals with SDES between two.

Huge pages are off. Their steps of 2 MiB would be 2 KiB per call, in some kinds and not in others. Thousands of calls use the same memory with them."""
import argparse
import ctypes
import re
import statistics
import tempfile
import time

import calls
import handshakes
import netns
import relay

A, FIRST = "10.200.1.2", 10000
CRYPTO = "a=crypto:{} AES_CM_128_HMAC_SHA1_80 inline:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkw\r\n"
OFFERED = CRYPTO.format(1).replace("MTIz", "OTg3")
DTLS = {"transport_protocol": "UDP/TLS/RTP/SAVPF", "SDES": ["off"], "rtcp_mux": ["offer"]}
SDES = {"transport_protocol": "RTP/SAVP", "ICE": "remove", "SDES": ["only-AES_CM_128_HMAC_SHA1_80"]}
# Kind: m-lines, keys of the offer
KINDS = {
    "SDES": (1, SDES),
    "DTLS": (1, {**DTLS, "ICE": "remove"}),
    "DTLS, ICE": (1, {**DTLS, "ICE": "force"}),
    "SDES, both": (1, SDES),
    "DTLS, ICE, both": (1, {**DTLS, "ICE": "force"}),
    "SDES, 2 m-lines": (2, SDES),
    "DTLS, ICE, BUNDLE": (2, {**DTLS, "ICE": "force", "bundle": ["offer"]}),
}
# What a kind is compared with, and its legs that have more than that one.
FLOORS = {"DTLS": ("SDES", 1), "DTLS, ICE": ("SDES", 1), "DTLS, ICE, both": ("SDES, both", 2), "DTLS, ICE, BUNDLE": ("SDES, 2 m-lines", 1)}
PR_SET_THP_DISABLE = 41


def lines(ip, port, profile, medias, extra, own_ports=True):
    """An SDP without its session part."""
    text = ""
    for i, (kind, codec) in enumerate((("audio", "0 PCMU/8000"), ("video", "96 VP8/90000"))[:medias]):
        text += f"m={kind} {port + 2 * i * own_ports} {profile} {codec.split()[0]}\r\na=rtpmap:{codec}\r\n" + extra(i)
    return text


def body(ip, head, media):
    return f"v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\n{head}{media}"


def theirs(sdp):
    """The relay's ICE credentials."""
    return [re.search(rf"a=ice-{word}:(\S+)", sdp)[1] for word in ("ufrag", "pwd")]


class Rig:
    def __init__(self, net, cert, kind):
        self.net, self.kind, self.number = net, kind, 0
        self.cert, self.print = cert
        self.medias, self.flags = KINDS[kind]
        self.daemon = relay.Xcipherd(net, "--engine=auto", "--workers=1", addresses=("a/10.200.1.1", "b/10.200.2.1")).wait_ready()

    def call(self, port):
        """Offer and answer. What handshakes.py needs to know of its terminals; none with SDES."""
        number, names, both = self.number, None, self.kind == "DTLS, ICE, both"
        self.number += 1
        words = {"call_id": f"memory-{number}", "from_tag": "a", "replace": ["origin"], "direction": ["b" if both else "a", "b"]}
        own = [f"c{number:05}", f"1{number:023}"]
        offer = self.browser(port + 1, own) if both else self.phone()
        offered = calls.ok(self.daemon.client.call("offer", sdp=offer, **self.flags, **words))["sdp"]
        mids = re.findall(r"a=mid:(\S+)", offered)

        def extra(i):
            if "DTLS" not in self.kind:
                return CRYPTO.format(re.search(r"a=crypto:(\d+)", offered)[1])
            return self.attributes(port, names) + (f"a=mid:{mids[i]}\r\n" if i < len(mids) else "")
        if "ICE" in self.kind:
            names = [f"t{number:05}", f"{number:024}", *theirs(offered)]
        group = "BUNDLE" in self.kind
        profile = re.search(r"m=audio \d+ (\S+)", offered)[1]
        answer = body(handshakes.ADDRESS, f"a=group:BUNDLE {' '.join(mids)}\r\n" if group else "",
                      lines(handshakes.ADDRESS, port, profile, self.medias, extra, not group))
        answered = calls.ok(self.daemon.client.call("answer", sdp=answer, to_tag="b", **words))["sdp"]
        made = [{"port": port, "to": calls.parse(offered)["port"], "ice": names}] if "DTLS" in self.kind else []
        return made + ([{"port": port + 1, "to": calls.parse(answered)["port"], "ice": own + theirs(answered)}] if both else [])

    def phone(self):
        """An offer with SDES or RTP."""
        if self.kind == "SDES, both":
            return body(A, "", lines(A, 8000, "RTP/SAVP", self.medias, lambda i: OFFERED))
        return body(A, "", lines(A, 8000, "RTP/AVP", self.medias, lambda i: ""))

    def attributes(self, port, names):
        """Of a terminal with DTLS. names: its ICE credentials come first."""
        text = f"a=rtcp-mux\r\na=setup:active\r\na=fingerprint:sha-256 {self.print}\r\n"
        if names:
            text += f"a=ice-ufrag:{names[0]}\r\na=ice-pwd:{names[1]}\r\na=candidate:1 1 udp 2130706431 {handshakes.ADDRESS} {port} typ host\r\n"
        return text

    def browser(self, port, names):
        """An offer with DTLS and ICE."""
        return body(handshakes.ADDRESS, "", lines(handshakes.ADDRESS, port, "UDP/TLS/RTP/SAVPF", self.medias, lambda i: self.attributes(port, names)))

    def batch(self, count, rate):
        terminals = [t for _ in range(count) for t in self.call(FIRST + (self.number * 2) % 50000)]
        if not terminals:
            return None
        process = handshakes.spawn(self.net, self.cert, rate, terminals)
        completed, seconds = process.stdout.readline().split()
        assert int(completed) == len(terminals), f"{completed} of {len(terminals)} handshakes completed"
        print(f"{self.kind}: {completed} handshakes in {seconds} s", flush=True)
        return process

    def end(self, processes):
        for p in filter(None, processes):
            p.stdin.close()
            p.wait()
        self.daemon.stop()


def measure(net, cert, kind, args):
    """KiB of resident memory per call."""
    rig, half = Rig(net, cert, kind), args.calls // 2
    processes = [rig.batch(half, args.rate)]
    time.sleep(12)
    before = rig.daemon.rss_kib()
    processes.append(rig.batch(half, args.rate))
    time.sleep(12)
    used = (rig.daemon.rss_kib() - before) / half
    rig.end(processes)
    return used


def main():
    p = argparse.ArgumentParser()
    for name, default in (("calls", 2000), ("rate", 150), ("rounds", 3)):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--kinds", default=";".join(KINDS))
    args = p.parse_args()
    got = {kind: [] for kind in args.kinds.split(";")}
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_THP_DISABLE)")
    with tempfile.TemporaryDirectory() as folder:
        cert = handshakes.certificate(folder)
        for _ in range(args.rounds):
            for kind in got:
                with netns.Net(("caller", "callee")) as net:
                    got[kind].append(measure(net, cert, kind, args))
    for kind, values in got.items():
        floor, legs = FLOORS.get(kind, ("", 1))
        text = f"{kind:20} KiB per call: {', '.join(f'{v:.1f}' for v in values):24}"
        if floor in got:
            more = (statistics.median(values) - statistics.median(got[floor])) / legs
            text += f" median of a leg, more than {floor}: {more:.1f}"
        print(text, flush=True)


if __name__ == "__main__":
    main()
