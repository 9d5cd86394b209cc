# SPDX-License-Identifier: GPL-2.0-or-later
"""Glare (RFC 3261 14.1): both terminals send a re-INVITE at once, and each refuses the other's with 491. The relay gets two offers
without an answer. Media continue, and an offer that one of them repeats later is answered."""
import copy

import test_mikey
from run import cases
from test_keyings import ALICE, BOB, GATEWAY, KINDS, PSK, call, check_ends, peer, responder, talk


def offers_anew(end, identity):
    """The terminal's SDP for a further offer, with a new key or message where its keying has one in SDP, and its state before."""
    before = copy.copy(end.__dict__)
    if isinstance(end, test_mikey.Sdes):
        end.key = None
    elif isinstance(end, test_mikey.Mikey):
        end.use(peer.Initiator("dhhmac", identity, GATEWAY, psk=PSK))
    return end.sdp(), before


def refused(end, before):
    """491: the terminal keeps the state agreed before (RFC 3264 8)."""
    for name in ("key", "side", "line", "out", "into", "tag"):
        if name in before:
            setattr(end, name, before[name])


def answers(end):
    """Makes the terminal ready to answer."""
    if isinstance(end, test_mikey.Mikey):
        end.use(responder.Responder(end.identity, psk=PSK, suites=tuple(peer.SUITES)))


@cases(*((kind, first) for kind in KINDS for first in ("a", "b")))
def test_offers_that_cross(net, kind, first):
    """A terminal of this keying, and one of SDES. The second offer of each has a new key."""
    with call(net, kind, "sdes") as c:
        c.a.identity, c.b.identity = ALICE, BOB
        talk(c)
        order = [("a", "b", c.a, c.to_b), ("b", "a", c.b, c.to_a)]
        if first == "b":
            order.reverse()
        crossed = [(end, *offers_anew(end, end.identity), own, other, flags) for own, other, end, flags in order]
        for _, sdp, _, own, other, flags in crossed:
            c.ask("offer", sdp=sdp, from_tag=own, to_tag=other, **flags)
        for end, _, before, *_ in crossed:
            refused(end, before)
        c.a.heard.clear()
        c.b.heard.clear()
        c.a.count["rtp"] = c.b.count["rtp"] = 0
        talk(c)
        own, other, end, flags = order[0]
        far = c.b if end is c.a else c.a
        sdp, _ = offers_anew(end, end.identity)
        answers(far)
        far.believe(c.ask("offer", sdp=sdp, from_tag=own, to_tag=other, **flags))
        end.believe(c.ask("answer", sdp=far.sdp(), from_tag=own, to_tag=other))
        c.a.heard.clear()
        c.b.heard.clear()
        c.a.count["rtp"] = c.b.count["rtp"] = 0
        talk(c)
        check_ends(c, kind, "sdes")
