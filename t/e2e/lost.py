# SPDX-License-Identifier: GPL-2.0-or-later
"""A Kamailio with xcipher_lost.so, a scripted HTTP(S) server, and a SIP client, all on loopback in the gateway's namespace."""
import contextlib
import datetime
import http.server
import ipaddress
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time

import ng
import relay
from run import Skip

SOS = "urn:service:sos"
SIP_PORT = 5060
PSAP = "sip:psap@psap.test;transport=tls"
GML = 'xmlns:gml="http://www.opengis.net/gml"'
GS = 'xmlns:gs="http://www.opengis.net/pidflo/1.0"'
LOST = 'xmlns="urn:ietf:params:xml:ns:lost1"'

CFG = """#!KAMAILIO
debug=2
log_stderror=yes
children=2
%(tcp)s
auto_aliases=no
listen=udp:127.0.0.1:%(port)d
%(first)s
loadmodule "kex.so"
loadmodule "corex.so"
loadmodule "counters.so"
loadmodule "tm.so"
loadmodule "sl.so"
loadmodule "rr.so"
loadmodule "pv.so"
loadmodule "textops.so"
loadmodule "siputils.so"
loadmodule "xlog.so"
loadmodule "ctl.so"
loadmodule "xcipher_lost.so"
modparam("ctl", "binrpc", "%(ctl)s")
%(before)s
%(params)s
request_route {
	if (is_method("ACK")) exit;
	if (is_method("CANCEL")) {
		if (t_check_trans()) t_relay();
		exit;
	}
	if ($rU == "ping") {
		send_reply("200", "Pong");
		exit;
	}
	switch ($hdr(X-Do)) {
	case "sync":
		xlost_find_service("$hdr(X-Service)");
		break;
	case "list":
		xlost_list_services("$hdr(X-Service)", "DONE");
		break;
	case "boundary":
		xlost_get_boundary("$hdr(X-Argument)", "DONE");
		break;
	case "held":
		xlost_held_request("$hdr(X-Argument)", "DONE");
		break;
	case "dereference":
		xlost_held_dereference("$hdr(X-Argument)", "DONE");
		break;
	case "argument":
		xlost_find_service("$hdr(X-Service)", "DONE", "$rb");
		break;
	case "late":
		t_newtran();
		xlost_find_service("$hdr(X-Service)");
		xlost_find_service("$hdr(X-Service)", "DONE");
		xlog("L_NOTICE", "the script goes on\\n");
		break;
	case "chain":
		xlost_held_request("sip:alice@test", "HELD");
		route(HELD);
		exit;
	case "chain-sync":
		xlost_held_request("sip:alice@test", "HELD_SYNC");
		route(HELD_SYNC);
		exit;
	case "has":
		if (xlost_has_location()) send_reply("200", "Has");
		else send_reply("404", "Has not");
		exit;
	default:
		if ($hdr(X-Fork) != $null) append_branch("sip:second@test");
		xlost_find_service("$hdr(X-Service)", "DONE");
	}
	route(DONE);
}

route[HELD] {
	xlost_find_service("$hdr(X-Service)", "DONE", "$xlost(pidf)");
	route(DONE);
}

route[HELD_SYNC] {
	xlost_find_service("$hdr(X-Service)", "", "$xlost(pidf)");
	route(DONE);
}

route[DONE] {
	append_to_reply("X-Result: $xlost(result)\\r\\nX-Error: $xlost(error)\\r\\nX-Uri: $xlost(uri)\\r\\nX-Uris: $xlost(uris)\\r\\n");
	append_to_reply("X-Name: $xlost(name)\\r\\nX-Number: $xlost(number)\\r\\nX-Service: $xlost(service)\\r\\nX-Services: $xlost(services)\\r\\n");
	append_to_reply("X-Warnings: $xlost(warnings)\\r\\nX-Cached: $xlost(cached)\\r\\nX-Tries: $xlost(tries)\\r\\nX-Method: $xlost(method)\\r\\n");
	append_to_reply("X-Message: $xlost(message)\\r\\nX-Profile: $xlost(profile)\\r\\nX-Key: $xlost(boundary_key)\\r\\nX-Url: $xlost(server)\\r\\n");
	append_to_reply("X-Location-Uri: $xlost(location_uri)\\r\\nX-Boundary: $(xlost(boundary){s.len})\\r\\nX-Pidf: $(xlost(pidf){s.len})\\r\\nX-Branch: $(branch(uri)[0])\\r\\n");
	send_reply("200", "Done");
	exit;
}
"""


