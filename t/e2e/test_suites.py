# SPDX-License-Identifier: GPL-2.0-or-later
"""Every suite and session parameter through the daemon, from SDP to packets, on both engines.
Terminals are Debian's libsrtp2 for the suites it supports. For F8 and AES-192 the peer is
Debian's rtpengine."""
import os
import threading

import calls
import relay
from baresip import wait_for
from run import Skip, cases
from test_relay import clean, finish

ENGINES = [("serial",), ("opencl",)]
SUITES = ["80", "32", "AES_256_CM_HMAC_SHA1_80", "AES_256_CM_HMAC_SHA1_32", "AEAD_AES_128_GCM", "AEAD_AES_256_GCM",
          "NULL_HMAC_SHA1_80", "NULL_HMAC_SHA1_32", "plain"]
PARAMS = ["80,UNENCRYPTED_SRTCP", "32,UNENCRYPTED_SRTP", "80,UNENCRYPTED_SRTP,UNENCRYPTED_SRTCP", "80,UNAUTHENTICATED_SRTP",
          "AEAD_AES_256_GCM,UNENCRYPTED_SRTCP", "80,MKI", "AEAD_AES_128_GCM,MKI", "AES_256_CM_HMAC_SHA1_32,UNENCRYPTED_SRTCP,MKI"]


def start(net, engine, *options):
    return relay.Xcipherd(net, "--steering=udp", f"--engine={engine}", "--opencl-min=1", "--sdes-accept=all", *options).wait_ready()


def drive(net, daemon, talk, **how):
    clean(calls.load(net, relay.BUILD, talk, **how))
    s = daemon.statistics()
    if s["engine"] == "opencl":
        assert s["device jobs"] == s["jobs"] > 0, s


@cases(*ENGINES)
def test_every_suite_to_every_suite(net, engine):
    daemon = start(net, engine)
    pairs = [(a, b) for a in SUITES for b in SUITES]
    talk = [calls.Call(daemon.client, i, *pair).setup() for i, pair in enumerate(pairs)]
    drive(net, daemon, talk, rate=20, seconds=0.8)
    finish(daemon)


@cases(*ENGINES)
def test_session_parameters(net, engine):
    daemon = start(net, engine)
    pairs = [p for i, a in enumerate(PARAMS) for p in ((a, "80"), ("32", a), (a, PARAMS[(i + 1) % len(PARAMS)]))]
    talk = [calls.Call(daemon.client, i, *pair).setup() for i, pair in enumerate(pairs)]
    drive(net, daemon, talk, rate=25, seconds=0.8)
    finish(daemon)


@cases(*ENGINES)
def test_a_new_key_in_mid_call_loses_nothing(net, engine):
    """Both terminals add a key by re-INVITE while media flow, switch to it, and remove the old one,
    all by MKI."""
    daemon = start(net, engine)
    talk = [calls.Call(daemon.client, i, *p).setup() for i, p in enumerate([("80,MKI", "AEAD_AES_128_GCM,MKI"), ("32,MKI", "80")])]
    at_first = [list(c.key) for c in talk]
    for c in talk:
        for side, suite in enumerate(c.suite):
            if suite.mki:
                c.keys[side].append(os.urandom(suite.key_len))
                c.switch[side] = 550
    # Ten seconds between the re-INVITE and the terminals' switch: a busy machine may need some of them.
    result = load_and_re_invite(net, daemon, talk, packets=50, seconds=12)
    clean(result)
    assert all(c.key[0] == k[0] for c, k in zip(talk, at_first))
    finish(daemon)


def load_and_re_invite(net, daemon, talk, packets, seconds, change=lambda c: None):
    """Runs media for so long, with a re-INVITE of each call after so many packets of each leg.
    Returns the load's result."""
    wire, failed = [list(c.wire) for c in talk], []

    def re_invite():
        try:
            wait_for("media", lambda: daemon.statistics()["packets received"] >= 2 * len(talk) * packets)
            for c, w in zip(talk, wire):
                change(c)
                c.setup(again=True)
                assert c.wire == w, "our own keys are to stay"
        except Exception as e:  # an error in another thread: reported below
            failed.append(e)

    thread = threading.Thread(target=re_invite)
    thread.start()
    result = calls.load(net, relay.BUILD, talk, rate=50, seconds=seconds)
    thread.join()
    assert not failed, failed
    return result


def test_a_new_key_without_mki_begins_a_new_context_on_its_side_only(net):
    """After the sequence number has wrapped, the terminal's ROC restarts at 0, ours towards the
    other terminal continues."""
    daemon = start(net, "serial")
    c = calls.Call(daemon.client, 1, "80", "32").setup()
    c.later[0] = os.urandom(c.suite[0].key_len)
    c.switch[0] = 100

    def change(c):
        c.keys[0] = [c.later[0]]

    result = load_and_re_invite(net, daemon, [c], packets=100, seconds=3, change=change)
    # Packets do not show their key, so those between the re-INVITE and the terminal's switch are
    # lost.
    assert result["lost"] < 60 and result["sent"] == 300, result
    for key in ("wrong", "bad_auth", "reordered", "duplicates"):
        assert result[key] == 0, result
    drops = daemon.statistics()["drops"]
    assert result["lost"] <= drops["bad-tag"] <= result["lost"] + result["rtcp_sent"] - result["rtcp_received"], (result, drops)
    finish(daemon, drops=("bad-tag",))


