/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measuring. Variants take short turns, every other round backwards, so that other load affects all
 * of them. Two variants are compared by the ratio of their turns, round by round. A turn begins
 * with untimed runs, because the others have used the caches. A variant counts only if a batch
 * equals the reference's, byte by byte, and every timed packet was authentic. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "batch/sample.h"
#include "bench.h"

enum { ROUNDS_MIN = 5, ROUNDS_MAX = 2000, REPS_MAX = 20000, REP_PACKETS = 512, FIRST = 16 };
#define TURN_NS 4000000u /* approximate length of the timed part */
#define WARM_NS \
	2000000u           /* approximate length of the part before, or one packet of every
                            * stream */
#define SLICE_NS 50000000u /* a per-packet implementation runs at least this long at once */

static bool results_right(const struct contender *c, uint32_t n)
{
	const struct load *l = c->l;

	for (uint32_t i = 0; i < n; i++) {
		struct xc_job j = l->a.job[i];
		const uint8_t *got = l->a.out;

		if (c->im->results)
			got = c->im->results(c->p);
		/* in_off and out_off of a loaded packet may differ by its skew */
		if (c->im->in_place)
			got = l->a.in + j.in_off - j.out_off;
		if (!sample_equal(&j, &l->a, got, l->want))
			return false;
	}
	return true;
}

/* The same call twice in a row gives the overhead of measuring. */
static uint64_t clock_cost(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t start = clock_mono_ns(), took = clock_mono_ns() - start;

		if (took < best)
			best = took;
	}
	return best;
}

static void fail(struct contender *c, const char *why)
{
	fprintf(stderr, "%s: %s\n", c->im->name, why);
	c->failed = true;
}

/* The next n packets of the load, where the implementation expects them. */
static int next(struct contender *c, uint32_t n)
{
	int err = load_next(c->l, c->im->fresh, n);

	if (!err && c->im->take)
		c->im->take(c->p, c->l, n);
	return err;
}

/* Compares the results, and finds how much of a batch can run at once. */
static void check(struct contender *c)
{
	uint32_t n = c->l->batch, few = n < FIRST ? n : FIRST;
	uint64_t start, took;

	if ((c->im->fresh && load_restock(c->l)) || next(c, few)) {
		fail(c, "packets cannot be made");
		return;
	}
	start = clock_mono_ns();
	if (c->im->run(c->p, c->l, few)) {
		fail(c, "a packet did not authenticate");
		return;
	}
	took = clock_mono_ns() - start;
	if (c->im->per_packet && took / few * n > SLICE_NS)
		n = (uint32_t)(SLICE_NS / (took / few));
	c->slice = n > few ? n : few;
	if (c->slice < c->l->batch)
		fprintf(stderr, "%s: too slow for all of a batch at once: %u of its %u packets\n",
			c->im->name, c->slice, c->l->batch);
	if (load_checked(c->l, c->im->fresh, c->slice)) {
		fail(c, "packets cannot be made");
		return;
	}
	if (c->im->take)
		c->im->take(c->p, c->l, c->slice);
	if (c->im->run(c->p, c->l, c->slice))
		fail(c, "a packet did not authenticate");
	else if (!results_right(c, c->slice))
		fail(c, "results differ from the reference's");
	else
		c->checked = true;
}

/* Number of times this thread left the core. */
static long preemptions(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) ? 0 : u.ru_nivcsw;
}

/* Nanoseconds per packet over some runs; 0 if a packet failed; negative if another thread ran on
 * the core. */
