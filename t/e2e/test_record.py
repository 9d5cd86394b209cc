# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings contain the packets that terminals sent, decrypted, by call or side, over changes of
keys. A full disk causes a gap in the recording, not in the call."""
import os
import shutil
import struct
import subprocess
import tempfile
import time

import calls
import hold
import redisrig
import relay
import test_ng
import test_redis
from run import Skip, cases
from test_relay import clean, finish

MAGIC = b"xcip"
PAIRS = [("80", "32"), ("AEAD_AES_256_GCM", "plain"), ("plain", "AES_256_CM_HMAC_SHA1_80")]


class Folder:
    """A folder for recordings; with a size, a file system of that size in memory."""

    def __init__(self, size=None):
        self.path = tempfile.mkdtemp(prefix="xcipher-record-")
        self.mounted = size is not None
        if self.mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", self.path], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", self.path], check=True)
        shutil.rmtree(self.path)


def packets(path, skip=0):
    """(time, source, destination, payload) of each packet; the file must be complete."""
    with open(path, "rb") as f:
        data = f.read()
    magic, _, _, _, _, _, link = struct.unpack("<IHHiIII", data[:24])
    assert magic == 0xa1b23c4d and link == (1 if skip else 101), (hex(magic), link)
    at, out = 24, []
    while at < len(data):
        sec, nsec, caplen, length = struct.unpack("<IIII", data[at:at + 16])
        frame = data[at + 16:at + 16 + caplen][skip:]
        assert caplen == length and len(frame) == length - skip, "cut short"
        assert frame[0] == 0x45 and frame[9] == 17, frame[:20].hex()
        ip = [".".join(map(str, frame[i:i + 4])) for i in (12, 16)]
        port = struct.unpack(">HH", frame[20:24])
        out.append((sec + nsec / 1e9, (ip[0], port[0]), (ip[1], port[1]), frame[28:]))
        at += 16 + caplen
    return out


def heard(recording, call, side):
    """Numbers of this side's RTP packets in the recording. Checks their contents."""
    near = (call.to_caller, call.to_callee)[side]
    numbers = []
    for _, source, to, payload in recording:
        if source != (call.ip[side], call.ports[side]) or payload[1] >= 192:
            continue
        assert to == (near["ip"], near["port"]), (to, near)
        assert len(payload) == 172 and payload[12:16] == MAGIC, payload[:20].hex()
        numbers.append(struct.unpack(">I", payload[20:24])[0])
    assert numbers == sorted(set(numbers)), "repeated or out of order"
    return numbers


def start(net, folder, *options):
    return relay.Xcipherd(net, "--engine=serial", f"--recording-dir={folder.path}", *options).wait_ready()


def reply_file(reply):
    return calls.ok(reply)["recording"]["file"]


def closed(path):
    """Whether the recording's text file is complete: it ends with the count of packets."""
    try:
        with open(path.replace(".pcap", ".txt"), encoding="utf-8") as f:
            return "packets:" in f.read()
    except FileNotFoundError:
        return False


def stopped(daemon, call, **keys):
    path = reply_file(daemon.client.call("stop recording", call_id=call.id, **keys))
    if not keys:
        until(lambda: closed(path), "it is closed")
    return path


