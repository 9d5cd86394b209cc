# SPDX-License-Identifier: GPL-2.0-or-later
"""Red: the limit of exchanges is for all calls together. And what offers cost, printed."""
import time

import dtls
from test_mikey import BOB, Call, Mikey, bob, initiator, rig, terminal


def test_other_calls_keep_their_exchange(net):
    """A caller without any key places calls to a party of MIKEY until those of others are forgotten."""
    with rig(net, "--max-medias=64") as world:
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        call = Call(world.daemon, terminal(world, net, dtls.Plain), b, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                    MIKEY=["require", "psk"]).offer()
        line = call.a.sdp()
        many = line + line[line.index("m=audio"):] * 63
        began = time.monotonic()
        for i in range(66):
            reply = world.daemon.client.call("offer", call_id=f"x{i}", from_tag="x", sdp=many, transport_protocol="RTP/SAVP",
                                             flags=["MIKEY-peer=" + BOB], MIKEY=["require", "psk"], ICE="remove")
            if reply["result"] == "error":
                print(i, reply)
            world.daemon.client.call("delete", call_id=f"x{i}", from_tag="x")
        print("seconds", time.monotonic() - began)
        call.answer().exchange()


def test_what_offers_cost(net):
    """Printed: time per offer of the control thread, by mode and m-lines."""
    with rig(net, "--max-medias=64") as world:
        for mode in ("psk", "dhhmac", "dh", "pke", "rsa-r"):
            for lines in (1, 16, 64):
                a = terminal(world, net, Mikey)
                parts = []
                for _ in range(lines):
                    a.use(initiator(world, mode))
                    text = a.sdp()
                    parts.append(text[text.index("m=audio"):])
                head = text[:text.index("m=audio")]
                call = Call(world.daemon, a, None)
                began = time.monotonic()
                try:
                    call.ask("offer", sdp=head + "".join(parts), from_tag="a", transport_protocol="RTP/AVP", **Call.flags)
                except (AssertionError, OSError) as e:
                    print(mode, lines, str(e)[:200])
                print(mode, lines, len(head + "".join(parts)), f"{(time.monotonic() - began) * 1000:.1f} ms")
                world.daemon.client.call("delete", call_id=call.id, from_tag="a")
