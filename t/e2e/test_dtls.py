# SPDX-License-Identifier: GPL-2.0-or-later
"""DTLS without ICE, with OpenSSL's programs as terminals: roles, new associations, what is hostile, and that nothing leaves in clear."""
import contextlib
import hmac
import os
import random
import shutil
import struct
import tempfile
import zlib

import dtls
import relay
from baresip import wait_for
from run import Skip, cases

A, B = "10.200.1.2", "10.200.2.2"


@contextlib.contextmanager
def rig(net, *options, setup="active"):
    if not shutil.which("openssl"):
        raise Skip("the program openssl is not installed")
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", *options, addresses=("10.200.2.1",)).wait_ready()
    a, b = dtls.Plain(net, "caller", A), dtls.Dtls(net, "callee", B, setup)
    yield daemon, dtls.Call(daemon, a, b)
    a.close()
    b.close()
    assert daemon.stop() == 0


def history(daemon, call):
    return str(daemon.client.call("query", call_id=call.id))


@cases(("active",), ("passive",))
def test_media_both_ways(net, setup):
    with rig(net, setup=setup) as (daemon, call):
        call.begin().exchange()
        assert call.b.bad == 0
        leg = daemon.client.call("query", call_id=call.id)["tags"]["b"]["medias"][0]
        assert {"DTLS-SRTP", f"DTLS role {'passive' if setup == 'active' else 'active'}"} <= set(leg["flags"]), leg
        assert "SDES" not in leg["flags"] and "DTLS fingerprint verified" in leg["streams"][0]["flags"], leg
        sessions = daemon.statistics()["sessions"]
        assert sessions["handshakes"]["completed"] == sessions["handshake time"]["count"] == sessions["in use"] == 1, sessions
        call.end()
        wait_for("the session ended", lambda: daemon.statistics()["sessions"]["in use"] == 0)


@cases(("active",), ("passive",))
def test_nothing_in_clear_before_the_keys(net, setup):
    """The offerer talks all the time. The other leg gets no RTP until its handshake is over."""
    with rig(net, setup=setup) as (daemon, call):
        call.offer().answer()
        for _ in range(200):
            call.a.say(b"in clear" * 20)
        wait_for("the daemon dropped them", lambda: daemon.statistics()["packets received"] >= 200)
        assert call.b.count["rtp"] == 0
        call.b.handshake()
        call.b.keyed()
        call.exchange()
        assert call.b.bad == 0


@cases(("active",), ("passive",))
def test_nothing_is_lost_after_the_handshake(net, setup):
    """All media from the end of the terminal's handshake on arrive, even media that overtake its last flight."""
    with rig(net, setup=setup) as (_, call):
        call.offer().answer()
        if setup == "passive":
            call.b.kept = []
        call.b.handshake()
        call.b.keyed()
        if setup == "passive":
            wait_for("the last flight", lambda: call.b.kept)
        for i in range(10):
            call.b.say(b"%4d" % i * 40)
        for packet in call.b.kept or []:
            call.b.socket.sendto(packet, call.b.to)
        for i in range(10, 20):
            call.b.say(b"%4d" % i * 40)
        wait_for("all packets", lambda: len(call.a.heard) >= 20)
        assert call.a.heard == [b"%4d" % i * 40 for i in range(20)], call.a.heard


@cases(("active",), ("passive",))
def test_wrong_fingerprint(net, setup):
    with rig(net, setup=setup) as (daemon, call):
        call.offer()
        call.b.fingerprint, right = (lambda: ":".join(["AB"] * 32)), call.b.fingerprint
        call.answer()
        call.b.fingerprint = right
        call.b.handshake()
        wait_for("it is told", lambda: "no media: certificate of the peer matches no fingerprint" in daemon.text())
        for _ in range(100):
            call.a.say(b"in clear" * 20)
        wait_for("the daemon dropped them", lambda: daemon.statistics()["packets received"] >= 100)
        assert call.b.count["rtp"] == 0 and daemon.text().count("no media:") == 1
        assert daemon.statistics()["sessions"]["handshakes"]["fingerprint"] == 1


