# SPDX-License-Identifier: GPL-2.0-or-later
"""Strangers without a password do not make kamailio-edge.cfg and kamailio-webrtc.cfg look up names, send to others, or use up memory."""
import contextlib
import socket
import sqlite3
import ssl
import tempfile

import lost
import netns
import ng
import relay
import sipp
import web
from baresip import wait_for
from run import Skip, cases
from test_edge import CARRIER, DOMAIN, EDGE, TERMINALS, USERS, Client, database, edge, needs
from test_module import quoted

WITHIN = ("INVITE", "INFO", "MESSAGE", "UPDATE", "PRACK", "BYE")
VICTIM = "10.200.2.9:7000"


class Browser(Client):
    """The same by WebSocket."""

    def __init__(self, net, ns="bob", **kw):
        self.ws = web.WebSocket(web.connect(net.terminal[ns], (EDGE, 8080)), "sip", Origin="https://here")
        assert self.ws.status == 101, self.ws.status
        self.socket, self.user, self.count = self, kw.get("user", "bob"), 0

    def sendto(self, data, _):
        self.ws.send(data.replace(b"SIP/2.0/UDP", b"SIP/2.0/WS", 1))

    def receive(self, seconds=0.7):
        self.ws.s.settimeout(max(seconds, 0.001))
        try:
            return self.ws.receive()[1].decode()
        except TimeoutError:
            return ""

    def source(self):
        """The alias of its connection, as Kamailio writes it into a Contact."""
        address, port = self.ws.s.getsockname()
        return f"alias={address}~{port}~5"


class Webrtc:
    def __init__(self, net, folder, **defines):
        needs()
        self.daemon = relay.Xcipherd(net, "--engine=serial", addresses=(f"web/{EDGE}", "sip/10.200.2.1")).wait_ready()
        self.kam = sipp.Kamailio(net, folder, example="kamailio-webrtc.cfg", swap=("log_stderror=no", "log_stderror=yes"), XC_NO_TLS=1,
                                 XC_DOMAIN=quoted(DOMAIN), XC_DB=quoted("sqlite:///" + database(folder)), XC_WS_ORIGINS=quoted("^https://here$"), **defines)

    def stop(self):
        assert self.kam.stop() == 0, self.kam.text()[-3000:]
        assert self.daemon.stop() == 0, self.daemon.text()


@contextlib.contextmanager
def webrtc(net, **defines):
    with tempfile.TemporaryDirectory(prefix="xcipher-webrtc-") as folder:
        w = Webrtc(net, folder, **defines)
        yield w
        w.stop()


def udp(net, ns, address, port):
    s = ng.socket_in(net.terminal[ns], socket.AF_INET)
    s.bind((address, port))
    return s


def heard(s, seconds=30):
    s.settimeout(seconds)
    try:
        return s.recv(65536).decode()
    except TimeoutError:
        return ""


class Outside:
    """A host that is no party of any call, a DNS server, and requests that name them."""

    def __init__(self, net, folder):
        self.dns = lost.Dns(net, folder, {})
        address, _, port = VICTIM.partition(":")
        net.run(net.terminal["carrier"], "ip", "addr", "add", address + "/24", "dev", "t2")
        self.udp = udp(net, "carrier", address, int(port))
        self.tcp = ng.socket_in(net.terminal["carrier"], kind=socket.SOCK_STREAM)
        self.tcp.bind((address, int(port)))
        self.tcp.listen()

    def reached(self):
        """What has reached the host or the DNS server until now."""
        self.tcp.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            return self.tcp.accept()
        return heard(self.udp, 0.01) or [n for n in self.dns.asked if n.endswith(".invalid")]

    @staticmethod
    def ways(own, connected):
        """Request URIs and headers. own: Route of the proxy. connected: transports other than UDP."""
        far, (address, _, port) = "sip:x@10.200.2.8:7009", VICTIM.partition(":")
        for n, transport in enumerate(("udp", *connected)):
            name, host = f"never{n}.invalid:7000;transport={transport}", f"{VICTIM};transport={transport}"
            for target in (name, host):
                yield f"sip:x@{target}", own
                yield far, f"{own}Route: <sip:{target};lr>\n"
            yield f"{far};maddr=never.invalid;transport={transport}", own
            yield f"sip:x@{CARRIER};maddr={address};transport={transport}", own
        for proto in (1, 2, 3, 5):
            yield f"{far};alias=never.invalid~7000~{proto}", own
            yield f"{far};alias={address}~{port}~{proto}", own

    def tries(self, stranger, own, connected):
        for uri, more in self.ways(own, connected):
            for method in WITHIN:
                code = stranger.ask(method, uri, more, tag="invented")
                # 477, 500: there is no such WebSocket.
                assert code in (404, 477, 500), (method, uri, more, code)
            stranger.send("ACK", uri, more, tag="invented")
        assert stranger.ask("OPTIONS") == 200, "the only process has read all of it"
        assert not self.reached(), self.reached()

    def close(self):
        self.udp.close()
        self.tcp.close()
        self.dns.close()


