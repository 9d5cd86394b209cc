# SPDX-License-Identifier: GPL-2.0-or-later
"""The reach of a local user, or of code injected into the daemon: capabilities of all threads after
the start, the user, and file modes."""
import ctypes
import os
import re
import stat
import struct
import tempfile

import calls
import relay
from redisrig import Load
from run import Skip, cases
from test_redis import BAD, until

NET_ADMIN, NET_RAW, IPC_LOCK, BPF = 1 << 12, 1 << 13, 1 << 14, 1 << 39
SYS_BPF, BPF_PROG_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD = 321, 13, 15  # bpf(2), x86-64
FULL = "FULL" in os.environ
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
NEEDED = {"udp": 0, "nfqueue": NET_ADMIN | NET_RAW, "xdp": NET_ADMIN | NET_RAW | BPF}


def threads(daemon):
    """(name, fields) of each thread."""
    folder = f"/proc/{daemon.pid()}/task"
    found = []
    with open(f"/proc/{daemon.pid()}/limits", encoding="ascii") as f:
        unlimited = re.search(r"^Max locked memory +unlimited", f.read(), re.M)
    for task in os.listdir(folder):
        with open(f"{folder}/{task}/status", encoding="utf-8") as f:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        found.append((fields["Name"], fields))
    return found, 0 if unlimited else IPC_LOCK


def has_only(daemon, needed, user=0):
    found, lock = threads(daemon)
    for name, fields in found:
        for which in SETS:
            assert int(fields[which], 16) & ~(needed | lock) == 0, f"{name}: {which} {fields[which]}"
        assert fields["NoNewPrivs"] == "1", name
        assert fields["Uid"].split() == [str(user)] * 4 and fields["Gid"].split() == [str(user)] * 4, (name, fields["Uid"], fields["Gid"])
        assert user == 0 or fields["Groups"].strip() == "", (name, fields["Groups"])
    return [name for name, _ in found]


def media_flow(net, daemon, n=4):
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(n)]
    result = Load(net, relay.BUILD, talk, 50, 1).result()
    assert not any(result[k] for k in (*BAD, "lost")), result
    for c in talk:
        calls.ok(c.delete())


def rules(net):
    return net.run(net.gateway, "nft", "list", "ruleset", check=False).stdout + net.run(net.gateway, "iptables-save", check=False).stdout


@cases(("udp", "serial", ""), ("udp", "opencl", ""), ("udp", "serial", "65534"), ("nfqueue", "serial", ""), ("nfqueue", "serial", "65534"),
       ("xdp", "serial", ""), ("xdp", "serial", "65534"))
def test_every_thread_keeps_only_what_its_steering_needs(net, steering, engine, user):
    """Media flow, and rules and links are removed at the end, so the kept capabilities suffice.
    Control: the daemon started with all of root's."""
    with tempfile.TemporaryDirectory(prefix="xc-rec-") as folder:
        os.chmod(folder, 0o777)
        options = [f"--user={user}"] if user else []
        if FULL:
            os.environ["POCL_DEVICES"] = "pthread"  # a driver with threads of its own, which compiles for a minute
        daemon = relay.Xcipherd(net, f"--steering={steering}", f"--engine={engine}", f"--recording-dir={folder}",
                                f"--play-dir={folder}", *options).wait_ready()
        assert f"steering {steering}" in daemon.text(), daemon.text()
        names = has_only(daemon, NEEDED[steering], int(user or 0))
        assert {"worker-0", "recording", "play-files"} <= set(names), names
        assert not FULL or engine == "serial" or len(names) > len({"xcipherd", "recording", "play-files", "xdp-links", "worker-0", "worker-1"} & set(names)), names
        media_flow(net, daemon)
        if steering == "nfqueue":
            assert "220" in rules(net)
        has_only(daemon, NEEDED[steering], int(user or 0))
        assert daemon.stop() == 0, daemon.text()
        assert "warning" not in daemon.text(), daemon.text()
        assert "220" not in rules(net) if steering == "nfqueue" else True


def programs(daemon):
    """{name: bytes of machine code} of the BPF programs that the daemon has loaded."""
    libc, found = ctypes.CDLL(None, use_errno=True), {}
    folder = f"/proc/{daemon.pid()}/fdinfo"

    def bpf(command, attr):
        fd = libc.syscall(SYS_BPF, command, ctypes.c_char_p(attr), len(attr))
        assert fd >= 0, os.strerror(ctypes.get_errno())
        return fd
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="ascii") as f:
            number = re.search(r"^prog_id:\s*(\d+)$", f.read(), re.M)
        if not number:
            continue
        fd = bpf(BPF_PROG_GET_FD_BY_ID, struct.pack("=III", int(number[1]), 0, 0))
        info = ctypes.create_string_buffer(80)
        bpf(BPF_OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)))
        os.close(fd)
        found[info.raw[64:80].rstrip(b"\0").decode()] = struct.unpack_from("=I", info.raw, 16)[0]
    return found


