# SPDX-License-Identifier: GPL-2.0-or-later
"""The codecs of a daemon: --codec-dir, --codec-isolation, xcipherctl codecs."""
import os
import shutil
import tempfile

import relay
from test_ctl import ctl
from test_relay import finish


def test_plug_ins_are_loaded_and_shown(net):
    """A plug-in of a foreign folder is isolated, one without the symbol is refused with the reason,
    and both are in the log and in xcipherctl codecs."""
    with tempfile.TemporaryDirectory() as folder:
        for source, name in (("codecs/template.so", "half.so"), ("t/codecs/symbol.so", "symbol.so")):
            shutil.copy(os.path.join(relay.BUILD, source), os.path.join(folder, name))
        daemon = relay.Xcipherd(net, "--engine=serial", f"--codec-dir={folder}",
                                f"--codec-worker={os.path.join(relay.BUILD, 'xcipher-codec-worker')}").wait_ready()
        shown = ctl(net, "codecs").stdout
        rows = {line.split()[0]: line for line in shown.splitlines()}
        assert "half.so, isolated" in rows["x-half"] and "built in" in rows["G722"], shown
        assert "symbol.so is refused: " in shown, shown
        reply = daemon.client.call("codecs")
        assert [p["file"] for p in reply["plug-ins"]] == ["half.so", "symbol.so"], reply
        log = daemon.text()
        assert "half.so, version" in log and "isolated" in log and "symbol.so is refused" in log, log
        finish(daemon)


def test_a_folder_that_is_missing_stops_the_start(net):
    daemon = relay.Xcipherd(net, "--engine=serial", "--codec-dir=/nowhere/codecs")
    assert daemon.process.wait(60) == 1
    assert "--codec-dir=/nowhere/codecs: No such file or directory" in daemon.text(), daemon.text()
