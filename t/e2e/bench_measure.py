# SPDX-License-Identifier: GPL-2.0-or-later
"""One measurement of bench_path.py: a relay, a bare loop or nothing between two ends of the load, in namespaces of its own."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import calls
import netns
import relay

TERMINAL, GATEWAY, FIRST_PORT = "10.200.1.2", "10.200.1.1", 20000
SECOND, PER_ADDRESS = "10.200.9.1", 10000


BEGAN = time.monotonic()


def progress(text):
    took = int(time.monotonic() - BEGAN)
    print(f"bench, {took // 60}:{took % 60:02}: {text}", file=sys.stderr, flush=True)


def quiet_terminal(net):
    """Terminals have no sockets. Their packet socket reads a packet, which is then dropped before
    ICMP answers it. The drop is early, because on a veth the receiver runs in the sender's
    softirq, on the relay's account."""
    drop = f"add rule %s udp dport {FIRST_PORT}-65535 drop"
    ingress = "add table netdev bench; add chain netdev bench p { type filter hook ingress device t1 priority 0; }; " + drop % "netdev bench p"
    prerouting = "add table ip bench; add chain ip bench p { type filter hook prerouting priority -400; }; " + drop % "ip bench p"
    if net.run(net.terminal["caller"], "nft", ingress, check=False).returncode:
        net.run(net.terminal["caller"], "nft", prerouting)


