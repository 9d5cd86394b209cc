# SPDX-License-Identifier: GPL-2.0-or-later
"""The rules for packets on the wire, which hold for all requests and all senders.

Input is a list of events, so that a control can be fed without a daemon:
  told_port, told_key, told_plain   a terminal was told this in SDP: a media port of the daemon, a key that the daemon sends
                                    under from that port, or that the port sends plain RTP
  sends                             a terminal or an attacker is about to send a mark, and whether it may be relayed
  told_side                         the port sends STUN, DTLS or ZRTP of the daemon itself
  knocks                            a stranger is about to send such a packet to a port
  secured                           an answer agreed on keys: nothing in clear from now on
  unsecured                         a restart, which may bring back an earlier agreement
  awaits, answered                  a terminal that offered plain RTP can receive early media, from a port that the answer will name
  settled                           from now on no stranger may hear what a port sends
  packet                            a packet left the gateway
From the daemon it uses only keys and ports, as they are in the SDPs for the terminals.
"""
import ipaddress
import struct
from collections import defaultdict

import g711
import srtpkey

MAGIC = b"\xa7ATK"
MARK_LEN = 12
# The relay converts payloads of G.711. So the mark follows a second time: each half of a byte is a sample that both laws have.
SAMPLES = [u for u in range(256) if g711.to_ulaw(g711.to_alaw(bytes([u]))) == bytes([u])][0x41::7][:16]
LAWS = [bytes(SAMPLES), g711.to_alaw(bytes(SAMPLES))]  # by payload type / 8
BACK = [{s: n for n, s in enumerate(law)} for law in LAWS]
CHECKS = {
    "reuse": "one (key, SSRC, index) with two ciphertexts",
    "forbidden": "media sent to an address that no terminal may have",
    "ng": "a datagram from a media port to ng",
    "source": "media relayed from a source that is not a terminal of the call",
    "stranger": "media sent to an address that is not a terminal of the call",
    "answers": "more bytes of STUN, DTLS or ZRTP to a stranger than it sent",
    "loop": "one packet relayed again and again",
    "clear": "plaintext to a terminal that only got SRTP in its SDP",
    "echo": "media relayed back to the terminal that sent it",
    "unknown": "a packet that opens under no key in its receiver's SDP",
    "fork": "a request that belongs to no branch of a call changed it",
    "sdp": "control bytes or keys of other mechanisms in SDP for a terminal",
    "alive": "the daemon crashed, leaked or left a request without a reply",
}
HOPS_MAX = 40  # fan-out to subscribers included; a loop makes thousands


def mark(sender, serial):
    """The payload's first bytes: its sender and number."""
    return MAGIC + struct.pack("!II", sender, serial)


def audible(m, law):
    """The mark as samples of a law of G.711."""
    return bytes(LAWS[law][n] for byte in m for n in (byte >> 4, byte & 15))


SOUNDS = [audible(MAGIC, law) for law in (0, 1)]


def read_samples(data, law):
    halves = [BACK[law].get(s) for s in data]
    return None if None in halves else bytes(a << 4 | b for a, b in zip(halves[::2], halves[1::2]))


def find_mark(data):
    at = data.find(MAGIC)
    if at >= 0 and len(data) >= at + MARK_LEN:
        return struct.unpack_from("!II", data, at + 4)
    for law, sound in enumerate(SOUNDS):
        at = data.find(sound)
        m = read_samples(data[at:at + 2 * MARK_LEN], law) if at >= 0 and len(data) >= at + 2 * MARK_LEN else None
        if m:
            return struct.unpack_from("!II", m, 4)
    return None


def is_media(data):
    """RTP or RTCP, not STUN, DTLS or ZRTP (RFC 7983)."""
    return data[:1] != b"" and data[0] >> 6 == 2


class Port:
    """A media port of the daemon, and the SDPs that announced it to terminals."""

    def __init__(self, group):
        self.group, self.keys, self.plain = group, [], False
        self.was_plain, self.side, self.taken = False, False, False
        self.settled = False
        self.peers = set()  # (address, port) that its terminals signalled or send from
        self.owners = set()  # senders who were told to send here


class Violation(Exception):
    def __init__(self, check, text, packet=None):
        super().__init__(f"{check}: {text}")
        self.check, self.text, self.packet = check, text, packet

    def __str__(self):
        p = self.packet
        where = f"\n    packet {p.link}: {p.src}:{p.sport} > {p.dst}:{p.dport} {p.data[:48].hex()}" if p else ""
        return f"{self.check} ({CHECKS[self.check]}): {self.text}{where}"


