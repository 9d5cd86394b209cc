# SPDX-License-Identifier: GPL-2.0-or-later
"""DTLS with ICE, with OpenSSL's programs as terminals: both families, other steerings, two threads, metrics, consent, floods of STUN, and bundled terminals."""
import contextlib
import os
import shutil
import tempfile

import bundled
import dtls
import ice
import idle
import redisrig
import relay
from baresip import wait_for
from run import Skip, cases
from test_dtls import GROWTH_KIB, Stranger, stun
from test_dtls_cert import kill, make, saved
from test_http import HTTP, scrape, values
from test_xdp import need_xdp

TERMINAL = {4: ("10.200.1.2", "10.200.2.2"), 6: ("fd00:1::2", "fd00:2::2")}
GATEWAY = {4: ("caller/10.200.1.1", "callee/10.200.2.1"), 6: ("caller/fd00:1::1", "callee/fd00:2::1")}
BY_SIDE = {"direction": ["caller", "callee"]}
ICE = {"ICE": "force", **BY_SIDE}


@contextlib.contextmanager
def rig(net, *options, setup="active", family=4, kind=ice.Keyed, workers=1, flags=None):
    if not shutil.which("openssl"):
        raise Skip("the program openssl is not installed")
    daemon = start(net, *options, family=family, workers=workers)
    a, b = dtls.Plain(net, "caller", TERMINAL[family][0]), kind(net, "callee", TERMINAL[family][1], setup)
    call = dtls.Call(daemon, a, b, **(flags or ICE))
    yield daemon, call
    for end in {a, b, call.b}:
        end.close()
    assert call.daemon.stop() == 0


def start(net, *options, family=4, workers=1):
    return relay.Xcipherd(net, "--engine=serial", f"--workers={workers}", *options, addresses=GATEWAY[family]).wait_ready()


def begin(call):
    call.begin().exchange()


@cases((4, "active"), (4, "passive"), (6, "active"), (6, "passive"))
def test_media_both_ways(net, family, setup):
    with rig(net, setup=setup, family=family) as (daemon, call):
        begin(call)
        leg = daemon.client.call("query", call_id=call.id)["tags"]["b"]["medias"][0]
        assert {"DTLS-SRTP", "ICE"} <= set(leg["flags"]) and leg["streams"][0]["family"] == f"IPv{family}", leg
        assert call.b.bad == 0 and daemon.statistics()["sessions"]["ICE states"]["completed"] == 1


@cases((4, "active"), (4, "passive"), (6, "active"), (6, "passive"))
def test_dtls_without_ice(net, family, setup):
    with rig(net, setup=setup, family=family, kind=dtls.Dtls, flags=BY_SIDE) as (daemon, call):
        begin(call)
        stream = daemon.client.call("query", call_id=call.id)["tags"]["b"]["medias"][0]["streams"][0]
        assert stream["family"] == f"IPv{family}" and call.b.bad == 0, stream


@cases(("nfqueue", "dtls"), ("nfqueue", "ice"), ("xdp", "dtls"), ("xdp", "ice"))
def test_killed_under_other_steerings(net, steering, kind):
    """In mid-call. The terminals notice nothing: the keys and the pair are in Redis. t/kernel tests this with the kernel module."""
    if not redisrig.have():
        raise Skip("no redis-server here")
    if steering == "xdp":
        need_xdp(net)
    redis = redisrig.Redis(net)
    options = [f"--steering={steering}", *redis.daemon_options()]
    with rig(net, *options, kind=ice.Keyed if kind == "ice" else dtls.Dtls, flags=ICE if kind == "ice" else BY_SIDE) as (daemon, call):
        begin(call)
        saved(daemon)
        kill(daemon)
        call.daemon = daemon = start(net, *options)
        wait_for("the call was restored", lambda: daemon.statistics()["redis"]["restored"] == 1)
        before = call.b.count["dtls"]
        call.exchange(100)
        s = daemon.statistics()
        assert s["sessions"]["handshakes"]["completed"] == 0 and call.b.count["dtls"] == before and call.b.bad == 0, s
        assert s["by fallback socket"] == 0 and s["packets received"] >= 200, s
    redis.stop()


