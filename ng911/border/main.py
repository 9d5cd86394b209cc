# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of xcipher-border, and its parts together."""
import argparse
import asyncio
import logging
import pathlib
import signal
import socket
import ssl
import sys

from aiohttp import web

from .actors import Actors, Kamailio
from .additional import AdditionalData, Rule
from .discrepancy import Reports
from .door import Door, listening
from .events import BadEvent, Datagram, Logger
from .jws import BadKey, Signer
from .sender import Sender

log = logging.getLogger("xcipher-border")
RECEIVE = 8 << 20


def version():
    """The text of the file VERSION: of the package, or of the clone."""
    for folder in pathlib.Path(__file__).resolve().parents[:3]:
        if (folder / "VERSION").is_file():
            return (folder / "VERSION").read_text(encoding="ascii").strip()
    return "unknown"


def arguments(args):
    p = argparse.ArgumentParser(prog="xcipher-border", description="Web services of a border function (NENA-STA-010.3): log events and bad actors.")
    p.add_argument("--version", action="version", version=f"xcipher-border {version()}", help="print the version and exit")
    p.add_argument("--events", default="127.0.0.1:5095", metavar="HOST:PORT", help="receive events of Kamailio at this address, a loopback one (default: %(default)s)")
    p.add_argument("--events-from", default="127.0.0.1:5094", metavar="HOST:PORT", help="only from this one (default: %(default)s)")
    p.add_argument("--element", default="border.xcipher.invalid", metavar="NAME", help="domain name of the border function in log events (default: %(default)s)")
    p.add_argument("--agency", default="agency.xcipher.invalid", metavar="NAME", help="domain name of its agency (default: %(default)s)")
    p.add_argument("--log", metavar="URL", help="send log events by POST to this URL of a logging service, for example https://log.example/LogEvents")
    p.add_argument("--log-messages", action="store_true", help="also log each SIP message with its content, in which the location of the caller may be")
    p.add_argument("--sign-certificate", metavar="FILE", help="PEM file with the certificate chain that log events are signed with, of type Ed448")
    p.add_argument("--sign-key", metavar="FILE", help="PEM file with its private key")
    p.add_argument("--queue", type=int, default=20000, metavar="N", help="events that wait for the logging service, at most (default: %(default)s)")
    p.add_argument("--certificate", metavar="FILE", help="PEM file with the certificate chain for TLS, as server and as client")
    p.add_argument("--key", metavar="FILE", help="PEM file with its private key")
    p.add_argument("--ca", metavar="FILE", help="PEM file with the authorities of the network")
    p.add_argument("--listen", metavar="HOST:PORT", help="accept reports of bad actors at this address: POST /BadActors, by servers with a certificate of --ca")
    p.add_argument("--max-connections", type=int, default=1024, metavar="N", help="connections to --listen at a time, TLS handshakes included (default: %(default)s)")
    p.add_argument("--kamailio", metavar="PATH", help="datagram socket of Kamailio's module jsonrpcs, to block the sources")
    p.add_argument("--block-seconds", type=int, default=3600, metavar="S", help="how long a reported source is blocked (default: %(default)s)")
    p.add_argument("--state", metavar="FILE", help="file for the blocked sources, so that they stay blocked over a restart")
    p.add_argument("--additional-data", metavar="HOST[:PORT],...", help="fetch additional data of calls (RFC 7852) from these hosts, for log events: names, or .suffix for all names below it; needs --log and --log-messages")
    p.add_argument("--locator", metavar="URL", help="send discrepancy reports about malformed SIP messages to the service that this record of a service and agency locator names; https: only, needs --listen")
    options = p.parse_args(args)
    check(p, options)
    return options


def check(p, options):
    for name in ("events", "events_from", "listen"):
        if getattr(options, name):
            setattr(options, name, address(p, getattr(options, name)))
    if not options.events[0].startswith("127."):
        p.error("--events: only an address of 127.0.0.0/8, because messages arrive there unencrypted")
    if not options.log and not options.listen:
        p.error("nothing to do: give --log, --listen, or both")
    if options.log and not options.log.startswith("https://"):
        p.error("--log: only https://, because events have data of callers")
    if options.log and not (options.sign_certificate and options.sign_key):
        p.error("--log needs --sign-certificate and --sign-key")
    if not (options.certificate and options.key and options.ca):
        p.error("--certificate, --key and --ca are needed")
    if options.additional_data and not (options.log and options.log_messages):
        p.error("--additional-data needs --log and --log-messages")
    try:
        options.additional_data = [Rule(r) for r in options.additional_data.split(",")] if options.additional_data else None
    except ValueError as why:
        p.error(f"--additional-data: {why}")
    if options.locator and not (options.listen and options.locator.startswith("https://")):
        p.error("--locator: only https://, because reports have data of callers, and only with --listen, where resolutions of reports arrive")
    if options.listen and not options.kamailio:
        p.error("--listen needs --kamailio")
    if options.queue < 1 or options.block_seconds < 1 or options.max_connections < 1:
        p.error("--queue, --block-seconds and --max-connections: at least 1")


