# SPDX-License-Identifier: GPL-2.0-or-later
"""During the exchange and after it: Error, GoClear, SASrelay, Ping (RFC 6189 4.7, 5.9 to 5.16, 7.3)."""
import hmac

import peer_keys as keys
import peer_sas
import peer_wire as wire
from peer_wire import Dropped

NOT_ALLOWED = 0x100


class After:
    def begin_after(self):
        self.relayed = None          # scheme and hash of the SAS of the far end, to be shown
        self.far_flags = 0           # of that SASrelay (5.13)
        self.relays = []             # scheme and hash of each authentic SASrelay, to be shown or not
        self.pings, self.acks = [], []

    # --- Error ---

    def on_error(self, text):
        self.errors.append(int.from_bytes(*wire.sized(text, 4), "big"))
        self.send(wire.message(b"ErrorACK"))
        if self.state not in ("secure", "clear"):
            self.state = "failed"
            self.hello_timer.stop()
            self.timer.stop()
        elif self.errors[-1] == NOT_ALLOWED:
            self.after_timer.stop()

    def on_error_ack(self, _text):
        self.error_timer.stop()

    # --- GoClear ---

    def go_clear(self, now):
        """Media wait for the ClearACK."""
        self.now = now
        self.repeat(self.after_timer, wire.message(b"GoClear ", self.keys.mac(self.role, b"GoClear ")))

    def on_goclear(self, text):
        self.need(("secure", "clear"), "GoClear")
        mac, = wire.sized(text, 8)
        if not hmac.compare_digest(mac, self.keys.mac(keys.other(self.role), b"GoClear ")):
            raise Dropped("MAC of GoClear")
        if not self.settings.allow_clear:
            self.repeat(self.error_timer, wire.message(b"Error   ", NOT_ALLOWED.to_bytes(4, "big")))
            return
        if self.state == "secure":
            self.forget()
        self.send(wire.message(b"ClearACK"))

    def forget(self):
        self.state = "clear"
        if self.session.key:
            self.session.key = self.keys.after_clear() if not self.first else self.session.key

    def on_clear_ack(self, _text):
        if not self.after_timer.text or self.after_timer.text[4:12] != b"GoClear ":
            raise Dropped("ClearACK")
        self.after_timer.stop()
        self.forget()

    def secure_again(self, now):
        """After GoClear: another Commit of the same stream, with the secret that is left."""
        self.now = now
        self.commit()

    # --- SASrelay ---

    def relay_sas(self, scheme, sas_hash, now):
        """As a PBX: to an enrolled terminal the SAS of the far end, to another one the scheme alone."""
        self.now = now
        hidden = sas_hash if "pbx" in self.matched else bytes(32)
        flags = wire.CLEAR * self.settings.allow_clear + wire.DISCLOSED * self.settings.discloses
        self.repeat(self.after_timer, self.keys.locked(b"SASrelay", self.role, flags.to_bytes(4, "big") + scheme + hidden))

    def on_sasrelay(self, text):
        self.need("secure", "SASrelay")
        body = self.keys.opened(keys.other(self.role), text)
        scheme, sas_hash = body[4:8], body[8:40]
        self.relays.append((scheme, sas_hash))
        if self.theirs.flags & wire.MITM and "pbx" in self.matched and any(sas_hash):
            self.far_flags, self.far_discloses = body[3], bool(body[3] & wire.DISCLOSED)
            self.relayed = (scheme, sas_hash)
        self.send(wire.message(b"RelayACK"))

    def on_relay_ack(self, _text):
        if not self.after_timer.text or self.after_timer.text[4:12] != b"SASrelay":
            raise Dropped("RelayACK")
        self.after_timer.stop()

    def shown(self):
        """What the terminal shows its user."""
        return peer_sas.render(*self.relayed) if self.relayed else self.sas

    # --- Ping ---

    def ping(self, endpoint):
        """endpoint: EndpointHash, 8 bytes."""
        self.send(wire.message(b"Ping    ", wire.VERSION, endpoint))

    def on_ping(self, text, ssrc):
        version, endpoint = wire.sized(text, 4, 8)
        self.pings.append(version)
        self.send(wire.message(b"PingACK ", wire.VERSION, self.zid[:8], endpoint, ssrc.to_bytes(4, "big")))

    def on_ping_ack(self, text):
        self.acks.append(wire.sized(text, 4, 8, 8, 4))

    HANDLERS = {b"Error   ": on_error, b"ErrorACK": on_error_ack, b"GoClear ": on_goclear, b"ClearACK": on_clear_ack, b"SASrelay": on_sasrelay,
                b"RelayACK": on_relay_ack, b"Ping    ": on_ping, b"PingACK ": on_ping_ack}
