# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks on MIKEY by parties that need no key, or only one of their own."""
import base64
import os
import re
import select
import tempfile
import time

import dtls
import idle
import test_mikey
from baresip import wait_for
from run import cases
from test_mikey import ALICE, BOB, GATEWAY, LINE, SUITE, Call, Mikey, Sdes, bob, initiator, peer, rig, terminal

PREPARE = test_mikey.PREPARE
wire = peer.wire


class Chosen(peer.Initiator):
    """It chooses the keys of all crypto sessions. teks: key and salt of each. single: there is one crypto session."""

    def __init__(self, world, *teks, single=False):
        super().__init__("psk", ALICE, GATEWAY, **world.how(world.alice))
        self.teks, self.single = teks, single

    def master(self, cs_id):
        return self.teks[cs_id - 1][:16], self.teks[cs_id - 1][16:]

    def make_psk(self, header, start):
        if self.single:
            header = wire.Header(header.data_type, header.csb_id, header.sessions[:1], header.verify)
        e = self.envelope(self.psk)
        keys = [wire.Payload(wire.KEY_DATA, type=wire.TEK_SALT, data=t[:16], salt=t[16:], mki=b"") for t in self.teks]
        self.agreed(keys[0])
        self.keys.master = self.master
        return self.mac_message(header, start + [self.sealed(e, keys, self.stamp)], e.auth)


class Wire(Mikey):
    """Keeps the ciphertexts by SSRC and sequence number."""

    def __init__(self, *args):
        self.wire = {}
        super().__init__(*args)

    def hear(self, packet):
        self.wire.setdefault(packet[2:4] + packet[8:12], set()).add(packet[12:])
        super().hear(packet)

    def all_heard(self):
        """Waits until everything that was sent to it has arrived."""
        idle.wait_idle()
        wait_for("the last packet", lambda: self.wire and not select.select([self.socket], [], [], 0)[0])
        return self

    def repeated(self):
        return [k for k, bodies in self.wire.items() if len(bodies) > 1]


def speak(who, n=20, fill=1):
    for _ in range(n):
        who.say(bytes([fill]) * 160)
        time.sleep(0.005)


def ports(sdp):
    return [int(p) for p in re.findall(r"^m=audio (\d+)", sdp, re.M)]


def lines_of(first, second):
    return first.sdp() + second.sdp()[second.sdp().index("m=audio"):]


def test_one_message_at_two_m_lines(net):
    """The same message at two m-lines would be one key for two streams, whose senders choose the same SSRC."""
    with rig(net) as world:
        a = terminal(world, net, Wire).use(initiator(world, "psk"))
        b = [terminal(world, net, dtls.Plain, "callee") for _ in range(2)]
        b[1].ssrc = b[0].ssrc
        line = a.sdp()
        twice = line + line[line.index("m=audio"):]
        call = Call(world.daemon, a, None)
        reply = world.daemon.client.call("offer", call_id=call.id, sdp=twice, from_tag="a", transport_protocol="RTP/AVP", **Call.flags)
        if reply["result"] == "error":
            return
        reply = world.daemon.client.call("answer", call_id=call.id, sdp=lines_of(*b), from_tag="a", to_tag="b")
        if reply["result"] == "error":
            return
        assert len(LINE.findall(reply["sdp"])) == 1 and "m=audio 0 " in reply["sdp"], reply


def test_chosen_keys(net):
    """Of zeroes, for two crypto sessions, those of the relay and those of a terminal: none is accepted. Others serve."""
    one, two, three = (os.urandom(30) for _ in range(3))
    with rig(net) as world:
        a, b = terminal(world, net, Mikey), terminal(world, net, Sdes, "callee")
        call = Call(world.daemon, a, b, transport_protocol="RTP/SAVP")

        def refused(text, *teks, **how):
            a.use(Chosen(world, *teks, **how))
            why = call.refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/SAVP", **established)
            assert why.startswith("MIKEY exchange failed") and text in why, (text, why)

        established = {}
        for teks in ((one,), (one, one), (bytes(30), one), (one, bytes(30)), (one, one[:16] + two[16:])):
            refused("share a key", *teks)
        refused("not two for each m-line", one, single=True)
        a.use(Chosen(world, one, two))
        call.begin().exchange()
        ours = base64.b64decode(re.search(SUITE + r" inline:([^\s|]+)", call.offered)[1])
        established = {"to_tag": "b"}
        refused("key is one of ours", ours, three)
        refused("key is one of ours", two, three)
        refused("key is the other terminal's", b.key, three)
        refused("key is one of ours for another m-line", three, ours)
        refused("key is one of a terminal", three, b.key)
        refused("key is one of a terminal", three, one)
        call.exchange()
        call.end()


