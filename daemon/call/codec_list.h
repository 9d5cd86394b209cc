/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The codecs of a leg as one text, which is part of the call and saved with it. Each codec has a
 * line, separated by tabs: payload type, name, the terminal's fmtp, our fmtp, and the bitrate if
 * the request chose one. A "+" before the line is accept, a "~" is also. Pure. */
#ifndef CALL_CODEC_LIST_H
#define CALL_CODEC_LIST_H

#include "base/pool.h"

#define CODEC_LIST_MAX 24u

struct codec_item {
	uint8_t type;
	bool accept;      /* an offerer's codec that its answer must have */
	bool also;        /* a second payload type of a codec above, which the terminal may send */
	struct str name;  /* in the format of a=rtpmap */
	struct str fmtp;  /* of the terminal; empty: none */
	struct str ours;  /* our fmtp, for packets of the terminal */
	uint32_t bitrate; /* of packets to the terminal, bits per second; 0: the codec's choice */
};

struct codec_list {
	uint32_t n;
	struct codec_item at[CODEC_LIST_MAX];
};

/* Parses text, of which the items become slices. Ignores malformed lines, and more than
 * CODEC_LIST_MAX. */
void codec_list_read(struct codec_list *out, struct str text);
/* Returns the text, in the pool; s = NULL: no memory. Omits items with tabs or control
 * characters. */
struct str codec_list_write(const struct codec_list *l, struct pool *p);
/* Appends a copy of item, if there is room. */
void codec_list_add(struct codec_list *l, const struct codec_item *item);
/* Finds a codec by name, clock rate and channels. NULL: not in the list. */
const struct codec_item *codec_list_find(const struct codec_list *l, struct str name);
/* The first codec that is neither telephone events nor comfort noise; NULL: none. */
const struct codec_item *codec_list_first(const struct codec_list *l);

#endif
