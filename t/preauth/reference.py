#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An independent implementation of SRTP+ (daemon/srtp/preauth.h): prints the rows of
t/unit/test_preauth.c. Written from the description, with hashlib and cryptography."""
import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

SCHEMES = ["sequence-fips", "sequence-aes", "header-hmac-sha1", "header-siphash", "chain"]
LABEL = 0x50
KEY = bytes.fromhex("e1f97a0d3e018be0d64fa32c06de4139")
SALT = bytes.fromhex("0ec675ad498afeebb6960b3aabe6")
SSRC = 0xCAFEBABE
HEADER = bytes.fromhex("8000abcd00012345cafebabe")


def seed(scheme):
    """RFC 3711 4.3.1 and 4.3.3 with AES-CM, 64 bytes."""
    x = int.from_bytes(SALT, "big") ^ (LABEL + SCHEMES.index(scheme) << 48)
    return Cipher(algorithms.AES(KEY), modes.CTR((x << 16).to_bytes(16, "big"))).encryptor().update(bytes(64))


def fips(count, size):
    """FIPS 186-2 appendix 3.1, G = SHA-1 with padding."""
    xkey = int.from_bytes(seed("sequence-fips")[:size], "big") ^ SSRC << 8 * (size - 4)
    tags = []
    while len(tags) < count:
        x = hashlib.sha1(xkey.to_bytes(size, "big")).digest()
        xkey = (1 + xkey + int.from_bytes(x, "big")) % (1 << 8 * size)
        tags += struct.unpack(">5I", x)
    return tags[:count]


def aes(index):
    e = Cipher(algorithms.AES(seed("sequence-aes")[:16]), modes.ECB()).encryptor()
    return struct.unpack(">4I", e.update(struct.pack(">IIQ", SSRC, 0, index // 4)))[index % 4]


def siphash(key, data):
    """SipHash-2-4 of Aumasson and Bernstein."""
    mask = (1 << 64) - 1
    k0, k1 = struct.unpack("<2Q", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turn(x, n):
        return (x << n | x >> 64 - n) & mask

    def rounds(n):
        for _ in range(n):
            v[0] = v[0] + v[1] & mask
            v[1] = turn(v[1], 13) ^ v[0]
            v[0] = turn(v[0], 32)
            v[2] = v[2] + v[3] & mask
            v[3] = turn(v[3], 16) ^ v[2]
            v[0] = v[0] + v[3] & mask
            v[3] = turn(v[3], 21) ^ v[0]
            v[2] = v[2] + v[1] & mask
            v[1] = turn(v[1], 17) ^ v[2]
            v[2] = turn(v[2], 32)

    data += bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for (m,) in struct.iter_unpack("<Q", data):
        v[3] ^= m
        rounds(2)
        v[0] ^= m
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def main():
    for size in (20, 55, 56, 64):
        print(f"fips {size}:", " ".join(f"{t:08x}" for t in fips(12, size)[5:]))
    for index in (0, 3, 4, 1023, (1 << 48) - 1):
        print(f"aes {index:x}: {aes(index):08x}")
    tag = hmac.new(seed("header-hmac-sha1")[:20], HEADER, hashlib.sha1).digest()[:4]
    print("hmac:", tag.hex())
    print(f"siphash: {siphash(seed('header-siphash')[:16], HEADER) & 0xffffffff:08x}")


if __name__ == "__main__":
    main()
