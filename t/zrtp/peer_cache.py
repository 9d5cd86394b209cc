# SPDX-License-Identifier: GPL-2.0-or-later
"""What a terminal keeps from one call to the next (RFC 6189 4.6.1, 4.9): its ZID and, by ZID of the peer, the retained secrets."""
import os


class Cache:
    """found: by ZID, a dictionary of rs1, rs2, aux, pbx, and verified, which is true if the SAS was compared."""

    def __init__(self):
        self.zid, self.found = os.urandom(12), {}

    def get(self, zid):
        return dict(self.found.get(zid, {}))

    def renew(self, zid, rs1, keep_old):
        """After an exchange. keep_old: it was by public keys, so that the peer may have the old secret only."""
        entry = self.found.setdefault(zid, {})
        if keep_old:
            entry.pop("rs2", None)
            if "rs1" in entry:
                entry["rs2"] = entry["rs1"]
        entry["rs1"] = rs1

    def put(self, zid, name, value):
        self.found.setdefault(zid, {})[name] = value
