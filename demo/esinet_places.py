# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the servers of demo/esinet.py live: {name: namespace}. The border is in the gateway in any case, and the ESRP with it."""

VSP, ESRP, PSAP, LOST = (f"10.201.0.{i}" for i in (1, 2, 3, 4))
ADDRESS = {"vsp": VSP, "esrp": ESRP, "psap": PSAP, "lost": LOST}


def together(net):
    """All in the gateway."""
    for address in ADDRESS.values():
        net.run(net.gateway, "ip", "addr", "add", f"{address}/32", "dev", "lo")
    return dict.fromkeys(ADDRESS, net.gateway)


def apart(net):
    """Each server on its own host, connected by a router, so all packets between servers cross a link.

    Member i of the router "core" has 10.202.i.2 on the device core. Servers keep their addresses, on lo."""
    core = net.add("core")
    net.run(core, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
    places = {name: net.gateway if name == "esrp" else net.add(name) for name in ADDRESS}
    members = [(places[name], ADDRESS[name]) for name in ADDRESS]
    members += [(ns, f"10.200.{i}.2") for i, ns in enumerate(net.terminal.values(), 1)]
    for i, (ns, address) in enumerate(members, 1):
        net.link(core, f"m{i}", f"10.202.{i}.1/24", ns, "core", f"10.202.{i}.2/24")
        net.run(core, "ip", "route", "add", f"{address}/32", "via", f"10.202.{i}.2")
        server = address in ADDRESS.values()
        if server:
            net.run(ns, "ip", "addr", "add", f"{address}/32", "dev", "lo")
        for others in ("10.201.0.0/24", "10.200.0.0/16") if server and ns != net.gateway else ("10.201.0.0/24",):
            net.run(ns, "ip", "route", "add", others, "via", f"10.202.{i}.1", "src", address)
    return places


def device(name):
    """The router's end of the link to a server."""
    return f"m{list(ADDRESS).index(name) + 1}"
