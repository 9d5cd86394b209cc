# SPDX-License-Identifier: GPL-2.0-or-later
"""SDP for the attack test: writes SDPs of terminals and attackers, reads those of the daemon."""
import base64
import re

import srtpkey

OUTSIDE = "198.51.100.7"  # documentation (RFC 5737): the gateway's default route leads to the stranger's link


def inline(material):
    return base64.b64encode(material).decode()


PLUS = "-xcipher-preauth"


def crypto(tag, suite, key):
    """suite: with the scheme of SRTP+ after a slash."""
    name, _, scheme = suite.partition("/")
    return f"a=crypto:{tag} {name} inline:{inline(key)}" + (f" {PLUS}={scheme}" if scheme else "") + "\r\n"


def body(lines, address, more="", direction="sendrecv", session="", profile=None, kinds=None, bundled=False):
    """lines: (address, port, [(tag, suite, key)]) for each m-line; no keys: plain RTP. profile: instead of the keys'. kinds: payload types."""
    if bundled:
        session += f"a=group:BUNDLE {' '.join(f'm{n}' for n in range(len(lines)))}\r\n"
    def family(a):
        return "IP6" if ":" in a else "IP4"
    text = f"v=0\r\no=- 1 1 IN {family(address)} {address}\r\ns=-\r\nc=IN {family(address)} {address}\r\nt=0 0\r\n{session}"
    for n, (where, port, keys) in enumerate(lines):
        text += f"m=audio {port} {profile or ('RTP/SAVP' if keys else 'RTP/AVP')} {kinds[n] if kinds else 0}\r\n"
        if where != address:
            text += f"c=IN {family(where)} {where}\r\n"
        text += "".join(crypto(*k) for k in keys)
        text += f"a=mid:m{n}\r\na=rtcp-mux\r\n" if bundled else ""
        text += f"{more}a={direction}\r\n"
    return text


class Told:
    """One m-line from the daemon: its terminal's destination, and the keys that the daemon sends
    under."""

    def __init__(self, address, port, rtcp, profile, keys, kind=0):
        self.address, self.port, self.rtcp, self.profile, self.keys = address, port, rtcp, profile, keys
        self.kind, self.side = kind, False  # the first payload type; STUN, DTLS or ZRTP of the daemon
        self.others = []  # its candidates


def parse(text):
    """The m-lines. On hold the daemon may write 0.0.0.0 or :: in the other side's family; the
    origin then names its address."""
    usual, out = {"0.0.0.0": "10.200.1.1", "::": "fd00:1::1"}, []
    origin = re.search(r"^o=.* IN IP[46] (\S+)", text, re.M)
    if origin and origin[1] in usual.values():
        usual = dict.fromkeys(usual, origin[1])
    session = re.split(r"^m=", text, maxsplit=1, flags=re.M)[0]
    default = re.search(r"^c=IN IP[46] (\S+)", session, re.M)
    for part in re.split(r"^m=", text, flags=re.M)[1:]:
        m = re.match(r"\S+ (\d+) (\S+) (\d+)", part)
        if not m:
            continue
        c = re.search(r"^c=IN IP[46] (\S+)", part, re.M) or default
        r = re.search(r"^a=rtcp:(\d+)", part, re.M)
        keys = [(int(t), s + ("/" + scheme if scheme else ""), base64.b64decode(k + "=" * (-len(k) % 4))) for t, s, k, scheme in
                re.findall(rf"^a=crypto:(\d+) (\S+) inline:([A-Za-z0-9+/]+)(?:.*{PLUS}=(\S+))?", part, re.M) if s in srtpkey.SUITES]
        port = int(m[1])
        address = c[1] if c else ""
        rtcp = int(r[1]) if r else port if re.search(r"^a=rtcp-mux\r?$", part, re.M) else port + 1
        out.append(Told(usual.get(address, address), port, rtcp, m[2], keys, int(m[3])))
        out[-1].others = [(a, int(p)) for a, p in re.findall(r"^a=candidate:\S+ \d+ \S+ \d+ (\S+) (\d+) typ host", part, re.M)]
        out[-1].side = bool(re.search("^a=(fingerprint|ice-ufrag|zrtp-hash):", part, re.M))
    return out


def unclean(text, mikey=False):
    """The first forbidden element in an SDP for a terminal, or None. mikey: key-mgmt lines of the daemon itself are allowed."""
    if re.search(r"\r(?!\n)", text):
        return "a bare CR"
    bad = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text)
    if bad:
        return f"the control byte {ord(bad[0]):#04x}"
    key = re.search(rf"^(k=|{FOREIGN}).*" if mikey else r"^(k=|a=key-mgmt:).*", text, re.M)
    return key and f"the line {key[0].strip()!r}"


FOREIGN = "a=key-mgmt:mikey AQAFgM0XflABAAAAAAAAAAAAAAsAyO"
HOSTILE_LINES = ["k=clear:secret\r\n", FOREIGN + "\r\n", "a=x:one\rm=audio 9 RTP/AVP 0\r\n", "a=x:\0\r\n",
                 "a=x:\x1b[2J\r\n", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:short\r\n", "a=rtcp:22222 IN IP4 127.0.0.1\r\n",
                 "a=rtcp:22222\r\n", "a=x:" + 3000 * "x" + "\r\n"]


UNUSED = 21998  # in the range of media ports, but of another program of the gateway, so no call has it


def hostile_addresses(own, media_ports, victims, ng_port):
    """(address, port) that a SIP user may write: special ones, the daemon's own, those of other
    calls, and a media port that no call has."""
    special = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.2.3", "255.255.255.255", "10.200.1.255", "10.200.1.0", OUTSIDE,
               "::1", "::", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.200.1.1", "240.0.0.1", *own]
    return ([(a, p) for a in special for p in (ng_port, UNUSED if a in own else 5060, 6379)] + [(own[0], ng_port), ("127.0.0.1", ng_port)] * 6
            + [m for m in media_ports] * 8 + list(victims) * 2)
