# SPDX-License-Identifier: GPL-2.0-or-later
"""Forked calls: which request may change whose media. A losing branch knows Call-ID, From tag and
its own Via branch, and attacks. Each attack has a control: the attacker's own call works by the
same path. Legal forking works: early media from several phones, a late answer, re-INVITEs of the
phone that won. Terminals speak plain RTP, so that a test sees who receives what."""
import os
import struct
import time

import calls
import idle
import ng
import relay
from run import cases
from test_relay import finish

TERMINALS = ("caller", "callee", "stranger")
TRIES = 400  # of 50 ms: longest wait for expected packets


class Phone:
    """A socket in a terminal's namespace that sends text in RTP packets."""

    def __init__(self, net, name, port=4000):
        self.ip, self.port = f"10.200.{TERMINALS.index(name) + 1}.2", port
        self.socket = ng.socket_in(net.terminal[name])
        self.socket.bind((self.ip, port))
        self.seq, self.ssrc = 0, int.from_bytes(os.urandom(4), "big")

    def sdp(self, extra=""):
        return calls.sdp(self.ip, self.port, extra=extra)

    def send(self, port, word):
        self.seq += 1
        self.socket.sendto(struct.pack("!BBHII", 0x80, 0, self.seq, 160 * self.seq, self.ssrc) + word, ("10.200.1.1", port))

    def heard(self, seconds=0.0):
        """Texts received since the last call."""
        words = []
        idle.wait_idle()
        self.socket.settimeout(max(seconds, 0.001))
        try:
            while True:
                words.append(self.socket.recv(2048)[12:])
                self.socket.settimeout(0.001)
        except TimeoutError:
            return words


def reaches(source, port, sink, word):
    """Sends until its packets are relayed."""
    for _ in range(TRIES):
        source.send(port, word)
        if word in sink.heard(0.05):
            return True
    return False


def relay_port(reply):
    return calls.parse(calls.ok(reply)["sdp"])["port"]


class Fork:
    """A call from a that rings at b and at a second phone; b answers."""

    def __init__(self, net, daemon, branches=True, code=None):
        self.client = daemon.client
        self.a, self.b, self.c = Phone(net, "caller"), Phone(net, "callee"), Phone(net, "stranger")
        self.id = "fork-" + os.urandom(4).hex()
        self.branch = ({"via_branch": "z1"}, {"via_branch": "z2"}) if branches else ({}, {})
        self.code = {"sip_code": code} if code else {}
        self.at_b = self.offer(self.a, **self.branch[0])
        self.at_c = self.offer(self.a, **self.branch[1])
        self.at_a = relay_port(self.answer(self.b, "b", **self.branch[0], **self.code))
        self.at_b = relay_port({"result": "ok", "sdp": self.at_b["sdp"]})
        self.talk()

    def offer(self, phone, from_tag="a", extra="", **keys):
        return self.client.call("offer", call_id=self.id, from_tag=from_tag, sdp=phone.sdp(extra), replace=["origin"], **keys)

    def answer(self, phone, to_tag, from_tag="a", **keys):
        return self.client.call("answer", call_id=self.id, from_tag=from_tag, to_tag=to_tag, sdp=phone.sdp(), replace=["origin"], **keys)

    def delete(self, **keys):
        return self.client.call("delete", call_id=self.id, delete_delay=0, **keys)

    def talk(self):
        """Both parties receive each other's media; the third phone receives none."""
        word = os.urandom(8).hex().encode()
        self.c.heard()
        assert reaches(self.a, self.at_a, self.b, b"a" + word), "b does not hear a"
        assert reaches(self.b, self.at_b, self.a, b"b" + word), "a does not hear b"
        stray = [w for w in self.c.heard(0.2) if w[1:] == word]
        assert not stray, f"the third phone hears {stray}"

    def exists(self):
        return self.id in self.client.call("list")["calls"]


def own_call(fork):
    """Control: the third phone calls itself through the same relay, and receives its own media."""
    own = {"call_id": fork.id + "-own", "from_tag": "x", "replace": ["origin"]}
    other = Phone.__new__(Phone)
    other.__dict__.update(fork.c.__dict__)
    calls.ok(fork.client.call("offer", sdp=fork.b.sdp(), **own))
    port = relay_port(fork.client.call("answer", sdp=fork.c.sdp(), to_tag="y", **own))
    fork.b.heard()
    assert reaches(fork.b, port, fork.c, b"control"), "the control's packets do not arrive"
    calls.ok(fork.client.call("delete", call_id=own["call_id"], delete_delay=0))


def reinvited(fork):
    """Re-INVITEs of either side work in the dialog that won."""
    calls.ok(fork.offer(fork.b, "b", to_tag="a"))
    calls.ok(fork.answer(fork.a, "a", from_tag="b"))
    fork.talk()
    calls.ok(fork.offer(fork.a, "a", to_tag="b"))
    calls.ok(fork.answer(fork.b, "b"))
    fork.talk()


