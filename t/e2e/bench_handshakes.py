#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""DTLS handshakes and running calls on one xcipherd: delay of 500 SRTP calls with and without 200 handshakes per second, in turns, and the
memory of a DTLS call beside an SDES call. Sudo; needs aiortc's Python modules (tools/webrtc-peers.sh).

    bench_handshakes.py [--calls=500] [--rate=200] [--seconds=5] [--rounds=3]

The clients are OpenSSL by Python on the same machine, and take more processor time than the relay. The calls are signalled before the clock
starts. "else" is the share of the machine that all other programs took, the clients included."""
import argparse
import os
import select
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import bench_measure  # noqa: E402
import calls  # noqa: E402
import netns  # noqa: E402
import relay  # noqa: E402

sys.path.append(os.path.join(os.environ.get("BUILD_WEBRTC", os.path.join(relay.ROOT, "build", "webrtc")), "python"))
CLIENT, FIRST = "10.200.2.2", 10000


# --- The clients: a process in the terminal's namespace ------------------------------------------

def certificate(folder):
    path = os.path.join(folder, "cert")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=t",
                    "-keyout", path + ".key", "-out", path], check=True, capture_output=True)
    text = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-fingerprint", "-sha256"], check=True, capture_output=True, text=True).stdout
    return path, text.strip().partition("=")[2]


def clients(cert, rate, first, ports):
    """Starts this many handshakes per second, from ports from "first" on. An SRTP packet ends each handshake for the relay.
    Prints how many completed."""
    import socket

    import srtp
    from OpenSSL import SSL
    ctx = SSL.Context(SSL.DTLS_METHOD)
    ctx.use_certificate_file(cert)
    ctx.use_privatekey_file(cert + ".key")
    ctx.set_tlsext_use_srtp(b"SRTP_AES128_CM_SHA1_80")
    poll, running, completed, begun = select.epoll(), {}, 0, time.monotonic()

    def go_on(s, c):
        nonlocal completed
        try:
            c.do_handshake()
            completed += 1
            poll.unregister(s)
            m = c.export_keying_material(b"EXTRACTOR-dtls_srtp", 60)
            tx = srtp.Session("AES_CM_128_HMAC_SHA1_80", m[:16] + m[32:46], srtp.OUTBOUND)
            s.send(tx.protect(bytes((0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7)) + bytes(160)))
        except SSL.WantReadError:
            pass
        try:
            s.send(c.bio_read(16384))
        except SSL.WantReadError:
            pass
    todo = list(enumerate(ports))
    while completed < len(ports) and time.monotonic() < begun + len(ports) / rate + 30:
        while todo and (time.monotonic() - begun) * rate >= todo[0][0]:
            i, port = todo.pop(0)
            s, c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), SSL.Connection(ctx, None)
            s.bind((CLIENT, first + i))
            s.connect(("10.200.2.1", port))
            c.set_connect_state()
            running[s.fileno()] = (s, c)
            poll.register(s, select.EPOLLIN)
            go_on(s, c)
        for fd, _ in poll.poll(0.002):
            s, c = running[fd]
            # Each datagram by itself: OpenSSL's memory joins them, which it accepts.
            c.bio_write(s.recv(16384))
            go_on(s, c)
    print(completed, f"{time.monotonic() - begun:.2f}", flush=True)


# --- The relay -----------------------------------------------------------------------------------

def dtls_call(daemon, number, fingerprint, port):
    """A plain terminal and a DTLS client. Returns the relay's port for the client."""
    call_id, tags = f"dtls-{number}", {"from_tag": "a"}
    sdp = calls.sdp("10.200.1.2", 8000)
    offered = calls.ok(daemon.client.call("offer", call_id=call_id, sdp=sdp, transport_protocol="UDP/TLS/RTP/SAVP", ICE="remove",
                                          rtcp_mux=["offer"], SDES=["off"], direction=["a", "b"], **tags))["sdp"]
    answer = calls.sdp(CLIENT, port, profile="UDP/TLS/RTP/SAVP", extra=f"a=setup:active\r\na=rtcp-mux\r\na=fingerprint:sha-256 {fingerprint}\r\n")
    calls.ok(daemon.client.call("answer", call_id=call_id, sdp=answer, to_tag="b", **tags))
    return calls.parse(offered)["port"]


