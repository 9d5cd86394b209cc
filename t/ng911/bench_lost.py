#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures xcipher-lost: findService for random points, on kept connections.

bench_lost.py [--seconds=S] [--rate=N] [--connections=N] [--database=URL] [--index=memory|none] [--same-core]

The server gets one processor, the client another one. First at a fixed rate: requests leave at their time whether or not earlier ones
are answered, and delay counts from that time. Then as fast as the server can, with one request under way on each connection."""
import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "ng911", "xcipher-lost")
QUERY = ('<findService xmlns="urn:ietf:params:xml:ns:lost1" serviceBoundary="reference"><location id="l" profile="geodetic-2d">'
         '<gml:Point xmlns:gml="http://www.opengis.net/gml" srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>{} {}</gml:pos></gml:Point></location>'
         "<service>urn:nena:service:sos.psap</service></findService>")


def request(noise):
    body = QUERY.format(round(noise.uniform(25.9, 36.4), 6), round(noise.uniform(-106.6, -93.6), 6)).encode()
    return b"POST /lost HTTP/1.1\r\nHost: lost\r\nContent-Type: application/lost+xml;charset=utf-8\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


class Client(asyncio.Protocol):
    """Responses of one connection, in order."""

    def __init__(self):
        self.waiting, self.buffer, self.delays, self.wrong, self.free, self.closed = [], b"", [], 0, None, False

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, _):
        """The server closes a connection with too many waiting requests: they count as wrong."""
        self.closed, self.wrong, self.waiting = True, self.wrong + len(self.waiting), []

    def send(self, data, at):
        if self.closed:
            self.wrong += 1
            return
        self.waiting.append(at)
        self.transport.write(data)

    def data_received(self, data):
        self.buffer += data
        while True:
            head = self.buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            start = self.buffer.index(b"Content-Length: ") + 16
            total = head + 4 + int(self.buffer[start:self.buffer.index(b"\r", start)])
            if len(self.buffer) < total:
                return
            self.wrong += b"<findServiceResponse" not in self.buffer[head:total]
            self.buffer = self.buffer[total:]
            self.delays.append(time.perf_counter() - self.waiting.pop(0))
            if self.free:
                self.free(self)


def percentile(values, part):
    return values[min(len(values) - 1, int(len(values) * part))] * 1000


def row(title, clients, seconds):
    delays = sorted(d for c in clients for d in c.delays)
    wrong = sum(c.wrong for c in clients)
    print(f"| {title} | {len(delays) / seconds:.0f} | {percentile(delays, .5):.2f} | {percentile(delays, .95):.2f} | {percentile(delays, .99):.2f} | {delays[-1] * 1000:.2f} | {wrong} |",
          flush=True)
    return len(delays) / seconds, percentile(delays, .99), wrong


async def connect(options, port):
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Client, "127.0.0.1", port))[1] for _ in range(options.connections)]


async def at_rate(options, port, requests):
    clients = await connect(options, port)
    start, count = time.perf_counter() + 0.1, int(options.rate * options.seconds)
    for i in range(count):
        due = start + i / options.rate
        wait = due - time.perf_counter()
        if wait > 0.0005:
            await asyncio.sleep(wait)
        clients[i % len(clients)].send(requests[i % len(requests)], due)
    while any(c.waiting for c in clients):
        await asyncio.sleep(0.01)
    return row(f"{options.rate:g} a second", clients, options.seconds)


async def at_most(options, port, requests):
    clients = await connect(options, port)
    end, number = time.perf_counter() + options.seconds, iter(range(1 << 40))

    def again(client):
        now = time.perf_counter()
        if now < end:
            client.send(requests[next(number) % len(requests)], now)
    for c in clients:
        c.free = again
        again(c)
    while any(c.waiting for c in clients):
        await asyncio.sleep(0.01)
    return row("as fast as possible", clients, options.seconds)


def start_server(options, folder):
    database = options.database or os.path.join(folder, "lost.sqlite")
    data = subprocess.run([PROGRAM, "make-data"], check=True, capture_output=True).stdout
    subprocess.run([PROGRAM, "load", f"--database={database}", "-"], input=data, check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([PROGRAM, "serve", f"--database={database}", "--listen=127.0.0.1:0", f"--index={options.index}"], stderr=subprocess.PIPE, text=True)
    line = server.stderr.readline()
    if "listening" not in line:
        sys.exit("the server did not start: " + line)
    return server, int(line.split("listening on 127.0.0.1:")[1].split()[0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--rate", type=float, default=2000)
    p.add_argument("--connections", type=int, default=32)
    p.add_argument("--database", help="default: a new SpatiaLite file")
    p.add_argument("--index", default="memory")
    options = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        server, port = start_server(options, folder)
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(server.pid, {cores[0]})
        os.sched_setaffinity(0, {cores[-1]})
        noise = random.Random(1)
        requests = [request(noise) for _ in range(5000)]
        print("| findService | a second | p50 ms | p95 ms | p99 ms | max ms | wrong |\n|---|---|---|---|---|---|---|", flush=True)
        try:
            import uvloop
            uvloop.install()
        except ImportError:
            pass
        try:
            cpu = time.clock_gettime(~server.pid << 3 | 2)
            wrong = asyncio.run(at_rate(options, port, requests))[2]
            used = time.clock_gettime(~server.pid << 3 | 2) - cpu
            more = asyncio.run(at_most(options, port, requests))[2]
        finally:
            server.terminate()
            server.wait()
        print(f"\nprocessor time of the server for a request: {used / (options.rate * options.seconds) * 1e6:.0f} us; load of the machine {os.getloadavg()[0]:.1f}")
    sys.exit(bool(wrong or more))


if __name__ == "__main__":
    main()
