/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice of engine for a batch (batch/run.h). One runner belongs to one worker; it allocates only when created.
 * A device that fails, or leaves a job without a verdict, costs time and never a packet: the batch is run again
 * serially from the untouched input. After DEVICE_ERRORS_MAX failures in a row the device is left alone. */
#include "batch/run.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"
#include "batch/sample.h"

#define DEVICE_ERRORS_MAX 3u
#define DEVICE_NEVER      UINT32_MAX /* as device_min: the device is not worth a dispatch of any size */

/* Calibration: G.711 packets of 20 ms. */
enum { CAL_BODY = 160, CAL_ROUNDS = 9, CAL_MAX = 1024 };

struct batch_runner {
	const struct engine_ops *device_ops; /* NULL: none, or given up */
	struct engine_queue *device, *serial;
	const struct engine_ops *serial_ops;
	struct arena arena;
	uint32_t device_min;
	uint32_t errors_in_row;
	bool device_left; /* failed too often */
	/* For batches that are split; [slots] each. */
	struct xc_job *saved;      /* all the batch's jobs */
	struct xc_job *serial_job; /* those that the device cannot do */
	uint32_t *serial_status;
	uint32_t *device_at, *serial_at; /* where each came from */
	struct batch_counters counters;
};

static void count(uint64_t *counter, uint64_t add)
{
	__atomic_store_n(counter, *counter + add, __ATOMIC_RELAXED);
}

static void run_serial(struct batch_runner *r, struct batch *b)
{
	/* The serial engine gives every job a verdict; what it could not do did not authenticate. */
	if (r->serial_ops->run(r->serial, b) == 0)
		return;
	for (uint32_t i = 0; i < b->n; i++)
		b->status[i] = XC_BAD_TAG;
}

static bool all_done(const struct batch *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->status[i] != XC_OK && b->status[i] != XC_BAD_TAG)
			return false;
	return true;
}

static void device_failed(struct batch_runner *r, int err)
{
	count(&r->counters.device_errors, 1);
	if (++r->errors_in_row < DEVICE_ERRORS_MAX)
		return;
	r->device_left = true;
	log_err("engine %s failed %u times in a row (last: %s); its worker goes on with the serial engine",
		r->device_ops->name, r->errors_in_row, strerror(-err));
}

/* On the device, or serially if it fails. b's jobs are in the arena. */
static void run_device(struct batch_runner *r, struct batch *b)
{
	int err;

	for (uint32_t i = 0; i < b->n; i++)
		b->status[i] = XC_NOT_DONE;
	err = r->device_ops->run(r->device, b);
	if (!err && !all_done(b))
		err = -EIO;
	if (err) {
		device_failed(r, err);
		run_serial(r, b);
		return;
	}
	r->errors_in_row = 0;
	count(&r->counters.device_batches, 1);
	count(&r->counters.device_jobs, b->n);
}

/* Some jobs for the device, the rest serial. The device may only know jobs and statuses in the arena, so its share
 * moves to the front there and everything is put back afterwards. */
static void run_split(struct batch_runner *r, struct batch *b, uint32_t device_n)
{
	struct batch dev = {.job = b->job, .status = b->status, .n = device_n};
	struct batch ser = {.job = r->serial_job, .status = r->serial_status, .n = b->n - device_n};

	memcpy(r->saved, b->job, b->n * sizeof(*b->job));
	for (uint32_t i = 0; i < ser.n; i++)
		r->serial_job[i] = r->saved[r->serial_at[i]];
	for (uint32_t i = 0; i < device_n; i++)
		b->job[i] = r->saved[r->device_at[i]];
	run_device(r, &dev);
	run_serial(r, &ser);
	/* device_at[i] >= i, so going backwards overwrites no status that is still to be moved. */
	for (uint32_t i = device_n; i-- > 0;)
		b->status[r->device_at[i]] = b->status[i];
	for (uint32_t i = 0; i < ser.n; i++)
		b->status[r->serial_at[i]] = r->serial_status[i];
	memcpy(b->job, r->saved, b->n * sizeof(*b->job));
}

