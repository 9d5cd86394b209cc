# SPDX-License-Identifier: GPL-2.0-or-later
"""The page as an operator uses it: calls in trouble, all calls by pages, links, ended calls, charts
with history."""
import json
import signal
import time
import urllib.parse

import calls
import redisrig
import relay
from test_http import start
from test_page import browser, listen, page, snapshot
from test_relay import clean, finish

MARKUP = '<img src=x onerror="window.pwned=1">'


def offer(daemon, call_id, **keys):
    return calls.ok(daemon.client.call("offer", call_id=call_id, **{"from_tag": "f", "sdp": calls.sdp("10.200.1.2", 4000), **keys}))


def look(s, until, **what):
    """The first snapshot after the request that satisfies until."""
    s.send(json.dumps(what).encode())
    end = time.monotonic() + 60
    while True:
        m = listen(s)
        if "now" in m and until(m):
            return m
        assert time.monotonic() < end, (what, str(m)[:4000])


def test_pages_filters_orders(net):
    """For every selection, each matching call is on exactly one page, and the count is constant."""
    daemon = start(net)
    for i in range(230):
        offer(daemon, f"c{i}", from_tag=f"tag-of-{i % 3}")
    talk = calls.Call(daemon.client, 1, "80", "plain").setup()
    s = page(net.gateway)
    for chosen, wanted in (({}, 231), ({"sort": "age"}, 231), ({"show": "early"}, 230), ({"show": "early", "filter": "tag-of-1"}, 77),
                           ({"show": "plain"}, 1), ({"sort": "no such order"}, 231)):
        look(s, lambda m: m["matched"] == 0, filter="nobody")  # else a snapshot of the last selection could pass for one of this
        seen, after, m = [], "", None
        while True:
            m = look(s, lambda m, at=after, n=wanted: m["matched"] == n and (not at or m["calls"][0]["id"] not in seen), after=after, **chosen)
            seen += [c["id"] for c in m["calls"]]
            assert m["matched"] == wanted and len(m["calls"]) <= 100
            after = m.get("next", "")
            if not after:
                break
        assert len(seen) == len(set(seen)) == wanted, (chosen, len(seen))
    assert look(s, lambda m: m["matched"] == 1, show="plain")["calls"][0]["id"] == talk.id
    # invalid filter text matches parts of names, also with blanks
    offer(daemon, "blank", metadata="from:Alice in Wonderland|to:Bob")
    m = look(s, lambda m: m["matched"] == 1 and "by text" in m, show="early", filter="Alice in")
    assert m["by text"] == 1 and m["calls"][0]["from"] == "Alice in Wonderland" and m["calls"][0]["to"] == "Bob"
    # junk of any type and length changes nothing
    for junk in ({"filter": "a\nb"}, {"show": "x\n", "call": "y"}, {"after": "-1"}, {"ended": "99999999999999999999999"}, {"call": "x" * 2000}, {"sort": ["a"]}):
        s.send(json.dumps(junk).encode())
    assert look(s, lambda m: m["matched"] == 232, show="")["sessions"]["current"] == 232
    finish(daemon)


def test_names(net):
    """Named by metadata, else the label, else the tag."""
    daemon = start(net)
    offer(daemon, "1", metadata="from:alice@example.com|x:y|to:bob")
    offer(daemon, "2", from_tag="tag2", label="desk 7")
    offer(daemon, "3", from_tag="tag3", metadata="whatever")
    offer(daemon, "4", from_tag="tag4")
    calls.ok(daemon.client.call("answer", call_id="4", from_tag="tag4", to_tag="totag4", sdp=calls.sdp("10.200.2.2", 4000)))
    s = page(net.gateway)
    m = look(s, lambda m: m["matched"] == 4)
    assert {c["id"]: (c["from"], c["to"]) for c in m["calls"]} == {
        "1": ("alice@example.com", "bob"), "2": ("desk 7", ""), "3": ("tag3", ""), "4": ("tag4", "totag4")}
    assert [c["id"] for c in look(s, lambda m: m["matched"] == 1, filter="alice@")["calls"]] == ["1"]
    finish(daemon)


def test_ended_calls(net):
    """The last ten minutes, with reason, names and closing line; their number is bounded."""
    daemon = start(net)
    for i in range(45):
        offer(daemon, f"e{i}", metadata=f"from:a{i}|to:b")
        calls.ok(daemon.client.call("delete", call_id=f"e{i}", delete_delay=0))
    talk = calls.Call(daemon.client, 1, "80", "32").setup()
    clean(calls.load(net, relay.BUILD, [talk], rate=50, seconds=1))
    talk.delete()
    s = page(net.gateway)
    m = look(s, lambda m: m["ended matched"] == 46)
    first = m["ended calls"][0]
    assert first["id"] == talk.id and first["answered"] and not first["one-way"] and first["reason"] == "deleted by command", first
    assert len(m["ended calls"]) == 20 and m["ended not kept"] == 0
    rest = look(s, lambda m: len(m["ended calls"]) == 6, ended="40")["ended calls"]
    assert [c["id"] for c in rest] == [f"e{i}" for i in range(5, -1, -1)]
    one = look(s, lambda m: m["ended matched"] == 1, filter="a44")["ended calls"][0]
    assert one["id"] == "e44" and one["from"] == "a44" and not one["answered"]
    d = look(s, lambda m: m.get("detail", {}).get("id") == talk.id, call=talk.id)["detail"]
    assert d["gone"] and "AES_CM_128_HMAC_SHA1_80" in d["closing"]["text"] and "deleted by command" in d["closing"]["text"]
    assert not any(k.hex() in json.dumps(d) for k in [*talk.key, *talk.wire])
    finish(daemon)


