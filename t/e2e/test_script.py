# SPDX-License-Identifier: GPL-2.0-or-later
"""The shipped examples with stock and own module: names of the parties, SDP in multipart bodies, a
200 repeated after Kamailio forgot the call, a node that hangs, and replies to refused callers."""
import json
import os
import re
import signal
import socket
import ssl
import tempfile

import ng
import relay
import sipp
from baresip import wait_for
from run import cases
from test_edge import DOMAIN, EDGE, TERMINALS, certificates, database, edge, needs
from test_kamailio_answers import DENIED, EXAMPLES, Agent, Gateway, gateway, raw
from test_module import BOTH, quoted

TO = "sip:callee@10.200.2.2:5060"
S80 = "AES_CM_128_HMAC_SHA1_80"
WT_TIMER = ('loadmodule "tm.so"', 'loadmodule "tm.so"\nmodparam("tm", "wt_timer", 500)')
ISUP = "\0\1m=not media\2"


def part(kind, body, more=""):
    return f"--part\r\nContent-Type: {kind}\r\n{more}\r\n{body}\r\n"


def multipart(*parts):
    return "".join(parts) + "--part--\r\n"


def kind(sub):
    return f"multipart/{sub};boundary=part"


def no_body(message):
    return message.endswith("Content-Length: 0\r\n\r\n")


def end(g, cseq, to_tag, answer):
    """BYE by the caller."""
    routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", answer)))
    g.a.request("BYE", TO, f"bye{cseq}", to_tag, cseq=cseq, routes=routes)
    g.b.wait("BYE", f"CSeq: {cseq} BYE")
    wait_for("the call's end", lambda: g.calls() == [])


def ended(path):
    """Records of ended calls."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


@cases(*EXAMPLES)
def test_names_of_the_parties(net, example):
    """The record of the ended call has the user parts of From and To. Characters that could end the
    list or add a flag are replaced. A re-INVITE by the callee does not swap the names."""
    names = (("alice", "+4930123", "alice", "+4930123"), ("eve|to=x;SDES-off", "100%23*", "eve_to_x_SDES-off", "100%23*"),
             ("a\x1b'&,", "x" * 99, "a____", "x" * 64), ("", "bob", "", "bob"))
    with tempfile.TemporaryDirectory(prefix="xcipher-names-") as folder:
        cdr = os.path.join(folder, "calls")
        with gateway(net, example, options=[f"--cdr-file={cdr}"]) as g:
            for n, (user, called, caller, callee) in enumerate(names):
                g.a.user, g.a.called, cseq = user, called, 10 * n + 1
                text = g.a.sdp(suite=S80)
                g.a.request("INVITE", TO, f"i{n}", body=text, cseq=cseq)
                invite = g.b.wait("INVITE", f"CSeq: {cseq} INVITE")
                assert "SDES-off" not in invite.partition("\r\n\r\n")[2] and "RTP/SAVP" in invite, invite
                g.b.reply(200, invite, g.b.sdp(), f"t{n}")
                end(g, cseq + 1, f"t{n}", g.a.wait("SIP/2.0 200", f"CSeq: {cseq} INVITE"))
                found = wait_for("its record", lambda n=n: ended(cdr)[n:])[0]
                assert found["metadata"] == f"from:{caller}|to:{callee}", found


def offered(g, n, content, body):
    """Sends the caller's INVITE with this body. Returns what the callee received, or the refusal.
    The caller's original SDP must reach no one."""
    g.a.kind = content
    g.a.request("INVITE", TO, f"m{n}", body=body, cseq=n)
    also = f"CSeq: {n} INVITE"
    seen = wait_for("INVITE or refusal", lambda: [m for m in g.b.listen() if m.startswith("INVITE") and also in m]
                    + [m for m in g.a.listen() if re.match(r"SIP/2.0 [45]", m) and also in m])[0]
    assert "10.200.1.2" not in seen.partition("\r\n\r\n")[2] or "m=audio" not in seen, seen
    assert "inline:WVNf" not in seen, seen
    return seen


