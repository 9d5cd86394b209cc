/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+ tags of a worker's contexts. prepare reads, complete writes. */
#include "media/tags.h"

#include <endian.h>

#include "base/secmem.h"
#include "media/state.h"
#include "packet/arena.h"

/* Multiples of PREAUTH_FIPS_RUN, or of the tags in an AES block. */
enum { FILL_FIPS = 8 * PREAUTH_FIPS_RUN, FILL_AES = 32, SENT_FIPS = PREAUTH_FIPS_RUN };
/* Tags that a window has at least after its newest packet. */
enum { AHEAD = 2 * FILL_AES };
_Static_assert(PREAUTH_BEHIND + 1 + AHEAD + FILL_FIPS - 1 <= TAGS_AT_ONCE, "");
_Static_assert(FILL_FIPS <= TAGS_STORE / 4, "");
/* chain: tags that are computed at once, and bits of the index of the first one. */
enum { STORE_CHAIN = 128, STORE_WIDE = TAGS_STORE / 4, STORE_BEFORE = 16, STORE_AHEAD = 4 };
_Static_assert(STORE_CHAIN <= TAGS_STORE && STORE_CHAIN / 2 <= TAGS_STORE / 2, "");
_Static_assert(STORE_BEFORE + STORE_AHEAD + PREAUTH_NEXT_MAX < STORE_CHAIN, "");
_Static_assert(STORE_BEFORE + STORE_AHEAD + PREAUTH_BLOCK_MAX / 4 < STORE_WIDE, "");
_Static_assert(PREAUTH_BLOCK_MAX <= XC_BLOCK_MAX && XC_BLOCK_MAX <= ARENA_HEADROOM, "");
_Static_assert(SENT_FIPS <= TAGS_SENT && TAGS_SENT % 4 == 0, "");
/* The key lies in a slot of the key table, as the vault of a key derivation rate does. */
_Static_assert(sizeof(struct preauth_key) <= sizeof(struct xc_key), "a key fits into its slot");

static const struct preauth_key *key_at(const struct arena *a, uint32_t slot)
{
	return (const struct preauth_key *)&a->key[slot];
}

bool media_tags_are_sound(const struct media *m, const struct media_crypto *c)
{
	if (!c->preauth)
		return c->preauth_slot == 0;
	return preauth_exists(media_tag_scheme(c)) && c->preauth_slot >= 2 &&
		c->preauth_slot < m->cfg.key_slots && media_is_srtp(c) && !c->no_rtp_auth &&
		!c->pass && !(c->clear_rtp && preauth_is_chain(media_tag_scheme(c)));
}

void media_tags_forget(struct media *m, uint32_t ctx, const struct media_ctx_cfg *cfg)
{
	const struct media_crypto *rx = &cfg->rx, *tx = &cfg->tx;
	struct media_tags *t = &m->tags[ctx];

	secmem_wipe(t, sizeof(*t));
	secmem_wipe(&m->tags_windows[ctx], sizeof(m->tags_windows[ctx]));
	t->rx = (struct tags_next){.slot = rx->preauth_slot,
		.scheme = rx->preauth ? (uint8_t)media_tag_scheme(rx) : 0,
		.len = (uint8_t)media_tag_len(rx)};
	m->ctx[ctx].rx.wary = rx->preauth ? TAGS_WARY : 0;
	for (uint32_t i = 0; i < TAGS_SSRCS; i++)
		t->tx[i] = (struct tags_sent){.slot = tx->preauth_slot,
			.scheme = tx->preauth ? (uint8_t)media_tag_scheme(tx) : 0};
}

static struct media_tags *tags_of(const struct media *m, const struct media_ctx *c)
{
	return &m->tags[c - m->ctx];
}

static struct tags_windows *windows_of(const struct media *m, const struct media_ctx *c)
{
	return &m->tags_windows[c - m->ctx];
}

/* --- Receiving -------------------------------------------------------------------------------- */

static struct tags_window *find(struct tags_windows *t, uint32_t ssrc)
{
	for (uint32_t i = 0; i < TAGS_SSRCS; i++)
		if (t->of[i].ssrc == ssrc && t->of[i].touched)
			return &t->of[i];
	return NULL;
}

uint8_t media_preauth_sip(uint64_t key[2], const struct media *m, const struct media_ctx *c)
{
	const struct tags_next *t = &tags_of(m, c)->rx;

	if (!c->rx.tagged || !t->keyed)
		return 0;
	preauth_sip_words(key, t->sip);
	return t->len;
}

