# SPDX-License-Identifier: GPL-2.0-or-later
"""xcipher-migrate: xcipherd starts with its output, and each option of rtpengine is converted or
reported."""
import os
import re
import shutil
import subprocess
import tempfile

import relay
from run import Skip

PROGRAM = os.path.join(os.path.dirname(__file__), "..", "..", "packaging", "xcipher-migrate")


def migrate(text, *words):
    """(exit status, configuration, report)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rtpengine.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        done = subprocess.run([PROGRAM, f"--config-file={path}", *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


def options(conf):
    return dict(re.findall(r"^([a-z-]+) = (.*)$", conf, re.M))


STOCK = """[rtpengine]
# as Debian ships it, with what carriers set
table = -1
interface = internal/10.200.1.1;external/10.200.2.1!198.51.100.7
listen-ng = 127.0.0.1:2223
listen-cli = localhost:2224
timeout = 61
silent-timeout = 1800
tos = 184
port-min = 30000
port-max = 30999
max-sessions = -1
max-load = 5000
num-threads = 16
recording-method = proc
sip-source = true
log-level = 5
dtls-passive = true
mqtt-host = broker
future-option = 3

[other]
interface = 192.0.2.99
"""


def test_the_daemon_starts_with_it(net):
    status, conf, report = migrate(STOCK)
    assert status == 0, report
    got = options(conf)
    want = {"steering": "udp", "interface": "internal/10.200.1.1; external/10.200.2.1!198.51.100.7", "listen-ng": "127.0.0.1:2223", "timeout": "61",
            "silent-timeout": "1800", "tos": "184", "port-min": "30000", "port-max": "30999", "max-load": "5000", "log-level": "5",
            "templates": "templates", "default": "SIP-source-address"}
    assert got == want, got
    for name in ("listen-cli", "recording-method", "dtls-passive", "mqtt-host", "future-option", "num-threads"):
        assert f"{name} = " in report, (name, report)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "xcipherd.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(conf)
        daemon = relay.Xcipherd(net, f"--config-file={path}", "--engine=serial", addresses=()).wait_ready()
        sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.5\r\ns=-\r\nc=IN IP4 192.0.2.5\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
        said = {"call_id": "m", "from_tag": "a", "received_from": ["IP4", "198.51.100.99"], "sdp": sdp}
        for command, tags in (("offer", {}), ("answer", {"to_tag": "b"})):
            reply = daemon.client.call(command, **said, **tags)
            assert reply["result"] == "ok", reply
        query = str(daemon.client.call("query", call_id="m"))
        assert "198.51.100.99" in query and "192.0.2.5" not in query, "sip-source is lost: " + query
        assert daemon.stop() == 0


def test_a_command_line_beats_the_file(_net):
    status, conf, report = migrate(STOCK, "--", "-i", "192.0.2.1", "-o62", "-m", "40000", "--port-max=40999", "-r", "pw@192.0.2.3:6379/5", "-t", "0", "--foreground")
    got = options(conf)
    assert status == 0 and got["interface"] == "192.0.2.1" and got["timeout"] == "62" and got["port-min"] == "40000", conf
    assert got["redis"] == "pw@192.0.2.3:6379/5" and got["redis-key-file"] and got["steering"] == "kernel" and got["port-max"] == "40999", conf
    assert "pw@" not in report and "openssl rand" in report and "pw@" not in conf.splitlines()[0], "the password is shown"
    status, conf, _ = migrate(STOCK, "--config-section=other")
    assert status == 0 and options(conf) == {"interface": "192.0.2.99"}, conf


def test_what_is_taken_over_is_in_the_file(_net):
    status, conf, report = migrate("[rtpengine]\ninterface = lo\nrecording-method = pcap\nforeground = true\ntos = 184\n")
    assert status == 0 and options(conf)["interface"].startswith("127.0.0.1") and options(conf)["tos"] == "184", (conf, report)
    same = report.split("Taken over as they are:")[1].split("\n\n")[0]
    for name in re.findall(r"^  ([a-z-]+)", same, re.M):
        assert name in options(conf), (name, report)
    assert "foreground: only an option of the command line" in report and "recording-method = pcap: the only method" in report, report
    status, conf, report = migrate("[rtpengine]\ninterface = lo\ncodec-num-threads = 4\n")
    assert status == 0 and options(conf)["codec-threads"] == "4", (conf, report)
    status, conf, report = migrate("[rtpengine]\ninterface = lo\ncodec-num-threads = 0\n")
    assert status == 0 and "codec-threads" not in options(conf) and "codec-num-threads = 0: left out" in report, (conf, report)
    status, _, report = migrate("[rtpengine]\ninterface = nosuchdev0\n")
    assert status == 1 and "no such host" in report, report


RECORDER = """[rtpengine-recording]
table = 0
output-dir = /var/lib/rec
output-storage = file
output-format = mp3
output-mixed = true
output-single = no
mix-method = channels
resample-to = 16000
mp3-bitrate = 24000
mysql-host = db
"""


def test_options_of_rtpengine_recording(_net):
    status, conf, report = migrate(RECORDER, "--config-section=rtpengine-recording")
    assert status == 0, report
    assert options(conf) == {"recording-dir": "/var/lib/rec", "output-mixed": "yes", "mix-method": "channels", "resample-to": "16000"}, conf
    lost = report.split("no equivalent:")[1].split("Next:")[0]
    for name in ("output-format = mp3: audio is written as WAV or Opus", "mp3-bitrate", "mysql-host"):
        assert name in lost, report
    status, conf, report = migrate(RECORDER.replace("16000", "44100"), "--config-section=rtpengine-recording")
    assert status == 0 and "resample-to" not in options(conf) and "resample-to = 44100: xcipherd resamples" in report, report
    status, conf, report = migrate(RECORDER.replace("channels", "stereo"), "--config-section=rtpengine-recording")
    assert status == 1 and not conf and "direct, channels" in report, report
    status, conf, report = migrate("[rtpengine]\noutput-mixed = true\n")
    assert status == 0 and "output-mixed = true: an option of rtpengine-recording" in report, report


def test_a_mistake_is_one_clear_line(_net):
    for text, word in (("table = many", "whole number"), ("what", "line 2"), ("listen-ng = 127.0.0.1:99999", "PORT"),
                       ("sip-source = maybe", "true or false"), ("log-level = 9", "0 to 7"), ("", "nothing")):
        status, conf, report = migrate(f"[rtpengine]\n{text}\n")
        assert status == 1 and not conf and word in report and report.count("\n") == 1, (text, status, conf, report)
    for words in (["/etc/rtpengine/rtpengine.conf"], ["--file=x"]):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and not done.stdout and "--config-file=FILE" in done.stderr.splitlines()[-1] and words[0] in done.stderr, done.stderr
    status, conf, report = migrate("[other]\ntable = 0\n")
    assert status == 1 and not conf and "--config-section" in report and "other" in report, report


def test_a_file_that_is_there_is_kept(_net):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "xcipherd.conf")
        status, conf, _ = migrate(STOCK, f"--output={path}")
        assert status == 0 and not conf and os.stat(path).st_mode & 0o777 == 0o640 & ~umask()
        with open(path, encoding="utf-8") as f:
            before = f.read()
        status, _, report = migrate("[rtpengine]\ntos = 1\n", f"--output={path}")
        with open(path, encoding="utf-8") as f:
            assert status == 1 and "exists already" in report and f.read() == before, report


def umask():
    old = os.umask(0)
    os.umask(old)
    return old


def test_it_knows_every_option_of_rtpengine_and_of_xcipherd(_net):
    table = subprocess.run([PROGRAM, "--table"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"--([a-z0-9-]+)", table))
    assert len(known) > 120, len(known)
    ours = set(re.findall(r"^  --([a-z0-9-]+)", subprocess.run([os.path.join(relay.BUILD, "xcipherd"), "--help"], capture_output=True, text=True, check=True).stdout, re.M))
    status, conf, report = migrate(STOCK, "--", "-r", "192.0.2.3:6379/5", "-w", "192.0.2.3:6379/6")
    assert status == 0, report
    wrote = set(re.findall(r"^([a-z-]+) = ", conf, re.M)) - {"default"}
    assert wrote <= ours, wrote - ours
    if not shutil.which("rtpengine"):
        raise Skip("rtpengine is not installed")
    text = subprocess.run(["rtpengine", "--help"], capture_output=True, text=True, check=True).stdout
    theirs = set(re.findall(r"^  (?:-., )?--([a-z0-9-]+)", text, re.M)) - {"help"}
    assert len(theirs) > 100, text
    assert not {t for t in theirs - known if not t.startswith("log-level-")}, theirs - known