@cases(*[(f,) for f in ("raw", "eth")])
def test_a_recording_has_what_both_terminals_sent_in_clear(net, form):
    with Folder() as folder:
        daemon = start(net, folder, f"--recording-format={form}")
        talk = [calls.Call(daemon.client, i, *pair).setup() for i, pair in enumerate(PAIRS)]
        for c in talk:
            path = reply_file(daemon.client.call("start recording", call_id=c.id, metadata="case=17"))
            assert os.path.dirname(path) == folder.path
        begun = time.time()
        result = calls.load(net, relay.BUILD, talk, rate=50, seconds=2)
        clean(result)
        for c in talk:
            path = stopped(daemon, c)
            got = packets(path, 14 if form == "eth" else 0)
            assert os.stat(path).st_mode & 0o777 == 0o600
            for side in (0, 1):
                assert heard(got, c, side) == list(range(100)), heard(got, c, side)
            assert sum(p[3][1] >= 192 for p in got) > 0, "no RTCP"
            assert all(begun - 1 < p[0] < time.time() for p in got), "times"
            text = open(path.replace(".pcap", ".txt"), encoding="utf-8").read()
            assert f"call-id: {c.id}" in text and "metadata: case=17" in text and f"packets: {len(got)}" in text and "lost: 0" in text, text
            assert all(k.hex() not in text for k in c.key if k)
        if shutil.which("tshark"):
            port = talk[0].to_caller["port"]
            said = subprocess.run(["tshark", "-r", stopped_path(folder, talk[0]), "-d", f"udp.port=={port},rtp", "-q", "-z", "rtp,streams"],
                                  capture_output=True, text=True, check=True).stdout
            row = next(line for line in said.splitlines() if f" {port} " in line)
            assert " 100 " in row and " 0 (0.0%)" in row, said
        finish(daemon)


def stopped_path(folder, call):
    return next(os.path.join(folder.path, f) for f in os.listdir(folder.path) if f.startswith(call.id) and f.endswith(".pcap"))


def test_by_side_paused_and_over_a_change_of_keys(net):
    with Folder() as folder:
        daemon = start(net, folder)
        c = calls.Call(daemon.client, 1, "80", "32").setup()
        path = reply_file(daemon.client.call("start recording", call_id=c.id, from_tag="a" + c.id, flags=["directional"], recording_file="tape"))
        assert path == os.path.join(folder.path, "tape.pcap")
        again = daemon.client.call("start recording", call_id=c.id, from_tag="nobody", flags=["directional"])
        assert again["error-reason"] == "No matching participant in the call", again
        clean(calls.load(net, relay.BUILD, [c], rate=50, seconds=1))
        second = calls.Call(daemon.client, 1, "32", "80")  # new suites and keys in both directions
        second.id = c.id
        clean(calls.load(net, relay.BUILD, [second.setup(again=True)], rate=50, seconds=1))
        calls.ok(daemon.client.call("pause recording", call_id=c.id))
        third = calls.Call(daemon.client, 1, "AES_256_CM_HMAC_SHA1_80", "AEAD_AES_128_GCM")
        third.id = c.id
        clean(calls.load(net, relay.BUILD, [third.setup(again=True)], rate=50, seconds=1))
        assert reply_file(daemon.client.call("start recording", call_id=c.id, from_tag="a" + c.id, flags=["directional"])) == path
        stopped(daemon, c)
        got = packets(path)
        assert {p[1][0:2] for p in got if p[3][1] < 192} == {(c.ip[0], c.ports[0])}, "only the caller"
        assert sum(p[3][1] < 192 for p in got) == 100
        over = daemon.client.call("stop recording", call_id=c.id)
        assert over["error-reason"] == "The call is not being recorded", over
        daemon.stop()


def test_what_comes_from_strangers_names_no_file_outside_and_discarded_ones_go(net):
    with Folder() as folder:
        daemon = start(net, folder)
        c = calls.Call(daemon.client, 1, "80", "32")
        c.id = "../../etc/passwd<>" + c.id
        c.flags = {"record_call": "yes"}
        c.setup()
        for bad in ("../x", "a/b", ".hidden", ""):
            reply = daemon.client.call("start recording", call_id="none", recording_file=bad)
            assert reply["error-reason"] == "Unknown call-id", reply
        until(lambda: len(os.listdir(folder.path)) == 2, "it is open")
        files = sorted(os.listdir(folder.path))
        assert len(files) == 2 and all(f.startswith("_._.._etc_passwd__") or f.startswith("__") for f in files), files
        other = calls.Call(daemon.client, 2, "80", "32").setup()
        for bad in ("../x", "a/b", ".hidden"):
            reply = daemon.client.call("start recording", call_id=other.id, recording_file=bad)
            assert reply["error-reason"] == "Recording file is not a plain file name", reply
        calls.ok(daemon.client.call("delete", call_id=c.id, delete_delay=0, flags=["discard-recording"]))
        until(lambda: os.listdir(folder.path) == [], "it is gone")
        finish(daemon)


