# SPDX-License-Identifier: GPL-2.0-or-later
"""Kamailio's stock rtpengine module: real phones (the demo's call, shorter), all of its functions,
and the statistics it reads from a reply. Also Debian's own ng client."""
import os
import struct
import subprocess
import sys
import tempfile

import ng
import relay
import sipp
from baresip import wait_for
from run import Skip
from test_module import BOTH, CALLEE, finish

sys.path.insert(0, os.path.join(relay.ROOT, "demo"))


def test_a_call_through_the_stock_module(net):
    import demo
    demo.TALK_SECONDS = 4
    with tempfile.TemporaryDirectory(prefix="xcipher-kamailio-") as folder:
        wrong = demo.judge(*demo.talk(net, folder, ["--log-level=4", "--opencl-timeout=20000"]))
    assert not wrong, wrong


# Names as in the stock module. The second group needs codecs or another server, and reports that.
DONE = ("block_media", "unblock_media", "block_dtmf", "unblock_dtmf", "silence_media", "unsilence_media", "start_recording", "stop_recording", "rtpengine_query", "stop_media",
        'play_dtmf("code=1")')
NOT_DONE = ("start_forwarding", "stop_forwarding", 'play_media("file=x")')
MOS = ("average", "min", "max", "average_packetloss", "average_jitter", "average_roundtrip", "average_samples", "min_at", "average_A", "average_samples_B")


def script():
    """(old, new) texts in kamailio-demo.cfg."""
    called = "".join(f"\t\t\t{f if '(' in f else f + '()'};\n\t\t\txlog(\"L_WARN\", \"test: {f.split('(')[0]} $rc\\n\");\n" for f in DONE + NOT_DONE)
    told = "".join(f'\t\t\txlog("L_WARN", "test: MOS {m} $avp(mos_{m})\\n");\n' for m in MOS)
    return [('loadmodule "tm.so"', 'loadmodule "kex.so"\nloadmodule "ctl.so"\nmodparam("ctl", "binrpc", XC_CTL)\nloadmodule "tm.so"'),
            ("RTP/SAVP SDES-only-AES_CM_128_HMAC_SHA1_32 SDES-pad", "RTP/AVP label=A"), ("RTP/SAVP SDES-only-AES_CM_128_HMAC_SHA1_80 SDES-pad", "label=B"),
            ('modparam("rr"', "".join(f'modparam("rtpengine", "mos_{m}_pv", "$avp(mos_{m})")\n' for m in MOS) +
             'modparam("rtpengine", "mos_A_label_pv", "$avp(A)")\nmodparam("rtpengine", "mos_B_label_pv", "$avp(B)")\nmodparam("rr"'),
            ("\t\troute(XCIPHER);\n\t\tt_relay();\n\t\texit;\n\t}\n\tt_check_trans",
             '\t\tif (is_method("BYE")) {\n\t\t\t$avp(A) = "A";\n\t\t\t$avp(B) = "B";\n' + called + "\t\t}\n\t\troute(XCIPHER);\n\t\tif (is_method(\"BYE\")) {\n" + told +
             "\t\t}\n\t\tt_relay();\n\t\texit;\n\t}\n\tt_check_trans")]


def terminal(net, name, address):
    """RTP and RTCP sockets of a terminal."""
    pair = [ng.socket_in(net.terminal[name]) for _ in range(2)]
    for i, s in enumerate(pair):
        s.bind((address, 9000 + i))
        s.settimeout(30)
    return pair