def needs():
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher_lost.so")):
        raise Skip("xcipher_lost.so is not built: make module")
    if not os.access("/usr/sbin/kamailio", os.X_OK):
        raise Skip("kamailio is not installed")


# --- XML ---------------------------------------------------------------------------------------

def point(pos):
    return f'<gml:Point {GML} srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>{pos}</gml:pos></gml:Point>'


def polygon(*corners):
    text = "".join(f"<gml:pos>{c}</gml:pos>" for c in corners + corners[:1])
    return f'<gml:Polygon {GML} srsName="urn:ogc:def:crs:EPSG::4326"><gml:exterior><gml:LinearRing>{text}</gml:LinearRing></gml:exterior></gml:Polygon>'


def pidf(*shapes):
    """One tuple per shape."""
    tuples = "".join(f'<tuple id="t{i}"><status><gp:geopriv><gp:location-info>{s}</gp:location-info><gp:usage-rules/></gp:geopriv></status></tuple>'
                     for i, s in enumerate(shapes))
    return ('<?xml version="1.0" encoding="UTF-8"?><presence xmlns="urn:ietf:params:xml:ns:pidf" '
            f'xmlns:gp="urn:ietf:params:xml:ns:pidf:geopriv10" entity="pres:caller@test">{tuples}</presence>')


def square(south, west, size=1.0):
    north, east = south + size, west + size
    return polygon(f"{south} {west}", f"{south} {east}", f"{north} {east}", f"{north} {west}")


def mapping(uri=PSAP, expires="2099-01-01T00:00:00Z", boundary="", ident="one", service=SOS, more=""):
    return (f'<findServiceResponse {LOST}><mapping expires="{expires}" lastUpdated="2026-01-01T00:00:00Z" source="lost.test" sourceId="{ident}">'
            f'<displayName xml:lang="en">Test PSAP</displayName><service>{service}</service>{boundary}<uri>{uri}</uri><serviceNumber>911</serviceNumber></mapping>'
            f'{more}<path><via source="lost.test"/></path></findServiceResponse>')


def by_value(shape):
    return f'<serviceBoundary profile="geodetic-2d">{shape}</serviceBoundary>'


def by_reference(key):
    return f'<serviceBoundaryReference source="lost.test" key="{key}"/>'


def boundary_response(shape):
    return f'<getServiceBoundaryResponse {LOST}>{by_value(shape)}<path><via source="lost.test"/></path></getServiceBoundaryResponse>'


def errors(name):
    return f'<errors {LOST} source="lost.test"><{name} message="test says {name}" xml:lang="en"/></errors>'


# --- Certificates ------------------------------------------------------------------------------

