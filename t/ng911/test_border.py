# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of xcipher-border without a network: events of messages, the bounds of its queue, blocked sources. The whole is in t/e2e/test_ng911_border_web.py."""
import asyncio
import concurrent.futures
import json
import logging
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

from lostrig import ROOT, Skip, ran

sys.path.insert(0, os.path.join(ROOT, "ng911"))

IDS = "urn:emergency:uid:callid:0123456789ab:x.example urn:emergency:uid:incidentid:0123456789ab:x.example source@x.example " + "a" * 32
SDP = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\na=label:one\r\nm=text 4002 RTP/AVP 98\r\na=label:two\r\n"
CALLER, PSAP = "<sip:caller@vsp.example>;tag=c", "<urn:service:sos>;tag=p"


def border():
    try:
        from border import actors, events, jws, sender
    except ModuleNotFoundError as missing:
        raise Skip(missing) from None
    return actors, events, jws, sender


def sip(first, cseq, source=CALLER, to="<urn:service:sos>", body="", kind="application/sdp"):
    content = f"Content-Type: {kind}\r\n" if body else ""
    return f"{first}\r\nVia: SIP/2.0/TLS 192.0.2.1\r\nf: {source}\r\nTo: {to}\r\nCall-ID: 1@x\r\nCSeq: {cseq}\r\n{content}Content-Length: {len(body)}\r\n\r\n{body}"


def event(direction, message, ids="- - - -"):
    return f"{direction} 1700000000.25 192.0.2.1:5061 {ids}\n{message}".encode()


INVITE = sip("INVITE urn:service:sos SIP/2.0", "1 INVITE", body=SDP)
OK = sip("SIP/2.0 200 OK", "1 INVITE", to=PSAP, body=f"--x\r\nContent-Type: application/sdp\r\n\r\n{SDP}\r\n--x--", kind="multipart/mixed;boundary=x")


def kinds(logger, data):
    _, events, _, _ = border()
    return [(e["logEventType"].replace("LogEvent", ""), e.get("direction")) for e in logger.events(events.Datagram(data))]


def test_events_of_calls():
    _, events, _, _ = border()
    begin = [(event("in", INVITE, IDS), [("CallStart", "incoming")]), (event("out", INVITE), []), (event("in", OK), [("MediaStart", "outgoing")]),
             (event("out", OK), [("MediaStart", "incoming")]), (event("out", OK), [])]
    by_caller, by_psap = sip("BYE sip:t SIP/2.0", "2 BYE", to=PSAP), sip("BYE sip:c SIP/2.0", "2 BYE", source=PSAP, to=CALLER)
    ends = {
        "the caller": [(event("in", by_caller), [("MediaEnd", "incoming"), ("CallEnd", "incoming")]), (event("out", by_caller), [("MediaEnd", "outgoing")])],
        "the PSAP": [(event("in", by_psap), [("MediaEnd", "outgoing"), ("CallEnd", "incoming")]), (event("out", by_psap), [("MediaEnd", "incoming")])],
        "the border": [(event("out", by_caller), [("MediaEnd", "outgoing"), ("CallEnd", "incoming")]), (event("out", by_psap), [("MediaEnd", "incoming")])],
    }
    for who, end in ends.items():
        logger = events.Logger("b.example", "a.example")
        for data, want in begin + end:
            assert kinds(logger, data) == want, (who, data, want)
    logger = events.Logger("b.example", "a.example")
    kinds(logger, event("in", INVITE, IDS))
    assert kinds(logger, event("in", sip("SIP/2.0 486 Busy Here", "1 INVITE", to=PSAP))) == []  # diverted
    assert kinds(logger, event("out", sip("SIP/2.0 503 No PSAP", "1 INVITE", to=PSAP))) == [("CallEnd", "incoming")]


