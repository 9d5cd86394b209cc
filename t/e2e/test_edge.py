# SPDX-License-Identifier: GPL-2.0-or-later
"""kamailio-cfg/kamailio-edge.cfg, the complete edge proxy, unchanged. Certificates and passwords
are created here; phones use TLS and UDP."""
import contextlib
import hashlib
import os
import re
import socket
import sqlite3
import subprocess
import tempfile
import time

import netns
import ng
import relay
import sipp
from baresip import Phone, wait_for
from run import Skip, cases
from test_module import quoted

TERMINALS = ("alice", "carrier", "bob")
EDGE, CARRIER = "10.200.1.1", "10.200.2.2"
USERS = {"alice": "wonder.land", "bob": "bob's"}
DOMAIN = "edge.example"


def needs(how="ours"):
    for program in ("/usr/sbin/kamailio", "/usr/bin/sipp", "/usr/bin/baresip", "/usr/bin/openssl", "/usr/share/kamailio/db_sqlite/usrloc-create.sql"):
        if not os.path.exists(program):
            raise Skip(f"{program} is not installed")
    for name in ("xcipher_tls.so", *(["xcipher.so"] if how == "ours" else [])):
        if not os.path.exists(os.path.join(relay.BUILD, name)):
            raise Skip(f"{name} is not built: make module")


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def certificates(folder):
    """A CA and a certificate for the edge: (CA, certificate, key)."""
    ca, ca_key, key, request, cert = (os.path.join(folder, n) for n in ("ca.crt", "ca.key", "edge.key", "edge.csr", "edge.crt"))
    san = os.path.join(folder, "san")
    with open(san, "w", encoding="ascii") as f:
        f.write(f"subjectAltName=DNS:{DOMAIN},IP:{EDGE}\n")

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=a CA for this test", "-keyout",
            ca_key, "-out", ca)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={DOMAIN}", "-keyout", key, "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", san, "-out", cert)
    return ca, cert, key


def database(folder):
    path = os.path.join(folder, "kamailio.sqlite")
    db = sqlite3.connect(path)
    for name in ("standard", "auth_db", "usrloc"):
        with open(f"/usr/share/kamailio/db_sqlite/{name}-create.sql", encoding="ascii") as f:
            db.executescript(f.read())
    for user, password in USERS.items():
        db.execute("INSERT INTO subscriber (username, domain, password, ha1) VALUES (?, ?, '', ?)", (user, DOMAIN, md5(f"{user}:{DOMAIN}:{password}")))
    db.commit()
    db.close()
    return path


class Edge:
    def __init__(self, net, folder, how="ours", **defines):
        self.net = net
        self.ca, cert, key = certificates(folder)
        self.db = database(folder)
        self.daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", addresses=(f"phones/{EDGE}", "carrier/10.200.2.1")).wait_ready()
        if how == "stock":
            defines["XC_STOCK"] = 1
        self.kam = sipp.Kamailio(net, folder, example="kamailio-edge.cfg", swap=("log_stderror=no", "log_stderror=yes"), XC_CERTIFICATE=quoted(cert),
                                 XC_KEY=quoted(key), XC_DB=quoted("sqlite:///" + self.db), **defines)

    def account(self, user, transport, media):
        port = 5061 if transport == "tls" else 5060
        return (f"<sip:{user}@{DOMAIN};transport={transport}>;auth_user={user};auth_pass={USERS[user]};regint=300{media and ';mediaenc=' + media};answermode=auto;"
                f'outbound="sip:{EDGE}:{port};transport={transport}"')

    def contacts(self):
        return self.kam.rpc("ul.dump")

    def stop(self):
        log = self.kam.text()
        assert self.kam.stop() == 0, log[-3000:]
        assert self.daemon.stop() == 0, self.daemon.text()
        log = log.partition("Thank you for flying")[0]  # while Kamailio's processes end, one logs another's end as critical
        assert "CRITICAL" not in log and "cannot be suspended" not in log, log[-3000:]


@contextlib.contextmanager
def edge(net, how="ours", **defines):
    needs(how)
    with tempfile.TemporaryDirectory(prefix="xcipher-edge-") as folder:
        e = Edge(net, folder, how, **defines)
        e.folder = folder
        yield e
        e.stop()


