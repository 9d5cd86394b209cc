# SPDX-License-Identifier: GPL-2.0-or-later
"""Rig for the comparison with rtpengine: a relay with its defaults, phones, a sniffer, and calls."""
import os
import select
import struct
import time

import srtpkey
import ng
import relay
import sdp
import terminals
import sniffer

PLACES = ("east", "west", "stranger")
OWN = ("10.200.1.1", "10.200.2.1", "10.200.3.1", "127.0.0.1", "::1")
MEDIA = (10000, 29999)
GATEWAY = "10.200.1.1"
QUIET = 0.3  # seconds without a packet: all packets have arrived, or are lost


class Refused(Exception):
    pass


class Phone:
    """A terminal: a bound socket, plain RTP or SRTP."""

    def __init__(self, rig, place, port, source=None, suite=None):
        i = PLACES.index(place) + 1
        self.ip, self.port, self.suite = f"10.200.{i}.2", port, suite
        self.sock = ng.socket_in(rig.net.terminal[place])
        self.sock.bind((self.ip, source or port))
        self.ssrc, self.seq, self.to = int.from_bytes(os.urandom(4), "big"), 1000, None
        self.key = os.urandom(srtpkey.key_len(suite)) if suite else None
        self.tag = 1

    def sdp(self, more="", direction="sendrecv", where=None):
        keys = [(self.tag, self.suite, self.key)] if self.suite else []
        return sdp.body([(*(where or (self.ip, self.port)), keys)], self.ip, more, direction)

    def packet(self, word, seq=None):
        if seq is None:
            self.seq = seq = self.seq + 1 & 0xffff
        p = struct.pack("!BBHII", 0x80, 0, seq, seq * 160, self.ssrc) + word
        return srtpkey.Key(self.suite, self.key).protect(p) if self.suite else p

    def send(self, word=b"word", seq=None, to=None):
        self.sock.sendto(self.packet(word, seq), to or self.to)

    def got(self, wait=QUIET):
        """All received packets, until no more arrive."""
        out = []
        while select.select([self.sock], [], [], wait)[0]:
            out.append(self.sock.recv(2048))
        return out


class Rig:
    def __init__(self, net, kind):
        self.net, self.kind = net, kind
        net.run(net.gateway, "ip", "route", "replace", "default", "via", "10.200.3.2")
        self.sniffer = sniffer.Sniffer(net.gateway)
        if kind == "rtpengine":
            self.relay = relay.Rtpengine(net, addresses=(GATEWAY,), ports=(20000, 29999)).wait_ready()
        else:
            options = ("--engine=serial", "--workers=1", "--port-min=20000", "--port-max=29999")
            self.relay = relay.Xcipherd(net, *options, addresses=(GATEWAY,)).wait_ready()
        self.client = self.relay.client
        self.attackers = terminals.Attackers(net, terminals.Sockets())
        self.number = 0

    def runs(self):
        return self.relay.process.poll() is None

    def close(self):
        self.sniffer.close()
        self.relay.process.kill()
        self.relay.process.wait()

    def ask(self, command, **keys):
        reply = self.client.call(command, tries=15, **keys)
        if reply.get("result") != "ok":
            raise Refused(reply.get("error-reason", str(reply)))
        return reply

    def offer(self, call, text, tag="a", secure=False, **more):
        keys = {"transport_protocol": "RTP/SAVP", "SDES": ["pad"]} if secure else {"transport_protocol": "RTP/AVP"}
        return self.ask("offer", call_id=call, from_tag=tag, sdp=text, replace=["origin"], ICE="remove", **keys, **more)["sdp"]

    def answer(self, call, text, tag="a", to_tag="b", **more):
        return self.ask("answer", call_id=call, from_tag=tag, to_tag=to_tag, sdp=text, replace=["origin"], ICE="remove", **more)["sdp"]

    def call(self, a, b, name=None, **more):
        """An ordinary call. Both parties send and receive media unless heard is False. Returns (name, SDP for b, SDP for a)."""
        self.number += 1
        name = name or f"call-{self.number}"
        there = self.offer(name, a.sdp(), secure=bool(b.suite), **more)
        self.told(b, there)
        here = self.answer(name, b.sdp(), **more)
        self.told(a, here)
        return name, there, here

    @staticmethod
    def told(phone, text):
        line = sdp.parse(text)[0]
        phone.to = (line.address, line.port)
        if phone.suite:
            phone.tag, _, phone.rx = next(k for k in line.keys if k[1] == phone.suite)

    def speak(self, a, b, times=6):
        """Control: whether each party receives the other's media."""
        for phone, other in ((a, b), (b, a)) * 2:
            for _ in range(times):
                phone.send(b"control")
                time.sleep(0.005)
        return bool(a.got()) and bool(b.got())

    def must_speak(self, a, b):
        if not self.speak(a, b):
            raise RuntimeError("the control call has no media")

    def left(self):
        return [p for p in self.sniffer.read() if p.src in OWN and MEDIA[0] <= p.sport <= MEDIA[1]]


def count(packets, word):
    return sum(word in p for p in packets)
