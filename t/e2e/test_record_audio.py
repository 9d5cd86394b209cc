# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings as WAV of calls between real phones: each party's tone in its channel, with SRTP and
transcoding; a daemon that is killed leaves a file that plays."""
import os
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


def share(samples, rate, tone):
    """The share of the tone in the energy of the last second."""
    samples = samples[-rate:]
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) ** 2
    freqs = np.fft.rfftfreq(len(samples), 1 / rate)
    return float(power[abs(freqs - tone) < 10].sum() / (power.sum() or 1))


def seconds(path):
    if not os.path.exists(path):
        return 0
    data, rate = channels(path)
    return len(data[0]) / rate


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
    if not os.access("/usr/bin/baresip", os.X_OK) or not os.access(f"{relay.BUILD}/codecs/speexdsp.so", os.R_OK):
        raise Skip("baresip, or the resampler of speexdsp, is missing")
    with Folder() as tapes, tempfile.TemporaryDirectory(prefix="xcipher-wav-") as folder:
        options = ["--engine=serial", "--delete-delay=0", f"--recording-dir={tapes.path}", "--output-mixed=yes", "--output-single=yes",
                   "--mix-method=channels", f"--resample-to={rate}", *PLUGINS]
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
        heard = (share(left, rate, CALLER), share(left, rate, CALLEE), share(right, rate, CALLEE), share(right, rate, CALLER))
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
