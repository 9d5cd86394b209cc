# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of the log about trouble that others cause."""
import logging
import time

log = logging.getLogger("xcipher-border")
SAY = 10.0  # seconds between two lines about the same trouble
LONGEST = 500


def plain(text):
    """One line that a terminal may show, whatever a peer has put into it."""
    text = str(text)[:LONGEST]
    return "".join(c if c.isprintable() else "?" for c in text)


class Trouble:
    """Writes a line about each kind of trouble once in SAY seconds."""

    def __init__(self):
        self.said = {}

    def say(self, kind, text, *values):
        now = time.monotonic()
        if now - self.said.get(kind, -SAY) >= SAY:
            self.said[kind] = now
            log.warning(text, *(plain(v) if isinstance(v, (str, Exception)) else v for v in values))
