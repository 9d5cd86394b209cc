# SPDX-License-Identifier: GPL-2.0-or-later
"""The page: its messages and who gets them, and its contents in a real browser."""
import base64
import json
import os
import time

import calls
import chromium
import hold
import redisrig
import relay
import web
from run import Skip
from test_http import HTTP, TOKEN, start, token_file
from test_relay import clean, finish

MARKUP = '<img src=x onerror="window.pwned=1">'


def listen(s):
    """The next message, decoded; None if the connection was closed."""
    opcode, data = s.receive()
    return json.loads(data) if opcode == 1 else None


def snapshot(s):
    while True:
        m = listen(s)
        if "now" in m:
            return m


def page(namespace, address=HTTP, **fields):
    return web.WebSocket(web.connect(namespace, address), "page.xcipher", **fields)


def test_the_page_is_told_all_but_keys(net):
    daemon = start(net)
    talk = [calls.Call(daemon.client, i, "80", "AEAD_AES_256_GCM").setup() for i in range(3)]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    s = page(net.gateway)
    assert listen(s) == {"hello": "xcipher", "may end": 0}
    m = snapshot(s)
    assert m["sessions"]["current"] == m["matched"] == len(m["calls"]) == 3
    c = m["calls"][0]
    assert c["answered"] and [x["suite"] for x in c["legs"]] == ["AES_CM_128_HMAC_SHA1_80", "AEAD_AES_256_GCM"]
    assert all(x["packets"] >= 50 and x["errors"] == 0 for x in c["legs"])
    assert sum(w["packets in"] for w in m["workers"]) >= 300 <= m["delay"]["total"]
    s.send(json.dumps({"filter": talk[1].id, "call": talk[1].id}).encode())
    text = b""
    while not text or "detail" not in json.loads(text):
        text = s.receive()[1]
    m = json.loads(text)
    assert m["matched"] == 1 and m["sessions"]["current"] == 3
    assert len(m["detail"]["tags"]) == 2 and not m["detail"]["gone"]
    secrets = [*talk[1].key, *talk[1].wire]
    assert len(secrets) == 4 and all(secrets)
    for k in secrets:
        assert k.hex().encode() not in text and base64.b64encode(k) not in text
    assert b"inline" not in text
    s.send(json.dumps({"end": talk[1].id}).encode())
    while True:
        m = listen(s)
        if "error" in m:
            break
    assert "token" in m["error"] and daemon.client.call("query", call_id=talk[1].id)["result"] == "ok"
    s.send(json.dumps({"filter": "", "call": "nobody"}).encode())
    while m.get("detail", {}).get("id") != "nobody":
        m = listen(s)
    assert m["detail"]["gone"]
    finish(daemon)


def test_the_page_is_told_only_to_whom_it_may_be(net):
    daemon = start(net, "--listen-http=0.0.0.0:22280")
    away = ("10.200.1.1", 22280)
    caller = net.terminal["caller"]
    got = web.ask(web.connect(net.gateway, HTTP), "GET", "/")
    assert got[0] == 200 and b"page.js" in got[2]
    policy = got[1]["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and got[1]["x-content-type-options"] == "nosniff"
    for namespace, address, fields in ((caller, away, {}), (caller, away, {"Host": "10.200.1.1:22280"}),
                                       (net.gateway, HTTP, {"Host": "10.200.1.1"})):
        assert web.ask(web.connect(namespace, address), "GET", "/", **fields)[0] == 403
        assert page(namespace, address, **fields).status == 403
    for fields in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
                   {"Host": "evil.example", "Origin": "http://evil.example"}):
        assert page(net.gateway, **fields).status == 403, fields
    assert page(net.gateway, Origin="http://localhost").status == 101
    finish(daemon)


