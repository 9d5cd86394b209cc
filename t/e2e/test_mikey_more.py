# SPDX-License-Identifier: GPL-2.0-or-later
"""MIKEY in re-INVITEs, for several m-lines, and Error messages."""
import base64
import re

import dtls
import test_mikey
from run import cases
from test_mikey import BOB, LINE, Call, Mikey, Secure, bob, initiator, peer, rig, terminal, two

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
