# SPDX-License-Identifier: GPL-2.0-or-later
"""Our monitoring read by other programs: a HEP collector (Kamailio's sipcapture), Prometheus'
parser, Grafana's model of a dashboard."""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time

import calls
import ng
import relay
from run import Skip
from test_http import start
from test_relay import finish

HERE = os.path.dirname(os.path.abspath(__file__))
GRAFANA = os.path.join(HERE, "../../build/webrtc/grafana")
KAMAILIO = "/usr/sbin/kamailio"
COLLECTOR = """
debug=2
log_stderror=yes
children=1
listen=udp:127.0.0.1:9060
disable_tcp=yes
loadmodule "pv.so"
loadmodule "xlog.so"
loadmodule "db_text.so"
loadmodule "sipcapture.so"
modparam("sipcapture", "db_url", "text://FOLDER")
modparam("sipcapture", "hep_capture_on", 1)
modparam("sipcapture", "insert_retries", 0)
modparam("sipcapture", "nonsip_hook", 1)
request_route { drop; }
event_route[sipcapture:request] {
	xlog("L_WARN", "HEP: $hep(0x00b) $hep(0x00c) $hep(0x003):$hep(0x007) $hep(0x004):$hep(0x008) $hep(0x011) $hep(0x00f)\\n");
	drop;
}
"""


