# SPDX-License-Identifier: GPL-2.0-or-later
"""The Kamailio module: real calls by sipp through a real Kamailio with xcipher.so, and nodes that misbehave."""
import contextlib
import os
import random
import re
import socket
import sys
import tempfile
import threading

import ng
import relay
import sipp
from baresip import wait_for
from run import Skip, cases

CALLEE = "sip:callee@10.200.2.2:5060"
S80, S32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
BOTH = ("caller/10.200.1.1", "callee/10.200.2.1")

# A header marks the special calls of the test.
OFFER = f"RTP/SAVP SDES-only-{S32} SDES-pad ICE=remove replace-origin direction=caller direction=callee delete-delay=0 $hdr(X-Flags)"
ANSWER = f"RTP/SAVP SDES-only-{S80} SDES-pad ICE=remove replace-origin"


def flags(text):
    return f"X-Flags: {text or 'symmetric'}"


def quoted(text):
    return '"' + text + '"'


def needs():
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher.so")):
        raise Skip("xcipher.so is not built: make module")
    for program in ("/usr/sbin/kamailio", "/usr/bin/sipp"):
        if not os.access(program, os.X_OK):
            raise Skip(f"{program} is not installed")


def proxy(net, folder, more="", swap=("", ""), **defines):
    defines.setdefault("XC_OFFER_FLAGS", quoted(OFFER))
    defines.setdefault("XC_ANSWER_FLAGS", quoted(ANSWER))
    defines.setdefault("XC_TIMEOUT", 3000)  # a repeated request gets a second reply, which counters show; a sanitized daemon may be slow
    return sipp.Kamailio(net, folder, more, swap=swap, **defines)


def start(net, folder, number=1, rate=10, suite=S80, to=CALLEE, expect=200, special="", limit=500, talk_ms=200, port=5060, extra=""):
    headers = flags(special) + ("\n" + extra if extra else "")
    return sipp.Sipp(net, folder, "caller", sipp.caller(suite, to, expect, headers, talk_ms), "10.200.1.1:5060", "-m", str(number), "-r", str(rate),
                     "-l", str(limit), "-p", str(port))


def finish(s, number):
    """Waits for the end; (successful, failed, retransmissions, mean ms until the answer)."""
    _, counts = s.wait(60)
    assert counts[0] == number and counts[1] == 0, (counts, s.text())
    return counts


def place(net, folder, number=1, **kw):
    return finish(start(net, folder, number, **kw), number)


def answering(net, folder, suite=S32, **kw):
    return sipp.Sipp(net, folder, "callee", sipp.callee(suite, **kw), "-p", "5060")


