# SPDX-License-Identifier: GPL-2.0-or-later
"""SIP messages of Kamailio to log events (NENA-STA-010.3 4.12.3.7). Pure: messages in, events out.

Kamailio sends one datagram per message: a line "DIRECTION TIME ADDRESS CALL INCIDENT SOURCE ACTOR", in which "-" stands for a missing word,
and then the message as it was received or is sent."""
import collections
import datetime
import hashlib
import re

STATUS = re.compile("SIP/2\\.0 ([1-9][0-9]{2})")
URN = {kind: re.compile(rf"urn:emergency:uid:{kind}:[0-9A-Za-z]{{10,36}}:[-.0-9A-Za-z]{{1,255}}") for kind in ("callid", "incidentid")}
WORD = re.compile(r"[-.@0-9A-Za-z]{1,300}")
ADDRESS = re.compile(r"[0-9A-Fa-f.:\[\]]{3,60}")
SHORT = {"i": "call-id", "f": "from", "t": "to", "l": "content-length", "c": "content-type"}


class BadEvent(Exception):
    """The datagram is not one that Kamailio sends."""


class Message:
    """What events need of a SIP message."""

    def __init__(self, text):
        head, _, self.body = text.partition("\r\n\r\n")
        self.first, *lines = re.sub(r"\r\n[ \t]+", " ", head).split("\r\n")
        self.headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                name = name.strip().lower()
                self.headers.setdefault(SHORT.get(name, name), value.strip())
        found = STATUS.match(self.first)
        self.status = int(found[1]) if found else 0
        self.method = self.headers.get("cseq", "").rpartition(" ")[2]
        self.call_id = self.headers.get("call-id", "")

    def tag(self, header):
        found = re.search(r">[^>]*;\s*tag=([^;\s]+)|^[^<>]*;\s*tag=([^;\s]+)", self.headers.get(header, ""))
        return (found[1] or found[2]) if found else ""

    def sdp(self):
        kind = self.headers.get("content-type", "").lower()
        if kind.startswith("application/sdp"):
            return self.body
        if kind.startswith("multipart/") and "v=0\r\n" in self.body:
            return re.split(r"\r\n--", self.body[self.body.index("v=0\r\n"):], maxsplit=1)[0]
        return ""


def labels(sdp):
    """Labels of the media (RFC 4574), or one empty text. They are kept during the call, so they are bounded."""
    return re.findall(r"(?m)^a=label:(\S{1,64})", sdp)[:16] or [""]


def name_of(call_id, tag):
    """Of a call, short whatever strangers write: one caller may use a Call-ID for several calls."""
    return hashlib.sha256(f"{call_id}\n{tag}".encode()).digest()


def rfc3339(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="milliseconds")


class Call:
    def __init__(self, call, incident):
        self.call, self.incident = call, incident
        self.media = {}  # labels by leg: "incoming" is that of the caller, "outgoing" that of the PSAP
        self.started = self.answered = self.ended = False


class Datagram:
    def __init__(self, data):
        line, _, message = data.decode("utf-8", "replace").partition("\n")
        words = line.split(" ")
        if len(words) != 7 or words[0] not in ("in", "out"):
            raise BadEvent("not an event of Kamailio")
        self.incoming = words[0] == "in"
        try:
            self.at = float(words[1])
            self.when = rfc3339(self.at)
        except (ValueError, OverflowError, OSError):
            raise BadEvent("no time") from None
        self.address = words[2] if ADDRESS.fullmatch(words[2]) else ""
        self.call = words[3] if URN["callid"].fullmatch(words[3]) else ""
        self.incident = words[4] if URN["incidentid"].fullmatch(words[4]) else ""
        self.source, self.actor = (w if w != "-" and WORD.fullmatch(w) else "" for w in words[5:])
        self.message, self.text = Message(message), message


class Logger:
    """element, agency: domain names. messages: also log each SIP message with its content, in which the location of the caller may be."""

    def __init__(self, element, agency, messages=False, calls=50000):
        self.element, self.agency, self.messages, self.most = element, agency, messages, calls
        self.calls = collections.OrderedDict()  # by Call-ID and the caller's tag, the one that was used last at the end

    def call_of(self, d):
        """The call, and whether From is its caller."""
        m = d.message
        by_caller, by_psap = (name_of(m.call_id, m.tag(header)) for header in ("from", "to"))
        if d.call and d.incident and m.call_id and (by_caller not in self.calls or self.calls[by_caller].ended):
            self.calls[by_caller] = Call(d.call, d.incident)
            if len(self.calls) > self.most:
                self.calls.popitem(last=False)
        for name in (by_caller, by_psap):
            if name in self.calls:
                self.calls.move_to_end(name)
                return self.calls[name], name == by_caller
        return None, False

    def events(self, d):
        """The events of a datagram, each a dictionary. None if it belongs to no emergency call."""
        m, (call, by_caller) = d.message, self.call_of(d)
        if not call or not m.method:
            return []
        direction = "incoming" if d.incoming else "outgoing"
        out = []
        if self.messages:
            out.append(self.event(d, call, "CallSignalingMessageLogEvent", text=d.text, direction=direction, protocol="sip"))
            if m.method == "MESSAGE" and not m.status:
                out.append(self.event(d, call, "MessageLogEvent", text=m.body, direction=direction))
        if m.method == "INVITE":
            self.invite(d, call, out)
        elif m.method == "BYE" and not m.status:
            self.bye(d, call, by_caller, out)
        return out

    def event(self, d, call, kind, **more):
        e = {"logEventType": kind, "timestamp": d.when, "elementId": self.element, "agencyId": self.agency, "callId": call.call, "incidentId": call.incident,
             "callIdSip": d.message.call_id, **more}
        if d.address:
            e["ipAddressPort"] = d.address
        return e

    def invite(self, d, call, out):
        m = d.message
        if not m.status:
            if d.incoming and not m.tag("to") and not call.started:
                call.started = True
                out.append(self.event(d, call, "CallStartLogEvent", direction="incoming", standardPrimaryCallType="emergency", **self.parties(m)))
        elif 200 <= m.status < 300:
            call.answered = True
            leg = "outgoing" if d.incoming else "incoming"
            if m.sdp() and leg not in call.media:
                call.media[leg] = labels(m.sdp())
                out.append(self.event(d, call, "MediaStartLogEvent", sdp=m.sdp(), mediaLabel=call.media[leg], direction=leg))
        elif m.status >= 300 and not d.incoming and not call.answered:
            self.end(d, call, out)

    @staticmethod
    def parties(m):
        """URIs of caller and callee."""
        found = {}
        for name in ("from", "to"):
            value = m.headers.get(name, "")
            inside = re.search(r"<([^<>]*)>", value)
            found[name] = inside[1] if inside else value.partition(";")[0]
        return found

    def bye(self, d, call, by_caller, out):
        """Each leg ends with its BYE, whoever sends it: the caller's is, on its way in, on the caller's leg."""
        leg = "incoming" if by_caller == d.incoming else "outgoing"
        if leg in call.media:
            out.append(self.event(d, call, "MediaEndLogEvent", mediaLabel=call.media.pop(leg), direction=leg))
        self.end(d, call, out)

    def end(self, d, call, out):
        if call.started and not call.ended:
            call.ended = True
            out.append(self.event(d, call, "CallEndLogEvent", direction="incoming", standardPrimaryCallType="emergency", **self.parties(d.message)))