uint8_t media_preauth_window(
	struct preauth_window *out, const struct media *m, const struct media_ctx *c, uint32_t ssrc)
{
	const struct tags_window *w = c->rx.tagged ? find(windows_of(m, c), ssrc) : NULL;
	const struct tags_next *t = &tags_of(m, c)->rx;

	if (!w)
		return 0;
	*out = w->w;
	/* Marks that the window lacks so far. */
	if (t->n && t->ssrc == ssrc)
		preauth_window_take_group(out, t->first, t->taken);
	return t->len;
}

/* Of schemes that compute the tag, and of packets out of order. */
static __attribute__((noinline)) enum preauth_result check_other(const struct media *m,
	const struct arena *a, const struct media_ctx *rx, const uint8_t *p, uint32_t tag)
{
	const struct tags_next *t = &tags_of(m, rx)->rx;
	const struct tags_window *w;
	int at;

	if (preauth_is_header((enum preauth_scheme)t->scheme)) {
		at = preauth_heads_find(&t->heads, t->ssrc, p);
		return (at >= 0 ? t->tag[at] : preauth_header(key_at(a, t->slot), p)) == tag
			? PREAUTH_TRUE
			: PREAUTH_FORGED;
	}
	w = find(windows_of(m, rx), be32(p + 8));
	return w ? preauth_window_check(&w->w, be16(p + 2), tag) : PREAUTH_OUTSIDE;
}

enum preauth_result media_tag_check(const struct media *m, const struct arena *a,
	const struct media_ctx *rx, const uint8_t *p, uint32_t len)
{
	const struct tags_next *t = &tags_of(m, rx)->rx;
	uint16_t at;
	uint32_t tag;

	if (len < (uint32_t)RTP_FIXED_LEN + t->len)
		return PREAUTH_OUTSIDE; /* malformed, as the caller finds */
	tag = t->len == 1 ? p[len - 1] : be32(p + len - 4);
	if (t->keyed)
		return preauth_header_sip(t->sip, p) == tag ? PREAUTH_TRUE : PREAUTH_FORGED;
	at = (uint16_t)(be16(p + 2) - (uint16_t)t->first);
	if (at < t->n && t->ssrc == be32(p + 8))
		return t->tag[at] == tag ? PREAUTH_TRUE : PREAUTH_FORGED;
	return check_other(m, a, rx, p, tag);
}

/* The least recently used window gives way. */
static struct tags_window *make(struct tags_windows *t, uint32_t ssrc)
{
	struct tags_window *w = &t->of[0];

	for (uint32_t i = 1; i < TAGS_SSRCS; i++)
		if (t->of[i].touched < w->touched)
			w = &t->of[i];
	w->ssrc = ssrc;
	return w;
}

/* Adds the tags that the block announces and the window lacks. */
static void announced(
	struct preauth_window *w, enum preauth_scheme s, uint64_t index, const uint8_t *block)
{
	struct preauth_chain c = preauth_chain_of(s);
	uint64_t known = w->first + w->known;

	preauth_window_trim(w, index, (uint32_t)c.window - c.next);
	if (known < index + 1) { /* a gap: tags in it were never received */
		/* Bits that are not used are zero in the packet, too. */
		preauth_window_init(w, index + 1, 8 * preauth_tag_len(s));
		known = index + 1;
	}
	for (; known < index + 1 + c.next; known++) {
		uint32_t tag = preauth_chain_tag(c.width, block, (uint32_t)(known - index - 1));

		preauth_window_add(w, &tag, 1);
	}
}

/* In the steady state, one packet in "fill" calls it. newest: the index of the packet. */
static __attribute__((noinline)) void compute(struct preauth_window *w, const struct preauth_key *k,
	uint32_t ssrc, uint64_t newest, uint32_t fill)
{
	uint32_t tag[FILL_FIPS], n;
	__u64 index;

	/* Twice, so that a new window is full soon. It has tags behind the newest packet first. */
	for (uint32_t i = 0;
		preauth_window_room(w, &index) >= fill && (i < 2 || index < newest + 1 + AHEAD);
		i++) {
		n = fill - (uint32_t)(index % fill);
		preauth_sequence(k, ssrc, index, tag, n);
		preauth_window_add(w, tag, n);
	}
}

/* The window of an authentic packet's SSRC. behind: packets before it for which a new window has
 * room, because they may come late. */
static struct tags_window *window_for(
	struct tags_windows *t, const struct tags_next *n, const struct xc_job *j, uint32_t behind)
{
	struct tags_window *w = find(t, j->ssrc);

