# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages, and commands other than offer and answer."""
import json

import ng
from compat import compat, compat_each
from text import audio, sdp


def answered(relay, **keys):
    call = relay.call()
    call.offer(sdp(audio()), **keys)
    call.answer(sdp(audio(), ip="10.200.2.2"))
    return call


def raw(relay, message):
    return relay.daemon.client.raw(message)


# --- Messages -----------------------------------------------------------------------------------------------------


@compat("messages", "xcipher-ng(7), command, ping; MESSAGES")
def test_ping_in_bencode_and_json(relay):
    assert raw(relay, b"cookie-1 d7:command4:pinge") == b"cookie-1 d6:result4:ponge"
    assert raw(relay, b'cookie-2 {"command": "ping"}').startswith(b"cookie-2 {")


@compat("messages", "xcipher-ng(7) MESSAGES")
def test_json_call(relay):
    call = relay.call()
    request = {"command": "offer", "call-id": call.id, "from-tag": "a", "sdp": sdp(audio()), "flags": ["trust-address"]}
    reply = json.loads(raw(relay, b"cookie-3 " + json.dumps(request).encode()).partition(b" ")[2])
    assert reply["result"] == "ok" and "m=audio" in reply["sdp"]


@compat("messages", "xcipher-ng(7) MESSAGES")
def test_the_same_cookie_gets_the_same_reply(relay):
    call = relay.call()
    body = ng.encode({"command": "offer", "call-id": call.id, "from-tag": "a", "sdp": sdp(audio())})
    offers = relay.statistics()["totalstatistics"]["managedsessions"]
    assert raw(relay, b"cookie-4 " + body) == raw(relay, b"cookie-4 " + body)
    call.delete()
    assert relay.statistics()["totalstatistics"]["managedsessions"] == offers + 1


@compat_each("errors", "xcipher-ng(7) COMMANDS", [
    ("offer", "No SDP body in message", ("sdp",)), ("offer", "No call-id in message", ("call_id",)), ("offer", "No from-tag in message", ("from_tag",)),
    ("answer", "No to-tag in message", ("to_tag",)), ("delete", "No call-id in message", ("call_id",)), ("query", "No call-id in message", ("call_id",)),
    ("subscribe request", "No call-id in message", ("call_id",)), ("subscribe answer", "No to-tag in message", ("to_tag",)),
    ("unsubscribe", "No to-tag in message", ("to_tag",)), ("connect", "No to-tag in message", ("to_tag",)), ("publish", "No SDP body in message", ("sdp",))])
def test_what_is_missing_is_named(relay, command, reason, without):
    keys = {"sdp": sdp(audio()), "call_id": "none", "from_tag": "a", "to_tag": "b"}
    relay.request(command, reason, **{k: v for k, v in keys.items() if k not in without})


@compat_each("errors", "xcipher-ng(7) COMMANDS", ["answer", "query", "subscribe request", "subscribe answer", "unsubscribe", "connect", "block media",
                                                  "start recording", "debug"])
def test_unknown_call(relay, command):
    relay.request(command, True, sdp=sdp(audio()), call_id="no such call", from_tag="a", to_tag="b")


@compat("errors", "xcipher-ng(7) MESSAGES")
def test_malformed_messages(relay):
    assert b"Could not decode bencode dictionary" in raw(relay, b"cookie-5 d7:command")
    assert b"Could not decode JSON dictionary" in raw(relay, b'cookie-6 {"command": ')
    assert b'contains no key "command"' in raw(relay, b"cookie-7 de")
    relay.request("sing", "Unrecognized command")


# --- delete, query, list ------------------------------------------------------------------------------------------


@compat("delete", "xcipher-ng(7), delete, fatal, delete-delay")
def test_delete_ends_the_call(relay):
    call = answered(relay)
    tree = call.delete()
    assert set(tree["tags"]) == {"a", "b"} and "totals" in tree
    assert "warning" in call.delete()
    call.delete(True, flags=["fatal"])


@compat("delete", "xcipher-ng(7), fast")
def test_fast_delete_has_no_tree(relay):
    assert "tags" not in answered(relay).delete(flags=["fast"])


@compat("delete", "xcipher-ng(7), to-tag, via-branch")
def test_delete_of_a_branch(relay):
    call = relay.call()
    call.offer(sdp(audio()), via_branch="one")
    call.answer(sdp(audio(), ip="10.200.2.2"), via_branch="one")
    assert call.delete(from_tag="a", via_branch="nobody").warning
    assert call.delete(from_tag="a", to_tag="nobody", flags=["to-tag"]).warning
    call.query()
    call.delete(from_tag="a", to_tag="b", flags=["to-tag"])
    call.request("query", "Unknown call-id")


@compat("delete", "xcipher-ng(7), delete-delay")
def test_a_delayed_delete(relay):
    call = answered(relay)
    call.request("delete", from_tag="a", delete_delay=3600)
    assert set(call.query()["tags"]) == {"a", "b"}
    relay.request("offer", call_id=call.id, from_tag="new", sdp=sdp(audio()))  # a call that is being deleted accepts any offer


@compat("query", "xcipher-ng(7), query, call-id, from-tag")
def test_query(relay):
    call = answered(relay, metadata="for query")
    tree = call.query()
    media = tree["tags"]["a"]["medias"][0]
    assert tree["metadata"] == "for query" and media["type"] == "audio" and media["protocol"] == "RTP/AVP"
    assert media["streams"][0]["endpoint"] == {"family": "IPv4", "address": "10.200.1.2", "port": 4000}
    assert set(call.request("query", from_tag="b")["tags"]) == {"b"}
    assert set(call.request("query", to_tag="a")["tags"]) == {"a"}


