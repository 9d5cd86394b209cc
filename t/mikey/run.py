#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the MIKEY peers of this folder against each other and against the file of vectors: run.py [--write]. With --write it makes the
vectors of t/vectors/mikey.json. Last line: "ok"."""
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import certs  # noqa: E402
import crypto  # noqa: E402
import wire  # noqa: E402
from cryptography import x509  # noqa: E402
from cryptography.hazmat.primitives import serialization  # noqa: E402
from mikey_peer import MODES, Initiator, Refused  # noqa: E402
from responder import Responder  # noqa: E402

FILE = os.path.join(os.path.dirname(HERE), "vectors", "mikey", "messages.json")
PRF_FILE = os.path.join(os.path.dirname(HERE), "vectors", "mikey", "prf.json")
NOW = 1800000000.5
ALICE, BOB = "sip:alice@example.org", "sip:bob@example.org"
PSK = bytes(range(16, 40))


class Fixed:
    """Bytes that depend on their name alone, noted."""

    def __init__(self, seed):
        self.seed, self.drawn = seed, {}

    def __call__(self, what, n):
        self.drawn[what] = hashlib.shake_256(f"{self.seed} {what}".encode()).digest(n)
        return self.drawn[what]


class World:
    def __init__(self, known=None):
        if known:
            self.root = x509.load_pem_x509_certificate(known["root"].encode())
            self.alice, self.bob = (certs.Party(identity, serialization.load_pem_private_key(known[n + "_key"].encode(), None),
                                                x509_all(known[n + "_chain"])) for n, identity in (("alice", ALICE), ("bob", BOB)))
            return
        root = certs.Authority()
        self.root = root.cert
        self.alice, self.bob = root.party(ALICE), root.party(BOB)

    def texts(self):
        pem = self.root.public_bytes(serialization.Encoding.PEM)
        return {"root": pem.decode(), "alice_key": self.alice.key_pem().decode(), "alice_chain": self.alice.chain_pem().decode(),
                "bob_key": self.bob.key_pem().decode(), "bob_chain": self.bob.chain_pem().decode()}

    def initiator(self, mode, **how):
        return Initiator(mode, ALICE, BOB, **{**dict(psk=PSK, party=self.alice, peer_cert=self.bob.chain[0], roots=[self.root],
                                                     now=lambda: NOW), **how})

    def responder(self, **how):
        return Responder(BOB, **{**dict(psk=PSK, party=self.bob, roots=[self.root], now=lambda: NOW), **how})


def x509_all(text):
    end = "-----END CERTIFICATE-----"
    return [x509.load_pem_x509_certificate((part + end).encode()) for part in text.split(end)[:-1]]


def exchange(world, mode, random=None, responder=None, **how):
    a = world.initiator(mode, random=random, **how)
    b = responder or world.responder(random=random, suites=(a.suite,))
    offer = a.message()
    reply = b.answer(offer)
    if reply:
        a.read(reply)
    for cs_id in range(1, 2 * a.lines + 1):
        assert a.keys.master(cs_id) == b.keys.master(cs_id), (mode, cs_id)
    assert a.keys.mki == b.keys.mki
    return a, b, offer, reply


def refused(function, number=None):
    try:
        function()
    except (Refused, wire.Malformed, ValueError) as e:
        assert number is None or getattr(e, "number", None) == number, e
        return
    raise AssertionError("accepted")


def test_every_mode(world):
    for mode in MODES:
        for suite in ("AES_CM_128_HMAC_SHA1_80", "AES_256_CM_HMAC_SHA1_32", "AEAD_AES_128_GCM"):
            exchange(world, mode, suite=suite)
        exchange(world, mode, lines=2, kind=wire.COUNTER)
        if mode != "rsa-r":
            exchange(world, mode, mki=b"\1\2")
    for group in crypto.GROUPS:
        exchange(world, "dh", group=group)


def test_no_answer_is_asked_for(world):
    for mode in ("psk", "pke"):
        assert exchange(world, mode, verify=False)[3] == b""


def test_changed_messages(world):
    """Each byte of offer and answer, for the modes that are fast enough."""
    for mode, step in (("psk", 1), ("dhhmac", 7), ("dh", 41), ("pke", 41), ("rsa-r", 41)):
        a, _, offer, reply = exchange(world, mode)
        for i in range(0, len(offer), step):
            bad = bytearray(offer)
            bad[i] ^= 0x40
            refused(lambda: world.responder().answer(bytes(bad)))
        for i in range(0, len(reply), step):
            bad = bytearray(reply)
            bad[i] ^= 0x40
            refused(lambda: a.read(bytes(bad)))


def test_refusals(world):
    refused(lambda: world.responder(psk=b"other").answer(world.initiator("psk").message()), wire.AUTH_FAILURE)
    refused(lambda: world.responder(psk=None).answer(world.initiator("psk").message()), wire.INVALID_ID)
    refused(lambda: world.responder(now=lambda: NOW + 301).answer(world.initiator("psk").message()), wire.INVALID_TS)
    refused(lambda: world.responder(sdp_ids="mikey;other").answer(world.initiator("psk").message()), wire.AUTH_FAILURE)
    refused(lambda: world.responder(roots=[]).answer(world.initiator("dh").message()), wire.INVALID_CERT)
    refused(lambda: world.responder(suites=()).answer(world.initiator("dh").message()), wire.INVALID_SPPAR)
    b = world.responder()
    offer = world.initiator("psk").message()
    b.answer(offer)
    refused(lambda: b.answer(offer), wire.INVALID_TS)


def test_example_of_rfc4567(_):
    """5.1, but for the line breaks: the framing of both messages."""
    import base64
    offer = wire.Message(base64.b64decode(
        "AQAFgM0XflABAAAAAAAAAAAAAAsAyONQ6gAAAAAGEEoo2pee4hp2UaDX8ZE22YwKAAAPZG9uYWxkQGR1Y2suY29tAQAAAAAAAQAk0JKpgaVkDaawi9whVBtBt"
        "0KZ14ymNuu62+Nv3ozPLygwK/GbAV9iemnGUIZ19fWQUOSrzKTAv9zV"))
    assert offer.header.data_type == wire.PSK and offer.header.verify and len(offer.header.sessions) == 1
    assert [p.kind for p in offer.payloads] == [wire.T, wire.RAND, wire.ID, wire.SP, wire.KEMAC]


def test_primes(_):
    assert hashlib.sha256(crypto.GROUPS[0][0].to_bytes(192, "big")).digest()[0:1] and crypto.GROUPS[2][0].bit_length() == 1024
    for p, _length in crypto.GROUPS.values():
        assert pow(2, p - 1, p) == 1 and pow(3, (p - 1) // 2 - 1, (p - 1) // 2) == 1


def keys_of(keys, lines):
    return [{"cs_id": i, "key": keys.master(i)[0].hex(), "salt": keys.master(i)[1].hex()} for i in range(1, 2 * lines + 1)]


def vector(world, mode, suite, **how):
    random = Fixed(f"{mode} {suite}")
    a, b, offer, reply = exchange(world, mode, random, suite=suite, **how)
    return {"mode": mode, "suite": suite, "unix_time": NOW, "t": a.stamp.hex(), "mki": a.keys.mki.hex(),
            "random": {k: v.hex() for k, v in random.drawn.items()}, "tgk": a.keys.key.data.hex(), "i_message": offer.hex(),
            "r_message": reply.hex(), "sessions": [{"policy": p, "ssrc": s, "roc": r} for p, s, r in b.keys.sessions],
            "keys": keys_of(a.keys, a.lines)}


def cases():
    for mode in MODES:
        yield mode, "AES_CM_128_HMAC_SHA1_80", {}
        yield mode, "AES_256_CM_HMAC_SHA1_32", {"lines": 2}
        yield mode, "AEAD_AES_128_GCM", {} if mode == "rsa-r" else {"mki": b"\x0a\x0b"}
    yield "psk", "AES_CM_128_HMAC_SHA1_32", {"kind": wire.COUNTER}
    yield "dh", "AES_CM_128_HMAC_SHA1_32", {"group": 2}


def prf_vectors():
    out = []
    for inkey_len in (8, 16, 20, 32, 33, 64, 100, 192):
        for out_len in (1, 14, 16, 20, 21, 32, 60):
            random = Fixed(f"prf {inkey_len} {out_len}")
            inkey, label = random("inkey", inkey_len), random("label", 25)
            out.append({"inkey": inkey.hex(), "label": label.hex(), "outkey": crypto.prf(inkey, label, out_len).hex()})
    return out


def write():
    world = World()
    about = ("Complete exchanges between alice, the initiator, and bob. Identities are URIs, the pre-shared key is psk. random: what was "
             "drawn, by name; a secret of Diffie-Hellman has its topmost bit set after. t: value of T. keys: of each crypto session. "
             "Made by t/mikey/run.py --write. The private keys serve tests only.")
    with open(FILE, "w", encoding="ascii") as f:
        json.dump({"about": about, "alice": ALICE, "bob": BOB, "psk": PSK.hex(), **world.texts(),
                   "exchanges": [vector(world, m, s, **how) for m, s, how in cases()]}, f, indent=1)
        f.write("\n")
    with open(PRF_FILE, "w", encoding="ascii") as f:
        json.dump({"about": "PRF of RFC 3830 4.1.2. Made by t/mikey/run.py --write.", "prf": prf_vectors()}, f, indent=1)
        f.write("\n")


def test_vectors(_):
    with open(FILE, encoding="ascii") as f:
        known = json.load(f)
    world = World(known)
    assert [vector(world, m, s, **how) for m, s, how in cases()] == known["exchanges"]
    with open(PRF_FILE, encoding="ascii") as f:
        assert json.load(f)["prf"] == prf_vectors()


def main():
    if "--write" in sys.argv:
        write()
    world = World()
    for name, function in sorted(globals().items()):
        if name.startswith("test_"):
            function(world)
            print(name)
    print("ok")


if __name__ == "__main__":
    main()
