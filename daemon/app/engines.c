/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening engines (app/engines.h): kernels are compiled and tried on known answers here, before any port is open. */
#include "app/engines.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

#define DEPTH 2u /* one batch is made ready, or taken back, while the device works on the other */

static int open_checked(const struct engine_ops *ops, struct engine **out,
	const struct engine_config *cfg, char *err, size_t err_len)
{
	int res;

	err[0] = 0;
	res = ops->open(out, cfg, err, err_len);
	if (!res) {
		res = batch_selftest(ops, *out, err, err_len);
		if (res) {
			ops->close(*out);
			*out = NULL;
		}
	}
	if (res && !err[0])
		snprintf(err, err_len, "%s: %s", ops->name, strerror(-res));
	return res;
}

static int device_open(
	struct engines *e, const struct options *o, uint32_t i, char *err, size_t err_len)
{
	struct engine_config cfg = {.device = o->device[i].name,
		.timeout_ms = o->opencl_timeout,
		/* A processor has nothing to overlap, and takes one; unless told, and then as if it had memory of its own. */
		.depth = o->batches_in_flight ? o->batches_in_flight : DEPTH,
		.flags = o->batches_in_flight > 1 ? ENGINE_OWN_MEMORY : 0};
	struct batch_device *d = &e->device[e->devices];
	uint64_t start = clock_mono_ns();
	uint64_t ms;
	int res = open_checked(&engine_opencl, &d->engine, &cfg, err, err_len);

	if (res)
		return res;
	ms = (clock_mono_ns() - start) / 1000000;
	e->compile_ms += (uint32_t)ms;
	d->ops = &engine_opencl;
	if (d->ops->depth(d->engine) > e->depth)
		e->depth = d->ops->depth(d->engine);
	d->weight = o->device[i].weight;
	d->fixed_min = o->opencl_min[i];
	e->devices++;
	log_info("engine opencl: %s: compiled and tried on known answers in %.1f s",
		engine_opencl.device(d->engine), (double)ms / 1000);
	return 0;
}

int engines_start(struct engines *e, const struct options *o, char *err, size_t err_len)
{
	int res = open_checked(
		&engine_serial, &e->serial, &(struct engine_config){.device = ""}, err, err_len);

	if (res)
		return res;
	e->depth = 1;
	log_info("engine serial: %s, known answers are right", engine_serial.device(e->serial));
	if (o->engine == ENGINE_SERIAL)
		return 0;
	log_info(
		"engine opencl: compiling kernels, no port is open yet (some seconds the first time, then cached)");
	for (uint32_t i = 0; i < o->devices; i++) {
		res = device_open(e, o, i, err, err_len);
		if (res && o->engine == ENGINE_OPENCL)
			return res;
		if (res)
			log_warn("left out: %s", err);
	}
	if (e->devices == 0)
		log_warn("no OpenCL device, ciphering packet by packet on the processor");
	err[0] = 0;
	return 0;
}

void engines_stop(struct engines *e)
{
	for (uint32_t i = 0; i < e->devices; i++)
		e->device[i].ops->close(e->device[i].engine);
	if (e->serial)
		engine_serial.close(e->serial);
}

void engines_log(const struct engines *e)
{
	for (uint32_t i = 0; i < e->devices; i++) {
		const struct batch_device *d = &e->device[i];
		char line[512];

		batch_device_describe(line, sizeof(line), d);
		log_info(
			"engine opencl: %s, weight %u: packets in a batch from which on it is used%s: %s",
			d->ops->device(d->engine), d->weight,
			d->fixed_min ? " (as configured)"
				     : " (measured: ns per packet, device/serial)",
			line);
	}
}
