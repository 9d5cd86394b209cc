# SPDX-License-Identifier: GPL-2.0-or-later
"""sipp as caller and callee with SDP of our own, inside the namespaces; and Kamailio with the module xcipher."""
import os
import re
import socket
import subprocess
import time

import ng
import relay

CRYPTO = {"AES_CM_128_HMAC_SHA1_80": "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz",
          "AES_CM_128_HMAC_SHA1_32": "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"}
CRYPTO["AEAD_AES_256_GCM"] = "Z2Nt" * 14 + "Z2M="

# The lines between messages; [...] is sipp's syntax.
SDP = """v=0
o=- 1 1 IN IP[local_ip_type] [local_ip]
s=-
c=IN IP[media_ip_type] [media_ip]
t=0 0
m=audio [media_port] %s 0
%sa=rtpmap:0 PCMU/8000"""


def sdp(suite, tag=1, callee=False):
    """Caller and callee have different keys, because the relay refuses a key of the other terminal."""
    if not suite:
        return SDP % ("RTP/AVP", "")
    key = "Q2Fs" + CRYPTO[suite][4:] if callee else CRYPTO[suite]
    return SDP % ("RTP/SAVP", f"a=crypto:{tag} {suite} inline:{key}\n")


def message(first, headers, body=""):
    text = first + "\n" + headers.strip() + "\n"
    if body:
        text += f"Content-Type: application/sdp\nContent-Length: [len]\n\n{body}"
    else:
        text += "Content-Length: 0\n"
    return f"<![CDATA[\n{text}\n]]>"


def in_dialog(method, cseq, to="[peer_tag_param]"):
    return f"""Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch]
From: <sip:caller@[local_ip]>;tag=[pid]c[call_number]
To: <%(to)s>{to}
Call-ID: [call_id]
CSeq: {cseq} {method}
Contact: <sip:caller@[local_ip]:[local_port]>
Max-Forwards: 70
%(extra)s"""


def provisional(txn, *codes):
    return [f'<recv response="{code}" optional="true" response_txn="{txn}"/>' for code in codes or (100, 180, 183)]


def caller(suite, to, expect=200, extra="", talk_ms=200):
    """A scenario: INVITE with this body, ACK, a pause and BYE; only ACK if another answer is
    expected. talk_ms=None: BYE when Sipp.hang_up() sends an INFO. A proxy's processes may relay
    a provisional reply after the final one, and a lost ACK repeats the 200. sipp recognises both
    by their transaction (optional="global" would jump back in the scenario)."""
    values = {"to": to, "extra": extra + "\n" if extra else ""}
    invite = message(f"INVITE {to} SIP/2.0", in_dialog("INVITE", 1, "") % values, sdp(suite))
    routes = {"to": to, "extra": "[routes]\n" + values["extra"]}
    steps = [f'<send retrans="500" start_rtd="1" start_txn="invite">{invite}</send>',
             *provisional("invite")]
    if expect == 200:
        ack = message("ACK [next_url] SIP/2.0", in_dialog("ACK", 1) % routes)
        bye = message("BYE [next_url] SIP/2.0", in_dialog("BYE", 2) % routes)
        steps += [f'<recv response="200" rtd="1" rrs="true" response_txn="invite"/><send ack_txn="invite">{ack}</send>',
                  f'<pause milliseconds="{talk_ms}"/>' if talk_ms is not None else '<recv request="INFO"/>',
                  f'<send retrans="500" start_txn="bye">{bye}</send>', *provisional("bye", 100),
                  '<recv response="200" response_txn="bye"/>']
    else:
        ack = message(f"ACK {to} SIP/2.0", (in_dialog("ACK", 1) % values).replace("branch=[branch]", "branch=[branch-%d]" % len(steps)))
        steps += [f'<recv response="{expect}" rtd="1" response_txn="invite"/><send ack_txn="invite">{ack}</send>']
    return scenario(steps)