@compat("query", "RFC 4568 section 6.1; xcipher-ng(7), query")
def test_query_shows_suites_and_no_keys(relay):
    call = relay.call()
    offer = call.offer(sdp(audio(suites=["80"])), transport_protocol="RTP/SAVP")
    call.answer(sdp(audio(suites=["80"]), ip="10.200.2.2"))
    text = json.dumps(call.query())
    assert "AES_CM_128_HMAC_SHA1_80" in text
    assert not any(c.key_text in text for c in offer.sdp.audio.crypto)


@compat("query", "xcipher-ng(7), list, limit")
def test_list(relay):
    calls = {answered(relay).id for _ in range(3)}
    assert calls <= set(relay.request("list")["calls"])
    assert len(relay.request("list", limit=2)["calls"]) == 2


@compat("query", "xcipher-ng(7), statistics")
def test_statistics(relay):
    answered(relay)
    statistics = relay.statistics()
    for name in ("currentstatistics", "totalstatistics", "intervalstatistics", "controlstatistics", "mos", "voip_metrics", "transcoders", "mediasuites",
                 "xcipher"):
        assert name in statistics, name
    assert statistics["currentstatistics"]["sessionstotal"] >= 1


# --- Commands of xcipher ------------------------------------------------------------------------------------------


@compat("operator", "xcipher-ng(7), calls, part, limit")
def test_calls(relay):
    call = answered(relay)
    assert [c["id"] for c in relay.request("calls", part=call.id)["calls"]] == [call.id]


@compat("operator", "xcipher-ng(7), debug, state, debugging")
def test_debug(relay):
    call = answered(relay, flags=["debugging"])
    call.request("debug", state="off")
    call.request("debug", state="on")
    call.request("debug", "debug is on or off", state="perhaps")
    assert call.id in relay.log()


@compat("operator", "xcipher-ng(7), log level, level; xcipherctl(1)")
def test_log_level(relay):
    relay.request("log level", level="7")
    relay.request("log level", level="6")
    relay.request("log level", True, level="loud")


@compat("operator", "xcipher-ng(7), active, standby")
def test_no_roles_without_redis(relay):
    relay.request("active", "There is no Redis")
    relay.request("standby", "There is no Redis")


@compat("operator", "xcipher-ng(7), reload")
def test_reload_needs_a_file(relay):
    reply = relay.daemon.client.call("reload")
    assert reply["result"] in ("ok", "error"), reply


@compat("operator", "xcipher-ng(7), codecs")
def test_codecs(relay):
    reply = relay.request("codecs")
    names = [c["name"] for c in reply["codecs"]]
    assert {"PCMU", "PCMA", "G722", "L16"} <= set(names) and reply["plug-ins"] == [], reply


# --- Limits -------------------------------------------------------------------------------------------------------


@compat("limits", "xcipher-ng(7), limits, max-sessions, max-cpu, max-load, max-bandwidth, supports, emergency")
def test_limit_of_sessions(relay):
    for limit in ("max_cpu", "max_load", "max_bandwidth"):
        relay.request("limits", **{limit: "0"})
    first = answered(relay)
    relay.request("limits", max_sessions="1")
    try:
        body = {"call_id": "beyond", "from_tag": "a", "sdp": sdp(audio())}
        relay.request("offer", "Parallel session limit reached", **body)
        reply = relay.daemon.client.call("offer", supports=["load limit"], **body)
        assert (reply["result"], reply["message"]) == ("load limit", "Parallel session limit reached")
        first.offer(sdp(audio(direction="sendonly")))
        relay.call().offer(sdp(audio()), flags=["emergency"])
    finally:
        relay.request("limits", max_sessions="0")
    relay.call().offer(sdp(audio()))


@compat("limits", "xcipher-ng(7), drain, state; xcipherctl(1)")
def test_drain(relay):
    answered(relay)
    relay.request("drain")
    reply = relay.daemon.client.call("offer", supports=["load limit"], call_id="new", from_tag="a", sdp=sdp(audio()))
    assert (reply["result"], reply["message"]) == ("load limit", "Relay is being drained")
    relay.request("drain", state="off")
    answered(relay)


@compat("limits", "xcipherd(8) --max-medias", options=["--max-medias=1"])
def test_limit_of_media(relay):
    reply = relay.call().offer(sdp(audio(), audio(port=4002)))
    assert reply.sdp.media[0].port and not reply.sdp.media[1].port and reply.warning


@compat("limits", "xcipherd(8) --port-min, --port-max", options=["--port-min=40000", "--port-max=40003", "--emergency-ports=0"])
def test_no_ports_left(relay):
    answered(relay)
    relay.request("offer", "Ran out of ports", call_id="beyond", from_tag="a", sdp=sdp(audio()))


# --- Replies for xcipher-web -----------------------------------------------------------------------------------------


@compat_each("operator", "xcipher-ng(7), metrics, page, page history: refused without --listen-ng-unix", ["metrics", "page", "page history"])
def test_without_a_socket_nothing_is_shown(relay, command):
    relay.request(command, "--listen-ng-unix")


@compat("operator", "xcipher-ng(7), metrics, page, page history, show, ended", options=["--listen-ng-unix={folder}/ng"])
def test_metrics_and_page(relay):
    call = answered(relay)
    assert "xcipher_" in relay.request("metrics")["metrics"]
    assert call.id in json.dumps(relay.request("page"))
    assert call.id not in json.dumps(relay.request("page", show="mos-below=1"))
    assert relay.request("page history")["result"] == "ok"
    call.delete()
    assert call.id in json.dumps(relay.request("page", ended=0)) and call.id not in json.dumps(relay.request("page", ended=5))