	/* Further ahead, the window would keep none of its tags. */
	if (w && j->rx_index < w->w.first + w->w.known + PREAUTH_BEHIND)
		return w;
	w = w ? w : make(t, j->ssrc);
	preauth_window_init(&w->w, j->rx_index > behind ? j->rx_index - behind : 0, 8u * n->len);
	return w;
}

/* Marks the packets that only struct tags_next knows. */
static void mark(struct tags_next *t, struct tags_windows *all)
{
	struct tags_window *w = t->taken ? find(all, t->ssrc) : NULL;

	if (w)
		preauth_window_take_group(&w->w, t->first, t->taken);
	t->taken = 0;
}

/* Takes the tags after this index from the window. An index that is not the newest changes
 * nothing. */
static void advance(struct tags_next *t, const struct tags_window *w, uint64_t index)
{
	uint64_t first = (index + 1) & ~(uint64_t)(PREAUTH_GROUP - 1);
	const uint32_t *tag = preauth_window_group(&w->w, first);

	if (t->n && t->ssrc == w->ssrc && first <= t->first && w->w.first <= t->first)
		return;
	t->n = 0;
	if (!tag)
		return;
	memcpy(t->tag, tag, sizeof(t->tag));
	t->first = first;
	t->ssrc = w->ssrc;
	t->n = PREAUTH_GROUP;
}

/* The last packet of a group, and packets out of order. */
static __attribute__((noinline)) void take_other(
	struct media *m, const struct arena *a, const struct media_ctx *rx, const struct xc_job *j)
{
	struct tags_next *t = &tags_of(m, rx)->rx;
	uint32_t fill = t->scheme == PREAUTH_SEQUENCE_FIPS ? FILL_FIPS : FILL_AES;
	struct tags_windows *all = windows_of(m, rx);
	struct tags_window *w;
	bool chain;

	if (preauth_is_header((enum preauth_scheme)t->scheme)) {
		t->keyed = t->scheme == PREAUTH_HEADER_SIPHASH;
		if (t->keyed)
			memcpy(t->sip, key_at(a, t->slot)->seed, sizeof(t->sip));
		else
			preauth_heads_learn(
				&t->heads, &t->ssrc, t->tag, key_at(a, t->slot), a->in + j->in_off);
		return;
	}
	if (XC_JOB_HAS_BLOCK(j->flags))
		return; /* prepared while tags were not checked: its block was not decrypted */
	mark(t, all);
	chain = preauth_is_chain((enum preauth_scheme)t->scheme);
	w = window_for(all, t, j, chain ? 0 : PREAUTH_BEHIND);
	w->touched = ++m->clock;
	preauth_window_take(&w->w, j->rx_index);
	if (chain) {
		announced(&w->w, (enum preauth_scheme)t->scheme, j->rx_index,
			a->out + j->out_off + j->hdr_len + j->body_len -
				preauth_chain_len((enum preauth_scheme)t->scheme));
		return;
	}
	if (PREAUTH_WINDOW - w->w.known >= fill)
		compute(&w->w, key_at(a, t->slot), j->ssrc, j->rx_index, fill);
	advance(t, w, j->rx_index);
}

/* Wipes the windows, because they do not move while tags are not checked. An old window would
 * refuse true packets when their sequence numbers come again. */
static __attribute__((noinline)) void rest(struct media *m, const struct media_ctx *rx)
{
	struct tags_next *t = &tags_of(m, rx)->rx;
	struct tags_windows *all = windows_of(m, rx);

	secmem_wipe(all->of, sizeof(all->of));
	secmem_wipe(t->tag, sizeof(t->tag));
	*t = (struct tags_next){.slot = t->slot, .scheme = t->scheme, .len = t->len};
}

/* The tags after the last authentic packet. Those of a chain come with the next one. The headers
 * that header-hmac-sha1 expects are learned then, too; until then each tag is computed. */
static __attribute__((noinline)) void wake(
	struct media *m, const struct arena *a, const struct media_ctx *rx)
{
	const struct ssrc_state *s = &rx->rx.first;
	const struct xc_job last = {.ssrc = s->ssrc, .rx_index = s->seen.last};
	enum preauth_scheme scheme = (enum preauth_scheme)tags_of(m, rx)->rx.scheme;

	if (s->used && s->seen.started && !preauth_is_chain(scheme) &&
		scheme != PREAUTH_HEADER_HMAC)
		take_other(m, a, rx, &last);
}

void media_tag_wake(struct media *m, const struct arena *a, struct media_ctx *rx)
{
	bool rested = rx->rx.tagged && !rx->rx.wary;

	rx->rx.wary = rx->rx.tagged ? TAGS_WARY : 0;
	if (rested)
		wake(m, a, rx);
}

