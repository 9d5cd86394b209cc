# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts TLS handshakes on a router, by server and kind: full, or resumed from an earlier session. Reads ServerHello messages (RFC 8446 4.1.3),
which are not encrypted. Only TLS 1.3."""
import select
import socket
import struct

import ng

OUTGOING, PRE_SHARED_KEY = 4, 41


def extensions(record):
    """The extension types of the ServerHello with which the record begins, or None."""
    if len(record) < 49 or record[0] != 22 or record[5] != 2:
        return None
    at = 44 + record[43]  # after the session's identifier
    at += 3  # cipher suite, compression
    end = at + 2 + struct.unpack_from("!H", record, at)[0]
    at += 2
    found = set()
    while at + 4 <= min(end, len(record)):
        kind, size = struct.unpack_from("!HH", record, at)
        found.add(kind)
        at += 4 + size
    return found


class Handshakes:
    """All handshakes that pass a namespace from now on."""

    def __init__(self, ns):
        self.socket = ng.socket_in(ns, socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))  # ETH_P_ALL
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE

    def count(self):
        """{(address, port): [full, resumed]} since the last call."""
        found = {}
        while select.select([self.socket], [], [], 0)[0]:
            packet, address = self.socket.recvfrom(65536)
            if address[2] == OUTGOING or packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            tcp = (packet[0] & 15) * 4
            kinds = extensions(packet[tcp + (packet[tcp + 12] >> 4) * 4:])
            if kinds is not None:
                server = socket.inet_ntoa(packet[12:16]), struct.unpack_from("!H", packet, tcp)[0]
                found.setdefault(server, [0, 0])[PRE_SHARED_KEY in kinds] += 1
        return found

    def close(self):
        self.socket.close()
