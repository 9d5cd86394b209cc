# SPDX-License-Identifier: GPL-2.0-or-later
"""Emergency calls from end to end: the demonstration of demo/ng911.py, with kamailio-cfg/ng911 unchanged. Media are checked on both sides of
the border, the location part octet by octet."""
import os
import sys
import tempfile

import relay
from run import Skip

sys.path.insert(0, os.path.join(relay.ROOT, "demo"))


def needs():
    for name in ("/usr/sbin/kamailio", "/usr/bin/openssl", "/usr/lib/python3/dist-packages/shapely", "/usr/lib/python3/dist-packages/httptools"):
        if not os.path.exists(name):
            raise Skip(f"{name} is not installed")
    if not os.path.exists(os.path.join(relay.BUILD, "xcipher.so")):
        raise Skip("xcipher.so is not built: make module")


def test_emergency_calls_are_routed_and_secured(net):
    """With the LoST client that is built: xcipher_lost.so, or Kamailio's module lost."""
    needs()
    import esinet
    import ng911
    ng911.PACKETS = 10
    with tempfile.TemporaryDirectory(prefix="xcipher-ng911-") as folder:
        network = esinet.Network(net, folder, ng911.best_client(), boundaries=60)
        try:
            ng911.play(network, ng911.Story())
        except Exception:
            for p in network.proxies():
                print(f"--- {p.name}\n{p.text()[-4000:]}")
            raise
        network.close()


test_emergency_calls_are_routed_and_secured.terminals = ("caller", "taker1", "taker2")
