# SPDX-License-Identifier: GPL-2.0-or-later
"""Media that are not RTP: datagrams pass unchanged through our ports (T.38 over UDPTL, BFCP, DTLS).
TCP m-lines stay as the terminals wrote them, in offer and answer."""
import time

import calls
import redisrig
from baresip import wait_for
from run import Skip, cases
from not_rtp import DATA, FAX, FLOOR, Terminal, bfcp, connection, dtls, exchange, m_line, pair, udptl
from test_bleed import Translated, received
from test_ng import finish, leaves, start, talk, wants

THREE = ("caller", "callee", "thief")


@cases(("udp", "serial"), ("udp", "opencl"), ("nfqueue", "serial"), ("xdp", "opencl"))
def test_fax_passes_byte_by_byte(net, steering, engine):
    daemon = start(net, f"--steering={steering}", engine=engine)
    a, b = pair(net)
    to_b, to_a = exchange(daemon.client, a, b, a.m(*FAX), b.m(*FAX))
    for sdp, theirs in ((to_b, a), (to_a, b)):
        kind, port, rest = m_line(sdp)
        assert (kind, rest) == ("image", "udptl t38") and port not in (0, theirs.port), sdp
        assert theirs.address not in sdp.split("\r\n", 2)[2] and "a=T38FaxVersion:0" in sdp and "rtcp" not in sdp, sdp
    # Every first byte, including those of RTP, RTCP, STUN and DTLS, and datagrams shorter than an
    # RTP header.
    for seq in (*range(3), *range(0, 65536, 256)):
        for x, y in ((a, b), (b, a)):
            x.raw(udptl(seq))
            y.gets(udptl(seq))
    a.raw(udptl(1, b"x" * 120) * 10)
    b.gets(udptl(1, b"x" * 120) * 10)
    query = calls.ok(daemon.client.call("query", call_id="c"))
    media = query["tags"]["a"]["medias"][0]
    assert (media["type"], media["protocol"]) == ("image", "udptl"), media
    assert media["streams"][0]["stats"]["packets"] >= 256 and query["totals"]["RTP"]["errors"] == 0, query
    s = daemon.statistics()
    assert s["drops"]["malformed"] == 0 and s["drops"]["not-media"] == 0, s["drops"]
    assert steering == "udp" or s["by fallback socket"] == 0, s
    calls.ok(daemon.client.call("delete", call_id="c", from_tag="a"))
    finish(daemon)


@cases(("udp", None), ("udp", "80"), ("nfqueue", None))
def test_a_call_becomes_a_fax_and_a_call_again(net, steering, suite):
    """On the same m-line, in both directions. SRTP returns with its keys and its index."""
    daemon = start(net, f"--steering={steering}")
    a = Terminal(net, "caller", "10.200.1.2")
    b = Terminal(net, "callee", "10.200.2.2", suite)
    talk(daemon.client, a, b, "c")
    told = (a.to, b.to)
    for again in range(2):
        exchange(daemon.client, a, b, a.m(*FAX), b.m(*FAX), again=True, **wants(b))
        assert (a.to, b.to) == told, "other ports"
        for seq in range(20):
            for x, y in ((a, b), (b, a)):
                x.raw(udptl(seq))
                y.gets(udptl(seq))
        more = {"to_tag": "b"}
        # Without a profile in the flags, the one from before the fax applies.
        b.told(calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.sdp(), **more))["sdp"])
        a.told(calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
        assert leaves(a, b) and leaves(b, a), again
    finish(daemon)


@cases(("BFCP",), ("DTLS",), ("TLS/UDPTL",), ("udp",))
def test_other_datagrams_pass(net, what):
    """The first side sends to an address that has sent nothing, so only datagrams of the m-line's
    protocol pass."""
    lines = {"BFCP": FLOOR, "DTLS": DATA, "TLS/UDPTL": ("image {} UDP/TLS/UDPTL t38", *DATA[1:3]), "udp": ("application {} udp wb",)}[what]
    first = {"BFCP": bfcp(1), "DTLS": dtls(0), "TLS/UDPTL": dtls(0), "udp": None}[what]
    daemon = start(net)
    a, b = pair(net)
    to_b, _ = exchange(daemon.client, a, b, a.m(*lines), b.m(*lines))
    for attribute in lines[1:]:
        assert f"a={attribute}" in to_b, to_b
    a.raw(b"INVITE sip:root@10.200.2.2 SIP/2.0\r\n\r\n")  # a service that is no terminal gets nothing else
    b.nothing()
    if first:
        a.raw(first)
        b.gets(first)
        # The reply of a service that is no terminal opens no flow.
        b.raw(b"REPLY anything")
        a.gets(b"REPLY anything")
        a.raw(b"INVITE sip:root@10.200.2.2 SIP/2.0\r\n\r\n")
        b.nothing()
        b.raw(first)
        a.gets(first)
    b.raw(b"\x05anything")
    a.gets(b"\x05anything")
    a.raw(b"\xffanything")
    b.gets(b"\xffanything")
    assert daemon.statistics()["drops"]["unanswered"] >= 1
    finish(daemon)


def test_session_level_dtls_attributes_reach_it(net):
    daemon = start(net)
    a, b = pair(net)
    body = a.m(DATA[0], "sctp-port:5000").replace("t=0 0\r\n", "t=0 0\r\na=fingerprint:sha-256 AA:BB\r\na=setup:actpass\r\n")
    sdp = calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=body))["sdp"]
    assert "a=fingerprint:sha-256 AA:BB" in sdp and "a=setup:actpass" in sdp and "candidate" not in sdp, sdp
    finish(daemon)


