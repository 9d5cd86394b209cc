# SPDX-License-Identifier: GPL-2.0-or-later
"""What is checked in a cell of the matrix: two-way media in the ordinary ones, and special cases by name."""
import collections
import re
import select
import socket
import threading

import call
import kinds
import ng
import video
from baresip import wait_for

Special = collections.namedtuple("Special", "peers check")


def talk(net, the_relay, a, b, family=4, faults=("", ""), check=None, more=None):
    """Makes a call between fresh peers, hands it to check, and removes all. Returns what check returns."""
    peers = []
    try:
        for place, kind, fault in zip(call.PLACES, (a, b), faults):
            peers.append(call.make_peer(net, place, kind, family, fault))
        c = call.Call(the_relay, *peers, family=family, more=more)
        try:
            return check(c.begin())
        finally:
            c.end()
    finally:
        for p in peers:
            p.close()


def keying_of(peer):
    return kinds.KINDS[peer.kind].keying


def heard(c):
    reports = c.talks()
    if wrong := call.judge(reports):
        raise call.Failed("; ".join(wrong))
    words = []
    for p, r, ms in zip((c.a, c.b), reports, call.first_media_ms(c, reports)):
        profile = r["profile"] or ("plain" if keying_of(p) == "rtp" else "profile unknown")
        words.append(f"{r['packets_in']} in, {profile}" + (f", {ms:.0f} ms" if ms else ""))
    return " / ".join(words)


def two_way(net, the_relay, a, b):
    return talk(net, the_relay, a, b, check=heard)


def two_way_v6(net, the_relay, a, b):
    return talk(net, the_relay, a, b, family=6, check=heard)


def restarted(by):
    """A check: this peer restarts ICE in mid-call. Both have new credentials, and media go on."""
    def check(c):
        c.talks()
        peer, sdp = (c.a, c.answered) if by == "a" else (c.b, c.offered)
        old = {ufrag(sdp)}
        offer = peer.restart()
        new = c.renew(offer, by)
        if ufrag(new) in old:
            raise call.Failed("the relay kept its ICE credentials: " + ufrag(new))
        start = max(r["blocks"] for r in (c.a.report(), c.b.report()))
        reports = c.talks(blocks=start + 8)
        for r in reports:
            r["lost"] = 0 if peer.kind == "pion" else r["lost"]  # pion leaves the old pair at once, not when it has the new one
        if wrong := call.judge(reports):
            raise call.Failed("; ".join(wrong))
        if wait_for("a pair of the new credentials", peer.moved) is None:
            raise call.Failed("it remains on the old pair")
        return f"{reports[0]['packets_in']} in / {reports[1]['packets_in']} in"
    return lambda net, the_relay, a, b: talk(net, the_relay, a, b, check=check)


def ufrag(sdp):
    found = re.search(r"^a=ice-ufrag:(\S+)", sdp, re.M)
    return found[1] if found else ""


def nothing(c):
    """The peer at a has a wrong fingerprint: while the other sends so many packets, nobody receives one."""
    def reports_after():
        reports = c.a.report(), c.b.report()
        return reports if reports[1]["packets_out"] > 150 else None
    reports = wait_for("packets of the other", reports_after)
    if reports[0]["packets_in"] or reports[1]["packets_in"]:
        raise call.Failed("media in spite of a wrong fingerprint: " + " / ".join(map(call.brief, reports)))
    return f"no media, offerer {reports[0]['state']}"


ETH_P_ALL = 3
DNS = (53).to_bytes(2, "big")


class Sent:
    """Counts RTP of the peer at a as it enters the gateway, before the relay. It reads the gateway's interface.
    Chromium changes between IPv4 and IPv6 at the start of a call, so both are counted. Its DNS queries may look like RTP."""

    def __init__(self, net):
        self.socket = ng.socket_in(net.gateway, socket.AF_PACKET)
        self.socket.bind(("g1", ETH_P_ALL))
        self.sources = [socket.inet_aton(call.address("a")), socket.inet_pton(socket.AF_INET6, call.address("a", 6))]
        self.seen, self.ended = set(), False
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while not self.ended:
            if select.select([self.socket], [], [], 0.1)[0]:
                self.read(self.socket.recv(2048))

    def read(self, packet):
        v6 = packet[0] >> 4 == 6
        udp = 40 if v6 else 4 * (packet[0] & 15)
        source, protocol = (packet[8:24], packet[6]) if v6 else (packet[12:16], packet[9])
        if protocol == socket.IPPROTO_UDP and source in self.sources and len(packet) >= udp + 20 and packet[udp + 2:udp + 4] != DNS:
            self.take(packet[udp + 8:])

    def take(self, rtp):
        if rtp[0] >> 6 == 2 and not 64 <= rtp[1] & 0x7f < 96:
            self.seen.add((rtp[8:12], rtp[2:4]))

    def close(self):
        self.ended = True
        self.thread.join()
        self.socket.close()


