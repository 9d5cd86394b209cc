# SPDX-License-Identifier: GPL-2.0-or-later
"""Opus, Vorbis and MP3 files that are played to terminals: made by ffmpeg, decoded by xcipher-av."""
import base64
import os
import subprocess

from compat import compat, compat_each
from test_codecs import BUILD
from test_dtmf import linear, power
from test_player import DOC, talking

DECODER = [f"--play-decoder={BUILD}/xcipher-av"]


def two_tones(path, *how):
    """A file with half a second of 1000 Hz, and then of 2000 Hz, made by ffmpeg."""
    tone = "aevalsrc=exprs=0.3*sin(2*PI*t*if(lt(t\\,0.5)\\,1000\\,2000)):s=48000:d=1"
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", tone, *how, path], check=True, stdin=subprocess.DEVNULL)


def hears_tones(phone, want):
    """Each tone for half a second. The codec smears the edges."""
    for hertz in want:
        heard = [[linear(code) for code in phone.receive()] for _ in range(25)]
        for samples in heard[3:-3]:
            assert power(samples, hertz) > 0.4 * sum(x * x for x in samples) > 1e8, (hertz, want)


FORMATS = [("opus", "libopus"), ("ogg", "libvorbis"), ("mp3", "libmp3lame")]


@compat_each("player", "xcipher-ng(7), play media, Opus, Vorbis, MP3, start-pos, repeat-times, blob, blob64; " + DOC, FORMATS,
             options=[*DECODER, "--play-dir={folder}"])
def test_compressed(relay, ending, codec):
    call, a, b = talking(relay)
    name = f"two.{ending}"
    path = os.path.join(relay.folder.name, name)
    two_tones(path, "-c:a", codec, "-b:a", "48k", "-ac", "2")
    reply = call.request("play media", from_tag="a", file=name, start_pos=24000, repeat_times=2, flags=["block-egress"])
    assert 990 < reply["duration"] < 1030, reply
    hears_tones(a, (2000, 1000, 2000))
    with open(path, "rb") as f:
        bytes_of_it = f.read()
    for tag, phone, keys in (("a", a, {"blob": bytes_of_it}), ("b", b, {"blob64": base64.b64encode(bytes_of_it).decode()})):
        call.request("play media", from_tag=tag, flags=["block-egress"], **keys)
        hears_tones(phone, (1000,))
        assert "last-frame-pos" in call.request("stop media", from_tag=tag)
    cut = os.path.join(relay.folder.name, f"cut.{ending}")
    with open(cut, "wb") as f:
        f.write(bytes_of_it[:50])
    call.request("play media", fails="malformed", from_tag="a", file=f"cut.{ending}")
    call.request("play media", fails="malformed", from_tag="a", blob=bytes_of_it[:50])


@compat("player", "xcipher-ng(7), play media, without the package xcipher-av",
        options=["--play-decoder=/nonexistent/xcipher-av", "--play-dir={folder}", "file:a.mp3=ID3?"])
def test_compressed_without_the_decoder(relay):
    call, _, _ = talking(relay)
    for keys in ({"file": "a.mp3"}, {"blob": b"OggS?"}):
        call.request("play media", fails="need xcipher-av: install it, or see --play-decoder", from_tag="a", **keys)


@compat("player", "xcipher-ng(7), play media, without play-dir", options=DECODER)
def test_compressed_without_a_folder(relay):
    call, a, _ = talking(relay)
    call.request("play media", fails="Playing files is off", from_tag="a", file="two.mp3")
    path = os.path.join(relay.folder.name, "two.mp3")
    two_tones(path, "-c:a", "libmp3lame")
    with open(path, "rb") as f:
        call.request("play media", from_tag="a", blob=f.read(), flags=["block-egress"])
    hears_tones(a, (1000, 2000))
