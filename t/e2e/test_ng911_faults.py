# SPDX-License-Identifier: GPL-2.0-or-later
"""Emergency calls while servers fail: no call is lost that the configurations of kamailio-cfg/ng911 could have saved."""
import contextlib
import os
import re
import socket
import sqlite3
import ssl
import tempfile
import threading

import lost
import ng
import relay
import test_lost
from baresip import wait_for
from run import Skip
from test_ng911 import TERMINALS, network, prepare, refused

PREPARE = prepare

TAKERS = "sip:taker1@10.200.2.2:5061;transport=tls"
SERVERS = "src 10.201.0.0/24 dst 10.201.0.0/24".split()


def connected(n, taker):
    import ng911
    ng911.PACKETS = 5
    return ng911.connected(n, ng911.Story(), ng911.HERE, taker)


def hang_up(n, dialog, taker):
    import ng911
    ng911.hang_up(n, ng911.Story(), dialog, taker)


def cut(n):
    """All connections between servers: how many."""
    return len(n.net.run(n.net.gateway, "ss", "-HK", *SERVERS).stdout.splitlines())


def store(folder, name):
    """A database for XC_STORE."""
    path = os.path.join(folder, name + ".sqlite")
    with contextlib.closing(sqlite3.connect(path)) as db:
        for part in ("standard", "dialog"):
            with open(f"/usr/share/kamailio/db_sqlite/{part}-create.sql", encoding="ascii") as f:
                db.executescript(f.read())
    return {"XC_STORE": "sqlite:///" + path}


def stored(folder, proxy):
    """Calls in its database."""
    with contextlib.closing(sqlite3.connect(os.path.join(folder, proxy.name + ".sqlite"))) as db:
        return db.execute("SELECT count(*) FROM dialog").fetchone()[0] + db.execute("SELECT count(*) FROM dialog_vars").fetchone()[0]


def records(proxy, dialog):
    """The records of this call."""
    return [line for line in proxy.text().splitlines() if "end_time=" in line and f"; id={dialog.id};" in line]


def test_calls_survive_their_servers(net):
    """Each proxy is killed and restarted in mid-call, or ends in order, after which it knows the call. Connections are cut between calls, while one rings, and in mid-call."""
    with tempfile.TemporaryDirectory(prefix="xcipher-store-") as folder, \
            network(net, psap={"XC_TAKERS": TAKERS, **store(folder, "psap")}, esrp=store(folder, "esrp"), vsp=store(folder, "vsp")) as n:
        import ng911
        taker = n.takers[0]
        for end in ("kill", "stop"):
            for proxy in (n.esrp, n.psap, n.vsp):
                dialog, _ = connected(n, taker)
                getattr(proxy, end)()
                ng911.talk(dialog.media, taker.media[-1])
                proxy.start()
                ng911.talk(dialog.media, taker.media[-1])
                if proxy is n.vsp:
                    dialog.reconnect()
                hang_up(n, dialog, taker)
                if end == "stop":
                    wait_for("the record", lambda p=proxy, d=dialog: len(records(p, d)) == 1)
                    assert "caller=sip:caller@vsp.example; " in records(proxy, dialog)[0], records(proxy, dialog)
                    assert not stored(folder, proxy), "a call is stored twice"
        if not cut(n):
            raise Skip("the kernel cannot destroy connections: CONFIG_INET_DIAG_DESTROY")
        for _ in range(3):
            dialog, _ = connected(n, taker)
            assert cut(n)
            ng911.talk(dialog.media, taker.media[-1])
            hang_up(n, dialog, taker)
            assert cut(n)
        taker.waits = True
        dialog = n.caller.call(*ng911.HERE)
        dialog.ringing()
        assert cut(n)
        taker.pick_up()
        assert dialog.answered() == 200, dialog.reply.first
        taker.media[-1].keyed()
        ng911.talk(dialog.media, taker.media[-1])
        hang_up(n, dialog, taker)


def test_a_killed_proxy_has_its_records(net):
    """With XC_STORE_SECONDS. It knows the calls that were answered before, and forgets them when they end."""
    names = "psap", "esrp", "vsp"
    with tempfile.TemporaryDirectory(prefix="xcipher-store-") as folder, \
            network(net, **{name: {**store(folder, name), "XC_STORE_SECONDS": 1, **({"XC_TAKERS": TAKERS} if name == "psap" else {})} for name in names}) as n:
        taker = n.takers[0]
        dialog, _ = connected(n, taker)
        for proxy in n.proxies():
            wait_for("the call in the database", lambda p=proxy: stored(folder, p) > 1)
        for proxy in n.proxies():
            proxy.kill()
            proxy.start()
        dialog.reconnect()
        hang_up(n, dialog, taker)
        for proxy in n.proxies():
            wait_for("the record", lambda p=proxy: len(records(p, dialog)) == 1)
            assert "caller=sip:caller@vsp.example; " in records(proxy, dialog)[0], records(proxy, dialog)
            wait_for("an empty database", lambda p=proxy: not stored(folder, p))


