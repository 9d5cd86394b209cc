/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codecs of an offer and its answer. The answerer may choose a codec that the offerer lacks; the
 * answer to the offerer then names one of the offerer's own. Pure. */
#ifndef OFFER_NEG_CODEC_H
#define OFFER_NEG_CODEC_H

#include "call/plan.h"

struct codec_registry;

/* The legs of the sender and the receiver of an SDP. */
struct neg_codec_pair {
	struct leg *from, *to;
};
/* Stores the codecs of the offerer, and those offered to the receiver, in both legs. Warns if a
 * codec that the request wants transcoded is not offered. i: number of the m-line m. */
void neg_codec_offer(struct plan *plan, const struct neg_codec_pair *pair,
	const struct sdp_media *m, uint32_t i, const struct neg_in *in);
/* The milliseconds of a=ptime; 0: it has none. */
uint8_t neg_codec_ptime(const struct sdp_media *m);
/* The request's rules, the rules of its flags, and the codecs that can be transcoded; in the
 * pool. */
const struct sdp_filter *neg_codec_filter(const struct neg_in *in);
/* Sets in->known to the codecs that can be transcoded: those that the registry encodes and decodes,
 * and without a resampler only those with PCM of 8000 Hz. In the pool. */
void neg_codec_known(struct neg_in *in, const struct codec_registry *r);

/* --- neg_codec_answer.c ----------------------------------------------------------------------- */

/* Translates the answer of the terminal of lf for the offerer, whose leg is lt: writes the formats
 * and lines of m into pm, and the agreed codecs into both legs. */
void neg_codec_answer(struct plan_media *pm, struct leg *lf, struct leg *lt,
	const struct sdp_media *m, const struct neg_in *in);

#endif
