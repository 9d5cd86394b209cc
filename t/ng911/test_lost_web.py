# SPDX-License-Identifier: GPL-2.0-or-later
"""The server as a process: HTTP, HTTPS, limits, changes of the data, a database that fails, and Kamailio's module lost as a client."""
import json
import math
import os
import re
import socket
import ssl
import subprocess
import tempfile
import time

from lostrig import ROOT, Program, Skip, circle, cluster, find, load, point, polygon, ran, said, until
from lost_server.main import main
from test_lost_answers import SMALL, SOS, feature, square

TYPE = "Content-Type: application/lost+xml;charset=utf-8\r\n"


def post(text, more="", version="1.1"):
    body = text.encode()
    return f"POST /lost HTTP/{version}\r\nHost: lost\r\n{TYPE}{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Client:
    """A connection that stays open."""

    def __init__(self, port, tls=None):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.file = self.socket.makefile("rb")

    def read(self):
        """(status, headers, body); status 0 at the end of the connection."""
        line = self.file.readline()
        if not line:
            return 0, "", ""
        head = b""
        while (header := self.file.readline()) not in (b"\r\n", b""):
            head += header
        length = int(re.search(rb"Content-Length: (\d+)", head)[1]) if b"Content-Length" in head else 0
        return int(line.split()[1]), head.decode(), self.file.read(length).decode()

    def ask(self, octets):
        self.socket.sendall(octets)
        return self.read()

    def close(self):
        self.file.close()
        self.socket.close()


def established(port):
    """Connections that the server at this port has. Those that only the system has, with their last octets, do not count."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return sum(int(r[1].split(":")[1], 16) == port and r[3] in ("01", "08") for r in rows)


def served(check, *options, data=None):
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        database = os.path.join(folder, "lost.sqlite")
        load(database, json.dumps(data or SMALL))
        program = Program(database, *options)
        try:
            check(program, database)
        finally:
            status = program.stop()
        assert status == 0 and "Traceback" not in program.text(), program.text()


def test_http_and_its_limits():
    def check(program, _):
        c = Client(program.port)
        for _ in range(3):
            status, head, body = c.ask(post(find(point(5, 2), SOS)))
            assert status == 200 and "application/lost+xml" in head and said(body) == ("west", []), (status, head, body)
        # Several requests at once are answered in their order.
        c.socket.sendall(post(find(point(5, 2), SOS)) + post(find(point(5, 12), SOS)))
        assert [said(c.read()[2])[0] for _ in range(2)] == ["west", "east"]
        body = find(point(5, 12), SOS)
        chunks = f"{len(body) - 20:x}\r\n{body[:-20]}\r\n14\r\n{body[-20:]}\r\n0\r\n\r\n"
        assert said(c.ask(f"POST / HTTP/1.1\r\nHost: l\r\n{TYPE}Transfer-Encoding: chunked\r\n\r\n{chunks}".encode())[2])[0] == "east"
        assert c.ask(b"GET / HTTP/1.1\r\nHost: l\r\n\r\n")[0] == 405
        assert c.ask(post(body).replace(b"lost+xml", b"xml"))[0] == 415
        assert said(c.ask(post("<odd/>"))[2])[1] == ["badRequest"]
        assert c.ask(post(body))[0] == 200
        assert "close" in c.ask(post(body, "Connection: close\r\n"))[1] and c.read()[0] == 0
        for octets, status in ((b"junk\r\n\r\n", 400), (b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n", 413),
                               (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n" + b"x" * 0x20000, 413),
                               (b"POST /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 431), (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
                               (b"POST / HTTP/1.1\r\nX: " + b"y" * 9000 + b"\r\n\r\n", 431), (post(body) * 20, 503)):
            d = Client(program.port)
            d.socket.sendall(octets)
            codes = []
            try:
                while (code := d.read()[0]):
                    codes.append(code)
            except ConnectionResetError:
                pass
            assert status in codes or status == 413, (octets[:40], codes)
            d.close()
        assert Client(program.port).ask(post(body))[0] == 200
    served(check)


# Seconds within which even a busy machine's client sends its request.
PATIENCE = "--request-time=4", "--idle-time=4"


def test_slow_clients_lose_their_connection():
    def check(program, _):
        silent, slow = Client(program.port), Client(program.port)
        slow.socket.sendall(post(find(point(5, 2), SOS))[:-5])
        assert slow.read()[0] == 408 and slow.read()[0] == 0
        assert silent.read()[0] == 0
        kept = Client(program.port)
        assert kept.ask(post(find(point(5, 2), SOS)))[0] == 200
        assert kept.read()[0] == 0  # the idle time
    served(check, *PATIENCE)


def test_a_new_connection_takes_the_place_of_an_idle_one():
    """Of the one that was idle for the longest time, so that connections may stay open for long. Without an idle one it gets 503."""
    request = post(find(point(5, 2), SOS))

    def check(program, _):
        one, two = Client(program.port), Client(program.port)
        three = Client(program.port)
        assert three.ask(request)[0] == 503
        for c in (one, two, one):
            assert c.ask(request)[0] == 200
        three = Client(program.port)
        assert three.ask(request)[0] == 200 and one.ask(request)[0] == 200
        try:
            assert two.read()[0] == 0
        except ConnectionResetError:
            pass
    served(check, "--max-connections=2", "--request-time=60")


def test_clients_that_read_nothing_lose_their_connection():
    """Their answers would fill the memory: a hundred kilobytes for a request of 500 octets."""
    ring = [[5 + 5 * math.cos(i / 1500 * math.pi), 5 + 5 * math.sin(i / 1500 * math.pi)] for i in range(3000)]
    data = {"type": "FeatureCollection", "features": [feature({"type": "Polygon", "coordinates": [[*ring, ring[0]]]}, SOS, "round")]}
    body = find(point(5, 2), SOS, serviceBoundary="value")

    def ends(c):
        """Asks until the connection is closed. The system's buffers hold a hundred answers."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                c.socket.sendall(post(body))
            except OSError:
                return True
            time.sleep(0.01)
        return False

    def check(program, _):
        greedy = Client(program.port)
        assert len(greedy.ask(post(body))[2]) > 100000
        assert ends(greedy), "it asks, and reads nothing"
        # One whose connection the server closes itself does not keep it open either.
        refused = Client(program.port)
        refused.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        refused.socket.sendall(post(body) * 6 + b"junk\r\n\r\n")
        end = time.monotonic() + 60
        while established(program.port):
            assert time.monotonic() < end, "the connection stays"
            time.sleep(0.05)
        assert Client(program.port).ask(post(body))[0] == 200
    served(check, *PATIENCE, data=data)


