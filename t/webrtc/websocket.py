#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kamailio-cfg/kamailio-webrtc.cfg as it is: JsSIP in Chromium registers by WebSocket, and calls a baresip phone behind a PBX's address and
is called by it. make check-webrtc.

    websocket.py [--relay=rtpengine|xcipherd] [--module=stock|ours] [--tls]

--tls: by wss://, with a certificate made for the run, which Chromium knows by the hash of its key."""
import argparse
import base64
import glob
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import browser  # noqa: E402
import call  # noqa: E402
import chromium  # noqa: E402
import kinds  # noqa: E402
import netns  # noqa: E402
import phones  # noqa: E402
import sipp  # noqa: E402
import web  # noqa: E402
from baresip import wait_for  # noqa: E402

DOMAIN, SERVER = "web.example", "10.200.1.1"
USERS = {"alice": "wonder.land", "carol": "looking glass"}
JSSIP = os.path.join(kinds.WEBRTC, "js", "jssip.js")


def database(folder):
    path = os.path.join(folder, "kamailio.sqlite")
    with sqlite3.connect(path) as db:
        for name in ("standard", "auth_db", "usrloc"):
            with open(f"/usr/share/kamailio/db_sqlite/{name}-create.sql", encoding="ascii") as f:
                db.executescript(f.read())
        for user, password in USERS.items():
            ha1 = hashlib.md5(f"{user}:{DOMAIN}:{password}".encode()).hexdigest()
            db.execute("INSERT INTO subscriber (username, domain, password, ha1) VALUES (?, ?, '', ?)", (user, DOMAIN, ha1))
    return path


class Certificate:
    """A certificate for the server's address, signed by itself."""

    def __init__(self, folder):
        self.certificate, self.key = (os.path.join(folder, name) for name in ("server.crt", "server.key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", f"/CN={DOMAIN}", "-addext", f"subjectAltName=DNS:{DOMAIN},IP:{SERVER}", "-keyout", self.key, "-out", self.certificate],
                       check=True, capture_output=True)

    def key_hash(self):
        """As Chromium's --ignore-certificate-errors-spki-list expects it."""
        public = subprocess.run(["openssl", "x509", "-in", self.certificate, "-noout", "-pubkey"], check=True, capture_output=True).stdout
        der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public, check=True, capture_output=True).stdout
        return base64.b64encode(hashlib.sha256(der).digest()).decode()


class Page:
    """JsSIP in a browser at a place, as this user. certificate: the server's, then it comes by TLS."""

    def __init__(self, net, user="alice", password=None, hertz=None, certificate=None, place="a", options=browser.OPTIONS):
        self.kind = "jssip"
        self.server = f"wss://{SERVER}:8443" if certificate else f"ws://{SERVER}:8080"
        trust = (f"--ignore-certificate-errors-spki-list={certificate.key_hash()}",) if certificate else ()
        self.browser = chromium.Browser(net, net.terminal[place], options + trust)
        self.load(user, password or USERS[user], hertz or call.TONE[place])

    def load(self, user, password, hertz):
        for path in (JSSIP, os.path.join(HERE, "page.js")):
            with open(path, encoding="utf-8") as f:
                # A declaration in an evaluated script would not outlive it.
                self.browser.js(f.read().replace("var JsSIP =", "window.JsSIP =", 1) +
                                "".join(f"\nwindow.{name} = typeof {name} === 'function' ? {name} : 0; 0" for name in ("User", "ownPair")))
        self.register(user, password, hertz)

    def register(self, user, password, hertz):
        self.browser.js(f"window.user = new User({json.dumps(self.server)}, {json.dumps(f'sip:{user}@{DOMAIN}')}, {json.dumps(password)}, "
                        f"{hertz}); 0")

    def is_(self, what, expected):
        return wait_for(f"{what} = {expected}", lambda: str(self.browser.js(f"user.{what}")).startswith(expected) or
                        str(self.browser.js(f"user.{what}")).startswith("failed") and self.fail(what))

    def fail(self, what):
        raise call.Failed(f"{what}: {self.browser.js(f'user.{what}')}, {self.browser.js('user.log.join()')}")

    def report(self):
        return browser.in_our_clock(self.browser.js("user.report()"))

    def close(self):
        self.browser.close()


class Phone(phones.Baresip):
    """An SDES phone at the PBX's address."""
    ACCOUNT = {"phone": 'mediaenc=srtp-mand;outbound="sip:10.200.2.1:5060;transport=udp"'}

    def __init__(self, net):
        super().__init__(net, "b", "phone", 4, "")

    def close(self):
        self.stop()
        self.agent.close()
        self.folder.cleanup()