static double rep(struct contender *c, uint64_t clock_ns)
{
	long before = preemptions();
	uint64_t sum = 0;
	uint32_t packets = 0;

	while (packets < REP_PACKETS && (packets == 0 || sum < SLICE_NS)) {
		uint64_t start, took;

		if (next(c, c->slice))
			return 0;
		start = clock_mono_ns();
		if (c->im->run(c->p, c->l, c->slice))
			return 0;
		took = clock_mono_ns() - start;
		sum += took > clock_ns ? took - clock_ns : 0;
		packets += c->slice;
	}
	c->spent_ns += sum;
	return (double)sum / packets * (preemptions() == before ? 1 : -1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Interpolates between two values. */
static double at_part(const double *v, unsigned n, double part)
{
	double at = part * (n - 1);
	unsigned i = (unsigned)at, k = i + 1 < n ? i + 1 : i;

	return v[i] + (v[k] - v[i]) * (at - i);
}

struct quartiles bench_quartiles(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_value);
	return (struct quartiles){at_part(v, n, 0.25), at_part(v, n, 0.5), at_part(v, n, 0.75)};
}

/* Untimed runs, at least one. */
static int warm(struct contender *c)
{
	uint64_t until = clock_mono_ns() + WARM_NS;
	uint32_t packets = 0;
	int err = c->im->fresh ? load_restock(c->l) : 0;

	do {
		err = err ? err : next(c, c->slice);
		err = err ? err : c->im->run(c->p, c->l, c->slice);
		packets += c->slice;
	} while (!err && packets < c->l->c.streams && clock_mono_ns() < until);
	return err;
}

/* The median of a turn's repetitions. 0: all were disturbed. */
static double turn_median(const double *ns, unsigned n)
{
	double *good = calloc(n + 1, sizeof(*good)), median = 0;
	unsigned k = 0;

	for (unsigned i = 0; good && i < n; i++)
		if (ns[i] > 0)
			good[k++] = ns[i];
	if (k)
		median = bench_quartiles(good, k).median;
	free(good);
	return median;
}

static void turn(struct contender *c, uint64_t clock_ns)
{
	uint64_t until = c->spent_ns + TURN_NS;
	unsigned first = c->n;

	if (warm(c)) {
		fail(c, "a packet did not authenticate");
		return;
	}
	do {
		double ns = rep(c, clock_ns);

		if (ns == 0) {
			fail(c, "a packet did not authenticate");
			return;
		}
		c->ns[c->n++] = ns;
	} while (c->spent_ns < until && c->n < REPS_MAX);
	c->turn[c->turns++] = turn_median(c->ns + first, c->n - first);
}

/* Interrupted repetitions mean little. They count only if hardly any others exist. */
static void undisturbed(struct contender *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n; i++)
		n += c->ns[i] > 0;
	for (unsigned i = 0, k = 0; i < c->n; i++) {
		if (c->ns[i] > 0)
			c->ns[k++] = c->ns[i];
		else if (n < ROUNDS_MIN)
			c->ns[k++] = -c->ns[i];
	}
	c->n = n < ROUNDS_MIN ? c->n : n;
}

static void summarise(struct contender *c)
{
	undisturbed(c);
	qsort(c->ns, c->n, sizeof(*c->ns), by_value);
	c->median = c->ns[c->n / 2];
	c->best = c->ns[c->n / 10];
	c->spread = (c->ns[c->n * 9 / 10] - c->ns[c->n / 10]) / c->median;
}

/* Allocates memory for the figures, and compares with the reference. */
static void begin(struct contender *c)
{
	bench_measure_free(c);
	c->ns = calloc(REPS_MAX, sizeof(*c->ns));
	c->turn = calloc(ROUNDS_MAX, sizeof(*c->turn));
	c->n = c->turns = 0;
	c->spent_ns = 0;
	c->checked = false;
	if (c->failed)
		return;
	if (c->ns && c->turn)
		check(c);
	else
		fail(c, "out of memory");
}

void bench_measure(struct contender *c, unsigned n, uint64_t budget_ns)
{
	uint64_t clock_ns = clock_cost();
	bool more = true;

	for (unsigned i = 0; i < n; i++)
		begin(&c[i]);
	for (unsigned round = 0; more && round < ROUNDS_MAX; round++) {
		more = round + 1 < ROUNDS_MIN;
		for (unsigned i = 0; i < n; i++) {
			struct contender *this = &c[round % 2 ? n - 1 - i : i];

			if (this->failed || this->n == REPS_MAX ||
				(round >= ROUNDS_MIN && this->spent_ns >= budget_ns))
				continue;
			turn(this, clock_ns);
			more |= !this->failed && this->spent_ns < budget_ns && this->n < REPS_MAX;
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (!c[i].failed)
			summarise(&c[i]);
}

void bench_measure_free(struct contender *c)
{
	free(c->ns);
	free(c->turn);
	c->ns = c->turn = NULL;
}
