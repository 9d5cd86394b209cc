# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of the public conformance suite of NENA-STA-010.3 about the web services of the border function and the ESRP, with xcipher-border: TD_BCF_004 (bad
actors), 005, 007 (log events of messages and calls), 014 (of media) and 015 (the request itself); TD_ESRP_007 (discrepancy reports), 013 and 020 (additional data),
014 (log events of LoST), 017 (of routes) and 019 (of locations). A logging service that is down or silent delays no call."""
import contextlib
import hashlib
import json
import os
import re
import socket
import ssl
import tempfile

import dtls
import logservice
import ng
import relay
from baresip import wait_for
from run import Skip
from test_ng911 import LIS, REFERENCE, TERMINALS, held_server, network, prepare
from test_ng911_conformance import send

PREPARE = prepare

CALL = r"urn:emergency:uid:callid:"
LOCAL = "127.0.0.1:5999"  # a service of the border's host


@contextlib.contextmanager
def border(net, *options, **esrp):
    """The network, xcipher-border with these options, and a logging service."""
    for name in ("aiohttp", "jwcrypto"):
        if not os.path.isdir(f"/usr/lib/python3/dist-packages/{name}"):
            raise Skip(f"python3-{name} is not installed")
    with tempfile.TemporaryDirectory(prefix="xcipher-border-") as folder, network(net, esrp={**logservice.Border.values(folder), **esrp}) as n:
        log = logservice.LogService(net, n.made.make("log", logservice.LOGGER[0]), n.ca)
        helper = logservice.Border(net, folder, n.certificates["esrp"], n.ca, *options)
        try:
            yield n, helper, log
        except Exception:
            print(f"--- xcipher-border\n{helper.text()[-4000:]}")
            raise
        assert helper.stop() == 0, helper.text()
        log.close()


def one_call(n):
    """A call that the caller ends. Its dialog, and the INVITE at the taker."""
    import ng911
    ng911.PACKETS = 5
    taker = n.takers[0]
    n.psap.rpc("htable.sets", "takers", "*", taker.uri())
    dialog, invite = ng911.connected(n, ng911.Story(False), ng911.HERE, taker)
    ng911.hang_up(n, ng911.Story(False), dialog, taker)
    return dialog, invite


def call_info(invite, purpose):
    (found,) = [i.strip() for i in ",".join(invite.all("Call-Info")).split(",") if f"purpose={purpose}" in i]
    return found.partition(">")[0].lstrip("<")


def send_message(net, n, log):
    media = dtls.Plain(net, "caller", "10.200.1.2")
    assert send(n, n.caller.connect()[0], 1, "MESSAGE", "urn:service:sos", "<urn:service:sos>", media) == 200
    media.close()
    wait_for("both log events", lambda: len(log.of("MessageLogEvent")) == 2)
    assert [e["text"] for e in log.of("MessageLogEvent")] == ["fire"] * 2 and {e["direction"] for e in log.of("MessageLogEvent")} == {"incoming", "outgoing"}


def calls_and_media(net, n, log):
    """TD_BCF_005, 007, 014 and 015"""
    dialog, invite = one_call(n)

    def ended():
        return len(log.of("MediaEndLogEvent", dialog.id)) == 2 and len(log.of("CallEndLogEvent", dialog.id)) == 1
    wait_for("the log events", ended)
    messages = log.of("CallSignalingMessageLogEvent", dialog.id)
    # Every request and reply of the call, with its text, on both sides.
    starts = [(e["direction"], e["text"].split("\r\n")[0]) for e in messages]
    for first in ("INVITE urn:service:sos SIP/2.0", "SIP/2.0 200 OK"):
        assert {d for d, line in starts if line == first} == {"incoming", "outgoing"}, starts
    assert {d for d, line in starts if line.startswith("BYE ")} == {"incoming", "outgoing"} == {d for d, line in starts if line.startswith("ACK ")}, starts
    (sent,) = [e for e in messages if e["direction"] == "outgoing" and e["text"].startswith("INVITE ")]
    assert dialog.pidf.replace("\n", "\r\n") in sent["text"] and "UDP/TLS/RTP/SAVP" in sent["text"] and sent["protocol"] == "sip", sent["text"]
    # Calls and media
    (start,), (end,) = log.of("CallStartLogEvent", dialog.id), log.of("CallEndLogEvent", dialog.id)
    assert start["direction"] == end["direction"] == "incoming" and start["to"] == "urn:service:sos" and start["timestamp"] < end["timestamp"], (start, end)
    media = {e["direction"]: e for e in log.of("MediaStartLogEvent", dialog.id)}
    assert set(media) == {"incoming", "outgoing"} == {e["direction"] for e in log.of("MediaEndLogEvent", dialog.id)}, media
    assert media["incoming"]["sdp"] == dialog.reply.sdp() and "UDP/TLS/RTP/SAVP" in media["outgoing"]["sdp"], media
    assert all(e["mediaLabel"] == [""] for e in media.values()), media
    for e in (e for e in log.events if e["callIdSip"] == dialog.id):
        assert e["callId"] == call_info(invite, "emergency-CallId") and e["incidentId"] == call_info(invite, "emergency-IncidentId"), e
        assert e["elementId"] == "border.esinet.example" and e["agencyId"] == "esinet.example" and e["timestamp"].endswith("+00:00"), e
    # The requests: signatures were checked as they came.
    for path, headers, flat, cipher in log.posts:
        assert path == "/LogEvents" and headers["Content-Type"] == "application/jose+json" and set(flat) == {"payload", "protected", "signature"}, path
        assert "AES_256" in cipher[0] or "AES256" in cipher[0] or "CHACHA20" in cipher[0], cipher
    send_message(net, n, log)


def pairs(log, kind, dialog, count):
    """The log events of so many queries of a call and their responses, those that failed first. Checks what the two of a pair share. They arrive in any order."""
    wait_for(f"{kind} events", lambda: len(log.of(f"{kind}QueryLogEvent", dialog.id) + log.of(f"{kind}ResponseLogEvent", dialog.id)) == 2 * count)
    responses = {r["responseId"]: r for r in log.of(f"{kind}ResponseLogEvent", dialog.id)}
    found = [(q, responses.pop(q["queryId"])) for q in log.of(f"{kind}QueryLogEvent", dialog.id)]
    found.sort(key=lambda pair: "responseStatus" not in pair[1])
    for query, response in found:
        assert query["queryId"].startswith("urn:emergency:uid:queryid:"), query
        assert (query["direction"], response["direction"]) == ("outgoing", "incoming") and query["timestamp"] <= response["timestamp"], (query, response)
        for name, value in (("elementId", "border.esinet.example"), ("agencyId", "esinet.example")):
            assert query[name] == response[name] == value, query
        assert query["callId"] == response["callId"] and re.fullmatch(CALL + r"[0-9A-Za-z]{10,32}:esinet\.example", query["callId"]), query
        assert query["incidentId"] == response["incidentId"] and query["incidentId"].startswith("urn:emergency:uid:incidentid:"), query
    assert len({q["queryId"] for q, _ in found}) == count, found
    return found


def routes_and_queries(n, log, server):
    """TD_ESRP_014, 017 and 019. The ESRP's first LoST server sends what is not LoST, the second one is true. Then a location by reference, and a location server that fails."""
    import esinet
    import ng911
    asked, broken = server
    near, far, other = esinet.uri(n.lost.psap_at(*ng911.HERE), esinet.PSAP), esinet.uri("far", esinet.PSAP), esinet.uri("default", esinet.PSAP)
    n.psap.rpc("htable.sets", "takers", "*", n.takers[0].uri())
    n.takers[0].silent = True

    def called(*policy, **more):
        """A call, and its only route."""
        dialog = n.caller.call(*ng911.HERE, **more)
        assert dialog.answered() == 200, dialog.reply.first
        dialog.end()
        wait_for("the route", lambda: log.of("RouteLogEvent", dialog.id))
        (route,) = log.of("RouteLogEvent", dialog.id)
        assert [route.get(name) for name in ("recipientUri", "policyType", "policyQueueName", "policyId")] == list(policy), route
        assert route["policyOwner"] == "esinet.example" and route["callId"].startswith(CALL), route
        return dialog

    dialog = called(near, "NormalNextHopRoutePolicy", near, None)
    (bad, false), (good, true) = pairs(log, "Lost", dialog, 2)
    assert "/lost" in asked and "locationResponse" in false["malformedResponse"] and false["responseAdapter"] == false["malformedResponse"], false
    assert false["responseStatus"] == "454" and "responseStatus" not in true and "malformedResponse" not in true, (false, true)
    assert bad["queryAdapter"] == good["queryAdapter"] and "<findService" in good["queryAdapter"] and str(ng911.HERE[0]) in good["queryAdapter"], good
    assert near in true["responseAdapter"] and true["responseAdapter"].rstrip().endswith("findServiceResponse>"), true
    n.esrp.rpc("htable.sets", "state", near, "closed")
    n.esrp.rpc("htable.sets", "divert", near, far)
    reference = {"location": False, "more": [("Geolocation", f"<{REFERENCE}>")]}
    ((query, response),) = pairs(log, "Location", called(far, "NormalNextHopRoutePolicy", near, None, **reference), 1)
    assert query["uri"] == REFERENCE and query["text"] == "" and "<locationResponse" in response["text"] and "responseStatus" not in response, (query, response)
    broken.append(True)
    ((query, response),) = pairs(log, "Location", called(other, "OtherRoutePolicy", None, "default", **reference), 1)
    assert query["uri"] == REFERENCE and response["responseStatus"] == "500", (query, response)
    n.esrp.rpc("htable.delete", "state", near)
    n.takers[0].silent = False


