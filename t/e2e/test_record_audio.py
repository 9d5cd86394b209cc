# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings as WAV and Opus of calls between real phones: each party's tone in its channel, with SRTP and
transcoding; a daemon that is killed leaves a file that plays."""
import json
import os
import shutil
import subprocess
import tempfile
import wave

import numpy as np

import calls
import relay
import test_ng
from bench_transcode import PLUGINS
from run import Skip, cases
from test_module import BOTH, needs, proxy, quoted
from test_record import Folder, closed, reply_file, until
from test_transcode import ADDRESS, PROFILE, baresip

CALLER, CALLEE = 440, 1000


def channels(path):
    """The samples of each channel, and the rate."""
    with wave.open(path) as w:
        assert w.getsampwidth() == 2
        data = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(float)
        return [data[i::w.getnchannels()] for i in range(w.getnchannels())], w.getframerate()


def shares(samples, rate, *tones):
    """The share of each tone in the energy of a second: the one that has the most of the first tone, because a thread that is late
    leaves gaps."""
    def of(part):
        power = np.abs(np.fft.rfft(part * np.hanning(len(part)))) ** 2
        freqs = np.fft.rfftfreq(len(part), 1 / rate)
        return [float(power[abs(freqs - tone) < 10].sum() / (power.sum() or 1)) for tone in tones]
    return max(of(samples[at:at + rate]) for at in range(0, len(samples) - rate, rate // 4))


def share(samples, rate, tone):
    return shares(samples, rate, tone)[0]


def seconds(path):
    if not os.path.exists(path):
        return 0
    data, rate = channels(path)
    return len(data[0]) / rate


def opus(path, decoder):
    """The samples of each channel of an Ogg Opus file, by one of the two decoders of ffmpeg. Errors fail."""
    done = subprocess.run(["ffmpeg", "-v", "warning", "-xerror", "-c:a", decoder, "-i", path, "-f", "s16le", "-"], capture_output=True, check=True,
                          stdin=subprocess.DEVNULL)
    assert not done.stderr, done.stderr
    about = json.loads(subprocess.run(["ffprobe", "-v", "error", "-show_streams", "-of", "json", path], capture_output=True, check=True).stdout)["streams"][0]
    assert about["codec_name"] == "opus" and about["sample_rate"] == "48000"
    data = np.frombuffer(done.stdout, "<i2").astype(float)
    return [data[i::about["channels"]] for i in range(about["channels"])]


def one_plugin(folder):
    """Options for that of Opus alone: each one takes time to be tested."""
    os.mkdir(os.path.join(folder, "codecs"))
    shutil.copy(f"{relay.BUILD}/codecs/opus.so", os.path.join(folder, "codecs"))
    return [f"--codec-dir={folder}/codecs", *PLUGINS[1:]]


def opus_seconds(path):
    """The duration that the last whole page states."""
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as f:
        data = f.read()
    at = data.rfind(b"OggS")
    return int.from_bytes(data[at + 6:at + 14], "little") / 48000 if at >= 0 else 0


def test_phones_are_recorded_as_opus(net):
    """The daemon is killed in the middle of it. Its files play in two decoders, also after half of a page is lost, and the next start
    ends them."""
    needs()
    if not os.access("/usr/bin/baresip", os.X_OK) or not os.access("/usr/bin/ffmpeg", os.X_OK) or not os.access(f"{relay.BUILD}/codecs/opus.so", os.R_OK):
        raise Skip("baresip, ffmpeg, or the plug-in for Opus is missing")
    with Folder() as tapes, tempfile.TemporaryDirectory(prefix="xcipher-opus-") as folder:
        options = ["--engine=serial", "--delete-delay=0", f"--recording-dir={tapes.path}", "--output-mixed=yes", "--output-single=yes",
                   "--output-format=opus", "--mix-method=channels", *one_plugin(folder)]
        daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
        more = "ICE=remove replace-origin direction=caller direction=callee"
        kam = proxy(net, folder, XC_OFFER_FLAGS=quoted(f"{PROFILE['RTP']} {more}"), XC_ANSWER_FLAGS=quoted("ICE=remove replace-origin"))
        callee = baresip(net, folder, "callee", "RTP", codec="PCMU")
        caller = baresip(net, folder, "caller", "SRTP", codec="PCMU", dial=f"sip:callee@{ADDRESS['callee']}")
        for terminal in (caller, callee):
            terminal.talks()
        path = reply_file(daemon.client.call("start recording", call_id=daemon.client.call("list")["calls"][0])).removesuffix(".pcap")
        until(lambda: opus_seconds(path + "-mix.opus") >= 3, "three seconds are recorded")
        daemon.process.kill()
        daemon.process.wait()
        daemon.client.close()
        for terminal in (caller, callee):
            terminal.stop()
        assert kam.stop() == 0
        for decoder in ("opus", "libopus"):
            left, right = opus(path + "-mix.opus", decoder)
            heard = shares(left, 48000, CALLER, CALLEE) + shares(right, 48000, CALLEE, CALLER)
            assert heard[0] > 0.95 and heard[1] < 0.01 and heard[2] > 0.95 and heard[3] < 0.01, (decoder, heard)
            for side, tone in ((1, CALLER), (2, CALLEE)):
                (one,) = opus(f"{path}-{side}.opus", decoder)
                assert share(one, 48000, tone) > 0.95, (decoder, side)
                assert os.stat(f"{path}-{side}.opus").st_mode & 0o777 == 0o600
        size = os.stat(path + "-mix.opus").st_size
        os.truncate(path + "-mix.opus", size - 50)  # as after a loss of power
        daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
        assert "ended 3 Opus files" in daemon.text(), daemon.text()
        assert os.stat(path + "-mix.opus").st_size < size - 50
        left, right = opus(path + "-mix.opus", "opus")
        assert share(left, 48000, CALLER) > 0.95 and share(right, 48000, CALLEE) > 0.95
        assert daemon.stop() == 0


@cases((True, 24000, "resample-to=24000 is not a rate of Opus"), (False, 8000, "Install xcipher-codec-opus"))
def test_opus_needs_its_codec_and_a_rate(net, plugin, rate, reason):
    with Folder() as tapes, tempfile.TemporaryDirectory(prefix="xcipher-opus-") as folder:
        if plugin and not os.access(f"{relay.BUILD}/codecs/opus.so", os.R_OK):
            raise Skip("the plug-in for Opus is missing")
        plugins = one_plugin(folder) if plugin else ["--codec-dir=none"]
        daemon = relay.Xcipherd(net, "--engine=serial", f"--recording-dir={tapes.path}", "--output-mixed=yes", "--output-format=opus",
                                f"--resample-to={rate}", *plugins)
        assert daemon.process.wait(60) != 0
        assert reason in daemon.text(), daemon.text()


def test_digits_are_not_lost_audio(net):
    """Telephone events share the sequence numbers of the audio around them. The text of the recording counts packets that are
    missing; events are not."""
    with Folder() as tapes:
        daemon = test_ng.start(net, f"--recording-dir={tapes.path}", "--output-mixed=yes")
        a, b = test_ng.Phone(net, "caller", "10.200.1.2", "80"), test_ng.Phone(net, "callee", "10.200.2.2", "32")
        test_ng.talk(daemon.client, a, b, "digits")
        path = reply_file(daemon.client.call("start recording", call_id="digits")).removesuffix(".pcap")
        for n in range(60):
            a.send(bytes((5, 10, 0, 160)) if n % 3 else b"\x55" * 160, test_ng.EVENT if n % 3 else 0)
            assert b.hears(), n
        a.seq += 2  # these are lost
        for n in range(10):
            a.send(b"\x55" * 160)
            assert b.hears(), n
        calls.ok(daemon.client.call("stop recording", call_id="digits"))
        until(lambda: closed(path + ".pcap"), "it is closed")
        with open(path + ".txt", encoding="utf-8") as f:
            text = f.read()
        assert "audio: 1 files, 30 packets decoded, 2 lost, 0 broken" in text, text
        test_ng.finish(daemon)


@cases(("SRTP", "PCMU", "SRTP", "PCMU", 8000), ("SRTP", "PCMA", "RTP", "PCMU", 8000), ("SRTP", "G722", "SRTP", "PCMA", 16000))
def test_phones_are_recorded_as_audio(net, caller_keys, caller_codec, callee_keys, callee_codec, rate):
    """Relayed, converted by the worker, and transcoded by a codec thread. The daemon is killed in
    the middle of it; its files play, and the next start keeps them."""
    needs()
    if not os.access("/usr/bin/baresip", os.X_OK):
        raise Skip("baresip is not installed")
    with Folder() as tapes, tempfile.TemporaryDirectory(prefix="xcipher-wav-") as folder:
        options = ["--engine=serial", "--delete-delay=0", f"--recording-dir={tapes.path}", "--output-mixed=yes", "--output-single=yes",
                   "--mix-method=channels", f"--resample-to={rate}", "--codec-dir=none"]
        daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
        more = f"ICE=remove replace-origin direction=caller direction=callee record-call codec-transcode-{callee_codec}"
        more += "" if caller_codec == callee_codec else f" codec-mask-{caller_codec}"
        kam = proxy(net, folder, XC_OFFER_FLAGS=quoted(f"{PROFILE[callee_keys]} {more}"), XC_ANSWER_FLAGS=quoted("ICE=remove replace-origin"))
        callee = baresip(net, folder, "callee", callee_keys, codec=callee_codec)
        caller = baresip(net, folder, "caller", caller_keys, codec=caller_codec, dial=f"sip:callee@{ADDRESS['callee']}")
        for terminal in (caller, callee):
            terminal.talks()
        path = reply_file(daemon.client.call("start recording", call_id=daemon.client.call("list")["calls"][0])).removesuffix(".pcap")
        until(lambda: seconds(path + "-mix.wav") >= 3, "three seconds are recorded")
        daemon.process.kill()
        daemon.process.wait()
        daemon.client.close()
        for terminal in (caller, callee):
            terminal.stop()
        assert kam.stop() == 0
        (left, right), got = channels(path + "-mix.wav")
        assert got == rate
        heard = shares(left, rate, CALLER, CALLEE) + shares(right, rate, CALLEE, CALLER)
        assert heard[0] > 0.95 and heard[1] < 0.01 and heard[2] > 0.95 and heard[3] < 0.01, heard
        for side, tone in ((1, CALLER), (2, CALLEE)):
            (one,), _ = channels(f"{path}-{side}.wav")
            assert share(one, rate, tone) > 0.95, (side, share(one, rate, tone))
            assert os.stat(f"{path}-{side}.wav").st_mode & 0o777 == 0o600
        with open(path + "-mix.wav", "r+b") as f:  # as after a loss of power
            f.seek(76)  # the length of the samples
            f.write(bytes(4))
        daemon = relay.Xcipherd(net, *options, addresses=BOTH).wait_ready()
        assert "corrected the headers of 1 WAV files" in daemon.text(), daemon.text()
        assert seconds(path + "-mix.wav") >= 3
        assert daemon.stop() == 0


def test_files_of_a_discarded_recording_go(net):
    with Folder() as tapes:
        daemon = relay.Xcipherd(net, "--engine=serial", f"--recording-dir={tapes.path}", "--output-mixed=yes", "--output-single=yes").wait_ready()
        c = calls.Call(daemon.client, 1, "80", "32").setup()
        path = reply_file(daemon.client.call("start recording", call_id=c.id, recording_file="tape")).removesuffix(".pcap")
        calls.load(net, relay.BUILD, [c], rate=50, seconds=2)
        until(lambda: len(os.listdir(tapes.path)) == 5, "pcap, text and three WAV files")
        assert seconds(path + "-mix.wav") > 0
        calls.ok(daemon.client.call("stop recording", call_id=c.id, flags=["discard-recording"]))
        until(lambda: os.listdir(tapes.path) == [], "they are gone")
        assert daemon.stop() == 0
