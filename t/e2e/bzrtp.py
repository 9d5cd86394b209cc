# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends of ZRTP (RFC 6189) by libbzrtp, by ctypes: packets in, packets out."""
import ctypes as c

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


class End:
    """One terminal; calls send with each outgoing packet."""

    def __init__(self, send, ssrc):
        self.lib, self.send, self.ssrc = load(), send, c.c_uint32(ssrc)
        self.secure, self.sas = False, None
        # Keep references, because the library calls them while it lives.
        self.callbacks = Callbacks(STATUS(), 0, SEND(self._sends), SECRETS(lambda *_: 0), START(self._starts), EXPORT())
        self.context = c.c_void_p(self.lib.bzrtp_createBzrtpContext())
        assert self.lib.bzrtp_setCallbacks(self.context, c.byref(self.callbacks)) == 0
        assert self.lib.bzrtp_initBzrtpContext(self.context, self.ssrc) == 0
        assert self.lib.bzrtp_startChannelEngine(self.context, self.ssrc) == 0

    def _sends(self, _data, packet, length):
        self.send(bytes(packet[:length]))
        return 0

    def _starts(self, _data, secrets, _verified):
        self.secure, self.sas = True, secrets.contents.sas
        return 0

    def tick(self, now_ms):
        self.lib.bzrtp_iterate(self.context, self.ssrc, c.c_uint64(now_ms))

    def take(self, packet):
        room = (c.c_uint8 * len(packet)).from_buffer_copy(packet)
        self.lib.bzrtp_processMessage(self.context, self.ssrc, room, c.c_uint16(len(packet)))

    def close(self):
        self.lib.bzrtp_destroyBzrtpContext(self.context, self.ssrc)