@cases((dtls.PROFILE, False), ("SRTP_AEAD_AES_256_GCM", True))
def test_nena(net, profile, good):
    """The answerer gets DTLS-SRTP with AES-256, or no media and one line of the log."""
    with rig(net) as (daemon, call):
        call.more = {"DTLS": ["NENA"], "transport_protocol": "RTP/AVP"}
        call.b.profiles = profile
        call.offer()
        assert "UDP/TLS/RTP/SAVP 0" in call.offered and "a=crypto" not in call.offered, call.offered
        call.answer()
        call.b.handshake()
        if good:
            wait_for("it is told", lambda: "DTLS handshake completed: AEAD_AES_256_GCM" in daemon.text())
        else:
            wait_for("it is told", lambda: "no media: no SRTP profile in common" in daemon.text())
        assert call.b.count["rtp"] == 0


def hello_offers(packets, *profiles):
    """Whether a ClientHello has exactly these SRTP profiles, in this order (RFC 5764 4.1.1)."""
    numbers = b"".join(struct.pack("!H", dtls.NUMBERS[p]) for p in profiles)
    return any(struct.pack("!HHH", 14, len(numbers) + 3, len(numbers)) + numbers + b"\x00" in p for p in packets)


@cases(("active",), ("passive",))
def test_the_operator_orders_the_profiles(net, setup):
    """--dtls-profiles: as server the daemon takes its first one, whatever the client prefers. As client it offers them in this order, and no others."""
    with rig(net, f"--dtls-profiles={dtls.PROFILE},{dtls.AES_256}", setup=setup) as (daemon, call):
        call.b.use_srtp = f"{dtls.AES_256}:SRTP_AEAD_AES_128_GCM:{dtls.PROFILE}"
        call.b.profiles = dtls.PROFILE if setup == "active" else dtls.AES_256
        packets, take = [], call.b.take_dtls
        call.b.take_dtls = lambda packet: (packets.append(packet), take(packet))
        call.begin().exchange()
        assert f"DTLS handshake completed: {dtls.KEYS[call.b.profiles][0]}" in daemon.text()
        assert hello_offers(packets, dtls.PROFILE, dtls.AES_256) == (setup == "passive")
        assert call.b.bad == 0


@cases(("active",), ("passive",))
def test_a_terminal_without_an_allowed_profile_gets_no_media(net, setup):
    with rig(net, f"--dtls-profiles={dtls.AES_256}", setup=setup) as (daemon, call):
        call.offer().answer()
        call.b.handshake()
        wait_for("it is told", lambda: "no media: no SRTP profile in common" in daemon.text())
        assert call.b.count["rtp"] == 0 and daemon.text().count("no media:") == 1


def handshakes(daemon):
    return daemon.text().count("DTLS handshake completed")


def reinvite(call, one, sdp=None):
    """An offer of one, and the other's answer."""
    other = call.a if one is call.b else call.b
    mine, theirs = ("a", "b") if one is call.a else ("b", "a")
    flags = call.flags if one is call.a else {"transport_protocol": "RTP/AVP", "ICE": "remove", "replace": ["origin"]}
    other.believe(call.ask("offer", sdp=sdp or one.sdp(), from_tag=mine, to_tag=theirs, **flags))
    one.believe(call.ask("answer", sdp=other.sdp(), from_tag=mine, to_tag=theirs))


@cases(("active",), ("passive",))
def test_reinvite_keeps_the_association(net, setup):
    with rig(net, setup=setup) as (daemon, call):
        call.begin().exchange()
        for one in (call.a, call.b, call.b):
            reinvite(call, one)
            call.exchange()
        assert handshakes(daemon) == 1 and call.b.bad == 0


def test_old_hold_keeps_the_association(net):
    """c=0.0.0.0 of RFC 2543 is not another transport."""
    with rig(net) as (daemon, call):
        call.begin().exchange()
        reinvite(call, call.b, call.b.sdp().replace(f"c=IN IP4 {B}", "c=IN IP4 0.0.0.0"))
        reinvite(call, call.b)
        call.exchange()
        assert handshakes(daemon) == 1


