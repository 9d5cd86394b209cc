# SPDX-License-Identifier: GPL-2.0-or-later
"""Where media may go: no SDP makes the relay send to itself, to ng, or in a circle. Addresses that the operator allows, and calls that
pass through the relay twice, work."""
import select
import socket
import time

import calls
import idle
import ng
import relay
from run import cases

PHONE, FRIEND, FRIEND6 = ("10.200.1.2", 20000), ("10.200.2.2", 20002), ("fd00:2::2", 20002)
NG = 22222
LIST = b" d7:command4:liste"
LIST_PADDED = b" d7:command4:list7:padding5:xxxxxe"  # 8 bytes of RTCP header and this: a multiple of four


def sdp(ip, port, media_c=None, rtcp=None, extra=""):
    family = "IP6" if ":" in ip else "IP4"
    text = f"v=0\r\no=- 1 1 IN {family} {ip}\r\ns=-\r\nc=IN {family} {ip}\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\n"
    if media_c:
        text += f"c=IN {'IP6' if ':' in media_c else 'IP4'} {media_c}\r\n"
    if rtcp:
        text += f"a=rtcp:{rtcp[1]} IN {'IP6' if ':' in rtcp[0] else 'IP4'} {rtcp[0]}\r\n"
    return text + extra + "a=sendrecv\r\n"


