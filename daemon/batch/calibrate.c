/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calibration (batch/calibrate.h): G.711 packets of 20 ms under the keys of every class, in batches
 * of 1 to 1,024. Small batches run with cold caches, as the kernel's network stack leaves them
 * between a worker's batches. Machines are noisy: both engines alternate, the median of the rounds'
 * ratios decides, a win must be clear, and a loss above a win is measured again. A device is used
 * from the smallest size above which it never lost. Control thread only. */
#include "batch/calibrate.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "batch/engine.h"
#include "batch/sample.h"
#include "packet/arena.h"

enum { LINE = 64, BODY = 160, ROUNDS = 9, ROUNDS_LARGE = 5, LARGE = 256, AGAIN = 2 };
#define CLEAR_WIN    0.95       /* fraction of the serial engine's time */
#define COLD_LEN     (4u << 20) /* exceeds the caches of one core */
#define COLD_BATCH   16u        /* packets: larger batches warm the caches themselves */
#define ROUND_MAX_NS 50000000u  /* a device this slow is not measured again */

const char *const batch_class_name[BATCH_CLASSES] = {
	[BATCH_CM] = "AES-CM", [BATCH_GCM] = "GCM", [BATCH_F8] = "F8", [BATCH_MIXED] = "mixed"};

/* Suites of the first three classes. The class mixed uses all of them in turn. */
static const enum srtp_suite_id suites[] = {
	SUITE_AES_CM_128_80, SUITE_AEAD_AES_128_GCM, SUITE_F8_128_80};
enum { PURE = ARRAY_LEN(suites), STREAMS_MAX = 64 };

/* A stream has two slot pairs. */
static uint32_t rx_slot(const struct calibration *c, uint32_t suite, uint32_t stream)
{
	return 2 + 4 * (suite * c->streams + stream % c->streams);
}

/* Random keys, used only while calibrating. */
static int keys(const struct calibration *c, bool make)
{
	uint32_t end = rx_slot(c, PURE, 0);
	int err = 0;

	for (uint32_t slot = 2; slot < end; slot += 2) {
		struct srtp_master m;

		if (make) {
			sample_master(&m, suites[(slot - 2) / 4 / c->streams], slot);
			err |= srtp_key_fill(&c->arena->key[slot], &m);
			secmem_wipe(&m, sizeof(m));
		} else {
			secmem_wipe(&c->arena->key[slot], 2 * sizeof(*c->arena->key));
		}
		err |= c->serial_ops->key_changed(c->serial_queue, slot);
		err |= c->device->ops->key_changed(c->device_queue, slot);
	}
	return err;
}

static bool device_can(const struct calibration *c, uint32_t suite)
{
	const struct xc_key *k = c->arena->key + rx_slot(c, suite, 0);

	return c->device->ops->can(c->device_queue, k, k + 2);
}

/* The suites that packets of this class use in turn. Returns their number. */
static uint32_t class_suites(const struct calibration *c, enum batch_class kind, uint32_t *out)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < PURE; s++)
		if ((kind == BATCH_MIXED || s == (uint32_t)kind) && device_can(c, s))
			out[n++] = s;
	return n;
}

static void packet(const struct calibration *c, uint32_t i, uint32_t suite)
{
	struct sample s = {.rx_key = rx_slot(c, suite, i),
		.tx_key = rx_slot(c, suite, i) + 2,
		.hdr_len = 12,
		.body_len = BODY};

	s.rx_index = s.tx_index = s.seed = i;
	sample_make(&c->job[i], c->arena, i, &s);
}

/* Prepares the next n packets with cold keys: each stream recurs late, and the caches hold other
 * memory than an engine's code, keys and tables. Jobs and packets are cached, as prepare and
 * steering leave them. */
static void next_take(struct calibration *c, const struct batch *b)
{
	const volatile uint8_t *packets = c->arena->in;

	if (c->next + b->n > c->made)
		c->next = 0;
	for (uint32_t i = 0; i < COLD_LEN && b->n <= COLD_BATCH; i += LINE)
		c->cold[i]++;
	memcpy(b->job, c->job + c->next, b->n * sizeof(*b->job));
	for (uint32_t j = 0; j < b->n; j++)
		for (uint32_t i = 0; i < BODY + 32; i += LINE)
			(void)packets[b->job[j].in_off + i];
	c->next += b->n;
}

/* Time of one batch; UINT64_MAX if it failed. */
static uint64_t took_ns(struct calibration *c, const struct engine_ops *ops, struct engine_queue *q,
	struct batch *b)
{
	uint64_t start, took;