def test_an_event_has_what_the_service_needs():
    _, events, _, _ = border()
    logger = events.Logger("b.example", "a.example")
    (start,) = logger.events(events.Datagram(event("in", INVITE, IDS)))
    assert start == {"logEventType": "CallStartLogEvent", "timestamp": "2023-11-14T22:13:20.250+00:00", "elementId": "b.example", "agencyId": "a.example",
                     "callId": IDS.split()[0], "incidentId": IDS.split()[1], "callIdSip": "1@x", "ipAddressPort": "192.0.2.1:5061", "direction": "incoming",
                     "standardPrimaryCallType": "emergency", "from": "sip:caller@vsp.example", "to": "urn:service:sos"}, start
    (media,) = logger.events(events.Datagram(event("out", OK)))
    assert media["mediaLabel"] == ["one", "two"] and media["sdp"] == SDP.rstrip("\r\n") or media["sdp"] == SDP, media


def exchange(kind, error, status, url, request, reply, total=None):
    texts = [t.encode() for t in (url, request, reply)]
    lengths = " ".join(str(len(t)) for t in texts)
    return f"{kind} 1700000000000 1700000000250 {error} {status} {lengths} {total or len(texts[2])}\n".encode() + b"".join(texts)


def asked(*parts):
    return f"asked 1700000000.5 - {IDS}\n1@x\n".encode() + b"".join(parts)


def test_events_of_queries_and_routes():
    """Texts are counted in octets, so nothing in them looks like the next one. Without --log-messages there are none, because they have the location."""
    _, events, _, _ = border()
    held = exchange("held", "-", 200, "https://l.example/\u2603", "", "<a/>\nlost 1 1 - 200 1 1 1 1\n")
    data = asked(held, exchange("lost", "garbage", 200, "https://s.example/", "<q/>", "\u2603", 70000), exchange("lost", "timeout", 0, "https://s.example/", "<q/>", ""),
                 exchange("held", "http", 454, "https://l.example/", "<r/>", "no"))
    assert not events.Logger("b.example", "a.example").events(events.Datagram(data))
    logger = events.Logger("b.example", "a.example", messages=True)
    got = logger.events(events.Datagram(data))
    assert [e["logEventType"].replace("LogEvent", "") for e in got] == [
        f"{kind}{what}" for kind in ("Location", "Lost", "Lost", "Location") for what in ("Query", "Response")]
    assert all(e["timestamp"].endswith(("20.000+00:00" if "Query" in e["logEventType"] else "20.250+00:00")) and e["callIdSip"] == "1@x" for e in got), got
    assert [e.get("responseStatus") for e in got[1::2]] == [None, "454", "454", "454"], got
    assert got[0]["uri"] == "https://l.example/\u2603" and got[1]["text"] == "<a/>\nlost 1 1 - 200 1 1 1 1\n", got
    assert got[2]["queryAdapter"] == "<q/>" and got[3]["malformedResponse"] == "\u2603" and "malformedResponse" not in got[5], got
    assert len({e.get("queryId") or e["responseId"] for e in got}) == 4, got
    for bad in (b"x", exchange("lost", "-", 200, "u", "q", "r")[:-20], b"lost 1 1 - 200 999999 1 1 1\n", exchange("lost", "-", 200, "", "", "").replace(b"1700000000250", b"9" * 15)):
        try:
            assert not events.Datagram(asked(held, bad)).exchanges, bad
            raise AssertionError(bad)
        except events.BadEvent:
            pass
    assert not logger.events(events.Datagram(asked(held).replace(b"callid", b"callie")))
    for queue, policy in (("sip:a@x", {"policyType": "NormalNextHopRoutePolicy", "policyQueueName": "sip:a@x"}), ("-", {"policyType": "OtherRoutePolicy", "policyId": "default"})):
        (e,) = events.Logger("b.example", "a.example").events(events.Datagram(f"route 1700000000 - {IDS}\n1@x\n{queue} sip:b@x".encode()))
        assert {k: v for k, v in e.items() if k.startswith("policy")} == {"policyOwner": "a.example", **policy} and e["recipientUri"] == "sip:b@x", e


