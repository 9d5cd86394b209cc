# SPDX-License-Identifier: GPL-2.0-or-later
"""The Kamailio module xcipher_lost: a real Kamailio with one SIP worker, and servers that answer by a script."""
import contextlib
import tempfile
import threading

import lost
from baresip import wait_for
from run import cases

A, B = 18081, 18082
COLLEGE_STATION = "30.6280012 -96.3344068"


@contextlib.contextmanager
def rig(net, answer, *params, port=A, down=False, **kw):
    """A server, a Kamailio that asks it, a client. down: the server's port is closed."""
    lost.needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        server = lost.Server(net, port, answer)
        if down:
            server.close()
        kam = lost.Kamailio(net, folder, [("server", f"http://127.0.0.1:{port}/lost"), *params], **kw)
        yield server, kam, lost.Client(net)
        log = kam.text()
        assert kam.stop() == 0, log
        if not down:
            server.close()
        assert "CRITICAL" not in log and "ERROR" not in log, log


def test_a_point_is_asked_once(net):
    """The numbers arrive as they came. A second caller inside the boundary needs no query, one outside of it does."""
    def answer(method, path, body):
        south = 30 if ">30." in body else 40
        return lost.mapping(boundary=lost.by_value(lost.square(south, -97)), ident=str(south), uri=f"sip:psap{south}@psap.test")

    with rig(net, answer, ("boundary", "value")) as (server, kam, client):
        got = client.ask(lost.pidf(lost.point(COLLEGE_STATION)))
        assert got["result"] == "1" and got["uri"] == "sip:psap30@psap.test" and got["cached"] == "0", got
        assert got["name"] == "Test PSAP" and got["number"] == "911" and got["service"] == lost.SOS and got["method"] == "cid", got
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
    second = lost.Server(net, B, good)
    with rig(net, faulty, ("server", f"http://127.0.0.1:{B}/lost"), ("timeout", 1000), ("down_time", 600000), ("deadline", 20000), ("max_response", 65536), down=fault == "down") as (
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
    with rig(net, faulty, ("timeout", 1000), ("max_response", 65536), down=fault == "down") as (server, kam, client):
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