def audio(phone):
    return f"m=audio {phone.port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"


MSRP = ("m=message {port} TCP/MSRP *\r\n{c}a=path:msrp://{ip}:{port}/x;tcp\r\na=accept-types:text/plain\r\na=setup:active\r\na=connection:new\r\n")


@cases(("TCP/MSRP",), ("TCP/TLS/MSRP",), ("TCP/BFCP",), ("TCP",))
def test_tcp_passes_in_both_directions(net, proto):
    daemon = start(net)
    a, b = pair(net)

    def body(p):
        head = p.m("audio {} RTP/AVP 0").split("m=")[0]
        return head + audio(p) + MSRP.format(port=p.port + 7, ip=p.address, c="").replace("TCP/MSRP", proto)

    sdps = exchange(daemon.client, a, b, body(a), body(b))
    for sdp, p in zip(sdps, (a, b)):
        want = MSRP.format(port=p.port + 7, ip=p.address, c=f"c=IN IP4 {p.address}\r\n").replace("TCP/MSRP", proto)
        assert want in sdp, sdp
        assert m_line(sdp)[1] not in (0, p.port), sdp
    assert len(calls.ok(daemon.client.call("query", call_id="c"))["tags"]["a"]["medias"]) == 1
    finish(daemon)


@cases(("DCCP/RTP/AVP",), ("RTP/XYZ",), ("SCTP",), ("PSTN",))
def test_what_cannot_be_relayed_is_refused_to_both(net, proto):
    daemon = start(net)
    a, b = pair(net)
    line = f"application {{}} {proto} 5"
    reply = calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.m(line)))
    assert m_line(reply["sdp"]) == ("application", 0, f"{proto} 5"), reply["sdp"]
    assert proto in reply["warning"], reply
    sdp = calls.ok(daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.m(line, port=0)))["sdp"]
    assert m_line(sdp) == ("application", 0, f"{proto} 5"), sdp
    finish(daemon)


def test_an_answer_of_another_kind_is_refused(net):
    """The answerer believes its own answer, so no SDP for the offerer would be true."""
    daemon = start(net)
    a, b = pair(net)
    calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.m(*FAX)))
    reply = daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=b.m("audio {} RTP/AVP 0"))
    assert reply["result"] == "error" and "udptl" in reply["error-reason"], reply
    daemon.stop()


@cases(("udp",), ("nfqueue",))
def test_strangers_get_nothing_of_a_fax(net, steering):
    daemon = start(net, f"--steering={steering}", addresses=("10.200.1.1", "10.200.2.1", "10.200.3.1"))
    a, b = pair(net)
    thief = Terminal(net, "thief", "10.200.3.2")
    exchange(daemon.client, a, b, a.m(*FAX), b.m(*FAX))
    for seq in range(3):
        a.raw(udptl(seq))
        b.gets(udptl(seq))
        b.raw(udptl(seq))
        a.gets(udptl(seq))
    thief.to = a.to
    before = received(daemon)
    for seq in range(10):
        thief.raw(udptl(seq))
    wait_for("the stranger's packets", lambda: received(daemon) >= before + 10)
    a.raw(udptl(9))
    b.gets(udptl(9))
    b.raw(udptl(9))
    a.gets(udptl(9))
    thief.nothing(0.1)
    assert daemon.statistics()["drops"]["wrong-source"] == 10
    finish(daemon)