@cases(("two",), ("swapped",))
def test_chosen_keys_of_two_m_lines(net, how):
    """Two messages of one offer. The relay would send two streams under one key, or the terminal under the relay's."""
    one, two, three = (os.urandom(30) for _ in range(3))
    with rig(net) as world:
        a = [terminal(world, net, Mikey).use(Chosen(world, one, two)),
             terminal(world, net, Mikey).use(Chosen(world, three, two) if how == "two" else Chosen(world, two, three))]
        b = [terminal(world, net, dtls.Plain, "callee") for _ in range(2)]
        call = Call(world.daemon, None, None)
        call.ask("offer", sdp=lines_of(*a), from_tag="a", transport_protocol="RTP/AVP", **Call.flags)
        why = call.refused("answer", sdp=lines_of(*b), from_tag="a", to_tag="b")
        assert "media 2: key is one of ours" in why, why


def test_two_forks(net):
    with rig(net) as world:
        a = terminal(world, net, Wire).use(initiator(world, "psk"))
        b = [terminal(world, net, dtls.Plain, "callee") for _ in range(2)]
        b[1].ssrc = b[0].ssrc
        call = Call(world.daemon, a, None)
        for i in range(2):
            b[i].believe(call.ask("offer", sdp=a.sdp(), from_tag="a", via_branch=f"z{i}", transport_protocol="RTP/AVP", **Call.flags))
        for i in range(2):
            a.believe(call.ask("answer", sdp=b[i].sdp(), from_tag="a", to_tag=f"b{i}", via_branch=f"z{i}"))
            speak(b[i], fill=i + 1)
        for i in range(2):
            b[i].seq = 0
            speak(b[i], 40, fill=i + 5)
        assert not a.all_heard().repeated(), (len(a.wire), len(a.repeated()))


def test_serial_forks(net):
    with rig(net) as world:
        a = terminal(world, net, Wire).use(initiator(world, "psk"))
        b = [terminal(world, net, dtls.Plain, "callee") for _ in range(2)]
        call = Call(world.daemon, a, None)
        for i in range(2):
            b[i].believe(call.ask("offer", sdp=a.sdp(), from_tag="a", via_branch=f"z{i}", transport_protocol="RTP/AVP", **Call.flags))
            a.believe(call.ask("answer", sdp=b[i].sdp(), from_tag="a", to_tag=f"b{i}", via_branch=f"z{i}"))


def test_a_refused_answer_spends_nothing(net):
    """The callee's first answer is refused; the caller's proxy tries the next phone with the same offer."""
    with rig(net) as world:
        a = terminal(world, net, Wire).use(initiator(world, "psk"))
        b = terminal(world, net, dtls.Plain, "callee")
        call = Call(world.daemon, a, b, transport_protocol="RTP/AVP").offer()
        call.refused("answer", sdp=b.sdp().replace("IN IP4 10.200.2.2", "IN IP4 127.0.0.1"), from_tag="a", to_tag="b")
        call.offer().answer().exchange()


def test_an_answer_in_rtp(net):
    """require: RTP as the answer."""
    with rig(net) as world:
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        call = Call(world.daemon, terminal(world, net, dtls.Plain), b, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                    MIKEY=["require", "psk"]).offer()
        text = b.sdp().replace("RTP/SAVP", "RTP/AVP")
        assert call.refused("answer", sdp=text, from_tag="a", to_tag="b")
        text = re.sub("a=key-mgmt.*\r\n", "", b.sdp()) + "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + base64.b64encode(bytes(range(30))).decode() + "\r\n"
        assert call.refused("answer", sdp=text, from_tag="a", to_tag="b")
        call.answer().exchange()


