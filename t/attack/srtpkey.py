# SPDX-License-Identifier: GPL-2.0-or-later
"""SRTP and SRTCP (RFC 3711, RFC 6188, RFC 7714) for the attack test, on libcrypto's AES and Python's HMAC.

A suite may be written with a scheme of SRTP+, as in "AES_CM_128_HMAC_SHA1_80/chain": then t/preauth/reference.py makes the tags.
It shares no code with the daemon. Unlike libsrtp2 it protects any index under any key, which attackers need, and opens a
packet at any index, which the checker needs. controls.py compares it with libsrtp2.
"""
import ctypes
import functools
import hashlib
import hmac
import os
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "preauth"))

import reference  # noqa: E402

SUITES = {  # name: (AES key length, GCM, SRTP tag length)
    "AES_CM_128_HMAC_SHA1_80": (16, False, 10), "AES_CM_128_HMAC_SHA1_32": (16, False, 4),
    "AES_256_CM_HMAC_SHA1_80": (32, False, 10), "AES_256_CM_HMAC_SHA1_32": (32, False, 4),
    "AEAD_AES_128_GCM": (16, True, 16), "AEAD_AES_256_GCM": (32, True, 16)}
GCM_TAG = 16
SRTCP_TAG = 10
SET_IV_LEN, GET_TAG, SET_TAG = 9, 16, 17  # EVP_CTRL_AEAD_*


def bare(suite):
    """The suite without its scheme of SRTP+."""
    return suite.partition("/")[0]


def key_len(suite):
    """Master key and salt, as SDP carries them."""
    length, gcm, _ = SUITES[bare(suite)]
    return length + (12 if gcm else 14)


@functools.cache
def libcrypto():
    c = ctypes.CDLL("libcrypto.so.3")
    for name in ("EVP_CIPHER_CTX_new", "EVP_aes_128_ctr", "EVP_aes_256_ctr", "EVP_aes_128_gcm", "EVP_aes_256_gcm"):
        getattr(c, name).restype = ctypes.c_void_p
    return c


@functools.cache
def cipher(bits, mode):
    return ctypes.c_void_p(getattr(libcrypto(), f"EVP_aes_{bits}_{mode}")())


@functools.cache
def context():
    return ctypes.c_void_p(libcrypto().EVP_CIPHER_CTX_new())


def ctr(key, iv, data):
    c, out, n = libcrypto(), ctypes.create_string_buffer(len(data) + 16), ctypes.c_int()
    c.EVP_EncryptInit_ex(context(), cipher(8 * len(key), "ctr"), None, key, iv)
    c.EVP_EncryptUpdate(context(), out, ctypes.byref(n), data, len(data))
    return out.raw[:len(data)]


def gcm_seal(key, iv, aad, data):
    c, out, n = libcrypto(), ctypes.create_string_buffer(len(data) + 16), ctypes.c_int()
    c.EVP_EncryptInit_ex(context(), cipher(8 * len(key), "gcm"), None, key, iv)
    c.EVP_EncryptUpdate(context(), None, ctypes.byref(n), aad, len(aad))
    c.EVP_EncryptUpdate(context(), out, ctypes.byref(n), data, len(data))
    c.EVP_EncryptFinal_ex(context(), None, ctypes.byref(n))
    tag = ctypes.create_string_buffer(GCM_TAG)
    c.EVP_CIPHER_CTX_ctrl(context(), GET_TAG, GCM_TAG, tag)
    return out.raw[:len(data)] + tag.raw


def gcm_open(key, iv, aad, data):
    """The plaintext, or None."""
    if len(data) < GCM_TAG:
        return None
    body, tag = data[:-GCM_TAG], data[-GCM_TAG:]
    c, out, n = libcrypto(), ctypes.create_string_buffer(len(body) + 16), ctypes.c_int()
    c.EVP_DecryptInit_ex(context(), cipher(8 * len(key), "gcm"), None, key, iv)
    c.EVP_DecryptUpdate(context(), None, ctypes.byref(n), aad, len(aad))
    c.EVP_DecryptUpdate(context(), out, ctypes.byref(n), body, len(body))
    c.EVP_CIPHER_CTX_ctrl(context(), SET_TAG, GCM_TAG, tag)
    last = ctypes.create_string_buffer(16)
    return out.raw[:len(body)] if c.EVP_DecryptFinal_ex(context(), last, ctypes.byref(n)) == 1 else None


def is_rtcp(packet):
    """RFC 5761 section 4."""
    return len(packet) >= 2 and 192 <= packet[1] <= 223


def rtp_header_len(packet):
    """0 if there is none (RFC 3550 5.1)."""
    if len(packet) < 12 or packet[0] >> 6 != 2:
        return 0
    n = 12 + 4 * (packet[0] & 15)
    if packet[0] & 0x10:
        if len(packet) < n + 4:
            return 0
        n += 4 + 4 * struct.unpack_from("!H", packet, n + 2)[0]
    return n if n <= len(packet) else 0


