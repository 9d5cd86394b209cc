# SPDX-License-Identifier: GPL-2.0-or-later
"""More calls from one server than the ESRP allows."""
import os
import socket
import ssl

import dtls
import ng
from baresip import wait_for
from test_ng911 import TERMINALS, network

BURST = 20  # INVITEs, several times XC_CALL_RATE


def server(net, n):
    """A connection of a server of the network, from the address of the caller, to the ESRP."""
    import esinet
    context = ssl.create_default_context(cafile=n.ca)
    context.load_cert_chain(os.path.join(n.folder, "vsp.crt"), os.path.join(n.folder, "vsp.key"))
    raw = ng.socket_in(net.terminal["caller"], kind=socket.SOCK_STREAM)
    raw.settimeout(60)
    raw.connect((esinet.ESRP, 5061))
    return esinet.Stream(context.wrap_socket(raw, server_hostname=esinet.ESRP))


def burst(stream, media):
    """The final replies to BURST INVITEs."""
    port, left, replies = stream.socket.getsockname()[1], {}, []
    for i in range(BURST):
        call = os.urandom(8).hex()
        left[call] = True
        stream.send("INVITE urn:service:sos SIP/2.0",
                    [("Via", f"SIP/2.0/TLS 10.200.1.2:{port};rport;branch=z9hG4bK{call}"), ("From", f"<sip:caller@vsp.example>;tag={i}"), ("To", "<urn:service:sos>"),
                     ("Call-ID", call), ("CSeq", "1 INVITE"), ("Max-Forwards", "70"), ("Contact", f"<sip:caller@10.200.1.2:{port};transport=tls>"),
                     ("Content-Type", "application/sdp")], media.sdp())
    while left:
        m = stream.receive()
        if m.status() >= 200 and left.pop(m.get("Call-ID"), False):
            replies.append(m)
    return replies


def test_a_flood_of_one_server_takes_no_place_of_another(net):
    with network(net, esrp={"XC_CALL_RATE": 4}) as n:
        import ng911
        media, stream, refused = dtls.Plain(net, "caller", "10.200.1.2"), server(net, n), []

        def too_many():
            refused.extend(m for m in burst(stream, media) if m.first == "SIP/2.0 503 Too Many Calls")
            return refused
        wait_for("a refusal", too_many)
        assert all(m.get("Retry-After") == "1" for m in refused), refused[0].headers
        media.close()
        # Calls of the VSP have a count of their own.
        ng911.PACKETS = 5
        taker = n.takers[0]
        n.psap.rpc("htable.sets", "takers", "*", taker.uri())
        dialog, _ = ng911.connected(n, ng911.Story(False), ng911.HERE, taker)
        ng911.hang_up(n, ng911.Story(False), dialog, taker)


test_a_flood_of_one_server_takes_no_place_of_another.terminals = TERMINALS