def test_td_bcf_005_007_014_015_and_esrp_014_017_019(net):
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher_lost.so")):
        raise Skip("xcipher_lost.so is not built")
    import esinet
    with border(net, XC_LOST=f"https://{LIS[0]}:{LIS[1]}/lost", XC_LOST_2=f"https://{esinet.LOST}:8443/lost") as (n, _, log):
        import ng911
        server, *told = held_server(net, n.folder, n.certificates["lost"], ng911.HERE)
        routes_and_queries(n, log, told)
        calls_and_media(net, n, log)
        server.shutdown()


DATA = {k: f'<data xmlns="urn:x"><id>{k}</id></data>' for k in ("EmergencyCallData.DeviceInfo", "EmergencyCallData.ProviderInfo", "EmergencyCallData.ServiceInfo")}


def test_td_esrp_007_013_020(net):
    """Additional data by three references are fetched and logged, in variant 1 well-formed, in variant 2 not. The INVITE keeps the references. A host that is not allowed
    gets no request. A malformed message of a server is reported once, and the resolution of the report is accepted from servers only."""
    import esinet
    import ng911
    service = logservice.Services
    with border(net, f"--additional-data={service.where[0]}:{service.where[1]}", f"--locator=https://{service.where[0]}:{service.where[1]}/SAL/1") as (n, helper, log):
        from test_ng911_states import Peer
        services = service(net, n.certificates["lost"], n.ca)
        n.psap.rpc("htable.sets", "takers", "*", n.takers[0].uri())
        n.takers[0].silent = True
        infos = [("Call-Info", f"<{services.url('/' + k)}>;purpose={k}") for k in DATA]
        infos.append(("Call-Info", "<https://10.201.0.9:8447/x>;purpose=EmergencyCallData.Comment"))
        for variant in (1, 2):
            services.answers.update({"/" + k: text if variant == 1 else text[:-3] for k, text in DATA.items()})
            dialog = n.caller.call(*ng911.HERE, more=infos)
            assert dialog.answered() == 200, dialog.reply.first
            dialog.end()
            for _, info in infos:
                assert info in ",".join(n.takers[0].invites[-1].all("Call-Info")), n.takers[0].invites[-1].headers
            found = pairs(log, "AdditionalData", dialog, 3)
            assert {q["uri"] for q, _ in found} == {services.url("/" + k) for k in DATA} and {q["text"] for q, _ in found} == {""}, found
            for query, response in found:
                assert response["text"] == services.answers[query["uri"].partition(":8447")[2]], response
                assert response.get("responseStatus") == (None if variant == 1 else "454"), response
        got = services.asked("GET", "/Emergency")
        assert len(got) == 6 and {g[2]["Accept"] for g in got} == {f"application/{k}+xml" for k in DATA}, got
        assert "does not allow" in helper.text()

        server = Peer(net, n, "vsp", esinet.VSP, 5995)
        stream = server.connect(esinet.ESRP)
        for call in ("bad1", "bad2"):
            wrong = [("From", "<sip:c@vsp.example>;tag=1"), ("To", "<urn:service:sos>"), ("Call-ID", call), ("CSeq", "99999999999 INVITE"), ("Content-Type", "text/plain"),
                     ("Call-Info", "<a7123gc42@sbc22.example.net>;purpose=emergency-source")]
            assert server.ask(stream, "INVITE urn:service:sos SIP/2.0", wrong, "x").status() == 400
        wait_for("the report", lambda: services.asked("POST", "/dr/Reports"))
        ((_, _, headers, body),) = services.asked("POST", "/dr/Reports")
        said = json.loads(body)
        assert headers["Content-Type"] == "application/json" and said["problem"] == "BadSIP" and said["reportType"] == "BCFDiscrepancyReport", said
        assert said["request"].startswith("INVITE urn:service:sos SIP/2.0\r\n") and "Call-ID: bad1" in said["request"] and said["request"].endswith("\r\n\r\nx"), said
        assert said["sosSource"] == "<a7123gc42@sbc22.example.net>;purpose=emergency-source" and said["eventTimestamp"].endswith("+00:00"), said
        assert said["resolutionUri"] == "https://border.esinet.example:8446/Resolutions" and said["reportingAgencyName"] == "esinet.example", said
        resolution = json.dumps({"discrepancyReportId": said["discrepancyReportId"], "resolution": "Corrected"})
        assert logservice.report(net, resolution, n.certificates["psap"], n.ca, "/Resolutions") == 201
        assert logservice.report(net, "[]", n.certificates["psap"], n.ca, "/Resolutions") == 400
        assert f"resolves the discrepancy report '{said['discrepancyReportId']}'" in helper.text() and len(services.asked("POST", "/dr")) == 1
        server.close()
        services.close()


