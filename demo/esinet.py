# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of an emergency network for the demonstration and its test: terminals that speak SIP over TLS, proxies with the configurations
of kamailio-cfg/ng911, the LoST server, and certificates.

caller 10.200.1.2 --- 10.200.1.1 gateway 10.200.2.1 --- 10.200.2.2 taker1
                                         10.200.3.1 --- 10.200.3.2 taker2

The servers are VSP 10.201.0.1, ESRP .2, PSAP .3, LoST .4, by default all on the gateway's loopback (esinet_places.py)."""
import contextlib
import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import dtls
import esinet_places
import ng
import relay
from baresip import wait_for
from esinet_places import ESRP, LOST, PSAP, VSP

HOST = {"caller": "10.200.1.2", "taker1": "10.200.2.2", "taker2": "10.200.3.2"}
PROGRAM = os.path.join(relay.ROOT, "ng911", "xcipher-lost")
CONFIG = os.path.join(relay.ROOT, "kamailio-cfg", "ng911")
PIDF = """<?xml version="1.0" encoding="UTF-8"?>
<presence xmlns="urn:ietf:params:xml:ns:pidf" xmlns:gml="http://www.opengis.net/gml" entity="pres:caller@vsp.example"><tuple id="t"><status>
<geopriv xmlns="urn:ietf:params:xml:ns:pidf:geopriv10"><location-info><gml:Point srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>{} {}</gml:pos></gml:Point>
</location-info><usage-rules/></geopriv></status></tuple></presence>
"""

SILENT = ("v=0\r\no=- 1 1 IN IP4 {0}\r\ns=-\r\nc=IN IP4 {0}\r\nt=0 0\r\nm=audio 9000 UDP/TLS/RTP/SAVP 0\r\na=rtpmap:0 PCMU/8000\r\na=setup:passive\r\n"
          "a=fingerprint:sha-256 " + ":".join(["AB"] * 32) + "\r\na=rtcp-mux\r\n")


PORT = {"tls": 5061, "tcp": 5060}


def uri(user, address, sip="tls"):
    """URI of a server of the network. sip: transport."""
    return f"sip:{user}@{address}:{PORT[sip]};transport={sip}"


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


