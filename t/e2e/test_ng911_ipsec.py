# SPDX-License-Identifier: GPL-2.0-or-later
"""IPsec between the proxies of kamailio-cfg/ng911: SIP without TLS goes as ESP in UDP, and never in clear."""
import os
import signal
import socket
import sys
import tempfile

import ipsec
import ng
import relay
from baresip import wait_for
from run import Skip
from test_ng911 import BOUNDARIES, TERMINALS, needs, prepare

PREPARE = prepare

sys.path.insert(0, os.path.join(relay.ROOT, "demo"))


def reaches(place, address, port):
    with ng.socket_in(place, kind=socket.SOCK_STREAM) as s:
        s.settimeout(1)
        return not s.connect_ex((address, port))


def between(packets, *servers):
    return [p for p in packets if p[0] in servers and p[1] in servers]


def only_esp(packets):
    """Nothing but IKE and ESP, and ESP both ways."""
    assert {p[2] for p in packets} == {17} and all(p[3:5] in ((500, 500), (4500, 4500)) for p in packets), {p[:5] for p in packets}
    assert len({p[0] for p in packets if ipsec.is_esp(p)}) == 2, {p[:5] for p in packets}
    assert not [p for p in packets if b"SIP/2.0" in p[5] or b"pidf" in p[5]]


def test_sip_between_servers_goes_through_esp(net):
    """Also when the IPsec of a server dies, nothing leaves in clear; and when it returns, calls go on."""
    needs()
    if ipsec.missing():
        raise Skip(f"{ipsec.missing()} is not installed")
    import esinet
    import esinet_places
    import ng911
    ng911.PACKETS = 5
    with tempfile.TemporaryDirectory(prefix="xcipher-ipsec-") as folder:
        hosts, taps = {}, {}

        def ready(network):
            taps.update({n: ipsec.Capture(f"{net.id}-core", esinet_places.device(n)) for n in ("vsp", "psap")})
            hosts.update(ipsec.mesh(network))
            listener = ng.socket_in(network.places["esrp"], kind=socket.SOCK_STREAM)
            listener.bind((esinet.ESRP, 7))
            listener.listen()
            assert not reaches(network.places["vsp"], esinet.ESRP, 7), "before the tunnel, a packet left in clear"
            ipsec.open_tunnels(hosts)
            wait_for("a connection through the tunnel", lambda: reaches(network.places["vsp"], esinet.ESRP, 7))
            listener.close()

        network = esinet.Network(net, folder, ng911.best_client(), boundaries=BOUNDARIES, places=esinet_places.apart, sip="tcp", ready=ready)
        story, taker = ng911.Story(), network.takers[0]
        network.psap.rpc("htable.sets", "takers", "*", taker.uri())

        def call():
            dialog, invite = ng911.connected(network, story, ng911.HERE, taker)
            ng911.check_invite(dialog, invite)
            assert [v.split()[0] for v in invite.all("Via")] == ["SIP/2.0/TLS", "SIP/2.0/TCP", "SIP/2.0/TCP", "SIP/2.0/TLS"], invite.all("Via")
            ng911.hang_up(network, story, dialog, taker)
        call()
        seen = taps["vsp"].packets()
        assert [p for p in seen if p[0] == esinet.HOST["caller"]], "the capture sees nothing"
        only_esp(between(seen, esinet.VSP, esinet.ESRP))
        only_esp(between(taps["psap"].packets(), esinet.ESRP, esinet.PSAP))

        process = hosts["vsp"].process
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_for("the end of the tunnel", lambda: "ipsec0" not in net.run(network.places["vsp"], "ip", "link").stdout)
        assert not reaches(network.places["vsp"], esinet.ESRP, 5060)
        only = between(taps["vsp"].packets(), esinet.VSP, esinet.ESRP)
        assert all(p[2] == 17 for p in only), {p[:5] for p in only}
        os.unlink(os.path.join(hosts["vsp"].folder, "vici"))
        hosts["vsp"].start()
        wait_for("the tunnel again", hosts["vsp"].up)
        wait_for("SIP through it", lambda: reaches(network.places["vsp"], esinet.ESRP, 5060))
        call()
        only_esp(between(taps["vsp"].packets(), esinet.VSP, esinet.ESRP))
        assert hosts["psap"].accepts("esrp", "transport")
        for t in taps.values():
            t.close()
        network.close()
        for h in hosts.values():
            h.stop()


test_sip_between_servers_goes_through_esp.terminals = TERMINALS