@cases(("xdp", "xcipher_xdp"), ("nfqueue", "xcipher_tc"))
def test_programs_have_no_barriers_against_speculation(net, steering, name):
    """CAP_PERFMON at the start, and only then: without it the kernel adds barriers, which make the program three times as slow."""
    size = []
    for wrap in ([], ["setpriv", "--bounding-set=-perfmon"]):
        daemon = relay.Xcipherd(net, f"--steering={steering}", "--engine=serial", wrap=wrap).wait_ready()
        has_only(daemon, NEEDED[steering])
        size.append(programs(daemon).get(name))
        media_flow(net, daemon, 1)
        assert daemon.stop() == 0
    if not all(size):
        raise Skip(f"the kernel did not translate {name}, or has no tcx")
    assert size[0] < size[1], size


def test_recordings_and_links_after_the_drop(net):
    """After capabilities are dropped, a lost XDP link is restored, and a recording is written."""
    with tempfile.TemporaryDirectory(prefix="xc-rec-") as folder:
        daemon = relay.Xcipherd(net, "--steering=xdp", "--engine=serial", f"--recording-dir={folder}").wait_ready()
        has_only(daemon, NEEDED["xdp"])
        for _ in range(2):
            net.run(net.gateway, "ip", "link", "set", "dev", "g1", "down")
            net.run(net.gateway, "ip", "link", "set", "dev", "g1", "up")
        talk = calls.Call(daemon.client, 1, "80", "32", flags={"record_call": "yes"}).setup()
        Load(net, relay.BUILD, [talk], 50, 1).result()
        calls.ok(talk.delete())
        until(lambda: any(f.endswith(".pcap") for _, _, files in os.walk(folder) for f in files))
        for where, _, files in os.walk(folder):
            for f in files:
                assert stat.S_IMODE(os.stat(os.path.join(where, f)).st_mode) & 0o027 == 0, f
        assert daemon.stop() == 0


def test_low_ports_and_another_user(net):
    """A port below 1024 is bound before the capability is dropped."""
    with tempfile.TemporaryDirectory(prefix="xc-pid-") as folder:
        os.chmod(folder, 0o777)
        pid = os.path.join(folder, "pid")
        old = os.umask(0)
        try:
            daemon = relay.Xcipherd(net, "--engine=serial", "--user=nobody", "--group=daemon", "--listen-tcp-ng=127.0.0.1:80", f"--pidfile={pid}").wait_ready()
        finally:
            os.umask(old)
        fields = threads(daemon)[0][0][1]
        assert fields["Uid"].split()[0] == "65534" and fields["Gid"].split()[0] == "1" and fields["Groups"].strip() == "", fields
        assert stat.S_IMODE(os.stat(pid).st_mode) & 0o022 == 0
        assert ":80 " in net.run(net.gateway, "ss", "-Hltn").stdout
        media_flow(net, daemon, 1)
        assert daemon.stop() == 0


@cases(("--user=no-such-user", "unknown user"), ("--group=daemon", "--group needs --user"))
def test_a_user_that_cannot_be_is_told(net, option, word):
    try:
        relay.Xcipherd(net, "--engine=serial", option).wait_ready()
        raise AssertionError("started")
    except RuntimeError as e:
        assert word in str(e), e


@cases((0o644, True), (0o640, False), (0o600, False))
def test_a_password_in_a_file_that_all_can_read_is_told(net, mode, told):
    with tempfile.TemporaryDirectory(prefix="xc-conf-") as folder:
        conf = os.path.join(folder, "xcipherd.conf")
        with open(conf, "w", encoding="ascii") as f:
            f.write("[xcipher]\nredis = secret-word@127.0.0.1:1/0\nredis-key-file = none\n")
        os.chmod(conf, mode)
        daemon = relay.Xcipherd(net, "--engine=serial", f"--config-file={conf}").wait_ready()
        lines = [line for line in daemon.text().splitlines() if conf in line]
        assert bool(lines) == told and all("chmod 640" in line for line in lines), lines
        assert "secret-word" not in daemon.text()
        assert daemon.stop() == 0
        daemon = relay.Xcipherd(net, "--engine=serial", "--redis=secret-word@127.0.0.1:1/0", "--redis-key-file=none").wait_ready()
        assert re.search("warning.*--redis-password-file", daemon.text()), daemon.text()
        assert daemon.stop() == 0
        daemon = relay.Xcipherd(net, "--engine=serial", "--redis=127.0.0.1:1/0", "--redis-key-file=none").wait_ready()  # control
        assert "--redis-password-file" not in daemon.text()
        assert "every client that can write to it controls them" in daemon.text()
        assert daemon.stop() == 0

