#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every action of the module, for both families, and its netlink interface with valid and invalid
requests."""
import socket

import rig
from rig import equal, tap
import netns
import ng

RTP = bytes.fromhex("8000000100000064deadbeef")


def brief(r):
    return r["got"], r["dup"], r["late"], r["bad"]


def counters(nfx, w):
    return nfx.ok(f"get addr={w.g} port=30000")[0]


def relay(w, nfx):
    nfx.ok(w.target())
    r = w.flow("--count", 200, "--rate", 2000, "--ttl", 64)[0]
    equal(f"{w.name}: relay loses, repeats, reorders, changes nothing", brief(r), (200, 0, 0, 0))
    equal(f"{w.name}: it leaves from the other port, one hop older", (r["from"], r["ttl"]), (f"{w.h},30002", 63))
    c = counters(nfx, w)
    equal(f"{w.name}: all are counted", (c["RTP_PACKETS"], c["RTP_BYTES"], c["SENT"], c["SENT_BYTES"], c["QUEUED"], c["RTCP_PACKETS"]),
          (200, 200 * 172, 200, 200 * 172, 0, 0))
    tap(c.get("last_seen", 9999) < 3000, f"{w.name}: when it was last seen is known")
    nfx.ok(w.target(more="").replace(",30002", ",30002,0xb8"))
    equal(f"{w.name}: TOS is set", w.flow("--count", 5)[0]["tos"], 0xb8)
    nfx.ok(w.target())
    equal(f"{w.name}: TOS is kept", w.flow("--count", 5, "--tos", 0x20)[0]["tos"], 0x20)
    r = w.flow("--count", 50, "--size", 1400)[0]
    equal(f"{w.name}: large packets pass", brief(r), (50, 0, 0, 0))
    equal(f"{w.name}: no packet outlives its hops", w.flow("--count", 5, "--ttl", 1)[0]["got"], 0)
    equal(f"{w.name}: that is counted", counters(nfx, w)["TTL"], 5)
    before = counters(nfx, w)["RTP_PACKETS"]
    r = w.flow("--count", 5, "--kind", "rtcp")[0]
    c = counters(nfx, w)
    equal(f"{w.name}: RTCP is relayed too, and told apart", (r["got"], c["RTCP_PACKETS"], c["RTP_PACKETS"] - before), (5, 5, 0))
    nfx.ok(w.target(more="rtcp=drop"))
    equal(f"{w.name}: RTCP may go another way", (w.flow("--count", 5, "--kind", "rtcp")[0]["got"], w.flow("--count", 5)[0]["got"]), (0, 5))


def several(w, nfx):
    c = w.net.terminal["callee"]
    nfx.ok(w.target() + f" dest={w.b},5002,{w.h},30002 dest={w.b},5004,{w.h},30004")
    r = w.flow("--count", 100, "--rate", 2000, recv=["b", f"{c},{w.b},5002", f"{c},{w.b},5004"])
    equal(f"{w.name}: three destinations get all", [brief(x) for x in r], [(100, 0, 0, 0)] * 3)
    equal(f"{w.name}: each from where it should", [x["from"].split(",")[1] for x in r], ["30002", "30002", "30004"])


def others(w, nfx):
    nfx.ok(w.target("drop"))
    before = counters(nfx, w)["DROPPED"]
    equal(f"{w.name}: drop", (w.flow("--count", 20, recv=["g"])[0]["got"], counters(nfx, w)["DROPPED"] - before), (0, 20))
    nfx.ok(w.target("pass"))
    equal(f"{w.name}: pass goes to the socket", brief(w.flow("--count", 20, recv=["g"])[0]), (20, 0, 0, 0))
    nfx.ok(w.target("queue", "queue=99 flags=bypass"))
    equal(f"{w.name}: a queue that nobody reads is passed by", brief(w.flow("--count", 20, recv=["g"])[0]), (20, 0, 0, 0))
    nfx.ok(w.target("queue", "queue=99"))
    equal(f"{w.name}: or drops, as wanted", w.flow("--count", 20, recv=["g"])[0]["got"], 0)
    nfx.ok(w.target())
    for kind in ("stun", "dtls"):
        equal(f"{w.name}: {kind} goes to the socket", brief(w.flow("--count", 5, "--kind", kind, recv=["g"])[0]), (5, 0, 0, 0))
    nfx.ok(w.target(more="flags=strict"))
    before = counters(nfx, w)["MALFORMED"]
    equal(f"{w.name}: strict drops what is nothing",
          (w.flow("--count", 5, "--kind", "junk", recv=["g"])[0]["got"], counters(nfx, w)["MALFORMED"] - before), (0, 5))


def short(w):
    """Sends datagrams of 0 to 13 bytes with RTP's version. Returns how many were relayed unchanged
    from the right port, arrived at all, and were sent."""
    family = socket.AF_INET6 if w.v6 else socket.AF_INET
    with ng.socket_in(w.net.terminal["caller"], family) as a, ng.socket_in(w.net.terminal["callee"], family) as b:
        a.bind((w.a, 4000))
        b.bind((w.b, 5000))
        sent = [(head + bytes(14))[:n] for head in (b"\x80\x01", b"\x80\xc8") for n in range(14)]
        for data in sent:
            a.sendto(data, (w.g, 30000))
        rig.settled()
        b.settimeout(0)
        got = []
        while True:
            try:
                got.append(b.recvfrom(100))
            except BlockingIOError:
                break
    return sum((data, w.h, 30002) in [(d, *s[:2]) for d, s in got] for data in sent), len(got), len(sent)


def unread(w, nfx):
    nfx.ok(w.target())
    before = counters(nfx, w)["MALFORMED"]
    equal(f"{w.name}: a target of RTP drops packets shorter than a header", (short(w)[1], counters(nfx, w)["MALFORMED"] - before), (8, 16))
    nfx.ok(w.target(more="flags=unread"))
    for kind in ("rtp", "rtcp", "stun", "dtls", "junk"):
        equal(f"{w.name}: flag unread: {kind} is relayed", brief(w.flow("--count", 5, "--kind", kind)[0]), (5, 0, 0, 0))
    was = counters(nfx, w)
    equal(f"{w.name}: flag unread: datagrams of any length are relayed", short(w), (28, 28, 28))
    now = counters(nfx, w)
    equal(f"{w.name}: flag unread: all are counted as RTP", [now[k] - was[k] for k in ("RTP_PACKETS", "RTCP_PACKETS", "OTHER", "MALFORMED", "RELAYED", "SENT")],
          [28, 0, 0, 0, 28, 28])
    nfx.ok(w.target(more=f"flags=unread source={w.a} source_port=4000"))
    equal(f"{w.name}: flag unread: only from the confirmed source", [w.flow("--count", 5, "--kind", "junk", port=p)[0]["got"] for p in (4000, 4002)], [5, 0])
    nfx.ok(w.target("pass", "flags=unread"))
    equal(f"{w.name}: flag unread: action pass goes to the socket", brief(w.flow("--count", 5, "--kind", "rtcp", recv=["g"])[0]), (5, 0, 0, 0))
    nfx.ok(f"del addr={w.g} port=30000")  # its counters end here


def sources(w, nfx):
    nfx.ok("events")
    right = f"source={w.a} source_port=4000"
    nfx.ok(w.target(more=f"{right} mismatch=mdrop"))
    equal(f"{w.name}: the confirmed source", w.flow("--count", 10)[0]["got"], 10)
    equal(f"{w.name}: another one is dropped", w.flow("--count", 10, port=4002)[0]["got"], 0)
    nfx.ok(w.target(more=f"{right} mismatch=mcount"))
    equal(f"{w.name}: or only counted", (w.flow("--count", 10, port=4002)[0]["got"], counters(nfx, w)["MISMATCH"]), (10, 20))
    nfx.ok(w.target(more=f"{right} mismatch=mpass cookie=77"))
    r = w.flow("--count", 10, port=4002, recv=["g", "b"])
    equal(f"{w.name}: or passed to the socket", [x["got"] for x in r], [10, 0])
    code, _, rows = nfx("event 1000")
    equal(f"{w.name}: and an event tells of it", (code, rows and [rows[0].get(k) for k in ("event", "cookie", "source", "source_port")]),
          (0, [1, 77, w.a, 4002]))
    nfx.ok(w.target(more="ssrc=0x1234 queue=99 flags=bypass"))
    equal(f"{w.name}: the known SSRC is relayed", w.flow("--count", 10)[0]["got"], 10)
    r = w.flow("--count", 10, "--ssrc", 0x999, recv=["b", "g"])
    equal(f"{w.name}: another SSRC is the daemon's", [x["got"] for x in r], [0, 10])
    code, _, rows = nfx("event 1000")
    equal(f"{w.name}: with an event", (code, rows and rows[0].get("event"), rows and rows[0].get("ssrc")), (0, 4, 0x999))
    nfx.ok(w.target(more="silence=300"))
    w.flow("--count", 5)
    code, _, rows = nfx("event 3000")
    equal(f"{w.name}: silence is told", (code, rows and rows[0].get("event")), (0, 2))


def limited(w, rate):
    """500 packets at up to 500 a second against a limit. The bucket holds 8 and refills meanwhile,
    however slow this guest is."""
    r = w.flow("--count", 500, "--rate", 500)[0]
    seconds = r["us"] / 1e6
    tap(8 <= r["got"] <= 8 + 1.1 * rate * seconds + 2 and r["got"] < 500, f"{w.name}: {rate} packets a second pass ({r['got']} in {seconds:.1f} s)")
    return r["got"]


def rates(w, nfx):
    nfx.ok(w.target(more="rate=10"))
    got = limited(w, 10)
    equal(f"{w.name}: the rest is counted", counters(nfx, w)["RATE_DROPS"], 500 - got)
    code, _, rows = nfx("event 1000")
    equal(f"{w.name}: flood is told", (code, rows and rows[0].get("event")), (0, 3))
    nfx.ok(w.target(more="source_rate=10"))
    got = limited(w, 10)
    equal(f"{w.name}: the rest of a source is counted too", counters(nfx, w)["SOURCE_DROPS"], 500 - got)


def flooded(w, data, port):
    """100 of these datagrams from a port of the terminal's address, then 8 RTP packets of the terminal. How many of these were relayed."""
    family = socket.AF_INET6 if w.v6 else socket.AF_INET
    sockets = [ng.socket_in(w.net.terminal[t], family) for t in ("caller", "caller", "callee")]
    for s, local in zip(sockets, ((w.a, 4000), (w.a, port), (w.b, 5000))):
        s.bind(local)
    for s, datagrams in ((sockets[1], [data] * 100), (sockets[0], [RTP + bytes([i]) for i in range(8)])):
        for d in datagrams:
            s.sendto(d, (w.g, 30000))
    rig.settled()
    sockets[2].settimeout(0)
    got = set()
    try:
        while True:
            got.add(sockets[2].recv(100))
    except BlockingIOError:
        pass
    for s in sockets:
        s.close()
    return len([d for d in got if d != data])


