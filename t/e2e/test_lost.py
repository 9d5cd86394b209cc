# SPDX-License-Identifier: GPL-2.0-or-later
"""The Kamailio module xcipher_lost: a real Kamailio with one SIP worker, and servers that answer by a script."""
import contextlib
import os
import tempfile
import threading

import lost
from baresip import wait_for
from run import cases

A, B = 18081, 18082
COLLEGE_STATION = "30.6280012 -96.3344068"


@contextlib.contextmanager
def rig(net, answer, *params, port=A, down=False, errors=False, **kw):
    """A server, a Kamailio that asks it, a client. down: the server's port is closed. errors: Kamailio may log some."""
    lost.needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        server = lost.Server(net, port, answer)
        if down:
            server.close()
        kam = lost.Kamailio(net, folder, [("server", f"http://127.0.0.1:{port}/lost"), *params], **kw)
        yield server, kam, lost.Client(net)
        log = kam.text()
        assert kam.stop() == 0, log
        server.close()
        assert "CRITICAL" not in log and (errors or "ERROR" not in log), log


def test_a_point_is_asked_once(net):
    """The numbers arrive as they came. A second caller inside the boundary needs no query, one outside of it does."""
    def answer(method, path, body):
        south = 30 if ">30." in body else 40
        return lost.mapping(boundary=lost.by_value(lost.square(south, -97)), ident=str(south), uri=f"sip:psap{south}@psap.test")

    with rig(net, answer, ("boundary", "value")) as (server, kam, client):
        got = client.ask(lost.pidf(lost.point(COLLEGE_STATION)))
        assert got["result"] == "1" and got["uri"] == "sip:psap30@psap.test" and got["cached"] == "0", got
        assert got["name"] == "Test PSAP" and got["number"] == "911" and got["service"] == lost.SOS and got["method"] == "cid", got
        assert f"<service>{lost.SOS}</service>" in server.bodies()[0]
        assert f"<gml:pos>{COLLEGE_STATION}</gml:pos>" in server.bodies()[0], server.bodies()
        again = client.ask(lost.pidf(lost.point("30.5 -96.5")))
        assert again["cached"] == "1" and again["uri"] == got["uri"] and again["tries"] == "0" and again["name"] == "Test PSAP", again
        assert len(server.requests) == 1
        other = client.ask(lost.pidf(lost.point("40.5 -96.5")))
        assert other["uri"] == "sip:psap40@psap.test" and len(server.requests) == 2, other
        assert server.connections == 1, "the connection is kept"
        assert kam.counter("cache_hits") == 1 and kam.counter("suspended") == 2
        assert "psap30" in kam.rpc("xlost.cache") and "-96" not in kam.rpc("xlost.cache")
        kam.rpc("xlost.clear")
        assert client.ask(lost.pidf(lost.point("30.5 -96.5")))["cached"] == "0"
        assert COLLEGE_STATION.split()[0] not in kam.text(), "a location is private"


def test_a_hanging_server_holds_no_worker(net):
    """One SIP worker. While ten calls wait for a server, others are answered."""
    release = threading.Event()

    def answer(method, path, body):
        release.wait(60)
        return lost.mapping()

    with rig(net, answer, ("timeout", 60000), ("deadline", 60000)) as (server, kam, client):
        calls = [client.send(lost.pidf(lost.point(f"30.{i} -96.5"))) for i in range(10)]
        wait_for("ten requests at the server", lambda: len(server.requests) == 10)
        for _ in range(20):
            assert client.ping()["status"] == 200
        assert not client.replies, "no call has its answer yet"
        release.set()
        assert all(client.wait(c)["uri"] == lost.PSAP for c in calls)


