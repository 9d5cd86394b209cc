/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice of engine for a batch (batch/run.h). Each worker owns one runner, which allocates only
 * at creation. A device that fails, or leaves a job without a verdict, costs time but no packet:
 * the serial engine runs the batch again from the unchanged input. After DEVICE_ERRORS_MAX failures
 * in a row, or at once if it hangs, the device is lost for all workers, and one log line says so.
 */
#include "batch/run.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/secmem.h"
#include "batch/calibrate.h"
#include "batch/engine.h"
#include "packet/arena.h"

#define DEVICE_ERRORS_MAX 3u
/* Reading the clock twice costs a tenth of a packet, so only every TIMED_EVERY-th small serial
 * batch is timed. */
#define TIMED_FROM  16u
#define TIMED_EVERY 16u

/* Engine requirements of a key slot, recorded when it changes, so that choosing an engine reads no
 * slots. */
struct slot_note {
	uint8_t can;  /* a bit for each device */
	uint8_t kind; /* a bit for each enum batch_class; none = CM, NULL or plain */
	bool odd;     /* a key that some device does not support, or that has a kind */
};

struct device {
	struct batch_device *shared;
	struct engine_queue *q;
	uint32_t depth; /* batches it accepts at once */
	int64_t turn;   /* smooth weighted round robin */
	uint32_t errors_in_row;
	struct batch_device_counters counters;
};

/* A batch in flight. */
struct flight {
	struct batch b;
	struct device *d;  /* NULL: serial */
	uint32_t device_n; /* number of jobs for the device; if less than b.n, the batch is split */
	bool flying;       /* submitted, and not collected */
	bool whole;        /* the device processed them */
	bool clock;
	uint64_t ns, device_ns; /* time spent on it */
};

struct batch_runner {
	struct device device[BATCH_DEVICES_MAX];
	uint32_t devices;
	const struct engine_ops *serial_ops;
	struct engine_queue *serial;
	struct arena arena;
	struct slot_note *note; /* [key_slots] */
	/* number of such slots; 0: batches need no survey */
	uint32_t odd;
	uint32_t least;                         /* smallest batch for which any device pays */
	uint32_t untimed, untimed_jobs;         /* batches and jobs since the last timed one */
	struct flight flight[ENGINE_DEPTH_MAX]; /* [depth], a ring */
	uint32_t depth, oldest, flying;
	/* For split batches. [slots] each; a batch uses the part that corresponds to its place in
	 * the arena's jobs. */
	struct xc_job *saved;      /* all the batch's jobs */
	struct xc_job *serial_job; /* those the device does not support */
	uint32_t *serial_status;
	uint32_t *device_at, *serial_at; /* original position of each job */
	struct batch_counters counters;
};

static void count(uint64_t *counter, uint64_t add)
{
	__atomic_store_n(counter, *counter + add, __ATOMIC_RELAXED);
}

static bool lost(const struct device *d)
{
	return atomic_load_explicit(&d->shared->lost, memory_order_relaxed);
}

static const char *device_name(const struct device *d)
{
	return d->shared->ops->device(d->shared->engine);
}

static void run_serial(struct batch_runner *r, struct batch *b)
{
	/* The serial engine gives every job a verdict. A job it could not process did not
	 * authenticate. */
	if (r->serial_ops->run(r->serial, b) == 0)
		return;
	for (uint32_t i = 0; i < b->n; i++)
		b->status[i] = XC_BAD_TAG;
}

static bool all_done(const struct batch *b)
{
	uint32_t open = 0;

	for (uint32_t i = 0; i < b->n; i++)
		open |= b->status[i] != XC_OK && b->status[i] != XC_BAD_TAG;
	return !open;
}

static void device_lose(struct batch_runner *r, struct device *d, const char *why)
{
	uint32_t left = 0;

	if (atomic_exchange(&d->shared->lost, true))
		return; /* another worker was first and has logged it */
	for (uint32_t i = 0; i < r->devices; i++)
		left += !lost(&r->device[i]);
	log_err("device lost: %s: %s. Its batches go to %s. Packets that waited for it longer than --overload-age allows are dropped, and counted as overload. Restart xcipherd when the device works again",
		device_name(d), why,
		left ? "the other devices" : "the serial engine, which costs more processor time");
}

