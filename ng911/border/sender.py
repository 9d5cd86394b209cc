# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends events to a logging service, over connections that stay open. The queue is bounded: events that find it full are lost and counted. Nobody waits
for it. An event is sent again until the service accepts or refuses it."""
import asyncio
import collections
import time

import aiohttp

from .trouble import Trouble

LONGEST = 30.0  # seconds between two tries


def octets_of(text):
    """In memory: one character outside of ASCII can make all of them four octets long."""
    return len(text) * (1 if text.isascii() else 4)


class Sender:
    def __init__(self, url, sign, tls, events=20000, octets=64 << 20, seconds=10.0, connections=4):
        self.url, self.sign, self.tls, self.seconds, self.connections = url, sign, tls, seconds, connections
        self.most, self.most_octets, self.octets = events, octets, 0
        self.queue, self.more = collections.deque(), asyncio.Event()
        self.counts = collections.Counter(sent=0, lost=0, refused=0, failures=0)
        self.trouble, self.tasks, self.working = Trouble(), [], 0

    def put(self, event):
        """Never waits."""
        size = 300 + sum(octets_of(t) for v in event.values() for t in (v if isinstance(v, list) else [v]) if isinstance(t, str))
        if len(self.queue) >= self.most or self.octets + size > self.most_octets:
            self.counts["lost"] += 1
            self.trouble.say("lost", "the queue is full: %d events lost so far. Is the logging service %s down or too slow?", self.counts["lost"], self.url)
            return
        self.octets += size
        self.queue.append((event, size))
        self.more.set()

    def start(self):
        # Nothing of an answer is kept or unpacked: only its status counts.
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.tls, limit=self.connections), timeout=aiohttp.ClientTimeout(total=self.seconds),
                                             cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
        self.tasks = [asyncio.get_running_loop().create_task(self.work()) for _ in range(self.connections)]

    async def work(self):
        pause = 0.0
        while True:
            while not self.queue:
                self.more.clear()
                await self.more.wait()
            event, size = self.queue.popleft()
            self.working += 1
            try:
                done = await self.post(event)
            finally:
                self.working -= 1
            if done:
                self.octets -= size
                pause = 0.0
                continue
            self.queue.append((event, size))  # at the end: an event at which the service fails must not hold up the others
            pause = min(LONGEST, pause * 2 or 0.25)
            await asyncio.sleep(pause)

    async def post(self, event):
        """True: the event was accepted or refused. False: send it again."""
        try:
            async with self.session.post(self.url, data=self.sign(event), headers={"Content-Type": "application/jose+json"}, allow_redirects=False) as reply:
                await reply.content.read(4096)
                status = reply.status
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as why:
            self.counts["failures"] += 1
            self.trouble.say("failed", "%s: %s. %d events wait", self.url, str(why) or "no answer in time", len(self.queue) + self.working)
            return False
        if 200 <= status < 300:
            self.counts["sent"] += 1
            return True
        if status >= 500 or status in (408, 429):
            self.counts["failures"] += 1
            self.trouble.say("failed", "%s answers %d. %d events wait", self.url, status, len(self.queue) + self.working)
            return False
        self.counts["refused"] += 1
        self.trouble.say("refused", "%s refuses an event of type %s: %d", self.url, event["logEventType"], status)
        return True

    async def close(self, seconds):
        """Gives the queue this time to become empty."""
        end = time.monotonic() + seconds
        while (self.queue or self.working) and time.monotonic() < end:
            await asyncio.sleep(0.05)
        self.counts["lost"] += len(self.queue) + self.working
        for t in self.tasks:
            t.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.session.close()
