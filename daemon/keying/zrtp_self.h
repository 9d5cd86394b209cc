/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our side of an exchange of ZRTP, as it follows from a seed: the control thread announces the hash
 * of our Hello in SDP, and the keying thread sends that Hello. Pure. */
#ifndef KEYING_ZRTP_SELF_H
#define KEYING_ZRTP_SELF_H

#include "base/bytes.h"
#include "keying/zrtp.h"

struct zrtp_self {
	const uint8_t *seed; /* [ZRTP_SEED] */
	/* [ZRTP_ZID], the same for all m-lines of a terminal. All zero: an older version saved the
	 * call. Then the ZID is computed from the seed, and Multistream mode is not offered. */
	const uint8_t *zid;
	/* Offer preshared mode, as the first agreement. It has no forward secrecy: a stolen cache
	 * of retained secrets reveals later calls. */
	bool preshared;
};

/* The SSRC of our packets is computed from the seed. The configuration points to prefs and self,
 * which must outlive it. */
void zrtp_self_config(
	struct zrtp_config *out, struct zrtp_prefs *prefs, const struct zrtp_self *self);
/* The value of our a=zrtp-hash. 0 or -EINVAL. */
int zrtp_self_hash(uint8_t hash[ZRTP_HASH], const struct zrtp_self *self);
/* The packet is a Hello with this hash. */
bool zrtp_self_is_hello(const uint8_t *p, size_t len, const uint8_t hash[ZRTP_HASH]);

#endif
