# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of a random attack. A step is a name and a number, which seeds all its choices. So steps can be left out, and the
others still do the same if their calls exist. In parallel to one step in five a stranger knocks, or somebody forges SRTP."""
import random
import struct
import time

import knocks
import model
import sdp
import srtpkey
import terminals
import world as the_world
from model import Call, Party

STEPS = {}  # name: (weight, function)
SUITE_NAMES = list(srtpkey.SUITES)
SCHEMES = ["sequence-aes", "header-siphash", "header-hmac-sha1", "sequence-fips", "chain", "chain/8/16/128"]  # of SRTP+


def step(weight):
    def add(function):
        STEPS[function.__name__] = (weight, function)
        return function
    return add


def sequence(seed, count):
    """The steps of a seed. Each seed prefers some kinds of steps and leaves out others, so that rare combinations happen."""
    r = random.Random(seed)
    names, weights = list(STEPS), [w * (1 if w > 5 else r.choice((0, 1, 1, 4))) for w, _ in STEPS.values()]
    return [(name, r.getrandbits(32)) for name in r.choices(names, weights, k=count)]


def run(world, name, number):
    STEPS[name][1](world, random.Random(number))
    beside = random.Random(number + (1 << 32))
    if beside.random() < 0.2:
        beside.choice((knock, forge))(world, beside)
    world.flush()


def pick(w, r):
    """A call, the latest more often than others; None if there is none."""
    calls = list(w.model.calls.values())
    return (calls[-1] if r.random() < 0.6 else r.choice(calls)) if calls else None


# --- Signalling ----------------------------------------------------------------------------------------------------------

def write(w, r, party, suites, call=None, hostile=0.15, offered=None, more=""):
    """A new SDP of the party. suites: those it offers; offered: for an answer, the daemon's crypto
    lines by m-line."""
    t, lines = party.terminal, []
    if offered is None:
        t.offers()
    hostile = r.choice((0, hostile, 3 * hostile))
    for n, line in enumerate(t.lines):
        if t.keying:
            keys = []
        elif n and t.bundled:
            keys = lines[0][2]
        elif offered is not None:
            choice = r.choice(offered[n][:r.choice((2, 9))]) if n < len(offered) and offered[n] else None
            suite = choice and (choice[1] if r.random() < 0.8 else srtpkey.bare(choice[1]))  # it may decline tags of SRTP+
            keys = [(choice[0], suite, line.new_key(suite, r))] if choice else []
            if choice and r.random() < 0.05:
                keys = [choice]  # the daemon's own key, reflected
        else:
            keys = [(i, s, line.new_key(s, r)) for i, s in enumerate(suites, 1)]
        where, port = ("192.168.7.7" if t.natted else line.address), line.port
        if n and t.bundled:
            where, port = lines[0][:2]
        elif r.random() < hostile:
            where, port = r.choice(sdp.hostile_addresses(the_world.OWN[:6], w.model.media_ports(), victims(w), 22222))
            if call:
                w.model.spiral(call, where, port)
        lines.append((where, port, keys))
        if r.random() < 0.2:
            line.seq, line.roc, line.rtcp_index = 100, 0, 0  # like a restarted terminal
    party.written = lines
    return body(w, r, party, more)


def body(w, r, party, more="", direction="sendrecv"):
    if not more and r.random() < 0.06:
        more = r.choice(sdp.HOSTILE_LINES)
    t = party.terminal
    if t.keying == "ICE" and r.random() < 0.2:
        more += f"a=candidate:6 1 udp 2130706431 {the_world.OWN[0]} {sdp.UNUSED} typ host\r\n"
        more += "".join(f"a=candidate:{n} 1 udp {r.getrandbits(31)} {a} {p} typ host\r\n" for n, (a, p) in enumerate(
            r.choices(sdp.hostile_addresses(the_world.OWN[:6], w.model.media_ports(), victims(w), 22222), k=8), 7) if p)
    return sdp.body(party.written, t.address, t.attributes() + more, direction, profile=t.profile, kinds=[line.kind for line in t.lines], bundled=t.bundled)


def victims(w):
    """Addresses at which terminals of other calls receive."""
    return [(line.address, line.port) for c in list(w.model.calls.values())[:3] for p in c.parties.values() for line in p.terminal.lines]


PLAIN, SDES = {"transport_protocol": "RTP/AVP"}, {"transport_protocol": "RTP/SAVP", "SDES": ["pad"]}


def far_side(r):
    """Transport and suites that the proxy requests for the far side."""
    return PLAIN if r.random() < 0.35 else SDES


def far_kind(w, r, place, lines=1):
    """The kind of the far side, and what the proxy requests for it. Terminals of other keyings have one m-line."""
    kind = r.choice(list(w.kinds)) if w.kinds and lines == 1 and r.random() < 0.35 else None
    more, flags = {}, w.kinds[kind].far(place, r) if kind else far_side(r)
    if r.random() < 0.25:
        # The first is converted by the relay itself, the second needs a codec thread.
        more["codec"] = {"mask": ["PCMU"], "transcode": [r.choice(("PCMA", "PCMA", "G722"))]}
    if kind is None and r.random() < 0.25:
        more["preauth"] = r.choice(("offer", *SCHEMES))
    return kind, {**flags, **more}


def opposite(party):
    return "west" if party.terminal.place == "east" else "east"


def own_suites(r, secure=False):
    if not secure and r.random() < 0.4:
        return []
    suites = r.sample(SUITE_NAMES, r.choice((1, 1, 2)))
    return [f"{s}/{r.choice(SCHEMES)}" for s in suites] if r.random() < 0.25 else suites


def new_party(w, r, place, lines=1, kind=None, bundled=False):
    if kind:
        return Party(w.kinds[kind](w.net, w.sockets, place, r, natted=r.random() < 0.25))
    return Party(terminals.Terminal(w.net, w.sockets, place, natted=r.random() < 0.25, lines=lines, bundled=bundled))


def agreed(suite, answer):
    """The suite, with tags only if the answer has them, too."""
    return suite if answer is None or "/" in answer[1] else srtpkey.bare(suite)


def take_keys(party, told=None):
    """Each line sends under the key of its last SDP; told: the daemon's answer, by m-line. It may decline tags of SRTP+."""
    if party.terminal.keying:
        return
    for n, (line, (_, _, keys)) in enumerate(zip(party.terminal.lines, party.written)):
        answer = told[n].keys[0] if told and n < len(told) and told[n].keys else None
        chosen = [k for k in keys if answer is None or k[0] == answer[0]] or keys
        line.key = srtpkey.Key(agreed(chosen[0][1], answer), chosen[0][2]) if chosen else None


