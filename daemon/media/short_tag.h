/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises SRTCP tags of 32 bits, and sends such tags to the same terminal. */
#ifndef MEDIA_SHORT_TAG_H
#define MEDIA_SHORT_TAG_H

#include "media/state.h"
#include "packet/arena.h"

struct media_tail media_tail(const struct media_crypto *c, bool rtcp);

/* The offsets of the fields after the body of SRTCP, for the present tag length. */
struct media_tail media_rtcp_tail(const struct media *m, const struct media_crypto *c);

/* Tests an SRTCP packet that failed authentication with a tag of 32 bits. If the context accepts
 * those, the next one is accepted. While tags are short, tests for one of 80 bits, which ends that;
 * then false. */
bool media_tag_is_short(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j);

/* An SRTCP packet was accepted: SRTCP to this terminal gets tags of the same length. */
void media_tag_fits(struct media *m, const struct arena *a, const struct note *n);

#endif
