# SPDX-License-Identifier: GPL-2.0-or-later
"""The ESRP's table of PSAPs that do not get the location of callers."""
from baresip import wait_for
from test_ng911 import TERMINALS, network

PLACE = "<cid:place@vsp.example>"


def locations(message):
    """The parts that reveal where the caller is: headers, and a mark of the body."""
    return [n for n, _ in message.headers if n.startswith("geolocation")] + ["pidf"] * ("pidf" in message.body)


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

        def call(taker, told):
            dialog, invite = ng911.connected(n, story, ng911.HERE, taker)
            assert bool(locations(invite)) == told, (invite.headers, invite.body)
            pidf = dialog.pidf.replace("\n", "\r\n")
            for number, kind, body in ((2, "application/pidf+xml", pidf),
                                       (3, "multipart/mixed;boundary=x", f"--x\r\nContent-Type: application/pidf+xml\r\n\r\n{pidf}\r\n--x--\r\n")):
                info = informed(dialog, taker, number, kind, body)
                assert bool(locations(info)) == told, (info.headers, info.body)
            dialog.request("BYE", 4)
            while dialog.stream.receive().get("CSeq") != "4 BYE":
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


test_a_psap_gets_no_location.terminals = test_a_psap_gets_the_location_that_its_rules_allow.terminals = TERMINALS
