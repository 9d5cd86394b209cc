# SPDX-License-Identifier: GPL-2.0-or-later
"""Emergency calls from end to end: the demonstration of demo/ng911.py, with kamailio-cfg/ng911 unchanged. Media are checked on both sides of
the border, the location part octet by octet."""
import array
import collections
import contextlib
import datetime
import fcntl
import http.server
import importlib
import os
import socket
import ssl
import sys
import tempfile
import termios
import threading
import time
import types

import ng
import relay
from baresip import wait_for
from run import Skip

sys.path.insert(0, os.path.join(relay.ROOT, "demo"))


def needs():
    for name in ("/usr/sbin/kamailio", "/usr/bin/openssl", "/usr/lib/python3/dist-packages/shapely", "/usr/lib/python3/dist-packages/httptools"):
        if not os.path.exists(name):
            raise Skip(f"{name} is not installed")
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher_tls.so")):
        raise Skip("xcipher_tls.so is not built: make module")


def prepare():
    """Makes what the networks of all tests begin with, and loads modules, before their processes are forked."""
    try:
        needs()
    except Skip:
        return
    for name in ("esinet", "ng911", "shapely.geometry"):
        importlib.import_module(name)
    sys.modules["esinet"].KEPT.prepare(BOUNDARIES)


PREPARE = prepare
BOUNDARIES = 60
TERMINALS = ("caller", "taker1", "taker2")
LIS = "10.201.0.4", 8444


# Time limits of the proxies, in ms: servers of a busy machine need longer than the defaults. Two workers of each kind start faster than four.
PATIENT = {"XC_CHILDREN": 2, "XC_LOST_MS": 20000, "XC_LOST_CONNECT_MS": 20000, "XC_LOST_DEADLINE_MS": 40000, "XC_LOST_SECONDS": 20, "XC_NO_REPLY": 10000}


# As many as operators have by default, where a test is about what processes share
MANY = {"XC_CHILDREN": 4}


@contextlib.contextmanager
def network(net, **values):
    """With the LoST client that is built: xcipher_lost.so, or Kamailio's module lost."""
    needs()
    import esinet
    import ng911
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder:
        made = esinet.Network(net, folder, ng911.best_client(), boundaries=BOUNDARIES, all=PATIENT, **values)
        try:
            yield made
        except Exception:
            for p in made.proxies():
                print(f"--- {p.name}\n{p.text()[-4000:]}")
            raise
        made.close()


def test_emergency_calls_are_routed_and_secured(net):
    with network(net, tests=True) as n:
        import ng911
        ng911.PACKETS = 10
        ng911.play(n, ng911.Story())


