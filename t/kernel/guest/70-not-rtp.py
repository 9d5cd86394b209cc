#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets other than RTP under kernel steering. Datagrams of T.38, BFCP and DTLS reach the other terminal unchanged, through the
module's queue. ZRTP, DTLS and STUN between terminals with keys of their own pass while the kernel relays their RTP. Checks of a
terminal with ICE reach the keying thread."""
import importlib.util
import struct
import threading
import time

import rig
from rig import equal, tap
import calls
import dtls
import ice
import netns
import not_rtp as raw
from test_ng import Phone, start, talk, wants

spec = importlib.util.spec_from_file_location("relayed", "/guest/60-relay.py")
relayed = importlib.util.module_from_spec(spec)
rig_test, rig.test = rig.test, lambda f: None  # imports its functions without running it
spec.loader.exec_module(relayed)
rig.test = rig_test

# Every first byte. Then second bytes that mark RTCP in RFC 5761.
NUMBERS = (*range(3), *range(0, 65536, 256), *range(0x80c0, 0x80e0, 4), *range(0xbfc0, 0xbfe0, 4))
LONG = b"x" * 40


def pair(net, kind, *more):
    return kind(net, "caller", "10.200.1.2", *more), kind(net, "callee", "10.200.2.2", *more)


def comes(a, b, datagram, seconds=60):
    """Whether the datagram reaches b, from the port that b sends to. Skips late ones sent before it."""
    a.sock.sendto(datagram, a.to)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        b.sock.settimeout(max(end - time.monotonic(), 0.001))
        try:
            if b.sock.recvfrom(4096) == (datagram, b.to):
                return True
        except TimeoutError:
            break
    return False


def lost(a, b, datagrams):
    """Datagrams that do not arrive; only the first few, because each takes time."""
    missing = []
    for d in datagrams:
        for x, y in ((a, b), (b, a)):
            if len(missing) < 3 and not comes(x, y, d):
                missing.append(f"{'to' if x is a else 'from'} the callee: {d[:3].hex()}, {len(d)} bytes")
    return missing


def passes(name, a, b, datagrams):
    missing = lost(a, b, datagrams)
    return tap(not missing, f"{name}: all {2 * len(datagrams)} arrive unchanged" if not missing
               else f"{name}: of {2 * len(datagrams)} these did not arrive: {', '.join(missing[:6])} and {len(missing[6:])} more")


def fax(numbers=NUMBERS, after=0):
    """For each number a datagram of 6 bytes, an indicator without redundancy, and one longer than
    an RTP header. after: differs in each part of a call, because a stream watched for circles
    drops repeated packets (daemon/media/again.c)."""
    return [raw.udptl(n + after, d) for n in numbers for d in (b"\x06", LONG)]


def statistic(daemon, key):
    return relayed.find(daemon.statistics(), key)


def exchange(daemon, a, b, lines, call_id, **more):
    raw.exchange(daemon.client, a, b, a.m(*lines), b.m(*lines), call_id=call_id, **more)


def datagrams(net, daemon, by="received by ring"):
    a, b = pair(net, raw.Terminal)
    exchange(daemon, a, b, raw.FAX, "fax")
    before = statistic(daemon, by)
    passes("T.38", a, b, fax())
    passes("T.38 with redundancy", a, b, [raw.udptl(0x8000, LONG) * 8])
    drops = daemon.statistics()["drops"]
    equal("the daemon found nothing malformed", (drops["malformed"], drops["not-media"]), (0, 0))
    by_socket, by_module = statistic(daemon, "by fallback socket"), statistic(daemon, by) - before
    tap(by_socket == 0 and by_module > len(fax()), f"by the module: {by_module} {by}, {by_socket} by sockets")
    equal("none of it is relayed by the kernel", relayed.steering(daemon)[0], 0)
    calls.ok(daemon.client.call("delete", call_id="fax", from_tag="a", delete_delay=0))


def others(net, daemon):
    kinds = {"BFCP": (raw.FLOOR, [raw.bfcp(n) for n in range(1, 4)] + [raw.bfcp(1, 13)]),
             "DTLS": (raw.DATA, [raw.dtls(0), raw.dtls(1, 20, b"\1"), raw.dtls(2, 23)])}
    for name, (lines, packets) in kinds.items():
        a, b = pair(net, raw.Terminal)
        exchange(daemon, a, b, lines, name)
        passes(name, a, b, packets)
        calls.ok(daemon.client.call("delete", call_id=name, from_tag="a", delete_delay=0))


class Talk:
    """Two phones that keep sending RTP to each other. Other packets are sent in parallel, from the same sockets. A phone receives only
    from the port that it sends to."""

    def __init__(self, a, b):
        self.phones, self.on = (a, b), True
        self.sent, self.got, self.other = [0, 0], [0, 0], [[], []]
        self.threads = [threading.Thread(target=f, args=(n,)) for n in range(2) for f in (self.speak, self.hear)]
        for t in self.threads:
            t.start()

    def speak(self, n):
        while self.on:
            self.phones[n].send(b"voice")
            self.sent[n] += 1
            time.sleep(0.02)

    def hear(self, n):
        self.phones[n].sock.settimeout(0.5)
        while True:
            try:
                packet, source = self.phones[n].sock.recvfrom(2048)
            except TimeoutError:
                if self.on:
                    continue
                return
            if source != self.phones[n].to:
                continue
            if packet[0] >> 6 == 2:
                self.got[n] += 1
            else:
                self.other[n].append(packet)

    def passes(self, packets):
        """Sends them in both directions. Returns those that did not arrive."""
        for p in packets:
            for phone in self.phones:
                phone.sock.sendto(p, phone.to)
            time.sleep(0.01)
        rig.until(lambda: all(len(o) >= len(packets) for o in self.other), 10)
        return [(n, p[:4].hex()) for n in range(2) for p in packets if p not in self.other[n]]

    def end(self):
        self.on = False
        for t in self.threads:
            t.join()


def in_kernel(daemon, n):
    return rig.until(lambda: relayed.steering(daemon)[0] == n, 20)


def medias(daemon, call_id):
    tags = calls.ok(daemon.client.call("query", call_id=call_id))["tags"]
    return [tags[tag]["medias"][0] for tag in ("a", "b")]


def keying(net, daemon, name, suite, **flags):
    a, b = pair(net, Phone, suite)
    talk(daemon.client, a, b, name, **flags)
    media = Talk(a, b)
    tap(in_kernel(daemon, 2), f"{name} media go to the kernel")
    moves, packets = relayed.steering(daemon)[2], relayed.steering(daemon)[1]
    equal(f"{name}: ZRTP, DTLS and STUN pass in parallel, in both directions", media.passes(raw.OTHERS), [])
    tap(relayed.steering(daemon)[0] == 2 and relayed.steering(daemon)[2] == moves, f"{name}: the media stay in the kernel")
    tap(rig.until(lambda: relayed.steering(daemon)[1] > packets), f"{name}: which keeps relaying them")
    media.end()
    equal(f"{name}: no packet of RTP is lost", media.got, media.sent[::-1])
    m = medias(daemon, name)
    equal(f"{name}: all are counted", [x["streams"][0]["end-to-end"] for x in m], [{"ZRTP": 8, "ZRTP Conf2ACK": 1, "DTLS": 2, "STUN": 2}] * 2)
    equal(f"{name}: query reports end-to-end keys", [x.get("keying") for x in m],
          [("SDES" if suite else "ZRTP") + " end-to-end"] * 2)
    calls.ok(daemon.client.call("delete", call_id=name, from_tag="a", delete_delay=0))
    tap(in_kernel(daemon, 0), "nothing is left after the call")


def checks(net, daemon):
    """Checks of a terminal with ICE come to the keying thread by the module's queue, and its responses leave, in parallel with media."""
    a, b = ice.Ice(net, "caller", "10.200.1.2"), dtls.Plain(net, "callee", "10.200.2.2")
    b.believe(calls.ok(daemon.client.call("offer", call_id="ice", from_tag="a", sdp=a.sdp(), rtcp_mux=["accept"]))["sdp"])
    a.believe(calls.ok(daemon.client.call("answer", call_id="ice", from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
    a.check()
    tap(rig.until(lambda: a.responses and a.requests), "a check gets its response, and a check of ours comes")
    tap(rig.until(lambda: daemon.statistics()["sessions"]["ICE states"]["completed"] == 1), "a pair is selected")

    def talk_on():
        for phone in (a, b):
            phone.say(b"voice" * 32)
        return a.count["rtp"] and b.count["rtp"]
    tap(rig.until(talk_on), "media pass in both directions")
    responses, heard = a.responses, a.count["rtp"] + b.count["rtp"]
    for _ in range(3):
        a.check()
        talk_on()
    tap(rig.until(lambda: a.responses >= responses + 3), "checks are answered in parallel")
    tap(rig.until(lambda: talk_on() and a.count["rtp"] + b.count["rtp"] >= heard + 6), "and media go on")
    for phone in (a, b):
        phone.close()
    calls.ok(daemon.client.call("delete", call_id="ice", from_tag="a", delete_delay=0))


def voice_again(daemon, a, b, call_id):
    b.told(calls.ok(daemon.client.call("offer", call_id=call_id, from_tag="a", to_tag="b", sdp=a.sdp(), **wants(b)))["sdp"])
    a.told(calls.ok(daemon.client.call("answer", call_id=call_id, from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])


def becomes_a_fax(net, daemon):
    """On the same ports: RTP in the kernel, then datagrams in the daemon, then RTP in the kernel again."""
    a, b = pair(net, raw.Terminal)
    talk(daemon.client, a, b, "both")
    told = (a.to, b.to)
    for after, n in enumerate(("a call", "the same call once more")):
        media = Talk(a, b)
        tap(in_kernel(daemon, 2), f"{n} is in the kernel")
        media.end()
        equal("it loses nothing", media.got, media.sent[::-1])
        exchange(daemon, a, b, raw.FAX, "both", again=True, **wants(b))
        passes(f"{n}, now a fax", a, b, fax(range(0, 65536, 1024), after))
        equal("on the same ports, out of the kernel", ((a.to, b.to), relayed.steering(daemon)[0]), (told, 0))
        voice_again(daemon, a, b, "both")
    short = struct.pack("!HB", 0x8001, 1) + b"\x06\0\0"
    before = daemon.statistics()["drops"]["malformed"]
    tap(not comes(a, b, short, seconds=1), "with RTP again, short packets are dropped")
    equal("by the module, not by the daemon", daemon.statistics()["drops"]["malformed"], before)
    calls.ok(daemon.client.call("delete", call_id="both", from_tag="a", delete_delay=0))


def unloaded(net, daemon):
    a, b = pair(net, raw.Terminal)
    exchange(daemon, a, b, raw.FAX, "gone")
    passes("T.38 before the module goes", a, b, fax(range(0, 65536, 4096), 0))
    rig.run(["rmmod", "nf_xcipher"])
    passes("T.38 without the module", a, b, fax(range(0, 65536, 4096), 1))
    tap(rig.until(lambda: "was unloaded" in daemon.text()), "the operator is told")
    rig.run(["insmod", "/nf_xcipher.ko"])
    tap(rig.until(lambda: statistic(daemon, "kernel module returns") == 1), "the module is back")
    nfx = rig.Nfx(net.gateway)
    tap(rig.until(lambda: nfx(f"get addr={a.to[0]} port={a.to[1]}")[0] == 0), "the fax's ports are its again")
    nfx.close()
    passes("T.38 by the module that came", a, b, fax(range(0, 65536, 4096), 2))


def main():
    with netns.Net(("caller", "callee")) as net:
        daemon = start(net, "--steering=kernel", "--workers=1")
        try:
            datagrams(net, daemon)
            others(net, daemon)
            keying(net, daemon, "plain", None)
            keying(net, daemon, "passed", "80", flags=["passthrough"])
            checks(net, daemon)
            becomes_a_fax(net, daemon)
            unloaded(net, daemon)
            equal("no command failed", daemon.statistics()["command errors"], 0)
        finally:
            rig.note(daemon.text())
            daemon.stop()
        daemon = start(net, "--steering=kernel", "--workers=1", "--kernel-ring=no")
        try:
            datagrams(net, daemon, "sent by verdict")
        finally:
            rig.note(daemon.text())
            daemon.stop()


rig.test(main)
