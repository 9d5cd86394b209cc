# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of terminals that key by DTLS, with ICE: each steering, and a daemon that is killed and started again."""
import redisrig
import webrtc  # its path has video
import video
from baresip import wait_for
from run import Skip, cases
from test_redis import saved, settled
from test_xdp import need_xdp


# After a restart SRTP has other SSRCs. A browser that knows the old ones by a=ssrc drops packets of others.
NO_SSRC = {"sdp-attr": {kind: {"remove": ["ssrc", "ssrc-group"]} for kind in ("audio", "video")}}


def terminals(function):
    function.terminals = webrtc.TERMINALS
    return function


def clean(reports):
    wrong = webrtc.call.judge(reports)
    assert not wrong, wrong


@cases(("udp",), ("nfqueue",), ("xdp",))
@terminals
def test_steering(net, steering):
    """Both terminals have ICE and DTLS."""
    webrtc.needs("aiortc")
    if steering.startswith("xdp"):
        need_xdp(net)
    daemon = webrtc.start(net, f"--steering={steering}")
    with webrtc.talk(net, daemon, "aiortc", "aiortc") as c:
        clean(c.talks())
        for tag, role in (("a", "active"), ("b", "passive")):
            leg = daemon.client.call("query", call_id=c.id)["tags"][tag]["medias"][0]
            assert {"DTLS-SRTP", f"DTLS role {role}", "ICE"} <= set(leg["flags"]), leg
            assert {"DTLS fingerprint verified", "ICE"} <= set(leg["streams"][0]["flags"]), leg
            assert ("ICE controlling" in leg["flags"]) == (tag == "b"), leg
        assert c.a.report()["state"] == c.b.report()["state"] == "connected"
    assert daemon.stop() == 0


@cases(("aiortc", "sdes"), ("sdes", "aiortc"), ("aiortc", "aiortc"), ("chromium", "sdes"), ("sdes", "chromium"), ("chromium", "chromium"))
@terminals
def test_killed_in_mid_call(net, a, b):
    """The next daemon goes on with the keys and pairs of the one before: no handshake, and the terminals see no end."""
    webrtc.needs(a, b)
    if not redisrig.have():
        raise Skip("no redis-server here")
    redis = redisrig.Redis(net)
    daemon = webrtc.start(net, *redis.daemon_options())
    with webrtc.talk(net, daemon, a, b, more=NO_SSRC if a == b == "chromium" else None) as c:
        c.talks()
        if a == b == "chromium":
            webrtc.write_no_mids(c)
        settled(daemon)
        saved(daemon, [c])
        daemon.process.kill()
        daemon.process.wait()
        daemon = c.relay = webrtc.start(net, *redis.daemon_options())
        webrtc.hear_more(c)
        n = 2 - (a, b).count("sdes")

        def consent():
            ice = daemon.statistics()["sessions"]["ICE"]
            return ice["requests"] >= 2 * n and ice["responses"] >= 2 * n
        wait_for("both ends ask for consent, and get it", consent)
        reports = webrtc.hear_more(c)
        assert [r["state"] for r in reports] == ["connected"] * 2, reports
        assert "DTLS handshake" not in daemon.text()
        assert daemon.statistics()["sessions"]["ICE states"]["completed"] == n
        c.end()
    assert daemon.stop() == 0


@terminals
def test_video_of_two_browsers_after_a_kill(net):
    """Audio and video of each browser share a transport."""
    webrtc.needs("chromium_video")
    if not redisrig.have():
        raise Skip("no redis-server here")
    redis = redisrig.Redis(net)
    daemon = webrtc.start(net, *redis.daemon_options())
    with webrtc.talk(net, daemon, "chromium_video", "chromium_video", more={"bundle": ["accept", "offer"], **NO_SSRC}) as c:
        video.check(c)
        webrtc.write_no_mids(c)
        settled(daemon)
        saved(daemon, [c])
        daemon.process.kill()
        daemon.process.wait()
        daemon = c.relay = webrtc.start(net, *redis.daemon_options())
        webrtc.hear_more(c)
        for peer in (c.a, c.b):  # of a new SSRC Chromium counts frames anew
            counts = [peer.report()["frames"]]

            def frames():
                counts.append(peer.report()["frames"])
                return sum(max(0, new - old) for old, new in zip(counts, counts[1:])) >= 60
            wait_for("frames are decoded", frames)
        c.end()
    assert daemon.stop() == 0
