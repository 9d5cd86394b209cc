# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of the calls, kept without queries to the daemon: ports and keys of each party, and
senders whose packets may be relayed.

The rules for a plain leg are those of SECURITY.md. A terminal that sends from the address in its
SDP is confirmed at its first packet, or after its probation if a stranger sent first. A terminal
behind a NAT is confirmed after its probation, LEARNING seconds after the worker knew of the last
signalling, if no stranger sent first. After that, strangers are dropped, and signalling the same address again
changes nothing. On a leg with SRTP strangers are always dropped."""
import time

PROBATION = 6  # packets in a row; the daemon wants 5
LEARNING = 3.2  # more than the daemon's 3 s


class Leg:
    """One m-line of a terminal and the daemon's port that serves it."""

    def __init__(self, at):
        self.at = at  # (address, port) of the daemon
        self.signalled, self.plain, self.offers_plain = None, False, False
        self.settled, self.genuine, self.contested = False, 0, False
        self.passed, self.ever = False, False
        self.zrtp = False  # there are keys, though the profile is that of plain RTP
        self.since = None  # when the worker certainly knew of the last signalling

    def unsettle(self):
        # A stranger that sent before the terminal may still be relayed.
        self.contested = self.contested and not self.settled
        self.settled, self.genuine, self.passed = False, 0, False


class Party:
    def __init__(self, terminal, listener=False):
        self.terminal, self.tag, self.listener = terminal, terminal.tag, listener
        self.legs = [None] * len(terminal.lines)
        self.keys = []  # the offer to it: crypto lines by m-line
        self.written = None  # the lines of its last SDP


class Call:
    def __init__(self, number, offerer):
        self.id = f"call-{number}"
        self.offerer, self.parties = offerer, {offerer.tag: offerer}
        self.pending = None  # (from, [Told], via-branch)
        self.ready = False
        self.held = False
        self.branched = False  # every offer names a via-branch


