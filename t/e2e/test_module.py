# SPDX-License-Identifier: GPL-2.0-or-later
"""The Kamailio module: real calls by sipp through a real Kamailio with xcipher.so, and nodes that misbehave."""
import os
import tempfile
import threading

import ng
import relay
import sipp
from run import Skip

CALLEE = "sip:callee@10.200.2.2:5060"
S80, S32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
BOTH = ("caller/10.200.1.1", "callee/10.200.2.1")

# The test's calls say in a header what is special about them.
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


def proxy(net, folder, **defines):
    defines.setdefault("XC_OFFER_FLAGS", quoted(OFFER))
    defines.setdefault("XC_ANSWER_FLAGS", quoted(ANSWER))
    return sipp.Kamailio(net, folder, **defines)


def start(net, folder, number=1, rate=10, suite=S80, to=CALLEE, expect=200, special="", limit=500, talk_ms=200, port=5060, extra=""):
    headers = flags(special) + ("\n" + extra if extra else "")
    return sipp.Sipp(net, folder, "caller", sipp.caller(suite, to, expect, headers, talk_ms), "10.200.1.1:5060", "-m", str(number), "-r", str(rate),
                     "-l", str(limit), "-p", str(port))


def finish(s, number):
    """Waits; (successful, failed, retransmissions, mean ms until the answer)."""
    _, counts = s.wait(60)
    assert counts[0] == number and counts[1] == 0, (counts, s.text())
    return counts


def place(net, folder, number=1, **kw):
    return finish(start(net, folder, number, **kw), number)


def answering(net, folder, suite=S32, **kw):
    return sipp.Sipp(net, folder, "callee", sipp.callee(suite, **kw), "-p", "5060")


class Hole:
    """A node that takes everything and never answers; or what a function of the datagram says."""

    def __init__(self, net, port, reply=None, address="127.0.0.1"):
        self.socket = ng.socket_in(net.gateway)
        self.socket.bind((address, port))
        self.seen = []
        self.reply = reply
        self.open = True
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while self.open:
            try:
                datagram, source = self.socket.recvfrom(65536)
            except OSError:
                return
            self.seen.append(datagram)
            for answer in self.reply(datagram) if self.reply else ():
                self.socket.sendto(answer, source)

    def close(self):
        self.open = False
        self.socket.close()


def test_calls_two_ways(net):
    """Offer, answer and delete, suspended and not; suites differ on the two legs; nothing stays behind."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder)
        callee = answering(net, folder)
        place(net, folder, 20, rate=20)
        assert daemon.client.call("list")["calls"] == []
        assert kam.counter("suspended") >= 40, kam.rpc("cnt.grp_get_all", "xcipher")
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
    """One SIP worker. Calls of another node set wait for a node that never answers; the ordinary ones do not notice."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()
    hole = Hole(net, 22333)
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_CHILDREN=1, XC_PING_INTERVAL=0, XC_DOWN_TIME=1, XC_TIMEOUT=200,
                    XC_NODES=quoted("udp:127.0.0.1:22222 set 1 == udp:127.0.0.1:22333"))
        answering(net, folder)
        alone = place(net, folder, 100, rate=50)
        stuck = start(net, folder, 40, rate=20, special="node-set=1", expect=503, port=5070)
        beside = place(net, folder, 100, rate=50)
        finish(stuck, 40)
        print(f"answer after {alone[3]:.1f} ms alone, {beside[3]:.1f} ms beside calls of a dead node")
        assert beside[2] == 0 and beside[3] < alone[3] + 25, (alone, beside)
        assert kam.counter("failures") >= 40 - kam.counter("requests") and len(hole.seen) >= 6
        kam.stop()
    hole.close()
    daemon.stop()


def test_fail_over(net):
    """A node that is not there, one that is full, one that dies in mid-load: the call goes to the other in the same transaction, and stays."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()

    def full(datagram):
        cookie, _, body = datagram.partition(b" ")
        result = {"result": "pong"} if b"4:ping" in body else {"result": "load limit", "message": "Load limit exceeded"}
        yield cookie + b" " + ng.encode(result)

    busy = Hole(net, 22333, full)
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_TIMEOUT=100,
                    XC_NODES=quoted("udp:127.0.0.1:22222 udp:127.0.0.1:22333=3 udp:127.0.0.1:22334=3"))
        answering(net, folder)
        place(net, folder, 40, rate=40)
        assert kam.counter("load_limits") > 10 and kam.counter("failovers") > 10, kam.rpc("cnt.grp_get_all", "xcipher")
        assert daemon.client.call("list")["calls"] == [], "every call's end reached the node it was on"
        states = {n["node"]: n["state"] for n in kam.nodes()}
        assert states == {"udp:127.0.0.1:22222": "up", "udp:127.0.0.1:22333": "up", "udp:127.0.0.1:22334": "down"}, states
        # Nobody left: refused with the right code, and the caller hears it at once.
        kam.rpc("xcipher.disable", "udp:127.0.0.1:22222")
        assert place(net, folder, 5, expect=503)[3] < 400
        kam.rpc("xcipher.enable", "all")
        place(net, folder, 5)
        assert kam.rpc("xcipher.ping").split() == ["{", "nodes:", "3", "answered:", "2", "}"], kam.rpc("xcipher.ping")
        busy.close()
        kam.stop()
    daemon.stop()
