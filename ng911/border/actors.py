# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad actors (NENA-STA-010.3 4.1.3): a PSAP reports the source of an attack by the identifier that the border gave it in Call-Info, and Kamailio refuses
further calls of this source for a while. The blocks are in a file, so a restart keeps them. They are repeated to Kamailio, so its restart keeps them, too."""
import asyncio
import collections
import json
import logging
import os
import re
import socket
import tempfile
import time

from aiohttp import web

log = logging.getLogger("xcipher-border")
MAX_BODY = 4096
IDENTIFIER = re.compile(r"(?:sips?:)?([0-9A-Za-z]{8,64}@[-.0-9A-Za-z]{1,255})")
TABLE = "badactors"


class Kamailio:
    """JSON-RPC over the datagram socket of its module jsonrpcs. The socket for replies is in the same folder. Blocks; called in a thread."""

    def __init__(self, path):
        self.path = path

    def call(self, method, *params):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s, tempfile.TemporaryDirectory(prefix=".xcipher-border-", dir=os.path.dirname(self.path) or ".") as folder:
            s.settimeout(1)
            s.bind(os.path.join(folder, "reply"))
            s.connect(self.path)
            s.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}).encode())
            reply = json.loads(s.recv(65536))
        if "error" in reply:
            raise OSError(f"{method}: {reply['error'].get('message', 'refused')}")

    def block(self, blocks, seconds):
        """blocks: keys of sources. Each is blocked for at most these seconds from now."""
        for key, left in blocks.items():
            self.call("htable.setxi", TABLE, key, 1, max(1, min(seconds, int(left))))


class Actors:
    def __init__(self, kamailio, state=None, seconds=3600, known=100000, clock=time.time):
        self.kamailio, self.state, self.seconds, self.most, self.clock = kamailio, state, seconds, known, clock
        self.known = collections.OrderedDict()  # identifiers that the border gave, to keys of sources
        self.blocked = {}  # keys of sources to the end of their block
        self.said = False
        if state and os.path.exists(state):
            with open(state, encoding="utf-8") as f:
                try:
                    self.blocked = {str(k): float(v) for k, v in json.load(f).items() if re.fullmatch("[0-9a-f]{32}", k)}
                except (ValueError, AttributeError, TypeError):
                    raise OSError(f"{state}: not a file of xcipher-border. Remove it to begin without blocks") from None

    def seen(self, identifier, key):
        """The border gave a call this identifier."""
        if identifier and re.fullmatch("[0-9a-f]{32}", key):
            self.known[identifier] = key
            if len(self.known) > self.most:
                self.known.popitem(last=False)

    def report(self, identifier):
        """Returns 201: blocked from now on; 432: already blocked; 433: unknown identifier; 503: too many blocks."""
        key = self.known.get(identifier)
        if not key:
            return 433
        self.expire()
        if key in self.blocked:
            return 432
        if len(self.blocked) >= self.most:
            return 503
        self.blocked[key] = self.clock() + self.seconds
        self.save()
        return 201

    def expire(self):
        now = self.clock()
        self.blocked = {k: end for k, end in self.blocked.items() if end > now}

    def save(self):
        if not self.state:
            return
        try:
            with open(self.state + ".new", "w", encoding="utf-8") as f:
                json.dump(self.blocked, f)
            os.replace(self.state + ".new", self.state)
        except OSError as why:
            log.error("%s: %s. The sources are blocked, but not after a restart", self.state, why.strerror)

    async def tell(self):
        """Sends all blocks to Kamailio. False if it does not accept them now."""
        now = self.clock()
        left = {k: end - now for k, end in self.blocked.items() if end > now}
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.kamailio.block, left, self.seconds)
        except (OSError, ValueError) as why:
            if not self.said:
                log.warning("%s: Kamailio does not accept the blocked sources: %s. Trying again", self.kamailio.path, why)
            self.said = True
            return False
        self.said = False
        return True

    async def repeat(self, every):
        while True:
            if self.blocked:
                await self.tell()
            await asyncio.sleep(every)

    async def handle(self, request):
        """POST /BadActors: {"sourceId": "ID@NAME"}, or only the text."""
        if request.content_length is not None and request.content_length > MAX_BODY:
            return web.Response(status=413)
        text = (await request.read()).decode("utf-8", "replace").strip()
        if text.startswith("{"):
            try:
                text = json.loads(text).get("sourceId", "")
            except (ValueError, RecursionError):
                text = ""
        found = IDENTIFIER.fullmatch(text.strip("<>")) if isinstance(text, str) else None
        status = self.report(found[1]) if found else 400
        log.info("%s reports %s as a bad actor, answered with %d", request.remote, found[1] if found else "no valid identifier", status)
        if status == 201 and not await self.tell():
            return web.Response(status=201, reason="Bad Actor successfully reported, blocked soon")
        reasons = {201: "Bad Actor successfully reported", 432: "Already reported", 433: "No such sourceId"}
        return web.Response(status=status, reason=reasons.get(status))

    def application(self):
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post("/BadActors", self.handle)
        return app
