/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps m-lines between sides when some are hidden (ng's sdp-media-remove). */
#ifndef OFFER_MLINE_MAP_H
#define OFFER_MLINE_MAP_H

#include "call/plan.h"

/* Whether media of this kind may be offered to the other side. */
bool mline_wanted(const struct ng_request *r, const struct sdp_media *m);

/* Decides whether to show this m-line of the offer to the party, for good. fresh: the party does
 * not know an m-line of this number yet. */
void mline_decide(struct side *to, uint32_t media, bool wanted, bool fresh);

/* Adds m-lines of the offer that the answer lacks, as rejected (RFC 3264 6: the numbers are the
 * same). An m-line of another kind than the offer's becomes a rejected one of the offer's kind,
 * with a warning (RFC 3264 6.1). to: the offerer. NULL, or the error-reason. */
const char *mline_fill(struct plan *plan, struct neg_in *in, const struct side *to);

static inline bool mline_from(const struct side *s, uint32_t media)
{
	return s->hidden >> media & 1;
}

/* Whether the party already knows a later m-line. */
bool mline_told_behind(const struct side *s, uint32_t media);

/* Converts the sender's SDP to our numbers: hidden m-lines appear as rejected, described as in the
 * other side's SDP; doubled m-lines appear once. NULL, or the error-reason. */
const char *mline_number(
	struct neg_in *in, struct side *from, const struct side *other, bool is_offer);

#endif
