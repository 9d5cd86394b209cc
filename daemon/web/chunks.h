/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bodies in chunks (RFC 9112 7.1), which libwebsockets hands over as they are. Pure. */
#ifndef WEB_CHUNKS_H
#define WEB_CHUNKS_H

#include "base/bytes.h"

enum chunks_state {
	CHUNKS_SIZE,      /* hexadecimal digits */
	CHUNKS_EXTENSION, /* up to the end of that line */
	CHUNKS_DATA,
	CHUNKS_DATA_END,
	CHUNKS_TRAILER,
	CHUNKS_DONE,
};

struct chunks { /* zero is a fresh one */
	enum chunks_state state;
	size_t left;   /* of this chunk */
	uint32_t line; /* bytes in this line so far, without CR */
	uint32_t all;  /* bytes in lines, all together */
	bool digits;
};

/* Takes bytes off in. The next piece of the body is put into *piece, which may be empty. 1: go on
 * with the rest of in; 0: in is used up; 2: the body is complete; -EBADMSG. */
int chunks_read(struct chunks *c, struct str *in, struct str *piece);

#endif