@cases(("udp",), ("nfqueue",), ("xdp",))
def test_consent_expires(net, steering):
    """The terminal stops answering: after 30 s nothing is sent to it (RFC 7675). When it checks again, the call continues. t/kernel tests this with the
    kernel module."""
    if steering == "xdp":
        need_xdp(net)
    with rig(net, f"--steering={steering}") as (daemon, call):
        begin(call)
        call.b.mute = True
        wait_for("consent expired", lambda: daemon.statistics()["sessions"]["consent lost"] == 1)
        assert daemon.statistics()["sessions"]["ICE states"]["consent lost"] == 1
        idle.wait_idle()
        before, dropped = call.b.count["rtp"], daemon.statistics()["drops"]["no-destination"]
        for _ in range(50):
            call.a.say(b"nobody" * 20)
        wait_for("the relay dropped them", lambda: daemon.statistics()["drops"]["no-destination"] == dropped + 50)
        idle.wait_idle()
        assert call.b.count["rtp"] == before and call.b.bad == 0, call.b.count
        call.b.mute = False
        call.b.connect()
        call.exchange()
        assert daemon.statistics()["sessions"]["ICE states"]["completed"] == 1


@cases(("nfqueue", True), ("nfqueue", False), ("xdp", True), ("xdp", False))
def test_a_bundle_under_other_steerings(net, steering, offers):
    """Audio and video on one port, which the terminal offers or answers. The daemon is killed in mid-call. test_bundle.py tests udp with real peers,
    t/kernel the kernel module."""
    if not redisrig.have():
        raise Skip("no redis-server here")
    if steering == "xdp":
        need_xdp(net)
    redis = redisrig.Redis(net)
    options = [f"--steering={steering}", *redis.daemon_options()]
    daemon = start(net, *options)
    with contextlib.ExitStack() as ends:
        a, b = bundled.Pair(net, "caller", TERMINAL[4][0]), bundled.Bundled(net, "callee", TERMINAL[4][1])
        for end in (a, b):
            ends.callback(end.close)
        call = bundled.Call(daemon, a, b, offers, **BY_SIDE).begin()
        call.exchange()
        s = daemon.statistics()
        assert s["sessions"]["in use"] == s["sessions"]["handshakes"]["completed"] == 1, s["sessions"]
        saved(daemon)
        kill(daemon)
        call.daemon = daemon = start(net, *options)
        wait_for("the call was restored", lambda: daemon.statistics()["redis"]["restored"] == 1)
        before = b.count["dtls"]
        call.exchange()
        s = daemon.statistics()
        assert s["sessions"]["handshakes"]["completed"] == 0 and b.count["dtls"] == before and b.bad == 0, s
        assert s["by fallback socket"] == 0 and s["packets received"] >= 80, s
        assert daemon.stop() == 0
    redis.stop()


def test_ssrcs_of_sdp_tell_m_lines_apart(net):
    """Two m-lines with one payload type, and no MIDs: as browsers send after a restart, when reports have named their SSRCs."""
    if not redisrig.have():
        raise Skip("no redis-server here")
    redis = redisrig.Redis(net)
    daemon = start(net, *redis.daemon_options())
    with contextlib.ExitStack() as ends:
        a, b = bundled.TwinPair(net, "caller", TERMINAL[4][0]), bundled.Twins(net, "callee", TERMINAL[4][1])
        for end in (a, b):
            ends.callback(end.close)
        call = bundled.Call(daemon, a, b, True, **BY_SIDE).begin()
        bundled.hears(b, [a])
        saved(daemon)
        kill(daemon)
        call.daemon = daemon = start(net, *redis.daemon_options())
        wait_for("the call was restored", lambda: daemon.statistics()["redis"]["restored"] == 1)
        bundled.hears(b, [a])
        b.ssrcs[0] ^= 1  # one that SDP does not name
        b.say_as(0, b"stray")
        wait_for("it was dropped", lambda: daemon.statistics()["drops"]["bundle"] > 0)
        assert daemon.stop() == 0
    redis.stop()