test_strangers_get_nothing_of_a_fax.terminals = THREE


def test_a_fax_behind_address_translation_is_followed(net):
    daemon = start(net)
    behind = Translated(net)
    b = Terminal(net, "callee", "10.200.2.2")
    offer = behind.sdp().split("m=")[0] + "".join(("m=", FAX[0].format(behind.named.port), "\r\n"))
    exchange(daemon.client, behind, b, offer, b.m(*FAX))
    for seq in range(5):
        behind.sock.sendto(udptl(seq), behind.to)
    b.gets(udptl(2))  # on probation until then
    b.gets(udptl(3))
    b.gets(udptl(4))
    b.raw(udptl(0))
    assert behind.sock.recv(100) == udptl(0)
    finish(daemon)


def test_a_destination_that_never_sends_gets_little(net):
    """No reflector: such a service gets only UDPTL, and little of it."""
    daemon = start(net)
    a, b = pair(net)
    exchange(daemon.client, a, b, a.m(*FAX), b.m(*FAX))
    for seq in range(500):
        a.raw(udptl(seq % 256))
        b.gets(udptl(seq % 256))
    for seq in range(100):
        a.raw(udptl(seq))
    wait_for("drops", lambda: daemon.statistics()["drops"]["unanswered"] == 100)
    b.nothing(0.1)
    b.raw(udptl(0))
    a.gets(udptl(0))
    a.raw(udptl(700))
    b.gets(udptl(700))
    finish(daemon)


def test_fax_offers_are_checked_like_others(net):
    """Loops, the host's own addresses, and limits."""
    daemon = start(net, "--max-medias=2")
    a, b = pair(net)
    to_b = calls.ok(daemon.client.call("offer", call_id="c", from_tag="a", sdp=a.m(*FAX)))["sdp"]
    for address, port in (("127.0.0.1", 4000), ("10.200.1.1", 22222), (connection(to_b), m_line(to_b)[1])):
        body = b.m(*FAX, port=port).replace(f"c=IN IP4 {b.address}", f"c=IN IP4 {address}")
        reply = daemon.client.call("answer", call_id="c", from_tag="a", to_tag="b", sdp=body)
        assert "not allowed" in reply.get("error-reason", ""), reply
    many = a.m(*FAX) + a.m(*FAX).split("t=0 0\r\n")[1] * 2
    sdp = calls.ok(daemon.client.call("offer", call_id="d", from_tag="a", sdp=many))["sdp"]
    assert [m_line(sdp, i)[1] > 0 for i in range(3)] == [True, True, False], sdp
    daemon.stop()


def test_a_fax_keeps_its_call_alive(net):
    daemon = start(net, "--timeout=6")  # a busy machine may pause the test for seconds
    a, b = pair(net)
    exchange(daemon.client, a, b, a.m(*FAX), b.m(*FAX))
    for seq in range(40):
        a.raw(udptl(seq))
        b.gets(udptl(seq))
        time.sleep(0.2)
    assert daemon.client.call("query", call_id="c")["result"] == "ok"
    wait_for("the end of a silent call", lambda: daemon.client.call("query", call_id="c")["result"] == "error")
    finish(daemon)


def test_a_fax_survives_a_restart(net):
    if not redisrig.have():
        raise Skip("no redis-server")
    redis = redisrig.Redis(net)
    daemon = start(net, *redis.daemon_options())
    a, b = pair(net)
    exchange(daemon.client, a, b, a.m(*FAX), b.m(*FAX))
    for x, y in ((a, b), (b, a)):
        x.raw(udptl(0))
        y.gets(udptl(0))
    assert daemon.stop() == 0
    daemon = start(net, *redis.daemon_options())
    try:
        wait_for("the call", lambda: daemon.client.call("query", call_id="c")["result"] == "ok")
    except AssertionError as e:
        raise AssertionError(daemon.text()) from e
    for seq in range(1000, 60000, 5000):
        for x, y in ((a, b), (b, a)):
            x.raw(udptl(seq))
            y.gets(udptl(seq))
    calls.ok(daemon.client.call("delete", call_id="c", from_tag="a"))
    finish(daemon)
    redis.stop()
