# SPDX-License-Identifier: GPL-2.0-or-later
"""The Kamailio module xcipher: calls whose answer is refused, node lists from databases, counters on a web page."""
import os
import sqlite3
import tempfile
import time

import relay
import sipp
from baresip import wait_for
from run import cases
from test_module import BOTH, S32, S80, Mock, answering, finish, needs, place, proxy, quoted

REFUSED = {"result": "error", "error-reason": "No common crypto suite"}


def refuses_answers(_, request):
    return REFUSED if request["command"] == "answer" else None


@cases(("replies wait",), ("replies suspended",))
def test_a_refused_answer_ends_the_call(net, how):
    """The callee accepted and gets BYE, the caller gets 488, the daemon gets delete. An accepted
    call stays."""
    needs()
    node = Mock(net, 22222, refuses_answers)
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, **({"XC_ASYNC_REPLIES": 1} if how == "replies suspended" else {}))
        # This callee's call succeeds only with ACK and BYE.
        callee = sipp.Sipp(net, folder, "callee", sipp.callee(S32, early=how != "replies suspended"), "-p", "5060", "-m", "3")
        place(net, folder, 3, expect=488)
        finish(callee, 3)
        wait_for("an end of three calls", lambda: kam.counter("calls_ended") >= 3 and all(c[-1] == "delete" for c in list(node.calls.values())))
        assert kam.counter("calls_ended") == 3 and kam.counter("refused") >= 3, kam.rpc("cnt.grp_get_all", "xcipher")
        assert all(c[-1] == "delete" for c in node.calls.values()) and len(node.calls) == 3, node.calls
        node.judge = None
        answering(net, folder)
        place(net, folder, 3)
        assert kam.counter("calls_ended") == 3 and "CRITICAL" not in kam.text(), kam.text()
        assert kam.stop() == 0
    node.close()


def test_a_refused_answer_within_the_call_ends_both_sides(net):
    """The answer to a re-INVITE is refused: 488, and BYE to both, because the callee has already
    changed its media."""
    needs()
    seen = []

    def second_answer(_, request):
        seen.append(request["command"])
        return REFUSED if seen.count("answer") == 2 and request["command"] == "answer" else None

    node = Mock(net, 22222, second_answer)
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder)
        callee = sipp.Sipp(net, folder, "callee", sipp.callee_twice(S32), "-p", "5060", "-m", "1")
        caller = sipp.Sipp(net, folder, "caller", sipp.caller_twice_refused(S80, "sip:callee@10.200.2.2:5060"), "10.200.1.1:5060", "-m", "1", "-p", "5060")
        finish(caller, 1)
        finish(callee, 1)
        assert kam.counter("calls_ended") == 1, kam.rpc("cnt.grp_get_all", "xcipher")
        assert kam.stop() == 0
    node.close()


