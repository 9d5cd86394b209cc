# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of the tests of ng911/: the schema, requests, a PostgreSQL cluster of our own, and the server as a process."""
import asyncio
import atexit
import functools
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from lxml import etree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "ng911"))
sys.path.insert(0, os.path.join(ROOT, "t", "e2e"))

from lost_server import geojson, resolver  # noqa: E402
from lost_server.index import Index  # noqa: E402
from lost_server.postgis import PostGIS  # noqa: E402
from lost_server.spatialite import SpatiaLite  # noqa: E402

PROGRAM = os.path.join(ROOT, "ng911", "xcipher-lost")
SCHEMA = etree.RelaxNG(etree.parse(os.path.join(ROOT, "ng911", "schema", "lost.rng")))
LOST, GML, GS, CA = ("urn:ietf:params:xml:ns:lost1", "http://www.opengis.net/gml", "http://www.opengis.net/pidflo/1.0",
                     "urn:ietf:params:xml:ns:pidf:geopriv10:civicAddr")
L = f"{{{LOST}}}"
NOW = 1_800_000_000
SOURCE = "lost.test.example"
WGS84 = "urn:ogc:def:crs:EPSG::4326"


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


def valid(text):
    """The document in these octets, which must be valid by the schema of RFC 5222."""
    root = etree.fromstring(text if isinstance(text, bytes) else text.encode())
    assert SCHEMA.validate(root), (SCHEMA.error_log.last_error, text[:2000])
    return root


# --- Requests --------------------------------------------------------------------------------------


def point(lat, lon):
    return f'<g:Point xmlns:g="{GML}" srsName="{WGS84}"><g:pos>{lat} {lon}</g:pos></g:Point>'


def polygon(*corners, listed=False):
    inside = f"<g:posList>{' '.join(f'{a} {o}' for a, o in corners)}</g:posList>" if listed else "".join(f"<g:pos>{a} {o}</g:pos>" for a, o in corners)
    return (f'<g:Polygon xmlns:g="{GML}" srsName="{WGS84}"><g:exterior><g:LinearRing>{inside}</g:LinearRing></g:exterior></g:Polygon>')


def measured(name, lat, lon, **values):
    parts = "".join(f'<gs:{k} uom="urn:ogc:def:uom:EPSG::{9102 if "ngle" in k or k == "orientation" else 9001}">{v}</gs:{k}>' for k, v in values.items())
    return f'<gs:{name} xmlns:gs="{GS}" xmlns:g="{GML}" srsName="{WGS84}"><g:pos>{lat} {lon}</g:pos>{parts}</gs:{name}>'


def circle(lat, lon, radius):
    return measured("Circle", lat, lon, radius=radius)


def civic(**elements):
    return f'<civicAddress xmlns="{CA}">{"".join(f"<{k}>{v}</{k}>" for k, v in elements.items())}</civicAddress>'


def location(shape, name="here"):
    profile = "civic" if shape.startswith("<civic") else "geodetic-2d"
    return f'<location id="{name}" profile="{profile}">{shape}</location>'


def request(kind, *parts, service=None, via=(), **attributes):
    named = "".join(f' {k}="{v}"' for k, v in attributes.items())
    asked = f"<service>{service}</service>" if service else ""
    path = "<path>" + "".join(f'<via source="{v}"/>' for v in via) + "</path>" if via else ""
    return f'<?xml version="1.0" encoding="UTF-8"?><{kind} xmlns="{LOST}"{named}>{"".join(parts)}{asked}{path}</{kind}>'


def find(shape, service="urn:nena:service:sos.psap", **attributes):
    return request("findService", location(shape), service=service, **attributes)


async def answer(storage, text, check=True):
    """The response of a resolver on this storage. Both messages must be valid; check=False: the request need not be."""
    if check:
        valid(text)
    octets = await resolver.Resolver(lambda: storage, SOURCE, lambda: NOW).answer(text.encode() if isinstance(text, str) else text)
    valid(octets)
    return octets.decode()


