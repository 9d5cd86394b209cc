# SPDX-License-Identifier: GPL-2.0-or-later
"""Notifications to the service manager. t/systemd tests them with a real one."""
import contextlib
import os
import socket
import tempfile
import time

import hold
import relay


def heard(manager, word, seconds):
    """Waits for this notification. Returns all of them until then."""
    said, end = [], time.monotonic() + seconds
    while word not in said:
        left = end - time.monotonic()
        assert left > 0, f"no {word} within {seconds} s: {said}"
        manager.settimeout(left)
        try:
            said.append(manager.recv(4096).decode())
        except TimeoutError:
            pass
    return said


def drain(manager):
    """Takes what was said so far."""
    manager.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        while True:
            manager.recv(4096)


def test_a_worker_that_hangs_is_told_at_once(net):
    """The control thread still runs and could feed the watchdog. It does not, and reports the
    failure early."""
    with tempfile.TemporaryDirectory() as folder:
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(folder + "/notify")
        os.environ.update(NOTIFY_SOCKET=folder + "/notify", WATCHDOG_USEC="30000000")
        daemon = relay.Xcipherd(net, "--engine=serial").wait_ready()
        heard(manager, "WATCHDOG=1", 60)
        with hold.thread(daemon.pid(), "worker"):
            drain(manager)
            said = heard(manager, "WATCHDOG=trigger", 60)
            assert said.count("WATCHDOG=1") <= 12, said
            assert daemon.client.call("ping")["result"] == "pong" and "is stuck for more than 10 s" in daemon.text()
        heard(manager, "WATCHDOG=1", 60)
        assert daemon.stop() == 0
        manager.close()
