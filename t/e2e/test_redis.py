# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls that outlive the daemon through Redis: killed and restarted, or taken over by another node.
Redis is away, slow, full, restarted or full of garbage. The terminals are libsrtp2: packets that
fail authentication or come twice count as bad_auth."""
import os
import re
import signal
import time

import calls
import hold
import relay
from redisrig import PROGRAM, Elsewhere, Load, Redis, have
from run import Skip, cases

BAD = ("reordered", "duplicates", "wrong", "bad_auth")
# FULL=1 measures the cost of restart and fail-over for a thousand calls. RATE is in packets per
# second and direction.
FULL = "FULL" in os.environ
CALLS, RATE = (1000, 10) if FULL else (20, 50)
LONG = 100  # seconds of media: ended early once the test has its results
# Most of this does not depend on the engine, and serial starts at once.
SERIAL = "--engine=serial"


def rig(net, *options, **kw):
    if not have():
        raise Skip(f"no {PROGRAM}")
    redis = Redis(net, **kw)
    return redis, relay.Xcipherd(net, *redis.daemon_options(), *(options or [SERIAL])).wait_ready()


def kill(daemon):
    daemon.process.kill()
    daemon.process.wait()
    daemon.client.close()


def again(net, redis, *options):
    return relay.Xcipherd(net, *redis.daemon_options(), *(options or [SERIAL])).wait_ready()


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise AssertionError("did not happen within time")
        time.sleep(0.05)


def state(daemon):
    return daemon.statistics()["redis"]


def settled(daemon):
    """Waits until all pending records are written."""
    until(lambda: state(daemon)["mode"] == "active" and state(daemon)["waiting"] == 0)


def flows(daemon, talk, seconds=1.0, rate=RATE):
    """Waits until this much of the calls' media has left the daemon."""
    until(lambda: daemon.statistics()["packets sent"] >= 2 * len(talk) * rate * seconds)


def saved(daemon, talk):
    """Waits until Redis has the index of all media sent so far; each call was saved several times
    since. Without it, the next daemon cannot decrypt a stream whose sequence numbers have
    wrapped, and rtpload's soon wrap."""
    before = state(daemon)["written"]
    until(lambda: state(daemon)["written"] >= before + 4 * len(talk))


def talk_of(daemon, n=CALLS, pairs=(("80", "32"), ("AEAD_AES_128_GCM", "80"))):
    return [calls.Call(daemon.client, i, *pairs[i % len(pairs)]).setup() for i in range(n)]


def told(daemon):
    return re.findall(r"redis: (\d+ calls restored.*)", daemon.text())[-1]


def mended(result, gap, what):
    """No wrong packet, and no more lost than came while no daemon ran. A burst may be inside the
    relay when it is killed."""
    for key in BAD:
        assert result[key] == 0, f"{what}: {key} = {result[key]}: {result}"
    per_leg = result["lost"] / result["legs"]
    print(f"    {what}: {result['lost']} packets of {result['sent']} lost, {per_leg:.2f} per direction of a call, gap {gap:.2f} s")
    # Unread packets died with it: a second's worth on a busy machine. The check above covers
    # forbidden losses.
    assert per_leg <= RATE * (gap + 2), f"{what}: {result}"


@cases(("udp",), ("nfqueue",), ("xdp",))
def test_killed_and_started_again(net, steering):
    """t/kernel tests this with the kernel module, where it can be loaded."""
    options = [f"--steering={steering}", *([] if FULL else [SERIAL])]
    redis, daemon = rig(net, *options)
    talk = talk_of(daemon)
    load = Load(net, relay.BUILD, talk, RATE, LONG)
    flows(daemon, talk)
    saved(daemon, talk)
    start = time.monotonic()
    kill(daemon)
    daemon = again(net, redis, *options)
    until(lambda: state(daemon)["restored"] == CALLS)
    gap = time.monotonic() - start
    flows(daemon, talk)
    mended(load.enough(), gap, f"killed and started again ({told(daemon)})")
    # Signalling goes on with the same ports and keys.
    for c in talk:
        ports, wire = (c.to_caller["port"], c.to_callee["port"]), c.wire
        c.client = daemon.client
        c.setup(again=True)
        assert (ports, wire) == ((c.to_caller["port"], c.to_callee["port"]), c.wire)
    drops = daemon.statistics()["drops"]
    assert not drops["bad-tag"] and not drops["replay"] and not drops["nonce"], drops
    for c in talk:
        calls.ok(c.delete())
    settled(daemon)
    assert redis("KEYS", "xcipher:call:*") == []
    assert daemon.stop() == 0
    redis.stop()