# One process, so that a reply to one request means that those before it are done.
QUICK = {"XC_CHILDREN": 1, "XC_FLOOD": 10000, "XC_CALL_RATE": 10000}


@contextlib.contextmanager
def outside(net):
    with tempfile.TemporaryDirectory(prefix="xcipher-outside-") as folder:
        o = Outside(net, folder)
        yield o
        o.close()


@cases(("ours",), ("stock",))
def test_the_edge_sends_strangers_nowhere(net, how):
    """By requests with an invented To tag. Controls: requests to the carrier, to a phone that is registered, also after a restart of Kamailio, and those of the carrier."""
    route = f"Route: <sip:{EDGE};lr>\n"
    with outside(net) as o, edge(net, how, resolver=o.dns.conf, **QUICK) as e:
        stranger, phone = Client(net), Client(net, "alice", "10.200.1.2", 5997, "alice")
        carrier = udp(net, "carrier", CARRIER, 5060)
        assert phone.ask("REGISTER") == 401 and phone.ask("REGISTER", more=phone.authorize("REGISTER", USERS["alice"])) == 200
        # Kamailio executes loops of at most 100 rounds by default.
        rows = "ruid, username, domain, contact, received, expires"

        def more_phones():
            with contextlib.closing(sqlite3.connect(e.db)) as db:
                db.execute("CREATE TEMPORARY TABLE alice AS SELECT * FROM location")
                for n in range(250):
                    db.execute(f"INSERT INTO location ({rows}) SELECT 'other{n}', username, 'other{n}', contact, 'sip:10.9.9.{n}:5060', expires FROM alice")
                db.execute("DELETE FROM location WHERE ruid = (SELECT ruid FROM alice)")
                db.execute(f"INSERT INTO location ({rows}) SELECT {rows} FROM alice")
                db.commit()

        def passes(*methods):
            for method in methods:
                stranger.send(method, f"sip:carrier@{CARRIER}", route, tag="invented")
                assert heard(carrier).startswith(method + " "), method
                stranger.send(method, "sip:alice@192.168.7.7;alias=10.200.1.2~5997~1", route, tag="invented")
                assert phone.receive(30).startswith(method + " "), method
        passes("BYE", "ACK", "INFO")
        # A phone is reached by its own connection only.
        with ng.socket_in(net.terminal["alice"], kind=socket.SOCK_STREAM) as door:
            door.bind(("10.200.1.2", 7000))
            door.listen()
            door.setblocking(False)
            for method in WITHIN:
                assert stranger.ask(method, "sip:alice@10.200.1.2:7000;transport=tls", route, tag="invented") in (477, 500), (method, stranger.last)
            with contextlib.suppress(BlockingIOError):
                door.accept()
                raise AssertionError("a connection")
        o.tries(stranger, route, ("tls", "tcp"))
        e.kam.stop()
        more_phones()
        e.kam = e.start()
        known = wait_for("the addresses of all phones", lambda: [t for t in (e.kam.rpc("htable.dump", "phones"),) if all(f" {a}\n" in t for a in ("10.9.9.0", "10.200.1.2"))])[0]
        assert known.count(" 10.9.9.") == 250, known
        passes("BYE", "ACK")
        bye = f"BYE sip:x@10.200.9.9;alias=10.200.2.9~7000~1 SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER}:5060;branch=z9hG4bKbye\r\nRoute: <sip:10.200.2.1;lr>\r\n"
        carrier.sendto((bye + "From: <sip:112@x>;tag=1\r\nTo: <sip:x@y>;tag=2\r\nCall-ID: b\r\nCSeq: 2 BYE\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n").encode(), ("10.200.2.1", 5060))
        assert heard(o.udp).startswith("BYE "), "the caller of an emergency call has no registration"
        carrier.close()


@cases(("ours",), ("stock",))
def test_the_server_for_browsers_sends_strangers_nowhere(net, how):
    """By requests with an invented To tag. Controls: requests to the PBX, to another browser, and those of the PBX."""
    route, more = f"Route: <sip:{EDGE}:8080;transport=ws;lr>\n", {"XC_STOCK": 1} if how == "stock" else {}
    with outside(net) as o, webrtc(net, resolver=o.dns.conf, **QUICK, **more):
        stranger, other, pbx = Browser(net), Browser(net, "alice", user="alice"), udp(net, "carrier", CARRIER, 5060)
        o.tries(stranger, route, ("ws", "tls", "tcp"))
        for method in ("BYE", "ACK", "INFO"):
            stranger.send(method, f"sip:pbx@{CARRIER}", route, tag="invented")
            assert heard(pbx).startswith(method + " "), method
            stranger.send(method, f"sip:alice@a.invalid;transport=ws;{other.source()}", route, tag="invented")
            assert other.receive(30).startswith(method + " "), method
        bye = f"BYE sip:x@a.invalid;transport=ws;{other.source()} SIP/2.0\r\nVia: SIP/2.0/UDP {CARRIER}:5060;branch=z9hG4bKbye\r\nRoute: <sip:10.200.2.1;lr>\r\n"
        pbx.sendto((bye + "From: <sip:1@x>;tag=1\r\nTo: <sip:x@y>;tag=2\r\nCall-ID: b\r\nCSeq: 2 BYE\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n").encode(), ("10.200.2.1", 5060))
        assert other.receive(30).startswith("BYE ")
        pbx.close()


