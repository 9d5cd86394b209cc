# SPDX-License-Identifier: GPL-2.0-or-later
"""Searches the daemon's memory for the keys of a call, in all their forms. During the call they are
in memory that core dumps omit. After it they are gone. Logs never have them, nor do replies
except in SDP."""
import base64
import contextlib
import ctypes
import os
import re
import time

import calls
import dtls
import mikey_terminal
import ng
import redisrig
import relay
import test_dtls
import test_mikey
import test_zrtp
import test_zrtp_peer
import web
import zrtp_terminal
from baresip import wait_for
from run import Skip, cases
from test_redis import settled
from test_relay import clean, finish

libcrypto = ctypes.CDLL("libcrypto.so.3")
for function in ("EVP_CIPHER_CTX_new", "EVP_aes_128_ctr", "EVP_aes_192_ctr", "EVP_aes_256_ctr"):
    getattr(libcrypto, function).restype = ctypes.c_void_p


def aes_ctr(key, iv, length):
    context, out, done = ctypes.c_void_p(libcrypto.EVP_CIPHER_CTX_new()), ctypes.create_string_buffer(length + 16), ctypes.c_int()
    cipher = ctypes.c_void_p(getattr(libcrypto, f"EVP_aes_{8 * len(key)}_ctr")())
    assert libcrypto.EVP_EncryptInit_ex(context, cipher, None, key, iv) == 1
    assert libcrypto.EVP_EncryptUpdate(context, out, ctypes.byref(done), bytes(length), length) == 1
    libcrypto.EVP_CIPHER_CTX_free(context)
    return out.raw[:length]


def forms(name, key, suite):
    """All values derived from a master key and salt: RFC 4568 6.1, RFC 3711 4.3, RFC 7714 11."""
    salt_len = 12 if "AEAD" in suite else 14
    master, salt = key[:-salt_len], key[-salt_len:]
    yield f"{name} as base64", base64.b64encode(key)
    yield f"{name} as hex", key.hex().encode()
    yield f"{name} (master key)", master
    yield f"{name} (master salt)", salt
    tagged = () if "AEAD" in suite else ((1, "SRTP authentication key", 20), (4, "SRTCP authentication key", 20))
    for label, what, length in ((0, "SRTP key", len(master)), (3, "SRTCP key", len(master)), *tagged):
        iv = bytearray(salt + bytes(16 - salt_len))
        iv[7] ^= label
        yield f"{name}, {what}", aes_ctr(master, bytes(iv), length)


def mappings(pid):
    """(start, end, name, flags) of writable mappings."""
    head = None
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        for line in f:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)", line)
            if m:
                head = (int(m[1], 16), int(m[2], 16), m[4] or "anonymous", m[3])
            elif line.startswith("VmFlags:") and head and "w" in head[3]:
                yield head[0], head[1], head[2], line.split()[1:]


PAGE = 4096


def written(data):
    """The parts of memory that were ever written. Most of large tables never is."""
    begin, zeroes = None, bytes(PAGE)
    for at in range(0, len(data) + PAGE, PAGE):
        empty = at >= len(data) or data[at:at + PAGE] == zeroes
        if begin is None and not empty:
            begin = at
        elif begin is not None and empty:
            yield data[begin:at]
            begin = None


def search(pid, wanted):
    """[(what, mapping's name, flags)] of each form of a key found in a process's memory."""
    pattern = re.compile(b"|".join(re.escape(w) for w in wanted.values()), re.S)
    names = {v: k for k, v in wanted.items()}
    found = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for start, end, where, flags in mappings(pid):
            mem.seek(start)
            try:
                data = mem.read(end - start)
            except OSError:
                continue
            found += [(names[m.group()], where, flags) for part in written(data) for m in pattern.finditer(part)]
    return found


