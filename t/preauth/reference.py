#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An independent implementation of SRTP+ (daemon/srtp/preauth.h), for terminals written in Python. As a program it prints the rows
of t/unit/test_preauth.c. Written from the description, with hashlib and OpenSSL's AES."""
import ctypes
import functools
import hashlib
import hmac
import os
import struct

SCHEMES = ["sequence-fips", "sequence-aes", "header-hmac-sha1", "header-siphash", "chain"]
LABEL = 0x50
FIPS_RUN = 10


@functools.cache
def crypto():
    """libcrypto: Python's own library has no AES, and the kernel tests' guest has no other."""
    lib = ctypes.CDLL("libcrypto.so.3")
    for name in ("EVP_CIPHER_CTX_new", *(f"EVP_aes_{8 * n}_ecb" for n in (16, 24, 32))):
        getattr(lib, name).restype = ctypes.c_void_p
    return lib


def encrypt(key, blocks):
    """AES-ECB of whole blocks."""
    lib = crypto()
    out, n = ctypes.create_string_buffer(len(blocks) + 16), ctypes.c_int()
    ctx = ctypes.c_void_p(lib.EVP_CIPHER_CTX_new())
    cipher = ctypes.c_void_p(getattr(lib, f"EVP_aes_{8 * len(key)}_ecb")())
    good = lib.EVP_EncryptInit_ex(ctx, cipher, None, key, None) == 1 and lib.EVP_EncryptUpdate(ctx, out, ctypes.byref(n), blocks, len(blocks)) == 1
    lib.EVP_CIPHER_CTX_free(ctx)
    if not good or n.value != len(blocks):
        raise OSError("libcrypto failed")
    return out.raw[:len(blocks)]


def seed(scheme, key, salt):
    """RFC 3711 4.3.1 and 4.3.3 with AES-CM, 64 bytes. AEAD suites have 12 bytes of salt (RFC 7714 11)."""
    x = int.from_bytes(salt.ljust(14, b"\0"), "big") ^ (LABEL + SCHEMES.index(scheme.partition("/")[0]) << 48)
    return encrypt(key, b"".join(((x << 16) + i).to_bytes(16, "big") for i in range(4)))


def fips(secret, ssrc, run, count, size=20):
    """FIPS 186-2 appendix 3.1, G = SHA-1 with padding. SSRC and run go into the first 12 bytes."""
    xkey = int.from_bytes(secret[:size], "big") ^ (ssrc << 64 | run) << 8 * (size - 12)
    tags = []
    while len(tags) < count:
        x = hashlib.sha1(xkey.to_bytes(size, "big")).digest()
        xkey = (1 + xkey + int.from_bytes(x, "big")) % (1 << 8 * size)
        tags += struct.unpack(">5I", x)
    return tags[:count]


def aes(secret, ssrc, index):
    return struct.unpack(">4I", encrypt(secret[:16], struct.pack(">IIQ", ssrc, 0, index // 4)))[index % 4]


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


def parameters(scheme):
    """Bits of a tag, tags in a payload and the receiver's window, of "chain" or "chain/8/16/128". None: another scheme."""
    name, _, rest = scheme.partition("/")
    return None if name != "chain" else tuple(map(int, rest.split("/"))) if rest else (4, 32, 512)


class Tags:
    """One direction and SSRC under a master key. Of "chain" a sender draws its tags, and a receiver knows those that were announced."""

    def __init__(self, scheme, key, salt, ssrc):
        self.scheme, self.ssrc, self.seed = scheme, ssrc, seed(scheme, key, salt)
        self.drawn, self.announced = {}, {}
        self.chain = parameters(scheme)
        self.length = 1 if self.chain and self.chain[0] <= 8 else 4

    def _draw(self, index):
        return self.drawn.setdefault(index, int.from_bytes(os.urandom(4), "big") >> 32 - self.chain[0])

    def make(self, index, header):
        """The bytes of the tag that is sent after the packet."""
        if self.chain:
            return self._draw(index).to_bytes(self.length, "big")
        if self.scheme == "sequence-aes":
            return aes(self.seed, self.ssrc, index).to_bytes(4, "big")
        if self.scheme == "sequence-fips":
            return fips(self.seed, self.ssrc, index // FIPS_RUN, FIPS_RUN)[index % FIPS_RUN].to_bytes(4, "big")
        if self.scheme == "header-siphash":
            return (siphash(self.seed[:16], header[:12]) & 0xffffffff).to_bytes(4, "big")
        return hmac.new(self.seed[:20], header[:12], hashlib.sha1).digest()[:4]

    def is_right(self, index, header, tag):
        """None: the tag is not known."""
        if self.chain:
            return self.announced[index] == int.from_bytes(tag, "big") if index in self.announced else None
        return self.make(index, header) == tag

    def block(self, index):
        """The tag that "chain" appends to the payload of this packet before encryption."""
        width, count, _ = self.chain
        number = 0
        for i in range(count):
            number = number << width | self._draw(index + 1 + i)
        return number.to_bytes(width * count // 8, "big")

    def take(self, index, payload):
        """Removes the block from the payload of a packet that SRTP authenticated."""
        if not self.chain:
            return payload
        width, count, _ = self.chain
        length = width * count // 8
        number = int.from_bytes(payload[-length:], "big")
        for i in range(count):
            self.announced[index + count - i] = number & (1 << width) - 1
            number >>= width
        return payload[:-length]


def main():
    key, salt = bytes.fromhex("e1f97a0d3e018be0d64fa32c06de4139"), bytes.fromhex("0ec675ad498afeebb6960b3aabe6")
    ssrc, header = 0xCAFEBABE, bytes.fromhex("8000abcd00012345cafebabe")
    for size in (20, 55, 56, 64):
        print(f"fips {size}:", " ".join(f"{t:08x}" for t in fips(seed("sequence-fips", key, salt), ssrc, 0, 12, size)[5:]))
    for index in (0, 9, 10, 1023, (1 << 48) - 1):
        print(f"fips run {index:x}:", Tags("sequence-fips", key, salt, ssrc).make(index, header).hex())
    for index in (0, 3, 4, 1023, (1 << 48) - 1):
        print(f"aes {index:x}: {aes(seed('sequence-aes', key, salt), ssrc, index):08x}")
    for scheme in ("header-hmac-sha1", "header-siphash"):
        print(f"{scheme}:", Tags(scheme, key, salt, ssrc).make(0, header).hex())


if __name__ == "__main__":
    main()