def test_a_change_of_the_data_is_seen_at_once():
    """Also from memory: no answer after the load shows the old data."""
    def check(program, database):
        for number in range(2):
            changed = [feature(square(0, 0), SOS, f"new-{number}")]
            load(database, json.dumps({"type": "FeatureCollection", "features": changed}))
            c = Client(program.port)  # the server ends an older one that was idle for long
            for _ in range(20):
                assert said(c.ask(post(find(point(5, 2), SOS)))[2])[0] == f"new-{number}"
    for index in ("memory", "none"):
        served(check, f"--index={index}")


async def test_a_database_that_fails_and_returns():
    pg = cluster()
    load(pg.url, json.dumps(SMALL))
    for index in ("memory", "none"):
        program = Program(pg.url, f"--index={index}")
        try:

            def asked():
                c = Client(program.port)
                try:
                    return said(c.ask(post(find(point(5, 2), SOS)))[2])
                finally:
                    c.close()
            assert asked() == ("west", [])
            load(pg.url, json.dumps({"type": "FeatureCollection", "features": [feature(square(0, 0), SOS, "new")]}))

            async def changed():
                return asked() == ("new", [])
            await until("the notification", changed)
            pg.stop()

            async def failed():
                return asked() == (None, ["internalError"])
            await until("an error", failed)
            pg.start()
            await until("the database again", changed)
            load(pg.url, json.dumps(SMALL))

            async def back():
                return asked() == ("west", [])
            await until("the listener again", back)
        finally:
            status = program.stop()
        assert status == 0, program.text()


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def certificates(folder):
    """ca.pem, and a certificate and key signed by it, valid for 127.0.0.1: node.pem."""
    ca, key, request = (os.path.join(folder, n) for n in ("ca.pem", "ca.key", "node.csr"))
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", ca, "-days", "2", "-subj", "/CN=Test CA")
    node = os.path.join(folder, "node.pem")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", node, "-out", request, "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1")
    signed = subprocess.run(["openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", key, "-CAcreateserial", "-days", "2", "-copy_extensions", "copy"],
                            check=True, capture_output=True).stdout
    with open(node, "ab") as f:
        f.write(signed)
    return ca, node


