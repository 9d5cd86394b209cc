# SPDX-License-Identifier: GPL-2.0-or-later
"""Timeouts of calls are reported to the SIP side: to a server that knows teardown, at an address
from the request, and to Kamailio's dialog module over its own XML-RPC."""
import os
import subprocess
import tempfile
import time

import calls
import relay
import web
from run import Skip

SERVER = """
import sys
from xmlrpc.server import SimpleXMLRPCServer
server = SimpleXMLRPCServer((sys.argv[1], 8090), logRequests=False)
def told(*params):
    print(*params, flush=True)
    return "OK"
server.register_function(told, "teardown")
server.serve_forever()
"""

KAMAILIO = """
debug=2
log_stderror=yes
children=1
tcp_children=1
listen=tcp:127.0.0.1:5080
loadmodule "sl.so"
loadmodule "tm.so"
loadmodule "rr.so"
loadmodule "pv.so"
loadmodule "xlog.so"
loadmodule "dialog.so"
loadmodule "xhttp.so"
loadmodule "xmlrpc.so"
request_route { exit; }
event_route[xhttp:request] { xlog("L_ERR", "asked: $rb\\n"); set_reply_close(); set_reply_no_connect(); dispatch_rpc(); }
"""


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def talk(client, call_id, **flags):
    body = calls.sdp("10.200.1.2", 4000)
    calls.ok(client.call("offer", call_id=call_id, from_tag="a", sdp=body, **flags))
    calls.ok(client.call("answer", call_id=call_id, from_tag="a", to_tag="b", sdp=body))


def test_a_timeout_is_told_where_the_request_said(net):
    with tempfile.TemporaryFile("w+") as log:
        net.spawn(net.gateway, ["/usr/bin/python3", "-c", SERVER, "127.0.0.9"], stdout=log, stderr=log)
        daemon = relay.Xcipherd(net, "--timeout=2", "--b2b-url=http://%%:8090/RPC2", "--xmlrpc-format=1",
                                "--b2b-allow=127.0.0.8/29").wait_ready()
        assert wait_for(lambda: net.run(net.gateway, "ss", "-Hltn", "sport = :8090").stdout)
        body = calls.sdp("10.200.1.2", 4000)
        other = daemon.client.call("offer", call_id="other", from_tag="a", sdp=body, xmlrpc_callback="127.0.0.1")
        assert "b2b-allow" in other.get("warning", ""), other
        daemon.client.call("delete", call_id="other", delete_delay=0)
        talk(daemon.client, "c<1>&2", xmlrpc_callback="127.0.0.9")

        assert wait_for(lambda: relay.text_of(log).endswith("\n")), daemon.text()
        time.sleep(0.2)
        assert relay.text_of(log) == "c<1>&2\n", relay.text_of(log)
        assert daemon.stop() == 0, daemon.text()


def test_kamailio_understands_what_it_is_told(net):
    modules = "/usr/lib/x86_64-linux-gnu/kamailio/modules"
    if not all(os.path.exists(os.path.join(modules, m + ".so")) for m in ("xmlrpc", "xhttp", "dialog")):
        raise Skip("kamailio's modules xmlrpc, xhttp, dialog are not installed")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        path = os.path.join(folder, "k.cfg")
        with open(path, "w", encoding="ascii") as f:
            f.write(KAMAILIO)
        net.spawn(net.gateway, ["kamailio", "-DD", "-f", path, "-Y", folder, "-P", os.path.join(folder, "pid"), "-w", folder],
                  stdout=log, stderr=subprocess.STDOUT)
        assert wait_for(lambda: net.run(net.gateway, "ss", "-Hltn", "sport = :5080").stdout), relay.text_of(log)
        daemon = relay.Xcipherd(net, "--timeout=2", "--b2b-url=http://127.0.0.1:5080/RPC2", "--xmlrpc-format=2",
                                "--listen-http=127.0.0.1:9902").wait_ready()
        talk(daemon.client, "nobody-knows-this")

        def metric():
            return str(web.ask(web.connect(net.gateway, ("127.0.0.1", 9902)), "GET", "/metrics")[-1])

        done = wait_for(lambda: 'teardown_messages_total{result="told"} 1' in metric())
        said = relay.text_of(log)
        assert done and "<methodName>dlg.terminate_dlg</methodName>" in said and "nobody-knows-this" in said, daemon.text() + said
        assert daemon.stop() == 0, daemon.text()
