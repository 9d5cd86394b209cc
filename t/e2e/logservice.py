# SPDX-License-Identifier: GPL-2.0-or-later
"""Peers of xcipher-border: a logging service, which checks signatures with python3-jwcrypto, and a PSAP that reports bad actors. Also starts the program."""
import base64
import http.client
import http.server
import json
import os
import socket
import ssl
import threading

import ng
import relay
from baresip import wait_for
from esinet import ESRP, LOST, openssl

PROGRAM = os.path.join(relay.ROOT, "ng911", "xcipher-border")
LOGGER, REPORTS = ("10.201.0.5", 8445), (ESRP, 8446)


def signing_key(folder):
    """(certificate, key) of type Ed448."""
    cert, key = os.path.join(folder, "sign.crt"), os.path.join(folder, "sign.key")
    openssl("req", "-x509", "-newkey", "ed448", "-nodes", "-days", "2", "-subj", "/CN=border.esinet.example", "-keyout", key, "-out", cert)
    return cert, key


def https_server(net, where, handler, certificate, ca):
    """On the gateway, for clients with certificates of the network. Serves until shutdown()."""
    server = http.server.ThreadingHTTPServer(where, handler, bind_and_activate=False)
    server.daemon_threads = True
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
    context.load_cert_chain(*certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket.close()
    raw = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    raw.bind(where)
    raw.listen(16)
    server.socket = context.wrap_socket(raw, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class LogService:
    """accepts: false while it takes connections and requests, but gives no answer. status: its answer."""

    def __init__(self, net, certificate, ca):
        self.posts, self.events, self.status = [], [], 201
        self.accepts = threading.Event()
        self.accepts.set()
        net.run(net.gateway, "ip", "addr", "add", f"{LOGGER[0]}/32", "dev", "lo")
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.accepts.wait()
                service.posts.append((self.path, dict(self.headers), json.loads(body), self.connection.cipher()))
                if service.status == 201:
                    service.events.append(verified(body))
                self.send_response(service.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = https_server(net, LOGGER, Handler, certificate, ca)

    def of(self, kind, call_id=None):
        return [e for e in self.events if e["logEventType"] == kind and call_id in (None, e["callIdSip"])]

    def close(self):
        self.accepts.set()
        self.server.shutdown()
        self.server.server_close()


def verified(body):
    """The event in a signed body."""
    from jwcrypto import jwk, jws
    flat = json.loads(body)
    assert set(flat) == {"payload", "protected", "signature"}, flat
    header = json.loads(base64.urlsafe_b64decode(flat["protected"] + "=="))
    assert header["alg"] == "EdDSA" and len(header["x5c"]) == 1, header
    pem = "-----BEGIN CERTIFICATE-----\n" + "\n".join(header["x5c"][0][i:i + 64] for i in range(0, len(header["x5c"][0]), 64)) + "\n-----END CERTIFICATE-----\n"
    token = jws.JWS()
    token.deserialize(body.decode())
    token.verify(jwk.JWK.from_pem(pem.encode()))
    return json.loads(token.payload)


class Border:
    """xcipher-border on the ESRP's host."""

    def __init__(self, net, folder, certificate, ca, *options):
        self.net, self.folder = net, folder
        cert, key = certificate
        self.rpc = os.path.join(folder, "border.sock")
        sign = signing_key(folder)
        self.args = [PROGRAM, f"--certificate={cert}", f"--key={key}", f"--ca={ca}", f"--sign-certificate={sign[0]}", f"--sign-key={sign[1]}",
                     f"--log=https://{LOGGER[0]}:{LOGGER[1]}/LogEvents", "--element=border.esinet.example", "--agency=esinet.example", "--log-messages",
                     f"--listen={REPORTS[0]}:{REPORTS[1]}", f"--kamailio={self.rpc}", f"--state={folder}/blocked.json", *options]
        self.log = open(os.path.join(folder, "border.log"), "w+", encoding="utf-8")
        self.start()

    @staticmethod
    def values(folder):
        """Of the ESRP's configuration."""
        return {"XC_EVENTS": "sip:127.0.0.1:5095;transport=udp", "XC_RPC": os.path.join(folder, "border.sock")}

    def start(self):
        before = self.text().count("listening on")
        self.process = self.net.spawn(self.net.gateway, self.args, stdout=self.log, stderr=self.log)

        def started():
            assert self.process.poll() is None, self.text()
            return self.text().count("listening on") > before
        wait_for("start of xcipher-border", started)

    def text(self):
        return os.pread(self.log.fileno(), 1 << 24, 0).decode("utf-8", "replace")

    def stop(self):
        return self.net.stop(self.process, 60)


def report(net, body, certificate, ca, path="/BadActors"):
    """Status of the answer to a report of a bad actor, or to another request."""
    context = ssl.create_default_context(cafile=ca)
    if certificate:
        context.load_cert_chain(*certificate)
    raw = ng.socket_in(net.terminal["caller"], kind=socket.SOCK_STREAM)
    raw.settimeout(60)
    raw.connect(REPORTS)
    c = http.client.HTTPSConnection(*REPORTS)
    c.sock = context.wrap_socket(raw, server_hostname=REPORTS[0])
    try:
        c.request("POST", path, body, {"Content-Type": "application/json"})
        return c.getresponse().status
    finally:
        c.close()


class Services:
    """Repositories of additional data, a service and agency locator, and the service for discrepancy reports. answers: bodies by path; got: (method, path, headers, body)."""
    where = LOST, 8447

    def __init__(self, net, certificate, ca):
        self.got, self.answers = [], {"/SAL/1": json.dumps({"serviceAgencyName": "reports", "dscRptUri": self.url("/dr")})}
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                service.got.append((self.command, self.path, dict(self.headers), body))
                answer = service.answers.get(self.path)
                self.send_response(201 if self.command == "POST" else 200 if answer is not None else 404)
                self.send_header("Content-Length", str(len(answer or "")))
                self.end_headers()
                self.wfile.write((answer or "").encode())

            def do_POST(self):
                self.do_GET()

            def log_message(self, *_):
                pass
        self.server = https_server(net, self.where, Handler, certificate, ca)

    def url(self, path):
        return f"https://{self.where[0]}:{self.where[1]}{path}"

    def asked(self, method, start):
        return [g for g in self.got if g[0] == method and g[1].startswith(start)]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
