# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks by a SIP user through SDP and the number of requests. Each has a control: the same call without the attack works."""
import os
import re
import struct
import time

import calls
import ng
import relay
import srtp
from run import cases
from test_limits import offer, packets
from test_relay import clean

BODY = calls.sdp("10.200.1.2", 4000)
CM80 = "AES_CM_128_HMAC_SHA1_80"


def daemon_of(net, *options):
    return relay.Xcipherd(net, "--engine=serial", "--workers=1", *options).wait_ready()


CONTROLS = {"NUL": "\0", "CR": "\r", "ESC": "\x1b", "VT": "\x0b", "FF": "\x0c", "DEL": "\x7f", "BS": "\b"}


@cases(*[(name,) for name in CONTROLS])
def test_control_characters_in_sdp_are_refused_with_their_line(net, name):
    daemon = daemon_of(net)
    places = {"s=-": (3, f"s=x{CONTROLS[name]}x"), "a=rtpmap:0": (7, f"a=rtpmap:0{CONTROLS[name]}"), "t=0 0": (5, f"t=0{CONTROLS[name]}0")}
    for n, (old, (line, new)) in enumerate(places.items()):
        reply = daemon.client.call("offer", call_id=f"c{n}", from_tag="a", sdp=BODY.replace(old, new, 1))
        assert reply["result"] == "error" and f"line {line}: control character" in reply["error-reason"], reply
        good = daemon.client.call("offer", call_id=f"c{n}", from_tag="a", sdp=BODY.replace(old, new.replace(CONTROLS[name], " "), 1))
        assert good["result"] == "ok", good
    daemon.stop()


@cases(("call_id",), ("from_tag",), ("to_tag",), ("via_branch",), ("label",), ("metadata",))
def test_control_characters_in_names_are_refused(net, key):
    daemon = daemon_of(net)
    plain = {"call_id": "c", "from_tag": "a", "to_tag": "b", "via_branch": "z", "label": "l", "metadata": "m"}
    for c in CONTROLS.values():
        reply = daemon.client.call("offer", sdp=BODY, **{**plain, key: f"x{c}[31mx"})
        assert reply["result"] == "error" and "control character" in reply["error-reason"], (reply, c)
        assert c not in repr(reply["error-reason"]).encode().decode("unicode_escape"), reply
    calls.ok(daemon.client.call("offer", sdp=BODY, **plain))
    assert daemon.client.call("list")["calls"] == ["c"]
    assert "\x1b" not in daemon.text(), daemon.text()
    daemon.stop()


KEY_LINES = ("k=clear:topsecret", "a=key-mgmt:mikey topsecret", "a=zrtp-hash:1.10 topsecret", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:topsecret",
             "a=acap:1 crypto:1 AES_CM_128_HMAC_SHA1_80 inline:topsecret", "a=acap:2 key-mgmt:mikey topsecret", "a=fingerprint:sha-256 topsecret",
             "a=setup:actpass topsecret", "a=tls-id:topsecret", "a=ice-pwd:topsecret",
             "a=zrtp-zid:topsecret", "a=cryptoscale:1 client inline:topsecret", "a=tcap:1 RTP/SAVP topsecret", "a=pcfg:1 t=1 topsecret",
             "a=ccap:1 IN IP4 topsecret 9", "a=alt:1 1 : topsecret b 127.0.0.1 9", "a=altc:1 IP4 topsecret 9", "a=cpar:a=crypto:1 C inline:topsecret")