def together(net, address, context, count):
    """So many clients connect to a server at the same time. Returns how many of them get an answer to OPTIONS."""
    results, ready = [], threading.Barrier(count)

    def client():
        ready.wait(60)
        results.append(not refused(net, address, context))

    threads = [threading.Thread(target=client) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(results)


def refused(net, address, context):
    """Whether a server closes this TLS connection without an answer to OPTIONS."""
    raw = ng.socket_in(net.terminal["caller"], kind=socket.SOCK_STREAM)
    raw.settimeout(60)
    raw.connect((address, 5061))
    try:
        with context.wrap_socket(raw, server_hostname=address) as s:
            s.sendall(f"OPTIONS sip:keepalive@{address} SIP/2.0\r\nVia: SIP/2.0/TLS 10.200.1.2:5061;branch=z9hG4bKx\r\nFrom: <sip:x@y>;tag=1\r\n"
                      f"To: <sip:keepalive@{address}>\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n".encode())
            return not s.recv(1000)
    except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
        return True


def revoked(n, values):
    """A certificate of a server that the authority has revoked. Writes XC_CRL into these values."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    made = n.made.make("revoked", "10.201.0.2")
    parts = []
    for path, load in ((n.ca, x509.load_pem_x509_certificate), (made[0], x509.load_pem_x509_certificate), (n.made.key, lambda data: serialization.load_pem_private_key(data, None))):
        with open(path, "rb") as f:
            parts.append(load(f.read()))
    ca, certificate, key = parts
    now = datetime.datetime.utcnow()
    entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number).revocation_date(now).build()
    crl = x509.CertificateRevocationListBuilder().issuer_name(ca.subject).last_update(now - datetime.timedelta(days=1)).next_update(now + datetime.timedelta(days=1))
    values["XC_CRL"] = n.made.path("revoked.crl")
    with open(values["XC_CRL"], "wb") as f:
        f.write(crl.add_revoked_certificate(entry).sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return made


def test_strangers_have_no_place_in_the_network(net):
    """Servers without a certificate of the network, handshakes that coincide, forged marks of a caller, and a caller who gives up."""
    values = {"XC_PEERS": "^esrp[.]esinet[.]example$", **MANY}

    def ready(n):
        n.certificates["revoked"] = revoked(n, values)
    with network(net, ready=ready, psap=values, esrp=MANY, vsp=MANY) as n:
        import esinet
        os.makedirs(os.path.join(n.folder, "stranger"))
        stranger = esinet.Certificates(os.path.join(n.folder, "stranger")).make("vsp", esinet.VSP)
        anonymous, foreign, known = (ssl.create_default_context(cafile=n.ca) for _ in range(3))
        foreign.load_cert_chain(*stranger)
        known.load_cert_chain(os.path.join(n.folder, "vsp.crt"), os.path.join(n.folder, "vsp.key"))
        for address in (esinet.ESRP, esinet.PSAP):
            assert refused(net, address, anonymous) and refused(net, address, foreign), address
            assert not refused(net, address, known), address
        # A certificate that was revoked, and one of a server that the PSAP takes no calls from.
        late = ssl.create_default_context(cafile=n.ca)
        late.load_cert_chain(*n.certificates["revoked"])
        assert refused(net, esinet.PSAP, late) and not refused(net, esinet.ESRP, late)
        from test_ng911_states import Peer
        for name, address, expected in (("vsp", esinet.VSP, 403), ("esrp", esinet.ESRP, 480)):
            peer = Peer(net, n, name, address, 5990)
            for method in ("INVITE", "MESSAGE"):
                m = peer.ask(peer.connect(esinet.PSAP), f"{method} urn:service:sos SIP/2.0", [("From", "<sip:a@x>;tag=1"), ("To", "<urn:service:sos>"), ("Call-ID", f"{name}{method}"),
                                                        ("CSeq", f"1 {method}"), ("Contact", f"<sip:a@{address}:5990;transport=tls>")])
                assert m.status() == expected, (name, method, m.first)
            # Within a call that never began.
            for method in ("INVITE", "MESSAGE", "UPDATE", "BYE"):
                m = peer.ask(peer.connect(esinet.PSAP), f"{method} sip:a@{esinet.PSAP}:5999;transport=tls SIP/2.0",
                             [("Route", f"<sip:{esinet.PSAP}:5061;transport=tls;lr>"), ("From", "<sip:a@x>;tag=1"), ("To", "<urn:service:sos>;tag=invented"), ("Call-ID", f"{name}{method}2"),
                              ("CSeq", f"2 {method}"), ("Contact", f"<sip:a@{address}:5990;transport=tls>")])
                assert (m.status() == 403) == (expected == 403 and method != "BYE"), (name, method, m.first)
            m = peer.ask(peer.connect(esinet.PSAP), "SUBSCRIBE sip:psap1@x SIP/2.0", [("From", "<sip:a@x>;tag=1"), ("To", "<sip:psap1@x>"), ("Call-ID", f"{name}s"), ("CSeq", "1 SUBSCRIBE"),
                                                     ("Event", "presence"), ("Contact", f"<sip:a@{address}:5990;transport=tls>")])
            assert m.status() == {403: 403, 480: 489}[expected], m.first
            peer.close()
        # Without xcipher_tls.so this ends Kamailio 5.6.
        for _ in range(12):
            assert together(net, esinet.ESRP, known, 16) == 16, n.esrp.text()[-2000:]

        taker = n.takers[0]
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        taker.waits = True
        marks = [("Resource-Priority", "esnet.0"), ("Call-Info", "<urn:emergency:uid:callid:forged:evil>;purpose=emergency-CallId"),
                 ("Call-Info", '<forged@esinet.example>;purpose = "emergency-source"'),
                 ("Call-Info", "<cid:data@vsp.example>;purpose=EmergencyCallData.DeviceInfo")]
        call = n.caller.call(30.62, -96.34, more=marks)
        call.ringing()
        invite = taker.invites[-1]
        infos = invite.all("Call-Info")
        assert invite.all("Resource-Priority") == ["esnet.1"], invite.headers
        assert [i for i in infos if "purpose=emergency-CallId" in i and ":esinet.example>" in i] and not [i for i in infos if "forged" in i and "emergency-" in i], infos
        assert "<cid:data@vsp.example>;purpose=EmergencyCallData.DeviceInfo" in infos, infos
        assert n.border.client.call("list")["calls"] == [call.id]
        assert call.cancel() == 487
        wait_for("the border forgets the call", lambda: not n.border.client.call("list")["calls"])
        # XC_PEERS does not name the call taker, who asks something in a call.
        from test_ng911_location import answered_info
        taker.waits = False
        call = n.caller.call(30.62, -96.34)
        assert call.answered() == 200 and answered_info(n, taker, call).status() == 200
        call.end()


def test_a_terminal_sends_in_several_threads(net):
    """A test sends on a connection while a thread has read half of a record. Without the lock of esinet.Stream OpenSSL reports "bad length"."""
    needs()
    import esinet
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder:
        made = esinet.Certificates(folder)
        server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context(cafile=made.ca)
        server.load_cert_chain(*made.make("server", "10.200.1.1"))
        ends, streams = socket.socketpair(), []
        greeting = threading.Thread(target=lambda: streams.append(server.wrap_socket(ends[0], server_side=True)))
        greeting.start()
        one = esinet.Stream(client.wrap_socket(ends[1], server_hostname="10.200.1.1"))
        greeting.join()
        two, failed = esinet.Stream(streams[0]), []

        def send(body):
            try:
                one.send("INFO sip:x@y SIP/2.0", [], body)
            except OSError as why:
                failed.append(why)
        bodies = ["x" * 4000000, "y"]
        threads = [threading.Thread(target=send, args=(body,)) for body in bodies]
        threads[0].start()
        waiting = []

        def stuck():
            """No more octets come: the peer has to read first."""
            time.sleep(0.1)
            octets = array.array("i", [0])
            fcntl.ioctl(two.socket, termios.FIONREAD, octets)
            waiting.append(octets[0])
            return waiting[-1] and waiting[-2:-1] == waiting[-1:]
        wait_for("a full buffer", stuck)
        threads[1].start()
        got = [two.receive().body, two.receive().body]
        for t in threads:
            t.join()
        assert not failed and sorted(got) == sorted(bodies), failed
        # A reader that waits does not keep a sender from sending.
        reader = threading.Thread(target=lambda: got.append(one.receive().body))
        reader.start()
        threads = [threading.Thread(target=send, args=(body,)) for body in bodies]
        for t in threads:
            t.start()
        assert sorted([two.receive().body, two.receive().body]) == sorted(bodies)
        two.send("INFO sip:x@y SIP/2.0", [], "z")
        for t in (*threads, reader):
            t.join()
        assert got[2] == "z" and not failed, failed
        one.socket.close()
        two.socket.close()


HELD = """<?xml version="1.0"?><locationResponse xmlns="urn:ietf:params:xml:ns:geopriv:held">%s%s</locationResponse>"""
REFERENCE = f"https://{LIS[0]}:{LIS[1]}/location/1"


def held_server(net, folder, certificate, place):
    """A location server. It gives a reference, from which the location can be fetched."""
    import esinet

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            asked.append(self.path)
            if broken:
                self.send_error(500)
                return
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            pidf = esinet.PIDF.format(*place).partition("?>")[2]
            uris = f'<locationUriSet expires="2030-01-01T00:00:00Z"><locationURI>{REFERENCE}</locationURI></locationUriSet>'
            body = (HELD % ((uris, "") if self.path == "/held" else ("", pidf))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/held+xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.do_POST()

        def log_message(self, *_):
            pass

    asked, broken = [], []
    server = http.server.ThreadingHTTPServer(LIS, Handler, bind_and_activate=False)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    server.socket.close()
    raw = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    raw.bind(LIS)
    raw.listen(16)
    server.socket = context.wrap_socket(raw, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, asked, broken


def test_a_missing_location_is_fetched(net):
    """From a HELD server, by the VSP. The ESRP fetches it again from the reference."""
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher_lost.so")):
        raise Skip("xcipher_lost.so is not built")
    with network(net, vsp={"XC_LIS": f"https://{LIS[0]}:{LIS[1]}/held"}) as n:
        import esinet
        import ng911
        ng911.PACKETS = 10
        certificate = os.path.join(n.folder, "lost.crt"), os.path.join(n.folder, "lost.key")
        server, asked, broken = held_server(net, n.folder, certificate, ng911.HERE)
        n.psap.rpc("htable.sets", "takers", n.lost.psap_at(*ng911.HERE), n.takers[0].uri())
        n.psap.rpc("htable.sets", "takers", "*", n.takers[1].uri())
        assert esinet.LOST == LIS[0]
        dialog, invite = ng911.connected(n, ng911.Story(), ng911.HERE, n.takers[0], location=False)
        assert invite.get("Geolocation") == f"<{REFERENCE}>", invite.headers
        assert asked[0] == "/held" and asked.count("/location/1") >= 2, asked
        ng911.hang_up(n, ng911.Story(), dialog, n.takers[0])
        # A header that names no part of the body, and a reference that leads nowhere, are no location.
        plain = n.caller.call
        for geolocation in ("<cid:nothing@vsp.example>", f"<https://{LIS[0]}:8999/dead>"):
            before = asked.count("/held")
            n.caller.call = lambda *args, where=geolocation: plain(*args, more=[("Geolocation", where)])
            dialog, invite = ng911.connected(n, ng911.Story(), ng911.HERE, n.takers[0], location=False)
            assert f"<{REFERENCE}>" in invite.all("Geolocation") and asked.count("/held") == before + 1, (invite.headers, asked)
            ng911.hang_up(n, ng911.Story(), dialog, n.takers[0])
        n.caller.call = plain
        # Of a test call everybody gets the answer, which names the PSAP. So it must not tell where the owner of the URI in From is.
        before = len(asked)
        test = n.caller.call(*ng911.HERE, "urn:service:test.sos", False)
        assert test.answered() == 404 and len(asked) == before, (test.reply.first, asked)
        test.close()
        broken.append(True)
        dialog, invite = ng911.connected(n, ng911.Story(), ng911.HERE, n.takers[1], location=False)
        ng911.hang_up(n, ng911.Story(), dialog, n.takers[1])
        server.shutdown()


def test_new_connections_resume_sessions(net):
    """All connections end between two calls. The new ones between servers, and to the call taker, resume sessions, in whichever process of Kamailio."""
    needs()
    import bench_ng911
    import esinet
    import esinet_places
    import handshakes_seen
    with network(net, places=esinet_places.apart, psap=MANY, esrp=MANY, vsp=MANY) as n:
        taker = n.takers[0]
        taker.silent = True
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        servers = [(esinet.ESRP, 5061), (esinet.PSAP, 5061), (taker.address, 5061)]

        def call():
            dialog = n.caller.call(30.62, -96.34)
            assert dialog.answered() == 200, dialog.reply.first
            dialog.end()
            wait_for("the border forgets the call", lambda: not n.border.client.call("list")["calls"])
        call()
        seen = handshakes_seen.Handshakes(f"{net.id}-core")
        full, resumed = collections.Counter(), collections.Counter()
        for _ in range(6):
            bench_ng911.Bench(n, 1, False, None).renew()
            call()
            for server, (whole, again) in seen.count().items():
                full[server] += whole
                resumed[server] += again
        seen.close()
        # A late message may open a connection before the call does. Of two that open at the same time, one cannot resume.
        assert all(resumed[s] >= 3 and resumed[s] > full[s] for s in servers), (full, resumed)


def test_calls_at_the_same_time(net):
    """Through the ESRP, 30 a second, from places that its LoST cache knows. bench_ng911_load.py measures more."""
    needs()
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher_lost.so")):
        raise Skip("xcipher_lost.so is not built")
    import bench_ng911_load
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder:
        _, callers = bench_ng911_load.measure(net, folder, types.SimpleNamespace(rate=30, seconds=2, core=min(os.sched_getaffinity(0)), boundaries=BOUNDARIES))
    assert callers.ended == 60 + bench_ng911_load.PLACES and not callers.failed and not callers.lost, (callers.ended, callers.failed, callers.lost)


test_calls_at_the_same_time.terminals = test_new_connections_resume_sessions.terminals = TERMINALS
test_a_missing_location_is_fetched.terminals = TERMINALS
test_emergency_calls_are_routed_and_secured.terminals = test_strangers_have_no_place_in_the_network.terminals = TERMINALS