@cases(*EXAMPLES)
def test_sdp_in_multipart_bodies(net, example):
    """In offers and answers: SDP in multipart/mixed is processed, also after a binary part, and the
    other parts stay. A second SDP, or one that cannot be replaced, is refused. Control: a body
    without SDP passes."""
    with gateway(net, example) as g:
        mine = g.a.sdp(suite=S80)
        sdp, isup = part("application/sdp", mine), part("application/isup", ISUP)
        inner = multipart(sdp).replace("--part", "--inner")
        nested = f"--part\r\nContent-Type: multipart/alternative;boundary=inner\r\n\r\n{inner}\r\n"
        n = 0
        for content, body, processed in (
                ("application/sdp", mine, True), (kind("mixed"), multipart(sdp, isup), True), (kind("mixed"), multipart(isup, sdp), True),
                (kind("mixed"), multipart(part("APPLICATION/SDP; x=y", mine)), True), (kind("mixed"), multipart(sdp, sdp), False),
                (kind("related"), multipart(sdp), None), (kind("alternative"), multipart(sdp), None), (kind("mixed"), multipart(nested), None),
                (kind("mixed"), multipart(part("text/plain", mine)), None), ("text/plain", mine, False),
                ("text/plain\r\nContent-Type: application/sdp", mine, False), ("multipart/mixed;boundary=wrong", multipart(sdp), False),
                (kind("mixed"), multipart(part("application/sdp", "dj0wDQptPWF1ZGlv", "Content-Transfer-Encoding: base64\r\n")), False),
                (kind("mixed"), multipart(isup), "passes"), (kind("mixed"), multipart(part("application/pidf+xml", "<a/>")), "passes")):
            n += 1
            seen = offered(g, n, content, body)
            if seen.startswith("INVITE"):
                assert processed in (True, None, "passes"), (content, body, seen)
                assert ("c=IN IP4 10.200.2.1" in seen) == (processed != "passes"), (content, seen)
                assert (ISUP in body) == (ISUP in seen), seen
                g.b.reply(486, seen, tag=f"t{n}")
                g.a.wait("SIP/2.0 486", f"CSeq: {n} INVITE")
            else:
                assert processed in (False, None), (content, body, seen)
            g.a.request("ACK", TO, f"m{n}", to_tag=f"t{n}", cseq=n)
        wait_for("the calls' end", lambda: g.calls() == [])
        theirs = part("application/sdp", g.b.sdp())
        for content, body, processed in ((kind("mixed"), multipart(isup, theirs), True), (kind("related"), multipart(theirs), None),
                                         (kind("mixed"), multipart(theirs, theirs), False)):
            n += 1
            g.b.kind = content
            g.b.reply(200, offered(g, n, "application/sdp", mine), body, f"t{n}")
            also = f"CSeq: {n} INVITE"
            answer = wait_for("an answer", lambda also=also: [m for m in g.a.listen() if re.match(r"SIP/2.0 [245]", m) and also in m])[0]
            assert not raw(g.a), g.a.heard
            assert answer.startswith("SIP/2.0 200") == ("c=IN IP4 10.200.1.1" in answer), answer
            assert processed is None or answer.startswith("SIP/2.0 200") == processed, answer
            if answer.startswith("SIP/2.0 200"):
                end(g, n + 100, f"t{n}", answer)
            else:
                g.a.request("ACK", TO, f"m{n}", to_tag=f"t{n}", cseq=n)
            wait_for("the call's end", lambda: g.calls() == [])
        # A delayed offer: the caller's body has no SDP. Its answer is a part of the ACK's body.
        n, g.b.kind = n + 1, "application/sdp"
        g.b.reply(200, offered(g, n, kind("mixed"), multipart(isup)), g.b.sdp(), f"t{n}")
        offer = g.a.wait("SIP/2.0 200", f"CSeq: {n} INVITE")
        assert "c=IN IP4 10.200.1.1" in offer and not raw(g.a), offer
        routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", offer)))
        g.a.request("ACK", TO, f"ack{n}", f"t{n}", multipart(isup, sdp), n, routes)
        ack = g.b.wait("ACK", f"CSeq: {n} ACK")
        assert "m=audio" in ack and ISUP in ack and "10.200.1.2" not in ack.partition("\r\n\r\n")[2] and "inline:WVNf" not in ack, ack