class Hole:
    """A node that reads everything and never replies, unless a function of the datagram returns a
    reply."""

    def __init__(self, net, port, reply=None, address="127.0.0.1"):
        self.socket = ng.socket_in(net.gateway, socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.socket.bind((address, port))
        self.seen, self.held = [], []
        self.reply = reply
        self.open = True
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while self.open:
            datagram, source = self.held.pop() if self.held else self.socket.recvfrom(65536)
            if not self.open:
                return
            self.seen.append(datagram)
            for answer in self.reply(datagram) if self.reply else ():
                if self.open:
                    self.socket.sendto(answer, source)

    def hold_until(self, command):
        """Sends no replies, not even to other requests, before it has received this command."""
        while self.open and not (self.held and command in self.held[0][0]):
            self.held = [self.socket.recvfrom(65536)]

    def close(self):
        """Closes the port, too."""
        self.open = False
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the reader, although it raises an error
        self.thread.join(5)
        self.socket.close()


@cases(("replies wait",), ("replies suspended",))
def test_calls(net, how):
    """Offer, answer and delete, with suspension and without. Suites differ on the two legs, and no
    state remains."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, **({"XC_ASYNC_REPLIES": 1} if how == "replies suspended" else {}))
        callee = answering(net, folder)
        place(net, folder, 20, rate=20)
        assert daemon.client.call("list")["calls"] == []
        assert kam.counter("suspended") >= (60 if how == "replies suspended" else 40), kam.rpc("cnt.grp_get_all", "xcipher")
        assert kam.counter("failures") == kam.counter("refused") == kam.counter("stray_replies") == 0, kam.rpc("cnt.grp_get_all", "xcipher") + kam.text()
        node = kam.nodes()[0]
        assert node["state"] == "up" and node["under_way"] == "0", node
        net.stop(callee.process)
        log = kam.text()
        assert kam.stop() == 0, log
        for key in sipp.CRYPTO.values():
            assert key not in log
        assert "ERROR" not in log and "CRITICAL" not in log, log
    assert daemon.stop() == 0, daemon.text()


def test_a_dead_node_delays_nobody_else(net):
    """One SIP worker per socket. Calls of another node set wait for a node that never replies,
    while ordinary calls pass. (A synchronous first call would have to end first.)"""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()
    hole = Hole(net, 22333)
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_CHILDREN=1, XC_PING_INTERVAL=0, XC_DOWN_TIME=1, XC_TIMEOUT=4000,
                    XC_NODES=quoted("udp:127.0.0.1:22222 set 1 == udp:127.0.0.1:22333"))
        answering(net, folder)
        stuck = start(net, folder, 40, rate=40, special="node-set=1", expect=503, port=5070)
        wait_for("forty offers", lambda: len({d.partition(b" ")[0] for d in list(hole.seen)}) == 40)
        place(net, folder, 60, rate=50)
        assert kam.counter("failures") == 0, kam.rpc("cnt.grp_get_all", "xcipher")
        finish(stuck, 40)
        assert kam.counter("failures") == 40 and len(hole.seen) >= 6, kam.rpc("cnt.grp_get_all", "xcipher")
        kam.stop()
    hole.close()
    daemon.stop()


def test_fail_over(net):
    """A node is missing, one is full, one dies under load: the call goes to the other in the same
    transaction, and stays there."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()

    def full(datagram):
        cookie, _, body = datagram.partition(b" ")
        result = {"result": "pong"} if b"4:ping" in body else {"result": "load limit", "message": "Load limit exceeded"}
        yield cookie + b" " + ng.encode(result)

    busy = Hole(net, 22333, full)
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_TIMEOUT=3000,
                    XC_NODES=quoted("udp:127.0.0.1:22222 udp:127.0.0.1:22333=3 udp:127.0.0.1:22334=3"))
        answering(net, folder)
        place(net, folder, 40, rate=40)
        assert kam.counter("load_limits") > 10 and kam.counter("failovers") > 10, kam.rpc("cnt.grp_get_all", "xcipher")
        wait_for("each call's end at the node it was on", lambda: daemon.client.call("list")["calls"] == [])
        states = {n["node"]: n["state"] for n in kam.nodes()}
        assert states == {"udp:127.0.0.1:22222": "up", "udp:127.0.0.1:22333": "up", "udp:127.0.0.1:22334": "down"}, states
        # No node is left: the caller gets the right code at once, not after three timeouts.
        kam.rpc("xcipher.disable", "udp:127.0.0.1:22222")
        limits, failures = kam.counter("load_limits"), kam.counter("failures")
        place(net, folder, 5, expect=503)
        assert kam.counter("load_limits") >= limits + 5 and kam.counter("failures") == failures, kam.rpc("cnt.grp_get_all", "xcipher")
        kam.rpc("xcipher.enable", "all")
        place(net, folder, 5)
        assert kam.rpc("xcipher.ping").split() == ["{", "nodes:", "3", "answered:", "2", "}"], kam.rpc("xcipher.ping")
        busy.close()
        kam.stop()
    daemon.stop()


class Mock(Hole):
    """A node that accepts everything and returns the body unchanged. calls: Call-ID to the received
    commands."""

    def __init__(self, net, port, judge=None, **kw):
        self.calls, self.requests, self.answered = {}, [], {}
        self.judge = judge
        super().__init__(net, port, self.answer, **kw)

    def answer(self, datagram):
        cookie, _, body = datagram.partition(b" ")
        if cookie in self.answered:  # a repetition: a busy machine repeats the request before the reply
            yield self.answered[cookie]
            return
        request = ng.decode(body)
        command = request["command"]
        if command == "ping":
            yield cookie + b" " + ng.encode({"result": "pong"})
            return
        self.requests.append(request)
        result = self.judge(self, request) if self.judge else None
        if result is None:
            self.calls.setdefault(request["call-id"], []).append(command)
            result = {"result": "ok"}
            if "sdp" in request:
                result["sdp"] = request["sdp"]
            self.answered[cookie] = cookie + b" " + ng.encode(result)
        if isinstance(result, bytes):
            yield result
        else:
            yield cookie + b" " + ng.encode(result)


