# SPDX-License-Identifier: GPL-2.0-or-later
"""The ESRP's table of PSAPs that do not get the location of callers, and what Kamailio writes into its log."""
import os
import re

import dtls
from baresip import wait_for
from test_ng911 import TERMINALS, network, prepare
from test_ng911_states import entry

PREPARE = prepare

HERE = 30.62, -96.34
PLACE = "<cid:place@vsp.example>"


def locations(message):
    """The parts that reveal where the caller is: headers, and a mark of the body."""
    return [n for n, _ in message.headers if n.startswith(("geolocation", "p-access-network", "cellular-network"))] + \
        ["pidf"] * ("pidf" in message.body) + ["data"] * ("EmergencyCallData" in ",".join(message.all("Call-Info")) + message.body)


# Other headers that reveal the location. Identifiers and additional data come in one header.
CALL = "urn:emergency:uid:callid:0123456789abcdef:vsp.example"
TELLING = [("P-Access-Network-Info", "3GPP-E-UTRAN-FDD; utran-cell-id-3gpp=310410000100001"), ("Cellular-Network-Info", "3GPP-E-UTRAN-FDD; cell=1"),
           ("Call-Info", f"<https://data.example/a,b>;purpose=EmergencyCallData.SubscriberInfo, <{CALL}>;purpose=nena-CallId , <cid:y@vsp.example>;purpose=EmergencyCallData.Comment")]


def answered_info(n, taker, dialog):
    """The taker asks something in the call, and the caller's 200 tells where they are. Returns it as the taker got it."""
    route = ",".join(taker.invites[-1].all("Record-Route"))
    target = re.search(r"<([^>]+)>", taker.invites[-1].get("Contact"))[1]
    stream = taker.waiting[0]
    fixed = [("From", dialog.to), ("To", taker.invites[-1].get("From")), ("Call-ID", dialog.id)]
    taker.replies = []
    stream.send(f"INFO {target} SIP/2.0", [("Via", f"SIP/2.0/TLS {taker.address}:5061;branch=z9hG4bK{os.urandom(4).hex()}"), ("Route", route), *fixed, ("CSeq", "1 INFO"),
                                           ("Max-Forwards", "70")])
    while not (m := dialog.stream.receive()).first.startswith("INFO "):
        pass
    dialog.stream.send("SIP/2.0 200 OK", [*((n, v) for n, v in m.headers if n in ("via", "from", "to", "call-id", "cseq")), ("Geolocation", PLACE), TELLING[0],
                                          ("Content-Type", "application/pidf+xml")], "<pidf/>")
    wait_for("the reply", lambda: taker.replies)
    return taker.replies[0]


def reinvited(taker, dialog):
    """The taker sends a re-INVITE, and the caller's replies tell where they are: a 183, a 200, and before them a 182 whose transaction the ESRP does not find.
    Returns them by status, as the taker got them."""
    import esinet
    invite, stream = taker.invites[-1], taker.waiting[0]
    target = re.search(r"<([^>]+)>", invite.get("Contact"))[1]
    fixed = [("Via", f"SIP/2.0/TLS {taker.address}:5061;branch=z9hG4bK{os.urandom(4).hex()}"), ("Route", ",".join(invite.all("Record-Route"))), ("From", dialog.to), ("To", invite.get("From")),
             ("Call-ID", dialog.id), ("Max-Forwards", "70")]
    taker.replies = []
    stream.send(f"INVITE {target} SIP/2.0", [*fixed, ("CSeq", "2 INVITE"), ("Contact", f"<{taker.uri()}>"), ("Content-Type", "application/sdp")], taker.media[-1].sdp())
    while not (m := dialog.stream.receive()).first.startswith("INVITE "):
        pass
    vias = [("Via", v) for v in m.all("Via")]
    lost = [(n, re.sub(r"branch=[^;,]*", "branch=z9hG4bKnone", v) if esinet.ESRP in v else v) for n, v in vias]
    assert lost != vias, vias
    more = [*((n, v) for n, v in m.headers if n in ("from", "to", "call-id", "cseq", "record-route")), dialog.fixed[-1], ("Geolocation", PLACE), *TELLING]
    dialog.stream.send("SIP/2.0 182 Queued", [*lost, *more])
    dialog.stream.send("SIP/2.0 183 Session Progress", [*vias, *more])
    dialog.stream.send("SIP/2.0 200 OK", [*vias, *more, ("Content-Type", "multipart/mixed;boundary=part")], dialog.sent_body)
    wait_for("the replies", lambda: {182, 183, 200} <= {r.status() for r in taker.replies})
    stream.send(f"ACK {target} SIP/2.0", [*fixed, ("CSeq", "2 ACK")])
    return {r.status(): r for r in taker.replies}


