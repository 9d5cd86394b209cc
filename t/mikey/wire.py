# SPDX-License-Identifier: GPL-2.0-or-later
"""MIKEY's payloads as bytes (RFC 3830 6), written from the RFCs alone: it must not share a mistake with daemon/proto/mikey.c."""
import struct

PSK, PSK_VER, PK, PK_VER, DH, DH_RESP, ERROR, DHHMAC, DHHMAC_RESP, RSAR, RSAR_RESP = range(11)  # data types; RFC 4650, RFC 4738

LAST, KEMAC, PKE, DH_VALUE, SIGN, T, ID, CERT, CHASH, V, SP, RAND, ERR = range(13)  # payloads
KEY_DATA, GEN_EXT = 20, 21

NTP_UTC, NTP, COUNTER = range(3)  # types of T
NAI, URI = range(2)               # types of ID
X509, X509_URL, X509_SIGN, X509_ENCR = range(4)
TGK, TGK_SALT, TEK, TEK_SALT = range(4)  # of key data
VENDOR_ID, SDP_IDS, KEY_ID, CSB_ID = 0, 1, 3, 4  # of general extensions

AUTH_FAILURE, INVALID_TS, INVALID_PRF, INVALID_MAC, INVALID_EA, INVALID_HA, INVALID_DH, INVALID_ID, INVALID_CERT, INVALID_SP, \
    INVALID_SPPAR, INVALID_DT, UNSPECIFIED, UNSUPPORTED_TYPE = range(14)

DH_LEN = {0: 192, 1: 96, 2: 128}  # OAKLEY 5, 1, 2
MAC_LEN = {0: 0, 1: 20}
HASH_LEN = {0: 20, 1: 16}
T_LEN = {NTP_UTC: 8, NTP: 8, COUNTER: 4}


class Malformed(Exception):
    """The bytes are no MIKEY message."""


class Payload:
    """One payload. kind, and the fields of its type by name. start and end: where it was in a parsed message."""

    def __init__(self, kind, **fields):
        self.kind, self.fields = kind, fields
        self.start = self.end = 0
        self.__dict__.update(fields)

    def __repr__(self):
        return f"Payload({self.kind}, {self.fields})"


def kv_bytes(p):
    """Key validity data (6.14): its type and bytes."""
    if getattr(p, "mki", None):
        return 1, bytes([len(p.mki)]) + p.mki
    return 0, b""


def body(p):
    """The payload without its first byte, the number of the next one."""
    k = p.kind
    if k == KEMAC:
        return bytes([p.encr]) + struct.pack(">H", len(p.data)) + p.data + bytes([p.mac_alg]) + p.mac
    if k == PKE:
        return struct.pack(">H", p.cache << 14 | len(p.data)) + p.data
    if k == DH_VALUE:
        kv, data = kv_bytes(p)
        return bytes([p.group]) + p.value + bytes([kv]) + data
    if k == T:
        return bytes([p.type]) + p.value
    if k in (ID, CERT):
        return bytes([p.type]) + struct.pack(">H", len(p.data)) + p.data
    if k in (CHASH, V):
        return bytes([p.alg]) + p.data
    if k == SP:
        params = b"".join(bytes([t, len(v)]) + v for t, v in p.params)
        return bytes([p.number, p.protocol]) + struct.pack(">H", len(params)) + params
    if k == RAND:
        return bytes([len(p.data)]) + p.data
    if k == ERR:
        return bytes([p.number, 0, 0])
    if k == KEY_DATA:
        kv, data = kv_bytes(p)
        salt = struct.pack(">H", len(p.salt)) + p.salt if p.type in (TGK_SALT, TEK_SALT) else b""
        return bytes([p.type << 4 | kv]) + struct.pack(">H", len(p.data)) + p.data + salt + data
    if k == GEN_EXT:
        return bytes([p.type]) + struct.pack(">H", len(p.data)) + p.data
    raise ValueError(k)


def write_payloads(payloads):
    """Chained. A SIGN payload has no byte for the next one (6.5)."""
    out = b""
    for i, p in enumerate(payloads):
        if p.kind == SIGN:
            out += struct.pack(">H", p.type << 12 | len(p.data)) + p.data
        else:
            out += bytes([payloads[i + 1].kind if i + 1 < len(payloads) else LAST]) + body(p)
    return out


