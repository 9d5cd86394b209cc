# SPDX-License-Identifier: GPL-2.0-or-later
"""A real browser in a namespace, without a window, driven over its DevTools protocol."""
import base64
import json
import os
import shutil
import tempfile
import time

import web

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    def __init__(self, net, namespace, options=()):
        self.net = net
        self.folder = tempfile.TemporaryDirectory(prefix="xc-chromium-", ignore_cleanup_errors=True)
        self.process = net.spawn(namespace, [
            PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=9333",
            "--remote-allow-origins=*", f"--user-data-dir={self.folder.name}", "--no-first-run", "--disable-background-networking",
            "--host-resolver-rules=MAP evil.example 127.0.0.1", *options, "about:blank"],
            stdout=open(os.path.join(self.folder.name, "log"), "w", encoding="utf-8"), stderr=-2)
        self.namespace = namespace
        self.number = 0
        self.events = []
        end = time.monotonic() + 120
        while True:
            try:
                tabs = json.loads(web.ask(web.connect(namespace, ("127.0.0.1", 9333)), "GET", "/json/list")[2])
                page = next(t for t in tabs if t["type"] == "page")
                break
            except (OSError, StopIteration, ValueError, EOFError):
                if time.monotonic() > end or self.process.poll() is not None:
                    raise RuntimeError("chromium does not start: " + self.log()) from None
                time.sleep(.1)
        path = "/devtools/" + page["webSocketDebuggerUrl"].split("/devtools/", 1)[1]
        self.ws = web.WebSocket(web.connect(namespace, ("127.0.0.1", 9333)), None, path=path)
        self.ws.s.settimeout(120)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def log(self):
        with open(os.path.join(self.folder.name, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def call(self, method, **params):
        self.number += 1
        self.ws.send(json.dumps({"id": self.number, "method": method, "params": params}).encode())
        while True:
            m = json.loads(self.ws.receive()[1])
            if m.get("id") == self.number:
                assert "error" not in m, (method, m["error"])
                return m["result"]
            self.events.append(m)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in r, r
        return r["result"].get("value")

    def wait(self, expression, timeout=60):
        end = time.monotonic() + timeout
        while not self.js(f"(() => {{ try {{ return {expression}; }} catch {{ return false; }} }})()"):
            assert time.monotonic() < end, (expression, self.js("document.body && document.body.innerText"), self.complaints())
            time.sleep(.1)

    def key(self, key, code, text=None):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def dark(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """Errors from console and log: exceptions, violations of the content security policy,
        failed requests."""
        out = []
        for m in self.events:
            p = m.get("params", {})
            if m.get("method") == "Runtime.exceptionThrown":
                out.append(p["exceptionDetails"].get("exception", {}).get("description") or p["exceptionDetails"]["text"])
            elif m.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("warning", "error"):
                out.append(p["entry"]["text"])
            elif m.get("method") == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning"):
                out.append(str([a.get("value") for a in p["args"]]))
        return out

    def close(self):
        self.net.stop(self.process)
        self.folder.cleanup()
