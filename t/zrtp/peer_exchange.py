# SPDX-License-Identifier: GPL-2.0-or-later
"""From Commit to Conf2ACK, as either end (RFC 6189 4.2 to 4.6): by public keys, by a retained secret (Prsh) or by that of another stream
(Mult). A packet that does not fit the hash chain is dropped, and the exchange goes on. A wrong value in one that fits ends it."""
import itertools
import os

import peer_agree as agree
import peer_keys as keys
import peer_sas
import peer_wire as wire
from peer_wire import Dropped, Failed

# From the fastest on (4.1.2); X255 is not in the RFC.
SPEED = (b"DH2k", b"X255", b"EC25", b"DH3k", b"EC38")
NOT_OFFERED = {"hash": 0x51, "cipher": 0x52, "agreement": 0x53, "tag": 0x54, "sas": 0x55}
CIPHERS = {b"AES1": "AES_CM_128", b"AES2": "AES_192_CM", b"AES3": "AES_256_CM"}
FOREVER = 0xffffffff


class Exchange:
    def begin_exchange(self):
        self.role = None  # keys.INITIATOR or keys.RESPONDER
        self.chosen, self.pair, self.keys, self.matched = None, None, None, {}
        self.messages = {}  # by type, both ends' from Commit to DHPart2
        self.images = {}    # of the peer's hash chain, by number
        self.answers = {}   # by message of the peer: ours. A repeated message gets it again.
        self.sas = self.sas_hash = None
        self.verified = self.mismatched = self.peer_clears = self.enrolment_offered = False
        self.lifetime = FOREVER if self.cache else 0
        self.secrets = None
        self.draw = lambda commit: True  # a test may want another hvi or nonce

    # --- What both roles do ---

    def answer(self, text, reply):
        self.answers[text] = reply
        self.send(reply)

    def known(self, text):
        """A message that was answered gets its answer again."""
        if text in self.answers:
            self.send(self.answers[text])
        return text in self.answers

    def need(self, state, what):
        if self.state not in (state if isinstance(state, tuple) else (state,)):
            raise Dropped(f"{what} in state {self.state}")

    def image(self, number, value):
        """The peer's H of this number. The next one must be its hash; those between are computed."""
        top = min(self.images, default=3)
        hashes = [value]
        while len(hashes) <= top - number:
            hashes.append(wire.sha(hashes[-1]))
        if hashes[-1] != (self.images[top] if self.images else self.theirs.h3):
            raise Dropped(f"hash image H{number}")
        return {number + i: h for i, h in enumerate(hashes)}

    def believe(self, number, value, before):
        """before: an earlier message of the peer and the number of its key."""
        images = self.image(number, value)
        text, key = before
        if wire.seal(images[key], text[:-8]) != text[-8:]:
            raise Dropped(f"MAC of {text[4:12].decode()}")
        self.images |= images

    def shared(self):
        """Our secrets with this peer, read once."""
        if self.secrets is None:
            self.secrets = self.cache.get(self.theirs.zid) if self.cache else {}
        return self.secrets

    def is_dh(self):
        return self.chosen["agreement"] in agree.SIZES

    def derive(self, result=b""):
        name, mine = self.chosen["agreement"], self.role == keys.INITIATOR
        zids = self.zid + self.theirs.zid if mine else self.theirs.zid + self.zid
        hellos = self.theirs.text if mine else self.hello
        order = [hellos, self.messages[b"Commit  "]] + ([self.messages[b"DHPart1 "], self.messages[b"DHPart2 "]] if result else [])
        more = {"session": self.session.key} if name == b"Mult" else {"result": result}
        self.keys = keys.Keys(self.chosen, zids, order, self.matched, **more)
        if name == b"Mult":
            return
        self.sas_hash = self.keys.sas_hash
        self.sas = peer_sas.render(self.chosen["sas"], self.sas_hash)

    def match(self, part):
        """The identifiers in the peer's DHPart."""
        self.matched = keys.matching(keys.text(self.chosen["hash"]), self.shared(), keys.other(self.role), self.theirs.h3, part.ids)
        self.mismatched = "rs1" in self.shared() and "rs1" not in self.matched

    def part(self, kind):
        ids = keys.identifiers(keys.text(self.chosen["hash"]), self.shared(), self.role, self.chain[3])
        return wire.dhpart(kind, self.chain, ids, self.pair.value)

    def agreed(self, part):
        try:
            return self.pair.result(part.value)
        except agree.BadValue:
            raise Failed(0x61) from None

    def confirm(self, kind):
        s, old = self.settings, self.shared() if self.chosen["agreement"] != b"Mult" else {}
        flags = wire.ENROL * s.asks_enrol + wire.VERIFIED * bool(old.get("verified")) + wire.CLEAR * (s.allow_clear and not s.asks_enrol) + wire.DISCLOSED * s.discloses
        lifetime = FOREVER if self.chosen["agreement"] == b"Mult" else self.lifetime
        return self.keys.locked(kind, self.role, self.chain[0] + flags.to_bytes(4, "big") + lifetime.to_bytes(4, "big"))

    def confirmed(self, text):
        """Body of the peer's Confirm."""
        body = self.keys.opened(keys.other(self.role), text)
        before = None
        if self.is_dh():
            before = (self.messages[b"DHPart1 " if self.role == keys.INITIATOR else b"DHPart2 "], 0)
        elif self.role == keys.INITIATOR:
            before = (self.theirs.text, 2)
        else:
            before = (self.messages[b"Commit  "], 1)
        self.believe(0, body[:32], before)
        flags = body[35]
        self.disclosed = bool(flags & wire.DISCLOSED)
        self.peer_clears = bool(flags & wire.CLEAR) and not flags & wire.ENROL
        self.enrolment_offered = bool(flags & wire.ENROL) and bool(self.theirs.flags & wire.MITM)
        self.verified = bool(flags & wire.VERIFIED) and bool(self.shared().get("verified")) and not self.mismatched
        self.lifetime = min(self.lifetime, int.from_bytes(body[36:40], "big"))

    def secured(self):
        self.state = "secure"
        self.timer.stop()
        self.hello_timer.stop()
        if self.chosen["agreement"] == b"Mult":
            return
        self.session.key, self.session.hash = self.keys.session, self.chosen["hash"]
        if not self.cache:
            return
        if self.lifetime and not self.mismatched:
            self.cache.renew(self.theirs.zid, self.keys.rs1, self.is_dh())
        if (self.enrolment_offered and self.settings.enrols) or self.settings.asks_enrol:
            self.cache.put(self.theirs.zid, "pbx", self.keys.pbx)

    def compared(self):
        """The user compared the SAS."""
        self.cache.renew(self.theirs.zid, self.keys.rs1, False)
        self.cache.put(self.theirs.zid, "verified", True)

    def suite(self):
        return f"{CIPHERS[self.chosen['cipher']]}_HMAC_SHA1_{self.chosen['tag'][2:].decode()}"

    def sends(self):
        """Master key and salt for our media."""
        return self.keys.srtp(self.role)

    def receives(self):
        return self.keys.srtp(keys.other(self.role))

    def srtp_seen(self):
        """Authentic media of the responder are as good as its Conf2ACK."""
        if self.state == "confirm2":
            self.secured()

    # --- Initiator ---

    def common(self, kind):
        return [name for name in self.offers[kind] if name in self.theirs.lists[kind]]

    def choose(self, agreement):
        chosen = {kind: self.common(kind)[0] for kind in ("cipher", "tag", "sas", "hash")}
        if agreement == b"EC38":
            chosen["hash"] = b"S384"
        return {**chosen, "agreement": agreement}

    def best(self):
        """The faster one of both ends' first choices."""
        mine = [a for a in self.common("agreement") if a in agree.SIZES]
        theirs = next(a for a in self.theirs.lists["agreement"] if a in mine)
        return min(mine[0], theirs, key=SPEED.index)

    def commit(self, dh=False):
        """dh: not by a retained secret."""
        self.role, self.messages, self.images = keys.INITIATOR, {}, {}
        if self.first or self.state == "clear":
            self.chosen = {**(self.first or self).chosen, "agreement": b"Mult"}
        elif self.settings.preshared and not dh and b"Prsh" in self.theirs.lists["agreement"] and "rs1" in self.shared():
            self.chosen = self.choose(b"Prsh")
        else:
            self.chosen = self.choose(self.best())
        if self.is_dh():
            self.pair = agree.Pair(self.chosen["agreement"])
        commit = next(c for c in map(self.one_commit, itertools.count()) if self.draw(c))
        self.messages[b"Commit  "] = commit.text
        if self.chosen["agreement"] == b"Mult":
            self.session.nonces.add(commit.rest)
        self.state = "commit"
        self.repeat(self.timer, commit.text)

    def one_commit(self, _number):
        """Its hvi or nonce is drawn again each time."""
        hash_name = keys.text(self.chosen["hash"])
        if self.is_dh():
            self.messages[b"DHPart2 "] = self.part(b"DHPart2 ")
            rest = keys.peer_kdf.HASHES[hash_name](self.messages[b"DHPart2 "] + self.theirs.text).digest()[:32]
        else:
            rest = os.urandom(16)
        if self.chosen["agreement"] == b"Prsh":
            names = [n for n in ("rs1", "aux", "pbx") if n in self.shared()]
            self.matched = {n: self.shared()[n] for n in names}
            rest += keys.preshared(hash_name, self.shared(), names)[1]
        return wire.Commit.read(wire.commit(self.chain, self.zid, self.chosen, rest))

    def on_dhpart1(self, text):
        if self.state == "dhpart2" and text == self.messages.get(b"DHPart1 "):
            return
        self.need("commit", "DHPart1")
        if not self.is_dh():
            raise Dropped("DHPart1 without public keys")
        part = wire.Part.read(text, agree.SIZES[self.chosen["agreement"]])
        self.believe(1, part.h1, (self.theirs.text, 2))
        self.messages[b"DHPart1 "] = text
        result = self.agreed(part)
        self.match(part)
        self.derive(result)
        self.state = "dhpart2"
        self.repeat(self.timer, self.messages[b"DHPart2 "])

    def on_confirm1(self, text):
        if self.known(text):
            return
        self.need("dhpart2" if self.is_dh() else "commit", "Confirm1")
        if not self.is_dh():
            self.derive()
        self.confirmed(text)
        self.hello_timer.stop()
        self.state = "confirm2"
        reply = self.confirm(b"Confirm2")
        self.repeat(self.timer, reply)

    def on_conf2ack(self, _text):
        self.need("confirm2", "Conf2ACK")
        self.secured()

    # --- Responder ---

    def on_commit(self, text):
        if self.known(text):
            return
        self.need(("discovery", "commit", "clear"), "Commit")
        if not self.theirs:
            raise Dropped("Commit without Hello")
        commit = wire.Commit.read(text)
        if commit.zid != self.theirs.zid:
            raise Dropped("ZID of a Commit")
        if self.state == "clear":
            if commit.h2 != self.images[2]:
                raise Dropped("hash image H2")
        else:
            images = self.image(2, commit.h2)
            if not self.theirs.made_by(commit.h2):
                raise Dropped("MAC of Hello")
        if self.state == "commit" and not self.yields(commit):
            raise Dropped("a Commit that loses")
        for kind, name in commit.chosen.items():
            if name not in (*self.offers[kind], wire.MANDATORY[kind]) or (name == b"S256" and commit.chosen["agreement"] == b"EC38"):
                raise Failed(NOT_OFFERED[kind])
        if commit.chosen["agreement"] == b"Prsh" and not self.has_preshared(commit):
            return
        again = self.state == "clear"
        self.timer.stop()
        self.hello_timer.stop()
        self.role, self.chosen, self.messages = keys.RESPONDER, commit.chosen, {b"Commit  ": text}
        self.images = {2: images[2]} if not again else {2: commit.h2}
        if self.is_dh():
            self.pair = agree.Pair(self.chosen["agreement"])
            self.messages[b"DHPart1 "] = self.part(b"DHPart1 ")
            self.state = "dhpart1"
            self.answer(text, self.messages[b"DHPart1 "])
            return
        if self.chosen["agreement"] == b"Mult":
            self.use_session(commit.rest)
        self.derive()
        self.state = "confirm1"
        self.answer(text, self.confirm(b"Confirm1"))

    def yields(self, commit):
        """Our Commit is discarded for the other one (4.2)."""
        mine = wire.Commit.read(self.messages[b"Commit  "])
        names = mine.chosen["agreement"], commit.chosen["agreement"]
        if (b"Mult" in names) and names[0] != names[1]:
            raise Failed(0x20)
        if names[0] != names[1] and b"Prsh" in names:
            return names[0] == b"Prsh"
        if names == (b"Prsh", b"Prsh") and self.settings.mitm != bool(self.theirs.flags & wire.MITM):
            return self.settings.mitm
        return mine.weight() < commit.weight()

    def use_session(self, nonce):
        if not self.session.key:
            raise Failed(0x56)
        if nonce in self.session.nonces:
            raise Failed(0x80)
        self.session.nonces.add(nonce)

    def has_preshared(self, commit):
        """Looks for the secrets of this keyID. Without them, a Commit of our own by public keys."""
        mine = self.shared()
        for names in (("rs1", "aux", "pbx"), ("rs1", "aux"), ("rs1", "pbx"), ("rs1",)):
            if all(n in mine for n in names) and keys.preshared(keys.text(commit.chosen["hash"]), mine, names)[1] == commit.rest[16:]:
                self.matched = {n: mine[n] for n in names}
                return True
        if self.settings.role == "responder":
            raise Failed(0x56)
        if self.state == "discovery":
            self.commit(dh=True)
        return False

    def on_dhpart2(self, text):
        if self.known(text):
            return
        self.need("dhpart1", "DHPart2")
        part = wire.Part.read(text, agree.SIZES[self.chosen["agreement"]])
        commit = wire.Commit.read(self.messages[b"Commit  "])
        self.believe(1, part.h1, (commit.text, 1))
        if keys.peer_kdf.HASHES[keys.text(self.chosen["hash"])](text + self.hello).digest()[:32] != commit.rest:
            raise Failed(0x62)
        self.messages[b"DHPart2 "] = text
        result = self.agreed(part)
        self.match(part)
        self.derive(result)
        self.state = "confirm1"
        self.answer(text, self.confirm(b"Confirm1"))

    def on_confirm2(self, text):
        if self.known(text):
            return
        self.need("confirm1", "Confirm2")
        self.confirmed(text)
        self.answer(text, wire.message(b"Conf2ACK"))
        self.secured()

    HANDLERS = {b"Commit  ": on_commit, b"DHPart1 ": on_dhpart1, b"DHPart2 ": on_dhpart2, b"Confirm1": on_confirm1, b"Confirm2": on_confirm2,
                b"Conf2ACK": on_conf2ack}