/* Which jobs the device can do; their number. */
static uint32_t share(struct batch_runner *r, const struct batch *b)
{
	const struct arena *a = &r->arena;
	uint32_t device_n = 0, serial_n = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct xc_job *j = &b->job[i];

		/* An unknown slot is for the serial engine, which refuses it. */
		if (j->rx_key < a->key_slots && j->tx_key < a->key_slots &&
			r->device_ops->can(r->device, &a->key[j->rx_key], &a->key[j->tx_key]))
			r->device_at[device_n++] = i;
		else
			r->serial_at[serial_n++] = i;
	}
	return device_n;
}

void batch_run(struct batch_runner *r, struct batch *b)
{
	uint64_t start = clock_mono_ns();
	uint32_t device_n = 0;

	if (b->n == 0)
		return;
	if (r->device_ops && !r->device_left && b->n >= r->device_min && b->n <= r->arena.slots)
		device_n = share(r, b);
	if (device_n == 0 || device_n < r->device_min)
		run_serial(r, b);
	else if (device_n == b->n)
		run_device(r, b);
	else
		run_split(r, b, device_n);
	count(&r->counters.batches, 1);
	count(&r->counters.jobs, b->n);
	count(&r->counters.engine_ns, clock_mono_ns() - start);
}

/* --- Calibration ------------------------------------------------------------------------------------------------- */

/* The fastest of some rounds; UINT64_MAX if it failed. */
static uint64_t best_ns(const struct engine_ops *ops, struct engine_queue *q, struct batch *b)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < CAL_ROUNDS; i++) {
		uint64_t start = clock_mono_ns(), took;

		for (uint32_t j = 0; j < b->n; j++)
			b->status[j] = XC_NOT_DONE;
		if (ops->run(q, b))
			return UINT64_MAX;
		took = clock_mono_ns() - start;
		for (uint32_t j = 0; j < b->n; j++)
			if (b->status[j] != XC_OK)
				return UINT64_MAX;
		/* The first round warms caches. */
		if (i > 0 && took < best)
			best = took;
	}
	return best;
}

/* Two pairs of real keys in slots 2 to 5, only while calibrating. */
static int cal_keys(struct batch_runner *r)
{
	int err = 0;

	for (uint32_t slot = 2; slot < 6; slot += 2) {
		struct srtp_master m;

		sample_master(&m, SUITE_AES_CM_128_80, slot);
		if (srtp_key_fill(&r->arena.key[slot], &m))
			err = -EIO;
		if (!err)
			err = batch_runner_key_changed(r, slot);
	}
	return err;
}

static void cal_packet(struct batch_runner *r, uint32_t i)
{
	struct sample s = {.rx_key = 2, .tx_key = 4, .hdr_len = 12, .body_len = CAL_BODY};

	s.rx_index = s.tx_index = s.seed = i;
	sample_make(&r->arena.job[i], &r->arena, i, &s);
}

/* The smallest batch from which on the device was faster, at two sizes in a row. */
static uint32_t calibrate(struct batch_runner *r)
{
	uint32_t max = min_u32(r->arena.slots, CAL_MAX), found = DEVICE_NEVER, made = 0;
	struct batch b = {.job = r->arena.job, .status = r->arena.status};

	if (r->arena.key_slots < 6 || cal_keys(r))
		return DEVICE_NEVER;
	for (b.n = 1; b.n <= max; b.n *= 2) {
		uint64_t dev, ser;

		for (; made < b.n; made++)
			cal_packet(r, made);
		dev = best_ns(r->device_ops, r->device, &b);
		ser = best_ns(r->serial_ops, r->serial, &b);
		if (dev >= ser)
			found = DEVICE_NEVER;
		else if (found == DEVICE_NEVER)
			found = b.n;
		else
			break;
	}
	for (uint32_t slot = 2; slot < 6; slot += 2)
		batch_runner_key_wipe(r, slot);
	secmem_wipe(r->arena.in, (size_t)made * ARENA_SLOT_LEN);
	secmem_wipe(r->arena.out, (size_t)made * ARENA_SLOT_LEN);
	secmem_wipe(r->arena.job, made * sizeof(*r->arena.job));
	secmem_wipe(r->arena.status, made * sizeof(*r->arena.status));
	return found;
}