@cases(("plain", "restart"), ("dtls", "restart"), ("plain", "takeover"), ("dtls", "takeover"))
def test_an_ice_lite_terminal_before_the_first_pair(net, kind, how):
    """The relay crashes while it checks a terminal that sends no checks of its own. The next process finds the pair."""
    if not redisrig.have():
        raise Skip("no redis-server here")
    flags = {"ICE": "force"} if kind == "dtls" else {"ICE": "force", "transport_protocol": "RTP/AVP"}
    addresses = (GATEWAY[4][0].partition("/")[2],)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        redis = redisrig.Redis(net, addr="0.0.0.0")
        there = redisrig.Elsewhere(net)
        options = [f"--dtls-cert={make(folder, 'cert')}.both", f"--redis-key-file={redis.key_file}", "--engine=serial", "--workers=1"]
        daemon = relay.Xcipherd(net, *options, "--redis=127.0.0.1:6379", addresses=addresses).wait_ready()
        a = dtls.Plain(net, "caller", TERMINAL[4][0])
        b = (ice.LiteKeyed if kind == "dtls" else ice.Lite)(net, "caller", TERMINAL[4][0])
        for end in (a, b):
            ends.callback(end.close)
        call = dtls.Call(daemon, a, b, **flags).offer()
        b.mute = True
        call.answer()
        wait_for("checks", lambda: b.requests)
        saved(daemon)
        kill(daemon)
        if how == "restart":
            daemon = relay.Xcipherd(net, *options, "--redis=127.0.0.1:6379", addresses=addresses).wait_ready()
        else:
            daemon = relay.Xcipherd(there, *options, "--redis=10.200.9.1:6379", "--standby=yes", addresses=addresses).wait_ready()
            there.take_addresses()
            assert daemon.client.call("active")["result"] == "ok"
        call.daemon = daemon
        wait_for("the call was restored", lambda: daemon.statistics()["redis"]["restored"] == 1)
        b.mute = False
        b.connect()
        if kind == "dtls":
            b.handshake()
            b.keyed()
        call.exchange()
        assert daemon.statistics()["sessions"]["ICE states"]["completed"] == 1 and b.bad == 0
        assert daemon.stop() == 0
        redis.stop()


def threads(daemon):
    """Names of the keying threads."""
    found = set()
    for task in os.listdir(f"/proc/{daemon.process.pid}/task"):
        with open(f"/proc/{daemon.process.pid}/task/{task}/comm", encoding="ascii") as f:
            found.add(f.read().strip())
    return {name for name in found if name.startswith("keying-")}


def test_two_keying_threads(net):
    """Each serves the calls of its worker: without a window, calls are spread over the workers from the first one on."""
    with rig(net, "--keying-threads=2", "--batch-window=0", workers=2) as (daemon, call), contextlib.ExitStack() as ends:
        assert threads(daemon) == {"keying-0", "keying-1"}
        begin(call)
        for done in range(2, 5):
            a, b = dtls.Plain(net, "caller", TERMINAL[4][0]), ice.Keyed(net, "callee", TERMINAL[4][1])
            ends.callback(a.close)
            ends.callback(b.close)
            begin(dtls.Call(daemon, a, b, **ICE))
            assert b.bad == 0 and daemon.statistics()["sessions"]["handshakes"]["completed"] == done
        assert all(w["packets received"] >= 40 for w in daemon.statistics()["each worker"])
        call.exchange()


def test_metrics(net):
    """A handshake that succeeds and one that fails, and the agents that are in use."""
    with rig(net, f"--listen-http={HTTP[0]}:{HTTP[1]}") as (daemon, call):
        first = values(scrape(net))
        assert first["xcipher_dtls_handshake_seconds_count"] == 0 and not any(v for k, v in first.items() if k.startswith("xcipher_ice_"))
        begin(call)
        wrong = dtls.Call(daemon, call.a, ice.Keyed(net, "callee", TERMINAL[4][1]), **ICE)
        wrong.offer()
        wrong.b.fingerprint, right = (lambda: ":".join(["AB"] * 32)), wrong.b.fingerprint
        wrong.ask("answer", sdp=wrong.b.sdp(), from_tag="a", to_tag="b")
        wrong.b.fingerprint = right
        wrong.b.connect()
        wrong.b.handshake()
        wait_for("it is told", lambda: "no media: certificate of the peer matches no fingerprint" in daemon.text())
        m = values(scrape(net))
        assert set(m) == set(first), "series must not come and go with calls"
        assert m['xcipher_dtls_handshakes_total{result="completed"}'] == m['xcipher_dtls_handshakes_total{result="fingerprint"}'] == 1
        assert m["xcipher_dtls_handshake_seconds_count"] == m['xcipher_dtls_handshake_seconds_bucket{le="+Inf"}'] == 1
        assert 0 < m["xcipher_dtls_handshake_seconds_sum"] < 600
        assert m['xcipher_ice_agents{state="completed"}'] == 2 and m['xcipher_ice_packets_total{result="requests"}'] >= 2, m
        for c in (call, wrong):
            c.end()
        wait_for("the agents ended", lambda: not any(v for k, v in values(scrape(net)).items() if k.startswith("xcipher_ice_agents")))
        wrong.b.close()