class Client6(Client):
    """The same with IPv6."""

    def __init__(self, net, ns, address, port, user):
        self.raw, self.socket = ng.socket_in(net.terminal[ns], socket.AF_INET6), self
        self.raw.bind((address, port))
        self.user, self.count, self.settimeout, self.recv = user, 0, self.raw.settimeout, self.raw.recv

    def sendto(self, data, _):
        self.raw.sendto(data, ("fd00:1::1", 5060))


def test_the_edge_knows_phones_with_ipv6(net):
    """Also after a restart. Control: a phone without a registration is not known."""
    if not netns.HAVE_IPV6:
        raise Skip("no IPv6")
    with edge(net, XC_PHONES="[fd00:1::1]", **QUICK) as e:
        net.run(net.terminal["alice"], "ip", "addr", "add", "fd00:1::3/64", "dev", "t1", "nodad")
        phone, stranger = Client6(net, "alice", "fd00:1::2", 5997, "alice"), Client6(net, "alice", "fd00:1::3", 5998, "bob")

        def bye():
            stranger.send("BYE", "sip:alice@192.168.7.7;alias=[fd00:1::2]~5997~1", "Route: <sip:[fd00:1::1];lr>\n", tag="invented")
        bye()
        assert " 404 " in stranger.receive(30)
        assert phone.ask("REGISTER") == 401 and phone.ask("REGISTER", more=phone.authorize("REGISTER", USERS["alice"])) == 200
        bye()
        assert phone.receive(30).startswith("BYE ")
        e.kam.stop()
        e.kam = e.start()
        wait_for("the addresses of all phones", lambda: " fd00:1::2\n" in e.kam.rpc("htable.dump", "phones"))
        bye()
        assert phone.receive(30).startswith("BYE ")


def reply(own, status, to=VICTIM):
    return (f"SIP/2.0 {status}\r\nVia: {own};branch=z9hG4bKforged.0\r\nVia: SIP/2.0/UDP {to};branch=z9hG4bKx\r\nFrom: <sip:x@y>;tag=1\r\nTo: <sip:y@x>;tag=2\r\n"
            "Call-ID: stray\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n").encode()


def strays(own):
    for status in ("200 OK", "180 Ringing", "486 Busy Here"):
        for to in (VICTIM, "never.invalid:7000", "10.200.2.8:7000;maddr=10.200.2.9", "10.200.2.8:7000;received=10.200.2.9", "10.200.2.8;received=never.invalid"):
            yield reply(own, status, to)


def through(own):
    """A server repeats a 200 that is not acknowledged, with the Via that a caller wrote, after the proxy has forgotten its transaction."""
    for to in ("never.invalid:7000", "10.200.2.8:7000;maddr=10.200.2.9", "10.200.2.8:7000;maddr=never.invalid", "10.200.2.8:7000;received=never.invalid"):
        yield reply(own, "200 OK", to)


def test_the_edge_sends_no_reply_of_a_stranger(net):
    """Its second Via could send it anywhere. Controls: such replies of the carrier and of a phone that is registered."""
    with outside(net) as o, edge(net, resolver=o.dns.conf, **QUICK):
        own, phone = f"SIP/2.0/UDP {EDGE}:5060", Client(net)
        for data in strays(own):
            phone.socket.sendto(data, (EDGE, 5060))
        assert phone.ask("OPTIONS") == 200
        assert not o.reached(), o.reached()
        assert phone.ask("REGISTER") == 401 and phone.ask("REGISTER", more=phone.authorize("REGISTER", USERS["bob"])) == 200
        phone.socket.sendto(reply(own, "200 OK"), (EDGE, 5060))
        assert heard(o.udp).startswith("SIP/2.0 200 ")
        with udp(net, "carrier", CARRIER, 5060) as carrier:
            for data in through("SIP/2.0/UDP 10.200.2.1:5060"):
                carrier.sendto(data, ("10.200.2.1", 5060))
            assert phone.ask("OPTIONS") == 200
            assert not o.reached(), o.reached()
            carrier.sendto(reply("SIP/2.0/UDP 10.200.2.1:5060", "200 OK"), ("10.200.2.1", 5060))
            got = heard(o.udp)
            assert got.startswith("SIP/2.0 200 "), got