@cases(*EXAMPLES)
def test_a_200_that_is_repeated_when_the_transaction_is_gone(net, example):
    """The callee's ACK was lost. Its 200 reaches the caller again, without SDP."""
    with gateway(net, example, WT_TIMER) as g:
        g.invite("one")
        invite = g.b.wait("INVITE")
        g.b.reply(200, invite, g.b.sdp())
        first = g.a.wait("SIP/2.0 200")
        for cseq in (1, 2):
            wait_for("tm's end of the transaction", lambda: re.search(r"current: 0", g.kam.rpc("tm.stats")))
            g.a.heard.clear()
            g.b.reply(200, invite, g.b.sdp())
            again = g.a.wait("SIP/2.0 200", f"CSeq: {cseq} INVITE")
            assert not raw(g.a) and no_body(again), again
            if cseq == 2:
                break
            routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", first)))
            g.a.request("ACK", TO, "ack", "u5060", cseq=1, routes=routes)
            g.a.request("INVITE", TO, "two", "u5060", g.a.sdp(suite=S80), 2, routes)
            invite = g.b.wait("INVITE", "CSeq: 2 INVITE")
            g.b.reply(200, invite, g.b.sdp())
            g.a.wait("SIP/2.0 200", "CSeq: 2 INVITE")


@cases(*EXAMPLES)
def test_a_stray_200_is_no_answer(net, example):
    """A stranger knows Call-ID and From tag of a ringing call, and invents the rest of a 200. He
    gets no SDP, and the callee's answer is accepted."""
    with gateway(net, example) as g:
        g.invite("one")
        invite = g.b.wait("INVITE")
        ours, _ = re.findall(r"Via: [^\r]*", invite)
        stranger = Agent(net, "callee", "10.200.2.2", 7777)
        forged = re.sub("branch=[^;\r]*", "branch=z9hG4bKforged.0", ours) + "\r\nVia: SIP/2.0/UDP 10.200.2.2:7777;branch=z9hG4bKx"
        stranger.reply(200, re.sub(r"Via: [^\r]*\r\nVia: [^\r]*", forged, invite), stranger.sdp(), "stranger")
        assert no_body(stranger.wait("SIP/2.0 200")), stranger.heard
        assert "stranger" not in g.daemon.client.call("query", call_id="one")["tags"]
        g.b.reply(200, invite, g.b.sdp())
        assert "c=IN IP4 10.200.1.1" in g.a.wait("SIP/2.0 200", "tag=u5060"), g.a.heard


@cases(*EXAMPLES)
def test_every_reply_with_an_answer_is_processed(net, example):
    """Replies with rare codes, or without Content-Length, are treated alike. So are such offers.
    The stock module refuses bodies without Content-Length."""
    with gateway(net, example) as g:
        stock = example == "kamailio-demo.cfg"
        g.a.length = stock
        g.invite("one")
        invite = g.b.wait("INVITE")
        assert "c=IN IP4 10.200.2.1" in invite and "inline:WVNf" not in invite, invite
        for code, length in ((183, True), (199, True), (170, True), (101, True), (182, False), (299, False)):
            g.b.length = length or stock
            g.b.reply(code, invite, g.b.sdp())
            answer = g.a.wait(f"SIP/2.0 {code}")
            assert "c=IN IP4 10.200.1.1" in answer and not raw(g.a), answer


@cases(*EXAMPLES)
def test_sdp_that_nobody_processes_passes_in_no_reply(net, example):
    """Replies to PRACK and OPTIONS, and a refusal. Control: a body without SDP passes."""
    with gateway(net, example) as g:
        g.invite("one")
        invite = g.b.wait("INVITE")
        g.b.reply(183, invite, g.b.sdp())
        first = g.a.wait("SIP/2.0 183")
        routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", first)))
        g.a.request("PRACK", TO, "prack", "u5060", cseq=2, routes=routes)
        g.a.request("OPTIONS", TO, "options", cseq=3)
        g.b.wait("PRACK")
        g.b.wait("OPTIONS")
        for code, to in ((200, "PRACK"), (200, "OPTIONS"), (488, "INVITE")):
            g.b.reply(code, [m for m in g.b.heard if m.startswith(to)][0], g.b.sdp())
            reply = g.a.wait(f"SIP/2.0 {code}", f" {to}\r")
            assert no_body(reply) and "Content-Type" not in reply and not raw(g.a), reply
        g.a.request("OPTIONS", TO, "more", cseq=4)
        g.a.heard.clear()
        g.b.kind = "text/plain"
        g.b.reply(404, g.b.wait("OPTIONS", "CSeq: 4 "), "nobody here")
        assert g.a.wait("SIP/2.0 404").endswith("nobody here")