def all_arrive(net, the_relay, a, b):
    """A peer sends media when its handshake is over. Each packet of it reaches the other side, from the first on."""
    def check(c):
        c.talks()
        c.a.close()
        try:
            wait_for("the last packets", lambda: c.b.report()["packets_in"] >= len(sent.seen))
        except AssertionError:
            raise call.Failed(f"{len(sent.seen)} sent, {c.b.report()['packets_in']} received") from None
        return f"{len(sent.seen)} sent, {c.b.report()['packets_in']} received"
    sent = Sent(net)
    try:
        return talk(net, the_relay, a, b, check=check)
    finally:
        sent.close()


def wrong_fingerprint(net, the_relay, a, b):
    talk(net, the_relay, a, b, check=heard)  # the control
    return talk(net, the_relay, a, b, faults=("fingerprint", ""), check=nothing)


# RFC 4585 4.2 allows no blank there. Without it the call works, through both relays.
PION_BLANK = "pion writes a blank behind a=rtcp-fb:0 transport-cc, and linphone then answers without a=setup and a=fingerprint"

# RFC 3264 5.1 and RFC 8866 6.7: no direction means sendrecv. With a=sendrecv in the answer the call works.
GSTREAMER_DIRECTION = "webrtcbin 1.22 refuses an answer without a=sendrecv, and linphone writes none"


def same_sas(c):
    """ZRTP passes: both users read the same."""
    words = heard(c)
    if not c.a.sas() or c.a.sas() != c.b.sas():
        raise call.Failed(f"SAS {c.a.sas()!r} and {c.b.sas()!r}")
    return words


def zrtp_end_to_end(net, the_relay, a, b):
    return talk(net, the_relay, a, b, check=same_sas)


def with_video(*bundle):
    """Audio and video. bundle: what the relay may do with groups in this call."""
    return lambda net, the_relay, a, b: talk(net, the_relay, a, b, check=video.check, more={"bundle": list(bundle)})


def without_extensions(net, the_relay, a, b):
    """The script gives the flag strip-extmap in such calls."""
    return talk(net, the_relay, a, b, check=heard, more={"flags": ["strip-extmap"]})


def transcoded(mask, codec, check):
    """The relay offers this codec in the place of another. Names are those of ng."""
    return lambda net, the_relay, a, b: talk(net, the_relay, a, b, check=check, more={"codec": {"mask": [mask], "transcode": [codec]}})


def conversion(c, expected):
    """query shows what the relay converts in both directions."""
    if c.relay.name == "xcipherd":
        tags = c.ask("query", call_id=c.id)["tags"]
        shown = {m.get("transcoded", "") for t in tags.values() for m in t["medias"]}
        if shown != expected:
            raise call.Failed(f"query shows {shown}")


def opus_and_pcmu(c):
    words = heard(c)
    conversion(c, {"opus to PCMU", "PCMU to opus"})
    return words


DIGITS = "159*0#D"


def browser_and_phone(browser):
    """Between Chromium with Opus and baresip with PCMU: the user presses digits, changes to G.722 in mid-call, holds and resumes. browser: its
    place."""
    def check(c):
        page, phone = (c.a, c.b) if browser == "a" else (c.b, c.a)
        words = opus_and_pcmu(c)
        page.press(DIGITS)
        wait_for("the digits", lambda: len(phone.digits()) >= len(DIGITS))
        if phone.digits() != DIGITS:
            raise call.Failed(f"the phone got the digits {phone.digits()!r}")
        c.more = {"codec": {"mask": ["opus", "G722"], "transcode": ["PCMU"]}}  # all further offers are the browser's
        c.renew(page.again("G722 telephone-event"), browser)
        hears_on(c, page, phone, "in G.722")
        conversion(c, {"G722 to PCMU", "PCMU to G722"})
        c.renew(page.again("G722 telephone-event", "inactive"), browser)
        wait_for("silence of the held phone", lambda: phone.rates() == (0, 0))
        c.renew(page.again("opus telephone-event"), browser)
        hears_on(c, page, phone, "in Opus again")
        conversion(c, {"opus to PCMU", "PCMU to opus"})
        return f"{words}, digits {phone.digits()}"
    return check


def hears_on(c, page, phone, when):
    """The browser hears the phone's tone in what arrives from now on, and the phone gets audio. baresip 1.0 does not go on with its recording
    after a hold, so its log is read."""
    phones, own = (call.TONE["b"], call.TONE["a"]) if page is c.a else (call.TONE["a"], call.TONE["b"])
    start = page.report()["blocks"]
    wait_for(f"more audio {when}", lambda: page.report()["blocks"] >= start + 8)
    tones = page.report()["tones"]
    if tones[str(phones)] < call.OWN_MIN or tones[str(own)] > call.OTHER_MAX:
        raise call.Failed(f"the browser hears {tones} {when}")
    wait_for(f"audio at the phone {when}", lambda: min(phone.rates()) > 60000)