def test_minimum_suites_of_the_answering_side(net):
    """require-in on the answer: a callee below it gets BYE. Without it the call continues."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", addresses=BOTH).wait_ready()
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, XC_ANSWER_FLAGS=quoted(f"RTP/SAVP SDES-only-{S80} SDES-pad ICE=remove replace-origin require-in=auth80"))
        callee = sipp.Sipp(net, folder, "callee", sipp.callee(S32), "-p", "5060", "-m", "2")
        place(net, folder, 2, expect=488)
        finish(callee, 2)
        wait_for("an end without calls", lambda: kam.counter("calls_ended") >= 2 and daemon.client.call("list")["calls"] == [])
        assert kam.counter("policy_refused") >= 2 and kam.counter("calls_ended") == 2, kam.rpc("cnt.grp_get_all", "xcipher")
        kam.stop()
    daemon.stop()


def sqlite_table(folder):
    path = os.path.join(folder, "nodes.sqlite")
    db = sqlite3.connect(path)
    with open("/usr/share/kamailio/db_sqlite/rtpengine-create.sql", encoding="ascii") as f:
        db.execute(f.read().split(";")[0])

    def write(rows):
        db.execute("DELETE FROM rtpengine")
        db.executemany("INSERT INTO rtpengine (setid, url, weight, disabled) VALUES (?, ?, ?, ?)", rows)
        db.commit()

    return "sqlite:///" + path, "db_sqlite.so", write


def text_table(folder):
    base = os.path.join(folder, "dbtext")
    os.makedirs(base)

    def write(rows):
        lines = ["id(int,auto) setid(int) url(string) weight(int) disabled(int)"]
        lines += [f"{i}:{s}:{u.replace(':', chr(92) + ':')}:{w}:{d}" for i, (s, u, w, d) in enumerate(rows, 1)]
        path = os.path.join(base, "rtpengine")
        # db_text reads a file again when its time changes, in whole seconds. Two writes within a
        # second must differ, too.
        when = os.stat(path).st_mtime + 2 if os.path.exists(path) else time.time()
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        os.utime(path, (when, when))

    return "text://" + base, "db_text.so", write


@cases(("db_sqlite",), ("db_text",))
def test_nodes_from_a_database(net, kind):
    """The stock module's table: sets, weights and the column "disabled"; xcipher.reload reads it again, and an error changes nothing."""
    needs()
    one, two, three = (f"udp:127.0.0.1:{p}" for p in (22201, 22202, 22203))
    nodes = [Mock(net, p) for p in (22201, 22202, 22203)]
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        url, module, write = (sqlite_table if kind == "db_sqlite" else text_table)(folder)
        write([(0, one, 1, 0), (0, two, 1, 1), (7, three, 2, 0)])
        extra = 'modparam("db_text", "db_mode", 1)' if kind == "db_text" else ""
        kam = proxy(net, folder, f'modparam("xcipher", "db_url", "{url}")\n{extra}', swap=('loadmodule "xcipher.so"', f'loadmodule "{module}"\nloadmodule "xcipher.so"'),
                    XC_NODES=quoted(""))
        answering(net, folder)
        rows = {n["node"]: (n["set"], n["weight"], n["state"]) for n in kam.nodes()}
        assert rows == {one: ("0", "1", "up"), two: ("0", "1", "disabled"), three: ("7", "2", "up")}, rows
        place(net, folder, 6, rate=30)
        assert [len(n.calls) for n in nodes] == [6, 0, 0]
        place(net, folder, 2, special="node-set=7")
        assert [len(n.calls) for n in nodes] == [6, 0, 2]
        # The first node is removed, the second enabled. A node that the RPC disabled stays so while
        # its row is unchanged.
        write([(0, two, 3, 0), (7, three, 2, 0)])
        kam.rpc("xcipher.disable", three)
        assert "nodes: 2" in kam.rpc("xcipher.reload")
        rows = {n["node"]: (n["set"], n["weight"], n["state"]) for n in kam.nodes()}
        assert rows == {two: ("0", "3", "up"), three: ("7", "2", "disabled")}, rows
        place(net, folder, 4, rate=30)
        assert [len(n.calls) for n in nodes] == [6, 4, 2]
        write([(0, two, 3, 0), (0, "udp:nonsense", 1, 0)])
        try:
            kam.rpc("xcipher.reload")
            raise AssertionError("nonsense was taken for a node")
        except RuntimeError as refused:
            assert "nothing was changed" in str(refused)
        assert len(kam.nodes()) == 2
        kam.stop()
    for n in nodes:
        n.close()


def test_counters_on_a_web_page(net):
    """xhttp_prom shows the module's counters to Prometheus."""
    needs()
    daemon = relay.Xcipherd(net, "--engine=serial", addresses=BOTH).wait_ready()
    web = """
loadmodule "xhttp.so"
loadmodule "xhttp_prom.so"
listen=tcp:127.0.0.1:9273
tcp_accept_no_cl=yes
modparam("xhttp_prom", "xhttp_prom_stats", "all")
event_route[xhttp:request] {
	if (prom_check_uri()) {
		prom_dispatch();
	} else {
		xhttp_reply("404", "Not Found", "text/plain", "");
	}
}
"""
    with tempfile.TemporaryDirectory(prefix="xcipher-module-") as folder:
        kam = proxy(net, folder, web, swap=("disable_tcp=yes", ""))
        answering(net, folder)
        place(net, folder, 5)
        page = net.run(net.gateway, "/usr/bin/python3", "-c",
                       "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9273/metrics', timeout=60).read().decode())").stdout
        values = {line.split()[0]: line.split()[1] for line in page.splitlines() if "xcipher" in line and not line.startswith("#")}
        assert values["kamailio_xcipher_requests"] == "15" and values["kamailio_xcipher_failures"] == "0", page[-2000:]
        assert len(values) == 18, values
        kam.stop()
    daemon.stop()