def report(kind, ssrc, about, more=b""):
    """A receiver or sender report with one block: an eighth of the packets is lost, 30 ms of jitter."""
    return struct.pack("!BBHI", 0x81, kind, 7 + len(more) // 4, ssrc) + more + struct.pack("!IIIIII", about, 32 << 24 | 4, 70000, 240, 0x11112222, 0)


def test_functions_and_statistics_of_the_stock_module(net):
    """Calls each function once. The statistics variables are filled from the reply to delete, after
    reports from terminals."""
    for program in ("/usr/sbin/kamailio", "/usr/bin/sipp"):
        if not os.access(program, os.X_OK):
            raise Skip(f"{program} is not installed")
    body = sipp.sdp(None).replace("[media_port]", "9000")
    with tempfile.TemporaryDirectory(prefix="xcipher-kamailio-") as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", f"--recording-dir={folder}", addresses=BOTH).wait_ready()
        kam = sipp.Kamailio(net, folder, example="kamailio-demo.cfg", swap=script())
        near, far = terminal(net, "caller", "10.200.1.2"), terminal(net, "callee", "10.200.2.2")
        b = sipp.Sipp(net, folder, "callee", sipp.callee_again([body], ["RTP/AVP"]), "-m", "1", "-p", "5060")
        a = sipp.Sipp(net, folder, "caller", sipp.caller_again([body], CALLEE, None), "10.200.1.1:5060", "-m", "1", "-p", "5060")
        calls = wait_for("the call", lambda: daemon.client.call("list")["calls"])

        def ports():
            streams = [s for t in daemon.client.call("query", call_id=calls[0])["tags"].values() for m in t["medias"] for s in m["streams"]]
            return {(s["endpoint"]["address"], "RTCP" in s["flags"]): s["local port"] for s in streams if "endpoint" in s}

        to = wait_for("both sides' addresses", lambda: len(ports()) == 4 and ports())
        sides = ((near, "10.200.1.2", "10.200.1.1", 7), (far, "10.200.2.2", "10.200.2.1", 9))
        for pair, ip, gateway, ssrc in sides:
            pair[0].sendto(struct.pack("!BBHII", 0x80, 0, 1, 160, ssrc) + bytes(160), (gateway, to[ip, False]))
        for (pair, ip, gateway, ssrc), about in zip(sides, (9, 7)):
            pair[1].sendto(report(200, ssrc, about, struct.pack("!IIIII", 0x1111, 0x22220000, 160, 1, 160)), (gateway, to[ip, True]))
        assert len(far[1].recv(1500)) == len(near[1].recv(1500)) == 52
        a.hang_up(net, wait_for("the ACK", b.established))
        finish(a, 1)
        finish(b, 1)
        told = dict(line.split("test: ")[1].strip().rsplit(" ", 1) for line in kam.text().splitlines() if "test: " in line)
        assert [told[f.split("(")[0]] for f in DONE] == ["1"] * len(DONE) and [told[f.split("(")[0]] for f in NOT_DONE] == ["-1"] * len(NOT_DONE), told
        empty = [m for m in MOS if told["MOS " + m] in ("<null>", "")]
        print({m: told["MOS " + m] for m in MOS})
        assert not empty, (empty, told)
        wait_for("the recording", lambda: any(f.endswith(".pcap") for f in os.listdir(folder)))
        assert kam.stop() == 0
        daemon.stop()


def test_debians_own_ng_client(net):
    client = "/usr/bin/rtpengine-ng-client"
    if not os.access(client, os.X_OK):
        raise Skip("rtpengine-utils is not installed")
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()

    def run(*args):
        return subprocess.run(["ip", "netns", "exec", net.gateway, client, "--proxy-address=127.0.0.1", "--proxy-port=22222", *args], capture_output=True,
                              text=True, timeout=60, check=False).stdout

    assert "pong" in run("ping"), run("ping")
    offer = run("offer", "--call-id=perl", "--from-tag=f", "--sdp=v=0\no=- 1 1 IN IP4 10.200.1.2\ns=-\nc=IN IP4 10.200.1.2\nt=0 0\n"
                "m=audio 4000 RTP/AVP 0\n")
    assert "New SDP" in offer and "c=IN IP4 10.200.1.1" in offer, offer
    assert "perl" in run("list")
    assert "protocol => 'RTP/AVP'" in run("query", "--call-id=perl")
    assert "tags =>" in run("delete", "--call-id=perl", "--delete-delay=0")
    assert daemon.client.call("list")["calls"] == []
    status = daemon.stop()
    assert status == 0, daemon.text()
