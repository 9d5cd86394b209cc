# SPDX-License-Identifier: GPL-2.0-or-later
"""ICE with candidates of both families: a terminal reachable by only one of them, a change of the pair, a restart of the daemon."""
import re
import socket

import ice
import ng
import redisrig
import webrtc
from baresip import wait_for
from run import Skip, cases
from test_reach import rtp, sdp, terminal
from test_redis import settled

import calls

HOME, OTHER = ("10.200.1.2", "fd00:1::2")
FRIEND = ("10.200.2.2", 20002)


def terminals(function):
    function.terminals = webrtc.TERMINALS
    return function


class Both(ice.Ice):
    """A terminal that also has a socket for IPv6. SDP names IPv4. candidate: the relay's, by family. Ignores checks of families in deaf."""

    def __init__(self, net, place):
        self.v6 = ng.socket_in(net.terminal[place], socket.AF_INET6)
        self.v6.bind((OTHER, 0))
        self.candidate, self.arrived, self.deaf = {}, {4: [], 6: []}, {4}
        super().__init__(net, place, HOME)

    def sockets(self):
        return [self.socket, self.v6]

    def attributes(self):
        return super().attributes() + f"a=candidate:2 1 udp 2130706175 {OTHER} {self.v6.getsockname()[1]} typ host\r\n"

    def believe(self, sdp):
        super().believe(sdp)
        self.candidate = {6 if ":" in ip else 4: (ip, int(port)) for ip, port in re.findall(r"^a=candidate:\S+ 1 UDP \d+ (\S+) (\d+)", sdp, re.M)}

    def take(self, s, packet, source):
        family = 6 if s is self.v6 else 4
        self.mute = family in self.deaf
        super().take(s, packet, source)
        if packet[0] >= 128:
            self.arrived[family].append(packet[12:])

    def by(self, family):
        return self.v6 if family == 6 else self.socket

    def nominate(self, family):
        """Until it is answered."""
        before = self.responses
        self.deaf -= {family}

        def answered():
            self.check(by=self.by(family), to=self.candidate[family])
            return self.responses > before
        wait_for(f"IPv{family} is answered", answered)

    def close(self):
        super().close()
        self.v6.close()


class Rig:
    """A call between such a terminal and a friend without ICE."""

    def __init__(self, net, *options, **flags):
        self.net, self.options, self.flags, self.seq = net, options, flags, 0
        self.daemon = webrtc.start(net, *options)
        self.phone, self.friend = Both(net, "a"), terminal(net, "b", FRIEND)
        self.friend.setblocking(False)
        self.common = {"call_id": "families", "from_tag": "a", "replace": ["origin"]}
        self.talk()

    def talk(self, **more):
        offered = calls.ok(self.daemon.client.call("offer", sdp=self.phone.sdp(), direction=["a", "b"], ICE="remove", **self.common, **self.flags, **more))
        self.to_friend = calls.parse(offered["sdp"])
        answered = calls.ok(self.daemon.client.call("answer", sdp=sdp(*FRIEND), to_tag="b", ICE="default", **self.common))
        self.phone.believe(answered["sdp"])
        return answered["sdp"]

    def heard(self):
        """Payloads that the friend has received since."""
        got = []
        try:
            while True:
                got.append(self.friend.recv(2048)[12:])
        except BlockingIOError:
            return got

    def nominate(self, family):
        self.phone.nominate(family)
        wait_for("media use it", lambda: self.stream()["family"] == f"IPv{family}" and "endpoint" in self.stream())

    def flows(self, family):
        """Media pass both ways by this family, and none by the other."""
        other = 10 - family
        word = f"by {family}, {self.seq}".encode()
        back = b"back" + word
        before = len(self.phone.arrived[other])

        def passes():
            self.seq += 1
            self.phone.by(other).sendto(rtp(self.seq, b"stray" + word), self.phone.candidate[other])
            self.phone.by(family).sendto(rtp(self.seq, word), self.phone.candidate[family])
            self.friend.sendto(rtp(self.seq, back), (self.to_friend["ip"], self.to_friend["port"]))
            got = self.heard()
            assert not any(p.startswith(b"stray" + word) for p in got), got
            return word in got and back in self.phone.arrived[family]
        wait_for(f"media by IPv{family}", passes)
        # Packets of the previous family may still be on their way.
        assert len(self.phone.arrived[other]) <= before + 1 or back not in self.phone.arrived[other][before + 1:]

    def stream(self):
        return self.daemon.client.call("query", call_id="families")["tags"]["a"]["medias"][0]["streams"][0]

    def end(self):
        self.phone.close()
        self.friend.close()
        assert self.daemon.stop() == 0, self.daemon.text()


