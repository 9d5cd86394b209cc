# SPDX-License-Identifier: GPL-2.0-or-later
"""PSAPs publish their states, and the ESRP routes by them: with the Kamailios of kamailio-cfg/ng911 at both ends, and with a hostile program at one end.

Of the public conformance suite of NENA-STA-010.3: TD_ESRP_001 (the queue follows the state of the service) and TD_CHFE_012 (the fields of QueueState), both
at our notifier, which is the PSAP."""
import glob
import hashlib
import json
import queue
import re
import socket
import ssl
import subprocess
import threading

import ng
from baresip import wait_for
from run import Skip
from test_ng911 import TERMINALS, network, prepare

PREPARE = prepare

KIND = "application/EmergencyCallData.%s+json"


def subscriber(**more):
    """Values of an ESRP that subscribes to states."""
    if not glob.glob("/usr/lib/*/kamailio/modules/json.so"):
        raise Skip("the package kamailio-json-modules is not installed")
    return {"XC_STATES": "", **more}


def entry(proxy, table, key):
    """Value in a table of a proxy, or None."""
    p = subprocess.run(["/usr/sbin/kamcmd", "-s", proxy.ctl, "htable.get", table, key], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"value: (.*)", p.stdout)
    return found[1].strip() if found else None


def known(n, table, uri, value):
    """Waits until the ESRP knows this state."""
    wait_for(f"{value} in {table}", lambda: entry(n.esrp, table, uri) == value)


def test_calls_avoid_closed_psaps(net):
    """Closed, full by its calls or by its operator, closed together with the next one, and restarted while it was closed."""
    with network(net, esrp=subscriber(XC_STATE_SECONDS=15, XC_STATE_RETRY=5), psap={"XC_QUEUE_CALLS": 1}) as n:
        import esinet
        import ng911
        ng911.PACKETS, story = 5, ng911.Story(False)
        one, two = n.takers
        names = n.lost.psap_at(*ng911.HERE), n.lost.psap_at(*ng911.THERE)
        near, far = (esinet.uri(name, esinet.PSAP) for name in names)

        def staff():
            for name, taker in ((names[0], one), (names[1], two), ("default", two)):
                n.psap.rpc("htable.sets", "takers", name, taker.uri())

        def call(taker, *history):
            """A call that this taker gets. No other taker rings, and these PSAPs are in its history."""
            rung = [len(t.invites) for t in n.takers]
            dialog, invite = ng911.connected(n, story, ng911.HERE, taker)
            assert [len(t.invites) for t in n.takers] == [r + (t is taker) for r, t in zip(rung, n.takers)]
            assert re.findall(r"<sip:(\w+)@[^>]*cause%3D(\d+)>", invite.get("History-Info")) == list(history), invite.headers
            return dialog

        def free():
            for uri in (near, far):
                known(n, "service", uri, "Normal")
                known(n, "queue", uri, "Active")

        staff()
        n.esrp.rpc("htable.sets", "divert", near, far)
        n.esrp.rpc("htable.sets", "watch", "psaps", f"{near} {far}")
        free()
        first = call(one)
        # A NOTIFY within a call is not for the ESRP.
        first.stream.send(f"NOTIFY {first.target} SIP/2.0", [("Via", f"{first.via}n"), *first.routes, *first.fixed, ("To", first.to), ("CSeq", "2 NOTIFY"), ("Event", "refer"),
                                                             ("Subscription-State", "active;expires=60")])
        while (m := first.stream.receive()).get("CSeq") != "2 NOTIFY":
            pass
        assert m.status() == 200 and one.others[-1].get("Event") == "refer", (m.first, one.others)
        known(n, "queue", near, "Full")
        second = call(two, (names[0], "486"))
        for number, dialog in ((3, first), (2, second)):
            dialog.request("BYE", number)
            while dialog.stream.receive().get("CSeq") != f"{number} BYE":
                pass
            dialog.close()
        free()

        n.psap.rpc("htable.sets", "closed", names[0], "ScheduledMaintenanceDown")
        known(n, "service", near, "ScheduledMaintenanceDown")
        call(two, (names[0], "503")).end()
        n.psap.rpc("htable.sets", "queue", names[1], "Disabled")
        known(n, "queue", far, "Disabled")
        call(two, (names[0], "503"), (names[1], "480")).end()
        n.psap.rpc("htable.delete", "queue", names[1])
        n.psap.rpc("htable.delete", "closed", names[0])
        free()
        call(one).end()

        n.psap.rpc("htable.sets", "closed", names[0], "lunch")
        known(n, "service", near, "Unstaffed")
        n.psap.kill()
        known(n, "service", near, None)
        known(n, "queue", near, None)
        n.psap.start()
        staff()
        free()
        call(one).end()


