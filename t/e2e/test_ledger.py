# SPDX-License-Identifier: GPL-2.0-or-later
"""No (key, SSRC, index) is sent with two plaintexts, in any sequence of answers and after a restart
from any record. The test reads the wire, with keys from the SDP and indexes from the packets. It
searches for two ciphertexts of one index."""
import os
import signal
import socket
import struct
import time

import calls
import idle
import ng
import relay
import srtp
from redisrig import Redis, have
from run import Skip, cases
from test_ng import Phone, finish, start, talk
from test_redis import again, kill, settled, state, until

SERIAL = "--engine=serial"
LIVES = (SERIAL, "--timeout=3600")  # on a busy machine it takes minutes to hear all reports, which keep no call alive
TAG = {"AES_CM_128_HMAC_SHA1_80": 10, "AES_CM_128_HMAC_SHA1_32": 10, "AEAD_AES_128_GCM": 0}  # of SRTCP, after the index word


class Ledger:
    """Collects all packets under the relay's keys. Indexes stay below 2^16 here, so RTP's index is
    the sequence number."""

    def __init__(self):
        self.use = {}

    def see(self, key, suite, packet, is_rtcp):
        if is_rtcp:
            end = len(packet) - TAG[suite]
            index, ssrc, body = struct.unpack("!I", packet[end - 4:end])[0] & 0x7fffffff, packet[4:8], packet[8:end - 4]
        else:
            index, ssrc, body = struct.unpack("!H", packet[2:4])[0], packet[8:12], packet[12:]
        self.use.setdefault((key, is_rtcp, ssrc, index), set()).add(body)

    def repeated(self):
        return [k[1:] for k, bodies in self.use.items() if len(bodies) > 1]

    def count(self, is_rtcp):
        return sum(k[1] == is_rtcp for k in self.use)


class Terminal:
    """Ports for RTP and RTCP. Sends plain packets, or SRTP by a session of libsrtp2."""

    def __init__(self, net, port, session=None):
        self.port, self.session = port, session
        self.sockets = []
        for p in (port, port + 1):
            s = ng.socket_in(net.terminal["caller"])
            s.bind(("10.200.1.2", p))
            s.settimeout(0.15)
            s.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE: all of a phase fits
            self.sockets.append(s)
        self.sent = []

    def send(self, packet, to, is_rtcp=False):
        if self.session:
            packet = self.session._through(srtp.lib().srtp_protect_rtcp if is_rtcp else srtp.lib().srtp_protect, packet)
        self.sent.append((packet, to, is_rtcp))
        self.sockets[is_rtcp].sendto(packet, to)

    def received(self, is_rtcp=False):
        got = []
        idle.wait_idle()
        while True:
            try:
                got.append(self.sockets[is_rtcp].recv(2048))
            except TimeoutError:
                return got

    def close(self):
        for s in self.sockets:
            s.close()


def rtp(seq, fill, ssrc=7):
    return struct.pack("!BBHII", 0x80, 0, seq, seq * 160, ssrc) + bytes([fill]) * 160


def rtcp(fill, ssrc=7):
    return struct.pack("!BBHI", 0x80, 201, 1, ssrc) + struct.pack("!BBHI", 0x81, 202, 3, ssrc) + bytes([1, 6]) + bytes([fill]) * 6


class Talk:
    """One call, with the caller's packets and the callee's received ones."""

    def __init__(self, net, daemon, number, caller, callee):
        self.call = calls.Call(daemon.client, number, caller, callee).setup()
        suite = self.call.suite
        self.callee_suite = suite[1].name
        self.a, self.b = Terminal(net, self.call.ports[0]), Terminal(net, self.call.ports[1])
        self.forget()
        near = self.call.to_caller
        self.to = ((near["ip"], near["port"]), (near["ip"], near["rtcp"]))
        self.ledger, self.key = Ledger(), self.call.wire[1]

    def forget(self):
        """The caller owns its key, so it may use the same indexes again."""
        suite = self.call.suite[0]
        self.a.session = None if suite.plain else srtp.Session(suite.name, self.call.key[0], srtp.OUTBOUND)

    def hear(self):
        n = [0, 0]
        for is_rtcp in (False, True):
            for p in self.b.received(is_rtcp):
                self.ledger.see(self.key, self.callee_suite, p, is_rtcp)
                n[is_rtcp] += 1
        return n

    def reports(self, n, fill):
        """Sends reports until this many were relayed. On a busy machine hear() takes seconds, so each time as many are sent as are wanted."""
        end, got = time.monotonic() + 180, 0
        while got < n:
            assert time.monotonic() < end, "no report comes through"
            for _ in range(n):
                self.a.send(rtcp(fill), self.to[1], True)
            got += self.hear()[1]

    def close(self):
        self.a.close()
        self.b.close()


