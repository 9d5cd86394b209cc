# SPDX-License-Identifier: GPL-2.0-or-later
"""The Kamailio module: real calls by sipp through a real Kamailio with xcipher.so, and nodes that misbehave."""
import os
import tempfile

import relay
import sipp
from run import Skip

CALLEE = "sip:callee@10.200.2.2:5060"
S80, S32 = "AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"
BOTH = ("caller/10.200.1.1", "callee/10.200.2.1")

OFFER = f"RTP/SAVP SDES-only-{S32} SDES-pad ICE=remove replace-origin direction=caller direction=callee delete-delay=0"
ANSWER = f"RTP/SAVP SDES-only-{S80} SDES-pad ICE=remove replace-origin"


def quoted(text):
    return '"' + text + '"'


def needs():
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher.so")):
        raise Skip("xcipher.so is not built: make module")
    for program in ("/usr/sbin/kamailio", "/usr/bin/sipp"):
        if not os.access(program, os.X_OK):
            raise Skip(f"{program} is not installed")


def place(net, folder, number=1, rate=10, suite=S80, to=CALLEE, expect=200, extra="", limit=200, talk_ms=200):
    """number calls; returns sipp's counts."""
    s = sipp.Sipp(net, folder, "caller", sipp.caller(suite, to, expect, extra, talk_ms), "10.200.1.1:5060", "-m", str(number), "-r", str(rate),
                  "-l", str(limit), "-p", "5060")
    _, counts = s.wait(60)
    assert counts[0] == number and counts[1] == 0, (counts, s.text())
    return counts


def test_calls_two_ways(net):
    """Offer, answer and delete, suspended and not; suites differ on the two legs; nothing stays behind."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = sipp.Kamailio(net, folder, XC_OFFER_FLAGS=quoted(OFFER))
        callee = sipp.Sipp(net, folder, "callee", sipp.callee(S32), "-p", "5060")
        place(net, folder, 20, 20)
        assert daemon.client.call("list")["calls"] == []
        assert kam.counter("suspended") >= 40, kam.rpc("cnt.grp_get_all", "xcipher")
        assert kam.counter("failures") == kam.counter("refused") == kam.counter("stray_replies") == 0
        node = kam.nodes()[0]
        assert node["state"] == "up" and node["under_way"] == "0", node
        net.stop(callee.process)
        log = kam.text()
        assert kam.stop() == 0, log
        for key in sipp.CRYPTO.values():
            assert key not in log
        assert "ERROR" not in log and "CRITICAL" not in log, log
    assert daemon.stop() == 0, daemon.text()
