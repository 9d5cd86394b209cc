/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The indexes of a key belong to the key (RFC 3711 3.2.3, 9.1: no keystream twice). A call may
 * leave a key and return to it: several answers to one offer, SRTP and RTP in turn, a rejected
 * m-line. When a key goes out of force, its highest indexes are stored with its slot. When the key
 * returns, its indexes continue. Replay windows are not stored: all indexes up to the stored one
 * count as received, so packets that are reordered around the change are lost. Used by commands
 * only, never by the packet path. */
#include "media/ledger.h"
#include "media/keys.h"
#include "media/ssrc.h"
#include "media/state.h"

static struct key_state *state_of(const struct media *m, uint32_t slot)
{
	return &m->key[slot / 2];
}

static bool has_key(const struct media_crypto *c, uint32_t slot)
{
	for (uint32_t i = 0; c && i < c->keys; i++)
		if (c->key[i].slot == slot)
			return true;
	return false;
}

bool media_ledger_allows(const struct media *m, const struct media_crypto *tx)
{
	for (uint32_t i = 0; i < tx->keys; i++) {
		const struct key_state *k = state_of(m, tx->key[i].slot);

		if (!k->kept && (media_key_load(&k->rtp) || media_key_load(&k->rtcp)))
			return false;
	}
	return true;
}

/* Indexes of media that are passed through are not authenticated, so they are not stored; those
 * stored before stay. */
static void keep(struct media *m, const struct media_ctx *c, bool tx, uint32_t slot)
{
	struct ledger *l = &m->ledger[slot / 2];

	l->tx_rtcp_next = tx ? c->tx_rtcp_next : 0;
	l->n = tx ? media_ssrc_marks(m, c, TX_RTP, l->mark, 0)
		  : media_ssrc_marks(
			    m, c, RX_RTCP, l->mark, media_ssrc_marks(m, c, RX_RTP, l->mark, 0));
	state_of(m, slot)->kept = true;
}

void media_ledger_leave(
	struct media *m, struct media_ctx *c, bool tx, const struct media_crypto *next, bool all)
{
	const struct media_crypto *old = tx ? &c->cfg->tx : &c->cfg->rx;

	if (!c->rx.set || old->pass)
		return;
	for (uint32_t i = 0; i < old->keys; i++)
		if (all || !has_key(next, old->key[i].slot) || next->pass)
			keep(m, c, tx, old->key[i].slot);
}

void media_ledger_join(struct media *m, struct media_ctx *c, bool tx,
	const struct media_crypto *prev, const struct media_crypto *now)
{
	for (uint32_t i = 0; i < now->keys; i++) {
		uint32_t slot = now->key[i].slot;
		const struct ledger *l = &m->ledger[slot / 2];

		if (!state_of(m, slot)->kept || has_key(prev, slot))
			continue;
		for (uint32_t k = 0; k < l->n; k++)
			media_ssrc_resume(m, c, &l->mark[k]);
		if (tx && c->tx_rtcp_next < l->tx_rtcp_next)
			c->tx_rtcp_next = l->tx_rtcp_next;
		state_of(m, slot)->kept = now->pass;
	}
}

void media_ledger_forget(struct media *m, uint32_t slot)
{
	if (state_of(m, slot)->kept)
		m->ledger[slot / 2].n = 0;
	state_of(m, slot)->kept = false;
}
