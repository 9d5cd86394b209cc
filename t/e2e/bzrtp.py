# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends of ZRTP (RFC 6189) by libbzrtp, by ctypes: packets in, packets out."""
import ctypes as c

KEY_AGREEMENTS = 0x08
CIPHERS = {0x21: "AES_CM_128_HMAC_SHA1_", 0x22: "AES_192_CM_HMAC_SHA1_", 0x23: "AES_256_CM_HMAC_SHA1_"}
TAGS = {0x31: "32", 0x32: "80"}
LIBRARY = "libbzrtp.so.0"
STATUS = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_uint8, c.c_uint8, c.c_char_p)
SEND = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_uint8), c.c_uint16)


class Secrets(c.Structure):
    _fields_ = [(name, kind) for n in ("key", "salt", "peer_key", "peer_salt") for name, kind in ((n, c.c_void_p), (n + "_len", c.c_uint8))] + [
        ("cipher", c.c_uint8), ("cipher_key_len", c.c_uint8), ("auth_tag", c.c_uint8), ("sas", c.c_char_p), ("sas_len", c.c_uint8)]


SECRETS = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Secrets), c.c_uint8)
START = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Secrets), c.c_int32)
EXPORT = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_uint8)


class Callbacks(c.Structure):
    _fields_ = [("status", STATUS), ("level", c.c_int), ("send", SEND), ("secrets", SECRETS), ("start", START), ("export", EXPORT)]


def load():
    try:
        lib = c.CDLL(LIBRARY)
    except OSError:
        return None
    lib.bzrtp_createBzrtpContext.restype = c.c_void_p
    return lib


def have():
    return load() is not None


class Cache:
    """Retained secrets of a terminal, in a database in memory: what it keeps from one call to the next."""

    def __init__(self):
        self.sqlite, self.db = c.CDLL("libsqlite3.so.0"), c.c_void_p()
        assert self.sqlite.sqlite3_open(b":memory:", c.byref(self.db)) == 0
        load().bzrtp_initCache(self.db)

    def close(self):
        self.sqlite.sqlite3_close(self.db)


class End:
    """One stream of a terminal. send() gets each packet to send."""
    ends, number = {}, 0

    def __init__(self, send, ssrc, start=True, agreements=(), cache=None, first=None):
        """agreements: supported key agreements, by their numbers in bzrtp.h; none: all of the library. first: another stream of the
        same terminal, which must be secure before this one starts."""
        self.lib, self.send, self.ssrc = load(), send, c.c_uint32(ssrc)
        self.secure, self.sas, self.keys, self.verified = False, None, {}, None
        End.number += 1
        self.number = End.number
        End.ends[self.number] = self
        self.context = first.context if first else self._make(agreements, cache)
        if first:
            assert self.lib.bzrtp_addChannel(self.context, self.ssrc) == 0
        assert self.lib.bzrtp_setClientData(self.context, self.ssrc, c.c_void_p(self.number)) == 0
        if start:
            self.start()

    def _make(self, agreements, cache):
        # Keep references: the library calls them until it is closed.
        self.callbacks = Callbacks(STATUS(), 0, SEND(lambda d, p, n: End.ends[d]._sends(p, n)), SECRETS(lambda d, s, part: End.ends[d]._keys(s, part)),
                                   START(lambda d, s, v: End.ends[d]._starts(s, v)), EXPORT())
        context = c.c_void_p(self.lib.bzrtp_createBzrtpContext())
        assert self.lib.bzrtp_setCallbacks(context, c.byref(self.callbacks)) == 0
        if cache:
            assert self.lib.bzrtp_setZIDCache(context, cache.db, b"sip:terminal@example.org", b"sip:relay@example.org") == 0
        if agreements:
            self.lib.bzrtp_setSupportedCryptoTypes(context, c.c_uint8(KEY_AGREEMENTS), (c.c_uint8 * 7)(*agreements), c.c_uint8(len(agreements)))
        assert self.lib.bzrtp_initBzrtpContext(context, self.ssrc) == 0
        return context

    def verify(self):
        """The user of the terminal has compared the SAS."""
        self.lib.bzrtp_SASVerified(self.context)

    def start(self):
        assert self.lib.bzrtp_startChannelEngine(self.context, self.ssrc) == 0

    def hello_hash(self):
        """The value of a=zrtp-hash."""
        room = c.create_string_buffer(200)
        assert self.lib.bzrtp_getSelfHelloHash(self.context, self.ssrc, room, c.c_size_t(len(room))) == 0
        return room.value.decode()

    def expect(self, value):
        """The other end's Hello must have the hash of its a=zrtp-hash."""
        text = value.encode()
        assert self.lib.bzrtp_setPeerHelloHash(self.context, self.ssrc, c.c_char_p(text), c.c_size_t(len(text))) == 0

    def _keys(self, secrets, part):
        s = secrets.contents
        if part == 1:
            self.keys["tx"] = c.string_at(s.key, s.key_len) + c.string_at(s.salt, s.salt_len)
        else:
            self.keys["rx"] = c.string_at(s.peer_key, s.peer_key_len) + c.string_at(s.peer_salt, s.peer_salt_len)
        self.suite = CIPHERS[s.cipher] + TAGS[s.auth_tag]
        return 0

    def _sends(self, packet, length):
        self.send(bytes(packet[:length]))
        return 0

    def _starts(self, secrets, verified):
        self.secure, self.sas, self.verified = True, secrets.contents.sas, verified
        return 0

    def tick(self, now_ms):
        self.lib.bzrtp_iterate(self.context, self.ssrc, c.c_uint64(now_ms))

    def take(self, packet):
        room = (c.c_uint8 * len(packet)).from_buffer_copy(packet)
        self.lib.bzrtp_processMessage(self.context, self.ssrc, room, c.c_uint16(len(packet)))

    def close(self):
        """The first stream goes last."""
        self.lib.bzrtp_destroyBzrtpContext(self.context, self.ssrc)
        del End.ends[self.number]
