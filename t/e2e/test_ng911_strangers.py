# SPDX-License-Identifier: GPL-2.0-or-later
"""What a caller without a certificate can do to the calls of others: requests and replies of calls that never began, and requests of a call that go elsewhere."""
import contextlib
import os
import socket
import tempfile

import lost
import ng
from baresip import wait_for
from test_ng911 import TERMINALS, network, prepare

PREPARE = prepare

WITHIN = ("INVITE", "INFO", "MESSAGE", "UPDATE", "BYE")


def route(*hosts):
    return [("Route", f"<sip:{h};transport=tls;lr>") for h in hosts]


class Stranger:
    """A connection with the VSP."""

    def __init__(self, n):
        self.stream = n.caller.connect()[0]
        self.port = self.stream.socket.getsockname()[1]

    def send(self, method, target, hops, to="<urn:service:sos>;tag=invented", call=None):
        """Sends a request and returns the branch of its Via."""
        branch = "z9hG4bK" + os.urandom(8).hex()
        self.stream.send(f"{method} {target} SIP/2.0", [("Via", f"SIP/2.0/TLS 10.200.1.2:{self.port};rport;branch={branch}"), *hops, ("From", "<sip:caller@vsp.example>;tag=c"), ("To", to),
                                                        ("Call-ID", call or branch), ("CSeq", f"7 {method}"), ("Max-Forwards", "70"),
                                                        ("Contact", f"<sip:caller@10.200.1.2:{self.port};transport=tls>")])
        return branch

    def status(self, *args, **kw):
        """Sends a request and returns the status of the final reply."""
        branch = self.send(*args, **kw)
        while (m := self.stream.receive()).status() < 200 or branch not in m.get("Via"):
            pass
        return m.status()

    def done(self):
        """Returns when the VSP has read all that was sent on this connection."""
        assert self.status("OPTIONS", "sip:keepalive@10.201.0.1", (), "<sip:keepalive@10.201.0.1>") == 200


@contextlib.contextmanager
def resolver(net, **kw):
    """A DNS server, and the command for Network's "before" that makes a server ask it."""
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder:
        dns = lost.Dns(net, folder, {}, **kw)
        yield dns, ("/bin/sh", "-c", f'mount --bind {dns.conf} "$(readlink -f /etc/resolv.conf)" && exec "$@"', "sh")
        dns.close()


def test_no_name_of_a_stranger_is_looked_up(net):
    """A look-up blocks a process, and the DNS of a stranger may be silent. Only names that the two sides of a call have given are looked up."""
    with resolver(net, hosts={"taker1.esinet.example": "10.200.2.2"}) as (dns, before), \
            network(net, vsp={"XC_DIALOG_RATE": 1000}, before=dict.fromkeys(("vsp", "esrp", "psap"), before)) as n:
        import esinet
        import ng911
        ng911.PACKETS, story, taker = 5, ng911.Story(False), n.takers[0]
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        stranger = Stranger(n)
        vsp, esrp, psap = (f"{a}:5061" for a in (esinet.VSP, esinet.ESRP, esinet.PSAP))
        plain, named = "sip:x@10.201.0.9:5999;transport=tls", "sip:x@{}.invalid:5061;transport=tls"

        def ask(name, **kw):
            """Names hosts of a stranger, with each method, to each proxy."""
            for way in ((vsp,), (vsp, esrp), (vsp, esrp, psap)):
                for method in WITHIN:
                    assert stranger.status(method, named.format(name), route(*way), **kw) == 404, (method, way)
                    assert stranger.status(method, plain, route(*way, f"{name}.invalid"), **kw) == 404, (method, way)
                    assert stranger.status(method, plain.replace(";", f";maddr={name}.invalid;"), route(*way), **kw) == 404, (method, way)
                stranger.send("ACK", named.format(name), route(*way), **kw)
            stranger.done()
            assert not [a for a in dns.asked if a.endswith(".invalid")], dns.asked
        ask("never")
        dialog, _ = ng911.connected(n, story, ng911.HERE, taker)
        ng911.hang_up(n, story, dialog, taker)
        # The Contact of the call taker has a name.
        uri = taker.uri()
        taker.uri = lambda: uri.replace(taker.address, "taker1.esinet.example")
        dialog, _ = ng911.connected(n, story, ng911.HERE, taker)
        assert "taker1.esinet.example" in dialog.target, dialog.target
        ng911.hang_up(n, story, dialog, taker)
        assert "taker1.esinet.example" in dns.asked, dns.asked
        stranger.stream.socket.close()


