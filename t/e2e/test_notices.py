# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports to the operator: requests dropped by the kernel, and network interfaces that do not work."""
import os
import signal

import ng
import relay
from run import cases
from test_firewall import wait_for
from test_relay import finish


def dropped(daemon):
    return daemon.client.call("statistics")["statistics"]["controlstatistics"]["dropped"]["receive-buffer"]


@cases((500, False), (50000, True))
def test_requests_that_find_the_buffer_full_are_counted(net, count, some_are_lost):
    """While the daemon is stopped, 500 requests of 1 KiB wait: more than net.core.rmem_default
    holds."""
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    client = ng.Client(net.gateway)
    padding = "x" * 1000
    os.kill(daemon.pid(), signal.SIGSTOP)
    try:
        for i in range(count):
            client.sock.send(b"c%d " % i + ng.encode({"command": "ping", "padding": padding}))
    finally:
        os.kill(daemon.pid(), signal.SIGCONT)
    wait_for(lambda: daemon.client.call("statistics")["statistics"]["controlstatistics"]["totalpingcount"] >= min(count, 1000), "requests are not executed")
    if some_are_lost:
        wait_for(lambda: dropped(daemon) > 0, "lost requests are not counted")
        wait_for(lambda: "messages were lost, because the receive buffer" in daemon.text(), daemon.text())
    else:
        assert dropped(daemon) == 0 and "receive buffer" not in daemon.text(), daemon.text()
    client.close()
    finish(daemon)


def test_an_interface_that_stops_working_is_named(net):
    def ip(*words):
        net.run(net.gateway, "ip", *words)

    def says(text):
        wait_for(lambda: f"interface two (10.200.9.1, xc-a) {text}" in daemon.text(), f"no line that says: {text}")

    ip("link", "add", "xc-a", "type", "veth", "peer", "name", "xc-b")
    ip("addr", "add", "10.200.9.1/24", "dev", "xc-a")
    ip("link", "set", "xc-a", "up")
    ip("link", "set", "xc-b", "up")
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=("one/10.200.1.1", "two/10.200.9.1")).wait_ready()
    ip("link", "set", "xc-b", "down")
    says("has no carrier")
    ip("link", "set", "xc-a", "down")
    says("is down")
    ip("link", "set", "xc-a", "up")
    ip("link", "set", "xc-b", "up")
    says("works again")
    ip("addr", "del", "10.200.9.1/24", "dev", "xc-a")
    says("has lost this address")
    ip("link", "del", "xc-a")
    says("no longer exists")
    assert "interface one (" not in daemon.text(), daemon.text()  # the control
    finish(daemon)
