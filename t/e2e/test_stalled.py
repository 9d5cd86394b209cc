# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker that does not run for a while, as on a busy or stolen processor: calls are set up meanwhile, and their media flows afterwards."""
import calls
import hold
import relay
from run import cases
from test_relay import clean, finish

CALLS = 400  # more than one worker's command ring takes


@cases(("udp", 2), ("udp", 1), ("nfqueue", 2))
def test_calls_are_set_up_while_a_worker_stands_still(net, steering, workers):
    daemon = relay.Xcipherd(net, "--engine=serial", f"--steering={steering}", f"--workers={workers}").wait_ready()
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
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=2").wait_ready()
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(CALLS)]
    clean(calls.load(net, relay.BUILD, talk[:10] + talk[-10:], rate=50, seconds=1))
    for call in talk:
        calls.ok(call.delete())
    finish(daemon)