class Model:
    """Reports all changes to the checker. After flush() the checker has seen all packets that were sent before."""

    def __init__(self, checker, flush):
        self.checker, self.flush, self.calls, self.legs = checker, flush, {}, {}

    def leg(self, told, group):
        at = (told.address, told.port)
        leg = self.legs.get(at)
        if leg is None or leg.group != group:
            leg = self.legs[at] = Leg(at)
            leg.group, leg.ports = group, [at, (told.address, told.rtcp)]
        return leg

    def told(self, call, lines):
        """The daemon gave this SDP to a terminal of this call."""
        for t in lines:
            if not t.port:
                continue
            leg = self.leg(t, call.id)
            leg.offers_plain = "SAVP" not in t.profile and not leg.zrtp
            leg.ports = list(dict.fromkeys([(t.address, t.port), (t.address, t.rtcp), *t.others]))
            for at in leg.ports:
                self.checker.event("told_port", *at, call.id)
                for _, suite, key in reversed(t.keys):
                    self.checker.event("told_key", *at, suite, key)
                if leg.offers_plain:
                    self.checker.event("told_plain", *at)
                if t.side:
                    self.checker.event("told_side", *at)

    def awaits(self, call, party):
        """The daemon took an offer. Until the answer it may send early media to lines of plain RTP."""
        for leg, (where, port, keys) in zip(party.legs, party.written):
            if leg is None and not keys:
                for at in (port, port + 1):
                    keying = party.terminal.keying
                    self.checker.event("awaits", where, at, call.id, keying in (None, "ZRTP"), bool(keying))

    def accepted(self, call, party, lines):
        """The daemon accepted this party's SDP; lines are those of the SDP that the party received."""
        for n, t in enumerate(lines[:len(party.terminal.lines)]):
            line = party.terminal.lines[n]
            if not t.port:
                line.to = party.legs[n] = None
                continue
            leg = party.legs[n] = self.leg(t, call.id)
            where, port, keys = party.written[n]
            line.to = leg.at
            self.signal(party, n, (where, port))
            party.terminal.agreed(self.checker, leg)
            plain = not keys and not leg.zrtp and party.terminal.keying in (None, "ZRTP")
            changed, leg.plain = leg.plain != plain, plain
            if not plain:
                self.secured(leg)
            if changed:
                self.unsettle(leg)
            if not party.listener:
                self.checker.event("owner", *leg.at, party.terminal.id)

    def secured(self, leg, zrtp=False):
        """From now on nothing leaves in clear."""
        self.flush()
        leg.plain, leg.zrtp = False, leg.zrtp or zrtp
        for at in leg.ports:
            self.checker.event("secured", *at, leg.ever and not leg.settled)

    def signal(self, party, n, signalled):
        """SDP with this address for an m-line reached the daemon; also before it is answered."""
        leg = party.legs[n]
        if leg is None:
            return
        leg.since = None
        if leg.signalled != signalled:
            leg.signalled = signalled
            self.unsettle(leg)
        line = party.terminal.lines[n]
        for at in leg.ports:
            for peer in (signalled, (signalled[0], signalled[1] + 1), (line.address, line.source), (line.address, line.source + 1)):
                self.checker.event("peer", *at, peer)

    def unsettle(self, leg):
        leg.unsettle()
        self.checker.event("settled", *leg.at, False)

    def unsettle_all(self):
        """After a crash: sources learned since the last save are lost, and those of an older save may return. So may earlier agreements."""
        self.checker.event("unsecured")
        for leg in self.legs.values():
            self.unsettle(leg)
            leg.contested, leg.since = leg.ever, None

    def known(self):
        """Waits until the workers know of all signalling so far. A worker may learn of it long after the reply."""
        self.flush()
        for leg in self.legs.values():
            leg.since = leg.since or time.monotonic()

    def speaks(self, party):
        """The terminal begins a run of packets with ascending sequence numbers."""
        for leg in filter(None, party.legs):
            leg.genuine = 0

    def heard(self, party, n, begun):
        """The terminal sent a packet of such a run. begun: a time before that, because this process may have been late since."""
        leg, line = party.legs[n], party.terminal.lines[n]
        if not leg.plain or leg.signalled is None:
            return
        leg.genuine += 1
        if leg.signalled == (line.address, line.source):
            settled = not leg.contested or leg.genuine >= PROBATION
        else:
            if leg.since is None:
                self.known()
            settled = leg.passed and not leg.contested and begun > leg.since + LEARNING
            leg.passed |= leg.genuine >= PROBATION
        if settled:
            if not leg.settled:
                self.flush()  # earlier packets may have gone to a stranger
            leg.settled = True
            self.checker.event("settled", *leg.at)

    def contest(self, at):
        """A stranger sends to a port. Whether its packets may be relayed."""
        leg = self.legs.get(at)
        if leg is None:
            return False
        leg.ever = True
        leg.contested |= not leg.settled
        early = leg.signalled is None and leg.offers_plain
        return (leg.plain or early) and not leg.settled

    def lets_through(self, at):
        """Whether STUN, DTLS or ZRTP of a stranger may be relayed from a port: only if its RTP may have been followed there. Such packets themselves
        confirm no source."""
        leg = self.legs.get(at)
        return leg is not None and leg.ever and not leg.settled and (leg.plain or leg.signalled is None and leg.offers_plain)

    def describe(self, at):
        leg = self.legs[at]
        return (f"a leg of {leg.group}, {'plain' if leg.plain else 'SRTP'}, signalled {leg.signalled}, {leg.genuine} packets of its terminal, "
                f"{'settled' if leg.settled else 'open'}")

    def established(self, call):
        return [p for p in call.parties.values() if not p.listener and any(p.legs)]

    def media_ports(self):
        return [leg.at for leg in self.legs.values()]

    def spiral(self, call, address, port):
        """A party named another call's port: media of both may pass through it."""
        other = self.legs.get((address, port)) or self.legs.get((address, port - 1))
        if other is not None and other.group != call.id:
            self.checker.event("merge", ("spiral", call.id), ("spiral", other.group))