class Key:
    """A master key with its salt under a suite, and the session keys of RFC 3711 4.3 (key derivation rate 0)."""

    def __init__(self, suite, material):
        self.suite, _, self.scheme = suite.partition("/")
        self.material, self.tags, self.kind = material, {}, ""
        length, self.gcm, self.tag_len = SUITES[self.suite]
        master, salt = material[:length], material[length:]
        self.rtp = self._session(master, salt.ljust(14, b"\0"), 0)
        self.rtcp = self._session(master, salt.ljust(14, b"\0"), 3)

    def _session(self, master, salt, label):
        def derive(number, length):
            iv = bytearray(salt + b"\0\0")
            iv[7] ^= number
            return ctr(master, bytes(iv), bytes(length))
        return derive(label, len(master)), derive(label + 1, 20), derive(label + 2, 12 if self.gcm else 14)

    def _iv(self, session, ssrc, index):
        salt = session[2]
        if self.gcm:  # RFC 7714 8.1 and 9.1
            number = ssrc << 48 | index
            return (number ^ int.from_bytes(salt, "big")).to_bytes(12, "big")
        return ((int.from_bytes(salt, "big") << 16) ^ (ssrc << 64) ^ (index << 16)).to_bytes(16, "big")

    def plus(self, ssrc):
        """The tags of SRTP+ of a stream."""
        length = SUITES[self.suite][0]
        return self.tags.setdefault(ssrc, reference.Tags(self.scheme, self.material[:length], self.material[length:], ssrc))

    def protect(self, packet, roc=0):
        if not self.scheme:
            return self.protect_srtp(packet, roc)
        seq, ssrc = struct.unpack_from("!H4xI", packet, 2)
        tags, index = self.plus(ssrc), roc << 16 | seq
        return self.protect_srtp(packet + (tags.block(index) if tags.chain else b""), roc) + tags.make(index, packet)

    def protect_srtp(self, packet, roc):
        n, seq, ssrc = rtp_header_len(packet), *struct.unpack_from("!H4xI", packet, 2)
        iv = self._iv(self.rtp, ssrc, roc << 16 | seq)
        if self.gcm:
            return packet[:n] + gcm_seal(self.rtp[0], iv, packet[:n], packet[n:])
        out = packet[:n] + ctr(self.rtp[0], iv, packet[n:])
        return out + hmac.digest(self.rtp[1], out + struct.pack("!I", roc), hashlib.sha1)[:self.tag_len]

    def without_tag(self, packet):
        """What SRTP protected."""
        return packet[:-self.plus(0).length] if self.scheme else packet

    def open(self, packet, roc):
        """The RTP packet in clear, or None."""
        packet = self.without_tag(packet)
        n = rtp_header_len(packet)
        if not n:
            return None
        seq, ssrc = struct.unpack_from("!H4xI", packet, 2)
        iv = self._iv(self.rtp, ssrc, roc << 16 | seq)
        if self.gcm:
            body = gcm_open(self.rtp[0], iv, packet[:n], packet[n:])
            return None if body is None else packet[:n] + body
        body, tag = packet[:-self.tag_len], packet[-self.tag_len:]
        if len(body) < n or hmac.digest(self.rtp[1], body + struct.pack("!I", roc), hashlib.sha1)[:self.tag_len] != tag:
            return None
        return body[:n] + ctr(self.rtp[0], iv, body[n:])

    def protect_rtcp(self, packet, index):
        ssrc, word = struct.unpack_from("!I", packet, 4)[0], struct.pack("!I", 1 << 31 | index)
        iv = self._iv(self.rtcp, ssrc, index)
        if self.gcm:
            return packet[:8] + gcm_seal(self.rtcp[0], iv, packet[:8] + word, packet[8:]) + word
        out = packet[:8] + ctr(self.rtcp[0], iv, packet[8:]) + word
        return out + hmac.digest(self.rtcp[1], out, hashlib.sha1)[:SRTCP_TAG]

    def open_rtcp(self, packet):
        """(RTCP in clear, index), or None."""
        tag = 0 if self.gcm else SRTCP_TAG
        if len(packet) < 8 + 4 + (GCM_TAG if self.gcm else tag):
            return None
        word = packet[len(packet) - tag - 4:len(packet) - tag]
        index = int.from_bytes(word, "big") & 0x7fffffff
        if not word[0] & 0x80:
            return None
        ssrc = struct.unpack_from("!I", packet, 4)[0]
        iv = self._iv(self.rtcp, ssrc, index)
        if self.gcm:
            body = gcm_open(self.rtcp[0], iv, packet[:8] + word, packet[8:-4])
            return None if body is None else (packet[:8] + body, index)
        if hmac.digest(self.rtcp[1], packet[:-tag], hashlib.sha1)[:tag] != packet[-tag:]:
            return None
        return packet[:8] + ctr(self.rtcp[0], iv, packet[8:-tag - 4]), index
