# SPDX-License-Identifier: GPL-2.0-or-later
"""Real calls through Debian's Kamailio, each with the stock module and with ours. test_kamailio.py
and test_module.py have the plain call, test_edge.py has RTP to SRTP with voices."""
import contextlib
import os
import re
import signal
import tempfile
import time

import hold
import relay
import sipp
from baresip import Phone, wait_for
from run import Skip, cases, punctual
from test_module import BOTH, CALLEE, S32, S80, finish, needs, quoted

FULL = os.environ.get("FULL", "")
BOTH_MODULES = cases(("stock",), ("ours",))
SRTP = ("RTP/SAVP SDES-pad ICE=remove replace-origin direction=caller direction=callee", "SDES-pad ICE=remove replace-origin")
TO_32 = ("RTP/SAVP SDES-only-AES_CM_128_HMAC_SHA1_32 SDES-pad ICE=remove replace-origin direction=caller direction=callee", SRTP[1])


def kamailio(net, folder, how, flags, nodes="udp:127.0.0.1:22222", swap=(), **defines):
    if how == "ours":
        return sipp.Kamailio(net, folder, swap=list(swap), XC_OFFER_FLAGS=quoted(flags[0]), XC_ANSWER_FLAGS=quoted(flags[1]), XC_NODES=quoted(nodes),
                             **defines)
    offer, answer = "RTP/SAVP SDES-only-AES_CM_128_HMAC_SHA1_32 SDES-pad ICE=remove replace-origin direction=caller direction=callee", \
        "RTP/SAVP SDES-only-AES_CM_128_HMAC_SHA1_80 SDES-pad ICE=remove replace-origin"
    return sipp.Kamailio(net, folder, example="kamailio-demo.cfg", swap=[
        (offer, flags[0]), (answer, flags[1]), ('loadmodule "tm.so"', 'loadmodule "kex.so"\nloadmodule "ctl.so"\nmodparam("ctl", "binrpc", XC_CTL)\nloadmodule "tm.so"'),
        ('"udp:127.0.0.1:22222"', quoted(nodes)), *[(a, b.replace("xcipher_", "rtpengine_")) for a, b in swap]])


def only_offered(daemon, call_id):
    return "" in daemon.client.call("query", call_id=call_id).get("tags", {"": "gone since"})


