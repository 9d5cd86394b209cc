/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The compression function of SHA-1 (FIPS 180-4 6.1.2), by the processor's SHA instructions where
 * it has them, else by ref.h. */
#ifndef SRTP_SHA1_BLOCK_H
#define SRTP_SHA1_BLOCK_H

#include "base/bytes.h"

/* Whether the processor has the instructions. CPUID is slow in a virtual machine: ask once. */
bool srtp_sha1_has_instructions(void);
/* fast: what srtp_sha1_has_instructions() returned, or false. */
void srtp_sha1_block(uint32_t state[5], const uint8_t block[64], bool fast);

#endif
