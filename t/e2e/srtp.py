# SPDX-License-Identifier: GPL-2.0-or-later
"""SRTP for terminals written in Python, by Debian's libsrtp2 (ctypes), so that our code does not
test itself."""
import ctypes
import functools

OUTBOUND, INBOUND = 3, 2  # ssrc_any_outbound, ssrc_any_inbound


class CryptoPolicy(ctypes.Structure):
    _fields_ = [("cipher", ctypes.c_uint32), ("key_len", ctypes.c_int), ("auth", ctypes.c_uint32), ("auth_key_len", ctypes.c_int),
                ("tag_len", ctypes.c_int), ("services", ctypes.c_int)]


class Policy(ctypes.Structure):
    """srtp_policy_t of libsrtp2."""
    _fields_ = [("ssrc_type", ctypes.c_int), ("ssrc", ctypes.c_uint), ("rtp", CryptoPolicy), ("rtcp", CryptoPolicy), ("key", ctypes.c_char_p),
                ("keys", ctypes.c_void_p), ("key_count", ctypes.c_ulong), ("ekt", ctypes.c_void_p), ("window", ctypes.c_ulong),
                ("allow_repeat", ctypes.c_int), ("extensions", ctypes.c_void_p), ("extension_count", ctypes.c_int), ("next", ctypes.c_void_p)]


SET = {"AES_CM_128_HMAC_SHA1_80": ("rtp_default", 10), "AES_CM_128_HMAC_SHA1_32": ("rtp_default", 4),
       "AES_256_CM_HMAC_SHA1_80": ("aes_cm_256_hmac_sha1_80", 10), "AES_256_CM_HMAC_SHA1_32": ("aes_cm_256_hmac_sha1_80", 4),
       "AEAD_AES_128_GCM": ("aes_gcm_128_16_auth", 16),
       "AEAD_AES_256_GCM": ("aes_gcm_256_16_auth", 16)}


@functools.cache
def lib():
    srtp = ctypes.CDLL("libsrtp2.so.1")
    assert srtp.srtp_init() == 0
    return srtp


class Session:
    """One direction under one key (with its salt). rtcp_tag: bytes of SRTCP's tag, if not the suite's."""

    def __init__(self, suite, key, direction, rtcp_tag=0):
        setter, tag_len = SET[suite]
        policy = Policy(ssrc_type=direction, key=key, window=1024)
        for part in (policy.rtp, policy.rtcp):
            getattr(lib(), "srtp_crypto_policy_set_" + setter)(ctypes.byref(part))
        policy.rtp.tag_len = tag_len
        policy.rtcp.tag_len = rtcp_tag or policy.rtcp.tag_len
        self.session = ctypes.c_void_p()
        status = lib().srtp_create(ctypes.byref(self.session), ctypes.byref(policy))
        assert status == 0, f"srtp_create: {status}"

    def _through(self, function, packet):
        buffer = ctypes.create_string_buffer(packet, len(packet) + 64)
        length = ctypes.c_int(len(packet))
        return None if function(self.session, buffer, ctypes.byref(length)) else buffer.raw[:length.value]

    def protect(self, packet):
        return self._through(lib().srtp_protect, packet)

    def unprotect(self, packet):
        """None if the packet is not authentic or was received before."""
        return self._through(lib().srtp_unprotect, packet)

    def protect_rtcp(self, packet):
        return self._through(lib().srtp_protect_rtcp, packet)

    def unprotect_rtcp(self, packet):
        return self._through(lib().srtp_unprotect_rtcp, packet)
