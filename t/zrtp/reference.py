#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Key derivation of ZRTP by RFC 6189 alone, on Python's hashlib and hmac: the RFC prints no vectors. Writes t/vectors/zrtp.json, which
t/unit/test_zrtp_vectors.c compares with our derivation: reference.py >t/vectors/zrtp.json. Its input is arbitrary and always the same."""
import hashlib
import itertools
import json

from peer_kdf import CIPHERS, HASHES, keys, mac, secret

RESULTS = {"EC25": 32, "X255": 32, "DH3k": 384, "EC38": 48, "DH2k": 256}


def some(name, length):
    return hashlib.shake_128(name.encode()).digest(length)


def derive(v):
    zids = v["zid_i"] + v["zid_r"]
    messages = [v["hello_r"], v["commit"]] + ([v["dhpart1"], v["dhpart2"]] if v["result"] else [])
    total = HASHES[v["hash"]](b"".join(messages)).digest()
    context = zids + total
    keys(v, zids, context, secret(v, zids, total, context))
    v["hvi"] = HASHES[v["hash"]](v["dhpart2"] + v["hello_r"]).digest()[:32]
    for short, who in (("i", b"Initiator"), ("r", b"Responder")):
        v["ids_" + short] = b"".join(mac(v["hash"], v[key], who)[:8] for key in ("rs1", "rs2")) + \
            mac(v["hash"], v["aux"], v["hello_" + short][32:64])[:8] + mac(v["hash"], v["pbx"], who)[:8]
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
