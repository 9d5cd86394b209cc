/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lifetime of master keys (RFC 3711 9.2), and session keys per epoch with a key derivation rate
 * (4.3.1, 4.3.2).
 * Each SSRC has its own epoch, and SRTCP another. So slot pairs lent to the key hold the session
 * keys of a few epochs. An authentic packet near the end of its epoch causes the derivation of the
 * next keys. Other epochs must be derived before the packet can be authenticated. Forged packets
 * can cause that too, so its rate is limited, and the KEPT epochs last used by authentic packets
 * stay.
 * Slots change only here, between two runs of the engine. */
#include "media/keys.h"

#include <errno.h>

#include "media/ledger.h"
#include "media/state.h"
#include "packet/arena.h"

#define CREDIT 256u /* packets */
#define KEPT   4u   /* epochs, of at most MEDIA_EPOCHS - 1 */
#define DERIVE_PER_SECOND \
	2000u /* without authentication; some 10 us each: at most 2 % of a
				 * processor */
#define DERIVE_AT_ONCE 64u

static struct key_state *key_at(const struct media *m, uint32_t slot)
{
	return slot >= 2 && slot % 2 == 0 && slot < m->cfg.key_slots ? &m->key[slot / 2] : NULL;
}

/* Takes credit back: the key counts single packets again. */
static void take_back(struct key_state *k)
{
	struct media_way *w = atomic_load_explicit(&k->lent, memory_order_relaxed);

	if (!w)
		return;
	atomic_store_explicit(&k->lent, NULL, memory_order_relaxed);
	atomic_store_explicit(&k->rtp,
		media_key_load(&k->rtp) - atomic_load_explicit(&w->credit, memory_order_relaxed),
		memory_order_relaxed);
	atomic_store_explicit(&w->credit, 0, memory_order_relaxed);
}

static void forget(struct media *m, uint32_t slot)
{
	struct key_state *k = &m->key[slot / 2];

	take_back(k);
	media_ledger_forget(m, slot);
	if (k->kdr)
		m->epochs[slot / 2] = (struct epochs){0};
	atomic_store_explicit(&k->lifetime, 0, memory_order_relaxed);
	k->kdr = 0;
	k->short_tag = k->long_tag = false;
	atomic_store_explicit(&k->rtp, 0, memory_order_relaxed);
	atomic_store_explicit(&k->rtcp, 0, memory_order_relaxed);
	atomic_store_explicit(&k->warned, 0, memory_order_relaxed);
	atomic_store_explicit(&k->expired, 0, memory_order_relaxed);
}

int media_key_set(struct media *m, const struct media_cmd *cmd)
{
	const struct media_key_cfg *cfg = &cmd->key;
	struct key_state *k = key_at(m, cmd->id);

	if (!k || cfg->kdr > SRTP_KDR_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < MEDIA_EPOCHS && cfg->kdr; i++)
		if (!key_at(m, cfg->pair[i]))
			return -EINVAL;
	forget(m, cmd->id);
	atomic_store_explicit(&k->lifetime, cfg->lifetime, memory_order_relaxed);
	k->suite = cfg->suite;
	k->kdr = cfg->kdr;
	k->no_rtp_auth = cfg->no_rtp_auth;
	if (k->kdr)
		memcpy(m->epochs[cmd->id / 2].pair, cfg->pair, sizeof(cfg->pair));
	return 0;
}

int media_key_del(struct media *m, uint32_t slot)
{
	if (!key_at(m, slot))
		return -EINVAL;
	forget(m, slot);
	return 0;
}

int media_key_resume(struct media *m, uint32_t slot, const struct media_key_resume *r)
{
	struct key_state *k = key_at(m, slot);

	if (!k)
		return -EINVAL;
	take_back(k);
	media_count(&k->rtp, r->rtp);
	media_count(&k->rtcp, r->rtcp);
	return 0;
}

/* --- Lifetime --------------------------------------------------------------------------------- */

/* RFC 3711's limit (9.2), or the signalled one if lower. */
static uint64_t limit_of(bool rtcp, uint64_t signalled)
{
	uint64_t rfc = rtcp ? 1ull << 31 : 1ull << 48;

	return signalled && signalled < rfc ? signalled : rfc;
}