def forget_replies(daemon):
    """Replies are stored for up to a minute, up to 64 MiB. Replies with long SDP displace them."""
    body = calls.sdp("10.200.1.2", 4000, extra="a=x-long:" + 58000 * "x" + "\r\n")
    for i in range(1200):
        reply = daemon.client.raw(b"l%d " % i + ng.encode({"command": "offer", "call-id": "long", "from-tag": "a", "sdp": body}))
        assert len(reply) > 58000, reply[-100:]
    calls.ok(daemon.client.call("delete", call_id="long", from_tag="a", delete_delay=0))


IN_USE = "(master key)", ", SRTP key"


def are_there(daemon, wanted, in_use=IN_USE):
    """The control: the search finds keys of calls that are up, in memory that is marked. in_use: how the names of these end. Returns the
    names of those that are in other memory, too, without the call."""
    up = search(daemon.pid(), wanted)
    locked_up = {what for what, _, flags in up if "dd" in flags}
    for what in wanted:
        if what.endswith(in_use):
            assert what in locked_up, f"{what} is not where it should be: the search is blind"
    outside = sorted({(re.sub(r"^call \d+'s (.*? key \d)?,? ?", "", what), where) for what, where, flags in up if "dd" not in flags})
    print("    outside memory that is marked, while calls are up:", outside)
    return {what for what, _ in outside}


def are_gone(daemon, wanted, told, kept=()):
    """The calls are over: no key is in memory, and none was in the log or in these replies. kept: names of those that the daemon still
    needs, in memory that is marked."""
    left = [(what, where, flags) for what, where, flags in search(daemon.pid(), wanted) if what not in kept or "dd" not in flags]
    log = daemon.text().encode()
    for what, form in wanted.items():
        assert form not in log, f"{what} is in the log"
        for reply in told:
            assert form not in reply, f"{what} is in a reply: {reply[:40]}"
    assert not left, f"left in memory after the calls: {sorted({(what, where) for what, where, _ in left})}"


@cases(("alone",), ("redis",), ("streams",))
def test_keys_are_wiped_and_never_told(net, kept):
    """redis: the calls were restored after a kill, and are saved all the time. streams: set up by
    ng over TCP, HTTP and WebSocket."""
    if "san" in os.path.basename(relay.BUILD):
        raise Skip("sanitizers' memory is too large to be searched")
    # Searching all memory may take minutes on a busy machine. No call may end meanwhile.
    options = ["--log-level=7", "--opencl-min=1", "--workers=1", "--timeout=3600"]
    if kept == "redis":
        if not redisrig.have():
            raise Skip("no redis-server")
        redis = redisrig.Redis(net)
        options += redis.daemon_options()
    if kept == "streams":
        options += ["--listen-tcp-ng=127.0.0.1:22223", "--listen-http=127.0.0.1:22280"]
    daemon = relay.Xcipherd(net, *options).wait_ready()
    clients = 3 * [daemon.client]
    if kept == "streams":
        clients = [web.NgClient(net.gateway, t, ("127.0.0.1", 22223 if t == "tcp" else 22280)) for t in ("tcp", "http", "websocket")]
    pairs = [("80", "32"), ("32", "80"), ("80", "plain")]
    if kept == "alone":  # each key makes the search slower
        pairs += [("AEAD_AES_256_GCM", "AES_256_CM_HMAC_SHA1_80"), ("80", "AEAD_AES_128_GCM")]
    talk = [calls.Call(clients[i % 3], i, *pair).setup() for i, pair in enumerate(pairs)]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    if kept == "redis":
        settled(daemon)
        daemon.process.kill()
        daemon.process.wait()
        daemon = relay.Xcipherd(net, *options).wait_ready()
        settled(daemon)
        assert daemon.statistics()["redis"]["restored"] == len(talk)
        time.sleep(1)  # written again
    wanted = {}
    for n, (call, suites) in enumerate(zip(talk, pairs)):
        for side, suite in enumerate(suites):
            for whose, key in (("terminal", call.key[side]), ("relay", call.wire[side])):
                if key:
                    wanted.update(forms(f"call {n}'s {whose} key {side}", key, suite))
    assert len(set(wanted.values())) == len(wanted) > 24 * len(pairs) - 2, len(wanted)

    are_there(daemon, wanted)
    told = [daemon.client.raw(b"q%d " % n + ng.encode({"command": "query", "call-id": c.id})) for n, c in enumerate(talk)]
    told += [daemon.client.raw(b"r%d " % n + ng.encode({"command": c})) for n, c in enumerate(("list", "statistics", "ping"))]
    if kept == "streams":  # a slow search must not end the connection by missed pings
        for call, transport in zip(talk, 2 * ("tcp", "http", "websocket")):
            call.client = web.NgClient(net.gateway, transport, ("127.0.0.1", 22223 if transport == "tcp" else 22280))
    for call in talk:
        calls.ok(call.delete())
    deadline = time.monotonic() + 60
    while daemon.statistics()["key slots used"]:
        assert time.monotonic() < deadline, "key slots are still in use"
        time.sleep(0.2)
    forget_replies(daemon)
    are_gone(daemon, wanted, told)
    finish(daemon)


