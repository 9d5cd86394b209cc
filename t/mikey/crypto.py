# SPDX-License-Identifier: GPL-2.0-or-later
"""MIKEY's functions on bytes: the PRF, derived keys, key transport, Diffie-Hellman, RSA (RFC 3830 4). AES and RSA are those of
python3-cryptography. It is imported where it is used, because the guest of t/kernel does without it."""
import hashlib
import hmac
import struct

TEK_CONSTANT, SALT_CONSTANT = 0x2AD01C64, 0x39A2C14B
ENVELOPE_ENCR, ENVELOPE_AUTH, ENVELOPE_SALT = 0x150533E1, 0x2D22AC75, 0x29B88916


def mac(key, data):
    return hmac.new(key, data, hashlib.sha1).digest()


def p_function(s, label, m):
    out, a = b"", label
    for _ in range(m):
        a = mac(s, a)
        out += mac(s, a + label)
    return out


def prf(inkey, label, length):
    """4.1.2: length bytes."""
    blocks = [inkey[i:i + 32] for i in range(0, len(inkey), 32)]
    out = bytes(length)
    for s in blocks:
        out = bytes(x ^ y for x, y in zip(out, p_function(s, label, -(-length // 20))))
    return out


def derive(inkey, constant, cs_id, csb_id, rand, length):
    """4.1.3 and 4.1.4: cs_id is 0xFF for keys of an envelope or pre-shared key."""
    return prf(inkey, struct.pack(">IBI", constant, cs_id, csb_id) + rand, length)


class Envelope:
    """Keys of a pre-shared or envelope key, by which messages are protected (4.1.4, 4.2.3)."""

    def __init__(self, key, csb_id, rand):
        self.encr = derive(key, ENVELOPE_ENCR, 0xff, csb_id, rand, 16)
        self.salt = derive(key, ENVELOPE_SALT, 0xff, csb_id, rand, 14)
        self.auth = derive(key, ENVELOPE_AUTH, 0xff, csb_id, rand, 20)
        self.csb_id = csb_id

    def crypt(self, data, timestamp):
        """AES-CM, both ways."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        xor = struct.pack(">HI", 0, self.csb_id) + timestamp.rjust(8, b"\0")
        iv = bytes(a ^ b for a, b in zip(self.salt, xor)) + b"\0\0"
        c = Cipher(algorithms.AES(self.encr), modes.CTR(iv)).encryptor()
        return c.update(data) + c.finalize()


def pi_bits(n):
    """floor(2^n * pi), by Machin's formula: the primes of the OAKLEY groups are defined by it (RFC 2412, appendix E; RFC 3526)."""
    guard = 64

    def arctan(x):
        total = term = (1 << (n + guard)) // x
        k, sign = 3, -1
        while term:
            term //= x * x
            total += sign * (term // k)
            k, sign = k + 2, -sign
        return total
    return 4 * (4 * arctan(5) - arctan(239)) >> guard


def oakley(bits, middle, add):
    return (1 << bits) - (1 << (bits - 64)) - 1 + (1 << 64) * (pi_bits(middle) + add)


GROUPS = {0: (oakley(1536, 1406, 741804), 192), 1: (oakley(768, 638, 149686), 96), 2: (oakley(1024, 894, 129093), 128)}


def dh_public(group, secret):
    p, length = GROUPS[group]
    return pow(2, secret, p).to_bytes(length, "big")


def dh_shared(group, theirs, secret):
    """None if their value is none of the group's."""
    p, length = GROUPS[group]
    y = int.from_bytes(theirs, "big")
    return pow(y, secret, p).to_bytes(length, "big") if 1 < y < p - 1 else None


def sign(key, data):
    """RSA PKCS #1 v1.5. SHA-1 is MIKEY's default hash (4.2.1)."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding
    return key.sign(data, padding.PKCS1v15(), hashes.SHA1())


def signed(certificate, signature, data):
    """The certificate's key made this signature, with SHA-1 or SHA-256."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding
    for algorithm in (hashes.SHA1, hashes.SHA256):
        try:
            certificate.public_key().verify(signature, data, padding.PKCS1v15(), algorithm())
            return True
        except Exception:  # InvalidSignature, or a key that is none of RSA's
            continue
    return False


def rsa_encrypt(certificate, data, random):
    """PKCS #1 v1.5 by hand, so that vectors can repeat it. random(n): n bytes."""
    numbers = certificate.public_key().public_numbers()
    length = -(-numbers.n.bit_length() // 8)
    pad = bytes(b or 1 for b in random(length - 3 - len(data)))
    return pow(int.from_bytes(b"\0\2" + pad + b"\0" + data, "big"), numbers.e, numbers.n).to_bytes(length, "big")


def rsa_decrypt(key, data):
    from cryptography.hazmat.primitives.asymmetric import padding
    return key.decrypt(data, padding.PKCS1v15())