@step(6)
def offer(w, r):
    """A new call."""
    w.number += 1
    kind = r.choice(list(w.kinds)) if w.kinds and r.random() < 0.25 else None
    bundled = kind is None and r.random() < 0.15
    party = new_party(w, r, r.choice(("east", "west")), 1 if kind else 2 if bundled else r.choice((1, 1, 1, 2, 3)), kind, bundled)
    call = Call(w.number, party)
    call.branched = r.random() < 0.4
    send_offer(w, r, call, party, write(w, r, party, own_suites(r, bundled), call), {})
    if call.pending:
        w.model.calls[call.id] = call


def send_offer(w, r, call, party, text, more, flags=None):
    """flags: of the far side; by default of any."""
    kind = None
    if flags is None:
        kind, flags = far_kind(w, r, opposite(party), len(party.terminal.lines))
    if call.branched:
        more["via_branch"] = f"branch{r.randrange(3)}"
    if party.terminal.bundled:
        more["bundle"] = ["accept"]
    # A side that has MIKEY is offered it again.
    mikey = "MIKEY" in flags or any(p.terminal.keying == "MIKEY" for p in call.parties.values())
    reply = w.ask("offer", call_id=call.id, from_tag=party.tag, sdp=text, mikey=mikey, **{**the_world.PLAIN, **flags}, **more)
    if reply:
        lines = sdp.parse(reply["sdp"])
        call.text, call.kind, call.offered, call.starts = reply["sdp"], kind, party.written, w.starts
        w.model.told(call, lines)
        w.model.awaits(call, party)
        call.pending = (party, lines, more.get("via_branch"))
        for n in range(len(party.legs)):
            w.model.signal(party, n, party.written[n][:2])
    return reply


