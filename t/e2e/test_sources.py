# SPDX-License-Identifier: GPL-2.0-or-later
"""kamailio-cfg/xcipher-source.cfg: which senders share the limits of the examples."""
import ipaddress
import os
import random
import socket
import tempfile

import ng
import relay
from baresip import wait_for
from run import Skip

CONFIG = """
debug=2
log_stderror=yes
children=1
listen=udp:10.200.1.1:5060
loadmodule "pv.so"
loadmodule "textops.so"
loadmodule "sl.so"
include_file "{0}/kamailio-cfg/xcipher-source.cfg"
request_route {{
	$var(source) = $hdr(X-Address);
	route(XCIPHER_NETWORK);
	$var(given) = $var(source);
	route(XCIPHER_SOURCE);
	$var(both) = $var(given) + " " + $var(source);
	sl_send_reply("200", "$var(both)");
}}
"""
REQUEST = """OPTIONS sip:x@y SIP/2.0\r\nVia: SIP/2.0/UDP 10.200.1.2:5060;branch=z9hG4bK{0}\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x@y>\r\nCall-ID: {0}\r\nCSeq: 1 OPTIONS\r\n\
X-Address: {1}\r\nContent-Length: 0\r\n\r\n"""
# The same network, written in four ways, then its neighbours and the forms that embed IPv4.
CHOSEN = ("2001:db8::1", "2001:db8:0:0:1::1", "2001:db8::1:0:0:1", "2001:db8::", "2001:db8:1::", "2001:db8:1::1", "2001:db8:0:1::", "2001:db8:0:1:1::", "2001:db8::1:2:3:4:5", "1::", "::1", "::",
          "::2:3:4:5:6:7", "1:2:3:4::", "1:2:3:4:5:6::", "1:2:3:4:5:6:7:8", "0:1:2:3:4:5:6:7", "::ffff:192.0.2.1", "192.0.2.1", "::192.0.2.1")


def source(text):
    address = ipaddress.ip_address(text)
    if address.version == 6 and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address.version == 4:
        return str(address)
    return ":".join(f"{int.from_bytes(address.packed[i:i + 2], 'big'):x}" for i in range(0, 8, 2)) + "::/64"


def addresses():
    """As inet_ntop() writes them, with zeros in all places."""
    draw = random.Random(22)
    for zeros in range(256):
        yield socket.inet_ntop(socket.AF_INET6, b"".join((0 if zeros >> i & 1 else draw.choice((1, draw.randrange(1, 65536)))).to_bytes(2, "big") for i in range(8)))


def test_all_addresses_of_a_network_are_one_source(net):
    """The network is right wherever an address is shortened. An IPv6 address that stands for one of IPv4 counts as this one."""
    if not os.path.exists("/usr/sbin/kamailio"):
        raise Skip("Kamailio is not installed")
    with tempfile.TemporaryDirectory(prefix="xcipher-source-") as folder:
        path = os.path.join(folder, "cfg")
        with open(path, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(relay.ROOT))
        with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
            process = net.spawn(net.gateway, ["/usr/sbin/kamailio", "-f", path, "-DD", "-E", "-w", folder, "-Y", folder, "-m", "16", "-M", "4"], stdout=log, stderr=log)
            s = ng.socket_in(net.terminal["caller"], kind=socket.SOCK_DGRAM)
            s.bind(("10.200.1.2", 5060))
            s.settimeout(1)
            s.connect(("10.200.1.1", 5060))

            def ask(number, address):
                """What counts for this address, and for the sender; None: no reply."""
                try:
                    s.send(REQUEST.format(number, address).encode())
                    return s.recv(65536).decode().partition("\r\n")[0].split()[2:]
                except OSError:
                    assert process.poll() is None, os.pread(log.fileno(), 4000, 0).decode()
                    return None
            wait_for("start of Kamailio", lambda: ask("start", "::1"))
            s.settimeout(60)
            for i, address in enumerate([*CHOSEN, *addresses()]):
                got = ask(i, address)
                assert got == [source(address), "10.200.1.2"], (address, source(address), got)
            assert len({source(a) for a in CHOSEN[:4]}) == 1 and len({source(a) for a in CHOSEN[3:9]}) == 3
            s.close()
            net.stop(process, 30)