void media_tag_take(struct media *m, const struct arena *a, struct media_ctx *rx,
	const struct xc_job *j, bool attacked)
{
	struct tags_next *t = &tags_of(m, rx)->rx;

	if (!attacked && --rx->rx.wary == 0) {
		rest(m, rx);
		return;
	}
	if (t->keyed)
		return;
	if (media_tag_is_marked(t, j))
		t->taken |= (uint8_t)(1u << (j->rx_index - t->first));
	else
		take_other(m, a, rx, j);
}

/* --- Sending ---------------------------------------------------------------------------------- */

static struct tags_store *store_of(const struct media *m, const struct media_ctx *c, uint32_t ssrc)
{
	return &windows_of(m, c)->sent[ssrc % TAGS_SSRCS];
}

static bool store_has(const struct tags_store *s, uint32_t ssrc, uint64_t first, uint32_t n)
{
	return s->ssrc == ssrc && first >= s->first && first + n <= s->first + s->n;
}

/* In the steady state, one packet in TAGS_SENT calls it. */
static __attribute__((noinline)) uint32_t sent_tag(struct tags_sent *t, struct tags_store *s,
	const struct preauth_key *k, uint32_t ssrc, uint64_t index)
{
	t->n = t->scheme == PREAUTH_SEQUENCE_FIPS ? SENT_FIPS : TAGS_SENT;
	t->first = index - index % t->n;
	t->ssrc = ssrc;
	if (t->scheme != PREAUTH_SEQUENCE_FIPS) {
		preauth_sequence(k, ssrc, t->first, t->tag, t->n);
		return t->tag[index - t->first];
	}
	if (!store_has(s, ssrc, t->first, SENT_FIPS)) {
		s->first = t->first;
		s->ssrc = ssrc;
		s->n = FILL_FIPS;
		preauth_sequence(k, ssrc, s->first, s->tag, s->n);
	}
	memcpy(t->tag, s->tag + (t->first - s->first), SENT_FIPS * sizeof(*t->tag));
	return t->tag[index - t->first];
}

/* Header schemes. */
static __attribute__((noinline)) uint32_t header_tag(
	struct tags_sent *t, const struct preauth_key *k, const uint8_t *p)
{
	uint32_t tag;
	int at;

	if (t->scheme == PREAUTH_HEADER_SIPHASH) {
		memcpy(t->sip, k->seed, sizeof(t->sip));
		t->keyed = 1;
		return preauth_header(k, p);
	}
	at = preauth_heads_find(&t->heads, t->ssrc, p);
	tag = at >= 0 ? t->head[at] : preauth_header(k, p);
	if (at < 0 || at + 1 == t->heads.n)
		preauth_heads_learn(&t->heads, &t->ssrc, t->head, k, p);
	return tag;
}

/* chain with tags of four bits: packs the tags again from the second one on. So a block that begins
 * in the middle of a byte can be copied, too. */
static void pack_again(uint8_t *again, const uint8_t *packed)
{
	uint64_t word, next;

	memcpy(&next, packed, 8);
	for (uint32_t i = 0; i < STORE_CHAIN / 2; i += 8) {
		word = be64toh(next);
		next = 0;
		if (i + 8 < STORE_CHAIN / 2)
			memcpy(&next, packed + i + 8, 8);
		word = htobe64(word << 4 | be64toh(next) >> 60);
		memcpy(again + i, &word, 8);
	}
}

/* chain: the tags of packet "index" and those that it announces are in the store then. */
static __attribute__((noinline)) void store_chain(struct tags_store *s, enum preauth_scheme scheme,
	const struct preauth_key *k, uint32_t ssrc, uint64_t index)
{
	uint32_t tag[STORE_CHAIN];
	uint8_t width = preauth_chain_of(scheme).width;

	s->width = width;
	s->len = (uint8_t)preauth_chain_len(scheme);
	s->next = preauth_chain_of(scheme).next;
	/* A packet that comes a little late finds its tags, too. */
	s->first = index & ~(uint64_t)(STORE_BEFORE - 1);
	s->ssrc = ssrc;
	s->n = width == 32 ? STORE_WIDE : STORE_CHAIN;
	preauth_sequence(k, ssrc, s->first, tag, s->n);
	preauth_chain_pack(width, s->packed, tag, s->n);
	if (width == 4)
		pack_again(s->packed + TAGS_STORE / 2, s->packed);
	secmem_wipe(tag, sizeof(tag));
}

