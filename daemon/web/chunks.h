/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bodies in chunks (RFC 9112 7.1), which libwebsockets passes on undecoded. Pure. */
#ifndef WEB_CHUNKS_H
#define WEB_CHUNKS_H

#include "base/bytes.h"

enum chunks_state {
	CHUNKS_SIZE,      /* hexadecimal digits */
	CHUNKS_EXTENSION, /* the rest of that line */
	CHUNKS_DATA,
	CHUNKS_DATA_END,
	CHUNKS_TRAILER,
	CHUNKS_DONE,
};

struct chunks { /* initialise with zeroes */
	enum chunks_state state;
	size_t left;   /* bytes left of this chunk */
	uint32_t line; /* bytes in this line so far, without CR */
	uint32_t all;  /* bytes in lines, all together */
	bool digits;
};

/* Consumes bytes of in. *piece: the next piece of the body, may be empty. 1: continue with the rest
 * of in; 0: in is consumed; 2: the body is complete; -EBADMSG. */
int chunks_read(struct chunks *c, struct str *in, struct str *piece);

#endif