# Cells that are known to fail with a relay: they do not fail the run, unless they pass.
KNOWN = {
    "rtpengine": {
        "gstreamer-linphone_dtls": GSTREAMER_DIRECTION,
        "gstreamer-sdes": "webrtcbin is connected and receives nothing, cause not found; the other direction works",
        "sdes-pion_passive": "its OpenSSL refuses pion as DTLS server (kinds.py)",
        "pion_lite-sdes": "ICE does not complete with an offerer that is lite",
        "pion_32-sdes": "it agrees on no profile with a peer that knows only _32",
        "aiortc-linphone_dtls": "aiortc's parser refuses attributes behind the URI of a=extmap",
        "pion-linphone_dtls": PION_BLANK,
        "sdes-pion_32": "it agrees on no profile with a peer that knows only _32",
        **{cell: "it transcodes under an SSRC of its own, and leaves a=ssrc of the phone in SDP: Chromium hears nothing"
           for cell in ("chromium_opus-baresip_sdes", "baresip_sdes-chromium_opus")},
    },
    "xcipherd": {
        "pion_32-sdes": "pion/webrtc has no SRTP for _32: ErrNoSRTPProtectionProfile after the handshake",
        "sdes-pion_32": "pion/webrtc has no SRTP for _32: ErrNoSRTPProtectionProfile after the handshake",
        "aiortc-linphone_dtls": "aiortc's parser refuses attributes behind the URI of a=extmap",
        "aiortc-linphone_zrtp": "aiortc's parser refuses attributes behind the URI of a=extmap",
    },
}

SPECIAL = {
    "aiortc-sdes-v6": Special(("aiortc", "sdes"), two_way_v6),
    "sdes-aiortc-v6": Special(("sdes", "aiortc"), two_way_v6),
    "aiortc-sdes-wrong-fingerprint": Special(("aiortc", "sdes"), wrong_fingerprint),
    "chromium-sdes-wrong-fingerprint": Special(("chromium", "sdes"), wrong_fingerprint),
    **{f"{kind}-sdes-restart": Special((kind, "sdes"), restarted("a")) for kind in ("pion", "str0m", "chromium")},
    **{f"sdes-{kind}-restart": Special(("sdes", kind), restarted("b")) for kind in ("pion", "str0m", "chromium")},
    "pion-aiortc-restart": Special(("pion", "aiortc"), restarted("a")),
    "pion-sdes-wrong-fingerprint": Special(("pion", "sdes"), wrong_fingerprint),
    # What KNOWN says of these two is avoided by a flag.
    **{f"aiortc-{phone}-strip-extmap": Special(("aiortc", phone), without_extensions) for phone in ("linphone_dtls", "linphone_zrtp")},
    **{f"{kind}-sdes-all": Special((kind, "sdes"), all_arrive) for kind in ("baresip_dtls", "baresip_ice", "aiortc", "pion", "chromium")},
    # Each side knows only one codec.
    "linphone_opus-baresip_sdes": Special(("linphone_opus", "baresip_sdes"), transcoded("opus", "PCMU", opus_and_pcmu)),
    "baresip_sdes-linphone_opus": Special(("baresip_sdes", "linphone_opus"), transcoded("PCMU", "opus", opus_and_pcmu)),
    "chromium_opus-baresip_sdes": Special(("chromium_opus", "baresip_sdes"), transcoded("opus", "PCMU", browser_and_phone("a"))),
    "baresip_sdes-chromium_opus": Special(("baresip_sdes", "chromium_opus"), transcoded("PCMU", "opus", browser_and_phone("b"))),
    "chromium_data-sdes": Special(("chromium_data", "sdes"), two_way),
    "chromium_data-chromium": Special(("chromium_data", "chromium"), two_way),
    # Debian's rtpengine cannot bundle.
    "chromium-chromium-video": Special(("chromium_video", "chromium_video"), with_video("accept", "offer")),
    "chromium-ffmpeg-video": Special(("chromium_video", "ffmpeg_sdes"), with_video("accept")),
    "ffmpeg-chromium-video": Special(("ffmpeg_rtp", "chromium_video"), with_video("offer")),
    "linphone-linphone-zrtp-end-to-end": Special(("linphone_zrtp_through", "linphone_zrtp_through"), zrtp_end_to_end),
}

# For make check: less than 40 s.
CHEAP = ["aiortc-sdes", "sdes-aiortc", "rtp-aiortc", "aiortc-aiortc", "sdes-sdes", "sdes-aiortc-v6", "aiortc-sdes-wrong-fingerprint"]

# To each other; all other kinds are tested to and from SDES.
MAIN = ("rtp", "sdes", "aiortc", "baresip_sdes", "baresip_dtls", "baresip_ice", "linphone_dtls", "linphone_zrtp", "chromium", "pion", "gstreamer", "str0m")


# Only in cells of their own.
OWN = {"linphone_opus", "chromium_opus", "chromium_data", "chromium_video", "ffmpeg_rtp", "ffmpeg_sdes"}


def chosen(names):
    """The cells of these kinds."""
    pairs = [f"{a}-{b}" for a in names for b in names if ({a, b} <= set(MAIN) or "sdes" in (a, b)) and not OWN & {a, b} and "linphone_zrtp_through" not in (a, b)]
    return pairs + [n for n, c in SPECIAL.items() if set(c.peers) <= set(names)]
