# SPDX-License-Identifier: GPL-2.0-or-later
"""RTP from a callee before its answer. It is relayed if both sides are plain, from one source at a
time, and dropped when the answer names another address."""
import time

import calls
import idle
from run import cases
from test_bleed import THREE, Stranger, Translated, a_stranger_has_nothing, attack
from test_learning import settle_quickly
from test_ng import Phone, finish, leaves, start, wants
from baresip import wait_for

ROOM = ("caller", "callee", "thief")


def offer(daemon, a, b, **keys):
    reply = calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), **{**wants(b), **keys}))
    idle.wait_idle()  # the worker counts the first packet, too
    return b.told(reply["sdp"])


def answer(daemon, a, b, tag="b", **keys):
    a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag=tag, sdp=b.sdp(), **keys))["sdp"])
    idle.wait_idle()


def heard(phone):
    """All packets received so far and within 0.2 s."""
    words = []
    while True:
        got = phone.hears(0.2)
        if got is None:
            return words
        words.append(got[1])


def hears(phone, number):
    return [phone.hears()[1] for _ in range(number)]


def pair(net, *options, **kinds):
    daemon = start(net, *options)
    return daemon, Phone(net, "caller", "10.200.1.2", kinds.get("a")), Phone(net, "callee", "10.200.2.2", kinds.get("b"))


def speaks(phone, words, gap=0.02):
    for word in words:
        phone.send(word)
        time.sleep(gap)


WORDS = [b"word%d" % i for i in range(20)]


@cases(("udp", "delayed"), ("udp", "immediate"), ("nfqueue", "heuristic"))
def test_the_callee_is_heard_before_its_answer(net, steering, mode):
    daemon, a, b = pair(net, f"--steering={steering}", f"--endpoint-learning={mode}")
    offer(daemon, a, b)
    speaks(b, WORDS)
    assert hears(a, 16) == WORDS[4:], "what follows its first four packets"
    answer(daemon, a, b)
    assert leaves(b, a) and leaves(a, b) and leaves(b, a)
    finish(daemon)


@cases(("flag",), ("option",), ("caller is SRTP",), ("callee is SRTP",), ("caller only sends",), ("learning is off",))
def test_it_is_not_where_it_may_not_or_cannot(net, why):
    options = ["--early-media=no"] if why == "option" else ["--endpoint-learning=off"] if why == "learning is off" else []
    daemon, a, b = pair(net, *options, a="80" if why == "caller is SRTP" else None, b="80" if why == "callee is SRTP" else None)
    if why == "caller only sends":
        a.sdp, whole = lambda: whole("sendonly"), a.sdp
    offer(daemon, a, b, **({"flags": ["no-early-media"]} if why == "flag" else {}))
    speaks(b, WORDS)
    assert heard(a) == []
    if why == "caller only sends":
        a.sdp = whole
    answer(daemon, a, b)
    if why not in ("callee is SRTP", "caller only sends"):
        assert leaves(b, a)
    finish(daemon)


@cases(("delayed",), ("immediate",), ("heuristic",))
def test_a_callee_behind_translation_stays_heard_over_its_answer(net, mode):
    """The callee's media are relayed before the answer, which names another address than the
    packets have."""
    daemon = start(net, f"--endpoint-learning={mode}")
    a, b = Phone(net, "callee", "10.200.2.2"), Translated(net)
    offer(daemon, a, b)
    settle_quickly(b, a)
    answer(daemon, a, b)
    settle_quickly(b, a)
    assert leaves(b, a), "not heard"
    assert leaves(a, b), "gets nothing"
    finish(daemon)


def test_the_answers_address_counts_and_no_earlier_source(net):
    daemon, a, b = pair(net)
    thief = Stranger(net)
    offer(daemon, a, b)
    # Control: before the answer, no address of the callee is known.
    attack(daemon, thief, b.to, 20)
    assert hears(a, 16) == [b"stranger"] * 16
    answer(daemon, a, b)
    assert leaves(a, b), "media stay with the stranger"
    a_stranger_has_nothing(thief)
    for _ in range(8):
        assert leaves(b, a)
    attack(daemon, thief, b.to, 20)
    assert heard(a) == [] and leaves(a, b) and leaves(b, a)
    a_stranger_has_nothing(thief)
    finish(daemon)


test_the_answers_address_counts_and_no_earlier_source.terminals = THREE


def test_branches_of_a_fork_are_not_mixed(net):
    daemon = start(net)
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    other = Phone(net, "thief", "10.200.3.2")
    offer(daemon, a, b, via_branch="z1")
    offer(daemon, a, other, via_branch="z2")
    assert b.to != other.to
    speaks(b, WORDS[:6])
    for i in range(20):
        other.send(b"other")
        b.send(b"b%d" % i)
        time.sleep(0.02)
    assert hears(a, 22) == [*WORDS[4:6], *(b"b%d" % i for i in range(20))]
    assert heard(a) == []
    # The first branch is silent, so another one is relayed.
    def comes():
        other.send(b"other")
        return a.hears(0.05)
    wait_for("the other branch", comes)
    heard(a)
    b.send(b"back")
    assert heard(a) == []
    # After an answer, only the branch that answered is relayed.
    answer(daemon, a, b, via_branch="z1")
    assert leaves(b, a)
    speaks(other, [b"other"] * 8)
    assert heard(a) == []
    finish(daemon)


test_branches_of_a_fork_are_not_mixed.terminals = ROOM


def test_no_ring_of_calls_without_an_answer(net):
    """Two calls name each other's port for the callee as the caller's address."""
    daemon = start(net, addresses=("10.200.1.1",))
    a = Phone(net, "caller", "10.200.1.2")

    def invite(call_id, sdp):
        return daemon.client.call("offer", call_id=call_id, from_tag="a", sdp=sdp)

    def at(port):
        return a.sdp().replace("10.200.1.2", "10.200.1.1").replace(f"m=audio {a.port}", f"m=audio {port}")
    first = calls.parse(calls.ok(invite("one", a.sdp()))["sdp"])["port"]
    second = calls.parse(calls.ok(invite("two", at(first)))["sdp"])["port"]
    # Control: a call may name a port of another call if that forms no loop.
    calls.ok(invite("three", at(second)))
    ring = invite("one", at(second))
    assert ring["result"] == "error" and ring["error-reason"].startswith("Media address is not allowed"), ring
    assert daemon.stop() == 0
