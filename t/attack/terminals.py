# SPDX-License-Identifier: GPL-2.0-or-later
"""Senders of media: terminals with an address, port, SSRC and key of their own, and attackers.

Every payload begins with a mark that names its sender, so that the checker recognises it wherever it leaves. A terminal's
packets are made here index by index: an insider may repeat an index, jump, or take an older key again.
"""
import os
import select
import socket
import struct

import checker
import srtpkey
import ng
from calls import parse

APP = 204  # RTCP application packet (RFC 3550 6.7): carries a mark


class Sockets:
    """Bound UDP sockets by (namespace, address, port), closed together."""

    def __init__(self):
        self.open = {}

    def get(self, ns, address, port):
        key = (ns, address, port)
        if key not in self.open:
            s = ng.socket_in(ns, socket.AF_INET6 if ":" in address else socket.AF_INET)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((address, port))
            s.setblocking(False)
            self.open[key] = s
        return self.open[key]

    def drain(self):
        """Discards received packets, because the checker has read them on the wire."""
        for s in self.open.values():
            try:
                while s.recv(2048):
                    pass
            except (BlockingIOError, OSError):
                pass

    def close(self):
        for s in self.open.values():
            s.close()
        self.open.clear()


class Line:
    """One m-line of a terminal: its address, its key, and its destination."""

    def __init__(self, ns, address, port, natted):
        self.ns, self.address, self.port = ns, address, port
        self.source = port + 1000 if natted else port  # behind a NAT packets come from another port
        self.ssrc = int.from_bytes(os.urandom(4), "big")
        self.seq, self.roc, self.rtcp_index = 100, 0, 0
        self.key, self.to = None, None
        self.kind = 0  # payload type: 0 PCMU, 8 PCMA, 9 G.722
        self.pool = {}  # suite: its earlier keys

    def new_key(self, suite, random):
        """A new master key, or an earlier one."""
        pool = self.pool.setdefault(suite, [])
        if not pool or random.random() < 0.5:
            pool.append(random.randbytes(srtpkey.key_len(suite)))
        return random.choice(pool)


def payload(mark, kind=0):
    """The mark in bytes and in samples: 36 bytes."""
    return checker.mark(*mark) + checker.audible(checker.mark(*mark), 1 if kind == 8 else 0)


