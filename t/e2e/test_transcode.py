# SPDX-License-Identifier: GPL-2.0-or-later
"""Phones with different codecs: real calls through Kamailio with our module, and a daemon that is
killed while packets are converted."""
import os
import struct
import tempfile
import time

import bench_transcode
import calls
import g711
import idle
import redisrig
import relay
import test_ng
import test_redis
from baresip import Phone, wait_for
from run import Skip, cases
from test_module import BOTH, needs, proxy, quoted
from test_redis import kill, state

MORE = "ICE=remove replace-origin direction=caller direction=callee codec-transcode-PCMU codec-transcode-PCMA"
KEYS = {"RTP": "", "SRTP": ";mediaenc=srtp-mand"}
PROFILE = {"RTP": "RTP/AVP", "SRTP": "RTP/SAVP"}
ADDRESS = {"caller": "10.200.1.2", "callee": "10.200.2.2"}


def baresip(net, folder, name, keys, **more):
    """A phone whose only codec is that of more."""
    account = f'<sip:{name}@{ADDRESS[name]}>;regint=0{KEYS[keys]};answermode=auto;outbound="sip:10.200.{1 + (name == "callee")}.1:5060;transport=udp"'
    return Phone(net, folder, name, name, ADDRESS[name], account, {"caller": 440, "callee": 1000}[name], **more)


def conversation(net, folder, flags, caller, callee):
    """The proxy, and two phones with (keys, codec) each that talk to each other and record it."""
    kam = proxy(net, folder, XC_OFFER_FLAGS=quoted(f"{PROFILE[callee[0]]} {flags}"), XC_ANSWER_FLAGS=quoted("ICE=remove replace-origin"))
    phones = [baresip(net, folder, "callee", callee[0], codec=callee[1])]
    phones.insert(0, baresip(net, folder, "caller", caller[0], codec=caller[1], dial=f"sip:callee@{ADDRESS['callee']}"))
    for phone in phones:
        phone.talks()
    for phone in phones:
        phone.records()
    return kam, *phones


