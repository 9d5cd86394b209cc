#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""IPsec in transport mode by the kernel's ESP: strongSwan with kamailio-cfg/ng911/ipsec/swanctl-transport.conf between two hosts, and SIP over
TCP between them, answered by Kamailio with kamailio-cfg/ng911/psap.cfg. A capture of the link shows that nothing leaves in clear. What ESP costs is
counted in instructions, by the guest's clock."""
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

import rig
from rig import tap
import ipsec
import netns
import ng

VSP, PSAP = "10.201.0.1", "10.201.0.3"
FOLDER = tempfile.mkdtemp(prefix="ipsec-")
IKE = {(17, 500, 500), (17, 4500, 4500)}
REQUEST, REPLY = 3600, 800  # octets of an INVITE with location and SDP, and of a 180
COST_MAX = 400000  # instructions; the goal of 1 ms for four such ways allows far more
NS_PER_INSTRUCTION = 4  # run.py: the guest's clock


def openssl(*args):
    rig.run(["openssl", *args])


def certificate(name, address):
    """(certificate, key) by the authority of the network."""
    base = f"{FOLDER}/{name}"
    with open(base + ".san", "w", encoding="ascii") as f:
        f.write(f"subjectAltName=DNS:{name}.esinet.example,IP:{address}\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}.esinet.example", "-keyout", base + ".key", "-out", base + ".csr")
    openssl("x509", "-req", "-in", base + ".csr", "-CA", f"{FOLDER}/ca.crt", "-CAkey", f"{FOLDER}/ca.key", "-CAcreateserial", "-days", "2", "-extfile", base + ".san",
            "-out", base + ".crt")
    return base + ".crt", base + ".key"


def kamailio(net, ns, certificate_and_key):
    os.makedirs(f"{FOLDER}/psap-run")
    values = {"XC_ADDRESS": PSAP, "XC_TCP": 5060, "XC_TCP_FROM": f'"^{re.escape(VSP)}$"', "XC_CERTIFICATE": f'"{certificate_and_key[0]}"',
              "XC_KEY": f'"{certificate_and_key[1]}"', "XC_CA": f'"{FOLDER}/ca.crt"', "XC_CHILDREN": 1, "XC_CTL": f'"unix:{FOLDER}/psap-run/ctl"'}
    modules = next(d for d, _, files in os.walk("/usr/lib") if d.endswith("kamailio/modules") and files)
    log = open(f"{FOLDER}/kamailio.log", "w+", encoding="utf-8")
    net.spawn(ns, ["/usr/sbin/kamailio", "-f", "/tree/kamailio-cfg/ng911/psap.cfg", "-L", modules, "-DD", "-E", "-w", FOLDER, "-Y", f"{FOLDER}/psap-run", "-m", "32", "-M", "4",
                   "-AXC_NO_OWN_TLS", *[f"-A{k}={v}" for k, v in values.items()]], stdout=log, stderr=log)


def options(ns):
    """The reply to OPTIONS over TCP, or None without a connection."""
    with ng.socket_in(ns, kind=socket.SOCK_STREAM) as s:
        s.settimeout(5)
        if s.connect_ex((PSAP, 5060)):
            return None
        s.sendall(f"OPTIONS sip:keepalive@{PSAP} SIP/2.0\r\nVia: SIP/2.0/TCP {VSP}:5060;branch=z9hG4bKx\r\nFrom: <sip:vsp@{VSP}>;tag=1\r\n"
                  f"To: <sip:keepalive@{PSAP}>\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n".encode())
        s.settimeout(30)
        try:
            return s.recv(2000).split(b"\r\n")[0].decode()
        except TimeoutError:
            return "no reply"