def informed(dialog, taker, number, kind, body):
    """A request in the call with the location. Returns it as the taker got it."""
    before = len(taker.others)
    dialog.stream.send(f"INFO {dialog.target} SIP/2.0", [("Via", f"{dialog.via}info{number}"), *dialog.routes, *dialog.fixed, ("To", dialog.to), ("CSeq", f"{number} INFO"),
                                                         ("Geolocation", PLACE), ("Content-Type", kind)], body)
    while dialog.stream.receive().get("CSeq") != f"{number} INFO":
        pass
    wait_for("the INFO", lambda: len(taker.others) > before)
    return taker.others[before]


def test_a_psap_gets_no_location(net):
    """Neither in the INVITE, nor later in the call, nor after a diversion. Media and route are as before."""
    with network(net) as n:
        import esinet
        import ng911
        one, two = n.takers
        near, far = n.lost.psap_at(*ng911.HERE), n.lost.psap_at(*ng911.THERE)
        uri, other = (f"sip:{psap}@{esinet.PSAP}:5061;transport=tls" for psap in (near, far))
        n.psap.rpc("htable.sets", "takers", near, one.uri())
        n.psap.rpc("htable.sets", "takers", far, two.uri())
        n.esrp.rpc("htable.sets", "divert", uri, other)
        story, ng911.PACKETS = ng911.Story(False), 5
        plain = n.caller.call

        def call(taker, told):
            """Of one that the ESRP still knows, or of which it has forgotten everything."""
            n.caller.call = lambda *args: plain(*args, more=TELLING)
            dialog, invite = ng911.connected(n, story, ng911.HERE, taker)
            assert set(locations(invite)) == ({"geolocation", "geolocation-routing", "p-access-network-info", "cellular-network-info", "pidf", "data"} if told else set()), (invite.headers, invite.body)
            ids = re.findall(r"<([^>]*)>;purpose=(?:emergency|from)-(?:the-caller|CallId|IncidentId)", ",".join(invite.all("Call-Info")))
            assert len(ids) == 2 + told and all(i.startswith("urn:emergency:uid:") for i in ids), invite.all("Call-Info")
            info = answered_info(n, taker, dialog)
            assert bool(locations(info)) == told, (info.headers, info.body)
            replies = reinvited(taker, dialog)
            assert locations(replies[182]) == [], replies[182].headers
            for m in (replies[183], replies[200]):
                assert bool(locations(m)) == told, (m.headers, m.body)
            assert "UDP/TLS/RTP/SAVP" in replies[200].sdp(), replies[200].body
            pidf = dialog.pidf.replace("\n", "\r\n")
            for number, kind, body in ((2, "application/pidf+xml", pidf),
                                       (3, "multipart/mixed;boundary=x", f"--x\r\nContent-Type: application/pidf+xml\r\n\r\n{pidf}\r\n--x--\r\n")):
                info = informed(dialog, taker, number, kind, body)
                assert bool(locations(info)) == told, (info.headers, info.body)
            # A re-INVITE with all of it
            taker.silent = True
            dialog.stream.send(f"INVITE {dialog.target} SIP/2.0", [("Via", f"{dialog.via}again"), *dialog.routes, *dialog.fixed, ("To", dialog.to), ("CSeq", "4 INVITE"), ("Geolocation", PLACE), *TELLING,
                                                                  ("Content-Type", "multipart/mixed;boundary=part")], dialog.sent_body)
            while (m := dialog.stream.receive()).status() < 200:
                pass
            assert m.status() == 200 and bool(locations(taker.invites[-1])) == told, (m.first, taker.invites[-1].headers, taker.invites[-1].body)
            dialog.request("ACK", 4)
            taker.silent = False
            dialog.request("BYE", 5)
            while dialog.stream.receive().get("CSeq") != "5 BYE":
                pass
            dialog.close()
            wait_for("the border forgets the call", lambda: not n.border.client.call("list")["calls"])

        call(one, True)
        n.esrp.rpc("htable.sets", "location", uri, "drop")
        call(one, False)
        # The PSAP that a busy one is diverted to has its own policy.
        one.busy = True
        call(two, True)
        n.esrp.rpc("htable.sets", "location", other, "drop")
        call(two, False)
        assert locations(one.invites[-1]) == [], one.invites[-1].body
        restarted(n, uri, one, plain)


def restarted(n, uri, taker, call):
    """The ESRP has its policy again, and no location passes in a call that it has forgotten."""
    n.esrp.args.append(f'-AXC_POLICY="location {uri} drop state sip:other@x closed esrp service"')
    taker.busy = False
    dialog = call(*HERE)
    assert dialog.answered() == 200, dialog.reply.first
    n.esrp.kill()
    n.esrp.start()
    info = informed(dialog, taker, 2, "application/pidf+xml", dialog.pidf)
    assert locations(info) == [], info.body
    dialog.end(3)
    before = len(taker.invites)
    dialog = call(*HERE)
    assert dialog.answered() == 200 and len(taker.invites) == before + 1 and locations(taker.invites[-1]) == [], taker.invites[-1].headers
    dialog.end()
    assert entry(n.esrp, "state", "sip:other@x") == "closed" and 'XC_POLICY: esrp "service" has no value' in n.esrp.text(), n.esrp.text()[-3000:]