def test_replay_after_a_restart(net):
    """The message of a call from before a restart, in a call of the attacker: the same keys must not protect what he chooses."""
    with rig(net) as world:
        a = terminal(world, net, Wire).use(initiator(world, "psk"))
        b = terminal(world, net, dtls.Plain, "callee")
        Call(world.daemon, a, b, transport_protocol="RTP/AVP").begin()
        speak(b, fill=1)
        a.all_heard()
        assert world.daemon.stop() == 0
        world.daemon = world.start()
        b.seq = 0
        call = Call(world.daemon, a, b, transport_protocol="RTP/AVP")
        reply = world.daemon.client.call("offer", call_id=call.id, sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP", **Call.flags)
        if reply["result"] == "error":
            assert "received before" in reply["error-reason"] or "clock" in reply["error-reason"], reply
            return
        b.believe(reply["sdp"])
        call.answer()
        speak(b, fill=2)
        assert not a.all_heard().repeated(), (len(a.wire), len(a.repeated()))


def test_a_fast_clock_and_a_restart(net):
    """The caller's clock is ahead, so its message is later than the restart."""
    with tempfile.TemporaryDirectory() as folder, rig(net, f"--mikey-state={folder}/marks") as world:
        a = terminal(world, net, Mikey).use(initiator(world, "psk", now=lambda: time.time() + 100))
        b = terminal(world, net, dtls.Plain, "callee")
        Call(world.daemon, a, b, transport_protocol="RTP/AVP").begin()
        assert world.daemon.stop() == 0
        world.daemon = world.start()
        why = Call(world.daemon, a, b).refused("offer", sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP")
        assert "received before" in why, why
        a.use(initiator(world, "psk", now=lambda: time.time() + 100))
        Call(world.daemon, a, b, transport_protocol="RTP/AVP").begin().exchange()


def test_exchanges_are_limited(net):
    """Limits apply to one peer and to all, except emergency calls. Modes without public keys have no limit."""
    every = "modes = psk dh\npsk-file = psk\n"
    with rig(net, peers=f"[peer {ALICE}]\n{every}[peer {BOB}]\n{every}rate = 1\n", own="rate = 3\npeer-rate = 2\n") as world:
        a = terminal(world, net, Mikey)

        def offer(mode, **flags):
            a.use(initiator(world, mode))
            call = Call(world.daemon, a, None)
            return world.daemon.client.call("offer", call_id=call.id, sdp=a.sdp(), from_tag="a", transport_protocol="RTP/AVP", **flags)

        def until_refused():
            for n in range(100):
                reply = offer("dh")
                if reply["result"] == "error":
                    return n, reply["error-reason"]
            return n, "never"

        n, why = until_refused()
        assert n >= 2 and "MIKEY exchange failed" in why and "too many exchanges" in why, (n, why)
        assert offer("psk")["result"] == "ok"
        for _ in range(5):
            assert offer("dh", flags=["emergency"])["result"] == "ok"
        # Offers to a callee that uses MIKEY count against the callee.
        line, reply = dtls.Plain.sdp(a), {}
        for i in range(100):
            reply = world.daemon.client.call("offer", call_id=f"x{i}", from_tag="x", sdp=line.replace("RTP/SAVP", "RTP/AVP"), ICE="remove",
                                             transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB], MIKEY=["require", "dh"])
            if reply["result"] == "error":
                break
        assert "too many exchanges" in reply["error-reason"], reply
        # A refused message was not remembered as received.
        a.use(initiator(world, "dh"))
        call = Call(world.daemon, a, terminal(world, net, dtls.Plain, "callee"), transport_protocol="RTP/AVP")
        sdp, reply, end = a.sdp(), {}, time.monotonic() + 60
        while reply.get("result") != "ok" and time.monotonic() < end:
            reply = world.daemon.client.call("offer", call_id=call.id, sdp=sdp, from_tag="a", transport_protocol="RTP/AVP", **Call.flags)
            assert reply["result"] == "ok" or "too many exchanges" in reply["error-reason"], reply
            time.sleep(0.1)
        assert reply["result"] == "ok", reply
        assert world.daemon.statistics()["MIKEY"]["dh responder rate"] >= 1


def test_failed_answers_are_limited(net):
    """An offer pays for one answer, also if that fails: a callee's wrong answers cost public-key operations, too."""
    every = "modes = psk dh\npsk-file = psk\n"
    with rig(net, peers=f"[peer {ALICE}]\n{every}[peer {BOB}]\n{every}", own="rate = 2\n") as world:
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        call = Call(world.daemon, terminal(world, net, dtls.Plain), b, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB],
                    MIKEY=["require", "dh"]).offer()
        text = b.sdp()
        good = re.search("mikey ([A-Za-z0-9+/=]+)", text)[1]
        raw = base64.b64decode(good)
        wrong = text.replace(good, base64.b64encode(raw[:-1] + bytes([raw[-1] ^ 1])).decode())
        assert wrong != text
        why = [call.refused("answer", sdp=wrong, from_tag="a", to_tag="b") for _ in range(100)]
        assert "too many exchanges" not in str(why[0]) and any("too many exchanges" in str(w) for w in why), (why[0], why[-1])


