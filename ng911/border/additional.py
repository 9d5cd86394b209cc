# SPDX-License-Identifier: GPL-2.0-or-later
"""Additional data of calls (RFC 7852), fetched from the references in Call-Info, for log events (NENA-STA-010.3 4.12). No call waits for them. References come from
callers, so only hosts that the operator names are asked, and only over HTTPS. Queues, requests at a time and answers are bounded. Each entry of the
operator's list has a queue, connections and threads of its own, so hosts that are slow, or have slow names, delay no others."""
import asyncio
import collections
import concurrent.futures
import re
import socket
import time
import xml.parsers.expat

import aiohttp
import aiohttp.abc

from .events import rfc3339
from .trouble import Trouble

REFERENCES = 8  # of one call
WAITING, AT_ONCE = 64, 4  # of one entry of the list
SECONDS, OCTETS = 5.0, 64 << 10
CALL_ID = 1000  # the longest one; what waits is bounded
PURPOSE = re.compile(r";\s*purpose\s*=\s*\"?(EmergencyCallData\.[-.A-Za-z0-9]{1,60})", re.I)
# All libraries read such a URI in the same way: no user names, escapes or other alphabets before the path.
URI = re.compile(r"https://(?:([-.0-9A-Za-z]{1,253})|\[([0-9A-Fa-f:.]{2,45})\])(?::([0-9]{1,5}))?(?:[/?#][!-~]*)?", re.I)
RULE = re.compile(r"(?:(\.?[0-9a-z][-.0-9a-z]{0,251})|\[([0-9a-f:.]{2,45})\])(?::([0-9]{1,5}))?|([0-9a-f:]{2,45})")
About = collections.namedtuple("About", "call incident call_id when address")  # what events need of the datagram of a call


class Refused(Exception):
    """The answer is not XML that may be read."""


def references(infos):
    """(URI, kind) of each block of additional data. infos: those of a Message."""
    found = ((uri, PURPOSE.search(more)) for uri, more in infos if uri[:4].lower() != "cid:")
    return [(uri, kind[1]) for uri, kind in found if kind][:REFERENCES]


class Rule:
    """HOST or HOST:PORT; ".suffix" means all names below it. Callers choose URIs, so there is no port but this one."""

    def __init__(self, text):
        found = RULE.fullmatch(text.strip().lower())
        if not found or int(found[3] or 443) > 65535:
            raise ValueError(f"{text}: not a host, .suffix, or HOST:PORT")
        self.host, self.port = found[1] or found[2] or found[4], int(found[3] or 443)

    def allows(self, uri):
        found = URI.fullmatch(uri)
        if not found or int(found[3] or 443) != self.port:
            return False
        host = (found[1] or found[2]).lower()
        return host == self.host or (self.host.startswith(".") and host.endswith(self.host))


def check_xml(data):
    """Raises Refused. No declarations: so entities cannot grow, and nothing is loaded."""
    def refuse(*_):
        raise Refused("a document type")
    parser = xml.parsers.expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except (xml.parsers.expat.ExpatError, LookupError, ValueError) as why:  # the latter two for encodings
        raise Refused(str(why)) from None


class Resolver(aiohttp.abc.AbstractResolver):
    """libc resolves names in threads and cannot be interrupted. These threads serve nothing else."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE, "additional")

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        def look_up():
            return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
        found = await asyncio.get_running_loop().run_in_executor(self.pool, look_up)
        return [{"hostname": host, "host": where[0], "port": where[1], "family": kind, "proto": protocol, "flags": socket.AI_NUMERICHOST}
                for kind, _, protocol, _, where in found if len(where) == 2 or not where[3]]

    async def close(self):
        self.pool.shutdown(wait=False)


class Source:
    """What one rule allows."""

    def __init__(self, rule, tls):
        self.rule, self.tls, self.queue, self.session = rule, tls, asyncio.Queue(WAITING), None

    def start(self):
        self.resolver = Resolver()
        # A cache of names would keep all that callers choose.
        connector = aiohttp.TCPConnector(ssl=self.tls, limit=AT_ONCE, resolver=self.resolver, use_dns_cache=False)
        self.session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=SECONDS), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)

    async def close(self):
        await self.session.close()
        await self.resolver.close()


class AdditionalData:
    """logger: makes the events. put: takes them."""

    def __init__(self, rules, tls, logger, put):
        self.sources, self.logger, self.put = [Source(r, tls) for r in rules], logger, put
        self.counts = {"fetched": 0, "failed": 0, "refused": 0, "lost": 0}
        self.tasks, self.trouble = [], Trouble()

    def start(self):
        for source in self.sources:
            source.start()
            self.tasks += [asyncio.get_running_loop().create_task(self.work(source)) for _ in range(AT_ONCE)]

    def seen(self, d):
        """A datagram of Kamailio. Never waits."""
        if d.kind != "in" or not d.call or not d.incident or d.message.method != "INVITE" or d.message.status or d.message.tag("to"):
            return
        for uri, kind in references(d.message.infos):
            source = next((s for s in self.sources if s.rule.allows(uri)), None)
            if not source:
                self.counts["refused"] += 1
                self.trouble.say("refused", "a caller's reference to %s names a host or port that --additional-data does not allow", kind)
            elif source.queue.full() or len(d.call_id) > CALL_ID:
                self.counts["lost"] += 1
            else:
                source.queue.put_nowait((About(d.call, d.incident, d.call_id, d.when, d.address), uri, kind))

    async def work(self, source):
        while True:
            about, uri, kind = await source.queue.get()
            begin = time.time()
            text, status, good = await self.fetch(source, uri, kind)
            self.counts["fetched" if good else "failed"] += 1
            for event in self.logger.additional(about, {"uri": uri, "text": text, "status": status, "good": good, "begin": rfc3339(begin), "end": rfc3339(time.time())}):
                self.put(event)

    async def fetch(self, source, uri, kind):
        """(text of the answer, its status or 0, whether it is additional data)"""
        text, status = "", 0
        try:
            async with source.session.get(uri, headers={"Accept": f"application/{kind}+xml"}, allow_redirects=False) as reply:
                status = reply.status
                data = await self.read(reply)
            text = data.decode("utf-8", "replace")
            if status == 200:
                check_xml(data)
                return text, status, True
        except Exception as why:  # whatever libraries raise for what others have written: the next one is fetched
            # Not all of their texts: some have the URI, by which others can fetch the data.
            self.trouble.say("failed", "additional data %s: %s", kind, why if isinstance(why, (Refused, aiohttp.ClientConnectorError)) else type(why).__name__)
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
        for source in self.sources:
            await source.close()