def gives_up(suite, to, extra, after_ms):
    """INVITE, CANCEL before an answer, and the end of the INVITE. Replies to INVITE and CANCEL may
    come in any order."""
    values = {"to": to, "extra": extra + "\n"}
    invite = message(f"INVITE {to} SIP/2.0", in_dialog("INVITE", 1, "") % values, sdp(suite))
    cancel = message(f"CANCEL {to} SIP/2.0", (in_dialog("CANCEL", 1, "") % values).replace("[branch]", "[branch-3]"))
    ack = message(f"ACK {to} SIP/2.0", (in_dialog("ACK", 1) % values).replace("[branch]", "[branch-6]"))
    return scenario([f'<send retrans="500">{invite}</send>', '<recv response="100"/>', f'<pause milliseconds="{after_ms}"/>', f"<send>{cancel}</send>",
                     '<recv response="200" optional="true"/>', '<recv response="487"/>', f"<send>{ack}</send>"])


# Waiting time of a callee for an ACK, in ms. Repeated requests get repeated replies, and on a busy
# machine an ACK is later than real phones allow.
PATIENCE = 3000


def callee(suite, code=200, early=False, rings=True):
    """Accepts calls, or refuses all with this code. Sipp.established() lists the calls with an ACK."""
    head = "[last_Via:]\n[last_From:]\n[last_To:];tag=[pid]u[call_number]\n[last_Call-ID:]\n[last_CSeq:]\n" \
           "Contact: <sip:[local_ip]:[local_port]>\n"
    if code != 200:
        return scenario(['<recv request="INVITE"/>', f"<send retrans=\"500\">{message(f'SIP/2.0 {code} No', head)}</send>", '<recv request="ACK"/>'])
    early_answer = sdp(suite, callee=True) if early else ""
    ringing = [f"<send>{message('SIP/2.0 180 Ringing', head + '[last_Record-Route:]', early_answer)}</send>"] if rings else []
    steps = ['<recv request="INVITE" rrs="true"/>', *ringing,
             f"<send retrans=\"{PATIENCE}\">{message('SIP/2.0 200 OK', head + '[last_Record-Route:]', sdp(suite, callee=True))}</send>",
             '<recv request="ACK" optional="true"><action><log message="[call_id]"/></action></recv>', '<recv request="BYE"/>',
             "<send>" + message("SIP/2.0 200 OK", "[last_Via:]\n[last_From:]\n[last_To:]\n[last_Call-ID:]\n[last_CSeq:]") + "</send>"]
    return scenario(steps)


REPLY = "[last_Via:]\n[last_From:]\n[last_To:]\n[last_Call-ID:]\n[last_CSeq:]"
CONTACT = "\nContact: <sip:[local_ip]:[local_port]>"


def callee_twice(suite):
    """Accepts the call and a re-INVITE, then gets BYE."""
    head = REPLY.replace("[last_To:]", "[last_To:];tag=[pid]u[call_number]") + CONTACT + "\n[last_Record-Route:]"
    return scenario(['<recv request="INVITE" rrs="true"/>', f"<send retrans=\"{PATIENCE}\">{message('SIP/2.0 200 OK', head, sdp(suite, callee=True))}</send>",
                     '<recv request="ACK"/>', '<recv request="INVITE"/>',
                     f"<send retrans=\"{PATIENCE}\">{message('SIP/2.0 200 OK', REPLY + CONTACT, sdp(suite, callee=True))}</send>", '<recv request="ACK"/>',
                     '<recv request="BYE"/>', f"<send>{message('SIP/2.0 200 OK', REPLY)}</send>"])


