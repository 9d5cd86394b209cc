# SPDX-License-Identifier: GPL-2.0-or-later
"""Key derivation of ZRTP by RFC 6189 alone, on Python's hashlib and hmac. v: a dictionary with names of algorithms and bytes."""
import hashlib
import hmac

import peer_sas

HASHES = {"S256": hashlib.sha256, "S384": hashlib.sha384}
CIPHERS = {"AES1": 16, "AES2": 24, "AES3": 32}


def mac(name, key, message):
    return hmac.new(key, message, HASHES[name]).digest()


def kdf(name, key, label, context, bits):
    """4.5.1"""
    return mac(name, key, b"\0\0\0\1" + label.encode() + b"\0" + context + bits.to_bytes(4, "big"))[:bits // 8]


def counted(secret):
    return len(secret).to_bytes(4, "big") + secret


def secret(v, zids, total, context):
    """s0: 4.4.1.4, 4.4.2, 4.4.3"""
    digest = 8 * HASHES[v["hash"]]().digest_size
    # What both sides have; the order is that of the RFC: a retained secret, the auxiliary one, that of an enrolment.
    shared = [v[key] if key in v["shared"] else b"" for key in ("rs1", "aux", "pbx")]
    if v["agreement"] == "Mult":
        return kdf(v["hash"], v["session"], "ZRTP MSK", context, digest)
    if v["agreement"] == "Prsh":
        key = HASHES[v["hash"]](b"".join(map(counted, shared))).digest()
        v["key_id"] = mac(v["hash"], key, b"Prsh")[:8]
        return kdf(v["hash"], key, "ZRTP PSK", context, digest)
    return HASHES[v["hash"]](b"\0\0\0\1" + v["result"] + b"ZRTP-HMAC-KDF" + zids + total + b"".join(map(counted, shared))).digest()


def keys(v, zids, context, s0):
    """What s0 derives: 4.5.2, 4.5.3, 4.6.1, 7.3.1."""
    digest, cipher = 8 * HASHES[v["hash"]]().digest_size, 8 * CIPHERS[v["cipher"]]
    for who, short in (("Initiator", "i"), ("Responder", "r")):
        v["srtp_key_" + short] = kdf(v["hash"], s0, who + " SRTP master key", context, cipher)
        v["srtp_salt_" + short] = kdf(v["hash"], s0, who + " SRTP master salt", context, 112)
        v["mac_key_" + short] = kdf(v["hash"], s0, who + " HMAC key", context, digest)
        v["key_" + short] = kdf(v["hash"], s0, who + " ZRTP key", context, cipher)
    v["sas_hash"] = kdf(v["hash"], s0, "SAS", context, 256)
    v["sas"] = peer_sas.render(b"B32 ", v["sas_hash"])
    v["new_rs1"] = kdf(v["hash"], s0, "retained secret", context, 256)
    v["new_session"] = v["session"] if v["agreement"] == "Mult" else kdf(v["hash"], s0, "ZRTP Session Key", context, digest)
    v["new_pbx"] = kdf(v["hash"], v["new_session"], "Trusted MiTM key", zids, 256)
