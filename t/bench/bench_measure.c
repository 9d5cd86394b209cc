/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measuring: all variants take turns, short ones and every other round backwards, so that what else
 * the machine does meets all of them; what two of them have in common is their turns' ratio, round
 * by round. A turn begins with runs that are not timed, because the others have had the caches. A
 * variant counts only if a batch of it was the same as the reference's, byte by byte, and every
 * packet that was timed authenticated. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "batch/sample.h"
#include "bench.h"

enum { ROUNDS_MIN = 5, ROUNDS_MAX = 2000, REPS_MAX = 20000, REP_PACKETS = 512, FIRST = 16 };
#define TURN_NS  4000000u  /* about, timed part */
#define WARM_NS  2000000u  /* about, before it, or all streams' packets once */
#define SLICE_NS 50000000u /* a per-packet implementation runs so long at once */

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

/* The same call twice in a row: what measuring itself costs. */
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

/* The next n packets of the load, where the implementation wants them. */
static int next(struct contender *c, uint32_t n)
{
	int err = load_next(c->l, c->im->fresh, n);

	if (!err && c->im->take)
		c->im->take(c->p, c->l, n);
	return err;
}

/* Compares, and finds out how much of a batch can be run at once. */
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

/* How often this thread had to leave the core. */
static long preemptions(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) ? 0 : u.ru_nivcsw;
}

/* Nanoseconds per packet over some runs; 0 when a packet failed; negative when the thread was not
 * alone. */
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

/* Between two values where there is no single one. */
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

/* Not timed: at least once. */
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

/* The middle of a turn's repetitions. 0: none was undisturbed. */
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

/* Repetitions that something else interrupted say little; they count only where there are hardly
 * others. */
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

/* Memory for the figures, and the comparison with the reference. */
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