@step(12)
def answer(w, r):
    """An answer by the current party, a new one, or one that answered before; any number of times, with any suite."""
    call = pick(w, r)
    if call is None or call.pending is None:
        return
    offerer, lines, branch = call.pending
    others = [p for p in call.parties.values() if p is not offerer and not p.listener]
    party = r.choice(others) if others and r.random() < 0.8 else None
    if party is None:
        if offerer is not call.offerer:
            return  # a re-INVITE has a known receiver
        party = new_party(w, r, opposite(offerer), len(lines), call.kind if r.random() < 0.9 and len(lines) == 1 else None)
        call.parties[party.tag] = party
    # A daemon that started again has another certificate: the terminal would refuse its handshake.
    party.terminal.read(call.text if call.starts == w.starts else "", True)
    speak_codec(party, lines)
    text = write(w, r, party, None, call, 0.1, [t.keys for t in lines])
    send_answer(w, r, call, party, text)


def speak_codec(party, lines):
    """An answerer takes the first codec of the offer."""
    for line, t in zip(party.terminal.lines, lines):
        line.kind = t.kind if t.kind in (0, 8, 9) else 0


@step(3)
def several_answers(w, r):
    """One terminal answers an offer repeatedly; all send after each answer."""
    call = pick(w, r)
    if call is None or call.pending is None or call.pending[0] is not call.offerer:
        return
    others = [p for p in call.parties.values() if p is not call.offerer and not p.listener]
    if not others:
        return answer(w, r)
    lines = call.pending[1]
    for _ in range(4):
        w.model.speaks(call.offerer)
        w.model.speaks(others[0])
        if not send_answer(w, r, call, others[0], write(w, r, others[0], None, call, 0, [t.keys for t in lines])):
            return
        for line in call.offerer.terminal.lines:
            line.seq = 100 if line.key is None else line.seq
        for _ in range(3):
            speak(w, r, call)
        w.flush()


@step(3)
def circle(w, r):
    """One or two plain calls whose parties name media ports of the daemon as their own, so that
    each port sends to the next."""
    ring = [(c, w.model.established(c)[:2]) for c in list(w.model.calls.values())[-4:] if c.ready and len(w.model.established(c)) > 1]
    ring = [(c, p) for c, p in r.sample(ring, len(ring)) if all(q.legs[0] and not q.terminal.keying and not q.terminal.bundled for q in p)]
    ring = ring[:r.choice((1, 2))]
    for i, (call, (a, b)) in enumerate(ring):
        before, after = ring[i - 1][1][1].legs[0].at, ring[(i + 1) % len(ring)][1][0].legs[0].at
        for party, where in ((a, before), (b, after)):
            w.model.spiral(call, *where)
            party.written = [(*where, [])] + [(line.address, line.port, []) for line in party.terminal.lines[1:]]
        if send_offer(w, r, call, a, body(w, r, a), {"to_tag": b.tag}, {"transport_protocol": "RTP/AVP"}):
            send_answer(w, r, call, b, body(w, r, b))
    for call, _ in ring:
        speak(w, r, call)