def test_no_call_waits_for_the_log(net):
    """Neither for a logging service that is silent or fails, nor for xcipher-border. Its events come later, those without xcipher-border never."""
    with border(net) as (n, helper, log):
        log.accepts.clear()
        silent, _ = one_call(n)
        assert not log.events
        log.status = 503
        log.accepts.set()
        wait_for("a refusal", lambda: log.posts)
        failed, _ = one_call(n)
        assert not log.events
        log.status = 201
        for dialog in (silent, failed):
            wait_for("the log events", lambda d=dialog: len(log.of("MediaEndLogEvent", d.id)) == 2 and log.of("CallEndLogEvent", d.id))
        assert helper.stop() == 0
        lost, _ = one_call(n)
        helper.start()
        after, _ = one_call(n)
        wait_for("the log events", lambda: log.of("CallEndLogEvent", after.id))
        assert not log.of("CallStartLogEvent", lost.id)


def test_td_bcf_004(net):
    with border(net) as (n, helper, log):
        dialog, invite = one_call(n)
        source = call_info(invite, "emergency-source")
        wait_for("the log events", lambda: log.of("CallEndLogEvent", dialog.id))  # so xcipher-border has seen the call
        psap = n.certificates["psap"]

        def told(body, certificate=psap):
            return logservice.report(net, body, certificate, n.ca)
        for unknown in ("0123456789abcdef0123@esinet.example", '{"sourceId": "0123456789abcdef0123@esinet.example"}'):
            assert told(unknown) == 433, unknown
        for bad in ("", "{", "[]", '{"sourceId": 1}', "x" * 5000, "../../etc/passwd"):
            assert 400 <= told(bad) < 500, bad
        try:
            logservice.report(net, source, None, n.ca)
            raise AssertionError("a report without a certificate was accepted")
        except (ssl.SSLError, ConnectionError):
            pass
        before = len(n.takers[0].invites)
        assert told('{"sourceId": "%s"}' % source) == 201
        assert told(source) == 432

        def refused():
            import ng911
            d = n.caller.call(*ng911.HERE)
            status = d.answered()
            d.close()
            return status == 603
        assert refused() and len(n.takers[0].invites) == before
        # An invented To tag makes no difference.
        import esinet
        from test_ng911_overload import invented, invite
        media, stream = dtls.Plain(net, "caller", "10.200.1.2"), n.caller.connect()[0]
        target, routes, *rest = invented(esinet.VSP)
        invite(stream, media, target, [*routes, ("Route", f"<sip:{esinet.ESRP}:5061;transport=tls;lr>")], *rest)
        while (m := stream.receive()).status() < 200:
            pass
        assert m.status() == 603, m.first
        media.close()
        # Other callers of the same server are not blocked.
        n.caller.name = "other"
        one_call(n)
        n.caller.name = "caller"
        # Both have started again.
        n.esrp.stop()
        n.esrp.start()
        assert helper.stop() == 0
        helper.start()
        wait_for("the block", refused)


