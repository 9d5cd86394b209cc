# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon from the view of operators and attackers: start, stop, kill, garbage, repeated
requests, thousands of calls."""
import os
import random
import re
import signal
import subprocess
import time

import calls
import hold
import ng
import redisrig
import relay
import test_ng
from baresip import wait_for
from run import Skip, cases
from test_relay import clean, finish


def rules(net):
    """All netfilter rules in the gateway, from nft and iptables."""
    text = ""
    for tool in (["iptables-save"], ["ip6tables-save"], ["nft", "list", "ruleset"]):
        text += net.run(net.gateway, *tool, check=False).stdout
    # nft lists chains in no fixed order, and counts
    return sorted(re.sub(r"counter packets \d+ bytes \d+|\[.*", "", line).strip() for line in text.splitlines()
                  if "xcipher" in line.lower() or "queue" in line.lower())


def test_nfqueue_leaves_no_rule_behind(net):
    assert rules(net) == []
    daemon = relay.Xcipherd(net, "--steering=nfqueue").wait_ready()
    assert rules(net), "no rule was installed"
    installed = rules(net)
    os.kill(daemon.pid(), signal.SIGKILL)
    daemon.process.wait()
    assert rules(net), "kill -9 cannot remove rules"
    daemon = relay.Xcipherd(net, "--steering=nfqueue").wait_ready()
    assert rules(net) == installed, "a restart must not add to what a killed instance left"
    talk = [calls.Call(daemon.client, 1, "80", "32").setup()]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    finish(daemon)
    assert rules(net) == [], rules(net)


def test_sending_by_verdict_needs_a_host_that_forwards(net):
    daemon = relay.Xcipherd(net, "--steering=nfqueue", "--nfqueue-send=verdict")
    assert daemon.process.wait(30) == 1
    assert re.search(r"net\.ipv4\.conf\.\w+\.\w+ .*must be", daemon.text()), daemon.text()
    assert rules(net) == [], rules(net)
    net.forward()
    daemon = relay.Xcipherd(net, "--steering=nfqueue", "--nfqueue-send=verdict").wait_ready()
    assert any("PREROUTING" in line or "prerouting" in line for line in rules(net)), rules(net)
    os.kill(daemon.pid(), signal.SIGKILL)
    daemon.process.wait()
    daemon = relay.Xcipherd(net, "--steering=nfqueue", "--nfqueue-send=raw").wait_ready()
    assert not any("-A PREROUTING" in line for line in rules(net)), rules(net)
    finish(daemon)
    assert rules(net) == [], rules(net)


def test_an_address_of_the_loopback_interface_is_judged_by_those_its_packets_come_by(net):
    """A service's address is often on lo. The settings of lo itself do not matter."""
    net.forward()
    net.run(net.gateway, "ip", "addr", "add", "10.200.9.1/32", "dev", "lo")
    for lo, link, by_verdict in (("1", "0", True), ("0", "1", False)):
        net.run(net.gateway, "sysctl", "-q", "-w", f"net.ipv4.conf.lo.send_redirects={lo}", f"net.ipv4.conf.g1.rp_filter={link}")
        daemon = relay.Xcipherd(net, "--steering=nfqueue", "--engine=serial", addresses=("10.200.9.1",)).wait_ready()
        talk = [calls.Call(daemon.client, 1, "80", "32").setup()]
        clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=0.6))
        s = daemon.statistics()
        assert s["sent by verdict"] == (s["packets sent"] if by_verdict else 0), s
        finish(daemon)


def test_rules_that_vanish_lose_no_call(net):
    """Somebody flushes the firewall under media: packets come by the ordinary sockets until the rules are set again."""
    daemon = relay.Xcipherd(net, "--steering=nfqueue").wait_ready()
    talk = [calls.Call(daemon.client, 1, "80", "32").setup()]
    load = redisrig.Load(net, relay.BUILD, talk, 50, 60)
    wait_for("media", lambda: daemon.statistics()["packets sent"] > 20)
    for tool in (["iptables", "-t", "mangle", "-F"], ["nft", "flush", "ruleset"]):
        net.run(net.gateway, *tool, check=False)
    wait_for("the rules", lambda: daemon.statistics()["rules"]["set again"] and not daemon.statistics()["rules"]["missing"])
    sent = daemon.statistics()["packets sent"]
    wait_for("more media", lambda: daemon.statistics()["packets sent"] > sent + 20)
    clean(load.enough())
    finish(daemon)


