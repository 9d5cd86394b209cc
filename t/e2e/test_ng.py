# SPDX-License-Identifier: GPL-2.0-or-later
"""ng commands other than offer and answer: blocked media and telephone events, listeners,
publishers, IPv4 to IPv6. rtpengine's own client sends every command. Terminals are sockets that
speak plain RTP, or SRTP by libsrtp2."""
import os
import re
import select
import socket
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import calls
import idle
import ng
import relay
import srtp
from baresip import wait_for
from run import Skip, cases

EVENT = 101
MAP = "a=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\n"


def readable(sock, timeout):
    if timeout < 30:
        idle.wait_idle()
    return bool(select.select([sock], [], [], timeout)[0])


class Phone:
    """A terminal at an address in a namespace. suite: for SRTP (see calls.Suite). osrtp: RFC 8643,
    in RTP/AVP."""

    def __init__(self, net, where, address, suite=None, osrtp=False):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        while True:  # an even port: the next one is for RTCP and belongs to no other phone
            self.sock = ng.socket_in(net.terminal[where], family)
            self.sock.bind((address, 0))
            if self.sock.getsockname()[1] % 2 == 0:
                break
            self.sock.close()
        self.address, self.port = address, self.sock.getsockname()[1]
        self.to, self.seq, self.ssrc = None, 0, int.from_bytes(os.urandom(4), "big")
        self.suite = calls.Suite(suite) if suite else None
        self.key = os.urandom(self.suite.key_len) if suite else b""
        self.tx = srtp.Session(self.suite.name, self.key, srtp.OUTBOUND) if suite else None
        self.rx, self.crypto_tag = None, 1
        self.profile = "RTP/SAVP" if suite and not osrtp else "RTP/AVP"

    def sdp(self, direction="sendrecv"):
        family = "IP6" if ":" in self.address else "IP4"
        crypto = self.suite.line(self.crypto_tag, [self.key]) if self.suite else ""
        return (f"v=0\r\no=- 1 1 IN {family} {self.address}\r\ns=-\r\nc=IN {family} {self.address}\r\nt=0 0\r\n"
                f"m=audio {self.port} {self.profile} 0 {EVENT}\r\n{MAP}{crypto}a={direction}\r\n")

    def told(self, sdp):
        p = calls.parse(sdp)
        self.to = (p["ip"], p["port"])
        if self.suite:
            assert p["profile"] == self.profile, sdp
            self.crypto_tag, _, key = next(c for c in p["crypto"] if c[1] == self.suite.name)
            self.rx = srtp.Session(self.suite.name, key, srtp.INBOUND)
        return self

    def send(self, payload, kind=0):
        self.seq += 1
        packet = struct.pack("!BBHII", 0x80, kind, self.seq, self.seq * 160, self.ssrc) + payload
        self.sock.sendto(self.tx.protect(packet) if self.tx else packet, self.to)

    def hears(self, timeout=30.0):
        """The next packet's payload type and payload, or None. A test that expects none waits for
        idle relays first, so it needs less time."""
        if not readable(self.sock, timeout):
            return None
        packet = self.sock.recv(2048)
        packet = self.rx.unprotect(packet) if self.rx else packet
        assert packet is not None, "not authentic"
        return packet[1] & 0x7f, packet[12:]


def wants(phone):
    """A proxy's request for this terminal."""
    if not phone.suite:
        return {"transport_protocol": "RTP/AVP"}
    return {"transport_protocol": phone.profile, "SDES": [f"only-{phone.suite.name}", "pad"], **({"OSRTP": ["offer"]} if phone.profile == "RTP/AVP" else {})}