def test_stopped_in_order_and_started_again(net):
    redis, daemon = rig(net)
    talk = talk_of(daemon, 4, (("80", "plain"), ("plain", "32")))
    load = Load(net, relay.BUILD, talk, 50, LONG)
    flows(daemon, talk, rate=50)
    start = time.monotonic()
    assert daemon.stop() == 0
    daemon = again(net, redis)
    until(lambda: state(daemon)["restored"] == 4)
    gap = time.monotonic() - start
    flows(daemon, talk, rate=50)
    result = load.enough()
    # Media of a plain side continue at once, under a new SSRC.
    mended(result, gap, "stopped and started again, one side plain")
    assert daemon.stop() == 0
    redis.stop()


def test_redis_holds_no_keys(net):
    redis, daemon = rig(net)
    talk = talk_of(daemon, 2)
    settled(daemon)
    keys = redis("KEYS", "xcipher:call:*")
    assert len(keys) == 2, keys
    text = b"".join(v for k in keys for v in redis("HGETALL", k))
    for c in talk:
        for k in [*c.key, *c.wire]:
            assert k[:16] not in text and k[16:] not in text
        assert c.id.encode() not in text
    # Stored without a key, so that the test can read the records.
    kill(daemon)
    redis("FLUSHALL")
    daemon = relay.Xcipherd(net, SERIAL, f"--redis={redis.url()}", "--redis-key-file=none").wait_ready()
    c = talk_of(daemon, 1)[0]
    settled(daemon)
    assert c.key[0][:16] in b"".join(redis("HGETALL", redis("KEYS", "xcipher:call:*")[0]))
    assert daemon.stop() == 0
    redis.stop()


def test_no_key_file_no_start(net):
    if not have():
        raise Skip(f"no {PROGRAM}")
    for options, word in ((["--redis=127.0.0.1:6379"], "redis-key-file"), (["--redis=127.0.0.1:6379", "--redis-key-file=/nowhere"], "/nowhere"),
                          (["--redis=127.0.0.1:6379", "--redis-key-file=/dev/null"], "regular"), (["--standby=yes"], "--redis"),
                          (["--redis=rediss://127.0.0.1", "--redis-tls-ca=/nowhere"], "--redis-tls-ca=/nowhere cannot be read: No such file"),
                          (["--redis=rediss://127.0.0.1", "--redis-tls-cert=/nowhere", "--redis-tls-key=/x"], "--redis-tls-cert=/nowhere cannot be read: No such")):
        try:
            if "rediss" in options[0]:
                options.append("--redis-key-file=none")
            relay.Xcipherd(net, SERIAL, *options).wait_ready()
            raise AssertionError(f"started with {options}")
        except RuntimeError as e:
            assert word in str(e), e


def test_what_makes_no_sense_is_skipped(net):
    redis, daemon = rig(net)
    talk = talk_of(daemon, 8)
    settled(daemon)
    kill(daemon)
    key = [f"xcipher:call:{c.id}" for c in talk]
    whole = [redis("HGET", k, "c") for k in key]
    redis("HSET", key[0], "c", whole[0][:-1] + bytes([whole[0][-1] ^ 1]))  # tampered with
    redis("HSET", key[1], "c", whole[2])  # another's
    redis("HSET", key[2], "c", b"XCS\x03" + whole[2][4:])  # from another version
    redis("HSET", key[3], "c", b"")
    redis("SET", "xcipher:call:text", "x")
    for i in range(30):
        redis("HSET", f"xcipher:call:rubbish{i}", "c", bytes(i))
    redis("HSET", "somebody:else", "c", "x")
    # And a port that another program has.
    blocker = net.spawn(net.gateway, ["/usr/bin/python3", "-c", "import socket,time\ns=socket.socket(type=socket.SOCK_DGRAM)\n"
                                      f"s.bind(('10.200.1.1', {talk[4].to_caller['port']}))\ntime.sleep(60)"])
    until(lambda: f":{talk[4].to_caller['port']} " in net.run(net.gateway, "ss", "-Hlun").stdout)
    daemon = again(net, redis)
    until(lambda: state(daemon)["mode"] == "active")
    s = state(daemon)
    # An empty record is not a call.
    assert s["restored"] == 3 and s["skipped"] >= 4 + 30, (s, daemon.text())
    for c, why in ((talk[0], "changed since"), (talk[1], "changed since"), (talk[2], "another version"), (talk[4], "port is taken")):
        lines = [line for line in daemon.text().splitlines() if c.id in line]
        if len(lines) == 1:
            assert why in lines[0], lines
        else:
            assert not lines, lines  # more than are reported one by one
    assert 3 <= daemon.text().count("is not restored") <= 20
    assert daemon.stop() == 0
    net.stop(blocker)
    redis.stop()