/* Start of the last tenth of the lifetime. */
static uint64_t near_end(const struct key_state *k, bool rtcp)
{
	uint64_t limit = limit_of(rtcp, media_key_load(&k->lifetime));

	return limit - limit / 10;
}

bool media_key_used_up(const struct media *m, uint32_t key)
{
	const struct key_state *k = &m->key[key / 2];
	uint64_t signalled = m->cfg.lifetime_enforce ? media_key_load(&k->lifetime) : 0;

	return key &&
		(media_key_load(&k->rtp) >= limit_of(false, signalled) ||
			media_key_load(&k->rtcp) >= limit_of(true, signalled));
}

/* Reports the last tenth of the lifetime, or its end. */
static void nears(struct media *m, struct key_state *k, bool end)
{
	if (!atomic_load_explicit(&k->warned, memory_order_relaxed)) {
		atomic_store_explicit(&k->warned, true, memory_order_relaxed);
		media_count(&m->keys_warned, 1);
	}
	if (end && !atomic_load_explicit(&k->expired, memory_order_relaxed)) {
		atomic_store_explicit(&k->expired, true, memory_order_relaxed);
		media_count(&m->keys_expired, 1);
	}
}

/* Counts CREDIT packets of this way in advance. A key's state is another cache line, so this saves
 * a look-up per packet. Only one way at a time has a key's credit. None is given near the end of
 * the lifetime, or with a kdr, where each packet must be counted. */
static void lend(struct key_state *k, struct media_way *w, uint32_t key)
{
	struct media_way *has = atomic_load_explicit(&k->lent, memory_order_relaxed);
	uint64_t then = media_key_load(&k->rtp) + CREDIT;

	if (key != w->slot || k->kdr || (has && has != w) || then >= near_end(k, false))
		return;
	atomic_store_explicit(&k->lent, w, memory_order_relaxed);
	atomic_store_explicit(&k->rtp, then, memory_order_relaxed);
	atomic_store_explicit(&w->credit, CREDIT, memory_order_relaxed);
}

void media_key_count_one(struct media *m, struct media_way *w, uint32_t key, bool rtcp)
{
	struct key_state *k = &m->key[key / 2];
	_Atomic uint64_t *n = rtcp ? &k->rtcp : &k->rtp;
	uint64_t near = near_end(k, rtcp);

	if (!key)
		return;
	/* Also if SRTCP ends the lifetime: SRTP must check it then. */
	if (media_key_load(n) + 1 >= near)
		take_back(k);
	media_count(n, 1);
	if (media_key_load(n) >= near)
		nears(m, k, media_key_load(n) >= limit_of(rtcp, media_key_load(&k->lifetime)));
	else if (!rtcp)
		lend(k, w, key);
}

void media_key_settle(struct media *m, struct media_way *w)
{
	struct key_state *k = &m->key[w->slot / 2];

	if (atomic_load_explicit(&k->lent, memory_order_relaxed) == w)
		take_back(k);
}

void media_key_usage(const struct media *m, uint32_t slot, struct media_key_usage *out)
{
	const struct key_state *k = key_at(m, slot);
	const struct media_way *w;
	uint64_t left;

	*out = (struct media_key_usage){0};
	if (!k)
		return;
	/* Two separate updates: the sum may be wrong by CREDIT for a moment, but never negative,
	 * which would look like an expired key. */
	w = atomic_load_explicit(&k->lent, memory_order_relaxed);
	out->rtp = media_key_load(&k->rtp);
	left = w ? atomic_load_explicit(&w->credit, memory_order_relaxed) : 0;
	out->rtp -= left < out->rtp ? left : out->rtp;
	out->rtcp = media_key_load(&k->rtcp);
	out->lifetime = media_key_load(&k->lifetime);
	out->warned = atomic_load_explicit(&k->warned, memory_order_relaxed);
	out->expired = atomic_load_explicit(&k->expired, memory_order_relaxed);
}

void media_lifetime_events(const struct media *m, uint64_t *warned, uint64_t *expired)
{
	*warned = atomic_load_explicit(&m->keys_warned, memory_order_relaxed);
	*expired = atomic_load_explicit(&m->keys_expired, memory_order_relaxed);
}

/* --- Epochs ----------------------------------------------------------------------------------- */

