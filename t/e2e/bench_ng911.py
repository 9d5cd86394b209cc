#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the set-up delay of emergency calls in the network of demo/ng911.py, from the caller's first packet to its 180.

bench_ng911.py [--calls=N] [--only=WORD,...] [--lost=async|stock] [--out=FOLDER] [--resume]

The factors are those of the study: the caller's SIP by TCP or TLS; the servers' SIP by TCP or TLS; IPsec between the servers (in user space)
or none; LoST asked by the caller or the VSP; LoST by HTTP or HTTPS. Each of the 32 combinations runs with kept connections and with new
ones: after each call all connections are destroyed, also those between servers and with the LoST server, and the next call is checked to use
others. --only: rows with all these values, such as servers=tls,ipsec,new. Each row is stored as soon as it is measured, and --resume
skips the rows that FOLDER already has: all 64 take longer than some machines let a command run.

No LoST result is cached, so the ESRP and the VSP ask for each call. The proxies log when an INVITE comes and goes. Media are offered through
xcipherd, but none flow. All runs in namespaces of one machine: there is no delay of a network. Writes ng911.json and ng911.png to FOLDER."""
import argparse
import contextlib
import http.client
import itertools
import json
import os
import random
import re
import ssl
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "t", "e2e"), os.path.join(ROOT, "demo")]

import bench_ng911_show as show  # noqa: E402
import esinet  # noqa: E402
import esinet_places  # noqa: E402
import handshakes_seen  # noqa: E402
import ipsec  # noqa: E402
import netns  # noqa: E402
import ng911  # noqa: E402
import relay  # noqa: E402
from baresip import wait_for  # noqa: E402

QUERY = ('<findService xmlns="urn:ietf:params:xml:ns:lost1"><location id="l" profile="geodetic-2d"><gml:Point xmlns:gml="http://www.opengis.net/gml"'
         ' srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>{} {}</gml:pos></gml:Point></location><service>urn:service:sos</service></findService>')


def soon(what, check):
    """As wait_for(), but looks more often: there are thousands of these."""
    for _ in range(10):
        if check():
            return
        time.sleep(0.003)
    wait_for(what, check)


class LostClient:
    """The caller's own."""

    def __init__(self, net, scheme, ca, certificate):
        self.net, self.scheme, self.ca, self.certificate, self.connection = net, scheme, ca, certificate, None

    def connect(self):
        import ng
        plain = self.scheme == "http"
        c = http.client.HTTPConnection(esinet.LOST, 8080 if plain else 8443, timeout=20)
        raw = ng.socket_in(self.net.terminal["caller"], kind=esinet.socket.SOCK_STREAM)
        raw.settimeout(20)
        # http.client sends head and body apart: the body would wait for an ACK that the server delays.
        raw.setsockopt(esinet.socket.IPPROTO_TCP, esinet.socket.TCP_NODELAY, 1)
        raw.connect((esinet.LOST, 8080 if plain else 8443))
        if not plain:
            context = ssl.create_default_context(cafile=self.ca)
            context.load_cert_chain(*self.certificate)
            raw = context.wrap_socket(raw, server_hostname=esinet.LOST)
        c.sock = raw
        return c

    def ask(self, place, kept):
        if not kept or not self.connection:
            self.connection = self.connect()
        self.connection.request("POST", "/lost", QUERY.format(*place), {"Content-Type": "application/lost+xml"})
        text = self.connection.getresponse().read().decode()
        return re.search("<uri>(.*?)</uri>", text)[1].replace("&amp;", "&")


class Times:
    """When INVITEs came to a proxy and left it, by its log."""

    def __init__(self, proxy):
        self.proxy, self.place, self.at = proxy, 0, {}

    def spent(self, call):
        text = os.pread(self.proxy.log.fileno(), 1 << 24, self.place).decode("utf-8", "replace")
        self.place += len(text.encode())
        for m in re.finditer(r"ng911: time (\S+) (in|out) ([0-9.]+)", text):
            self.at.setdefault((m[1], m[2]), float(m[3]))
        return self.at.pop((call, "out")) - self.at.pop((call, "in"))


