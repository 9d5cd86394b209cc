/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-1's compression function (FIPS 180-4 6.1.2) for two messages, by AVX2 and BMI2. For
 * processors without SHA-NI. No branch or address depends on a message's content. */
#ifndef SRTP_SHA1_PAIR_H
#define SRTP_SHA1_PAIR_H

#include "base/bytes.h"

/* Whether this processor has the instructions. */
bool sha1_pair_usable(void);
/* n blocks of each message, at p and q. Their states are h and g. Only if usable. */
void sha1_pair(uint32_t *h, uint32_t *g, const uint8_t *p, const uint8_t *q, uint32_t n);

#endif
