# SPDX-License-Identifier: GPL-2.0-or-later
"""Priority and Resource-Priority make a call an emergency call if a server of the network has sent them, at the VSP and at the ESRP. Those of callers do not."""
import os

from baresip import wait_for
from test_ng911 import TERMINALS, network, prepare
from test_ng911_conformance import final

PREPARE = prepare

MARKS = ([("Priority", "emergency")], [("Resource-Priority", "esnet.1")], [("Resource-Priority", "q735.2"), ("Resource-Priority", "dsn.flash, esnet.4")])
NO_MARKS = ([], [("Priority", "normal")], [("Resource-Priority", "esnet.0")], [("Resource-Priority", "myesnet.1, esnet.11")], [("Subject", "esnet.1")])


def test_marks_of_servers_count(net):
    with network(net) as n:
        import esinet
        from test_ng911_states import Peer
        taker = n.takers[0]
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        server, got = Peer(net, n, "vsp", esinet.VSP, 5995), taker.others
        links = {address: server.connect(address) for address in (esinet.VSP, esinet.ESRP)}
        stranger = n.caller.connect()[0]

        def status(stream, marks):
            number = os.urandom(6).hex()
            here = "{}:{}".format(*stream.socket.getsockname())
            stream.send(f"MESSAGE sip:bob@{esinet.PSAP} SIP/2.0",
                        [("Via", f"SIP/2.0/TLS {here};rport;branch=z9hG4bK{number}"), ("From", "<sip:alice@vsp.example>;tag=1"), ("To", "<sip:bob@example.org>"),
                         ("Call-ID", number), ("CSeq", "1 MESSAGE"), ("Max-Forwards", "70"), *marks, ("Content-Type", "text/plain")], "fire")
            return final(stream, 1)

        for address, stream in links.items():
            for marks in NO_MARKS:
                assert status(stream, marks) == 404, (address, marks)
            for marks in MARKS:
                before = len(got)
                assert status(stream, marks) == 200, (address, marks)
                wait_for("the request at the taker", lambda before=before: len(got) > before)
                m = got[-1]
                assert m.all("Resource-Priority") == ["esnet.1"] and m.get("History-Info").startswith("<urn:service:sos>;index=1,"), m.headers
                assert m.get("To") == "<sip:bob@example.org>" and "purpose=emergency-CallId" in ",".join(m.all("Call-Info")), m.headers
        # Identifiers of a server count, also in one header with others. Only they are logged.
        one = "urn:emergency:uid:callid:abcdefghij:x.example"
        infos = f'<https://data.example/secret,a>;purpose=EmergencyCallData.DeviceInfo, <{one}>; purpose="nena-CallId",<cid:x>;purpose=card'
        before = len(got)
        assert status(links[esinet.ESRP], [*MARKS[0], ("Call-Info", infos)]) == 200
        wait_for("the request at the taker", lambda: len(got) > before)
        assert infos in got[-1].all("Call-Info") and "purpose=emergency-CallId" not in ",".join(got[-1].all("Call-Info")), got[-1].headers
        assert [who for who, _ in n.said(f"{one} enters")] == ["esrp"] and not n.said("secret"), n.said("secret")
        before = len(got)
        for marks in (*MARKS, *NO_MARKS):
            assert status(stranger, marks) == 404, marks
        assert len(got) == before
        server.close()


test_marks_of_servers_count.terminals = TERMINALS
