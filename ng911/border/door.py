# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections of the web service. Their number is bounded, TLS handshakes included: whoever reaches the port can begin one without a certificate."""
import asyncio
import logging
import socket
import ssl
import time

log = logging.getLogger("xcipher-border")
HANDSHAKE_SECONDS = 10
SAY_SECONDS = 60


def listening(host, port):
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        s = socket.socket(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(where)
        s.listen(128)
    except OSError as why:
        raise OSError(f"--listen={host}:{port}: {why.strerror}") from None
    s.setblocking(False)
    return s


class Door:
    """server: of aiohttp. tls: None = TCP."""

    def __init__(self, server, where, tls, most):
        self.server, self.tls, self.most, self.socket = server, tls, most, where
        self.handshakes, self.refused, self.said = {}, 0, None  # by task: the connection that it begins

    def count(self):
        return len({*self.server.connections, *self.handshakes.values()})

    async def run(self):
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(self.socket)
            except OSError as why:
                log.error("cannot accept a connection: %s", why.strerror)
                await asyncio.sleep(1)
                continue
            if self.count() >= self.most:
                connection.close()
                self.refuse(peer[0])
                continue
            protocol = self.server()
            task = loop.create_task(self.take(protocol, connection))
            self.handshakes[task] = protocol
            task.add_done_callback(self.handshakes.pop)

    async def take(self, protocol, connection):
        more = {"ssl": self.tls, "ssl_handshake_timeout": HANDSHAKE_SECONDS} if self.tls else {}
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, connection, **more)
        except (OSError, ssl.SSLError, asyncio.TimeoutError):
            connection.close()

    def refuse(self, peer):
        self.refused += 1
        now = time.monotonic()
        if self.said is None or now >= self.said + SAY_SECONDS:
            self.said = now
            log.warning("refused a connection from %s: there are %d, see --max-connections; refused since the start: %d", peer, self.most, self.refused)

    def close(self):
        self.socket.close()
        for task in self.handshakes:
            task.cancel()
