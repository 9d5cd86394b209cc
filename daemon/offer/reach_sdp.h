/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the addresses in an SDP before it is negotiated. */
#ifndef OFFER_REACH_SDP_H
#define OFFER_REACH_SDP_H

#include "call/plan.h"

/* Checks the addresses of a request and its SDP (reach_sdp.c). NULL, or the error-reason; *detail
 * then has the line and the cause. */
const char *reach_sdp(struct calls *c, struct pool *p, const struct ng_request *r,
	const struct sdp *sdp, struct str *detail);

#endif