static void device_failed(struct batch_runner *r, struct device *d, int err)
{
	char why[128];

	count(&r->counters.device_errors, 1);
	count(&d->counters.errors, 1);
	d->errors_in_row++;
	if (err == -ETIMEDOUT)
		device_lose(r, d, "it hangs");
	else if (d->errors_in_row >= DEVICE_ERRORS_MAX) {
		snprintf(why, sizeof(why), "it failed %u times in a row (last: %s)",
			d->errors_in_row, strerror(-err));
		device_lose(r, d, why);
	}
}

/* The device's share of the flight: the first device_n jobs. */
static struct batch share_of(const struct flight *f)
{
	return (struct batch){.job = f->b.job, .status = f->b.status, .n = f->device_n};
}

/* The result of the device's share. If it failed, the share is run serially. */
static void device_ended(struct batch_runner *r, struct flight *f, int err)
{
	struct batch dev = share_of(f);
	struct device *d = f->d;

	f->flying = false;
	if (!err && !all_done(&dev))
		err = -EIO;
	if (err) {
		device_failed(r, d, err);
		run_serial(r, &dev);
		return;
	}
	d->errors_in_row = 0;
	f->whole = true;
	count(&r->counters.device_batches, 1);
	count(&r->counters.device_jobs, dev.n);
	count(&d->counters.batches, 1);
	count(&d->counters.jobs, dev.n);
}

/* Starts the device's share. A device that takes one batch at a time has finished it on return. */
static void device_start(struct batch_runner *r, struct flight *f)
{
	const struct engine_ops *ops = f->d->shared->ops;
	struct batch dev = share_of(f);
	int err;

	for (uint32_t i = 0; i < dev.n; i++)
		dev.status[i] = XC_NOT_DONE;
	if (f->d->depth < 2) {
		device_ended(r, f, ops->run(f->d->q, &dev));
		return;
	}
	err = ops->submit(f->d->q, &dev);
	if (err) {
		device_ended(r, f, err);
		return;
	}
	f->flying = true;
	count(&r->counters.overlapped, r->flying && r->flight[r->oldest].flying);
}

static uint32_t place(const struct batch_runner *r, const struct flight *f)
{
	return (uint32_t)(f->b.job - r->arena.job);
}

/* Some jobs go to the device, the others run serially. The device may only access jobs and statuses
 * in the arena. So its share moves to the front there, and everything moves back when it is done.
 */
static void split_start(struct batch_runner *r, struct flight *f)
{
	uint32_t at = place(r, f), serial_n = f->b.n - f->device_n;
	struct batch ser = {
		.job = r->serial_job + at, .status = r->serial_status + at, .n = serial_n};
	uint64_t start;

	memcpy(r->saved + at, f->b.job, f->b.n * sizeof(*f->b.job));
	for (uint32_t i = 0; i < serial_n; i++)
		ser.job[i] = r->saved[at + r->serial_at[at + i]];
	for (uint32_t i = 0; i < f->device_n; i++)
		f->b.job[i] = r->saved[at + r->device_at[at + i]];
	start = clock_mono_ns();
	device_start(r, f);
	f->device_ns += clock_mono_ns() - start;
	run_serial(r, &ser);
}

static void split_end(struct batch_runner *r, struct flight *f)
{
	const uint32_t at = place(r, f), *device_at = r->device_at + at;
	uint32_t *status = f->b.status;

	/* device_at[i] >= i: going backwards overwrites no status that still has to move. */
	for (uint32_t i = f->device_n; i-- > 0;)
		status[device_at[i]] = status[i];
	for (uint32_t i = 0; i < f->b.n - f->device_n; i++)
		status[r->serial_at[at + i]] = r->serial_status[at + i];
	memcpy(f->b.job, r->saved + at, f->b.n * sizeof(*f->b.job));
}

/* --- Choice ----------------------------------------------------------------------------------- */

static struct slot_note job_note(const struct batch_runner *r, const struct xc_job *j)
{
	const struct slot_note *rx, *tx;

	/* Devices do not support blocks. The serial engine refuses unknown slots. */
	if (XC_JOB_HAS_BLOCK(j->flags) || j->rx_key >= r->arena.key_slots ||
		j->tx_key >= r->arena.key_slots)
		return (struct slot_note){0};
	rx = &r->note[j->rx_key];
	tx = &r->note[j->tx_key];
	return (struct slot_note){.can = rx->can & tx->can, .kind = rx->kind | tx->kind};
}

/* The common properties of the jobs that device d supports (all jobs for d < 0). Returns their
 * number. */