@cases(*EXAMPLES)
def test_a_refused_answer_in_an_ack_reaches_no_callee(net, example):
    """A delayed offer. Control: the same caller's next ACK has a permitted answer."""
    with gateway(net, example) as g:
        g.a.request("INVITE", TO, "one")
        g.b.reply(200, g.b.wait("INVITE"), g.b.sdp())
        routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", g.a.wait("SIP/2.0 200"))))
        g.a.request("ACK", TO, "ack", "u5060", g.a.sdp(DENIED, S80), routes=routes)
        wait_for("the refusal", lambda: "in ACK refused" in g.kam.text())
        g.a.request("ACK", TO, "again", "u5060", g.a.sdp(suite=S80), routes=routes)
        g.b.wait("ACK")
        assert not [m for m in g.b.listen() if DENIED in m or "inline:WVNf" in m], g.b.heard


@cases(*EXAMPLES)
def test_a_malformed_reply_reaches_nobody(net, example):
    """After a header without a colon Kamailio finds no body, but a terminal may. Control: the same
    reply without that header."""
    with gateway(net, example) as g:
        g.invite("one")
        invite = g.b.wait("INVITE")
        for code in (183, 200):
            g.b.reply(code, invite, g.b.sdp(), "u5060\r\nno colon here")
        wait_for("both in the log", lambda: g.kam.text().count("malformed reply dropped") == 2)
        g.b.reply(200, invite, g.b.sdp())
        assert "c=IN IP4 10.200.1.1" in g.a.wait("SIP/2.0 200")
        assert not raw(g.a) and not [m for m in g.a.heard if "no colon" in m], g.a.heard


@cases(*EXAMPLES)
def test_a_refusal_tells_a_stranger_nothing(net, example):
    """Offer and answer with a denied address. The log has the reason; the reply and the callee's
    BYE do not."""
    with gateway(net, example) as g:
        g.a.request("INVITE", TO, "one", body=g.a.sdp(DENIED, S80))
        refusal = g.a.wait("SIP/2.0 4" if example != "kamailio-demo.cfg" else "SIP/2.0 503")
        g.a.request("ACK", TO, "one", to_tag="x")
        g.invite("two", cseq=2)
        g.b.reply(200, g.b.wait("INVITE"), g.b.sdp(DENIED))
        refusals = [refusal, g.a.wait("SIP/2.0 488", "CSeq: 2 INVITE")]
        if example != "kamailio-demo.cfg":
            refusals.append(g.b.wait("BYE"))
        for text in refusals:
            assert DENIED not in text and "media" not in text.lower().replace("media gateway unavailable", ""), text
            assert "Not Acceptable Here" in text or "Media gateway unavailable" in text, text
        assert DENIED in g.kam.text()


PASSWORD = """if (!auth_check(XC_DOMAIN, "subscriber", "1")) {"""
# How a phone without a password reaches the other side, and what it is offered.
REST = {"kamailio-edge.cfg": (("phones", "carrier"), [], {"XC_UDP_MEDIA": quoted("RTP/SAVP")}),
        "kamailio-webrtc.cfg": (("web", "sip"), [("listen=udp:XC_PBX_SIDE:5060", f"listen=udp:XC_PBX_SIDE:5060\nlisten=udp:{EDGE}:5060")],
                                {"XC_SIP_MEDIA": quoted("RTP/SAVP replace-origin ICE=remove")})}


class Rest(Gateway):
    """One of the complete proxies between the same terminals. Only its passwords are taken out."""

    def __init__(self, net, folder, example, how, *options):
        needs()
        sides, swap, defines = REST[example]
        if how == "stock":
            defines = defines | {"XC_STOCK": 1}
        _, cert, key = certificates(folder)
        self.example = example
        self.daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", f"--media-deny={DENIED}", *options,
                                     addresses=tuple(f"{side}/10.200.{n}.1" for n, side in enumerate(sides, 1))).wait_ready()
        self.kam = sipp.Kamailio(net, folder, example=example, swap=[(PASSWORD, "if (0) {"), ("\t\tconsume_credentials();\n", ""), *swap], XC_CERTIFICATE=quoted(cert),
                                 XC_KEY=quoted(key), XC_DB=quoted("sqlite:///" + database(folder)), **defines)
        self.a, self.b = Agent(net, "caller", "10.200.1.2"), Agent(net, "callee", "10.200.2.2")


