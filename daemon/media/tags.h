/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+ tags of a worker's contexts (srtp/preauth.h). The tag is the last field of an RTP packet,
 * after the whole SRTP packet, and is part of media_tail.len. RTCP has none.
 *
 * Receiving: prepare compares the tag with the window of the packet's SSRC, before any hash.
 * complete moves the window after SRTP authenticated the packet, and computes the next tags: at
 * most TAGS_AT_ONCE per packet. A packet whose tag is not known is an ordinary packet of SRTP.
 * The check only saves the authentication of forged packets. So it is made for the first TAGS_WARY
 * authentic packets of a key, and for as many after each forged one. Then the windows are wiped,
 * and only SRTP is checked until it finds the next forged packet. The window of the first SSRC is
 * computed again at once, because the terminal may be silent. That of chain cannot be.
 * Sending: complete writes the tag after the packet. It computes TAGS_SENT tags at a time, or the
 * tags of struct tags_store. header-hmac-sha1 computes the tags of the headers that it expects.
 *
 * With many calls, a packet costs as much as the cache lines it needs. A received packet usually
 * needs one line, struct tags_next, and a sent packet one struct tags_sent. media.tags has these
 * lines of all contexts, and media.tags_windows has the windows. One packet in PREAUTH_GROUP needs
 * a window, and packets out of order do. */
#ifndef MEDIA_TAGS_H
#define MEDIA_TAGS_H

#include "media/draft.h"
#include "srtp/preauth.h"
#include "srtp/preauth_heads.h"
#include "srtp/preauth_window.h"

#define TAGS_SSRCS   4u /* per context and direction; packets of other SSRCs are not checked */
#define TAGS_SENT    12u
#define TAGS_AT_ONCE 272u
#define TAGS_STORE   320u /* bytes of struct tags_store */
#define TAGS_WARY    128u /* authentic packets: about two seconds of audio */

/* Received: the tags of the packets [first, first + n) of one SSRC. */
struct tags_next {
	uint64_t first; /* multiple of PREAUTH_GROUP */
	uint32_t ssrc;
	uint32_t slot; /* of the key */
	union {
		uint32_t tag[PREAUTH_GROUP];
		uint8_t sip[16]; /* keyed: of header-siphash, which needs no other line then */
	};
	uint8_t scheme;
	uint8_t len;       /* bytes of a tag; 0 = no tags */
	uint8_t n : 7;     /* PREAUTH_GROUP, or 0: look into the window */
	uint8_t keyed : 1; /* sip is valid */
	uint8_t taken; /* bit i: SRTP authenticated packet first + i; the window lacks it so far */
	struct preauth_heads heads; /* header-hmac-sha1: tag has the tags of these headers */
};
_Static_assert(PREAUTH_HEADS == PREAUTH_GROUP, "tag has room for them");
_Static_assert(sizeof(struct tags_next) == 64, "one cache line");

/* Tags of the packets [first, first + n) that are sent next: a cache. */
struct tags_sent {
	uint64_t first : 48;
	uint64_t n : 7, keyed : 1, scheme : 8;
	uint32_t ssrc;
	uint32_t slot; /* of the key */
	union {
		uint32_t tag[TAGS_SENT];
		uint8_t sip[16]; /* keyed: of header-siphash */
		struct {
			uint32_t head[PREAUTH_HEADS]; /* tags */
			struct preauth_heads heads;
		}; /* header-hmac-sha1 */
	};
};
_Static_assert(sizeof(struct tags_sent) == 64, "one cache line");

/* Of a context. Written by complete.c and commands only. */
struct media_tags {
	_Alignas(64) struct tags_next rx;
	struct tags_sent tx[TAGS_SSRCS];
};

/* Tags of the packets [first, first + n) of one SSRC, for schemes that compute many at a time: with
 * sequence-fips eight lanes hash at once, and with chain each packet needs the next ones. */
struct tags_store {
	uint64_t first;
	uint32_t ssrc;
	uint8_t n;
	uint8_t width, next, len; /* chain: bits of a tag, tags and bytes of a block */
	union {
		uint32_t tag[TAGS_STORE / 4];
		/* chain: as in a payload, from packet first on; of four bits also from first + 1 on
		 * (media_tag_block_copy()). */
		uint8_t packed[TAGS_STORE];
	};
};

