# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources on plain legs. A stranger who reaches a relay port neither gets a terminal's media, nor
is relayed in its place, nor silences it. Each test also shows that the stranger's packets
arrive, and their effect without protection."""
import itertools
import time

import calls
import idle
import ng
from run import cases
from test_ng import MAP, Phone, finish, leaves, start, wants
from baresip import wait_for

THREE = ("caller", "callee", "thief")
CASES = list(itertools.product(("udp", "nfqueue"), (None, "80")))


class Stranger(Phone):
    """Sends to any port as a terminal would."""

    def __init__(self, net, port=0):
        super().__init__(net, "thief", "10.200.3.2")
        if port:
            self.sock.close()
            self.sock, self.port = ng.socket_in(net.terminal["thief"]), port
            self.sock.bind((self.address, port))

    def stream(self, to, packets):
        self.to = to
        for _ in range(packets):
            self.send(b"stranger")
            time.sleep(0.02)


class Translated(Phone):
    """A terminal behind a NAT: its SDP names another address than its packets have. 'named' is a
    socket at that address."""

    def __init__(self, net):
        net.run(net.terminal["caller"], "ip", "addr", "add", "10.200.1.77/24", "dev", "t1", check=False)
        super().__init__(net, "caller", "10.200.1.2")
        self.named = Phone(net, "caller", "10.200.1.77")

    def sdp(self, direction="sendrecv", hold=False):
        ip = "0.0.0.0" if hold else "10.200.1.77"
        return (f"v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\n"
                f"m=audio {self.named.port} RTP/AVP 0 101\r\n{MAP}a={direction}\r\n")


def invite(daemon, a, b, call_id, sdp=None):
    """Sends offer and answer, first or again, without media. Returns once the workers know the
    call."""
    again = {"to_tag": "b"} if a.to else {}
    b.told(calls.ok(daemon.client.call("offer", call_id=call_id, from_tag="a", sdp=sdp or a.sdp(), **again, **wants(b)))["sdp"])
    a.told(calls.ok(daemon.client.call("answer", call_id=call_id, from_tag="a", to_tag="b", sdp=b.sdp()))["sdp"])
    idle.wait_idle()


def received(daemon):
    return daemon.statistics()["packets received"]


def arrives(daemon, act):
    """Checks that packets of act() reach the daemon."""
    before = received(daemon)
    packets = act()
    wait_for("the stranger's packets", lambda: received(daemon) >= before + packets)


def attack(daemon, thief, to, packets):
    def act():
        thief.stream(to, packets)
        return packets
    arrives(daemon, act)


def settle(a, b, packets=8):
    """a passes its probation."""
    for _ in range(packets):
        a.send(b"settling")
        time.sleep(0.02)
    while b.hears(0.3):
        pass
    assert leaves(a, b)


def a_stranger_has_nothing(thief):
    assert thief.hears(0.3) is None


@cases(*CASES)
def test_a_stray_packet_takes_nothing_from_a_silent_terminal(net, steering, other):
    daemon = start(net, f"--steering={steering}")
    a, b, thief = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2", other), Stranger(net)
    invite(daemon, a, b, "c")
    time.sleep(4)
    attack(daemon, thief, a.to, 1)
    assert b.hears(0.3) is None, "a stranger was heard"
    assert leaves(b, a)
    a_stranger_has_nothing(thief)
    assert leaves(a, b), "the terminal is locked out"
    attack(daemon, thief, a.to, 20)
    assert b.hears(0.3) is None and leaves(b, a) and leaves(a, b)
    a_stranger_has_nothing(thief)
    finish(daemon)


test_a_stray_packet_takes_nothing_from_a_silent_terminal.terminals = THREE


@cases(*CASES)
def test_the_address_in_sdp_takes_over_from_a_stranger(net, steering, other):
    daemon = start(net, f"--steering={steering}")
    a, b, thief = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2", other), Stranger(net)
    invite(daemon, a, b, "c")
    time.sleep(3)
    attack(daemon, thief, a.to, 20)
    while b.hears(0.3):
        pass
    # Control: a whole stream before the terminal's first packet succeeds.
    assert leaves(b, thief)
    assert leaves(a, b), "the terminal is locked out"
    assert leaves(b, a)
    a_stranger_has_nothing(thief)
    for _ in range(8):
        assert leaves(a, b)
        time.sleep(0.02)
    attack(daemon, thief, a.to, 20)
    assert b.hears(0.3) is None and leaves(b, a)
    a_stranger_has_nothing(thief)
    side = daemon.client.call("query", call_id="c")["tags"]["a"]["medias"][0]["streams"][0]
    assert side["handovers"] == 1, side
    wait_for("a line of the log", lambda: "the address in SDP sends" in daemon.text())
    line = [x for x in daemon.text().splitlines() if "confirmed source replaced" in x]
    assert len(line) == 1 and all(word in line[0] for word in ('call-id "c", tag "a"', "rank before: any address, now: exact", f"10.200.1.2:{a.port}")), line
    finish(daemon)


test_the_address_in_sdp_takes_over_from_a_stranger.terminals = THREE


@cases(*CASES)
def test_the_port_in_sdp_makes_no_stranger_likely(net, steering, other):
    """The stranger's packets have the source port that the terminal's SDP names."""
    daemon = start(net, f"--steering={steering}")
    a, b = Translated(net), Phone(net, "callee", "10.200.2.2", other)
    thief = Stranger(net, a.named.port)
    invite(daemon, a, b, "c")
    settle(a, b)
    for _ in range(2):  # while learning, and after it
        arrives(daemon, lambda: [(thief.stream(a.to, 1), a.send(b"terminal")) for _ in range(8)] and 16)
        time.sleep(3.2)
        assert b"stranger" not in [b.hears(0)[1] for _ in range(8)], "a stranger was heard"
        assert leaves(a, b), "the terminal is locked out"
        assert leaves(b, a), "the terminal gets nothing"
        a_stranger_has_nothing(thief)
        assert leaves(thief, b, does=False), "a stranger was heard"
    # Control: without an earlier source the stranger is followed.
    c, d = Translated(net), Phone(net, "callee", "10.200.2.2", other)
    invite(daemon, c, d, "d")
    attack(daemon, thief, c.to, 8)
    assert leaves(d, thief)
    finish(daemon)


test_the_port_in_sdp_makes_no_stranger_likely.terminals = THREE


def report(net, where, address, port, to):
    """A socket, and a function that sends eight RTCP packets from it to the port above."""
    sock = ng.socket_in(net.terminal[where])
    sock.bind((address, port))

    def act():
        for _ in range(8):
            sock.sendto(b"\x80\xc9\0\x01rtcp", (to[0], to[1] + 1))
            time.sleep(0.02)
        return 8
    return sock, act


def goes_to(daemon, call_id, stream):
    """The destination of the caller's RTP (0) or RTCP (1)."""
    e = daemon.client.call("query", call_id=call_id)["tags"]["a"]["medias"][0]["streams"][stream]["endpoint"]
    return e["address"], e["port"]