def test_a_hostile_server(net):
    """Identifiers that are not of the standard hide neither its calls nor their source. It does not know what names its calls at the border, and sends
    no SIP to services of the border's host."""
    with border(net) as (n, _, log):
        import esinet
        from test_ng911_states import Peer
        taker, server = n.takers[0], Peer(net, n, "vsp", esinet.VSP, 5995)
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        stream, caller = server.connect(esinet.ESRP), "sip:c@vsp.example"
        forged = [("Call-Info", "<urn:emergency:uid:callid:odd,one:x>;purpose=emergency-CallId"), ("Call-Info", "<0123456789abcdef0123@esinet.example>;purpose=emergency-source"),
                  ("Call-Info", '<0123456789abcdef0123@esinet.example>;purpose = "nena-source"')]
        fixed = [("From", f"<{caller}>;tag=1"), ("To", "<urn:service:sos>"), ("Call-ID", "hostile"), ("CSeq", "1 MESSAGE"), ("Content-Type", "text/plain")]
        assert server.ask(stream, "MESSAGE urn:service:sos SIP/2.0", [*fixed, *forged], "fire").status() == 200
        wait_for("its events", lambda: len(log.of("MessageLogEvent", "hostile")) == 2)
        (info,) = [i for i in taker.others[-1].all("Call-Info") if "emergency-source" in i or "nena-source" in i]
        actor = hashlib.md5(f"{esinet.VSP} {caller}".encode()).hexdigest()
        guess = hashlib.md5(f"source hostile {actor}".encode()).hexdigest()[:20] + "@esinet.example"
        assert logservice.report(net, guess, n.certificates["vsp"], n.ca) == 433
        assert logservice.report(net, info.partition(">")[0].lstrip("<"), n.certificates["psap"], n.ca) == 201

        local = ng.socket_in(net.gateway, kind=socket.SOCK_DGRAM)
        local.bind(("127.0.0.1", 5999))
        local.setblocking(False)
        routes = [("Route", f"<sip:{esinet.ESRP}:5061;transport=tls;lr>"), ("Route", f"<sip:{LOCAL};transport=udp;lr>")]
        within = [("From", f"<{caller}>;tag=1"), ("To", "<sip:x@y>;tag=2"), ("Call-ID", "local"), ("CSeq", "2 INFO")]
        m = server.ask(stream, f"INFO sip:x@{LOCAL};transport=udp SIP/2.0", [*within, *routes])
        assert m.status() >= 400, m.first
        for i, contact in enumerate((f"sip:{LOCAL}", f"sip:a;transport=tls@{LOCAL}", f"sip:{LOCAL};transport=tls;transport=udp", f"sip:{LOCAL};transport=udp;transport=tls", f"sip:{LOCAL};transport=tlsx",
                                     f"sip:{LOCAL};x;transport=tls=1", f"sips:{LOCAL};transport=udp", f"sips:a;transport=tls@{LOCAL};transport=udp")):
            m = server.ask(stream, f"SUBSCRIBE sip:sos@{esinet.ESRP}:5061;transport=tls SIP/2.0",
                           [("From", f"<{caller}>;tag=1"), ("To", "<sip:sos@x>"), ("Call-ID", f"watch{i}"), ("CSeq", "1 SUBSCRIBE"), ("Event", "emergency-QueueState"), ("Contact", f"<{contact}>")])
            assert m.first == "SIP/2.0 400 Bad Subscription", (contact, m.first)
        try:
            raise AssertionError(local.recv(65536))
        except BlockingIOError:
            pass
        local.close()
        server.close()


for test in (test_td_bcf_005_007_014_015_and_esrp_014_017_019, test_td_esrp_007_013_020, test_no_call_waits_for_the_log, test_td_bcf_004, test_a_hostile_server):
    test.terminals = TERMINALS