def test_answers_return_to_a_key(net):
    """183 with MIKEY, 183 with SDES, 200 with MIKEY again, as of two phones. Meanwhile the caller repeats its sequence numbers."""
    with rig(net, "--mikey=offer") as world:
        a = terminal(world, net, dtls.Plain)
        one = terminal(world, net, Wire, "callee").use(bob(world))
        two = terminal(world, net, Sdes, "callee")
        call = Call(world.daemon, a, one, transport_protocol="RTP/SAVP", flags=["MIKEY-peer=" + BOB], MIKEY=["offer", "psk"],
                    SDES=["only-" + SUITE]).offer()
        two.believe(call.offered)
        for b, fill in ((one, 1), (two, 2), (one, 3)):
            call.b = b
            call.answer()
            a.seq = 0
            speak(a, fill=fill)
            one.all_heard()
        assert not one.repeated(), (len(one.wire), len(one.repeated()))


def test_a_reinvite_returns_to_a_key(net):
    """A terminal of MIKEY offers SDES, and then its first message again."""
    with rig(net) as world:
        a = terminal(world, net, Wire).use(initiator(world, "psk"))
        s = terminal(world, net, Sdes)
        b = terminal(world, net, dtls.Plain, "callee")
        call = Call(world.daemon, a, b, transport_protocol="RTP/AVP").begin()
        speak(b, fill=1)
        for t in (s, a):
            call.a = t
            reply = world.daemon.client.call("offer", call_id=call.id, sdp=t.sdp(), from_tag="a", to_tag="b", **(call.flags | call.more))
            if t is a and reply["result"] == "error":
                assert "received before" in reply["error-reason"], reply
                return
            b.believe(reply["sdp"])
            call.answer()
            b.seq = 0
            speak(b, fill=5)
        assert not a.all_heard().repeated(), (len(a.wire), len(a.repeated()))


def test_a_rejected_m_line_returns(net):
    """The callee answers, then rejects the m-line, then answers as before."""
    with rig(net) as world:
        a = terminal(world, net, Wire).use(initiator(world, "psk"))
        b = terminal(world, net, dtls.Plain, "callee")
        call = Call(world.daemon, a, b, transport_protocol="RTP/AVP").begin()
        speak(b, fill=1)
        call.ask("answer", sdp=re.sub("m=audio [0-9]+", "m=audio 0", b.sdp()), from_tag="a", to_tag="b")
        reply = world.daemon.client.call("answer", call_id=call.id, sdp=b.sdp(), from_tag="a", to_tag="b")
        if reply["result"] == "ok":
            a.believe(reply["sdp"])
            b.seq = 0
            speak(b, fill=2)
        assert not a.all_heard().repeated(), (len(a.wire), len(a.repeated()))


def test_other_calls_keep_their_exchange(net):
    """A caller without a key offers many m-lines to a party of MIKEY, again and again. The answer of another call still fits its offer."""
    with rig(net, "--max-medias=64") as world:
        b = terminal(world, net, Mikey, "callee").use(bob(world))
        asked = {"transport_protocol": "RTP/SAVP", "flags": ["MIKEY-peer=" + BOB], "MIKEY": ["require", "psk"]}
        call = Call(world.daemon, terminal(world, net, dtls.Plain), b, **asked).offer()
        line = call.a.sdp()
        many = line + line[line.index("m=audio"):] * 63
        for i in range(80):
            # Some calls stay, the others end at once.
            world.daemon.client.call("offer", call_id=f"x{i % 40}", from_tag="x", sdp=many, ICE="remove", **asked)
            if i % 3:
                world.daemon.client.call("delete", call_id=f"x{i % 40}", from_tag="x")
        call.answer().exchange()
