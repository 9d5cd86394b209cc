/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Key agreements of ZRTP (RFC 6189 4.4.1.1, 5.1.5) on OpenSSL. */
#ifndef KEYING_ZRTP_AGREE_H
#define KEYING_ZRTP_AGREE_H

#include "keying/zrtp.h"

#define ZRTP_VALUE_MAX 384u /* a public value, and the result of an agreement */

uint32_t zrtp_value_len(enum zrtp_agreement a);

struct zrtp_pair; /* a private key and its public value; used once */

/* Makes one. 0, -ENOTSUP, -EIO. */
int zrtp_pair_make(struct zrtp_pair **out, enum zrtp_agreement a);
/* The public value, zrtp_value_len() bytes. It belongs to the pair. */
const uint8_t *zrtp_pair_value(const struct zrtp_pair *k);
/* The result with the peer's value: zrtp_result_len() bytes, with leading zeroes. 0; -EBADMSG: the
 * peer's value is not valid (a small subgroup, not on the curve); -EIO. */
int zrtp_pair_agree(struct zrtp_pair *k, uint8_t *result, const uint8_t *value);
uint32_t zrtp_result_len(enum zrtp_agreement a);
void zrtp_pair_free(struct zrtp_pair *k); /* NULL is fine */

#endif