@cases(("down",), ("slow",), ("garbage",), ("huge",), ("bomb",), ("external",), ("status",), ("cut",), ("internalError",))
def test_fail_over(net, fault):
    """The second server answers for one that is down, slow or lying; the first is asked last from then on. With only the first,
    the route gets -1 and the reason."""
    release = threading.Event()

    def faulty(method, path, body):
        if fault == "slow":
            release.wait(60)
        if fault == "cut":
            raise ConnectionError
        return {"garbage": "<findServiceResponse", "huge": lost.mapping(more="<!-- " + 70000 * "x" + " -->"), "status": (500, lost.mapping()),
                "bomb": bomb(lost.mapping()), "external": external(lost.mapping()), "internalError": lost.errors("internalError")}.get(fault, "")

    def good(method, path, body):
        return lost.mapping()

    why = {"down": "connect", "slow": "timeout", "huge": "too-large", "status": "http", "cut": "connect", "internalError": "internalError"}.get(fault, "garbage")
    timeout = [("timeout", 4000)] if fault == "slow" else []  # the good server must never be that slow
    second = lost.Server(net, B, good)
    with rig(net, faulty, ("server", f"http://127.0.0.1:{B}/lost"), *timeout, ("down_time", 600000), ("max_response", 65536), down=fault == "down") as (
            server, kam, client):
        got = client.ask(lost.pidf(lost.point("30.1 -96")))
        assert got["result"] == "1" and got["uri"] == lost.PSAP and got["tries"] == "2" and got["url"].endswith(f":{B}/lost"), got
        again = client.ask(lost.pidf(lost.point("30.1 -96")))
        assert again["result"] == "1" and again["tries"] == ("2" if fault == "internalError" else "1"), again
        second.close()
        got = client.ask(lost.pidf(lost.point("30.1 -96")))
        assert got["result"] == "-1" and got["uri"] is None, got
        assert client.ping()["status"] == 200
        release.set()
    with rig(net, faulty, *timeout, ("max_response", 65536), down=fault == "down") as (server, kam, client):
        release.clear()
        got = client.ask(lost.pidf(lost.point("30.1 -96")))
        assert got["error"] == why and got["result"] == ("-3" if fault == "internalError" else "-1"), got
        release.set()
    assert fault != "external" or not [r for r in server.requests if "stolen" in r[1]]


def bomb(xml):
    """Entities of entities of entities: 10^9 characters."""
    levels = "".join(f'<!ENTITY l{i} "{10 * f"&l{i - 1};"}">' for i in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "x">{levels}]>' + xml.replace("Test PSAP", "&l9;")


def external(xml):
    return f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "http://127.0.0.1:{A}/stolen">]>' + xml.replace("Test PSAP", "&e;")


TRIANGLE = ("30.50 -96.50", "30.500001 -96.40", "30.60 -96.450000")


SHAPES = {
    "polygon": (lost.polygon(*TRIANGLE), "".join(f"<gml:pos>{c}</gml:pos>" for c in TRIANGLE)),
    "circle": (f'<gs:Circle {lost.GML} {lost.GS}><gml:pos>30.5 -96.50</gml:pos><gs:radius uom="urn:ogc:def:uom:EPSG::9001">100.0</gs:radius></gs:Circle>',
               "<gml:pos>30.5 -96.50</gml:pos>"),
    "civic": ('<ca:civicAddress xmlns:ca="urn:ietf:params:xml:ns:pidf:geopriv10:civicAddr"><ca:country>US</ca:country><ca:A3>Bryan</ca:A3></ca:civicAddress>',
              "<country>US</country><A3>Bryan</A3>"),
}


@cases(*((name,) for name in SHAPES))
def test_shapes(net, name):
    """Every number of a polygon arrives, and small shapes inside a known boundary need no query."""
    shape, text = SHAPES[name]
    with rig(net, lambda *_: lost.mapping(boundary=lost.by_value(lost.square(30, -97))), ("boundary", "value")) as (server, kam, client):
        got = client.ask(lost.pidf(shape))
        assert got["result"] == "1" and text in server.bodies()[0], (got, server.bodies())
        assert got["profile"] == ("civic" if name == "civic" else "geodetic-2d")
        again = client.ask(lost.pidf(shape))
        assert again["cached"] == ("0" if name == "civic" else "1"), again
        # Its circle reaches over the boundary.
        if name == "circle":
            assert client.ask(lost.pidf(shape.replace("100.0", "60000")))["cached"] == "0"