@cases((dtls.PROFILE,), ("SRTP_AEAD_AES_256_GCM",))
def test_keys_of_dtls_are_wiped_and_never_told(net, profile):
    """The terminal is OpenSSL's program, which exports the keys."""
    if "san" in os.path.basename(relay.BUILD):
        raise Skip("sanitizers' memory is too large to be searched")
    with test_dtls.rig(net, "--log-level=7") as (daemon, call):
        call.b.profiles = profile
        call.begin().exchange()
        wanted = {}
        for whose, key in zip(("terminal", "relay"), call.b.agreed[1:]):
            wanted.update(forms(f"call 0's {whose} key 1", key, profile))
        assert len(set(wanted.values())) == len(wanted) >= 12, len(wanted)
        are_there(daemon, wanted)
        told = [daemon.client.raw(b"q " + ng.encode({"command": "query", "call-id": call.id})), str(calls.ok(daemon.client.call("statistics"))).encode()]
        call.end()
        wait_for("the session ended", lambda: daemon.statistics()["sessions"]["in use"] == daemon.statistics()["key slots used"] == 0)
        are_gone(daemon, wanted, told)


@contextlib.contextmanager
def recorded(module, name, to):
    """What this function, or class, returns meanwhile."""
    real = getattr(module, name)

    def call(*args, **kw):
        to.append(real(*args, **kw))
        return to[-1]
    setattr(module, name, call)
    yield
    setattr(module, name, real)


def pairs_of(call, ours, theirs, suite):
    """SRTP keys in all forms: of the terminal and of the relay."""
    for whose, key in (("terminal", ours), ("relay", theirs)):
        yield from forms(f"call {call}'s {whose} key 0", key, suite)


def test_keys_of_zrtp_are_wiped_and_never_told(net):
    """Two exchanges of one terminal, so that the second one uses the secret that was retained from the first. Retained secrets stay after the
    calls."""
    if "san" in os.path.basename(relay.BUILD):
        raise Skip("sanitizers' memory is too large to be searched")
    cache, wanted, masters, retained = zrtp_terminal.Cache(), {}, [], set()
    with test_zrtp.cache_files() as options, test_zrtp_peer.daemon_of(net, "--log-level=7", *options) as daemon, recorded(zrtp_terminal.peer_kdf, "secret", masters):
        told = []
        for n in range(2):
            with test_zrtp_peer.calling(net, daemon, cache=cache) as call:
                test_zrtp_peer.secure(call)
                p = call.a.peer
                v, now = p.keys.values, {}
                now.update(pairs_of(n, p.sends(), p.receives(), p.suite()))
                mine = f"call {n}'s "
                now |= {mine + "s0": masters[-1], mine + "agreement's result": v["result"], mine + "session key": p.keys.session, mine + "retained secret": p.keys.rs1}
                now |= {f"{mine}{what} of {role}": v[f"{what}_{role}"] for what in ("mac_key", "key") for role in "ir"}
                assert len(set(now.values())) == len(now) >= 24 and set(p.matched) == ({"rs1"} if n else set()), (len(now), p.matched)
                retained.add(mine + "retained secret")
                are_there(daemon, now, (*IN_USE, "session key", "retained secret"))
                wanted |= now
                told.append(daemon.client.raw(b"q%d " % n + ng.encode({"command": "query", "call-id": call.id})))
                call.end()
                wait_for("the session ended", lambda: daemon.statistics()["sessions"]["in use"] == daemon.statistics()["key slots used"] == 0)
        are_gone(daemon, wanted, told, retained)


