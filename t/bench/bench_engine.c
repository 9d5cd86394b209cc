/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our engines in the benchmark, through the interface that the daemon uses. Also the daemon's
 * runner, which after a calibration gives each batch to the faster engine for its size. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "batch/calibrate.h"
#include "batch/engine.h"
#include "bench.h"
#include "packet/arena.h"

enum { CALIBRATED_SLOTS = 1024 }; /* the largest batch of a calibration */

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

/* An engine: opened once, and kept for all loads. */
struct kept {
	const struct engine_ops *ops;
	struct engine **e;
};

static int ours_open(struct kept k, void **out, struct bench_env *env, const struct load *l,
	char *err, size_t err_len)
{
	struct engine_config cfg = {.device = env->device,
		.kernel_dir = env->kernel_dir,
		.flags = env->flags,
		.depth = env->depth};
	struct ours *o = calloc(1, sizeof(*o));
	int res;

	if (!o)
		return -ENOMEM;
	o->ops = k.ops;
	res = *k.e ? 0 : k.ops->open(k.e, &cfg, err, err_len);
	o->e = *k.e;
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
	return ours_open((struct kept){&engine_serial, &env->serial}, out, env, l, err, err_len);
}

static int opencl_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	return ours_open((struct kept){&engine_opencl, &env->opencl}, out, env, l, err, err_len);
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

int bench_opencl_flights(void *p, struct load *l, unsigned batches)
{
	struct ours *o = p;
	const struct batch b = {.job = l->a.job, .status = l->a.status, .n = l->batch};
	unsigned depth = o->ops->depth(o->e), sent = 0, done = 0;
	uint32_t bad = 0;
	int err = 0;

	if (depth < 2)
		return -ENOTSUP;
	for (; done < batches && !err; done++) {
		for (; sent < batches && sent - done < depth && !err; sent++)
			err = o->ops->submit(o->q, &b);
		err = err ? err : o->ops->collect(o->q, UINT64_MAX);
	}
	for (uint32_t i = 0; i < b.n; i++)
		bad |= b.status[i];
	return err ? -EIO : bad ? -EBADMSG : 0;
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

/* --- As the daemon runs them ------------------------------------------------------------------ */

/* The runner has its own arena. Copying loaded packets to it is not timed. */
struct daemons {
	struct batch_runner *r;
	const struct batch_device *d;
	char name[512];
};

static void calibrated_close(void *p)
{
	struct daemons *d = p;

	batch_runner_destroy(d->r);
	free(d);
}

static int runner_open(
	struct daemons *d, struct bench_env *env, const struct load *l, uint32_t devices)
{
	struct batch_runner_config cfg = {.device = &env->calibrated,
		.devices = devices,
		.serial = env->serial,
		.slots = l->c.slots > CALIBRATED_SLOTS ? l->c.slots : CALIBRATED_SLOTS,
		.key_slots = l->a.key_slots};
	int res;

	env->calibrated.ops = &engine_opencl;
	env->calibrated.engine = env->opencl;
	env->calibrated.weight = 1;
	res = batch_runner_create(&d->r, &cfg);
	if (res)
		return res;
	d->d = &env->calibrated;
	memcpy(batch_runner_arena(d->r)->key + 2, l->a.key + 2,
		(l->a.key_slots - 2) * sizeof(struct xc_key));
	for (uint32_t slot = 2; slot < l->a.key_slots && !res; slot += 2)
		res = batch_runner_key_changed(d->r, slot);
	return res;
}

static int daemons_open(void **out, struct bench_env *env, const struct load *l, uint32_t devices,
	char *err, size_t err_len)
{
	struct engine_config cfg = {
		.device = env->device, .kernel_dir = env->kernel_dir, .flags = env->flags};
	struct daemons *d = calloc(1, sizeof(*d));
	int res = d ? 0 : -ENOMEM;

	if (!res && !env->serial)
		res = engine_serial.open(&env->serial, &cfg, err, err_len);
	if (!res && devices && !env->opencl)
		res = engine_opencl.open(&env->opencl, &cfg, err, err_len);
	if (!res)
		res = runner_open(d, env, l, devices);
	if (res) {
		if (d)
			calibrated_close(d);
		return res;
	}
	if (devices)
		batch_device_describe(d->name, sizeof(d->name), d->d);
	else
		snprintf(d->name, sizeof(d->name), "%s", engine_serial.device(env->serial));
	*out = d;
	return 0;
}

static int calibrated_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	return daemons_open(out, env, l, 1, err, err_len);
}

static int runner_serial_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	return daemons_open(out, env, l, 0, err, err_len);
}

static const char *calibrated_device(const void *p)
{
	return ((const struct daemons *)p)->name;
}

static void calibrated_take(void *p, const struct load *l, uint32_t n)
{
	struct daemons *d = p;
	struct arena *a = batch_runner_arena(d->r);

	memcpy(a->job, l->a.job, n * sizeof(*a->job));
	for (uint32_t i = 0; i < n; i++) {
		a->status[i] = XC_NOT_DONE;
		memcpy(a->in + a->job[i].in_off, l->a.in + a->job[i].in_off, l->stride);
	}
}

static const uint8_t *calibrated_results(const void *p)
{
	return batch_runner_arena(((const struct daemons *)p)->r)->out;
}

static int calibrated_run(void *p, struct load *l, uint32_t n)
{
	struct daemons *d = p;
	struct arena *a = batch_runner_arena(d->r);
	struct batch b = {.job = a->job, .status = a->status, .n = n};
	uint32_t bad = 0;

	(void)l;
	batch_run(d->r, &b);
	for (uint32_t i = 0; i < n; i++)
		bad |= b.status[i];
	return bad ? -EBADMSG : 0;
}

const struct bench_impl bench_impl_calibrated = {.name = "calibrated",
	.can = ours_can,
	.open = calibrated_open,
	.close = calibrated_close,
	.device = calibrated_device,
	.take = calibrated_take,
	.results = calibrated_results,
	.run = calibrated_run};

/* A daemon without a device. The difference to the calibrated runner is the cost and gain of the
 * choice of engine. */
const struct bench_impl bench_impl_runner_serial = {.name = "runner-serial",
	.can = ours_can,
	.open = runner_serial_open,
	.close = calibrated_close,
	.device = calibrated_device,
	.take = calibrated_take,
	.results = calibrated_results,
	.run = calibrated_run};

/* The same at another place in memory. A difference between two figures means something only if it
 * exceeds this one. */
const struct bench_impl bench_impl_runner_again = {.name = "runner-again",
	.can = ours_can,
	.open = runner_serial_open,
	.close = calibrated_close,
	.device = calibrated_device,
	.take = calibrated_take,
	.results = calibrated_results,
	.run = calibrated_run};