/* --- Life -------------------------------------------------------------------------------------------------------- */

static int scratch_create(struct batch_runner *r)
{
	uint32_t n = r->arena.slots;

	r->saved = calloc(n, sizeof(*r->saved));
	r->serial_job = calloc(n, sizeof(*r->serial_job));
	r->serial_status = calloc(n, sizeof(*r->serial_status));
	r->device_at = calloc(n, sizeof(*r->device_at));
	r->serial_at = calloc(n, sizeof(*r->serial_at));
	return r->saved && r->serial_job && r->serial_status && r->device_at && r->serial_at
		? 0
		: -ENOMEM;
}

int batch_runner_create(struct batch_runner **out, const struct batch_runner_config *cfg)
{
	struct batch_runner *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->serial_ops = &engine_serial;
	r->device_ops = cfg->device_ops;
	err = arena_create(&r->arena, cfg->slots, cfg->key_slots);
	if (!err)
		err = scratch_create(r);
	if (!err)
		err = r->serial_ops->queue_create(&r->serial, cfg->serial, &r->arena);
	if (!err && r->device_ops)
		err = r->device_ops->queue_create(&r->device, cfg->device, &r->arena);
	if (err) {
		batch_runner_destroy(r);
		return err;
	}
	r->device_min = DEVICE_NEVER;
	if (r->device_ops)
		r->device_min = cfg->device_min ? cfg->device_min : calibrate(r);
	*out = r;
	return 0;
}

void batch_runner_destroy(struct batch_runner *r)
{
	if (!r)
		return;
	if (r->device)
		r->device_ops->queue_destroy(r->device);
	if (r->serial)
		r->serial_ops->queue_destroy(r->serial);
	free(r->saved);
	free(r->serial_job);
	free(r->serial_status);
	free(r->device_at);
	free(r->serial_at);
	arena_destroy(&r->arena);
	free(r);
}

struct arena *batch_runner_arena(struct batch_runner *r)
{
	return &r->arena;
}

uint32_t batch_runner_device_min(const struct batch_runner *r)
{
	return r->device_min;
}

int batch_runner_key_changed(struct batch_runner *r, uint32_t slot)
{
	int err = r->serial_ops->key_changed(r->serial, slot), dev;

	if (err || !r->device_ops || r->device_left)
		return err;
	/* A device that did not take a key would make nonsense of its packets: it is left alone from here on. */
	dev = r->device_ops->key_changed(r->device, slot);
	if (dev) {
		count(&r->counters.device_errors, 1);
		r->device_left = true;
		log_err("engine %s refused a key (%s); its worker goes on with the serial engine",
			r->device_ops->name, strerror(-dev));
	}
	return 0;
}

void batch_runner_key_wipe(struct batch_runner *r, uint32_t slot)
{
	if (slot < 2 || slot >= r->arena.key_slots || r->arena.key_slots - slot < 2)
		return;
	secmem_wipe(&r->arena.key[slot], 2 * sizeof(*r->arena.key));
	(void)r->serial_ops->key_changed(r->serial, slot);
	/* Also a device that failed still holds its copy. */
	if (r->device_ops)
		(void)r->device_ops->key_changed(r->device, slot);
}

const struct batch_counters *batch_runner_counters(const struct batch_runner *r)
{
	return &r->counters;
}