def test_a_full_disk_is_a_gap_in_the_recording_and_none_in_the_call(net):
    if os.getuid():
        raise Skip("needs root")
    with Folder("128k") as folder:
        daemon = start(net, folder)
        talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(4)]
        paths = [reply_file(daemon.client.call("start recording", call_id=c.id)) for c in talk]
        clean(calls.load(net, relay.BUILD, talk, rate=100, seconds=2))
        for c in talk:
            stopped(daemon, c)
        written = sum(len(packets(p)) for p in paths)
        assert 0 < written < 4 * 2 * 200, written
        assert "has a gap: No space left on device" in daemon.text(), daemon.text()
        s = daemon.statistics()["recording"]
        assert s["lost"] > 0 and s["packets"] == written, s
        finish(daemon)


def test_a_slow_disk_is_a_gap_in_the_recording_and_none_in_the_call(net):
    """The disk is so slow that the recorder's memory fills."""
    with Folder() as folder:
        daemon = start(net, folder, "--workers=1")
        # Many calls with few packets each: a port's buffer holds all of its packets, even if the
        # daemon does not run.
        talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(16)]
        for c in talk:
            calls.ok(daemon.client.call("start recording", call_id=c.id))
        until(lambda: daemon.statistics()["recording"]["active"] == 16, "they are open")
        before = daemon.rss_kib()
        with hold.thread(daemon.pid(), "recording"):
            clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=2))
        assert daemon.rss_kib() - before < 65536, (before, daemon.rss_kib())
        s = {}

        def told():
            s.update(daemon.statistics()["recording"])
            return s["lost"] > 0 and s["packets"] + s["lost"] >= 16 * 2 * 100
        until(told, f"all packets are either written or counted as lost: {s}")
        paths = [stopped(daemon, c) for c in talk]
        written = sum(len(packets(p)) for p in paths)
        s = daemon.statistics()["recording"]
        assert written == s["packets"] > 0 and "recordings have a gap of" in daemon.text(), (written, s, daemon.text())
        finish(daemon)


def test_it_goes_on_in_another_file_after_a_restart(net):
    """Killed while recording: the call's next file continues the first without repetition, and the
    query's counts continue."""
    if not redisrig.have():
        raise Skip(f"no {redisrig.PROGRAM}")
    with Folder() as folder:
        redis = redisrig.Redis(net)
        daemon = start(net, folder, *redis.daemon_options())
        quiet, c = (calls.Call(daemon.client, i, "80", "32").setup() for i in (1, 2))
        first = reply_file(daemon.client.call("start recording", call_id=c.id))
        clean(calls.load(net, relay.BUILD, [quiet], rate=50, seconds=1))
        load = redisrig.Load(net, relay.BUILD, [c], 50, 100)
        until(lambda: os.path.exists(first) and os.path.getsize(first) > 20000, "it is recorded")
        test_redis.saved(daemon, [quiet, c])
        until(lambda: daemon.statistics()["redis"]["waiting"] == 0, "it is saved")
        counted = daemon.client.call("query", call_id=quiet.id)["totals"]
        daemon.process.kill()
        daemon.process.wait()
        daemon.client.close()
        daemon = start(net, folder, *redis.daemon_options())
        assert daemon.client.call("query", call_id=quiet.id)["totals"] == counted and counted["RTP"]["packets"] == 100, counted
        until(lambda: daemon.statistics()["recording"]["packets"] > 100, "it is recorded again")
        load.enough()
        second = stopped(daemon, c)
        assert second == first.replace(".pcap", "-part2.pcap"), (first, second)
        for side in (0, 1):
            before, after = (heard(packets(path), c, side) for path in (first, second))
            assert len(before) > 20 and len(after) > 20 and before[-1] < after[0], (before, after)
        text = open(second.replace(".pcap", ".txt"), encoding="utf-8").read()
        assert f"continues: {first}" in text and f"call-id: {c.id}" in text and "to our port" in text, text
        # All files of recordings that are not kept are removed.
        reply_file(daemon.client.call("start recording", call_id=quiet.id, recording_file="tape"))
        until(lambda: os.path.exists(os.path.join(folder.path, "tape.pcap")) and daemon.statistics()["redis"]["waiting"] == 0, "it is saved")
        daemon.stop()
        daemon = start(net, folder, *redis.daemon_options())
        assert sorted(f for f in os.listdir(folder.path) if f.startswith("tape") and f.endswith(".pcap")) == ["tape-part2.pcap", "tape.pcap"]
        calls.ok(daemon.client.call("delete", call_id=quiet.id, delete_delay=0, flags=["discard-recording"]))
        until(lambda: not [f for f in os.listdir(folder.path) if f.startswith("tape")], "they are gone")
        assert daemon.stop() == 0
        redis.stop()


