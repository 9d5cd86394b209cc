# SPDX-License-Identifier: GPL-2.0-or-later
"""Secrets of one exchange: identifiers of retained secrets (RFC 6189 4.3.1), the keys that s0 derives by peer_kdf.py, and the encrypted
parts of Confirm and SASrelay (5.7, 5.13)."""
import hmac
import os

import peer_kdf
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from peer_wire import Dropped, message, sized

INITIATOR, RESPONDER = "i", "r"
WORDS = {INITIATOR: b"Initiator", RESPONDER: b"Responder"}
NAMES = ("rs1", "rs2", "aux", "pbx")


def text(name):
    """The name of an algorithm as peer_kdf.py has it."""
    return name.decode().rstrip()


def other(role):
    return RESPONDER if role == INITIATOR else INITIATOR


def identifiers(hash_name, secrets, role, h3):
    """Identifiers of the secrets of a peer with this role and H3. A random one stands for each missing secret."""
    return [peer_kdf.mac(hash_name, secrets.get(name) or os.urandom(32), h3 if name == "aux" else WORDS[role])[:8] for name in NAMES]


def matching(hash_name, secrets, role, h3, ids):
    """Secrets that both have: rs1 (s1 of the RFC), aux, pbx. role, h3, ids: of the peer, as it sent them."""
    def same(name, position, key):
        return bool(secrets.get(name)) and peer_kdf.mac(hash_name, secrets[name], key)[:8] == ids[position]
    # Rows: our secret and the place of the peer's. The initiator's rs1 goes before its rs2, whichever of the responder's it is.
    rows = [("rs1", 0), ("rs2", 0), ("rs1", 1), ("rs2", 1)] if role == INITIATOR else [("rs1", 0), ("rs1", 1), ("rs2", 0), ("rs2", 1)]
    found = {"rs1": secrets[name] for name, position in reversed(rows) if same(name, position, WORDS[role])}
    if same("aux", 2, h3):
        found["aux"] = secrets["aux"]
    if same("pbx", 3, WORDS[role]):
        found["pbx"] = secrets["pbx"]
    return found


def preshared(hash_name, secrets, names):
    """The preshared key of these secrets, and its keyID (4.4.2)."""
    key = peer_kdf.HASHES[hash_name](b"".join(peer_kdf.counted(secrets[n] if n in names else b"") for n in ("rs1", "aux", "pbx"))).digest()
    return key, peer_kdf.mac(hash_name, key, b"Prsh")[:8]


class Keys:
    """All keys of one stream. chosen: algorithms. messages: those of total_hash, the responder's Hello first."""

    def __init__(self, chosen, zids, messages, shared, **more):
        """more: result of the agreement, or session, the secret of another stream."""
        self.hash = text(chosen["hash"])
        v = {"hash": self.hash, "cipher": text(chosen["cipher"]), "agreement": text(chosen["agreement"]), "shared": list(shared), **shared, **more}
        total = peer_kdf.HASHES[self.hash](b"".join(messages)).digest()
        context = zids + total
        peer_kdf.keys(v, zids, context, peer_kdf.secret(v, zids, total, context))
        self.values, self.zids = v, zids
        self.session, self.rs1, self.pbx, self.sas_hash = v["new_session"], v["new_rs1"], v["new_pbx"], v["sas_hash"]

    def srtp(self, role):
        """Master key and salt of what this role sends."""
        return self.values["srtp_key_" + role] + self.values["srtp_salt_" + role]

    def mac(self, role, data):
        return peer_kdf.mac(self.hash, self.values["mac_key_" + role], data)[:8]

    def after_clear(self):
        """The secret for further streams after a GoClear (4.7.2.1)."""
        return peer_kdf.kdf(self.hash, self.session, "New ZRTP Session", self.zids, 8 * peer_kdf.HASHES[self.hash]().digest_size)

    def _cfb(self, role, iv):
        return Cipher(algorithms.AES(self.values["key_" + role]), modes.CFB(iv))

    def locked(self, kind, role, body):
        """A Confirm or SASrelay with this body."""
        iv = os.urandom(16)
        hidden = self._cfb(role, iv).encryptor().update(body)
        return message(kind, self.mac(role, hidden), iv, hidden)

    def opened(self, role, data):
        """Body of a Confirm or SASrelay that this role sent."""
        if len(data) < 76:
            raise Dropped("short Confirm or SASrelay")
        mac, iv, hidden = sized(data, 8, 16, len(data) - 36)
        if not hmac.compare_digest(mac, self.mac(role, hidden)):
            raise Dropped("MAC of a Confirm or SASrelay")
        return self._cfb(role, iv).decryptor().update(hidden)