def test_ended_calls_are_bounded(net):
    """Displaced entries are counted, so that a full list does not look complete."""
    daemon = start(net, "--log-level=3")
    for i in range(2060):
        offer(daemon, f"e{i}")
        calls.ok(daemon.client.call("delete", call_id=f"e{i}", delete_delay=0))
    m = look(page(net.gateway), lambda m: "ended matched" in m)
    assert m["ended matched"] == 2048 and m["ended not kept"] == 12
    assert m["ended calls"][0]["id"] == "e2059"
    finish(daemon)


def test_charts_have_a_past(net):
    """A newly opened page gets the samples taken before."""
    daemon = start(net)
    talk = calls.Call(daemon.client, 1, "80", "32").setup()
    clean(calls.load(net, relay.BUILD, [talk], rate=50, seconds=3))
    s = page(net.gateway)
    assert "hello" in listen(s)
    first = listen(s)
    assert "now" not in first, "the past comes first"
    samples = first["history"]["samples"]
    assert samples and all(len(x) == 8 for x in samples) and any(x[1] == 1 and x[2] > 20 and x[6] > 0 for x in samples), samples
    newest = samples[-1][0]
    while newest == samples[-1][0]:
        newest = snapshot(s)["samples"][0][0]
    assert newest - samples[-1][0] >= 1000
    finish(daemon)


def test_in_a_browser(net):
    b = browser(net)
    daemon = relay.Xcipherd(net, "--listen-http=127.0.0.1:22280").wait_ready()
    talk = [calls.Call(daemon.client, i, *(("80", "32"), ("plain", "80"))[i % 2]).setup() for i in range(4)]
    for i in range(120):
        offer(daemon, f"early{i}")
    offer(daemon, MARKUP, from_tag=MARKUP, metadata=f"from:{MARKUP}|to:{MARKUP}")
    gone = "gone" + MARKUP
    offer(daemon, gone, metadata=f"from:{MARKUP}|to:{MARKUP}")
    calls.ok(daemon.client.call("delete", call_id=gone, delete_delay=0))
    media = redisrig.Load(net, relay.BUILD, talk, 50, 100)
    rows = "document.querySelectorAll('#calls-rows tr').length"
    b.size(1280, 900)
    # a link: to a view, and to a call
    b.open("http://127.0.0.1:22280/#show=plain&sort=age")
    b.wait(f"{rows} == 2 && document.querySelector('#show').value == 'plain'")
    b.wait("document.querySelector('#count-y').innerText.includes('10') && document.querySelector('#count-axis').innerText.includes('10 min ago')")
    b.wait("document.querySelectorAll('#rate polyline').length >= 1 && document.querySelector('#rate-y').innerText.includes('/s')")
    b.open("about:blank")
    b.open("http://127.0.0.1:22280/#" + urllib.parse.urlencode({"call": MARKUP}))
    b.wait("document.querySelector('#detail').open && document.querySelector('#detail-body').innerText.includes('What happened')")
    assert MARKUP in b.js("document.querySelector('#detail').innerText") and "no suite" not in b.js("document.querySelector('#detail').innerText")
    assert MARKUP in b.js("decodeURIComponent(document.querySelector('#detail-link').hash.replaceAll('+', ' '))")
    b.key("Escape", 27)
    b.wait("!document.querySelector('#detail').open && !location.hash.includes('call=')")
    # by keyboard: choose, sort, turn pages
    b.wait(f"{rows} == 100 && !document.querySelector('#calls-next').disabled")
    b.js("document.querySelector('#calls-next').focus()")
    b.key("Enter", 13, "\r")
    b.wait(f"{rows} == 25")
    b.js("document.querySelector('#calls-back').focus()")
    b.key("Enter", 13, "\r")
    b.wait(f"{rows} == 100")
    b.js("document.querySelector('button[data-sort=packets]').focus()")
    b.key("Enter", 13, "\r")
    b.wait("document.querySelector('#calls-rows button').dataset.call.startsWith('call-') && location.hash == '#sort=packets'")
    # ended calls with their reason, by keyboard
    b.wait("document.querySelectorAll('#ended-rows tr').length == 1")
    assert all(t in b.js("document.querySelector('#ended-rows').innerText") for t in (gone, f"{MARKUP} → {MARKUP}", "deleted by command", "never answered"))
    b.js("document.querySelector('#ended-rows button').focus()")
    b.key("Enter", 13, "\r")
    b.wait("document.querySelector('#detail').open && document.querySelector('#detail-body').innerText.includes('call ended: deleted by command')")
    b.key("Escape", 27)
    b.wait(f"document.activeElement.dataset.call == {json.dumps(gone)}")
    assert b.js("window.pwned") is None and not b.js("document.querySelector('img')")
    for width in (1280, 768, 360):
        b.size(width, 900, width == 360)
        for dark in (False, True):
            b.dark(dark)
            b.wait(f"document.documentElement.scrollWidth <= {width}")
    # the page uses one word per thing
    assert "efused" not in b.js("document.body.innerText")
    # a stopped daemon is not shown as live
    b.wait("document.querySelector('#state').className == 'live'")
    daemon.process.send_signal(signal.SIGSTOP)
    b.wait("document.querySelector('#state').innerText.includes('no data for') && document.querySelector('#state').className == 'gone'")
    assert b.js("document.body.classList.contains('stale')")
    daemon.process.send_signal(signal.SIGCONT)
    b.wait("document.querySelector('#state').className == 'live' && !document.body.classList.contains('stale')")
    media.enough()
    assert not b.complaints(), b.complaints()
    b.close()
    finish(daemon)