def test_no_reply_of_a_stranger_passes(net):
    """Its second Via could send it anywhere. In a server's own reply, a caller may have written that Via."""
    with resolver(net) as (dns, before), network(net, before={"vsp": before}) as n:
        import esinet
        from test_ng911_states import Peer, answer
        peer, stranger = Peer(net, n, "psap", esinet.PSAP, 5996), Stranger(n)
        for status in ("200 OK", "180 Ringing", "486 Busy Here"):
            stranger.stream.send(f"SIP/2.0 {status}", [("Via", f"SIP/2.0/TLS {esinet.VSP}:5061;branch=z9hG4bKno"), ("Via", f"SIP/2.0/TLS {esinet.PSAP}:5996;branch=z9hG4bKnone"),
                                                       ("From", "<sip:x@y>;tag=1"), ("To", "<sip:y@x>;tag=2"), ("Call-ID", "stray"), ("CSeq", "1 INVITE")])
        stranger.done()
        # The first message of the VSP on that way is another one.
        branch = stranger.send("INFO", f"sip:x@{esinet.PSAP}:5996;transport=tls", route(f"{esinet.VSP}:5061"))
        s, m = peer.next()
        assert m.first.startswith("INFO ") and branch in m.get("Call-ID"), m.first
        for via in ("stray.invalid:5061", f"{esinet.PSAP}:5996;maddr=stray.invalid", f"{esinet.PSAP}:5996;received=stray.invalid"):
            s.send("SIP/2.0 200 OK", [("Via", f"SIP/2.0/TLS {esinet.VSP}:5061;branch=z9hG4bKno"), ("Via", f"SIP/2.0/TLS {via};branch=z9hG4bKnone"),
                                      ("From", "<sip:x@y>;tag=1"), ("To", "<sip:y@x>;tag=2"), ("Call-ID", "stray"), ("CSeq", "1 INVITE")])
        answer(s, m, "200 OK")
        while (m := stranger.stream.receive()).status() != 200 or branch not in m.get("Call-ID"):
            pass
        assert not [a for a in dns.asked if a.endswith(".invalid")], dns.asked
        peer.close()


def test_endings_are_limited(net):
    """ACK and BYE of calls that never began are limited, because each could open a connection."""
    with network(net, vsp={"XC_DIALOG_RATE": 3}) as n:
        import esinet
        import ng911
        stranger, dead = Stranger(n), f"sip:x@{esinet.PSAP}:5999;transport=tls"

        def too_many():
            got = [stranger.send("BYE", dead, route(f"{esinet.VSP}:5061")) for _ in range(20)]
            statuses = []
            while got:
                m = stranger.stream.receive()
                if m.status() >= 200 and m.get("Call-ID") in got:
                    got.remove(m.get("Call-ID"))
                    statuses.append(m.status())
            return 503 in statuses
        wait_for("a refusal", too_many)
        # The end of a call that the VSP knows has no limit.
        taker = n.takers[0]
        taker.silent = True
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        dialog = n.caller.call(*ng911.HERE)
        assert dialog.answered() == 200, dialog.reply.first
        for _ in range(50):
            stranger.send("BYE", dead, route(f"{esinet.VSP}:5061"))
        dialog.request("BYE", 2)
        while (m := dialog.stream.receive()).get("CSeq") != "2 BYE":
            pass
        assert m.status() == 200, m.first
        dialog.close()
        stranger.stream.socket.close()


def test_no_call_forges_records(net):
    """A Call-ID, a URI or an identifier may be on two lines, or contain what looks like a field of a record."""
    with network(net) as n:
        import esinet
        from test_ng911_states import Peer
        taker, caller = n.takers[0], Stranger(n)
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        server = Peer(net, n, "vsp", esinet.VSP, 5995)
        caller.done()
        links = (caller.stream, "10.200.1.2", caller.port), (server.connect(esinet.ESRP), esinet.VSP, 5995)
        forged = "forged; caller=sip:victim@vsp.example", "a\r\n ng911: forged"
        for stream, address, port in links:
            for text in forged:
                for name, (call, sender) in {"Call-ID": (text, "x"), "From": ("id", text)}.items():
                    branch = "z9hG4bK" + os.urandom(8).hex()
                    stream.send("MESSAGE urn:service:sos SIP/2.0", [("Via", f"SIP/2.0/TLS {address}:{port};rport;branch={branch}"), ("From", f"<sip:{sender}@vsp.example>;tag=c"), ("To", "<urn:service:sos>"),
                                                                    ("Call-ID", call), ("CSeq", "1 MESSAGE"), ("Max-Forwards", "70")])
                    while (m := stream.receive()).status() < 200 or branch not in m.get("Via"):
                        pass
                    assert (m.status() == 400) == (name == "Call-ID"), (name, text, m.first)
        # An identifier of a server counts if it has no blanks.
        stream = links[1][0]
        m = server.ask(stream, "MESSAGE urn:service:sos SIP/2.0", [("From", "<sip:a@vsp.example>;tag=c"), ("To", "<urn:service:sos>"), ("Call-ID", "identified"), ("CSeq", "1 MESSAGE"),
                                                                  ("Call-Info", "<urn:forged\r\n ng911: forged>;purpose=emergency-CallId")])
        assert m.status() == 200 and "emergency:uid:callid" in ",".join(taker.others[-1].all("Call-Info")), (m.first, taker.others)
        bad = [line for _, line in n.said("forged") if "; caller=sip:victim" in line or line.startswith("forged")]
        assert not bad, bad
        server.close()