def test_a_caller_who_uses_a_call_id_again():
    """Each call has its events, also while another one with this Call-ID runs, and after it."""
    _, events, _, _ = border()
    logger = events.Logger("b.example", "a.example")
    other = CALLER.replace("tag=c", "tag=d")
    begin = [("CallStart", "incoming")], [("CallEnd", "incoming")]
    for _ in range(2):
        for who in (CALLER, other):
            assert kinds(logger, event("in", sip("INVITE urn:service:sos SIP/2.0", "1 INVITE", source=who, body=SDP), IDS)) == begin[0], who
        for who in (CALLER, other):
            assert kinds(logger, event("in", sip("BYE sip:t SIP/2.0", "2 BYE", source=who, to=PSAP))) == begin[1], who


def test_long_words_cost_little():
    """Names in SIP are as long as a message: of each call little is kept, and one header does not keep the program busy."""
    _, events, _, _ = border()
    logger = events.Logger("b.example", "a.example")
    long = "x" * 50000
    (start,) = logger.events(events.Datagram(event("in", sip("INVITE urn:service:sos SIP/2.0", "1 INVITE", source=f"<sip:c@x>;tag={long}").replace("1@x", long), IDS)))
    assert start["callIdSip"] == long
    many = "v=0\r\n" + "a=label:y\r\n" * 5000 + f"a=label:{long}\r\n"
    (media,) = logger.events(events.Datagram(event("in", sip("SIP/2.0 200 OK", "1 INVITE", source=f"<sip:c@x>;tag={long}", to=PSAP, body=many).replace("1@x", long))))
    assert media["mediaLabel"] == ["y"] * 16 and events.labels(f"a=label:{long}") == ["x" * 64]
    ((key, call),) = logger.calls.items()
    assert len(key) == 32 and len(repr(vars(call))) < 1000, vars(call)
    assert events.Logger.parties(events.Message(f'INVITE x SIP/2.0\r\nf: "a<b" <sip:c@x>;tag=1\r\nt: sip:d@x;x="{"<" * 50000}"'))["from"] == "sip:c@x"
    assert events.Message("SIP/2.0 \u00b2\u00b2\u00b2 OK\r\n\r\n").status == 0