def test_states_without_tls(net):
    """Between servers with IPsec, SIP is TCP, and the address of the PSAP is its name."""
    with network(net, sip="tcp", esrp=subscriber()) as n:
        import esinet
        uri = esinet.uri("psap1", esinet.PSAP, "tcp")
        n.psap.rpc("htable.sets", "takers", "*", n.takers[0].uri())
        n.esrp.rpc("htable.sets", "watch", "psaps", f"{uri}")
        known(n, "service", uri, "Normal")
        n.psap.rpc("htable.sets", "closed", "psap1", "Overloaded")
        known(n, "service", uri, "Overloaded")
        # With an IPv6 address: one clear error.
        n.esrp.rpc("htable.sets", "watch", "psaps", "sip:psap1@[2001:db8::1]:5060;transport=tcp")
        wait_for("the error", lambda: len(n.said("PSAPs with IPv6 addresses are not supported")) == 2)
        assert not n.said("could not resolve hostname"), n.esrp.text()[-2000:]


def test_a_psap_that_failed_gets_calls_again(net):
    with network(net, esrp={"XC_OUT_SECONDS": 1}) as n:
        import esinet
        import ng911
        ng911.PACKETS, story = 5, ng911.Story(False)
        two = n.takers[1]
        near, dead = esinet.uri(n.lost.psap_at(*ng911.HERE), esinet.PSAP), f"sip:dead@{esinet.PSAP}:5999;transport=tls"
        n.psap.rpc("htable.sets", "takers", "default", two.uri())
        n.esrp.rpc("htable.sets", "state", near, "closed")
        n.esrp.rpc("htable.sets", "divert", near, dead)
        dialog, invite = ng911.connected(n, story, ng911.HERE, two)
        assert "dead@" in invite.get("History-Info"), invite.headers
        known(n, "state", dead, None)
        assert entry(n.esrp, "state", near) == "closed", "the operator's entry"
        dialog.end()


class Peer:
    """A server of the network that speaks SIP over TLS: listens at its address, and connects to others with its certificate."""

    def __init__(self, net, n, name, address, port):
        self.net, self.n, self.name, self.address, self.port, self.got, self.number = net, n, name, address, port, queue.Queue(), 0
        self.inside, self.outside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=n.ca), ssl.create_default_context(cafile=n.ca)
        for c in (self.inside, self.outside):
            c.load_cert_chain(*n.certificates[name])
        self.inside.verify_mode = ssl.CERT_REQUIRED
        self.listener = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
        self.listener.bind((address, port))
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(raw,), daemon=True).start()

    def serve(self, raw):
        import esinet
        try:
            stream = esinet.Stream(self.inside.wrap_socket(raw, server_side=True))
            while True:
                self.got.put((stream, stream.receive()))
        except (OSError, ConnectionError):
            return

    def next(self):
        """(stream, request) that was sent to this server."""
        return self.got.get(timeout=60)

    def connect(self, address):
        import esinet
        raw = ng.socket_in(self.net.gateway, kind=socket.SOCK_STREAM)
        raw.settimeout(60)
        raw.bind((self.address, 0))
        raw.connect((address, 5061))
        return esinet.Stream(self.outside.wrap_socket(raw, server_hostname=address))

    def ask(self, stream, first, headers, body=""):
        """Sends a request. Returns the final reply."""
        self.number += 1
        branch = f"z9hG4bK{self.name}{self.number}"
        stream.send(first, [("Via", f"SIP/2.0/TLS {self.address}:{self.port};rport;branch={branch}"), ("Max-Forwards", "70"), *headers], body)
        while not (m := stream.receive()).status() >= 200 or branch not in m.get("Via"):
            pass
        return m

    def close(self):
        self.listener.close()