@cases(("active",), ("passive",))
def test_new_fingerprint_is_a_new_association(net, setup):
    """Media go on under the old keys until there are new ones."""
    with rig(net, setup=setup) as (daemon, call):
        call.begin().exchange()
        old = call.b.process
        call.b.cert = call.b.make_certificate("cert2")
        reinvite(call, call.b)
        call.exchange()
        net.stop(old)
        call.b.handshake()
        call.b.keyed()
        call.exchange()
        wait_for("both handshakes are told", lambda: handshakes(daemon) == 2)


def test_blocked_and_silenced(net):
    with rig(net) as (daemon, call):
        call.begin().exchange()
        for off, on in (("block media", "unblock media"), ("silence media", "unsilence media")):
            call.ask(off, from_tag="a")
            before = daemon.statistics()["packets received"]
            heard = len(call.b.heard)
            for _ in range(50):
                call.a.say(b"not for them" * 10)
            wait_for("they arrived", lambda b=before: daemon.statistics()["packets received"] >= b + 50)
            assert b"not for them" * 10 not in call.b.heard[heard:]
            call.ask(on, from_tag="a")
            call.exchange()
        assert call.b.bad == 0


def test_recorded(net):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        with rig(net, f"--recording-dir={folder}") as (daemon, call):
            call.begin()
            call.ask("start recording", from_tag="a")
            call.exchange()
            words = os.urandom(160)
            wait_for("it was heard", lambda: call.b.say(words) and words in call.a.heard)
            call.ask("stop recording", from_tag="a")
            call.end()

            def recorded():
                files = [os.path.join(d, f) for d, _, names in os.walk(folder) for f in names]
                return any(words in open(f, "rb").read() for f in files)
            wait_for("the recording has it in clear", recorded)


def listen(net, call, ear, tag, profile):
    """The ear subscribes to the party of the tag."""
    reply = call.daemon.client.call("subscribe request", call_id=call.id, from_tag=tag, transport_protocol=profile, ICE="remove", SDES=["off"],
                                    rtcp_mux=["offer"])
    assert reply.get("result") == "ok", reply
    ear.believe(reply["sdp"])
    call.ask("subscribe answer", to_tag=reply["to-tag"], sdp=ear.sdp().replace("a=sendrecv", "a=recvonly"))


def test_listened_to(net):
    """A listener with RTP hears the terminal with DTLS, and one with DTLS, by a handshake of its own, hears the terminal with RTP."""
    with rig(net) as (daemon, call), contextlib.ExitStack() as ends:
        call.begin().exchange()
        plain, keyed = dtls.Plain(net, "caller", A), dtls.Dtls(net, "callee", B)
        for ear in (plain, keyed):
            ends.callback(ear.close)
        listen(net, call, plain, "b", "RTP/AVP")
        listen(net, call, keyed, "a", "UDP/TLS/RTP/SAVP")
        keyed.handshake()
        keyed.keyed()
        for one, other, ear in ((call.b, call.a, plain), (call.a, call.b, keyed)):
            words = os.urandom(160)
            wait_for("both hear it", lambda o=one, w=words, t=(other, ear): o.say(w) and all(w in x.heard for x in t))
        assert not set(plain.heard) & set(keyed.heard) and keyed.bad == 0


# --- Hostile peers ----------------------------------------------------------------------------------------------------------------

def client_hello(cookie=b""):
    """Of DTLS 1.2, with use_srtp, as browsers send it."""
    def block(size, data):
        return len(data).to_bytes(size, "big") + data
    extensions = b"".join(n.to_bytes(2, "big") + block(2, data) for n, data in (
        (14, block(2, b"\x00\x01") + b"\x00"), (10, block(2, b"\x00\x17")), (11, block(1, b"\x00")), (13, block(2, b"\x04\x03"))))
    body = b"\xfe\xfd" + os.urandom(32) + block(1, b"") + block(1, cookie) + block(2, b"\xc0\x2b") + block(1, b"\x00") + block(2, extensions)
    message = b"\x01" + len(body).to_bytes(3, "big") + b"\x00\x00" + b"\x00\x00\x00" + len(body).to_bytes(3, "big") + body
    return b"\x16\xfe\xff" + b"\x00\x00" + bytes(6) + block(2, message)


