# SPDX-License-Identifier: GPL-2.0-or-later
"""SIP messages of Kamailio to log events (NENA-STA-010.3 4.12.3.7). Pure: messages in, events out.

Kamailio sends datagrams. Each has a line "KIND TIME ADDRESS CALL INCIDENT SOURCE ACTOR", in which "-" stands for a missing word, and then

  in, out   a SIP message as it was received or is sent
  bad       a SIP message that was refused as malformed
  route     the Call-ID, and after a line end the PSAP that LoST has named, or "-", a blank, and the PSAP that gets the call
  asked     the Call-ID, and after a line end the HTTP exchanges with LoST and location servers (module/lost/trace.h)"""
import collections
import datetime
import hashlib
import re
import secrets

STATUS = re.compile("SIP/2\\.0 ([1-9][0-9]{2})")
URN = {kind: re.compile(rf"urn:emergency:uid:{kind}:[0-9A-Za-z]{{10,36}}:[-.0-9A-Za-z]{{1,255}}") for kind in ("callid", "incidentid")}
EXCHANGE = re.compile(rb"(lost|held) ([0-9]{1,15}) ([0-9]{1,15}) ([-a-z]{1,16}) ([0-9]{1,3}) ([0-9]{1,5}) ([0-9]{1,5}) ([0-9]{1,5}) [0-9]{1,10}\n")
UNSPECIFIED = 454  # of the registry of status codes (NENA-STA-010.3 10.29)
WORD = re.compile(r"[-.@0-9A-Za-z]{1,300}")
INFO = re.compile(r"<\s*([^<>\s]{1,1000})\s*>([^<>]*)")
SOURCE = re.compile(r";\s*purpose\s*=\s*\"?(?:emergency|nena)-source\b", re.I)
ADDRESS = re.compile(r"[0-9A-Fa-f.:\[\]]{3,60}")
SHORT = {"i": "call-id", "f": "from", "t": "to", "l": "content-length", "c": "content-type"}


class BadEvent(Exception):
    """The datagram is not one that Kamailio sends."""


class Message:
    """What events need of a SIP message."""

    def __init__(self, text):
        head, _, self.body = text.partition("\r\n\r\n")
        self.first, *lines = re.sub(r"\r\n[ \t]+", " ", head).split("\r\n")
        self.headers, self.infos = {}, []  # infos: URI and parameters of each Call-Info
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                name = name.strip().lower()
                self.headers.setdefault(SHORT.get(name, name), value.strip())
                if name == "call-info":
                    self.infos += INFO.findall(value)
        found = STATUS.match(self.first)
        self.status = int(found[1]) if found else 0
        self.method = self.headers.get("cseq", "").rpartition(" ")[2]
        self.call_id = self.headers.get("call-id", "")

    def tag(self, header):
        found = re.search(r">[^>]*;\s*tag=([^;\s]+)|^[^<>]*;\s*tag=([^;\s]+)", self.headers.get(header, ""))
        return (found[1] or found[2]) if found else ""

    def source(self):
        """The identifier of its source that an earlier border has given it, as the header has it. "" if none has."""
        return next((f"<{uri}>{more.rstrip(', ')}" for uri, more in self.infos if SOURCE.search(more)), "")

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


class Exchange:
    """A request to a LoST or location server, and its reply."""

    def __init__(self, found, texts):
        kind, begin, end, error, status = (w.decode() for w in found.groups()[:5])
        self.lost, self.error, self.status = kind == "lost", "" if error == "-" else error, int(status)
        self.begin, self.end = moment(int(begin) / 1000), moment(int(end) / 1000)
        self.url, self.request, self.reply = (t.decode("utf-8", "replace") for t in texts)


def exchanges(data):
    """Of a datagram, as far as they are complete."""
    out = []
    while found := EXCHANGE.match(data):
        data, texts = data[found.end():], []
        for length in map(int, found.groups()[5:]):
            texts.append(data[:length])
            data = data[length:]
        out.append(Exchange(found, texts))
    if data:
        raise BadEvent("not the exchanges of a query")
    return out