def test_another_node_goes_on_with_it(net):
    """Fail-over while recording: the new node continues in its own folder, and the reply names
    that."""
    if not redisrig.have():
        raise Skip(f"no {redisrig.PROGRAM}")
    with Folder() as here, Folder() as there:
        redis, elsewhere = redisrig.Redis(net, addr="0.0.0.0"), redisrig.Elsewhere(net)
        key = f"--redis-key-file={redis.key_file}"
        first = start(net, here, key, "--redis=127.0.0.1:6379")
        second = start(elsewhere, there, key, "--redis=10.200.9.1:6379", "--standby=yes")
        c = calls.Call(first.client, 1, "80", "AEAD_AES_256_GCM").setup()
        tape = reply_file(first.client.call("start recording", call_id=c.id, recording_file="tape", metadata="case=17"))
        load = redisrig.Load(net, relay.BUILD, [c], 50, 60)  # however long it takes
        until(lambda: os.path.exists(tape) and os.path.getsize(tape) > 20000, "it is recorded")
        until(lambda: first.statistics()["redis"]["waiting"] == 0 and second.statistics()["redis"]["followed"] == 1, "it is followed")
        first.process.kill()
        first.process.wait()
        first.client.close()
        redis.kill()
        assert os.listdir(there.path) == [], "who only follows records nothing"
        elsewhere.take_addresses()
        calls.ok(second.client.call("active"))
        until(lambda: second.statistics()["recording"]["packets"] > 100, "it is recorded there")
        net.stop(load.process)
        drops = second.statistics()["drops"]
        assert not drops["bad-tag"] and not drops["replay"] and not drops["nonce"], drops
        more = stopped(second, c)
        assert more == os.path.join(there.path, "tape-part2.pcap") and sorted(os.listdir(there.path)) == ["tape-part2.pcap", "tape-part2.txt"], more
        for side in (0, 1):
            before, after = (heard(packets(path), c, side) for path in (tape, more))
            assert len(before) > 20 and len(after) > 20 and before[-1] < after[0], (before, after)
        text = open(more.replace(".pcap", ".txt"), encoding="utf-8").read()
        assert f"continues: {tape}" in text and f"call-id: {c.id}" in text and "metadata: case=17" in text, text
        assert second.stop() == 0