def test_https_with_client_certificates():
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        ca, node = certificates(folder)

        def check(program, _):
            good, nobody = ssl.create_default_context(cafile=ca), ssl.create_default_context(cafile=ca)
            good.load_cert_chain(node)
            c = Client(program.port, good)
            for _ in range(2):
                assert said(c.ask(post(find(point(5, 2), SOS)))[2]) == ("west", [])
            try:
                assert Client(program.port, nobody).ask(post(find(point(5, 2), SOS)))[0] == 0
            except (ssl.SSLError, ConnectionResetError):
                pass
            try:
                assert Client(program.port).ask(post(find(point(5, 2), SOS)))[0] != 200
            except (ConnectionResetError, AttributeError, IndexError, ValueError):
                pass
            assert said(c.ask(post(find(point(5, 2), SOS)))[2]) == ("west", [])
        served(check, f"--certificate={node}", f"--client-ca={ca}")


# --- Kamailio's module lost ------------------------------------------------------------------------

SCRIPT = """
children=1
log_stderror=yes
auto_aliases=no
listen=udp:127.0.0.1:%(sip)d
loadmodule "sl.so"
loadmodule "pv.so"
loadmodule "textops.so"
loadmodule "siputils.so"
loadmodule "xlog.so"
loadmodule "http_client.so"
loadmodule "lost.so"
modparam("http_client", "connection_timeout", 10)
modparam("http_client", "httpcon", "server=>http://127.0.0.1:%(lost)d/lost")
request_route {
	$var(uri) = $null;
	$var(name) = $null;
	$var(err) = $null;
	$var(rc) = lost_query("server", "", "urn:service:sos", "$var(uri)", "$var(name)", "$var(err)");
	append_to_reply("X-Lost: $var(rc) $var(uri) $var(name) $var(err)\\r\\n");
	sl_send_reply("200", "Done");
}
"""
PIDF = """<?xml version="1.0"?><presence xmlns="urn:ietf:params:xml:ns:pidf" entity="pres:a@test"><tuple id="t"><status>
<gp:geopriv xmlns:gp="urn:ietf:params:xml:ns:pidf:geopriv10"><gp:location-info>%s</gp:location-info><gp:usage-rules/></gp:geopriv>
</status></tuple></presence>"""