@cases(*((example, how) for example in REST for how in ("ours", "stock")))
def test_the_complete_proxies_obey_the_same_rules(net, example, how):
    """What the tests above find of the other examples, in one call and one that is refused: names, multipart bodies, refused answers in replies
    and in an ACK, a malformed reply, a stray 200, SDP that nobody processes."""
    with tempfile.TemporaryDirectory(prefix="xcipher-rest-") as folder:
        cdr = os.path.join(folder, "calls")
        g = Rest(net, folder, example, how, f"--cdr-file={cdr}")

        def relayed(message):
            assert re.search(r"c=IN IP4 10\.200\.[12]\.1\r", message) and "RTP/SAVP" in message and not raw(g.a) and "inline:WVNf" not in message, message
            return message
        g.a.user = "eve|to=x"
        sdp, isup = part("application/sdp", g.a.sdp(suite=S80)), part("application/isup", ISUP)
        invite = relayed(offered(g, 1, kind("mixed"), multipart(isup, sdp)))
        assert ISUP in invite, invite
        assert re.match("SIP/2.0 [45]", offered(g, 2, kind("mixed"), multipart(sdp, sdp)))
        g.b.reply(183, invite, g.b.sdp(DENIED, S80))
        early = g.a.wait("SIP/2.0 183")
        assert no_body(early) and "Content-Type" not in early, early
        g.b.reply(180, invite, g.b.sdp(suite=S80), "u5060\r\nno colon here")
        wait_for("it in the log", lambda: "malformed reply dropped" in g.kam.text())
        g.b.reply(182, invite, g.b.sdp(suite=S80))
        early = relayed(g.a.wait("SIP/2.0 182"))
        routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", early)))
        g.a.request("PRACK", TO, "prack", "u5060", cseq=3, routes=routes)
        g.b.reply(200, g.b.wait("PRACK"), g.b.sdp(suite=S80))
        assert no_body(g.a.wait("SIP/2.0 200", "CSeq: 3 PRACK"))
        ours, _ = re.findall(r"Via: [^\r]*", invite)
        stranger = Agent(net, "callee", "10.200.2.2", 7777)
        forged = re.sub("branch=[^;\r]*", "branch=z9hG4bKforged.0", ours) + "\r\nVia: SIP/2.0/UDP 10.200.2.2:7777;branch=z9hG4bKx"
        stranger.reply(200, re.sub(r"Via: [^\r]*\r\nVia: [^\r]*", forged, invite), stranger.sdp(suite=S80), "stranger")
        assert no_body(stranger.wait("SIP/2.0 200")), stranger.heard
        g.b.reply(200, invite, g.b.sdp(suite=S80))
        end(g, 4, "u5060", relayed(g.a.wait("SIP/2.0 200", "CSeq: 1 INVITE")))
        found = wait_for("its record", lambda: [r for r in ended(cdr) if r["metadata"]])[0]
        assert found["metadata"] == "from:eve_to_x|to:callee", found
        # A delayed offer, and an answer that is refused
        g.a.kind = "application/sdp"
        g.a.request("INVITE", TO, "late", cseq=5)
        g.b.reply(200, g.b.wait("INVITE", "CSeq: 5 INVITE"), g.b.sdp(suite=S80), "t5")
        offer = relayed(g.a.wait("SIP/2.0 200", "CSeq: 5 INVITE"))
        routes = "".join(f"Route: {r}\r\n" for r in reversed(re.findall(r"Record-Route: ([^\r]*)", offer)))
        g.a.request("ACK", TO, "ack", "t5", g.a.sdp(DENIED, S80), 5, routes)
        wait_for("the refusal", lambda: "in ACK refused" in g.kam.text())
        g.a.request("ACK", TO, "again", "t5", g.a.sdp(suite=S80), 5, routes)
        relayed(g.b.wait("ACK", "CSeq: 5 ACK"))
        assert not [m for m in g.b.listen() if DENIED in m or "inline:WVNf" in m], g.b.heard
        g.stop()