def whole(calls):
    """Each call began and ended. A busy machine repeats a 200 before its ACK, which counts as
    another answer."""
    return all(c[:2] == ["offer", "answer"] and c[-1] == "delete" and set(c[2:-1]) <= {"answer"} for c in calls.values())


def unknown_unless_offered(mock, request):
    if request["command"] != "offer" and request["call-id"] not in mock.calls:
        return {"result": "error", "error-reason": "Unknown call-id"}
    return None


def test_affinity(net):
    """Call-ID and weights choose the node. A call keeps its node over a restart of Kamailio and
    after a failover."""
    needs()
    nodes = [Mock(net, 22201, unknown_unless_offered), Mock(net, 22202, unknown_unless_offered), Mock(net, 22203, unknown_unless_offered)]
    listed = "udp:127.0.0.1:22201 udp:127.0.0.1:22202=3"
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        nodes_file = os.path.join(folder, "nodes")

        def write(text):
            with open(nodes_file, "w", encoding="ascii") as f:
                f.write(text)

        write("# two of them\n" + listed + "\n")
        settings = {"XC_NODES": quoted(""), "XC_NODES_FILE": quoted(nodes_file), "XC_TIMEOUT": 1000}
        kam = proxy(net, folder, **settings)
        callee = answering(net, folder)
        # No transaction may be open while Kamailio is down: a caller with only a 100 would wait for
        # ever.
        calls = start(net, folder, 100, rate=100, suite=S32, talk_ms=None)
        wait_for("all calls", lambda: len(callee.established()) == 100)
        share = [len(n.calls) for n in nodes]
        assert kam.stop() == 0, kam.text()
        kam = proxy(net, folder, **settings)
        calls.hang_up(net, callee.established())
        finish(calls, 100)
        for n in nodes:
            assert whole(n.calls), n.calls
        assert share[2] == 0 and share[0] + share[1] == 100 and 10 <= share[0] <= 42, share
        # A third node joins and takes its share; the others keep theirs. Then one dies under load,
        # and its calls go to the others.
        write(listed + " udp:127.0.0.1:22203=4\n")
        assert "nodes: 3" in kam.rpc("xcipher.reload")
        for wrong in ("nonsense", "udp:127.0.0.1:22201=x", "udp:127.0.0.1:22201=-1", "udp:127.0.0.1:22201=", "udp:127.0.0.1:", "udp:127.0.0.1:0",
                      "udp:127.0.0.1:65536", "udp:127.0.0.1:22201x", "set x == udp:127.0.0.1:22201"):
            write(listed + "\n" + wrong + "\n")
            try:
                kam.rpc("xcipher.reload")
                raise AssertionError(f"{wrong} was taken for a node list")
            except RuntimeError as refused:
                assert "nothing was changed" in str(refused)
        so_far = sum(len(n.calls) for n in nodes)
        calls = start(net, folder, 100, rate=60, suite=S32)
        wait_for("some calls", lambda: sum(len(n.calls) for n in nodes) >= so_far + 40)
        # First the node gets no more offers and completes its open ones. Then it is gone.
        nodes[1].judge = lambda n, r: b"" if r["command"] == "offer" else unknown_unless_offered(n, r)
        wait_for("answers", lambda: all("answer" in c for c in list(nodes[1].calls.values())))
        nodes[1].close()
        finish(calls, 100)
        assert len(nodes[2].calls) > 20, [len(n.calls) for n in nodes]
        assert kam.counter("failovers") >= 1 and kam.counter("failures") == 0, kam.rpc("cnt.grp_get_all", "xcipher")
        for n in (nodes[0], nodes[2]):
            assert whole(n.calls), n.calls
        kam.stop()
    for n in nodes:
        n.close()


