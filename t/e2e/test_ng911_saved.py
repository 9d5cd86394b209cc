# SPDX-License-Identifier: GPL-2.0-or-later
"""Emergency calls that a proxy saves, whatever the next server does: it refuses them, redirects them, cannot be reached, or rings for too long."""
import contextlib
import os
import re
import socket
import ssl
import tempfile
import threading

import lost
import netns
import ng
import relay
from baresip import wait_for
from test_ng911 import TERMINALS, network, prepare

PREPARE = prepare

STATUSES = {"moved": "302 Moved Temporarily", "forbidden": "403 Forbidden", "unknown": "404 Not Found", "gone": "410 Gone", "media": "415 Unsupported Media Type",
            "extension": "420 Bad Extension", "password": "407 Proxy Authentication Required", "decline": "603 Decline", "none": "606 Not Acceptable"}


def default(name, value):
    """A default of the configuration of a proxy."""
    import esinet
    with open(os.path.join(esinet.CONFIG, name), encoding="utf-8") as f:
        return int(re.search(rf"^#!define {value} (\d+)$", f.read(), re.M)[1])


def refuses(peer):
    """This server answers each INVITE by the user in its Route."""
    from test_ng911_states import answer

    def serve():
        while True:
            stream, m = peer.got.get()
            peer.got_any = True
            user = re.search(r"sip:(\w+)@", m.get("Route"))
            if m.first.startswith("INVITE "):
                peer.invites += 1
                answer(stream, m, STATUSES[user[1]])
            elif m.first.startswith("OPTIONS "):
                peer.kept = True
                answer(stream, m, "200 OK")
    peer.kept = peer.got_any = False
    peer.invites = 0
    threading.Thread(target=serve, daemon=True).start()
    return peer


@contextlib.contextmanager
def names(net, hosts, records=None):
    """What Network's "before" needs for a server that asks its own DNS server."""
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder:
        dns = lost.Dns(net, folder, records or {}, hosts)
        yield "/bin/sh", "-c", f'mount --bind {dns.conf} "$(readlink -f /etc/resolv.conf)" && exec "$@"', "sh"
        dns.close()


def history(invite):
    """Users and causes of the PSAPs that were tried before, and the user of the last one."""
    entries = invite.get("History-Info").split(",")[1:]
    return [re.search(r"sip:(\w+)@[^?>]*(?:\?Reason=SIP%3Bcause%3D(\d+))?>", e).groups() for e in entries]


