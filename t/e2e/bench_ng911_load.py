#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Emergency calls per second through one core of an ESRP: kamailio-cfg/ng911/esrp.cfg with xcipher_lost.so and xcipherd at the border.

bench_ng911_load.py [--rate=N] [--seconds=N] [--core=N]

All processes of the ESRP's Kamailio run on one processor, everything else where there is room. Callers and PSAPs are programs that speak SIP
over TLS with certificates of the network. Calls come from 40 places, which the LoST cache knows after the first round. Each call is an
INVITE with a location and SDP, 180, 200, ACK, BYE. Exit status 0 only if every call was answered and nothing was sent twice: no ng command,
no TCP segment between the servers, no SIP request."""
import argparse
import asyncio
import multiprocessing
import os
import random
import re
import signal
import socket
import ssl
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "t", "e2e"), os.path.join(ROOT, "demo")]

import esinet  # noqa: E402
import esinet_places  # noqa: E402
import netns  # noqa: E402
import ng  # noqa: E402
import relay  # noqa: E402

CONNECTIONS, PLACES = 4, 40
OFFER = "v=0\r\no=- 1 1 IN IP4 10.200.1.2\r\ns=-\r\nc=IN IP4 10.200.1.2\r\nt=0 0\r\nm=audio 9000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"


async def message(reader):
    """(first line, {header: [values]})"""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lstrip("\r\n").split("\r\n")
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), []).append(value.strip())
    await reader.readexactly(int((headers.get("content-length") or headers.get("l") or ["0"])[0]))
    return head[0], headers


def lines(first, headers, body=""):
    return (first + "\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers) + f"Content-Length: {len(body)}\r\n\r\n" + body).encode()


class Psap:
    """Answers every call at once, in a process of its own."""

    def __init__(self, listener, certificate, ca, result):
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
        self.context.load_cert_chain(*certificate)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.seen, self.twice, self.listener, self.result = set(), 0, listener, result

    async def serve(self, reader, writer):
        try:
            while True:
                first, h = await message(reader)
                method = first.split()[0]
                key = method, h["via"][0]
                self.twice += key in self.seen and method != "ACK"
                self.seen.add(key)
                self.result.value = self.twice
                back = [(n, v) for n in ("via", "from", "call-id", "cseq", "record-route") for v in h.get(n, [])]
                to = h["to"][0]
                back += [("To", to if "tag=" in to else to + ";tag=p"), ("Contact", f"<sip:p@{esinet.PSAP}:5061;transport=tls>")]
                if method == "INVITE":
                    writer.write(lines("SIP/2.0 180 Ringing", back))
                    writer.write(lines("SIP/2.0 200 OK", [*back, ("Content-Type", "application/sdp")], esinet.SILENT.format(esinet.HOST["taker1"])))
                elif method == "BYE":
                    writer.write(lines("SIP/2.0 200 OK", back))
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    async def run(self):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        await asyncio.start_server(self.serve, sock=self.listener, ssl=self.context)
        await asyncio.Event().wait()


class Callers:
    """The VSP's side: calls at a rate, over a few connections."""

    def __init__(self, net, certificate, ca):
        self.net, self.calls, self.delays, self.ended, self.failed, self.lost = net, {}, [], 0, [], []
        self.context = ssl.create_default_context(cafile=ca)
        self.context.load_cert_chain(*certificate)
        noise = random.Random(911)
        self.places = [(round(noise.uniform(27, 36), 4), round(noise.uniform(-105, -94), 4)) for _ in range(PLACES)]
        self.writers = []

    async def connect(self):
        for _ in range(CONNECTIONS):
            raw = ng.socket_in(self.net.gateway, kind=socket.SOCK_STREAM)
            raw.bind((esinet.VSP, 0))
            raw.connect((esinet.ESRP, 5061))
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reader, writer = await asyncio.open_connection(sock=raw, ssl=self.context, server_hostname=esinet.ESRP)
            self.writers.append((writer, asyncio.ensure_future(self.replies(reader, writer))))

    def fixed(self, call, method, number):
        return [("Via", f"SIP/2.0/TLS {esinet.VSP}:5061;rport;branch=z9hG4bK{call}{method}"), ("From", "<sip:c@vsp.example>;tag=c"), ("Call-ID", call),
                ("CSeq", f"{number} {method}"), ("Max-Forwards", "70")]

    def invite(self, number):
        call, (writer, _) = f"load{number}-{os.getpid()}", self.writers[number % CONNECTIONS]
        pidf = esinet.PIDF.format(*self.places[number % PLACES]).replace("\n", "\r\n")
        body = (f"--part\r\nContent-Type: application/sdp\r\n\r\n{OFFER}\r\n--part\r\nContent-Type: application/pidf+xml\r\nContent-ID: <l@vsp.example>\r\n\r\n"
                f"{pidf}\r\n--part--\r\n")
        self.calls[call] = time.monotonic()
        writer.write(lines("INVITE urn:service:sos SIP/2.0", [
            *self.fixed(call, "INVITE", 1), ("To", "<urn:service:sos>"), ("Contact", f"<sip:c@{esinet.VSP}:5061;transport=tls>"),
            ("Route", f"<sip:sos@{esinet.ESRP}:5061;transport=tls;lr>"), ("Geolocation", "<cid:l@vsp.example>"), ("Content-Type", "multipart/mixed;boundary=part")], body))

    async def replies(self, reader, writer):
        while True:
            try:
                first, h = await message(reader)
            except (asyncio.IncompleteReadError, OSError) as error:
                self.lost.append(str(error))
                return
            if not first.startswith("SIP/2.0"):
                continue
            code, call, method = int(first.split()[1]), h["call-id"][0], h["cseq"][0].split()[1]
            if method == "INVITE" and code == 180 and call in self.calls:
                self.delays.append(time.monotonic() - self.calls[call])
            elif method == "INVITE" and code >= 300:
                self.failed.append(first)
                writer.write(lines("ACK urn:service:sos SIP/2.0", [*self.fixed(call, "INVITE", 1)[:3], ("CSeq", "1 ACK"), ("To", h["to"][0])]))
            elif method == "INVITE" and code == 200:
                routes = [("Route", r) for r in reversed(",".join(h.get("record-route", [])).split(",")) if r]
                target = re.search("<([^>]+)>", h["contact"][0])[1]
                for verb, number in (("ACK", 1), ("BYE", 2)):
                    writer.write(lines(f"{verb} {target} SIP/2.0", [*self.fixed(call, verb, number), *routes, ("To", h["to"][0])]))
            elif method == "BYE":
                self.ended += 1

    async def settled(self, number):
        """All calls so far have ended, one way or the other."""
        end = time.monotonic() + 60
        while self.ended + len(self.failed) < number and time.monotonic() < end:
            await asyncio.sleep(0.05)

    async def run(self, rate, seconds, begin):
        """begin: called when the cache is warm."""
        await self.connect()
        for i in range(PLACES):
            self.invite(i)
            await self.settled(i + 1)
        begin()
        self.delays.clear()
        start, late = time.monotonic(), 0.0
        for i in range(rate * seconds):
            due = start + i / rate
            now = time.monotonic()
            if now < due:
                await asyncio.sleep(due - now)
            late = max(late, now - due)
            self.invite(PLACES + i)
        took = time.monotonic() - start
        await self.settled(PLACES + rate * seconds)
        return took, late