def stun(username=b"abcdefgh:wxyz", password=b"x" * 24):
    """A check whose integrity is by another password."""
    def attribute(kind, value):
        return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) % 4)
    body = attribute(0x0006, username) + attribute(0x0024, struct.pack("!I", 1 << 24)) + attribute(0x8029, bytes(8)) + attribute(0x0025, b"")
    head = struct.pack("!HHI", 1, len(body) + 24, 0x2112a442) + os.urandom(12)
    body += attribute(0x0008, hmac.digest(password, head + body, "sha1"))
    head = struct.pack("!HHI", 1, len(body) + 8, 0x2112a442) + head[8:]
    return head + body + attribute(0x8028, struct.pack("!I", zlib.crc32(head + body) ^ 0x5354554e))


class Stranger(dtls.Plain):
    def send(self, packets, to):
        for p in packets:
            self.socket.sendto(p, to)


def flood(net, daemon, call, packets, rounds=10):
    """From many sources, while the call goes on: each packet of it arrives. Answers of the daemon, and growth of its memory in KiB."""
    strangers = [Stranger(net, "callee", B) for _ in range(20)]
    before = daemon.rss_kib()
    try:
        for _ in range(rounds):
            for s in strangers:
                s.send([packets() for _ in range(10)], call.b.to)
            call.exchange(5)
    finally:
        for s in strangers:
            s.close()
    return sum(s.count["dtls"] + s.count["stun"] for s in strangers), daemon.rss_kib() - before


GROWTH_KIB = 4096  # 2,000 associations of OpenSSL would be ten times as much


def test_flood_of_client_hellos_in_mid_call(net):
    """None of it reaches the association, and nothing is kept of it."""
    with rig(net) as (daemon, call):
        call.begin().exchange()
        _, growth = flood(net, daemon, call, client_hello)
        assert handshakes(daemon) == 1 and call.b.bad == 0 and growth < GROWTH_KIB, growth
        assert daemon.statistics()["sessions"]["in use"] == 1


def test_flood_of_client_hellos_before_the_handshake(net):
    """Each source is asked for a cookie, and the one that returns it is served."""
    with rig(net) as (daemon, call):
        call.offer().answer()
        strangers = [Stranger(net, "callee", B) for _ in range(20)]
        before = daemon.rss_kib()

        def asked():
            for s in strangers:
                s.send([client_hello()], call.b.to)
            return sum(s.count["dtls"] for s in strangers) >= 200
        wait_for("they are asked for cookies", asked)
        growth = daemon.rss_kib() - before
        call.b.handshake()
        call.b.keyed()
        call.exchange()
        for s in strangers:
            s.close()
        assert growth < GROWTH_KIB and handshakes(daemon) == 1, growth


def test_strangers_records_in_mid_call(net):
    """Alerts, encrypted ones included, close_notify and rubbish do not end the association."""
    with rig(net) as (daemon, call):
        call.begin().exchange()
        bad = [b"\x15\xfe\xfd" + bytes(8) + b"\x00\x02\x01\x00", b"\x15\xfe\xfd\x00\x01" + bytes(6) + b"\x00\x20" + os.urandom(32),
               b"\x16\xfe\xfd" + bytes(8) + b"\x00\x0c\x00" + bytes(11), b"\x17\xfe\xfd\x00\x01" + bytes(6) + b"\x00\x20" + os.urandom(32),
               b"\x14\xfe\xfd" + bytes(8) + b"\x00\x01\x01", b"\x16" * 40]
        _, growth = flood(net, daemon, call, lambda: random.choice(bad), rounds=5)
        assert call.b.bad == 0 and growth < GROWTH_KIB and "no media" not in daemon.text()
        reinvite(call, call.b)
        call.exchange()
        assert handshakes(daemon) == 1


def test_stun_to_a_leg_without_ice(net):
    """It is not answered, as for SDES."""
    with rig(net) as (daemon, call):
        call.begin().exchange()
        answers, growth = flood(net, daemon, call, stun, rounds=5)
        assert answers == 0 and growth < GROWTH_KIB
