# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts baresip phones with any transport, security and address family, sends them commands, and
waits for their output."""
import os
import signal
import socket
import subprocess
import sys
import time

import ng
import relay

sys.path.insert(0, os.path.join(relay.ROOT, "demo"))
import phone  # noqa: E402


def wait_for(what, check, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.03)
    raise AssertionError(f"{what} did not happen within {seconds} s")


class Phone:
    number = 0

    def __init__(self, net, folder, name, ns, address, account, tone, config="", dial=None, port=5060, codec="PCMU", preload=None):
        """account: the parameters behind the URI in baresip's accounts file. tone: the tone it
        plays, Hz. dial: called at the start. codec: its only one. preload: a library."""
        Phone.number += 1
        self.net, self.ns, self.name, self.tone = net, ns, name, tone
        self.folder = os.path.join(folder, name)
        wav = os.path.join(folder, f"{name}.wav")
        # Its audio files have the rate of the codec's PCM, as it does not convert.
        rate = phone.RATE
        phone.RATE = 16000 if codec == "G722" else rate
        phone.write_tone(wav, tone, 120)
        pcm, phone.RATE = phone.RATE, rate
        phone.write_config(self.folder, name, address, address, wav, False)
        self.cons = 5600 + Phone.number % 300
        path = os.path.join(self.folder, "config")
        with open(path, encoding="ascii") as f:
            text = f.read()
        with open(path, "w", encoding="ascii") as f:
            text = text.replace(f"{address}:5060", f"{address}:{port}").replace("10000-10100", f"{port + 5000}-{port + 5100}")
            text = text.replace("audio_srate 8000", f"audio_srate {pcm}")
            f.write(text.replace("127.0.0.1:5555", f"127.0.0.1:{self.cons}").replace("sip_transports udp\n", "" if "sip_transports" in config else
                                                                                    "sip_transports udp\n") + config)
        with open(os.path.join(self.folder, "accounts"), "w", encoding="ascii") as f:
            f.write(account + f";audio_codecs={codec}/{pcm}/1\n")
        # No line end, because baresip would send it, too.
        with open(os.path.join(self.folder, "uuid"), "w", encoding="ascii") as f:
            f.write("00000000-0000-0000-0000-%012d" % Phone.number)
        self.log_path = os.path.join(folder, f"{name}.log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            args = ["/usr/bin/baresip", "-f", self.folder, "-v"] + (["-e", f"/dial {dial}"] if dial else [])
            # Commands go by UDP. SIGTERM would make baresip hang up first.
            self.process = net.spawn(net.terminal[ns], args, death=signal.SIGKILL, stdin=subprocess.PIPE, stdout=log, stderr=log,
                                     env={**os.environ, "LD_PRELOAD": preload} if preload else None)
        wait_for(f"{name}'s start", lambda: "baresip is ready" in self.log())

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def tell(self, command):
        with ng.socket_in(self.net.terminal[self.ns], socket.AF_INET) as s:
            s.sendto((command + "\n").encode(), ("127.0.0.1", self.cons))

    def talks(self, times=1):
        return wait_for(f"call {times} of {self.name}", lambda: self.log().lower().count("call established") >= times)

    def ended(self):
        return wait_for(f"the end of {self.name}'s call", lambda: any(w in self.log().lower() for w in ("session closed", "terminate", "closed")))

    def records(self, seconds=1.6):
        """Waits until it has received sound for this long."""
        wait_for(f"a recording by {self.name}", lambda: phone.seconds_recorded(self.folder) >= seconds)

    def stop(self):
        self.net.stop(self.process)

    def heard(self, other):
        """The share of the other phone's tone in its recording's energy."""
        return phone.hears(phone.recording(self.folder), other.tone, self.tone)[0]