def talk(client, a, b, call_id, **flags):
    offer = calls.ok(client.call("offer", call_id=call_id, from_tag="a", sdp=a.sdp(), **wants(b), **flags))
    b.told(offer["sdp"])
    a.told(calls.ok(client.call("answer", call_id=call_id, from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
    idle.wait_idle()  # otherwise the first packet may reach the ordinary socket before its worker knows the port
    for x, y in ((a, b), (b, a), (a, b)):  # the workers know all ports afterwards
        x.send(b"hello")
        assert y.hears() == (0, b"hello")


def leaves(a, b, kind=0, does=True):
    """Checks that a's packet reaches b, or that it does not."""
    word = os.urandom(8)
    a.send(word, kind)
    got = b.hears(30.0 if does else 0.3)
    assert got in (None, (kind, word)), got
    return (got is not None) == does


def start(net, *options, engine="serial", addresses=("10.200.1.1", "10.200.2.1")):
    return relay.Xcipherd(net, f"--engine={engine}", "--opencl-min=1", *options, addresses=addresses).wait_ready()


def finish(daemon):
    assert daemon.statistics()["command errors"] == 0
    status = daemon.stop()
    assert status == 0, f"xcipherd ended with {status}:\n{daemon.text()}"


def test_media_and_telephone_events_are_blocked_and_unblocked(net):
    daemon = start(net)
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    talk(daemon.client, a, b, "c")
    say = lambda what, **k: calls.ok(daemon.client.call(what, call_id="c", **k))  # noqa: E731
    for block, unblock, voice, event in (("block media", "unblock media", False, True),
                                         ("block DTMF", "unblock DTMF", True, False)):
        reply = say(block, from_tag="a")
        assert "warning" not in reply, reply
        told = {leg["tag"]: leg.get("blocked") for leg in say("explain")["legs"]}
        assert told == {"a": "digits" if voice else "media", "b": None}, told
        assert leaves(a, b, does=voice) and leaves(a, b, EVENT, event), block
        assert leaves(b, a) and leaves(b, a, EVENT), block
        say(unblock, from_tag="a")
        assert leaves(a, b) and leaves(a, b, EVENT), unblock
    assert "warning" not in say("silence media", from_tag="a")
    for kind, byte in ((0, b"\xff"), (8, b"\xd5"), (9, b"\xfd")):
        a.send(b"spoken" * 20, kind)
        assert b.hears() == (kind, byte * 120)
    assert leaves(b, a) and leaves(a, b, EVENT)
    a.send(b"G.729", 18)
    assert b.hears(0.3) is None
    say("unsilence media", from_tag="a")
    assert leaves(a, b)
    finish(daemon)


WAYS = cases(("udp", "serial"), ("udp", "opencl"), ("nfqueue", "opencl"), ("xdp", "opencl"))
EARS = ((None, False), ("80", False), ("AEAD_AES_256_GCM", False), ("32", True))


def on_its_way(daemon, steering, engine):
    """No packet took another path, and the device, if there is one, did all the work."""
    s = daemon.statistics()
    assert (s["steering"], s["engine"]) == (steering, engine), s
    assert engine == "serial" or s["device jobs"] == s["jobs"] > 0, s
    assert steering == "udp" or s["by fallback socket"] == 0, s


def subscribe(daemon, ear, **keys):
    """Its to-tag."""
    reply = calls.ok(daemon.client.call("subscribe request", **keys, **wants(ear)))
    assert reply["tag-medias"][0]["medias"][0]["index"] == 1, reply
    assert "a=sendonly" in reply["sdp"] and "telephone-event" in reply["sdp"], reply["sdp"]
    ear.told(reply["sdp"])
    calls.ok(daemon.client.call("subscribe answer", call_id=keys["call_id"], to_tag=reply["to-tag"], sdp=ear.sdp("recvonly")))
    idle.wait_idle()  # workers learn of it after the reply
    return reply["to-tag"]


@WAYS
def test_listeners_hear_a_party_and_nobody_hears_them(net, steering, engine):
    """Each listener uses its own RTP or SRTP, whatever the party uses."""
    daemon = start(net, f"--steering={steering}", engine=engine)
    a, b = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2", "32")
    talk(daemon.client, a, b, "c")
    ears = [Phone(net, "callee" if i % 2 else "caller", f"10.200.{i % 2 + 1}.2", *kind) for i, kind in enumerate(EARS)]
    tags = [subscribe(daemon, e, call_id="c", from_tag="a") for e in ears]
    for n in range(50):
        word = b"word %d" % n
        a.send(word)
        assert [p.hears() for p in (b, *ears)] == [(0, word)] * 5, n
    b.send(b"not for them")
    assert a.hears() == (0, b"not for them")
    for e in ears:
        e.send(b"heckling")
    assert [p.hears(0.05) for p in (a, b, *ears)] == [None] * 6
    calls.ok(daemon.client.call("unsubscribe", call_id="c", to_tag=tags[1]))
    a.send(b"three are left")
    assert [p.hears() for p in (b, ears[0], *ears[2:])] == [(0, b"three are left")] * 4
    assert ears[1].hears(0.1) is None
    calls.ok(daemon.client.call("delete", call_id="c", from_tag=tags[0]))
    assert leaves(a, b)
    assert ears[2].hears() is not None and ears[0].hears(0.1) is None
    on_its_way(daemon, steering, engine)
    finish(daemon)


def test_parties_of_two_dialogs_are_connected(net):
    """Within one call, SRTP is connected to RTP without offer and answer. No other party receives
    it."""
    daemon = start(net)
    a, b = Phone(net, "caller", "10.200.1.2", "AES_CM_128_HMAC_SHA1_80"), Phone(net, "callee", "10.200.2.2")
    c, d = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2", "AEAD_AES_256_GCM")
    talk(daemon.client, a, b, "c")
    d.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="c", sdp=c.sdp(), **wants(d)))["sdp"])
    c.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="c", to_tag="d", sdp=d.sdp()))["sdp"])
    for x, y in ((c, d), (d, c)):
        x.send(b"hello")
        assert y.hears() == (0, b"hello")
    calls.ok(daemon.client.call("connect", call_id="c", from_tag="d", to_tag="a"))
    for _ in range(3):
        for x, y in ((a, d), (d, a)):
            x.send(b"you")
            assert y.hears() == (0, b"you")
    b.send(b"anybody?")
    c.send(b"anybody?")
    a.send(b"you")
    assert d.hears() == (0, b"you")
    assert not any(p.hears(0.1) for p in (a, b, c, d))
    finish(daemon)


