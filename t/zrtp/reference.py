#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Key derivation of ZRTP by RFC 6189 alone, on Python's hashlib and hmac: the RFC prints no vectors. Writes t/vectors/zrtp.json, which
t/unit/test_zrtp_vectors.c compares with our derivation: reference.py >t/vectors/zrtp.json. Its input is arbitrary and always the same."""
import hashlib
import hmac
import itertools
import json

import peer_sas

HASHES = {"S256": hashlib.sha256, "S384": hashlib.sha384}
CIPHERS = {"AES1": 16, "AES2": 24, "AES3": 32}
RESULTS = {"EC25": 32, "X255": 32, "DH3k": 384, "EC38": 48, "DH2k": 256}


def some(name, length):
    return hashlib.shake_128(name.encode()).digest(length)


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


def derive(v):
    zids = v["zid_i"] + v["zid_r"]
    messages = [v["hello_r"], v["commit"]] + ([v["dhpart1"], v["dhpart2"]] if v["result"] else [])
    total = HASHES[v["hash"]](b"".join(messages)).digest()
    context = zids + total
    keys(v, zids, context, secret(v, zids, total, context))
    v["hvi"] = HASHES[v["hash"]](v["dhpart2"] + v["hello_r"]).digest()[:32]
    for short, who in (("i", b"Initiator"), ("r", b"Responder")):
        v["ids_" + short] = b"".join(mac(v["hash"], v[key], who)[:8] for key in ("rs1", "rs2")) + \
            mac(v["hash"], v["aux"], v["hello_" + "ri"[short == "r"]][32:64])[:8] + mac(v["hash"], v["pbx"], who)[:8]
    return v


def cases():
    kinds = [(a, shared) for a in RESULTS for shared in ((), ("rs1",), ("rs1", "aux", "pbx"), ("pbx",))]
    kinds += [("Mult", ()), ("Prsh", ("rs1",)), ("Prsh", ("rs1", "aux", "pbx")), ("Prsh", ("rs1", "pbx"))]
    for number, (name, (agreement, shared)) in enumerate(itertools.product(HASHES, kinds)):
        cipher = list(CIPHERS)[number % len(CIPHERS)]
        v = {"hash": name, "cipher": cipher, "agreement": agreement, "shared": list(shared)}
        for key, length in (("zid_i", 12), ("zid_r", 12), ("hello_i", 88 + 4 * (number % 9)), ("hello_r", 88 + 4 * (number % 11)), ("commit", 116),
                            ("dhpart1", 84 + 32), ("dhpart2", 84 + 64), ("rs1", 32), ("rs2", 32), ("aux", 32), ("pbx", 32),
                            ("session", HASHES[name]().digest_size), ("result", RESULTS.get(agreement, 0))):
            v[key] = some(f"{key} {number}", length)
        yield {k: x.hex() if isinstance(x, bytes) else x for k, x in derive(v).items()}


if __name__ == "__main__":
    print("[\n" + ",\n".join(json.dumps(v) for v in cases()) + "\n]")