def answer(stream, m, status, *more):
    tag = "" if "tag=" in m.get("To") else ";tag=theirs"
    stream.send(f"SIP/2.0 {status}", [*((n, v) for n, v in m.headers if n in ("via", "from", "call-id", "cseq")), ("To", m.get("To") + tag), *more])


def tag(value):
    return re.search(r"tag=([^;]+)", value)[1]


class Notifier:
    """A subscription that the ESRP has asked for, seen by a PSAP."""

    def __init__(self, subscribe):
        self.target = re.search(r"<([^>]+)>", subscribe.get("Contact"))[1]
        self.package, self.seq = subscribe.get("Event"), 0
        self.call, self.ours, self.esrp = subscribe.get("Call-ID"), subscribe.get("To") + ";tag=theirs", subscribe.get("From")

    def notify(self, peer, stream, body, status="active;expires=60", **other):
        """Status of the reply. other: headers that differ, or None to leave one out."""
        self.seq += 1
        headers = {"From": self.ours, "To": self.esrp, "Call-ID": self.call, "CSeq": f"{self.seq} NOTIFY", "Event": self.package, "Subscription-State": status,
                   "Contact": f"<sip:fake@{peer.address}:{peer.port};transport=tls>", "Content-Type": KIND % self.package.partition("-")[2],
                   **{k.replace("_", "-"): v for k, v in other.items()}}
        return peer.ask(stream, f"NOTIFY {self.target} SIP/2.0", [(k, v) for k, v in headers.items() if v], body).status()


def service(state):
    return json.dumps({"service": {"name": "PSAP"}, "serviceState": {"state": state, "reason": "\u2603"}})