def both_hear(one, other, title):
    def heard():
        reports = one.report(), other.report()
        return reports if all(r["blocks"] >= 8 for r in reports) else None
    try:
        reports = wait_for("media both ways", heard)
    except AssertionError:
        raise call.Failed(f"{title}: " + " / ".join(map(call.brief, (one.report(), other.report())))) from None
    if wrong := call.judge(reports):
        raise call.Failed(f"{title}: {'; '.join(wrong)}")
    print(f"ok {title}: {reports[0]['packets_in']} in, {reports[0]['profile']}, {reports[0]['pair']}", flush=True)


class Rig:
    def __init__(self, net, folder, args, **settings):
        """settings: further definitions of the configuration."""
        self.net = net
        self.certificate = Certificate(folder) if args.tls else None
        self.relay = call.start_relay(net, args.relay, names=("web", "sip"))
        options = settings | ({"XC_STOCK": 1} if args.module == "stock" else {})
        if self.certificate:
            options |= {"XC_CERTIFICATE": f'"{self.certificate.certificate}"', "XC_KEY": f'"{self.certificate.key}"'}
        else:
            options |= {"XC_NO_TLS": 1}
        self.kam = sipp.Kamailio(net, folder, example="kamailio-webrtc.cfg", swap=("log_stderror=no", "log_stderror=yes"),
                                 XC_DB=f'"sqlite:///{database(folder)}"', XC_WS_ORIGINS='"^null$"', **options)

    def contacts(self):
        return self.kam.rpc("ul.dump").count("Address:")

    def calls(self):
        return self.relay.client.call("list")["calls"]


def more_blocks(page, phone, title):
    """Both hear as they must in what arrives from now on."""
    start = {p: p.report()["blocks"] for p in (page, phone)}
    wait_for(f"media both ways {title}", lambda: all(p.report()["blocks"] >= n + 8 for p, n in start.items()))
    both_hear(page, phone, title)


def check_hold(page, phone):
    page.browser.js("user.hold()")
    start = page.report()

    def silent():
        """The browser, which sends on, got nothing while it sent 50 packets."""
        nonlocal start
        r = page.report()
        if r["packets_in"] != start["packets_in"]:
            start = r
        return r["packets_out"] >= start["packets_out"] + 50
    wait_for("silence of the held phone", silent)
    page.browser.js("user.resume()")
    # baresip 1.0 does not go on with its recording then. It writes the rates of both directions to its log.
    wait_for("the browser's media at the phone", lambda: re.findall(r"audio=(\d+)/(\d+)", phone.phone.log())[-1] == ("64000", "64000"))
    start = page.report()["blocks"]
    wait_for("the phone's tone", lambda: page.report()["blocks"] >= start + 8 and page.report()["tones"]["1000"] > call.OWN_MIN)
    print("ok hold and resume", flush=True)


def check_restart(page, phone):
    before = page.browser.js("user.pc.currentRemoteDescription.sdp.match(/a=ice-ufrag:(.*)/)[1]")
    page.browser.js("user.restart(500)")
    wait_for("a pair of the new credentials", lambda: page.browser.js("ownPair(user.pc)"))
    if page.browser.js("user.pc.currentRemoteDescription.sdp.match(/a=ice-ufrag:(.*)/)[1]") == before:
        raise call.Failed("the relay kept its ICE credentials")
    more_blocks(page, phone, "after an ICE restart")


def check_video(rig, page, phone):
    """The browser offers audio and video in a group, and the phone has no video: audio goes on alone."""
    page.browser.js(f"user.call('sip:phone@{DOMAIN}', true)")
    page.is_("state", "confirmed")
    both_hear(page, phone, "browser with video to phone")
    page.browser.js("user.session.terminate()")
    wait_for("the end at the phone", phone.phone.ended)
    wait_for("an end without calls", lambda: rig.calls() == [])
    phone.forget()


def check_two_browsers(rig, net, page):
    """Audio and video between them, each with all on one transport."""
    other = Page(net, user="carol", certificate=rig.certificate, place="b")
    other.is_("registration", "registered")
    other.browser.js("user.video = true; 0")
    page.browser.js(f"user.call('sip:carol@{DOMAIN}', true)")
    page.is_("state", "confirmed")
    both_hear(page, other, "browser to browser")
    wait_for("frames at both", lambda: all(p.report()["frames"] >= 30 for p in (page, other)))
    transports = [p.report()["transports"] for p in (page, other)]
    if transports != [1, 1]:
        raise call.Failed(f"transports of the browsers: {transports}")
    page.browser.js("user.session.terminate()")
    wait_for("an end without calls", lambda: rig.calls() == [])
    other.close()
    print("ok video between two browsers, bundled on both sides", flush=True)