@cases(*[(line.split(" ")[0].replace(":", "-").replace("=", "-"), n) for n, line in enumerate(KEY_LINES)])
def test_key_lines_of_other_mechanisms_do_not_pass(net, _, n):
    """At session and media level, in offer and answer, in relayed and refused media."""
    daemon = daemon_of(net)
    line = KEY_LINES[n] + "\r\n"
    body = BODY.replace("m=audio", line + "m=audio").replace("a=sendrecv", line + "a=control:kept\r\na=sendrecv") + "m=video 0 RTP/AVP 96\r\n" + line
    for kind, keys in (("offer", {}), ("answer", {"to_tag": "b"})):
        reply = calls.ok(daemon.client.call(kind, call_id="k", from_tag="a", sdp=body, **keys))
        assert "topsecret" not in reply["sdp"], reply["sdp"]
        assert "a=control:kept" in reply["sdp"], reply["sdp"]
    secure = calls.sdp("10.200.1.2", 4000, "80", os.urandom(30), extra=line if "crypto" not in line else "")
    reply = calls.ok(daemon.client.call("offer", call_id="s", from_tag="a", sdp=secure))
    assert "topsecret" not in reply["sdp"] and "a=crypto:" in reply["sdp"], reply["sdp"]
    daemon.stop()


def rtp(seq, word):
    return struct.pack("!BBHII", 0x80, 0, seq, 160 * seq, 77) + word


class Reflection:
    """A uses RTP, B SRTP. B answers with this key; None: with the key from its offer."""

    def __init__(self, net, daemon, key):
        self.a, self.b = (ng.socket_in(net.terminal[n]) for n in ("caller", "callee"))
        self.a.bind(("10.200.1.2", 4000))
        self.b.bind(("10.200.2.2", 5000))
        for s in (self.a, self.b):
            s.settimeout(0.05)
        head = {"call_id": "reflect" + os.urandom(4).hex(), "from_tag": "a"}
        offered = calls.ok(daemon.client.call("offer", sdp=BODY, transport_protocol="RTP/SAVP", SDES=[f"only-{CM80}"], **head))
        self.at_b = calls.parse(offered["sdp"])
        (tag, _, self.ours), = self.at_b["crypto"]
        self.reply = daemon.client.call("answer", to_tag="b", sdp=calls.sdp("10.200.2.2", 5000, "80", key or self.ours, tag), **head)
        self.good = self.reply["result"] == "ok"
        self.at_a = calls.parse(self.reply["sdp"])["port"] if self.good else None

    def close(self):
        self.a.close()
        self.b.close()


def test_our_own_key_is_not_taken_for_the_terminals(net):
    """If the answer could repeat the relay's key, the relay's own reflected packets would be authentic."""
    daemon = daemon_of(net)
    key = os.urandom(30)
    control = Reflection(net, daemon, key)
    assert control.good, control.reply
    protect, heard, seq = srtp.Session(CM80, key, srtp.OUTBOUND), b"", 0
    while not heard and seq < 400:
        seq += 1
        control.b.sendto(protect.protect(rtp(seq, b"control")), ("10.200.1.1", control.at_b["port"]))
        try:
            heard = control.a.recv(2048)
        except TimeoutError:
            pass
    assert heard[12:] == b"control"
    control.close()
    attack = Reflection(net, daemon, None)
    if attack.good:
        came = None
        for seq in range(1, 100):
            attack.a.sendto(rtp(seq, b"echo"), ("10.200.1.1", attack.at_a))
            try:
                attack.b.sendto(attack.b.recv(2048), ("10.200.1.1", attack.at_b["port"]))
                came = attack.a.recv(2048)
                break
            except TimeoutError:
                pass
        assert came is None, f"its own packet came back to a: {came}"
    assert attack.reply["result"] == "error" and "No usable crypto line" in attack.reply["error-reason"], attack.reply
    assert "key is one of ours" in attack.reply["error-reason"], attack.reply
    attack.close()
    daemon.stop()


def many_media(number, count=64, **keys):
    def run(daemon):
        body = calls.sdp("10.200.1.2", 4000) + "".join(f"m=audio {4002 + 2 * i} RTP/AVP 0\r\n" for i in range(1, count))
        return daemon.client.call("offer", call_id=f"many-{number}", from_tag="a", sdp=body, replace=["origin"], **keys)
    return run