class Certificates:
    """An authority of the network, and a certificate for each server and terminal."""

    def __init__(self, folder, kept=None):
        """kept: of Kept."""
        self.folder = folder
        self.ca, self.key = self.path("ca.crt"), self.path("ca.key")
        self.kept = kept.write(folder) if kept and kept.files else {}
        if self.kept:
            return
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=Authority of the ESInet",
                "-keyout", self.key, "-out", self.ca)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, address, days=2):
        """(certificate, key). days < 0: it has expired."""
        if self.kept.get(name) == address and days > 0:
            return self.path(f"{name}.crt"), self.path(f"{name}.key")
        cert, key, request, names = (self.path(f"{name}.{s}") for s in ("crt", "key", "csr", "san"))
        with open(names, "w", encoding="ascii") as f:
            f.write(f"subjectAltName=DNS:{name}.esinet.example,IP:{address}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}.esinet.example", "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.key, "-CAcreateserial", "-days", str(days), "-extfile", names, "-out", cert)
        return cert, key


class Kept:
    """What the tests of a run share, because it takes longer to make than many of them: the data of the LoST server, and the certificates of the servers and call takers.
    Each network gets copies, so no test sees what another one changed."""

    def __init__(self):
        self.files, self.data = {}, {}

    def prepare(self, count):
        """count: boundaries. Processes that are forked later have all of it."""
        if self.files:
            return
        with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder:
            path = os.path.join(folder, "lost.sqlite")
            for sip in PORT:
                features = make_data(path, count, sip)
                with open(path, "rb") as f:
                    self.data[count, sip] = features, f.read()
                os.remove(path)
            made = Certificates(folder)
            for name, address in self.names().items():
                made.make(name, address)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb") as f:
                    self.files[name] = f.read()

    @staticmethod
    def names():
        return {**esinet_places.ADDRESS, "taker1": HOST["taker1"], "taker2": HOST["taker2"]}

    def write(self, folder):
        """The certificates. Returns the addresses in them, by name."""
        for name, data in self.files.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
        return self.names()


KEPT = Kept()


def make_data(path, count, sip):
    """Makes the database of the LoST server. Returns its features."""
    if (count, sip) in KEPT.data:
        features, data = KEPT.data[count, sip]
        with open(path, "wb") as f:
            f.write(data)
        return features
    uris = [f"--esrp={uri('sos', ESRP, sip)}", f"--psap={uri('psap{number}', PSAP, sip)}", f"--default={uri('default', PSAP, sip)}"]
    data = subprocess.run([PROGRAM, "make-data", f"--count={count}", *uris], check=True, capture_output=True).stdout
    subprocess.run([PROGRAM, "load", f"--database={path}", "-"], input=data, check=True, stdout=subprocess.DEVNULL)
    return json.loads(data)["features"]


class Proxy:
    """Kamailio with a configuration of kamailio-cfg/ng911, unchanged."""

    def __init__(self, net, folder, name, address, certificate, place=None, before=(), **values):
        """place: namespace. before: a command that starts others, such as taskset."""
        self.net, self.name, self.place = net, name, place or net.gateway
        run = os.path.join(folder, name)
        os.makedirs(run)
        self.ctl = f"unix:{run}/ctl"
        self.log = open(os.path.join(run, "log"), "w+", encoding="utf-8")
        texts = {"XC_CERTIFICATE": certificate[0], "XC_KEY": certificate[1], "XC_CTL": self.ctl, **values}
        args = [f"-AXC_ADDRESS={address}"] + [f'-A{k}="{v}"' if isinstance(v, str) and k != "XC_ADDRESS_6" else f"-A{k}={v}" for k, v in texts.items()]
        multiarch = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
        modules = f"/usr/lib/{multiarch}/kamailio/modules:{relay.BUILD}"
        # fm: kamailio-cfg/ng911/README.md, "Memory".
        self.args = [*before, "/usr/sbin/kamailio", "-f", os.path.join(CONFIG, f"{name}.cfg"), "-L", modules, "-DD", "-E", "-w", run, "-Y", run,
                     "-m", "64", "-M", "8", "-x", "fm", *args]
        self.start()

    def start(self):
        self.process = self.net.spawn(self.place, self.args, stdout=self.log, stderr=self.log)
        wait_for(f"start of the {self.name}", self.started)

    def started(self):
        assert self.process.poll() is None, f"{self.name} ended:\n{self.text()[-3000:]}"
        return subprocess.run(["/usr/sbin/kamcmd", "-s", self.ctl, "core.version"], capture_output=True, check=False).returncode == 0

    def rpc(self, *args):
        p = subprocess.run(["/usr/sbin/kamcmd", "-s", self.ctl, *args], capture_output=True, text=True, timeout=60, check=False)
        assert p.returncode == 0 and not p.stdout.startswith("error"), (args, p.stdout, p.stderr)
        return p.stdout

    def text(self):
        return os.pread(self.log.fileno(), 1 << 24, 0).decode("utf-8", "replace")

    def stop(self):
        return self.net.stop(self.process, 30)

    def kill(self):
        """All its processes, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class LostServer:
    """xcipher-lost over HTTPS, which demands a certificate of its clients if they have one."""

    def __init__(self, net, folder, certificate, ca, mutual=True, count=500, place=None, sip="tls"):
        self.net, self.place, self.database = net, place or net.gateway, os.path.join(folder, "lost.sqlite")
        self.features = make_data(self.database, count, sip)
        self.args = [PROGRAM, "serve", f"--database={self.database}", f"--listen={LOST}:8443", f"--listen-http={LOST}:8080", f"--certificate={certificate[0]}", f"--key={certificate[1]}",
                     "--source=lost.esinet.example", *([f"--client-ca={ca}"] if mutual else [])]
        self.start()

    def start(self):
        self.log = tempfile.TemporaryFile("w+")
        self.process = self.net.spawn(self.place, self.args, stdout=self.log, stderr=self.log)
        wait_for("start of the LoST server", lambda: "listening" in relay.text_of(self.log))

    def stop(self):
        return self.net.stop(self.process)

    def psap_at(self, lat, lon):
        """Number of the boundary around this point, from the data and not from the server."""
        from shapely.geometry import Point, shape
        found = [f["properties"]["sourceId"] for f in self.features if f["geometry"] and f["properties"]["sourceId"] != "state" and
                 shape(f["geometry"]).covers(Point(lon, lat))]
        return found[0].replace("-", "")


# --- SIP -------------------------------------------------------------------------------------------


class Message:
    def __init__(self, head, body):
        lines = head.decode().split("\r\n")
        self.first, self.body = lines[0], body.decode()
        self.headers = [(n.strip().lower(), v.strip()) for n, _, v in (x.partition(":") for x in lines[1:])]

    def all(self, name):
        return [v for n, v in self.headers if n == name.lower()]

    def get(self, name):
        return (self.all(name) or [""])[0]

    def status(self):
        return int(self.first.split()[1]) if self.first.startswith("SIP/2.0") else 0

    def sdp(self):
        """Also from a multipart body."""
        return self.body[self.body.index("v=0"):].partition("\r\n--")[0] if "v=0" in self.body else ""


class Stream:
    """SIP messages on a TLS connection. One thread receives, and any may send. The lock is for OpenSSL, which lets only one thread at a time use a connection."""

    def __init__(self, sock):
        self.socket, self.buffer, self.lock = sock, b"", threading.Lock()

    def send(self, first, headers, body=""):
        text = first + "\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers) + f"Content-Length: {len(body.encode())}\r\n\r\n" + body
        with self.lock:
            self.socket.sendall(text.encode())

    def wait(self, limit):
        """Waits until there are octets. Other threads may send meanwhile."""
        with self.lock:
            if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                return
        if self.socket.fileno() < 0:
            raise ConnectionError("the connection is closed")
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        if not poll.poll(limit and limit * 1000):
            raise TimeoutError("no message in time")

    def read(self):
        """Returns octets, or none at the end of the connection. Parts of records, and tickets, have no octets yet."""
        limit = self.socket.gettimeout()
        while True:
            self.wait(limit)
            with self.lock, contextlib.suppress(ssl.SSLWantReadError, BlockingIOError):
                self.socket.settimeout(0)
                try:
                    return self.socket.recv(65536)
                finally:
                    self.socket.settimeout(limit)

    def receive(self):
        while True:
            self.buffer = self.buffer.lstrip(b"\r\n")
            head, end, rest = self.buffer.partition(b"\r\n\r\n")
            length = re.search(rb"(?im)^(?:content-length|l)\s*:\s*(\d+)", head)
            if end and len(rest) >= int(length[1] if length else 0):
                size = int(length[1] if length else 0)
                self.buffer = rest[size:]
                return Message(head, rest[:size])
            data = self.read()
            if not data:
                raise ConnectionError("the connection was closed")
            self.buffer += data


class Caller:
    """A phone with a location, behind the VSP. Speaks RTP in clear."""

    def __init__(self, net, ca):
        self.net, self.ca, self.number, self.sip, self.terminal, self.name = net, ca, 0, "tls", dtls.Plain, "caller"
        self.context = ssl.create_default_context(cafile=ca)

    def connect(self):
        raw = ng.socket_in(self.net.terminal["caller"], kind=socket.SOCK_STREAM)
        raw.settimeout(60)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.monotonic()
        raw.connect((VSP, PORT[self.sip]))
        stream = Stream(self.context.wrap_socket(raw, server_hostname=VSP) if self.sip == "tls" else raw)
        return stream, time.monotonic() - start

    def call(self, lat, lon, service="urn:service:sos", location=True, route=None, stream=None, more=()):
        """more: headers. route: URI that the caller got from a LoST server itself. stream: a connection with the VSP that is open already."""
        return Dialog(self, lat, lon, service, location, route, stream, more)


class Dialog:
    """A call: INVITE at creation, then answered(), end(). at: times of events, in seconds since the start."""

    def __init__(self, caller, lat, lon, service, location, route, stream, more):
        caller.number += 1
        self.caller = caller
        self.media = caller.terminal(caller.net, "caller", HOST["caller"])
        self.start = time.monotonic()
        self.stream, handshake = (stream, 0.0) if stream else caller.connect()
        self.kept = bool(stream)
        self.at = {"TLS with the VSP": handshake}
        self.service, self.id, self.pidf = service, f"{os.urandom(8).hex()}@{HOST['caller']}", PIDF.format(lat, lon)
        port = self.stream.socket.getsockname()[1]
        self.via = f"SIP/2.0/{caller.sip.upper()} {HOST['caller']}:{port};rport;branch=z9hG4bK{caller.number}x"
        self.fixed = [("From", f"<sip:{caller.name}@vsp.example>;tag=c"), ("Call-ID", self.id), ("Max-Forwards", "70"),
                      ("Contact", f"<sip:caller@{HOST['caller']}:{port};transport={caller.sip}>")]
        parts = [("application/sdp", "", self.media.sdp())]
        headers = list(more)
        if location:
            parts.append(("application/pidf+xml", "Content-ID: <place@vsp.example>\r\n", self.pidf.replace("\n", "\r\n")))
            headers += [("Geolocation", "<cid:place@vsp.example>"), ("Geolocation-Routing", "yes")]
        if route:
            headers += [("Route", f"<sip:{VSP}:{PORT[caller.sip]};transport={caller.sip};lr>"), ("Route", f"<{route};lr>")]
        body = "".join(f"--part\r\nContent-Type: {kind}\r\n{more}\r\n{text}\r\n" for kind, more, text in parts) + "--part--\r\n"
        self.sent_body = body
        self.sent = time.monotonic()
        self.stream.send(f"INVITE {service} SIP/2.0", [("Via", self.via + "1"), *self.fixed, ("To", f"<{service}>"), ("CSeq", "1 INVITE"), *headers,
                                                      ("Content-Type", "multipart/mixed;boundary=part")], body)
        self.reply = None

    def answered(self):
        """The final reply. A 200 gets its ACK, and its SDP goes to the media socket."""
        while True:
            m = self.stream.receive()
            code = m.status()
            if code and m.get("CSeq") == "1 INVITE" and m.get("Call-ID") == self.id:
                self.at.setdefault(str(code), time.monotonic() - self.start)
                if code >= 200:
                    break
        self.reply, self.to = m, m.get("To")
        if code < 300:
            self.routes = [("Route", r) for r in reversed(",".join(m.all("Record-Route")).split(",")) if r.strip()]
            self.target = re.search(r"<([^>]+)>", m.get("Contact"))[1]
            self.request("ACK", 1)
            self.media.believe(m.sdp())
        return code

    def ringing(self):
        """Waits for the 180."""
        while self.stream.receive().status() != 180:
            pass

    def cancel(self):
        """CANCEL, and the end of the INVITE: its status."""
        self.stream.send(f"CANCEL {self.service} SIP/2.0", [("Via", self.via + "1"), *self.fixed, ("To", f"<{self.service}>"), ("CSeq", "1 CANCEL")])
        while True:
            m = self.stream.receive()
            if m.status() >= 200 and m.get("CSeq") == "1 INVITE":
                self.close()
                return m.status()

    def request(self, method, number):
        self.stream.send(f"{method} {self.target} SIP/2.0", [("Via", f"{self.via}{method}{number}"), *self.routes, *self.fixed, ("To", self.to),
                                                             ("CSeq", f"{number} {method}")])

    def end(self, number=2):
        """BYE, and its answer."""
        self.request("BYE", number)
        while self.stream.receive().get("CSeq") != f"{number} BYE":
            pass
        self.close()

    def ended_by_network(self):
        """Waits for the BYE, and answers it."""
        while not (m := self.stream.receive()).first.startswith("BYE "):
            pass
        self.stream.send("SIP/2.0 200 OK", [(n, v) for n, v in m.headers if n in ("via", "from", "to", "call-id", "cseq")])
        self.close()
        return m

    def reconnect(self):
        self.stream.socket.close()
        self.stream, _ = self.caller.connect()

    def close(self):
        self.media.close()
        if not self.kept:
            self.stream.socket.close()


class SecureMedia(dtls.Dtls):
    """Media of a call taker: DTLS-SRTP with AES-256, and nothing else."""
    profiles = dtls.AES_256


class Taker:
    """A call taker, which accepts or refuses calls of the PSAP."""

    def __init__(self, net, name, certificate, ca):
        self.net, self.name, self.address, self.busy = net, name, HOST[name], False
        self.waits = False  # rings until the caller gives up, or pick_up()
        self.silent = False  # no handshake and no media: for measurements of signalling
        self.invites, self.media, self.ended, self.acks, self.byes, self.cancels = [], [], False, 0, 0, 0
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
        self.context.load_cert_chain(*certificate)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.listener = ng.socket_in(net.terminal[name], kind=socket.SOCK_STREAM)
        self.listener.bind((self.address, 5061))
        self.listener.listen(16)
        self.received, self.others, self.replies = [], [], []  # others: requests in or without a dialog; replies: to what a test has sent
        threading.Thread(target=self.accept, daemon=True).start()

    def uri(self):
        return f"sip:{self.name}@{self.address}:5061;transport=tls"

    def accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(raw,), daemon=True).start()

    def serve(self, raw):
        try:
            stream = Stream(self.context.wrap_socket(raw, server_side=True))
            while True:
                self.take(stream, stream.receive())
        except (OSError, ConnectionError):
            return

    def take(self, stream, m):
        if m.status():
            self.replies.append(m)
            return
        method = m.first.split()[0]
        back = [(n, v) for n, v in m.headers if n in ("via", "from", "call-id", "cseq", "record-route")]
        tag = "" if "tag=" in m.get("To") else ";tag=" + self.name
        head = [*back, ("To", m.get("To") + tag), ("Contact", f"<{self.uri()}>")]
        if method == "INVITE":
            self.received.append(time.monotonic())
            self.invites.append(m)
            if self.busy:
                stream.send("SIP/2.0 486 Busy Here", head)
                return
            stream.send("SIP/2.0 180 Ringing", head)
            self.waiting = stream, m, head
            if not self.waits:
                self.pick_up()
        elif method == "ACK":
            self.acks += 1
        elif method == "CANCEL":
            stream.send("SIP/2.0 200 OK", head)
            self.cancels += 1
            stream.send("SIP/2.0 487 Request Terminated", self.waiting[2])
        else:
            self.byes += method == "BYE"
            self.others.append(m)
            stream.send("SIP/2.0 200 OK", head)

    def pick_up(self):
        stream, m, head = self.waiting
        if self.silent:
            stream.send("SIP/2.0 200 OK", [*head, ("Content-Type", "application/sdp")], SILENT.format(self.address))
            return
        media = SecureMedia(self.net, self.name, self.address)
        media.believe(m.sdp())
        stream.send("SIP/2.0 200 OK", [*head, ("Content-Type", "application/sdp")], media.sdp())
        media.handshake()
        self.media.append(media)

    def close(self):
        self.listener.close()
        for m in self.media:
            m.close()


class TestMedia(relay.Xcipherd):
    """The PSAP's xcipherd, which answers test calls."""
    ng_port = 22223

    def __init__(self, net):
        super().__init__(net, "--engine=serial", "--delete-delay=0", f"--listen-ng=127.0.0.1:{self.ng_port}", "--media-allow=10.200.2.1", addresses=(PSAP,))


class Network:
    """Everything but the calls. lost: "async" (module xcipher_lost) or "stock"."""

    def __init__(self, net, folder, lost, boundaries=500, scheme="https", **more):
        """more: places, of esinet_places (default: together); sip: transport between the servers; vsp, esrp, psap, all: further values of their
        configurations; ready: called with the namespaces and Certificates before the servers start; before: of Proxy, by name; tests: an xcipherd
        of the PSAP answers test calls; border: further options of the border's xcipherd."""
        self.net, self.lost_client, self.folder = net, lost, folder
        self.places = more.get("places", esinet_places.together)(net)
        net.forward()
        self.sip = sip = more.get("sip", "tls")
        self.made = made = Certificates(folder, KEPT)
        self.ca = made.ca
        self.certificates = {name: made.make(name, address) for name, address in esinet_places.ADDRESS.items()}
        if "ready" in more:
            more["ready"](self)
        stock = lost == "stock"
        self.lost = LostServer(net, folder, self.certificates["lost"], self.ca, not stock, boundaries, self.places["lost"], sip)
        self.tests = TestMedia(net).wait_ready() if more.get("tests") else None
        # A test call goes from one xcipherd to the other, which is on this host.
        options = [*([f"--media-allow={PSAP}"] if self.tests else []), *more.get("border", [])]
        self.border = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", *options, addresses=("outside/10.200.1.1", "esinet/10.200.2.1")).wait_ready()
        url = {"https": f"https://{LOST}:8443/lost", "http": f"http://{LOST}:8080/lost"}[scheme]
        client = {"XC_LOST_STOCK": 1, "XC_LOST_CON": f"lostsrv=>{url}"} if stock else {"XC_LOST": url}
        plain = {"XC_TCP": PORT["tcp"], "XC_TCP_FROM": "^10[.]201[.]0[.]"} if sip == "tcp" else {}
        values = {"psap": {**plain, **({"XC_TEST_NODES": f"udp:127.0.0.1:{TestMedia.ng_port}"} if self.tests else {})}, "esrp": {**plain, **client, "XC_PSAP": uri("default", PSAP, sip), "XC_KEEP": uri("keepalive", PSAP, sip)},
                  "vsp": {**plain, **client, "XC_ESRP_KNOWN": "^sips?:([^@]*@)?10[.]201[.]0[.]2([:;]|$)", "XC_ESRP": uri("sos", ESRP, sip),
                          "XC_KEEP": uri("keepalive", ESRP, sip)}}
        servers = {}
        for name, own in values.items():
            own = {"XC_CA": self.ca, **own, **more.get("all", {}), **more.get(name, {})}
            servers[name] = Proxy(net, folder, name, esinet_places.ADDRESS[name], self.certificates[name], self.places[name], more.get("before", {}).get(name, ()),
                                  **{k: v for k, v in own.items() if v is not None})
        self.psap, self.esrp, self.vsp = servers["psap"], servers["esrp"], servers["vsp"]
        self.takers = [Taker(net, n, made.make(n, HOST[n]), self.ca) for n in ("taker1", "taker2")]
        self.caller = Caller(net, self.ca)

    def silent_server(self, port):
        """Accepts connections at the PSAP's address, and says nothing."""
        s = ng.socket_in(self.places["psap"], kind=socket.SOCK_STREAM)
        s.bind((PSAP, port))
        s.listen(8)
        return s

    def proxies(self):
        return self.vsp, self.esrp, self.psap

    def said(self, text):
        """The lines of all proxies' logs that contain this, with the proxy's name."""
        return [(p.name, line.partition("ng911: ")[2] or line) for p in self.proxies() for line in p.text().splitlines() if text in line]

    def close(self):
        for t in self.takers:
            t.close()
        for p in self.proxies():
            p.stop()
        self.lost.stop()
        self.border.stop()
        if self.tests:
            self.tests.stop()