static uint32_t survey(
	const struct batch_runner *r, const struct batch *b, int d, struct slot_note *sum)
{
	uint32_t n = 0;

	*sum = (struct slot_note){.can = 0xff};
	for (uint32_t i = 0; i < b->n; i++) {
		struct slot_note note = job_note(r, &b->job[i]);

		if (d >= 0 && !(note.can >> d & 1))
			continue;
		n++;
		sum->can &= note.can;
		sum->kind |= note.kind ? note.kind : 1u << BATCH_CM;
	}
	return n;
}

static enum batch_class class_of(uint8_t classes)
{
	for (int kind = 0; kind < BATCH_MIXED; kind++)
		if (classes == 1u << kind)
			return (enum batch_class)kind;
	return BATCH_MIXED;
}

/* Chooses among the devices that are faster than the serial engine for this batch. Returns -1 if
 * there is none. *jobs: number of jobs that the device supports. Smooth weighted round robin: each
 * candidate gains its weight; the chosen one pays the sum. */
static int choose(struct batch_runner *r, const struct batch *b, uint32_t *jobs)
{
	uint32_t n[BATCH_DEVICES_MAX];
	/* The usual case. Slots without a key do not matter: any engine refuses them. */
	struct slot_note all = {.can = 0xff, .kind = 1u << BATCH_CM}, own;
	int64_t sum = 0;
	int best = -1;

	if (b->n > r->arena.slots)
		return -1;
	if (r->odd || b->blocks)
		(void)survey(r, b, -1, &all);
	for (uint32_t i = 0; i < r->devices; i++) {
		struct device *d = &r->device[i];

		own = all;
		n[i] = b->n;
		if (!(all.can >> i & 1))
			n[i] = survey(r, b, (int)i, &own);
		if (lost(d) || n[i] == 0 || n[i] < d->shared->min[class_of(own.kind)])
			continue;
		d->turn += d->shared->weight;
		sum += d->shared->weight;
		if (best < 0 || d->turn > r->device[best].turn)
			best = (int)i;
	}
	if (best >= 0) {
		r->device[best].turn -= sum;
		*jobs = n[best];
	}
	return best;
}

/* Lists which jobs the device supports, and which not. */
static void share(struct batch_runner *r, const struct flight *f, int d)
{
	uint32_t at = place(r, f), device_n = at, serial_n = at;

	for (uint32_t i = 0; i < f->b.n; i++)
		if (job_note(r, &f->b.job[i]).can >> d & 1)
			r->device_at[device_n++] = i;
		else
			r->serial_at[serial_n++] = i;
}

static bool timed(const struct batch_runner *r, uint32_t n)
{
	return n >= TIMED_FROM || r->untimed % TIMED_EVERY == 0;
}

static void untimed(struct batch_runner *r, uint32_t n)
{
	r->untimed++;
	r->untimed_jobs += n;
}

/* A timed small batch represents those before it that were not timed. */
static void took(struct batch_runner *r, const struct flight *f)
{
	uint64_t ns = f->ns;

	if (f->b.n < TIMED_FROM && !f->d) {
		ns = ns * (f->b.n + r->untimed_jobs) / f->b.n;
		r->untimed = 1;
		r->untimed_jobs = 0;
	}
	count(&r->counters.engine_ns, ns);
}

static void flight_start(struct batch_runner *r, struct flight *f, const struct batch *b)
{
	uint64_t start;
	int d;

	*f = (struct flight){.b = *b};
	if (b->n == 0)
		return;
	d = b->n < r->least ? -1 : choose(r, b, &f->device_n);
	f->clock = d >= 0 || timed(r, b->n);
	start = f->clock ? clock_mono_ns() : 0;
	if (d < 0) {
		run_serial(r, &f->b);
	} else {
		f->d = &r->device[d];
		if (f->device_n < b->n) {
			share(r, f, d);
			split_start(r, f);
		} else {
			device_start(r, f);
		}
	}
	if (f->clock)
		f->ns = clock_mono_ns() - start;
}

/* Called when the device's share was collected, with its result and the time spent. */
static void flight_landed(struct batch_runner *r, struct flight *f, int err, uint64_t start)
{
	uint64_t took;

	device_ended(r, f, err);
	took = clock_mono_ns() - start;
	f->ns += took;
	f->device_ns += took;
}