def test_keys_of_mikey_are_wiped_and_never_told(net):
    """Each mode, offered by the terminal, and three modes offered to it. The pre-shared key stays after the calls."""
    if "san" in os.path.basename(relay.BUILD):
        raise Skip("sanitizers' memory is too large to be searched")
    peer, wanted, told, up = mikey_terminal.peer, {"pre-shared key": test_mikey.PSK}, [], []
    with test_mikey.rig(net, "--log-level=7") as world:
        daemon = world.daemon
        for n, (mode, ours) in enumerate([(mode, False) for mode in peer.MODES] + [("psk", True), ("pke", True), ("dh", True)]):
            drawn, envelopes = {}, []

            def random(what, length, drawn=drawn):
                return drawn.setdefault(what, os.urandom(length))
            with recorded(peer.crypto, "Envelope", envelopes):
                side = test_mikey.bob(world, random=random) if ours else test_mikey.initiator(world, mode, random=random)
                terminal = test_mikey.terminal(world, net, mikey_terminal.Mikey, "callee" if ours else "caller").use(side)
                other = test_mikey.terminal(world, net, dtls.Plain, "caller" if ours else "callee")
                flags = {"transport_protocol": "RTP/SAVP", "flags": ["MIKEY-peer=" + test_mikey.BOB], "MIKEY": ["require", mode]} if ours \
                    else {"transport_protocol": "RTP/AVP"}
                call = test_mikey.Call(daemon, *((other, terminal) if ours else (terminal, other)), **flags).begin()
            call.exchange()
            mine, keys = f"call {n}'s ", side.keys
            send, receive = (b"".join(keys.master(m)) for m in ((2, 1) if ours else (1, 2)))
            now = dict(pairs_of(n, send, receive, keys.suite)) | {mine + "TGK": keys.key.data}
            if "env_key" in drawn:
                now[mine + "envelope key"] = drawn["env_key"]
            if envelopes:
                now |= {f"{mine}envelope's {what}": getattr(envelopes[-1], what) for what in ("encr", "salt", "auth")}
            assert len(set(now.values())) == len(now) >= 13 and (bool(envelopes) == (mode != "dh")), (mode, len(now))
            wanted |= now
            told.append(daemon.client.raw(b"q%d " % n + ng.encode({"command": "query", "call-id": call.id})))
            up.append(call)
        are_there(daemon, wanted, (*IN_USE, "pre-shared key"))
        for call in up:
            call.end()
        wait_for("the calls' end", lambda: daemon.statistics()["key slots used"] == 0)
        are_gone(daemon, wanted, told, {"pre-shared key"})


def test_no_core_dump(net):
    """With dumps sent to a program, a limit of 0 does not suffice. The process must be undumpable;
    then root owns its files in /proc although the daemon runs as another user. The filter leaves
    out all memory."""
    daemon = relay.Xcipherd(net, "--engine=serial", user=65534)
    try:
        daemon.wait_ready()
    except RuntimeError as error:
        if "Permission denied" in str(error) and "setpriv" in str(error):
            raise Skip("the build folder cannot be read by another user") from error
        raise
    assert os.stat(f"/proc/{daemon.pid()}/environ").st_uid == 0, "the process is dumpable"
    with open(f"/proc/{daemon.pid()}/limits", encoding="ascii") as f:
        assert re.search(r"^Max core file size +0 +0 ", f.read(), re.M)
    # Debuggers obey it when root makes them write a core file.
    with open(f"/proc/{daemon.pid()}/coredump_filter", encoding="ascii") as f:
        assert int(f.read(), 16) == 0, "libraries keep keys in memory that is not marked"
    finish(daemon)
