# SPDX-License-Identifier: GPL-2.0-or-later
"""MIKEY in re-INVITEs, for several m-lines, Error messages, and a take-over by the standby."""
import base64
import re
import tempfile
import time

import dtls
import redisrig
import relay
import test_mikey
from baresip import wait_for
from run import Skip, cases
from test_mikey import A, BOB, LINE, Call, Mikey, Sdes, Secure, World, bob, initiator, peer, rig, terminal, two
from test_redis import kill, settled

PREPARE = test_mikey.PREPARE


@cases(("psk",), ("dh",))
def test_reinvites_change_the_keys(net, mode):
    """A re-INVITE has a new message, with or without the CSB ID of the first. Our offers to the other side have new keys each time."""
    with rig(net) as world:
        a = terminal(world, net, Mikey).use(initiator(world, mode))
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        call = Call(world.daemon, a, b, transport_protocol="RTP/SAVP", MIKEY=["require", mode], flags=["MIKEY-peer=" + BOB]).begin()
        call.exchange()
        first = a.side
        for same in (False, True):
            before = a.side.keys.master(1), b.side.keys.master(1)
            a.use(initiator(world, mode))
            a.side.csb_id = first.csb_id if same else a.side.csb_id
            call.offer(to_tag="b").answer()
            assert a.side.keys.master(1) != before[0] and b.side.keys.master(1) != before[1]
            call.exchange()
        call.end()


def test_a_csb_update_is_refused(net):
    """RFC 3830 4.5 lets a message without RAND update the keys of an exchange. We do not keep exchanges for that. So the re-INVITE is refused, and
    the call continues."""
    with rig(net) as world:
        a = terminal(world, net, Mikey).use(initiator(world, "psk"))
        call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"), transport_protocol="RTP/AVP").begin()
        call.exchange()
        first = a.side
        a.use(initiator(world, "psk", before=first))
        why = call.refused("offer", sdp=a.sdp(), from_tag="a", to_tag="b", transport_protocol="RTP/AVP")
        assert "a payload that the mode demands is absent" in why, why
        call.exchange()
        a.use(initiator(world, "psk"))
        call.offer(to_tag="b").answer()
        call.exchange()
        call.end()


@cases(("psk",), ("dh",))
def test_one_message_of_ours_for_two_m_lines(net, mode):
    """One exchange for all m-lines, at session level, with keys for each. Not if one of them is rejected."""
    with rig(net) as world:
        a = [terminal(world, net, dtls.Plain) for _ in range(2)]
        b = [terminal(world, net, Mikey, "callee", session=True).use(bob(world)), terminal(world, net, Secure, "callee")]
        talk = Call(world.daemon, None, None)
        order = {"transport_protocol": "RTP/SAVP", "flags": ["MIKEY-peer=" + BOB], "MIKEY": ["require", mode], **Call.flags}
        offered = talk.ask("offer", sdp=two(*a), from_tag="a", **order)
        assert len(LINE.findall(offered)) == len(LINE.findall(offered.split("m=")[0])) == 1, offered
        b[0].believe(offered)
        keys = b[0].side.keys
        b[1].take_keys(keys.suite, b"".join(keys.master(4)), b"".join(keys.master(3)))
        answer = two(*b)
        for _ in range(2):  # the second one is a repetition
            answered = talk.ask("answer", sdp=answer, from_tag="a", to_tag="b")
        assert world.daemon.statistics()["MIKEY"][f"{mode} initiator completed"] == 1
        for i in range(2):
            a[i].to, b[i].to = (("10.200.2.1", int(re.findall(r"^m=audio (\d+)", text, re.M)[i])) for text in (answered, offered))
            talk.a, talk.b = a[i], b[i]
            talk.exchange()
        talk.end()
        port = a[1].port
        other = Call(world.daemon, None, None)
        offered = other.ask("offer", sdp=two(*a).replace(f"m=audio {port} ", "m=audio 0 "), from_tag="a", **order)
        assert len(LINE.findall(offered)) == 1 and "key-mgmt" not in offered.split("m=")[0], offered


def test_an_error_message_in_an_answer(net):
    """The callee reports why it refuses our message. The error names it, and nothing is agreed on."""
    with rig(net) as world:
        side = bob(world, psk=b"not the key that we have")
        b = terminal(world, net, Mikey, "callee").use(side)
        call = Call(world.daemon, terminal(world, net, dtls.Plain), b, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                    MIKEY=["require", "psk"])
        offered = call.ask("offer", sdp=call.a.sdp(), from_tag="a", **(Call.flags | call.more))
        try:
            side.answer(base64.b64decode(LINE.search(offered)[1]))
            raise AssertionError("it was accepted")
        except peer.Refused as e:
            b.line = e.message
        why = call.refused("answer", sdp=b.sdp(), from_tag="a", to_tag="b")
        assert "the terminal reports: authentication failure" in why, why
        assert world.daemon.statistics()["MIKEY"]["psk initiator refused"] == 1


def is_refused(daemon, a):
    """A stranger repeats the last message of this terminal in a dialog of his own."""
    why = Call(daemon, None, None).refused("offer", sdp=a.sdp(), from_tag="stranger", transport_protocol="RTP/SAVP", **Call.flags)
    assert "received before" in why or "clock skew" in why, why


@cases((0,), (100,))
def test_a_take_over_by_the_standby(net, ahead):
    """Media continue under the same keys. The standby ran before the calls began, and has not seen their messages. It still refuses them: that of
    the call, and that of a call that has ended. ahead: seconds by which the clock of the terminal is ahead."""
    if not redisrig.have():
        raise Skip(f"no {redisrig.PROGRAM}")
    redis, there = redisrig.Redis(net, addr="0.0.0.0"), redisrig.Elsewhere(net)
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        options = ("--engine=serial", "--workers=1", f"--redis-key-file={redis.key_file}", f"--mikey-config={world.path}")
        first = relay.Xcipherd(net, *options, "--redis=127.0.0.1:6379", addresses=("10.200.1.1",)).wait_ready()
        standby = relay.Xcipherd(there, *options, "--redis=10.200.9.1:6379", "--standby=yes", addresses=("10.200.1.1",)).wait_ready()

        def caller():
            return Mikey(net, "caller", A).use(initiator(world, "psk", now=lambda: time.time() + ahead))
        gone, a, b = caller(), caller(), Sdes(net, "caller", A)
        for end in (gone, a):
            call = Call(first, end, b, transport_protocol="RTP/SAVP").begin()
            call.exchange()
            if end is gone:
                call.end()
            else:
                is_refused(first, gone)
        settled(first)
        wait_for("the standby follows", lambda: standby.statistics()["redis"]["followed"] == 1)
        kill(first)
        there.take_addresses()
        assert standby.client.call("active")["result"] == "ok"
        wait_for("the call", lambda: standby.statistics()["redis"]["restored"] == 1)
        call.daemon = standby
        call.exchange()
        assert {"MIKEY", "MIKEY mode psk"} <= set(call.leg("a")["flags"]) and a.bad == b.bad == 0, (a.bad, b.bad)
        for end in (a, gone):
            is_refused(standby, end)
        call.offer(to_tag="b")  # the caller repeats its message
        assert not LINE.search(call.ask("answer", sdp=b.sdp(), from_tag="a", to_tag="b"))
        call.exchange()
        a.use(initiator(world, "psk", now=lambda: time.time() + ahead))
        call.offer(to_tag="b").answer()
        call.exchange()
        assert a.bad == b.bad == 0, (a.bad, b.bad)
        call.end()
        for end in (gone, a, b):
            end.close()
        assert standby.stop() == 0
    redis.stop()