def invite(to, port, shape):
    pidf = (PIDF % shape).replace("xmlns:g=", "xmlns:gml=").replace("<g:", "<gml:").replace("</g:", "</gml:")
    body = ("--bound\r\nContent-Type: application/pidf+xml\r\nContent-ID: <loc@test.example>\r\n\r\n" + pidf + "\r\n--bound--\r\n")
    return (f"INVITE sip:sos@127.0.0.1:{to} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:{port};branch=z9hG4bK{time.monotonic_ns()}\r\nFrom: <sip:a@test>;tag=1\r\n"
            f"To: <sip:sos@test>\r\nCall-ID: {time.monotonic_ns()}\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\nGeolocation: <cid:loc@test.example>\r\n"
            f"Content-Type: multipart/mixed;boundary=bound\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_the_stock_module_of_kamailio_as_client():
    folders = [os.path.join("/usr/lib", d, "kamailio/modules/lost.so") for d in os.listdir("/usr/lib")]
    if not os.path.exists("/usr/sbin/kamailio") or not any(map(os.path.exists, folders)):
        raise Skip("kamailio-utils-modules is not installed")

    def check(program, _):
        with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
            script, sip = os.path.join(folder, "k.cfg"), free_port()
            with open(script, "w", encoding="utf-8") as f:
                f.write("#!KAMAILIO\n" + SCRIPT % {"sip": sip, "lost": program.port})
            with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
                kamailio = subprocess.Popen(["/usr/sbin/kamailio", "-f", script, "-DD", "-E", "-w", folder, "-Y", folder, "-m", "16", "-M", "4"], stdout=log, stderr=log)

                def asked(shape):
                    """The values of lost_query. Sent again until Kamailio has started."""
                    for _ in range(60):
                        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:  # one for each, so that no late reply counts for the next request
                            s.bind(("127.0.0.1", 0))
                            s.settimeout(2)
                            s.sendto(invite(sip, s.getsockname()[1], shape), ("127.0.0.1", sip))
                            try:
                                return re.search(r"X-Lost: (.*)\r", s.recv(65535).decode())[1]
                            except (TimeoutError, ConnectionRefusedError):
                                pass
                    raise AssertionError("Kamailio does not answer: " + os.pread(log.fileno(), 1 << 20, 0).decode()[-3000:])
                try:
                    assert asked(point(5, 2)).startswith("200 sips:west@psap.example West"), asked(point(5, 2))
                    assert asked(circle(2, 10.1, 50000)).startswith("200 sips:east"), asked(circle(2, 10.1, 50000))
                    assert "500" in asked(point(50, 2)) and "notFound" in asked(point(50, 2)), asked(point(50, 2))
                    # The module makes a point of a polygon, and loses the decimals: 10.6 east is in the eastern square, 10 on the border.
                    assert asked(polygon((1.9, 10.6), (1.9, 11.6), (2.9, 11.6), (2.9, 10.6), (1.9, 10.6))).startswith("200 sips:"), "polygon"
                finally:
                    kamailio.terminate()
                    kamailio.wait(60)
    served(check)


def test_errors_say_what_is_wrong():
    """One line without a traceback, which names the file or the property."""
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        def file(name, text):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return path
        good, junk = file("good.json", json.dumps(SMALL)), file("junk", "junk\n")
        nameless = file("nameless.json", '{"features": [{"properties": {}, "geometry": null}]}')
        absent, base = os.path.join(folder, "absent", "file"), f"--database={folder}/lost.sqlite"
        for words, expected in ((("load", f"--database={absent}", good), f"{absent}: unable to open database file. Its folder must exist"),
                                (("load", f"--database={junk}", good), f"{junk}: file is not a database"),
                                (("load", base, nameless), f"{nameless}: feature 1: the property service is missing"),
                                (("load", base, junk), f"{junk}: this is not a FeatureCollection"),
                                (("load", base, absent), f"{absent}: No such file or directory"),
                                (("load", base, "/bin/true"), "/bin/true: it is not text in UTF-8"),
                                (("serve", base, f"--certificate={absent}"), absent),
                                (("serve", base, f"--certificate={junk}"), f"{junk}: not a certificate"),
                                (("load", "--database=postgresql://u:secret@127.0.0.1:1/x", good), "PostgreSQL at 127.0.0.1: ")):
            done = ran(main, words)
            assert done.returncode == 1 and expected in done.stderr, (words, done.stderr)
            assert done.stderr.count("\n") == 1 and "secret" not in done.stderr, done.stderr


def test_options_are_documented():
    page = os.path.join(ROOT, "man", "xcipher-lost.8")
    with open(page, encoding="utf-8") as f:
        text = f.read().replace("\\-", "-")
    for command in ("serve", "load", "make-data"):
        said_by = ran(main, (command, "--help")).stdout
        assert said_by.startswith(f"usage: xcipher-lost {command} "), said_by
        for option in set(re.findall(r"--([a-z-]+)", said_by)) - {"help"}:
            assert f"Fl -{option}" in text, (command, option)


def test_version():
    with open(os.path.join(ROOT, "VERSION"), encoding="ascii") as f:
        want = f"xcipher-lost {f.read().strip()}\n"
    got = subprocess.run([os.path.join(ROOT, "ng911", "xcipher-lost"), "--version"], capture_output=True, text=True, check=True).stdout
    assert got == want, got