def test_security_policy(net):
    """Minimum security of a leg: refused with 488, or accepted with a warning. The other leg
    follows the daemon's flags."""
    needs()
    node = Mock(net, 22222, address="::1")
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_NODES=quoted("udp:[::1]:22222"))
        answering(net, folder)
        place(net, folder, special="require-in=auth80")
        place(net, folder, special="require-in=any,NULL_HMAC_SHA1_32")
        place(net, folder, special="require-in=aead", expect=488)
        place(net, folder, special="require-in=AEAD_AES_256_GCM,strong", expect=488)
        place(net, folder, suite=None, special="require-in=any", expect=488)
        place(net, folder, special="require-in=typo", expect=500)
        place(net, folder, special="require-in=aead policy=downgrade")
        assert kam.counter("policy_refused") == 3 and kam.counter("policy_downgraded") == 1
        node.requests.clear()
        # SDP from the daemon must meet the policy, whatever the flags. A call refused for it is
        # deleted again.
        place(net, folder, special="require-out=aead", expect=488)
        wait_for("the call's end", lambda: [r["command"] for r in node.requests] == ["offer", "delete"])
        node.judge = lambda _, r: {"result": "ok", "sdp": r["sdp"].replace(S80, "AEAD_AES_256_GCM")} if r["command"] == "offer" else None
        place(net, folder, special="require-out=aead")
        node.judge = None
        place(net, folder, special="require-out=aead policy=downgrade")
        assert kam.counter("policy_refused") == 4 and kam.counter("policy_downgraded") == 2
        words = node.requests[0]["rtpp-flags"].split()
        assert "SDES-only-AEAD_AES_256_GCM" in words and "SDES-only-AEAD_AES_128_GCM" in words, words
        assert not [w for w in words if w.startswith("require") or w.endswith("HMAC_SHA1_80")], words
        kam.stop()
    node.close()


def test_a_lost_ping_is_sent_again(net):
    """One lost datagram does not mark a node as down."""
    needs()
    seen = set()

    def deaf_once(datagram):
        cookie = datagram.partition(b" ")[0]
        if cookie in seen:
            yield cookie + b" " + ng.encode({"result": "pong"})
        seen.add(cookie)

    node = Hole(net, 22333, deaf_once)
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_PING_INTERVAL=0, XC_NODES=quoted("udp:127.0.0.1:22333"))
        assert kam.rpc("xcipher.ping").split() == ["{", "nodes:", "1", "answered:", "1", "}"] and len(seen) == 1
        assert kam.nodes()[0]["state"] == "up" and kam.nodes()[0]["timeouts"] == "0", kam.nodes()
        kam.stop()
    node.close()


