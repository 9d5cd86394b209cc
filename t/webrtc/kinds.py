# SPDX-License-Identifier: GPL-2.0-or-later
"""Kinds of peers, and the ng flags of an SDP that is for a peer of this kind. Rows of the matrix are added here."""
import os

import relay

WEBRTC = os.environ.get("BUILD_WEBRTC", os.path.join(relay.ROOT, "build", "webrtc"))
OPUS = os.path.join(relay.BUILD, "codecs", "opus.so")  # the relay's plug-in

# What each dialect needs in the SDP that it gets. Offers to it add what only an offer may ask for.
RTP = {"transport_protocol": "RTP/AVP", "ICE": "remove", "rtcp_mux": ["demux"], "DTLS": "off"}
SDES = {"transport_protocol": "RTP/SAVP", "ICE": "remove", "rtcp_mux": ["demux"], "DTLS": "off", "SDES": ["pad"]}
BROWSER = {"transport_protocol": "UDP/TLS/RTP/SAVPF", "ICE": "force", "rtcp_mux": ["require"], "SDES": ["off"], "flags": ["generate-mid"]}
DTLS = {"transport_protocol": "UDP/TLS/RTP/SAVPF", "ICE": "remove", "rtcp_mux": ["demux"], "SDES": ["off"]}
# ZRTP with the relay, and between the terminals.
ZRTP = {"transport_protocol": "RTP/AVP", "ICE": "remove", "rtcp_mux": ["demux"], "DTLS": "off", "ZRTP": ["terminate"]}
ZRTP_THROUGH = RTP
DTLS_ICE = DTLS | {"ICE": "force"}


# As a DTLS server, pion 4.1.4 sends no renegotiation_info (RFC 5746), and OpenSSL 3 refuses such a server unless it is told otherwise
# (SSL_OP_LEGACY_SERVER_CONNECT). rtpengine 10.5 does not tell it, so it must be the server itself.
PION_QUIRKS = {"rtpengine": {"DTLS": "passive"}}


PLUGINS = "/usr/lib/x86_64-linux-gnu/gstreamer-1.0"
GSTREAMER = f"{PLUGINS}/libgstwebrtc.so {PLUGINS}/libgstnice.so {PLUGINS}/libgstsrtp.so /usr/lib/x86_64-linux-gnu/girepository-1.0/GstWebRTC-1.0.typelib"


def pion(*options):
    return Kind(BROWSER, (os.path.join(WEBRTC, "pion"), *options), f"{WEBRTC}/pion.version", needs_bundle=True, quirks=PION_QUIRKS)


def str0m(*options):
    return Kind(BROWSER, (os.path.join(WEBRTC, "str0m"), *options), f"{WEBRTC}/str0m.version", needs_bundle=True)


class Kind:
    def __init__(self, flags, program, needs="", keying="dtls", needs_bundle=False, quirks=None):
        """program: command line of a program that speaks peer.py, or a class: phones.Baresip. needs: files without which cells of
        this kind are skipped. needs_bundle: it rejects an m-line outside of a BUNDLE group. quirks: further flags of an answer to it, by
        relay."""
        self.flags, self.program, self.needs, self.keying = flags, program, needs, keying
        self.needs_bundle, self.quirks = needs_bundle, quirks or {}

    def missing(self):
        return next((n for n in self.needs.split() if not os.path.exists(n)), None)


KINDS = {
    "rtp": Kind(RTP, ("peer_sdes.py", "--keying=rtp"), keying="rtp"),
    "sdes": Kind(SDES, ("peer_sdes.py", "--keying=sdes"), keying="sdes"),
    "baresip_sdes": Kind(SDES, "phones.Baresip", "/usr/bin/baresip", "sdes"),
    "baresip_dtls": Kind(DTLS, "phones.Baresip", "/usr/bin/baresip"),
    "baresip_ice": Kind(DTLS_ICE, "phones.Baresip", "/usr/bin/baresip"),
    "linphone_dtls": Kind(DTLS, "phones.Linphone", "/usr/bin/linphonec"),
    "linphone_opus": Kind(SDES, "phones.LinphoneOpus", f"/usr/bin/linphonec {OPUS}", "sdes"),
    "linphone_zrtp": Kind(ZRTP, "phones.Linphone", "/usr/bin/linphonec", "zrtp"),
    "linphone_zrtp_through": Kind(ZRTP_THROUGH, "phones.Linphone", "/usr/bin/linphonec", "zrtp"),
    "chromium": Kind(BROWSER, "browser.Chromium", "/usr/bin/chromium"),
    "chromium_address": Kind(BROWSER, "browser.ChromiumAddress", "/usr/bin/chromium"),
    "chromium_opus": Kind(BROWSER, "browser.ChromiumOpus", f"/usr/bin/chromium {OPUS}"),
    "chromium_data": Kind(BROWSER, "browser.ChromiumData", "/usr/bin/chromium"),
    "chromium_video": Kind(BROWSER, "video.Chromium", "/usr/bin/chromium"),
    "ffmpeg_rtp": Kind(RTP, "video.Ffmpeg", "/usr/bin/ffmpeg", keying="rtp"),
    "ffmpeg_sdes": Kind(SDES, "video.Ffmpeg", "/usr/bin/ffmpeg", "sdes"),
    "pion": pion(),
    "pion_active": pion("--role=active"),
    "pion_passive": pion("--role=passive"),
    "pion_lite": pion("--lite"),
    "pion_gcm256": pion("--profile=SRTP_AEAD_AES_256_GCM"),
    "pion_gcm128": pion("--profile=SRTP_AEAD_AES_128_GCM"),
    "pion_80": pion("--profile=SRTP_AES128_CM_HMAC_SHA1_80"),
    "pion_32": pion("--profile=SRTP_AES128_CM_HMAC_SHA1_32"),
    "aiortc": Kind(BROWSER, ("peer_aiortc.py",), f"{WEBRTC}/aiortc.version"),
    "str0m": str0m(),
    "str0m_lite": str0m("--lite"),
    "gstreamer": Kind(BROWSER, ("peer_gst.py",), GSTREAMER),
    "gstreamer_bundle": Kind(BROWSER, ("peer_gst.py", "--bundle=max-bundle"), GSTREAMER, needs_bundle=True),
}
