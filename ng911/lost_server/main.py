# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of xcipher-lost, and its three commands: serve, load, make-data."""
import argparse
import asyncio
import logging
import os
import pathlib
import signal
import ssl
import sys

from . import dataset, geojson
from .index import Front
from .messages import DOMAIN
from .resolver import Resolver
from .storage import StorageError, open_storage
from .web import Limits, Server

log = logging.getLogger("xcipher-lost")
DATABASE = "/var/lib/xcipher-lost/lost.sqlite"


def version():
    """The text of the file VERSION: of the package, or of the clone."""
    for folder in pathlib.Path(__file__).resolve().parents[1:3]:
        if (folder / "VERSION").is_file():
            return (folder / "VERSION").read_text(encoding="ascii").strip()
    return "unknown"


def arguments(args):
    p = argparse.ArgumentParser(prog="xcipher-lost", description="LoST server (RFC 5222): maps locations and services to URIs.")
    p.add_argument("--version", action="version", version=f"xcipher-lost {version()}", help="print the version and exit")
    commands = p.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="answer requests")
    load = commands.add_parser("load", help="replace all mappings by those of a GeoJSON file")
    make = commands.add_parser("make-data", help="write GeoJSON for demonstrations and measurements: a state with many boundaries")
    for c in (serve, load):
        c.add_argument("--database", default=DATABASE, metavar="URL", help="postgresql://... or the path of a SpatiaLite file (default: %(default)s)")
    serve.add_argument("--listen", action="append", metavar="HOST:PORT", help="address for HTTP, or for HTTPS with --certificate (default: 127.0.0.1:8080)")
    serve.add_argument("--listen-http", action="append", default=[], metavar="HOST:PORT", help="address for HTTP in addition to --listen")
    serve.add_argument("--source", default="lost.xcipher.invalid", metavar="NAME", help="domain name in responses that names this server (default: %(default)s)")
    serve.add_argument("--certificate", metavar="FILE", help="PEM file with the certificate chain: serve HTTPS")
    serve.add_argument("--key", metavar="FILE", help="PEM file with its private key (default: in the file of the certificate)")
    serve.add_argument("--client-ca", metavar="FILE", help="PEM file: clients must have a certificate of one of these authorities")
    serve.add_argument("--index", choices=("memory", "none"), default="memory", help="memory: keep all boundaries in memory. none: ask the database each time (default: %(default)s)")
    serve.add_argument("--processes", type=int, default=1, metavar="N", help="processes that share the address (default: %(default)s)")
    serve.add_argument("--request-time", type=float, default=5, metavar="S", help="seconds for a request to arrive (default: %(default)g)")
    serve.add_argument("--idle-time", type=float, default=86400, metavar="S", help="seconds that an idle connection stays open (default: %(default)g)")
    serve.add_argument("--max-connections", type=int, default=4096, metavar="N", help="connections of a process at a time (default: %(default)s)")
    load.add_argument("file", metavar="FILE", help="GeoJSON, - for standard input")
    make.add_argument("--count", type=int, default=500, metavar="N", help="boundaries (default: %(default)s)")
    make.add_argument("--seed", type=int, default=911, metavar="N", help="the same seed makes the same data (default: %(default)s)")
    make.add_argument("--esrp", default="sips:sos@esrp.example:5061", metavar="URI", help="URI for urn:service:sos (default: %(default)s)")
    make.add_argument("--psap", default="sips:psap{number}@psap.example:5061", metavar="URI", help="URI for urn:nena:service:sos.psap (default: %(default)s)")
    make.add_argument("--default", default="sips:default@psap.example:5061", metavar="URI", help="URI outside of all boundaries (default: %(default)s)")
    options = p.parse_args(args)
    if options.command == "serve":
        check(p, options)
    return options


def check(p, options):
    options.listen = [address(p, a) for a in options.listen or ["127.0.0.1:8080"]]
    options.listen_http = [address(p, a) for a in options.listen_http]
    if not DOMAIN.fullmatch(options.source):
        p.error(f"--source={options.source}: not a domain name with at least one dot")
    if (options.key or options.client_ca) and not options.certificate:
        p.error("--key and --client-ca need --certificate")
    if not 1 <= options.processes <= 64:
        p.error("--processes: 1 to 64")


def address(p, text):
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        p.error(f"{text}: not HOST:PORT")
    return host.strip("[]"), int(port)


def tls_context(options):
    if not options.certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for path in (options.certificate, options.key, options.client_ca):
        if path:
            open(path, "rb").close()  # this error names the file, those of ssl do not
    try:
        context.load_cert_chain(options.certificate, options.key)
    except ssl.SSLError as why:
        raise OSError(f"{options.certificate}: not a certificate with its private key in PEM ({why})") from None
    if options.client_ca:
        try:
            context.load_verify_locations(options.client_ca)
        except ssl.SSLError as why:
            raise OSError(f"{options.client_ca}: no certificates in PEM ({why})") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def serve(options, tls):
    storage = open_storage(options.database)
    await storage.open()
    server = Server(None, Limits(options.request_time, options.idle_time, options.max_connections))
    front = Front(storage, server.spawn)
    if options.index == "memory":
        front.now()
        await front.load()
    resolver = Resolver(front.now if options.index == "memory" else lambda: storage, options.source)
    server.answer = resolver.answer
    for listed, context in ((options.listen, tls), (options.listen_http, None)):
        for host, port in listed:
            got = await server.listen(host, port, context, options.processes > 1)
            log.info("listening on %s:%d (%s), %s, index %s", host, got, "HTTPS" if context else "HTTP", storage.name, options.index)
    if not await storage.services():
        log.warning("the database has no mappings, so every request is answered with an error. \"xcipher-lost load\" fills it")
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    await end.wait()
    log.info("ending; answers by kind: %s", resolver.counts or "none")
    await server.close()
    await storage.close()


def fork(count):
    """Starts further processes. Each gets connections of its own from the kernel, and ends with the first one."""
    children = []
    for _ in range(count - 1):
        pid = os.fork()
        if not pid:
            return []
        children.append(pid)
    return children


def read(file):
    """The features of a file; errors name it."""
    try:
        with (open(file, encoding="utf-8") if file != "-" else sys.stdin) as f:
            return geojson.load(f.read())
    except OSError as why:
        raise geojson.BadData(f"{file}: {why.strerror}") from None
    except UnicodeDecodeError:
        raise geojson.BadData(f"{file}: it is not text in UTF-8") from None
    except geojson.BadData as why:
        raise geojson.BadData(f"{'standard input' if file == '-' else file}: {why}") from None


async def load(options):
    features = read(options.file)
    storage = open_storage(options.database)
    await storage.open()
    try:
        await storage.replace(features)
    finally:
        await storage.close()
    print(f"{len(features)} mappings, {sum(1 for f in features if f.wkb)} boundaries")


def run(coroutine):
    try:
        import uvloop
    except ImportError:
        return asyncio.run(coroutine)
    uvloop.install()
    return asyncio.run(coroutine)


def main(args=None):
    options = arguments(args)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    try:
        if options.command == "make-data":
            print(dataset.text(count=options.count, seed=options.seed, esrp=options.esrp, psap=options.psap, default=options.default))
        elif options.command == "load":
            run(load(options))
        else:
            tls = tls_context(options)
            children = fork(options.processes)
            try:
                run(serve(options, tls))
            finally:
                for pid in children:
                    os.kill(pid, signal.SIGTERM)
                    os.waitpid(pid, 0)
    except (OSError, geojson.BadData, StorageError) as why:
        log.error("%s", why)
        return 1
    return 0