def send_answer(w, r, call, party, text):
    offerer, lines, branch = call.pending
    more = {"via_branch": branch} if branch else {}
    reply = w.ask("answer", call_id=call.id, from_tag=offerer.tag, to_tag=party.tag, sdp=text,
                  mikey=offerer.terminal.keying == "MIKEY", **{**the_world.PLAIN, **offerer.terminal.near}, **more)
    if reply is None:
        if not any(party.legs):
            w.end_party(call, party)
        return False
    back = sdp.parse(reply["sdp"])
    w.model.told(call, back)
    last, offerer.written = offerer.written, call.offered  # a later offer may have been refused
    take_keys(party)
    take_keys(offerer, back)
    if last is call.offered:
        offerer.terminal.read(reply["sdp"], False)
    w.model.accepted(call, offerer, back)
    w.model.accepted(call, party, lines)
    for one in r.sample((party, offerer), 2):
        if one is party or last is call.offered:
            one.terminal.begin(w, one)
    if not call.branched:  # else other branches may ring
        w.checker.event("answered", call.id)
    call.ready = True
    return True


@step(7)
def again(w, r):
    """A re-INVITE by either side: the same bytes, another address, other keys, SRTP instead of plain RTP or the reverse."""
    call = pick(w, r)
    if call is None or not call.ready:
        return
    known = w.model.established(call)
    if len(known) < 2:
        return
    party, other = r.sample(known, 2)
    kind = r.choice(("same", "same", "address", "keys", "keys", "hold"))
    if kind == "address":
        party.terminal.move()
    elif kind == "keys":
        party.terminal.renew_keys()
    party.terminal.offers()
    direction = r.choice(("sendonly", "inactive", "recvonly")) if kind == "hold" else "sendrecv"
    call.held = kind == "hold"
    text = (write(w, r, party, own_suites(r, party.terminal.bundled), call) if kind in ("address", "keys") or party.written is None
            else body(w, r, party, direction=direction))
    kept = other.terminal.keying and r.random() < 0.9
    flags = {**far_kind(w, r, "", 2)[1], **other.terminal.far(other.terminal.place, r)} if kept else None
    if not send_offer(w, r, call, party, text, {"to_tag": other.tag}, flags):
        return
    other.terminal.read(call.text, True)
    if other.terminal.keying is None:
        speak_codec(other, call.pending[1])
    # The other side answers with its previous SDP, if that fits the offer.
    offered = [t.keys for t in call.pending[1]]
    fits = other.written and all(bool(k) == bool(keys) and (not k or any(k[0][:2] == o[:2] for o in keys))
                                 for (_, _, k), keys in zip(other.written, offered))
    send_answer(w, r, call, other, body(w, r, other) if fits and r.random() < 0.8 else write(w, r, other, None, call, 0.05, offered))


@step(2)
def connect(w, r):
    """`connect`: joins parties of one call, or of two."""
    call, other = pick(w, r), pick(w, r)
    if call is None or not call.ready or not other.ready:
        return
    a, b = r.choice(w.model.established(call) or [None]), r.choice(w.model.established(other) or [None])
    if a is None or b is None or a is b:
        return
    more = {} if call is other else {"to_call_id": other.id}
    w.checker.event("merge", call.id, other.id)  # a refusal is valid, too: it lets no further sender in
    w.ask("connect", call_id=call.id, from_tag=a.tag, to_tag=b.tag, **more)


@step(3)
def subscribe(w, r):
    """A listener subscribes to a party. Packets of a listener are never relayed."""
    call = pick(w, r)
    if call is None:
        return
    reply = w.ask("subscribe request", call_id=call.id, from_tag=r.choice(list(call.parties)), **far_side(r))
    if not reply:
        return
    lines = sdp.parse(reply["sdp"])
    w.model.told(call, lines)
    party = Party(terminals.Terminal(w.net, w.sockets, "west", lines=len(lines)), listener=True)
    party.tag = reply["to-tag"]
    text = write(w, r, party, None, call, 0.15, [t.keys for t in lines])
    if w.ask("subscribe answer", call_id=call.id, to_tag=party.tag, sdp=text.replace("a=sendrecv", "a=recvonly")):
        take_keys(party)
        w.model.accepted(call, party, lines)
        call.parties[party.tag] = party


