# SPDX-License-Identifier: GPL-2.0-or-later
"""More calls from one server than the ESRP allows."""
import json
import os
import re
import socket
import ssl

import dtls
import netns
import ng
from baresip import wait_for
from run import Skip
from test_ng911 import TERMINALS, network, prepare

PREPARE = prepare

BURST = 20  # INVITEs, several times XC_CALL_RATE


def server(net, n):
    """A connection of a server of the network, from the address of the caller, to the ESRP."""
    import esinet
    context = ssl.create_default_context(cafile=n.ca)
    context.load_cert_chain(os.path.join(n.folder, "vsp.crt"), os.path.join(n.folder, "vsp.key"))
    raw = ng.socket_in(net.terminal["caller"], kind=socket.SOCK_STREAM)
    raw.settimeout(60)
    raw.connect((esinet.ESRP, 5061))
    return esinet.Stream(context.wrap_socket(raw, server_hostname=esinet.ESRP))


def invite(stream, media, service="urn:service:sos", more=(), shared=None, to=None):
    """Sends one. Its Call-ID, which is shared if that is given."""
    call, port = os.urandom(8).hex(), stream.socket.getsockname()[1]
    stream.send(f"INVITE {service} SIP/2.0",
                [("Via", f"SIP/2.0/TLS 10.200.1.2:{port};rport;branch=z9hG4bK{call}"), ("From", f"<sip:caller@vsp.example>;tag={call}"), ("To", to or f"<{service}>"),
                 ("Call-ID", shared or call), ("CSeq", "1 INVITE"), ("Max-Forwards", "70"), ("Contact", f"<sip:caller@10.200.1.2:{port};transport=tls>"), *more,
                 ("Content-Type", "application/sdp")], media.sdp())
    return call


def burst(stream, media, *more):
    """The final replies to BURST INVITEs."""
    left, replies = {invite(stream, media, *more): True for _ in range(BURST)}, []
    while left:
        m = stream.receive()
        if m.status() >= 200 and left.pop(m.get("Call-ID"), False):
            replies.append(m)
    return replies


def invented(server):
    """Further arguments of invite(): a re-INVITE of a call that never began, through this server to one that is dead."""
    import esinet
    return f"sip:x@{esinet.PSAP}:5999;transport=tls", [("Route", f"<sip:{server}:5061;transport=tls;lr>")], None, "<urn:service:sos>;tag=invented"


def message(stream, target="urn:service:sos"):
    """Sends one. Its Call-ID."""
    call, port = os.urandom(8).hex(), stream.socket.getsockname()[1]
    stream.send(f"MESSAGE {target} SIP/2.0", [("Via", f"SIP/2.0/TLS 10.200.1.2:{port};rport;branch=z9hG4bK{call}"), ("From", f"<sip:caller@vsp.example>;tag={call}"), ("To", f"<{target}>"),
                                              ("Call-ID", call), ("CSeq", "1 MESSAGE"), ("Max-Forwards", "70"), ("Content-Type", "text/plain")], "fire")
    return call


def final(stream, calls):
    """The first lines of the final replies."""
    lines, left = set(), set(calls)
    while left:
        m = stream.receive()
        if m.status() >= 200 and m.get("Call-ID") in left:
            left.discard(m.get("Call-ID"))
            lines.add(m.first)
    return lines


def test_a_flood_of_one_server_takes_no_place_of_another(net):
    with network(net, esrp={"XC_CALL_RATE": 4}, vsp={"XC_CALLER_RATE": 3}) as n:
        import esinet
        import ng911
        media, stream, refused = dtls.Plain(net, "caller", "10.200.1.2"), server(net, n), []
        sent = []

        def too_many():
            sent.append(BURST)
            refused[:] = [m for m in burst(stream, media) if m.first == "SIP/2.0 503 Too Many Calls"]
            return refused
        wait_for("a refusal", too_many)
        assert all(m.get("Retry-After") == "1" for m in refused), refused[0].headers
        lines = final(stream, [message(stream) for _ in range(BURST)])
        assert "SIP/2.0 503 Too Many Messages" in lines and len(lines) > 1, lines
        # Calls of the VSP have a count of their own.
        ng911.PACKETS = 5
        taker = n.takers[0]
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        dialog, _ = ng911.connected(n, ng911.Story(False), ng911.HERE, taker)
        ng911.hang_up(n, ng911.Story(False), dialog, taker)
        # The VSP limits each of its callers: not all calls pass it.
        stream, sent = n.caller.connect()[0], []
        wait_for("a refusal by the VSP", too_many)
        passed = [line for who, line in n.said("from 10.200.1.2 for") if who == "vsp"]
        assert passed and len(passed) < sum(sent), (len(passed), sent)
        # Both limit calls that pretend to have begun before.
        for address, stream in ((esinet.VSP, stream), (esinet.ESRP, server(net, n))):
            def too_many_within(address=address, stream=stream):
                refused[:] = [m for m in burst(stream, media, *invented(address)) if m.first == "SIP/2.0 503 Too Many Requests"]
                return refused
            wait_for(f"a refusal by {address}", too_many_within)
            assert all(m.get("Retry-After") == "1" for m in refused), refused[0].headers
        media.close()