def alice(net, e, **kw):
    """A phone with TLS, and SRTP or RTP."""
    return Phone(net, e.folder, "alice", "alice", "10.200.1.2", e.account("alice", "tls", "srtp-mand"), 440, f"sip_transports tls\nsip_cafile {e.ca}\n", **kw)


def bob(net, e, **kw):
    """A phone with UDP and RTP."""
    return Phone(net, e.folder, "bob", "bob", "10.200.3.2", e.account("bob", "udp", ""), 1000, **kw)


def suites(e):
    """The only call's suites in use, by the phone's address."""
    calls = e.daemon.client.call("list")["calls"]
    assert len(calls) == 1, calls
    query = e.daemon.client.call("query", call_id=calls[0])
    return {s["endpoint"]["address"]: s.get("crypto suite", "none") for t in query["tags"].values() for m in t["medias"] for s in m["streams"]
            if "RTP" in s["flags"]}


@cases(("ours", "alice"), ("stock", "bob"))
def test_a_phone_by_tls_and_one_by_udp(net, how, who):
    """Both phones register with passwords; one speaks only SRTP, the other only RTP. Media flow in
    both call directions, and no state is left."""
    with edge(net, how) as e:
        a, b = alice(net, e), bob(net, e)
        wait_for("both registrations", lambda: e.contacts().count("Address:") == 2)
        caller, other = (a, b) if who == "alice" else (b, a)
        caller.tell(f"/dial sip:{other.name}@{DOMAIN}")
        a.talks()
        b.talks()
        for p in (a, b):
            p.records()
        in_use = suites(e)
        assert in_use["10.200.1.2"] != "none" and in_use["10.200.3.2"] == "none", in_use
        caller.tell("/hangup")
        wait_for("the call's end", lambda: e.daemon.client.call("list")["calls"] == [])
        a.stop()
        b.stop()
        assert a.heard(b) > 0.9 and b.heard(a) > 0.9, (a.heard(b), b.heard(a), a.log()[-1500:])


@cases(("ours",), ("stock",))
def test_two_phones_by_tls_ring_and_one_answers(net, how):
    """A user with two phones that speak only TLS and SRTP, and a third with UDP. The third must not
    ring, because it cannot accept that offer."""
    with edge(net, how) as e:
        tls = f"sip_transports tls\nsip_cafile {e.ca}\n"
        account = e.account("bob", "tls", "srtp-mand").replace("answermode=auto", "answermode=manual")
        a = alice(net, e)
        waits, answers = (Phone(net, e.folder, name, "bob", "10.200.3.2", account, tone, tls, port=port)
                          for name, tone, port in (("waits", 2000, 5160), ("answers", 1000, 5260)))
        udp = bob(net, e)
        wait_for("four registrations", lambda: e.contacts().count("Address:") == 4)
        a.tell(f"/dial sip:bob@{DOMAIN}")
        for p in (waits, answers):
            wait_for(f"ringing at {p.name}", lambda p=p: "incoming call" in p.log().lower())
        answers.tell("/accept")
        a.talks()
        answers.talks()
        for p in (a, answers):
            p.records()
        in_use = suites(e)
        assert len(in_use) == 2 and "none" not in in_use.values(), in_use
        a.tell("/hangup")
        wait_for("the call's end", lambda: e.daemon.client.call("list")["calls"] == [])
        waits.ended()
        for p in (a, waits, answers, udp):
            p.stop()
        assert a.heard(answers) > 0.9 and answers.heard(a) > 0.9, (a.heard(answers), answers.heard(a))
        assert "established" not in waits.log().lower() and "incoming" not in udp.log().lower(), (waits.log(), udp.log())


test_two_phones_by_tls_ring_and_one_answers.terminals = TERMINALS


def carrier(net, e, *args, code=200, port=5060):
    return sipp.Sipp(net, e.folder, "carrier", sipp.callee(None, code), "-p", str(port), *args)


test_a_phone_by_tls_and_one_by_udp.terminals = TERMINALS