@step(1)
def publish(w, r):
    """A separate party, to which others may subscribe."""
    w.number += 1
    party = new_party(w, r, "east")
    call = Call(w.number, party)
    text = write(w, r, party, own_suites(r)[:1], call)
    reply = w.ask("publish", call_id=call.id, from_tag=party.tag, sdp=text.replace("a=sendrecv", "a=sendonly"), **the_world.PLAIN)
    if reply:
        lines = sdp.parse(reply["sdp"])
        w.model.told(call, lines)
        take_keys(party)
        w.model.accepted(call, party, lines)
        w.model.calls[call.id] = call


@step(2)
def delete(w, r):
    """Deletes a call, one of its branches, or a branch that does not exist; the last must end nothing."""
    call = pick(w, r)
    if call is None:
        return
    kind = r.choice(("call", "tag", "unknown branch"))
    more = {"call": {}, "tag": {"from_tag": call.offerer.tag}, "unknown branch": {"from_tag": call.offerer.tag, "via_branch": "nobody's"}}[kind]
    there = w.ask("query", call_id=call.id)
    w.ask("delete", call_id=call.id, delete_delay=0, **more)
    if not w.ask("query", call_id=call.id):
        w.end_call(call)
        if kind == "unknown branch" and there and call.branched:
            w.violation("fork", f"delete of {call.id} with a branch that it never had ended it")


@step(2)
def thief(w, r):
    """A losing branch of a fork sends an INVITE with the Call-ID and From tag that it knows; an accomplice answers."""
    call = pick(w, r)
    if call is None or not call.ready or call.held or len(w.model.established(call)) < 2:
        return
    for _ in range(model.PROBATION + 1):
        speak(w, r, call)
    w.flush()
    more = {"via_branch": "stolen"} if call.branched else {}
    theirs = sdp.body([(w.attackers.address, 41000, [])], w.attackers.address)
    reply = w.ask("offer", call_id=call.id, from_tag=call.offerer.tag, sdp=theirs, **the_world.PLAIN, transport_protocol="RTP/AVP", **more)
    replies = [reply, reply and w.ask("answer", call_id=call.id, from_tag=call.offerer.tag, to_tag=f"thief{r.getrandbits(16)}",
                                      sdp=theirs.replace("41000", "42000"), **the_world.PLAIN, **more)]
    for reply in filter(None, replies):
        w.model.told(call, [t for t in sdp.parse(reply["sdp"]) if (t.address, t.port) not in w.model.legs])
    for _ in range(3):
        speak(w, r, call)
    w.flush()
    w.ask("delete", call_id=call.id, delete_delay=0)
    w.end_call(call)


@step(1)
def many_lines(w, r):
    """An offer with 64 m-lines: the rest of the calls must not starve."""
    w.number += 1
    name = f"call-{w.number}"
    lines = [("10.200.1.2", 30000 + 2 * i, []) for i in range(64)]
    if w.ask("offer", call_id=name, from_tag="many", sdp=sdp.body(lines, "10.200.1.2"), **the_world.PLAIN, **far_side(r)) and r.random() < 0.9:
        w.ask("delete", call_id=name, delete_delay=0)


# --- Media ---------------------------------------------------------------------------------------------------------------

def sending(w, r):
    """(call, party, m-line number) that can send."""
    call = pick(w, r)
    parties = [p for p in call.parties.values() if any(p.legs)] if call else []
    if not parties:
        return None
    party = r.choice(parties)
    n = r.choice([i for i, leg in enumerate(party.legs) if leg])
    return call, party, n


def say(w, call, party, n, data, m, rtcp=False, permitted=True):
    w.checker.event("sends", *m, call.id, permitted and not party.listener)
    party.terminal.send(party.terminal.lines[n], data, rtcp)