def uri(text):
    return re.findall("<uri>(.*?)</uri>", text)


def said(text):
    """Names of errors and warnings, of the first mapping's sourceId, and so on: the parts in which answers differ."""
    root = etree.fromstring(text.encode())
    kinds = [e.tag[len(L):] for holder in root.iter(L + "errors", L + "warnings") for e in holder]
    mapping = root.find(L + "mapping")
    return (mapping.get("sourceId") if mapping is not None else None), kinds


# --- Storages --------------------------------------------------------------------------------------


class Cluster:
    """PostgreSQL on a Unix socket in a folder of its own. Nothing of the machine's clusters is touched."""

    def __init__(self):
        folders = sorted(f for f in os.listdir("/usr/lib/postgresql")) if os.path.isdir("/usr/lib/postgresql") else []
        if not folders or not os.path.exists(f"/usr/share/postgresql/{folders[-1]}/extension/postgis.control"):
            raise Skip("PostgreSQL with PostGIS is not installed")
        self.bin = f"/usr/lib/postgresql/{folders[-1]}/bin"
        self.folder = tempfile.mkdtemp(prefix="xcipher-pg-")
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        self.run("initdb", "-D", f"{self.folder}/data", "-A", "trust", "-U", "lost", "-E", "UTF8", "--no-sync", "--locale=C")
        self.start()
        self.run("createdb", "-h", self.folder, "-p", "5599", "-U", "lost", "lost")
        self.url = f"postgresql://lost@/lost?host={self.folder}&port=5599"

    def run(self, program, *args):
        """As another user: PostgreSQL refuses to run as root."""
        prefix = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"] if os.geteuid() == 0 else []
        subprocess.run([*prefix, os.path.join(self.bin, program), *args], check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self):
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", "-o",
                 f"-c listen_addresses='' -k {self.folder} -p 5599 -c fsync=off -c max_connections=40 -c shared_buffers=16MB", "start")

    def stop(self):
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "stop")

    def close(self):
        try:
            self.stop()
        except subprocess.CalledProcessError:
            pass
        shutil.rmtree(self.folder)


@functools.lru_cache(1)
def cluster():
    """One for all tests, because making it takes seconds. It ends with this process."""
    made = Cluster()
    atexit.register(made.close)
    return made


async def three(base_url, folder, text):
    """The two storages and the index, with the same data."""
    features = geojson.load(text)
    file, base = SpatiaLite(os.path.join(folder, "lost.sqlite")), PostGIS(base_url)
    for storage in (file, base):
        await storage.open()
        await storage.replace(features)
    return [file, base, await Index.load(file)]


async def until(what, check, seconds=60):
    """Waits for a state."""
    end = time.monotonic() + seconds
    while True:
        found = await check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        await asyncio.sleep(0.01)


def ran(main, words):
    """What a program does with these arguments, without the start of Python and the loading of its modules: main() of the program, in a child process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdin.close()
                status = main(list(words))
            except SystemExit as end:
                status = end.code or 0
            except BaseException:  # as Python ends a program
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return subprocess.CompletedProcess(words, status, *(os.pread(f.fileno(), 1 << 20, 0).decode() for f in (out, err)))


class Program:
    """xcipher-lost serve, on a free port of the loopback."""

    def __init__(self, database, *options, host="127.0.0.1", prefix=()):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*prefix, PROGRAM, "serve", f"--database={database}", f"--listen={host}:0", f"--source={SOURCE}", *options],
                                        stderr=self.log, stdout=self.log)
        end = time.monotonic() + 60
        while "listening" not in self.text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("xcipher-lost did not start:\n" + self.text())
            time.sleep(0.01)
        self.port = int(re.search(r"listening on \S+:(\d+)", self.text())[1])

    def text(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        return self.process.returncode


def load(database, text):
    subprocess.run([PROGRAM, "load", f"--database={database}", "-"], input=text.encode(), check=True, stdout=subprocess.DEVNULL)
