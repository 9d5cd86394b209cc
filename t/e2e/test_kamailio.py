# SPDX-License-Identifier: GPL-2.0-or-later
"""Kamailio's stock rtpengine module and real phones: the demo's call, shorter; and Debian's own ng client."""
import os
import subprocess
import sys
import tempfile

import relay
from run import Skip

sys.path.insert(0, os.path.join(relay.ROOT, "demo"))


def test_a_call_through_the_stock_module(net):
    import demo
    demo.TALK_SECONDS = 4
    with tempfile.TemporaryDirectory(prefix="xcipher-kamailio-") as folder:
        wrong = demo.judge(*demo.talk(net, folder, ["--log-level=4"]))
    assert not wrong, wrong


def test_debians_own_ng_client(net):
    client = "/usr/bin/rtpengine-ng-client"
    if not os.access(client, os.X_OK):
        raise Skip("rtpengine-utils is not installed")
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()

    def run(*args):
        return subprocess.run(["ip", "netns", "exec", net.gateway, client, "--proxy-address=127.0.0.1", "--proxy-port=22222", *args], capture_output=True,
                              text=True, timeout=20, check=False).stdout

    assert "pong" in run("ping"), run("ping")
    offer = run("offer", "--call-id=perl", "--from-tag=f", "--sdp=v=0\no=- 1 1 IN IP4 10.200.1.2\ns=-\nc=IN IP4 10.200.1.2\nt=0 0\n"
                "m=audio 4000 RTP/AVP 0\n")
    assert "New SDP" in offer and "c=IN IP4 10.200.1.1" in offer, offer
    assert "perl" in run("list")
    assert "protocol => 'RTP/AVP'" in run("query", "--call-id=perl")
    assert "tags =>" in run("delete", "--call-id=perl", "--delete-delay=0")
    assert daemon.client.call("list")["calls"] == []
    status = daemon.stop()
    assert status == 0, daemon.text()
