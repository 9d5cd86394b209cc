# SPDX-License-Identifier: GPL-2.0-or-later
"""An independent ng client: bencode over UDP, inside a namespace if wanted. Uses none of our code."""
import hmac
import os
import socket
import threading
import time


def encode(v):
    if isinstance(v, int):
        return b"i%de" % v
    if isinstance(v, str):
        v = v.encode()
    if isinstance(v, bytes):
        return b"%d:%s" % (len(v), v)
    if isinstance(v, (list, tuple)):
        return b"l" + b"".join(encode(x) for x in v) + b"e"
    return b"d" + b"".join(encode(k) + encode(x) for k, x in v.items()) + b"e"


def _decode(b, i):
    c = b[i:i + 1]
    if c == b"i":
        end = b.index(b"e", i)
        return int(b[i + 1:end]), end + 1
    if c in (b"l", b"d"):
        items = []
        i += 1
        while b[i:i + 1] != b"e":
            v, i = _decode(b, i)
            items.append(v)
        if c == b"l":
            return items, i + 1
        return dict(zip(items[::2], items[1::2])), i + 1
    colon = b.index(b":", i)
    n = int(b[i:colon])
    return b[colon + 1:colon + 1 + n].decode("utf-8", "surrogateescape"), colon + 1 + n


def decode(b):
    return _decode(b, 0)[0]


def socket_in(namespace, family=socket.AF_INET, kind=socket.SOCK_DGRAM, protocol=0):
    """A socket in the namespace, created by a thread that entered it."""
    made = []

    def make():
        if namespace:
            with open(f"/run/netns/{namespace}", "rb") as f:
                libc_setns(f.fileno())
        made.append(socket.socket(family, kind, protocol))

    t = threading.Thread(target=make)
    t.start()
    t.join()
    if not made:
        raise OSError(f"no socket in namespace {namespace}")
    return made[0]


def libc_setns(fd):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, 0x40000000):  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "setns")


def sign(key, cookie, body, seconds=None):
    """A signed cookie (daemon/proto/ng_auth.h). key: 32 bytes."""
    timed = cookie + b"~%010d" % (time.time() if seconds is None else seconds)
    return timed + b"~" + hmac.new(key, b"xcipher ng request 1\n" + timed + b"\n" + body, "sha256").hexdigest()[:32].encode()


def reply_mac(key, cookie, body):
    """Checks the signed cookie of a reply to this request."""
    return hmac.new(key, b"xcipher ng reply 1\n" + cookie + b"\n" + body, "sha256").hexdigest()[:32].encode()


class Client:
    """key: 32 bytes; with it requests are signed, and only signed replies are accepted."""

    def __init__(self, namespace=None, address=("127.0.0.1", 22222), key=None):
        self.key = key
        self.signed = (None, None)
        self.sock = socket_in(namespace)
        self.sock.connect(address)
        self.sock.settimeout(1)
        self.one_at_a_time = threading.Lock()  # a thread would drop the replies of another one

    def raw(self, datagram, timeout=10.0):
        """Sends raw bytes and returns the reply to that cookie, or None."""
        with self.one_at_a_time:
            return self.exchange(datagram, timeout)

    def exchange(self, datagram, timeout):
        cookie, _, body = datagram.partition(b" ")
        if self.key:
            # Retransmissions repeat the same datagram, or the request would be executed again.
            if self.signed[0] != datagram:
                self.signed = (datagram, sign(self.key, cookie, body))
            cookie = self.signed[1]
            datagram = cookie + b" " + body
            begin = cookie[:-32]
        else:
            begin = cookie + b" "
        end = time.monotonic() + timeout
        try:
            self.sock.settimeout(timeout)
            self.sock.send(datagram)
            while True:
                reply = self.sock.recv(65536)
                # A slow request was repeated, so it may get two replies.
                if reply.startswith(begin) and (not self.key or self.genuine(cookie, reply)):
                    return reply
                self.sock.settimeout(max(end - time.monotonic(), 0.001))
        except (TimeoutError, ConnectionRefusedError):
            return None

    def genuine(self, cookie, reply):
        said, _, body = reply.partition(b" ")
        return said[-32:] == reply_mac(self.key, cookie, body)

    def call(self, command, cookie=None, tries=60, **keys):
        """Repeats the request each second: a busy machine may hold up a daemon for long."""
        request = {"command": command}
        request.update({k.replace("_", "-"): v for k, v in keys.items()})
        cookie = cookie or os.urandom(8).hex()
        message = cookie.encode() + b" " + encode(request)
        for _ in range(tries):
            reply = self.raw(message, 1.0)
            if reply is not None:
                return decode(reply.partition(b" ")[2])
        raise TimeoutError(f"no reply to {command}")

    def close(self):
        self.sock.close()