def until(what, why, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s: {why}"
        time.sleep(0.05)


def test_without_a_folder_it_says_so(net):
    daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
    c = calls.Call(daemon.client, 1, "80", "32").setup()
    reply = daemon.client.call("start recording", call_id=c.id)
    assert reply["error-reason"] == "Recording is off: xcipherd was started without --recording-dir", reply
    finish(daemon)


def rtp_sources(path):
    return {p[1] for p in packets(path) if p[3][1] < 192}


def test_the_whole_call_unless_a_side_is_asked_for(net):
    """Kamailio sends a from-tag with start_recording() and means the call. One side is removed, the
    other stays, selected by label."""
    with Folder() as folder:
        daemon = start(net, folder)
        c = calls.Call(daemon.client, 1, "80", "32", flags={"label": "alice"}).setup()
        both = {(c.ip[side], c.ports[side]) for side in (0, 1)}
        path = reply_file(daemon.client.call("start recording", call_id=c.id, from_tag="a" + c.id, recording_pattern="%c_%t_%r"))
        assert os.path.basename(path).startswith(c.id + "_20"), path
        clean(calls.load(net, relay.BUILD, [c], rate=50, seconds=1))
        assert reply_file(daemon.client.call("stop recording", call_id=c.id, from_tag="a" + c.id, flags=["directional"])) == path
        second = calls.Call(daemon.client, 1, "32", "80", flags={"label": "alice"})
        second.id = c.id
        clean(calls.load(net, relay.BUILD, [second.setup(again=True)], rate=50, seconds=1))
        stopped(daemon, c)
        got = packets(path)
        assert rtp_sources(path) == both
        assert sum(p[1] == (c.ip[0], c.ports[0]) for p in got) == 50 and sum(p[1] == (c.ip[1], c.ports[1]) for p in got) == 100
        tape = reply_file(daemon.client.call("start recording", call_id=c.id, label="alice", recording_pattern="side-%r"))
        third = calls.Call(daemon.client, 1, "80", "AEAD_AES_128_GCM")
        third.id = c.id
        clean(calls.load(net, relay.BUILD, [third.setup(again=True)], rate=50, seconds=1))
        stopped(daemon, c)
        assert len(rtp_sources(tape)) == 1, rtp_sources(tape)
        for bad in ("%x", "a/%r", "../%r", "%c" * 40, "%"):
            reply = daemon.client.call("start recording", call_id=c.id, recording_pattern=bad)
            assert reply["error-reason"] == "Recording pattern makes no plain file name", (bad, reply)
        finish(daemon)


def test_nothing_a_terminal_receives_depends_on_recording(net):
    """Started, paused and stopped a dozen times during the call: SRTCP's index continues (libsrtp
    checks for replays), and no packet is lost."""
    with Folder() as folder:
        daemon = start(net, folder)
        talk = [calls.Call(daemon.client, i, *pair).setup() for i, pair in enumerate(PAIRS)]
        load = redisrig.Load(net, relay.BUILD, talk, 100, 100)
        until(lambda: daemon.statistics()["packets sent"] > 100, "there is media")

        def recorded():
            return daemon.statistics()["recording"]["packets"]
        for _ in range(5):
            for c in talk:
                before = recorded()
                path = reply_file(daemon.client.call("start recording", call_id=c.id))
                until(lambda n=before: recorded() > n, "packets are recorded")
                calls.ok(daemon.client.call("pause recording", call_id=c.id))
                calls.ok(daemon.client.call("start recording", call_id=c.id))
                stopped(daemon, c)
                assert packets(path)
        clean(load.enough())
        assert daemon.statistics()["recording"]["lost"] == 0
        finish(daemon)


def test_a_recording_begins_with_the_first_packet_after_the_reply(net):
    with Folder() as folder:
        daemon = start(net, folder)
        a, b = test_ng.Phone(net, "caller", "10.200.1.2", "80"), test_ng.Phone(net, "callee", "10.200.2.2", "32")
        test_ng.talk(daemon.client, a, b, "c")
        for n in range(10):
            path = reply_file(daemon.client.call("start recording", call_id="c"))
            for word in (b"first %d" % n, b"second %d" % n):
                a.send(word)
                assert b.hears() == (0, word)
            reply_file(daemon.client.call("stop recording", call_id="c"))
            until(lambda: closed(path), "it is closed")
            assert [p[3][12:] for p in packets(path)] == [b"first %d" % n, b"second %d" % n], n
        finish(daemon)
