/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine for tests (engine_mock.h). The daemon never opens it. */
#include "engine_mock.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "batch/engine.h"
#include "packet/arena.h"
#include "srtp/ref.h"

struct engine {
	struct mock_control control;
};

struct engine_queue {
	struct engine *e;
	const struct arena *arena;
	struct batch flight[ENGINE_DEPTH_MAX];
	uint32_t oldest, flying, looked;
	bool hangs;
};

struct mock_control *mock_control(struct engine *e)
{
	return &e->control;
}

static int mock_open(
	struct engine **out, const struct engine_config *cfg, char *err, size_t err_len)
{
	(void)cfg;
	(void)err;
	(void)err_len;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void mock_close(struct engine *e)
{
	free(e);
}

static const char *mock_device(const struct engine *e)
{
	(void)e;
	return "mock";
}

static int mock_queue_create(struct engine_queue **out, struct engine *e, const struct arena *arena)
{
	if (e->control.no_queue)
		return -EIO;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	**out = (struct engine_queue){.e = e, .arena = arena};
	return 0;
}

static void mock_queue_destroy(struct engine_queue *q)
{
	free(q);
}

static int mock_key_changed(struct engine_queue *q, uint32_t slot)
{
	(void)slot;
	q->e->control.keys_changed++;
	return 0;
}

static bool mock_can(const struct engine_queue *q, const struct xc_key *rx, const struct xc_key *tx)
{
	return !q->e->control.no_gcm ||
		(rx->cipher != XC_CIPHER_GCM && tx->cipher != XC_CIPHER_GCM);
}

static void job_run(
	const struct arena *a, const struct xc_job *j, uint32_t *status, enum mock_mode mode)
{
	uint32_t last = j->tx_tag_off > j->hdr_len + j->body_len ? j->tx_tag_off
								 : j->hdr_len + j->body_len - 1;

	if (mode == MOCK_IDLE) {
		*status = XC_OK;
		return;
	}
	*status = srtp_ref_job(j, a->key, a->in, a->out);
	if (mode == MOCK_LIE_TAG)
		*status = XC_OK;
	if (mode == MOCK_LIE_BYTES)
		a->out[j->out_off + last] ^= 1;
}

static int mock_run(struct engine_queue *q, struct batch *b)
{
	struct mock_control *c = &q->e->control;
	enum mock_mode mode = c->runs >= c->fail_after ? c->mode : MOCK_RIGHT;

	if (q->hangs)
		return -ETIMEDOUT;
	if (q->arena->batch_max && b->n > q->arena->batch_max)
		return -EINVAL;
	c->runs++;
	c->jobs += b->n;
	c->last_n = b->n;
	if (c->delay_us)
		usleep(c->delay_us);
	if (mode == MOCK_FAIL)
		return -EIO;
	if (mode == MOCK_HANG) {
		q->hangs = true;
		return -ETIMEDOUT;
	}
	for (uint32_t i = 0; i < b->n; i++)
		if (mode != MOCK_UNDONE || i % 2)
			job_run(q->arena, &b->job[i], &b->status[i], mode);
	return 0;
}

static uint32_t mock_depth(const struct engine *e)
{
	uint32_t n = e->control.depth;

	return n ? min_u32(n, ENGINE_DEPTH_MAX) : 1;
}

static int mock_submit(struct engine_queue *q, const struct batch *b)
{
	struct mock_control *c = &q->e->control;

	if (q->hangs)
		return -ETIMEDOUT;
	if (q->flying == mock_depth(q->e))
		return -EBUSY;
	q->flight[(q->oldest + q->flying++) % ENGINE_DEPTH_MAX] = *b;
	c->flying_most = q->flying > c->flying_most ? q->flying : c->flying_most;
	return 0;
}

static int mock_collect(struct engine_queue *q, uint64_t until_ns)
{
	struct batch b = q->flight[q->oldest];

	if (q->flying == 0)
		return -EINVAL;
	if (until_ns == 0 && q->looked++ < q->e->control.looks)
		return -EAGAIN;
	q->looked = 0;
	q->oldest = (q->oldest + 1) % ENGINE_DEPTH_MAX;
	q->flying--;
	return mock_run(q, &b);
}

const struct engine_ops engine_mock = {
	.name = "mock",
	.open = mock_open,
	.close = mock_close,
	.device = mock_device,
	.queue_create = mock_queue_create,
	.queue_destroy = mock_queue_destroy,
	.key_changed = mock_key_changed,
	.can = mock_can,
	.run = mock_run,
	.depth = mock_depth,
	.submit = mock_submit,
	.collect = mock_collect,
};