class Terminal:
    """keying: None, or the name of a keying in packets or by MIKEY (keyed.py)."""
    count = 0
    keying, profile, mux = None, None, False
    near = {}  # flags of an answer to it

    def __init__(self, net, sockets, place, natted=False, lines=1, bundled=False):
        """bundled: all m-lines share one port, and the keys of the first (RFC 9143). They have SRTP."""
        Terminal.count += 1
        self.id, self.place, self.natted = Terminal.count, place, natted
        self.ns, self.sockets = net.terminal[place], sockets
        self.address = "10.200.%d.2" % (list(net.terminal).index(place) + 1)
        self.serial = 0
        self.lines = [Line(self.ns, self.address, 0, natted) for _ in range(lines)]
        self.tag = f"tag{self.id}"
        for n, line in enumerate(self.lines):
            line.port = 2000 + (self.id * 8 + 2 * n) % 50000
            line.source = line.port + (1000 if natted else 0)
        self.bundled = self.mux = bundled
        if bundled:
            for n, line in enumerate(self.lines):
                line.port, line.source, line.kind = self.lines[0].port, self.lines[0].source, 8 * n

    def move(self):
        """Changes the port, as after a hand-over."""
        for line in self.lines:
            line.port = 2000 + (line.port - 2000 + 5008) % 50000
            line.source = line.port + (1000 if self.natted else 0)

    def attributes(self):
        """What its SDP has for its keying."""
        return ""

    def offers(self):
        """Its next SDP is an offer."""

    def read(self, text, offer):
        """The daemon's SDP, an offer or an answer."""

    def agreed(self, checker, leg):
        """Both SDPs are accepted: keys that are in them."""

    def renew_keys(self):
        """Its next SDP has other keys."""

    def begin(self, world, party):
        """Both SDPs are exchanged: agrees on keys."""

    def close(self):
        """The call is over."""

    def mark(self):
        self.serial += 1
        return self.id, self.serial

    def packet(self, line, mark, seq=None, roc=None, rtcp=False, key=None, ssrc=None):
        """Protected under the line's key, or plain."""
        key = key or line.key
        words = payload(mark, line.kind)
        ssrc = line.ssrc if ssrc is None else ssrc
        if rtcp:
            packet = struct.pack("!BBHI4s", 0x80, APP, (12 + len(words)) // 4 - 1, ssrc, b"MARK") + words
            line.rtcp_index += 1
            return key.protect_rtcp(packet, line.rtcp_index) if key else packet
        if seq is None:
            line.seq += 1
            line.roc, line.seq = line.roc + (line.seq >> 16), line.seq & 0xffff
            seq, roc = line.seq, line.roc
        packet = struct.pack("!BBHII", 0x80, line.kind, seq, seq * 160, ssrc) + words
        return key.protect(packet, line.roc if roc is None else roc) if key else packet

    def send(self, line, data, rtcp=False, to=None):
        other = 1 if rtcp and not self.mux else 0
        s = self.sockets.get(self.ns, self.address, line.source + other)
        address, port = to or line.to
        try:
            s.sendto(data, (address, port + other))
        except OSError:
            pass  # no route to a hostile address


class Attackers:
    """A stranger with its own sockets on the third link, and a sender of raw frames on the terminals' links."""

    ID = 0xbad00000

    def __init__(self, net, sockets):
        self.net, self.sockets, self.serial = net, sockets, 0
        self.ns, self.address = net.terminal["stranger"], "10.200.3.2"

    def mark(self):
        self.serial += 1
        return self.ID, self.serial

    def rtp(self, mark, seq, ssrc, kind=0):
        return struct.pack("!BBHII", 0x80, kind, seq & 0xffff, seq * 160 & 0xffffffff, ssrc) + payload(mark, kind)

    def spray(self, data, to, port=40000):
        try:
            self.sockets.get(self.ns, self.address, port).sendto(data, to)
        except OSError:
            pass

    def martian(self, place, source, sport, to, data):
        """Sends a frame whose source address is impossible on a wire."""
        i = list(self.net.terminal).index(place) + 1
        gateway_mac, our_mac = self.macs(place, i)
        udp = struct.pack("!HHHH", sport, to[1], 8 + len(data), 0) + data
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(to[0]))
        total = sum(struct.unpack("!10H", head))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        head = head[:10] + struct.pack("!H", ~total & 0xffff) + head[12:]
        frame = gateway_mac + our_mac + b"\x08\x00" + head + udp
        key = ("raw", place)
        if key not in self.sockets.open:
            s = ng.socket_in(self.net.terminal[place], socket.AF_PACKET, socket.SOCK_RAW)
            s.bind((f"t{i}", 0))
            s.setblocking(False)
            self.sockets.open[key] = s
        self.sockets.open[key].send(frame)

    def macs(self, place, i, known={}):  # noqa: B006
        if (self.net.id, place) not in known:
            from redisrig import mac
            known[(self.net.id, place)] = tuple(bytes.fromhex(mac(ns, dev).replace(":", "")) for ns, dev in
                                                ((self.net.gateway, f"g{i}"), (self.net.terminal[place], f"t{i}")))
        return known[(self.net.id, place)]


class Control:
    """A plain call whose packets are barriers: packets sent before a flush have been processed after it."""

    def __init__(self, net, client):
        self.client = client
        self.socks = []
        for i, ns in enumerate(("east", "west"), 1):
            s = ng.socket_in(net.terminal[ns])
            s.bind((f"10.200.{i}.2", 0))
            self.socks.append((s, f"10.200.{i}.2"))
        self.id = "control-" + os.urandom(4).hex()
        self.serial = 0
        bodies = [f"v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=audio {s.getsockname()[1]} RTP/AVP 0\r\n"
                  for s, ip in self.socks]
        there = self.ask("offer", from_tag="a", sdp=bodies[0])
        here = self.ask("answer", from_tag="a", to_tag="b", sdp=bodies[1])
        self.to = [(p["ip"], p["port"]) for p in (parse(here["sdp"]), parse(there["sdp"]))]

    def ask(self, command, **keys):
        reply = self.client.call(command, call_id=self.id, **keys)
        assert reply.get("result") == "ok", reply
        return reply

    def send(self, end):
        """A new packet each time, like a terminal. A repeated one could look like a circle."""
        self.serial += 1
        word = struct.pack("!BBHII", 0x80, 0, self.serial & 0xffff, self.serial, 0x98 + end) + b"flush %d" % self.serial
        self.socks[end][0].sendto(word, self.to[end])
        return word

    def flush(self, seconds=120):
        """Sends a packet there twice. After the second one, all packets that were ready before the first one have been read."""
        for _ in range(2):
            for _ in range(seconds):
                # A stranger may take the plain leg of a silent terminal: the relay accepts this
                # terminal again at once.
                self.send(1)
                if self.arrives(self.send(0)):
                    break
            else:
                drops = {k: v for k, v in self.client.call("statistics")["statistics"]["xcipher"]["drops"].items() if v}
                raise TimeoutError(f"the control call's packets do not arrive: sent to {self.to[0]}, dropped {drops}; "
                                   f"{self.client.call('query', call_id=self.id)}")

    def arrives(self, word):
        s = self.socks[1][0]
        while select.select([s], [], [], 1)[0]:
            if s.recv(2048) == word:
                return True
        return False

    def close(self):
        for s, _ in self.socks:
            s.close()
