# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of a call's media: subscribe request, subscribe answer, unsubscribe, and SIPREC's
requirements."""
from compat import compat, compat_each, reaches
from text import audio, sdp, video

BOTH = (audio(), video())


def answered(relay, *medias, **keys):
    """A call whose parties describe these media."""
    call = relay.call()
    call.offer(sdp(*medias or [audio()]), **keys)
    call.answer(sdp(*medias or [audio()], ip="10.200.2.2"))
    return call


def again(call, *medias, by=0):
    call.offer(sdp(*medias, ip="10.200.2.2" if by else "10.200.1.2"), by=by)
    call.answer(sdp(*medias, ip="10.200.1.2" if by else "10.200.2.2"))


def labels(reply):
    return [m.attr("label") for m in reply.sdp.media]


@compat("subscribe", "xcipher-ng(7), subscribe request")
def test_listener_hears_the_party(relay):
    a, b, ear = relay.phone("caller"), relay.phone("callee"), relay.phone("callee")
    call = relay.call().talk(a, b)
    offer = call.request("subscribe request", from_tag="a")
    assert offer.sdp.audio.direction == "sendonly" and offer["from-tags"] == ["a"] and offer["from-tag"] == "a"
    call.request("subscribe answer", to_tag=offer["to-tag"], sdp=ear.sdp(direction="recvonly"))
    ear.told(offer.sdp.audio)
    assert reaches(a, ear)
    b.receive()
    assert reaches(b, a) and ear.receive(0.2) is None
    call.request("unsubscribe", to_tag=offer["to-tag"])
    assert reaches(a, ear, does=False)


@compat("subscribe", "xcipher-ng(7), from-tags")
def test_media_in_the_order_of_from_tags(relay):
    call = answered(relay, *BOTH)
    offer = call.request("subscribe request", from_tags=["b", "a"])
    assert offer["from-tags"] == ["b", "a"] and offer["from-tag"] == "b"
    assert [t["tag"] for t in offer["tag-medias"]] == ["b", "a"] and offer.sdp.kinds == ["audio", "video"] * 2
    assert [offer["media-labels"][label]["tag"] for label in labels(offer)] == ["b", "b", "a", "a"]


@compat("subscribe", "xcipher-ng(7), from-tags")
def test_from_tag_beside_from_tags(relay):
    call = answered(relay)
    assert call.request("subscribe request", from_tag="b", from_tags=["a"])["from-tags"] == ["b", "a"]
    assert call.request("subscribe request", from_tag="b", from_tags=["a", "b"])["from-tags"] == ["a", "b"]


@compat("subscribe", "xcipher-ng(7), all")
def test_flag_all_means_everybody(relay):
    call = answered(relay)
    assert call.request("subscribe request", flags=["all"])["from-tags"] == ["a", "b"]


@compat("subscribe", "RFC 3264 section 8")
def test_a_new_media_is_appended(relay):
    call = answered(relay)
    first = call.request("subscribe request", flags=["all"], to_tag="ear")
    again(call, *BOTH)
    then = call.request("subscribe request", flags=["all"], to_tag="ear")
    assert then.sdp.kinds == ["audio", "audio", "video", "video"]
    assert [m.port for m in then.sdp.media[:2]] == [m.port for m in first.sdp.media]
    assert labels(then)[:2] == labels(first)
    assert [then["media-labels"][label]["tag"] for label in labels(then)] == ["a", "b", "a", "b"]


@compat("subscribe", "RFC 3264 section 8.2")
def test_a_media_that_ends_keeps_its_place(relay):
    call = answered(relay, *BOTH)
    first = call.request("subscribe request", flags=["all"], to_tag="ear")
    again(call, audio(), video(port=0))
    then = call.request("subscribe request", flags=["all"], to_tag="ear")
    assert then.sdp.kinds == first.sdp.kinds == ["audio", "video"] * 2
    assert [bool(m.port) for m in then.sdp.media] == [True, False, True, False]
    again(call, *BOTH)
    back = call.request("subscribe request", flags=["all"], to_tag="ear")
    assert back.sdp.kinds == first.sdp.kinds and labels(back) == labels(first) and all(m.port for m in back.sdp.media)


@compat("subscribe", "RFC 3264 section 8.2")
def test_fewer_sources_close_their_media(relay):
    call = answered(relay)
    first = call.request("subscribe request", flags=["all"], to_tag="ear")
    then = call.request("subscribe request", from_tag="b", to_tag="ear")
    assert [bool(m.port) for m in then.sdp.media] == [False, True] and then["from-tags"] == ["b"]
    assert labels(then)[1] == labels(first)[1] and list(then["media-labels"]) == [labels(then)[1]]
    back = call.request("subscribe request", from_tags=["b", "a"], to_tag="ear")
    assert labels(back) == labels(first) and back["from-tags"] == ["b", "a"]


@compat("subscribe", "RFC 7866 section 7.1.1, RFC 4574")
def test_each_media_has_a_label_of_its_own(relay):
    call = answered(relay, audio("a=label:1"), video("a=label:1"))
    offer = call.request("subscribe request", flags=["all"])
    assert len(set(labels(offer))) == 4 and None not in labels(offer)
    assert all(len(m.attrs("label")) == 1 for m in offer.sdp.media)
    assert sorted(offer["media-labels"]) == sorted(labels(offer))
    told = [(t["tag"], m["index"], m["type"], m["mode"], m["label"]) for t in offer["tag-medias"] for m in t["medias"]]
    want = [("a", 1, "audio"), ("a", 2, "video"), ("b", 1, "audio"), ("b", 2, "video")]
    assert told == [(*w, "sendrecv", label) for w, label in zip(want, labels(offer))]
    assert [(m["tag"], m["index"], m["type"]) for m in map(offer["media-labels"].get, labels(offer))] == want


@compat("subscribe", "RFC 7866 section 7.1.1")
def test_two_recorders_get_the_same_labels(relay):
    call = answered(relay, *BOTH)
    first = call.request("subscribe request", from_tags=["a", "b"])
    second = call.request("subscribe request", from_tags=["b", "a"])
    assert None not in labels(first) and labels(second) == labels(first)[2:] + labels(first)[:2]


@compat_each("subscribe", "xcipher-ng(7), label and from-label", ["label", "from_label"])
def test_by_label(relay, key):
    call = relay.call()
    call.offer(sdp(audio()), label="caller")
    call.answer(sdp(audio(), ip="10.200.2.2"))
    call.offer(sdp(audio(), ip="10.200.2.2"), by=1, label="callee")
    assert call.request("subscribe request", **{key: "callee"})["from-tags"] == ["b"]
    assert call.request("subscribe request", from_tag="a", **{key: "callee"})["from-tags"] == ["b"]
    assert call.request("subscribe request", **{key: "caller"})["from-tags"] == ["a"]
    call.request("subscribe request", "No matching participant in the call", **{key: "nobody"})


@compat("subscribe", "xcipher-ng(7), set-label")
def test_set_label_names_the_listener(relay):
    call = answered(relay, set_label="caller")
    offer = call.request("subscribe request", label="caller", set_label="recorder")
    assert offer["from-tags"] == ["a"]
    tags = call.query()["tags"]
    assert tags[offer["to-tag"]]["label"] == "recorder" and tags["a"]["label"] == "caller"


@compat("subscribe", "xcipher-ng(7), address")
def test_by_address(relay):
    call = answered(relay)
    assert call.request("subscribe request", address="10.200.2.2")["from-tags"] == ["b"]
    call.request("subscribe request", "No matching participant in the call", address="10.200.9.9")


@compat("labels", "xcipher-ng(7), label")
def test_label_of_an_answer_is_the_answerers(relay):
    call = relay.call()
    call.offer(sdp(audio()), label="caller")
    call.answer(sdp(audio(), ip="10.200.2.2"), label="callee")
    tags = call.query()["tags"]
    assert (tags["a"]["label"], tags["b"]["label"]) == ("caller", "callee")


@compat("subscribe", "RFC 3264 section 8.1; RFC 4574")
def test_closed_places_are_used_again_when_all_are_taken(relay):
    call = relay.call()
    for n in range(9):
        call.request("publish", from_tag=f"p{n}", sdp=sdp(*[audio(port=4000 + 2 * k, direction="sendonly") for k in range(8)]))
    for n in range(8):
        told = call.request("subscribe request", from_tag=f"p{n}", to_tag="ear")
    assert [bool(m.port) for m in told.sdp.media] == [False] * 56 + [True] * 8
    more = call.request("subscribe request", from_tags=["p8", "p0"], to_tag="ear")
    assert len(more.sdp.media) == 64 and more["from-tags"] == ["p8", "p0"]
    assert [bool(m.port) for m in more.sdp.media] == [True] * 16 + [False] * 48
    assert [more["media-labels"][label]["tag"] for label in labels(more)[:16]] == ["p0"] * 8 + ["p8"] * 8


@compat_each("subscribe", "RFC 3264 section 6.1", [(audio, ""), (video, "video as the answer to audio")])
def test_a_listener_of_another_kind_is_refused(relay, kind, warning):
    call = answered(relay)
    offer = call.request("subscribe request", from_tag="a")
    reply = call.request("subscribe answer", to_tag=offer["to-tag"], sdp=sdp(kind(direction="recvonly"), ip="10.200.2.2"))
    assert warning in reply.warning and bool(warning) == bool(reply.warning), reply