def test_redis_away_slow_and_back(net):
    """Calls continue. The operator gets one report when Redis goes and one when it returns. Then
    all calls are stored."""
    redis, daemon = rig(net)
    talk = talk_of(daemon, 10)
    settled(daemon)
    load = Load(net, relay.BUILD, talk, 50, LONG)
    flows(daemon, talk, 0.5, 50)
    redis.kill()
    until(lambda: state(daemon)["state"] == "away")
    talk += [calls.Call(daemon.client, 100, "80", "32").setup()]
    calls.ok(talk[0].delete())  # its media end: 1 of 10 calls
    redis.start()  # it returns empty
    until(lambda: state(daemon)["state"] == "up")
    settled(daemon)
    assert len(redis("KEYS", "xcipher:call:*")) == 10
    redis.signal(signal.SIGSTOP)
    until(lambda: state(daemon)["state"] == "away")
    with hold.never_waits(daemon):
        for _ in range(20):
            calls.ok(calls.Call(daemon.client, 101, "80", "32").setup().delete())
    redis.signal(signal.SIGCONT)
    until(lambda: state(daemon)["state"] == "up")
    settled(daemon)
    assert len(redis("KEYS", "xcipher:call:*")) == 10
    result = load.enough()
    assert not any(result[k] for k in BAD), result
    assert result["received"] >= result["sent"] * 9 // 10, result
    text = daemon.text()
    assert text.count(" is unreachable (") == 2 and text.count(" is reachable again: ") == 2, text
    kill(daemon)
    daemon = again(net, redis)
    until(lambda: state(daemon)["restored"] == 10)
    assert daemon.stop() == 0
    redis.stop()


def test_redis_full_and_read_only(net):
    redis, daemon = rig(net)
    talk = talk_of(daemon, 3)
    settled(daemon)
    redis("CONFIG", "SET", "maxmemory", "1")
    talk += [calls.Call(daemon.client, 50, "80", "32").setup()]
    until(lambda: state(daemon)["state"] == "refusing")
    result = Load(net, relay.BUILD, talk, 50, 1).result()
    assert not any(result[k] for k in (*BAD, "lost")), result
    redis("CONFIG", "SET", "maxmemory", "0")
    until(lambda: state(daemon)["state"] == "up")
    settled(daemon)
    assert len(redis("KEYS", "xcipher:call:*")) == 4
    text = daemon.text()
    assert text.count("refuses writes") == 1 and text.count("accepts writes again") == 1, text
    # A key of another program with our key's name.
    redis("SET", f"xcipher:call:{talk[0].id}", "x")
    talk[0].setup(again=True)
    until(lambda: redis("TYPE", f"xcipher:call:{talk[0].id}") == b"hash")
    redis("FLUSHALL")
    Load(net, relay.BUILD, talk, 50, 2).result()
    # Each call is written entirely, not only what its packets change.
    until(lambda: sum(redis("HEXISTS", k, "c") for k in redis("KEYS", "xcipher:call:*")) == 4)
    settled(daemon)
    kill(daemon)
    daemon = again(net, redis)
    until(lambda: state(daemon)["restored"] == 4)
    assert daemon.stop() == 0
    redis.stop()


def ports(call):
    return {call.to_caller["port"], call.to_callee["port"]}