@cases((True, None), (True, 200), (False, None), (False, 200))
def test_an_initial_invite_of_a_losing_branch_takes_nobodys_audio(net, branches, code):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon, branches, code)
    late = {"via_branch": "z9"} if branches else {}
    own_call(fork)
    fork.talk()
    fork.offer(fork.c, **late)
    fork.talk()
    fork.answer(fork.c, "d", **late, **fork.code)
    if branches or code:  # without both, this answer would be from a phone that rang in parallel
        fork.talk()
        reinvited(fork)
    calls.ok(fork.delete(from_tag="a", to_tag="b"))
    assert not fork.exists()
    daemon.stop()


@cases(("z", "a"), ("c", "a"), ("z", "b"))
def test_an_invite_with_tags_of_its_own_takes_nobodys_audio(net, from_tag, to_tag):
    """A request with an unknown From tag, or a losing branch's, and a real To tag. The attacker
    also sends the answer."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon, True, 200)
    own_call(fork)
    if from_tag == "c":
        fork.answer(fork.c, "c", via_branch="z2", sip_code=183)
        fork.talk()
    fork.offer(fork.c, from_tag, to_tag=to_tag)
    fork.talk()
    fork.answer(fork.c, to_tag, from_tag=from_tag, sip_code=200)
    fork.talk()
    reinvited(fork)
    daemon.stop()


@cases(({"via_branch": "z9"},), ({"to_tag": "nobody"},), ({"to_tag": "nobody", "flags": ["to-tag"]},), ({"via_branch": "z9", "to_tag": "nobody"},),
       ({"from_tag": "nobody"},), ({"from_tag": "nobody", "to_tag": "a"},))
def test_a_delete_that_fits_no_branch_ends_nothing(net, keys):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon)
    reply = calls.ok(fork.delete(**{"from_tag": "a", **keys}))
    assert reply.get("warning") == "Call-ID not found or tags didn't match", reply
    assert fork.exists()
    fork.talk()
    reply = calls.ok(fork.delete(from_tag="a", via_branch="z2"))  # control: the branch that lost is cancelled
    assert "warning" not in reply and fork.exists(), reply
    fork.talk()
    calls.ok(fork.delete(from_tag="b", to_tag="a", via_branch="of-the-bye"))  # a BYE has a Via branch of its own
    assert not fork.exists()
    finish(daemon)


def test_a_losing_branch_that_hangs_up_ends_itself_only(net):
    """The losing branch sent early media, so the call knows its tag. Its BYE names that tag."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon, True, 183)
    calls.ok(fork.answer(fork.c, "c", via_branch="z2", sip_code=183))
    calls.ok(fork.answer(fork.b, "b", via_branch="z1", sip_code=200))
    fork.talk()
    calls.ok(fork.delete(from_tag="c", to_tag="a"))
    assert fork.exists()
    fork.talk()
    finish(daemon)


@cases((True,), (False,))
def test_early_media_of_two_phones_and_a_late_answer(net, branches):
    """The latest early answer gets the media. Then the phone with the 200 gets it, until the caller
    switches to another one."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon, branches, 183)
    calls.ok(fork.answer(fork.c, "c", **fork.branch[1], sip_code=183))
    at_c = relay_port(fork.at_c)
    assert reaches(fork.c, at_c, fork.a, b"early media of c"), "a does not hear c"
    assert reaches(fork.a, fork.at_a, fork.c, b"a to c"), "c does not hear a"
    calls.ok(fork.answer(fork.b, "b", **fork.branch[0], sip_code=200))
    fork.talk()
    fork.answer(fork.c, "c", **fork.branch[1], sip_code=183)
    fork.talk()
    late = fork.answer(fork.c, "c", **fork.branch[1], sip_code=200)
    fork.talk()
    if branches:
        calls.ok(late)  # a dialog of its own: the caller may keep it and end the other one
        fork.a.heard()
        for _ in range(20):
            fork.c.send(at_c, b"late")
        assert b"late" not in fork.a.heard(0.1), "who answered late is mixed in"
        calls.ok(fork.delete(from_tag="a", to_tag="b"))
        assert fork.exists()
        assert reaches(fork.c, at_c, fork.a, b"now c"), "a does not hear c"
    daemon.stop()


@cases(({},), ({"via_branch": "evil"},), ({"to_tag": "y"},), ({"from_tag": "y", "to_tag": "x"},))
def test_a_stranger_in_the_same_call_id_ends_nothing_but_his_own(net, keys):
    """The stranger only knows the Call-ID. His offer without sip-code is accepted. His delete, or
    his BYE after an accomplice's answer, ends only his own dialog."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon)
    calls.ok(fork.offer(fork.c, "x", via_branch="evil"))
    if "to_tag" in keys:
        calls.ok(fork.answer(fork.c, "y", from_tag="x", via_branch="evil"))
    fork.talk()
    reply = calls.ok(fork.delete(**{"from_tag": "x", **keys}))
    assert "warning" not in reply and fork.exists(), reply  # control: his own dialog ended
    fork.talk()
    again = calls.ok(fork.delete(**{"from_tag": "x", **keys}))
    assert "warning" in again and fork.exists(), again
    reinvited(fork)
    calls.ok(fork.delete(from_tag="b", to_tag="a"))
    assert not fork.exists()
    finish(daemon)