def test_garbage_is_no_event():
    """Of anybody on this host, and in messages of strangers: one exception, and nothing of it in an event. Memory is bounded."""
    _, events, _, _ = border()
    draw = random.Random(911)
    valid = [asked(exchange("held", "-", 200, "https://l.example/", "", "<a/>"), exchange("lost", "garbage", 200, "https://s.example/", "<q/>", "x")),
             f"route 1700000000 - {IDS}\n1@x\nsip:a@x sip:b@x".encode(), event("in", INVITE, IDS), event("out", OK), event("in", sip("BYE sip:t SIP/2.0", "2 BYE", to=PSAP))]
    logger = events.Logger("b.example", "a.example", messages=True, calls=10)
    for i in range(8000):
        data = bytearray(draw.choice(valid))
        for _ in range(draw.randrange(1, 30)):
            at = draw.randrange(len(data))
            data[at:at + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
        try:
            for e in logger.events(events.Datagram(bytes(data))):
                json.dumps(e)
                assert events.URN["callid"].fullmatch(e["callId"]) and events.URN["incidentid"].fullmatch(e["incidentId"]), e
        except events.BadEvent:
            pass
        assert len(logger.calls) <= 10
    for ids in ("x", "urn:emergency:uid:callid:short:x i s a", IDS.replace("callid", "callid\t")):
        try:
            assert not events.Logger("b", "a").events(events.Datagram(event("in", INVITE, ids)))
        except events.BadEvent:
            pass


async def test_a_full_queue_loses_events_and_says_so():
    _, _, _, sender = border()
    s = sender.Sender("https://x.invalid/", None, None, events=3, octets=1 << 20)
    for i in range(5):
        s.put({"logEventType": "x", "number": str(i)})
    assert [e["number"] for e, _ in s.queue] == ["0", "1", "2"] and s.counts["lost"] == 2
    s = sender.Sender("https://x.invalid/", None, None, events=100, octets=3000)
    for _ in range(5):
        s.put({"text": "t" * 1000})
    assert len(s.queue) == 2 and s.counts["lost"] == 3 and s.octets <= 3000
    # Memory counts, not characters.
    for event in ({"text": "t" * 1000 + "\u2603"}, {"mediaLabel": ["l" * 64] * 16}):
        s = sender.Sender("https://x.invalid/", None, None, events=100, octets=1200)
        s.put(event)
        assert s.counts["lost"] == 1, event


async def test_an_event_is_tried_again_until_it_is_taken():
    """Events that the service refuses are not. The others do not wait for it."""
    _, _, _, sender = border()
    got, answers = [], {"a": [False, False, True], "b": [True]}
    s = sender.Sender("https://x.invalid/", None, None, connections=1)

    async def post(e):
        got.append(e["name"])
        return answers[e["name"]].pop(0)
    s.post = post
    for name in "ab":
        s.put({"name": name})
    task = asyncio.get_running_loop().create_task(s.work())
    while any(answers.values()):
        await asyncio.sleep(0.01)
    task.cancel()
    assert got == ["a", "b", "a", "a"], got


async def test_answers_of_a_lying_service():
    """Cookies are not kept, and what is compressed is not unpacked."""
    _, _, _, sender = border()
    from aiohttp import web
    got = []

    async def take(request):
        got.append(request.headers.get("Cookie"))
        return web.Response(status=201, body=b"not gzip", headers={"Set-Cookie": f"c{len(got)}=x", "Content-Encoding": "gzip"})
    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    s = sender.Sender(f"http://localhost:{runner.addresses[0][1]}/", lambda e: b"signed", False, seconds=600, connections=1)
    s.start()
    for _ in range(3):
        s.put({"logEventType": "x"})
    while s.counts["sent"] < 3:
        assert not s.counts["failures"], s.counts
        await asyncio.sleep(0.01)
    await s.close(60)
    await runner.cleanup()
    assert got == [None] * 3, got


class FakeKamailio:
    path = "fake"

    def __init__(self):
        self.told, self.down = [], False

    def block(self, blocks, seconds):
        if self.down:
            raise OSError("down")
        self.told.append(dict(blocks))


async def test_blocked_sources():
    actors, _, _, _ = border()
    now, key = [1000.0], "a" * 32
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "blocked.json")
        kamailio = FakeKamailio()
        a = actors.Actors(kamailio, state, seconds=60, known=2, clock=lambda: now[0])
        assert a.report("id@x") == 433
        a.seen("id@x", key)
        a.seen("no@x", "../etc")
        assert a.report("no@x") == 433 and a.report("id@x") == 201 and a.report("id@x") == 432
        kamailio.down = True
        assert not await a.tell()
        kamailio.down = False
        assert await a.tell() and kamailio.told == [{key: 60.0}]
        # Another process, later; and what was repeated is the rest of the time.
        now[0] += 20
        b = actors.Actors(kamailio, state, seconds=60, clock=lambda: now[0])
        task = asyncio.get_running_loop().create_task(b.repeat(0.01))
        while len(kamailio.told) < 4:
            await asyncio.sleep(0.01)
        task.cancel()
        assert kamailio.told[1:4] == [{key: 40.0}] * 3, kamailio.told
        now[0] += 41
        b.seen("id@x", key)
        assert b.report("id@x") == 201
        # Blocks that have ended leave their room.
        full = actors.Actors(kamailio, seconds=60, known=2, clock=lambda: now[0])
        for i in range(3):
            full.seen(f"id{i}@x", str(i) * 32)
            assert full.report(f"id{i}@x") == (201 if i < 2 else 503)
        now[0] += 61
        assert full.report("id2@x") == 201
        # A full disk does not hinder a block.
        c = actors.Actors(kamailio, os.path.join(folder, "none", "blocked.json"), clock=lambda: now[0])
        c.seen("id@x", key)
        assert c.report("id@x") == 201
        # The oldest identifier goes.
        for i in range(2):
            a.seen(f"new{i}@x", key)
        assert a.report("id@x") == 433 and len(a.known) == 2
        with open(state, "w", encoding="ascii") as f:
            f.write("[1]")
        try:
            actors.Actors(kamailio, state)
            raise AssertionError("a broken state was taken")
        except OSError as why:
            assert state in str(why), why


