# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/1.1 for LoST (RFC 5222 14): POST of application/lost+xml, on connections that stay open.

Everything that a client sends is bounded: the head, the body, the number of waiting requests, the time for a request and between two. So is
what it does not read: no answer is computed before the earlier ones are sent, and they must be within the time for a request."""
import asyncio
import socket
import struct
import time

import httptools

TYPE = "application/lost+xml"
MAX_HEAD, MAX_BODY, MAX_WAITING = 8192, 65536, 8
REASONS = {200: "OK", 400: "Bad Request", 405: "Method Not Allowed", 408: "Request Timeout", 413: "Content Too Large",
           415: "Unsupported Media Type", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}


class Limits:
    def __init__(self, request=5.0, idle=86400.0, connections=4096):
        """Seconds for a request to arrive, seconds without a request, connections at a time. When all of them are open, a new one replaces the one
        that was idle for the longest time."""
        self.request, self.idle, self.connections = request, idle, connections


def response(status, body=b"", close=False, kind=TYPE, more=""):
    text = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Length: {len(body)}\r\n{more}"
    if body:
        text += f"Content-Type: {kind}\r\nCache-Control: no-cache\r\n"
    if close:
        text += "Connection: close\r\n"
    return text.encode() + b"\r\n" + body


class Connection(asyncio.Protocol):
    def __init__(self, server):
        self.server, self.transport, self.parser, self.task = server, None, None, None
        self.waiting, self.deadline, self.ended, self.served = [], 0.0, False, False
        self.writable = None  # while the client does not read: a future that it does
        self.start()

    def start(self):
        self.head, self.type, self.body, self.refused, self.expect = 0, "", bytearray(), 0, False

    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.deadline = time.monotonic() + self.server.limits.request
        if len(self.server.open) >= self.server.limits.connections:
            self.server.end_an_idle_one()
        if len(self.server.open) >= self.server.limits.connections:
            transport.write(response(503, close=True))
            transport.close()
            return
        self.server.open.add(self)

    def connection_lost(self, _):
        self.ended = True
        self.server.open.discard(self)
        self.resume_writing()

    def pause_writing(self):
        self.writable = asyncio.get_running_loop().create_future()
        self.deadline = time.monotonic() + self.server.limits.request

    def resume_writing(self):
        if self.writable:
            self.writable.set_result(None)
            self.writable = None
            self.deadline = time.monotonic() + self.server.limits.idle

    def overdue(self, now):
        """Also if it is closed, but the client has not read all of it."""
        return self.deadline < now and (self.ended or self.writable or not self.task)

    def idle(self):
        """It had at least one request, all were answered, and the client reads the answers."""
        return self.served and not (self.ended or self.task or self.writable or self.head)

    def end(self):
        """No further answer. The client has the time for a request to read those that were given."""
        self.ended = True
        self.deadline = time.monotonic() + self.server.limits.request
        self.transport.close()

    def data_received(self, data):
        if self.ended:
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.refuse(400)
        except httptools.HttpParserError:
            self.refuse(self.refused or 400)
        if self.refused and not self.ended:
            self.refuse(self.refused)

    def refuse(self, status):
        """Answers, and closes the connection, because the rest of the request is not read."""
        if not self.ended:
            self.transport.write(response(status, close=True))
            self.end()

    def abort(self):
        """The system, too, forgets what the client did not read."""
        self.ended = True
        found = self.transport.get_extra_info("socket")
        if found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def extend(self, seconds):
        """A request gives more time, but not to a client that does not read."""
        if not self.writable and not self.ended:
            self.deadline = time.monotonic() + seconds

    # --- called by the parser ---

    def on_message_begin(self):
        self.start()
        self.extend(self.server.limits.request)

    def on_url(self, url):
        self.count(len(url))

    def on_header(self, name, value):
        self.count(len(name) + len(value))
        if name.lower() == b"content-type":
            self.type = value.decode("latin-1").partition(";")[0].strip().lower()
        elif name.lower() == b"content-length" and int(value) > MAX_BODY:
            self.refused = self.refused or 413
        elif name.lower() == b"expect":
            self.expect = value.lower() == b"100-continue"

    def count(self, octets):
        self.head += octets
        if self.head > MAX_HEAD:
            self.refused = self.refused or 431

    def on_headers_complete(self):
        if self.expect and not self.refused:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data):
        if self.refused:
            return
        if len(self.body) + len(data) > MAX_BODY:
            self.refused = 413
            return
        self.body += data

    def on_message_complete(self):
        if self.refused or self.ended:
            return
        self.extend(self.server.limits.idle)
        status = 200 if self.parser.get_method() == b"POST" else 405
        if status == 200 and self.type != TYPE:
            status = 415
        self.head = 0
        self.waiting.append((status, bytes(self.body), self.parser.should_keep_alive()))
        if len(self.waiting) > MAX_WAITING:
            self.refused = 503
        elif not self.task:
            self.task = self.server.spawn(self.work())

    async def work(self):
        """Answers the waiting requests in their order."""
        try:
            while self.waiting and not self.ended:
                status, body, keep = self.waiting.pop(0)
                if status == 200:
                    text = await self.server.answer(body)
                    reply = response(200, text, not keep)
                else:
                    reply = response(status, close=not keep, more="Allow: POST\r\n" if status == 405 else "")
                if self.ended:
                    return
                self.transport.write(reply)
                self.served = True
                if not keep:
                    self.end()
                if self.writable:
                    await self.writable
        finally:
            self.task = None


class Server:
    def __init__(self, answer, limits=None):
        """answer: coroutine function from the body of a request to that of its response."""
        self.answer, self.limits = answer, limits or Limits()
        self.open, self.tasks, self.listeners, self.sweeper = set(), set(), [], None

    def spawn(self, coroutine):
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def end_an_idle_one(self):
        """Ends the connection that was idle for the longest time, if any."""
        idle = [c for c in self.open if c.idle()]
        if idle:
            oldest = min(idle, key=lambda c: c.deadline)
            oldest.abort()
            self.open.discard(oldest)

    async def listen(self, host, port, tls=None, shared=False):
        """Returns the port."""
        more = {"ssl": tls, "ssl_handshake_timeout": self.limits.request} if tls else {}
        listener = await asyncio.get_running_loop().create_server(lambda: Connection(self), host, port, backlog=512, reuse_port=shared or None, **more)
        self.listeners.append(listener)
        if not self.sweeper:
            self.sweeper = self.spawn(self.sweep())
        return listener.sockets[0].getsockname()[1]

    async def sweep(self):
        """Closes connections whose time is over. An unanswered request keeps its connection."""
        while True:
            await asyncio.sleep(min(0.5, self.limits.request / 2))
            now = time.monotonic()
            for c in [c for c in self.open if c.overdue(now)]:
                if c.ended or c.writable:
                    c.abort()
                elif c.head:
                    c.refuse(408)
                else:
                    c.end()

    async def close(self):
        for listener in self.listeners:
            listener.close()
        if self.sweeper:
            self.sweeper.cancel()
        for c in list(self.open):
            c.transport.close()
        await asyncio.gather(*self.tasks, return_exceptions=True)