def test_a_flood_of_stun_in_mid_call(net):
    """From the terminal's own address and port, from its address, and from strangers: checks with wrong integrity, forged responses, and rubbish. Each packet of
    media that is sent behind a burst of them arrives, and the pair stays."""
    with rig(net) as (daemon, call):
        begin(call)
        own = Stranger(net, "callee", TERMINAL[4][1])
        strangers = [Stranger(net, "caller", TERMINAL[4][0]) for _ in range(8)]
        before, states = daemon.statistics(), daemon.statistics()["sessions"]["ICE states"]
        growth = daemon.rss_kib()
        sent = 0
        for i in range(100):
            bad = [stun(), ice.message(ice.SUCCESS, b"", "x" * 24), stun(f"{call.b.peer[0]}:{call.b.ufrag}".encode()), b"\x00\x01" + os.urandom(40)]
            for packet in bad * 2:
                call.b.socket.sendto(packet, call.b.to)
                for s in (own, *strangers):
                    s.send([packet], call.b.to)
            sent += 8 * (2 + len(strangers))
            for one, other in ((call.b, call.a), (call.a, call.b)):
                words = b"%d" % i * 50
                one.say(words)
                wait_for("the packet behind the burst", lambda o=other, w=words: o.heard and o.heard[-1] == w)
        after = daemon.statistics()
        answers = own.count["stun"] + sum(s.count["stun"] for s in strangers)
        for s in (own, *strangers):
            s.close()
        assert after["sessions"]["ICE states"] == states and after["sessions"]["handshakes"]["completed"] == 1, after["sessions"]
        assert after["packets received"] >= before["packets received"] + sent, (sent, after)
        assert answers < sent / 20, (answers, sent)  # refusals, whose rate is limited
        assert call.b.bad == 0 and daemon.rss_kib() - growth < GROWTH_KIB
        call.b.connect()  # a check of its own is still answered
        call.exchange()


def test_a_bundled_terminal_is_recorded_and_listened_to(net):
    """Its two m-lines share ICE and DTLS. The recording has both in clear, and a listener gets them on two ports."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        with rig(net, f"--recording-dir={folder}", kind=bundled.Bundled) as (daemon, call), contextlib.ExitStack() as ends:
            a, b, ear = bundled.Pair(net, "caller", TERMINAL[4][0]), call.b, bundled.Pair(net, "caller", TERMINAL[4][0])
            for end in (a, ear):
                ends.callback(end.close)
            a.believe(call.ask("offer", sdp=b.sdp(), from_tag="b", direction=["callee", "caller"], transport_protocol="RTP/AVP", ICE="remove", SDES=["off"],
                               bundle=["accept"], rtcp_mux=["demux"], replace=["origin"]))
            answered = call.ask("answer", sdp=a.sdp(), from_tag="b", to_tag="a", rtcp_mux=["accept"], replace=["origin"])
            assert "a=group:BUNDLE 0 1" in answered, answered
            b.believe(answered)
            b.connect()
            b.handshake()
            b.keyed()
            bundled.hears(b, [a])
            call.ask("start recording", from_tag="b")
            reply = daemon.client.call("subscribe request", call_id=call.id, from_tag="b", transport_protocol="RTP/AVP", ICE="remove", SDES=["off"],
                                       rtcp_mux=["demux"], direction=["caller"])
            assert reply.get("result") == "ok", reply
            ear.believe(reply["sdp"])
            call.ask("subscribe answer", to_tag=reply["to-tag"], sdp=ear.sdp().replace("a=sendrecv", "a=recvonly"))
            words = bundled.hears(b, [a, ear])
            assert daemon.statistics()["sessions"]["in use"] == 1
            call.ask("stop recording", from_tag="b")
            call.ask("delete", from_tag="b", delete_delay=0)

            def recorded():
                data = b"".join(open(os.path.join(d, f), "rb").read() for d, _, names in os.walk(folder) for f in names)
                return all(w in data for w in words)
            wait_for("the recording has both in clear", recorded)
