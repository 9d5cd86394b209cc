/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our own engines in the benchmark, through the interface that the daemon uses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

struct ours {
	const struct engine_ops *ops;
	struct engine *e;
	struct engine_queue *q;
};

static void ours_close(void *p)
{
	struct ours *o = p;

	if (o->q)
		o->ops->queue_destroy(o->q);
	free(o);
}

static int queue_open(struct ours *o, const struct load *l, char *err, size_t err_len)
{
	int res = o->ops->queue_create(&o->q, o->e, &l->a);

	for (uint32_t slot = 2; slot < l->a.key_slots && !res; slot += 2)
		res = o->ops->key_changed(o->q, slot);
	for (uint32_t i = 0; i < l->c.streams && !res; i++) {
		const struct bench_class *c = load_class(l, i);

		if (o->ops->can(o->q, &l->a.key[2 + 4 * i], &l->a.key[4 + 4 * i]))
			continue;
		snprintf(err, err_len, "the engine cannot do \"%s\" to \"%s\" yet", c->rx->name,
			c->tx->name);
		res = -ENOTSUP;
	}
	return res;
}

static int ours_open(const struct engine_ops *ops, struct engine **e, void **out,
	struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	struct engine_config cfg = {
		.device = env->device, .kernel_dir = env->kernel_dir, .flags = env->flags};
	struct ours *o = calloc(1, sizeof(*o));
	int res;

	if (!o)
		return -ENOMEM;
	o->ops = ops;
	res = *e ? 0 : ops->open(e, &cfg, err, err_len);
	o->e = *e;
	if (!res)
		res = queue_open(o, l, err, err_len);
	if (res) {
		ours_close(o);
		return res;
	}
	*out = o;
	return 0;
}

static int serial_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	return ours_open(&engine_serial, &env->serial, out, env, l, err, err_len);
}

static int opencl_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	return ours_open(&engine_opencl, &env->opencl, out, env, l, err, err_len);
}

static const char *ours_device(const void *p)
{
	const struct ours *o = p;

	return o->ops->device(o->e);
}

static bool ours_can(const struct srtp_suite *s)
{
	(void)s;
	return true;
}

static int ours_run(void *p, struct load *l, uint32_t n)
{
	struct ours *o = p;
	struct batch b = {.job = l->a.job, .status = l->a.status, .n = n};
	uint32_t bad = 0;

	if (o->ops->run(o->q, &b))
		return -EIO;
	for (uint32_t i = 0; i < n; i++)
		bad |= b.status[i];
	return bad ? -EBADMSG : 0;
}

const struct bench_impl bench_impl_serial = {.name = "serial",
	.can = ours_can,
	.open = serial_open,
	.close = ours_close,
	.device = ours_device,
	.run = ours_run};

const struct bench_impl bench_impl_opencl = {.name = "opencl",
	.can = ours_can,
	.open = opencl_open,
	.close = ours_close,
	.device = ours_device,
	.run = ours_run};