def test_calls_to_and_from_the_carrier(net):
    """Outgoing calls use the second carrier when the first replies 503. Incoming calls need no
    password and reach a TLS phone. The carrier's side is RTP."""
    with edge(net, XC_CARRIER_2=quoted("sip:10.200.2.2:5070")) as e:
        carrier(net, e, code=503)
        # The second one must get the offer of xcipherd, not that of the phone.
        body = sipp.sdp(None, callee=True)
        sipp.Sipp(net, e.folder, "carrier", sipp.callee_again([body], ["IN IP4 10.200.2.1(.|[[:space:]])*RTP/AVP "]), "-p", "5070")
        a = alice(net, e)
        wait_for("the registration", lambda: e.contacts().count("Address:") == 1)
        a.tell(f"/dial sip:+4930123@{DOMAIN}")
        a.talks()
        wait_for("SRTP of the phone", lambda: suites(e).get("10.200.1.2", "none") != "none")
        assert suites(e)[CARRIER] == "none", suites(e)
        assert "trying the second" in e.kam.text()
        a.tell("/hangup")
        wait_for("the call's end", lambda: e.daemon.client.call("list")["calls"] == [])
        s = sipp.Sipp(net, e.folder, "carrier", sipp.caller(None, f"sip:alice@{DOMAIN}", 200, "", 700), "10.200.2.1:5060", "-m", "1", "-p", "5080")
        assert s.wait()[1][:2] == (1, 0), s.text()
        nobody = sipp.Sipp(net, e.folder, "carrier", sipp.caller(None, f"sip:nobody@{DOMAIN}", 404), "10.200.2.1:5060", "-m", "1", "-p", "5081")
        assert nobody.wait()[1][:2] == (1, 0), nobody.text()
        wait_for("an end without calls", lambda: e.daemon.client.call("list")["calls"] == [])
        a.stop()


test_calls_to_and_from_the_carrier.terminals = TERMINALS


class Client:
    """A minimal SIP client over UDP, for messages that phones do not send."""

    def __init__(self, net, ns="bob", address="10.200.3.2", port=5999, user="bob"):
        self.socket = ng.socket_in(net.terminal[ns], socket.AF_INET)
        self.socket.bind((address, port))
        self.user, self.count = user, 0
        self.via = f"{address}:{port}"

    def send(self, method, uri=f"sip:{DOMAIN}", more="", contact="sip:bob@192.168.7.7:5060", via="192.168.7.7:5060", tag=""):
        self.count += 1
        text = (f"{method} {uri} SIP/2.0\nVia: SIP/2.0/UDP {via};rport;branch=z9hG4bK{os.urandom(6).hex()}\nFrom: <sip:{self.user}@{DOMAIN}>;tag=x\n"
                f"To: <sip:{self.user}@{DOMAIN}>{tag and ';tag=' + tag}\nCall-ID: {id(self)}\nCSeq: {self.count} {method}\nMax-Forwards: 70\nContact: <{contact}>\n{more}"
                "Content-Length: 0\n\n")
        self.socket.sendto(text.replace("\n", "\r\n").encode(), (EDGE, 5060))

    def receive(self, seconds=0.7):
        self.socket.settimeout(max(seconds, 0.001))
        try:
            return self.socket.recv(65536).decode()
        except TimeoutError:
            return ""

    def ask(self, *args, seconds=30, **kw):
        """The code of the final reply; 0 if none."""
        self.send(*args, **kw)
        end = time.monotonic() + seconds
        while True:
            text = self.receive(end - time.monotonic())
            m = re.match(r"SIP/2.0 ([2-6]\d\d)", text)
            # Skips a late reply to an earlier request.
            if not text or m and f"\r\nCSeq: {self.count} " in text:
                self.last = text
                return int(m[1]) if m else 0

    def silence(self, *args, **kw):
        return self.ask(*args, seconds=0.7, **kw) == 0

    def authorize(self, method, password, uri=f"sip:{DOMAIN}"):
        nonce = re.search(r'nonce="([^"]+)"', self.last)[1]
        a1, a2 = md5(f"{self.user}:{DOMAIN}:{password}"), md5(f"{method}:{uri}")
        response = md5(f"{a1}:{nonce}:00000001:abc:auth:{a2}")
        name = "Authorization" if method == "REGISTER" else "Proxy-Authorization"
        return (f'{name}: Digest username="{self.user}", realm="{DOMAIN}", nonce="{nonce}", uri="{uri}", response="{response}", algorithm=MD5, qop=auth, '
                'nc=00000001, cnonce="abc"\n')


