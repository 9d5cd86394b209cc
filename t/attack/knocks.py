# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets for the relay itself, as a stranger makes them: STUN, DTLS and ZRTP. Each has the mark in bytes that no answer repeats, so the checker
notices if the relay forwards the packet."""
import hashlib

import ice
from zrtp_terminal import peer_wire as wire

SOFTWARE = 0x8022


def block(size, data):
    return len(data).to_bytes(size, "big") + data


def check(r, mark):
    """A check, by a password that the stranger cannot know; sometimes of no user."""
    user = r.choice((b"", b"abcdefgh:wxyz", r.randbytes(200)))
    body = ice.attribute(ice.USERNAME, user) if user else b""
    body += ice.attribute(SOFTWARE, mark) + ice.attribute(ice.PRIORITY, r.randbytes(4))
    body += ice.attribute(r.choice((ice.CONTROLLING, 0x8029)), r.randbytes(8)) + (ice.attribute(ice.USE_CANDIDATE, b"") if r.random() < 0.5 else b"")
    return ice.message(ice.REQUEST, body, r.choice(("", "p" * 24)))


def response(_, mark):
    """A response to a check that the stranger has not seen."""
    return ice.message(ice.SUCCESS, ice.attribute(SOFTWARE, mark), "p" * 24)


def client_hello(r, mark):
    """Of DTLS 1.2, without a cookie or with a wrong one."""
    extensions = b"".join(n.to_bytes(2, "big") + block(2, data) for n, data in (
        (14, block(2, b"\0\1") + b"\0"), (10, block(2, b"\0\x17")), (11, block(1, b"\0")), (13, block(2, b"\4\3"))))
    cookie = r.choice((b"", r.randbytes(20), r.randbytes(255)))
    body = b"\xfe\xfd" + r.randbytes(32) + block(1, mark) + block(1, cookie) + block(2, b"\xc0\x2b") + block(1, b"\0") + block(2, extensions)
    size = len(body).to_bytes(3, "big")
    return b"\x16\xfe\xff\0\0" + bytes(6) + block(2, b"\1" + size + bytes(5) + size + body)


def record(r, mark):
    """An alert, a ChangeCipherSpec, or a record that seems encrypted."""
    kind, data = r.choice(((21, b"\2\x28"), (20, b"\1"), (23, mark + r.randbytes(60)), (22, b"\x0e" + bytes(11))))
    return bytes([kind]) + b"\xfe\xfd" + r.choice((b"\0\0", b"\0\1")) + r.randbytes(6) + block(2, data)


def hello(r, mark):
    chain = [r.randbytes(32)]
    for _ in range(3):
        chain.append(hashlib.sha256(chain[-1]).digest())
    text = wire.hello(chain, mark, 0, {kind: [name] for kind, name in wire.MANDATORY.items()})
    return wire.packet(text, r.getrandbits(16), r.getrandbits(32))


def commit(r, mark):
    names = b"".join(wire.MANDATORY.values())
    text = wire.message(b"Commit  ", r.randbytes(32), mark, names, r.randbytes(32), bytes(8))
    return wire.packet(text[:-8] + wire.seal(r.randbytes(32), text[:-8]), r.getrandbits(16), r.getrandbits(32))


ALL = (check, response, client_hello, record, hello, commit)
