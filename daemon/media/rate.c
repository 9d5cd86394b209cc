/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "media/rate.h"

#include "base/clock.h"
#include "media/fast_path.h"
#include "media/keys.h"

void media_rate_came(struct media *m, uint32_t stream, uint64_t now_ns)
{
	struct media_rate *r = &m->trial[stream].rate;
	struct media_stream *s = &m->stream[stream];
	uint64_t number = media_key_load(&m->counters[stream].packets) + r->others;
	uint64_t passed = clock_since(r->since_ns, now_ns), more = number - r->number;
	bool was = s->limited;

	/* A packet of the other kind may have looked just before: too few packets show no rate. */
	if (!m->cfg.rate || (!was && more < RATE_LOOK))
		return;
	if (!was)
		s->limited = passed < more * NS_PER_SEC / m->cfg.rate;
	else if (passed >= NS_PER_SEC)
		s->limited = r->n >= m->cfg.rate;
	if (!was || passed >= NS_PER_SEC) {
		r->since_ns = now_ns;
		r->number = number;
		r->n = 0;
	}
	if (was != s->limited)
		media_fast_set(s);
	r->n++;
}

void media_rate_other(struct media *m, uint32_t stream, bool counted, uint64_t now_ns)
{
	m->trial[stream].rate.others += !counted;
	media_rate_came(m, stream, now_ns);
}

bool media_rate_refuses(const struct media *m, uint32_t stream, uint64_t now_ns)
{
	const struct media_rate *r = &m->trial[stream].rate;

	return m->stream[stream].limited && r->n >= m->cfg.rate &&
		clock_since(r->since_ns, now_ns) < NS_PER_SEC;
}