@step(22)
def talk(w, r):
    """All parties of a call send, in order; at the end each is confirmed."""
    call = pick(w, r)
    if call is None:
        return
    for party in call.parties.values():
        w.model.speaks(party)
    for _ in range(r.choice((1, 3, model.PROBATION + 2))):
        speak(w, r, call)


def speak(w, r, call):
    """One packet from every m-line of every party."""
    for party in list(call.parties.values()):
        for n, leg in enumerate(party.legs):
            if not leg:
                continue
            t, m, rtcp, begun = party.terminal, party.terminal.mark(), r.random() < 0.15, time.monotonic()
            say(w, call, party, n, t.packet(t.lines[n], m, rtcp=rtcp), m, rtcp)
            if not rtcp and not call.held:
                w.model.heard(party, n, begun)


@step(12)
def insider(w, r):
    """A terminal repeats indexes with other payloads, jumps ahead and back, changes SSRC, and sends ng commands in RTP."""
    who = sending(w, r)
    if who is None:
        return
    call, party, n = who
    t = party.terminal
    line = t.lines[n]
    for _ in range(r.choice((4, 20))):
        kind, m = r.choice(("repeat", "repeat", "jump", "ssrc", "ng", "rtcp", "rewind")), t.mark()
        if kind == "rewind" and line.key is None:
            line.seq = r.choice((99, line.seq))
        if kind == "ng":
            data = struct.pack("!BBHII", 0x80, 0, line.seq & 0xffff, 0x61616161, 0x61616161) + b" d7:command4:liste" + terminals.checker.mark(*m)
            data = line.key.protect(data, line.roc) if line.key else data
        elif kind == "rtcp":
            line.rtcp_index = max(0, line.rtcp_index - r.choice((0, 5)))
            data = t.packet(line, m, rtcp=True)
        elif kind == "jump":
            data = t.packet(line, m, seq=(line.seq + r.choice((32000, 33000, 65535, 17))) & 0xffff)
        elif kind == "ssrc":
            data = t.packet(line, m, seq=r.choice((1, line.seq)), ssrc=r.randrange(24))
        else:
            data = t.packet(line, m, seq=max(1, line.seq - r.randrange(4)))
        say(w, call, party, n, data, m, kind == "rtcp")


@step(2)
def reflect(w, r):
    """A terminal sends received packets back unchanged. In SRTP they are under the daemon's own key
    and must not be relayed. In plain RTP they are ordinary media, as from an echo test."""
    who = sending(w, r)
    if who is None:
        return
    call, party, n = who
    data = w.last.get(party.legs[n].at)
    if data:
        m = terminals.checker.find_mark(data) if party.legs[n].plain else None
        if m:
            w.checker.event("echoes", m)
        party.terminal.send(party.terminal.lines[n], data)


@step(8)
def spray(w, r):
    """A stranger sends to the ports of calls: a few packets, or enough to be confirmed if no other source was."""
    ports = w.model.media_ports()
    if not ports:
        return
    for at in r.sample(ports, min(len(ports), 4)):
        if ":" in at[0]:
            continue
        ssrc, seq = r.getrandbits(32), r.getrandbits(15)
        for i in range(r.choice((1, 6, 2 * model.PROBATION))):
            m = w.attackers.mark()
            w.checker.event("sends", *m, None, w.model.contest(at), f"a stranger to {at}, {w.model.describe(at)}")
            w.attackers.spray(w.attackers.rtp(m, seq + i, ssrc), at)


def knock(w, r):
    """A stranger sends STUN, DTLS and ZRTP to the ports of calls. The relay may answer by no more bytes, and learns nothing."""
    ports = [p for p in w.model.media_ports() if ":" not in p[0]]
    for at in r.sample(ports, min(len(ports), 4)):
        for _ in range(r.choice((1, 4))):
            m = w.attackers.mark()
            data = r.choice(knocks.ALL)(r, terminals.checker.mark(*m))
            w.checker.event("sends", *m, None, w.model.lets_through(at), f"a stranger's {data[:4].hex()} to {at}, {w.model.describe(at)}")
            w.checker.event("knocks", *at, (w.attackers.address, 40000), len(data))
            w.attackers.spray(data, at)


