/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+ tags of srtpload's packets, by xcipherd's own functions: t/preauth/reference.py is the
 * second implementation. */
#ifndef TOOL_LOAD_TAGS_H
#define TOOL_LOAD_TAGS_H

#include <stdio.h>
#include <stdlib.h>

#include "srtp/preauth.h"

struct load_tags {
	struct preauth_key key;
	uint32_t len;   /* bytes of a tag; 0: none */
	uint32_t block; /* chain: bytes of the next tags at the end of the payload */
};

/* The scheme of this name, as 1 + scheme. Exits if there is none. */
static inline uint8_t load_tags_scheme(const char *name)
{
	enum preauth_scheme s;

	if (preauth_find(&s, str_from(name)))
		return (uint8_t)(1 + s);
	fprintf(stderr, "tags: %s: no such scheme of SRTP+\n", name);
	exit(2);
}

/* scheme: 1 + enum preauth_scheme; 0: no tags. */
static inline void load_tags_init(struct load_tags *t, uint8_t scheme, const struct srtp_master *m)
{
	t->len = t->block = 0;
	if (!scheme)
		return;
	if (preauth_key_init(&t->key, (enum preauth_scheme)(scheme - 1), m)) {
		fprintf(stderr, "tags: no key of them follows from this suite\n");
		exit(2);
	}
	t->len = preauth_tag_len(t->key.scheme);
	t->block = preauth_is_chain(t->key.scheme) ? preauth_chain_len(t->key.scheme) : 0;
}

static inline uint32_t load_tags_of(
	const struct load_tags *t, const uint8_t *rtp, uint32_t ssrc, uint64_t index)
{
	uint32_t tag;

	if (preauth_is_header(t->key.scheme))
		return preauth_header(&t->key, rtp);
	preauth_sequence(&t->key, ssrc, index, &tag, 1);
	return t->len == 1 ? tag & ((1u << preauth_bits(t->key.scheme)) - 1) : tag;
}

/* chain: writes the tags that the packet of this index announces. */
static inline void load_tags_block(
	const struct load_tags *t, uint8_t *block, uint32_t ssrc, uint64_t index)
{
	uint32_t tag[PREAUTH_NEXT_MAX];
	struct preauth_chain c;

	if (!t->block)
		return;
	c = preauth_chain_of(t->key.scheme);
	preauth_sequence(&t->key, ssrc, index + 1, tag, c.next);
	preauth_chain_pack(c.width, block, tag, c.next);
}

/* Writes the tag at the end of the packet rtp[len]. */
static inline void load_tags_write(
	const struct load_tags *t, uint8_t *rtp, uint32_t len, uint32_t ssrc, uint64_t index)
{
	if (t->len == 1)
		rtp[len] = (uint8_t)load_tags_of(t, rtp, ssrc, index);
	else if (t->len)
		put_be32(rtp + len, load_tags_of(t, rtp, ssrc, index));
}

/* Whether the packet rtp[len] is followed by the right tag, or needs none. */
static inline bool load_tags_right(
	const struct load_tags *t, const uint8_t *rtp, uint32_t len, uint32_t ssrc, uint64_t index)
{
	uint32_t tag = t->len == 1 ? rtp[len] : t->len ? be32(rtp + len) : 0;

	return !t->len || tag == load_tags_of(t, rtp, ssrc, index);
}

#endif
