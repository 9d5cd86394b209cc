# SPDX-License-Identifier: GPL-2.0-or-later
"""ng's "play media", "stop media" and "play DTMF" in a call between two real phones."""
import os
import subprocess
import tempfile

import numpy as np

import relay
from baresip import phone, wait_for
from run import Skip, cases
from test_module import BOTH, needs, proxy, quoted
from test_transcode import ADDRESS, PROFILE, baresip

FILE_TONE = 2000
RATE = 8000
DECODER = os.path.join(os.path.abspath(relay.BUILD), "xcipher-av")


def share(terminal, tone):
    """The share of the tone in the last half second that the phone received."""
    path = phone.recording(terminal.folder)
    if not path or phone.seconds_recorded(terminal.folder) < 1:
        return 0
    with open(path, "rb") as f:  # its header is not correct before it is closed
        f.seek(-RATE, os.SEEK_END)
        samples = np.frombuffer(f.read(RATE), "<i2").astype(float)
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) ** 2
    freqs = np.fft.rfftfreq(len(samples), 1 / RATE)
    return float(power[abs(freqs - tone) < 15].sum() / (power.sum() or 1))


@cases(("SRTP", "PCMU", "note.wav"), ("RTP", "PCMA", "note.opus"))
def test_phone_hears_a_file_and_a_digit(net, callee_keys, codec, name):
    """The caller has SRTP. It hears the callee, then the file in its place, then the callee again;
    a digit reaches it as a telephone event. The callee hears the caller all the time."""
    needs()
    if not os.access("/usr/bin/baresip", os.X_OK) or not os.access("/usr/bin/ffmpeg", os.X_OK) or not os.access(DECODER, os.X_OK):
        raise Skip("baresip, ffmpeg or xcipher-av is missing")
    with tempfile.TemporaryDirectory(prefix="xcipher-play-") as folder:
        os.mkdir(os.path.join(folder, "files"))
        wav, path = os.path.join(folder, "files", "note.wav"), os.path.join(folder, "files", name)
        phone.write_tone(wav, FILE_TONE, 60)
        if path != wav:
            subprocess.run(["ffmpeg", "-v", "error", "-i", wav, path], check=True, stdin=subprocess.DEVNULL)
        daemon = relay.Xcipherd(net, "--engine=serial", "--delete-delay=0", f"--play-dir={folder}/files", f"--play-decoder={DECODER}",
                                addresses=BOTH).wait_ready()
        kam = proxy(net, folder, XC_OFFER_FLAGS=quoted(f"{PROFILE[callee_keys]} ICE=remove replace-origin direction=caller direction=callee"),
                    XC_ANSWER_FLAGS=quoted("ICE=remove replace-origin"))
        callee = baresip(net, folder, "callee", callee_keys, codec=codec)
        caller = baresip(net, folder, "caller", "SRTP", codec=codec, dial=f"sip:callee@{ADDRESS['callee']}")
        for terminal in (caller, callee):
            terminal.talks()
        for terminal in (caller, callee):
            terminal.records()
        call_id = daemon.client.call("list")["calls"][0]
        tags = daemon.client.call("query", call_id=call_id)["tags"]
        caller_tag = next(t for t in tags if tags[t]["medias"][0]["streams"][0]["endpoint"]["address"] == ADDRESS["caller"])
        callee_tag = next(t for t in tags if t != caller_tag)
        reply = daemon.client.call("play media", call_id=call_id, from_tag=caller_tag, file=name, flags=["block-egress"])
        assert reply["duration"] == 60000, reply
        wait_for("the file", lambda: share(caller, FILE_TONE) > 0.9)
        reply = daemon.client.call("stop media", call_id=call_id, from_tag=caller_tag)
        assert 0 < reply["last-frame-pos"] < 60 * (RATE if path == wav else 48000), reply
        wait_for("the callee after the file", lambda: share(caller, callee.tone) > 0.9)
        daemon.client.call("play DTMF", call_id=call_id, from_tag=callee_tag, code="5")
        wait_for("the digit", lambda: "event: '5'" in caller.log().lower())
        wait_for("the callee after the digit", lambda: share(caller, callee.tone) > 0.9)
        for terminal in (caller, callee):
            terminal.stop()
        assert callee.heard(caller) > 0.9, callee.heard(caller)
        assert kam.stop() == 0
        daemon.stop()