SECRETS = {"ng-key-file": [], "redis-key-file": ["--redis=127.0.0.1:1/0"],
           "redis-password-file": ["--redis=127.0.0.1:1/0", "--redis-key-file=none"], "recording-dir": []}


@cases(*((option,) for option in SECRETS))
def test_what_the_user_cannot_open_stops_the_start(net, option):
    """The first reload already fails. Root could read the file, so the daemon opens it as its user.
    Control: a file of that user."""
    with tempfile.TemporaryDirectory(prefix="xc-user-") as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "x")
        if option == "recording-dir":
            os.mkdir(path, 0o755)
        else:
            with open(path, "w", encoding="ascii") as f:
                f.write(bytes(range(32)).hex() + "\n")
            os.chmod(path, 0o600)
        options = ["--engine=serial", "--user=65534", f"--{option}={path}", *SECRETS[option]]
        key = bytes(range(32)) if option == "ng-key-file" else None
        daemon = relay.Xcipherd(net, *options, ng_key=key)
        assert daemon.process.wait(60) != 0
        assert re.search(f"--{option}={path}.*Permission denied", daemon.text()), daemon.text()
        os.chown(path, 65534, 65534)
        daemon = relay.Xcipherd(net, *options, ng_key=key).wait_ready()
        calls.ok(daemon.client.call("reload"))
        assert daemon.stop() == 0, daemon.text()


def test_an_ini_file_that_a_reload_cannot_read_is_told(net):
    with tempfile.TemporaryDirectory(prefix="xc-user-") as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "xcipherd.conf")
        with open(path, "w", encoding="ascii") as f:
            f.write("[xcipher]\nlog-level = 6\n")
        os.chmod(path, 0o600)
        for owner, result in ((0, "error"), (65534, "ok")):
            os.chown(path, owner, owner)
            daemon = relay.Xcipherd(net, "--engine=serial", "--user=65534", f"--config-file={path}").wait_ready()
            assert ("every reload will fail" in daemon.text()) == (result == "error"), daemon.text()
            assert daemon.client.call("reload")["result"] == result
            assert daemon.stop() == 0


@cases((True,), (False,))
def test_locked_memory_that_stays_limited_is_told(net, limited):
    """The only capability udp may keep. Without CAP_SYS_RESOURCE root cannot raise the limit."""
    wrap = ["prlimit", "--memlock=1048576:1048576", "setpriv", "--bounding-set=-sys_resource"] if limited else []
    daemon = relay.Xcipherd(net, "--engine=serial", wrap=wrap).wait_ready()
    found, lock = threads(daemon)
    assert lock or not limited
    kept = any(int(fields["CapPrm"], 16) & IPC_LOCK for _, fields in found)
    assert ("CAP_IPC_LOCK is kept" in daemon.text()) == kept and (kept or not limited), daemon.text()
    assert daemon.stop() == 0


# --- Compiled kernels --------------------------------------------------------------------------------------------------


def kernels_of(daemon):
    """The folders from which shared libraries with compiled kernels were loaded."""
    with open(f"/proc/{daemon.pid()}/maps", encoding="utf-8") as f:
        paths = {line.split(None, 5)[5].rstrip("\n") for line in f if line.rstrip().endswith(".so") and "xc_recrypt" in line}
    return {os.path.dirname(p) for p in paths}


class Caching(relay.Xcipherd):
    """Sets these variables, and removes all others that name a cache folder."""
    variables = {}

    def environment(self):
        return {k: v for k, v in super().environment().items() if k not in ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR")} | self.variables


@cases(("", True), ("HOME", False), ("POCL_CACHE_DIR", True))
def test_kernels_are_loaded_only_from_folders_of_the_daemons_user(net, variable, others):
    """Compiled kernels that another user could write would be his code. Without any variable, PoCL
    uses a fixed folder in /tmp."""
    if "san" in os.path.basename(relay.BUILD):
        raise Skip("PoCL compiles all kernels anew, three times as long under sanitizers")
    with tempfile.TemporaryDirectory(prefix="xc-pocl-") as folder:
        if others:
            os.chown(folder, 65534, 65534)
        Caching.variables = {variable: folder} if variable else {}
        daemon = Caching(net, "--engine=opencl")
        if variable == "POCL_CACHE_DIR" and others:
            assert daemon.process.wait(60) != 0
            assert f"POCL_CACHE_DIR={folder} is not a safe folder for compiled kernels" in daemon.text(), daemon.text()
            return
        daemon.wait_ready()
        where = kernels_of(daemon)
        private = {w for w in where if w.startswith("/tmp/xcipher-pocl-")}
        assert where and where == (private if others else {w for w in where if w.startswith(folder + "/")}), where
        media_flow(net, daemon, 1)
        assert daemon.stop() == 0, daemon.text()
        assert ("set POCL_CACHE_DIR" in daemon.text()) == others, daemon.text()
        assert not any(os.path.exists(w) for w in private)