@cases(("full",), ("lite",))
@terminals
def test_the_pair_decides_the_family(net, kind):
    """SDP names IPv4 on both sides. The terminal nominates IPv6 and then IPv4, whose priority is higher."""
    rig = Rig(net, **({"ICE-lite": "backward"} if kind == "lite" else {}))
    assert set(rig.phone.candidate) == {4, 6} and rig.phone.to == rig.phone.candidate[4], (rig.phone.to, rig.phone.candidate)
    rig.nominate(6)
    rig.flows(6)
    stream = rig.stream()
    assert (stream["local address"], stream["family"]) == ("fd00:1::1", "IPv6") and len(stream["local candidates"]) == 2, stream
    rig.nominate(4)
    rig.flows(4)
    assert rig.stream()["local address"] == "10.200.1.1"
    rig.end()


def named(text):
    """Where c= and m= say that the only m-line is, and what a=rtcp says."""
    head, media = text.split("m=audio ")
    address = re.findall(r"^c=IN IP[46] (\S+)", media, re.M) or re.findall(r"^c=IN IP[46] (\S+)", head, re.M)
    return (address[0], int(media.split()[0])), re.search(r"^a=rtcp:(.*?)\r?$", media, re.M)[1]


@cases(("full",), ("lite",))
@terminals
def test_sdp_names_the_selected_address(net, kind):
    """RFC 8839 4.4.1.2: c= and m= of later offers and answers name the local address of the pair in use. That of RTCP, which has none yet, stays
    the first one."""
    rig = Rig(net, **({"ICE-lite": "backward"} if kind == "lite" else {}))

    def written():
        answered = rig.talk(to_tag="b")
        offered = calls.ok(rig.daemon.client.call("offer", sdp=sdp(*FRIEND), call_id="families", from_tag="b", to_tag="a", replace=["origin"], ICE="default"))["sdp"]
        calls.ok(rig.daemon.client.call("answer", sdp=rig.phone.sdp(), call_id="families", from_tag="b", to_tag="a", replace=["origin"], ICE="remove"))
        return [named(answered), named(offered)]
    for family in (6, 4):
        rig.nominate(family)
        rig.flows(family)
        at = rig.phone.candidate[family]
        first, port = rig.phone.candidate[4]
        rtcp = f"{port + 1} IN IP4 {first}" if family == 6 else f"{port + 1}"
        said = written()
        assert said == [(at, rtcp)] * 2, (said, at)
        rig.flows(family)
    rig.end()


@terminals
def test_a_restart_keeps_the_family(net):
    """The daemon is killed while media pass by IPv6; afterwards the terminal restarts ICE and returns to IPv4."""
    if not redisrig.have():
        raise Skip("no redis-server here")
    redis = redisrig.Redis(net)
    rig = Rig(net, *redis.daemon_options())
    rig.nominate(6)
    rig.flows(6)
    settled(rig.daemon)
    rig.daemon.process.kill()
    rig.daemon.process.wait()
    rig.daemon = webrtc.start(net, *redis.daemon_options())
    rig.flows(6)
    rig.phone.ufrag = "next"
    ours = rig.phone.candidate
    rig.talk(to_tag="b")
    assert rig.phone.candidate == ours
    rig.nominate(4)
    rig.flows(4)
    rig.end()


@terminals
def test_a_terminal_that_only_ipv6_reaches(net):
    """aiortc offers both families, and gets no packet by IPv4, which SDP names."""
    webrtc.needs("aiortc")
    net.run(net.terminal["a"], "iptables", "-A", "INPUT", "-p", "udp", "-j", "DROP")
    daemon = webrtc.start(net)
    with webrtc.talk(net, daemon, "aiortc", "sdes", family=webrtc.call.BOTH) as c:
        reports = c.talks()
        assert "c=IN IP4 10.200.1.1" in c.answered and not webrtc.call.judge(reports), reports
        stream = daemon.client.call("query", call_id=c.id)["tags"]["a"]["medias"][0]["streams"][0]
        assert stream["family"] == "IPv6", stream
    assert daemon.stop() == 0, daemon.text()