def test_after_a_final_answer_a_stranger_is_refused(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon, True, 200)
    own_call(fork)
    for keys in ({}, {"to_tag": "y"}, {"via_branch": "z1"}):
        reply = fork.offer(fork.c, "x", **keys)
        assert reply.get("error-reason", "").startswith("Invalid dialogue association ("), reply
    fork.talk()
    reinvited(fork)
    daemon.stop()


def test_strangers_leave_places_to_listeners_and_count_as_calls(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--max-sessions=2").wait_ready()
    fork = Fork(net, daemon)
    taken = sum(fork.offer(fork.c, f"x{i}")["result"] == "ok" for i in range(20))
    assert 0 < taken < 4, taken
    calls.ok(fork.client.call("subscribe request", call_id=fork.id, flags=["all"]))
    own_call(fork)  # takes the last place
    calls.ok(fork.client.call("offer", call_id="last", from_tag="x", sdp=fork.c.sdp()))
    reply = fork.offer(fork.c, "y", supports=["load limit"])
    assert reply["result"] == "load limit", reply
    fork.talk()
    daemon.stop()


def test_a_stranger_does_not_keep_what_was_deleted(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon)
    calls.ok(fork.client.call("delete", call_id=fork.id, from_tag="a", to_tag="b", delete_delay=600))
    fork.talk()  # control: the call is still up
    calls.ok(fork.offer(fork.c, "x"))
    fork.b.heard()
    for _ in range(20):
        fork.a.send(fork.at_a, b"late")
    assert b"late" not in fork.b.heard(0.2), "the deleted call goes on"
    reply = calls.ok(fork.delete(from_tag="a", to_tag="b"))
    assert "warning" in reply, reply
    calls.ok(fork.delete(from_tag="x"))
    assert not fork.exists()
    finish(daemon)


def test_who_was_left_out_by_connect_does_not_rule(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    fork = Fork(net, daemon)
    calls.ok(fork.offer(fork.c, "c"))
    far = Phone(net, "stranger", 4010)
    at_c = relay_port(fork.answer(far, "far", from_tag="c"))
    calls.ok(fork.client.call("connect", call_id=fork.id, from_tag="a", to_tag="c"))
    assert reaches(fork.a, fork.at_a, fork.c, b"before"), "c does not hear a"
    refused = fork.offer(far, "b", to_tag="a")
    assert refused.get("error-reason", "").startswith("Invalid dialogue association ("), refused
    calls.ok(fork.delete(from_tag="b", to_tag="a"))
    assert fork.exists()
    assert reaches(fork.a, fork.at_a, fork.c, b"to c"), "c does not hear a"
    assert reaches(fork.c, at_c, fork.a, b"to a"), "a does not hear c"
    calls.ok(fork.delete(from_tag="c", to_tag="far"))
    assert not fork.exists()
    finish(daemon)


def silent_call_ends(net, daemon):
    """A call is silent while a stranger's dialog with the same Call-ID has media. Returns the tags
    with that Call-ID once the call is over; None if this process or the daemon was too slow for
    the stranger's dialog."""
    fork = Fork(net, daemon)
    at_x = relay_port(fork.offer(fork.c, "x"))
    at_y = relay_port(fork.answer(fork.c, "y", from_tag="x"))
    end = last = time.monotonic()
    tags = {"a"}
    while "a" in tags and last < end + 60:
        fork.c.send(at_x, b"mine")
        fork.c.send(at_y, b"mine")
        tags = set(fork.client.call("query", call_id=fork.id).get("tags", {}))
        now = time.monotonic()
        if now - last > 1:
            return None
        last = now
        time.sleep(0.02)
    return tags


def test_media_of_a_stranger_keep_no_silent_call_alive(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--timeout=3").wait_ready()
    tags = next((t for t in (silent_call_ends(net, daemon) for _ in range(10)) if t is not None), None)
    assert tags == {"x", "y"}, (tags, daemon.text())
    assert any(not daemon.client.call("list")["calls"] or time.sleep(0.02) for _ in range(3000))  # control
    finish(daemon)


for test in [f for n, f in list(globals().items()) if n.startswith("test_")]:
    test.terminals = TERMINALS