def caller_again(bodies, to, pause_ms=300):
    """Sends an INVITE with the first body, re-INVITEs with the others, and BYE; each must get a
    200. pause_ms=None: like talk_ms in caller()."""
    values = {"to": to, "extra": ""}
    routes = {"to": to, "extra": "[routes]\n"}
    steps = []
    for number, body in enumerate(bodies, 1):
        first = number == 1
        head = in_dialog("INVITE", number, "") % values if first else in_dialog("INVITE", number) % routes
        ack = message("ACK [next_url] SIP/2.0", in_dialog("ACK", number) % routes)
        invite = message(f"INVITE {to} SIP/2.0" if first else "INVITE [next_url] SIP/2.0", head, body)
        steps += [f'<send retrans="500" start_txn="invite{number}">{invite}</send>',
                  *provisional(f"invite{number}"),
                  f'<recv response="200" response_txn="invite{number}"{" rrs=" + chr(34) + "true" + chr(34) if first else ""}/>',
                  f'<send ack_txn="invite{number}">{ack}</send>',
                  f'<pause milliseconds="{pause_ms}"/>' if pause_ms is not None else '<recv request="INFO"/>']
    bye = message("BYE [next_url] SIP/2.0", in_dialog("BYE", len(bodies) + 1) % routes)
    return scenario([*steps, f'<send retrans="500" start_txn="bye">{bye}</send>', *provisional("bye", 100), '<recv response="200" response_txn="bye"/>'])


def expect(pattern):
    """A condition of a recv: the message must contain this."""
    return f'<action><ereg regexp="{pattern}" search_in="msg" check_it="true" assign_to="1"/></action>'


def callee_again(bodies, patterns, early_ms=0):
    """Answers each INVITE with the next body; requests must match the patterns. early_ms: a 183
    carries the first answer this long before."""
    head = REPLY.replace("[last_To:]", "[last_To:];tag=[pid]u[call_number]") + CONTACT + "\n[last_Record-Route:]"
    steps = []
    for number, (body, pattern) in enumerate(zip(bodies, patterns)):
        steps.append(f'<recv request="INVITE"{" rrs=" + chr(34) + "true" + chr(34) if not number else ""}>{expect(pattern)}</recv>')
        if early_ms and not number:
            steps += [f"<send>{message('SIP/2.0 183 Session Progress', head, body)}</send>", f'<pause milliseconds="{early_ms}"/>']
        steps += [f"<send retrans=\"{PATIENCE}\">{message('SIP/2.0 200 OK', REPLY + CONTACT if number else head, body)}</send>",
                  '<recv request="ACK"><action><log message="[call_id]"/></action></recv>']
    return scenario([*steps, '<recv request="BYE"/>', f"<send>{message('SIP/2.0 200 OK', REPLY)}</send>", '<Reference variables="1"/>'])


def callee_cancelled(rings=True):
    """Rings until another branch answers or the caller gives up."""
    head = REPLY.replace("[last_To:]", "[last_To:];tag=[pid]u[call_number]") + CONTACT
    code = "SIP/2.0 180 Ringing" if rings else "SIP/2.0 100 Trying"
    return scenario(['<recv request="INVITE"/>', f"<send>{message(code, head)}</send>", '<recv request="CANCEL"/>',
                     f"<send>{message('SIP/2.0 200 OK', REPLY)}</send>",
                     f"<send retrans=\"500\">{message('SIP/2.0 487 Request Terminated', REPLY.replace('[last_CSeq:]', 'CSeq: 1 INVITE'))}</send>", '<recv request="ACK"/>'])


def caller_twice_refused(suite, to):
    """A call, then a re-INVITE that gets 488 although a BYE overtakes it."""
    values = {"to": to, "extra": ""}
    routes = {"to": to, "extra": "[routes]\n"}
    ack = in_dialog("ACK", 1) % routes
    late = (in_dialog("ACK", 2) % routes).replace("branch=[branch]", "branch=[branch-3]")
    return scenario([f'<send retrans="500" start_txn="first">{message(f"INVITE {to} SIP/2.0", in_dialog("INVITE", 1, "") % values, sdp(suite))}</send>',
                     *provisional("first"), '<recv response="200" rrs="true" response_txn="first"/>',
                     f"<send ack_txn=\"first\">{message('ACK [next_url] SIP/2.0', ack)}</send>",
                     f"<send retrans=\"500\" start_txn=\"again\">{message('INVITE [next_url] SIP/2.0', in_dialog('INVITE', 2) % routes, sdp(suite))}</send>",
                     *provisional("again", 100), '<recv request="BYE"/>', f"<send>{message('SIP/2.0 200 OK', REPLY)}</send>",
                     '<recv response="488" response_txn="again"/>', f"<send ack_txn=\"again\">{message('ACK [next_url] SIP/2.0', late)}</send>"])