@cases(*CASES)
def test_rtcp_follows_no_stranger_while_rtp_is_the_terminals(net, steering, other):
    daemon = start(net, f"--steering={steering}")
    for call_id, kind in (("c", Phone), ("d", Translated)):
        a = kind(net, "caller", "10.200.1.2") if kind is Phone else kind(net)
        b = Phone(net, "callee", "10.200.2.2", other)
        invite(daemon, a, b, call_id)
        signalled = goes_to(daemon, call_id, 1)
        _, strange = report(net, "thief", "10.200.3.2", 0, a.to)
        # Control: before the terminal sends RTP, the stranger is followed.
        arrives(daemon, strange)
        wait_for("RTCP to the stranger", lambda: goes_to(daemon, call_id, 1)[0] == "10.200.3.2")
        settle(a, b)
        assert goes_to(daemon, call_id, 1) == signalled, "RTCP stays with the stranger"
        arrives(daemon, strange)
        assert goes_to(daemon, call_id, 1) == signalled, "RTCP goes to the stranger"
        sock, own = report(net, "caller", "10.200.1.2", 0, a.to)
        arrives(daemon, own)
        wait_for("RTCP to the terminal", lambda: goes_to(daemon, call_id, 1) == sock.getsockname())
    finish(daemon)


test_rtcp_follows_no_stranger_while_rtp_is_the_terminals.terminals = THREE


