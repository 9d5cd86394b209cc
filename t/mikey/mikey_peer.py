# SPDX-License-Identifier: GPL-2.0-or-later
"""A MIKEY initiator and responder for tests, in every mode: pre-shared key, public key, signed Diffie-Hellman (RFC 3830), DHHMAC
(RFC 4650) and RSA-R (RFC 4738). Written from the RFCs alone."""
import hmac
import os
import struct
import time

import crypto
import wire
from wire import Payload

MODES = {"psk": (wire.PSK, wire.PSK_VER), "pke": (wire.PK, wire.PK_VER), "dh": (wire.DH, wire.DH_RESP),
         "dhhmac": (wire.DHHMAC, wire.DHHMAC_RESP), "rsa-r": (wire.RSAR, wire.RSAR_RESP)}
BY_TYPE = {types[0]: mode for mode, types in MODES.items()}

# cipher, length of the master key, authentication, length of the salt, length of the tag (RFC 3830 6.10.1, RFC 7714 14.3)
SUITES = {"AES_CM_128_HMAC_SHA1_80": (1, 16, 1, 14, 10), "AES_CM_128_HMAC_SHA1_32": (1, 16, 1, 14, 4),
          "AES_192_CM_HMAC_SHA1_80": (1, 24, 1, 14, 10), "AES_192_CM_HMAC_SHA1_32": (1, 24, 1, 14, 4),
          "AES_256_CM_HMAC_SHA1_80": (1, 32, 1, 14, 10), "AES_256_CM_HMAC_SHA1_32": (1, 32, 1, 14, 4),
          "F8_128_HMAC_SHA1_80": (2, 16, 1, 14, 10), "NULL_HMAC_SHA1_80": (0, 16, 1, 14, 10),
          "AEAD_AES_128_GCM": (6, 16, 0, 12, 16), "AEAD_AES_256_GCM": (6, 32, 0, 12, 16)}
DEFAULTS = {0: 1, 1: 16, 2: 1, 3: 20, 4: 14, 5: 0, 6: 0, 7: 1, 8: 1, 9: 0, 10: 1, 11: 10, 12: 0, 20: 16}


class Refused(Exception):
    """The message is not accepted. number: of an ERR payload; message: bytes for the peer, or None."""

    def __init__(self, number, why, message=None):
        super().__init__(f"{why} (error {number})")
        self.number, self.message = number, message


def ntp(seconds):
    """8 bytes of a Unix time."""
    return struct.pack(">II", (int(seconds) + 2208988800) & 0xffffffff, int(seconds % 1 * (1 << 32)))


def unix(stamp):
    high, low = struct.unpack(">II", stamp)
    return high - 2208988800 + low / (1 << 32)


def policy(suite, number=0):
    cipher, key, auth, salt, tag = SUITES[suite]
    params = [(0, cipher), (1, key), (2, auth), (3, 20 if auth else 0), (4, salt), (5, 0), (6, 0), (7, 1), (8, 1), (10, 1)]
    params += [(11, tag)] if cipher != 6 else [(20, tag)]
    return Payload(wire.SP, number=number, protocol=0, params=[(t, bytes([v])) for t, v in params])


def suite_of(sp):
    """The name; None if it is none of ours."""
    if sp is None:
        return "AES_CM_128_HMAC_SHA1_80"
    has = dict(DEFAULTS)
    for kind, value in sp.params:
        has[kind] = int.from_bytes(value, "big")
    if sp.protocol or has[5] or has[6] or not has[7] or not has[8] or not has[10] or has[12]:
        return None
    for name, (cipher, key, auth, _, tag) in SUITES.items():
        tag_is = has[20] if cipher == 6 else has[11]
        if (has[0], has[1], tag_is) == (cipher, key, tag) and (cipher == 6 or has[2] == auth):
            return name
    return None


def identity(data):
    return Payload(wire.ID, type=wire.URI, data=data.encode() if isinstance(data, str) else data)


def certificates(party):
    from cryptography.hazmat.primitives.serialization import Encoding
    return [Payload(wire.CERT, type=wire.X509, data=c.public_bytes(Encoding.DER)) for c in party.chain]