@cases(("raw",), ("verdict",))
def test_rules_that_vanish_reorder_nothing(net, send):
    """The worker is stopped meanwhile. It then finds older packets in the queue, newer ones at the
    socket, and the newest in the queue."""
    net.forward()
    daemon = test_ng.start(net, "--steering=nfqueue", f"--nfqueue-send={send}", "--workers=1")
    a, b = test_ng.Phone(net, "caller", "10.200.1.2", "80"), test_ng.Phone(net, "callee", "10.200.2.2", "32")
    test_ng.talk(daemon.client, a, b, "c")
    said = 0

    def says():
        nonlocal said
        for _ in range(5):
            a.send(b"%d" % said)
            said += 1

    for again in (1, 2):
        with hold.thread(daemon.pid(), "worker"):
            says()
            net.run(net.gateway, "iptables", "-t", "mangle", "-F")
            says()
            wait_for("the rules", lambda: daemon.statistics()["rules"] == {"missing": 0, "set again": again})
            says()
        heard = [int(b.hears()[1]) for _ in range(15)]
        assert heard == list(range(said - 15, said)), heard
    finish(daemon)


@cases(("--steering=pigeon",), ("--interface=nowhere",), ("--listen-ng=1",), ("--port-min=1",), ("--config-file=/nonexistent",),
       ("--opencl-device=no-such-device", "--engine=opencl"), ("--interface=203.0.113.77",))
def test_a_mistake_stops_the_start_with_one_line(net, *options):
    p = subprocess.run(["ip", "netns", "exec", net.gateway, os.path.join(relay.BUILD, "xcipherd"), "--foreground", "--log-level=3",
                        *options], capture_output=True, text=True, timeout=60, check=False)
    complaint = [line for line in p.stderr.splitlines() if line.startswith("xcipherd:")]
    assert p.returncode == 1, (p.returncode, p.stderr)
    assert len(complaint) == 1 and len(p.stderr.splitlines()) == 1, p.stderr


def test_without_the_privilege_it_names_udp(net):
    p = subprocess.run(["ip", "netns", "exec", net.gateway, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                        os.path.join(relay.BUILD, "xcipherd"), "--foreground", "--log-level=3", "--steering=nfqueue",
                        "--engine=serial", "--interface=10.200.1.1"], capture_output=True, text=True, timeout=60, check=False)
    if "Permission denied" in p.stderr and "setpriv" in p.stderr:
        raise Skip("the build folder cannot be read by another user")
    assert p.returncode == 1 and "--steering=udp" in p.stderr, p.stderr