def between_servers(n):
    """The TLS connections between the servers."""
    lines = n.net.run(n.net.gateway, "ss", "-Htn", "state", "established", "src", "10.201.0.0/24", "dst", "10.201.0.0/24").stdout.splitlines()
    return {tuple(line.split()[2:4]) for line in lines if ":5061" in line}


def test_no_message_is_too_large_for_the_next_server(net):
    """Each proxy adds headers. If the next one could not read a message any more, it would close the connection between them, and other calls would fail."""
    with network(net) as n:
        import ng911
        taker, plain = n.takers[0], n.caller.call
        taker.silent = True
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        first = plain(*ng911.HERE)
        assert first.answered() == 200, first.reply.first
        before = between_servers(n)
        for size, status in ((62000, 513), (60000, 513), (50000, 513), (46000, 200)):
            dialog = plain(*ng911.HERE, more=[("Subject", "x" * size)])
            assert dialog.answered() == status, (size, dialog.reply.first)
            if status == 200:
                assert len(taker.invites[-1].get("Subject")) == size
                dialog.end()
            else:
                dialog.close()
        stranger = Stranger(n)
        for tag, target in (("t" * 20000, "urn:service:sos"), ("t", "urn:service:sos." + "u" * 20000)):
            branch = "z9hG4bK" + os.urandom(8).hex()
            stranger.stream.send(f"MESSAGE {target} SIP/2.0", [("Via", f"SIP/2.0/TLS 10.200.1.2:{stranger.port};rport;branch={branch}"), ("From", f"<sip:caller@vsp.example>;tag={tag}"),
                                                              ("To", "<urn:service:sos>"), ("Call-ID", branch), ("CSeq", "1 MESSAGE"), ("Max-Forwards", "70")])
            while (m := stranger.stream.receive()).status() < 200 or branch not in m.get("Via"):
                pass
            assert m.status() == 513, m.first
        # A reply of the caller
        stream, taker.replies = taker.waiting[0], []
        invite = taker.invites[0]
        target = invite.get("Contact")[1:].partition(">")[0]
        stream.send(f"INFO {target} SIP/2.0", [("Via", f"SIP/2.0/TLS {taker.address}:5061;branch=z9hG4bK{os.urandom(4).hex()}"), ("Route", ",".join(invite.all("Record-Route"))), ("From", first.to),
                                               ("To", invite.get("From")), ("Call-ID", first.id), ("CSeq", "1 INFO"), ("Max-Forwards", "70")])
        while not (m := first.stream.receive()).first.startswith("INFO "):
            pass
        back = [(k, v) for k, v in m.headers if k in ("via", "from", "to", "call-id", "cseq")]
        first.stream.send("SIP/2.0 200 OK", [*back, ("Subject", "x" * 62000)])
        first.stream.send("SIP/2.0 200 OK", back)
        wait_for("the reply", lambda: taker.replies)
        assert not taker.replies[0].get("Subject"), len(taker.replies[0].get("Subject"))
        first.end()
        assert before <= between_servers(n), (before, between_servers(n))


def test_connections_leave_memory_for_calls(net):
    """With Kamailio's default of shared memory, a caller opens as many idle connections as would use it up without a limit. Calls on earlier connections continue."""
    with network(net) as n:
        import esinet
        import ng911
        taker, stranger = n.takers[0], Stranger(n)
        taker.silent = True
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())

        def call():
            dialog = n.caller.call(*ng911.HERE, stream=stranger.stream)
            assert dialog.answered() == 200, dialog.reply.first
            dialog.end()
        call()
        idle = []
        for _ in range(1000):
            s = ng.socket_in(net.terminal["caller"], kind=socket.SOCK_STREAM)
            s.settimeout(60)
            s.connect((esinet.VSP, 5061))
            idle.append(s)

        def refused():
            """Whether Kamailio has accepted the last connection, or closed it."""
            idle[-1].settimeout(1)
            try:
                return not idle[-1].recv(1)
            except TimeoutError:
                return False
            except OSError:
                return True
        wait_for("the end of the last connection", refused)
        call()
        for s in idle:
            s.close()


for test in (test_connections_leave_memory_for_calls, test_no_message_is_too_large_for_the_next_server, test_no_call_forges_records, test_no_name_of_a_stranger_is_looked_up, test_no_reply_of_a_stranger_passes, test_endings_are_limited):
    test.terminals = TERMINALS
