# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that a sequence of steps runs on: namespaces, the daemon, Redis, terminals, the sniffer and the checker."""
import tempfile
import time

import checker
import keyed
import model
import redisrig
import relay
import sdp
import terminals
import sniffer

PLACES = ("east", "west", "stranger")
OWN = ("10.200.1.1", "10.200.2.1", "10.200.3.1", "fd00:1::1", "fd00:2::1", "fd00:3::1", "127.0.0.1", "::1")
MEDIA = (20000, 21999)  # below the ports that the kernel gives to clients of ng
PLAIN = {"replace": ["origin"], "ICE": "remove"}


class Silent(Exception):
    """A request without a reply."""


class World:
    def __init__(self, net, options=(), enabled=None, redis=True, steering="udp"):
        self.net, self.options, self.steering = net, list(options), steering
        # Packets to addresses elsewhere leave by the stranger's link, where the sniffer sees them.
        net.run(net.gateway, "ip", "route", "replace", "default", "via", "10.200.3.2")
        self.checker = checker.Checker(OWN, MEDIA, enabled=enabled)
        self.checker.event("stranger", "10.200.3.2")
        self.model = model.Model(self.checker, self.flush)
        self.sniffer = sniffer.Sniffer(net.gateway, [net.terminal[p] for p in PLACES] if steering == "xdp" else ())
        self.sockets = terminals.Sockets()
        for address in OWN[:2] + ("fd00:1::1",):
            self.sockets.get(net.gateway, address, sdp.UNUSED)
        self.attackers = terminals.Attackers(net, self.sockets)
        self.redis = redisrig.Redis(net) if redis and redisrig.have() else None
        self.redis_up, self.dump = self.redis is not None, None
        self.daemon = self.control = None
        self.events, self.last, self.number = [], {}, 0
        self.refused, self.taken, self.starts, self.log = 0, 0, 0, ""
        self.kinds, self.folder = dict(keyed.KINDS), tempfile.TemporaryDirectory(prefix="xc-attack-")
        self.start()

    # --- The daemon ------------------------------------------------------------------------------------------------------

    def start(self):
        redis = self.redis.daemon_options() if self.redis else []
        mikey = f"--mikey-config={keyed.mikey_config(self.folder.name)}"
        self.daemon = relay.Xcipherd(self.net, "--engine=serial", "--workers=1", f"--port-min={MEDIA[0]}", f"--port-max={MEDIA[1]}",
                                     "--delete-delay=0", f"--steering={self.steering}", mikey, *redis, *self.options,
                                     addresses=OWN[:2] + ("fd00:1::1",))
        self.daemon.wait_ready()
        self.starts += 1
        self.control = terminals.Control(self.net, self.daemon.client)
        for to in self.control.to:
            self.checker.event("told_port", *to, self.control.id)
            self.checker.event("told_plain", *to)

    def wait_for_redis(self):
        sniffer.wait_until(lambda: self.redis_state()["waiting"] == 0, 120, "calls are not written to Redis")

    def redis_state(self):
        return self.daemon.statistics()["redis"]

    def end(self, kill):
        self.control.close()
        if kill:
            self.daemon.process.kill()
            self.daemon.process.wait()
            self.model.unsettle_all()
        elif self.daemon.stop() != 0:
            self.violation("alive", "the daemon did not stop cleanly:\n" + self.daemon.text()[-6000:])
        self.log += self.daemon.text()
        self.daemon = None

    def violation(self, check, text):
        self.checker.fail(check, text, None)

    # --- ng --------------------------------------------------------------------------------------------------------------

    def ask(self, command, mikey=False, **keys):
        """Sends a request, which must get a reply. Returns the reply, or None if it is an error. mikey: the SDP may have MIKEY messages of the daemon."""
        try:
            reply = self.daemon.client.call(command, tries=60, **keys)
        except (TimeoutError, OSError) as error:
            self.violation("alive", f"no reply to {command}: {error}; the daemon {'runs' if self.daemon.process.poll() is None else 'is dead'}\n"
                           + self.daemon.text()[-6000:])
            raise Silent from error
        if reply.get("result") not in ("ok", "error", "pong", "load limit") or reply["result"] == "error" and not reply.get("error-reason"):
            self.violation("alive", f"{command} was answered {reply}")
        if reply.get("sdp") is not None:
            why = sdp.unclean(reply["sdp"], mikey)
            if why:
                self.violation("sdp", f"{command}: {why} in\n{reply['sdp'][:600]!r}")
        good = reply.get("result") == "ok"
        self.taken, self.refused = self.taken + good, self.refused + (not good)
        self.why = None if good else reply.get("error-reason")
        return reply if good else None

    def owner(self, port):
        """For reports: the call that has a media port, as the daemon says."""
        try:
            for call in self.daemon.client.call("list", limit=1000)["calls"]:
                tags = self.daemon.client.call("query", call_id=call).get("tags", {})
                for tag, t in tags.items():
                    for m in t["medias"]:
                        if port in [s["local port"] for s in m["streams"]]:
                            return f"{call}, tag {tag} of {list(tags)}, media {m['index']}"
        except (TimeoutError, OSError, AttributeError):
            pass
        return "no call"

    def end_call(self, call):
        self.model.calls.pop(call.id, None)
        for party in call.parties.values():
            party.terminal.close()

    @staticmethod
    def end_party(call, party):
        call.parties.pop(party.tag, None)
        party.terminal.close()

    # --- Barriers --------------------------------------------------------------------------------------------------------

    def flush(self):
        """Returns when the daemon has processed all packets sent, and the checker all packets that left."""
        if self.daemon:
            try:
                self.control.flush()
            except TimeoutError as error:
                self.violation("alive", f"no media pass: {error}")
                raise Silent from error
        self.flush_wire()
        self.sockets.drain()

    def flush_wire(self):
        for p in self.sniffer.read():
            before = len(self.checker.found)
            self.checker.event("packet", p)
            for v in self.checker.found[before:before + 1] if before < 5 else ():
                v.text += f"; port {p.sport} is of {self.owner(p.sport)}"
            if p.data[:1] and p.data[0] >> 6 == 2 and (p.src, p.sport) in self.checker.ports:
                self.last[(p.src, p.sport)] = p.data
        if self.sniffer.lost:
            self.sniffer.lost = 0
            self.checker.count["sniffer lost"] += 1

    # --- The end ---------------------------------------------------------------------------------------------------------

    def finish(self):
        """Deletes all calls and stops the daemon: no port stays in use, and sanitizers report nothing."""
        if self.daemon is None:
            self.start()
        for call in self.daemon.client.call("list", limit=1000)["calls"]:
            self.ask("delete", call_id=call, delete_delay=0)

        def left():
            s = self.daemon.statistics()
            return {k: s[k] for k in ("ports used", "streams used", "key slots used", "contexts used") if s[k]}
        end = time.monotonic() + 60
        while left() and time.monotonic() < end:
            time.sleep(0.1)
        calls = self.daemon.client.call("list", limit=1000)["calls"]
        if left() or calls:
            self.violation("alive", f"left after deleting everything: {left()}, calls {calls}")
        self.end(kill=False)

    def close(self):
        for call in list(self.model.calls.values()):
            self.end_call(call)
        self.sniffer.close()
        self.sockets.close()
        self.folder.cleanup()
        if self.daemon:
            self.daemon.process.kill()
            self.daemon.process.wait()
        if self.redis:
            self.redis.stop()
