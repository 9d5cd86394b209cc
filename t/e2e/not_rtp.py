# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets other than RTP, and terminals that send them. Used here and in the kernel module's guest."""
import re
import struct
import zlib

import calls
import idle
from test_ng import Phone


def udptl(seq, data=b"\x06"):
    """T.38 over UDPTL: sequence number, one IFP packet, no redundancy (T.38 9.1)."""
    return struct.pack("!HB", seq & 0xffff, len(data)) + data + b"\x00\x00"


def bfcp(transaction, primitive=11):
    """RFC 8855 5.1, version 2: over UDP."""
    return struct.pack("!BBHIHH", 0x40, primitive, 0, 7, transaction, 1)


def dtls(epoch_seq, kind=22, body=b"\x01" + b"h" * 40):
    """A DTLS record (RFC 6347 4.1)."""
    return struct.pack("!BHHIHH", kind, 0xfefd, 0, 0, epoch_seq, len(body)) + body


class Terminal(Phone):
    """A terminal with this m-line; datagrams are those the test makes."""

    def m(self, line, *attributes, port=None):
        body = "".join(f"a={a}\r\n" for a in attributes)
        return (f"v=0\r\no=- 1 2 IN IP4 {self.address}\r\ns=-\r\nc=IN IP4 {self.address}\r\nt=0 0\r\n"
                f"m={line.format(self.port if port is None else port)}\r\n{body}")

    def raw(self, datagram):
        self.sock.sendto(datagram, self.to)

    def gets(self, datagram, timeout=30.0):
        """Checks that the datagram arrives next and unchanged."""
        self.sock.settimeout(timeout)
        got = self.sock.recv(4096)
        assert got == datagram, (got, datagram)

    def nothing(self, seconds=0.3):
        idle.wait_idle()
        self.sock.settimeout(seconds)
        try:
            got = self.sock.recv(4096)
        except TimeoutError:
            return
        raise AssertionError(got)


def m_line(sdp, number=0):
    """(kind, port, rest) of an m-line."""
    kind, port, rest = [x for x in sdp.split("\r\n") if x.startswith("m=")][number][2:].split(" ", 2)
    return kind, int(port), rest


def connection(sdp):
    """The first c= line's address."""
    return re.search(r"^c=IN IP[46] (\S+)", sdp, re.M).group(1)


def exchange(client, a, b, offer, answer, call_id="c", again=False, **flags):
    """Sends offer and answer, and gives each terminal its destination. Returns both SDPs."""
    more = {"to_tag": "b"} if again else {}
    to_b = calls.ok(client.call("offer", call_id=call_id, from_tag="a", sdp=offer, **more, **flags))["sdp"]
    to_a = calls.ok(client.call("answer", call_id=call_id, from_tag="a", to_tag="b", sdp=answer))["sdp"]
    for phone, sdp in ((a, to_a), (b, to_b)):
        phone.to = (connection(sdp), m_line(sdp)[1])
    idle.wait_idle()  # the workers know the ports, so no packet takes the ordinary sockets
    return to_b, to_a


def pair(net):
    return Terminal(net, "caller", "10.200.1.2"), Terminal(net, "callee", "10.200.2.2")


FAX = ("image {} udptl t38", "T38FaxVersion:0", "T38MaxBitRate:14400", "T38FaxUdpEC:t38UDPRedundancy")
FLOOR = ("application {} UDP/BFCP *", "floorctrl:c-s", "setup:actpass")
DATA = ("application {} UDP/DTLS/SCTP webrtc-datachannel", "setup:actpass", "fingerprint:sha-256 AA:BB", "sctp-port:5000", "tls-id:abc")


ZRTP = ("Hello   ", "HelloACK", "Commit  ", "DHPart1 ", "DHPart2 ", "Confirm1", "Confirm2", "Conf2ACK")


def zrtp(kind, seq=1, ssrc=7, body=b"\0" * 8):
    """RFC 6189 5: header, message, CRC (any 32 bits, because the relay ignores it)."""
    message = struct.pack("!HH8s", 0x505a, 3 + len(body) // 4, kind.encode()) + body
    packet = struct.pack("!BBHII", 0x10, 0, seq, 0x5a525450, ssrc) + message
    return packet + struct.pack("!I", zlib.crc32(packet))


def stun(kind=1):
    """A binding request (RFC 8489 5) without attributes."""
    return struct.pack("!HHI", kind, 0, 0x2112a442) + b"transaction!"


OTHERS = [*(zrtp(kind) for kind in ZRTP), dtls(0), dtls(1, 20, b"\1"), stun(), stun(0x101)]