def test_addresses_of_one_network_share_a_limit(net):
    """A caller with IPv6 has many addresses: all of a /64 count as one at the VSP, however they are written. A neighbour has limits of its own."""
    if not netns.HAVE_IPV6:
        raise Skip("no IPv6")
    with network(net, vsp={"XC_ADDRESS_6": "[fd00:1::1]"}) as n:
        import esinet
        context, media = ssl.create_default_context(cafile=n.ca), dtls.Plain(net, "caller", "10.200.1.2")
        context.check_hostname = False
        # The texts have the zeros of the network, and others, in "::".
        same, other = ("fd00:1::2", "fd00:1::5:0:0:8", "fd00:1:0:0:5:6:7:8"), "fd00:1:0:1::8"
        for address in (*same[1:], other):
            net.run(net.terminal["caller"], "ip", "addr", "add", f"{address}/64", "dev", "t1", "nodad")
        net.run(net.gateway, "ip", "route", "add", "fd00:1:0:1::/64", "via", "fd00:1::2")

        def answer(address, *more):
            """The first line of the final reply to a call from there."""
            raw = ng.socket_in(net.terminal["caller"], socket.AF_INET6, socket.SOCK_STREAM)
            raw.settimeout(60)
            raw.bind((address, 0))
            raw.connect(("fd00:1::1", 5061))
            stream = esinet.Stream(context.wrap_socket(raw))
            (line,) = final(stream, [invite(stream, media, *more)])
            stream.socket.close()
            return line
        within = invented("[fd00:1::1]")
        for address in (*same, other):
            assert "Too Many" not in answer(address) + answer(address, *within)
        counts = set(re.findall(r"name: (.*)", n.vsp.rpc("pl.list")))
        assert counts == {"fd00:1:0:0::/64", "dialog fd00:1:0:0::/64", "fd00:1:0:1::/64", "dialog fd00:1:0:1::/64"}, counts
        media.close()


class Watcher:
    """A subscription of the server with this stream to the state of its queue at the ESRP."""

    def __init__(self, net, n, stream):
        import esinet
        from test_ng911_states import Peer
        self.peer = Peer(net, n, "vsp", esinet.VSP, 5995)
        m = self.peer.ask(stream, f"SUBSCRIBE sip:sos@{esinet.ESRP}:5061;transport=tls SIP/2.0",
                          [("From", "<sip:upstream@x>;tag=o"), ("To", "<sip:sos@esrp.example>"), ("Call-ID", "watch"), ("CSeq", "1 SUBSCRIBE"),
                           ("Event", "emergency-QueueState"), ("Contact", f"<sip:states@{esinet.VSP}:5995;transport=tls>"), ("Expires", "3600")])
        assert m.status() == 200, m.first
        self.sees("Active", 0)

    def sees(self, state, length=None):
        """In the next NOTIFY."""
        from test_ng911_states import answer
        s, m = self.peer.next()
        answer(s, m, "200 OK")
        body = json.loads(m.body)
        assert body["state"] == state and body["queueMaxLength"] == 5 and length in (None, body["queueLength"]), body

    def close(self):
        self.peer.close()


