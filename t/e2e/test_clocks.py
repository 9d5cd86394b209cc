# SPDX-License-Identifier: GPL-2.0-or-later
"""Two nodes whose clocks differ share calls: a take-over costs no call, in either direction. t/e2e/clock_shift.c shifts the clock of the
second node."""
import os
import subprocess
import tempfile

import calls
import relay
from redisrig import Elsewhere, Load, Redis, have
from run import Skip, cases
from test_redis import BAD, PROGRAM, SERIAL, flows, followed, kill, saved, state, until

PAIRS = (("80", "32"), ("AEAD_AES_128_GCM", "80"), ("plain", "80"))
OPTIONS = (SERIAL, "--udp-io=plain", "--timeout=60")


class Shifted(relay.Xcipherd):
    """A daemon whose clock is ahead by the given seconds."""

    def __init__(self, net, seconds, *options):
        self.seconds = seconds
        self.dir = tempfile.TemporaryDirectory(prefix="xc-clock-")
        self.shim = os.path.join(self.dir.name, "clock_shift.so")
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-o", self.shim, os.path.join(here, "clock_shift.c"), "-ldl"], check=True)
        super().__init__(net, *options)

    def environment(self):
        env = super().environment()
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return {**env, "LD_PRELOAD": self.shim, "CLOCK_SHIFT": str(self.seconds)}


def rig(net, seconds):
    if not have():
        raise Skip(f"no {PROGRAM}")
    redis = Redis(net, addr="0.0.0.0")
    there = Elsewhere(net)
    options = [*OPTIONS, f"--redis-key-file={redis.key_file}"]
    first = relay.Xcipherd(net, *options, "--redis=127.0.0.1:6379").wait_ready()
    second = Shifted(there, seconds, *options, "--redis=10.200.9.1:6379", "--standby=yes").wait_ready()
    return redis, there, first, second


def rtcp_flows(daemon, talk):
    """RTCP leaves to each terminal. SRTCP pauses for two seconds after a take-over."""
    def sent():
        return [m["streams"][1]["stats_out"]["packets"] for c in talk
                for t in calls.ok(daemon.client.call("query", call_id=c.id))["tags"].values() for m in t["medias"]]

    before = sent()
    until(lambda: all(a > b for a, b in zip(sent(), before)))


def take_over(node, talk):
    calls.ok(node.client.call("active"))
    until(lambda: state(node)["restored"] == len(talk))
    flows(node, talk, rate=50)
    rtcp_flows(node, talk)
    drops = node.statistics()["drops"]
    assert not drops["replay"] and not drops["bad-tag"] and not drops["nonce"], drops


@cases((0,), (900,), (-900,), (86400 * 7,))
def test_a_take_over_between_clocks_that_differ(net, seconds):
    """0 is the control."""
    redis, there, first, second = rig(net, seconds)
    talk = [calls.Call(first.client, i, *PAIRS[i % len(PAIRS)]).setup() for i in range(8)]
    followed(second, len(talk))
    load = Load(net, relay.BUILD, talk, 50, 100)
    flows(first, talk, rate=50)
    saved(first, talk)
    kill(first)
    there.take_addresses()
    take_over(second, talk)
    assert ("the clock of this machine is" in second.text()) == (seconds != 0), second.text()
    # The calls return, with a difference of the other sign.
    first = relay.Xcipherd(net, *OPTIONS, *redis.daemon_options(), "--standby=yes").wait_ready()
    followed(first, len(talk))
    saved(second, talk)
    kill(second)
    there.give_addresses_back()
    take_over(first, talk)
    result = load.enough()
    assert not any(result[k] for k in BAD), result
    assert first.stop() == 0, first.text()
    redis.stop()
