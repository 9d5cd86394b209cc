# SPDX-License-Identifier: GPL-2.0-or-later
"""The other end of a SIP phone's signalling: a user agent of few words in the gateway, so that a test sees and writes each SDP itself."""
import os
import re
import socket

import ng

PORT = 5080


def field(message, name):
    m = re.search(rf"^{name}:[ \t]*(.*?)\r?$", message, re.M | re.I)
    return m[1] if m else ""


def fields(message, name):
    return re.findall(rf"^{name}:[ \t]*(.*?)\r?$", message, re.M | re.I)


def body_of(message):
    return message.partition("\r\n\r\n")[2]


class Agent:
    """One call at a time with the phone at this address."""

    def __init__(self, namespace, own, phone, user="phone"):
        self.own, self.phone, self.user = own, phone, user
        self.socket = ng.socket_in(namespace, socket.AF_INET6 if ":" in own else socket.AF_INET)
        self.socket.bind((own, PORT))
        self.new_call()

    def new_call(self):
        self.call_id, self.tag, self.cseq = os.urandom(8).hex(), os.urandom(4).hex(), 0
        self.remote_tag, self.invite, self.target = "", "", f"sip:{self.user}@{self.host(self.phone)}:5060"

    @staticmethod
    def host(address):
        return f"[{address}]" if ":" in address else address

    def send(self, first, headers, body=""):
        kind = "Content-Type: application/sdp\r\n" if body else ""
        text = f"{first}\r\n" + "".join(f"{h}\r\n" for h in headers) + f"{kind}Content-Length: {len(body)}\r\n\r\n{body}"
        self.socket.sendto(text.encode(), (self.phone, 5060))

    def request(self, method, body="", cseq=None):
        here = f"{self.host(self.own)}:{PORT}"
        if cseq is None:
            self.cseq += 1
            cseq = self.cseq
        to = f"<sip:{self.user}@{self.host(self.phone)}>" + (f";tag={self.remote_tag}" if self.remote_tag else "")
        self.send(f"{method} {self.target} SIP/2.0", [
            f"Via: SIP/2.0/UDP {here};branch=z9hG4bK{os.urandom(6).hex()};rport", f"From: <sip:relay@{here}>;tag={self.tag}", f"To: {to}",
            f"Call-ID: {self.call_id}", f"CSeq: {cseq} {method}", f"Contact: <sip:relay@{here}>", "Max-Forwards: 70"], body)

    def reply(self, request, code, reason, body=""):
        to = field(request, "To")
        to += "" if ";tag=" in to else f";tag={self.tag}"
        self.send(f"SIP/2.0 {code} {reason}", [f"Via: {v}" for v in fields(request, "Via")] + [
            f"From: {field(request, 'From')}", f"To: {to}", f"Call-ID: {field(request, 'Call-ID')}", f"CSeq: {field(request, 'CSeq')}",
            f"Contact: <sip:relay@{self.host(self.own)}:{PORT}>"], body)

    def receive(self, want, seconds=60):
        """The next message whose first line begins so; others are answered or ignored."""
        self.socket.settimeout(seconds)
        while True:
            message = self.socket.recv(65536).decode("utf-8", "replace")
            if re.match(want, message):
                return message
            if message.startswith("BYE ") or message.startswith("OPTIONS "):
                self.reply(message, 200, "OK")
            elif re.match("SIP/2.0 [3-6]", message) and " INVITE" in field(message, "CSeq"):
                raise ValueError("the phone refuses: " + message.splitlines()[0])

    def call(self, sdp):
        """Calls the phone with this offer, or makes it a new offer in mid-call; its answer."""
        if not self.remote_tag:
            self.new_call()
        self.request("INVITE", sdp)
        answer = self.receive("SIP/2.0 2")
        self.remote_tag = re.search(r";tag=([^;\s]+)", field(answer, "To"))[1]
        self.target = re.search(r"<([^>]+)>", field(answer, "Contact"))[1]
        self.request("ACK", cseq=self.cseq)
        return body_of(answer)

    def called(self):
        """Waits for the phone's call; its offer."""
        self.new_call()
        self.invite = self.receive("INVITE ")
        self.call_id = field(self.invite, "Call-ID")
        self.remote_tag = re.search(r";tag=([^;\s]+)", field(self.invite, "From"))[1]
        self.target = re.search(r"<([^>]+)>", field(self.invite, "Contact"))[1]
        self.reply(self.invite, 180, "Ringing")
        return body_of(self.invite)

    def accept(self, sdp):
        self.reply(self.invite, 200, "OK", sdp)
        self.receive("ACK ")

    def hang_up(self):
        """Sends a BYE within the dialog, also if the other side called."""
        if self.remote_tag:
            self.request("BYE")
            try:
                self.receive("SIP/2.0 [2-6]", 2)
            except (TimeoutError, OSError):
                pass
        self.remote_tag = ""

    def close(self):
        self.socket.close()