class Ca:
    """Certificates made by the Python package cryptography."""

    def __init__(self, folder, name="ca"):
        from cryptography.hazmat.primitives.asymmetric import ec
        self.folder, self.name = folder, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = self._name(name)
        self.path = self._write(f"{name}.pem", self._build(self.subject, self.key, ca=True))

    @staticmethod
    def _name(text):
        from cryptography import x509
        from cryptography.x509.oid import NameOID
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def _build(self, subject, key, ca=False, sans=(), days=10):
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        now = datetime.datetime.utcnow()
        b = x509.CertificateBuilder().subject_name(subject).issuer_name(self.subject).public_key(key.public_key())
        b = b.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=30))
        b = b.not_valid_after(now + datetime.timedelta(days=days)).add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        if sans:
            b = b.add_extension(x509.SubjectAlternativeName(list(sans)), critical=False)
        return b.sign(self.key, hashes.SHA256())

    def _write(self, name, cert, key=None):
        from cryptography.hazmat.primitives import serialization as s
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(cert.public_bytes(s.Encoding.PEM))
            if key:
                f.write(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()))
        return path

    def leaf(self, name, address="127.0.0.1", days=10):
        """A file with certificate and key. days < 0: it has expired."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        key = ec.generate_private_key(ec.SECP256R1())
        sans = [x509.IPAddress(ipaddress.ip_address(address))]
        return self._write(name + ".pem", self._build(self._name(name), key, sans=sans, days=days), key)


# --- Server ------------------------------------------------------------------------------------

class Server:
    """answer(method, path, body) returns (status, body) or only a body; it may block. Counts requests and connections."""

    def __init__(self, net, port, answer, cert=None, client_ca=None, address="127.0.0.1"):
        outer = self
        self.answer, self.requests, self.connections, self.peers, self.resumed = answer, [], 0, [], []
        self.open = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                outer.connections += 1
                outer.open.append(self.request)
                if cert:
                    self.request = outer.context.wrap_socket(self.request, server_side=True)
                    outer.peers.append(self.request.getpeercert())
                    outer.open.append(self.request)
                    outer.resumed.append(self.request.session_reused)
                super().setup()

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.requests.append((self.command, self.path, body.decode(), dict(self.headers)))
                answer = outer.answer(self.command, self.path, body.decode())
                status, out = answer if isinstance(answer, tuple) else (200, answer)
                out = out.encode() if isinstance(out, str) else out
                self.send_response(status)
                self.send_header("Content-Type", "application/lost+xml")
                self.send_header("Content-Length", str(len(out)))
                self.end_headers()
                self.wfile.write(out)

            do_POST = do_GET = handle_any

            def log_message(self, *args):
                pass

        class Http(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request, client_address):
                pass

        if cert:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(cert)
            if client_ca:
                self.context.verify_mode = ssl.CERT_REQUIRED
                self.context.load_verify_locations(client_ca)
        self.http = Http((address, port), Handler, bind_and_activate=False)
        self.http.socket.close()
        self.http.socket = ng.socket_in(net.gateway, socket.AF_INET, socket.SOCK_STREAM)
        self.http.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.http.socket.bind((address, port))
        self.http.server_address = (address, port)
        self.http.server_activate()
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()

    def bodies(self):
        return [r[2] for r in self.requests]

    def cut(self):
        """Closes all connections."""
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def close(self):
        if self.http:
            self.http.shutdown()
            self.http.server_close()
            self.cut()
        self.http = None


def naptr(url="", service="LoST:https", leads_to="", order=10):
    """The data of a NAPTR record (RFC 3403, 4848): a URL, or another name."""
    def text(s):
        return bytes([len(s)]) + s.encode()
    return struct.pack("!HH", order, 1) + text("u" if url else "") + text(service) + text(f"!.*!{url}!" if url else "") + dns_name(leads_to)


def dns_name(text):
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"


class Dns:
    """A DNS server at 127.0.0.1. records: data of NAPTR records by name, or of an A record if the name is in hosts; None: it does not reply about this name. asked: names."""

    def __init__(self, net, folder, records, hosts=None):
        self.hosts = hosts or {}
        self.records, self.asked, self.ttl = {**records, **{n: [socket.inet_aton(a)] for n, a in self.hosts.items()}}, [], 300
        self.conf = os.path.join(folder, "resolv.conf")
        with open(self.conf, "w", encoding="ascii") as f:
            f.write("nameserver 127.0.0.1\n")
        self.socket = ng.socket_in(net.gateway)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                data, peer = self.socket.recvfrom(4096)
            except OSError:
                return
            labels, at = [], 12
            while data[at]:
                labels.append(data[at + 1:at + 1 + data[at]].decode())
                at += 1 + data[at]
            name, question = ".".join(labels), data[12:at + 5]
            self.asked.append(name)
            found = self.records.get(name, [])
            if found is None:
                continue
            kind = 1 if name in self.hosts else 35
            if kind == 1 and question[-4:-2] != b"\0\1":
                found = []
            answers = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, self.ttl, len(d)) + d for d in found)
            self.socket.sendto(data[:2] + struct.pack("!HHHHH", 0x8180 if found else 0x8183, 1, len(found), 0, 0) + question + answers, peer)

    def close(self):
        self.socket.close()


# --- Kamailio and its client -------------------------------------------------------------------

# A busy machine may need more than the default second for an answer.
PATIENT = {"timeout": 20000, "connect_timeout": 20000, "deadline": 60000}


class Kamailio:
    def __init__(self, net, folder, params, before="", first="", port=SIP_PORT, cfg=CFG, resolver=None):
        """params: (name, value) pairs of the module, and PATIENT for its time limits. first, before: lines before the modules, and before the parameters. With the
        module tls in first, Kamailio also listens for TLS. resolver: its /etc/resolv.conf; "ip netns exec" gives each program mounts of its own."""
        self.net, self.run_dir = net, os.path.join(folder, f"kam{port}")
        os.makedirs(self.run_dir)
        self.ctl = "unix:" + os.path.join(self.run_dir, "ctl")
        params = [*(p for p in PATIENT.items() if p[0] not in dict(params)), *params]
        lines = "\n".join(f'modparam("xcipher_lost", "{k}", {v if isinstance(v, int) else chr(34) + v + chr(34)})' for k, v in params)
        path = os.path.join(self.run_dir, "cfg")
        with open(path, "w", encoding="utf-8") as f:
            tcp = f"enable_tls=yes\nlisten=tls:127.0.0.1:{port + 1}" if "tls.so" in first else "disable_tcp=yes"
            f.write(cfg % {"first": first, "tcp": tcp, "port": port, "before": before, "ctl": self.ctl, "params": lines})
        self.log = open(os.path.join(self.run_dir, "log"), "w+", encoding="utf-8", errors="replace")
        modules = "/usr/lib/" + subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip() + "/kamailio/modules"
        mount = ["/bin/sh", "-c", f'mount --bind {resolver} "$(readlink -f /etc/resolv.conf)" && exec "$@"', "sh"] if resolver else []
        self.process = net.spawn(net.gateway, [*mount, "/usr/sbin/kamailio", "-L", modules + ":" + relay.BUILD, "-f", path, "-DD", "-E", "-w", self.run_dir, "-Y",
                                               self.run_dir, "-P", os.path.join(self.run_dir, "pid"), "-m", "64", "-M", "8"], stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while True:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("kamailio does not start:\n" + self.text()[-3000:])
            try:
                self.rpc("core.version")
                return
            except RuntimeError:
                time.sleep(0.1)

    def text(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def rpc(self, *args):
        p = subprocess.run(["/usr/sbin/kamcmd", "-s", self.ctl, *args], capture_output=True, text=True, timeout=60, check=False)
        if p.returncode or p.stdout.startswith("error"):
            raise RuntimeError(p.stdout + p.stderr)
        return p.stdout

    def counter(self, name):
        return int(self.rpc("cnt.get", "xlost", name).split()[-1])

    def stop(self):
        return self.net.stop(self.process, 15)


class Client:
    """Sends MESSAGEs with locations, and reads the replies."""

    def __init__(self, net, port=SIP_PORT):
        self.to = ("127.0.0.1", port)
        self.socket = ng.socket_in(net.gateway)
        self.socket.bind(("127.0.0.1", 0))
        self.number = 0
        self.replies = {}

    def send(self, location=None, headers="", uri=f"{SOS}", body=None, content="", geolocation="<cid:loc@test>", method="MESSAGE"):
        """location: PIDF in a multipart body, in addition to a part with SDP. Returns the Call-ID."""
        self.number += 1
        call_id = f"{os.getpid()}-{self.socket.getsockname()[1]}-{self.number}"
        if location is not None:
            content = 'multipart/mixed;boundary="xx"'
            body = ("--xx\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n\r\n--xx\r\nContent-Type: application/pidf+xml\r\nContent-ID: <loc@test>\r\n\r\n"
                    + location + "\r\n--xx--\r\n")
        if geolocation:
            headers += f"Geolocation: {geolocation}\r\n"
        body = body or ""
        port = self.socket.getsockname()[1]
        text = (f"{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:{port};branch=z9hG4bK{call_id}\r\nFrom: <sip:a@test>;tag=1\r\nTo: <{uri}>\r\n"
                f"Call-ID: {call_id}\r\nCSeq: 1 {method}\r\nMax-Forwards: 70\r\n{headers}" + (f"Content-Type: {content}\r\n" if content else "") +
                f"Content-Length: {len(body.encode())}\r\n\r\n{body}")
        self.last = text
        self.again()
        return call_id

    def again(self):
        """Repeats the last request."""
        self.socket.sendto(self.last.encode(), self.to)

    def cancel(self):
        """Cancels the last request, an INVITE."""
        head = self.last.split("\r\n\r\n")[0].replace("INVITE", "CANCEL")
        head = re.sub(r"\r\n(Content-[^\r]*|Geolocation:[^\r]*)", "", head)
        self.socket.sendto((head + "\r\nContent-Length: 0\r\n\r\n").encode(), self.to)

    def wait(self, call_id, seconds=60):
        """The final reply: {"status": ..., header: value}. Names lose their X-."""
        end = time.monotonic() + seconds
        while call_id not in self.replies:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            text = self.socket.recv(65536).decode()
            status = int(text.split()[1])
            if status >= 200:
                got = {k.lower().removeprefix("x-"): v for k, v in re.findall(r"^([\w-]+): ?(.*?)\r?$", text, re.M)}
                got = {k: None if v == "<null>" else v for k, v in got.items()}
                self.replies[got["call-id"]] = dict(got, status=status)
        return self.replies.pop(call_id)

    def ask(self, *args, **kw):
        return self.wait(self.send(*args, **kw))

    def ping(self):
        return self.ask(uri="sip:ping@test", geolocation="")