class Bench:
    """One network, and the calls through it."""

    def __init__(self, network, calls, kept, noise):
        self.network, self.calls, self.kept, self.noise = network, calls, kept, noise
        self.taker = network.takers[0]
        self.times = {p.name: Times(p) for p in network.proxies()}

    def call(self, client, by_client, stream):
        """Seconds of each part of one call."""
        n, place = self.network, (round(self.noise.uniform(26, 36.4), 5), round(self.noise.uniform(-106.5, -93.6), 5))
        start = time.monotonic()
        route = client.ask(place, self.kept) if by_client else None
        asked = time.monotonic() - start
        dialog = n.caller.call(*place, route=route, stream=stream)
        code = dialog.answered()
        assert code == 200, (code, dialog.reply.first, *(p.text()[-3000:] for p in n.proxies()))
        parts = {"client LoST": asked, "TLS": dialog.at["TLS with the VSP"], **{name: t.spent(dialog.id) for name, t in self.times.items()}}
        total = asked + dialog.at["180"]
        dialog.end()
        soon("the end", lambda: not n.border.client.call("list")["calls"])
        if not self.kept:
            self.renew()
        return {"total": total, **parts, "rest": total - sum(parts.values())}

    def renew(self):
        """Destroys all connections of the servers, so that the next call needs new ones, and checks that the last call had some."""
        n = self.network
        ports = "( sport = :5060 or dport = :5060 or sport = :5061 or dport = :5061 or dport = :8443 or dport = :8080 )"
        for name, to in (("vsp", esinet.ESRP), ("esrp", esinet.PSAP)):
            assert n.net.run(n.places[name], "ss", "-Htn", "state", "established", "dst", to).stdout, f"the {name} has no connection after a call"

        def over():
            for name in ("vsp", "esrp", "psap"):
                n.net.run(n.places[name], "ss", "-K", *ports.split())
            return all("opened_connections: 0" in p.rpc("core.tcp_info") for p in n.proxies())
        soon("the end of all connections", over)  # a late message may open another one

    def row(self, client, by_client, sip):
        self.network.caller.sip = sip
        stream = self.network.caller.connect()[0] if self.kept else None
        for _ in range(3):  # these open the connections that are kept
            self.call(client, by_client, stream)
        seen = handshakes_seen.Handshakes(f"{self.network.net.id}-core")
        found = [self.call(client, by_client, stream) for _ in range(self.calls)]
        if stream:
            stream.socket.close()
        full, resumed = map(sum, zip((0, 0), *seen.count().values()))
        seen.close()
        return {"calls": found, "handshakes": [full / self.calls, resumed / self.calls]}


def names(sip, servers, secure, by_client, scheme, kept):
    return {"caller": sip, "servers": servers, "IPsec": "ipsec" if secure else "none", "LoST by": "caller" if by_client else "vsp", "LoST over": scheme,
            "connections": "kept" if kept else "new"}


def is_wanted(options, rows, factors):
    """Whether the row of these factors is requested, and not measured yet."""
    return set(options.only) <= {f"{k}={v}" for k, v in factors.items()} | set(factors.values()) and not any(factors.items() <= r.items() for r in rows)


def one_network(options, rows, *factors):
    """The rows that one network can give."""
    servers, secure, scheme, kept = factors
    wanted = [(sip, by) for sip, by in itertools.product(("tcp", "tls"), (True, False)) if is_wanted(options, rows, names(sip, servers, secure, by, scheme, kept))]
    hosts = {}

    def ready(network):
        hosts.update(ipsec.mesh(network))
        ipsec.open_tunnels(hosts)
    if not wanted:
        return
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder, netns.Net(ng911.TERMINALS) as net:
        more = {"all": {"XC_TIMES": 1, **({} if kept else {"XC_KEEP": None})}, "vsp": {"XC_TCP": 5060, "XC_TCP_FROM": "."}, **({"ready": ready} if secure else {})}
        if options.lost == "async":
            more["all"]["XC_LOST_CACHE"] = 0
        network = esinet.Network(net, folder, options.lost, scheme=scheme, places=esinet_places.apart, sip=servers, **more)
        taker = network.takers[0]
        taker.silent = True
        network.psap.rpc("htable.sets", "takers", "*", taker.uri())
        client = LostClient(net, scheme, network.ca, (os.path.join(folder, "taker1.crt"), os.path.join(folder, "taker1.key")))
        bench = Bench(network, options.calls, kept, random.Random(911))
        for sip, by_client in wanted:
            yield {**names(sip, servers, secure, by_client, scheme, kept), **bench.row(client, by_client, sip)}
        network.close()
        for h in hosts.values():
            h.stop()


def stored(path):
    """Rows of an earlier run that was interrupted."""
    with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as f:
        return json.load(f)["rows"]
    return []


def store(path, result):
    """An interruption leaves the old file or the new one."""
    with open(path + ".new", "w", encoding="ascii") as f:
        json.dump(result, f)
    os.replace(path + ".new", path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--calls", type=int, default=50)
    p.add_argument("--only", type=lambda s: s.split(","), default=[])
    p.add_argument("--lost", choices=("async", "stock"), default=ng911.best_client())
    p.add_argument("--out", default=relay.BUILD)
    p.add_argument("--resume", action="store_true")
    options = p.parse_args()
    if ipsec.missing():
        sys.exit(f"{ipsec.missing()} is not installed: sudo make deps-ng911")
    load, begin = os.getloadavg()[0], time.monotonic()
    print(f"LoST client of the proxies: {options.lost}; load of the machine {load:.1f}; delays in ms; parts are means\n")
    print(show.head(), flush=True)
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "ng911.json")
    rows = stored(path) if options.resume else []
    for row in rows:
        print(show.line(row), flush=True)
    for kept, secure, servers, scheme in itertools.product((True, False), (False, True), ("tcp", "tls"), ("http", "https")):
        for row in one_network(options, rows, servers, secure, scheme, kept):
            rows.append(row)
            print(show.line(row), flush=True)
            store(path, {"load": load, "processors": os.cpu_count(), "rows": rows})
    print(f"\nmeasured in {(time.monotonic() - begin) / 60:.1f} minutes")
    print("\n" + show.bars(rows) + "\n" + show.goals(rows))
    print(show.picture(rows, os.path.join(options.out, "ng911.png")))


if __name__ == "__main__":
    main()
