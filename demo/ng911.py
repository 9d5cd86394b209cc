#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Demonstrates emergency calls: a caller with a location, the proxies of a voice service provider (VSP), of the emergency network (ESRP)
and of a PSAP, a LoST server, xcipherd at the border, and two call takers.

ng911.py [--lost=async|stock]

SIP uses TLS on every hop, with certificates on both sides between servers. The caller speaks RTP in clear, the call takers DTLS-SRTP with
AES-256. Everything runs in network namespaces, which are removed at the end. Exit status 0 only if all steps worked."""
import argparse
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "t", "e2e"), os.path.join(ROOT, "demo")]

import dtls  # noqa: E402
import esinet  # noqa: E402
import netns  # noqa: E402
import relay  # noqa: E402
from baresip import wait_for  # noqa: E402

TERMINALS = ("caller", "taker1", "taker2")
HERE, THERE = (30.62, -96.34), (29.76, -95.37)
PACKETS = 25


def best_client():
    return "async" if os.path.exists(os.path.join(relay.BUILD, "xcipher_lost.so")) else "stock"


class Story:
    """Prints who did what and when. Times are seconds since the start."""

    def __init__(self, loud=True):
        self.start, self.loud = time.monotonic(), loud

    def tell(self, who, what, at=None):
        if self.loud:
            print(f"{(at or time.monotonic()) - self.start:8.3f} s  {who:<7}{what}", flush=True)


def talk(one, other):
    """Both send until each has received PACKETS more, with unchanged content."""
    for a, b in ((one, other), (other, one)):
        payload = os.urandom(160)

        def spoken(a=a, b=b, payload=payload):
            a.say(payload)
            return b.heard.count(payload) >= PACKETS
        wait_for("media one way", spoken)
        assert dtls.since(b.heard, payload) == {payload}, "media were changed"


def echoed(terminal):
    """Each packet comes back."""
    payload = os.urandom(160)

    def heard():
        terminal.say(payload)
        return terminal.heard.count(payload) >= PACKETS
    wait_for("the echo", heard)
    assert dtls.since(terminal.heard, payload) == {payload}, "the echo was changed"


def bars(dialog, rings):
    """The set-up delay by parts."""
    parts = [("TLS handshake of the caller", dialog.at["TLS with the VSP"]), ("VSP, ESRP, border and PSAP", rings - dialog.start - dialog.at["TLS with the VSP"]),
             ("180 back to the caller", dialog.at["180"] - (rings - dialog.start))]
    for name, seconds in parts:
        print(f"    {name:<29}{seconds * 1000:7.1f} ms  {'#' * max(1, round(seconds * 1000))}")
    print(f"    {'dialling to ringing':<29}{dialog.at['180'] * 1000:7.1f} ms")


def connected(network, story, place, taker, service="urn:service:sos", location=True, route=None):
    """A call that this taker must get. Returns the dialog and the taker's INVITE."""
    others = [t for t in network.takers if t is not taker]
    before, elsewhere = len(taker.media), [len(t.media) for t in others]
    dialog = network.caller.call(*place, service, location, route)
    story.tell("caller", f"dials {service}" + (f" at {place[0]}, {place[1]}" if location else " without a location"), dialog.start)
    code = dialog.answered()
    assert code == 200, (code, dialog.reply.first, *(p.text()[-3000:] for p in network.proxies()))
    rings, invite = taker.received[-1], taker.invites[-1]
    story.tell(taker.name, "rings", rings)
    story.tell("caller", "hears that it rings", dialog.start + dialog.at["180"])
    story.tell(taker.name, "answers", dialog.start + dialog.at["200"])
    wait_for("the taker's media", lambda: len(taker.media) == before + 1)
    assert [len(t.media) for t in others] == elsewhere, "another taker answered"
    assert "UDP/TLS/RTP/SAVP" in invite.sdp(), invite.sdp()
    taker.media[-1].keyed()
    talk(dialog.media, taker.media[-1])
    story.tell("border", f"{PACKETS} packets each way: caller RTP in clear, {taker.name} DTLS-SRTP with AES-256")
    return dialog, invite


def check_invite(dialog, invite, location=True):
    """What the call taker gets: identifiers, marks, the caller's location unchanged, and only DTLS-SRTP."""
    infos = ",".join(invite.all("Call-Info"))
    assert "purpose=emergency-CallId" in infos and "purpose=emergency-IncidentId" in infos, infos
    assert invite.get("Resource-Priority") == "esnet.1", invite.headers
    assert "index=1.1" in invite.get("History-Info"), invite.headers
    assert "UDP/TLS/RTP/SAVP" in invite.sdp() and "a=crypto" not in invite.sdp(), invite.sdp()
    if location:
        assert dialog.pidf.replace("\n", "\r\n") in invite.body and invite.get("Geolocation"), invite.body


def hang_up(network, story, dialog, taker):
    number = taker.byes
    dialog.end()
    wait_for("the BYE", lambda: taker.byes == number + 1)
    wait_for("the border forgets the call", lambda: not network.border.client.call("list")["calls"])
    story.tell("caller", "hangs up")