def test_no_refusal_and_no_loop_ends_a_call(net):
    """A PSAP may answer what it likes: the next one gets the call. After five PSAPs, and in a loop of diversions, it is the last resort."""
    staff = "other sip:x@y default sip:taker1@10.200.2.2:5061;transport=tls|sip:taker2@10.200.3.2:5061;transport=tls"
    keep = "sip:keepalive@10.201.0.3:5061;transport=tls sip:keepalive@10.201.0.3:5996;transport=tls"
    with names(net, {"psap.esinet.example": "10.201.0.3", "forged.example": "10.201.0.3"}) as resolver, \
            network(net, psap={"XC_STAFF": staff}, esrp={"XC_KEEP": keep, "XC_NO_REPLY": 4000}, before={"esrp": resolver}) as n:
        import esinet
        import ng911
        from test_ng911_states import Peer
        ng911.PACKETS, story, two = 5, ng911.Story(False), n.takers[1]
        n.takers[0].busy = True
        near, peer = n.lost.psap_at(*ng911.HERE), refuses(Peer(net, n, "psap", esinet.PSAP, 5996))
        uri = {name: f"sip:{name}@{esinet.PSAP}:5996;transport=tls" for name in STATUSES} | {near: esinet.uri(near, esinet.PSAP)}
        n.esrp.rpc("htable.sets", "state", uri[near], "closed")

        def call(*chain):
            for one, other in zip((near, *chain), chain):
                n.esrp.rpc("htable.sets", "divert", uri[one], uri[other])
            dialog, invite = ng911.connected(n, story, ng911.HERE, two)
            ng911.hang_up(n, story, dialog, two)
            return history(invite)

        closed = [(near, "480")]
        tried = call("moved", "forbidden", "unknown", "media", "gone")
        assert tried == closed + [(u, "480") for u in ("moved", "forbidden", "unknown", "media")] + [("default", None)]
        tried = call("gone", "extension", "password", "none")
        assert tried == closed + [("gone", "480"), ("extension", "480"), ("password", "480"), ("none", "480"), ("default", None)], tried
        # Three are closed, and the last one has no diversion.
        for name in ("moved", "decline"):
            n.esrp.rpc("htable.sets", "state", uri[name], "closed")
        tried = call("moved", "decline")
        assert tried == closed + [("moved", "480"), ("decline", "480"), ("default", None)], tried
        # Two PSAPs are diverted to each other.
        tried = call("moved", near)
        assert tried == [(near, "480"), ("moved", "480"), (near, "480"), ("moved", "480"), (near, "480"), ("default", None)], tried
        wait_for("OPTIONS at the second server of XC_KEEP", lambda: peer.kept)
        # A server with a certificate of another address gets nothing. The next one does.
        impostor = refuses(Peer(net, n, "vsp", esinet.PSAP, 5994))
        uri["impostor"] = f"sip:impostor@{esinet.PSAP}:5994;transport=tls"
        tried = call("impostor")
        assert tried == closed + [("impostor", "503"), ("default", None)] and not impostor.got_any, tried
        impostor.close()
        # Likewise names (RFC 5922), on a new connection, and on open ones: both servers have the name psap.esinet.example.
        right, wrong = (refuses(Peer(net, n, "psap", esinet.PSAP, port)) for port in (5993, 5992))
        uri["moved"], uri["forbidden"] = (f"sip:{user}@psap.esinet.example:{port};transport=tls" for user, port in (("moved", 5993), ("forbidden", 5996)))
        uri["unknown"], uri["forged"] = (f"sip:{user}@forged.example:{port};transport=tls" for user, port in (("unknown", 5996), ("forged", 5992)))
        peer.invites = 0
        tried = call("moved", "forbidden", "unknown", "forged")
        assert tried == closed + [("moved", "480"), ("forbidden", "480"), ("unknown", "503"), ("forged", "503"), ("default", None)], tried
        assert (right.invites, peer.invites, wrong.got_any) == (1, 1, False), (right.invites, peer.invites, wrong.got_any)
        for server in (right, wrong, peer):
            server.close()


def test_no_failure_of_an_esrp_ends_a_call(net):
    """The ESRP that the caller names refuses the call, the next one is silent, and so is the location server."""
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher_lost.so")):
        from run import Skip
        raise Skip("xcipher_lost.so is not built")
    silent = []

    def ready(n):
        silent.append(n.silent_server(5998))
    values = {"XC_ESRP": "sip:sos@10.201.0.3:5998;transport=tls", "XC_ESRP_2": "sip:sos@10.201.0.2:5061;transport=tls", "XC_KEEP": None, "XC_NO_REPLY": 3000,
              "XC_LIS": "https://10.201.0.4:8999/held", "XC_LOST_DEADLINE_MS": 600000}
    if netns.HAVE_IPV6:
        values["XC_ADDRESS_6"] = "[fd00:1::1]"
    with network(net, ready=ready, vsp=values) as n:
        import esinet
        import ng911
        from test_ng911_states import Peer
        ng911.PACKETS, story, two = 5, ng911.Story(False), n.takers[1]
        n.psap.rpc("htable.sets", "takers", "default", two.uri())
        peer = refuses(Peer(net, n, "esrp", esinet.ESRP, 5997))
        # A failed location server must not make the VSP wait for the silent ESRP as long as for a location.
        dialog, _ = ng911.connected(n, story, ng911.HERE, two, location=False, route=f"sip:forbidden@{esinet.ESRP}:5997;transport=tls")
        ng911.hang_up(n, story, dialog, two)
        tried = [line for _, line in n.said("does not take it")]
        assert len(tried) == 2 and "forbidden@" in tried[0] and ":5998" in tried[1], tried
        call_by_ipv6(n, two)
        # A decision of the PSAPs is final: no other ESRP is asked.
        dialog = n.caller.call(*ng911.HERE, "urn:service:sos", False, f"sip:decline@{esinet.ESRP}:5997;transport=tls")
        assert dialog.answered() == 603, dialog.reply.first
        dialog.close()
        peer.close()
    silent[0].close()