def strangers(w, nfx):
    name, right = f"addr={w.g} port=30000", f"source={w.a} source_port=4000 mismatch=mpass "
    for what, more, data in (("STUN", right, bytes(20)), ("RTP", right, RTP), ("STUN, if no source is confirmed,", "", bytes(20))):
        nfx.ok(f"del {name}")  # the next one may take 8 packets at once
        nfx.ok(w.target(more=f"{more}rate=1"))
        equal(f"{w.name}: a stranger's flood of {what} takes nothing of the terminal's rate", flooded(w, data, 4002), 8)
        lost = counters(nfx, w)["RATE_DROPS"]
        tap(80 <= lost <= 92, f"{w.name}: it is limited itself ({lost} of 100 dropped)")


def interface(w, nfx):
    name = f"addr={w.g} port=30000"
    nfx.ok(f"del {name}")
    equal(f"{w.name}: what is not there cannot be changed or removed",
          (nfx(w.target().replace("+create ", ""))[0], nfx(f"del {name}")[0], nfx(f"get {name}")[0]), (-2, -2, -2))
    nfx.ok(w.target(more="cookie=5"))
    equal(f"{w.name}: nor made twice with +excl", nfx(w.target().replace("+create", "+create +excl"))[0], -17)
    nfx.ok(w.target("drop", port=30010))
    equal(f"{w.name}: a dump gives all, or what is asked for",
          [len(nfx.ok(f"get +dump {f}")) for f in ("", "action=relay", f"addr={w.g}", "port=30010", "owner=1", "owner=2", "port=1")],
          [2, 1, 2, 1, 2, 0, 0])
    nfx.ok("flush")
    equal(f"{w.name}: flush takes all", len(nfx.ok("get +dump")), 0)