def test_td_bcf_002(net):
    """Of the conformance suite: calls that wait are processed in the order of their priority. The rate is 0 until all of them wait. A server that fills its
    queue takes no place of another."""
    with network(net, esrp={"XC_CALL_RATE": 0, "XC_QUEUE": 5, "XC_QUEUE_SECONDS": 120}) as n:
        import esinet
        import ng911
        media, stream = dtls.Plain(net, "caller", "10.200.1.2"), server(net, n)
        taker, watcher = n.takers[0], Watcher(net, n, stream)
        taker.silent = True
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())

        def answers(calls):
            """Final statuses by Call-ID."""
            got = {}
            while set(got) != set(calls):
                m = stream.receive()
                if m.status() >= 200 and m.get("CSeq") == "1 INVITE":
                    got[m.get("Call-ID")] = m.status()
            return got

        def ids(text):
            """The identifiers of calls in these lines of the ESRP's log, in order."""
            return [line.split()[0] for who, line in n.said(text) if who == "esrp"]
        low = [invite(stream, media) for _ in range(4)]
        wait_for("the calls", lambda: len(ids("enters the network")) == 4)
        high = invite(stream, media, more=[("Resource-Priority", "esnet.2")])
        wait_for("the call with priority", lambda: len(ids("enters the network")) == 5)
        # The queue is full, and test calls do not wait.
        beyond, test = invite(stream, media), invite(stream, media, "urn:service:test.sos")
        assert answers([beyond, test]) == {beyond: 503, test: 503}
        other = n.caller.call(*ng911.HERE)
        wait_for("the call of another server", lambda: len(ids("enters the network")) == 6)
        assert not ids("has waited")
        # The server can know all that by a subscription. Calls of others are not in its queue.
        watcher.sees("Full", 5)
        n.esrp.rpc("pl.set_pipe", "10.200.1.2", "TAILDROP", "1000")
        watcher.sees("Active")
        assert answers([*low, high]) == dict.fromkeys([*low, high], 200)
        n.esrp.rpc("pl.set_pipe", esinet.VSP, "TAILDROP", "1000")
        assert other.answered() == 200
        other.end()
        entered, waited = ids("enters the network"), ids("has waited")
        assert waited[0] == entered[4] and sorted(waited) == sorted(entered), (entered, waited)
        # Calls with one Call-ID wait one by one, too.
        n.esrp.rpc("pl.set_pipe", "10.200.1.2", "TAILDROP", "0")
        for _ in range(6):
            invite(stream, media, shared="again")
        while (m := stream.receive()).get("Call-ID") != "again" or m.status() < 200:
            pass
        assert m.first == "SIP/2.0 503 Too Many Calls" and len(ids("enters the network")) >= 6 + 5, m.first
        watcher.close()
        media.close()


def test_no_timer_ends_a_call_that_waits(net):
    """The ESRP looks for a place every 3.5 s, and its LoST server is silent for 3.5 s. Each is longer than XC_NO_REPLY, after which tm ends a transaction. A call
    that is canceled while it waits ends at once, and for good."""
    silent = []
    with network(net, ready=lambda n: silent.append(n.silent_server(5998)), esrp={"XC_CALL_RATE": 0, "XC_QUEUE": 5, "XC_QUEUE_SECONDS": 56, "XC_NO_REPLY": 3000, "XC_LOST": "https://10.201.0.3:5998/lost",
                             "XC_LOST_MS": 3500, "XC_LOST_CONNECT_MS": 3500, "XC_LOST_DEADLINE_MS": 3500}) as n:
        import esinet
        import ng911
        taker = n.takers[0]
        taker.silent = True
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        canceled, call = n.caller.call(*ng911.HERE), n.caller.call(*ng911.HERE)
        wait_for("the calls", lambda: len(n.said("enters the network")) == 2)
        assert canceled.cancel() == 487
        n.esrp.rpc("pl.set_pipe", esinet.VSP, "TAILDROP", "1000")
        assert call.answered() == 200, call.reply.first
        call.end()
        assert n.said("has waited for a place") and n.said("takes the default route: timeout"), n.esrp.text()[-2000:]
        wait_for("the border forgets the calls", lambda: not n.border.client.call("list")["calls"])
        assert len(taker.invites) == 1, taker.invites
    silent[0].close()


def test_a_call_waits_until_its_time_is_over(net):
    with network(net, esrp={"XC_CALL_RATE": 0, "XC_QUEUE": 5, "XC_QUEUE_SECONDS": 2}) as n:
        media, stream = dtls.Plain(net, "caller", "10.200.1.2"), server(net, n)
        for more in ([], [("Resource-Priority", "esnet.2")]):
            invite(stream, media, more=more)
            while (m := stream.receive()).status() < 200:
                pass
            assert m.first == "SIP/2.0 503 Too Many Calls" and m.get("Retry-After") == "1", m.headers
        media.close()


test_addresses_of_one_network_share_a_limit.terminals = test_a_flood_of_one_server_takes_no_place_of_another.terminals = test_td_bcf_002.terminals = TERMINALS
test_no_timer_ends_a_call_that_waits.terminals = test_a_call_waits_until_its_time_is_over.terminals = TERMINALS