def call_by_ipv6(n, taker):
    """The caller's signalling comes by IPv6, the network has IPv4."""
    import esinet
    if not netns.HAVE_IPV6:
        return
    raw = ng.socket_in(n.net.terminal["caller"], socket.AF_INET6, socket.SOCK_STREAM)
    raw.settimeout(60)
    raw.connect(("fd00:1::1", 5061))
    context = ssl.create_default_context(cafile=n.ca)
    context.check_hostname = False
    stream = esinet.Stream(context.wrap_socket(raw))
    dialog = n.caller.call(30.62, -96.34, "urn:service:sos", False, f"sip:sos@{esinet.ESRP}:5061;transport=tls", stream)
    assert dialog.answered() == 200, dialog.reply.first
    assert "[fd00:1::1]" in dialog.routes[0][1] and esinet.VSP in dialog.routes[1][1], dialog.routes
    before = taker.byes
    dialog.end()
    wait_for("the BYE", lambda: taker.byes == before + 1)
    raw.close()


def test_call_takers_in_turn(net):
    """With the ratio of the shipped time limits: a PSAP rings at one call taker after the other, and nobody cancels the call.
    Call takers whose names have no address are skipped."""
    limits = {p: default(f"{p}.cfg", "XC_NO_ANSWER") for p in ("vsp", "esrp", "psap")}
    assert limits["vsp"] > 6 * limits["esrp"] and limits["esrp"] > 4 * limits["psap"] and default("ng911-common.cfg", "XC_SETUP") > limits["vsp"], limits
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder:
        dns = lost.Dns(net, folder, {"silent.invalid": None})
        resolver = ("/bin/sh", "-c", f'mount --bind {dns.conf} "$(readlink -f /etc/resolv.conf)" && exec "$@"', "sh")
        values = {p: {"XC_NO_ANSWER": v // 5} for p, v in limits.items()}
        # tm notices a limit only after XC_NO_REPLY.
        values["psap"]["XC_NO_REPLY"] = 4000
        with network(net, before={"psap": resolver, "esrp": resolver}, **values) as n:
            import ng911
            ng911.PACKETS, story, (one, two) = 5, ng911.Story(False), n.takers
            near, nowhere = n.lost.psap_at(*ng911.HERE), "sip:{}@nowhere.invalid:5061;transport=tls"
            n.psap.rpc("htable.sets", "takers", near, " ".join((nowhere.format("x"), one.uri(), nowhere.format("y"), two.uri())))
            one.waits = True
            dialog, invite = ng911.connected(n, story, ng911.HERE, two)
            assert history(invite) == [(near, None)] and one.cancels == 1, (invite.headers, one.cancels)
            assert "nowhere.invalid" in dns.asked, dns.asked
            ng911.hang_up(n, story, dialog, two)
            # The 13th and the 16th of a list are tried, too.
            n.psap.rpc("htable.sets", "takers", near, " ".join([one.uri()] * 15 + [two.uri()]))
            one.waits, one.busy = False, True
            dialog, invite = ng911.connected(n, story, ng911.HERE, two)
            assert history(invite) == [(near, None)], invite.headers
            ng911.hang_up(n, story, dialog, two)
            canceled_while_a_name_is_looked_up(n, near, dns)
        dns.close()


def canceled_while_a_name_is_looked_up(n, near, dns):
    """A PSAP whose name server is silent costs one question. A caller who hangs up meanwhile puts no PSAP out of service."""
    import esinet
    import ng911
    from test_ng911_states import entry
    uri, default_uri, silent = esinet.uri(near, esinet.PSAP), esinet.uri("default", esinet.PSAP), "sip:psap@silent.invalid:5061;transport=tls"
    n.esrp.rpc("htable.sets", "divert", uri, silent)
    n.esrp.rpc("htable.sets", "state", uri, "closed")
    dialog = n.caller.call(*ng911.HERE)
    wait_for("the question", lambda: "silent.invalid" in dns.asked)
    assert dialog.cancel() == 487
    wait_for("the end of the look-up", lambda: n.said('failed to resolve "silent.invalid"'))
    # The process that has waited also routes the next call.
    n.esrp.rpc("htable.sets", "divert", uri, default_uri)
    n.psap.rpc("htable.sets", "takers", "default", n.takers[1].uri())
    dialog, _ = ng911.connected(n, ng911.Story(False), ng911.HERE, n.takers[1])
    dialog.end()
    assert [entry(n.esrp, "state", u) for u in (silent, default_uri)] == [None, None] and dns.asked.count("silent.invalid") == 1, dns.asked


test_no_refusal_and_no_loop_ends_a_call.terminals = test_no_failure_of_an_esrp_ends_a_call.terminals = test_call_takers_in_turn.terminals = TERMINALS
