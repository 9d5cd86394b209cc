# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes SDP of terminals, and reads the relay's. Uses none of the relay's code."""
import base64
import os
import re

SHORT = {"80": "AES_CM_128_HMAC_SHA1_80", "32": "AES_CM_128_HMAC_SHA1_32", "GCM": "AEAD_AES_128_GCM", "GCM256": "AEAD_AES_256_GCM",
         "256": "AES_256_CM_HMAC_SHA1_80"}
ENCODINGS = {0: "PCMU/8000", 3: "GSM/8000", 8: "PCMA/8000", 9: "G722/8000", 18: "G729/8000", 31: "H261/90000", 96: "VP8/90000",
             101: "telephone-event/8000", 111: "opus/48000/2"}
KEY_LEN = {"AEAD_AES_128_GCM": 28, "AEAD_AES_256_GCM": 44, "AES_256_CM_HMAC_SHA1_80": 46, "AES_256_CM_HMAC_SHA1_32": 46,
           "AES_192_CM_HMAC_SHA1_80": 38, "AES_192_CM_HMAC_SHA1_32": 38}


def suite_name(suite):
    return SHORT.get(suite, suite)


def crypto(suite="80", tag=1, key=None, more="", lifetime=""):
    """An a=crypto line (RFC 4568). more: session parameters; lifetime: text after the key, such as
    "|2^31|1:4"."""
    name = suite_name(suite)
    key = os.urandom(KEY_LEN.get(name, 30)) if key is None else key
    return f"a=crypto:{tag} {name} inline:{base64.b64encode(key).decode()}{lifetime}{' ' + more if more else ''}"


def accept(offered, suite=None, key=None, **more):
    """The a=crypto line of an answer to this m-line, with the first offered suite or another one."""
    line = next(c for c in offered.crypto if not suite or c.suite == suite_name(suite))
    return crypto(line.suite, line.tag, key, **more)


def media(kind, port, formats, *lines, profile=None, suites=(), direction="sendrecv"):
    """The lines of an m-line and its attributes. suites: one a=crypto line for each, tags from 1."""
    formats = str(formats)
    maps = [f"a=rtpmap:{f} {ENCODINGS[int(f)]}" for f in formats.split() if f.isdigit() and int(f) in ENCODINGS]
    keys = [crypto(s, tag) for tag, s in enumerate(suites, 1)]
    profile = profile or ("RTP/SAVP" if suites else "RTP/AVP")
    return [f"m={kind} {port} {profile} {formats}", *maps, *keys, *lines, *([f"a={direction}"] if direction else [])]


def audio(*lines, port=4000, formats="0 8 101", **more):
    return media("audio", port, formats, *lines, **more)


def video(*lines, port=4010, formats="96", **more):
    return media("video", port, formats, *lines, **more)


def sdp(*medias, ip="10.200.1.2", session=(), head=None):
    """A whole SDP. session: lines of the session level; head: the o= line, if not the usual one."""
    family = "IP6" if ":" in ip else "IP4"
    lines = ["v=0", head or f"o=- 1 1 IN {family} {ip}", "s=-", f"c=IN {family} {ip}", "t=0 0", *session]
    return "".join(line + "\r\n" for line in lines + [line for m in medias for line in m])


class Crypto:
    """One a=crypto line. key: bytes; rest: session parameters."""

    def __init__(self, value):
        self.text = value
        tag, self.suite, inline, *self.rest = value.split()
        self.tag, self.key_text = int(tag), inline.removeprefix("inline:")
        word = self.key_text.partition("|")[0]
        self.key = base64.b64decode(word + "=" * (-len(word) % 4))


class Section:
    """Lines of the session level or of one m-line."""

    def __init__(self, lines):
        self.lines = lines

    def line(self, kind):
        """The text after KIND= in its first such line, or None."""
        return next((line[2:] for line in self.lines if line.startswith(kind + "=")), None)

    def attrs(self, name):
        """The value of each a=NAME, "" for one without a value."""
        found = (re.fullmatch(r"a=([^:]+)(?::(.*))?", line) for line in self.lines)
        return [m.group(2) or "" for m in found if m and m.group(1) == name]

    def attr(self, name):
        return next(iter(self.attrs(name)), None)

    def has(self, name):
        return self.attr(name) is not None


class Media(Section):
    def __init__(self, lines, session):
        super().__init__(lines)
        self.kind, port, self.profile, formats = lines[0][2:].split(" ", 3)
        self.port, self.formats = int(port), formats.split()
        connection = self.line("c") or session.line("c") or ""
        _, self.family, self.address = (connection.split() + ["", "", ""])[:3]
        words = ("sendrecv", "sendonly", "recvonly", "inactive")
        self.direction = next((w for w in words if self.has(w)), next((w for w in words if session.has(w)), "sendrecv"))
        self.crypto = [Crypto(v) for v in self.attrs("crypto")]
        self.suites = [c.suite for c in self.crypto]

    @property
    def rtcp_port(self):
        """The destination of RTCP (RFC 3605, RFC 5761)."""
        return self.port if self.has("rtcp-mux") else int((self.attr("rtcp") or str(self.port + 1)).split()[0])


class Sdp:
    """A parsed SDP: session, media, and audio and video, the first of each kind."""

    def __init__(self, text):
        self.text = text
        assert text.endswith("\r\n"), f"the last line has no end: {text!r}"
        sections = [[]]
        for line in text[:-2].split("\r\n"):
            if line.startswith("m="):
                sections.append([])
            sections[-1].append(line)
        self.session = Section(sections[0])
        self.media = [Media(lines, self.session) for lines in sections[1:]]

    def first(self, kind):
        return next(m for m in self.media if m.kind == kind)

    @property
    def audio(self):
        return self.first("audio")

    @property
    def video(self):
        return self.first("video")

    @property
    def kinds(self):
        return [m.kind for m in self.media]
