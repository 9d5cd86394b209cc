# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets between two phones. What packets do in detail is tested by t/e2e."""
from compat import compat, compat_each


@compat_each("media", "RFC 3711, RFC 4568 section 6.2", [(None, None), (None, "80"), ("80", None), ("80", "32"), ("GCM256", "80"), ("GCM", "GCM")])
def test_phones_hear_each_other(relay, a, b):
    relay.call().talk(relay.phone("caller", a), relay.phone("callee", b))


@compat("media", "RFC 4566 section 5.7")
def test_ipv4_to_ipv6(relay):
    b = relay.phone("callee", ipv6=True)
    relay.call().talk(relay.phone("caller"), b, address_family="IP6", direction=["internal", "external"])
    assert b.to[0] == "fd00:2::1"