def caller_refused_again(suite, to):
    """A call, a refused re-INVITE, BYE. Processes of a proxy may overtake each other, so an ACK may
    come anywhere."""
    values = {"to": to, "extra": ""}
    routes = {"to": to, "extra": "[routes]\n"}

    def within(method, cseq, back=0):
        head = in_dialog(method, cseq) % routes
        return message(f"{method} [next_url] SIP/2.0", head.replace("[branch]", f"[branch-{back}]") if back else head, sdp(suite) if method == "INVITE" else "")

    return scenario([f'<send retrans="500" start_txn="first">{message(f"INVITE {to} SIP/2.0", in_dialog("INVITE", 1, "") % values, sdp(suite))}</send>',
                     *provisional("first"), '<recv response="200" rrs="true" response_txn="first"/>', f'<send ack_txn="first">{within("ACK", 1)}</send>',
                     '<pause milliseconds="300"/>', f'<send retrans="500" start_txn="again">{within("INVITE", 2)}</send>', *provisional("again", 100),
                     '<recv response="488" response_txn="again"/>', f'<send ack_txn="again">{within("ACK", 2, 3)}</send>', '<pause milliseconds="300"/>',
                     f'<send retrans="500" start_txn="bye">{within("BYE", 3)}</send>', *provisional("bye", 100), '<recv response="200" response_txn="bye"/>'])


def callee_refuses_again(suite):
    head = REPLY.replace("[last_To:]", "[last_To:];tag=[pid]u[call_number]") + CONTACT + "\n[last_Record-Route:]"
    return scenario(['<recv request="INVITE" rrs="true"/>', f"<send retrans=\"500\">{message('SIP/2.0 200 OK', head, sdp(suite, callee=True))}</send>",
                     '<recv request="ACK" optional="true"/>', '<recv request="INVITE"/>', f"<send retrans=\"500\">{message('SIP/2.0 488 No', REPLY)}</send>",
                     '<recv request="ACK" optional="true"/>', '<recv request="BYE"/>', f"<send>{message('SIP/2.0 200 OK', REPLY)}</send>"])


def caller_cancels_again(suite, to):
    """A call, a cancelled re-INVITE, BYE. Replies to CANCEL and INVITE may come in any order."""
    values = {"to": to, "extra": ""}
    routes = {"to": to, "extra": "[routes]\n"}

    def within(method, cseq, back=0):
        head = in_dialog(method, cseq) % routes
        return message(f"{method} [next_url] SIP/2.0", head.replace("[branch]", f"[branch-{back}]") if back else head, sdp(suite) if method == "INVITE" else "")

    return scenario([f'<send retrans="500">{message(f"INVITE {to} SIP/2.0", in_dialog("INVITE", 1, "") % values, sdp(suite))}</send>',
                     '<recv response="100" optional="global"/>', '<recv response="200" rrs="true"/>', f"<send>{within('ACK', 1)}</send>", '<pause milliseconds="300"/>',
                     f"<send retrans=\"500\">{within('INVITE', 2)}</send>", '<recv response="100"/>', '<pause milliseconds="200"/>',
                     f"<send>{within('CANCEL', 2, 3)}</send>", '<recv response="200" optional="global"/>', '<recv response="487"/>',
                     f"<send>{within('ACK', 2, 6)}</send>", '<pause milliseconds="300"/>',
                     f"<send retrans=\"500\">{within('BYE', 3)}</send>", '<recv response="100" optional="global"/>', '<recv response="200"/>'])


