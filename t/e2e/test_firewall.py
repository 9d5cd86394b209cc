# SPDX-License-Identifier: GPL-2.0-or-later
"""Netfilter rules that another program removes while xcipherd runs: they are set again, and no call ends."""
import re
import time

import calls
import idle
import relay
from run import cases
from test_relay import clean, finish


def wait_for(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def rules(net):
    """Number of rules that send packets to queues, from nft or iptables-nft."""
    return net.run(net.gateway, "nft", "list", "ruleset").stdout.lower().count("queue")


def remove(net, how):
    """If the kernel's nftables has no queue expression, iptables-nft sets the rules."""
    ours = "inet xcipher_q22" in net.run(net.gateway, "nft", "list", "tables").stdout
    table = ("inet", "xcipher_q22") if ours else ("ip", "mangle")
    commands = {"ruleset": ("flush", "ruleset"), "rules": ("flush", "table", *table), "table": ("delete", "table", *table)}
    net.run(net.gateway, "nft", *commands[how])


@cases(("ruleset",), ("rules",), ("table",), ("ruleset", "--user=nobody"))
def test_rules_that_are_flushed_are_set_again(net, how, *options):
    daemon = relay.Xcipherd(net, "--engine=serial", "--steering=nfqueue", "--nfqueue-num=22", "--workers=2", *options).wait_ready()
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(6)]
    clean(calls.load(net, relay.BUILD, talk[:3], rate=50, seconds=1))
    count = rules(net)
    assert count == 2
    remove(net, how)  # the daemon restores them within 0.1 s, so a slow nft would never see them missing
    wait_for(lambda: daemon.statistics()["rules"] == {"missing": 0, "set again": 1}, "the rules are not set again")
    assert rules(net) == count
    before = daemon.statistics()["by fallback socket"]
    clean(calls.load(net, relay.BUILD, talk[3:], rate=50, seconds=1))
    assert daemon.statistics()["by fallback socket"] == before
    assert "rules were removed" in daemon.text() and "rules are set again" in daemon.text(), daemon.text()
    for call in talk:
        calls.ok(call.delete())
    finish(daemon)
    assert rules(net) == 0, "nothing stays behind"


def test_other_tables_do_not_concern_us(net):
    """Control: a firewall sets and flushes its own rules."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--steering=nfqueue", "--nfqueue-num=22").wait_ready()
    for _ in range(3):
        net.run(net.gateway, "nft", "add", "table", "inet", "other")
        net.run(net.gateway, "nft", "add", "chain", "inet", "other", "input", "{ type filter hook input priority 0; }")
        net.run(net.gateway, "nft", "add", "rule", "inet", "other", "input", "udp", "dport", "9", "drop")
        net.run(net.gateway, "nft", "delete", "table", "inet", "other")
    idle.wait_idle()
    s = daemon.statistics()["rules"]
    assert s == {"missing": 0, "set again": 0}, s
    finish(daemon)


def test_a_firewall_that_flushes_again_and_again_makes_no_loop(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--steering=nfqueue", "--nfqueue-num=22", "--workers=1").wait_ready()
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(3)]
    for _ in range(4):
        wait_for(lambda: rules(net), "the rules are not set again")
        net.run(net.gateway, "nft", "flush", "ruleset")
        missing = daemon.text().count("rules were removed") + 1
        wait_for(lambda: daemon.text().count("rules were removed") >= missing or rules(net), "nothing is noticed")
    wait_for(lambda: rules(net), "the rules are not set again")
    delays = [float(d) for d in re.findall(r"set again in ([0-9.]+) s", daemon.text())]
    assert len(delays) >= 3 and all(later == 2 * earlier for earlier, later in zip(delays, delays[1:])), delays
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))  # with rules or without
    wait_for(lambda: rules(net) == 1, "the rules are not set again")
    for call in talk:
        calls.ok(call.delete())
    finish(daemon)


def test_a_second_daemon_is_told_who_has_the_queue(net):
    first = relay.Xcipherd(net, "--engine=serial", "--steering=nfqueue", "--nfqueue-num=22", "--workers=1").wait_ready()
    second = relay.Xcipherd(net, "--engine=serial", "--steering=nfqueue", "--nfqueue-num=21", "--workers=2", "--listen-ng=127.0.0.1:22223")
    assert second.process.wait(60) == 1
    assert "queue 22 is in use by another program" in second.text() and "--nfqueue-num" in second.text(), second.text()
    assert "run as root" not in second.text()
    without = relay.Xcipherd(net, "--engine=serial", "--steering=nfqueue", "--listen-ng=127.0.0.1:22223", user="65534")
    assert without.process.wait(60) == 1
    assert "run as root" in without.text(), without.text()  # control: here the condition holds
    finish(first)