@contextlib.contextmanager
def gateway(net, how, flags=SRTP, addresses=BOTH, options=(), late_offers=False, **kw):
    """Kamailio and xcipherd. At the end no call is left, no process has crashed, and Kamailio
    logged no errors. late_offers: calls with only an offer may be left. A SIP worker delayed by
    a dead node may send its offer after another worker completed the repeated INVITE."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", *options, addresses=addresses).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-proven-") as folder:
        kam = kamailio(net, folder, how, flags, **kw)
        kam.folder, kam.daemon = folder, daemon
        yield kam
        wait_for("an end without calls", lambda: not [c for c in daemon.client.call("list")["calls"] if not (late_offers and only_offered(daemon, c))])
        text = kam.text()
        assert kam.stop() == 0 and "CRITICAL" not in text, text[-3000:]
    assert daemon.stop() == 0, daemon.text()


def answered(net, kam, scenario, *args):
    return sipp.Sipp(net, kam.folder, "callee", scenario, "-m", "1", "-p", "5060", *args)


def call(net, kam, scenario, *args):
    return sipp.Sipp(net, kam.folder, "caller", scenario, "10.200.1.1:5060", "-m", "1", "-p", "5060", *args)


def streams(kam):
    """For the only call: address to (protocol, suite) of its RTP streams. Empty without a call."""
    calls = kam.daemon.client.call("list")["calls"]
    if len(calls) != 1:
        return {}
    query = kam.daemon.client.call("query", call_id=calls[0])
    return {s["endpoint"]["address"]: (m["protocol"], s.get("crypto suite", "none")) for t in query["tags"].values() for m in t["medias"]
            for s in m["streams"] if "RTP" in s["flags"] and "endpoint" in s}


def speak(kam, caller, callee):
    """Waits until the two sides speak these suites."""
    want = {"10.200.1.2": caller, "10.200.2.2": callee}
    wait_for(f"streams {want}", lambda: {ip: suite for ip, (_, suite) in streams(kam).items()} == want)


def goes_on(net, a, b, number=1):
    """The caller's wait (pause_ms=None) for the callee's ACK with this number: the INVITE is then
    complete."""
    wait_for("the ACK", lambda: b.acks() >= number)
    a.hang_up(net, b.established(), number)


def playing(folder, scenario, after):
    """Inserts RTP after this step of the scenario."""
    audio = os.path.join(folder, "audio.ulaw")
    with open(audio, "wb") as f:
        f.write(bytes(range(256)) * 200)
    assert after in scenario
    return scenario.replace(after, f'{after}<nop><action><exec rtp_stream="{audio},-1,0"/></action></nop>', 1)


@BOTH_MODULES
def test_early_media(net, how):
    """The answer comes in a 183, and media flow before the call is accepted: from RTP to SRTP."""
    with gateway(net, how, ("RTP/AVP ICE=remove replace-origin direction=caller direction=callee", SRTP[1])) as kam:
        b = answered(net, kam, playing(kam.folder, sipp.callee_again([sipp.sdp(None)], ["c=IN IP4 10.200.2.1"], early_ms=12000), "]]></send>"))
        a = call(net, kam, sipp.caller_again([sipp.sdp(S80)], CALLEE, None))
        wait_for("encrypted packets before an answer", lambda: kam.daemon.statistics()["jobs"] > 10 and asked(kam, "answer") == 1)
        speak(kam, S80, "none")
        goes_on(net, a, b)
        assert asked(kam, "answer") == 2, "with the 200"
        finish(a, 1)
        finish(b, 1)


@BOTH_MODULES
def test_forking_to_two_phones(net, how):
    """Both phones ring, one answers, the other is cancelled."""
    fork = ('	if (is_method("INVITE")) {\n		record_route();', '	if (is_method("INVITE")) {\n		append_branch("sip:callee@10.200.2.2:5070");\n		record_route();') if how == "stock" else \
        ('			record_route();', '			append_branch("sip:callee@10.200.2.2:5070");\n			record_route();')
    with gateway(net, how, TO_32, swap=[('loadmodule "pv.so"', 'loadmodule "pv.so"\nloadmodule "corex.so"'), fork]) as kam:
        other = sipp.Sipp(net, kam.folder, "callee", sipp.callee_cancelled(), "-m", "1", "-p", "5070")
        b = answered(net, kam, sipp.callee_again([sipp.sdp(S32)], ["crypto:"], early_ms=400))
        a = call(net, kam, sipp.caller_again([sipp.sdp(S80)], CALLEE, None))
        speak(kam, S80, S32)
        goes_on(net, a, b)
        finish(a, 1)
        finish(b, 1)
        finish(other, 1)


@BOTH_MODULES
def test_hold_and_resume(net, how):
    with gateway(net, how, TO_32) as kam:
        hold, held, talk = sipp.sdp(S80) + "\na=sendonly", sipp.sdp(S32) + "\na=recvonly", sipp.sdp(S80) + "\na=sendrecv"
        b = answered(net, kam, sipp.callee_again([sipp.sdp(S32), held, sipp.sdp(S32)], ["crypto:", "a=sendonly", "a=sendrecv"]))
        finish(call(net, kam, sipp.caller_again([sipp.sdp(S80), hold, talk], CALLEE)), 1)
        finish(b, 1)


@BOTH_MODULES
def test_reinvite_to_another_suite(net, how):
    with gateway(net, how, TO_32) as kam:
        b = answered(net, kam, sipp.callee_again([sipp.sdp(S32)] * 2, ["crypto:", "crypto:"]))
        a = call(net, kam, sipp.caller_again([sipp.sdp(S80), sipp.sdp("AEAD_AES_256_GCM")], CALLEE, None))
        speak(kam, S80, S32)
        goes_on(net, a, b)
        speak(kam, "AEAD_AES_256_GCM", S32)
        goes_on(net, a, b, 2)
        finish(a, 1)
        finish(b, 1)


def asked(kam, command):
    """Number of these requests that the daemon received."""
    return int(kam.daemon.client.call("statistics")["statistics"]["controlstatistics"][f"total{command}count"])


def asked_so_far(kam, how, *wanted):
    """Checks the numbers of offers, answers and deletes. A stock worker waits for the daemon before it
    creates the transaction, so messages that a busy machine repeats cause further requests."""
    got = tuple(asked(kam, command) for command in ("offer", "answer", "delete"))
    assert got == wanted or how == "stock" and all(g >= w for g, w in zip(got, wanted)), got


@cases(("stock",), ("ours",), ("ours, by manage",))
def test_a_refused_or_cancelled_reinvite_leaves_the_call(net, how):
    """A cancelled re-INVITE changes nothing, either. The daemon gets a delete for the BYE only."""
    swap = []
    if "manage" in how:
        swap = [('include_file "xcipher-module.cfg"', 'failure_route[MANAGE] {\n\txcipher_manage("nowait");\n}\n\ninclude_file "xcipher-module.cfg"'),
                ("			route(XCIPHER_END);", '			xcipher_manage("nowait");'), ("	if (!t_relay()) {", '	t_on_failure("MANAGE");\n	if (!t_relay()) {')]
    with gateway(net, "ours" if "ours" in how else how, TO_32, swap=swap) as kam:
        b = answered(net, kam, sipp.callee_refuses_again(S32))
        finish(call(net, kam, sipp.caller_refused_again(S80, CALLEE)), 1)
        finish(b, 1)
        asked_so_far(kam, how, 2, 1, 1)
        b = answered(net, kam, sipp.callee_cancelled_again(S32))
        finish(call(net, kam, sipp.caller_cancels_again(S80, CALLEE)), 1)
        finish(b, 1)
        asked_so_far(kam, how, 4, 2, 2)


@cases(("stock", "to SRTP"), ("stock", "to RTP"), ("ours", "to SRTP"), ("ours", "to RTP"))
def test_rtp_phone_and_srtp_phone(net, how, way):
    flags = SRTP if way == "to SRTP" else ("RTP/AVP ICE=remove replace-origin direction=caller direction=callee", SRTP[1])
    suites = (None, S32) if way == "to SRTP" else (S80, None)
    with gateway(net, how, TO_32 if way == "to SRTP" else flags) as kam:
        b = answered(net, kam, sipp.callee_again([sipp.sdp(suites[1])], ["RTP/SAVP" if suites[1] else "RTP/AVP"]))
        a = call(net, kam, sipp.caller_again([sipp.sdp(suites[0])], CALLEE, None))
        speak(kam, *(s or "none" for s in suites))
        goes_on(net, a, b)
        finish(a, 1)
        finish(b, 1)


@BOTH_MODULES
def test_ipv4_to_ipv6(net, how):
    """The caller's media use IPv4, the callee's IPv6."""
    flags = (TO_32[0] + " address-family=IP6", TO_32[1] + " address-family=IP4")
    with gateway(net, how, flags, addresses=("caller/10.200.1.1", "callee/fd00:2::1")) as kam:
        b = answered(net, kam, sipp.callee_again([sipp.sdp(S32)], ["c=IN IP6 fd00:2::1"]), "-mi", "fd00:2::2")
        a = call(net, kam, sipp.caller_again([sipp.sdp(S80)], CALLEE, None))
        wait_for("both families", lambda: set(streams(kam)) == {"10.200.1.2", "fd00:2::2"})
        goes_on(net, a, b)
        finish(a, 1)
        finish(b, 1)


@BOTH_MODULES
def test_cancelled_and_failed_calls_leave_nothing(net, how):
    with gateway(net, how, TO_32) as kam:
        busy = sipp.Sipp(net, kam.folder, "callee", sipp.callee(None, 486), "-p", "5060", "-m", "5")
        a = sipp.Sipp(net, kam.folder, "caller", sipp.caller(S80, CALLEE, 486), "10.200.1.1:5060", "-m", "5", "-p", "5060")
        finish(a, 5)
        finish(busy, 5)
        ringing = answered(net, kam, sipp.callee_cancelled(rings=False))
        a = sipp.Sipp(net, kam.folder, "caller", sipp.gives_up(S80, CALLEE, "X-Nothing: 1", 300), "10.200.1.1:5060", "-m", "1", "-p", "5090")
        finish(a, 1)
        finish(ringing, 1)


def phone(net, kam, name, ns, address, proxy, tone, port=5060, **kw):
    account = f'<sip:{name}@{address}:{port}>;regint=0;mediaenc=srtp-mand;answermode=auto;outbound="sip:{proxy}:5060;transport=udp"'
    return Phone(net, kam.folder, name, ns, address, account, tone, port=port, **kw)


@BOTH_MODULES
def test_transfer(net, how):
    """Three real phones: a calls b, b transfers a to c (REFER). Then a and c receive each other."""
    with gateway(net, how, SRTP) as kam:
        b = phone(net, kam, "b", "callee", "10.200.2.2", "10.200.2.1", 1000)
        c = phone(net, kam, "c", "callee", "10.200.2.2", "10.200.2.1", 2000, port=5170)
        a = phone(net, kam, "a", "caller", "10.200.1.2", "10.200.1.1", 440, dial="sip:b@10.200.2.2:5060")
        a.talks()
        b.talks()
        b.tell("/transfer sip:c@10.200.2.2:5170")
        c.talks()
        for p in (a, c):
            p.records()
        assert len(kam.daemon.client.call("list")["calls"]) >= 1
        for p in (a, b, c):
            p.stop()
        assert c.heard(a) > 0.9, (c.heard(a), a.log()[-2000:])


class SecondDaemon(relay.Xcipherd):
    ng_port = 22223


def offered(net, kam, rate, seconds, port=5060, suite=S80, extra=(), text=None):
    """Calls at a rate; (made, failed, per second)."""
    number = int(rate * seconds)
    start = time.monotonic()
    s = sipp.Sipp(net, kam.folder, "caller", text or sipp.caller(suite, CALLEE, 200, "\n".join(extra), 200), "10.200.1.1:5060", "-m", str(number), "-r", str(rate),
                  "-l", "3000", "-p", str(port))
    return s, number, start


def result(s, number, start, seconds=60):
    good, bad, again, ms = s.wait(seconds)[1]
    return {"calls": number, "answered": good, "failed": bad, "sent again": again, "ms until the answer": round(ms, 1),
            "per second": round(good / (time.monotonic() - start), 1)}


def ends_of_lost(kam, how="ours"):
    """Call-IDs of answers refused by our module, or the stock route file, because their node was
    gone."""
    line = r"call (\S+): its answer is refused, 503 " if how == "ours" else r"SDP of the reply 200 refused, call (\S+)"
    return set(re.findall(line, kam.text()))


def test_a_call_whose_node_dies_before_its_answer(net):
    """The callee has the ports of a dead node, and accepts. It gets ACK and BYE, the caller an
    error. The next call is not affected."""
    needs()
    second = SecondDaemon(net, "--engine=serial", "--delete-delay=0", "--listen-ng=127.0.0.1:22223", "--port-min=45000", "--port-max=49999", addresses=BOTH).wait_ready()
    with gateway(net, "ours", TO_32, nodes="udp:127.0.0.1:22222 udp:127.0.0.1:22223") as kam:
        held = []
        while not held:  # until the second node has the call
            b = answered(net, kam, sipp.callee(S32))
            b.process.send_signal(signal.SIGSTOP)  # its INVITE waits until the node continues
            a = call(net, kam, sipp.caller(S80, CALLEE, talk_ms=0))
            wait_for("an offer", lambda: [d for d in (kam.daemon, second) if d.client.call("list")["calls"]])
            held = second.client.call("list")["calls"]
            if held:
                second.process.send_signal(signal.SIGKILL)
                second.process.wait()
            b.process.send_signal(signal.SIGCONT)
            if not held:
                finish(a, 1)
            finish(b, 1)  # it requires ACK and BYE
        assert a.wait()[0] == 1 and ends_of_lost(kam) == set(held), kam.text()
        b = answered(net, kam, sipp.callee(S32))
        finish(call(net, kam, sipp.caller(S80, CALLEE, talk_ms=0)), 1)
        finish(b, 1)
        second.client.close()


@punctual  # a node is dead after 0.1 s without a reply
@BOTH_MODULES
def test_a_node_killed_in_mid_load(net, how):
    """Two daemons share the load, one is killed: new calls go to the other. A call is lost if the
    dead node had answered its offer, because the callee has that node's ports. Our module ends
    it on both sides; the stock routes refuse the answer."""
    needs()
    second = SecondDaemon(net, "--engine=serial", "--delete-delay=0", "--listen-ng=127.0.0.1:22223", "--port-min=45000", "--port-max=49999", addresses=BOTH).wait_ready()
    with gateway(net, how, TO_32, nodes="udp:127.0.0.1:22222 udp:127.0.0.1:22223", late_offers=how == "stock",
                 **({"XC_TIMEOUT": 100} if how == "ours" else {})) as kam:
        sipp.Sipp(net, kam.folder, "callee", sipp.callee(S32), "-p", "5060")
        load = offered(net, kam, 25, 3)

        def shared():
            n = [len(d.client.call("list")["calls"]) for d in (kam.daemon, second)]
            return all(n) and n

        shares = wait_for("calls on both", shared)
        second.process.send_signal(signal.SIGKILL)
        figures = result(*load)
        lost = ends_of_lost(kam, how)
        print(f"{how}: {shares} calls on the two nodes when one was killed, {len(lost)} of them not answered yet; {figures}")
        # The kill came some time after the nodes were queried, so a few more calls may have begun
        # there.
        assert figures["failed"] == len(lost) <= shares[1] + 5, (figures, lost)
        assert figures["answered"] + figures["failed"] == figures["calls"], figures
        second.client.close()


@punctual  # a node is silent after 0.2 s without a reply
@BOTH_MODULES
def test_a_node_that_never_answers_call_rate(net, how):
    """One of two nodes is silent for a while, and half of the calls try it. Measures answered calls
    per second before, during and after. With our module no SIP worker waits for the node, with
    the stock one they do."""
    needs()
    second = SecondDaemon(net, "--engine=serial", "--delete-delay=0", "--listen-ng=127.0.0.1:22223", "--port-min=45000", "--port-max=49999", addresses=BOTH).wait_ready()
    ours = {"XC_CHILDREN": 1, "XC_TIMEOUT": 200, "XC_PING_INTERVAL": 1, "XC_DOWN_TIME": 1, "XC_ASYNC_REPLIES": 1}
    stock = {"swap": [('modparam("rr"', 'modparam("rtpengine", "rtpengine_tout_ms", 200)\nmodparam("rtpengine", "rtpengine_disable_tout", 1)\nmodparam("rr"'),
                      ("children=2", "children=1")]}
    with gateway(net, how, TO_32, nodes="udp:127.0.0.1:22222 udp:127.0.0.1:22223", **(ours if how == "ours" else stock)) as kam:
        sipp.Sipp(net, kam.folder, "callee", sipp.callee(S32), "-p", "5060")
        rates, polls = [], []
        for number in (None, signal.SIGSTOP, signal.SIGCONT):
            if number:
                second.process.send_signal(number)
            with contextlib.ExitStack() as stack:
                sleeps = [stack.enter_context(hold.Sleeps(pid)) for pid in kam.sip_workers()]
                rates.append(result(*offered(net, kam, 40, 1.5)))
            polls.append({s for w in sleeps for s in w.seen if "poll" in s})
        for when, figures in zip(("before", "during", "after"), rates):
            print(f"{how}, {when}: {figures}")
            assert figures["failed"] == 0 and figures["answered"] == figures["calls"], rates
        # A SIP worker of the stock module polls for each reply. While a node is silent for 0.2 s
        # each time, all other calls wait. Our workers wait only for the next SIP message.
        if how == "ours":
            assert kam.counter("failovers") and not any(polls), polls
        elif hold.shows_waits():
            assert polls[1], "the control: such waits are seen"
    second.stop()


@BOTH_MODULES
def test_emergency_calls_at_the_load_limit(net, how):
    """A daemon with room for one call refuses the second, unless the script marks it as an
    emergency. (Our module detects emergencies itself: test_module.py.)"""
    word = " \\$hdr(X-Kind)" if how == "stock" else " $hdr(X-Kind)"  # there it is inside a substitution
    with gateway(net, how, (SRTP[0] + word, SRTP[1]), options=("--max-sessions=1",)) as kam:
        b = sipp.Sipp(net, kam.folder, "callee", sipp.callee(S80), "-p", "5060")
        first = call(net, kam, sipp.caller(S80, CALLEE, 200, "X-Kind: symmetric", None))
        wait_for("the first call", lambda: len(streams(kam)) == 2)
        ids = wait_for("the ACK", b.established)
        for kind, code in (("symmetric", 503), ("emergency", 200)):
            finish(sipp.Sipp(net, kam.folder, "caller", sipp.caller(S80, CALLEE, code, "X-Kind: " + kind), "10.200.1.1:5060", "-m", "1", "-p", "5070"), 1)
        assert kam.daemon.statistics()["limits"]["emergency calls"] == 1
        first.hang_up(net, ids)
        finish(first, 1)


DEBIANS = "/etc/kamailio/kamailio.cfg"
LINES = {
    "stock": """loadmodule "rtpengine.so"
