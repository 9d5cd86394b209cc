# SPDX-License-Identifier: GPL-2.0-or-later
"""A certificate authority for tests, made at run time: roots, chains, expired and revoked certificates, and their files."""
import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

BEGIN, END = datetime.datetime(2020, 1, 1), datetime.datetime(2120, 1, 1)

BITS = 2048
made = []


def prepare(count=6):
    """Makes keys, each of which takes a third of a second. Processes that are forked later begin with all of them."""
    made.extend(rsa.generate_private_key(65537, BITS) for _ in range(count - len(made)))


def new_key(bits):
    return made.pop() if made and bits == BITS else rsa.generate_private_key(65537, bits)


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Party:
    """An identity with its key and chain; chain[0] is its own."""

    def __init__(self, identity, key, chain):
        self.identity, self.key, self.chain = identity, key, chain

    def key_pem(self):
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())

    def chain_pem(self):
        return b"".join(c.public_bytes(serialization.Encoding.PEM) for c in self.chain)


class Authority:
    def __init__(self, title="test root", issuer=None, bits=BITS):
        self.key = new_key(bits)
        self.title, self.issuer, self.serial, self.revoked = title, issuer, 1, []
        self.cert = self.build(title, self.key.public_key(), None, BEGIN, END, (issuer or self))

    def build(self, subject, public, identity, begin, end, by):
        b = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(by.title)).public_key(public)
        b = b.serial_number(by.next_serial()).not_valid_before(begin).not_valid_after(end)
        b = b.add_extension(x509.BasicConstraints(ca=identity is None, path_length=None), critical=True)
        if identity:
            b = b.add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity)]), critical=False)
        return b.sign(by.key, hashes.SHA256())

    def next_serial(self):
        self.serial += 1
        return self.serial

    def party(self, identity, begin=BEGIN, end=END, key=None, bits=BITS):
        """With the root left out of its chain."""
        key = key or new_key(bits)
        own = self.build(identity[:64], key.public_key(), identity, begin, end, self)
        return Party(identity, key, [own] + ([self.cert] if self.issuer else []))

    def pem(self):
        return self.cert.public_bytes(serialization.Encoding.PEM)

    def revoke(self, party):
        self.revoked.append(party.chain[0].serial_number)

    def crl_pem(self, update=None, following=END):
        b = x509.CertificateRevocationListBuilder().issuer_name(name(self.title))
        b = b.last_update(update or BEGIN).next_update(following)
        for serial in self.revoked:
            b = b.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(BEGIN).build())
        return b.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
