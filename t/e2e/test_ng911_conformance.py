# SPDX-License-Identifier: GPL-2.0-or-later
"""Further cases of the public conformance suite of NENA-STA-010.3 that concern the border function: TD_BCF_001 (identifiers and priority of INVITE and
MESSAGE, also with a To that names something else) and TD_BCF_003 (TLS inside the network, with AES-256 or better)."""
import os
import re
import ssl

import dtls
from baresip import wait_for
from test_ng911 import TERMINALS, network, prepare, refused

PREPARE = prepare

TARGETS = (("urn:service:sos", "<urn:service:sos>"), ("sip:911@10.201.0.1", "<sip:911@10.201.0.1>"), ("urn:service:sos.fire", "<tel:911>"), ("sip:112@10.201.0.1", "sip:somebody@example.org"))
IDENTIFIER = r"<urn:emergency:uid:%s:[0-9A-Za-z]{10,32}:esinet\.example>;purpose=emergency-%s"


def final(stream, number):
    """Status of the final reply."""
    while True:
        m = stream.receive()
        if m.status() >= 200 and m.get("CSeq").startswith(f"{number} "):
            return m.status()


def send(n, stream, number, method, target, to, media):
    import esinet
    port = stream.socket.getsockname()[1]
    kind, body = ("application/sdp", media.sdp()) if method == "INVITE" else ("text/plain", "fire")
    stream.send(f"{method} {target} SIP/2.0", [("Via", f"SIP/2.0/TLS {esinet.HOST['caller']}:{port};rport;branch=z9hG4bK{number}"), ("From", f"<sip:caller@vsp.example>;tag={number}"), ("To", to),
                                               ("Call-ID", os.urandom(8).hex()), ("CSeq", f"{number} {method}"), ("Max-Forwards", "70"),
                                               ("Contact", f"<sip:caller@{esinet.HOST['caller']}:{port};transport=tls>"), ("Content-Type", kind)], body)
    return final(stream, number)


def test_td_bcf_001_and_003(net):
    """And a test call, which a PSAP without an xcipherd for it cannot answer."""
    with network(net) as n:
        td_bcf_001(n)
        td_bcf_003(n)
        dialog = n.caller.call(30.62, -96.34, "urn:service:test.sos")
        before = len(n.takers[0].invites)
        assert dialog.answered() == 404 and len(n.takers[0].invites) == before, dialog.reply.first
        dialog.close()


def td_bcf_001(n):
    taker = n.takers[0]
    taker.silent = True
    n.psap.rpc("htable.sets", "takers", "*", taker.uri())
    media = dtls.Plain(n.net, "caller", "10.200.1.2")
    number, stream = 0, n.caller.connect()[0]
    for method, got in (("INVITE", taker.invites), ("MESSAGE", taker.others)):
        for target, to in TARGETS:
            number += 1
            before = len(got)
            assert send(n, stream, number, method, target, to, media) == 200, (method, target, to)
            wait_for("the request at the taker", lambda got=got, before=before: len(got) > before)
            m = got[-1]
            infos = ",".join(m.all("Call-Info"))
            assert m.first.startswith(method + " ") and m.get("To").startswith(to), m.headers
            for kind, purpose in (("callid", "CallId"), ("incidentid", "IncidentId")):
                assert len(re.findall(IDENTIFIER % (kind, purpose), infos)) == 1, infos
            assert m.all("Resource-Priority") == ["esnet.1"], m.headers
            urn = target if target.startswith("urn:") else "urn:service:sos"
            assert m.get("History-Info").startswith(f"<{urn}>;index=1,"), m.headers
    media.close()


def td_bcf_003(n):
    import esinet

    def context(ciphers, version):
        c = ssl.create_default_context(cafile=n.ca)
        c.load_cert_chain(*n.certificates["vsp"])
        c.minimum_version = c.maximum_version = version
        if ciphers:
            c.set_ciphers(ciphers)
        return c
    for address in (esinet.ESRP, esinet.PSAP):
        assert refused(n.net, address, context("ECDHE+AESGCM:!AES256", ssl.TLSVersion.TLSv1_2)), address
        assert not refused(n.net, address, context("ECDHE+AESGCM", ssl.TLSVersion.TLSv1_2)), address
        assert not refused(n.net, address, context(None, ssl.TLSVersion.TLSv1_3)), address
    # Callers may have weaker TLS, for an emergency call is not refused for it.
    caller = esinet.Caller(n.net, n.ca)
    caller.context.maximum_version = ssl.TLSVersion.TLSv1_2
    caller.context.set_ciphers("ECDHE+AESGCM:!AES256")
    stream, _ = caller.connect()
    assert "AES128" in stream.socket.cipher()[0], stream.socket.cipher()


test_td_bcf_001_and_003.terminals = TERMINALS
