# SPDX-License-Identifier: GPL-2.0-or-later
"""Additional data of calls (RFC 7852), fetched from the references in Call-Info, for log events (NENA-STA-010.3 4.12). No call waits for them. References come from
callers, so only hosts that the operator names are asked, and only over HTTPS. Everything is bounded: what waits, what is fetched at once, and answers."""
import asyncio
import logging
import re
import time
import urllib.parse
import xml.parsers.expat

import aiohttp

from .events import rfc3339

log = logging.getLogger("xcipher-border")
REFERENCES = 8  # of one call
WAITING, AT_ONCE = 256, 8
SECONDS, OCTETS = 5.0, 64 << 10
SAY = 10.0  # seconds between two lines about the same trouble
PURPOSE = re.compile(r";\s*purpose\s*=\s*\"?(EmergencyCallData\.[-.A-Za-z0-9]{1,60})", re.I)


class Refused(Exception):
    """The answer is not XML that may be read."""


def references(infos):
    """(URI, kind) of each block of additional data. infos: those of a Message."""
    found = ((uri, PURPOSE.search(more)) for uri, more in infos if uri[:4].lower() != "cid:")
    return [(uri, kind[1]) for uri, kind in found if kind][:REFERENCES]


def is_allowed(uri, hosts):
    """hosts: names, or ".suffix" for all names below it."""
    try:
        parts = urllib.parse.urlsplit(uri)
        host, _ = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return False
    return parts.scheme.lower() == "https" and not parts.username and any(host == h or (h.startswith(".") and host.endswith(h)) for h in hosts)


def check_xml(data):
    """Raises Refused. No declarations: so entities cannot grow, and nothing is loaded."""
    def refuse(*_):
        raise Refused("a document type")
    parser = xml.parsers.expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except xml.parsers.expat.ExpatError as why:
        raise Refused(str(why)) from None


class AdditionalData:
    """logger: makes the events. put: takes them."""

    def __init__(self, hosts, tls, logger, put):
        self.hosts, self.tls, self.logger, self.put = [h.lower() for h in hosts], tls, logger, put
        self.queue = asyncio.Queue(WAITING)
        self.counts = {"fetched": 0, "failed": 0, "refused": 0, "lost": 0}
        self.tasks, self.session, self.said = [], None, {}

    def start(self):
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.tls, limit=AT_ONCE), timeout=aiohttp.ClientTimeout(total=SECONDS),
                                             cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
        self.tasks = [asyncio.get_running_loop().create_task(self.work()) for _ in range(AT_ONCE)]

    def seen(self, d):
        """A datagram of Kamailio. Never waits."""
        if d.kind != "in" or not d.call or not d.incident or d.message.method != "INVITE" or d.message.status or d.message.tag("to"):
            return
        for uri, kind in references(d.message.infos):
            if not is_allowed(uri, self.hosts):
                self.counts["refused"] += 1
                self.say("a caller's reference to %s names a host that --additional-data does not allow", kind)
                continue
            try:
                self.queue.put_nowait((d, uri, kind))
            except asyncio.QueueFull:
                self.counts["lost"] += 1

    def say(self, text, *values):
        """Callers cause these lines, so each is written once in SAY seconds."""
        now = time.monotonic()
        if now - self.said.get(text, -SAY) >= SAY:
            self.said[text] = now
            log.warning(text, *values)

    async def work(self):
        while True:
            d, uri, kind = await self.queue.get()
            begin = time.time()
            text, status, good = await self.fetch(uri, kind)
            self.counts["fetched" if good else "failed"] += 1
            for event in self.logger.additional(d, {"uri": uri, "text": text, "status": status, "good": good, "begin": rfc3339(begin), "end": rfc3339(time.time())}):
                self.put(event)

    async def fetch(self, uri, kind):
        """(text of the answer, its status or 0, whether it is additional data)"""
        text, status = "", 0
        try:
            async with self.session.get(uri, headers={"Accept": f"application/{kind}+xml"}, allow_redirects=False) as reply:
                status = reply.status
                data = await self.read(reply)
            text = data.decode("utf-8", "replace")
            if status == 200:
                check_xml(data)
                return text, status, True
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError, Refused) as why:
            self.say("additional data %s: %s", kind, str(why) or "no answer in time")
        return text, status, False

    @staticmethod
    async def read(reply):
        data = b""
        async for piece in reply.content.iter_chunked(8192):
            data += piece
            if len(data) > OCTETS:
                raise Refused(f"more than {OCTETS} octets")
        return data

    async def close(self):
        for t in self.tasks:
            t.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.session.close()
