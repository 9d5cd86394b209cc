/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints results as rows of a table, or as one JSON object per line. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static const char *suite_name(const struct load *l, bool rx)
{
	const struct srtp_suite *s = rx ? l->c.cls->rx : l->c.cls->tx;

	if (l->c.n_cls > 1)
		return "mixed";
	return s->id == SUITE_PLAIN ? "plain" : s->name;
}

/* For a mixture: the mean. */
static uint32_t payload(const struct load *l)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < l->c.streams; i++)
		sum += load_class(l, i)->payload;
	return (uint32_t)(sum / l->c.streams);
}

static void json_string(const char *s)
{
	putchar('"');
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s >= 0x20)
			putchar(*s);
	putchar('"');
}

void report_head(const struct load *l, bool json)
{
	if (json)
		return;
	printf("\n%s to %s, %s%u bytes of payload%s, one core\n", suite_name(l, true),
		suite_name(l, false), l->c.n_cls > 1 ? "on average " : "", payload(l),
		l->c.no_auth ? ", no authentication" : "");
	printf("%-19s %6s %8s %10s %10s %11s %8s  %s\n", "impl", "batch", "streams", "ns/packet",
		"best 10%", "packets/s", "spread", "right");
}

static void json_print(const struct contender *c)
{
	const struct load *l = c->l;

	printf("{\"impl\":\"%s\",\"device\":", c->im->name);
	json_string(c->im->device(c->p));
	printf(",\"rx\":\"%s\",\"tx\":\"%s\",\"payload\":%u,\"batch\":%u,\"streams\":%u,"
	       "\"ns_per_packet\":%.1f,\"spread\":%.3f,\"checked\":%s,\"best\":%.1f,\"header\":%u"
	       ",\"no_auth\":%s,\"repetitions\":%u,\"turns\":[",
		suite_name(l, true), suite_name(l, false), payload(l), l->batch, l->c.streams,
		c->median, c->spread, c->checked ? "true" : "false", c->best, l->c.cls->hdr_len,
		l->c.no_auth ? "true" : "false", c->n);
	for (unsigned i = 0; i < c->turns; i++)
		printf("%s%.2f", i ? "," : "", c->turn[i]);
	puts("]}");
}

void report(const struct contender *c, bool json)
{
	if (c->failed)
		return;
	if (json)
		json_print(c);
	else
		printf("%-19s %6u %8u %10.1f %10.1f %11.0f %6.1f %%  %s\n", c->im->name,
			c->l->batch, c->l->c.streams, c->median, c->best, 1e9 / c->median,
			100 * c->spread, c->checked ? "yes" : "NO");
	fflush(stdout);
}

/* The mixture's time relative to that of its packets in uniform batches, round by round. False: no
 * round is complete. */
static bool mix_ratios(struct quartiles *out, unsigned *rounds, const struct contender *mixed,
	const struct contender *part, unsigned n)
{
	double *ratio = calloc(mixed->turns + 1, sizeof(*ratio));

	*rounds = 0;
	for (unsigned r = 0; ratio && r < mixed->turns; r++) {
		double sum = 0;
		uint32_t weights = 0;
		bool whole = mixed->turn[r] > 0;

		for (unsigned i = 0; i < n; i++) {
			whole = whole && r < part[i].turns && part[i].turn[r] > 0;
			sum += whole ? part[i].turn[r] * mixed->l->c.cls[i].weight : 0;
			weights += mixed->l->c.cls[i].weight;
		}
		if (whole)
			ratio[(*rounds)++] = mixed->turn[r] * weights / sum;
	}
	if (*rounds)
		*out = bench_quartiles(ratio, *rounds);
	free(ratio);
	return *rounds > 0;
}

void report_mix(const struct contender *mixed, const struct contender *part, unsigned n, bool json)
{
	struct quartiles q;
	unsigned rounds;

	for (unsigned i = 0; i < n; i++)
		if (part[i].failed || mixed->failed)
			return;
	if (!mix_ratios(&q, &rounds, mixed, part, n))
		return;
	if (json)
		printf("{\"mix\":\"%s\",\"batch\":%u,\"streams\":%u,\"ns_per_packet\":%.1f,"
		       "\"ratio\":%.4f,\"quartiles\":[%.4f,%.4f],\"slices\":%u,\"checked\":%s}\n",
			mixed->im->name, mixed->l->batch, mixed->l->c.streams, mixed->median,
			q.median, q.low, q.high, rounds, mixed->checked ? "true" : "false");
	else
		printf("%s: the mixture costs %.2f of the same packets in uniform batches "
		       "(median of %u rounds; half of them %.2f to %.2f)\n",
			mixed->im->name, q.median, rounds, q.low, q.high);
	fflush(stdout);
}