class Rig:
    def __init__(self, net, folder, args):
        self.net, self.args, self.number = net, args, 0
        self.cert, self.print = certificate(folder)
        self.daemon = relay.Xcipherd(net, "--workers=1", f"--worker-priority={args.worker_priority}", addresses=("a/10.200.1.1", "b/10.200.2.1")).wait_ready()

    def dtls(self, count):
        """Relay ports of this many calls that await a handshake, and the first port of the clients."""
        first = FIRST + self.number % 9000
        ports = [dtls_call(self.daemon, self.number + i, self.print, first + i) for i in range(count)]
        self.number += count
        return first, ports

    def handshakes(self, first, ports):
        return self.net.spawn(self.net.terminal["callee"], [sys.executable, __file__, "--client", self.cert, str(self.args.rate), str(first),
                                                           *map(str, ports)], stdout=subprocess.PIPE, text=True)

    def end(self, first_number, count):
        for i in range(count):
            self.daemon.client.call("delete", call_id=f"dtls-{first_number + i}", from_tag="a", delete_delay=0)


def running(rig):
    """Calls are new in each turn, because srtpload begins with index 0."""
    return [calls.Call(rig.daemon.client, i, "80", "32", flags={"direction": ["a", "a"]}).setup() for i in range(rig.args.calls)]


def delays(rig):
    """p50 and p99 in us of the running calls, by turns without and with handshakes."""
    args, out = rig.args, {False: [], True: []}
    for turn in range(2 * args.rounds):
        busy, number, process, talk = turn % 2 == 1, rig.number, None, running(rig)
        if busy:
            process = rig.handshakes(*rig.dtls(args.rate * args.seconds))
        elsewhere = bench_measure.Elsewhere(rig.daemon.pid())
        r = bench_measure.srtpload(rig.net, "".join(c.spec() for c in talk), 2 * len(talk), 100 * len(talk), args.seconds)
        r.update(elsewhere.since(r["seconds"]))
        r["handshakes"] = process.communicate()[0].split() if busy else ""
        out[busy].append(r)
        print({k: r[k] for k in ("p50_us", "p99_us", "lost", "else_percent", "handshakes") if k in r}, flush=True)
        rig.end(number, rig.number - number)
        for c in talk:
            c.delete()
    return out


def memory(rig):
    """KiB of resident memory per call, by turns: SDES, DTLS after the handshake. A first batch of each fills what all calls share."""
    n, rss, got = rig.args.calls, rig.daemon.rss_kib, {"SDES": [], "DTLS": []}
    for turn in range(3):
        start = rss()
        for i in range(n):
            calls.Call(rig.daemon.client, n * turn + i, "plain", "80", ip=("10.200.1.2", CLIENT), ports=(8000, 9000),
                       flags={"direction": ["a", "b"]}).setup()
        sdes = rss()
        rig.handshakes(*rig.dtls(n)).communicate()
        time.sleep(12)  # a terminal that sends nothing is held for 10 s
        got["SDES"].append((sdes - start) / n)
        got["DTLS"].append((rss() - sdes) / n)
    print("KiB per call: " + ", ".join(f"{k} " + ", ".join(f"{x:.1f}" for x in v) for k, v in got.items()), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--memory-only", action="store_true")
    p.add_argument("--worker-priority", default="0")
    for name, default in (("calls", 500), ("rate", 200), ("seconds", 5), ("rounds", 3)):
        p.add_argument("--" + name, type=int, default=default)
    args = p.parse_args()
    import tempfile
    with netns.Net(("caller", "callee")) as net, tempfile.TemporaryDirectory() as folder:
        rig = Rig(net, folder, args)
        memory(rig)
        rig.daemon.stop()
        if args.memory_only:
            return
        rig = Rig(net, folder, args)
        bench_measure.quiet_terminal(net)
        out = delays(rig)
        for busy, rows in out.items():
            print(f"{args.rate if busy else 0} handshakes per second: " + ", ".join(
                f"{k} {statistics.median(r[k] for r in rows):.0f}" for k in ("p50_us", "p99_us") if k in rows[0]), flush=True)
        rig.daemon.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        clients(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), list(map(int, sys.argv[5:])))
    else:
        main()