/* Of a context. Written by complete.c and commands only. */
struct tags_windows {
	struct tags_store sent[TAGS_SSRCS];
	struct tags_window {
		uint64_t touched; /* as ssrc_state.touched; 0 = free */
		uint32_t ssrc;
		struct preauth_window w;
	} of[TAGS_SSRCS];
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

/* chain: bytes of the block with the next tags, at the end of payloads; 0: another scheme. */
static inline uint32_t media_tag_block(const struct media_crypto *c)
{
	return preauth_is_chain(media_tag_scheme(c)) ? preauth_chain_len(media_tag_scheme(c)) : 0;
}

/* The configuration makes sense. */
bool media_tags_are_sound(const struct media *m, const struct media_crypto *c);

/* The context's keys or indexes changed, or it ends (cfg all zero): wipes tags. */
void media_tags_forget(struct media *m, uint32_t ctx, const struct media_ctx_cfg *cfg);

/* Lines that a packet of this context needs: to prefetch them. */
static inline void *media_line_tags(const struct media *m, uint32_t ctx)
{
	return &m->tags[ctx].rx;
}

static inline struct tags_sent *media_line_sent(const struct media *m, uint32_t ctx, uint32_t ssrc)
{
	return &m->tags[ctx].tx[ssrc % TAGS_SSRCS];
}

/* complete at most has to mark the received packet. Otherwise it needs the window or the key. */
static inline bool media_tag_is_marked(const struct tags_next *t, const struct xc_job *j)
{
	uint64_t at = j->rx_index - t->first;

	return t->keyed || (at < t->n && at < PREAUTH_GROUP - 1 && t->ssrc == j->ssrc);
}

/* The tag to be sent, or all that it needs, is in t. Otherwise complete needs the key. */
static inline bool media_tag_is_ready(const struct tags_sent *t, const struct xc_job *j)
{
	return t->keyed || (j->tx_index - t->first < t->n && t->ssrc == media_sent_ssrc(j));
}

/* Copies the window of an SSRC that this context receives, for steering (packet/guard.h). Returns
 * the bytes of its tags; 0: it has no window. */
uint8_t media_preauth_window(struct preauth_window *out, const struct media *m,
	const struct media_ctx *c, uint32_t ssrc);

/* Copies the key of header-siphash for steering, as preauth_header.h needs it. Returns the bytes of
 * its tags; 0: another scheme, or SRTP has not authenticated a packet under this key. */
uint8_t media_preauth_sip(uint64_t key[2], const struct media *m, const struct media_ctx *c);

/* prepare: compares the tag of the RTP packet p[len], received by this context. */
enum preauth_result media_tag_check(const struct media *m, const struct arena *a,
	const struct media_ctx *rx, const uint8_t *p, uint32_t len);

/* complete: SRTP authenticated the packet of this job. Call it only if rx is wary. With chain,
 * arena.out has the decrypted packet. attacked: the stream has a guard, which needs the tags. */
void media_tag_take(struct media *m, const struct arena *a, struct media_ctx *rx,
	const struct xc_job *j, bool attacked);

/* A packet of this context was forged: tags are checked from now on. */
void media_tag_wake(struct media *m, const struct arena *a, struct media_ctx *rx);

/* complete: writes the tag after the SRTP packet p, whose length with tag is len. */
void media_tag_write(struct media *m, const struct arena *a, const struct media_ctx *tx,
	const struct xc_job *j, uint32_t len);

/* prepare, chain: copies the block of the packet with this index, media_block_len() bytes, to
 * "to". False: its tags are not known, so complete has to compute them. */
bool media_tag_block_copy(const struct media *m, const struct media_ctx *tx, uint32_t ssrc,
	uint64_t index, uint8_t *to);

/* complete, chain: cut() leaves the received block out of the plain payload at arena.out, append()
 * adds our own. Both change j->body_len. */
void media_tag_cut(const struct note *n, struct xc_job *j);
void media_tag_append(
	const struct media *m, const struct arena *a, const struct note *n, struct xc_job *j);

#endif
