# SPDX-License-Identifier: GPL-2.0-or-later
"""OpenCL libraries that abort, crash or hang, as PoCL does without /sys. The daemon relays without
them and reports cause and remedy. It refuses to start only if the operator named a device."""
import os
import subprocess
import tempfile

import calls
import relay
from run import cases
from test_relay import clean, finish

HARM = {"abort": 'fprintf(stderr, "no topology here\\n"); abort();',
        "crash": "*(volatile int *)0 = 1;",
        "exit": "_exit(0);",
        "hang": "for (;;) pause();"}


class Harmed(relay.Xcipherd):
    """Installs an OpenCL library that fails when the loader asks for its platforms."""

    def __init__(self, net, harm, *options):
        self.dir = tempfile.TemporaryDirectory(prefix="xcipher-icd-")
        source, library = (os.path.join(self.dir.name, name) for name in ("icd.c", "libicd.so"))
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
                    "void *clGetExtensionFunctionAddress(const char *name) { (void)name; " + HARM[harm] + " return NULL; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        with open(os.path.join(self.dir.name, "harm.icd"), "w", encoding="ascii") as f:
            f.write(library + "\n")
        super().__init__(net, *options)

    def environment(self):
        return dict(super().environment(), OCL_ICD_VENDORS=self.dir.name)


SAYS = {"abort": ("the library crashed", "Aborted", "no topology here"), "crash": ("the library crashed", "Segmentation fault"),
        "exit": ("the library crashed", "it ended by itself"), "hang": ("did not finish its start within 1 s",)}


@cases(*[(name,) for name in HARM])
def test_a_library_that_does_harm_does_not_end_the_relay(net, harm):
    # The others end by themselves, which takes more than a second on a busy machine.
    daemon = Harmed(net, harm, "--engine=auto", *["--opencl-start-timeout=1"] if harm == "hang" else []).wait_ready()
    assert daemon.statistics()["engine"] == "serial"
    for text in (*SAYS[harm], "no OpenCL device: falling back to the serial engine"):
        assert text in daemon.text(), daemon.text()
    talk = [calls.Call(daemon.client, i, "80", "32").setup() for i in range(3)]
    clean(calls.load(net, relay.BUILD, talk, rate=50, seconds=1))
    for call in talk:
        calls.ok(call.delete())
    finish(daemon)


def test_pocl_without_sys_does_not_end_the_relay(net):
    daemon = relay.Xcipherd(net, "--engine=auto", wrap=("unshare", "-m", "sh", "-c", 'umount -l /sys && exec "$@"', "sh")).wait_ready()
    assert daemon.statistics()["engine"] == "serial"
    assert "that /sys and /proc are mounted" in daemon.text(), daemon.text()
    finish(daemon)


@cases((None, "--opencl-device=no-such-device", 'no device matches "no-such-device"'), (None, "--opencl-device=cpu,no-such-device", 'no device matches "no-such-device"'),
       ("abort", "--opencl-device=cpu", "the library crashed"), ("abort", "--engine=opencl", "the library crashed"))
def test_a_device_that_is_named_must_be_there(net, harm, option, text):
    daemon = Harmed(net, harm, option) if harm else relay.Xcipherd(net, option)
    assert daemon.process.wait(60) == 1
    assert text in daemon.text() and "--opencl-fallback=yes" in daemon.text(), daemon.text()


@cases(("--opencl-device=no-such-device", 0), ("--opencl-device=cpu,no-such-device", 1), ("--opencl-device=cpu", 1))
def test_with_fallback_a_named_device_may_be_missing(net, option, devices):
    daemon = relay.Xcipherd(net, option, "--opencl-fallback=yes").wait_ready()
    s = daemon.statistics()
    assert (s["engine"], len(s["devices"])) == ("opencl" if devices else "serial", devices), s
    assert ("not used: opencl: no device matches" in daemon.text()) == ("no-such" in option), daemon.text()
    finish(daemon)