def moment(seconds):
    try:
        return rfc3339(seconds)
    except (ValueError, OverflowError, OSError):
        raise BadEvent("no time") from None


class Datagram:
    def __init__(self, data):
        line, _, content = data.partition(b"\n")
        words = line.decode("utf-8", "replace").split(" ")
        if len(words) != 7 or words[0] not in ("in", "out", "bad", "route", "asked"):
            raise BadEvent("not an event of Kamailio")
        self.kind, self.incoming = words[0], words[0] == "in"
        try:
            self.at = float(words[1])
        except ValueError:
            raise BadEvent("no time") from None
        self.when = moment(self.at)
        self.address = words[2] if ADDRESS.fullmatch(words[2]) else ""
        self.call = words[3] if URN["callid"].fullmatch(words[3]) else ""
        self.incident = words[4] if URN["incidentid"].fullmatch(words[4]) else ""
        self.source, self.actor = (w if w != "-" and WORD.fullmatch(w) else "" for w in words[5:])
        if self.kind in ("in", "out", "bad"):
            self.text = content.decode("utf-8", "replace")
            self.message = Message(self.text)
            self.call_id = self.message.call_id
        else:
            call_id, _, rest = content.partition(b"\n")
            self.call_id = call_id.decode("utf-8", "replace")
            if self.kind == "route":
                self.queue, _, self.psap = rest.decode("utf-8", "replace").partition(" ")
            else:
                self.exchanges = exchanges(rest)


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
        if d.kind in ("route", "asked"):
            call = Call(d.call, d.incident)
            return [] if not d.call or not d.incident else [self.routed(d, call)] if d.kind == "route" else self.asked(d, call)
        if d.kind == "bad":
            return []
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
             "callIdSip": d.call_id, **more}
        if d.address:
            e["ipAddressPort"] = d.address
        return e

    def routed(self, d, call):
        """The policy is that of the queue which LoST has named. Without an answer of LoST it is the default route."""
        policy = {"policyType": "OtherRoutePolicy", "policyId": "default"}
        if d.queue != "-":
            policy = {"policyType": "NormalNextHopRoutePolicy", "policyQueueName": d.queue}
        return self.event(d, call, "RouteLogEvent", recipientUri=d.psap, policyOwner=self.agency, **policy)

    def asked(self, d, call):
        """They have the location, as messages do."""
        out = []
        for x in d.exchanges if self.messages else []:
            name = f"urn:emergency:uid:queryid:{secrets.token_hex(16)}:{self.element}"
            query, reply = {"queryId": name, "direction": "outgoing", "timestamp": x.begin}, {"responseId": name, "direction": "incoming", "timestamp": x.end}
            if x.error:
                reply["responseStatus"] = str(x.status if x.status > 299 else UNSPECIFIED)
            if x.lost:
                query["queryAdapter"], reply["responseAdapter"] = x.request, x.reply
                if x.error == "garbage":
                    reply["malformedResponse"] = x.reply
            else:
                query["uri"], query["text"], reply["text"] = x.url, x.request, x.reply
            kind = "Lost" if x.lost else "Location"
            out += self.event(d, call, f"{kind}QueryLogEvent", **query), self.event(d, call, f"{kind}ResponseLogEvent", **reply)
        return out

    def additional(self, d, x):
        """x: the URI of additional data that was fetched for the call of this datagram, and what came of it."""
        call, name = Call(d.call, d.incident), f"urn:emergency:uid:queryid:{secrets.token_hex(16)}:{self.element}"
        query, reply = {"queryId": name, "direction": "outgoing", "timestamp": x["begin"]}, {"responseId": name, "direction": "incoming", "timestamp": x["end"]}
        if not x["good"]:
            reply["responseStatus"] = str(x["status"] if x["status"] > 299 else UNSPECIFIED)
        events = [self.event(d, call, "AdditionalDataQueryLogEvent", uri=x["uri"], text="", **query), self.event(d, call, "AdditionalDataResponseLogEvent", text=x["text"], **reply)]
        for e in events:
            e.pop("ipAddressPort", None)  # it is that of the INVITE
        return events

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