@WAYS
def test_a_publisher_is_heard_by_who_subscribes(net, steering, engine):
    """A publisher of RTP and one of SRTP, each with listeners of all kinds."""
    daemon = start(net, f"--steering={steering}", engine=engine)
    for kind in EARS[:3]:
        a = Phone(net, "caller", "10.200.1.2", *kind)
        reply = calls.ok(daemon.client.call("publish", sdp=a.sdp("sendonly")))
        assert "a=recvonly" in reply["sdp"], reply
        a.told(reply["sdp"])
        ears = [Phone(net, "callee", "10.200.2.2", *ear) for ear in EARS]
        for e in ears:
            subscribe(daemon, e, call_id=reply["call-id"], from_tag=reply["from-tag"])
        for word in (b"one", b"two", b"three"):
            a.send(word)
            assert [e.hears() for e in ears] == [(0, word)] * 4, kind
    on_its_way(daemon, steering, engine)
    finish(daemon)


def test_who_must_wait_gets_nothing_before_it_sends(net):
    daemon = start(net)
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    b.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), flags=["NAT-wait"]))["sdp"])
    a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
    assert leaves(a, b, does=False)
    assert leaves(b, a) and leaves(a, b)
    finish(daemon)


def test_ipv4_speaks_to_ipv6(net):
    daemon = start(net, addresses=("10.200.1.1", "fd00:2::1"))
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "fd00:2::2")
    talk(daemon.client, a, b, "c", address_family="IP6")
    assert b.to[0] == "fd00:2::1" and a.to[0] == "10.200.1.1"
    assert leaves(a, b) and leaves(b, a)
    finish(daemon)


CLIENT = "/usr/bin/rtpengine-ng-client"


def test_every_command_by_rtpengines_client(net):
    """This client spells keys differently from Kamailio, and prints the reply without "result: ok"."""
    if not os.access(CLIENT, os.X_OK):
        raise Skip("no rtpengine-ng-client here")
    folder = tempfile.TemporaryDirectory(prefix="xcipher-ng-")
    daemon = start(net, f"--recording-dir={folder.name}")
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")

    def ask(command, *options):
        p = subprocess.run(["ip", "netns", "exec", net.gateway, CLIENT, "--proxy-address=127.0.0.1", "--proxy-port=22222", *options, command],
                           capture_output=True, text=True, timeout=120, check=False)
        return p.stdout + p.stderr

    def done(command, *options):
        text = ask(command, *options)
        assert re.search("New SDP|Result dictionary", text) and "Error reason" not in text, f"{command}: {text}"
        return text

    done("ping")
    done("offer", "--call-id=c", "--from-tag=a", f"--sdp={a.sdp()}", "--replace-origin", "--ICE=remove", "--TOS=184",
         "--codec-strip=G729", "--flags=trust-address", "--trust-address")
    done("answer", "--call-id=c", "--from-tag=a", "--to-tag=b", f"--sdp={b.sdp()}")
    gates = ("block media", "unblock media", "block DTMF", "unblock DTMF", "silence media", "unsilence media")
    with ThreadPoolExecutor(4) as many:  # its start takes long
        list(many.map(lambda command: done(command, "--call-id=c", "--from-tag=a"), gates))
        list(many.map(done, ("list", "statistics")))
    text = done("subscribe request", "--call-id=c", "--from-tag=a", "--to-tag=l")
    assert "sendonly" in text, text
    done("subscribe answer", "--call-id=c", "--to-tag=l", f"--sdp={a.sdp('recvonly')}")
    done("unsubscribe", "--call-id=c", "--to-tag=l")
    done("publish", "--call-id=p", "--from-tag=x", f"--sdp={a.sdp('sendonly')}")
    done("connect", "--call-id=c", "--from-tag=a", "--to-tag=b")
    assert "totals" in done("query", "--call-id=c")
    for command in ("start recording", "pause recording", "start recording", "stop recording"):
        assert "pcap" in done(command, "--call-id=c", "--from-tag=a"), command
    refused = (("play media", "media file"), ("transform", "transcodes"), ("play DTMF", "DTMF code"), ("start forwarding", "recording"), ("mesh", "join"),
               ("stop forwarding", "recording"))
    with ThreadPoolExecutor(4) as many:
        texts = list(many.map(lambda r: ask(r[0], "--call-id=c", "--from-tag=a"), refused))
    for (command, why), text in zip(refused, texts):
        assert "Error reason" in text and why in text, f"{command}: {text}"
    done("delete", "--call-id=c", "--from-tag=a", "--delete-delay=0")
    finish(daemon)
    folder.cleanup()