/* Whether the store has the tags of a packet, of its block, and of "ahead" packets after it. */
static inline bool has_block(
	const struct tags_store *s, uint32_t ssrc, uint64_t index, uint32_t ahead)
{
	return s->width && store_has(s, ssrc, index, 1u + s->next + ahead);
}

/* Makes the store ready for this packet and some later ones, whose blocks prepare then finds. */
static inline struct tags_store *chained(const struct media *m, const struct arena *a,
	const struct media_ctx *tx, const struct xc_job *j)
{
	uint32_t ssrc = media_sent_ssrc(j);
	struct tags_store *s = store_of(m, tx, ssrc);

	if (!has_block(s, ssrc, j->tx_index, STORE_AHEAD))
		store_chain(s, media_tag_scheme(&tx->cfg->tx), key_at(a, tx->cfg->tx.preauth_slot),
			ssrc, j->tx_index);
	return s;
}

static inline void copy_block(const struct tags_store *s, uint64_t index, uint8_t *to)
{
	uint32_t at = (uint32_t)(index + 1 - s->first);
	const uint8_t *from = s->width == 4 ? s->packed + at % 2 * (TAGS_STORE / 2) + at / 2
					    : s->packed + at * s->width / 8;

	if (s->len == 16) /* the usual length, copied inline */
		memcpy(to, from, 16);
	else
		memcpy(to, from, s->len);
}

bool media_tag_block_copy(const struct media *m, const struct media_ctx *tx, uint32_t ssrc,
	uint64_t index, uint8_t *to)
{
	const struct tags_store *s = store_of(m, tx, ssrc);

	if (!has_block(s, ssrc, index, 0))
		return false;
	copy_block(s, index, to);
	return true;
}

static inline void write_chained(const struct tags_store *s, uint8_t *end, uint64_t index)
{
	uint32_t tag = preauth_chain_tag(s->width, s->packed, (uint32_t)(index - s->first));

	if (s->width == 32)
		put_be32(end - 4, tag);
	else
		end[-1] = (uint8_t)tag;
}

/* Packets whose tag is not known, or is the last known one. */
static __attribute__((noinline)) void write_other(struct media *m, const struct arena *a,
	const struct media_ctx *tx, const struct xc_job *j, uint8_t *end)
{
	uint32_t ssrc = media_sent_ssrc(j);
	struct tags_sent *t = media_line_sent(m, (uint32_t)(tx - m->ctx), ssrc);
	const struct preauth_key *k = key_at(a, t->slot);

	if (tx->tx.chains)
		write_chained(chained(m, a, tx, j), end, j->tx_index);
	else if (preauth_is_header((enum preauth_scheme)t->scheme))
		put_be32(end - 4, header_tag(t, k, a->out + j->out_off));
	else
		put_be32(end - 4, sent_tag(t, store_of(m, tx, ssrc), k, ssrc, j->tx_index));
}

void media_tag_write(struct media *m, const struct arena *a, const struct media_ctx *tx,
	const struct xc_job *j, uint32_t len)
{
	uint32_t ssrc = media_sent_ssrc(j);
	const struct tags_sent *t = media_line_sent(m, (uint32_t)(tx - m->ctx), ssrc);
	uint8_t *p = a->out + j->out_off;
	int at;

	if (tx->tx.chains) {
		const struct tags_store *s = store_of(m, tx, ssrc);

		if (has_block(s, ssrc, j->tx_index, STORE_AHEAD)) {
			write_chained(s, p + len, j->tx_index);
			return;
		}
	} else if (t->keyed) {
		put_be32(p + len - 4, preauth_header_sip(t->sip, p));
		return;
	} else if (media_tag_is_ready(t, j)) {
		put_be32(p + len - 4, t->tag[j->tx_index - t->first]);
		return;
	} else if (t->scheme == PREAUTH_HEADER_HMAC) {
		/* With the last known tag, write_other() computes the next ones. */
		at = preauth_heads_find(&t->heads, t->ssrc, p);
		if (at >= 0 && at + 1 < t->heads.n) {
			put_be32(p + len - 4, t->head[at]);
			return;
		}
	}
	write_other(m, a, tx, j, p + len);
}

void media_tag_cut(const struct note *n, struct xc_job *j)
{
	j->body_len -= media_block_len(&n->rx->rx); /* prepare checked the length */
}

void media_tag_append(
	const struct media *m, const struct arena *a, const struct note *n, struct xc_job *j)
{
	if (!n->tx->tx.chains)
		return;
	copy_block(chained(m, a, n->tx, j), j->tx_index,
		a->out + j->out_off + j->hdr_len + j->body_len);
	j->body_len += media_block_len(&n->tx->tx);
}
