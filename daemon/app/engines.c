/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens engines (app/engines.h): compiles kernels and tests them on known answers, before any port
 * is open. */
#include "app/engines.h"

#include <errno.h>
#include <stdio.h>

#include "app/engine_probe.h"
#include "base/clock.h"
#include "base/log.h"
#include "batch/calibrate.h"
#include "batch/engine.h"
#include "batch/engines.h"

#define DEPTH 2u /* one batch is prepared, or completed, while the device processes the other */

/* Whether the operator named this device, so that the daemon must not start without it. */
static bool is_wanted(const struct options *o, uint32_t i)
{
	return !o->opencl_fallback && (o->engine == ENGINE_OPENCL || o->device[i].name[0]);
}

static struct engine_config device_config(const struct options *o, uint32_t i)
{
	return (struct engine_config){.device = o->device[i].name,
		.timeout_ms = o->opencl_timeout,
		/* A CPU gains nothing from several batches in flight, so it gets one, unless an
		 * option asks for more. Then it is treated like a device with its own memory. */
		.depth = o->batches_in_flight ? o->batches_in_flight : DEPTH,
		.flags = o->batches_in_flight > 1 ? ENGINE_OWN_MEMORY : 0};
}

static int device_open(
	struct engines *e, const struct options *o, uint32_t i, char *err, size_t err_len)
{
	struct engine_config cfg = device_config(o, i);
	struct batch_device *d = &e->device[e->devices];
	uint64_t start = clock_mono_ns();
	uint64_t ms;
	int res = engine_open_checked(&engine_opencl, &d->engine, &cfg, err, err_len);

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
	log_info("engine opencl: %s: compiled, and self-test passed, in %.1f s",
		engine_opencl.device(d->engine), (double)ms / 1000);
	return 0;
}

/* Logs the failure and returns 0 if the daemon may start without the device; else returns res. */
static int left_out(const struct options *o, uint32_t i, int res, char *err, size_t err_len)
{
	size_t len = strlen(err);

	if (!is_wanted(o, i)) {
		log_warn("not used: %s", err);
		return 0;
	}
	if (len < err_len)
		snprintf(err + len, err_len - len,
			". Set --opencl-fallback=yes to start without it");
	return res;
}

/* Tests all devices before this process calls the library: drivers fail in children of a process
 * that has used them. */
static int devices_probe(const struct options *o, bool *usable, char *err, size_t err_len)
{
	int res = 0;

	for (uint32_t i = 0; i < o->devices && !res; i++) {
		struct engine_config cfg = device_config(o, i);

		res = engine_probe(&engine_opencl, &cfg, o->opencl_start_timeout, err, err_len);
		usable[i] = !res;
		if (res)
			res = left_out(o, i, res, err, err_len);
	}
	return res;
}

int engines_start(struct engines *e, const struct options *o, char *err, size_t err_len)
{
	bool usable[OPTION_DEVICES_MAX] = {false};
	int res = engine_open_checked(
		&engine_serial, &e->serial, &(struct engine_config){.device = ""}, err, err_len);

	if (res)
		return res;
	e->depth = 1;
	log_info("engine serial: %s, self-test passed", engine_serial.device(e->serial));
	if (o->engine == ENGINE_SERIAL)
		return 0;
	log_info(
		"engine opencl: compiling kernels, no port is open yet (some seconds the first time, then cached)");
	res = devices_probe(o, usable, err, err_len);
	for (uint32_t i = 0; i < o->devices && !res; i++) {
		res = usable[i] ? device_open(e, o, i, err, err_len) : 0;
		if (res)
			res = left_out(o, i, res, err, err_len);
	}
	if (res)
		return res;
	if (e->devices == 0)
		log_warn("no OpenCL device: falling back to the serial engine");
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
		log_info("engine opencl: %s, weight %u: smallest batch it is used for%s: %s",
			d->ops->device(d->engine), d->weight,
			d->fixed_min ? " (as configured)"
				     : " (measured: ns per packet, device/serial)",
			line);
	}
}