def test_a_psap_that_does_not_answer(net):
    """One rings and nobody picks up; one has an expired certificate. The next one gets the call."""
    with network(net, esrp={"XC_NO_ANSWER": 8000}, psap={"XC_TAKERS": TAKERS}) as n:
        import esinet
        import ng911
        one, two = n.takers
        near = n.lost.psap_at(*ng911.HERE)
        n.psap.rpc("htable.sets", "takers", "default", two.uri())
        one.waits = True
        dialog, invite = connected(n, two)
        assert f"{near}@" in invite.get("History-Info") and "cause%3D503" in invite.get("History-Info"), invite.headers
        wait_for("the end at the first taker", lambda: one.cancels == 1)
        hang_up(n, dialog, two)

        expired = n.made.make("expired", esinet.PSAP, -1)
        context = ssl.create_default_context(cafile=n.ca)
        context.load_cert_chain(*expired)
        assert refused(net, esinet.ESRP, context) and refused(net, esinet.PSAP, context)
        server, tries = expired_server(net, expired, n.ca)
        n.esrp.rpc("htable.sets", "divert", esinet.uri(near, esinet.PSAP), f"sip:expired@{esinet.PSAP}:5997;transport=tls")
        n.esrp.rpc("htable.sets", "state", esinet.uri(near, esinet.PSAP), "closed")
        dialog, invite = connected(n, two)
        assert "expired@" in invite.get("History-Info") and tries and not any(tries), (invite.headers, tries)
        hang_up(n, dialog, two)
        server.close()


def joined(folder, certificate):
    """One file with certificate and key."""
    path = os.path.join(folder, os.path.basename(certificate[0]) + ".pem")
    with open(path, "wb") as out:
        for name in certificate:
            with open(name, "rb") as f:
                out.write(f.read())
    return path


def test_a_lost_server_may_lie(net):
    """Whatever the ESRP's LoST server answers, and whichever certificate it has: the call takes the default route, and the next one is not disturbed."""
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher_lost.so")):
        raise Skip("xcipher_lost.so is not built")
    said, where, servers = [""], ("10.201.0.4", 8445), []

    def answer(*_):
        if said[0] is None:
            raise ConnectionError
        return said[0]

    def serve(n, certificate):
        servers.append(lost.Server(n.net, where[1], answer, joined(n.folder, certificate), address=where[0]))

    def ready(n):
        serve(n, n.certificates["lost"])
    with network(net, ready=ready, esrp={"XC_LOST": "https://{}:{}/lost".format(*where)}) as n:
        import esinet
        import ng911
        one, two = n.takers
        one.silent = two.silent = True
        for psap, taker in (("good", one), ("default", two)):
            n.psap.rpc("htable.sets", "takers", psap, taker.uri())

        def call(taker):
            before = len(taker.invites)
            dialog = n.caller.call(*ng911.HERE)
            assert dialog.answered() == 200 and len(taker.invites) == before + 1, (said[0], dialog.reply.first, n.esrp.text()[-2000:])
            dialog.end()
            return taker.invites[-1].get("History-Info")
        good = lost.mapping(esinet.uri("good", esinet.PSAP), expires="NO-CACHE")
        other = {"garbage": "<findServiceResponse", "bomb": test_lost.bomb(good), "external": test_lost.external(good), "huge": lost.mapping(more="<!-- " + 1200000 * "x" + " -->"),
                 "status": (500, good), "cut": None, "not found": lost.errors("notFound"), "another answer": lost.boundary_response(lost.square(30, -97)), "name of an error": lost.errors("x" * 100000)}
        for reply in other.values():
            said[0] = reply
            assert history(call(two)) == ["default"]
            said[0] = good
            assert history(call(one)) == ["good"]
        far = f"x@{esinet.PSAP}:5999;transport=tls"
        uris = {"tel:911": 0, f"sip:{far}": 1, "sip:x@127.0.0.1:5094;transport=udp": 1, f"sip:{'a' * 60000}@{esinet.PSAP}:5061;transport=tls": 0, "sip:x@[": 1, "sip:": 1, esinet.uri("sos", esinet.ESRP): 0,
                "http://x/": 1}
        for uri, tried in uris.items():
            said[0] = lost.mapping(uri, expires="NO-CACHE")
            assert len(history(call(two))) <= 1 + tried, (uri[:80], two.invites[-1].get("History-Info"))
            said[0] = good
            assert history(call(one)) == ["good"]
        for certificate in (n.made.make("late", where[0], -1), n.made.make("elsewhere", esinet.PSAP), None):
            servers.pop().close()
            if certificate:
                serve(n, certificate)
            assert history(call(two)) == ["default"]
        if servers:
            servers.pop().close()


def history(text):
    """Users of the PSAPs that were tried."""
    return re.findall(r"<sip:([^@>?]*)[^>]*>;index=1", text)


def expired_server(net, certificate, ca):
    """At the PSAP's address. Whether each connection brought something."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
    context.load_cert_chain(*certificate)
    listener, tries = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM), []
    listener.bind(("10.201.0.3", 5997))
    listener.listen(8)

    def serve():
        while True:
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(raw, server_side=True) as s:
                    tries.append(bool(s.recv(1000)))
            except OSError:
                tries.append(False)
    threading.Thread(target=serve, daemon=True).start()
    return listener, tries


test_a_lost_server_may_lie.terminals = test_a_killed_proxy_has_its_records.terminals = test_calls_survive_their_servers.terminals = test_a_psap_that_does_not_answer.terminals = TERMINALS