def terminal(net, name, address):
    s = ng.socket_in(net.terminal[name], socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    s.bind(address)
    return s


def rtp(seq, payload, ssrc=0x78797a7a):
    return b"\x80\x00" + seq.to_bytes(2, "big") + b"tttt" + ssrc.to_bytes(4, "big") + payload


def rtcp(payload):
    return b"\x80\xc8" + ((8 + len(payload)) // 4 - 1).to_bytes(2, "big") + b"wxyz" + payload


def heard(sockets, until, seconds):
    """Received datagrams, until one satisfies until() or the time is over."""
    got, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        for s in select.select(sockets, [], [], 0.05)[0]:
            got.append(s.recv(4096))
            if until(got[-1]):
                return got
    return got


class Talk:
    """A plain call, as the proxy signals it. Each step returns ng's reply."""

    def __init__(self, daemon, number):
        self.client, self.id = daemon.client, f"reach-{number}"

    def offer(self, body, again=False, **keys):
        more = {"to_tag": "b" + self.id} if again else {}
        keys = {"ICE": "remove", **keys}
        self.offered = self.client.call("offer", call_id=self.id, from_tag="a" + self.id, sdp=body, **more, **keys)
        return self.offered

    def answer(self, body, **keys):
        keys = {"ICE": "remove", **keys}
        self.answered = self.client.call("answer", call_id=self.id, from_tag="a" + self.id, to_tag="b" + self.id, sdp=body, **keys)
        return self.answered

    def to_callee(self):
        return calls.parse(calls.ok(self.offered)["sdp"])

    def to_caller(self):
        return calls.parse(calls.ok(self.answered)["sdp"])


def friend_of(address):
    return FRIEND6 if ":" in address else FRIEND


def attack(daemon, how, address, port):
    """Names address and port in one of the ways. Returns (talk, destination of the friend's media), or (talk, None) if it was refused."""
    talk = Talk(daemon, how)
    good, bad = sdp(*friend_of(address)), sdp(address, port)
    if how == "offer":
        steps = [(talk.offer, bad), (talk.answer, good)]
    elif how == "media-c":
        steps = [(talk.offer, sdp(PHONE[0], port, media_c=address)), (talk.answer, good)]
    elif how == "rtcp":
        steps = [(talk.offer, sdp(*PHONE, rtcp=(address, port))), (talk.answer, good)]
    elif how == "answer":
        steps = [(talk.offer, good), (talk.answer, bad)]
    else:
        steps = [(talk.offer, sdp(*PHONE)), (talk.answer, good), (lambda body: talk.offer(body, again=True), bad), (talk.answer, good)]
    for say, body in steps:
        reply = say(body)
        if reply["result"] != "ok":
            return reply, None
    near = talk.to_caller() if how == "answer" else talk.to_callee()
    return reply, (near["ip"], near["rtcp"] if how == "rtcp" else near["port"])


WAYS = ("offer", "answer", "again", "media-c", "rtcp")
OURS = ("127.0.0.1", "127.0.0.2", "::1", "10.200.2.1", "10.200.1.1", "::ffff:127.0.0.1")


@cases(*[(how, "127.0.0.1") for how in WAYS], *[("offer", address) for address in OURS[1:]])
def test_no_sdp_reaches_ng(net, how, address):
    """The friend's RTP is a command behind twelve bytes that parse as a cookie, and its reply would be RTP from the signalled address."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", f"--listen-ng=[::]:{NG}", addresses=("10.200.1.1", "fd00:1::1")).wait_ready()
    net.run(net.terminal["callee"], "ip", "-6", "route", "add", "default", "via", "fd00:2::1")
    victim = Talk(daemon, "victim")
    calls.ok(victim.offer(sdp("10.200.1.2", 21000)))
    reply, to = attack(daemon, how, address, NG)
    got = []
    if to:
        friend = terminal(net, "callee", (friend_of(address)[0], FRIEND[1] + (how == "rtcp")))
        for seq in range(40):
            friend.sendto(rtcp(LIST_PADDED) if how == "rtcp" else rtp(0x4141 + seq, LIST), to)
            got += heard([friend], lambda p: b"reach-victim" in p, 0.1)
            if got and b"reach-victim" in got[-1]:
                break
    assert not any(b"reach-victim" in p for p in got), f"the friend was told of all calls: {got[-1]}"
    assert reply["result"] == "error" and "not allowed" in reply["error-reason"], reply
    assert "line" in reply["error-reason"], reply
    assert daemon.stop() == 0, daemon.text()


def drops(daemon, name):
    return daemon.statistics()["drops"][name]


def counter(daemon, client, name):
    """A counter of the metrics page."""
    text = client.get()
    return int(next(line.split()[-1] for line in text.splitlines() if line.startswith(f"xcipher_{name} ")))


def test_what_the_operator_names_is_allowed(net):
    """The control of the attack: the same SDP with --media-allow, and its media arrives. ng refuses what comes from a media port."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--media-allow=127.0.0.1/32,10.200.1.1").wait_ready()
    listener = ng.socket_in(net.gateway)
    listener.bind(("127.0.0.1", 0))
    friend = terminal(net, "callee", FRIEND)
    talk = Talk(daemon, "named")
    calls.ok(talk.offer(sdp("127.0.0.1", listener.getsockname()[1])))
    calls.ok(talk.answer(sdp(*FRIEND)))
    near = talk.to_callee()
    got = []
    for seq in range(600):
        friend.sendto(rtp(seq, b"allowed"), (near["ip"], near["port"]))
        got = heard([listener], lambda p: p.endswith(b"allowed"), 0.1)
        if got:
            break
    assert got, "media to an allowed address did not arrive"
    reply = Talk(daemon, "unnamed").offer(sdp("127.0.0.2", 4000))
    assert reply["result"] == "error", reply
    # Now ng itself may be named. It still drops datagrams from the relay, and the friend receives no reply.
    victim = Talk(daemon, "victim")
    calls.ok(victim.offer(sdp("10.200.1.2", 21000)))
    attacker = Talk(daemon, "attacker")
    calls.ok(attacker.offer(sdp("127.0.0.1", NG)))
    calls.ok(attacker.answer(sdp(*FRIEND)))
    near = attacker.to_callee()
    end, got = time.monotonic() + 60, []
    while "from a media port of this relay" not in daemon.text() and time.monotonic() < end:
        friend.sendto(rtp(0x4141, b" d7:command4:liste"), (near["ip"], near["port"]))
        got += heard([friend], lambda p: b"victim" in p, 0.1)
    assert "comes from a media port of this relay" in daemon.text(), daemon.text()
    assert not any(b"reach-victim" in p for p in got), got
    assert daemon.client.call("list")["calls"], "ng answers its clients"
    assert daemon.stop() == 0, daemon.text()


@cases((None,), ("--media-allow=10.66.0.9/32",))
def test_an_address_that_becomes_the_hosts_own(net, allow):
    """It is nobody's when it is signalled. Then the host gets it: media must not reach the host's services. With --media-allow they do."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", *([allow] if allow else [])).wait_ready()
    talk = Talk(daemon, "later")
    friend = terminal(net, "callee", FRIEND)
    calls.ok(talk.offer(sdp("10.66.0.9", 6666)))
    calls.ok(talk.answer(sdp(*FRIEND)))
    near = talk.to_callee()
    net.run(net.gateway, "ip", "addr", "add", "10.66.0.9/32", "dev", "lo")
    service = ng.socket_in(net.gateway)
    service.bind(("10.66.0.9", 6666))
    end, got, seq, before = time.monotonic() + 60, [], 0, drops(daemon, "no-destination")
    while not (got if allow else drops(daemon, "no-destination") > before + 20) and time.monotonic() < end:
        friend.sendto(rtp(seq, b"for the host"), (near["ip"], near["port"]))
        seq += 1
        got += heard([service], lambda p: True, 0.02)
    if allow:
        assert got and got[0].endswith(b"for the host"), "the way to the service works"
    else:
        assert drops(daemon, "no-destination") > before + 20, daemon.statistics()["drops"]
        # Packets that left before the daemon had the address may have arrived. Now none does.
        idle.wait_idle()
        heard([service], lambda p: False, 0.2)
        friend.sendto(rtp(seq, b"for the host"), (near["ip"], near["port"]))
        idle.wait_idle()
        assert not heard([service], lambda p: False, 0.2)
        reply = talk.offer(sdp("10.66.0.9", 6666), again=True)
        assert reply["result"] == "error" and "not allowed" in reply["error-reason"], reply
        calls.ok(talk.offer(sdp(*PHONE), again=True))  # the call goes on
        calls.ok(talk.answer(sdp(*FRIEND)))
        phone = terminal(net, "caller", PHONE)
        friend.sendto(rtp(900, b"again"), (near["ip"], near["port"]))
        assert heard([phone], lambda p: p.endswith(b"again"), 30)
    assert daemon.stop() == 0, daemon.text()


HOLD = "v=0\r\no=- 1 1 IN IP4 10.200.1.2\r\ns=-\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\nm=audio 20000 RTP/AVP 0\r\na=inactive\r\n"
UNUSED = sdp(*PHONE) + "m=video 0 RTP/AVP 31\r\nc=IN IP4 127.0.0.1\r\n"


@cases(*[(a,) for a in ("0.1.2.3", "224.0.0.1", "255.255.255.255", "240.0.0.1", "10.200.2.255", "169.254.1.1", "::ffff:10.200.1.1", "64:ff9b::7f00:1",
                        "2002:7f00:1::1", "::7f00:1", "ff02::1", "fe80::1", "fd00:2::1")])
def test_addresses_that_are_nobodys(net, address):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", addresses=("10.200.1.1", "fd00:1::1")).wait_ready()
    talk = Talk(daemon, "call")
    calls.ok(talk.offer(sdp(*PHONE)))
    calls.ok(talk.answer(sdp(*FRIEND)))
    before = daemon.client.call("query", call_id=talk.id)["tags"]
    reply = talk.offer(sdp(address, 4000), again=True)
    assert reply["result"] == "error" and "not allowed" in reply["error-reason"], reply
    after = daemon.client.call("query", call_id=talk.id)["tags"]
    assert [t["medias"] for t in after.values()] == [t["medias"] for t in before.values()], "the call is as it was"
    for body in (HOLD, UNUSED):  # no destination is no error
        calls.ok(talk.offer(body, again=True))
        calls.ok(talk.answer(sdp(*FRIEND) + ("m=video 0 RTP/AVP 31\r\n" if body is UNUSED else "")))
    assert daemon.stop() == 0, daemon.text()


@cases(("udp",), ("nfqueue",))
def test_no_call_sends_to_itself(net, steering):
    """Each SDP names a relay port of its own call: RTP, RTCP, and the two in a circle."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", f"--steering={steering}").wait_ready()
    talk = Talk(daemon, "circle")
    calls.ok(talk.offer(sdp(*PHONE)))
    calls.ok(talk.answer(sdp(*FRIEND)))
    ours = ("10.200.1.1", talk.to_callee()["port"]), ("10.200.1.1", talk.to_caller()["port"])
    refused = []
    for there, back in ((ours[1], ours[0]), (ours[0], ours[1])):
        for port in (1, 0):
            refused.append(talk.offer(sdp(there[0], there[1] + port), again=True))
            if refused[-1]["result"] == "ok":
                refused.append(talk.answer(sdp(back[0], back[1] + port)))
    phone, friend = terminal(net, "caller", PHONE), terminal(net, "callee", FRIEND)
    phone.sendto(rtp(1, b"round"), ours[1])
    assert heard([friend], lambda p: p.endswith(b"round"), 30), "the control: the call as it was before relays the packet"
    idle.wait_idle()
    sent = daemon.statistics()["packets sent"]
    assert sent == 1, f"one packet was sent {sent} times"
    assert all(r["result"] == "error" and "of this call" in r["error-reason"] for r in refused), refused
    assert daemon.stop() == 0, daemon.text()