def test_media_beyond_the_limit_are_refused_both_ways(net):
    daemon = daemon_of(net, "--max-medias=3")
    reply = calls.ok(many_media(1, 6)(daemon))
    ports = [int(p) for p in re.findall(r"^m=audio (\d+)", reply["sdp"], re.M)]
    assert [bool(p) for p in ports] == [True] * 3 + [False] * 3, ports
    answer = calls.ok(daemon.client.call("answer", call_id="many-1", from_tag="a", to_tag="b", sdp=many_body(6)))
    ports = [int(p) for p in re.findall(r"^m=audio (\d+)", answer["sdp"], re.M)]
    assert [bool(p) for p in ports] == [True] * 3 + [False] * 3, ports
    assert daemon.statistics()["ports used"] == 12
    daemon.stop()


def many_body(count):
    return calls.sdp("10.200.2.2", 5000) + "".join(f"m=audio {5002 + 2 * i} RTP/AVP 0\r\n" for i in range(1, count))


@cases(("udp",), ("nfqueue",))
def test_many_media_lines_leave_ports_for_emergency_calls(net, steering):
    """1,000 ports: without limits, 4 offers with 64 m-lines take them all."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", f"--steering={steering}", "--port-min=30000", "--port-max=30999").wait_ready()
    number, reply = 0, {"result": "ok"}
    while reply["result"] == "ok" and number < 400:
        reply = many_media(number)(daemon)
        number += 1
    assert reply["error-reason"] == "Ran out of ports", reply
    assert number > 16, f"{number} offers used up all ports"
    reply, number = {"result": "ok"}, 0
    while reply["result"] == "ok" and number < 400:  # control: it is full for ordinary calls of any size
        reply = offer(daemon, f"ordinary-{number}")
        number += 1
    assert reply["error-reason"] == "Ran out of ports", reply
    saved = calls.Call(daemon.client, 1, "80", "32", flags={"flags": ["emergency"]}).setup()
    clean(calls.load(net, relay.BUILD, [saved], rate=50, seconds=1))
    daemon.stop()


def test_one_call_id_holds_a_bounded_number_of_ports(net):
    daemon = daemon_of(net)
    body = many_body(64)
    for i in range(100):
        daemon.client.call("offer", call_id="one", from_tag=f"t{i}", sdp=body, via_branch=f"z{i}")
        daemon.client.call("offer", call_id="one", from_tag="a", sdp=body, via_branch=f"z{i}")
    assert daemon.statistics()["ports used"] <= 16 * 8 * 2, daemon.statistics()["ports used"]
    assert daemon.client.call("offer", call_id="one", from_tag="more", sdp=body)["error-reason"] == "Too many parties"
    calls.ok(offer(daemon, "another"))
    daemon.stop()


@cases(("80",), ("plain",))
def test_garbage_makes_no_call_refused(net, leg):
    """--max-bandwidth counts relayed packets only. Garbage at a call's port is counted separately, and new calls are accepted."""
    daemon = daemon_of(net, "--max-bandwidth=100000")
    talk = [calls.Call(daemon.client, 1, leg, "32").setup()]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    port = talk[0].to_caller["port"]
    stranger = ng.socket_in(net.terminal["callee"])
    end, number, sent = time.monotonic() + 6, 0, 0
    enough = 10 * 100000  # bytes
    # Long enough for several measurements of three seconds each.
    while time.monotonic() < end or (daemon.statistics()["bytes not relayed"] <= enough and time.monotonic() < end + 60):
        for _ in range(50):
            stranger.sendto(rtp(sent & 0xffff, os.urandom(1200)), ("10.200.1.1", port))
            sent += 1
        reply = offer(daemon, f"garbage-{number}", supports=["load limit"])
        assert reply["result"] == "ok", (reply, sent)
        number += 1
        time.sleep(0.02)
    s = daemon.statistics()
    assert sum(s["drops"].values()) > 0 and packets(daemon, talk[0])[0] > 0, s["drops"]  # control: it was received
    assert s["bytes not relayed"] > enough and s["limits"]["bandwidth"]["refused"] == 0, s
    daemon.stop()
