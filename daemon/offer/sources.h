/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The m-lines of a listener and their sources. Pure. */
#ifndef OFFER_SOURCES_H
#define OFFER_SOURCES_H

#include "offer/negotiate.h"

/* An m-line of a listener. RFC 3264 8: it keeps its place, and its port is 0 while it is closed. */
struct slot {
	bool open;
	uint8_t side, media; /* its source */
	const struct sdp_media *said;
};

struct slots {
	uint32_t n;
	struct slot slot[SDP_MAX_MEDIA];
};

/* The sides that a subscribe request selects, in its order: from-tags, preceded by from-tag if they
 * do not contain it; or those of a label, of an address, or all. Returns their number. */
uint32_t sources_wanted(
	uint8_t out[CALL_MAX_SIDES], const struct call *c, const struct ng_request *r);
/* All m-lines of the listener (to-tag) once the request is in force. Returns how many of them are
 * open. */
uint32_t sources_find(
	struct slots *out, struct pool *p, const struct call *c, const struct ng_request *r);
/* The a=label of a source's media (RFC 4574, RFC 7866 7.1.1): a number unique in the call, the same
 * for all listeners and requests. */
struct str sources_label(struct pool *p, uint8_t side, uint8_t media);

/* Writes an SDP of all requested sources, from their descriptions; NULL and *error if there are
 * none. */
struct str subscribe_body(
	struct pool *p, const struct call *c, const struct ng_request *r, const char **error);

/* Stores the description for listeners; without memory they cannot subscribe to it. */
void subscribe_remember(struct side *s, const struct sdp *sdp);

#endif