def media(talk, seqs, fill, pause=0.001):
    """Each source sends these packets. Returns how many were relayed, by call."""
    for seq in seqs:
        for t in talk:
            t.a.send(rtp(seq, fill), t.to[0])
        if seq % 50 == 49:
            idle.wait_idle()  # the sockets of a late daemon have no room for all packets
        time.sleep(pause)
    return [t.hear()[0] for t in talk]


@cases(("AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"), ("AEAD_AES_128_GCM", "AES_CM_128_HMAC_SHA1_80"),
       ("AES_CM_128_HMAC_SHA1_80", None))
def test_one_offer_answered_three_times(net, first, second):
    """A 183 with one key, a 183 with another or in RTP, a 200 with the first. Meanwhile the caller
    repeats its sequence numbers."""
    daemon = relay.Xcipherd(net, SERIAL).wait_ready()
    flags = {"transport_protocol": "RTP/AVP", "OSRTP": ["offer"]} if second is None else {"transport_protocol": "RTP/SAVP"}
    names = {"call_id": "three", "from_tag": "a", "ICE": "remove", "replace": ["origin"]}
    sdes = ["offerer_pref:" + ";".join(s for s in (first, second) if s), "pad"]
    offered = calls.parse(calls.ok(daemon.client.call("offer", sdp=calls.sdp("10.200.1.2", 20000), SDES=sdes, **names, **flags))["sdp"])
    a, b, ledger = Terminal(net, 20000), Terminal(net, 20002), Ledger()

    def answer(suite):
        if suite:
            tag, ours = next((t, k) for t, s, k in offered["crypto"] if s == suite)
            theirs = os.urandom(len(ours))
        else:
            tag, ours, theirs = 1, b"", None
        body = calls.sdp("10.200.1.2", 20002, suite, theirs, tag, profile="RTP/AVP" if second is None else None)
        told = calls.parse(calls.ok(daemon.client.call("answer", sdp=body, to_tag="b", **names))["sdp"])
        return ours, (told["ip"], told["port"])

    def media(suite, seqs, fill):
        key, to = answer(suite)
        for seq in seqs:
            a.send(rtp(seq, fill), to)
            time.sleep(0.002)
        got = b.received()
        for p in got:
            if suite:
                ledger.see(key, suite, p, False)
        return len(got)

    assert media(first, range(100, 120), 1) == 20
    assert media(second, range(120, 140), 2) == 20
    # Control: new packets are relayed, repeated ones are not.
    again_ = media(first, [*range(100, 120), *range(140, 150)], 3)
    assert not ledger.repeated(), ledger.repeated()
    assert again_ == 10, again_
    assert daemon.statistics()["drops"]["nonce"] == 20, daemon.statistics()["drops"]
    # Control of the checker: it finds a repetition.
    key = next(iter(ledger.use))
    ledger.use[key].add(b"other")
    assert ledger.repeated() == [key[1:]]
    a.close()
    b.close()
    assert daemon.stop() == 0


def record(redis, call):
    flat = redis("HGETALL", f"xcipher:call:{call.id}")
    return dict(zip(flat[::2], flat[1::2]))


def roll_back(redis, call, fields):
    redis("DEL", f"xcipher:call:{call.id}")
    for k, v in fields.items():
        redis("HSET", f"xcipher:call:{call.id}", k, v)


def reborn(net, redis, daemon, n):
    kill(daemon)
    daemon = again(net, redis, *LIVES)
    until(lambda: state(daemon)["restored"] == n)
    return daemon


