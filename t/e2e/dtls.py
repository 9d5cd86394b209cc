# SPDX-License-Identifier: GPL-2.0-or-later
"""Terminals with DTLS keys and without ICE. OpenSSL's s_client and s_server make the handshake,
libsrtp2 protects media."""
import os
import re
import select
import socket
import struct
import subprocess
import tempfile
import threading

import ng
import srtp
from baresip import wait_for
from relay import text_of

PROFILE = "SRTP_AES128_CM_SHA1_80"
SUITE = "AES_CM_128_HMAC_SHA1_80"
AES_256 = "SRTP_AEAD_AES_256_GCM"
# Suite, lengths of key and salt (RFC 5764 4.1.2, RFC 7714 14.2)
KEYS = {PROFILE: (SUITE, 16, 14), AES_256: ("AEAD_AES_256_GCM", 32, 12)}
NUMBERS = {AES_256: 8, "SRTP_AEAD_AES_128_GCM": 7, PROFILE: 1, "SRTP_AES128_CM_SHA1_32": 2}


def since(heard, payload, before=0):
    """What was heard from the first packet with this payload on. Late packets of an earlier exchange come before it."""
    return set(heard[heard.index(payload, before):])


def readable(sockets, milliseconds):
    """Those that have a packet. select() would refuse descriptors above 1023."""
    poll = select.poll()
    for s in sockets:
        poll.register(s, select.POLLIN)
    ready = {fd for fd, _ in poll.poll(milliseconds)}
    return [s for s in sockets if s.fileno() in ready]


class Plain:
    """A terminal with plain RTP. It counts received packets by kind and keeps RTP payloads. media: kind, payload type and codec of its stream."""
    profile = "RTP/AVP"
    media = "audio", 0, "PCMU/8000"

    def __init__(self, net, place, address):
        self.net, self.ns, self.address = net, net.terminal[place], address
        self.family = 6 if ":" in address else 4
        self.socket = ng.socket_in(self.ns, socket.AF_INET6 if self.family == 6 else socket.AF_INET)
        self.socket.bind((address, 0))
        self.port = self.socket.getsockname()[1]
        self.seq, self.ssrc, self.to = 0, int.from_bytes(os.urandom(4), "big"), None
        self.heard, self.count, self.bad, self.ended = [], {"rtp": 0, "dtls": 0, "stun": 0, "zrtp": 0}, 0, False
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def sockets(self):
        return [self.socket]

    def listen(self):
        while not self.ended:
            for s in readable(self.sockets(), 100):
                try:
                    self.take(s, *s.recvfrom(2048))
                except OSError:
                    continue

    def take(self, _socket, packet, source):
        first = packet[0] if packet else 255
        kind = "stun" if first < 4 else "zrtp" if first == 16 else "dtls" if 20 <= first < 64 else "rtp"
        self.count[kind] += 1
        if kind == "rtp" and not 64 <= packet[1] & 0x7f < 96:
            self.hear(packet)
        elif kind == "dtls":
            self.take_dtls(packet)

    def take_dtls(self, packet):
        pass

    def hear(self, packet):
        self.heard.append(packet[12:])

    def attributes(self):
        return ""

    def sdp(self):
        kind, number, codec = self.media
        at = f"IN IP{self.family} {self.address}"
        return (f"v=0\r\no=- 1 1 {at}\r\ns=-\r\nc={at}\r\nt=0 0\r\nm={kind} {self.port} {self.profile} {number}\r\n"
                f"a=rtpmap:{number} {codec}\r\na=sendrecv\r\n{self.attributes()}")

    def believe(self, sdp):
        self.to = (re.search(r"^c=IN IP[46] (\S+)", sdp, re.M)[1], int(re.search(rf"^m={self.media[0]} (\d+)", sdp, re.M)[1]))

    def protect(self, packet):
        return packet

    def say(self, payload):
        """Sends one packet and returns its number."""
        self.seq += 1
        packet = struct.pack("!BBHII", 0x80, self.media[1], self.seq, self.seq * 160, self.ssrc) + payload
        self.socket.sendto(self.protect(packet), self.to)
        return self.seq

    def close(self):
        self.ended = True
        self.thread.join()
        self.socket.close()