def test_the_server_for_browsers_sends_no_reply_of_a_stranger(net):
    """Its connection stays open. Control: such a reply of the PBX."""
    with outside(net) as o, webrtc(net, resolver=o.dns.conf, **QUICK):
        browser = Browser(net)
        for data in strays(f"SIP/2.0/WS {EDGE}:8080"):
            browser.ws.send(data)
        assert browser.ask("OPTIONS") == 200
        assert not o.reached(), o.reached()
        with udp(net, "carrier", CARRIER, 5060) as pbx:
            for data in through("SIP/2.0/UDP 10.200.2.1:5060"):
                pbx.sendto(data, ("10.200.2.1", 5060))
            # Any SIP request of the PBX, read by the same process, is answered after that.
            pbx.sendto(b"OPTIONS sip:" + DOMAIN.encode() + b" SIP/2.0\r\nVia: SIP/2.0/UDP 10.200.2.2:5060;branch=z9hG4bKo\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\n"
                       b"Call-ID: o\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n", ("10.200.2.1", 5060))
            assert heard(pbx).startswith("SIP/2.0 200 ")
            assert not o.reached(), o.reached()
            pbx.sendto(reply("SIP/2.0/UDP 10.200.2.1:5060", "200 OK"), ("10.200.2.1", 5060))
            got = heard(o.udp)
            assert got.startswith("SIP/2.0 200 "), got


@cases(("edge",), ("webrtc",))
def test_a_silent_dns_holds_no_process_for_long(net, which):
    """An emergency call needs no password. The name of the carrier has no answer: it is asked for once."""
    with tempfile.TemporaryDirectory(prefix="xcipher-dns-") as folder:
        dns = lost.Dns(net, folder, {"carrier.example": None})
        start, name = (edge, "XC_CARRIER") if which == "edge" else (webrtc, "XC_PBX")
        with start(net, resolver=dns.conf, **{**(QUICK if which == "edge" else {"XC_CHILDREN": 1}), name: quoted("sip:carrier.example:5060")}):
            caller = (Client if which == "edge" else Browser)(net)
            assert caller.ask("INVITE", f"sip:112@{DOMAIN}", seconds=60) in (478, 500), caller.last
            assert dns.asked == ["carrier.example"], dns.asked
        dns.close()


def idle(net, n, tls, port):
    """Opens this many idle connections."""
    found = []
    for _ in range(n):
        s = ng.socket_in(net.terminal["bob"], kind=socket.SOCK_STREAM)
        s.settimeout(60)
        s.connect((EDGE, port))
        with contextlib.suppress(OSError):
            s = tls.wrap_socket(s) if tls else s
        found.append(s)

    def refused():
        """Whether Kamailio has accepted the last connection, or closed it."""
        try:
            s.settimeout(1)
            return not s.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True
    wait_for("the end of the last connection", refused)
    return found


@cases(("edge",), ("webrtc",))
def test_connections_leave_memory_for_calls(net, which):
    """With Kamailio's default of shared memory, strangers open as many connections as would use it up without a limit. Earlier connections are served."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    with (edge(net, XC_FLOOD=10000) if which == "edge" else webrtc(net)) as e:
        if which == "edge":
            raw = ng.socket_in(net.terminal["alice"], kind=socket.SOCK_STREAM)
            raw.settimeout(60)
            raw.connect((EDGE, 5061))
            phone = tls.wrap_socket(raw)

            def served(n):
                phone.sendall((f"OPTIONS sip:{DOMAIN} SIP/2.0\r\nVia: SIP/2.0/TLS 10.200.1.2:5061;branch=z9hG4bKo{n}\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:{DOMAIN}>\r\n"
                               f"Call-ID: o{n}\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n").encode())
                return b"SIP/2.0 200" in phone.recv(65536)
        else:
            browser = Browser(net, "alice")

            def served(_):
                return browser.ask("OPTIONS") == 200
        assert served(1)
        many = idle(net, 1000, which == "edge" and tls, 5061 if which == "edge" else 8080)
        assert served(2)
        assert "not enough memory" not in e.kam.text() and "could not allocate" not in e.kam.text(), e.kam.text()[-3000:]
        for s in many:
            s.close()


for test in (test_connections_leave_memory_for_calls, test_a_silent_dns_holds_no_process_for_long, test_the_edge_sends_strangers_nowhere,
             test_the_server_for_browsers_sends_strangers_nowhere, test_the_edge_sends_no_reply_of_a_stranger, test_the_edge_knows_phones_with_ipv6,
             test_the_server_for_browsers_sends_no_reply_of_a_stranger):
    test.terminals = TERMINALS
