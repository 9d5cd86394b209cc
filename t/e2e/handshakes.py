# SPDX-License-Identifier: GPL-2.0-or-later
"""Many DTLS-SRTP terminals in one process, with OpenSSL by Python, with or without ICE. For benches; needs python3-openssl of any version.

    handshakes.py CERTIFICATE RATE <terminals.json

The input is a list of {"port": own, "to": the relay's, "ice": [own name, own password, the relay's, the relay's] or null}. RATE terminals begin per
second. Each ends its handshake with an SRTP packet, by which the relay knows that it is over. A line with the number of completed
handshakes and the seconds that they took is printed. Then the process answers ICE checks until its input ends."""
import json
import os
import select
import socket
import subprocess
import sys
import time

import ice
import relay
import srtp

sys.path.insert(0, os.path.join(os.environ.get("BUILD_WEBRTC", os.path.join(relay.ROOT, "build", "webrtc")), "python"))
RELAY, ADDRESS, PROFILE = "10.200.2.1", "10.200.2.2", "SRTP_AES128_CM_SHA1_80"
FIRST_REPEAT, LOOK_AGAIN = 1.0, 0.1  # seconds


def certificate(folder):
    """Its path, and its fingerprint."""
    path = os.path.join(folder, "cert")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=t",
                    "-keyout", path + ".key", "-out", path], check=True, capture_output=True)
    text = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-fingerprint", "-sha256"], check=True, capture_output=True, text=True).stdout
    return path, text.strip().partition("=")[2]


def spawn(net, cert, rate, terminals):
    """The process, begun. Its first line is printed when all handshakes are over."""
    p = net.spawn(net.terminal["callee"], [sys.executable, __file__, cert, str(rate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdin.write(json.dumps(terminals) + "\n")
    p.stdin.flush()
    return p


class Terminal:
    def __init__(self, ctx, ssl, port, to, names):
        self.ssl, self.names, self.done, self.due, self.begun = ssl, names, False, None, False
        self.c = ssl.Connection(ctx, None)
        self.c.set_connect_state()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((ADDRESS, port))
        self.socket.connect((RELAY, to))

    def begin(self):
        if not self.names:
            self.go_on()
            return
        ours, _, theirs, password = self.names
        body = ice.attribute(ice.USERNAME, f"{theirs}:{ours}".encode()) + ice.attribute(ice.PRIORITY, b"\x6e\x00\x00\xff")
        body += ice.attribute(ice.CONTROLLING, b"\xff" * 8) + ice.attribute(ice.USE_CANDIDATE, b"")
        self.socket.send(ice.message(ice.REQUEST, body, password))
        self.due = time.monotonic() + 0.5

    def answer_check(self, packet):
        """The handshake begins after the relay's own check: from then on it believes this address."""
        if int.from_bytes(packet[:2], "big") != ice.REQUEST:
            return
        number = packet[8:20]
        self.socket.send(ice.message(ice.SUCCESS, ice.mapped(self.socket.getpeername(), number), self.names[1], number))
        if not self.done:
            self.go_on()

    def take(self):
        packet = self.socket.recv(16384)
        if packet[0] < 4:
            self.answer_check(packet)
        elif 20 <= packet[0] < 64:
            # Each datagram by itself: OpenSSL's memory joins them, which it accepts.
            self.c.bio_write(packet)
            if not self.done:
                self.go_on()

    def go_on(self):
        self.begun = True
        try:
            self.c.do_handshake()
            self.done = True
        except self.ssl.WantReadError:
            pass
        self.due = time.monotonic() + (FIRST_REPEAT if self.flush() else LOOK_AGAIN)
        if self.done:
            m = self.c.export_keying_material(b"EXTRACTOR-dtls_srtp", 60)
            tx = srtp.Session("AES_CM_128_HMAC_SHA1_80", m[:16] + m[32:46], srtp.OUTBOUND)
            self.socket.send(tx.protect(bytes((0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7)) + bytes(160)))

    def flush(self):
        """False if there was nothing to send."""
        try:
            self.socket.send(self.c.bio_read(16384))
        except self.ssl.WantReadError:
            return False
        return True

    def repeat(self):
        """A check or a flight was lost."""
        if self.begun:
            self.go_on()
        else:
            self.begin()


def main(cert, rate):
    from OpenSSL import SSL
    ctx = SSL.Context(SSL.DTLS_METHOD)
    ctx.use_certificate_file(cert)
    ctx.use_privatekey_file(cert + ".key")
    ctx.set_tlsext_use_srtp(PROFILE.encode())
    todo, poll, running = json.loads(sys.stdin.readline()), select.epoll(), {}
    count, begun, told = len(todo), time.monotonic(), False
    poll.register(0, select.EPOLLIN | select.EPOLLHUP)
    while True:
        while todo and (time.monotonic() - begun) * rate >= count - len(todo):
            t = todo.pop(0)
            terminal = Terminal(ctx, SSL, t["port"], t["to"], t["ice"])
            running[terminal.socket.fileno()] = terminal
            poll.register(terminal.socket, select.EPOLLIN)
            terminal.begin()
        for fd, _ in poll.poll(0.002 if todo else 0.05):
            if fd == 0:
                return
            running[fd].take()
        for t in running.values():
            if t.due and time.monotonic() > t.due and not t.done:
                t.repeat()
        over = sum(t.done for t in running.values())
        if not told and (over == count or time.monotonic() > begun + count / rate + 30):
            print(over, f"{time.monotonic() - begun:.2f}", flush=True)
            told = True


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