static struct epoch *find(struct epochs *e, bool rtcp, uint64_t number)
{
	for (uint32_t i = EPOCH_VAULT + 1; i < MEDIA_EPOCHS; i++)
		if (e->of[rtcp][i].number == number)
			return &e->of[rtcp][i];
	return NULL;
}

static uint32_t slot_of(const struct epochs *e, bool rtcp, const struct epoch *p)
{
	return e->pair[p - e->of[rtcp]] + rtcp;
}

/* The pair to reuse: one used by no authentic packet, else the least recently used. Pairs in use by
 * a burst in flight stay (NULL: all are). For an unauthenticated packet, the KEPT most recent stay
 * too. */
static struct epoch *victim(const struct media *m, struct epochs *e, bool rtcp, bool asking)
{
	struct epoch *best = NULL;
	uint32_t touched = 0;

	for (uint32_t i = EPOCH_VAULT + 1; i < MEDIA_EPOCHS; i++) {
		struct epoch *p = &e->of[rtcp][i];

		touched += p->touched != 0;
		if (p->number && p->burst > m->done)
			continue;
		if (!best || p->touched < best->touched ||
			(p->touched == best->touched && p->burst < best->burst))
			best = p;
	}
	return asking && best && best->touched && touched <= KEPT ? NULL : best;
}

static bool derive(struct media *m, const struct arena *a, uint32_t key, bool rtcp, struct epoch *p,
	uint64_t number)
{
	const struct key_state *k = &m->key[key / 2];
	struct epochs *e = &m->epochs[key / 2];
	uint32_t slot = slot_of(e, rtcp, p);

	srtp_slot_derive(&a->key[slot], &a->key[e->pair[EPOCH_VAULT]], k->suite, k->no_rtp_auth,
		rtcp, number);
	*p = (struct epoch){.number = number};
	if (!m->cfg.key_changed || !m->cfg.key_changed(m->cfg.key_changed_arg, slot - rtcp))
		return true;
	p->number = 0;
	return false;
}

static bool may_ask(struct media *m, uint64_t now_ns)
{
	const uint64_t per_ns = 1000000000u / DERIVE_PER_SECOND;
	uint64_t add;

	if (m->derive_ns == 0)
		m->derive_tokens = DERIVE_AT_ONCE;
	if (now_ns < m->derive_ns || m->derive_ns == 0) /* first use, or the clock was set */
		m->derive_ns = now_ns;
	add = (now_ns - m->derive_ns) / per_ns;
	m->derive_ns += add * per_ns;
	m->derive_tokens =
		(uint32_t)(add > DERIVE_AT_ONCE - m->derive_tokens ? DERIVE_AT_ONCE
								   : m->derive_tokens + add);
	if (m->derive_tokens == 0)
		return false;
	m->derive_tokens--;
	return true;
}

uint32_t media_key_epoch(struct media *m, const struct arena *a, uint32_t key, bool rtcp,
	uint64_t index, uint64_t now_ns)
{
	struct epochs *e = &m->epochs[key / 2];
	uint8_t kdr = m->key[key / 2].kdr;
	uint64_t number = index >> kdr;
	struct epoch *p;

	if (number == 0)
		return key + rtcp;
	p = find(e, rtcp, number);
	if (!p) {
		p = victim(m, e, rtcp, true);
		if (!p || !may_ask(m, now_ns) || !derive(m, a, key, rtcp, p, number))
			return MEDIA_NONE;
	}
	p->burst = m->burst;
	return slot_of(e, rtcp, p);
}

void media_key_advance(
	struct media *m, const struct arena *a, uint32_t key, bool rtcp, uint64_t index)
{
	struct epochs *e = &m->epochs[key / 2];
	uint8_t kdr = m->key[key / 2].kdr;
	uint64_t number = index >> kdr;
	struct epoch *p;

	p = find(e, rtcp, number);
	if (p && number)
		p->touched = ++m->epoch_clock;
	/* In the second half of an epoch, derive the keys of the next one. */
	if (!(index >> (kdr - 1) & 1) || number == (rtcp ? SRTCP_INDEX_MAX : SRTP_INDEX_MAX) >> kdr)
		return;
	p = find(e, rtcp, number + 1);
	if (!p) {
		p = victim(m, e, rtcp, false);
		if (!p || !derive(m, a, key, rtcp, p, number + 1))
			return;
	}
	p->touched = ++m->epoch_clock;
}