def serve(listener):
    """Answers each request of one connection. In a process of its own."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        left = REQUEST
        while left:
            data = connection.recv(left)
            if not data:
                os._exit(0)
            left -= len(data)
        connection.sendall(bytes(REPLY))


def round_trip(vsp, psap, count=100):
    """Instructions from sending a request to its whole reply, over a connection that is open: the median of so many."""
    with ng.socket_in(psap, kind=socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((PSAP, 5070))
        listener.listen()
        child = os.fork()
        if not child:
            serve(listener)
    found = []
    with ng.socket_in(vsp, kind=socket.SOCK_STREAM) as s:
        s.connect((PSAP, 5070))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            start, left = time.monotonic_ns(), REPLY
            s.sendall(bytes(REQUEST))
            while left:
                left -= len(s.recv(left))
            found.append(time.monotonic_ns() - start)
    os.waitpid(child, 0)
    return sorted(found)[count // 2] // NS_PER_INSTRUCTION


def in_clear(packets):
    """Packets between the servers that are neither ESP nor IKE."""
    return [p[:5] for p in packets if {p[0], p[1]} == {VSP, PSAP} and p[2] != ipsec.ESP and (p[2], p[3], p[4]) not in IKE]


def scenario(net):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=Authority of the ESInet", "-keyout", f"{FOLDER}/ca.key",
            "-out", f"{FOLDER}/ca.crt")
    vsp, psap = net.add("vsp"), net.add("psap")
    net.link(vsp, "core", f"{VSP}/24", psap, "core", f"{PSAP}/24")
    certs = {"vsp": certificate("vsp", VSP), "psap": certificate("psap", PSAP)}
    one = ipsec.TransportHost(net, vsp, FOLDER, "vsp", certs["vsp"], f"{FOLDER}/ca.crt", {"psap": (VSP, PSAP)})
    two = ipsec.TransportHost(net, psap, FOLDER, "psap", certs["psap"], f"{FOLDER}/ca.crt", {"vsp": (PSAP, VSP)})
    kamailio(net, psap, certs["psap"])
    tap(rig.until(lambda: options(vsp) == "SIP/2.0 200 Here"), "without IPsec SIP passes in clear: the capture below would show it")

    clear = round_trip(vsp, psap)

    link = ipsec.Capture(vsp, "core")
    one.start()
    link.packets()
    tap(options(vsp) is None, "while the peer has no IPsec, there is no connection")
    # The peer's answer is ICMP: nobody listens there.
    seen = [p for p in link.packets() if p[2] != socket.IPPROTO_ICMP]
    tap(not in_clear(seen) and (17, 500, 500) in {p[2:5] for p in seen}, f"and only IKE leaves: {in_clear(seen)}")

    two.start()
    tap(rig.until(lambda: options(vsp) == "SIP/2.0 200 Here"), "the first packet opens the association, and Kamailio answers")
    seen = link.packets()
    esp = {p[0] for p in seen if p[2] == ipsec.ESP}
    tap(esp == {VSP, PSAP}, f"ESP goes both ways: {esp}")
    tap(not in_clear(seen), f"nothing is in clear: {in_clear(seen)}")
    tap(not [p for p in seen if b"SIP/2.0" in p[5]], "no packet has readable SIP")
    state = net.run(vsp, "ip", "xfrm", "state").stdout
    tap("mode transport" in state and re.search(r"aead rfc4106\(gcm\(aes\)\) 0x[0-9a-f]{72} 128", state), "the kernel has AES-256-GCM in transport mode")
    if "mode transport" not in state:
        rig.note(state)

    secured = round_trip(vsp, psap)
    with open("/proc/crypto", encoding="ascii") as f:
        rig.note("ciphers: " + " ".join(sorted(set(re.findall(r"driver *: (\S*gcm\S*)", f.read())))))
    tap(0 < secured - clear < COST_MAX, f"ESP adds {secured - clear} instructions to a request of {REQUEST} octets and its reply of {REPLY}: {clear} without, {secured} with")

    # A host that crashed has lost its keys. Its peer notices, and both agree again.
    os.killpg(two.process.pid, signal.SIGKILL)
    two.process.wait()
    net.run(psap, "ip", "xfrm", "state", "flush")
    net.run(psap, "ip", "xfrm", "policy", "flush")
    os.unlink(f"{two.folder}/vici")
    two.start()
    tap(rig.until(lambda: options(vsp) == "SIP/2.0 200 Here", 600), "after a crash of the peer, SIP passes again")
    tap(not in_clear(link.packets()), "and nothing has left in clear")
    link.close()


def main():
    if not os.path.exists("/usr/sbin/charon-systemd"):
        rig.note("strongSwan or Kamailio is not installed: skipped")
        tap(True, "IPsec is skipped")
        return
    net = netns.Net(())
    try:
        scenario(net)
    except Exception:
        for path in (f"{FOLDER}/kamailio.log", f"{FOLDER}/ipsec-vsp/log", f"{FOLDER}/ipsec-psap/log"):
            rig.note(subprocess.run(["tail", "-n", "25", path], capture_output=True, text=True, check=False).stdout)
        raise
    finally:
        net.close()


rig.test(main)
