# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages of xcipherctl and the log when an operator's steps are in the wrong order."""
import contextlib

import calls
import relay
from redisrig import Redis, have
from run import Skip
from test_ctl import ctl
from test_firewall import wait_for
from test_module import BOTH
from test_relay import finish


def mode(daemon):
    return daemon.statistics()["redis"]["mode"]


def test_active_before_the_media_address_has_moved(net):
    """xcipherctl and the log warn with the address. The node is active. Control: once it has the
    address, there is no warning."""
    if not have():
        raise Skip("no redis-server")
    redis = Redis(net)
    daemon = relay.Xcipherd(net, "--engine=serial", "--standby=yes", *redis.daemon_options(), addresses=BOTH).wait_ready()
    wait_for(lambda: mode(daemon) == "standby", "not on standby")
    for change in ("del", "add"):
        net.run(net.gateway, "ip", "addr", change, "10.200.2.1/24", "dev", "g2")
        p = ctl(net, "active")
        warned = "media address 10.200.2.1 yet"
        assert p.returncode == 0 and "takes over the calls" in p.stdout, p
        assert (warned in p.stderr) == (change == "del") and "10.200.1.1" not in p.stderr and bool(p.stderr) == (change == "del"), p
        assert daemon.text().count(warned) == 1, daemon.text()
        wait_for(lambda: mode(daemon) == "active", "not active")
        p = ctl(net, "standby")
        assert p.returncode == 0 and "follows them" in p.stdout, p
        wait_for(lambda: mode(daemon) == "standby", "not on standby again")
    finish(daemon)
    redis.stop()


def test_a_second_daemon_on_the_same_host(net):
    """With the same ng port it does not start. With the same media ports it skips those in use and
    reports it once. Control: the first one reports nothing."""
    ports = ("--port-min=40000", "--port-max=40099")
    first = relay.Xcipherd(net, "--engine=serial", *ports).wait_ready()
    second = relay.Xcipherd(net, "--engine=serial", *ports)
    assert second.process.wait(60) == 1
    assert "127.0.0.1:22222: Address already in use, perhaps by another xcipherd" in second.text(), second.text()
    with contextlib.suppress(calls.Failed):  # until only its reserve of ports is left
        for n in range(50):
            calls.Call(first.client, n, "80", "32").setup()
    third = relay.Xcipherd(net, "--engine=serial", "--listen-ng=127.0.0.1:22223", *ports)
    third.ng_port = 22223
    third.wait_ready()
    with contextlib.suppress(calls.Failed):
        for n in range(50):
            calls.Call(third.client, n, "80", "32").setup()
    assert third.text().count("another program uses ports between port-min and port-max") == 1, third.text()
    assert "another program" not in first.text(), first.text()
    finish(third)
    finish(first)