@cases(("twice",), ("rolled-back",), ("late",))
def test_a_record_restored_repeats_nothing(net, how):
    """twice: Redis refuses writes, so each life begins with the same record. rolled-back: Redis
    stores them, then gets the old record back. late: Redis hangs, many packets are sent, and the
    daemon is killed. In each life the sources repeat sequence numbers with other bytes, and SRTP
    sources also repeat old packets."""
    if not have():
        raise Skip("no redis-server")
    redis = Redis(net)
    daemon = relay.Xcipherd(net, *redis.daemon_options(), *LIVES).wait_ready()
    talk = [Talk(net, daemon, i, *pair) for i, pair in enumerate(
        (("plain", "80"), ("plain", "AEAD_AES_128_GCM"), ("80", "80"), ("80", "AEAD_AES_128_GCM")))]
    proved = talk[2:]
    assert media(talk, range(1000, 1020), 1, 0.02) == [20] * 4
    for t in talk:
        t.reports(2, 1)
    settled(daemon)
    until(lambda: all(b"s" in record(redis, t.call) and record(redis, t.call)[b"s"] for t in talk))
    old = [record(redis, t.call) for t in talk]
    if how == "twice":
        redis("CONFIG", "SET", "maxmemory", "1")
    elif how == "late":
        redis.signal(signal.SIGSTOP)
    for t in talk:
        t.reports(3, 2)
    assert min(media(talk, range(1020, 1620), 2)) > 500
    for life in range(2):
        if how == "late" and life == 0:
            redis.signal(signal.SIGCONT)
            kill(daemon)
            for t, fields in zip(talk, old):  # packets in flight when the daemon was killed are lost
                roll_back(redis, t.call, fields)
            daemon = again(net, redis, *LIVES)
            until(lambda: state(daemon)["restored"] == len(talk))
        elif how == "rolled-back":
            settled(daemon)
            kill(daemon)
            for t, fields in zip(talk, old):
                roll_back(redis, t.call, fields)
            daemon = again(net, redis, *LIVES)
            until(lambda: state(daemon)["restored"] == len(talk))
        else:
            daemon = reborn(net, redis, daemon, len(talk))
        before = [t.a.sent[-100:] for t in proved]
        for t in proved:
            t.forget()
        went_on = media(talk, range(1020, 1620), 10 + life)
        for t, sent in zip(proved, before):
            for packet, to, is_rtcp in sent:
                t.a.sockets[is_rtcp].sendto(packet, to)
            t.hear()
        went_on += media(proved, range(1620 + 50 * life, 1670 + 50 * life), 10 + life)
        for t in talk:
            t.reports(3, 10 + life)
        for t in talk:
            assert not t.ledger.repeated(), (how, life, t.call.text, t.ledger.repeated()[:5])
        # Control: media continue in each life from the first packet. Repeated SRTP is refused if
        # the record knows it.
        stale = (how, life) != ("late", 1)
        assert min(went_on[:4 if stale else 2]) > 500 and min(went_on[4:]) >= 40, (how, life, went_on)
    for t in talk:
        assert t.ledger.count(False) > 300 and t.ledger.count(True) >= 11, (t.ledger.count(False), t.ledger.count(True))
        t.close()
    if how == "twice":
        redis("CONFIG", "SET", "maxmemory", "0")
    assert daemon.stop() == 0
    redis.stop()


@cases(("AES_CM_128_HMAC_SHA1_80",), ("AEAD_AES_256_GCM",))
def test_an_old_packet_is_a_replay_after_many_ssrcs(net, suite):
    """A terminal's authentic packets, then 40 of its other SSRCs, then somebody repeats the first ones. None is relayed again; its next ones are."""
    daemon = start(net)
    a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2", suite)
    talk(daemon.client, a, b, "c")

    def packet(ssrc, seq, word):
        return b.tx.protect(struct.pack("!BBHII", 0x80, 0, seq, seq * 160, ssrc) + word)
    old = [packet(b.ssrc, b.seq + 1 + i, b"old%d" % i) for i in range(10)]
    others = [packet(0x1000 + n, 1, b"other%d" % n) for n in range(40)]
    for packets, words in ((old, [b"old%d" % i for i in range(10)]), (others, [b"other%d" % n for n in range(40)])):
        for p in packets:
            b.sock.sendto(p, b.to)
        assert [a.hears()[1] for _ in packets] == words
    for p in old + others:
        b.sock.sendto(p, b.to)
    b.sock.sendto(packet(b.ssrc, b.seq + 11, b"next"), b.to)
    assert a.hears() == (0, b"next") and a.hears(0.3) is None
    drops = daemon.statistics()["drops"]
    assert drops["replay"] == 50, drops
    finish(daemon)