	next_take(c, b);
	for (uint32_t j = 0; j < b->n; j++)
		b->status[j] = XC_NOT_DONE;
	start = clock_mono_ns();
	if (ops->run(q, b))
		return UINT64_MAX;
	took = clock_mono_ns() - start;
	for (uint32_t j = 0; j < b->n; j++)
		if (b->status[j] != XC_OK)
			return UINT64_MAX;
	return took ? took : 1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* 1 if the device is clearly faster at this size, 0 if not, -1 if it failed. Records the best
 * times. */
static int wins(struct calibration *c, struct batch *b, enum batch_class kind, uint32_t size)
{
	uint64_t best_device = UINT64_MAX, best_serial = UINT64_MAX;
	int rounds = b->n >= LARGE ? ROUNDS_LARGE : ROUNDS;
	double ratio[ROUNDS] = {0};

	/* The first run warms caches. */
	for (int i = -1; i < rounds; i++) {
		uint64_t dev = took_ns(c, c->device->ops, c->device_queue, b);
		uint64_t ser =
			dev == UINT64_MAX ? 0 : took_ns(c, c->serial_ops, c->serial_queue, b);

		if (dev == UINT64_MAX || ser == UINT64_MAX)
			return -1;
		if (i < 0 && dev < ROUND_MAX_NS)
			continue;
		best_device = dev < best_device ? dev : best_device;
		best_serial = ser < best_serial ? ser : best_serial;
		if (i < 0)
			break;
		ratio[i] = (double)dev / (double)ser;
	}
	c->device->cost[kind][size].device_ns = (uint32_t)(best_device / b->n);
	c->device->cost[kind][size].serial_ns = (uint32_t)(best_serial / b->n);
	if (best_device >= ROUND_MAX_NS)
		return 0;
	qsort(ratio, (size_t)rounds, sizeof(*ratio), by_value);
	return ratio[rounds / 2] < CLEAR_WIN && best_device < best_serial;
}

/* The smallest size above which the device never lost. */
static uint32_t class_measure(struct calibration *c, enum batch_class kind)
{
	struct batch b = {.job = c->arena->job, .status = c->arena->status};
	uint32_t suite[PURE], n = class_suites(c, kind, suite), found = BATCH_NEVER;
	/* The queue rejects larger batches, which would look like device failure. */
	uint32_t most = c->arena->batch_max ? c->arena->batch_max : c->arena->slots;

	if (n == 0)
		return BATCH_NEVER;
	if (kind == BATCH_MIXED && n == 1)
		return c->device->min[suite[0]];
	for (uint32_t i = 0; i < c->made; i++)
		packet(c, i, suite[i % n]);
	for (uint32_t size = 0; size < BATCH_SIZES && 1u << size <= min_u32(most, c->made);
		size++) {
		int won;

		b.n = 1u << size;
		won = wins(c, &b, kind, size);
		for (int i = 0; won == 0 && found != BATCH_NEVER && i < AGAIN; i++)
			won = wins(c, &b, kind, size);
		if (won < 0)
			return BATCH_NEVER;
		if (!won)
			found = BATCH_NEVER;
		else if (found == BATCH_NEVER)
			found = b.n;
	}
	return found;
}

static bool room_make(struct calibration *c)
{
	c->made = min_u32(c->arena->slots, 1u << (BATCH_SIZES - 1));
	c->streams = min_u32((c->arena->key_slots - 2) / (4 * PURE), STREAMS_MAX);
	c->job = calloc(c->made, sizeof(*c->job));
	c->cold = calloc(1, COLD_LEN);
	return c->streams && c->job && c->cold;
}

static void room_wipe(struct calibration *c)
{
	struct arena *a = c->arena;

	secmem_wipe(a->in, (size_t)c->made * ARENA_SLOT_LEN);
	secmem_wipe(a->out, (size_t)c->made * ARENA_SLOT_LEN);
	secmem_wipe(a->job, c->made * sizeof(*a->job));
	secmem_wipe(a->status, c->made * sizeof(*a->status));
}

void batch_calibrate(struct calibration *c)
{
	for (int kind = 0; kind < BATCH_CLASSES; kind++)
		c->device->min[kind] = BATCH_NEVER;
	if (room_make(c)) {
		for (int kind = 0, bad = keys(c, true); kind < BATCH_CLASSES && !bad; kind++)
			c->device->min[kind] = class_measure(c, (enum batch_class)kind);
		(void)keys(c, false);
		room_wipe(c);
	}
	free(c->job);
	free((void *)c->cold);
}

void batch_device_describe(char *out, size_t len, const struct batch_device *d)
{
	static const uint32_t shown[] = {0, 4, 8}; /* 1, 16, 256 */
	int at = 0;

	for (int kind = 0; kind < BATCH_CLASSES && at >= 0 && (size_t)at < len; kind++) {
		at += snprintf(out + at, len - (size_t)at, "%s%s ", kind ? "; " : "",
			batch_class_name[kind]);
		if ((size_t)at >= len)
			return;
		if (d->min[kind] == BATCH_NEVER)
			at += snprintf(out + at, len - (size_t)at, "never");
		else
			at += snprintf(out + at, len - (size_t)at, "from %u", d->min[kind]);
		for (size_t i = 0; i < ARRAY_LEN(shown) && (size_t)at < len; i++)
			if (d->cost[kind][shown[i]].serial_ns)
				at += snprintf(out + at, len - (size_t)at, "%s%u: %u/%u",
					i ? ", " : " (", 1u << shown[i],
					d->cost[kind][shown[i]].device_ns,
					d->cost[kind][shown[i]].serial_ns);
		if (d->cost[kind][0].serial_ns && (size_t)at < len)
			at += snprintf(out + at, len - (size_t)at, ")");
	}
}