@cases(("no",), ("yes",))
def test_a_key_at_the_end_of_its_lifetime(net, enforce):
    """Each stage is logged once. Packets continue, unless the operator forbids it."""
    daemon = start(net, "serial", "--log-stderr", f"--enforce-lifetime={enforce}")
    c = calls.Call(daemon.client, 1, "80,LIFETIME=40", "plain").setup()
    result = calls.load(net, relay.BUILD, [c], rate=50, seconds=1)
    wait_for("a word on it", lambda: "(40 packets) is used up" in daemon.text())  # calls are checked once a second
    query = calls.ok(daemon.client.call("query", call_id=c.id))
    media = query["tags"]["a" + c.id]["medias"][0]
    assert (media["crypto suite"], media["crypto lifetime"]) == (c.suite[0].name, 40), media
    if enforce == "no":
        clean(result)
        finish(daemon)
    else:
        assert result["lost"] == 50 - 40, result
        rtcp = result["rtcp_sent"] - result["rtcp_received"]  # RTP and RTCP end with the same key
        assert daemon.statistics()["drops"]["lifetime"] == result["lost"] + rtcp, result
        assert result["wrong"] == result["bad_auth"] == 0, result
        finish(daemon, drops=("lifetime",))
    told = [line for line in daemon.text().splitlines() if "lifetime of the terminal's key (40 packets)" in line]
    assert 1 <= len(told) <= 2 and "used up" in told[-1] and c.id in told[-1], daemon.text()
    assert c.key[0].hex() not in daemon.text()


ALL = ["AEAD_AES_256_GCM", "AEAD_AES_128_GCM", *(f"{c}_HMAC_SHA1_{t}" for c in
       ("AES_256_CM", "AES_192_CM", "AES_CM_128", "F8_128", "NULL") for t in (80, 32))]
CHAIN = ["F8_128_HMAC_SHA1_80", "F8_128_HMAC_SHA1_32", "AES_192_CM_HMAC_SHA1_80", "AES_192_CM_HMAC_SHA1_32"]


class Chain(calls.Call):
    """Two relays in a row, each with its own SDP: a caller with plain RTP, rtpengine, a suite,
    xcipherd, a callee with another suite."""

    def __init__(self, peer, client, number, between, callee):
        super().__init__(client, number, "plain", callee)
        self.peer, self.between = peer, between

    def setup(self, again=False):
        names = {"call_id": self.id, "from_tag": "a" + self.id, "ICE": "remove", "replace": ["origin"]}
        callee = self.suite[1]
        others = [f"no-{s}" for s in ALL if s != self.between]  # this rtpengine lacks only-
        # With a=fingerprint in the SDP, we would answer with DTLS.
        body = calls.ok(self.peer.call("offer", sdp=self.body(0), transport_protocol="RTP/SAVP", SDES=others + ["pad"], DTLS="off",
                                       **names))["sdp"]
        far = {"transport_protocol": "RTP/AVP"} if callee.plain else {"transport_protocol": "RTP/SAVP",
                                                                      "SDES": [f"only-{callee.name}"]}
        self.to_callee = calls.parse(calls.ok(self.client.call("offer", sdp=body, **far, **names))["sdp"])
        self.wire = [b"", b"" if callee.plain else self.to_callee["crypto"][0][2]]
        names["to_tag"] = "b" + self.id
        tag = 1 if callee.plain else self.to_callee["crypto"][0][0]
        body = calls.ok(self.client.call("answer", sdp=self.body(1, tag), **names))["sdp"]
        middle = calls.parse(body)
        assert [s for _, s, _ in middle["crypto"]] == [self.between], body
        self.to_caller = calls.parse(calls.ok(self.peer.call("answer", sdp=body, **names))["sdp"])
        return self


@cases(*ENGINES)
def test_f8_and_aes_192_with_another_relay(net, engine):
    if not relay.have_rtpengine():
        raise Skip("no rtpengine")
    daemon = start(net, engine, "--port-max=30999", "--media-allow=10.200.1.1")  # where rtpengine supports it, too
    peer = relay.Rtpengine(net, ng_port=22223, ports=(31000, 31999)).wait_ready()
    talk = [Chain(peer.client, daemon.client, 4 * i + k, between, callee).setup()
            for i, between in enumerate(CHAIN) for k, callee in enumerate(("80", "AEAD_AES_256_GCM", "plain"))]
    drive(net, daemon, talk, rate=25, seconds=0.8)
    finish(daemon)
    peer.stop()
