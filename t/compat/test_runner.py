# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner itself: a failing test must fail the run."""
import os
import signal
import subprocess
import sys
import tempfile

from compat import compat_each

PASSES = '@compat("one", "this")\ndef test_passes(relay):\n    relay.request("ping")\n'
WRONG = '@compat("two", "this")\ndef test_fails(relay):\n    assert relay.request("ping")["result"] == "other"\n'
REFUSED = '@compat("two", "this")\ndef test_refused(relay):\n    relay.request("no such command")\n'
DIES = (f'@compat("two", "this")\ndef test_dies(relay):\n    import os\n    os.kill(relay.daemon.pid(), {signal.SIGKILL:d})\n'
        '    relay.daemon.process.wait()\n')


def fails_at(*runs, name="fails_at"):
    """A test that fails at these runs of it. A file counts them, because each may be in another process."""
    return (f'@compat("two", "this")\ndef test_{name}(relay):\n    with open(__file__ + ".{name}", "a+", encoding="ascii") as f:\n'
            f'        f.write("x")\n        f.seek(0)\n        assert len(f.read()) not in {runs}\n')


MANY = [PASSES.replace("test_passes", f"test_passes_{n}") for n in range(60)]  # more than share a daemon
SEVEN = [fails_at(1, name=f"fails_{n}") for n in range(7)]


def run(*tests):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "test_made.py"), "w", encoding="ascii") as f:
            f.write("from compat import compat\n\n\n" + "\n\n".join(tests))
        runner = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
        # Without late threads there is a second chance.
        env = {k: v for k, v in os.environ.items() if k != "LATE_LIBRARY"}
        return subprocess.run([sys.executable, runner, f"--tests={folder}"], capture_output=True, text=True, check=False, env=env)


@compat_each("runner", "t/compat/README.md", [
    ("passes", 0, "1 passed, 0 failed", PASSES), ("fails", 1, "1 passed, 1 failed", PASSES, WRONG), ("refused", 1, "| two      |     1 |    0 |", REFUSED),
    ("dies", 1, "1 passed, 1 failed", DIES, PASSES), ("none", 5, "no test has such a name"),
    ("fails once", 0, "1 passed, 0 failed, 1 unsteady", PASSES, fails_at(1)), ("fails again", 1, "1 passed, 1 failed", PASSES, fails_at(1, 3)),
    ("many", 1, "60 passed, 1 failed", *MANY, WRONG), ("seven fail once", 1, "1 passed, 7 failed", PASSES, *SEVEN)])
def test_of_the_runner(_relay, _name, status, says, *tests):
    done = run(*tests)
    assert done.returncode == status and says in done.stdout, (done.returncode, done.stdout, done.stderr)