def test_the_esrp_believes_only_the_psap(net):
    """A NOTIFY before the 200; strangers, wrong dialogs and bodies; states that end with the subscription; refusals."""
    with network(net, esrp=subscriber(XC_STATE_RETRY=60)) as n:
        import esinet
        psap, stranger = Peer(net, n, "psap", esinet.PSAP, 5996), Peer(net, n, "vsp", esinet.VSP, 5995)
        uri = f"sip:fake@{esinet.PSAP}:5996;transport=tls"
        n.esrp.rpc("htable.sets", "watch", "psaps", uri)

        def subscribed():
            """The next new SUBSCRIBE for the state of the service. Refreshes, and those for the queue, are refused."""
            while True:
                stream, m = psap.next()
                if m.get("Event") == "emergency-ServiceState" and "tag=" not in m.get("To"):
                    assert m.first == f"SUBSCRIBE {uri} SIP/2.0" and m.get("Expires") == "60" and m.get("Accept") == KIND % "ServiceState", m.headers
                    return stream, m
                if m.get("Event") == "emergency-ServiceState":
                    answer(stream, m, "481 Subscription Does Not Exist")
                else:
                    answer(stream, m, "489 Bad Event", ("Retry-After", "3000"))

        stream, m = subscribed()
        s, own, foreign = Notifier(m), psap.connect(esinet.ESRP), stranger.connect(esinet.ESRP)
        assert s.notify(psap, own, service("Down")) == 200
        known(n, "service", uri, "Down")
        answer(stream, m, "200 OK", ("Expires", "60"), ("Contact", f"<{uri}>"))

        assert s.notify(stranger, foreign, service("Normal")) == 403
        good = service("Normal")
        refused = [(481, good, {"Call_ID": "other"}), (481, good, {"To": s.esrp + "x"}), (481, good, {"From": s.ours + "x"}), (489, good, {"Event": "presence"}),
                   (489, good, {"Event": "emergency-QueueState"}), (400, good, {"Subscription_State": None}), (400, good, {"Subscription_State": "sleeping"}),
                   (500, good, {"CSeq": "1 NOTIFY"}), (415, good, {"Content_Type": "text/plain"}), (413, service("N" * 5000), {}), (413, "[" * 50000, {}),
                   (400, "nonsense", {}), (400, "", {}), (400, "[" * 3000, {}), (400, '{"serviceState": 5}', {}), (400, '{"serviceState": [1]}', {}),
                   (400, '{"state": "Normal"}', {}), (400, '"Normal"', {})]
        for status, body, other in refused:
            code = s.notify(psap, own, body, **other)
            assert code == status, (code, status, body[:60], other)
        assert entry(n.esrp, "service", uri) == "Down"
        target, s.target = s.target, s.target.replace("sip:", "sip:f")
        assert s.notify(psap, own, good) == 481
        s.target = target
        assert psap.ask(own, f"SUBSCRIBE {uri} SIP/2.0", [("From", s.ours), ("To", "<sip:esrp@x>"), ("Call-ID", "a"), ("CSeq", "1 SUBSCRIBE"), ("Event", "presence"),
                                                          ("Contact", f"<{uri}>")]).status() == 489
        assert s.notify(psap, own, service("Partial")) == 200
        known(n, "service", uri, "Partial")
        for odd in ("Closed", "", "Normal\\r\\nX: y", "Normal;x", "N" * 2000):
            assert s.notify(psap, own, service("Normal")) == 200 and entry(n.esrp, "service", uri) == "Normal"
            assert s.notify(psap, own, service(odd)) == 200 and entry(n.esrp, "service", uri) is None
        assert s.notify(psap, own, service("Normal")) == 200
        assert s.notify(psap, own, '{"serviceState": {"state": {}}}') == 200 and entry(n.esrp, "service", uri) is None

        # The state ends with the subscription, and so the ESRP subscribes again.
        assert s.notify(psap, own, service("Down"), "active;expires=1") == 200
        known(n, "service", uri, None)
        stream, m = subscribed()
        assert m.get("Call-ID") != s.call
        answer(stream, m, "200 OK", ("Expires", "60"), ("Contact", f"<{uri}>"))
        s = Notifier(m)
        assert s.notify(psap, own, service("Down")) == 200 and entry(n.esrp, "service", uri) == "Down"
        assert s.notify(psap, own, "", "pending") == 200 and entry(n.esrp, "service", uri) is None
        assert s.notify(psap, own, service("Down")) == 200
        assert s.notify(psap, own, "", "terminated;reason=deactivated") == 200 and entry(n.esrp, "service", uri) is None
        stream, m = subscribed()
        answer(stream, m, "503 Later", ("Retry-After", "1"))
        stream, m = subscribed()
        s = Notifier(m)
        assert s.notify(psap, own, "", "terminated;reason=giveup;retry-after=3000") == 200
        user = re.search(r"sip:(\w+)@", s.target)[1]
        assert int(entry(n.esrp, "subscription", user + "::due")) > 1700000000
        psap.close()
        stranger.close()