def srtpload(net, spec, legs, total, seconds, drain_ms=500, burst_us=50, stamps="leave", device="t1", priority=0, **words):
    """drain_ms: waiting time for packets in flight at the end. stamps: delay begins when a packet
    leaves the interface; else, with less work on both ends, with the call that sends it. priority: of
    SCHED_FIFO, so that other programs do not delay it, and it sends no larger bursts; 0: none. More
    words as in t/tool/srtpload.c."""
    words.update(drain_ms=drain_ms, burst_us=burst_us, stamps=stamps)
    with tempfile.NamedTemporaryFile("w", suffix=".spec") as f:
        f.write(spec)
        f.flush()
        before = ["chrt", "-f", str(priority)] if priority else []
        p = net.spawn(net.terminal["caller"], [*before, os.path.join(relay.BUILD, "t", "srtpload"), device, GATEWAY, f.name, str(total / legs),
                                               str(seconds), *[f"{k.replace('_', '-')}={v}" for k, v in words.items()]],
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = p.communicate()
    if p.returncode:
        raise RuntimeError(f"srtpload: {err}")
    return json.loads(out)


def judge(r):
    bad = {k: r[k] for k in ("wrong", "bad_auth", "duplicates", "unstamped") if r.get(k)}
    if bad:
        progress(f"NOT RIGHT: {bad}")
    return r


class Elsewhere:
    """Measures processor time taken by others, and the relay threads' waits for a processor."""

    def __init__(self, pid):
        self.pid, self.before = pid, self.look(pid)

    @staticmethod
    def look(pid):
        tick, used, stolen = os.sysconf("SC_CLK_TCK"), 0.0, 0.0
        for p in filter(str.isdigit, os.listdir("/proc")):
            if int(p) in (pid, os.getpid()):  # this program's own waiting is its own
                continue
            try:
                with open(f"/proc/{p}/stat", encoding="utf-8", errors="replace") as f:
                    text = f.read()
                if "(ksoftirqd/" not in text:  # its work belongs to the path
                    used += sum(int(v) for v in text.rsplit(")", 1)[1].split()[11:15]) / tick
            except OSError:
                pass  # it has ended, and its parent has its time
        with open("/proc/stat", encoding="ascii") as f:
            stolen = int(f.readline().split()[8]) / tick
        return {"at": time.monotonic(), "used": used, "stolen": stolen, "waited": Elsewhere.waited(pid)}

    @staticmethod
    def waited(pid):
        """Seconds; 0 where the kernel does not report it."""
        ns = 0
        for t in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{t}/schedstat", encoding="ascii") as f:
                    ns += int(f.read().split()[1])
            except OSError:
                pass
        return ns / 1e9

    def since(self, seconds):
        """seconds: duration of the load."""
        now = self.look(self.pid)
        d = {k: max(0.0, now[k] - self.before[k]) for k in now}
        machine_s = d["at"] * os.cpu_count()
        return {"else_percent": 100 * (d["used"] + d["stolen"]) / machine_s, "steal_percent": 100 * d["stolen"] / machine_s,
                "waits_ms": 1e3 * d["waited"] / seconds}


def setup(daemon, count, pair):
    """Beyond PER_ADDRESS, calls use one address of the gateway per side. RTCP ports follow RTP
    ports; no RTCP is sent."""
    many = count > PER_ADDRESS
    flags, step = ({"direction": ["a", "b"]}, 2) if many else (None, 4)
    return [set_up(calls.Call(daemon.client, i, *pair, flags=flags, ports=(FIRST_PORT + step * i, FIRST_PORT + step * i + step // 2)))
            for i in range(count)]


def set_up(call):
    """Retries a request: a relay whose workers get no processor time refuses calls while its queues are full."""
    for _ in range(5):
        try:
            return call.setup()
        except calls.Failed as why:
            if "busy" not in str(why):
                raise
            time.sleep(0.2)
            call = calls.Call(call.client, 0, *call.text, flags=call.flags, ports=call.ports)
    return call.setup()


def second_address(net):
    """Another local address, after the first."""
    net.run(net.gateway, "ip", "addr", "add", SECOND + "/32", "dev", "lo")
    net.run(net.terminal["caller"], "ip", "route", "add", SECOND + "/32", "via", GATEWAY)


def two_addresses(start):
    def with_both(net):
        original = relay.Relay.__init__

        def init(self, net, args):
            args = [a for a in args if not a.startswith(("--interface=", "--port-min=", "--port-max="))]
            original(self, net, [*args, f"--interface=a/{GATEWAY}", f"--interface=b/{SECOND}", "--port-min=1024", "--port-max=65535"])
        relay.Relay.__init__ = init
        try:
            return start(net)
        finally:
            relay.Relay.__init__ = original
    return with_both


def descriptors_for(count):
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 4 * count + 256


def measure(start, count, total, pair, seconds, stamps="leave"):
    """total: packets per second of all legs together."""
    with netns.Net(("caller",)) as net:
        quiet_terminal(net)
        if count > PER_ADDRESS:
            second_address(net)
            start = two_addresses(start)
        daemon = start(net).wait_ready()
        before, cpu, rss = time.monotonic(), daemon.cpu_seconds(), daemon.rss_kib()
        talk = setup(daemon, count, pair)
        r = {"setup_ms": 1e3 * (time.monotonic() - before) / count, "setup_cpu_ms": 1e3 * (daemon.cpu_seconds() - cpu) / count,
             "kib_per_call": (daemon.rss_kib() - rss) / count}
        r["setups"] = 1e3 / r["setup_ms"]
        time.sleep(0.3)
        elsewhere, cpu = Elsewhere(daemon.pid()), daemon.cpu_seconds()
        r.update(judge(srtpload(net, "".join(c.spec() for c in talk), 2 * count, total, seconds, stamps=stamps)))
        r["cpu_us"] = 1e6 * (daemon.cpu_seconds() - cpu) / max(r["received"], 1)
        r["cpu_percent"] = 100 * (daemon.cpu_seconds() - cpu) / r["seconds"]
        r.update(elsewhere.since(r["seconds"]))
        if isinstance(daemon, relay.Xcipherd):
            s = daemon.statistics()
            r["mean_batch"] = float(s["mean batch"])
            r["stages_us"] = {k: float(v["mean_us"]) for k, v in s["stages"].items()}
            r["dropped"] = {k: v for k, v in s["drops"].items() if v}
        daemon.stop()
    return r


def floor(steering, window_us, count, total, seconds):
    with netns.Net(("caller",)) as net:
        return floor_in(net, steering, window_us, count, total, seconds)


def floor_in(net, steering, window_us, count, total, seconds):
    quiet_terminal(net)
    if steering == "nfqueue":
        net.forward()
    p = net.spawn(net.gateway, [os.path.join(relay.BUILD, "t", "steer_floor"), steering, "220", "2000-65535", GATEWAY, str(count),
                                str(window_us), TERMINAL, str(FIRST_PORT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ports = []
    for line in p.stdout:
        if line.startswith("ready"):
            break
        ports.append(int(line.split()[2]))
    else:
        raise RuntimeError(f"steer_floor {steering} did not begin")
    spec = "".join(f"{TERMINAL} {FIRST_PORT + 2 * k} 1 {GATEWAY} {port} 1 plain - plain -\n" for k, port in enumerate(ports))
    elsewhere, cpu = Elsewhere(p.pid), relay.cpu_seconds_of(p.pid)
    r = judge(srtpload(net, spec, 2 * count, total, seconds))
    r["cpu_us"] = 1e6 * (relay.cpu_seconds_of(p.pid) - cpu) / max(r["received"], 1)
    r.update(elsewhere.since(r["seconds"]))
    p.stdin.close()
    p.wait(60)
    return r


def generator(legs, total, seconds, stamps="leave"):
    """The limit of the load program: the gateway's kernel forwards its packets straight back to it."""
    with netns.Net(("caller",)) as net:
        quiet_terminal(net)
        net.forward()
        spec = "".join(f"{TERMINAL} {FIRST_PORT + 2 * k} 1 {TERMINAL} {FIRST_PORT + 2 * (k ^ 1)} 1 plain - plain -\n" for k in range(legs))
        elsewhere = Elsewhere(os.getpid())
        r = judge(srtpload(net, spec, legs, total, seconds, stamps=stamps))
        r.update(elsewhere.since(r["seconds"]))
        return r