def retransmitted(net):
    """TCP segments that were sent again because an ACK was missing; tail loss probes are not counted."""
    rows = [x.split() for x in net.run(net.gateway, "cat", "/proc/net/netstat").stdout.splitlines() if x.startswith("TcpExt:")]
    counters = dict(zip(*rows))
    return sum(int(counters[name]) for name in ("TCPTimeouts", "TCPFastRetrans", "TCPSlowStartRetrans"))


def processor_seconds(program):
    """Of all processes of a Kamailio, or of xcipherd."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == program.process.pid:  # the process group
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def counter(proxy, group, name):
    return int(re.search(r"(\d+)\s*$", proxy.rpc("cnt.get", group, name))[1])


def measure(net, folder, options):
    """(whether nothing failed and nothing was sent twice, Callers)"""
    esinet_places.together(net)
    made = esinet.Certificates(folder)
    made_for = {name: made.make(name, address) for name, address in esinet_places.ADDRESS.items()}
    lost = esinet.LostServer(net, folder, made_for["lost"], made.ca, count=options.boundaries)
    border = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", addresses=("outside/10.200.1.1", "esinet/10.200.2.1")).wait_ready()
    listener = ng.socket_in(net.gateway, kind=socket.SOCK_STREAM)
    listener.bind((esinet.PSAP, 5061))
    listener.listen(16)
    twice = multiprocessing.Value("i", 0)
    psap = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(Psap(listener, made_for["psap"], made.ca, twice).run()), daemon=True)
    psap.start()
    esrp = esinet.Proxy(net, folder, "esrp", esinet.ESRP, made_for["esrp"], before=("taskset", "-c", str(options.core)), XC_CA=made.ca,
                        XC_LOST=f"https://{esinet.LOST}:8443/lost", XC_PSAP=esinet.uri("default", esinet.PSAP))
    callers = Callers(net, made_for["vsp"], made.ca)
    at = {}

    def now():
        return {"segments": retransmitted(net), "ng": counter(esrp, "xcipher", "retransmissions"), "lost": counter(esrp, "xlost", "exchanges"), "busy": processor_seconds(esrp),
                "border": processor_seconds(border)}
    took, late = asyncio.run(callers.run(options.rate, options.seconds, lambda: at.update(now())))
    spent = {k: v - at[k] for k, v in now().items()}
    delays, count = sorted(callers.delays), options.rate * options.seconds
    print(f"{count} calls in {took:.1f} s ({count / took:.0f} a second, the latest {late * 1000:.0f} ms late), {len(callers.failed)} refused, {callers.ended - PLACES} ended by BYE")
    if delays:
        print(f"INVITE to 180: p50 {delays[len(delays) // 2] * 1000:.1f} ms, p95 {delays[int(len(delays) * .95)] * 1000:.1f} ms, most {delays[-1] * 1000:.1f} ms")
    print(f"ESRP: {spent['busy'] / took * 100:.0f} % of core {options.core}; xcipherd: {spent['border'] / took * 100:.0f} % of another; LoST queries: {spent['lost']}; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"sent twice: {spent['ng']} ng commands, {spent['segments']} TCP segments, {twice.value} SIP requests")
    good = callers.ended - PLACES == count and not callers.failed and not callers.lost and not spent["ng"] and not spent["segments"] and not twice.value
    if callers.failed or callers.lost:
        print(f"connections lost: {len(callers.lost)}; refusals: {callers.failed[:1]}")
        print("\n".join([line for line in esrp.text().splitlines() if re.search("ERROR|CRITICAL|WARNING|BUG", line)][:12]))
    psap.terminate()
    psap.join()
    esrp.stop()
    lost.stop()
    border.stop()
    return good, callers


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rate", type=int, default=200)
    p.add_argument("--seconds", type=int, default=20)
    p.add_argument("--core", type=int, default=0)
    p.add_argument("--boundaries", type=int, default=500)
    options = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder, netns.Net(("caller", "taker1", "taker2")) as net:
        good, _ = measure(net, folder, options)
    print("no call failed and nothing was sent twice" if good else "NOT met: see above")
    sys.exit(not good)


if __name__ == "__main__":
    main()