def play(network, story):
    one, two = network.takers
    near, far = network.lost.psap_at(*HERE), network.lost.psap_at(*THERE)
    story.tell("PSAPs", f"{near} has {one.name}; {far} and the default PSAP have {two.name}")
    for queue, taker in ((near, one), (far, two), ("default", two)):
        network.psap.rpc("htable.sets", "takers", queue, taker.uri())
    uri = f"sip:{near}@{esinet.PSAP}:5061;transport=tls"
    network.esrp.rpc("htable.sets", "divert", uri, f"sip:{far}@{esinet.PSAP}:5061;transport=tls")

    story.tell("", "--- 1. a call, routed by its location")
    dialog, invite = connected(network, story, HERE, one)
    check_invite(dialog, invite)
    if story.loud:
        bars(dialog, one.received[-1])
    hang_up(network, story, dialog, one)

    story.tell("", "--- 2. the same caller from another place")
    dialog, invite = connected(network, story, THERE, two)
    check_invite(dialog, invite)
    hang_up(network, story, dialog, two)

    story.tell("", "--- 3. the nearest PSAP is busy: diverted by policy")
    one.busy = True
    dialog, invite = connected(network, story, HERE, two)
    one.busy = False
    check_invite(dialog, invite)
    assert f"{near}@" in invite.get("History-Info") and "cause%3D486" in invite.get("History-Info"), invite.get("History-Info")
    story.tell("ESRP", f"History-Info: {invite.get('History-Info')}")
    hang_up(network, story, dialog, two)

    story.tell("", "--- 4. the operator closes it, the next one is dead, and the one after that hangs")
    dead, hung = (f"sip:{name}@{esinet.PSAP}:{port};transport=tls" for name, port in (("dead", 5999), ("hung", 5998)))
    silent = network.silent_server(5998)
    network.esrp.rpc("htable.sets", "state", uri, "closed")
    network.esrp.rpc("htable.sets", "divert", uri, dead)
    network.esrp.rpc("htable.sets", "divert", dead, hung)
    network.esrp.rpc("htable.sets", "divert", hung, f"sip:{far}@{esinet.PSAP}:5061;transport=tls")
    dialog, invite = connected(network, story, HERE, two)
    history = invite.get("History-Info")
    assert f"{near}@" in history and "cause%3D480" in history and "dead@" in history and "hung@" in history and "index=1.4" in history, history
    assert history.count("cause%3D503") == 2, history
    check_invite(dialog, invite)
    hang_up(network, story, dialog, two)
    network.esrp.rpc("htable.delete", "state", uri)
    silent.close()

    story.tell("", "--- 5. a dialled number, and a test call")
    dialog, invite = connected(network, story, THERE, two, f"sip:911@{esinet.VSP}")
    check_invite(dialog, invite)
    hang_up(network, story, dialog, two)
    test = network.caller.call(*THERE, "urn:service:test.sos")
    assert test.answered() == 200, test.reply.first
    echoed(test.media)
    story.tell("PSAP", "its xcipherd answers the test call, and the caller hears itself")
    test.end()
    wait_for("the end of the test", lambda: not network.border.client.call("list")["calls"] + network.tests.client.call("list")["calls"])

    story.tell("", "--- 6. a caller that has asked LoST itself: an ESRP, a dead one, and one that is not of the network")
    for where in (f"{esinet.ESRP}:5061", f"{esinet.ESRP}:5999", f"{esinet.HOST['taker2']}:5061"):
        dialog, invite = connected(network, story, HERE, one, route=f"sip:sos@{where};transport=tls")
        check_invite(dialog, invite)
        hang_up(network, story, dialog, one)

    story.tell("", "--- 7. without a location, and with no LoST server: the default route")
    dialog, invite = connected(network, story, HERE, two, location=False)
    check_invite(dialog, invite, False)
    hang_up(network, story, dialog, two)
    network.lost.stop()
    story.tell("LoST", "is stopped")
    place = (31.0, -100.0)
    dialog, invite = connected(network, story, place, two)
    check_invite(dialog, invite)
    hang_up(network, story, dialog, two)
    story.tell("", "--- records of the ESRP")
    records = [line for line in network.esrp.text().splitlines() if "incident=" in line]
    assert len(records) == 11, network.esrp.text()
    assert all("caller=sip:caller@vsp.example" in r and f"server={esinet.VSP}" in r and "id=" in r for r in records), records
    if story.loud:
        print("\n".join("    " + r.partition("start_time")[1] + r.partition("start_time")[2] for r in records))
    for p in network.proxies():
        assert str(HERE[0]) not in p.text(), f"the {p.name} logs locations"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lost", choices=("async", "stock"), default=best_client())
    options = p.parse_args()
    story = Story()
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder, netns.Net(TERMINALS) as net:
        story.tell("", f"starting the network, with the LoST client \"{options.lost}\"")
        network = esinet.Network(net, folder, options.lost, tests=True)
        try:
            play(network, story)
        except Exception:
            for proxy in network.proxies():
                print(f"--- {proxy.name}\n{proxy.text()[-4000:]}", file=sys.stderr)
            raise
        finally:
            network.close()
    print("demo: all steps worked")


if __name__ == "__main__":
    main()