def test_boundary_by_reference(net):
    """It is fetched once, after the call was answered. A mapping without cache, or with a boundary elsewhere, is not used again."""
    expires = ["2099-01-01T00:00:00Z"]

    def answer(method, path, body):
        if "getServiceBoundary" in body:
            return lost.boundary_response(lost.square(30 if 'key="here"' in body else 50, -97))
        return lost.mapping(boundary=lost.by_reference("here" if ">30." in body else "elsewhere"), expires=expires[0])

    with rig(net, answer) as (server, kam, client):
        assert client.ask(lost.pidf(lost.point("30.5 -96.5")))["key"] == "here"
        wait_for("the boundary in the cache", lambda: kam.counter("cache_inserted") == 1)
        assert client.ask(lost.pidf(lost.point("30.6 -96.5")))["cached"] == "1"
        assert len(server.requests) == 2 and 'key="here"' in server.bodies()[1]
        client.ask(lost.pidf(lost.point("40.6 -96.5")))
        wait_for("a boundary that lies elsewhere", lambda: kam.counter("boundaries_refused") == 1)
        assert kam.counter("cache_inserted") == 1
        assert "removed: 1" in kam.rpc("xlost.clear", lost.SOS)
        for expires[0] in ("NO-CACHE", "2001-01-01T00:00:00Z"):
            before = len(server.requests)
            assert client.ask(lost.pidf(lost.point("30.5 -96.5")))["cached"] == "0"
            assert client.ask(lost.pidf(lost.point("30.5 -96.5")))["cached"] == "0"
            assert len(server.requests) == before + 2, "no boundary was fetched"
        got = client.ask(None, headers="X-Do: boundary\r\nX-Argument: here\r\n")
        assert got["result"] == "1" and int(got["boundary"]) > 100, got


def test_locations_of_a_message(net):
    """By value first, whatever the order of the headers; the second location if the first is not known; none at all."""
    def answer(method, path, body):
        if "listServicesByLocation" in body:
            return (f'<listServicesByLocationResponse {lost.LOST}><serviceList>{lost.SOS} {lost.SOS}.fire</serviceList>'
                    '<path><via source="lost.test"/></path></listServicesByLocationResponse>')
        return lost.errors("notFound") if ">1.5 " in body else lost.mapping()

    with rig(net, answer, ("cache_entries", 0), errors=True) as (server, kam, client):
        both = lost.pidf(lost.point("1.5 2.5"), lost.point("30.5 -96.5"))
        got = client.ask(both, geolocation="<http://127.0.0.1:1/x>, <cid:loc%40test>")
        assert got["result"] == "1" and got["tries"] == "2" and got["method"] == "cid", got
        got = client.ask(lost.pidf(lost.point("1.5 2.5")))
        assert got["result"] == "-3" and got["error"] == "notFound" and got["uri"] is None and got["message"] == "test says notFound", got
        before = len(server.requests)
        for kw in ({}, {"geolocation": ""}, {"location": "<garbage", "geolocation": "<cid:loc@test>"}, {"location": both, "geolocation": "<cid:other@test>"}):
            got = client.ask(**kw)
            assert got["result"] == "-2" and got["uri"] is None and got["error"] is None, (kw, got)
        got = client.ask(lost.pidf(lost.point("30.5 -96.5")), geolocation="<http://127.0.0.1:1/x>")
        assert got["result"] == "-4" and got["error"] == "insecure", got
        assert len(server.requests) == before
        assert client.ask(both, headers="X-Do: has\r\n")["status"] == 200
        assert client.ask(headers="X-Do: has\r\n")["status"] == 404
        got = client.ask(both, headers="X-Do: list\r\n", uri="sip:x@test")
        assert got["services"] == f"{lost.SOS} {lost.SOS}.fire", got
        got = client.ask(headers=f"X-Do: argument\r\nX-Service: {lost.SOS}\r\n", content="application/pidf+xml", body=lost.pidf(lost.point("30.5 -96.5")))
        assert got["result"] == "1" and got["method"] == "argument", got
        got = client.ask(both, headers="X-Do: sync\r\n")
        assert got["result"] == "1" and kam.counter("waited") == 1, got
        assert client.ask(both, headers="X-Fork: 1\r\n")["branch"] == "sip:second@test", "branches survive the suspension"
        # Kamailio's tm knows no URN but urn:service, so that there is no transaction to suspend.
        got = client.ask(both, uri="urn:nena:service:sos.psap")
        assert got["result"] == "1" and kam.counter("waited") == 2 and "urn:nena:service:sos.psap" in server.bodies()[-1], got
        # Only emergency calls are routed by a location whose owner forbids that.
        no = "Geolocation-Routing: no\r\n"
        assert client.ask(both, headers=no)["result"] == "1"
        assert client.ask(both, headers=no, uri="urn:service:counseling")["result"] == "-2"


