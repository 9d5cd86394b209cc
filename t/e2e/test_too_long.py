# SPDX-License-Identifier: GPL-2.0-or-later
"""A reply that does not fit into a datagram: the command had no effect, or the reply tells which.
Each test has a control that fits."""
import json
import os

import calls
import relay
from test_redis import until


def long_sdp(size, secure=True):
    """An SDP whose request just fits, while the reply with our longer lines does not."""
    body = calls.sdp("10.200.1.2", 4000, "80" if secure else None, os.urandom(30))
    lines = "".join(f"a=x-filler:{i:06d}\r\n" for i in range((size - len(body)) // 19))
    return body.replace("a=sendrecv\r\n", lines + "a=sendrecv\r\n")


def used(daemon):
    s = daemon.statistics()
    return s["ports used"], len(daemon.client.call("list")["calls"])


def test_an_offer_whose_reply_does_not_fit_changes_nothing(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    sdp = long_sdp(65150, False)
    for i in range(5):
        reply = daemon.client.call("offer", call_id=f"long-{i}", from_tag="a", sdp=sdp, transport_protocol="RTP/SAVP", rtcp_mux=["offer"])
        assert reply["result"] == "error" and "too long" in reply["error-reason"], (reply["result"], len(str(reply)))
    until(lambda: used(daemon) == (0, 0))
    # An existing call stays unchanged.
    call = calls.Call(daemon.client, 1, "plain", "32").setup()
    before = used(daemon)
    reply = daemon.client.call("offer", call_id=call.id, from_tag="a" + call.id, to_tag="b" + call.id, sdp=sdp, transport_protocol="RTP/SAVP")
    assert reply["result"] == "error" and "too long" in reply["error-reason"], reply
    until(lambda: used(daemon) == before)
    result = calls.load(net, relay.BUILD, [call], 50, 1)
    assert not result["lost"] and not result["bad_auth"], result
    # The same with an answer. The call waits for a shorter one.
    calls.ok(daemon.client.call("offer", call_id="asked", from_tag="a", sdp=calls.sdp("10.200.1.2", 4100, "80", os.urandom(30)),
                                transport_protocol="RTP/AVP"))
    reply = daemon.client.call("answer", call_id="asked", from_tag="a", to_tag="b", sdp=long_sdp(65390, False))
    assert reply["result"] == "error" and "too long" in reply["error-reason"], reply
    calls.ok(daemon.client.call("answer", call_id="asked", from_tag="a", to_tag="b", sdp=calls.sdp("10.200.1.2", 4104)))
    # Control: a shorter one is taken.
    calls.ok(daemon.client.call("offer", call_id="short", from_tag="a", sdp=long_sdp(50000, False), transport_protocol="RTP/SAVP"))
    assert daemon.stop() == 0, daemon.text()


def test_a_delete_whose_reply_does_not_fit_says_that_the_call_ended(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    tag = "t" * 9000
    body = calls.sdp("10.200.1.2", 4000)
    for i in range(7):  # branches of a fork with long tags
        calls.ok(daemon.client.call("offer", call_id="big", from_tag="a" + tag, via_branch=f"v{i}", sdp=body))
        calls.ok(daemon.client.call("answer", call_id="big", from_tag="a" + tag, to_tag=f"{i}{tag}", via_branch=f"v{i}", sdp=body))
    reply = daemon.client.call("query", call_id="big")
    assert reply["result"] == "error" and "too long" in reply["error-reason"], reply["result"]  # control: this is the maximum length
    reply = daemon.client.call("delete", call_id="big", from_tag="a" + tag, delete_delay=0)
    until(lambda: used(daemon) == (0, 0))
    assert reply["result"] == "ok" and "omitted" in reply["warning"], json.dumps(reply)[:200]
    assert daemon.stop() == 0, daemon.text()