def test_pierce_nat_opens_a_firewall(net):
    """A terminal behind a firewall that admits only answers. It gets up to three empty packets at
    the address in its SDP before it sends. A terminal that sends, or did not ask, gets none."""
    daemon = relay.Xcipherd(net).wait_ready()
    client = daemon.client
    phones = {}
    for name, flags in (("plain", []), ("waiting", ["pierce NAT", "NAT-wait"]), ("pierced", ["pierce-NAT"])):
        a, b = phones[name] = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
        offer = calls.ok(client.call("offer", call_id=name, from_tag="a", sdp=a.sdp(), flags=flags))
        assert "warning" not in offer, offer
        b.told(offer["sdp"])
        a.told(calls.ok(client.call("answer", call_id=name, from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
    assert recv_from(b.sock) == (b"", b.to) and recv_from(a.sock) == (b"", a.to)
    a.send(b"heard")  # a terminal that sends needs no more
    got = [recv_from(b.sock)[0]]
    while not got[-1]:
        got.append(recv_from(b.sock)[0])
    while recv_from(a.sock, 0):
        pass
    got += [recv_from(b.sock)[0] for _ in range(3 - len(got))]
    assert sorted(map(len, got)) == [0, 0, 12 + len(b"heard")], got
    assert recv_from(b.sock, 1.2) is None
    assert sum(recv_from(a.sock, 0) is not None for _ in range(2)) <= 1  # it was in flight
    assert not any(recv_from(p.sock, 0) for p in (*phones["plain"], *phones["waiting"]))
    assert daemon.statistics()["pierce packets"] > 6, daemon.statistics()["pierce packets"]
    assert daemon.stop() == 0, daemon.text()


@cases(*((way,) for way in relay.steerings()))
def test_silence_and_piercing_go_every_way(net, steering):
    """Both create packets in memory of the steering: with each steering, and with a device."""
    more = {"xdp": ("--xdp-mode=copy",), "udp": ("--engine=opencl", "--opencl-min=1")}
    daemon = start(net, f"--steering={steering}", *more.get(steering, ()))
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    b.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), flags=["pierce-NAT"]))["sdp"])
    a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
    assert recv_from(a.sock) == (b"", a.to) and recv_from(b.sock) == (b"", b.to)
    a.send(b"hello")
    assert b.hears() == (0, b"hello")
    calls.ok(daemon.client.call("silence media", call_id="c", from_tag="a"))
    for _ in range(20):
        a.send(b"spoken" * 27)
    for _ in range(20):
        assert b.hears() == (0, b"\xff" * 162)
    calls.ok(daemon.client.call("unsilence media", call_id="c", from_tag="a"))
    a.send(b"spoken")
    wait_for("what was spoken", lambda: recv_from(b.sock)[0][12:] == b"spoken")  # after empty packets, perhaps
    finish(daemon)


@cases(*((way,) for way in relay.steerings()))
def test_echoed_media_come_back_every_way(net, steering):
    """Echo to the sender alone, under its receiving key, until the next offer."""
    daemon = start(net, f"--steering={steering}")
    a, b = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2")
    talk(daemon.client, a, b, "e")
    for echo, back in (("backwards", (a,)), ("forward", (b,)), ("both", (a, b))):
        calls.ok(daemon.client.call("offer", call_id="e", from_tag="a", to_tag="b", sdp=a.sdp(), media_echo=echo, **wants(b)))
        calls.ok(daemon.client.call("answer", call_id="e", from_tag="a", to_tag="b", sdp=b.sdp()))
        for one, other in ((a, b), (b, a)):
            word = os.urandom(8)
            one.send(word)
            if one in back:
                assert one.hears() == (0, word), (echo, one.address)
            assert other.hears(.1) is None, (echo, other.address)
    calls.ok(daemon.client.call("offer", call_id="e", from_tag="a", to_tag="b", sdp=a.sdp(), **wants(b)))
    calls.ok(daemon.client.call("answer", call_id="e", from_tag="a", to_tag="b", sdp=b.sdp()))
    assert leaves(a, b) and leaves(b, a)
    finish(daemon)


def recv_from(sock, timeout=30.0):
    return sock.recvfrom(2048) if readable(sock, timeout) else None