def wrong(w, nfx):
    name = f"addr={w.g} port=30000"
    for what, line in (("no action", f"set +create {name}"), ("no port", f"set +create addr={w.g} action=drop"),
                       ("no address", "set +create port=30000 action=drop"), ("relay to nowhere", f"set +create {name} action=relay"),
                       ("an unknown action", f"set +create {name} action=9"), ("an unknown flag", f"set +create {name} action=drop flags=0x8000"),
                       ("queue without a number", f"set +create {name} action=queue"),
                       ("an SSRC with flag unread", f"set +create {name} action=pass flags=unread ssrc=1"),
                       ("an action for RTCP with flag unread", f"set +create {name} action=pass rtcp=drop flags=unread"),
                       ("a destination of the other family",
                        f"set +create {name} action=relay dest={'10.0.0.1' if w.v6 else 'fd00::1'},5,{w.h},6"),
                       ("too many destinations", f"set +create {name} action=relay" + f" dest={w.b},5,{w.h},6" * 40)):
        code, text, _ = nfx(line)
        tap(code in (-22, -34, -7, -28) and len(nfx.ok("get +dump")) == 0, f"{w.name}: {what} is refused ({code} {text})")


def owners(net, w, nfx):
    other = rig.Nfx(net.gateway)
    code, text, _ = other(w.target())
    tap(code in (-1, -13, -22) and text, f"who did not say HELLO changes nothing ({code} {text})")
    code, text, _ = other("hello version=1 features=1 owner=1 grace=1000")
    tap(code == -16 and text, f"an owner that is there keeps its targets ({code} {text})")
    code, text, rows = other("hello version=99 features=1 owner=3 grace=1000")
    tap(code and text, f"another version is refused in words ({code} {text})")
    said = other.ok("hello version=1 features=0xffff0001 owner=3 grace=1000")[0]
    equal("features are what both know", said["features"], 1)
    code, text, _ = other("set +create addr=10.9.9.9 port=9 action=pass flags=unread")
    tap(code == -95 and text, f"a feature not agreed on is refused ({code} {text})")
    nfx.ok(w.target())
    tap(other(f"del addr={w.g} port=30000")[0] in (-1, -13, -16, -2), "targets of another owner cannot be removed")
    code, text, _ = other(w.target("drop"))
    tap(code < 0, f"nor replaced ({code} {text})")
    equal("it does what it did", w.flow("--count", 5)[0]["got"], 5)
    other.close()
    out = rig.run(["ip", "netns", "exec", net.gateway, "sh", "-c",
                   "printf 'hello version=1 features=1 owner=9 grace=1000\\nevents\\n' | /build/t/nfx nobody"], check=False)
    equal("without privilege nothing is said, and no event heard", out.split("\n")[:2], ["= -1", "= -1"])


def main():
    with netns.Net(("caller", "callee")) as net:
        nfx = rig.Nfx(net.gateway)
        said = nfx.hello()
        rig.note(said)
        for v6 in (False, True):
            w = rig.Way(net, v6)
            for part in (relay, several, others, unread, sources, rates, strangers, interface, wrong):
                part(w, nfx)
        owners(net, rig.Way(net, False), nfx)
        nfx.close()


rig.test(main)
