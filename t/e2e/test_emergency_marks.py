# SPDX-License-Identifier: GPL-2.0-or-later
"""The shipped Kamailio examples: a header marks an emergency call only if a peer named by the operator wrote it; a dialled emergency number always does.
A marked call is exempt from limits and security policies, so strangers must not be able to mark calls."""
import contextlib
import os
import tempfile

import ng
import relay
import sipp
import web
from baresip import wait_for
from run import Skip, cases
from test_edge import CARRIER, DOMAIN, TERMINALS, USERS, Client, database, edge
from test_module import BOTH, Mock, finish, needs, quoted

S80, S32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
SUITES = {"kamailio-demo.cfg": (S80, S32), "kamailio-module.cfg": (S80, S32), "kamailio-module-kemi.cfg": (S80, S32)}
EXAMPLES = tuple((name,) for name in SUITES)
MARKS = {
    "Priority": "Priority: emergency",
    "Priority twice": "Priority: normal\nPriority: emergency",
    "Resource-Priority": "Resource-Priority: esnet.0",
    "both, odd spelling": "PRIORITY : Emergency\nresource-priority: q735.2, ESNET.1",
    "callback": "Priority: psap-callback",
}
GONE = '<action><ereg regexp="[Pp][Rr][Ii][Oo][Rr][Ii][Tt][Yy]" search_in="msg" check_it_inverse="true" assign_to="1"/></action>'
THERE = '<action><ereg regexp="Priority: emergency" search_in="msg" check_it="true" assign_to="1"/></action>'


def callee(suite, check):
    """Accepts an INVITE that passes this check."""
    text = sipp.callee(suite).replace('<recv request="INVITE" rrs="true"/>', f'<recv request="INVITE" rrs="true">{check}</recv>')
    return text.replace("</scenario>", '<Reference variables="1"/></scenario>') if check else text


class Gateway:
    def __init__(self, net, folder, example, **defines):
        needs()
        self.net, self.folder = net, folder
        self.daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", addresses=BOTH).wait_ready()
        swap = ("", "")
        defines.setdefault("XC_FALLBACK", quoted(""))  # the callee accepts one suite only
        if example == "kamailio-demo.cfg":
            swap = [('loadmodule "tm.so"', 'loadmodule "kex.so"\nloadmodule "ctl.so"\nmodparam("ctl", "binrpc", XC_CTL)\nloadmodule "tm.so"')]
        if example.endswith("kemi.cfg"):
            defines["XC_SCRIPT"] = quoted(os.path.join(relay.ROOT, "kamailio-cfg", "xcipher-module.js"))
        self.kam = sipp.Kamailio(net, folder, swap=swap, example=example, **defines)
        self.near, self.far = SUITES[example]

    def emergencies(self):
        return int(self.daemon.statistics()["limits"]["emergency calls"])

    def call(self, check, to="sip:callee@10.200.2.2:5060", extra=""):
        b = sipp.Sipp(self.net, self.folder, "callee", callee(self.far, check), "-p", "5060", "-m", "1")
        a = sipp.Sipp(self.net, self.folder, "caller", sipp.caller(self.near, to, 200, extra), "10.200.1.1:5060", "-m", "1", "-p", "5060")
        finish(a, 1)
        finish(b, 1)

    def stop(self):
        assert self.kam.stop() == 0, self.kam.text()
        assert self.daemon.stop() == 0, self.daemon.text()


@contextlib.contextmanager
def gateway(net, example, **defines):
    with tempfile.TemporaryDirectory(prefix="xcipher-marks-") as folder:
        g = Gateway(net, folder, example, **defines)
        yield g
        g.stop()


@cases(*EXAMPLES)
def test_a_header_makes_no_emergency_call(net, example):
    """A stranger's call with such headers is forwarded as an ordinary call, without them."""
    with gateway(net, example) as g:
        g.call("")
        for extra in MARKS.values():
            g.call(GONE, extra=extra)
        assert g.emergencies() == 0


@cases(*EXAMPLES)
def test_a_dialled_emergency_number_does(net, example):
    """Also without any such header, and after an ordinary call."""
    with gateway(net, example) as g:
        g.call(GONE, "sip:1120@10.200.2.2:5060")
        g.call(GONE, "sip:callee@10.200.2.2:5060;user=112")
        assert g.emergencies() == 0
        for n, user in enumerate(("112", "911"), 1):
            g.call(GONE, f"sip:{user}@10.200.2.2:5060", MARKS["Priority"])
            assert g.emergencies() == n


@cases(("kamailio-demo.cfg",), ("kamailio-module.cfg",))
def test_a_peer_that_was_named_is_believed(net, example):
    with gateway(net, example, XC_EMERGENCY_PEERS=quoted("192.0.2.1,10.200.1.0/24")) as g:
        g.call("")
        assert g.emergencies() == 0
        g.call(THERE, extra=MARKS["Priority"])
        assert g.emergencies() == 1
    with gateway(net, example, XC_EMERGENCY_PEERS=quoted("192.0.2.1,10.200.1.1")) as g:
        g.call(GONE, extra=MARKS["Priority"])
        assert g.emergencies() == 0


