# SPDX-License-Identifier: GPL-2.0-or-later
"""Test calls (urn:service:test.sos, RFC 6881 15): an xcipherd of the PSAP answers them and sends media back to their sender. They take the way of
emergency calls, with TLS on every hop and DTLS-SRTP in the network, reach no call taker, and end by themselves."""
import array
import math
import re

import dtls
from baresip import wait_for
from test_ng911 import TERMINALS, network, prepare

PREPARE = prepare

SERVICE = "urn:service:test.sos"
AES_256 = "DTLS handshake completed: AEAD_AES_256_GCM"


class Looped(dtls.Plain):
    """Asks for media loopback (RFC 6849)."""
    types = "rtp-pkt-loopback rtp-media-loopback"

    def attributes(self):
        return f"a=loopback:{self.types}\r\na=loopback-source\r\n"


class Wrapped(Looped):
    """Only with a kind of loopback that the relay does not do."""
    types = "rtp-pkt-loopback"


def tone(n):
    """20 ms of 400 Hz, as linear octets that are like no other packet's."""
    return array.array("b", [int(100 * math.sin(2 * math.pi * 400 * (160 * n + i) / 8000 + n)) for i in range(160)]).tobytes()


def hears_itself(terminal):
    """A second of a tone: each packet comes back once, in order, unchanged, under another SSRC."""
    def ready():
        terminal.say(b"ready?")
        return terminal.heard
    wait_for("the echo", ready)
    before = len(terminal.heard)
    sent = [tone(n) for n in range(50)]
    for payload in sent:
        terminal.say(payload)
    wait_for("the tone", lambda: [p for p in terminal.heard[before:] if p != b"ready?"] == sent)


def calls(n):
    return n.border.client.call("list")["calls"] + n.tests.client.call("list")["calls"]


def dial(n, terminal=dtls.Plain, more=()):
    import ng911
    n.caller.terminal = terminal
    dialog = n.caller.call(*ng911.HERE, SERVICE, more=more)
    code = dialog.answered()
    assert code == 200, dialog.reply.first
    return dialog


def test_a_caller_hears_itself(net):
    """And an answer with several parts names the PSAP."""
    with network(net, tests=True, esrp={"XC_TEST_SECONDS": 600}) as n:
        media_come_back(n)
        the_answer_names_psap_service_and_place(n)


def media_come_back(n):
    dialog = dial(n, Looped)
    hears_itself(dialog.media)
    sdp = dialog.reply.sdp()
    assert "a=loopback:rtp-media-loopback\r\na=loopback-mirror\r\n" in sdp and "loopback-source" not in sdp and "pkt-loopback" not in sdp, sdp
    assert re.search(r"^m=audio \d+ RTP/AVP 0\r$", sdp, re.M) and "a=sendrecv" in sdp, sdp
    assert len(calls(n)) == 2 and not [t for t in n.takers if t.invites]
    # DTLS-SRTP with AES-256 between the border and the PSAP
    assert AES_256 in n.border.text() and AES_256 in n.tests.text()
    dialog.end()
    wait_for("both xcipherd forget the call", lambda: not calls(n))

    # Without a loopback that the relay does, the SDP names none, and media come back nevertheless.
    for terminal in (Wrapped, dtls.Plain):
        dialog = dial(n, terminal)
        assert "loopback" not in dialog.reply.sdp(), dialog.reply.sdp()
        hears_itself(dialog.media)
        dialog.end()


def the_answer_names_psap_service_and_place(n):
    import ng911
    dialog = dial(n, more=[("Accept", "application/sdp, text/plain, multipart/mixed")])
    assert dialog.reply.get("Content-Type").startswith("multipart/mixed"), dialog.reply.headers
    text = dialog.reply.body.partition("text/plain")[2]
    assert f"PSAP: {n.lost.psap_at(*ng911.HERE)}\r\nService: {SERVICE}\r\nLocation: " in text, text
    assert dialog.pidf.replace("\n", "\r\n").strip() in text, text
    hears_itself(dialog.media)
    dialog.end()
    for p in n.proxies():
        assert str(ng911.HERE[0]) not in p.text(), f"the {p.name} logs locations"


def test_it_ends_by_itself(net):
    """The ESRP sends BYE to both sides. The border and the PSAP forget the call."""
    with network(net, tests=True, esrp={"XC_TEST_SECONDS": 2}) as n:
        dialog = dial(n, Looped)
        assert dialog.ended_by_network().get("Call-ID") == dialog.id
        wait_for("both xcipherd forget the call", lambda: not calls(n))


def test_too_many_tests_are_refused(net):
    """With 486, while emergency calls pass. (Without an xcipherd or device the PSAP answers 404: test_ng911_conformance.)"""
    with network(net, tests=True, psap={"XC_TEST_RATE": 1}, esrp={"XC_TEST_SECONDS": 600}) as n:
        import ng911
        ng911.PACKETS = 5
        n.psap.rpc("htable.sets", "takers", "*", n.takers[0].uri())
        codes = []

        def refused():
            dialog = n.caller.call(*ng911.HERE, SERVICE)
            codes.append(dialog.answered())
            if codes[-1] == 200:
                dialog.end()
            else:
                dialog.close()
            return codes[-1] == 486
        wait_for("a refusal", refused)
        assert set(codes) <= {200, 486}, codes
        dialog, _ = ng911.connected(n, ng911.Story(False), ng911.HERE, n.takers[0])
        ng911.hang_up(n, ng911.Story(False), dialog, n.takers[0])
        assert len(n.takers[0].invites) == 1
        n.tests.stop()
        # A call within a second of the last one is still one too many.
        assert wait_for("a failure", lambda: (code := code_of(n)) != 486 and code) >= 500


def code_of(n):
    import ng911
    dialog = n.caller.call(*ng911.HERE, SERVICE)
    code = dialog.answered()
    dialog.close()
    return code


for test in (test_a_caller_hears_itself, test_it_ends_by_itself, test_too_many_tests_are_refused):
    test.terminals = TERMINALS
