# SPDX-License-Identifier: GPL-2.0-or-later
"""Discrepancy reports (NENA-STA-010.3 3.7) about SIP messages that Kamailio refused as malformed. The record of a service and agency locator names the service that
gets them. There is one report about a source in REPEAT seconds, whatever it sends. No call waits."""
import asyncio
import collections
import json
import logging
import secrets
import time

import aiohttp
from aiohttp import web

from .events import rfc3339
from .trouble import plain

log = logging.getLogger("xcipher-border")
REPEAT = 60.0
SOURCES, WAITING = 1000, 64
SECONDS, OCTETS = 10.0, 64 << 10
KEPT = 3600.0  # how long the answer of the locator counts


class NoService(Exception):
    """The locator names no service for reports."""


class Reports:
    """locator: URL. here: URL for resolutions."""

    def __init__(self, locator, tls, element, agency, here, clock=time.monotonic):
        self.locator, self.tls, self.element, self.agency, self.here, self.clock = locator, tls, element, agency, here, clock
        self.queue = asyncio.Queue(WAITING)
        self.last = collections.OrderedDict()  # by address of a source: when it was reported
        self.counts = {"sent": 0, "failed": 0, "lost": 0}
        self.service, self.until, self.task, self.session = None, 0.0, None, None

    def start(self):
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.tls, limit=2), timeout=aiohttp.ClientTimeout(total=SECONDS),
                                             cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
        self.task = asyncio.get_running_loop().create_task(self.work())

    def bad(self, d):
        """A message that was refused. Never waits."""
        source, now = d.address.rpartition(":")[0], self.clock()
        if source in self.last and now - self.last[source] < REPEAT:
            return
        self.last[source] = now
        self.last.move_to_end(source)
        if len(self.last) > SOURCES:
            self.last.popitem(last=False)
        try:
            self.queue.put_nowait(self.report(d))
        except asyncio.QueueFull:
            self.counts["lost"] += 1

    def report(self, d):
        r = {"resolutionUri": self.here, "reportType": "BCFDiscrepancyReport", "discrepancyReportSubmittalTimeStamp": rfc3339(time.time()),
             "discrepancyReportId": f"{secrets.token_hex(16)}-{self.element}", "reportingAgencyName": self.agency, "reportingAgentId": self.element,
             "reportingContactJcard": ["vcard", [["version", {}, "text", "4.0"], ["fn", {}, "text", self.agency]]], "problemService": "BCF",
             "problemSeverity": "Moderate", "problem": "BadSIP", "request": d.text, "eventTimestamp": d.when}
        source = d.message.source()
        if source:
            r["sosSource"] = source
        return r

    async def work(self):
        while True:
            report = await self.queue.get()
            try:
                await self.send(report)
                self.counts["sent"] += 1
            except Exception as why:  # whatever libraries raise for what the locator has written: the next one is sent
                self.counts["failed"] += 1
                self.service = None  # it may be elsewhere by the next report
                log.warning("a discrepancy report was not sent: %s", plain(why) or "no answer in time")

    async def send(self, report):
        url = await self.where() + "/Reports"
        async with self.session.post(url, data=json.dumps(report).encode(), headers={"Content-Type": "application/json"}, allow_redirects=False) as reply:
            await reply.content.read(4096)
            if not 200 <= reply.status < 300:
                raise NoService(f"{url} answers {reply.status}")
        log.info("reported a malformed message: %s", report["discrepancyReportId"])

    async def where(self):
        """The service for reports."""
        if self.service and self.clock() < self.until:
            return self.service
        async with self.session.get(self.locator, headers={"Accept": "application/json"}, allow_redirects=False) as reply:
            if reply.status != 200:
                raise NoService(f"{self.locator} answers {reply.status}")
            data = b""
            async for piece in reply.content.iter_chunked(8192):
                data += piece
                if len(data) > OCTETS:
                    raise NoService(f"{self.locator}: more than {OCTETS} octets")
        try:
            found = json.loads(data).get("dscRptUri")
        except (ValueError, RecursionError, AttributeError):
            found = None
        if not isinstance(found, str) or not found.startswith("https://"):
            raise NoService(f"{self.locator} names no https: service for discrepancy reports (dscRptUri)")
        self.service, self.until = found.rstrip("/"), self.clock() + KEPT
        return self.service

    async def resolved(self, request):
        """POST /Resolutions: what became of a report, for the log."""
        try:
            said = json.loads(await request.read())
            name, result = (str(said[k])[:200] for k in ("discrepancyReportId", "resolution"))
        except (ValueError, RecursionError, KeyError, TypeError):
            return web.Response(status=400)
        log.info("%s resolves the discrepancy report %r: %r", request.remote, name, result)
        return web.Response(status=201, reason="Resolution Created")

    async def close(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.session.close()
