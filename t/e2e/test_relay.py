# SPDX-License-Identifier: GPL-2.0-or-later
"""Media through the relay: all steerings, both engines, all pairs of terminals' profiles. The
terminals are libsrtp2 and check every packet's content. No packet may be lost, reordered,
doubled or wrong."""
import calls
import relay
from baresip import wait_for
from run import cases

PAIRS = [("80", "32"), ("32", "80"), ("80", "80"), ("80", "plain"), ("plain", "32"), ("plain", "plain")]


def clean(result):
    for key in ("lost", "reordered", "duplicates", "wrong", "bad_auth", "send_errors"):
        assert result[key] == 0, f"{key} = {result[key]}: {result}"
    assert result["received"] == result["sent"] > 0, result
    assert result["rtcp_received"] == result["rtcp_sent"] > 0, result


def finish(daemon, drops=()):
    """Conditions that hold for the daemon at the end of any test."""
    for name, count in daemon.statistics()["drops"].items():
        assert count == 0 or name in drops, f"dropped {count} as {name}"
    assert daemon.statistics()["command errors"] == 0
    status = daemon.stop()
    assert status == 0, f"xcipherd ended with {status}:\n{daemon.text()}"


@cases(*[(s, e) for s in ("udp", "nfqueue", "xdp") for e in ("serial", "opencl")])
def test_every_pair_of_terminals(net, steering, engine):
    daemon = relay.Xcipherd(net, f"--steering={steering}", f"--engine={engine}", "--opencl-min=1").wait_ready()
    talk = [calls.Call(daemon.client, i, *PAIRS[i % len(PAIRS)]).setup() for i in range(2 * len(PAIRS))]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1.5))
    s = daemon.statistics()
    assert s["steering"] == steering and s["engine"] == engine, s
    if engine == "opencl":
        assert s["device jobs"] == s["jobs"] > 0, s
    if steering != "udp":
        assert s["by fallback socket"] == 0, s
    for c in talk:
        calls.ok(c.delete())
    finish(daemon)


@cases(("serial",), ("opencl",))
def test_results_leave_in_the_packets_place_where_the_host_forwards(net, engine):
    net.forward()
    daemon = relay.Xcipherd(net, "--steering=nfqueue", f"--engine={engine}", "--opencl-min=1", "--workers=1").wait_ready()
    for payload in (20, 160, 1400):
        talk = [calls.Call(daemon.client, payload + i, *PAIRS[i % len(PAIRS)]).setup() for i in range(2 * len(PAIRS))]
        clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=0.6, payload=payload))
        for c in talk:
            calls.ok(c.delete())
    s = daemon.statistics()
    assert s["sent by verdict"] == s["packets sent"] > 1000, s
    assert s["by fallback socket"] == 0, s
    finish(daemon)


def test_statistics_tell_where_time_goes_worker_by_worker(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=2", "--batch-window=0").wait_ready()  # without a window, calls are spread over the workers
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(4)]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    s = daemon.statistics()
    assert list(s["stages"]) == ["queue", "prepare", "engine", "complete", "send"], s["stages"]
    for name, t in s["stages"].items():
        assert t["count"] == s["packets received" if name == "queue" else "bursts"], (name, s)
        assert 0 < float(t["p50_us"]) <= float(t["p99_us"]) <= float(t["max_us"]), (name, t)
    workers = s["each worker"]
    assert len(workers) == 2 and all(w["packets received"] > 100 for w in workers), workers
    for key in ("packets received", "packets sent", "overruns", "checksum errors"):
        assert sum(w[key] for w in workers) == s[key], (key, s)
    for w in workers:
        assert 1 <= w["burst size"]["p50"] <= w["burst size"]["max"] <= 256, w
        assert all(0 < w[f"{stage} ns"]["p50"] <= w[f"{stage} ns"]["p99"] <= w[f"{stage} ns"]["max"] for stage in s["stages"]), w
    finish(daemon)


def test_large_and_tiny_packets(net):
    daemon = relay.Xcipherd(net, "--steering=nfqueue", "--opencl-min=1").wait_ready()
    talk = [calls.Call(daemon.client, i, *PAIRS[i % len(PAIRS)]).setup() for i in range(6)]
    for payload in (20, 33, 1400):
        clean(calls.load(net, relay.BUILD, talk, rate=20, seconds=0.6, payload=payload))
        # the same terminals would repeat sequence numbers under the same keys, which the relay must
        # refuse
        for c in talk:
            calls.ok(c.delete())
        talk = [calls.Call(daemon.client, 100 + payload + i, *PAIRS[i % len(PAIRS)]).setup() for i in range(6)]
    finish(daemon)


def test_replayed_stream_is_refused(net):
    """The terminals start over with the same keys and sequence numbers: the second run must not get
    through."""
    daemon = relay.Xcipherd(net, "--steering=udp").wait_ready()
    talk = [calls.Call(daemon.client, 1, "80", "32").setup()]
    clean(calls.load(net, relay.BUILD, talk, rate=100, seconds=0.6))
    again = calls.load(net, relay.BUILD, talk, rate=100, seconds=0.6)
    assert again["received"] == 0, again
    wait_for("refused packets", lambda: daemon.statistics()["drops"]["replay"] > 0)
    finish(daemon, drops=("replay",))


def test_a_plain_side_cannot_force_a_nonce_twice(net):
    """A plain-RTP terminal that repeats sequence numbers would otherwise make us use a keystream twice."""
    daemon = relay.Xcipherd(net, "--steering=udp").wait_ready()
    talk = [calls.Call(daemon.client, 1, "plain", "80").setup()]
    clean(calls.load(net, relay.BUILD, talk, rate=100, seconds=0.6))
    again = calls.load(net, relay.BUILD, talk, rate=100, seconds=0.6)
    assert again["received"] == 0, again
    wait_for("refused packets", lambda: all(daemon.statistics()["drops"][k] > 0 for k in ("nonce", "replay")))
    finish(daemon, drops=("nonce", "replay"))


@cases(("udp",), ("nfqueue",), ("xdp",))
def test_forty_calls(net, steering):
    # So few calls would all go to one worker. Without a window they are spread.
    daemon = relay.Xcipherd(net, f"--steering={steering}", "--engine=auto", *(["--batch-window=0"] if steering == "nfqueue" else [])).wait_ready()
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(40)]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=2))
    finish(daemon)
