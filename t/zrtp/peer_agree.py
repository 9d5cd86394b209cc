# SPDX-License-Identifier: GPL-2.0-or-later
"""Key agreements of ZRTP (RFC 6189 5.1.5): the groups of RFC 3526 by Python's integers, curves by the package cryptography."""
import functools
import os

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, x25519

SIZES = {b"EC25": 64, b"X255": 32, b"DH3k": 384, b"EC38": 96, b"DH2k": 256}
GROUPS = {b"DH2k": (2048, 124476), b"DH3k": (3072, 1690314)}  # RFC 3526 3, 4
CURVES = {b"EC25": ec.SECP256R1(), b"EC38": ec.SECP384R1()}


class BadValue(Exception):
    """The public value of the peer is not valid."""


@functools.cache
def prime(name):
    """The RFC defines it by digits of pi: 2^n - 2^(n-64) - 1 + 2^64 * ([2^(n-130) pi] + c)."""
    bits, added = GROUPS[name]
    spare = 64

    def arctan(k):  # of 1/k
        term = (1 << bits - 130 + spare) // k
        total, n, sign = term, 1, 1
        while term:
            term //= k * k
            n, sign = n + 2, -sign
            total += sign * (term // n)
        return total
    pi = 4 * (4 * arctan(5) - arctan(239)) >> spare
    return (1 << bits) - (1 << bits - 64) - 1 + ((pi + added) << 64)


class Pair:
    """A key pair of one exchange. value: as in DHPart1 and DHPart2."""

    def __init__(self, name):
        self.name = name
        if name in GROUPS:
            self.secret = int.from_bytes(os.urandom(64), "big")
            self.value = pow(2, self.secret, prime(name)).to_bytes(SIZES[name], "big")
        elif name in CURVES:
            self.secret = ec.generate_private_key(CURVES[name])
            point = self.secret.public_key().public_numbers()
            half = SIZES[name] // 2
            self.value = point.x.to_bytes(half, "big") + point.y.to_bytes(half, "big")
        else:
            self.secret = x25519.X25519PrivateKey.generate()
            self.value = self.secret.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)

    def result(self, value):
        """DHResult with the peer's value."""
        if self.name in GROUPS:
            p, theirs = prime(self.name), int.from_bytes(value, "big")
            if not 1 < theirs < p - 1:
                raise BadValue
            return pow(theirs, self.secret, p).to_bytes(SIZES[self.name], "big")
        try:
            if self.name in CURVES:
                half = SIZES[self.name] // 2
                x, y = int.from_bytes(value[:half], "big"), int.from_bytes(value[half:], "big")
                return self.secret.exchange(ec.ECDH(), ec.EllipticCurvePublicNumbers(x, y, CURVES[self.name]).public_key())
            return self.secret.exchange(x25519.X25519PublicKey.from_public_bytes(value))
        except (ValueError, InvalidKey) as why:
            raise BadValue from why