def test_emergency(net):
    """An emergency call is accepted by a daemon at its limit, passes the security policy, and falls
    back to RTP rather than fail. Each use is logged and counted. An ordinary call gets none of
    that."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", "--max-sessions=1", addresses=BOTH).wait_ready()
    sos = "Priority: emergency"
    trusted = {"XC_EMERGENCY_PEERS": quoted("10.200.1.2")}
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        # The offerer's own suite comes first in the offer.
        kam = proxy(net, folder, swap=("\t\t\trecord_route();", '\t\t\trecord_route();\n\t\t\tif ($rz == "urn") {\n\t\t\t\t$du = "sip:10.200.2.2:5060";\n\t\t\t}'),
                    XC_OFFER_FLAGS=quoted(OFFER.replace(f"SDES-only-{S32} ", "")), **trusted)
        callee = answering(net, folder, S80)
        first = start(net, folder, talk_ms=None)
        call = wait_for("the first call", callee.established)
        place(net, folder, expect=503, port=5070)
        place(net, folder, port=5070, extra=sos)
        place(net, folder, port=5070, extra="Resource-Priority: esnet.0, q735.2", special="require-in=aead")
        # A script may mark a call by a flag, for example because of Geolocation.
        place(net, folder, port=5070, extra="Geolocation: <cid:x@y>", special="emergency")
        place(net, folder, port=5070, to="urn:service:sos.police")
        first.hang_up(net, call)
        finish(first, 1)
        assert kam.counter("emergency_calls") == 4 and kam.counter("emergency_fallbacks") == 1, kam.rpc("cnt.grp_get_all", "xcipher")
        assert kam.counter("emergency_widened") >= 2
        assert 'fall-back "suites" used' in kam.text() and "limits on suites lifted" in kam.text()
        kam.stop()
        daemon.stop()

        def no_srtp(_, request):
            if "RTP/SAVP" in request.get("rtpp-flags", ""):
                return {"result": "error", "error-reason": "No common crypto suite"}
            return None

        node = Mock(net, 22222, no_srtp)
        kam = proxy(net, folder, XC_FALLBACK=quoted(""), **trusted)
        place(net, folder, extra=sos, special="require-in=aead", expect=488)
        place(net, folder, extra=sos, expect=488)
        assert kam.counter("emergency_widened") == kam.counter("emergency_fallbacks") == 0
        kam.stop()
        node.requests.clear()
        kam = proxy(net, folder, **trusted)
        place(net, folder, expect=488)
        place(net, folder, extra=sos)
        assert all("emergency" in r["rtpp-flags"].split() for r in node.requests[1:] if r["command"] == "offer"), node.requests
        assert kam.counter("emergency_fallbacks") == 2 and 'fall-back "rtp" used' in kam.text()
        kam.stop()
        node.close()


def test_nothing_leaks(net):
    """Hundreds of calls leave shared and private memory unchanged. Garbage in replies neither
    crashes nor leaks."""
    needs()
    rng = random.Random(5)

    def sometimes_garbage(_, request):
        dice = rng.random()
        if dice < 0.15:
            return rng.randbytes(rng.randrange(200))
        if dice < 0.2:
            return {"result": "ok"}
        return {"result": ["x"], "sdp": {}} if dice < 0.22 else None

    node = Mock(net, 22222, sometimes_garbage)

    def used():
        shm = int(kam.rpc("core.shmmem").split("used:")[1].split()[0])
        pkg = [int(line.split(":")[1]) for line in kam.rpc("pkg.stats").splitlines() if line.strip().startswith("used")]
        return shm, max(pkg)

    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        # A busy machine loses a 200, and sipp gives up when the INVITE is repeated. The call would
        # stay for two minutes.
        kam = proxy(net, folder, 'modparam("tm", "wt_timer", 200)\nmodparam("tm", "fr_timer", 1000)\nmodparam("tm", "fr_inv_timer", 4000)\n'
                    'modparam("xcipher", "retries", 6)', XC_TIMEOUT=50)
        answering(net, folder)

        def many(number, rate):
            s = sipp.Sipp(net, folder, "caller", sipp.caller(S80, CALLEE, 200, flags(""), 50), "10.200.1.1:5060", "-m", str(number), "-r", str(rate),
                          "-l", "16", "-p", "5060", "-timeout", "120s")
            s.wait(150)  # few at a time, so that processes remain while others wait for the node
            # tm keeps a transaction for a while after its end. Calls whose answer was lost are
            # given up after a second.
            wait_for("an end of all transactions", lambda: re.search(r"current: 0\b", kam.rpc("tm.stats")))
            return s.counts()

        many(150, 100)
        before = used()
        answered, refused, *_ = many(500, 120)
        after = used()
        print(f"{answered} answered, {refused} refused; shm {before[0]} to {after[0]}, pkg {before[1]} to {after[1]} bytes; "
              f"{kam.counter('garbage')} unreadable, {kam.counter('stray_replies')} stray replies")
        assert answered > 50 and answered + refused == 500
        assert after[0] - before[0] < 30000 and after[1] - before[1] < 4000, (before, after)
        assert [n["under_way"] for n in kam.nodes()] == ["0"]
        assert kam.stop() == 0, kam.text()[-2000:]
    node.close()


def test_cancelled_while_suspended(net):
    """The caller gives up before the daemon replies: the new call is deleted again."""
    needs()

    def slow(mock, request):
        if request["command"] == "offer":
            mock.hold_until(b"6:delete")

    node = Mock(net, 22222, slow)
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_TIMEOUT=10000)
        s = sipp.Sipp(net, folder, "caller", sipp.gives_up(S80, CALLEE, flags(""), 1500), "10.200.1.1:5060", "-m", "1", "-p", "5060")
        finish(s, 1)

        def heard():
            return [c for calls in node.calls.values() for c in calls]
        wait_for("two deletes", lambda: len(heard()) >= 3)
        commands = heard()
        # The CANCEL causes the first delete, which may reach a real node before the call exists.
        assert commands == ["offer", "delete", "delete"], commands
        assert [n["under_way"] for n in kam.nodes()] == ["0"]
        assert kam.stop() == 0
    node.close()


def test_disabled_node_keeps_its_calls(net):
    needs()
    nodes = [Mock(net, 22201), Mock(net, 22202)]
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_NODES=quoted("udp:127.0.0.1:22201 udp:127.0.0.1:22202"))
        callee = answering(net, folder)
        calls = start(net, folder, 20, rate=40, talk_ms=None)
        wait_for("all calls", lambda: len(callee.established()) == 20)
        kam.rpc("xcipher.disable", "udp:127.0.0.1:22201")
        calls.hang_up(net, callee.established())
        finish(calls, 20)
        before = len(nodes[0].calls)
        assert before and all(whole(n.calls) for n in nodes)
        place(net, folder, 10, rate=20)
        assert len(nodes[0].calls) == before and len(nodes[1].calls) == 30 - before
        kam.stop()
    for n in nodes:
        n.close()


def test_kemi(net):
    """The same gateway with its routes in JavaScript."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        script = os.path.join(relay.ROOT, "kamailio-cfg", "xcipher-module.js")
        kam = sipp.Kamailio(net, folder, example="kamailio-module-kemi.cfg", XC_SCRIPT=quoted(script))
        answering(net, folder)
        place(net, folder, 10, rate=20)
        assert kam.counter("suspended") == 20 and kam.counter("refused") == 0, kam.rpc("cnt.grp_get_all", "xcipher")
        place(net, folder, suite=None)
        sipp.Sipp(net, folder, "callee", sipp.callee(None, 486), "-p", "5070")
        place(net, folder, to=CALLEE.replace("5060", "5070"), expect=486)
        wait_for("an end without calls", lambda: daemon.client.call("list")["calls"] == [])
        kam.rpc("xcipher.disable", "all")
        place(net, folder, expect=503)
        assert "ERROR" not in kam.text() and kam.stop() == 0, kam.text()
    daemon.stop()


