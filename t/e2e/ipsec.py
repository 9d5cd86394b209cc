# SPDX-License-Identifier: GPL-2.0-or-later
"""IPsec between namespaces: strongSwan's charon with the files of kamailio-cfg/ng911/ipsec, in user space ("tunnel") or with the kernel's ESP
("transport"). No service of the machine starts: each charon is a child of the test, with its own folder, and ends with it."""
import os
import re
import select
import shutil
import socket
import struct
import subprocess

import ng
import relay
from baresip import wait_for

CHARON, SWANCTL = "/usr/sbin/charon-systemd", "/usr/sbin/swanctl"
FILES = os.path.join(relay.ROOT, "kamailio-cfg", "ng911", "ipsec")
MARK, TABLE = "0x42", "230"
PLUGINS = "random nonce openssl pem pkcs1 pkcs8 x509 pubkey constraints kdf hmac sha1 sha2 aes gcm kernel-netlink socket-default vici updown"
ESP = 50


def missing():
    """What is not installed, or None."""
    return next((f for f in (CHARON, SWANCTL, "/dev/net/tun", "/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so",
                             "/usr/lib/ipsec/plugins/libstrongswan-openssl.so") if not os.path.exists(f)), None)


class Host:
    """charon in a namespace. certificate: (certificate, key); peers: {name: (own address, its address)}."""
    mode = "tunnel"

    def __init__(self, net, ns, folder, name, certificate, ca, peers):
        self.net, self.ns, self.name, self.peers = net, ns, name, peers
        self.folder = os.path.join(folder, "ipsec-" + name)
        for part in ("x509", "x509ca", "private", "conf.d"):
            os.makedirs(os.path.join(self.folder, part))
        self.vici = f"unix://{self.folder}/vici"
        for source, *place in ((certificate[0], "x509", "server.crt"), (certificate[1], "private", "server.key"), (ca, "x509ca", "ca.crt")):
            shutil.copy(source, os.path.join(self.folder, *place))
        for peer in peers:
            self.write(os.path.join("conf.d", peer + ".conf"), self.connection(peer, self.mode))
        self.write("swanctl.conf", "include conf.d/*.conf\n")
        user_space = self.mode == "tunnel"
        self.write("strongswan.conf", (f"include {FILES}/strongswan.conf\n" if user_space else "") +
                   f"charon-systemd {{\n load = {'kernel-libipsec ' * user_space}{PLUGINS}\n plugins {{ vici {{ socket = {self.vici} }} }}\n"
                   f" filelog {{ log {{ path = {self.folder}/log }} }}\n}}\n")
        self.environment = {**os.environ, "STRONGSWAN_CONF": os.path.join(self.folder, "strongswan.conf"), "SWANCTL_DIR": self.folder}
        self.process = None

    def connection(self, peer, mode):
        """The file for this mode, with these servers' addresses and names."""
        with open(os.path.join(FILES, f"swanctl-{mode}.conf"), encoding="ascii") as f:
            model = f.read()
        named = {"esrp": peer, "vsp": self.name, "192.0.2.1": self.peers[peer][0], "192.0.2.2": self.peers[peer][1]}
        return re.sub(r"\b(esrp|vsp|192[.]0[.]2[.][12])\b", lambda m: named[m[0]], model)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as f:
            f.write(text)

    def guard(self):
        """Packets to the peers leave only through the tunnel: the rule of kamailio-cfg/ng911/ipsec/README.md."""
        self.net.run(self.ns, "ip", "rule", "add", "not", "from", "all", "fwmark", MARK, "lookup", TABLE, "priority", TABLE)
        for _, its in self.peers.values():
            self.net.run(self.ns, "ip", "route", "add", "unreachable", its, "table", TABLE)

    def start(self):
        self.process = self.net.spawn(self.ns, [CHARON], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(f"charon of {self.name}", lambda: os.path.exists(os.path.join(self.folder, "vici")))
        wait_for(f"the connections of {self.name}", lambda: self.swanctl("--load-all", check=False).returncode == 0)

    def swanctl(self, *args, check=True):
        p = self.net.run(self.ns, SWANCTL, *args, "--uri", self.vici, check=False, env=self.environment, timeout=60)
        assert not check or p.returncode == 0, (args, p.stdout, p.stderr, self.log())
        return p

    def accepts(self, peer, mode):
        """charon understands the file. It forgets its other connections."""
        self.write("try.conf", self.connection(peer, mode))
        said = self.swanctl("--load-conns", "--file", os.path.join(self.folder, "try.conf")).stdout
        assert "successfully loaded 1 connections" in said, said
        return f"{mode.upper()}, " in self.swanctl("--list-conns").stdout

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-3000:]

    def up(self):
        """Whether a tunnel with each peer is there."""
        said = self.swanctl("--list-sas").stdout
        return all(re.search(rf"^{peer}: #\d+, ESTABLISHED", said, re.M) for peer in self.peers) and said.count(f"INSTALLED, {self.mode.upper()}") >= len(self.peers)

    def stop(self):
        if self.process:
            self.net.stop(self.process, 30)


class TransportHost(Host):
    """With the kernel's ESP. Its kernel keeps packets to the peers back until there are keys, so no rules are needed."""
    mode = "transport"


class Capture:
    """All IP packets of a link, as a listener on the wire sees them."""

    def __init__(self, ns, device):
        self.socket = ng.socket_in(ns, socket.AF_PACKET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((device, 3))

    def packets(self):
        """(source, destination, protocol, source port, destination port, from the transport's header on) of each IPv4 packet so far."""
        found = []
        while select.select([self.socket], [], [], 0)[0]:
            packet = self.socket.recv(65536)
            if packet[0] >> 4 != 4:
                continue
            data = packet[(packet[0] & 15) * 4:]
            ports = struct.unpack("!HH", data[:4]) if packet[9] in (6, 17) else (0, 0)
            found.append((socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20]), packet[9], *ports, data))
        return found

    def close(self):
        self.socket.close()


def is_esp(packet):
    """ESP in UDP: port 4500, and an SPI where IKE has four zeros."""
    data = packet[5]
    return packet[2] == 17 and 4500 in packet[3:5] and len(data) > 24 and data[8:12] != bytes(4)


def mesh(network, servers=("vsp", "esrp", "psap")):
    """IPsec between neighbours of a network of demo/esinet.py, and no other way between them: {name: Host}."""
    from esinet_places import ADDRESS
    hosts = {}
    for i, name in enumerate(servers):
        peers = {n: (ADDRESS[name], ADDRESS[n]) for j, n in enumerate(servers) if abs(i - j) == 1}
        hosts[name] = Host(network.net, network.places[name], network.folder, name, network.certificates[name], network.ca, peers)
        hosts[name].guard()
    return hosts


def open_tunnels(hosts):
    for h in hosts.values():
        h.start()
    wait_for("the tunnels", lambda: all(h.up() for h in hosts.values()))