def test_registrar_and_nat(net):
    """Without a password, with a wrong or a used one: refused. Behind a NAT: replies, pings and
    calls go to the source address."""
    with edge(net, XC_PING=1) as e:
        c = Client(net)
        assert c.ask("REGISTER") == 401
        assert c.ask("REGISTER", more=c.authorize("REGISTER", "wrong")) == 401
        assert "received=10.200.3.2" in c.last and "rport=5999" in c.last, c.last
        answer = c.authorize("REGISTER", USERS["bob"])
        assert c.ask("REGISTER", more=answer) == 200
        assert "sip:10.200.3.2:5999" in e.contacts(), e.contacts()
        assert c.ask("REGISTER", more=answer) == 401, "a nonce that was used"
        thief = Client(net, port=5998, user="alice")
        assert thief.ask("REGISTER") == 401
        thief.user = "bob"
        stolen = thief.authorize("REGISTER", USERS["bob"])
        thief.user = "alice"
        assert thief.ask("REGISTER", more=stolen) in (401, 403), "bob's password registers nobody else"
        ping = wait_for("a ping", lambda: [t for t in (c.receive(),) if t.startswith("OPTIONS ")])[0]
        assert "192.168.7.7" in ping.split("\r\n")[0], ping
        # A call by the carrier reaches bob's real address.
        s = sipp.Sipp(net, e.folder, "carrier", sipp.caller(None, f"sip:bob@{DOMAIN}", 200), "10.200.2.1:5060", "-m", "1", "-p", "5080", "-timeout", "60")
        wait_for("the INVITE", lambda: c.receive().startswith("INVITE sip:bob@192.168.7.7"))
        net.stop(s.process)
        e.kam.stop()
        with contextlib.closing(sqlite3.connect(e.db)) as db:
            assert db.execute("SELECT count(*) FROM location").fetchone()[0] == 1, "contacts outlive a restart"


test_registrar_and_nat.terminals = TERMINALS


def test_who_is_kept_out(net):
    """Calls without a password, plain RTP from TLS phones, scanners, guessers, floods, garbage:
    other users are not affected."""
    with edge(net, XC_FLOOD=60, XC_BAN=6, XC_CALL_RATE=3) as e:
        bad = Client(net)
        assert bad.ask("INVITE", f"sip:+49301@{DOMAIN}") == 407

        def too_many():
            for _ in range(12):
                bad.send("INVITE", f"sip:+49301@{DOMAIN}")
            codes = [re.match(r"SIP/2.0 (\d+)", bad.receive()) for _ in range(12)]
            return [c[1] for c in codes if c].count("503") >= 6
        wait_for("a refusal of more calls per second than a phone makes", too_many)  # again, if the proxy took more than a second for them
        assert bad.ask("REGISTER", more="CSeq: nonsense\n", seconds=0.7) in (0, 400)
        assert bad.ask("PUBLISH") == 405
        assert bad.ask("BYE", more="", uri=f"sip:bob@{DOMAIN}") in (404, 405)

        def shut_out():
            return bad.silence("REGISTER", more="User-Agent: friendly-scanner\n") and bad.silence("OPTIONS")
        wait_for("an end of scans", shut_out)  # repeated, because the ban may have ended before the test looked
        wait_for("an end of that", lambda: bad.ask("OPTIONS", seconds=1) == 200)

        def guess():
            if bad.ask("REGISTER", seconds=1) == 401:
                bad.ask("REGISTER", more=bad.authorize("REGISTER", "guess"), seconds=1)
            return "guesses passwords" in e.kam.text() and bad.silence("OPTIONS")
        wait_for("an end of guesses", guess)
        wait_for("an end of that", lambda: bad.ask("OPTIONS", seconds=1) == 200)

        def flood():
            for _ in range(300):
                bad.send("OPTIONS")
            time.sleep(0.3)
            return "floods" in e.kam.text()
        wait_for("an end of the flood", flood)
        other = Client(net, "alice", "10.200.1.2", 5997, "alice")
        assert other.ask("OPTIONS") == 200, "somebody else is served"


