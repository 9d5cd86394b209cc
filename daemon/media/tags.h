/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+ tags of a worker's contexts (srtp/preauth.h). The tag is the last field of an RTP packet,
 * after the whole SRTP packet, and is part of media_tail.len. RTCP has none.
 *
 * Receiving: prepare compares the tag with the window of the packet's SSRC, before any hash.
 * complete moves the window after SRTP authenticated the packet, and computes the next tags: at
 * most TAGS_AT_ONCE per packet. A packet whose tag is not known is an ordinary packet of SRTP.
 * Sending: complete writes the tag after the packet. It computes TAGS_SENT tags at a time. */
#ifndef MEDIA_TAGS_H
#define MEDIA_TAGS_H

#include "media/draft.h"
#include "srtp/preauth.h"
#include "srtp/preauth_window.h"

#define TAGS_SSRCS   4u /* per context and direction; packets of other SSRCs are not checked */
#define TAGS_SENT    12u
#define TAGS_AT_ONCE 64u

/* Tags of the packets [first, first + n) that are sent next: a cache. One cache line. */
struct tags_sent {
	uint64_t first;
	uint32_t ssrc;
	uint32_t n;
	uint32_t tag[TAGS_SENT];
};
_Static_assert(sizeof(struct tags_sent) == 64, "one cache line");

struct tags_window {
	uint64_t touched; /* as ssrc_state.touched; 0 = free */
	uint32_t ssrc;
	struct preauth_window w;
};

struct tags_way {
	uint32_t slot; /* of the key */
	uint8_t scheme;
	uint8_t len; /* bytes of a tag; 0 = no tags */
};

/* Of a context. Written by complete.c and commands only. A packet needs the first line and one of
 * the tags to be received, and one line to be sent. */
struct media_tags {
	_Alignas(64) struct tags_way way; /* received */
	struct tags_window rx[TAGS_SSRCS];
	_Alignas(64) struct tags_sent tx[TAGS_SSRCS];
};

static inline enum preauth_scheme media_tag_scheme(const struct media_crypto *c)
{
	return (enum preauth_scheme)(c->preauth - 1);
}

/* Bytes of the tag of RTP packets; 0: none. */
static inline uint32_t media_tag_len(const struct media_crypto *c)
{
	return c->preauth ? preauth_tag_len(media_tag_scheme(c)) : 0;
}

/* Whether payloads of this direction end in a block with the next tags. */
static inline bool media_tag_chains(const struct media_way *w, const struct media_crypto *c)
{
	return w->tagged && media_tag_scheme(c) == PREAUTH_CHAIN;
}

/* The configuration makes sense. */
bool media_tags_are_sound(const struct media *m, const struct media_crypto *c);

/* The context's keys or indexes changed: forgets tags. */
void media_tags_forget(struct media *m, uint32_t ctx, const struct media_crypto *rx);

/* Lines that a packet of this context needs: to prefetch them. seq: its sequence number. */
static inline void *media_line_tags(const struct media *m, uint32_t ctx)
{
	return &m->tags[ctx].way;
}

static inline void *media_line_tag(const struct media *m, uint32_t ctx, uint16_t seq)
{
	return &m->tags[ctx].rx[0].w.tag[seq % PREAUTH_WINDOW];
}

static inline void *media_line_sent(const struct media *m, uint32_t ctx, uint32_t ssrc)
{
	return &m->tags[ctx].tx[ssrc % TAGS_SSRCS];
}

/* The window of an SSRC that this context receives, for steering (packet/guard.h), and the bytes of
 * its tags. NULL: none. */
const struct preauth_window *media_preauth_window(
	const struct media *m, const struct media_ctx *c, uint32_t ssrc, uint8_t *tag_len);

/* prepare: compares the tag of the RTP packet p[len], received by this context. */
enum preauth_result media_tag_check(const struct media *m, const struct arena *a,
	const struct media_ctx *rx, const uint8_t *p, uint32_t len);

/* complete: SRTP authenticated the packet of this job. Call it only if rx is tagged. With chain,
 * arena.out has the decrypted packet. */
void media_tag_take(
	struct media *m, const struct arena *a, const struct media_ctx *rx, const struct xc_job *j);

/* complete: writes the tag after the SRTP packet p, whose length with tag is len. */
void media_tag_write(struct media *m, const struct arena *a, const struct media_ctx *tx,
	const struct xc_job *j, uint32_t len);

/* complete, chain: cut() leaves the received block out of the plain payload at arena.out, append()
 * adds our own. Both change j->body_len. */
void media_tag_cut(const struct note *n, struct xc_job *j);
void media_tag_append(const struct arena *a, const struct note *n, struct xc_job *j);

#endif