def callee_cancelled_again(suite):
    head = REPLY.replace("[last_To:]", "[last_To:];tag=[pid]u[call_number]") + CONTACT + "\n[last_Record-Route:]"
    terminated = message("SIP/2.0 487 Request Terminated", REPLY.replace("[last_CSeq:]", "CSeq: 2 INVITE"))
    return scenario(['<recv request="INVITE" rrs="true"/>', f"<send retrans=\"500\">{message('SIP/2.0 200 OK', head, sdp(suite, callee=True))}</send>",
                     '<recv request="ACK" optional="global"/>', '<recv request="INVITE"/>', f"<send>{message('SIP/2.0 100 Trying', REPLY)}</send>",
                     '<recv request="CANCEL"/>', f"<send>{message('SIP/2.0 200 OK', REPLY)}</send>", f"<send retrans=\"500\">{terminated}</send>",
                     '<recv request="ACK" optional="global"/>', '<recv request="BYE"/>', f"<send>{message('SIP/2.0 200 OK', REPLY)}</send>"])


def scenario(steps):
    return '<?xml version="1.0" encoding="ISO-8859-1" ?>\n<scenario name="xcipher">\n' + "\n".join(steps) + "\n</scenario>\n"


class Sipp:
    def __init__(self, net, folder, name, text, *args):
        self.name, self.folder = name, folder
        self.address = net.run(net.terminal[name], "ip", "-o", "-4", "addr", "show", "scope", "global").stdout.split()[3].split("/")[0]
        number = len(os.listdir(folder))
        self.base = os.path.join(folder, f"{name}{number}")
        with open(self.base + ".xml", "w", encoding="ascii") as f:
            f.write(text)
        self.out = open(self.base + ".out", "w", encoding="utf-8")
        self.process = net.spawn(net.terminal[name], ["/usr/bin/sipp", "-sf", self.base + ".xml", "-i", self.address, "-nostdin", "-trace_err", "-error_file",
                                                      self.base + ".err", "-trace_logs", "-log_file", self.base + ".log",
                                                      "-trace_stat", "-stf", self.base + ".csv", "-fd", "1", *args],
                                 stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out)

    def wait(self, timeout=60):
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired as e:
            raise AssertionError(f"sipp does not end: {self.counts()}\n{self.text()}") from e
        return code, self.counts()

    def counts(self):
        """(successful, failed, retransmissions, mean response time in ms) from the last line of
        statistics."""
        with open(self.base + ".csv", encoding="ascii") as f:
            lines = f.read().splitlines()
        row = dict(zip(lines[0].split(";"), lines[-1].split(";")))
        t = re.match(r"(\d+):(\d+):(\d+)[:.](\d+)", row.get("ResponseTime1(C)", "") or "")
        ms = (((int(t[1]) * 60 + int(t[2])) * 60) + int(t[3])) * 1000 + int(t[4].ljust(6, "0")) / 1000 if t else 0
        return int(row["SuccessfulCall(C)"]), int(row["FailedCall(C)"]), int(row["Retransmissions(C)"]), ms

    def established(self):
        """Call-IDs that callee() and callee_again() accepted and got the ACK for: their set-up is
        complete."""
        try:
            with open(self.base + ".log", encoding="ascii") as f:
                return {line.strip() for line in f if line.endswith("\n")}
        except FileNotFoundError:
            return set()

    def acks(self):
        """Number of ACKs that callee_again() has received."""
        try:
            with open(self.base + ".log", encoding="ascii") as f:
                return sum(line.endswith("\n") for line in f)
        except FileNotFoundError:
            return 0

    def hang_up(self, net, call_ids, number=1):
        """Makes caller(talk_ms=None) send BYE in these calls. caller_again() sends its next INVITE
        for INFO number 1, 2 and so on. A repeated datagram does no harm."""
        with ng.socket_in(net.terminal[self.name], socket.AF_INET) as s:
            for i in call_ids:
                s.sendto(f"INFO sip:{self.name}@{self.address} SIP/2.0\r\nVia: SIP/2.0/UDP {self.address}:9;branch=z9hG4bK{number}{i}\r\n"
                         f"From: <sip:test@{self.address}>;tag=1\r\nTo: <sip:{self.name}@{self.address}>\r\nCall-ID: {i}\r\nCSeq: {number} INFO\r\n"
                         "Content-Length: 0\r\n\r\n".encode("ascii"), (self.address, 5060))

    def text(self):
        text = ""
        for suffix in (".err", ".out"):
            if os.path.exists(self.base + suffix):
                with open(self.base + suffix, encoding="utf-8", errors="replace") as f:
                    text += f.read()[-3000:]
        return text