def forge(w, r):
    """Somebody forges SRTP from a terminal's address, with its SSRC and the next sequence numbers: enough that the relay sets a guard. Tags of
    SRTP+ are wrong."""
    legs = [(p, n) for c in list(w.model.calls.values())[-4:] for p in c.parties.values() for n, leg in enumerate(p.legs)
            if leg and p.terminal.lines[n].key and ":" not in leg.at[0] and not w.checker.ports[leg.at].was_plain]
    for party, n in r.sample(legs, min(len(legs), 1)):
        line, at = party.terminal.lines[n], party.legs[n].at
        for i in range(r.choice((4, 150))):
            m = w.attackers.mark()
            w.checker.event("sends", *m, None, False, f"forged for {party.terminal.id} to {at}, {w.model.describe(at)}")
            data = w.attackers.rtp(m, line.seq + r.randrange(40), line.ssrc, line.kind) + r.randbytes(r.choice((4, 10, 16, 24)))
            w.attackers.martian(party.terminal.place, line.address, line.source, at, data)


@step(3)
def martian(w, r):
    """Frames from the wire whose source is an address of this host, or of no host."""
    ports = [p for p in w.model.media_ports() if ":" not in p[0]]
    if not ports:
        return
    for _ in range(4):
        at = r.choice(ports)
        source = r.choice(("127.0.0.1", "127.9.9.9", "10.200.1.1", "10.200.2.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "10.200.1.255"))
        for i in range(r.choice((1, 2 * model.PROBATION))):
            m = w.attackers.mark()
            place = r.choice(("east", "stranger"))
            # With rp_filter=0 the host's stack accepts a subnet's broadcast address as a source: it counts as a stranger.
            permitted = source == "10.200.1.255" and w.model.contest(at)
            w.checker.event("sends", *m, None, permitted, f"martian {source} to {at} from the link of {place}")
            w.attackers.martian(place, source, r.choice((22222, 5000)), at, w.attackers.rtp(m, i, 7))


@step(1)
def pause(w, r):
    """Waits until heuristic learning has ended. No rule depends on this time."""
    w.model.known()
    time.sleep(model.LEARNING)


# --- Restarts and Redis --------------------------------------------------------------------------------------------------

@step(2)
def restart(w, r):
    """Kills or stops the daemon and starts it again; meanwhile Redis may be down, or be rolled back."""
    if w.redis is None or not w.redis_up:
        return
    kill, back = r.random() < 0.7, r.random() < 0.5
    if not kill:
        w.wait_for_redis()
    w.end(kill)
    if back and w.dump is not None:
        restore(w.redis, w.dump)
        w.model.unsettle_all()
    w.start()


@step(2)
def remember(w, r):
    """Copies all of Redis' data, for a later roll-back."""
    if w.redis and w.redis_up:
        w.dump = {k: w.redis("DUMP", k) for k in w.redis("KEYS", "*")}


def restore(redis, dump):
    for k in redis("KEYS", "*"):
        redis("DEL", k)
    for k, v in dump.items():
        if v is not None:
            redis("RESTORE", k, 0, v, "REPLACE")


@step(1)
def outage(w, r):
    """Redis dies, alone or with the daemon, or returns empty."""
    if w.redis is None:
        return
    if w.redis_up:
        w.redis.kill()
        w.redis_up = False
        return
    if r.random() < 0.4:
        w.end(kill=True)
    w.redis.start()
    w.redis_up = True
    if w.daemon is None:
        if w.dump is not None and r.random() < 0.7:
            restore(w.redis, w.dump)
        w.start()
