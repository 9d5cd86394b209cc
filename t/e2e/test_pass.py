# SPDX-License-Identifier: GPL-2.0-or-later
"""Passed-through SRTP: the libsrtp2 terminals share their keys end to end and check every packet. A
re-INVITE switches the call to re-encryption and back. Recordings are still decrypted."""
import os

import calls
import relay
import test_ng
from run import cases
from test_record import Folder, heard, packets, reply_file, stopped
from test_relay import clean, finish

PASS = {"flags": ["passthrough", "strict-source"]}
SUITES = ("80", "32", "AEAD_AES_128_GCM", "AES_256_CM_HMAC_SHA1_80", "80,MKI")


def shares_keys(call):
    """Whether each terminal got the other's own key."""
    return call.wire == [call.key[1], call.key[0]]


def media_flags(daemon, call):
    tags = calls.ok(daemon.client.call("query", call_id=call.id))["tags"]
    return ["passthrough" in t["medias"][0]["flags"] for t in tags.values()]


@cases(("udp", "serial"), ("udp", "opencl"), ("nfqueue", "serial"))
def test_terminals_share_their_keys(net, steering, engine):
    daemon = relay.Xcipherd(net, f"--steering={steering}", f"--engine={engine}", "--opencl-min=1").wait_ready()
    passed = [calls.Call(daemon.client, i, s, s, flags=PASS).setup() for i, s in enumerate(SUITES)]
    others = [calls.Call(daemon.client, 10 + i, *pair, flags=PASS).setup() for i, pair in enumerate([("80", "32"), ("plain", "80")])]
    for c in passed:
        assert shares_keys(c) and media_flags(daemon, c) == [True, True], c.text
    for c in others:
        assert not shares_keys(c) and media_flags(daemon, c) == [False, False], c.text
    clean(calls.load(net, relay.BUILD, passed + others, rate=50, seconds=2))
    for c in passed:  # a re-INVITE without the flag, then one with it
        c.flags = {}
        c.setup(again=True)
        assert not shares_keys(c), c.text
    clean(calls.load(net, relay.BUILD, passed, rate=50, seconds=2))
    for c in passed:
        c.flags = PASS  # its packets have wrapped: the peer could not know the ROC of a key it gets now
        c.setup(again=True)
        assert not shares_keys(c), c.text
        c.key = [os.urandom(len(k)) for k in c.key]
        c.keys = [[k] for k in c.key]
        c.setup(again=True)
        assert shares_keys(c) and media_flags(daemon, c) == [True, True], c.text
    clean(calls.load(net, relay.BUILD, passed, rate=50, seconds=2))
    for c in passed + others:
        calls.ok(c.delete())
    finish(daemon)


def test_ipv4_to_ipv6(net):
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=("10.200.1.1", "fd00:2::1")).wait_ready()
    a, b = test_ng.Phone(net, "caller", "10.200.1.2", "80"), test_ng.Phone(net, "callee", "fd00:2::2", "80")
    test_ng.talk(daemon.client, a, b, "c", address_family="IP6", **PASS)
    assert b.to[0] == "fd00:2::1" and a.to[0] == "10.200.1.1" and daemon.statistics()["drops"]["inactive"] == 0
    tags = calls.ok(daemon.client.call("query", call_id="c"))["tags"]
    assert all("passthrough" in t["medias"][0]["flags"] for t in tags.values()), tags
    assert test_ng.leaves(a, b) and test_ng.leaves(b, a)
    finish(daemon)


def test_what_is_passed_through_is_recorded_in_clear(net):
    with Folder() as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", f"--recording-dir={folder.path}").wait_ready()
        talk = [calls.Call(daemon.client, i, s, s, flags=PASS).setup() for i, s in enumerate(SUITES)]
        for c in talk:
            path = reply_file(daemon.client.call("start recording", call_id=c.id))
            assert os.path.dirname(path) == folder.path
        clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=2))
        for c in talk:
            got = packets(stopped(daemon, c))
            assert shares_keys(c) and sum(p[3][1] >= 192 for p in got) > 0, "no RTCP"
            for side in (0, 1):
                assert heard(got, c, side) == list(range(100)), heard(got, c, side)
        finish(daemon)
