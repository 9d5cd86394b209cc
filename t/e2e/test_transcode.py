# SPDX-License-Identifier: GPL-2.0-or-later
"""Phones with different codecs: real calls through Kamailio with our module, and a daemon that is
killed while packets are converted."""
import os
import tempfile

import bench_transcode
import g711
import redisrig
import relay
import test_ng
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


def arrived(phone):
    """The next packet, decrypted: payload type, SSRC. None: none has come yet."""
    if not test_ng.readable(phone.sock, 0.1):
        return None
    packet = phone.sock.recv(2048)
    packet = phone.rx.unprotect(packet) if phone.rx else packet
    assert packet is not None, "not authentic"
    return packet[1] & 0x7F, int.from_bytes(packet[8:12], "big")


GAP = 5  # packets of 20 ms


def test_codec_thread_goes_on_after_a_crash(net):
    """G.722 at one side: the restarted daemon transcodes on, with new states of the codecs, and loses
    no more than 100 ms of packets that come after it is back. It sends under another SSRC: it cannot
    know how many packets it sent before, and an SRTP index that repeats under one key and SSRC
    repeats the keystream."""
    if not redisrig.have():
        raise Skip("redis-server is not installed")
    redis = redisrig.Redis(net)
    options = ["--engine=serial", *redis.daemon_options()]
    daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
    a, b = Terminal(net, "caller", "10.200.1.2"), Terminal(net, "callee", "10.200.2.2", "80")
    b.codec = 9
    call = {"call_id": "crash", "from_tag": "a"}
    b.told(daemon.client.call("offer", **call, sdp=a.sdp(), **test_ng.wants(b), codec={"mask": ["PCMU"], "transcode": ["G722"]},
                              direction=["caller", "callee"])["sdp"])
    a.told(daemon.client.call("answer", **call, to_tag="b", sdp=b.sdp())["sdp"])

    def first(one, other, kind):
        """Packets of one until other hears: the number sent, and what it hears."""
        for n in range(1, 200):
            one.send(os.urandom(160), kind)
            got = arrived(other)
            if got:
                return n, got
        raise AssertionError("nothing arrives")

    before = {}
    for one, other, kind in ((a, b, 0), (b, a, 9)):
        for _ in range(3):
            before[other] = first(one, other, kind)[1]
    wait_for("a saved call", lambda: state(daemon)["written"])
    kill(daemon)
    for phone in (a, b):
        while arrived(phone):
            pass
    daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
    wait_for("the call", lambda: daemon.client.call("list")["calls"] == ["crash"])
    for one, other, kind in ((a, b, 0), (b, a, 9)):
        sent, (got, ssrc) = first(one, other, kind)
        was = before[other]
        assert sent <= GAP, f"the first packet comes after {sent}"
        assert got == was[0] and ssrc not in (was[1], one.ssrc), (was, got, ssrc)
    medias = {tag: t["medias"][0] for tag, t in daemon.client.call("query", call_id="crash")["tags"].items()}
    assert medias["a"]["transcoded"] == "PCMU to G722" and medias["b"]["transcoded"] == "G722 to PCMU", medias
    daemon.stop()
    redis.stop()
