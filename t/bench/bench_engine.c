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
	if (o->e)
		o->ops->close(o->e);
	free(o);
}

static int ours_open(
	const struct engine_ops *ops, void **out, const struct load *l, char *err, size_t err_len)
{
	struct engine_config cfg = {
		.device = l->c.device, .kernel_dir = l->c.kernel_dir, .flags = l->c.flags};
	struct ours *o = calloc(1, sizeof(*o));
	int res;

	if (!o)
		return -ENOMEM;
	o->ops = ops;
	res = ops->open(&o->e, &cfg, err, err_len);
	if (!res)
		res = ops->queue_create(&o->q, o->e, &l->a);
	for (uint32_t slot = 0; slot < l->a.key_slots && !res; slot += 2)
		res = ops->key_changed(o->q, slot);
	if (!res && !ops->can(o->q, &l->a.key[2], &l->a.key[4])) {
		snprintf(err, err_len, "%s cannot do these suites", ops->name);
		res = -ENOTSUP;
	}
	if (res) {
		ours_close(o);
		return res;
	}
	*out = o;
	return 0;
}

static int serial_open(void **out, const struct load *l, char *err, size_t err_len)
{
	return ours_open(&engine_serial, out, l, err, err_len);
}

static int opencl_open(void **out, const struct load *l, char *err, size_t err_len)
{
	return ours_open(&engine_opencl, out, l, err, err_len);
}

static const char *ours_device(const void *p)
{
	const struct ours *o = p;

	return o->ops->device(o->e);
}

static bool ours_can(const struct bench_case *c)
{
	(void)c;
	return true;
}

static int ours_run(void *p, struct load *l)
{
	struct ours *o = p;
	struct batch b = {.job = l->a.job, .status = l->a.status, .n = l->c.batch};
	uint32_t bad = 0;

	if (o->ops->run(o->q, &b))
		return -EIO;
	for (uint32_t i = 0; i < b.n; i++)
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
