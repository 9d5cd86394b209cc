/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles media offered as two m-lines, one SRTP and one RTP (ng's OSRTP=offer-legacy). */
#ifndef OFFER_OSRTP_LEGACY_H
#define OFFER_OSRTP_LEGACY_H

#include "call/plan.h"

/* Folds the m-lines from "at" on of in->sdp into the sender's media of this number. Returns how many
 * of them belong to it: 1 or 2. */
uint32_t osrtp_legacy_fold(struct sdp_media *out, struct neg_in *in, struct side *from,
	uint32_t media, uint32_t at, bool is_offer);

/* Whether to offer it in RTP and in SRTP, in an offer with so many media. */
bool osrtp_legacy_offer(struct plan *plan, struct side *to, uint32_t media, uint32_t count,
	const struct neg_in *in);

/* Checks that the m-lines do not exceed an SDP's limit. NULL, or the error-reason. */
const char *osrtp_legacy_fits(const struct side *to, uint32_t count);

/* Writes the second m-line of such a media, in addition to e. False without memory. */
bool osrtp_legacy_edit(struct sdp_media_edit *e, const struct side *to, uint32_t media,
	const struct plan_media *pm, const struct neg_in *in);

#endif
