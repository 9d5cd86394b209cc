# SPDX-License-Identifier: GPL-2.0-or-later
"""Tools for the tests of this folder: the decorator compat(), and a relay controlled by ng. See
README.md."""
import os
import select
import socket
import struct
import tempfile

import idle
import ng
import relay as relays
import srtp
import text

ROOT = relays.ROOT
INTERFACES = ("internal/10.200.1.1", "internal/fd00:1::1", "external/10.200.2.1", "external/fd00:2::1")
WHERE = {"caller": ("10.200.1.2", "fd00:1::2"), "callee": ("10.200.2.2", "fd00:2::2")}


class Case:
    """A test: its category, and the source of its requirement."""

    def __init__(self, category, source, function, label, options):
        self.category, self.source, self.function, self.label, self.options = category, source, function, label, options


CASES = []


def compat(category, source, options=()):
    """Decorator of a test, a function of a Relay. source: RFC and section, or the documentation.
    options: of the daemon, if not the usual ones; tests with the same options share a daemon."""
    def register(function):
        CASES.append(Case(category, source, function, f"{function.__module__}.{function.__name__}", tuple(options)))
        return function
    return register


def compat_each(category, source, rows, options=()):
    """The same for a test that runs once per row, with the relay and the row as arguments."""
    def register(function):
        for row in rows:
            row = row if isinstance(row, tuple) else (row,)
            words = "-".join(str(w) for w in row if len(str(w)) < 25)
            label = f"{function.__module__}.{function.__name__}[{words}]"
            CASES.append(Case(category, source, lambda r, row=row: function(r, *row), label, tuple(options)))
        return function
    return register


def page(name):
    """Path of a manual page."""
    return os.path.join(ROOT, "man", name)


def manual(section):
    """Rows of xcipher-ng(7): (name, status, the text that follows)."""
    with open(page("xcipher-ng.7"), encoding="utf-8") as f:
        body = f.read().split(f".Sh {section}\n", 1)[1].split("\n.Sh ", 1)[0]
    for row in body.split(".It Cm ")[1:]:
        name, status, *more = row.replace("\n.El", "").split("\n")
        yield name, status.rstrip("."), "\n".join(more).strip()


class Reply(dict):
    """A reply's dictionary. sdp: its SDP, parsed."""

    @property
    def sdp(self):
        return text.Sdp(self["sdp"])

    @property
    def warning(self):
        return self.get("warning", "")


def expect(reply, fails):
    """Returns the reply. It must be an error that contains the text fails (True: any), or no error."""
    reply = Reply(reply)
    if fails:
        assert reply["result"] == "error" and (fails is True or fails in reply["error-reason"]), reply
    else:
        assert reply["result"] in ("ok", "pong"), reply
    return reply


class Phone:
    """A terminal that sends and receives packets. suite: of SRTP. media() describes it; told()
    takes the relay's offer or answer."""

    def __init__(self, net, where, suite=None, ipv6=False):
        self.where, self.ip = where, WHERE[where][ipv6]
        while True:  # RFC 3550 11: RTP on an even port, RTCP on the next
            self.sock = ng.socket_in(net.terminal[where], socket.AF_INET6 if ipv6 else socket.AF_INET)
            self.sock.bind((self.ip, 0))
            self.port = self.sock.getsockname()[1]
            if self.port % 2 == 0:
                break
            self.sock.close()
        self.sock.settimeout(30)
        self.suite = text.suite_name(suite) if suite else None
        self.key = os.urandom(text.KEY_LEN.get(self.suite, 30))
        self.tx = srtp.Session(self.suite, self.key, srtp.OUTBOUND) if suite else None
        self.rx = self.to = self.theirs = None
        self.tag, self.seq, self.ssrc = 1, 0, int.from_bytes(os.urandom(4), "big")

    def media(self, *lines, kind="audio", **more):
        keys = [text.crypto(self.suite, self.tag, self.key)] if self.suite else []
        more.setdefault("profile", "RTP/SAVP" if self.suite else "RTP/AVP")
        more.setdefault("formats", "0 8 101" if kind == "audio" else "96")
        return text.media(kind, self.port, more.pop("formats"), *keys, *lines, **more)

    def sdp(self, *lines, **more):
        return text.sdp(self.media(*lines, **more), ip=self.ip)

    def told(self, media):
        self.to = (media.address, media.port)
        if self.suite:
            line = next(c for c in media.crypto if c.suite == self.suite)
            self.tag, self.theirs = line.tag, line.key
            self.rx = srtp.Session(self.suite, line.key, srtp.INBOUND)
        return self

    def send(self, payload, kind=0):
        self.seq += 1
        packet = struct.pack("!BBHII", 0x80, kind, self.seq, self.seq * 160, self.ssrc) + payload
        self.sock.sendto(self.tx.protect(packet) if self.tx else packet, self.to)

    def receive(self, timeout=30.0):
        """The payload of the next packet, or None. Use a short time where none is expected."""
        if timeout < 30:
            idle.wait_idle()
        if not select.select([self.sock], [], [], timeout)[0]:
            return None
        packet = self.sock.recv(2048)
        packet = self.rx.unprotect(packet) if self.rx else packet
        assert packet is not None, "a packet is not authentic"
        return packet[12:]


