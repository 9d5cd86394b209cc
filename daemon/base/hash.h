/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SipHash-2-4, for tables whose keys an attacker can choose. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/bytes.h"

uint64_t hash_siphash(const uint8_t key[16], const void *p, size_t len);
/* The authors' variant with a result of 128 bits, for secrets that others must not guess. */
void hash_siphash128(uint8_t out[16], const uint8_t key[16], const void *p, size_t len);

#endif
