# SPDX-License-Identifier: GPL-2.0-or-later
"""How soon media follow a terminal behind a NAT, and which sources they do not follow. Each test
counts packets, not seconds: a rule that needed three seconds would fail."""
import time

import calls
from run import cases
from test_bleed import THREE, Stranger, Translated, a_stranger_has_nothing, attack, invite, settle
from test_ng import Phone, finish, leaves, start, wants
from baresip import wait_for

MODES = ("immediate", "delayed", "heuristic")


def rig(net, mode, kind=Translated, *options):
    daemon = start(net, f"--endpoint-learning={mode}", *options)
    a = kind(net) if kind is Translated else kind(net, "caller", "10.200.1.2")
    return daemon, a, Phone(net, "callee", "10.200.2.2")


def settle_quickly(a, b):
    """a passes its probation with short gaps between packets."""
    for _ in range(8):
        a.send(b"settling")
        time.sleep(0.02)
    while b.hears(0.2):
        pass


@cases(*((mode,) for mode in MODES))
def test_another_address_in_sdp_does_not_silence_who_stays(net, mode):
    """A re-INVITE names another port; the terminal keeps its source."""
    daemon, a, b = rig(net, mode)
    invite(daemon, a, b, "c")
    settle(a, b)
    a.named.port += 2
    invite(daemon, a, b, "c")
    for _ in range(8):
        assert leaves(a, b), "not heard"
    assert leaves(b, a), "the terminal gets nothing"
    # Control: a source at the new address gets the media at once.
    new = Phone(net, "caller", "10.200.1.77")
    new.to = a.to
    a.named.port = new.port
    invite(daemon, a, b, "c")
    for _ in range(8):
        assert leaves(a, b)
    assert leaves(new, b) and leaves(b, new)
    finish(daemon)


@cases(*((mode,) for mode in MODES))
def test_who_moves_is_followed_although_its_last_packets_came_late(net, mode):
    """The SDP names another address. The old source goes on for a while and ends; the terminal
    sends nothing."""
    daemon, a, b = rig(net, mode)
    invite(daemon, a, b, "c")
    settle(a, b)
    new = Phone(net, "caller", "10.200.1.77")
    a.named = new
    invite(daemon, a, b, "c")
    for _ in range(8):
        assert leaves(a, b)
    assert leaves(b, a)

    def comes():
        b.send(b"for the new address")
        return new.hears(0.1)
    wait_for("media at the new address", comes)
    finish(daemon)


@cases(*((mode,) for mode in MODES))
def test_a_gateway_that_answers_again_is_heard_at_once(net, mode):
    """Early media under one tag, the answer under another, from one address behind a NAT."""
    daemon, b, a = rig(net, mode)
    a.to = None
    b.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), **wants(b)))["sdp"])
    for tag in ("b1", "b2"):
        a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag=tag, sdp=b.sdp()))["sdp"])
        settle_quickly(b, a)
        assert leaves(b, a), f"{tag} is not heard"
        assert leaves(a, b), f"{tag} gets nothing"
    # Control: another address in its SDP makes it another terminal, and the earlier one is not
    # accepted.
    b.named.port += 2
    calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b3", sdp=b.sdp()))
    settle_quickly(b, a)
    assert leaves(b, a, does=False)
    finish(daemon)


@cases(("delayed", True), ("heuristic", False))
def test_delayed_follows_the_latest_source(net, mode, does):
    """The terminal's first packets come from one port, all others from another. Control: heuristic
    follows more slowly."""
    daemon, a, b = rig(net, mode)
    invite(daemon, a, b, "c")
    settle_quickly(a, b)
    second = Phone(net, "caller", "10.200.1.2")
    second.to = a.to
    time.sleep(0.2)
    settle_quickly(second, b)
    if does:
        assert leaves(second, b) and leaves(b, second)
    finish(daemon)


@cases(*((mode,) for mode in (*MODES, "off")))
def test_asymmetric_does_not_switch_off_strict_source(net, mode):
    """Its media go to the address in SDP. Packets from other sources are dropped."""
    daemon, a, b = rig(net, mode, Phone)
    thief = Stranger(net)
    b.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), flags=["asymmetric", "strict-source"], **wants(b)))["sdp"])
    a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp(), flags=["asymmetric"]))["sdp"])
    other = Phone(net, "caller", "10.200.1.2")  # it receives at one port and sends from another
    other.to = a.to
    settle_quickly(other, b)
    for _ in range(2):
        attack(daemon, thief, a.to, 20)
        assert b.hears(0.3) is None, "a stranger was heard"
        assert leaves(other, b), "the terminal is locked out"
        assert leaves(b, a), "media do not go where the SDP says"
        a_stranger_has_nothing(thief)
    finish(daemon)


for test in list(globals().values()):
    if callable(test) and getattr(test, "__name__", "").startswith("test_"):
        test.terminals = THREE
