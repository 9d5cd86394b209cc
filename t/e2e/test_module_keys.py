# SPDX-License-Identifier: GPL-2.0-or-later
"""The Kamailio module with a key (ng_key_file): real calls, wrong and changing keys, different
clocks, replayed requests and forged replies."""
import os
import tempfile

import ng
import relay
from run import cases
from test_module import BOTH, Hole, answering, needs, place, proxy, quoted


def key_file(folder, *keys, name="ng.key"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(k.hex() + "\n" for k in keys))
    os.chmod(path, 0o600)
    return path


def signing(net, folder, path, **kw):
    return proxy(net, folder, XC_TIMEOUT=2000, XC_NG_KEY_FILE=quoted(path), **kw)


OLD, NEW = bytes(range(32)), bytes(range(100, 132))
KEYS = {"old": OLD, "new": NEW}


@cases(("replies wait", "old", "old"), ("replies suspended", "old", "old"), ("during a change", "new old", "old"), ("during a change", "old new", "new old"))
def test_signed_calls(net, how, theirs, ours):
    """The daemon accepts only signed requests: the module signs offers, answers, deletes and pings.
    While keys change, it has both."""
    needs()
    theirs, ours = ([KEYS[w] for w in words.split()] for words in (theirs, ours))
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", f"--ng-key-file={key_file(folder, *theirs, name='daemon.key')}", addresses=BOTH,
                                ng_key=theirs[0]).wait_ready()
        kam = signing(net, folder, key_file(folder, *ours), **({"XC_ASYNC_REPLIES": 1} if how == "replies suspended" else {}))
        callee = answering(net, folder)
        place(net, folder, 10, rate=10)
        assert daemon.client.call("list")["calls"] == []
        for name in ("failures", "refused", "stray_replies", "forged_replies"):
            assert kam.counter(name) == 0, kam.rpc("cnt.grp_get_all", "xcipher") + kam.text()
        assert "1 of 1" in kam.rpc("xcipher.ping") or kam.nodes()[0]["state"] == "up"
        dropped = daemon.client.call("statistics")["statistics"]["controlstatistics"]["dropped"]
        assert not any(map(int, dropped.values())), dropped
        net.stop(callee.process)
        log = kam.text()
        assert kam.stop() == 0, log
        assert OLD.hex() not in log and NEW.hex() not in log
        assert "ERROR" not in log and "CRITICAL" not in log, log
        assert daemon.stop() == 0, daemon.text()


@cases(("another key", "new", "forged"), ("no key", "", "unsigned"))
def test_a_proxy_without_the_key_is_not_served(net, _what, ours, reason):
    """The call is refused as if no node answered, and the daemon's log says why."""
    needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", f"--ng-key-file={key_file(folder, OLD, name='daemon.key')}", addresses=BOTH,
                                ng_key=OLD).wait_ready()
        more = {"XC_NG_KEY_FILE": quoted(key_file(folder, KEYS[ours]))} if ours else {}
        kam = proxy(net, folder, XC_TIMEOUT=200, **more)
        place(net, folder, expect=503)
        assert int(daemon.client.call("statistics")["statistics"]["controlstatistics"]["dropped"][reason]) > 0
        assert "ng message from 127.0.0.1:" in daemon.text() and "--ng-key-file" in daemon.text(), daemon.text()
        assert kam.counter("forged_replies") == 0
        kam.stop()
        assert daemon.stop() == 0, daemon.text()


def skewed(datagram, seconds):
    """A request signed by a clock that differs."""
    cookie, _, body = datagram.partition(b" ")
    plain, at, _ = cookie.rsplit(b"~", 2)
    return ng.sign(OLD, plain, body, int(at) + seconds) + b" " + body


@cases((-300,), (300,))
def test_a_clock_that_differs_is_told(net, seconds):
    """A proxy between module and daemon signs requests again, with another time."""
    needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", f"--ng-key-file={key_file(folder, OLD, name='daemon.key')}", addresses=BOTH,
                                ng_key=OLD).wait_ready()
        there = ng.socket_in(net.gateway)
        there.connect(("127.0.0.1", 22222))

        def forward(datagram):
            there.send(skewed(datagram, seconds))
            return []

        hole = Hole(net, 22333, forward)
        kam = proxy(net, folder, XC_NG_KEY_FILE=quoted(key_file(folder, OLD)), XC_NODES=quoted("udp:127.0.0.1:22333"), XC_TIMEOUT=200)
        place(net, folder, expect=503)
        assert int(daemon.client.call("statistics")["statistics"]["controlstatistics"]["dropped"]["clock"]) > 0
        assert "compare both clocks" in daemon.text(), daemon.text()
        hole.close()
        kam.stop()
        assert daemon.stop() == 0, daemon.text()


def test_captured_requests_and_forged_replies(net):
    """An attacker on the path repeats each request twice from another address. It also forges
    replies ahead of the daemon's: unsigned, with an invented MAC, and the real reply to another
    request. Each call is executed once, and no forgery has an effect."""
    needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", f"--ng-key-file={key_file(folder, OLD, name='daemon.key')}", addresses=BOTH,
                                ng_key=OLD).wait_ready()
        there, thief = ng.socket_in(net.gateway), ng.socket_in(net.gateway)
        for s in (there, thief):
            s.connect(("127.0.0.1", 22222))
        there.settimeout(30)
        earlier, errors = [], []

        def between(datagram):
            there.send(datagram)
            reply = there.recv(65536)
            thief.send(datagram)
            thief.send(datagram)
            plain, at, _ = datagram.partition(b" ")[0].rsplit(b"~", 2)
            error = b" d6:result5:error12:error-reason6:forgede"
            forged = [plain + error, datagram.partition(b" ")[0] + error, b"~".join((plain, at, b"0" * 32)) + error]
            if earlier:
                forged.append(b"~".join((plain, at, earlier[-1].partition(b" ")[0].rsplit(b"~", 1)[1])) + b" " + earlier[-1].partition(b" ")[2])
            earlier.append(reply)
            errors.append(len(forged))
            return [*forged, reply]

        hole = Hole(net, 22333, between)
        kam = signing(net, folder, key_file(folder, OLD), XC_NODES=quoted("udp:127.0.0.1:22333"))
        answering(net, folder)
        place(net, folder, 10, rate=10)
        counts = daemon.client.call("statistics")["statistics"]["controlstatistics"]
        assert int(counts["totaloffercount"]) == 10 and int(counts["totalanswercount"]) == 10, counts
        assert int(counts["dropped"]["replay"]) >= 60, counts
        assert kam.counter("refused") == kam.counter("failures") == 0, kam.text()
        assert kam.counter("forged_replies") + kam.counter("stray_replies") >= 90, kam.rpc("cnt.grp_get_all", "xcipher")
        assert kam.counter("forged_replies") > 0 and "does the daemon's --ng-key-file hold the same key" in kam.text()
        hole.close()
        kam.stop()
        assert daemon.stop() == 0, daemon.text()


def test_a_key_file_that_others_read_stops_the_proxy(net):
    needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        path = key_file(folder, OLD)
        os.chmod(path, 0o644)
        try:
            signing(net, folder, path)
        except RuntimeError as e:
            assert "so others can read or change it" in str(e) and OLD.hex() not in str(e), e
        else:
            raise AssertionError("it started")