@cases(("ours",), ("stock",))
def test_the_edge_strips_marks(net, how):
    """From phones and from the carrier. Emergency numbers need no password and are marked; an ordinary number needs one, with any headers."""
    with edge(net, how) as e:
        count = lambda: int(e.daemon.statistics()["limits"]["emergency calls"])  # noqa: E731
        sos = sipp.Sipp(net, e.folder, "carrier", callee(None, GONE), "-p", "5060", "-m", "1")
        a = sipp.Sipp(net, e.folder, "bob", sipp.caller(None, f"sip:112@{DOMAIN}", 200, MARKS["Priority"]), "10.200.1.1:5060", "-m", "1", "-p", "5090")
        finish(a, 1)
        finish(sos, 1)
        assert count() == 1
        for extra in MARKS.values():
            a = sipp.Sipp(net, e.folder, "bob", sipp.caller(None, f"sip:+4930123@{DOMAIN}", 407, extra), "10.200.1.1:5060", "-m", "1", "-p", "5090")
            finish(a, 1)
        c = Client(net)
        assert c.ask("REGISTER") == 401 and c.ask("REGISTER", more=c.authorize("REGISTER", USERS["bob"])) == 200
        s = sipp.Sipp(net, e.folder, "carrier", sipp.caller(None, f"sip:bob@{DOMAIN}", 200, MARKS["both, odd spelling"]), "10.200.2.1:5060", "-m", "1", "-p",
                      "5080")
        invite = wait_for("the INVITE", lambda: [t for t in (c.receive(),) if t.startswith("INVITE ")])[0]
        assert "priority" not in invite.lower() and "m=audio" in invite, invite
        net.stop(s.process)
        assert count() == 1, "the carrier's header"


test_the_edge_strips_marks.terminals = TERMINALS


@cases(("ours",), ("stock",))
def test_the_edge_believes_a_peer_that_was_named(net, how):
    with edge(net, how, XC_EMERGENCY_PEERS=quoted(CARRIER)) as e:
        c = Client(net)
        assert c.ask("REGISTER") == 401 and c.ask("REGISTER", more=c.authorize("REGISTER", USERS["bob"])) == 200
        s = sipp.Sipp(net, e.folder, "carrier", sipp.caller(None, f"sip:bob@{DOMAIN}", 200, MARKS["Priority"]), "10.200.2.1:5060", "-m", "1", "-p", "5080")
        invite = wait_for("the INVITE", lambda: [t for t in (c.receive(),) if t.startswith("INVITE ")])[0]
        assert "Priority: emergency" in invite, invite
        net.stop(s.process)
        assert int(e.daemon.statistics()["limits"]["emergency calls"]) == 1


test_the_edge_believes_a_peer_that_was_named.terminals = TERMINALS


@cases(("ours",), ("stock",))
def test_browsers_mark_nothing(net, how):
    """kamailio-webrtc.cfg: an ordinary number needs a password with any header. An emergency number is marked, and the headers do not pass."""
    needs()
    node = Mock(net, 22222)
    pbx = ng.socket_in(net.terminal["callee"])
    pbx.bind(("10.200.2.2", 5060))
    pbx.settimeout(60)
    with tempfile.TemporaryDirectory(prefix="xcipher-marks-") as folder:
        more = {"XC_STOCK": 1} if how == "stock" else {}
        kam = sipp.Kamailio(net, folder, example="kamailio-webrtc.cfg", swap=("log_stderror=no", "log_stderror=yes"), XC_NO_TLS=1,
                            XC_DB=quoted("sqlite:///" + database(folder)), XC_WS_ORIGINS=quoted("^https://here$"), **more)
        browser = web.WebSocket(web.connect(net.terminal["caller"], ("10.200.1.1", 8080)), "sip", Origin="https://here")
        assert browser.status == 101, browser.status

        def invite(user, extra):
            body = sipp.sdp(S80)
            lines = (f"INVITE sip:{user}@web.example SIP/2.0", f"Via: SIP/2.0/WS a.invalid;branch=z9hG4bK{os.urandom(6).hex()}",
                     f"From: <sip:x@web.example>;tag={os.urandom(4).hex()}", f"To: <sip:{user}@web.example>", f"Call-ID: {os.urandom(8).hex()}",
                     "CSeq: 1 INVITE", "Max-Forwards: 70", "Contact: <sip:x@a.invalid;transport=ws>", *extra.split("\n"),
                     "Content-Type: application/sdp", f"Content-Length: {len(body)}", "", body)
            browser.send("\r\n".join(lines).encode())
        for extra in MARKS.values():
            invite("+4930123", extra)
            reply = browser.receive()[1].decode()
            assert reply.startswith("SIP/2.0 407"), reply
        assert not node.requests
        invite("112", MARKS["both, odd spelling"])
        passed = wait_for("the INVITE", lambda: [t for t in (pbx.recv(65536).decode(),) if t.startswith("INVITE ")])[0]
        assert "priority" not in passed.lower() and "m=audio" in passed, passed
        assert [r["command"] for r in node.requests] == ["offer"] and "emergency" in str(node.requests[0]), node.requests
        kam.stop()
    node.close()


