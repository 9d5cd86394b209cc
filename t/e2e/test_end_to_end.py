# SPDX-License-Identifier: GPL-2.0-or-later
"""ZRTP, DTLS and STUN between two terminals whose media the relay does not re-encrypt: they are relayed, only from the terminals, and
reported. Packets are built from the RFCs; libbzrtp, where it is installed, agrees on real keys through the relay."""
import os
import time

import bzrtp
import calls
import hold
import idle
import redisrig
from baresip import wait_for
from not_rtp import OTHERS, ZRTP, dtls, zrtp
from run import Skip, cases
from test_bleed import received
from test_ng import Phone, finish, leaves, start, talk

STEERINGS = cases(("udp",), ("nfqueue",), ("xdp",))


def passes(a, b, packet, does=True):
    a.sock.sendto(packet, a.to)
    if not does:
        idle.wait_idle()
    b.sock.settimeout(30 if does else 0.2)
    try:
        got = b.sock.recv(2048)
    except TimeoutError:
        return not does
    assert got == packet, got
    return does


def medias(daemon, call_id="c"):
    tags = calls.ok(daemon.client.call("query", call_id=call_id))["tags"]
    return [tags[tag]["medias"][0] for tag in ("a", "b")]


@STEERINGS
def test_keys_are_agreed_on_through_plain_legs(net, steering):
    daemon = start(net, f"--steering={steering}")
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    talk(daemon.client, a, b, "c")
    assert ["keying" not in m for m in medias(daemon)] == [True, True]
    for packet in OTHERS[:7]:
        assert passes(a, b, packet) and passes(b, a, packet), packet
    assert "keying" not in medias(daemon)[0]  # Confirm2 does not end the exchange
    assert passes(a, b, OTHERS[7])
    wait_for("keying", lambda: [m.get("keying") for m in medias(daemon)] == ["ZRTP end-to-end"] * 2)
    for packet in OTHERS[8:]:
        assert passes(a, b, packet) and passes(b, a, packet), packet
    assert leaves(a, b) and leaves(b, a)
    m = medias(daemon)
    assert m[0]["streams"][0]["end-to-end"] == {"ZRTP": 8, "ZRTP Conf2ACK": 1, "DTLS": 2, "STUN": 2}, m[0]
    drops = daemon.statistics()["drops"]
    assert not drops["malformed"] and not drops["not-media"], drops
    finish(daemon)


@STEERINGS
def test_a_leg_with_our_keys_takes_no_part(net, steering):
    """Here the relay would be the ZRTP peer, and it has no ZRTP."""
    daemon = start(net, f"--steering={steering}")
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2", "80")
    talk(daemon.client, a, b, "c")
    for packet in OTHERS:
        assert passes(a, b, packet, False) and passes(b, a, packet, False), packet
    drops = daemon.statistics()["drops"]
    assert drops["malformed"] == 2 * len(ZRTP) and drops["not-media"] == 2 * (len(OTHERS) - len(ZRTP)), drops
    assert [m.get("keying") for m in medias(daemon)] == [None, "SDES"]
    finish(daemon)


def test_passed_through_legs_count_as_plain(net):
    daemon = start(net)
    a, b = Phone(net, "caller", "10.200.1.2", "80"), Phone(net, "callee", "10.200.2.2", "80")
    talk(daemon.client, a, b, "c", flags=["passthrough"])
    assert passes(a, b, dtls(0)) and passes(b, a, zrtp("Hello   "))
    assert [m["keying"] for m in medias(daemon)] == ["SDES end-to-end"] * 2
    finish(daemon)


