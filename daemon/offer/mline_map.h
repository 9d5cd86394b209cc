/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps m-lines between sides when some are hidden (ng's sdp-media-remove). */
#ifndef OFFER_MLINE_MAP_H
#define OFFER_MLINE_MAP_H

#include "call/plan.h"

/* Whether the request wants media of this kind not to be offered on. */
bool mline_wanted(const struct ng_request *r, const struct sdp_media *m);

/* The offer has this m-line: is the party told of it, and from now on? fresh: it never heard of an
 * m-line with this number. */
void mline_decide(struct side *to, uint32_t media, bool wanted, bool fresh);

/* Adds m-lines of the offer that the answer lacks, as rejected (RFC 3264 6: the numbers are the
 * same). An m-line of another kind than the offer's becomes a rejected one of the offer's kind,
 * with a warning (RFC 3264 6.1). to: the offerer. NULL, or the error-reason. */
const char *mline_fill(struct plan *plan, struct neg_in *in, const struct side *to);

static inline bool mline_from(const struct side *s, uint32_t media)
{
	return s->hidden >> media & 1;
}

/* Some m-line behind this one has its place with the party already. */
bool mline_told_behind(const struct side *s, uint32_t media);

/* What from said, in our numbers: what it was not told of is there as rejected, described as other
 * said it; what it said twice is there once. NULL, or the error-reason. */
const char *mline_number(
	struct neg_in *in, struct side *from, const struct side *other, bool is_offer);

#endif