class Dtls(Plain):
    """setup: the role in its SDP. DTLS packets go to and from the program through a separate
    socket."""
    profile = "UDP/TLS/RTP/SAVP"
    profiles = PROFILE  # that is agreed on
    use_srtp = None  # those that the program knows, with ':' between; default: the one that is agreed on

    def __init__(self, net, place, address, setup="active"):
        self.setup, self.process, self.rx, self.deaf = setup, None, None, False
        self.kept = None  # a list: the program's last flight is put there, and not sent
        self.folder = tempfile.TemporaryDirectory(prefix="xc-dtls-")
        self.cert = self.make_certificate("cert")
        self.inside = ng.socket_in(net.terminal[place])
        self.inside.bind(("127.0.0.1", 0))
        self.program = None  # the program's address
        super().__init__(net, place, address)

    def make_certificate(self, name):
        path = os.path.join(self.folder.name, name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=t",
                        "-keyout", path + ".key", "-out", path], check=True, capture_output=True)
        return path

    def fingerprint(self):
        text = subprocess.run(["openssl", "x509", "-in", self.cert, "-noout", "-fingerprint", "-sha256"], check=True, capture_output=True,
                              text=True).stdout
        return text.strip().partition("=")[2]

    def attributes(self):
        return f"a=setup:{self.setup}\r\na=fingerprint:sha-256 {self.fingerprint()}\r\na=rtcp-mux\r\n"

    def connect(self):
        """Before the handshake: nothing to do without ICE."""

    def handshake(self):
        """Starts the program: a client sends, a server waits."""
        self.log = tempfile.TemporaryFile("w+")
        port = self.inside.getsockname()[1]
        common = ["-dtls1_2", "-use_srtp", self.use_srtp or self.profiles, "-cert", self.cert, "-key", self.cert + ".key", "-keymatexport", "EXTRACTOR-dtls_srtp",
                  "-keymatexportlen", str(self.material())]
        if self.setup == "active":
            args = ["s_client", "-connect", f"127.0.0.1:{port}"]
        else:
            with ng.socket_in(self.ns) as s:
                s.bind(("127.0.0.1", 0))
                self.program = s.getsockname()
            args = ["s_server", "-accept", f"127.0.0.1:{self.program[1]}", "-verify", "1"]
        self.process = self.net.spawn(self.ns, ["openssl", *args, *common], stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)

    def material(self):
        """Octets of keys and salts for both directions."""
        return 2 * sum(KEYS[self.profiles][1:])

    def keyed(self):
        """Waits for the keys, and takes them."""
        def exported():
            return re.search(r"Keying material: ([0-9A-F]{%d})" % (2 * self.material()), text_of(self.log))
        m = wait_for("the keys of OpenSSL", exported)
        self.take_keys(bytes.fromhex(m[1]))
        return self

    def take_keys(self, material):
        suite, key, salt = KEYS[self.profiles]
        client, server = (material[i * key:][:key] + material[2 * key + i * salt:][:salt] for i in (0, 1))
        ours, theirs = (client, server) if self.setup == "active" else (server, client)
        self.agreed = suite, ours, theirs
        self.tx = srtp.Session(suite, ours, srtp.OUTBOUND)
        self.rx = srtp.Session(suite, theirs, srtp.INBOUND)

    def sockets(self):
        return [self.socket, self.inside]

    def take(self, s, packet, source):
        if s is self.inside:
            self.program = source
            if self.kept is not None and packet[0] == 20:  # ChangeCipherSpec, and Finished behind it
                self.kept.append(packet)
            elif self.to:
                self.socket.sendto(packet, self.to)
        else:
            super().take(s, packet, source)

    def take_dtls(self, packet):
        if self.program and not self.deaf:
            self.inside.sendto(packet, self.program)

    def hear(self, packet):
        clear = self.rx.unprotect(packet) if self.rx else None
        self.bad += clear is None
        if clear:
            super().hear(clear)

    def protect(self, packet):
        return self.tx.protect(packet)

    def close(self):
        if self.process:
            self.net.stop(self.process)
        super().close()
        self.inside.close()
        self.folder.cleanup()


class Call:
    """A call between a plain terminal, which offers, and a DTLS terminal."""
    number = 0
    flags = {"transport_protocol": "UDP/TLS/RTP/SAVP", "ICE": "remove", "replace": ["origin"], "rtcp_mux": ["offer"], "SDES": ["off"]}

    def __init__(self, daemon, a, b, **more):
        Call.number += 1
        self.daemon, self.a, self.b, self.more = daemon, a, b, more
        self.id = f"dtls-{os.getpid()}-{Call.number}"

    def ask(self, command, **keys):
        reply = self.daemon.client.call(command, call_id=self.id, **keys)
        assert reply.get("result") == "ok", reply
        return reply.get("sdp")

    def offer(self, **more):
        self.offered = self.ask("offer", sdp=self.a.sdp(), from_tag="a", **(self.flags | self.more | more))
        self.b.believe(self.offered)
        return self

    def answer(self):
        self.a.believe(self.ask("answer", sdp=self.b.sdp(), from_tag="a", to_tag="b"))
        return self

    def begin(self):
        self.offer().answer()
        self.b.connect()
        self.b.handshake()
        self.b.keyed()
        return self

    def exchange(self, packets=20):
        """Both send until each has received so many more packets, with unchanged payloads. Packets of earlier exchanges may still arrive."""
        for one, other in ((self.b, self.a), (self.a, self.b)):
            payload = os.urandom(160)

            def spoken(one=one, other=other, payload=payload):
                one.say(payload)
                return other.heard.count(payload) >= packets
            wait_for("media one way", spoken)
            assert since(other.heard, payload) == {payload}, "media were changed"

    def end(self):
        self.ask("delete", from_tag="a", delete_delay=0)
