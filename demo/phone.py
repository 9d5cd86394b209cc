# SPDX-License-Identifier: GPL-2.0-or-later
"""A baresip phone with mandatory SDES-SRTP that plays a tone and records received sound. Also finds
a tone in a recording."""
import glob
import os
import wave

RATE = 8000


def write_tone(path, hertz, seconds=60):
    import numpy as np  # here, because it takes seconds in an emulated guest

    t = np.arange(RATE * seconds) / RATE
    samples = (12000 * np.sin(2 * np.pi * hertz * t)).astype("<i2")
    with wave.open(path, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(RATE)
        w.writeframes(samples.tobytes())


def write_config(folder, name, address, proxy, tone_file, answer):
    os.makedirs(folder, exist_ok=True)
    modules = "".join(f"module {m}.so\n" for m in ("g711", "g722", "aufile", "sndfile", "srtp", "cons"))
    with open(os.path.join(folder, "config"), "w", encoding="ascii") as f:
        f.write(f"sip_listen {address}:5060\nsip_transports udp\naudio_source aufile,{tone_file}\naudio_player aufile,/dev/null\n"
                f"audio_alert aufile,/dev/null\naudio_srate 8000\naudio_channels 1\ncall_local_timeout 60\ncall_max_calls 2\n"
                f"rtp_ports 10000-10100\nrtp_stats yes\nsnd_path {folder}\ncons_listen 127.0.0.1:5555\n"
                "module_path /usr/lib/baresip/modules\n"
                f"{modules}module_tmp uuid.so\nmodule_tmp account.so\nmodule_app menu.so\n")
    extra = ";answermode=auto" if answer else ""
    with open(os.path.join(folder, "accounts"), "w", encoding="ascii") as f:
        f.write(f'<sip:{name}@{address}>;regint=0;mediaenc=srtp-mand;audio_codecs=PCMU/8000/1;outbound="sip:{proxy}:5060;transport=udp"{extra}\n')
    with open(os.path.join(folder, "contacts"), "w", encoding="ascii") as f:
        f.write("\n")
    with open(os.path.join(folder, "uuid"), "w", encoding="ascii") as f:
        f.write("00000000-0000-0000-0000-%012d\n" % (1 if answer else 2))


def recording(folder):
    """The recording of received sound: baresip's sndfile module writes dump-...-dec.wav."""
    files = glob.glob(os.path.join(folder, "dump-*-dec.wav"))
    return max(files, key=os.path.getsize) if files else None


def seconds_recorded(folder):
    """Seconds recorded so far. The file's header is correct only once it is closed."""
    path = recording(folder)
    return os.path.getsize(path) / 2 / RATE if path else 0.0


def hears(path, hertz, other):
    """(share of the signal's energy at this tone, at the other, seconds recorded), measured by Fourier transform."""
    if not path:
        return 0.0, 0.0, 0.0
    import numpy as np

    with wave.open(path, "rb") as w:
        rate, channels, frames = w.getframerate(), w.getnchannels(), w.getnframes()
        raw = w.readframes(frames)
    samples = np.frombuffer(raw[:len(raw) // 2 * 2], "<i2").astype(float)[::channels]
    if len(samples) < rate:
        return 0.0, 0.0, len(samples) / rate
    middle = samples[len(samples) // 4:len(samples) * 3 // 4]  # without the first and last moments
    power = np.abs(np.fft.rfft(middle * np.hanning(len(middle)))) ** 2
    freqs = np.fft.rfftfreq(len(middle), 1 / rate)
    whole = power.sum() or 1.0

    def share(f):
        return float(power[abs(freqs - f) < 15].sum() / whole)

    return share(hertz), share(other), len(samples) / rate
