# SPDX-License-Identifier: GPL-2.0-or-later
"""The responder of mikey_peer.py."""
import crypto
import wire
from mikey_peer import BY_TYPE, MODES, Keys, Refused, Side, certificates, first_key, identity, policy, suite_of, tgk, unix
from wire import Payload


class Responder(Side):
    """sdp_ids: of the SDP, compared with the authenticated list; None: not compared. peers: pre-shared keys by identity. ssrc: of our
    first stream."""

    def __init__(self, me, suites=("AES_CM_128_HMAC_SHA1_80",), peers=None, sdp_ids="mikey", skew=300, ssrc=0x22220000, **how):
        super().__init__(me, **how)
        self.suites, self.peers, self.sdp_ids, self.skew, self.ssrc = suites, peers or {}, sdp_ids, skew, ssrc
        self.seen, self.keys = set(), None

    def answer(self, data):
        """The response, b"" if none was asked for; self.keys are those agreed on. Refused.message is an unauthenticated error message."""
        m = wire.Message(data)
        try:
            mode = BY_TYPE.get(m.header.data_type)
            if mode is None:
                raise Refused(wire.INVALID_DT, "mode")
            return self.handle(mode, m)
        except Refused as e:
            header = wire.Header(wire.ERROR, m.header.csb_id, m.header.sessions)
            t = m.one(wire.T)
            raise Refused(e.number, str(e), wire.write(header, [Payload(wire.T, type=t.type, value=t.value), Payload(wire.ERR, number=e.number)]))

    def handle(self, mode, m):
        t = m.one(wire.T)
        if t.type != wire.COUNTER and abs(unix(t.value) - self.now()) > self.skew:
            raise Refused(wire.INVALID_TS, "clock")
        if m.raw in self.seen:
            raise Refused(wire.INVALID_TS, "replayed")
        self.mode, self.m, self.stamp = mode, m, t.value
        self.csb_id = m.header.csb_id
        self.rand = m.one(wire.RAND).data
        ids = [p.data for p in m.all(wire.ID)]
        self.peer = ids[0] if ids else b""
        if len(ids) > 1 and ids[1] != self.me:
            raise Refused(wire.INVALID_ID, "for another")
        suite = self.authenticate(m)
        self.seen.add(m.raw)
        # All of it is authentic from here on.
        listed = [p.data.decode() for p in m.all(wire.GEN_EXT) if p.type == wire.SDP_IDS]
        if self.sdp_ids is not None and listed != [self.sdp_ids]:
            raise Refused(wire.AUTH_FAILURE, "the list of offered protocols was changed")
        if suite not in self.suites:
            raise Refused(wire.INVALID_SPPAR, "policy")
        self.suite = suite
        return getattr(self, "make_" + mode.replace("-", "_"))(m)

    def authenticate(self, m):
        if self.mode in ("psk", "dhhmac"):
            key = self.peers.get(self.peer.decode("utf-8", "replace"), self.psk)
            if key is None:
                raise Refused(wire.INVALID_ID, "unknown")
            self.shared = key
            self.check_mac(m, self.envelope(key).auth)
        else:
            self.peer_cert = self.trusted(m, self.peer)
            self.check_signature(m, self.peer_cert)
        return suite_of(m.one(wire.SP, optional=True))

    def envelope(self, key):
        return crypto.Envelope(key, self.csb_id, self.rand)

    def header(self):
        """Our SSRCs fill those of our streams, which are every second crypto session, where the initiator left them open."""
        sessions = [(number, ssrc or (self.ssrc + i // 2) * (i % 2), roc) for i, (number, ssrc, roc) in enumerate(self.m.header.sessions)]
        self.sessions = sessions
        return wire.Header(MODES[self.mode][1], self.csb_id, sessions)

    def t(self):
        p = self.m.one(wire.T)
        return Payload(wire.T, type=p.type, value=p.value)

    def agreed(self, key):
        self.keys = Keys(self.suite, self.csb_id, self.rand, key, self.sessions)

    def verification(self, key, payload_key):
        header = self.header()
        self.agreed(payload_key)
        if not self.m.header.verify:
            return b""
        last = Payload(wire.V, alg=1, data=bytes(20))
        return self.mac_message(header, [self.t(), identity(self.me), last], self.envelope(key).auth, self.peer + self.me + self.stamp)

    def make_psk(self, m):
        inner = self.opened(self.envelope(self.shared), m.one(wire.KEMAC), self.stamp, wire.KEY_DATA, alone=False)
        return self.verification(self.shared, first_key(inner))

    def make_pke(self, m):
        env_key = crypto.rsa_decrypt(self.party.key, m.one(wire.PKE).data)
        inner = self.opened(self.envelope(env_key), m.one(wire.KEMAC), self.stamp, wire.ID, alone=True)
        if inner[0].kind != wire.ID or inner[0].data != self.peer:
            raise Refused(wire.AUTH_FAILURE, "another identity inside")
        return self.verification(env_key, first_key(inner))

    def dh(self, m):
        theirs = m.one(wire.DH_VALUE)
        secret = self.dh_secret("dh_r")
        shared = crypto.dh_shared(theirs.group, theirs.value, secret)
        if shared is None:
            raise Refused(wire.INVALID_DH, "value")
        self.agreed(tgk(shared, theirs.mki or b""))
        ours = Payload(wire.DH_VALUE, group=theirs.group, value=crypto.dh_public(theirs.group, secret), mki=theirs.mki)
        return [identity(self.peer), ours, Payload(wire.DH_VALUE, group=theirs.group, value=theirs.value, mki=theirs.mki)]

    def make_dh(self, m):
        header = self.header()
        return self.signed_message(header, [self.t(), identity(self.me)] + certificates(self.party) + self.dh(m))

    def make_dhhmac(self, m):
        header = self.header()
        empty = Payload(wire.KEMAC, encr=0, data=b"", mac_alg=1, mac=bytes(20))
        return self.mac_message(header, [self.t(), identity(self.me)] + self.dh(m) + [empty], self.envelope(self.shared).auth)

    def make_rsa_r(self, m):
        header = self.header()
        env_key = self.random("env_key", 16)
        key = tgk(self.random("tgk", 32))
        self.agreed(key)
        k = self.sealed(self.envelope(env_key), [identity(self.me), key], self.stamp, following=True)
        pke = Payload(wire.PKE, cache=0, data=crypto.rsa_encrypt(self.peer_cert, env_key, lambda n: self.random("padding", n)))
        payloads = [self.t(), identity(self.me)] + certificates(self.party) + [policy(self.suite), k, pke]
        return self.signed_message(header, payloads, behind=self.peer + self.me + self.stamp)