def test_redis_that_comes_after_us(net):
    """Redis is away at the start: the daemon starts, and restores stored calls when Redis returns."""
    redis, daemon = rig(net)
    talk = talk_of(daemon, 3)
    settled(daemon)
    kill(daemon)
    redis.signal(signal.SIGSTOP)
    daemon = again(net, redis)
    assert state(daemon)["restored"] == 0 and state(daemon)["mode"] == "restoring"
    more = calls.Call(daemon.client, 60, "80", "32").setup()
    talk = [t for t in talk if not ports(t) & ports(more)]  # ports are drawn at random; who finds his taken is not restored
    redis.signal(signal.SIGCONT)
    until(lambda: state(daemon)["restored"] == len(talk) >= 2)
    settled(daemon)
    assert len(redis("KEYS", "xcipher:call:*")) == 4
    result = Load(net, relay.BUILD, [*talk, more], 50, 1).result()
    assert not any(result[k] for k in (*BAD, "lost")), result
    assert daemon.stop() == 0
    redis.stop()


# --- Two nodes -------------------------------------------------------------------------------------------------------


def pair(net, options=(SERIAL,)):
    """Two nodes that share a Redis: the first is active, the second, on another machine, follows."""
    if not have():
        raise Skip(f"no {PROGRAM}")
    redis = Redis(net, addr="0.0.0.0")
    there = Elsewhere(net)
    options = [*options, f"--redis-key-file={redis.key_file}"]
    first = relay.Xcipherd(net, *options, "--redis=127.0.0.1:6379").wait_ready()
    second = relay.Xcipherd(there, *options, "--redis=10.200.9.1:6379", "--standby=yes").wait_ready()
    return redis, there, first, second


def followed(node, n):
    until(lambda: state(node)["followed"] == n)


def test_another_node_takes_over(net):
    redis, there, first, second = pair(net, ())
    talk = talk_of(first)
    followed(second, CALLS)
    refused = second.client.call("offer", call_id="x", from_tag="a", sdp=calls.sdp("10.200.1.2", 4000), supports=["load limit"])
    assert refused["result"] == "load limit", refused
    load = Load(net, relay.BUILD, talk, RATE, LONG)
    flows(first, talk)
    saved(first, talk)
    start = time.monotonic()
    kill(first)
    redis.kill()  # it ran on the same machine
    there.take_addresses()
    calls.ok(second.client.call("active"))
    until(lambda: state(second)["restored"] == CALLS)
    gap = time.monotonic() - start
    flows(second, talk)
    mended(load.enough(), gap, f"fail-over ({told(second)})")
    talk[0].client = second.client
    wire = talk[0].wire
    talk[0].setup(again=True)
    assert wire == talk[0].wire
    drops = second.statistics()["drops"]
    assert not drops["bad-tag"] and not drops["replay"] and not drops["nonce"], drops
    assert second.stop() == 0
    redis.stop()


def test_there_and_back(net):
    """An orderly switch-over while both nodes run: only packets in between are lost. Then back
    again."""
    redis, there, first, second = pair(net)
    talk = talk_of(first, 10)
    followed(second, 10)
    calls.ok(talk[9].delete())
    followed(second, 9)
    load = Load(net, relay.BUILD, talk[:9], 50, LONG)
    flows(first, talk[:9], rate=50)
    assert net.run(net.gateway, f"{relay.BUILD}/xcipherctl", "standby").returncode == 0
    until(lambda: state(first)["mode"] == "standby")
    start = time.monotonic()
    there.take_addresses()
    ctl = net.run(there.gateway, f"{relay.BUILD}/xcipherctl", "active")
    assert ctl.returncode == 0, ctl
    again_active = net.run(there.gateway, f"{relay.BUILD}/xcipherctl", "active", check=False)
    assert again_active.returncode == 1 and "already" in again_active.stdout + again_active.stderr, again_active
    until(lambda: state(second)["restored"] == 9)
    gap = time.monotonic() - start
    flows(second, talk[:9], rate=50)
    mended(load.enough(), gap, "switched over")
    followed(first, 9)
    assert first.statistics()["ports used"] == 0
    more = calls.Call(second.client, 77, "80", "32").setup()
    followed(first, 10)
    calls.ok(more.delete())
    followed(first, 9)
    there.give_addresses_back()
    # A forced take-over: the active node gives way by itself, because two nodes must never send the
    # same index.
    calls.ok(first.client.call("active"))
    until(lambda: state(second)["mode"] == "standby")
    until(lambda: state(first)["mode"] == "active" and state(first)["restored"] == 9)
    result = Load(net, relay.BUILD, talk[:9], 50, 1).result()
    assert result["received"] == 0, result  # the load restarts, with indexes that were used
    assert "releasing all calls" in second.text() and second.statistics()["ports used"] == 0
    assert first.stop() == 0 and second.stop() == 0
    redis.stop()