def address(p, text):
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        p.error(f"{text}: not HOST:PORT")
    return host.strip("[]"), int(port)


def tls_context(options, purpose):
    for path in (options.certificate, options.key, options.ca):
        open(path, "rb").close()  # this error names the file, those of ssl do not
    try:
        context = ssl.create_default_context(purpose, cafile=options.ca)
        context.load_cert_chain(options.certificate, options.key)
    except ssl.SSLError as why:
        raise OSError(f"{options.certificate}, {options.key}, {options.ca}: not a certificate, its key and authorities in PEM ({why})") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    # In the network AES-256 or better (NENA-STA-010.3 4.1.1), as in ng911-common.cfg.
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20:!AES128")
    return context


class Events(asyncio.DatagramProtocol):
    """parts: those that get each datagram, by name, None for those that are off."""

    def __init__(self, origin, logger, sender, parts):
        self.origin, self.logger, self.sender, self.parts, self.bad = origin, logger, sender, parts, 0

    def datagram_received(self, data, addr):
        if addr[:2] != self.origin:
            self.bad += 1
            return
        try:
            d = Datagram(data)
        except BadEvent:
            self.bad += 1
            return
        if d.kind == "bad":
            if self.parts["reports"]:
                self.parts["reports"].bad(d)
            return
        if self.parts["actors"]:
            self.parts["actors"].seen(d.source, d.actor)
        if self.sender:
            for event in self.logger.events(d):
                self.sender.put(event)
        if self.parts["additional"]:
            self.parts["additional"].seen(d)


def event_socket(where):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE)
    try:
        s.bind(where)
    except OSError as why:
        raise OSError(f"--events={where[0]}:{where[1]}: {why.strerror}") from None
    s.setblocking(False)
    return s


async def serve(options, signer, client, server):
    loop = asyncio.get_running_loop()
    sender = runner = None
    parts = dict.fromkeys(("actors", "additional", "reports"))
    logger = Logger(options.element, options.agency, options.log_messages)
    tasks = []
    if options.log:
        sender = Sender(options.log, signer.sign, client, options.queue)
        sender.start()
    if options.additional_data:
        parts["additional"] = AdditionalData(options.additional_data, client, logger, sender.put)
        parts["additional"].start()
    if options.locator:
        parts["reports"] = Reports(options.locator, client, options.element, options.agency, f"https://{options.element}:{options.listen[1]}/Resolutions")
        parts["reports"].start()
    if options.listen:
        actors = parts["actors"] = Actors(Kamailio(options.kamailio), options.state, options.block_seconds)
        app = actors.application()
        if parts["reports"]:
            app.router.add_post("/Resolutions", parts["reports"].resolved)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        door = Door(runner.server, listening(*options.listen), server, options.max_connections)
        tasks = [loop.create_task(door.run()), loop.create_task(actors.repeat(10))]
    events = Events(options.events_from, logger, sender, parts)
    transport, _ = await loop.create_datagram_endpoint(lambda: events, sock=event_socket(options.events))
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)
    log.info("listening on %s:%d for events%s", *options.events, ", on %s:%d for bad actors" % options.listen if options.listen else "")
    await end.wait()
    transport.close()
    for task in tasks:
        task.cancel()
    if runner:
        door.close()
        await runner.server.shutdown(5)
        await runner.cleanup()
    for part in (parts["additional"], parts["reports"]):
        if part:
            await part.close()
    if sender:
        await sender.close(5)
    counts = {"log events": sender, "additional data": parts["additional"], "discrepancy reports": parts["reports"]}
    log.info("ending; %s; rejected datagrams: %d", "; ".join(f"{name}: {dict(part.counts) if part else 'off'}" for name, part in counts.items()), events.bad)


def main(args=None):
    options = arguments(args)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    try:
        signer = Signer(options.sign_certificate, options.sign_key) if options.log else None
        client = tls_context(options, ssl.Purpose.SERVER_AUTH)
        server = tls_context(options, ssl.Purpose.CLIENT_AUTH)
        asyncio.run(serve(options, signer, client, server))
    except (OSError, BadKey) as why:
        log.error("%s", why)
        return 1
    return 0