def reaches(a, b, does=True):
    """Whether a packet from a reaches b."""
    word = os.urandom(20)
    a.send(word)
    return (b.receive(30.0 if does else 0.2) == word) == does


class Call:
    """A call of the parties a and b."""

    def __init__(self, relay, call_id, tags):
        self.relay, self.id, self.tags = relay, call_id, tags
        self.offerer, self.answered = None, False

    def request(self, command, fails=None, **keys):
        """Any command for this call."""
        return self.relay.request(command, fails, call_id=self.id, **keys)

    def offer(self, sdp, by=0, fails=None, **keys):
        """An offer by party 0 or 1; with a to-tag after an answer."""
        to = {"to_tag": self.tags[1 - by]} if self.answered else {}
        reply = self.request("offer", fails, **{"from_tag": self.tags[by], **to, "sdp": sdp, **keys})
        self.offerer = self.offerer if fails else by
        return reply

    def answer(self, sdp, fails=None, **keys):
        """The other party's answer to the last offer."""
        tags = {"from_tag": self.tags[self.offerer], "to_tag": self.tags[1 - self.offerer]}
        reply = self.request("answer", fails, **{**tags, "sdp": sdp, **keys})
        self.answered |= not fails
        return reply

    def talk(self, a, b, **keys):
        """Two phones set up the call, and each receives the other's media."""
        offer = {"transport_protocol": "RTP/SAVP", "SDES": [f"only-{b.suite}"]} if b.suite else {"transport_protocol": "RTP/AVP"}
        b.told(self.offer(a.sdp(), **{**offer, **keys}).sdp.audio)
        a.told(self.answer(b.sdp()).sdp.audio)
        for x, y in ((a, b), (b, a), (a, b)):
            assert reaches(x, y)
        return self

    def query(self):
        return self.request("query")

    def delete(self, fails=None, **keys):
        return self.request("delete", fails, **{"delete_delay": 0, **keys})


class Relay:
    """A daemon, and the calls of one test."""

    def __init__(self, net, options):
        self.net, self.folder = net, tempfile.TemporaryDirectory(prefix="compat.")
        options = [o.replace("{folder}", self.folder.name) for o in options if not self.made(o)]
        self.daemon = relays.Xcipherd(net, "--engine=serial", "--steering=udp", "--workers=1", "--log-level=6", "--log-stderr", *options,
                                      addresses=INTERFACES).wait_ready()
        self.calls, self.sockets, self.number = [], [], 0

    def made(self, option):
        """Writes a file to the folder, for an option "file:NAME=TEXT"."""
        name, equals, text_of_it = option.removeprefix("file:").partition("=")
        if not option.startswith("file:"):
            return False
        with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as f:
            f.write(text_of_it)
        return bool(equals)

    def request(self, command, fails=None, **keys):
        """Any command; in the names of keys, _ stands for -."""
        return expect(self.daemon.client.call(command, **keys), fails)

    def call(self, tags=("a", "b"), call_id=None):
        self.number += 1
        self.calls.append(Call(self, call_id or f"compat-{self.number}", tags))
        return self.calls[-1]

    def phone(self, where, suite=None, ipv6=False):
        phone = Phone(self.net, where, suite, ipv6)
        self.sockets.append(phone.sock)
        return phone

    def phone_rtcp(self, phone):
        """The socket of a phone's RTCP port."""
        sock = ng.socket_in(self.net.terminal[phone.where], phone.sock.family)
        sock.bind((phone.ip, phone.port + 1))
        sock.settimeout(30)
        self.sockets.append(sock)
        return sock

    def statistics(self):
        return self.request("statistics")["statistics"]

    def alive(self):
        return self.daemon.process.poll() is None

    def clear(self):
        """After a test: deletes the calls that it left."""
        for sock in self.sockets:
            sock.close()
        for call in self.calls if self.alive() else ():
            self.daemon.client.call("delete", call_id=call.id, delete_delay=0)
        self.calls, self.sockets = [], []

    def log(self):
        return self.daemon.text()

    def stop(self):
        """The exit status, which sanitizers set after an error."""
        status = self.daemon.stop()
        self.folder.cleanup()
        return status