def test_a_node_that_hangs_keeps_no_call(net):
    """The node is stopped, and the other one takes the call. When it continues, it finds the offer
    in its socket, and then the module's delete."""
    ports = {22222: ("30000", "30999"), 22223: ("31000", "31999")}
    nodes = {}
    for port, (low, high) in ports.items():
        nodes[port] = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", f"--listen-ng=127.0.0.1:{port}", f"--port-min={low}", f"--port-max={high}", addresses=BOTH)
        nodes[port].ng_port = port
        nodes[port].wait_ready()

    def has(port):
        return nodes[port].client.call("list")["calls"] != []

    with tempfile.TemporaryDirectory(prefix="xcipher-hang-") as folder:
        kam = sipp.Kamailio(net, folder, XC_NODES=quoted(" ".join(f"udp:127.0.0.1:{p}" for p in ports)), XC_TIMEOUT=3000, XC_PING_INTERVAL=0)
        a, b = Agent(net, "caller", "10.200.1.2"), Agent(net, "callee", "10.200.2.2")
        a.request("INVITE", TO, "one", body=a.sdp(suite=S80))
        b.wait("INVITE")
        first = [p for p in ports if has(p)]
        assert len(first) == 1
        b.reply(486, b.heard[0])
        a.wait("SIP/2.0 486")
        a.request("ACK", TO, "one", to_tag="u5060")
        wait_for("the end of the first", lambda: not has(first[0]))
        other = sum(ports) - first[0]
        os.kill(nodes[first[0]].pid(), signal.SIGSTOP)
        try:
            a.request("INVITE", TO, "two", body=a.sdp(suite=S80), cseq=2)
            b.wait("INVITE", "CSeq: 2 INVITE")
        finally:
            os.kill(nodes[first[0]].pid(), signal.SIGCONT)
        wait_for("its delete", lambda: nodes[first[0]].text().count("delete: ok") == 2)
        assert nodes[first[0]].text().count("offer: ok") == 2 and not has(first[0]) and has(other)
        # A request in this call still goes to the other node.
        b.reply(200, [m for m in b.heard if "CSeq: 2 INVITE" in m][0], b.sdp())
        assert "c=IN IP4 10.200.1.1" in a.wait("SIP/2.0 200", "CSeq: 2 INVITE")
        assert kam.stop() == 0, kam.text()
    for daemon in nodes.values():
        assert daemon.stop() == 0, daemon.text()


def test_the_edge_refuses_plain_media_by_tls_in_multipart(net):
    """An emergency call needs no password. Controls: the same SDP as the whole body, a body without
    SDP, and SRTP."""
    plain = ("v=0\r\no=- 1 1 IN IP4 10.200.1.2\r\ns=-\r\nc=IN IP4 10.200.1.2\r\nt=0 0\r\nm=audio 9000 RTP/AVP 0\r\n")
    crypto = f"a=crypto:1 {S80} inline:{sipp.CRYPTO[S80]}\r\n"
    with edge(net):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        raw_socket = ng.socket_in(net.terminal["alice"], kind=socket.SOCK_STREAM)
        raw_socket.settimeout(30)
        raw_socket.connect((EDGE, 5061))
        with tls.wrap_socket(raw_socket) as s, s.makefile("rb") as lines:
            for n, (content, body, refused) in enumerate((
                    ("application/sdp", plain, True), (kind("mixed"), multipart(part("application/sdp", plain)), True),
                    (kind("mixed"), multipart(part("application/pidf+xml", "<a/>")), False),
                    (kind("mixed"), multipart(part("application/sdp", plain.replace("AVP", "SAVP") + crypto)), False))):
                s.sendall((f"INVITE sip:112@{DOMAIN} SIP/2.0\r\nVia: SIP/2.0/TLS 10.200.1.2:5061;branch=z9hG4bKt{n}\r\nFrom: <sip:alice@{DOMAIN}>;tag=t{n}\r\n"
                           f"To: <sip:112@{DOMAIN}>\r\nCall-ID: tls{n}\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\nContact: <sip:alice@10.200.1.2;transport=tls>\r\n"
                           f"Content-Type: {content}\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
                status, also = "", ""
                while not (status.startswith("SIP/2.0") and f"Call-ID: tls{n}\r\n" in also):
                    status, also = lines.readline().decode(), ""
                    while not also.endswith("\r\n\r\n"):
                        also += lines.readline().decode()
                assert status.startswith("SIP/2.0 488 Secure media only" if refused else "SIP/2.0 100"), (content, body, status)


test_the_edge_refuses_plain_media_by_tls_in_multipart.terminals = TERMINALS
