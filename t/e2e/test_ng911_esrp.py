# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of the public conformance suite of NENA-STA-010.3 that concern the ESRP: TD_ESRP_001 (its queue follows the state of its service), TD_ESRP_004
(OPTIONS and CANCEL) and TD_ESRP_006 (the INVITE that leaves it)."""
import json
import os
import re

import dtls
from baresip import wait_for
from test_ng911 import TERMINALS, network, prepare

PREPARE = prepare

IDENTIFIER = r"<urn:emergency:uid:%s:[0-9A-Za-z]{10,32}:esinet\.example>;purpose=emergency-%s"


def states(n, server, stream):
    """TD_ESRP_001, and states that the standard does not know."""
    import esinet
    from test_ng911_states import KIND, answer, notified_any
    for package, call in (("Service", "one"), ("Queue", "two"), ("Element", "three")):
        m = server.ask(stream, f"SUBSCRIBE sip:sos@{esinet.ESRP}:5061;transport=tls SIP/2.0",
                       [("From", "<sip:upstream@x>;tag=o"), ("To", "<sip:sos@esrp.example>"), ("Call-ID", call), ("CSeq", "1 SUBSCRIBE"), ("Event", f"emergency-{package}State"),
                        ("Contact", f"<sip:states@{server.address}:{server.port};transport=tls>"), ("Expires", "3600")])
        assert m.status() == 200, m.first
        s, m = server.next()
        answer(s, m, "200 OK")
        body = json.loads(m.body)
        assert m.get("Call-ID") == call and m.get("Content-Type") == KIND % f"{package}State", m.headers
        assert body == {"one": {"service": {"name": "ESRP", "serviceId": "esinet.example", "domain": "esinet.example"}, "serviceState": {"state": "Normal", "reason": ""}},
                        "two": {"queueUri": "sip:sos@esrp.example", "queueLength": 0, "queueMaxLength": 500, "state": "Active"},
                        "three": {"elementId": "esinet.example", "state": "Normal", "reason": ""}}[call], body
    for value, shown in (("Down", "Down"), ("GoingDown", "GoingDown"), ("lunch", "Down")):
        n.esrp.rpc("htable.sets", "esrp", "service", value)
        assert sorted(notified_any(server, 2)) == [("one", shown), ("two", "Inactive")]
        n.esrp.rpc("htable.delete", "esrp", "service")
        assert sorted(notified_any(server, 2)) == [("one", "Normal"), ("two", "Active")]
    n.esrp.rpc("htable.sets", "esrp", "service", "Partial")
    assert notified_any(server, 1) == [("one", "Partial")]
    n.esrp.rpc("htable.sets", "esrp", "element", "GoingDown")
    assert notified_any(server, 1) == [("three", "GoingDown")]
    n.esrp.rpc("htable.sets", "esrp", "queue", "Disabled")
    assert notified_any(server, 1) == [("two", "Disabled")]


def test_td_esrp_001_004_and_006(net):
    with network(net) as n:
        import esinet
        import ng911
        from test_ng911_states import Peer
        taker, server = n.takers[0], Peer(net, n, "vsp", esinet.VSP, 5995)
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        stream = server.connect(esinet.ESRP)
        # All calls below come although the ESRP has published that it takes none.
        states(n, server, stream)

        def headers(number, method, *more):
            return [("From", "<sip:upstream@vsp.example>;tag=1"), ("To", "<urn:service:sos>"), ("Call-ID", call), ("CSeq", f"{number} {method}"), *more]

        call = os.urandom(8).hex()
        m = server.ask(stream, f"OPTIONS sip:sos@{esinet.ESRP}:5061;transport=tls SIP/2.0", headers(1, "OPTIONS"))
        assert m.status() == 200 and {"INVITE", "CANCEL", "MESSAGE"} <= set(re.split("[, ]+", m.get("Allow"))), m.headers
        assert "application/sdp" in m.get("Accept") and "multipart/mixed" in m.get("Accept"), m.headers

        # The INVITE keeps all headers and its body, and gets identifiers. It goes to the PSAP that LoST names.
        taker.waits = True
        media, pidf = dtls.Plain(net, "caller", "10.200.1.2"), esinet.PIDF.format(*ng911.HERE).replace("\n", "\r\n")
        kept = [("Geolocation", "<cid:place@vsp.example>"), ("Call-Info", "<cid:data@vsp.example>;purpose=EmergencyCallData.DeviceInfo"), ("X-Upstream", "kept"),
                ("P-Asserted-Identity", "<sip:alice@vsp.example>"), ("Supported", "geolocation")]
        body = (f"--part\r\nContent-Type: application/sdp\r\n\r\n{media.sdp()}\r\n--part\r\nContent-Type: application/pidf+xml\r\nContent-ID: <place@vsp.example>\r\n\r\n"
                f"{pidf}\r\n--part--\r\n")
        here = f"{esinet.VSP}:5995"
        fixed = [("Via", f"SIP/2.0/TLS {here};rport;branch=z9hG4bKinvite"), ("Max-Forwards", "70")]
        stream.send("INVITE urn:service:sos SIP/2.0", fixed + headers(2, "INVITE", ("Contact", f"<sip:a@{here};transport=tls>"), *kept,
                                                                      ("Content-Type", "multipart/mixed;boundary=part")), body)
        while stream.receive().status() != 180:
            pass
        invite = taker.invites[-1]
        for name, value in kept:
            assert value in invite.all(name), (name, invite.headers)
        infos = ",".join(invite.all("Call-Info"))
        for kind, purpose in (("callid", "CallId"), ("incidentid", "IncidentId")):
            assert len(re.findall(IDENTIFIER % (kind, purpose), infos)) == 1, infos
        assert any(esinet.ESRP in v for v in invite.all("Via")) and pidf in invite.body, invite.headers
        assert f"{n.lost.psap_at(*ng911.HERE)}@{esinet.PSAP}" in invite.get("History-Info").rpartition(",")[2], invite.headers

        # CANCEL ends it, and the taker stops ringing.
        stream.send("CANCEL urn:service:sos SIP/2.0", fixed + headers(2, "CANCEL"))
        ends = set()
        while len(ends) < 2:
            m = stream.receive()
            if m.status() >= 200:
                ends.add((m.get("CSeq"), m.status()))
        assert ends == {("2 CANCEL", 200), ("2 INVITE", 487)}, ends
        wait_for("the end at the taker", lambda: taker.cancels == 1)
        wait_for("the border forgets the call", lambda: not n.border.client.call("list")["calls"])
        media.close()
        server.close()


test_td_esrp_001_004_and_006.terminals = TERMINALS