async def test_bodies_of_reports():
    """Whoever has a certificate may send any: a refusal, and nothing breaks."""
    actors, _, _, _ = border()
    import aiohttp
    from aiohttp import web
    a = actors.Actors(FakeKamailio())
    runner = web.AppRunner(a.application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession() as session:
        for body in ("", "{", "[]", '{"sourceId": 1}', '{"sourceId": null}', "x" * 5000, "../../etc/passwd", '{"a":' + "[" * 4000, '{"a":' * 800, "\0\n"):
            async with session.post("http://127.0.0.1:%d/BadActors" % runner.addresses[0][1], data=body.encode()) as reply:
                assert reply.status in (400, 413), (body[:20], reply.status)
    await runner.cleanup()
    assert not a.blocked and not a.kamailio.told


async def test_connections_are_bounded():
    """Silent handshakes count, too. A place that becomes free is used again."""
    actors, _, _, _ = border()
    from aiohttp import web
    from border import door
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for context in (None, tls):
        runner = web.AppRunner(actors.Actors(FakeKamailio()).application())
        await runner.setup()
        d = door.Door(runner.server, door.listening("127.0.0.1", 0), context, 2)
        task = asyncio.get_running_loop().create_task(d.run())
        where = d.socket.getsockname()
        streams = [await asyncio.open_connection(*where) for _ in range(2)]
        while d.count() < 2:
            await asyncio.sleep(0.01)
        for n in (1, 2):
            reader, writer = await asyncio.open_connection(*where)
            try:
                assert await asyncio.wait_for(reader.read(), 60) == b""
            except ConnectionResetError:
                pass
            writer.close()
            assert d.refused == n and d.count() == 2
        streams[0][1].close()
        while d.count() > 1:
            await asyncio.sleep(0.01)
        streams[0] = await asyncio.open_connection(*where)
        while d.count() < 2:
            await asyncio.sleep(0.01)
        if not context:
            streams[0][1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await asyncio.wait_for(streams[0][0].readline(), 60)).startswith(b"HTTP/1.1 404")
        assert d.refused == 2
        task.cancel()
        d.close()
        for _, writer in streams:
            writer.close()
        await runner.server.shutdown(1)
        await runner.cleanup()


def test_references_to_additional_data():
    """Only those of Call-Info, at most eight, and only to allowed hosts."""
    _, events, _, _ = border()
    from border import additional
    text = ("INVITE urn:service:sos SIP/2.0\r\nCall-Info: <https://a.example/1>;purpose=EmergencyCallData.DeviceInfo,\r\n <https://a.example/2>;x=y;purpose=EmergencyCallData.Comment\r\n"
            "Call-Info: <cid:1@x>;purpose=EmergencyCallData.ServiceInfo\r\nCALL-INFO: < https://b.example/3 > ; purpose=\"EmergencyCallData.ProviderInfo\"\r\n"
            "Call-Info: <https://c.example/icon>;purpose=icon\r\n\r\nCall-Info: <https://d.example/>;purpose=EmergencyCallData.Comment")
    assert additional.references(events.Message(text).infos) == [("https://a.example/1", "EmergencyCallData.DeviceInfo"), ("https://a.example/2", "EmergencyCallData.Comment"),
                                                                 ("https://b.example/3", "EmergencyCallData.ProviderInfo")]
    many = "x\r\n" + "Call-Info: <https://a.example/>;purpose=EmergencyCallData.Comment\r\n" * 100
    assert len(additional.references(events.Message(many).infos)) == 8
    rules = [additional.Rule(r) for r in ("a.example", ".NET.example", "2001:db8::1", "b.example:8443", "[2001:db8::2]:8443")]
    for uri, good in (("https://a.example/x", True), ("https://A.EXAMPLE:443?x", True), ("https://b.net.example/", True), ("https://[2001:db8::1]/", True), ("https://b.example:8443", True),
                      ("https://[2001:db8::2]:8443#x", True), ("https://a.example:8443/", False), ("https://b.example/", False), ("https://[2001:db8::1]:1/", False),
                      ("http://a.example/", False), ("https://net.example/", False), ("https://x@a.example/", False), ("https://:x@a.example/", False), ("https://a.example@evil.example/", False),
                      ("https://a.example\\@evil.example/", False), ("https://evil.example\\.net.example/", False), ("https://evil.example#.net.example/", False),
                      ("https://x\x1bc.net.example/", False), ("https://x%2f.net.example/", False), ("https://\u2100.net.example/", False), ("https://a.example/\x1b", False),
                      ("https://evila.example/", False), ("https://[::1/", False), ("https://a.example:x/", False), ("https:///x", False), ("https://127.0.0.1/", False)):
        assert any(r.allows(uri) for r in rules) == good, uri
    for text in ("", ".", "..", "a.example:x", "a.example:70000", "https://a.example", "a example", "[::1"):
        try:
            additional.Rule(text)
        except ValueError:
            continue
        raise AssertionError(text)


def logged():
    """The lines of the log from now on."""
    lines, handler = [], logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("xcipher-border").addHandler(handler)
    return lines


async def local_server(handler):
    """(runner, port) of an HTTP server on the loopback interface."""
    from aiohttp import web
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, runner.addresses[0][1]


async def test_answers_of_repositories():
    """Only XML without declarations and of bounded size is additional data. Redirects are not followed. What waits is bounded."""
    _, events, _, _ = border()
    from aiohttp import web
    from border import additional
    answers = {"good": (200, "<a/>"), "cut": (200, "<a>"), "bomb": (200, '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), "utf16": (200, '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a><a/>'),
               "coded": (200, '<?xml version="1.0" encoding="nonsense"?><a/>'), "packed": (200, '<?xml version="1.0" encoding="zip"?><a/>'), "wide": (200, '<?xml version="1.0" encoding="big5"?><a/>'),
               "large": (200, f"<a>{'x' * 70000}</a>"), "gone": (404, ""), "moved": (302, "")}
    asked = []

    async def answer(request):
        asked.append(request.path)
        status, text = answers[request.match_info["path"]]
        return web.Response(status=status, body=text.encode("utf-16" if "UTF-16" in text else "utf-8"), headers={"Location": "/good"} if status == 302 else {})
    runner, port = await local_server(answer)
    a = additional.AdditionalData([additional.Rule("a.example")], False, events.Logger("e", "a", True), None)
    a.start()
    got = {name: await a.fetch(a.sources[0], f"http://127.0.0.1:{port}/{name}", "EmergencyCallData.Comment") for name in answers}
    assert {name for name, (_, _, good) in got.items() if good} == {"good"} and got["good"] == ("<a/>", 200, True), got
    assert [got[n][1] for n in ("gone", "moved", "bomb")] == [404, 302, 200] and len(asked) == len(answers), (got, asked)
    assert "<a>" == got["cut"][0] and not got["large"][0], got
    assert (await a.fetch(a.sources[0], "http://127.0.0.1:1/", "EmergencyCallData.Comment"))[1:] == (0, False)
    # URIs are not logged: whoever has one can fetch the data.
    lines = logged()
    for reply in (b"SIP/2.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n:\r\n\r\n", b""):
        async def garbage(_, writer, reply=reply):
            writer.write(reply)
            writer.close()
        server = await asyncio.start_server(garbage, "127.0.0.1", 0)
        a.trouble.said.clear()
        assert not (await a.fetch(a.sources[0], f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/secret", "EmergencyCallData.Comment"))[2]
        server.close()
    assert len(lines) == 3 and "secret" not in str(lines), lines
    await a.close()
    await runner.cleanup()
    d = events.Datagram(event("in", INVITE.replace("Call-ID", "Call-Info: <https://a.example/>;purpose=EmergencyCallData.Comment\r\nCall-ID") + "\U0001f600" * 15000, IDS))
    for _ in range(100):
        a.seen(d)
    a.seen(events.Datagram(event("out", d.text, IDS)))
    a.seen(events.Datagram(event("in", d.text)))
    waiting = a.sources[0].queue
    assert waiting.qsize() == 64 and a.counts["lost"] == 36, a.counts
    # Not the messages: a caller chooses their size.
    assert max(len(str(waiting.get_nowait())) for _ in range(64)) < 1000
    a.seen(events.Datagram(event("in", d.text.replace("1@x", "x" * 60000), IDS)))
    assert waiting.empty()


async def test_slow_names_delay_nothing_else():
    """Names that callers choose, and whose DNS is silent: neither the hosts of another entry wait, nor what other parts of the program do in threads."""
    _, events, _, _ = border()
    from aiohttp import web
    from border import additional
    release, look_up, begun = threading.Event(), socket.getaddrinfo, []
    asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(additional.AT_ONCE))

    def slow(host, *args, **more):
        if str(host).endswith(".slow.test"):
            begun.append(host)
            release.wait()
            raise OSError("released")
        return look_up(host, *args, **more)

    async def answer(_):
        return web.Response(text="<a/>")
    runner, port = await local_server(answer)
    events_put = asyncio.Queue()
    a = additional.AdditionalData([additional.Rule(".slow.test"), additional.Rule("quick.test")], False, events.Logger("e", "a", True), events_put.put_nowait)
    a.start()
    socket.getaddrinfo = slow
    about = additional.About("c", "i", "1@x", "2026-01-01T00:00:00.000+00:00", "")
    try:
        for i in range(50):
            a.sources[0].queue.put_nowait((about, f"http://x{i}.slow.test/", "EmergencyCallData.Comment"))
        while len(begun) < additional.AT_ONCE:
            await asyncio.sleep(0.01)
        assert await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, lambda: 1), 60) == 1
        a.sources[1].queue.put_nowait((about, f"http://127.0.0.1:{port}/", "EmergencyCallData.Comment"))
        await asyncio.wait_for(events_put.get(), 60)
        assert (await asyncio.wait_for(events_put.get(), 60))["text"] == "<a/>" and a.counts["fetched"] == 1, a.counts
    finally:
        socket.getaddrinfo = look_up
        release.set()
    await a.close()
    await runner.cleanup()


async def test_discrepancy_reports():
    """One report for a source in a minute, a bounded queue, and locators that answer nonsense."""
    _, events, _, _ = border()
    from aiohttp import web
    from border import discrepancy
    now, records = [1000.0], [(200, "["), (200, "[]"), (200, '{"dscRptUri": "http://x/"}'), (404, ""), (200, "x" * 70000),
                               (200, json.dumps({"dscRptUri": "https://127.0.0.1:1/\nxcipher-border: forged\x1b[2J"})), (200, json.dumps({"dscRptUri": "https://[x\nxcipher-border: forged"}))]

    async def answer(_):
        status, text = records.pop(0)
        return web.Response(status=status, text=text)
    runner, port = await local_server(answer)
    r = discrepancy.Reports(f"http://127.0.0.1:{port}/", False, "e.example", "a.example", "https://e.example/Resolutions", clock=lambda: now[0])

    def bad(address):
        r.bad(events.Datagram(f"bad 1700000000.25 {address}:5061 - - - -\n{INVITE}".encode()))
    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
        bad(address)
    assert r.queue.qsize() == 2
    now[0] += 61
    bad("192.0.2.1")
    assert r.queue.qsize() == 3
    for i in range(2000):
        bad(f"10.0.{i // 250}.{i % 250}")
    assert r.queue.qsize() == 64 and r.counts["lost"] == 3 + 2000 - 64 and len(r.last) == 1000, r.counts
    while r.queue.qsize() > len(records):
        r.queue.get_nowait()
    lines = logged()
    r.start()
    while r.counts["failed"] < 7:
        await asyncio.sleep(0.01)
    assert len(lines) == 7 and all(line.isprintable() for line in lines), lines
    assert not records and not r.counts["sent"], (records, r.counts)
    await r.close()
    await runner.cleanup()


def test_requests_to_kamailio():
    actors, _, _, _ = border()
    with tempfile.TemporaryDirectory() as folder:
        path, got, error = os.path.join(folder, "rpc"), [], []
        server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        server.bind(path)

        def serve():
            for _ in range(2):
                data, sender = server.recvfrom(65536)
                got.append(json.loads(data))
                server.sendto(json.dumps({"jsonrpc": "2.0", "id": 1, **({"error": {"message": "no"}} if error else {"result": {}})}).encode(), sender)
                error.append(True)
        thread = threading.Thread(target=serve)
        thread.start()
        k = actors.Kamailio(path)
        k.block({"a" * 32: 30.5}, 60)
        assert got[0]["method"] == "htable.setxi" and got[0]["params"] == ["badactors", "a" * 32, 1, 30], got
        try:
            k.block({"b" * 32: 30}, 60)
            raise AssertionError("an error was not seen")
        except OSError as why:
            assert "no" in str(why)
        thread.join()
        assert os.listdir(folder) == ["rpc"]
        server.close()


def test_wrong_options_and_files():
    border()
    from border.main import main
    with tempfile.TemporaryDirectory() as folder:
        path = {n: os.path.join(folder, n) for n in ("p256.crt", "p256.key")}
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=x", "-keyout", path["p256.key"],
                        "-out", path["p256.crt"]], check=True, capture_output=True)
        tls = [f"--certificate={path['p256.crt']}", f"--key={path['p256.key']}", f"--ca={path['p256.crt']}"]
        sign = [f"--sign-certificate={path['p256.crt']}", f"--sign-key={path['p256.key']}"]
        for args, status, says in (([], 2, "nothing to do"), (["--log=http://x/", *tls, *sign], 2, "https"), (["--log=https://x/", *tls], 2, "--sign-key"),
                                   (["--log=https://x/", *tls, *sign], 1, "Ed448"), (["--listen=127.0.0.1:1", *tls], 2, "--kamailio"),
                                   (["--log=https://x/", *tls, *sign, "--additional-data=a.example"], 2, "--log-messages"),
                                   (["--log=https://x/", "--log-messages", *tls, *sign, "--additional-data=https://a.example"], 2, "HOST:PORT"),
                                   (["--log=https://x/", *tls, *sign, "--locator=https://x/"], 2, "--listen"),
                                   (["--log=https://x/", "--events=192.0.2.1:1", *tls, *sign], 2, "127.0.0.0/8"),
                                   (["--log=https://x/", *tls, "--sign-certificate=/none", "--sign-key=/none"], 1, "/none")):
            p = ran(main, args)
            assert p.returncode == status and says in p.stderr and "Traceback" not in p.stderr, (args, p.returncode, p.stderr)


def test_programs_find_their_modules_below_any_prefix():
    border()
    for program, folder in (("xcipher-border", "border"), ("xcipher-lost", "lost_server")):
        with tempfile.TemporaryDirectory() as prefix:
            os.mkdir(os.path.join(prefix, "bin"))
            installed = shutil.copy(os.path.join(ROOT, "ng911", program), os.path.join(prefix, "bin"))
            modules = shutil.copytree(os.path.join(ROOT, "ng911", folder), os.path.join(prefix, "share", "xcipher", "ng911", folder))
            with open(os.path.join(os.path.dirname(modules), "VERSION"), "w", encoding="ascii") as f:
                f.write("1.2.3")
            p = subprocess.run([installed, "--version"], capture_output=True, text=True, timeout=60, check=False)
            if "No module named" in p.stderr and f"'{folder}'" not in p.stderr:
                raise Skip(p.stderr)
            assert p.returncode == 0 and p.stdout == f"{program} 1.2.3\n", (program, p.stdout, p.stderr)