class Checker:
    """own: the gateway's addresses; ng_port; media: the range of the daemon's media ports."""

    def __init__(self, own, media, ng_port=22222, enabled=None):
        self.own, self.ng_port, self.media = set(own), ng_port, media
        self.enabled = set(CHECKS if enabled is None else enabled)
        self.ports, self.keys = {}, {}
        self.used, self.rocs = {}, defaultdict(lambda: {0})
        self.permit, self.hops = {}, defaultdict(int)
        self.strangers, self.echoed = set(), set()
        self.awaiting = defaultdict(dict)  # (address, port): {call: (media, side)}; a call may name another's address
        self.credit = defaultdict(int)  # bytes that a stranger may still get from a port as answers
        self.merged = {}
        self.count = defaultdict(int)
        self.found = []

    # --- Reports of the model --------------------------------------------------------------------------------------------

    def event(self, name, *args):
        getattr(self, name)(*args)

    def told_port(self, address, port, group):
        p = self.ports.get((address, port))
        if p is None or self.root(p.group) != self.root(group):  # a port of a call that is over may come back
            self.ports[(address, port)] = Port(group)

    def told_key(self, address, port, suite, material, kind=""):
        """kind: name of the counter in the report, if the key does not come from SDES. A terminal may decline the tags of SRTP+."""
        for name in dict.fromkeys((srtpkey.bare(suite), suite)):
            key = self.keys.setdefault((name, material), srtpkey.Key(name, material))
            key.kind = kind or ("SRTP+" if key.scheme else "")
            known = self.ports[(address, port)].keys
            if key in known:
                known.remove(key)
            known.insert(0, key)

    def told_plain(self, address, port):
        self.ports[(address, port)].plain = self.ports[(address, port)].was_plain = True

    def secured(self, address, port, taken=False):
        """Both SDPs agree on keys: nothing leaves in clear from now on. taken: a stranger may have won the leg before, and gets packets
        that it cannot read until the terminal sends."""
        p = self.ports[(address, port)]
        p.plain, p.taken = False, p.taken or taken

    def unsecured(self):
        """A restart may bring back an earlier agreement."""
        for p in self.ports.values():
            p.plain = p.was_plain

    def told_side(self, address, port):
        """STUN, DTLS or ZRTP of the daemon itself leave from this port, also to strangers who sent such packets."""
        self.ports[(address, port)].side = True

    def knocks(self, address, port, source, size):
        self.credit[(address, port, *source)] += size
        self.count["knocks"] += 1

    def peer(self, address, port, peer):
        """A terminal of this port signalled this address, or sends from it."""
        self.ports[(address, port)].peers.add(peer)

    def owner(self, address, port, sender):
        self.ports[(address, port)].owners.add(sender)

    def awaits(self, address, port, group, media=True, side=False):
        """media: RTP in clear; side: checks and handshakes."""
        self.awaiting[(address, port)][group] = media, side

    def answered(self, group):
        for calls in self.awaiting.values():
            calls.pop(group, None)

    def settled(self, address, port, value=True):
        if (address, port) in self.ports:
            self.ports[(address, port)].settled = value

    def stranger(self, address):
        """No terminal of any call is at this address."""
        self.strangers.add(address)

    def sends(self, sender, serial, group, permitted, what=""):
        """group: the call of the sender, None for a stranger; what: for the report."""
        self.permit[(sender, serial)] = (group, permitted, what)

    def echoes(self, m):
        """A terminal with plain RTP sends received packets back."""
        self.echoed.add(m)

    def merge(self, one, other):
        """From now on packets may pass between the parties of two calls."""
        self.merged[self.root(one)] = self.root(other)

    def root(self, group):
        while group in self.merged and self.merged[group] != group:
            group = self.merged[group]
        return group

    # --- Packets on the wire ---------------------------------------------------------------------------------------------

    def fail(self, check, text, packet):
        self.count[check] += 1
        if check in self.enabled and len(self.found) < 100:
            self.found.append(Violation(check, text, packet))

    def packet(self, p):
        if p.src not in self.own or not self.media[0] <= p.sport <= self.media[1]:
            return
        self.count["packets"] += 1
        self.destination(p)
        port = self.ports.get((p.src, p.sport))
        if port is None:
            self.early(p)
            return
        self.receiver(port, p)
        if len(p.data) < 12 or p.data[0] >> 6 != 2:
            clear = p.data  # STUN, DTLS, ZRTP, or empty packets that open a firewall: the daemon's own or relayed
        else:
            clear = self.open(port, p)
        m = find_mark(clear) if clear else None
        if m:
            self.relayed(port, m, p)

    def destination(self, p):
        if p.dport == self.ng_port and p.dst in self.own | {"127.0.0.1", "::1"} or p.dport == self.ng_port and p.link == "lo":
            self.fail("ng", "to ng", p)
            return
        a = ipaddress.ip_address(p.dst)
        a = getattr(a, "ipv4_mapped", None) or a
        why = ("loopback" if a.is_loopback else "unspecified" if a.is_unspecified else "multicast" if a.is_multicast
               else "0/8" if a.version == 4 and a.packed[0] == 0 else "broadcast" if a.version == 4 and
               (a.packed == b"\xff\xff\xff\xff" or p.dst.startswith("10.200.") and p.dst.endswith((".255", ".0"))) else None)
        if why is None and p.dst in self.own:
            other, mine = self.ports.get((p.dst, p.dport)), self.ports.get((p.src, p.sport))
            if other is None:
                why = "an address of the gateway, and no media port"
            elif (mine is other or mine and mine.group == other.group) and is_media(p.data):
                why = "a media port of the same call"
        if why:
            self.fail("forbidden", why, p)

    def early(self, p):
        """A packet from a port that is in no terminal's SDP: early media, which the callee or a stranger sends."""
        m, calls = find_mark(p.data), self.awaiting.get((p.dst, p.dport), {})
        media = [group for group, (may, _) in calls.items() if may]
        if m and media:
            sender = self.permit.get(m, (None,))[0]
            self.relayed(Port(sender if sender in media else media[0]), m, p)
        elif p.data and not (any(side for _, side in calls.values()) and not is_media(p.data)):
            self.fail("unknown", "from a port that is in no terminal's SDP", p)

    def receiver(self, port, p):
        if port.side and p.data and not is_media(p.data):
            self.answer(port, p)
            return
        if p.dst in self.strangers and (p.dst, p.dport) not in port.peers and (port.settled or not port.plain and not port.taken):
            self.fail("stranger", "its terminal was confirmed before", p)

    def answer(self, port, p):
        """A packet of the daemon itself. One that was plain RTP may have been won by a stranger."""
        if p.dst not in self.strangers or (p.dst, p.dport) in port.peers or port.was_plain or port.taken:
            return
        self.credit[(p.src, p.sport, p.dst, p.dport)] -= len(p.data)
        self.count["answers"] += 1
        if self.credit[(p.src, p.sport, p.dst, p.dport)] < 0:
            self.fail("answers", f"{len(p.data)} bytes", p)

    def open(self, port, p):
        """The packet in clear; checks the key's use."""
        if port.plain and find_mark(p.data):
            return p.data
        rtcp = srtpkey.is_rtcp(p.data)
        for key in port.keys:
            if rtcp:
                got = key.open_rtcp(p.data)
                if got:
                    self.use(key, "SRTCP", p, *reversed(got))
                    return got[0]
            else:
                got = self.open_rtp(key, p)
                if got:
                    return got
        if port.plain:
            return p.data
        if find_mark(p.data):
            self.fail("clear", "plaintext", p)
            return p.data
        self.fail("unknown", f"opens under none of {len(port.keys)} keys", p)
        return None

    def open_rtp(self, key, p):
        seq, ssrc = struct.unpack_from("!H4xI", p.data, 2)
        known = self.rocs[(key, ssrc)]
        top = max(known)
        for roc in sorted(known | {top + 1, top + 2, top + 3}, reverse=True):
            got = key.open(p.data, roc)
            if got:
                known.add(roc)
                self.use(key, "SRTP", p, roc << 16 | seq, got)
                return got
        return None

    def use(self, key, what, p, index, clear):
        ssrc = struct.unpack_from("!I", p.data, 4 if what == "SRTCP" else 8)[0]
        data = key.without_tag(p.data) if what == "SRTP" else p.data
        self.count[what] += 1
        if key.kind:
            self.count[key.kind] += 1
        before = self.used.setdefault((key.suite, key.material, what, ssrc, index), data)
        if before != data:
            self.fail("reuse", f"{what} {key.suite} key {key.material[:4].hex()}.. SSRC {ssrc:08x} index {index}: before "
                      f"{before[:32].hex()}.. (plaintext mark {find_mark(clear)})", p)

    def relayed(self, port, m, p):
        self.hops[m] += 1
        group, permitted, what = self.permit.get(m, (None, False, "without a sender"))
        if self.hops[m] > HOPS_MAX:
            self.fail("loop", f"mark {m} left {self.hops[m]} times", p)
        if group is None:
            if not permitted:
                self.fail("source", f"mark {m}: {what or 'a stranger'}", p)
            return
        self.count["relayed"] += 1
        if m[0] in port.owners and m not in self.echoed and self.root(("spiral", group)) == ("spiral", group):
            self.fail("echo", f"mark {m}", p)
        if not permitted:
            self.fail("source", f"mark {m} of a terminal whose packets must not be relayed", p)
        elif p.dst not in self.own and self.root(group) != self.root(port.group) and not self.spirals(group, port.group):
            self.fail("source", f"mark {m} of a terminal of another call", p)

    def spirals(self, group, other):
        """A call that names another's media port as its terminal is joined to it."""
        return self.root(("spiral", group)) == self.root(("spiral", other)) != ("spiral", group)