static void flight_end(struct batch_runner *r, struct flight *f)
{
	if (f->b.n == 0)
		return;
	if (f->d && f->device_n < f->b.n)
		split_end(r, f);
	count(&r->counters.batches, 1);
	count(&r->counters.jobs, f->b.n);
	if (!f->clock) {
		untimed(r, f->b.n);
		return;
	}
	took(r, f);
	if (f->whole)
		count(&f->d->counters.ns, f->device_n < f->b.n ? f->device_ns : f->ns);
}

void batch_submit(struct batch_runner *r, const struct batch *b)
{
	assert(r->flying < r->depth);
	flight_start(r, &r->flight[(r->oldest + r->flying) % r->depth], b);
	r->flying++;
}

bool batch_done(struct batch_runner *r, uint64_t until_ns)
{
	struct flight *f = &r->flight[r->oldest];
	uint64_t start;
	int err;

	if (r->flying == 0 || !f->flying)
		return true;
	start = clock_mono_ns();
	err = f->d->shared->ops->collect(f->d->q, until_ns);
	if (err == -EAGAIN)
		return false;
	flight_landed(r, f, err, start);
	return true;
}

void batch_finish(struct batch_runner *r)
{
	if (r->flying == 0)
		return;
	while (!batch_done(r, UINT64_MAX))
		;
	flight_end(r, &r->flight[r->oldest]);
	r->oldest = (r->oldest + 1) % r->depth;
	r->flying--;
}

uint32_t batch_flying(const struct batch_runner *r)
{
	return r->flying;
}

void batch_run_late(struct batch_runner *r, struct xc_job *j, uint32_t *status, uint32_t n)
{
	struct batch b = {.job = j, .status = status, .n = n, .in_place = true};

	for (uint32_t i = 0; i < n; i++)
		j[i].in_off = j[i].out_off;
	run_serial(r, &b);
}

void batch_run(struct batch_runner *r, struct batch *b)
{
	assert(r->flying == 0);
	batch_submit(r, b);
	batch_finish(r);
}

/* --- Keys ------------------------------------------------------------------------------------- */

static uint8_t key_class(const struct xc_key *k)
{
	return k->cipher == XC_CIPHER_GCM       ? 1u << BATCH_GCM
		: k->cipher == XC_CIPHER_AES_F8 ? 1u << BATCH_F8
						: 0;
}

static void note_keys(struct batch_runner *r, uint32_t slot)
{
	for (uint32_t s = slot; s < slot + 2; s++) {
		const struct xc_key *k = &r->arena.key[s], *plain = &r->arena.key[s & 1];
		struct slot_note note = {.kind = key_class(k)};

		/* An engine supports a pair of keys if it supports each of them. */
		for (uint32_t i = 0; i < r->devices; i++)
			if (r->device[i].shared->ops->can(r->device[i].q, k, plain) &&
				r->device[i].shared->ops->can(r->device[i].q, plain, k))
				note.can |= (uint8_t)(1u << i);
		note.odd = k->valid == XC_KEY_VALID &&
			(note.kind || note.can != (1u << r->devices) - 1);
		r->odd = r->odd - r->note[s].odd + note.odd;
		r->note[s] = note;
	}
}

int batch_runner_key_changed(struct batch_runner *r, uint32_t slot)
{
	int err = r->serial_ops->key_changed(r->serial, slot);

	if (err)
		return err;
	for (uint32_t i = 0; i < r->devices; i++) {
		struct device *d = &r->device[i];
		int dev = lost(d) ? 0 : d->shared->ops->key_changed(d->q, slot);

		/* A device that rejected a key would corrupt its packets. */
		if (dev) {
			count(&r->counters.device_errors, 1);
			count(&d->counters.errors, 1);
			device_lose(r, d, "it refused a key");
		}
	}
	note_keys(r, slot);
	return 0;
}

void batch_runner_key_wipe(struct batch_runner *r, uint32_t slot)
{
	if (slot < 2 || slot >= r->arena.key_slots || r->arena.key_slots - slot < 2)
		return;
	secmem_wipe(&r->arena.key[slot], 2 * sizeof(*r->arena.key));
	(void)r->serial_ops->key_changed(r->serial, slot);
	/* A failed device still holds its copy. */
	for (uint32_t i = 0; i < r->devices; i++)
		(void)r->device[i].shared->ops->key_changed(r->device[i].q, slot);
	note_keys(r, slot);
}

/* --- Life ------------------------------------------------------------------------------------- */