def test_with_a_token_calls_can_be_ended(net):
    path = token_file(net)
    daemon = start(net, "--listen-http=0.0.0.0:22280", f"--http-token-file={path}")
    away, caller = ("10.200.1.1", 22280), net.terminal["caller"]
    assert web.ask(web.connect(caller, away), "GET", "/")[0] == 200
    talk = calls.Call(daemon.client, 1, "80", "32").setup()
    for messages in ([{"token": TOKEN[:-1] + "x"}], [{"token": ""}], [{"filter": ""}], [{"end": talk.id}], ["x"], [["token"]]):
        s = page(caller, away, Host="10.200.1.1")
        assert listen(s) == {"need": "token"}
        for m in messages:
            s.send(json.dumps(m).encode())
        try:
            assert s.receive()[0] == 8
        except (EOFError, ConnectionResetError):
            pass
    assert daemon.client.call("query", call_id=talk.id)["result"] == "ok"
    s = page(caller, away, Host="10.200.1.1")
    s.send(json.dumps({"token": TOKEN}).encode())
    assert listen(s) == {"need": "token"} and listen(s) == {"hello": "xcipher", "may end": 1}
    assert snapshot(s)["sessions"]["current"] == 1
    for call, ok in ((talk.id, 1), (talk.id, 0), ("no such call", 0)):
        s.send(json.dumps({"end": call}).encode())
        m = {}
        while "ended" not in m:
            m = listen(s)
        assert m == {"ended": call, "ok": ok}, m
    assert snapshot(s)["sessions"]["current"] == 0
    assert TOKEN not in daemon.text() and "ends a call" in daemon.text()
    finish(daemon)
    os.remove(path)


def test_few_pages_and_slow_ones(net):
    """Eight at a time. Clients that do not read delay no others, and leave no trace."""
    daemon = start(net)
    for i in range(220):
        assert daemon.client.call("offer", call_id=f"{'x' * 200}{i}", from_tag="f", sdp=calls.sdp("10.200.1.2", 4000))["result"] == "ok"
    before = daemon.descriptors()
    slow = [page(net.gateway) for _ in range(8)]
    assert page(net.gateway).status == 503
    with hold.never_waits(daemon):
        for _ in range(30):
            assert daemon.client.call("ping")["result"] == "pong"
            assert web.ask(web.connect(net.gateway, HTTP), "GET", "/ping")[0] == 200
            time.sleep(.05)
    for s in slow:
        s.s.close()
    s = page(net.gateway)
    end = time.monotonic() + 60
    while s.status == 503 and time.monotonic() < end:  # the other end's close was not seen yet
        time.sleep(.1)
        s = page(net.gateway)
    m = snapshot(s)
    assert m["matched"] == 220 and len(m["calls"]) == 100
    s.s.close()
    for _ in range(300):
        if daemon.descriptors() <= before:
            break
        time.sleep(.1)
    assert daemon.descriptors() <= before
    finish(daemon)


def browser(net):
    if not chromium.PROGRAM:
        raise Skip("no chromium")
    return chromium.Browser(net, net.gateway)