RULES = ("", "<gp:retransmission-allowed xmlns:gp='x'>no</gp:retransmission-allowed>", "<retransmission-allowed>\n yes </retransmission-allowed>")


def test_a_psap_gets_the_location_that_its_rules_allow(net):
    """Without the rule "retransmission-allowed" a PSAP with the policy "obey" gets no location. Others do."""
    with network(net) as n:
        import esinet
        import ng911
        taker = n.takers[0]
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        uri, plain, story, ng911.PACKETS = f"sip:{n.lost.psap_at(*ng911.HERE)}@{esinet.PSAP}:5061;transport=tls", esinet.PIDF, ng911.Story(False), 5
        try:
            for policy in (None, "obey"):
                if policy:
                    n.esrp.rpc("htable.sets", "location", uri, policy)
                for rule in RULES:
                    esinet.PIDF = plain.replace("<usage-rules/>", f"<usage-rules>{rule}</usage-rules>")
                    dialog, invite = ng911.connected(n, story, ng911.HERE, taker)
                    assert bool(locations(invite)) == (not policy or "yes" in rule), (policy, rule, invite.body)
                    ng911.hang_up(n, story, dialog, taker)
            # A second location, without the rule.
            esinet.PIDF = plain.replace("<usage-rules/>", f"<usage-rules>{RULES[2]}</usage-rules></geopriv><geopriv xmlns=\"urn:ietf:params:xml:ns:pidf:geopriv10\"><usage-rules/>")
            dialog, invite = ng911.connected(n, story, ng911.HERE, taker)
            assert locations(invite) == [], invite.body
            ng911.hang_up(n, story, dialog, taker)
        finally:
            esinet.PIDF = plain
        without_a_rule(n, taker)
        malformed(n)


def without_a_rule(n, taker):
    """A location by reference alone: it passes, but not what else tells where the caller is."""
    import esinet
    from test_ng911_overload import invite
    n.esrp.rpc("htable.sets", "location", esinet.uri("default", esinet.PSAP), "obey")
    taker.silent = True
    media, (stream, _) = dtls.Plain(n.net, "caller", "10.200.1.2"), n.caller.connect()
    invite(stream, media, more=[("Geolocation", f"<https://{esinet.LOST}:8999/dead>"), *TELLING])
    while (m := stream.receive()).status() < 200:
        pass
    assert m.status() == 200 and locations(taker.invites[-1]) == ["geolocation"], (m.first, taker.invites[-1].headers)
    taker.silent = False
    stream.socket.close()
    media.close()


def malformed(n):
    """Kamailio's core logs no message with a location, whatever is wrong with it."""
    import esinet
    n.takers[0].waits = True
    pidf = esinet.PIDF.format("12.3456", "-78.9012")
    via, more = "Via: SIP/2.0/TLS 10.200.1.2:5061;rport;branch=z9hG4bKbad", "From: <sip:caller@vsp.example>;tag=c\r\nTo: <urn:service:sos>\r\nCall-ID: bad\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\n"
    head, length = "INVITE urn:service:sos SIP/2.0", f"Content-Length: {len(pidf)}\r\n"
    for first, top, rest, end in ((head, "Via: SIP/2.0/TLS ;;;=", more, length), (head, via, more.replace("1 INVITE", "x y z"), length), (head, via, more.replace("<urn:service:sos>", "<<<"), length),
                                  (head, via, more + "Contact: <sip\r\n", length), ("INVITE urn:service:sos SAP/2.0", via, more, length), ("", via, more, length), (head, "", more, length),
                                  (head, via, more + "\x01\x02\r\n", length), (head, via, more + "Route: <sip:x\r\n", length), (head, via, more, "Content-Length: x\r\n"), (head, via, more, ""),
                                  (head, via, more, "Content-Length: 99999999999\r\n"), (head, via, more + "Content-Type: application/pidf+xml\r\nX: " + "y" * 70000 + "\r\n", length)):
        stream, _ = n.caller.connect()
        stream.socket.sendall(f"{first}\r\n{top}\r\n{rest}{end}\r\n{pidf}".encode())
        # The VSP has read it: it answers, closes, or takes the next message.
        stream.socket.settimeout(0.2)
        try:
            while stream.socket.recv(4096):
                pass
        except OSError:
            pass
        stream.socket.close()
    assert "failed to parse" in n.vsp.text() and not n.said("78.9012"), n.said("78.9012")


test_a_psap_gets_no_location.terminals = test_a_psap_gets_the_location_that_its_rules_allow.terminals = TERMINALS
