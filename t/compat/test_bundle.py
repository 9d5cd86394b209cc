# SPDX-License-Identifier: GPL-2.0-or-later
"""BUNDLE (RFC 9143) by ng: who is told of which group. Media are tested by t/e2e/test_bundle.py, hostile packets by unit/test_media_bundle.c."""
from compat import compat, compat_each
from text import audio, sdp, video

B = {"ip": "10.200.2.2"}
MAN = "xcipher-ng(7), bundle; RFC 9143 section "
DTLS = ["a=fingerprint:sha-256 " + ":".join(["AB"] * 32), "a=setup:actpass", "a=rtcp-mux"]
TLS = {"profile": "UDP/TLS/RTP/SAVPF"}
GROUP = {"session": ["a=group:BUNDLE a v"]}
PLAIN = {"transport_protocol": "RTP/AVP"}


def bundled(later=4000, **more):
    """As browsers write it. later: port of the second m-line; 0: it has no transport of its own."""
    lines = DTLS if later else ["a=bundle-only"]
    return sdp(audio("a=mid:a", *DTLS, **TLS), video("a=mid:v", *lines, port=later, **TLS), **{**GROUP, **more})


def plain(**more):
    return sdp(audio(), video(), **B, **more)


def ports(reply):
    return [m.port for m in reply.sdp.media]


@compat_each("bundle", MAN + "7.3", [(4000, {"bundle": ["accept"]}), (0, {"bundle": ["accept"]}), (0, {"flags": ["bundle-accept"]})])
def test_the_offerers_group_is_accepted(relay, later, keys):
    call = relay.call()
    told = call.offer(bundled(later), **PLAIN, **keys)
    assert all(ports(told)) and len(set(ports(told))) == 2 and not told.sdp.session.has("group"), told
    assert not any(m.has("fingerprint") or m.has("bundle-only") for m in told.sdp.media), told
    back = call.answer(plain())
    assert back.sdp.session.attr("group") == "BUNDLE a v" and len(set(ports(back))) == 1, back
    assert all(m.has("rtcp-mux") and m.attr("tls-id") == back.sdp.audio.attr("tls-id") for m in back.sdp.media), back
    medias = call.query()["tags"]["a"]["medias"]
    assert all(m["streams"][0]["local port"] == ports(back)[0] for m in medias), medias
    assert medias[1]["bundled with"] == 1 and "BUNDLE" in medias[1]["flags"] and "bundled with" not in medias[0], medias


@compat_each("bundle", MAN + "7.3.3", [{}, {"bundle": ["reject"]}, {"bundle": ["accept", "reject"]}, {"bundle": ["accept"], "rtcp_mux": ["reject"]}])
def test_the_group_is_not_accepted(relay, keys):
    call = relay.call()
    call.offer(bundled(), **PLAIN, **keys)
    back = call.answer(plain())
    assert back.sdp.session.attr("group") == "BUNDLE a" and len(set(ports(back))) == 2 and all(ports(back)), back


@compat("bundle", MAN + "7.1")
def test_strict_writes_the_transport_once(relay):
    call = relay.call()
    call.offer(bundled(), bundle=["accept", "strict"], **PLAIN)
    back = call.answer(plain(), bundle=["strict"])
    assert [m.has("fingerprint") for m in back.sdp.media] == [True, False] and len(set(ports(back))) == 1, back


@compat_each("bundle", MAN + "7.3.1", [("a v", "a v"), ("v a", "a v"), ("", "")])
def test_a_group_is_offered(relay, answered, accepted):
    call = relay.call()
    told = call.offer(sdp(audio("a=mid:a"), video("a=mid:v")), bundle=["offer"], transport_protocol="UDP/TLS/RTP/SAVPF")
    assert told.sdp.session.attr("group") == "BUNDLE a v" and len(set(ports(told))) == 2, told
    lines = [DTLS[0], "a=setup:active", "a=rtcp-mux"]
    session = [f"a=group:BUNDLE {answered}"] if answered else []
    later = 5000 if accepted else 5010
    back = call.answer(sdp(audio("a=mid:a", *lines, port=5000, **TLS), video("a=mid:v", *lines, port=later, **TLS), session=session, **B))
    assert not back.sdp.session.has("group") and len(set(ports(back))) == 2, back


@compat("bundle", MAN + "9.2")
def test_m_lines_with_one_payload_type_stay_apart(relay):
    told = relay.call().offer(sdp(audio("a=mid:a"), video("a=mid:v"), video("a=mid:w", port=4020)), bundle=["offer"],
                              transport_protocol="UDP/TLS/RTP/SAVPF")
    assert told.sdp.session.attr("group") == "BUNDLE a v", told


@compat_each("bundle", MAN + "7.3.1", [
    ["a=group:BUNDLE"], ["a=group:BUNDLE a"], ["a=group:BUNDLE x y z"], ["a=group:BUNDLE a a a"], ["a=group:BUNDLE " + "m " * 5000],
    ["a=group:BUNDLE a v"] * 100, ["a=group:BUNDLE " + "\xff" * 300 + " a"]])
def test_strange_groups(relay, session):
    call = relay.call()
    call.offer(bundled(session=session), bundle=["accept"], **PLAIN)
    assert all(ports(call.answer(plain())))
    assert relay.alive()


@compat("bundle", MAN + "7.5.3")
def test_the_first_m_line_is_refused(relay):
    call = relay.call()
    lines = [audio("a=mid:a", *DTLS, **TLS), video("a=mid:v", "a=bundle-only", port=0, **TLS), video("a=mid:w", port=0, formats="31", **TLS)]
    call.offer(sdp(*lines, session=["a=group:BUNDLE a v w"]), bundle=["accept"], **PLAIN)
    back = call.answer(sdp(audio(port=0), video(), video(port=4020, formats="31"), **B))
    assert back.sdp.session.attr("group") == "BUNDLE v w", back
    assert not ports(back)[0] and ports(back)[1] and ports(back)[1] == ports(back)[2], back