modparam("rtpengine", "rtpengine_sock", "udp:127.0.0.1:22222")
#!substdef "!XC_OFFER_FLAGS!%s!g"
#!substdef "!XC_ANSWER_FLAGS!%s!g"
#!define XC_OWN_REPLY_ROUTE
include_file "xcipher-rtpengine.cfg"
""",
    "ours": """loadmodule "xcipher.so"
modparam("xcipher", "node", "udp:127.0.0.1:22222")
#!define XC_OFFER_FLAGS "%s"
#!define XC_ANSWER_FLAGS "%s"
include_file "xcipher-module.cfg"
route[XCIPHER_RELAY] {
	if (!t_relay()) {
		sl_reply_error();
	}
	exit;
}
"""}

# That configuration has its own reply_route, with one return.
OWN_REPLIES = ("\t\tdrop;\n\t}\n\treturn;\n", "\t\tdrop;\n\t}\n\troute(XCIPHER_REPLY);\n\treturn;\n")


@BOTH_MODULES
def test_in_the_configuration_that_debian_installs(net, how):
    """Includes our routes in a foreign configuration and calls them once, before its t_relay()."""
    needs()
    if not os.path.exists(DEBIANS):
        raise Skip(f"no {DEBIANS}")
    relayed = "\tif (!t_relay()) {\n\t\tsl_reply_error();\n\t}\n\texit;"
    ends = "" if how == "stock" else '\tif (is_method("CANCEL")) {\n\t\troute(XCIPHER_END);\n\t}\n'
    daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-proven-") as folder:
        kam = sipp.Kamailio(net, folder, example=DEBIANS, swap=[
            ('loadmodule "ctl.so"', 'loadmodule "ctl.so"\nmodparam("ctl", "binrpc", XC_CTL)\nmhomed=1\nlisten=udp:10.200.1.1:5060\nlisten=udp:10.200.2.1:5060'),
            (relayed, ends + "\troute(XCIPHER);\n" + relayed),
            *([OWN_REPLIES] if how == "stock" else []),
            ("\nrequest_route {", "\n" + LINES[how] % TO_32 + "\nrequest_route {")])
        kam.folder, kam.daemon = folder, daemon
        kam.rpc("ul.add", "location", "callee", "sip:callee@10.200.2.2:5060", "3600", "1.0", ".", "0", "0", "4294967295")
        registered = CALLEE.replace("10.200.2.2", "10.200.1.1")
        b = answered(net, kam, sipp.callee_again([sipp.sdp(S32)], ["crypto:"], early_ms=300))
        a = call(net, kam, sipp.caller_again([sipp.sdp(S80)], registered, None))
        speak(kam, S80, S32)
        goes_on(net, a, b)
        finish(a, 1)
        finish(b, 1)
        ringing = answered(net, kam, sipp.callee_cancelled(rings=False))
        finish(sipp.Sipp(net, folder, "caller", sipp.gives_up(S80, registered, "X-Nothing: 1", 300), "10.200.1.1:5060", "-m", "1",
                         "-p", "5090"), 1)
        finish(ringing, 1)
        wait_for("an end without calls", lambda: daemon.client.call("list")["calls"] == [])
        assert kam.stop() == 0, kam.text()[-3000:]
    daemon.stop()


@BOTH_MODULES
def test_fifty_calls_per_second(net, how):
    """50 attempts per second, a fifth of them with media, which goes from RTP to SRTP: a few seconds; FULL=1: two minutes, FULL=N: N seconds."""
    seconds = 2 if not FULL else 120 if FULL == "1" else int(FULL)
    with gateway(net, how, TO_32) as kam:
        # No 180: Kamailio's workers may send it after the 200, which sipp counts as a failure.
        sipp.Sipp(net, kam.folder, "callee", sipp.callee(S32, rings=False), "-p", "5060")
        scenario = sipp.caller(None, CALLEE, 200, "", 1000)
        talk = playing(kam.folder, scenario, scenario[:scenario.index('<pause milliseconds="1000"/>')])
        quiet, loud = offered(net, kam, 40, seconds), offered(net, kam, 10, seconds, port=5090, text=talk)
        figures = result(*quiet, seconds + 60), result(*loud, seconds + 60)
        packets = kam.daemon.statistics()
        print(f"{how}, {seconds} s: {figures[0]}; with media: {figures[1]}; {packets['jobs']} packets encrypted")
        for f in figures:
            assert f["failed"] == 0 and f["answered"] == f["calls"], (figures, quiet[0].text(), loud[0].text())
        assert packets["jobs"] > 10 * seconds * 5, packets
