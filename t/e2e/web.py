# SPDX-License-Identifier: GPL-2.0-or-later
"""Independent HTTP and WebSocket clients, inside a namespace if wanted. They use none of our code."""
import base64
import os
import socket
import struct

import ng


def connect(namespace, address):
    s = ng.socket_in(namespace, kind=socket.SOCK_STREAM)
    s.settimeout(30)
    s.connect(address)
    return s


def receive(s, n):
    b = b""
    while len(b) < n:
        x = s.recv(n - len(b))
        if not x:
            raise EOFError(b)
        b += x
    return b


def head(s):
    b = b""
    while not b.endswith(b"\r\n\r\n"):
        b += receive(s, 1)
    lines = b.decode().split("\r\n")
    fields = [line.split(":", 1) for line in lines[1:] if ":" in line]
    return int(lines[0].split()[1]), {k.lower(): v.strip() for k, v in fields}


def ask(s, method, path, body=None, **fields):
    """Status, header fields, body. The connection stays open if the server wants."""
    lines = [f"{method} {path} HTTP/1.1"]
    fields.setdefault("Host", "localhost")
    if body is not None:
        fields.setdefault("Content-Length", len(body))
    lines += [f"{k.replace('_', '-')}: {v}" for k, v in fields.items()]
    s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b""))
    status, got = head(s)
    return status, got, receive(s, int(got.get("content-length", 0)))


class NgClient:
    """ng over one of the other transports, with the interface of ng.Client."""

    def __init__(self, namespace, transport, address):
        self.transport, self.s, self.number = transport, connect(namespace, address), 0
        self.namespace, self.address = namespace, address
        self.ws = WebSocket(self.s, "ng.rtpengine.com") if transport == "websocket" else None

    @staticmethod
    def whole(reply):
        """Whether the message is cookie, space and a complete dictionary."""
        body = reply.partition(b" ")[2]
        try:
            return ng._decode(body, 0)[1] == len(body)
        except (ValueError, IndexError):
            return False

    def call(self, command, **keys):
        self.number += 1
        request = b"n%d " % self.number + ng.encode({"command": command, **{k.replace("_", "-"): v for k, v in keys.items()}})
        if self.transport == "http":
            reply = ask(connect(self.namespace, self.address), "POST", "/ng", request)[2]
        elif self.ws:
            self.ws.send(request)
            reply = self.ws.receive()[1]
        else:
            self.s.sendall(request)
            reply = b""
            while not self.whole(reply):
                reply += self.s.recv(65536)
        return ng.decode(reply.split(b" ", 1)[1])


class WebSocket:
    """As much of RFC 6455 as a client of a correct server needs."""

    def __init__(self, s, protocol, path="/", **fields):
        self.s = s
        fields.setdefault("Host", "localhost")
        lines = [f"GET {path} HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode()]
        lines += [f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in fields.items()]
        s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        try:
            self.status = head(s)[0]
        except (EOFError, ConnectionResetError):
            self.status = 0  # hung up

    @staticmethod
    def frame(data, opcode=1, fin=True):
        mask = os.urandom(4)
        n = len(data)
        length = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
        whole = mask * (n // 4 + 1)
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(whole[:n], "big")).to_bytes(n, "big") if n else b""
        return bytes([(0x80 if fin else 0) | opcode]) + length + mask + masked

    def send(self, data, opcode=1):
        self.s.sendall(self.frame(data, opcode))

    def receive(self):
        """Opcode and payload of the next message."""
        whole = b""
        first = None
        while True:
            a, b = receive(self.s, 2)
            n = b & 127
            if n == 126:
                n = struct.unpack(">H", receive(self.s, 2))[0]
            elif n == 127:
                n = struct.unpack(">Q", receive(self.s, 8))[0]
            data = receive(self.s, n)
            if a & 15 >= 8:
                if a & 15 == 9:
                    self.send(data, 10)
                    continue
                return a & 15, data
            first = a & 15 if first is None else first
            whole += data
            if a & 0x80:
                return first, whole
