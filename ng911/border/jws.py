# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON Web Signatures of log events (RFC 7515, flattened; EdDSA with Curve448, RFC 8037, as NENA-STA-010.3 5.10 asks)."""
import base64
import json

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed448


class BadKey(Exception):
    """Key or certificate cannot be used; the text says why and names the file."""


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Signer:
    def __init__(self, certificate, key):
        """Paths of PEM files: the chain, own certificate first, and the private key."""
        chain = certificates(certificate)
        with open(key, "rb") as f:
            try:
                self.key = serialization.load_pem_private_key(f.read(), None)
            except (ValueError, TypeError) as why:
                raise BadKey(f"{key}: not a private key in PEM without a password ({why})") from None
        if not isinstance(self.key, ed448.Ed448PrivateKey):
            raise BadKey(f"{key}: log events are signed with a key of type Ed448: openssl genpkey -algorithm ED448")
        if raw(self.key.public_key()) != raw(chain[0].public_key()):
            raise BadKey(f"{certificate}: the first certificate is not that of the key in {key}")
        der = [c.public_bytes(serialization.Encoding.DER) for c in chain]
        header = {"alg": "EdDSA", "x5c": [base64.b64encode(d).decode() for d in der]}
        self.protected = base64url(json.dumps(header, separators=(",", ":")).encode())

    def sign(self, event):
        """The body of a request."""
        payload = base64url(json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode())
        signature = self.key.sign(f"{self.protected}.{payload}".encode())
        return json.dumps({"payload": payload, "protected": self.protected, "signature": base64url(signature)}).encode()


def raw(key):
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def certificates(path):
    with open(path, "rb") as f:
        parts = f.read().split(b"-----BEGIN CERTIFICATE-----")[1:]
    try:
        chain = [x509.load_pem_x509_certificate(b"-----BEGIN CERTIFICATE-----" + p) for p in parts]
    except ValueError as why:
        raise BadKey(f"{path}: not certificates in PEM ({why})") from None
    if not chain:
        raise BadKey(f"{path}: no certificate in PEM")
    return chain
