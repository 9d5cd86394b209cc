# SPDX-License-Identifier: GPL-2.0-or-later
"""ICE between the relay and terminals in a call: calls through one relay twice, and addresses where nothing may go."""
import select

import ice
import idle
import ng
import relay
from baresip import wait_for
from run import cases
from test_reach import FRIEND, PHONE, Talk, rtp, sdp, terminal, through

import calls


def ours(reply, attributes=""):
    """The relay's SDP, as a proxy gives it back to the relay."""
    calls.ok(reply)
    return reply["sdp"] + attributes


def test_a_call_may_pass_twice_with_ice(net):
    """The callee of the first call is the caller of the second. Both legs have ICE, and their agents check each other."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=2").wait_ready()
    phone, friend = terminal(net, "caller", PHONE), terminal(net, "callee", FRIEND)
    a, b = Talk(daemon, "one"), Talk(daemon, "two")
    inner = ours(a.offer(sdp(*PHONE), ICE="force"))
    assert "typ host" in inner
    calls.ok(b.offer(inner))
    inner = ours(b.answer(sdp(*FRIEND), ICE="default"))
    assert "typ host" in inner
    calls.ok(a.answer(inner))
    wait_for("both agents selected", lambda: daemon.statistics()["sessions"]["ICE states"]["completed"] == 2)
    assert through(a, b, phone, friend)
    assert daemon.stop() == 0, daemon.text()


@cases((True,), (False,))
def test_nothing_is_sent_where_media_may_not_go(net, denied):
    """A terminal's checks come from an address in --media-deny: no response, no triggered check and no media go there. Without the option
    they do."""
    options = ["--media-deny=10.200.1.2"] if denied else []
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", *options).wait_ready()
    phone = ice.Ice(net, "caller", "10.200.1.2", candidates=False)
    friend = terminal(net, "callee", FRIEND)
    talk = Talk(daemon, "deny")
    text = phone.sdp().replace("c=IN IP4 10.200.1.2", "c=IN IP4 10.200.2.2")  # signalled: an address that is allowed
    calls.ok(talk.offer(text))
    reply = talk.answer(sdp(*FRIEND), ICE="default")
    phone.believe(ours(reply))
    for n in range(1, 6):
        phone.check()
        wait_for("it arrived", lambda n=n: daemon.statistics()["sessions"]["ICE"]["requests"] >= n)
    if not denied:
        wait_for("they are answered", lambda: phone.responses and phone.requests)
    friend.sendto(rtp(1, b"media" * 32), (talk.to_callee()["ip"], talk.to_callee()["port"]))
    if not denied:
        wait_for("media follow", lambda: phone.count["rtp"])
    idle.wait_idle()
    assert not denied or sum(phone.count.values()) == 0, phone.count
    phone.close()
    assert daemon.stop() == 0, daemon.text()


def test_no_check_reaches_another_program_of_the_host(net):
    """A candidate names a port of the media range that another program has. It gets no check, as it would get no media."""
    other = ng.socket_in(net.gateway)
    other.bind(("10.200.1.1", 30500))
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1").wait_ready()
    phone = ice.Ice(net, "caller", "10.200.1.2")
    phone.mute = True  # its pair stays open, so all candidates get checks
    line = "a=candidate:2 1 udp 2130706175 10.200.1.1 30500 typ host\r\n"
    talk = Talk(daemon, "probe")
    calls.ok(talk.offer(phone.sdp() + line))
    phone.believe(ours(talk.answer(sdp(*FRIEND), ICE="default")))
    wait_for("each candidate got checks", lambda: phone.requests >= 3)
    assert not select.select([other], [], [], 0)[0], other.recv(2048)
    reply = talk.offer(sdp("10.200.1.1", 30500), again=True)  # the same as for media
    assert reply["result"] == "error" and "no call uses" in reply["error-reason"], reply
    phone.close()
    assert daemon.stop() == 0, daemon.text()