def test_in_a_browser_without_token(net):
    b = browser(net)
    daemon = relay.Xcipherd(net, "--listen-http=127.0.0.1:22280").wait_ready()
    talk = [calls.Call(daemon.client, i, *(("80", "32"), ("plain", "AEAD_AES_256_GCM"))[i % 2]).setup() for i in range(6)]
    assert daemon.client.call("offer", call_id=MARKUP, from_tag=MARKUP, sdp=calls.sdp("10.200.1.2", 4000))["result"] == "ok"
    media = redisrig.Load(net, relay.BUILD, talk, 50, 100)
    b.size(1280, 900)
    b.open("http://127.0.0.1:22280/")
    b.wait("document.querySelectorAll('#calls-rows tr').length == 7")
    b.wait("[...document.querySelectorAll('#calls-rows tr')].some(r => +r.children[5].textContent >= 50)")
    assert b.js("document.querySelector('#calls-rows').innerText").count("AEAD_AES_256_GCM") == 3
    b.wait("document.querySelector('#state').textContent == 'live'")
    assert b.js("document.querySelectorAll('#workers tr').length") >= 1 and b.js("document.querySelectorAll('#batch rect').length") == 11
    # by keyboard: filter, open, close
    b.key("/", 191, "/")
    b.type("onerror")
    b.wait("document.querySelectorAll('#calls-rows tr').length == 1")
    assert MARKUP in b.js("document.querySelector('#calls-rows').innerText")
    for _ in range(6):  # across the sortable columns
        b.key("Tab", 9)
    b.key("Enter", 13, "\r")
    b.wait("document.querySelector('#detail').open && document.querySelector('#detail-body').innerText.includes('Streams')")
    assert MARKUP in b.js("document.querySelector('#detail').innerText")
    assert b.js("document.querySelector('#end').hidden") and not b.js("document.querySelector('#end-why').hidden")
    b.key("Escape", 27)
    b.wait("!document.querySelector('#detail').open")
    b.wait(f"document.activeElement.dataset.call == {json.dumps(MARKUP)}")  # the focus has not moved
    assert b.js("window.pwned") is None and not b.js("document.querySelector('img')")
    # no word is broken, no text overflows its card
    for width in (1280, 1000, 768, 360):
        b.size(width, 900)
        b.wait(f"innerWidth == {width}")  # the new size takes effect later
        torn = b.js("[...document.querySelectorAll('.tag, main th')].filter(e => e.offsetHeight >= (e.tagName == 'TH' ? 40 : 30)).map(e => `${e.textContent} ${e.offsetHeight}`).join()")
        assert not torn, (width, torn)
        assert b.js("[...document.querySelectorAll('main .tile, main figure, #calls, #more > div')].every(e => e.scrollWidth <= e.clientWidth)"), width
    # a phone, light and dark
    for dark in (False, True):
        b.dark(dark)
        b.size(360, 740, True)
        b.wait("document.documentElement.scrollWidth <= 360")
        light = b.js("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).reduce((a, x) => a + +x, 0)")
        assert (light < 200) if dark else (light > 600), light
    b.screenshot(os.path.join(os.environ.get("SHOTS", b.folder.name), "phone.png"))
    media.enough()
    assert not b.complaints(), b.complaints()
    # pages of other sites, and another site's name that resolves to us
    refused = "new Promise(r => { const s = new WebSocket('ws://127.0.0.1:22280/', 'page.xcipher'); s.onmessage = () => r('told'); s.onerror = () => r('refused'); })"
    b.open("http://127.0.0.1:9333/json/version")
    b.wait("location.port == '9333' && document.readyState == 'complete'")
    assert b.js(refused) == "refused"
    b.js("fetch('http://127.0.0.1:22280/ng-plain', {method: 'POST', mode: 'no-cors', body: JSON.stringify({command: 'delete', 'call-id': '" + talk[0].id
         + "', 'delete-delay': 0})}).then(() => 1, () => 0)")
    assert daemon.client.call("query", call_id=talk[0].id)["result"] == "ok", "another site ended a call"
    b.open("http://evil.example:22280/")
    b.wait("location.host == 'evil.example:22280' && document.body.innerText.includes('not known to be ours')")
    b.close()
    finish(daemon)


def test_in_a_browser_with_token(net):
    b = browser(net)
    path = token_file(net)
    daemon = start(net, f"--http-token-file={path}")
    talk = calls.Call(daemon.client, 1, "80", "32").setup()
    b.size(1280, 900)
    b.open("http://127.0.0.1:22280/")
    b.wait("!document.querySelector('#login').hidden")
    b.type("wrong" * 5)
    b.key("Enter", 13, "\r")
    b.wait("document.querySelector('#state').textContent == 'wrong token'")
    b.type(TOKEN)
    b.key("Enter", 13, "\r")
    b.wait("document.querySelectorAll('#calls-rows tr').length == 1 && document.querySelector('#login').hidden")
    b.js("document.querySelector('button.call').focus()")
    b.key("Enter", 13, "\r")
    b.wait("document.querySelector('#detail-body').innerText.includes('Streams')")
    b.js("document.querySelector('#end').focus()")
    b.key("Enter", 13, "\r")
    b.wait("document.activeElement.id == 'end-no'")  # the safe answer comes first
    b.js("document.querySelector('#end-yes').focus()")
    b.key("Enter", 13, "\r")
    b.wait("!document.querySelector('#detail').open && document.querySelector('#notices').innerText.includes('Ended')")
    b.wait("document.querySelectorAll('#calls-rows tr').length == 0")
    assert "Unknown call-id" in str(daemon.client.call("query", call_id=talk.id))
    # the daemon stops and returns
    daemon.stop()
    b.wait("document.querySelector('#state').textContent.includes('trying again')")
    daemon = start(net, f"--http-token-file={path}")
    b.wait("document.querySelector('#state').textContent == 'live'")
    unexpected = [c for c in b.complaints() if not any(w in c for w in ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "Connection closed before"))]
    assert not unexpected, unexpected
    b.close()
    finish(daemon)
    os.remove(path)