@cases(*CASES)
def test_who_came_during_the_first_hold_does_not_stay(net, steering, other):
    """The first SDP names no address (0.0.0.0), the next one the terminal's."""
    daemon = start(net, f"--steering={steering}")
    a, b, thief = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2", other), Stranger(net)
    invite(daemon, a, b, "c", a.sdp().replace("10.200.1.2", "0.0.0.0"))
    time.sleep(3.2)
    attack(daemon, thief, a.to, 8)
    # Control: without other sources the stranger is followed.
    wait_for("the stranger", lambda: goes_to(daemon, "c", 0) == ("10.200.3.2", thief.port))
    while b.hears(0.3):
        pass
    invite(daemon, a, b, "c")
    assert leaves(b, a), "media stay with the stranger"
    a_stranger_has_nothing(thief)
    settle(a, b)
    attack(daemon, thief, a.to, 8)
    assert b.hears(0.3) is None and leaves(b, a) and leaves(a, b)
    a_stranger_has_nothing(thief)
    finish(daemon)


test_who_came_during_the_first_hold_does_not_stay.terminals = THREE


@cases(*CASES)
def test_a_session_refresh_forgets_nobody(net, steering, other):
    daemon = start(net, f"--steering={steering}")
    a, b, thief = Translated(net), Phone(net, "callee", "10.200.2.2", other), Stranger(net)
    invite(daemon, a, b, "c")
    settle(a, b)
    time.sleep(3)  # and is confirmed
    assert leaves(a, b) and leaves(b, a)
    for sdp in (a.sdp(), a.sdp(hold=True), a.sdp(direction="sendonly"), a.sdp()):
        invite(daemon, a, b, "c", sdp)
        attack(daemon, thief, a.to, 20)
        assert b.hears(0.3) is None, "a stranger was heard"
        if sdp != a.sdp():
            continue
        assert leaves(b, a), "the terminal gets nothing"
        a_stranger_has_nothing(thief)
        assert a.named.hears(0.3) is None, "media went to the address behind the translation"
        assert leaves(a, b), "the terminal is locked out"
    # Control: it succeeds if no terminal sent before.
    c, d = Translated(net), Phone(net, "callee", "10.200.2.2", other)
    invite(daemon, c, d, "d")
    time.sleep(3)
    attack(daemon, thief, c.to, 20)
    assert leaves(d, thief)
    finish(daemon)


test_a_session_refresh_forgets_nobody.terminals = THREE


@cases(*itertools.product(("udp", "nfqueue"), (False, True)))
def test_a_forged_sequence_number_silences_nobody(net, steering, answers):
    """From the terminal's own address: the strongest forgery."""
    daemon = start(net, f"--steering={steering}")
    plain = Phone(net, "callee" if answers else "caller", "10.200.2.2" if answers else "10.200.1.2")
    secure = Phone(net, "caller" if answers else "callee", "10.200.1.2" if answers else "10.200.2.2", "80")
    invite(daemon, *((secure, plain) if answers else (plain, secure)), "c")
    settle(plain, secure)
    for jump in (32000, 30000, 2999, 200):
        seq = plain.seq
        plain.seq += jump
        arrives(daemon, lambda: plain.send(b"forged") or 1)
        assert secure.hears(0.3) is None, jump
        plain.seq = seq
        assert leaves(plain, secure), f"silenced by {jump}"
    # Control: a forged packet with a plausible number is relayed, and the terminal's packet with
    # that number is not. Media continue.
    seq = plain.seq
    assert leaves(plain, secure)
    plain.seq = seq
    assert leaves(plain, secure, does=False) and leaves(plain, secure)
    # A real jump of the terminal is relayed after some packets.
    plain.seq += 5000
    heard = []
    for _ in range(40):
        plain.send(b"jumped")
        heard += [secure.hears(0.02)]
    assert leaves(plain, secure) and heard.count(None) <= 30, heard
    finish(daemon)


test_a_forged_sequence_number_silences_nobody.terminals = THREE
