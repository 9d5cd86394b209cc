/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+ tags of a worker's contexts. prepare reads, complete writes. */
#include "media/tags.h"

#include "base/secmem.h"
#include "media/state.h"
#include "packet/arena.h"

/* Multiples of PREAUTH_FIPS_RUN, or of the tags in an AES block. */
enum { FILL_FIPS = 3 * PREAUTH_FIPS_RUN, FILL_AES = 32, SENT_FIPS = PREAUTH_FIPS_RUN };
_Static_assert(2 * FILL_AES <= TAGS_AT_ONCE && 2 * FILL_FIPS <= TAGS_AT_ONCE, "");
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

	if (preauth_is_header((enum preauth_scheme)t->scheme))
		return preauth_header(key_at(a, t->slot), p) == tag ? PREAUTH_TRUE : PREAUTH_FORGED;
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
	uint32_t tag[PREAUTH_NEXT_MAX];
	uint64_t known = w->first + w->known;

	preauth_chain_read(s, tag, block);
	preauth_window_trim(w, index, (uint32_t)c.window - c.next);
	if (known < index + 1) { /* a gap: tags in it were never received */
		/* Bits that are not used are zero in the packet, too. */
		preauth_window_init(w, index + 1, 8 * preauth_tag_len(s));
		known = index + 1;
	}
	if (known < index + 1 + c.next)
		preauth_window_add(
			w, tag + (known - index - 1), (uint32_t)(index + 1 + c.next - known));
}

/* In the steady state, one packet in "fill" calls it. */
static __attribute__((noinline)) void compute(
	struct preauth_window *w, const struct preauth_key *k, uint32_t ssrc, uint32_t fill)
{
	uint32_t tag[FILL_AES], n;
	__u64 index;

	/* Twice, so that a new window has tags ahead of the packets. */
	for (uint32_t i = 0; i < 2 && preauth_window_room(w, &index) >= fill; i++) {
		n = fill - (uint32_t)(index % fill);
		preauth_sequence(k, ssrc, index, tag, n);
		preauth_window_add(w, tag, n);
	}
}

/* The window of an authentic packet's SSRC. */
static struct tags_window *window_for(
	struct tags_windows *t, uint32_t ssrc, uint64_t index, uint8_t tag_len)
{
	struct tags_window *w = find(t, ssrc);

	/* Further ahead, the window would keep none of its tags. */
	if (w && index < w->w.first + w->w.known + PREAUTH_BEHIND)
		return w;
	w = w ? w : make(t, ssrc);
	preauth_window_init(&w->w, index, 8u * tag_len);
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

	if (preauth_is_header((enum preauth_scheme)t->scheme)) {
		t->keyed = t->scheme == PREAUTH_HEADER_SIPHASH;
		if (t->keyed)
			memcpy(t->sip, key_at(a, t->slot)->seed, sizeof(t->sip));
		return;
	}
	mark(t, all);
	w = window_for(all, j->ssrc, j->rx_index, t->len);
	w->touched = ++m->clock;
	preauth_window_take(&w->w, j->rx_index);
	if (preauth_is_chain((enum preauth_scheme)t->scheme)) {
		announced(&w->w, (enum preauth_scheme)t->scheme, j->rx_index,
			a->out + j->out_off + j->hdr_len + j->body_len -
				preauth_chain_len((enum preauth_scheme)t->scheme));
		return;
	}
	if (PREAUTH_WINDOW - w->w.known >= fill)
		compute(&w->w, key_at(a, t->slot), j->ssrc, fill);
	advance(t, w, j->rx_index);
}

void media_tag_take(
	struct media *m, const struct arena *a, const struct media_ctx *rx, const struct xc_job *j)
{
	struct tags_next *t = &tags_of(m, rx)->rx;

	if (t->keyed)
		return;
	if (media_tag_is_marked(t, j))
		t->taken |= (uint8_t)(1u << (j->rx_index - t->first));
	else
		take_other(m, a, rx, j);
}

/* --- Sending ---------------------------------------------------------------------------------- */

/* In the steady state, one packet in TAGS_SENT calls it. */
static __attribute__((noinline)) uint32_t sent_tag(
	struct tags_sent *t, const struct preauth_key *k, uint32_t ssrc, uint64_t index)
{
	t->n = t->scheme == PREAUTH_SEQUENCE_FIPS ? SENT_FIPS : TAGS_SENT;
	t->first = index - index % t->n;
	t->ssrc = ssrc;
	preauth_sequence(k, ssrc, t->first, t->tag, t->n);
	return t->tag[index - t->first];
}

/* Schemes without tags that are computed ahead of this packet. */
static __attribute__((noinline)) void write_one(struct tags_sent *t, const struct preauth_key *k,
	uint8_t *p, uint32_t len, const struct xc_job *j)
{
	uint32_t tag, bits;

	if (t->scheme == PREAUTH_HEADER_SIPHASH) {
		memcpy(t->sip, k->seed, sizeof(t->sip));
		t->keyed = 1;
	}
	if (!preauth_is_chain((enum preauth_scheme)t->scheme)) {
		put_be32(p + len - 4, preauth_header(k, p));
		return;
	}
	preauth_sequence(k, media_sent_ssrc(j), j->tx_index, &tag, 1);
	bits = preauth_bits((enum preauth_scheme)t->scheme);
	if (bits == 32)
		put_be32(p + len - 4, tag);
	else
		p[len - 1] = (uint8_t)(tag & ((1u << bits) - 1));
}

void media_tag_write(struct media *m, const struct arena *a, const struct media_ctx *tx,
	const struct xc_job *j, uint32_t len)
{
	uint32_t ssrc = media_sent_ssrc(j);
	struct tags_sent *t = media_line_sent(m, (uint32_t)(tx - m->ctx), ssrc);
	uint8_t *p = a->out + j->out_off;
	const struct preauth_key *k;

	if (t->keyed) {
		put_be32(p + len - 4, preauth_header_sip(t->sip, p));
		return;
	}
	if (media_tag_is_ready(t, j)) {
		put_be32(p + len - 4, t->tag[j->tx_index - t->first]);
		return;
	}
	k = key_at(a, t->slot);
	if (t->scheme == PREAUTH_SEQUENCE_AES || t->scheme == PREAUTH_SEQUENCE_FIPS)
		put_be32(p + len - 4, sent_tag(t, k, ssrc, j->tx_index));
	else
		write_one(t, k, p, len, j);
}

void media_tag_cut(const struct note *n, struct xc_job *j)
{
	if (media_tag_chains(&n->rx->rx, &n->rx->cfg->rx))
		j->body_len -= media_tag_block(&n->rx->cfg->rx); /* prepare checked the length */
}

void media_tag_append(const struct arena *a, const struct note *n, struct xc_job *j)
{
	enum preauth_scheme s = media_tag_scheme(&n->tx->cfg->tx);
	uint32_t tag[PREAUTH_NEXT_MAX];

	if (!media_tag_chains(&n->tx->tx, &n->tx->cfg->tx))
		return;
	preauth_sequence(key_at(a, n->tx->cfg->tx.preauth_slot), media_sent_ssrc(j),
		j->tx_index + 1, tag, preauth_chain_of(s).next);
	preauth_chain_write(s, a->out + j->out_off + j->hdr_len + j->body_len, tag);
	j->body_len += preauth_chain_len(s);
}