@cases(("good",), ("good, beside tls.so",), ("wrong CA",), ("expired",), ("wrong name",), ("no client certificate",), ("no list of hosts",))
def test_tls(net, kind):
    """Servers are verified, and get a certificate. A location by reference is fetched over TLS."""
    lost.needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        ca, other = lost.Ca(folder), lost.Ca(folder, "other")
        leaf = (other if kind == "wrong CA" else ca).leaf("server", "127.0.0.2" if kind == "wrong name" else "127.0.0.1", -1 if kind == "expired" else 10)
        mine = ca.leaf("mine")

        def answer(method, path, body):
            if path.startswith("/held"):
                return ('<locationResponse xmlns="urn:ietf:params:xml:ns:geopriv:held"><locationUriSet expires="2099-01-01T00:00:00Z"><locationURI>'
                        f'https://127.0.0.1:{A}/held/1</locationURI></locationUriSet>{lost.pidf(lost.point("30.50 -96.5")).split("?>")[1]}</locationResponse>')
            return lost.mapping(boundary=lost.by_value(lost.square(30, -97)))

        server = lost.Server(net, A, answer, cert=leaf, client_ca=ca.path)
        params = [("server", f"https://127.0.0.1:{A}/lost"), ("lis", f"https://127.0.0.1:{A}/held"), ("ca_file", ca.path), ("timeout", 20000),
                  ("connect_timeout", 20000), ("deadline", 60000), ("boundary", "value")]
        if kind != "no list of hosts":
            params.append(("reference_hosts", "127.0.0.1"))
        if kind != "no client certificate":
            params += [("cert_file", mine), ("key_file", mine)]
        # Kamailio's TLS module gives OpenSSL its own memory and locks.
        first = f'loadmodule "tls.so"\nmodparam("tls", "certificate", "{mine}")\nmodparam("tls", "private_key", "{mine}")' if "tls.so" in kind else ""
        kam, client = lost.Kamailio(net, folder, params, first=first), lost.Client(net)
        got = client.ask(lost.pidf(lost.point("30.1 -96.5")))
        if kind == "no list of hosts":
            # The server's own connection is open, but a caller's reference does not get to this host.
            assert got["result"] == "1", got
            got = client.ask(headers=f"X-Do: dereference\r\nX-Argument: https://127.0.0.1:{A}/held/5\r\n", geolocation="")
            assert got["result"] == "-4" and got["error"] == "insecure", got
            assert server.connections == 1 and all(r[0] == "POST" for r in server.requests), server.requests
        elif kind.startswith("good"):
            assert got["result"] == "1", got
            got = client.ask(geolocation=f"<https://127.0.0.1:{A}/held/77>")
            assert got["result"] == "1" and got["method"] == "reference" and got["cached"] == "1", got
            kam.rpc("xlost.clear")
            got = client.ask(geolocation=f"<https://127.0.0.1:{A}/held/77>")
            assert got["result"] == "1" and got["cached"] == "0" and "<gml:pos>30.50 -96.5</gml:pos>" in server.bodies()[-1], got
            assert server.requests[-2][:2] == ("GET", "/held/77") and int(got["pidf"]) > 100
            # Another caller sees nothing of the first one's location.
            got = client.ask(lost.pidf(lost.point("30.7 -96.5")))
            assert got["cached"] == "1" and not got["pidf"] and not got["boundary"] and got["method"] == "cid", got
            got = client.ask(headers="X-Do: held\r\nX-Argument: sip:alice@test\r\n", geolocation="")
            assert got["result"] == "1" and got["location-uri"].endswith("/held/1") and int(got["pidf"]) > 100, got
            assert "<uri>sip:alice@test</uri>" in server.bodies()[-1]
            # One function after the other, from a client process
            for how in ("chain", "chain-sync"):
                kam.rpc("xlost.clear")
                got = client.ask(headers=f"X-Do: {how}\r\n", geolocation="")
                assert got["result"] == "1" and got["uri"] == lost.PSAP and got["method"] == "argument" and got["cached"] == "0", got
            got = client.ask(headers=f"X-Do: dereference\r\nX-Argument: https://127.0.0.1:{A}/held/5\r\n", geolocation="")
            assert got["result"] == "1" and int(got["pidf"]) > 100, got
            assert server.connections <= 2, "one handshake for all, and one for a client that waits"
            assert "/held/" not in kam.text(), "a reference is private"
        else:
            assert got["result"] == "-1" and got["uri"] is None, got
            assert got["error"] in (("tls", "connect") if kind == "no client certificate" else ("tls",)), got
            assert not server.requests
        assert kam.stop() == 0, kam.text()
        server.close()