SCRIPT = """
var OFFER = "RTP/SAVP SDES-pad ICE=remove replace-origin direction=caller direction=callee delete-delay=0";
var ANSWER = "SDES-pad ICE=remove replace-origin";

function said(name, result) { KSR.warn("test: " + name + " " + result + "\\n"); }
function done() { return KSR.pv.get("$xcipher(result)"); }
function way() { return KSR.pv.gete("$hdr(X-Way)"); }
function failed() { KSR.xcipher.delete("nowait"); }
function relay() { if (KSR.tm.t_relay() < 0) { KSR.sl.sl_reply_error(); } }

function ksr_request_route() {
	if (KSR.siputils.has_totag() > 0) {
		KSR.rr.loose_route();
	} else {
		if (KSR.tm.t_check_trans() == 0) { return; }
		KSR.rr.record_route();
	}
	if (KSR.is_INVITE()) {
		KSR.tm.t_on_reply("replied_" + way());
		KSR.tm.t_on_failure("failed");
		if (way() == "async") {
			if (KSR.xcipher.offer_async(OFFER, "offered") != 0) { offered(); }
			return;
		}
		said("offer", KSR.xcipher.offer(OFFER));
	} else if (KSR.is_BYE()) {
		if (way() == "async") {
			if (KSR.xcipher.query_async("", "queried") != 0) { queried(); }
			return;
		}
		said("query", KSR.xcipher.query(""));
		said("start_recording", KSR.xcipher.start_recording(""));
		said("stop_recording", KSR.xcipher.stop_recording(""));
		said("delete", KSR.xcipher.delete(""));
	}
	relay();
}

function offered() { said("offer_async", done()); relay(); }
function queried() {
	said("query_async", done());
	if (KSR.xcipher.start_recording_async("", "started") != 0) { started(); }
}
function started() {
	said("start_recording_async", done());
	if (KSR.xcipher.stop_recording_async("", "stopped") != 0) { stopped(); }
}
function stopped() {
	said("stop_recording_async", done());
	if (KSR.xcipher.delete_async("", "deleted") != 0) { deleted(); }
}
function deleted() { said("delete_async", done()); relay(); }

function replied_sync() { if (KSR.pv.get("$rs") == 200 && KSR.pv.get("$rm") == "INVITE") { said("answer", KSR.xcipher.answer(ANSWER)); } }
function replied_async() {
	if (KSR.pv.get("$rs") != 200 || KSR.pv.get("$rm") != "INVITE") { return; }
	if (KSR.xcipher.answer_async(ANSWER, "answered") != 0) { answered(); }
}
function answered() { said("answer_async", done()); }
function replied_reject() {
	if (KSR.pv.get("$rs") != 200) { return; }
	if (KSR.xcipher.manage(ANSWER + " require-in=aead") < 0) { said("reject", KSR.xcipher.reject(0, "")); }
}
"""