static int scratch_create(struct batch_runner *r)
{
	uint32_t n = r->arena.slots;

	r->saved = lines_alloc(n, sizeof(*r->saved));
	r->serial_job = lines_alloc(n, sizeof(*r->serial_job));
	r->serial_status = lines_alloc(n, sizeof(*r->serial_status));
	r->device_at = lines_alloc(n, sizeof(*r->device_at));
	r->serial_at = lines_alloc(n, sizeof(*r->serial_at));
	r->note = calloc(r->arena.key_slots, sizeof(*r->note));
	return r->saved && r->serial_job && r->serial_status && r->device_at && r->serial_at &&
			r->note
		? 0
		: -ENOMEM;
}

static int calibrate(void *arg)
{
	batch_calibrate(arg);
	return 0;
}

/* Measures a device, or takes fixed sizes. Only the first runner does. */
static void device_measure(struct batch_runner *r, struct device *d)
{
	struct calibration c = {.device = d->shared,
		.device_queue = d->q,
		.serial_queue = r->serial,
		.serial_ops = r->serial_ops,
		.arena = &r->arena};

	if (d->shared->measured)
		return;
	d->shared->measured = true;
	if (!d->shared->fixed_min)
		(void)caps_run(caps_here(0), calibrate, &c);
	for (int kind = 0; kind < BATCH_CLASSES && d->shared->fixed_min; kind++)
		d->shared->min[kind] = d->shared->fixed_min;
}

struct opening {
	struct device *d;
	struct arena *arena;
};

static int device_queue(void *arg)
{
	const struct opening *o = arg;

	return o->d->shared->ops->queue_create(&o->d->q, o->d->shared->engine, o->arena);
}

/* Drivers create threads with a queue, and with its first batches. These keep the capabilities of
 * their creator. */
static int devices_create(struct batch_runner *r, const struct batch_runner_config *cfg)
{
	int err = cfg->devices > BATCH_DEVICES_MAX ? -EINVAL : 0;

	for (uint32_t i = 0; i < cfg->devices && !err; i++) {
		struct device *d = &r->device[i];

		d->shared = &cfg->device[i];
		err = caps_run(caps_here(0), device_queue, &(struct opening){d, &r->arena});
		if (err)
			break;
		r->devices++;
		d->depth = d->shared->ops->depth ? d->shared->ops->depth(d->shared->engine) : 1;
		/* A device with fewer batches in flight than configured is waited for each time. */
		if (d->depth < r->depth)
			d->depth = 1;
	}
	return err;
}

int batch_runner_create(struct batch_runner **out, const struct batch_runner_config *cfg)
{
	struct batch_runner *r = lines_alloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->serial_ops = &engine_serial;
	r->depth = cfg->depth ? min_u32(cfg->depth, ENGINE_DEPTH_MAX) : 1;
	err = arena_create(&r->arena, cfg->slots, cfg->key_slots);
	r->arena.batch_max = cfg->batch_max;
	if (!err)
		err = scratch_create(r);
	if (!err)
		err = r->serial_ops->queue_create(&r->serial, cfg->serial, &r->arena);
	if (!err)
		err = devices_create(r, cfg);
	if (err) {
		batch_runner_destroy(r);
		return err;
	}
	r->least = BATCH_NEVER;
	for (uint32_t i = 0; i < r->devices; i++) {
		device_measure(r, &r->device[i]);
		for (int kind = 0; kind < BATCH_CLASSES; kind++)
			r->least = min_u32(r->least, r->device[i].shared->min[kind]);
	}
	note_keys(r, 0);
	*out = r;
	return 0;
}

void batch_runner_destroy(struct batch_runner *r)
{
	if (!r)
		return;
	while (r->flying)
		batch_finish(r);
	for (uint32_t i = 0; i < r->devices; i++)
		r->device[i].shared->ops->queue_destroy(r->device[i].q);
	if (r->serial)
		r->serial_ops->queue_destroy(r->serial);
	free(r->saved);
	free(r->serial_job);
	free(r->serial_status);
	free(r->device_at);
	free(r->serial_at);
	free(r->note);
	arena_destroy(&r->arena);
	free(r);
}

struct arena *batch_runner_arena(struct batch_runner *r)
{
	return &r->arena;
}

const struct batch_counters *batch_runner_counters(const struct batch_runner *r)
{
	return &r->counters;
}

const struct batch_device_counters *batch_runner_device_counters(
	const struct batch_runner *r, uint32_t device)
{
	return &r->device[device].counters;
}
