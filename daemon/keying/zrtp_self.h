/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our side of an exchange of ZRTP, as it follows from a seed: the control thread announces the hash
 * of our Hello in SDP, and the keying thread sends that Hello. Pure. */
#ifndef KEYING_ZRTP_SELF_H
#define KEYING_ZRTP_SELF_H

#include "base/bytes.h"
#include "keying/zrtp.h"

/* The ZID and the SSRC of our packets follow from the seed, too: without a cache of retained
 * secrets a ZID that stays would make terminals miss theirs. Multistream and preshared mode are not
 * offered. prefs is referred to, and outlives the configuration. */
void zrtp_self_config(
	struct zrtp_config *out, struct zrtp_prefs *prefs, const uint8_t seed[ZRTP_SEED]);
/* The value of our a=zrtp-hash. 0 or -EINVAL. */
int zrtp_self_hash(uint8_t hash[ZRTP_HASH], const uint8_t seed[ZRTP_SEED]);
/* The packet is a Hello with this hash. */
bool zrtp_self_is_hello(const uint8_t *p, size_t len, const uint8_t hash[ZRTP_HASH]);

#endif
