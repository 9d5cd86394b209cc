# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls whose ZRTP ends at the relay: forks with early media, IPv6, media before the keys, and the SAS on the page. The terminal is the second
implementation of ZRTP (t/zrtp/zrtp_peer.py), with media by libsrtp2."""
import contextlib
import json
import os
import urllib.parse

import dtls
import idle
import relay
from baresip import wait_for
from run import cases
from test_page import browser, page
from test_page_calls import look
from test_zrtp import A, B, TERMINATE, Call, Sdes, Talk
from zrtp_terminal import Settings, Terminal

C = "10.200.3.2"
SAVP = {"transport_protocol": "RTP/SAVP"}
AVP = {"transport_protocol": "RTP/AVP"}
KINDS = {"plain": dtls.Plain, "sdes": Sdes}


@contextlib.contextmanager
def daemon_of(net, *options, addresses=("10.200.2.1",)):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", *options, addresses=addresses).wait_ready()
    yield daemon
    assert daemon.stop() == 0


def completed(daemon):
    return daemon.statistics()["sessions"]["ZRTP"]["exchanges"]["completed"]


def keyed(daemon, end, number):
    """The exchange of this end, the number-th of the daemon, is complete at both ends."""
    end.begin().secured()
    wait_for("the exchange", lambda: completed(daemon) == number)
    idle.wait_idle()


class Fork(Call):
    """An offer to several terminals, each with a branch and a tag of its own."""

    def ring(self, branch, end):
        end.believe(self.ask("offer", sdp=self.a.sdp(), from_tag="a", via_branch=branch, **self.to_b))

    def answers(self, branch, end, code):
        """This end answers with this status, and the caller gets it."""
        self.a.believe(self.ask("answer", sdp=end.sdp(), from_tag="a", to_tag=branch, via_branch=branch, sip_code=code, **self.to_a))


@cases(("plain",), ("sdes",))
def test_a_fork_with_early_media(net, kind):
    """Both phones answer 183, agree on keys, and have media with the caller before one of them answers 200. Each has a Hello, keys and a SAS of its
    own. The one that answers keeps them; the other one is not mixed in."""
    with daemon_of(net) as daemon:
        a = KINDS[kind](net, "caller", A)
        b, c = Terminal(net, "callee", B), Terminal(net, "stranger", C)
        call = Fork(daemon, a, b, {}, TERMINATE | AVP)
        for branch, end in (("b", b), ("c", c)):
            call.ring(branch, end)
        assert b.told[1] != c.told[1]
        for number, (branch, end) in enumerate((("b", b), ("c", c)), 1):
            call.answers(branch, end, 183)
            keyed(daemon, end, number)
            Call.exchange(Talk(a, end))
        query = daemon.client.call("query", call_id=call.id)["tags"]
        assert [query[tag]["medias"][0]["ZRTP"]["SAS"] for tag in "bc"] == [b.peer.sas, c.peer.sas] and b.peer.sas != c.peer.sas, query
        messages = b.count["zrtp"]
        call.answers("b", b, 200)
        Call.exchange(Talk(a, b))
        heard = len(c.heard)
        stray = os.urandom(160)
        for _ in range(20):
            c.say(stray)
        Call.exchange(Talk(a, b))
        assert stray not in a.heard and len(c.heard) == heard, "the other phone is mixed in"
        assert call.query("b")["ZRTP"]["SAS"] == b.peer.sas and b.count["zrtp"] == messages and completed(daemon) == 2
        assert a.bad == b.bad == c.bad == 0, (a.bad, b.bad, c.bad)
        call.end()
        for end in (a, b, c):
            end.close()


test_a_fork_with_early_media.terminals = ("caller", "callee", "stranger")


@cases(("IP6", "IP4"), ("IP4", "IP6"), ("IP6", "IP6"))
def test_ipv6(net, near, far):
    """The exchange and the media by IPv6, to a terminal of either family. In the first case the terminal of ZRTP offers; in the others it answers."""
    at = {"caller": {"IP4": "10.200.1.2", "IP6": "fd00:1::2"}, "callee": {"IP4": "10.200.2.2", "IP6": "fd00:2::2"}}
    addresses = ("caller/10.200.1.1", "caller/fd00:1::1", "callee/10.200.2.1", "callee/fd00:2::1")
    with daemon_of(net, addresses=addresses) as daemon:
        kinds = (Terminal, Sdes) if far == "IP4" else (Sdes, Terminal)
        a, b = kinds[0](net, "caller", at["caller"][near]), kinds[1](net, "callee", at["callee"][far])
        to_a = {"address_family": near, **(TERMINATE if kinds[0] is Terminal else {})}
        to_b = {"address_family": far, "direction": ["caller", "callee"], **(TERMINATE | AVP if kinds[1] is Terminal else SAVP)}
        call = Call(daemon, a, b, to_a, to_b).offer().answer()
        assert (":" in a.to[0], ":" in b.to[0]) == (near == "IP6", far == "IP6"), (a.to, b.to)
        end, tag = (a, "a") if kinds[0] is Terminal else (b, "b")
        keyed(daemon, end, 1)
        call.exchange()
        assert call.query(tag)["ZRTP"]["SAS"] == end.peer.sas and a.bad == b.bad == 0
        end.stream().secured()  # another stream of this terminal in mid-call
        wait_for("its exchange", lambda: completed(daemon) == 2)
        idle.wait_idle()
        call.exchange()
        assert a.bad == b.bad == 0
        for end in (a, b):
            end.close()


@cases(("default", "plain", True), ("clear", "plain", True), ("hold", "plain", False), ("require", "plain", False), ("default", "sdes", False),
       ("clear", "sdes", True))
def test_media_before_the_keys(net, flag, far, passes):
    """What the policy says of them: they pass in clear and the reply warns of it, or none of them ever arrives. With keys, clear media are dropped."""
    with daemon_of(net) as daemon:
        a, b = Terminal(net, "caller", A), KINDS[far](net, "callee", B)
        policy = {"ZRTP": ["terminate"] if flag == "default" else ["terminate", flag]}
        call = Call(daemon, a, b, policy, SAVP if far == "sdes" else AVP).offer()
        reply = daemon.client.call("answer", call_id=call.id, sdp=b.sdp(), from_tag="a", to_tag="b", **call.to_a)
        a.believe(reply["sdp"])
        assert ("clear" in reply.get("warning", "")) == passes, reply.get("warning")
        early = {a: os.urandom(160), b: os.urandom(160)}
        for one, other in ((a, b), (b, a)):
            if passes:
                wait_for("clear media", lambda one=one, other=other: one.say(early[one]) and early[one] in other.heard)
                continue
            before = daemon.statistics()["packets received"]
            for _ in range(20):
                one.say(early[one])
            wait_for("they arrived at the relay", lambda before=before: daemon.statistics()["packets received"] >= before + 20)
        keyed(daemon, a, 1)
        call.exchange()
        for one, other in ((a, b), (b, a)):
            assert (early[one] in other.heard) == passes
        late, protect = os.urandom(160), a.protect
        a.protect = lambda packet: packet
        for _ in range(20):
            a.say(late)
        a.protect = protect
        call.exchange()  # what is sent later arrives later
        assert late not in b.heard and a.bad == b.__dict__.get("bad", 0) == 0
        for end in (a, b):
            end.close()


@cases(("B32 ",), ("B256",))
def test_the_page_shows_the_sas(net, kind):
    """The characters or words that the terminal's user sees, and whether they were compared: in the page's messages and in a browser."""
    b = browser(net)
    with daemon_of(net, "--listen-http=127.0.0.1:22280") as daemon:
        end, far = Terminal(net, "caller", A, Settings(offers={"sas": [kind.encode()]}, discloses=kind == "B256")), Sdes(net, "callee", B)
        call = Call(daemon, end, far, TERMINATE, SAVP).offer().answer()
        keyed(daemon, end, 1)
        sas = end.peer.sas
        assert (" " in sas or ":" in sas) == (kind == "B256"), sas
        s = page(net.gateway)
        detail = look(s, lambda m: m.get("detail", {}).get("id") == call.id, call=call.id)["detail"]
        found = [m["ZRTP"] for tag in detail["tags"].values() for m in tag["medias"] if "ZRTP" in m]
        assert [(m["SAS"], m["verified"]) for m in found] == [(sas, "no")], found
        b.open("http://127.0.0.1:22280/#" + urllib.parse.urlencode({"call": call.id}))
        body = "document.querySelector('#detail-body').innerText"
        b.wait(f"{body}.includes({json.dumps(f'{end.peer.suite()}, ZRTP SAS {sas}, not verified')})")
        assert ("MAY DISCLOSE" in b.js(body)) == (kind == "B256")
        assert daemon.client.call("verify SAS", call_id=call.id, from_tag="a")["result"] == "ok"
        b.wait(f"{body}.includes({json.dumps(f'ZRTP SAS {sas}, verified')})")
        assert not b.complaints(), b.complaints()
        b.close()
        for one in (end, far):
            one.close()