def test_hangup_is_safe_and_repeated_cookies_are_answered_from_the_cache(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    os.kill(daemon.pid(), signal.SIGHUP)
    body = calls.sdp("10.200.1.2", 4000, "80", os.urandom(30))
    message = b"cookie-1 " + ng.encode({"command": "offer", "call-id": "twice", "from-tag": "a", "sdp": body,
                                        "transport-protocol": "RTP/SAVP", "replace": ["origin"]})
    first = daemon.client.raw(message)
    assert first == daemon.client.raw(message) and b"6:result2:ok" in first, first
    assert daemon.client.call("list")["calls"] == ["twice"]
    other = ng.Client(net.gateway)
    reply = other.raw(b"cookie-1 " + ng.encode({"command": "ping"}))
    assert reply == b"cookie-1 d6:result4:ponge", f"another client's cookie must not give it that reply: {reply}"
    finish(daemon)


def test_garbage_never_hurts(net):
    """Garbage on the ng port and on media ports during a call."""
    daemon = relay.Xcipherd(net, "--steering=nfqueue").wait_ready()
    talk = [calls.Call(daemon.client, 1, "80", "32").setup()]
    rng = random.Random(1)
    good = b"x " + ng.encode({"command": "offer", "call-id": "g", "from-tag": "t",
                              "sdp": calls.sdp("10.200.1.2", 4000, "80", bytes(30))})
    for i in range(3000):
        b = bytearray(good if i % 2 else rng.randbytes(rng.randrange(300)))
        for _ in range(rng.randrange(4)):
            if b:
                b[rng.randrange(len(b))] = rng.randrange(256)
        daemon.client.sock.send(bytes(b)[:rng.randrange(len(b) + 1)] if i % 3 == 0 else bytes(b))
    attacker = ng.socket_in(net.terminal["callee"])
    for i in range(3000):
        attacker.sendto(rng.randbytes(rng.randrange(200)), ("10.200.1.1", talk[0].to_caller["port"] + i % 2))
    attacker.close()
    daemon.client.close()
    daemon.client = ng.Client(net.gateway)
    assert daemon.client.call("ping")["result"] == "pong"
    # Otherwise garbage would leave little room in the queue for the call's packets.
    wait_for("an end of the garbage", lambda: daemon.statistics()["packets received"] >= 3000)
    result = calls.load(net, relay.BUILD, talk, rate=50, seconds=1)
    clean(result)
    drops = daemon.statistics()["drops"]
    assert drops["bad-tag"] + drops["malformed"] > 0, drops
    finish(daemon, drops=("bad-tag", "malformed", "not-media", "unknown-port", "wrong-source", "inactive"))


def test_ten_thousand_calls_leave_nothing_behind(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--log-level=4").wait_ready()

    def round_of(n, start):
        for i in range(n):
            calls.ok(calls.Call(daemon.client, start + i, "80", "32", ports=(4000, 4002)).setup().delete())

    def settled():
        end = time.monotonic() + 60
        while time.monotonic() < end:
            s = daemon.statistics()
            used = {k: s[k] for k in ("ports used", "streams used", "contexts used", "key slots used", "commands waiting")}
            if not any(used.values()):
                return daemon.descriptors(), daemon.rss_kib()
            time.sleep(0.2)
        raise AssertionError(f"still in use: {used}")

    # AddressSanitizer finds leaks itself, even with few calls, and keeps freed memory in
    # quarantine.
    sanitized = "san" in os.path.basename(relay.BUILD)
    many = 1000 if sanitized else 5000
    round_of(many, 0)
    descriptors, rss = settled()
    if sanitized:
        round_of(many, many)
        assert settled()[0] == descriptors
    else:
        grown = []
        # Replies are stored for up to a minute, so a faster round holds more of them. Memory may
        # therefore grow in one round, but a leak grows in each.
        for i in range(1, 4):
            time.sleep(61)
            round_of(many, i * many)
            after, rss_after = settled()
            assert after == descriptors, f"descriptors {descriptors} -> {after}"
            grown.append(rss_after - rss)
            rss = rss_after
            if grown[-1] < 2048:
                break
        assert grown[-1] < 2048, f"resident memory grew by {grown} KiB in rounds of {many} calls"
    assert daemon.client.call("list")["calls"] == []
    finish(daemon)


def test_ports_run_out_and_come_back(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--port-min=30000", "--port-max=30015", "--workers=1").wait_ready()
    up = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(4)]
    reply = daemon.client.call("offer", call_id="late", from_tag="x", sdp=calls.sdp("10.200.1.2", 4000, "80", bytes(range(30))))
    assert reply == {"result": "error", "error-reason": "Ran out of ports"}, reply
    clean(calls.load(net, relay.BUILD, up, rate=50, seconds=1))
    calls.ok(up.pop().delete())
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            calls.Call(daemon.client, 50, "80", "32").setup()
            break
        except calls.Failed:
            time.sleep(0.5)
    else:
        raise AssertionError("the port of a deleted call did not come back")
    finish(daemon)


def test_ctl_speaks_to_it(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    ctl = os.path.join(relay.BUILD, "xcipherctl")
    call = calls.Call(daemon.client, 1, "80", "32").setup()

    def run(*args):
        return net.run(net.gateway, ctl, *args, check=False)

    assert run("ping").stdout.startswith("pong in")
    assert run("list").stdout.split() == [call.id]
    query = run("query", call.id)
    assert query.returncode == 0 and "AES_CM_128_HMAC_SHA1_32" in query.stdout, query
    import base64
    for key in (call.key[0], call.key[1], *call.wire):
        assert base64.b64encode(key).decode() not in query.stdout and key.hex() not in query.stdout, "a key in a query"
    assert run("--json", "statistics").stdout.startswith("{")
    assert run("query", "nobody").returncode == 1
    assert run("delete", call.id).returncode == 0 and run("list").stdout == ""
    assert run("nonsense").returncode == 2
    finish(daemon)
    assert run("--timeout=1", "ping").returncode == 3
