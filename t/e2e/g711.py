# SPDX-License-Identifier: GPL-2.0-or-later
"""Conversion between the laws of G.711 as the standard's tables 3 and 4 print it: decoder values of
one law by those of the other, from the smallest magnitude on."""

TO_A = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, *range(8, 26), 27, 29, 31, *range(33, 45), 46, *range(48, 63), *range(64, 81), *range(82, 129)]
TO_U = [1, 3, 5, 7, 9, 11, 13, *range(15, 32), 32, 32, 33, 33, 34, 34, 35, 35, *range(36, 48), 48, 48, 49, 49, *range(50, 64), 64, 64,
        *range(65, 80), 80, *range(80, 128)]
assert len(TO_A) == len(TO_U) == 128


def to_alaw(data):
    return bytes(b & 0x80 | (TO_A[b & 0x7F ^ 0x7F] - 1) ^ 0x55 for b in data)


def to_ulaw(data):
    return bytes(b & 0x80 | TO_U[b & 0x7F ^ 0x55] ^ 0x7F for b in data)