@cases(("udp",), ("nfqueue",))
def test_strangers_do_not_get_in(net, steering):
    """A stranger's packets of any kind are not relayed, and it gets no media."""
    daemon = start(net, f"--steering={steering}", "--workers=1", addresses=("10.200.1.1", "10.200.2.1", "10.200.3.1"))
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    thief = Phone(net, "thief", "10.200.3.2")
    b.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp()))["sdp"])
    a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
    thief.to = a.to

    def flood():
        before = received(daemon)
        with hold.thread(daemon.pid(), "worker-0"):  # all of them in one burst
            for packet in OTHERS * 2:
                thief.sock.sendto(packet, thief.to)
        wait_for("the stranger's packets", lambda: received(daemon) >= before + 2 * len(OTHERS))

    flood()  # before any packet
    assert passes(b, a, zrtp("Hello   "), False)  # the caller has not sent, either
    b.send(b"word")
    assert a.hears() == (0, b"word")
    assert passes(a, b, zrtp("Hello   ")) and passes(b, a, zrtp("HelloACK"))
    flood()
    assert leaves(a, b) and leaves(b, a)
    thief.sock.setblocking(False)
    try:
        raise AssertionError(thief.sock.recv(100))
    except BlockingIOError:
        pass
    assert medias(daemon)[0]["streams"][0]["end-to-end"] == {"ZRTP": 1}
    finish(daemon)


test_strangers_do_not_get_in.terminals = ("caller", "callee", "thief")


def test_keying_is_known_after_a_restart(net):
    if not redisrig.have():
        raise Skip("no redis-server")
    redis = redisrig.Redis(net)
    daemon = start(net, *redis.daemon_options())
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    talk(daemon.client, a, b, "c")
    assert passes(a, b, zrtp("Conf2ACK")) and passes(b, a, zrtp("Confirm2"))
    assert daemon.stop() == 0
    daemon = start(net, *redis.daemon_options())
    wait_for("the call", lambda: daemon.client.call("query", call_id="c")["result"] == "ok")
    assert [m.get("keying") for m in medias(daemon)] == ["ZRTP end-to-end"] * 2
    assert passes(a, b, zrtp("GoClear ")) and passes(b, a, zrtp("ClearACK"))
    finish(daemon)
    redis.stop()


SILENCE = 3  # seconds


def lives_by_zrtp(net, daemon, call_id):
    """A call with only ZRTP, for longer than a call may be silent. Returns whether it is still there; None if this process or the
    daemon was so slow that the call was silent."""
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    talk(daemon.client, a, b, call_id)
    begun = last = time.monotonic()
    while last < begun + 2 * SILENCE:
        a.sock.sendto(zrtp("Hello   "), a.to)
        there = daemon.client.call("query", call_id=call_id)["result"] == "ok"
        now = time.monotonic()
        if now - last > SILENCE / 2:
            return None
        if not there:
            return False
        last = now
        time.sleep(0.1)
    return passes(a, b, zrtp("Hello   ")) if not b.hears(0) else True


def test_zrtp_alone_keeps_no_silent_stranger_and_a_call_alive(net):
    """A call with only ZRTP is not reported as silent."""
    daemon = start(net, f"--timeout={SILENCE}")
    assert next((x for x in (lives_by_zrtp(net, daemon, f"c{n}") for n in range(10)) if x is not None), None), daemon.text()
    finish(daemon)


@STEERINGS
def test_real_zrtp_agrees_on_the_same_keys(net, steering):
    if not bzrtp.have():
        raise Skip("no libbzrtp")
    daemon = start(net, f"--steering={steering}")
    phones = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
    talk(daemon.client, *phones, "c")
    ends = [bzrtp.End(lambda p, x=x: x.sock.sendto(p, x.to), int.from_bytes(os.urandom(4), "big")) for x in phones]
    deadline = time.monotonic() + 60
    while not all(e.secure for e in ends):
        assert time.monotonic() < deadline, [e.secure for e in ends]
        for end, phone in zip(ends, phones):
            end.tick(int(time.monotonic() * 1000))
            phone.sock.settimeout(0.01)
            try:
                while True:
                    end.take(phone.sock.recv(2048))
            except TimeoutError:
                pass
    assert ends[0].sas == ends[1].sas and ends[0].sas, [e.sas for e in ends]
    wait_for("keying", lambda: [m.get("keying") for m in medias(daemon)] == ["ZRTP end-to-end"] * 2)
    for e in ends:
        e.close()
    finish(daemon)