@cases(("kamailio-demo.cfg", ""), ("kamailio-module.cfg", ""), ("kamailio-module-kemi.cfg", ""), ("kamailio-edge.cfg", ""), ("kamailio-edge.cfg", "XC_STOCK=1"),
       ("kamailio-demo.cfg", "peers"), ("kamailio-module.cfg", "peers"), ("kamailio-edge.cfg", "peers"))
def test_kamailio_accepts_each_example(net, example, more):
    needs()
    if not os.path.exists(os.path.join(relay.ROOT, "kamailio-cfg", example)):
        raise Skip(f"{example} is not there")
    modules = "/usr/lib/" + net.run(net.gateway, "gcc", "-print-multiarch").stdout.strip() + "/kamailio/modules"
    more = ["-A", "XC_EMERGENCY_PEERS=" + quoted("10.200.2.2,192.0.2.0/24")] if more == "peers" else ["-A", more] if more else []
    p = net.run(net.gateway, "/usr/sbin/kamailio", "-c", "-L", modules + ":" + relay.BUILD, "-f", os.path.join(relay.ROOT, "kamailio-cfg", example), *more,
                "-A", "XC_CERTIFICATE=" + quoted("/dev/null"), "-A", "XC_KEY=" + quoted("/dev/null"), check=False)
    assert "config file ok" in p.stdout + p.stderr and "ERROR" not in p.stdout + p.stderr, p.stdout + p.stderr


def test_a_mark_is_not_inherited_by_a_call_id(net):
    """During an emergency call, others call with its Call-ID. Its caller calls an ordinary number
    with the same Call-ID and tag."""
    needs()
    node = Mock(net, 22222)
    body = "v=0\r\no=- 1 1 IN IP4 10.200.1.2\r\ns=-\r\nc=IN IP4 10.200.1.2\r\nt=0 0\r\nm=audio 9000 RTP/SAVP 0\r\n"
    sock = ng.socket_in(net.terminal["caller"])
    sock.bind(("10.200.1.2", 5060))
    with tempfile.TemporaryDirectory(prefix="xcipher-marks-") as folder:
        kam = sipp.Kamailio(net, folder, XC_PING_INTERVAL=0, XC_TIMEOUT=20000)

        def marked(user, tag, to_tag=""):
            """Whether the offer for this INVITE was marked."""
            before = len(node.requests)
            sock.sendto((f"INVITE sip:{user}@10.200.2.2:5060 SIP/2.0\r\nVia: SIP/2.0/UDP 10.200.1.2:5060;branch=z9hG4bK{os.urandom(6).hex()}\r\n"
                         f"From: <sip:a@10.200.1.2>;tag={tag}\r\nTo: <sip:{user}@10.200.2.2>{to_tag}\r\nCall-ID: one\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\n"
                         + (f"Route: <sip:10.200.1.1;lr;r2=on;ftag={tag}>\r\nRoute: <sip:10.200.2.1;lr;r2=on;ftag={tag}>\r\n" if to_tag else "") +
                         f"Contact: <sip:a@10.200.1.2:5060>\r\nContent-Type: application/sdp\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode(),
                        ("10.200.1.1", 5060))
            request = wait_for("the offer", lambda: node.requests[before:])[0]
            assert request["command"] == "offer" and request["call-id"] == "one", request
            return "emergency" in request["rtpp-flags"].split()

        assert marked("112", "t1")
        assert not marked("callee", "t2"), "somebody else with its Call-ID"
        assert marked("callee", "t1", ";tag=x"), "a later message of the emergency call"
        assert not marked("112", "t2", ";tag=x"), "a contact that looks like the number"
        assert not marked("callee", "t1"), "another call of the same caller"
        assert not marked("callee", "t1", ";tag=x")
        assert marked("911", "t1")
        kam.stop()
    node.close()


def test_a_callee_marks_nothing(net):
    """The answer has such headers and a contact like an emergency number, to which a re-INVITE
    goes. The security policy still applies."""
    needs()
    node = Mock(net, 22222)
    with tempfile.TemporaryDirectory(prefix="xcipher-marks-") as folder:
        kam = sipp.Kamailio(net, folder, XC_PING_INTERVAL=0, XC_TIMEOUT=20000, XC_EMERGENCY_PEERS=quoted("192.0.2.1"))
        body = sipp.sdp(S80)
        text = sipp.callee_again([body, body], ["RTP/SAVP", "RTP/SAVP"]).replace("Contact: <sip:", "Priority: emergency\nContact: <sip:112@")
        b = sipp.Sipp(net, folder, "callee", text, "-p", "5060", "-m", "1")
        a = sipp.Sipp(net, folder, "caller", sipp.caller_again([body, body], "sip:callee@10.200.2.2:5060"), "10.200.1.1:5060", "-m", "1", "-p", "5060")
        finish(a, 1)
        finish(b, 1)
        assert [r["command"] for r in node.requests].count("offer") == 2, node.requests
        assert not any("emergency" in r.get("rtpp-flags", "") for r in node.requests), node.requests
        assert kam.counter("emergency_calls") == 0
        kam.stop()
    node.close()