class Header:
    """HDR (6.1). sessions: (policy, ssrc, roc) of each crypto session, of which the first has the ID 1."""

    def __init__(self, data_type, csb_id, sessions, verify=False, prf=0, version=1, map_type=0):
        self.data_type, self.csb_id, self.sessions = data_type, csb_id, sessions
        self.verify, self.prf, self.version, self.map_type = verify, prf, version, map_type


def write(header, payloads):
    h = header
    head = struct.pack(">BBBBIBB", h.version, h.data_type, payloads[0].kind if payloads else LAST, h.verify << 7 | h.prf, h.csb_id,
                       len(h.sessions), h.map_type)
    return head + b"".join(struct.pack(">BII", *s) for s in h.sessions) + write_payloads(payloads)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if self.at + n > len(self.data):
            raise Malformed(f"{n} bytes at {self.at} of {len(self.data)}")
        self.at += n
        return self.data[self.at - n:self.at]

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack(">H", self.take(2))[0]

    def sized(self, table, number):
        if number not in table:
            raise Malformed(f"number {number}")
        return self.take(table[number])


def read_kv(r, kind):
    """The MKI; None without."""
    if kind == 0:
        return None
    if kind == 1:
        return r.take(r.u8())
    if kind == 2:
        r.take(r.u8())
        r.take(r.u8())
        return None
    raise Malformed(f"key validity {kind}")


def read_params(data):
    r, params = Reader(data), []
    while r.at < len(data):
        kind = r.u8()
        params.append((kind, r.take(r.u8())))
    return params


def read_body(r, k):
    if k == KEMAC:
        encr = r.u8()
        data = r.take(r.u16())
        alg = r.u8()
        return Payload(k, encr=encr, data=data, mac_alg=alg, mac=r.sized(MAC_LEN, alg))
    if k == PKE:
        n = r.u16()
        return Payload(k, cache=n >> 14, data=r.take(n & 0x3fff))
    if k == DH_VALUE:
        group = r.u8()
        value = r.sized(DH_LEN, group)
        return Payload(k, group=group, value=value, mki=read_kv(r, r.u8() & 15))
    if k == T:
        kind = r.u8()
        return Payload(k, type=kind, value=r.sized(T_LEN, kind))
    if k in (ID, CERT, GEN_EXT):
        kind = r.u8()
        return Payload(k, type=kind, data=r.take(r.u16()))
    if k in (CHASH, V):
        alg = r.u8()
        return Payload(k, alg=alg, data=r.sized(HASH_LEN if k == CHASH else MAC_LEN, alg))
    if k == SP:
        number, protocol = r.u8(), r.u8()
        return Payload(k, number=number, protocol=protocol, params=read_params(r.take(r.u16())))
    if k == RAND:
        return Payload(k, data=r.take(r.u8()))
    if k == ERR:
        return Payload(k, number=r.take(3)[0])
    if k == KEY_DATA:
        kinds = r.u8()
        data = r.take(r.u16())
        salt = r.take(r.u16()) if kinds >> 4 in (TGK_SALT, TEK_SALT) else b""
        return Payload(k, type=kinds >> 4, data=data, salt=salt, mki=read_kv(r, kinds & 15))
    raise Malformed(f"payload {k}")


def read_payloads(r, kind):
    payloads = []
    while kind != LAST:
        start = r.at
        if kind == SIGN:
            n = r.u16()
            p, kind = Payload(SIGN, type=n >> 12, data=r.take(n & 0xfff)), LAST
        else:
            following = r.u8()
            p, kind = read_body(r, kind), following
        p.start, p.end = start, r.at
        payloads.append(p)
    if r.at != len(r.data):
        raise Malformed(f"{len(r.data) - r.at} bytes after the last payload")
    return payloads


class Message:
    """A parsed message."""

    def __init__(self, data):
        r = Reader(data)
        version, data_type, kind, flags = r.take(4)
        csb_id = struct.unpack(">I", r.take(4))[0]
        count, map_type = r.u8(), r.u8()
        if version != 1 or map_type not in (0, 1):
            raise Malformed("version or map")
        sessions = [struct.unpack(">BII", r.take(9)) for _ in range(count)] if map_type == 0 else []
        self.raw = data
        self.header = Header(data_type, csb_id, sessions, bool(flags >> 7), flags & 0x7f, version, map_type)
        self.payloads = read_payloads(r, kind)

    def all(self, kind):
        return [p for p in self.payloads if p.kind == kind]

    def one(self, kind, optional=False):
        found = self.all(kind)
        if not found and not optional:
            raise Malformed(f"no payload {kind}")
        return found[0] if found else None
