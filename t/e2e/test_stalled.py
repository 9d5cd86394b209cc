# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker that does not run for a while, as on a busy or stolen processor. Calls are set up
meanwhile, and their media flow afterwards."""
import tempfile

import calls
import hold
import ng
import relay
from run import cases
from test_relay import clean, finish

CALLS = 400  # more than a worker's command ring holds
PATIENT = "--timeout=3600"  # a busy machine sets up these calls in more than the default of 60 s, in which they have no media


@cases(("udp", 2), ("udp", 1), ("nfqueue", 2))
def test_calls_are_set_up_while_a_worker_stands_still(net, steering, workers):
    daemon = relay.Xcipherd(net, "--engine=serial", f"--steering={steering}", f"--workers={workers}", PATIENT).wait_ready()
    early = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(20)]
    offered = [calls.Call(daemon.client, i, "80", "32") for i in range(20, CALLS)]
    with hold.thread(daemon.pid(), "worker-0"):
        for call in offered:
            call.setup()
        for call in early:
            call.setup(again=True)
    clean(calls.load(net, relay.BUILD, early[:10] + offered[:10] + offered[-10:], rate=50, seconds=1))
    s = daemon.statistics()
    assert s["shortages"] == 0, s
    for call in early + offered:
        calls.ok(call.delete())
    finish(daemon)


def test_calls_are_set_up_while_no_worker_stands_still(net):
    """The control of the test above."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=2", PATIENT).wait_ready()
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(CALLS)]
    clean(calls.load(net, relay.BUILD, talk[:10] + talk[-10:], rate=50, seconds=1))
    for call in talk:
        calls.ok(call.delete())
    finish(daemon)


@cases((None,), (b"k" * 32,))
def test_a_request_that_finds_no_room_is_executed_when_it_is_repeated(net, key):
    """Commands wait without a limit on time, but with one on their number. Beyond it new calls are
    refused, so that proxies use another node. Requests in calls get no reply, not even a stored
    one, so that a repetition succeeds."""
    options = []
    key_file = tempfile.NamedTemporaryFile("w", encoding="ascii")
    if key:
        key_file.write(key.hex() + "\n")
        key_file.flush()
        options = [f"--ng-key-file={key_file.name}"]
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--log-level=4", PATIENT, *options, ng_key=key).wait_ready()
    held = calls.Call(daemon.client, 1, "80", "32").setup()
    message = b"again " + ng.encode({"command": "block media", "call-id": held.id})
    with hold.thread(daemon.pid(), "worker-0"):
        for i in range(5000):
            reply = daemon.client.call("offer", call_id=f"more-{i}", from_tag="a", sdp=calls.sdp("10.200.1.2", 4000), replace=["origin"], supports=["load limit"])
            if reply["result"] != "ok":
                break
        assert reply == {"result": "load limit", "message": "Load limit exceeded"}, (i, reply)
        assert i > 800, i
        assert daemon.client.raw(message, 0.5) is None
        assert ng.Client(net.gateway, key=key).call("ping")["result"] == "pong"
    # The same datagram, as clients repeat it. The worker may still lack room for its commands.
    reply = next(filter(None, (daemon.client.raw(message, 0.5) for _ in range(50))))
    assert ng.decode(reply.partition(b" ")[2])["result"] == "ok", reply
    assert daemon.client.call("statistics")["statistics"]["controlstatistics"]["dropped"]["busy"] >= 1
    daemon.stop()
