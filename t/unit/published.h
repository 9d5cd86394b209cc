/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The vectors of t/vectors/published.json, as RFCs and NIST print them, in groups that name their
 * source. The fields of a vector are strings, most of them hex; each group describes them. */
#ifndef UNIT_PUBLISHED_H
#define UNIT_PUBLISHED_H

#include "base/bytes.h"

#define PUBLISHED_PATH       "t/vectors/published.json"
#define PUBLISHED_MAX_FIELDS 8
#define PUBLISHED_MAX_LEN    128 /* bytes of the longest field */

struct published {
	const char *source; /* of the group */
	unsigned n;         /* which of the group */
	const char *text[PUBLISHED_MAX_FIELDS];
	uint8_t b[PUBLISHED_MAX_FIELDS][PUBLISHED_MAX_LEN]; /* the same as bytes */
	uint32_t len[PUBLISHED_MAX_FIELDS];
};

struct published_set {
	struct published *v;
	size_t n;
	void *file;
};

/* Loads all vectors of a kind: "block", "cm", "f8", "gcm", "aead", "hmac", "kdf". Returns 0, or -1
 * with the cause on stderr: a missing file, a malformed field, or no vectors. */
int published_load(struct published_set *out, const char *kind);
void published_free(struct published_set *s);

#endif
