/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contexts and keys: handles of both, and key slots filled where the worker's engine reads them. */
#include "bridge/bridge_int.h"

#include <errno.h>

#include "base/secmem.h"
#include "srtp/preauth.h"

int bridge_op_ctx_take(void *arg, uint32_t *ctx, uint32_t worker)
{
	struct bridge *r = arg;

	if (!handles_take(&r->site[worker].ctxs, ctx))
		return bridge_shortage(r, SHORT_CONTEXTS, -ENOSPC);
	bridge_touch(&r->site[worker], MEDIA_HANDLE_CTX, *ctx);
	return 0;
}

void bridge_op_ctx_release(void *arg, uint32_t worker, uint32_t ctx)
{
	struct bridge *r = arg;
	struct worker_cmd del = {.kind = WORKER_MEDIA};

	del.media.type = MEDIA_CTX_DEL;
	del.media.id = ctx;
	r->site[worker].sent.has_ctx[ctx] = false;
	bridge_marks_forget(&r->site[worker], ctx, true, true);
	bridge_push_deletion(r, &r->site[worker], &del);
}

static void lent_put(struct bridge_site *s, uint32_t *lent)
{
	for (uint32_t i = 0; i < MEDIA_EPOCHS && lent[i]; i++) {
		handles_put(&s->keys, lent[i]);
		lent[i] = 0;
	}
}

/* Pairs for a key's epochs. */
static int lent_take(struct bridge_site *s, uint32_t *lent)
{
	for (uint32_t i = 0; i < MEDIA_EPOCHS; i++)
		if (!handles_take(&s->keys, &lent[i])) {
			lent[i] = 0;
			lent_put(s, lent);
			return -ENOSPC;
		}
	return 0;
}

static void key_cfg(struct media_key_cfg *cfg, const struct srtp_master *m, const uint32_t *lent)
{
	*cfg = (struct media_key_cfg){.lifetime = m->lifetime,
		.kdr = m->kdr,
		.no_rtp_auth = m->no_rtp_auth,
		.suite = m->suite};
	for (uint32_t i = 0; i < MEDIA_EPOCHS; i++)
		cfg->pair[i] = 2 * lent[i];
}

/* rtcp: NULL, or SRTCP's own master key. */
static int fill(struct xc_key pair[2], const struct srtp_master *m, const struct srtp_master *rtcp)
{
	struct xc_key own[2];
	int err = srtp_key_fill(pair, m);

	if (err || !rtcp)
		return err;
	err = srtp_key_fill(own, rtcp);
	if (!err)
		pair[1] = own[1];
	secmem_wipe(own, sizeof(own));
	return err;
}

/* The last key slots are reserved for emergency calls. */
static bool may_take_key(const struct bridge *r, const struct bridge_site *s)
{
	return r->emergency || s->keys.n > (uint64_t)s->keys.all * r->cfg.emergency_percent / 100;
}

int bridge_op_key_take(void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *m,
	const struct srtp_master *rtcp)
{
	struct bridge *r = arg;
	struct bridge_site *s = &r->site[worker];
	struct worker_cmd set[2] = {{.kind = WORKER_KEY_SET, .more = true}, {.kind = WORKER_MEDIA}};
	struct xc_key *key = batch_runner_arena(s->w->runner)->key;
	uint32_t pair, *lent;
	int err;

	if (m->suite == SUITE_PLAIN) {
		*slot = 0;
		return 0;
	}
	if (!may_take_key(r, s) || !handles_take(&s->keys, &pair))
		return bridge_shortage(r, SHORT_KEYS, -ENOSPC);
	bridge_touch(s, MEDIA_HANDLE_KEY, pair);
	lent = s->lent[pair];
	/* The worker reads a slot only after the command that announces it, so no lock is
	 * needed. */
	err = fill(&key[2 * pair], m, rtcp);
	if (!err && m->kdr) {
		err = lent_take(s, lent);
		if (!err)
			srtp_vault_fill(&key[2 * lent[0]], m);
	}
	set[0].id = set[1].media.id = 2 * pair;
	set[1].media.type = MEDIA_KEY_SET;
	key_cfg(&set[1].media.key, m, lent);
	err = err ? err : bridge_queue(r, s, set, 2);
	if (err) {
		secmem_wipe(&key[2 * pair], 2 * sizeof(*key));
		secmem_wipe(&key[2 * lent[0]], lent[0] ? sizeof(*key) : 0);
		lent_put(s, lent);
		handles_put(&s->keys, pair);
		return err == -ENOSPC ? bridge_shortage(r, SHORT_KEYS, err) : err;
	}
	*slot = 2 * pair;
	return 0;
}

int bridge_op_preauth_take(
	void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *m, uint8_t scheme)
{
	struct bridge *r = arg;
	struct bridge_site *s = &r->site[worker];
	struct xc_key *key = batch_runner_arena(s->w->runner)->key;
	uint32_t pair;
	int err;

	if (!may_take_key(r, s) || !handles_take(&s->keys, &pair))
		return bridge_shortage(r, SHORT_KEYS, -ENOSPC);
	/* It needs no command: the context's command names its slot, and engines do not use it. */
	_Static_assert(sizeof(struct preauth_key) <= sizeof(*key), "it fits into a slot");
	err = preauth_key_init(
		(struct preauth_key *)&key[2 * pair], (enum preauth_scheme)(scheme - 1), m);
	if (err) {
		secmem_wipe(&key[2 * pair], sizeof(*key));
		handles_put(&s->keys, pair);
		return err;
	}
	*slot = 2 * pair;
	return 0;
}

void bridge_op_key_release(void *arg, uint32_t worker, uint32_t slot)
{
	struct bridge *r = arg;
	struct bridge_site *s = &r->site[worker];
	struct worker_cmd del = {.kind = WORKER_MEDIA};
	uint32_t *lent = s->lent[slot / 2];

	if (slot == 0)
		return;
	del.media.type = MEDIA_KEY_DEL;
	del.media.id = slot;
	bridge_push_deletion(r, s, &del);
	/* After the master key's deletion, no key is derived into these slots any more. */
	for (uint32_t i = 0; i < MEDIA_EPOCHS && lent[i]; i++) {
		del.media.id = 2 * lent[i];
		bridge_push_deletion(r, s, &del);
		lent[i] = 0;
	}
}