@cases((False,), (True,))
def test_new_connections(net, tickets):
    """A new connection resumes the session of an earlier one, also that of another exchange. Our certificate is read again when its file has changed."""
    lost.needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        ca = lost.Ca(folder)
        mine, next_one = ca.leaf("mine"), ca.leaf("next")
        both = threading.Barrier(2)

        def answer(method, path, body):
            if ">31." in body:
                both.wait(60)
            return lost.mapping(boundary=lost.by_value(lost.square(30, -97)))

        server = lost.Server(net, A, answer, cert=ca.leaf("server"), client_ca=ca.path)
        server.context.num_tickets = 2 if tickets else 0
        params = [("server", f"https://127.0.0.1:{A}/lost"), ("ca_file", ca.path), ("cert_file", mine), ("key_file", mine), ("cache_entries", 0), ("clients", 1)]
        kam, client = lost.Kamailio(net, folder, params), lost.Client(net)

        def asked(want):
            got = client.ask(lost.pidf(lost.point("30.1 -96.5")))
            assert got["result"] == want, (got, kam.text())
        asked("1")
        for _ in range(3):
            server.cut()
            asked("1")
        assert server.resumed == [False] + [tickets] * 3, server.resumed
        if tickets:
            server.cut()
            threads = [threading.Thread(target=lost.Client(net).ask, args=(lost.pidf(lost.point("31.1 -96.5")),)) for _ in range(2)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert server.resumed[4:] == [True, True], server.resumed
        else:
            os.replace(next_one, mine)
            server.cut()
            asked("1")
            assert [p["subject"] for p in server.peers][-1] != server.peers[0]["subject"] == server.peers[3]["subject"], server.peers
            with open(mine, "w", encoding="ascii") as f:
                f.write("nothing\n")
            server.cut()
            asked("-1")
            assert len(server.requests) == 5 and "tls" in kam.text(), kam.text()
        assert kam.stop() == 0, kam.text()
        server.close()


def test_too_many_queries(net):
    """Beyond the bound a call gets -5 at once, and nobody waits for it."""
    release = threading.Event()

    def answer(method, path, body):
        release.wait(60)
        return lost.mapping()

    with rig(net, answer, ("timeout", 60000), ("deadline", 60000), ("queries", 2), ("cache_entries", 0)) as (server, kam, client):
        calls = [client.send(lost.pidf(lost.point("30.5 -96.5"))) for i in range(2)]
        wait_for("two requests at the server", lambda: len(server.requests) == 2)
        assert client.ask(lost.pidf(lost.point("30.5 -96.5")))["result"] == "-5"
        release.set()
        assert all(client.wait(c)["result"] == "1" for c in calls)
        wait_for("no query in flight", lambda: "in_flight: 0" in kam.rpc("xlost.show"))
        assert client.ask(lost.pidf(lost.point("30.5 -96.5")))["result"] == "1"


def test_references_leave_places_for_values(net):
    """Callers choose the servers of references. While these are slow, a location by value is asked about, and the references of the same message are not."""
    release = threading.Event()

    def answer(method, path, body):
        if method == "GET":
            release.wait(60)
        return lost.mapping()

    slow = f"<http://127.0.0.1:{A}/slow>"
    with rig(net, answer, ("timeout", 60000), ("deadline", 60000), ("queries", 2), ("cache_entries", 0), ("allow_http_reference", 1), ("reference_hosts", "127.0.0.1")) as (server, kam, client):
        call = client.send(geolocation=slow)
        wait_for("a request at the server", lambda: len(server.requests) == 1)
        assert client.ask(geolocation=slow)["result"] == "-5"
        got = client.ask(lost.pidf(lost.point("30.5 -96.5")), geolocation=f"{slow}, <cid:loc@test>")
        assert got["result"] == "1" and got["method"] == "cid" and len(server.requests) == 2, (got, server.requests)
        release.set()
        assert client.wait(call)["result"] == "-4"
        wait_for("no query in flight", lambda: "in_flight: 0" in kam.rpc("xlost.show"))
        release.clear()
        call = client.send(geolocation=slow)
        wait_for("a request at the server", lambda: len(server.requests) == 3)
        release.set()
        assert client.wait(call)["result"] == "-4"


def test_a_call_that_ends_during_its_query(net):
    """A retransmission asks nothing. After CANCEL the answer is dropped, and nothing remains of the query."""
    release = threading.Event()

    def answer(method, path, body):
        release.wait(60)
        return lost.mapping()

    with rig(net, answer, ("timeout", 60000), ("deadline", 60000), ("cache_entries", 0)) as (server, kam, client):
        call = client.send(lost.pidf(lost.point("30.5 -96.5")), method="INVITE")
        wait_for("a request at the server", lambda: len(server.requests) == 1)
        client.again()
        client.cancel()
        assert client.wait(call)["status"] in (200, 487)
        release.set()
        wait_for("the end of the query", lambda: "in_flight: 0" in kam.rpc("xlost.show"))
        assert len(server.requests) == 1 and kam.counter("suspended") == 1 and kam.counter("gone") == 1, kam.rpc("cnt.grp_get_all", "xlost")
        assert client.ask(lost.pidf(lost.point("30.5 -96.5")))["result"] == "1"


def test_a_call_that_ends_before_its_query(net):
    """CANCEL arrives before the transaction can be suspended. The script does not go on, and the caller gets 487."""
    release = threading.Event()

    def answer(method, path, body):
        release.wait(60)
        return lost.mapping()

    with rig(net, answer, ("timeout", 60000), ("deadline", 60000), ("cache_entries", 0)) as (server, kam, client):
        call = client.send(lost.pidf(lost.point("30.5 -96.5")), method="INVITE", headers="X-Do: late\r\n")
        wait_for("a request at the server", lambda: len(server.requests) == 1)
        client.cancel()
        assert client.wait(call)["status"] in (200, 487)
        release.set()
        wait_for("the end of the first query", lambda: kam.counter("answered") == 1)
        assert client.ping()["status"] == 200
        wait_for("the end of the second", lambda: kam.counter("gone") == 1)
        assert len(server.requests) == 1 and "the script goes on" not in kam.text(), kam.text()


def test_many_calls_leave_no_memory(net):
    """Shared memory is the same after 300 calls as after 100, with queries, cache hits and failures."""
    def answer(method, path, body):
        if ">40." in body:
            return lost.errors("notFound")
        return lost.mapping(boundary=lost.by_value(lost.square(30, -97)), expires="NO-CACHE" if ">30.9" in body else "2099-01-01T00:00:00Z")

    def used():
        wait_for("the end of all transactions", lambda: "current: 0" in kam.rpc("tm.stats").replace("\t", ""))
        return int(kam.rpc("core.shmmem").split("used:")[1].split()[0])

    with rig(net, answer, ("boundary", "value"), before="modparam(\"tm\", \"wt_timer\", 100)") as (server, kam, client):
        sizes = []
        for _ in range(3):
            for i in range(100):
                client.ask(lost.pidf(lost.point(("30.5 -96.5", "30.99 -96.5", "40.5 -96.5")[i % 3])))
            sizes.append(used())
        assert sizes[2] <= sizes[1] + 4096, sizes


def test_a_closed_connection_costs_no_server(net):
    """A server that closes idle connections is asked again at once, and is not taken for one that failed."""
    with rig(net, lambda *_: lost.mapping(), ("cache_entries", 0)) as (server, kam, client):
        for n in range(1, 4):
            got = client.ask(lost.pidf(lost.point("30.5 -96.5")))
            assert got["result"] == "1" and got["tries"] == "1" and server.connections == n, got
            server.cut()
        assert "state: up" in kam.rpc("xlost.show") and kam.counter("failed_exchanges") == 0


def test_a_server_comes_back(net):
    """After down_time the first server is the first again. Without a second one, a server that is down is asked nevertheless."""
    with rig(net, lambda *_: lost.mapping(), ("cache_entries", 0), ("down_time", 600000)) as (server, kam, client):
        server.close()
        assert client.ask(lost.pidf(lost.point("30.5 -96.5")))["result"] == "-1"
        assert "state: down" in kam.rpc("xlost.show")
        back = lost.Server(net, A, lambda *_: lost.mapping())
        got = client.ask(lost.pidf(lost.point("30.5 -96.5")))
        assert got["result"] == "1" and "state: up" in kam.rpc("xlost.show"), got
        back.close()


def redirect(target):
    return f'<redirect {lost.LOST} target="{target}" source="a.test" message="ask there" xml:lang="en"/>'


def test_redirects_and_recursion(net):
    """A server that knows no answer asks another one if the query allows it, else it names it. The answer is that of the other server in both cases."""
    def other(method, path, body):
        return lost.mapping(uri="sip:other@psap.test")

    def first(method, path, body):
        if 'recursive="true"' not in body:
            return redirect("b.test")
        with lost.ng.socket_in(net.gateway, kind=lost.socket.SOCK_STREAM) as s:
            s.connect(("127.0.0.1", B))
            s.sendall(f"POST /lost HTTP/1.0\r\nContent-Length: {len(body.encode())}\r\n\r\n".encode() + body.encode())
            text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        return text.partition("\r\n\r\n")[2].replace("<path>", '<path><via source="b.test"/>')

    for recursive, tries in ((1, "1"), (0, "2")):
        with rig(net, first, ("redirect", f"b.test=http://127.0.0.1:{B}/lost"), ("recursive", recursive)) as (server, kam, client):
            second = lost.Server(net, B, other)
            got = client.ask(lost.pidf(lost.point(COLLEGE_STATION)))
            assert got["result"] == "1" and got["uri"] == "sip:other@psap.test" and got["tries"] == tries, got
            assert got["url"] == f"http://127.0.0.1:{A if recursive else B}/lost", got
            assert f"<gml:pos>{COLLEGE_STATION}</gml:pos>" in server.bodies()[0] and second.bodies() == server.bodies(), second.bodies()
            second.close()


def test_servers_in_the_dns(net):
    """Servers are found by names, through records that lead to others. Redirects name servers, too, but none on this host. Names without a server cost a server's turn, and a
    DNS server that is silent delays no other query. Results are kept."""
    lost.needs()
    address = "10.200.1.1"
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        ca = lost.Ca(folder)
        aim = []

        def answer(method, path, body):
            return redirect(aim[0]) if aim and path == "/lost" else lost.mapping(uri=f"sip:x@{path.strip('/')}.test")
        server, far = lost.Server(net, A, answer, cert=ca.leaf("near")), lost.Server(net, B, answer, cert=ca.leaf("far", address), address=address)
        url = f"https://127.0.0.1:{A}"
        dns = lost.Dns(net, folder, {"area.test": [lost.naptr("http://127.0.0.1:1/", "LoST:http", order=1), lost.naptr(leads_to="servers.test")],
                                     "servers.test": [lost.naptr(f"{url}/second", order=20), lost.naptr(f"{url}/lost", order=10)], "silent.test": None,
                                     "far.test": [lost.naptr(f"https://{address}:{B}/far")], "self.test": [lost.naptr(f"{url}/self")]})
        params = [("server", "lost:none.test"), ("server", "lost:area.test"), ("ca_file", ca.path), ("cache_entries", 0), ("down_time", 1)]
        kam, client = lost.Kamailio(net, folder, params, resolver=dns.conf), lost.Client(net)
        place = lost.pidf(lost.point(COLLEGE_STATION))
        for _ in range(3):
            got = client.ask(place)
            assert got["result"] == "1" and got["uri"] == "sip:x@lost.test" and got["url"] == f"{url}/lost" and got["tries"] == "1", got
        assert dns.asked == ["none.test", "area.test", "servers.test"], dns.asked
        for how in ("sync", "list"):
            got = client.ask(place, headers=f"X-Do: {how}\r\n")
            assert (got["result"], got["url"]) == (("1", f"{url}/lost") if how == "sync" else ("-1", None)), got
        aim.append("far.test")
        got = client.ask(place)
        assert got["result"] == "1" and got["url"] == f"https://{address}:{B}/far" and got["tries"] == "2", got
        aim[0] = "self.test"
        got = client.ask(place)
        assert got["result"] == "-1" and [r[1] for r in server.requests].count("/self") == 0, got
        aim[0] = "unknown.test"
        got = client.ask(place)
        assert got["result"] == "-1" and got["error"] == "redirect", got
        aim[0] = "silent.test"
        waits = client.send(place)
        wait_for("the question", lambda: "silent.test" in dns.asked)
        aim.clear()
        assert client.ask(place)["result"] == "1"
        got = client.wait(waits)
        assert got["result"] == "-1" and got["error"] == "redirect", got
        assert "no LoST server \"unknown.test\" in the DNS" in kam.text() and kam.stop() == 0, kam.text()
        # The DNS gives up after the deadline of the query. The second server is asked before.
        dns.records["slow.test"] = None
        params = [("server", "lost:slow.test"), ("server", f"{url}/lost"), ("ca_file", ca.path), ("timeout", 1500), ("deadline", 6500)]
        kam = lost.Kamailio(net, folder, params, resolver=dns.conf, port=lost.SIP_PORT + 10)
        got = lost.Client(net, lost.SIP_PORT + 10).ask(place)
        assert got["result"] == "1" and got["url"] == f"{url}/lost", got
        assert kam.stop() == 0, kam.text()
        for s in (server, far, dns):
            s.close()


SCRIPT = """function ksr_request_route() {
	if (KSR.xlost.has_location() > 0 && KSR.xlost.find_service_async("%s", "done") == 0) {
		return;
	}
	done();
}
function done() {
	KSR.hdr.append_to_reply("X-Result: " + KSR.pv.gete("$xlost(result)") + "\\r\\nX-Uri: " + KSR.pv.gete("$xlost(uri)") + "\\r\\n");
	KSR.sl.send_reply(200, "Done");
}
"""


def test_kemi(net):
    """A script in JavaScript is resumed in its function."""
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        script = os.path.join(folder, "script.js")
        with open(script, "w", encoding="utf-8") as f:
            f.write(SCRIPT % lost.SOS)
        cfg = lost.CFG.split("request_route {")[0] + 'loadmodule "app_jsdt.so"\nmodparam("app_jsdt", "load", "' + script + '")\ncfgengine "jsdt"\n'
        with rig(net, lambda *_: lost.mapping(), cfg=cfg) as (server, kam, client):
            got = client.ask(lost.pidf(lost.point("30.5 -96.5")))
            assert got.get("result") == "1" and got["uri"] == lost.PSAP and kam.counter("suspended") == 1, (got, kam.text())
            assert client.ask()["result"] == ""


def test_wrong_parameters_are_refused_at_start(net):
    for params, said in ((("verify", 7), "verify must be 0 or 1"), (("discover", 2), "discover must be 0 or 1"), (("server", "lost:"), "or lost:NAME"), (("server", "lost:a.test"), "needs ca_file"), (("log_location", -1), "log_location must be 0 or 1"), (("boundary", "all"), "boundary must be"),
                         (("deadline", 1), "deadline at least timeout"), (("ca_file", "/nowhere"), "cannot read /nowhere")):
        lost.needs()
        with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
            try:
                kam = lost.Kamailio(net, folder, [params])
            except RuntimeError as why:
                assert said in str(why), why
                continue
            kam.stop()
            raise AssertionError(f"Kamailio starts with {params}")
