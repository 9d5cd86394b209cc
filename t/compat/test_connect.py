# SPDX-License-Identifier: GPL-2.0-or-later
"""Parties connected without an offer (connect)."""
from compat import compat, reaches
from text import sdp


def two_dialogs(relay, orders):
    """Parties a to d with an audio and a video phone each, in the order orders[who]. a is in a call
    with b, and c with d."""
    phones = {}
    for who in "abcd":
        for kind in ("audio", "video"):
            phones[who, kind] = relay.phone("caller" if who in "ac" else "callee")

    def body(who):
        kinds = orders.get(who, ("audio", "video"))
        return sdp(*(phones[who, k].media(kind=k) for k in kinds), ip=phones[who, "audio"].ip)

    first = relay.call()
    for call, (x, y) in ((first, "ab"), (relay.call(("c", "d"), first.id), "cd")):
        orders[y] = orders.get(x, ("audio", "video"))
        offer = call.offer(body(x)).sdp
        answer = call.answer(body(y)).sdp
        for told, who in ((answer, x), (offer, y)):
            for media in told.media:
                phones[who, media.kind].told(media)
        for kind in {m.kind for m in offer.media}:
            for s, t in ((x, y), (y, x), (x, y)):
                assert reaches(phones[s, kind], phones[t, kind])
    return first, phones


@compat("connect", "xcipher-ng(7), connect")
def test_parties_of_two_dialogs(relay):
    call, phone = two_dialogs(relay, {})
    assert not call.request("connect", from_tag="a", to_tag="d").warning
    for kind in ("audio", "video"):
        assert reaches(phone["a", kind], phone["d", kind]) and reaches(phone["d", kind], phone["a", kind])


@compat("connect", "xcipher-ng(7), connect: by kind")
def test_audio_goes_to_audio(relay):
    call, phone = two_dialogs(relay, {"c": ("video", "audio")})
    call.request("connect", from_tag="a", to_tag="d")
    for kind in ("audio", "video"):
        assert reaches(phone["a", kind], phone["d", kind]) and reaches(phone["d", kind], phone["a", kind])


@compat("connect", "xcipher-ng(7), connect: by kind")
def test_video_without_a_counterpart_goes_nowhere(relay):
    call, phone = two_dialogs(relay, {"a": ("video", "audio"), "c": ("audio",)})
    assert "video" in call.request("connect", from_tag="a", to_tag="d").warning
    assert reaches(phone["a", "audio"], phone["d", "audio"]) and reaches(phone["d", "audio"], phone["a", "audio"])
    assert reaches(phone["a", "video"], phone["d", "audio"], does=False)


@compat("connect", "xcipher-ng(7), directional")
def test_one_way(relay):
    call, phone = two_dialogs(relay, {"c": ("video", "audio")})
    call.request("connect", from_tag="a", to_tag="d", flags=["directional"])
    assert reaches(phone["a", "audio"], phone["d", "audio"])
    assert reaches(phone["d", "audio"], phone["a", "audio"], does=False)


@compat("connect", "xcipher-ng(7), connect, to-call-id")
def test_refusals(relay):
    call, _ = two_dialogs(relay, {})
    call.request("connect", "Invalid dialogue association", from_tag="a", to_tag="a")
    call.request("connect", "Invalid dialogue association", from_tag="a", to_tag="nobody")
    call.request("connect", from_tag="a", to_tag="d", to_call_id=call.id)
    call.request("connect", "parties of two calls are not connected", from_tag="a", to_tag="d", to_call_id="other")
    relay.request("connect", "Unknown call-id", call_id="no such call", from_tag="a", to_tag="b")


@compat("connect", "RFC 3264 section 8; xcipher-ng(7), connect")
def test_an_offer_between_joined_parties(relay):
    call, phone = two_dialogs(relay, {"c": ("video", "audio")})
    call.request("connect", from_tag="a", to_tag="d")
    kinds = ("audio", "video")
    offer = call.request("offer", from_tag="a", to_tag="d", sdp=sdp(*(phone["a", k].media(kind=k) for k in kinds)))
    answer = call.request("answer", from_tag="a", to_tag="d", sdp=sdp(*(phone["d", k].media(kind=k) for k in kinds), ip="10.200.2.2"))
    for kind in kinds:
        phone["a", kind].told(answer.sdp.first(kind))
        phone["d", kind].told(offer.sdp.first(kind))
        assert reaches(phone["a", kind], phone["d", kind]) and reaches(phone["d", kind], phone["a", kind])
