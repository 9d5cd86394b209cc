# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets and messages of ZRTP by RFC 6189, section 5: bytes to fields and back. It shares no code with the daemon."""
import dataclasses
import hashlib
import hmac

COOKIE, PREAMBLE, VERSION = b"ZRTP", b"PZ", b"1.10"
KINDS = ("hash", "cipher", "tag", "agreement", "sas")
MANDATORY = {"hash": b"S256", "cipher": b"AES1", "tag": b"HS32", "agreement": b"DH3k", "sas": b"B32 "}
TYPES = (b"Hello   ", b"HelloACK", b"Commit  ", b"DHPart1 ", b"DHPart2 ", b"Confirm1", b"Confirm2", b"Conf2ACK", b"Error   ", b"ErrorACK",
         b"GoClear ", b"ClearACK", b"SASrelay", b"RelayACK", b"Ping    ", b"PingACK ")
# Bytes between the algorithms and the MAC of a Commit; any other agreement has an hvi.
COMMIT_REST = {b"Mult": 16, b"Prsh": 24}
SIGNED, MITM, PASSIVE = 0x40, 0x20, 0x10  # flags of a Hello
ENROL, VERIFIED, CLEAR, DISCLOSED = 8, 4, 2, 1  # flags of a Confirm


class Dropped(Exception):
    """A packet that is not used. The exchange goes on."""


class Failed(Exception):
    """Ends the exchange with an Error message."""

    def __init__(self, code):
        super().__init__(f"error {code:#x}")
        self.code = code


def sha(data):
    """The implicit hash (5.1.2.2)."""
    return hashlib.sha256(data).digest()


def seal(key, message):
    """The implicit MAC, 64 bits."""
    return hmac.new(key, message, "sha256").digest()[:8]


def _table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        yield n


TABLE = tuple(_table())


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def message(kind, *parts):
    body = b"".join(parts)
    assert len(kind) == 8 and len(body) % 4 == 0
    return PREAMBLE + (3 + len(body) // 4).to_bytes(2, "big") + kind + body


def packet(text, number, ssrc):
    out = b"\x10\0" + (number & 0xffff).to_bytes(2, "big") + COOKIE + ssrc.to_bytes(4, "big") + text
    return out + crc32c(out).to_bytes(4, "little")


def unpack(data):
    """Type, message and SSRC of a packet."""
    if len(data) < 28 or data[0] >> 4 != 1 or data[4:8] != COOKIE:
        raise Dropped("not ZRTP")
    if crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise Dropped("CRC")
    text = data[12:-4]
    if text[:2] != PREAMBLE or 4 * int.from_bytes(text[2:4], "big") != len(text):
        raise Dropped("length")
    return text[4:12], text, int.from_bytes(data[8:12], "big")


def kind_of(data):
    """Type of a packet that is ZRTP; else empty."""
    return data[16:24] if data[4:8] == COOKIE and len(data) >= 28 else b""


def sized(text, *sizes):
    """Divides the bytes after the type into fields of these sizes."""
    if len(text) != 12 + sum(sizes):
        raise Dropped("fields")
    out, at = [], 12
    for size in sizes:
        out.append(text[at:at + size])
        at += size
    return out


@dataclasses.dataclass
class Hello:
    text: bytes
    version: bytes
    h3: bytes
    zid: bytes
    flags: int
    lists: dict

    @classmethod
    def read(cls, text):
        if len(text) < 88:
            raise Dropped("short Hello")
        counts = int.from_bytes(text[76:80], "big")
        numbers = [min(7, counts >> shift & 15) for shift in (16, 12, 8, 4, 0)]
        if len(text) != 88 + 4 * sum(numbers):
            raise Dropped("lists of a Hello")
        lists, at = {}, 80
        for kind, n in zip(KINDS, numbers):
            names = [text[at + 4 * i:at + 4 * i + 4] for i in range(n)]
            at += 4 * n
            lists[kind] = names + [MANDATORY[kind]] * (MANDATORY[kind] not in names)
            if kind == "tag" and b"HS80" not in names:
                lists[kind].append(b"HS80")
        return cls(text, text[12:16], text[32:64], text[64:76], text[76], lists)

    def made_by(self, h2):
        """The MAC at its end has this key."""
        return hmac.compare_digest(seal(h2, self.text[:-8]), self.text[-8:])


def hello(chain, zid, flags, lists, version=VERSION):
    """lists: by kind, the preferred algorithm first."""
    counts = flags << 24
    for kind, shift in zip(KINDS, (16, 12, 8, 4, 0)):
        counts |= len(lists[kind]) << shift
    names = b"".join(name for kind in KINDS for name in lists[kind])
    text = message(b"Hello   ", version, b"xcipher test".ljust(16), chain[3], zid, counts.to_bytes(4, "big"), names, bytes(8))
    return text[:-8] + seal(chain[2], text[:-8])


@dataclasses.dataclass
class Commit:
    text: bytes
    h2: bytes
    zid: bytes
    chosen: dict
    rest: bytes  # hvi; nonce; nonce and keyID

    @classmethod
    def read(cls, text):
        if len(text) < 84:
            raise Dropped("short Commit")
        h2, zid, names, rest, _ = sized(text, 32, 12, 20, COMMIT_REST.get(text[68:72], 32), 8)
        return cls(text, h2, zid, {kind: names[4 * i:4 * i + 4] for i, kind in enumerate(KINDS)}, rest)

    def weight(self):
        """Contention: the greater one wins (4.2)."""
        return int.from_bytes(self.rest[:16] if self.chosen["agreement"] in COMMIT_REST else self.rest, "big")


def commit(chain, zid, chosen, rest):
    text = message(b"Commit  ", chain[2], zid, *(chosen[kind] for kind in KINDS), rest)
    return finished(text, chain[1])


def finished(text, key):
    """With its MAC."""
    text = PREAMBLE + (len(text) // 4 + 2).to_bytes(2, "big") + text[4:]
    return text + seal(key, text)


def dhpart(kind, chain, ids, value):
    return finished(message(kind, chain[1], *ids, value), chain[0])


@dataclasses.dataclass
class Part:
    text: bytes
    h1: bytes
    ids: list
    value: bytes

    @classmethod
    def read(cls, text, size):
        h1, *ids, value, _ = sized(text, 32, 8, 8, 8, 8, size, 8)
        return cls(text, h1, ids, value)