class Kamailio:
    def __init__(self, net, folder, more="", memory=64, example="kamailio-module.cfg", swap=("", ""), **defines):
        """example: a file of kamailio-cfg/. more: lines after its modules. swap: (old, new), or a
        list of such pairs, replaced in it."""
        self.net = net
        self.run_dir = os.path.join(folder, f"kamailio{len(os.listdir(folder))}")
        os.makedirs(self.run_dir)
        self.ctl = "unix:" + os.path.join(self.run_dir, "ctl")
        defines["XC_CTL"] = f'"{self.ctl}"'
        self.log = open(os.path.join(self.run_dir, "log"), "w+", encoding="utf-8", errors="replace")
        args = [x for k, v in defines.items() for x in ("-A", f"{k}={v}")]
        source = os.path.join(relay.ROOT, "kamailio-cfg")
        cfg = os.path.join(self.run_dir, "cfg")
        with open(os.path.join(source, example), encoding="utf-8") as f:
            text = f.read()
        for old, new in swap if isinstance(swap, list) else [swap] if swap[0] else []:
            assert old in text, old
            text = text.replace(old, new)
        with open(cfg, "w", encoding="utf-8") as f:
            f.write(text.replace('include_file "', f'{more}\ninclude_file "{source}/'))
        modules = "/usr/lib/" + subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip() + "/kamailio/modules"
        self.process = net.spawn(net.gateway, ["/usr/sbin/kamailio", "-L", modules + ":" + relay.BUILD, "-f", cfg, "-DD", "-E", "-w", self.run_dir, "-Y",
                                               self.run_dir, "-P", os.path.join(self.run_dir, "pid"), "-m", str(memory), "-M", "8", *args],
                                 stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError("kamailio ended:\n" + self.text()[-3000:])
            try:
                self.rpc("core.version")
                return
            except RuntimeError:
                time.sleep(0.1)
        raise RuntimeError("kamailio does not start:\n" + self.text()[-3000:])

    def text(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def rpc(self, *args):
        p = subprocess.run(["/usr/sbin/kamcmd", "-s", self.ctl, *args], capture_output=True, text=True, timeout=60, check=False)
        if p.returncode or p.stdout.startswith("error"):
            raise RuntimeError(p.stdout + p.stderr)
        return p.stdout

    def counter(self, name):
        return int(self.rpc("cnt.get", "xcipher", name).split()[-1])

    def sip_workers(self):
        """Process ids of the SIP workers."""
        return [int(pid) for pid in re.findall(r"PID: (\d+)\s+DSC: udp receiver", self.rpc("core.psx"))]

    def nodes(self):
        """xcipher.show as a list of dictionaries."""
        found = []
        for line in self.rpc("xcipher.show").splitlines():
            key, _, value = line.strip().partition(":")
            if key == "node":
                found.append({})
            if value:
                found[-1][key] = value.strip()
        return found

    def stop(self):
        return self.net.stop(self.process, 15)