test_who_is_kept_out.terminals = TERMINALS


def test_an_invented_to_tag_is_counted(net):
    """Anybody can send an INVITE with a To tag and a Route to this proxy, which then looks like one
    within a call. Control: the first ones are relayed, and new calls of the same address are not
    refused for them."""
    with edge(net, XC_FLOOD=10000, XC_CALL_RATE=3, XC_DIALOG_RATE=3):
        bad, callee = Client(net), Client(net, "alice", "10.200.1.2", 5997, "alice")

        def codes(method, n, **kw):
            for _ in range(n):
                bad.send(method, "sip:alice@10.200.1.2:5997", **kw)
            found = [re.match(r"SIP/2.0 ([2-6]\d\d)", bad.receive()) for _ in range(n)]
            return [m[1] for m in found if m]

        def arrives(method, **kw):
            bad.send(method, "sip:alice@10.200.1.2:5997", **kw)
            return method in {callee.receive(0.3).partition(" ")[0] for _ in range(5)}
        for method in ("INVITE", "UPDATE"):
            within = {"tag": "invented", "more": f"Route: <sip:{EDGE};lr>\n"}
            # Again, if the proxy took more than a second for them.
            wait_for(f"a refusal of {method}", lambda method=method, within=within: codes(method, 12, **within).count("503") >= 6)
            wait_for(f"{method} at the callee", lambda method=method, within=within: arrives(method, **within))
        assert bad.ask("INVITE", f"sip:+49301@{DOMAIN}") == 407, bad.last


test_an_invented_to_tag_is_counted.terminals = TERMINALS


def test_a_network_of_ipv6_is_one_phone(net):
    """For the limits, whichever of its addresses sends."""
    if not netns.HAVE_IPV6:
        raise Skip("no IPv6")
    with edge(net, XC_PHONES="[fd00:1::1]") as e:
        net.run(net.terminal["alice"], "ip", "addr", "add", "fd00:1::5:0:0:8/64", "dev", "t1", "nodad")
        for address in ("fd00:1::2", "fd00:1::5:0:0:8"):
            with ng.socket_in(net.terminal["alice"], socket.AF_INET6) as s:
                s.bind((address, 5060))
                s.settimeout(30)
                s.sendto((f"INVITE sip:x@{DOMAIN} SIP/2.0\r\nVia: SIP/2.0/UDP [{address}]:5060;branch=z9hG4bKx\r\nFrom: <sip:alice@{DOMAIN}>;tag=x\r\nTo: <sip:x@{DOMAIN}>\r\n"
                          f"Call-ID: {address}\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\nContact: <sip:alice@[{address}]>\r\nContent-Length: 0\r\n\r\n").encode(), ("fd00:1::1", 5060))
                assert b" 407 " in s.recv(65536).partition(b"\r\n")[0]
        counts = set(re.findall(r"name: (.*)", e.kam.rpc("pl.list")))
        assert counts == {"fd00:1:0:0::/64", "requests fd00:1:0:0::/64"}, counts


test_a_network_of_ipv6_is_one_phone.terminals = TERMINALS


def test_tls_as_it_should_be(net):
    """The certificate is the edge's. Old TLS is refused, as is a TLS phone that offers plain RTP."""
    with edge(net) as e:
        def client(*args):
            return net.run(net.terminal["alice"], "openssl", "s_client", "-connect", f"{EDGE}:5061", "-CAfile", e.ca, *args, check=False, input="").stdout

        text = client("-verify_return_error", "-verify_ip", EDGE)
        assert "Verify return code: 0 (ok)" in text, text
        assert "Verify return code: 0 (ok)" not in client("-verify_return_error", "-verify_ip", "10.200.9.9")
        assert "Cipher is (NONE)" in client("-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
        plain = Phone(net, e.folder, "alice", "alice", "10.200.1.2", e.account("alice", "tls", ""), 440, f"sip_transports tls\nsip_cafile {e.ca}\n")
        plain.tell(f"/dial sip:+4930123@{DOMAIN}")
        wait_for("the refusal", lambda: "Secure media only" in plain.log())
        plain.stop()


test_tls_as_it_should_be.terminals = TERMINALS