class Keys:
    """What was agreed on. Crypto session 1 is the first that the initiator sends, 2 the first of the responder, and so on (RFC 4567 7.1)."""

    def __init__(self, suite, csb_id, rand, key, sessions):
        self.suite, self.csb_id, self.rand, self.key, self.sessions = suite, csb_id, rand, key, sessions
        self.mki = key.mki or b""

    def master(self, cs_id):
        """Master key and salt."""
        length, salt_len = SUITES[self.suite][1], SUITES[self.suite][3]
        k = self.key
        if k.type in (wire.TEK, wire.TEK_SALT):
            return k.data, k.salt
        tek = crypto.derive(k.data, crypto.TEK_CONSTANT, cs_id, self.csb_id, self.rand, length)
        salt = k.salt if k.type == wire.TGK_SALT else crypto.derive(k.data, crypto.SALT_CONSTANT, cs_id, self.csb_id, self.rand, salt_len)
        return tek, salt


def tgk(data, mki=b"", salt=b""):
    return Payload(wire.KEY_DATA, type=wire.TGK_SALT if salt else wire.TGK, data=data, salt=salt, mki=mki)


class Side:
    """What both roles know. me: own identity; psk: bytes; party: certs.Party; roots: trusted certificates. random(what, n): n bytes."""

    def __init__(self, me, psk=None, party=None, roots=(), now=time.time, random=None):
        self.me, self.psk, self.party, self.roots, self.now = me.encode(), psk, party, roots, now
        self.random = random or (lambda what, n: os.urandom(n))
        self.bits_of_dh = 384

    def dh_secret(self, what):
        return int.from_bytes(self.random(what, self.bits_of_dh // 8), "big") | 1 << (self.bits_of_dh - 1)

    def trusted(self, message, claimed):
        """The peer's certificate: of the message, made by a root, for the claimed identity."""
        from cryptography import x509
        try:
            chain = [x509.load_der_x509_certificate(p.data) for p in message.all(wire.CERT)]
            names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names = names.get_values_for_type(x509.UniformResourceIdentifier)
        except Exception as e:  # what the parser of ASN.1 raises is of many kinds
            raise Refused(wire.INVALID_CERT, "no certificate") from e
        for below, above in zip(chain, chain[1:] + [None]):
            makers = [above] if above else [r for r in self.roots if r.subject == below.issuer]
            now = self.now()
            if not below.not_valid_before.timestamp() <= now <= below.not_valid_after.timestamp():
                raise Refused(wire.INVALID_CERT, "certificate not valid now")
            if not any(self.made(m, below) for m in makers):
                raise Refused(wire.INVALID_CERT, "certificate of no trusted root")
        if claimed is not None and claimed.decode("utf-8", "replace") not in names:
            raise Refused(wire.AUTH_FAILURE, "certificate of another identity")
        return chain[0]

    @staticmethod
    def made(maker, certificate):
        from cryptography.hazmat.primitives.asymmetric import padding
        try:
            maker.public_key().verify(certificate.signature, certificate.tbs_certificate_bytes, padding.PKCS1v15(),
                                      certificate.signature_hash_algorithm)
            return True
        except Exception:  # InvalidSignature
            return False

    def signed_message(self, header, payloads, behind=None):
        """With SIGN at the end. It covers the message but for the signature itself (5.2). behind: SIGN itself is left out, and this
        follows (RFC 4738 3.6)."""
        size = self.party.key.key_size // 8
        text = wire.write(header, payloads + [Payload(wire.SIGN, type=0, data=bytes(size))])
        covered = text[:-size] if behind is None else text[:-size - 2] + behind
        return text[:-size] + crypto.sign(self.party.key, covered)

    @staticmethod
    def check_signature(message, certificate, behind=None):
        s = message.one(wire.SIGN)
        covered = message.raw[:s.start + 2] if behind is None else message.raw[:s.start] + behind
        if s.type or not crypto.signed(certificate, s.data, covered):
            raise Refused(wire.AUTH_FAILURE, "wrong signature")

    @staticmethod
    def mac_message(header, payloads, auth, behind=b""):
        """The last payload ends with its MAC, which is the only one that is not covered."""
        text = wire.write(header, payloads)
        return text[:-20] + crypto.mac(auth, text[:-20] + behind)

    @staticmethod
    def check_mac(message, auth, behind=b""):
        if not hmac.compare_digest(message.raw[-20:], crypto.mac(auth, message.raw[:-20] + behind)):
            raise Refused(wire.AUTH_FAILURE, "wrong MAC")

    @staticmethod
    def sealed(envelope, inner, stamp, following=None):
        """KEMAC with sub-payloads. following: its MAC covers itself alone, and a payload follows (public key modes)."""
        data = envelope.crypt(wire.write_payloads(inner), stamp)
        k = Payload(wire.KEMAC, encr=1, data=data, mac_alg=1, mac=bytes(20))
        if following:
            k.mac = crypto.mac(envelope.auth, bytes([wire.LAST]) + wire.body(k)[:-20])
        return k

    @staticmethod
    def opened(envelope, k, stamp, first, alone):
        """Its sub-payloads. alone: the MAC covers the payload alone."""
        if k.encr != 1 or k.mac_alg != 1:
            raise Refused(wire.INVALID_EA if k.encr != 1 else wire.INVALID_MAC, "algorithm")
        if alone and not hmac.compare_digest(k.mac, crypto.mac(envelope.auth, bytes([wire.LAST]) + wire.body(k)[:-20])):
            raise Refused(wire.AUTH_FAILURE, "wrong MAC of KEMAC")
        return wire.read_payloads(wire.Reader(envelope.crypt(k.data, stamp)), first)


def first_key(payloads):
    keys = [p for p in payloads if p.kind == wire.KEY_DATA]
    if not keys:
        raise Refused(wire.UNSPECIFIED, "no key")
    return keys[0]


class Initiator(Side):
    """peer: identity of the responder. peer_cert: its certificate, which pke needs before. lines: m-lines of the exchange. sdp_ids: the
    list that is authenticated. kind: type of T. named: the message has our certificate. before: the
    initiator whose CSB is updated (RFC 3830 4.5)."""

    def __init__(self, mode, me, peer, suite="AES_CM_128_HMAC_SHA1_80", peer_cert=None, lines=1, sdp_ids="mikey", verify=True,
                 group=0, mki=b"", kind=wire.NTP_UTC, ssrc=0x11110000, named=True, before=None, **how):
        super().__init__(me, **how)
        self.mode, self.peer, self.suite, self.peer_cert, self.lines = mode, peer.encode(), suite, peer_cert, lines
        self.named = named
        self.sdp_ids, self.verify, self.group, self.mki, self.kind, self.ssrc = sdp_ids, verify, group, mki, kind, ssrc
        self.before = before
        self.rand, self.csb_id = (before.rand, before.csb_id) if before else (self.random("rand", 16), int.from_bytes(self.random("csb_id", 4), "big"))
        stamp = ntp(self.now())
        self.stamp = stamp[:4] if kind == wire.COUNTER else stamp
        self.keys = self.sent = None

    def envelope(self, key):
        return crypto.Envelope(key, self.csb_id, self.rand)

    def message(self):
        sessions = []
        for i in range(self.lines):
            sessions += [(0, self.ssrc + i if self.ssrc else 0, 0), (0, 0, 0)]
        verify = self.verify or self.mode == "rsa-r"
        header = wire.Header(MODES[self.mode][0], self.csb_id, sessions, verify)
        start = [Payload(wire.T, type=self.kind, value=self.stamp), *([] if self.before else [Payload(wire.RAND, data=self.rand)]), identity(self.me)]
        if self.named and self.mode in ("pke", "dh", "rsa-r"):
            start += certificates(self.party)
        start.append(identity(self.peer))
        if self.sdp_ids is not None:
            start.append(Payload(wire.GEN_EXT, type=wire.SDP_IDS, data=self.sdp_ids.encode()))
        start.append(policy(self.suite))
        self.sessions = sessions
        self.sent = getattr(self, "make_" + self.mode.replace("-", "_"))(header, start)
        return self.sent

    def agreed(self, key):
        self.keys = Keys(self.suite, self.csb_id, self.rand, key, self.sessions)

    def make_psk(self, header, start):
        e = self.envelope(self.psk)
        key = tgk(self.random("tgk", 32), self.mki)
        self.agreed(key)
        return self.mac_message(header, start + [self.sealed(e, [key], self.stamp)], e.auth)

    def make_pke(self, header, start):
        self.env_key = self.random("env_key", 16)
        key = tgk(self.random("tgk", 32), self.mki)
        self.agreed(key)
        k = self.sealed(self.envelope(self.env_key), [identity(self.me), key], self.stamp, following=True)
        pke = Payload(wire.PKE, cache=0, data=crypto.rsa_encrypt(self.peer_cert, self.env_key, lambda n: self.random("padding", n)))
        return self.signed_message(header, start + [k, pke])

    def dh_value(self):
        self.secret = self.dh_secret("dh_i")
        self.half = crypto.dh_public(self.group, self.secret)
        return Payload(wire.DH_VALUE, group=self.group, value=self.half, mki=self.mki)

    def make_dh(self, header, start):
        return self.signed_message(header, start + [self.dh_value()])

    def make_dhhmac(self, header, start):
        empty = Payload(wire.KEMAC, encr=0, data=b"", mac_alg=1, mac=bytes(20))
        return self.mac_message(header, start + [self.dh_value(), empty], self.envelope(self.psk).auth)

    def make_rsa_r(self, header, start):
        return self.signed_message(header, start)

    def read(self, data):
        """The answer: Keys. Refused if it is not one to our offer."""
        m = wire.Message(data)
        if m.header.data_type == wire.ERROR:
            raise Refused(m.one(wire.ERR).number, "the peer reports")
        t = m.one(wire.T)
        if m.header.data_type != MODES[self.mode][1] or m.header.csb_id != self.csb_id or t.value != self.stamp or t.type != self.kind:
            raise Refused(wire.UNSPECIFIED, "no answer to our offer")
        getattr(self, "read_" + self.mode.replace("-", "_"))(m)
        if m.header.sessions:
            self.keys.sessions = m.header.sessions
        return self.keys

    def responder(self, m, claimed_only=False):
        """Identity of the answer."""
        ids = m.all(wire.ID)
        return ids[0].data if ids and not claimed_only else self.peer

    def check_verification(self, m, key):
        v = m.one(wire.V)
        if v.alg != 1:
            raise Refused(wire.INVALID_MAC, "algorithm")
        self.check_mac(m, self.envelope(key).auth, self.me + self.responder(m) + self.stamp)

    def read_psk(self, m):
        self.check_verification(m, self.psk)

    def read_pke(self, m):
        self.check_verification(m, self.env_key)

    def finish_dh(self, m):
        values = m.all(wire.DH_VALUE)
        if len(values) != 2 or values[1].value != self.half or values[0].group != self.group:
            raise Refused(wire.INVALID_DH, "values")
        shared = crypto.dh_shared(self.group, values[0].value, self.secret)
        if shared is None:
            raise Refused(wire.INVALID_DH, "value")
        self.agreed(tgk(shared, self.mki))

    def named_us(self, m):
        """IDr may be absent; IDi is the last one."""
        ids = [p.data for p in m.all(wire.ID)]
        if not ids or ids[-1] != self.me:
            raise Refused(wire.INVALID_ID, "answer to another")
        return ids[0] if len(ids) > 1 else self.peer

    def read_dh(self, m):
        self.check_signature(m, self.trusted(m, self.named_us(m)))
        self.finish_dh(m)

    def read_dhhmac(self, m):
        self.named_us(m)
        self.check_mac(m, self.envelope(self.psk).auth)
        self.finish_dh(m)

    def read_rsa_r(self, m):
        who = self.responder(m)
        if m.one(wire.RAND, optional=True):
            raise Refused(wire.UNSPECIFIED, "a second RAND")
        self.check_signature(m, self.trusted(m, who), self.me + who + self.stamp)
        e = self.envelope(crypto.rsa_decrypt(self.party.key, m.one(wire.PKE).data))
        inner = self.opened(e, m.one(wire.KEMAC), self.stamp, wire.ID, alone=True)
        if inner[0].kind != wire.ID or inner[0].data != who:
            raise Refused(wire.AUTH_FAILURE, "another identity inside")
        if suite_of(m.one(wire.SP)) != self.suite:
            raise Refused(wire.INVALID_SPPAR, "another policy")
        self.agreed(first_key(inner))