def test_every_function_of_kemi(net):
    """A script calls each function in both forms, and each has its effect. test_kemi covers both
    forms of manage."""
    needs()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", f"--recording-dir={folder}", addresses=BOTH).wait_ready()
        script = os.path.join(folder, "script.js")
        with open(script, "w", encoding="ascii") as f:
            f.write(SCRIPT)
        kam = sipp.Kamailio(net, folder, example="kamailio-module-kemi.cfg", XC_SCRIPT=quoted(script))
        answering(net, folder, rings=False)
        for way, code in (("sync", 200), ("async", 200), ("reject", 488)):
            place(net, folder, suite=S32, expect=code, extra="X-Way: " + way)
        names = ["offer", "answer", "query", "start_recording", "stop_recording", "delete"]
        told = sorted(line.split("test: ")[1] for line in kam.text().splitlines() if "test: " in line)
        # The refused suite is offered, too.
        assert told == sorted([f"{n}{form} 1" for n in names for form in ("", "_async")] + ["offer 1", "reject 1"]), told
        assert len([f for f in os.listdir(folder) if f.endswith(".pcap")]) == 2, os.listdir(folder)
        wait_for("an end without calls", lambda: daemon.client.call("list")["calls"] == [])
        assert kam.stop() == 0, kam.text()
        daemon.stop()


def test_a_real_call(net):
    """Two baresip phones that require SRTP with different suites, as in the demo, with our module
    instead of the stock one."""
    needs()
    sys.path.insert(0, os.path.join(relay.ROOT, "demo"))
    import demo
    kept, demo.TALK_SECONDS = (demo.TALK_SECONDS, demo.start_kamailio), 3
    demo.start_kamailio = sipp.Kamailio
    try:
        with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
            wrong = demo.judge(*demo.talk(net, folder, ["--log-level=4", "--opencl-timeout=20000"]))
    finally:
        demo.TALK_SECONDS, demo.start_kamailio = kept
    assert not wrong, wrong


ASK = """
	if (is_method("BYE")) {
		xcipher_start_recording();
		xlog("L_WARN", "test: recording $xcipher(result) $xcipher(code) $xcipher(reason)\n");
		xcipher_query("", "ASKED");
		xlog("L_WARN", "test: the script did not end\n");
	}
	route(XCIPHER);
}

route[ASKED] {
	xlog("L_WARN", "test: query $xcipher(result) from $xcipher(suite_from) to $xcipher(suite_to) node $xcipher(node) $(xcipher(reply){s.substr,0,1})\n");
	route(XCIPHER);
}
"""


def test_query_and_variables(net):
    """A query returns the suites of both legs. A continued transaction can be suspended again.
    Flags that the daemon lacks are reported."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = sipp.Kamailio(net, folder, swap=("\n\troute(XCIPHER);\n}\n", ASK), XC_OFFER_FLAGS=quoted(OFFER), XC_ANSWER_FLAGS=quoted(ANSWER))
        answering(net, folder)
        place(net, folder)
        text = kam.text()
        assert f"test: query 1 from {S80} to {S32} node udp:127.0.0.1:22222 {{" in text, text
        assert "test: recording -4 500" in text and "did not end" not in text, text
        assert kam.counter("suspended") == 3 and kam.stop() == 0
    daemon.stop()
