# SPDX-License-Identifier: GPL-2.0-or-later
"""A tone per peer, as PCM and PCMU, and its level at a receiver by Goertzel's algorithm. Only the standard library."""
import math

RATE = 8000
FRAME = 160  # samples of 20 ms
AMPLITUDE = 12000
BLOCK = 1600  # whole periods of both tones, so that one adds nothing to the level of the other
TONES = (440, 1000)


def linear(byte):
    """G.711 mu-law to 16 bits."""
    byte = ~byte & 0xff
    value = (((byte & 0x0f) << 3) + 0x84 << (byte >> 4 & 7)) - 0x84
    return -value if byte & 0x80 else value


def ulaw(sample):
    sign = 0x80 if sample < 0 else 0
    value = min(abs(sample), 32635) + 0x84
    exponent = value.bit_length() - 8
    return ~(sign | exponent << 4 | value >> exponent + 3 & 0x0f) & 0xff


LINEAR = [linear(b) for b in range(256)]


def samples(hertz):
    """One second of it: a whole number of periods."""
    return [round(AMPLITUDE * math.sin(2 * math.pi * hertz * i / RATE)) for i in range(RATE)]


def frames(hertz):
    """PCMU payloads, repeated for ever."""
    second = bytes(map(ulaw, samples(hertz)))
    while True:
        for i in range(0, RATE, FRAME):
            yield second[i:i + FRAME]


def level(block, hertz):
    """Amplitude of this tone in a block of samples at 8000 Hz."""
    turn = 2 * math.cos(2 * math.pi * hertz / RATE)
    s1 = s2 = 0.0
    for x in block:
        s1, s2 = x + turn * s1 - s2, s1
    return 2 * math.sqrt(max(s1 * s1 + s2 * s2 - turn * s1 * s2, 0)) / len(block)


class Ear:
    """Takes samples as they arrive; the levels are medians of the last blocks."""

    def __init__(self):
        self.block, self.blocks = [], {t: [] for t in TONES}

    def hear(self, more):
        self.block += more
        while len(self.block) >= BLOCK:
            for t in TONES:
                self.blocks[t].append(level(self.block[:BLOCK], t))
            del self.block[:BLOCK]

    def levels(self, last=5):
        return {str(t): round(sorted(b[-last:])[len(b[-last:]) // 2]) if b else 0 for t, b in self.blocks.items()}

    def heard_blocks(self):
        return len(self.blocks[TONES[0]])