def joined(daemon, first, second):
    """Two calls through the relay, the callee of the first is the caller of the second, by the relay's own ports."""
    a, b = Talk(daemon, first), Talk(daemon, second)
    calls.ok(a.offer(sdp(*PHONE)))
    calls.ok(b.offer(sdp("10.200.1.1", a.to_callee()["port"])))
    calls.ok(b.answer(sdp(*FRIEND)))
    calls.ok(a.answer(sdp("10.200.1.1", b.to_caller()["port"])))
    return a, b


def through(a, b, phone, friend):
    """Media goes both ways through both."""
    for tx, rx, to, word in ((phone, friend, a.to_caller(), b"there"), (friend, phone, b.to_callee(), b"back")):
        got = []
        for seq in range(600):
            tx.sendto(rtp(seq, word), (to["ip"], to["port"]))
            got = heard([rx], lambda p, word=word: p.endswith(word), 0.1)
            if got:
                break
        assert got, word
    return True


def test_a_call_may_pass_twice_and_end_in_any_order(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=2").wait_ready()
    phone, friend = terminal(net, "caller", PHONE), terminal(net, "callee", FRIEND)
    a, b = joined(daemon, "one", "two")
    assert through(a, b, phone, friend)
    calls.ok(a.offer(sdp(*PHONE), again=True))  # a session refresh of each
    calls.ok(a.answer(sdp("10.200.1.1", b.to_caller()["port"])))
    calls.ok(b.offer(sdp("10.200.1.1", a.to_callee()["port"]), again=True))
    calls.ok(b.answer(sdp(*FRIEND)))
    assert through(a, b, phone, friend)
    # The second call ends, and another call may get its port. The first call no longer sends there.
    port = b.to_caller()["port"]
    daemon.client.call("delete", call_id=b.id, from_tag="a" + b.id, **{"delete_delay": 0})
    idle.wait_idle()  # no packet is on its way, and the worker knows that the destination is gone
    sent = daemon.statistics()["packets sent"]
    end = time.monotonic() + 60
    before = drops(daemon, "no-destination")
    while drops(daemon, "no-destination") < before + 5 and time.monotonic() < end:
        phone.sendto(rtp(500, b"gone"), (a.to_caller()["ip"], a.to_caller()["port"]))
        time.sleep(0.01)
    assert drops(daemon, "no-destination") >= before + 5, daemon.statistics()["drops"]
    assert daemon.statistics()["packets sent"] == sent
    reply = a.offer(sdp("10.200.1.1", port), again=True)
    assert reply["result"] == "error" and "no call uses" in reply["error-reason"], reply
    assert daemon.stop() == 0, daemon.text()


def test_calls_are_not_joined_in_a_ring(net):
    """Three calls, each sends to the next one's port: the link that closes the ring is refused, and the others continue. Without
    strict-source, because it would drop the circling packet."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--strict-source=no").wait_ready()
    ring = [Talk(daemon, f"ring-{i}") for i in range(3)]
    for t in ring:
        calls.ok(t.offer(sdp(*PHONE)))
        calls.ok(t.answer(sdp(*FRIEND)))
    replies = []
    for i, t in enumerate(ring):  # what comes to the caller's port goes to the next call's caller's port
        following = ring[(i + 1) % 3].answered
        near = calls.parse(following["sdp"])
        replies.append(t.offer(sdp(*PHONE), again=True))
        replies.append(t.client.call("answer", call_id=t.id, from_tag="a" + t.id, to_tag="b" + t.id, ICE="remove", sdp=sdp("10.200.1.1", near["port"])))
    near = ring[0].to_caller()
    phone = terminal(net, "caller", PHONE)
    phone.sendto(rtp(7, b"ring"), (near["ip"], near["port"]))
    idle.wait_idle()
    sent = daemon.statistics()["packets sent"]
    assert sent < 10, f"one packet was sent {sent} times"
    assert [r["result"] for r in replies] == ["ok"] * 5 + ["error"] and "circle" in replies[-1]["error-reason"], replies
    assert daemon.stop() == 0, daemon.text()


def echo(sockets, seconds, until, to=None):
    """Each socket returns received packets to their source, or sends them to `to`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until():
        for _ in range(500):
            ready = select.select(sockets, [], [], 2)[0]
            for s in ready:
                data, source = s.recvfrom(4096)
                s.sendto(data, to or source)
            if not ready:
                idle.wait_idle()
                if not select.select(sockets, [], [], 0)[0]:
                    return True
    return False


def test_a_circle_outside_ends(net):
    """Both terminals return all packets that they receive. Signalling does not show this, and packets would circulate for ever.
    The limit of the rate is off, because it could end the circle first."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--media-rate=0").wait_ready()
    phone, friend = terminal(net, "caller", PHONE), terminal(net, "callee", FRIEND)
    talk = Talk(daemon, "echo")
    calls.ok(talk.offer(sdp(*PHONE)))
    calls.ok(talk.answer(sdp(*FRIEND)))
    near = talk.to_caller()
    for seq in range(20):
        phone.sendto(rtp(seq, b"round and round"), (near["ip"], near["port"]))
    assert echo([phone, friend], 60, lambda: False), f"it goes on: {daemon.statistics()['packets sent']} packets"
    assert drops(daemon, "came-again") > 0
    phone.sendto(rtp(100, b"the next"), (near["ip"], near["port"]))  # the call itself is well
    assert heard([friend], lambda p: p.endswith(b"the next"), 30)[-1].endswith(b"the next")
    assert daemon.stop() == 0, daemon.text()


def test_a_circle_outside_ends_before_the_answer(net):
    """Early media: the offerer's address leads back to the port that the callee would send to, as through a second relay. No limit of the rate here,
    either."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", "--media-rate=0").wait_ready()
    phone = terminal(net, "caller", PHONE)
    talk = Talk(daemon, "early")
    calls.ok(talk.offer(sdp(*PHONE)))
    near = (talk.to_callee()["ip"], talk.to_callee()["port"])
    idle.wait_idle()
    for seq in range(20):
        phone.sendto(rtp(seq, b"round and round"), near)
    assert heard([phone], lambda p: True, 30), "the circle does not begin"
    for seq in range(20, 40):
        phone.sendto(rtp(seq, b"round and round"), near)
    assert echo([phone], 60, lambda: False, to=near), f"it goes on: {daemon.statistics()['packets sent']} packets"
    assert drops(daemon, "came-again") > 0
    phone.sendto(rtp(100, b"the next"), near)  # early media pass as before
    assert heard([phone], lambda p: p.endswith(b"the next"), 30)[-1].endswith(b"the next")
    assert daemon.stop() == 0, daemon.text()