def test_who_was_cut_off_asks_before_it_writes(net):
    redis, there, first, second = pair(net)
    talk_of(first, 3)
    followed(second, 3)
    net.run(net.gateway, "ip", "addr", "del", "127.0.0.1/8", "dev", "lo")  # the first node no longer reaches Redis
    until(lambda: "is unreachable (" in first.text())
    there.take_addresses()
    calls.ok(second.client.call("active"))
    until(lambda: state(second)["restored"] == 3)
    net.run(net.gateway, "ip", "addr", "add", "127.0.0.1/8", "dev", "lo")
    until(lambda: state(first)["mode"] == "standby")
    assert state(second)["mode"] == "active" and "releasing all calls" in first.text()
    assert first.stop() == 0 and second.stop() == 0
    redis.stop()


def test_who_starts_beside_an_active_node_follows(net):
    """Also a node that was active before it died: the other node has its calls now."""
    redis, there, first, second = pair(net)
    talk_of(first, 3)
    followed(second, 3)
    kill(first)
    there.take_addresses()
    calls.ok(second.client.call("active"))
    until(lambda: state(second)["restored"] == 3)
    first = relay.Xcipherd(net, SERIAL, *redis.daemon_options(), addresses=("127.0.0.1",)).wait_ready()
    until(lambda: state(first)["mode"] == "standby")
    assert "another node is active" in first.text(), first.text()
    followed(first, 3)
    # If no node is active any more, the next one starts as if none had been.
    assert second.stop() == 0
    assert 0 < redis("TTL", "xcipher:owner") <= 10
    assert first.stop() == 0
    redis("DEL", "xcipher:owner")  # as if that time had passed
    there.give_addresses_back()
    first = again(net, redis)
    until(lambda: state(first)["restored"] == 3 and state(first)["mode"] == "active")
    assert first.stop() == 0
    redis.stop()


def test_password_database_and_replica(net):
    """Reads from a replica and writes to its master, in another database, with a password."""
    if not have():
        raise Skip(f"no {PROGRAM}")
    master = Redis(net, options=["--requirepass", "se:cr@et", "--repl-diskless-sync-delay", "0"])
    replica = Redis(net, port=6380, options=["--requirepass", "se:cr@et", "--masterauth", "se:cr@et", "--replicaof", "127.0.0.1", "6379"])
    until(lambda: b"master_link_status:up" in replica("INFO", "replication"))
    options = ["--redis=se:cr@et@127.0.0.1:6380/3", "--redis-write=se:cr@et@127.0.0.1:6379/3", f"--redis-key-file={master.key_file}"]
    daemon = relay.Xcipherd(net, SERIAL, *options).wait_ready()
    talk_of(daemon, 3)
    settled(daemon)
    kill(daemon)
    until(lambda: len({re.search(rb"master_repl_offset:(\d+)", r("INFO", "replication"))[1] for r in (master, replica)}) == 1)
    daemon = relay.Xcipherd(net, SERIAL, *options).wait_ready()
    until(lambda: state(daemon)["restored"] == 3)
    settled(daemon)
    assert daemon.stop() == 0
    daemon = relay.Xcipherd(net, SERIAL, "--redis=wrong@127.0.0.1:6379", f"--redis-key-file={master.key_file}").wait_ready()
    until(lambda: state(daemon)["state"] == "away" and "WRONGPASS" in daemon.text())
    assert "se:cr" not in daemon.text(), daemon.text()
    assert daemon.stop() == 0
    for r in (replica, master):
        r.kill()
