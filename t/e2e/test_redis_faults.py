# SPDX-License-Identifier: GPL-2.0-or-later
"""Losses that were once silent: calls with long Call-IDs, the last change before a crash, and keys
that Redis evicts."""
import os
import signal

import calls
import relay
from test_redis import again, rig, settled, state, until


def test_calls_with_long_call_ids_come_back(net):
    redis, daemon = rig(net)
    body = calls.sdp("10.200.1.2", 4000)
    ids = ["s" * 20, "m" * 513, "l" * 4096, "x" * 4097]
    for call_id in ids:
        calls.ok(daemon.client.call("offer", call_id=call_id, from_tag="a", sdp=body))
        calls.ok(daemon.client.call("answer", call_id=call_id, from_tag="a", to_tag="b", sdp=body))
    until(lambda: "1 calls are not saved because their Call-ID is longer than 4096 bytes" in daemon.text())
    settled(daemon)
    daemon.process.kill()
    daemon.process.wait()
    daemon = again(net, redis)
    until(lambda: state(daemon)["restored"] == 3)
    assert [daemon.client.call("query", call_id=i)["result"] for i in ids] == ["ok", "ok", "ok", "error"]
    calls.ok(daemon.client.call("delete", call_id=ids[2], delete_delay=0))
    settled(daemon)
    assert len(redis("KEYS", "xcipher:call:*")) == 2
    assert daemon.stop() == 0, daemon.text()
    redis.stop()


def test_what_was_answered_survives_a_kill_at_once(net):
    for _ in range(5):
        redis, daemon = rig(net)
        settled(daemon)
        pid = daemon.process.pid
        for i in range(10):
            call = calls.Call(daemon.client, i, "80", "32").setup()
        os.kill(pid, signal.SIGKILL)
        daemon.process.wait()
        keys = redis("KEYS", "xcipher:call:*")
        assert len(keys) == 10 and f"xcipher:call:{call.id}".encode() in keys, len(keys)
        daemon = again(net, redis)
        until(lambda: state(daemon)["restored"] == 10)
        tags = calls.ok(daemon.client.call("query", call_id=call.id))["tags"]
        assert len(tags) == 2 and "b" + call.id in tags, list(tags)
        assert daemon.stop() == 0, daemon.text()
        redis.stop()


def test_a_redis_that_evicts_is_logged(net):
    redis, daemon = rig(net)
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(3)]
    settled(daemon)
    assert "evicted" not in daemon.text()  # control
    redis("DEL", f"xcipher:call:{talk[0].id}")
    calls.load(net, relay.BUILD, talk, 50, 1)
    until(lambda: "stored calls are missing (evicted" in daemon.text())
    until(lambda: len(redis("KEYS", "xcipher:call:*")) == 3)
    assert daemon.stop() == 0, daemon.text()
    redis.stop()
