#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A page that a person opens: a browser of this machine calls a baresip phone through Kamailio and xcipherd. make demo-webrtc.

    webrtc_page.py [--check]

The page is http://localhost:8000. Kamailio, xcipherd and the phone are in network namespaces of this run; a link with the addresses
10.201.1.2 and 10.201.1.1 connects this machine to them. Ctrl-C removes everything. --check: Chromium without a window opens the page and calls."""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "t", "webrtc"), os.path.join(ROOT, "t", "e2e")]

import browser  # noqa: E402
import call  # noqa: E402
import chromium  # noqa: E402
import netns  # noqa: E402
import relay  # noqa: E402
import sipp  # noqa: E402
import websocket  # noqa: E402
from baresip import wait_for  # noqa: E402

HERE, GATEWAY = "10.201.1.2", "10.201.1.1"
URL = "http://localhost:8000"


def pages(folder, server):
    """The folder of the HTTP server."""
    os.makedirs(folder)
    shutil.copy(websocket.JSSIP, folder)
    shutil.copy(os.path.join(ROOT, "demo", "page.html"), os.path.join(folder, "index.html"))
    shutil.copy(os.path.join(ROOT, "demo", "page.js"), folder)
    settings = {"server": f"ws://{server}:8080", "uri": f"sip:alice@{websocket.DOMAIN}", "password": websocket.USERS["alice"],
                "phone": f"sip:phone@{websocket.DOMAIN}"}
    with open(os.path.join(folder, "settings.js"), "w", encoding="ascii") as f:
        f.write(f"const SETTINGS = {json.dumps(settings)};\n")
    return ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder, "8000"]


def connect_this_machine(net):
    """A link to the gateway. It goes with the gateway's namespace."""
    name = f"xcdemo{os.getpid() % 10000}"
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", "g9", "netns", net.gateway], check=True)
    for at, device, address in (([], name, HERE), (["-n", net.gateway], "g9", GATEWAY)):
        subprocess.run(["ip", *at, "addr", "add", f"{address}/24", "dev", device], check=True)
        subprocess.run(["ip", *at, "link", "set", device, "up"], check=True)


def servers(net, folder, server):
    daemon = relay.Xcipherd(net, "--engine=serial", "--workers=1", addresses=(f"web/{server}", "sip/10.200.2.1")).wait_ready()
    kam = sipp.Kamailio(net, folder, example="kamailio-webrtc.cfg", swap=("log_stderror=no", "log_stderror=yes"), XC_STOCK=1, XC_NO_TLS=1, XC_WEB=server,
                        XC_DB=f'"sqlite:///{websocket.database(folder)}"', XC_WS_ORIGINS='"^http://localhost:8000$"')
    return daemon, kam


def check(net, phone):
    """What was wrong; empty: nothing. The page has no microphone here, so it plays its tone."""
    page = chromium.Browser(net, net.terminal["a"], (*browser.OPTIONS, "--deny-permission-prompts"))
    page.open(URL)
    page.wait("document.getElementById('state').textContent === 'ready'")
    page.js("element('call').click()")
    page.wait("document.getElementById('state').textContent === 'talking'")
    page.wait("document.getElementById('details').textContent.startsWith('DTLS connected')")
    page.wait("document.getElementById('in').value > 0.1 && document.getElementById('out').value > 0.1")
    wait_for("the page's tone at the phone", lambda: phone.report()["tones"].get("440", 0) > call.OWN_MIN)
    print("demo: " + page.js("element('details').textContent").replace("\n", "; "), flush=True)
    page.js("element('call').click()")
    page.wait("document.getElementById('state').textContent.startsWith('ended')")
    page.close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--check", action="store_true")
    args = p.parse_args()
    for path in (websocket.JSSIP, "/usr/bin/baresip", "/usr/sbin/kamailio") + (("/usr/bin/chromium",) if args.check else ()):
        if not os.path.exists(path):
            print(f"demo: {os.path.basename(path)} is not installed", file=sys.stderr)
            return 1
    with netns.Net(call.PLACES) as net, tempfile.TemporaryDirectory(prefix="xc-demo-") as folder:
        server = "10.200.1.1" if args.check else GATEWAY
        web = pages(os.path.join(folder, "pages"), server)
        if not args.check:
            connect_this_machine(net)
        daemon, kam = servers(net, folder, server)
        phone = websocket.Phone(net)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        http = net.spawn(net.terminal["a"], web, **quiet) if args.check else subprocess.Popen(web, **quiet)
        try:
            if args.check:
                check(net, phone)
            else:
                print(f"demo: open {URL} in a browser of this machine, and click Call. Ctrl-C ends it.", flush=True)
                signal.pause()
        finally:
            net.stop(http)
            phone.close()
        kam.stop()
        daemon.stop()
    print("demo: it works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
