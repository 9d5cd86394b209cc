# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole process pauses for longer than --timeout, as in a VM migration or on a sleeping laptop.
Calls whose media continue survive, because the pause caused their silence. Calls without media
end by the timeout afterwards."""
import signal
import time

import calls
import relay
from redisrig import Load
from run import cases

TIMEOUT = 5  # seconds: longer than a busy machine pauses the media


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "did not happen within time"
        time.sleep(0.05)


@cases(("plain", "plain"), ("80", "32"))
def test_a_pause_longer_than_the_timeout_ends_no_call_with_media(net, caller, callee):
    daemon = relay.Xcipherd(net, "--engine=serial", f"--timeout={TIMEOUT}").wait_ready()
    talk = calls.Call(daemon.client, 1, caller, callee).setup()
    silent = calls.Call(daemon.client, 2, caller, callee).setup()
    load = Load(net, relay.BUILD, [talk], 50, 100)
    until(lambda: daemon.statistics()["packets sent"] >= 50)
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(TIMEOUT + 1)
    daemon.process.send_signal(signal.SIGCONT)
    before = daemon.statistics()["packets sent"]
    until(lambda: daemon.statistics()["packets sent"] >= before + 100)
    calls.ok(daemon.client.call("query", call_id=talk.id))
    assert "the process did not run for" in daemon.text(), daemon.text()
    # Control: a call without media ends.
    until(lambda: daemon.client.call("query", call_id=silent.id)["result"] == "error")
    result = load.enough()
    assert not result["bad_auth"] and not result["wrong"], result
    assert daemon.stop() == 0, daemon.text()