def test_a_psap_tells_its_states(net):
    with network(net, psap={"XC_SUBSCRIBERS": 4, "XC_SUBSCRIPTION": 600}) as n:
        import esinet
        esrp = Peer(net, n, "esrp", esinet.ESRP, 5997)
        n.psap.rpc("htable.sets", "takers", "*", n.takers[0].uri())
        stream, here = esrp.connect(esinet.PSAP), f"<sip:states@{esinet.ESRP}:5997;transport=tls>"

        def subscribe(event, call, number=1, to="", psap="psap1", **other):
            headers = {"From": "<sip:esrp@x>;tag=o", "To": "<sip:psap1@psap.example>" + to, "Call-ID": call, "CSeq": f"{number} SUBSCRIBE", "Event": event,
                       "Contact": here, "Expires": "100", **{k.replace("_", "-"): v for k, v in other.items()}}
            return esrp.ask(stream, f"SUBSCRIBE sip:{psap}@{esinet.PSAP}:5061;transport=tls SIP/2.0", [(k, v) for k, v in headers.items() if v is not None])

        def notified(call, status="200 OK"):
            """The next NOTIFY, of this subscription: its state and body."""
            s, m = esrp.next()
            assert m.first == f"NOTIFY {here[1:-1]} SIP/2.0" and m.get("Call-ID") == call and m.get("To") == "<sip:esrp@x>;tag=o", (m.first, m.headers)
            answer(s, m, status)
            body = json.loads(m.body)
            assert "unreachable" not in m.body.lower(), m.body
            return m, body.get("state") or body["serviceState"]["state"], body

        m = subscribe("emergency-ServiceState", "one")
        assert m.status() == 200 and m.get("Expires") == "100" and "transport=tls" in m.get("Contact"), m.headers
        told, state, body = notified("one")
        assert tag(told.get("From")) == tag(m.get("To")) and told.get("Event") == "emergency-ServiceState" and told.get("Content-Type") == KIND % "ServiceState"
        assert re.fullmatch(r"active;expires=\d+", told.get("Subscription-State")) and state == "Normal", (told.headers, body)
        assert body["service"] == {"name": "PSAP", "serviceId": "psap1.esinet.example", "domain": "psap1.esinet.example"}, body
        assert subscribe("emergency-QueueState;id=7", "two", Expires=None).get("Expires") == "600"
        told, state, body = notified("two")
        assert told.get("Event") == "emergency-QueueState;id=7" and told.get("Content-Type") == KIND % "QueueState", told.headers
        assert body == {"queueUri": "sip:psap1@psap.example", "queueLength": 0, "queueMaxLength": 10000, "state": "Active"}, body

        # TD_ESRP_001
        n.psap.rpc("htable.sets", "closed", "psap1", "Down")
        assert sorted(notified_any(esrp, 2)) == [("one", "Down"), ("two", "Inactive")]
        n.psap.rpc("htable.delete", "closed", "psap1")
        assert sorted(notified_any(esrp, 2)) == [("one", "Normal"), ("two", "Active")]

        for event, code in (("presence", 489), (None, 489), ("emergency-Element", 489)):
            m = subscribe(event, "three")
            assert m.status() == code and "emergency-QueueState" in m.get("Allow-Events"), m.headers
        for wrong in ({"Contact": "<sip:states@10.201.0.2:5997>"}, {"Contact": "<tel:1>"}, {"Contact": None}, {"From": '<sip:a b"@x>;tag=o'}):
            assert subscribe("emergency-QueueState", "three", **wrong).status() == 400, wrong
        # It has half of the subscriptions, and another server can have the rest.
        assert subscribe("emergency-QueueState", "three").get("Retry-After") == "60"
        other = Peer(net, n, "vsp", esinet.VSP, 5996)
        m = other.ask(other.connect(esinet.PSAP), f"SUBSCRIBE sip:psap1@{esinet.PSAP}:5061;transport=tls SIP/2.0",
                      [("From", "<sip:vsp@x>;tag=o"), ("To", "<sip:psap1@psap.example>"), ("Call-ID", "other"), ("CSeq", "1 SUBSCRIBE"), ("Event", "emergency-ElementState"),
                       ("Contact", f"<sip:states@{esinet.VSP}:5996;transport=tls>"), ("Expires", "3600")])
        assert m.status() == 200, m.first
        answer(*other.next(), "481 Subscription Does Not Exist")
        other.close()
        assert subscribe("emergency-QueueState", "three", to=";tag=x").status() == 481
        assert subscribe("emergency-ServiceState", "one", 2, ";tag=x").status() == 481

        # The table "closed" has an entry for all PSAPs of the proxy.
        n.psap.rpc("htable.sets", "closed", "*", "ScheduledMaintenanceDown")
        assert sorted(notified_any(esrp, 2)) == [("one", "ScheduledMaintenanceDown"), ("two", "Inactive")]
        n.psap.rpc("htable.delete", "closed", "*")
        assert sorted(notified_any(esrp, 2)) == [("one", "Normal"), ("two", "Active")]

        # A refresh, the end, and a subscriber that has forgotten its subscription.
        assert subscribe("emergency-ServiceState", "one", 3, ";tag=" + tag(own_tag(n, "one"))).status() == 200
        assert notified("one")[1] == "Normal"
        assert subscribe("emergency-ServiceState", "one", 4, ";tag=" + tag(own_tag(n, "one")), Expires="0").status() == 200
        assert notified("one")[0].get("Subscription-State") == "terminated;reason=timeout"
        n.psap.rpc("htable.sets", "queue", "psap1", "Standby")
        assert notified("two", "481 Subscription Does Not Exist")[1] == "Standby"
        wait_for("no subscriptions", lambda: "name" not in n.psap.rpc("htable.dump", "until"))
        n.psap.rpc("htable.sets", "closed", "*", "ScheduledMaintenanceDown")
        assert subscribe("emergency-ElementState", "five").status() == 200
        assert notified("five", "481 Subscription Does Not Exist")[2] == {"elementId": "esinet.example", "state": "ScheduledMaintenance", "reason": ""}
        assert subscribe("emergency-QueueState", "four", Expires="1").status() == 200
        while notified("four")[0].get("Subscription-State") != "terminated;reason=timeout":
            pass
        # States of XC_POLICY outlive a restart.
        n.psap.args.append('-AXC_POLICY="closed psap1 GoingDown queue psap2 Disabled open psap1 yes closed *"')
        assert n.psap.stop() == 0
        n.psap.start()
        n.psap.rpc("htable.sets", "takers", "*", n.takers[0].uri())
        stream = esrp.connect(esinet.PSAP)
        for event, psap, expected in (("Service", "psap1", "GoingDown"), ("Queue", "psap1", "Inactive"), ("Service", "psap2", "Normal"), ("Queue", "psap2", "Disabled")):
            assert subscribe(f"emergency-{event}State", event + psap, psap=psap).status() == 200
            m, state, _ = notified(event + psap, "481 Subscription Does Not Exist")
            assert state == expected, (event, psap, state)
        assert 'no table "open"' in n.psap.text() and 'XC_POLICY: closed "*" has no value' in n.psap.text(), n.psap.text()[-3000:]
        esrp.close()


def own_tag(n, call):
    """The From of our NOTIFYs, in the table of the PSAP."""
    return entry(n.psap, "subscriber", hashlib.md5(f"{call} o".encode()).hexdigest() + "::from")


def notified_any(peer, count):
    """(Call-ID, state) of the next NOTIFYs."""
    got = []
    for _ in range(count):
        s, m = peer.next()
        answer(s, m, "200 OK")
        body = json.loads(m.body)
        got.append((m.get("Call-ID"), body.get("state") or body["serviceState"]["state"]))
    return got


for t in (test_calls_avoid_closed_psaps, test_states_without_tls, test_a_psap_that_failed_gets_calls_again, test_the_esrp_believes_only_the_psap, test_a_psap_tells_its_states):
    t.terminals = TERMINALS