class Collector:
    def __init__(self, net, folder):
        self.net, self.path = net, os.path.join(folder, "log")
        with open(os.path.join(folder, "kamailio.cfg"), "w", encoding="utf-8") as f:
            f.write(COLLECTOR.replace("FOLDER", folder))
        with open(self.path, "w", encoding="utf-8") as f:
            self.process = net.spawn(net.gateway, [KAMAILIO, "-f", os.path.join(folder, "kamailio.cfg"), "-DD", "-E", "-Y", folder], stdout=f, stderr=f)

    def text(self):
        with open(self.path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def reports(self):
        """The fields of each report: protocol, node, source, destination, Call-ID, JSON."""
        return [line.split("HEP: ", 1)[1].split(" ", 5) for line in self.text().splitlines() if "HEP: " in line]

    def wait(self, holds, what):
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end and self.process.poll() is None, (what, self.text()[-2000:])
            time.sleep(.05)


def test_a_collector_reads_our_reports(net):
    """Kamailio's sipcapture, which stores for Homer, reads protocol, node, addresses, Call-ID and report."""
    if not os.path.exists(KAMAILIO):
        raise Skip("no kamailio")
    with tempfile.TemporaryDirectory(prefix="xcipher-hep-") as folder:
        collector = Collector(net, folder)
        collector.wait(lambda: "probe_max_receive_buffer(): SO_RCVBUF is finally" in collector.text(), "start")
        daemon = start(net, "--homer=127.0.0.1:9060", "--homer-id=77")
        talk = calls.Call(daemon.client, 1, "plain", "plain").setup()
        near = ng.socket_in(net.terminal["caller"])
        near.bind((talk.ip[0], talk.ports[0] + 1))
        speech = ng.socket_in(net.terminal["caller"])
        speech.bind((talk.ip[0], talk.ports[0]))
        speech.sendto(struct.pack(">BBHII", 0x80, 0, 1, 160, 7) + bytes(160), (talk.to_caller["ip"], talk.to_caller["port"]))

        def reported():
            near.sendto(struct.pack(">BBHIIIIII", 0x80, 200, 6, 7, 1, 0, 5000, 100, 16000), (talk.to_caller["ip"], talk.to_caller["rtcp"]))
            return collector.reports()

        collector.wait(reported, "a report")
        protocol, node, source, to, call_id, report = collector.reports()[0]
        assert (protocol, node, call_id) == ("5", "77", talk.id), collector.reports()
        assert source == f"{talk.ip[0]}:{talk.ports[0] + 1}" and to == f"{talk.to_caller['ip']}:{talk.to_caller['rtcp']}"
        report = json.loads(report)
        assert report["type"] == 200 and report["sender_information"]["packets"] == 100
        finish(daemon)
        net.stop(collector.process)


def board():
    with open(os.path.join(relay.ROOT, "monitoring", "xcipher-dashboard.json"), encoding="utf-8") as f:
        return json.load(f)


def test_prometheus_parses_each_expression(net):  # pylint: disable=unused-argument
    """The dashboard's queries as recording rules, with Grafana's variables filled in."""
    if not shutil.which("promtool"):
        raise Skip("no promtool: package prometheus")
    asked = [e.replace("$__rate_interval", "5m").replace("$instance", ".*") for p in board()["panels"] for e in (t["expr"] for t in p["targets"])]
    assert len(asked) > 30 and not any("$" in e for e in asked)
    for broken in (False, True):
        rules = [{"record": f"test:{i}", "expr": e + (")" if broken and not i else "")} for i, e in enumerate(asked)]
        with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as f:
            json.dump({"groups": [{"name": "test", "rules": rules}]}, f)
            f.flush()
            p = subprocess.run(["promtool", "check", "rules", f.name], capture_output=True, text=True, check=False)
        assert (p.returncode != 0) == broken, p.stdout + p.stderr


def test_the_dashboard_is_one(net):  # pylint: disable=unused-argument
    """Panels have unique ids, lie within 24 columns without overlap, and have a source and a known
    type. Their variables exist."""
    d, seen = board(), {}
    variables = {v["name"] for v in d["templating"]["list"]}
    assert {"source", "instance"} <= variables and d["title"] and d["uid"] and len(d["uid"]) <= 40 and isinstance(d["schemaVersion"], int)
    assert len({p["id"] for p in d["panels"]}) == len(d["panels"])
    for p in d["panels"]:
        assert p["type"] in ("stat", "timeseries", "heatmap", "table", "gauge"), p["type"]
        assert p["datasource"] == {"type": "prometheus", "uid": "${source}"}
        g = p["gridPos"]
        assert 0 <= g["x"] and g["x"] + g["w"] <= 24 and g["w"] > 0 and g["h"] > 0
        for x in range(g["x"], g["x"] + g["w"]):
            for y in range(g["y"], g["y"] + g["h"]):
                assert seen.setdefault((x, y), p["id"]) == p["id"], f"panel {p['id']} lies on {seen[x, y]}"
        assert len({t["refId"] for t in p["targets"]}) == len(p["targets"]) > 0


def lost(said, kept, at=""):
    """Members of the JSON "said" that "kept" lacks, or has with another value."""
    if isinstance(said, dict) and isinstance(kept, dict):
        return [w for k, v in said.items() for w in (lost(v, kept[k], f"{at}/{k}") if k in kept else [f"{at}/{k}"])]
    if isinstance(said, list) and isinstance(kept, list) and len(said) == len(kept):
        return [w for i, (a, b) in enumerate(zip(said, kept)) for w in lost(a, b, f"{at}/{i}")]
    return [] if said == kept else [at]


# Reads a dashboard with Grafana's classes, and writes it with them: what they do not know is gone then.
READER = """
import json, sys
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models import dashboard
plugins.register_default_plugins()
print(encoder.JSONEncoder().encode(dashboard.Dashboard.from_json(json.load(sys.stdin))))
"""


def through_grafana(d):
    p = subprocess.run(["/usr/bin/python3", "-c", READER], input=json.dumps(d), capture_output=True, text=True, check=False,
                       env=dict(os.environ, PYTHONPATH=GRAFANA))
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout)


def test_grafanas_own_model_knows_all_of_it(net):  # pylint: disable=unused-argument
    """The classes are made by Grafana from its schema, panels' options and queries included."""
    if not os.path.isdir(GRAFANA):
        raise Skip("no Grafana SDK: make check-deps")
    d = board()
    assert lost(d, through_grafana(d)) == []
    d["panels"][0]["targets"][0]["exprr"] = "x"
    d["panels"][0]["fieldConfig"]["defaults"]["unitt"] = "s"
    d["refrsh"] = "10s"
    assert sorted(lost(d, through_grafana(d))) == ["/panels/0/fieldConfig/defaults/unitt", "/panels/0/targets/0/exprr", "/refrsh"]