@cases(("SRTP", "PCMU", "SRTP", "PCMA", "opencl"), ("SRTP", "PCMA", "RTP", "PCMU", "serial"), ("RTP", "PCMU", "RTP", "PCMA", "serial"))
def test_phones_with_different_codecs(net, caller_keys, caller_codec, callee_keys, callee_codec, engine):
    """Each receives the other's tone, which would be noise in the wrong law."""
    needs()
    if not os.access("/usr/bin/baresip", os.X_OK):
        raise Skip("baresip is not installed")
    options = ["--opencl-min=1"] if engine == "opencl" else []
    daemon = relay.Xcipherd(net, f"--engine={engine}", "--delete-delay=0", *options, addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-codecs-") as folder:
        kam, caller, callee = conversation(net, folder, MORE, (caller_keys, caller_codec), (callee_keys, callee_codec))
        query = daemon.client.call("query", call_id=daemon.client.call("list")["calls"][0])
        medias = [t["medias"][0] for t in query["tags"].values()]
        assert {m["codec"] for m in medias} == {"PCMU/8000", "PCMA/8000"}, medias
        assert {m["transcoded"] for m in medias} == {"PCMU to PCMA", "PCMA to PCMU"}, medias
        for phone in (caller, callee):
            phone.stop()
        assert caller.heard(callee) > 0.9 and callee.heard(caller) > 0.9, (caller.heard(callee), callee.heard(caller))
        assert kam.stop() == 0
    daemon.stop()


@cases(("SRTP", "G722", "SRTP", "PCMA", "udp"), ("RTP", "PCMU", "SRTP", "G722", "nfqueue"))
def test_phones_whose_codecs_need_a_codec_thread(net, caller_keys, caller_codec, callee_keys, callee_codec, steering):
    """G.722 at one side, G.711 at the other: each receives the other's tone."""
    needs()
    if not os.access("/usr/lib/baresip/modules/g722.so", os.R_OK):
        raise Skip("baresip's G.722 is missing")
    plugins = [f"--codec-dir={relay.BUILD}/codecs", f"--codec-worker={relay.BUILD}/xcipher-codec-worker", "--codec-isolation=none"]
    daemon = relay.Xcipherd(net, f"--steering={steering}", "--engine=serial", "--delete-delay=0", *plugins, addresses=BOTH).wait_ready()
    more = f"ICE=remove replace-origin direction=caller direction=callee codec-transcode-{callee_codec} codec-mask-{caller_codec}"
    with tempfile.TemporaryDirectory(prefix="xcipher-codecs-") as folder:
        kam, caller, callee = conversation(net, folder, more, (caller_keys, caller_codec), (callee_keys, callee_codec))
        for phone in (caller, callee):
            phone.stop()
        assert caller.heard(callee) > 0.9 and callee.heard(caller) > 0.9, (caller.heard(callee), callee.heard(caller))
        assert kam.stop() == 0
    daemon.stop()


def test_transcoding_load(net):
    """The section transcode of make bench, with few streams."""
    daemon = relay.Xcipherd(net, "--steering=udp", "--engine=serial", *bench_transcode.PLUGINS).wait_ready()
    for first, pair in enumerate((("PCMU", "PCMA"), ("PCMU", "G722"))):
        talk = [bench_transcode.Call(daemon.client, 2 * first + i, pair).setup() for i in range(2)]
        assert all(bench_transcode.offered(call) for call in talk), talk[0].told
        r = bench_transcode.load(net, talk, pair, 0.5)
        assert r["sent"] == 100 and r["lost"] == r["wrong"] == r["bad_auth"] == r["ssrc_changes"] == 0, r
    daemon.stop()


class Terminal(test_ng.Phone):
    """codec: its payload type."""
    codec = 0

    def sdp(self, direction="sendrecv"):
        return super().sdp(direction).replace(f"{self.profile} 0 ", f"{self.profile} {self.codec} ")


def test_conversion_goes_on_after_a_crash(net):
    if not redisrig.have():
        raise Skip("redis-server is not installed")
    redis = redisrig.Redis(net)
    options = ["--engine=serial", *redis.daemon_options()]
    daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
    a, b = Terminal(net, "caller", "10.200.1.2", "80"), Terminal(net, "callee", "10.200.2.2")
    b.codec = 8
    call = {"call_id": "crash", "from_tag": "a"}

    def talk():
        for one, other, kind, becomes, convert in ((a, b, 0, 8, g711.to_alaw), (b, a, 8, 0, g711.to_ulaw)):
            word = os.urandom(160)

            def arrives(one=one, other=other, kind=kind, word=word):
                one.send(word, kind)
                return other.hears(1)
            assert wait_for("a packet", arrives) == (becomes, convert(word))
    b.told(daemon.client.call("offer", **call, sdp=a.sdp(), transport_protocol="RTP/AVP", codec={"mask": ["PCMU"], "transcode": ["PCMA"]},
                              direction=["caller", "callee"])["sdp"])
    a.told(daemon.client.call("answer", **call, to_tag="b", sdp=b.sdp())["sdp"])
    talk()
    wait_for("a saved call", lambda: state(daemon)["written"])
    kill(daemon)
    daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
    wait_for("the call", lambda: daemon.client.call("list")["calls"] == ["crash"])
    medias = {tag: t["medias"][0] for tag, t in daemon.client.call("query", call_id="crash")["tags"].items()}
    assert medias["a"]["transcoded"] == "PCMU to PCMA" and medias["b"]["transcoded"] == "PCMA to PCMU", medias
    talk()
    daemon.stop()
    redis.stop()


# --- Codec threads after a restart -----------------------------------------------------------------------------------

GAP = 5  # packets of 20 ms


class Ear(Terminal):
    """Decrypts with libsrtp2, which estimates the roll-over counter, and keeps what it received: (SSRC,
    sequence number) to ciphertexts. Indexes stay below 2^16 here, so RTP's index is the sequence number."""

    def __init__(self, *args):
        super().__init__(*args)
        self.ciphertext = {}

    def next(self, wait=0.1):
        """Payload type, SSRC, sequence number and timestamp of the next packet. None: none has come yet."""
        if not test_ng.readable(self.sock, wait):
            return None
        packet = self.sock.recv(2048)
        kind, seq, ts, ssrc = packet[1] & 0x7F, *struct.unpack("!HII", packet[2:12])
        self.ciphertext.setdefault((ssrc, seq), set()).add(packet[12:])
        if self.rx:
            assert self.rx.unprotect(packet), f"not authentic: {ssrc:#x} {seq}"
        return kind, ssrc, seq, ts

    def repeated(self):
        return [k for k, words in self.ciphertext.items() if len(words) > 1]


class Transcoded:
    """PCMU to G.722 with codec threads, SRTP on both sides."""

    def __init__(self, net, client):
        self.a, self.b = Ear(net, "caller", "10.200.1.2", "80"), Ear(net, "caller", "10.200.1.2", "AEAD_AES_128_GCM")
        self.b.codec = 9
        call = {"call_id": "crash", "from_tag": "a"}
        self.b.told(calls.ok(client.call("offer", **call, sdp=self.a.sdp(), **test_ng.wants(self.b), direction=["caller", "callee"],
                                         codec={"mask": ["PCMU"], "transcode": ["G722"]}))["sdp"])
        self.a.told(calls.ok(client.call("answer", **call, to_tag="b", sdp=self.b.sdp()))["sdp"])
        self.ways = ((self.a, self.b, 0), (self.b, self.a, 9))

    def first(self):
        """Sends both ways until the other hears: by terminal, the number of packets sent and what came."""
        got = {}
        for one, other, kind in self.ways:
            for n in range(1, 200):
                one.send(os.urandom(160), kind)
                got[other] = n, other.next()
                if got[other][1]:
                    break
            else:
                raise AssertionError("nothing arrives")
        return got

    def more(self, n):
        """Sends n packets each way in the pace of a phone. Returns the last ones that came."""
        last = {}
        for _ in range(n):
            for one, other, kind in self.ways:
                one.send(os.urandom(160), kind)
            time.sleep(0.02)
            last.update({other: got for _, other, _ in self.ways if (got := self.drained(other))})
        idle.wait_idle()
        last.update({other: got for _, other, _ in self.ways if (got := self.drained(other))})
        return last

    @staticmethod
    def drained(phone):
        last = None
        while got := phone.next(0):
            last = got
        return last

    def goes_on(self, before):
        """The same SSRC, a higher index, a later timestamp, and a short gap. No (key, SSRC, index) has two plaintexts."""
        for phone, (sent, (kind, ssrc, seq, ts)) in self.first().items():
            was = before[phone]
            assert sent <= GAP, f"the first packet comes after {sent}"
            assert (kind, ssrc) == was[:2] and 0 < (seq - was[2]) % 65536 < 1 << 15 and 0 < (ts - was[3]) % (1 << 32) < 8000 * 600, (was, kind, ssrc, seq, ts)
        self.more(30)
        assert not self.a.repeated() and not self.b.repeated(), (self.a.repeated(), self.b.repeated())

    def check(self, client):
        medias = {tag: t["medias"][0] for tag, t in client.call("query", call_id="crash")["tags"].items()}
        assert medias["a"]["transcoded"] == "PCMU to G722" and medias["b"]["transcoded"] == "G722 to PCMU", medias


def index_saved(daemon):
    """Waits until Redis has what was sent until now."""
    before = state(daemon)["written"]
    wait_for("a saved index", lambda: state(daemon)["written"] >= before + 2)


def test_codec_threads_go_on_after_a_crash(net):
    """G.722 at one side: the restarted daemon transcodes on, with new states of the codecs, under the same SSRCs,
    and loses no more than 100 ms of packets that come after it is back. Twice."""
    if not redisrig.have():
        raise Skip("redis-server is not installed")
    redis = redisrig.Redis(net)
    options = ["--engine=serial", *redis.daemon_options()]
    daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
    talk = Transcoded(net, daemon.client)
    for _ in range(2):
        talk.first()
        before = talk.more(30)
        kill(daemon)
        for phone in (talk.a, talk.b):
            talk.drained(phone)
        daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
        wait_for("the call", lambda: daemon.client.call("list")["calls"] == ["crash"])
        talk.goes_on(before)
        talk.check(daemon.client)
    daemon.stop()
    redis.stop()


def test_another_node_takes_over_codec_threads(net):
    """The active node is killed with its Redis while its codec threads are busy. The standby transcodes on."""
    redis, there, first, second = test_redis.pair(net, ("--engine=serial",))
    talk = Transcoded(net, first.client)
    test_redis.followed(second, 1)
    talk.first()
    before = talk.more(30)
    kill(first)
    redis.kill()
    for phone in (talk.a, talk.b):
        before[phone] = talk.drained(phone) or before[phone]
    there.take_addresses()
    calls.ok(second.client.call("active"))
    wait_for("the call", lambda: state(second)["restored"] == 1)
    talk.goes_on(before)
    talk.check(second.client)
    assert second.stop() == 0
    redis.stop()


@cases(("twice",), ("rolled-back",))
def test_a_record_restored_repeats_no_transcoded_packet(net, how):
    """twice: Redis refuses writes after the first record, so each life begins with it. rolled-back: before each life,
    Redis gets one of the earlier records of the call. Each life sends other audio."""
    if not redisrig.have():
        raise Skip("redis-server is not installed")
    redis = redisrig.Redis(net)
    options = ["--engine=serial", *redis.daemon_options()]
    daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
    talk = Transcoded(net, daemon.client)
    talk.first()
    index_saved(daemon)
    records = []

    def record():
        flat = redis("HGETALL", "xcipher:call:crash")
        return dict(zip(flat[::2], flat[1::2]))

    records.append(record())
    if how == "twice":
        redis("CONFIG", "SET", "maxmemory", "1")
    same = 0
    for life in range(3):
        before = talk.more(40)
        if how == "rolled-back":
            records.append(record())
        kill(daemon)
        talk.drained(talk.a), talk.drained(talk.b)
        if how == "rolled-back":
            redis("DEL", "xcipher:call:crash")
            for k, v in records[(1, 0, 2)[life]].items():
                redis("HSET", "xcipher:call:crash", k, v)
        daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
        wait_for("the call", lambda: daemon.client.call("list")["calls"] == ["crash"])
        after = talk.first()
        same += sum(after[phone][1][1] == before[phone][1] for phone in after)
        assert not talk.a.repeated() and not talk.b.repeated(), (how, life, talk.a.repeated(), talk.b.repeated())
    talk.more(40)
    assert not talk.a.repeated() and not talk.b.repeated(), (how, talk.a.repeated(), talk.b.repeated())
    assert same == 6, same  # the SSRCs stayed, so the ceiling prevented repetitions
    # Control of the checker: it finds a repetition.
    some = next(iter(talk.a.ciphertext))
    talk.a.ciphertext[some].add(b"other")
    assert talk.a.repeated() == [some]
    if how == "twice":
        redis("CONFIG", "SET", "maxmemory", "0")
    daemon.stop()
    redis.stop()
