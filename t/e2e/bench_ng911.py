#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the set-up delay of emergency calls in the network of demo/ng911.py, from the caller's first packet to its 180.

bench_ng911.py [--calls=N] [--lost=async|stock]

SIP uses TLS on every hop, and the servers keep their connections. The factors are those of the study that can vary here: who asks LoST
(the caller or the VSP), by HTTP or HTTPS, and whether the caller keeps its connections or opens new ones for each call. The places are
random, so most requests of the ESRP are not in its cache. Media are offered through xcipherd, but none flow. All runs in namespaces of
one machine: there is no delay of a network."""
import argparse
import http.client
import os
import random
import re
import ssl
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "t", "e2e"), os.path.join(ROOT, "demo")]

import esinet  # noqa: E402
import netns  # noqa: E402
import ng911  # noqa: E402
from baresip import wait_for  # noqa: E402

QUERY = ('<findService xmlns="urn:ietf:params:xml:ns:lost1"><location id="l" profile="geodetic-2d"><gml:Point xmlns:gml="http://www.opengis.net/gml"'
         ' srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>{} {}</gml:pos></gml:Point></location><service>urn:service:sos</service></findService>')


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


def one_call(network, taker, client, by_client, kept, stream, place):
    """(client's LoST, TLS, to the call taker, 180 back) in seconds."""
    start = time.monotonic()
    route = client.ask(place, kept) if by_client else None
    asked = time.monotonic() - start
    dialog = network.caller.call(*place, route=route, stream=stream)
    code = dialog.answered()
    assert code == 200, (code, dialog.reply.first)
    rings = taker.received[-1]
    parts = asked, dialog.at["TLS with the VSP"], rings - dialog.sent, dialog.start + dialog.at["180"] - rings
    dialog.end()
    wait_for("the end", lambda: not network.border.client.call("list")["calls"])
    return parts


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1000


def measure(network, taker, client, by_client, kept, calls, noise):
    stream = network.caller.connect()[0] if kept else None
    found = []
    for i in range(calls + 3):
        place = round(noise.uniform(26, 36.4), 5), round(noise.uniform(-106.5, -93.6), 5)
        parts = one_call(network, taker, client, by_client, kept, stream, place)
        if i >= 3:  # the first ones open the servers' connections
            found.append(parts)
    totals = [sum(p) for p in found]
    means = [sum(p[i] for p in found) / len(found) * 1000 for i in range(4)]
    print(f"| {'caller' if by_client else 'VSP'} | {client.scheme.upper()} | {'kept' if kept else 'new'} | {len(found)} | {sum(totals) / len(totals) * 1000:.1f} |"
          f" {percentile(totals, .5):.1f} | {percentile(totals, .95):.1f} | " + " | ".join(f"{m:.1f}" for m in means) + " |", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--calls", type=int, default=50)
    p.add_argument("--lost", choices=("async", "stock"), default=ng911.best_client())
    options = p.parse_args()
    print(f"LoST client of the proxies: {options.lost}; load of the machine {os.getloadavg()[0]:.1f}; delays in ms\n")
    print("| LoST by | LoST over | caller's connections | calls | mean | p50 | p95 | client LoST | client TLS | VSP, ESRP, border, PSAP | 180 back |\n|"
          + "---|" * 11, flush=True)
    noise = random.Random(911)
    for scheme in ("http", "https"):
        with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder, netns.Net(ng911.TERMINALS) as net:
            network = esinet.Network(net, folder, options.lost, scheme=scheme)
            taker = network.takers[0]
            taker.silent = True
            network.psap.rpc("htable.sets", "takers", "*", taker.uri())
            made = os.path.join(folder, "taker1.crt"), os.path.join(folder, "taker1.key")
            client = LostClient(net, scheme, network.ca, made)
            for by_client in (True, False):
                for kept in (True, False):
                    measure(network, taker, client, by_client, kept, options.calls, noise)
            network.close()
    assert threading.active_count() < 200


if __name__ == "__main__":
    main()
