# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports about a call: the closing line and its record, troubles with their cause, and the explanation."""
import json
import os
import re
import signal
import tempfile

import calls
import relay
from baresip import wait_for
from test_ctl import ctl, said
from test_ctl_find import talking
from test_ng import Phone, start
from test_redis import SERIAL, again, kill, rig, settled
from test_relay import finish

CM80, CM32 = calls.SHORT["80"], calls.SHORT["32"]


def no_keys(text, *talk):
    for call in talk:
        for key in (*call.key, *call.wire):
            assert not key or (key.hex() not in text and key[:12] not in text.encode()), "a key"
    assert "inline:" not in text


def records(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def test_the_closing_line_and_record(net):
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/cdr.json"
        daemon = relay.Xcipherd(net, "--engine=serial", "--cdr-file=" + path).wait_ready()
        talk = calls.Call(daemon.client, 0, "80", "plain").setup()
        result = calls.load(net, relay.BUILD, [talk], rate=50, seconds=1)
        assert result, result
        never = calls.Call(daemon.client, 1, "80", "32")
        calls.ok(daemon.client.call("offer", call_id="never \"1\" {", from_tag="a", sdp=never.body(0)))
        talk.delete()
        calls.ok(daemon.client.call("delete", call_id="never \"1\" {", from_tag="a", delete_delay=0))
        wait_for("two records", lambda: len(records(path)) == 2)
        line = [x for x in daemon.text().splitlines() if "call ended" in x]
        assert len(line) == 2 and f'notice: call-id "{talk.id}": call ended: deleted by command; ' in line[0], line
        assert re.search(rf"; audio PCMU/8000 {CM80} in [1-9]\d* out [1-9]\d*.*; audio PCMU/8000 plain in [1-9]\d* out [1-9]\d*", line[0]), line
        assert "never answered" in line[1], line
        first, second = records(path)
        media = [s["media"][0] for s in first["sides"]]
        assert first["call_id"] == talk.id and first["reason"] == "deleted" and first["answered_ms"] >= first["created_ms"] > 1e12, first
        assert [(m["suite_in"], m["suite_out"], m["codec"]) for m in media] == [(CM80, CM80, "PCMU/8000"), ("plain", "plain", "PCMU/8000")], media
        assert media[0]["packets_in"] and media[0]["packets_in"] == media[1]["packets_out"] and media[0]["remote"].startswith("10.200.1.2:"), media
        assert second["call_id"] == "never \"1\" {" and second["answered_ms"] == 0, second
        no_keys(daemon.text() + open(path, encoding="utf-8").read(), talk)
        # Rotation: the file is moved, and the next record goes to a new one.
        os.rename(path, path + ".1")
        os.kill(daemon.pid(), signal.SIGHUP)
        wait_for("a new file", lambda: os.path.exists(path))
        calls.Call(daemon.client, 2, "80", "32").setup().delete()
        wait_for("its record", lambda: len(records(path)) == 1)
        assert len(records(path + ".1")) == 2
        # Calls in progress when the daemon stops.
        last = calls.Call(daemon.client, 3, "80", "32").setup()
        finish(daemon)
        assert [r["reason"] for r in records(path) if r["call_id"] == last.id] == ["stopped"], records(path)


def test_a_record_that_cannot_be_written(net):
    """/dev/full stands for a full disk: calls continue, and the log reports lost records."""
    daemon = relay.Xcipherd(net, "--engine=serial", "--cdr-file=/dev/full").wait_ready()
    calls.Call(daemon.client, 0, "80", "32").setup().delete()
    wait_for("a word", lambda: "--cdr-file=/dev/full: No space left on device: the record of a call is lost" in daemon.text())
    calls.Call(daemon.client, 1, "80", "32").setup().delete()
    finish(daemon)
    p = relay.Xcipherd(net, "--engine=serial", "--cdr-file=/nowhere/at/all")
    assert p.process.wait(60) == 1 and "--cdr-file=/nowhere/at/all: No such file or directory" in p.text(), p.text()


def test_one_line_per_command(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    talk = calls.Call(daemon.client, 0, "80", "32").setup()
    daemon.client.call("query", call_id=talk.id)
    said(net, "calls")
    talk.delete()
    lines = [x for x in daemon.text().splitlines() if talk.id in x]
    for command in ("offer", "answer", "delete"):
        assert len([x for x in lines if re.search(f"info: .*: {command}: ok, from 127.0.0.1:", x)]) == 1, lines
    assert len(lines) == 4, lines
    finish(daemon)


def test_troubles_are_told_with_their_cause(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    wrong = calls.Call(daemon.client, 0, "80", "32").setup()
    one_way = calls.Call(daemon.client, 1, "plain", "plain").setup()
    good = calls.Call(daemon.client, 2, "plain", "plain").setup()
    wrong.key[0] = wrong.keys[0][0] = os.urandom(30)  # differs from the SDP
    with talking(net, one_way), talking(net, good), talking(net, good, side=1):
        calls.load(net, relay.BUILD, [wrong], rate=100, seconds=1)
        wait_for("bad tags", lambda: re.search(rf'notice: call-id "{wrong.id}", tag "a{wrong.id}", media 1: bad-tags: .*likely cause: key mismatch in \d+ packet', daemon.text()))
        wait_for("one-way media", lambda: re.search(rf'notice: call-id "{one_way.id}", tag "b{one_way.id}", media 1: one-way: .*no packet arrived at all', daemon.text()))
        text = said(net, "explain", one_way.id)
        assert "TROUBLE: silent; no packet arrived at all (NAT, a firewall, or a muted terminal)" in text, text
        text = said(net, "explain", wrong.id)
        assert re.search(r"TROUBLE: (silent; )?key mismatch in \d+ packet", text) and "bad-tag" in text, text
        assert "TROUBLE" not in said(net, "explain", good.id)
    assert not re.search(rf'"{good.id}".*(one-way|bad-tags)', daemon.text()), daemon.text()
    finish(daemon, drops=("bad-tag",))


def test_explaining_a_call(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--sdes-accept=" + CM80 + "," + CM32).wait_ready()
    client = daemon.client
    talk = calls.Call(client, 0, "80", "32").setup()
    calls.load(net, relay.BUILD, [talk], rate=50, seconds=1)
    talk.keys[0][0] = talk.key[0] = os.urandom(30)
    talk.setup(again=True)
    client.call("block media", call_id=talk.id)
    assert client.call("answer", call_id=talk.id, from_tag="a" + talk.id, to_tag="b" + talk.id, sdp="nonsense")["result"] == "error"
    wait_for("a learned source", lambda: "as signalled" in said(net, "explain", talk.id).split("What happened")[1])
    text = said(net, "explain", talk.id)
    order = [rf"offer a{talk.id}: audio RTP/SAVP with {CM80}, at 10.200.1.2 port 20000, sendrecv, PCMU/8000",
             rf"offer: the callee was offered: audio RTP/SAVP with {CM32}",
             rf"answer b{talk.id}: audio RTP/SAVP with {CM32}",
             rf"keys a{talk.id}: audio 1: from the terminal {CM80}, to it {CM80}: the first suite in the terminal's offer",
             rf"keys b{talk.id}: audio 1: from the terminal {CM32}, to it {CM32}: the terminal chose this suite",
             rf"offer a{talk.id}: again: audio", r"keys .*; new keys", r"command: block media by 127.0.0.1:", r"refused .*: answer by 127.0.0.1:\d+: "]
    at = 0
    for pattern in order:
        m = re.search(pattern, text[at:])
        assert m, (pattern, text)
        at += m.end()
    assert f"caller a{talk.id}, media 1: audio PCMU/8000, RTP/SAVP, sendrecv\n  suite: {CM80}\n  because: the first suite" in text, text
    assert "10.200.1.2:20000, as signalled" in text, text
    reply = json.loads(said(net, "--json", "explain", talk.id))
    assert {"call-id", "state", "summary", "legs", "events"} <= set(reply) and reply["state"] == "up", reply
    no_keys(json.dumps(reply), talk)
    plain = calls.Call(client, 1, "80", "plain").setup()
    assert "the terminal was offered only RTP" in said(net, "explain", plain.id)
    # A history is bounded and keeps its beginning.
    for n in range(60):
        client.call("block media" if n % 2 else "unblock media", call_id=plain.id)
    reply = client.call("explain", call_id=plain.id)
    assert len(reply["events"]) == 32 and reply["events left out"] > 25 and reply["events"][0]["event"] == "offer", reply
    assert ctl(net, "explain", "nobody").returncode == 1
    assert daemon.stop() == 0, daemon.text()


def test_a_refused_answer_is_named_by_default(net):
    """--log-level=5: the log has the cause of a failed call, in the history and with the call's
    end."""
    with tempfile.TemporaryDirectory() as folder:
        daemon = relay.Xcipherd(net, "--engine=serial", "--log-level=5", "--cdr-file=" + folder + "/cdr.json").wait_ready()
        talk = calls.Call(daemon.client, 0, "80", "plain")
        calls.ok(daemon.client.call("offer", call_id=talk.id, from_tag="a", sdp=talk.body(0)))
        assert daemon.client.call("answer", call_id=talk.id, from_tag="a", to_tag="b", sdp="v=0\r\nnonsense")["result"] == "error"
        wait_for("the cause", lambda: re.search(rf'notice: call-id "{talk.id}".*answer refused: Failed to parse SDP, line 2', daemon.text()))
        calls.ok(daemon.client.call("delete", call_id=talk.id, from_tag="a", delete_delay=0))
        wait_for("the closing line", lambda: re.search(r"call ended: deleted by command; .*never answered; last answer refused: Failed to parse SDP, line 2", daemon.text()))
        wait_for("the record", lambda: records(folder + "/cdr.json"))
        assert records(folder + "/cdr.json")[0]["refused"].startswith("answer refused: Failed to parse SDP"), records(folder + "/cdr.json")
        # A single warning suppressed no others.
        daemon.client.call("ping", flags=["no-such-flag"])
        assert "(0 more" not in daemon.text(), daemon.text()
        finish(daemon)


def test_a_call_that_outlives_the_daemon(net):
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/cdr.json"
        redis, daemon = rig(net, SERIAL, "--cdr-file=" + path)
        talk = calls.Call(daemon.client, 0, "80", "32").setup()
        before = daemon.client.call("explain", call_id=talk.id)
        settled(daemon)
        kill(daemon)
        daemon = again(net, redis, SERIAL, "--cdr-file=" + path)
        after = daemon.client.call("explain", call_id=talk.id)
        assert after["answered"] == before["answered"] > 0 and [e["event"] for e in after["events"]] == ["restored"], after
        assert daemon.stop() == 0
        assert records(path) == [], "it lives on in Redis"
        daemon = again(net, redis, SERIAL, "--cdr-file=" + path)
        calls.ok(daemon.client.call("delete", call_id=talk.id, from_tag="a" + talk.id, delete_delay=0))
        wait_for("its record", lambda: [(r["call_id"], r["answered_ms"]) for r in records(path)] == [(talk.id, before["answered"])])
        assert daemon.stop() == 0
        redis.stop()


def test_long_tags_do_not_lose_the_record(net):
    """Callees choose their tags. All tags together would exceed a record and a reply."""
    with tempfile.TemporaryDirectory() as folder:
        daemon = start(net, f"--cdr-file={folder}/cdr")
        a, b = Phone(net, "caller", "10.200.1.2"), Phone(net, "callee", "10.200.2.2")
        for n in range(14):
            calls.ok(daemon.client.call("offer", call_id="long", from_tag="a", via_branch=f"v{n}", sdp=a.sdp()))
            calls.ok(daemon.client.call("answer", call_id="long", from_tag="a", to_tag=f"{n}b" + "\u202e\"" * 5000, via_branch=f"v{n}", sdp=b.sdp()))
        tags = [leg["tag"] for leg in calls.ok(daemon.client.call("explain", call_id="long"))["legs"]]
        assert len(tags) == 15 and max(len(t.encode() if isinstance(t, str) else t) for t in tags) <= 256, tags
        text = said(net, "explain", "long")
        assert " bytes)" in text and "\u202e" not in text and "\\xe2\\x80\\xae" in text, text
        calls.ok(daemon.client.call("delete", call_id="long", from_tag="a", delete_delay=0))
        wait_for("the record", lambda: "\n" in open(f"{folder}/cdr", encoding="utf-8").read())
        record = json.loads(open(f"{folder}/cdr", encoding="utf-8").read())
        assert record["call_id"] == "long" and len(record["sides"]) == 15, record
        finish(daemon)