def check_trickle(rig, net, phone):
    """A page whose SDP has no candidate. They come by INFO, to Kamailio, and never to the phone."""
    page = Page(net, user="carol", certificate=rig.certificate, options=browser.ChromiumAddress.options)
    page.is_("registration", "registered")
    page.browser.js("user.trickling = true; 0")
    for start in (lambda: page.browser.js(f"user.call('sip:phone@{DOMAIN}')"), lambda: phone.phone.tell(f"/dial sip:carol@{DOMAIN}")):
        start()
        page.is_("state", "confirmed")
        page.is_("told", "done")
        if page.browser.js("user.told") == "done 0" or not page.browser.js("user.canTrickle"):
            raise call.Failed(f"nothing trickled: {page.browser.js('user.told')}, {page.browser.js('user.canTrickle')}")
        both_hear(page, phone, "browser that trickles and phone")
        page.browser.js("user.session.terminate()")
        wait_for("the end at the phone", phone.phone.ended)
        wait_for("an end without calls", lambda: rig.calls() == [])
        phone.forget()
    if "candidate" in phone.phone.log():
        raise call.Failed("the phone got candidates")
    page.close()


def check_calls(rig, page, phone):
    page.browser.js(f"user.call('sip:phone@{DOMAIN}')")
    page.is_("state", "confirmed")
    both_hear(page, phone, "browser to phone")
    if rig.relay.name == "xcipherd":  # rtpengine loses about three packets
        check_restart(page, phone)
    check_hold(page, phone)
    page.browser.js("user.session.terminate()")
    wait_for("the end at the phone", phone.phone.ended)
    wait_for("an end without calls", lambda: rig.calls() == [])
    phone.forget()
    if rig.relay.name == "xcipherd":
        check_video(rig, page, phone)
    phone.phone.tell(f"/dial sip:alice@{DOMAIN}")
    page.is_("state", "confirmed")
    both_hear(page, phone, "phone to browser")
    phone.phone.tell("/hangup")
    page.is_("state", "ended")
    wait_for("an end without calls", lambda: rig.calls() == [])


def handshake(rig, origin):
    s = web.connect(rig.net.terminal["a"], (SERVER, 8080))
    s.settimeout(30)
    s.sendall((f"GET / HTTP/1.1\r\nHost: {SERVER}:8080\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
               f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: sip\r\nOrigin: {origin}\r\n\r\n").encode())
    line = s.recv(4096).split(b"\r\n")[0].decode()
    s.close()
    return line


def check_who_may_come(rig):
    if rig.certificate:
        return  # without TLS it is the same
    assert " 101 " in handshake(rig, "null")
    assert " 403 " in handshake(rig, "https://evil.example")
    print("ok a page of another origin is refused")


def check_registration(rig, net):
    wrong = Page(net, password="a guess", certificate=rig.certificate)
    wait_for("the refusal", lambda: wrong.browser.js("user.registration").startswith("failed"))
    wrong.close()
    assert rig.contacts() == 0
    print("ok a wrong password is refused")


def check_second_connection(rig, page):
    """The same instance by another connection, while the first is still open."""
    page.browser.js("window.first = user; 0")
    page.register("alice", USERS["alice"], call.TONE["a"])
    page.is_("registration", "registered")
    assert rig.contacts() == 1, rig.kam.rpc("ul.dump")
    page.browser.js("first.ua.transport.disconnect(); 0")
    print("ok a second connection of the same instance replaces the first contact")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--relay", choices=("rtpengine", "xcipherd"), default="rtpengine")
    p.add_argument("--module", choices=("stock", "ours"), default="stock")
    p.add_argument("--tls", action="store_true")
    args = p.parse_args()
    if args.module == "ours" and args.relay == "rtpengine":
        print("skipped: Debian's rtpengine does not know rtpp-flags, which our module sends")
        return 0
    has_tls = glob.glob("/usr/lib/*/kamailio/modules/tls.so")
    if args.tls and not has_tls:
        print("skipped: kamailio-tls-modules is not installed")
        return 0
    for path in (JSSIP, "/usr/bin/chromium", "/usr/bin/baresip", "/usr/sbin/kamailio", "/usr/share/kamailio/db_sqlite/usrloc-create.sql"):
        if not os.path.exists(path):
            print(f"skipped: {os.path.basename(path)} is not installed")
            return 0
    with netns.Net(call.PLACES) as net, tempfile.TemporaryDirectory(prefix="xc-websocket-") as folder:
        rig, phone = Rig(net, folder, args), None
        try:
            check_who_may_come(rig)
            check_registration(rig, net)
            page, phone = Page(net, certificate=rig.certificate), Phone(net)
            page.is_("registration", "registered")
            check_second_connection(rig, page)
            check_calls(rig, page, phone)
            if rig.relay.name == "xcipherd":
                check_two_browsers(rig, net, page)
            page.close()
            wait_for("the end of the contact", lambda: rig.contacts() == 0)
            print("ok a lost connection removes its contact")
            if rig.relay.name == "xcipherd":
                check_trickle(rig, net, phone)
        except BaseException:
            print(rig.kam.text()[-4000:], rig.relay.text()[-2000:], phone.phone.log()[-2500:] if phone else "", file=sys.stderr)
            raise
        assert rig.kam.stop() == 0
        rig.relay.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
