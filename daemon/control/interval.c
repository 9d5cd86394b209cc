/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last whole minute (control/interval.h), for "intervalstatistics" of ng's statistics. There is
 * no timer: the next request after a minute ends it. */
#include "control/interval.h"

#include <string.h>

#include "base/clock.h"

#define SECONDS     60u
#define INTERVAL_NS (SECONDS * NS_PER_SEC)

/* Ends a second with requests. */
static void end_second(struct interval_command *c)
{
	if (!c->in_second)
		return;
	if (!c->seconds || c->in_second < c->rate_min)
		c->rate_min = c->in_second;
	if (c->in_second > c->rate_max)
		c->rate_max = c->in_second;
	c->seconds++;
	c->in_second = 0;
}

static void sessions_are(struct interval_minute *m, uint64_t sessions)
{
	if (sessions < m->sessions_min)
		m->sessions_min = sessions;
	if (sessions > m->sessions_max)
		m->sessions_max = sessions;
}

static void begin(struct interval *x, uint64_t begin_ns, uint64_t sessions, uint64_t duration_ns)
{
	memset(&x->now, 0, sizeof(x->now));
	x->now.sessions_min = x->now.sessions_max = sessions;
	x->begin_ns = begin_ns;
	x->duration_ns = duration_ns;
}

void interval_advance(struct interval *x, uint64_t now_ns, uint64_t sessions, uint64_t duration_ns)
{
	uint64_t minutes;

	if (!x->begin_ns || now_ns < x->begin_ns) {
		begin(x, now_ns, sessions, duration_ns);
		return;
	}
	sessions_are(&x->now, sessions);
	minutes = (now_ns - x->begin_ns) / INTERVAL_NS;
	if (!minutes)
		return;
	for (int c = 0; c < NG_COMMAND_COUNT; c++)
		end_second(&x->now.command[c]);
	x->now.duration_ns = duration_ns > x->duration_ns ? duration_ns - x->duration_ns : 0;
	x->last = x->now;
	begin(x, x->begin_ns + minutes * INTERVAL_NS, sessions, duration_ns);
	if (minutes > 1) /* the minute before this one had no requests */
		x->last = x->now;
}

void interval_count(struct interval *x, uint64_t now_ns, enum ng_command command, uint64_t took_ns,
	uint64_t sessions)
{
	struct interval_command *c = &x->now.command[command];
	uint64_t second = now_ns / NS_PER_SEC;

	sessions_are(&x->now, sessions);
	if (second != c->second)
		end_second(c);
	c->second = second;
	c->in_second++;
	if (!c->requests || took_ns < c->ns_min)
		c->ns_min = took_ns;
	if (took_ns > c->ns_max)
		c->ns_max = took_ns;
	c->ns += took_ns;
	c->requests++;
}

static void add_seconds(struct pool *p, struct ngval *dict, struct str key, uint64_t ns)
{
	ngval_add_str(p, dict, key, pool_printf(p, "%.6f", (double)ns / 1e9));
}

static void add_delay(
	struct pool *p, struct ngval *dict, const char *name, const struct interval_command *c)
{
	add_seconds(p, dict, pool_printf(p, "min%sdelay", name), c->ns_min);
	add_seconds(p, dict, pool_printf(p, "max%sdelay", name), c->ns_max);
	add_seconds(
		p, dict, pool_printf(p, "avg%sdelay", name), c->requests ? c->ns / c->requests : 0);
}

/* Requests per second. A second without requests counts as a rate of 0. */
static void add_rate(
	struct pool *p, struct ngval *dict, const char *name, const struct interval_command *c)
{
	ngval_add_int(p, dict, pool_printf(p, "min%srequestrate", name),
		c->seconds < SECONDS ? 0 : c->rate_min);
	ngval_add_int(p, dict, pool_printf(p, "max%srequestrate", name), c->rate_max);
	ngval_add_int(p, dict, pool_printf(p, "avg%srequestrate", name),
		(int64_t)(c->requests / SECONDS));
}

void interval_fill(const struct interval *x, struct pool *p, struct ngval *dict)
{
	const struct interval_minute *m = &x->last;

	add_seconds(p, dict, STR("totalcallsduration"), m->duration_ns);
	ngval_add_int(p, dict, STR("minmanagedsessions"), (int64_t)m->sessions_min);
	ngval_add_int(p, dict, STR("maxmanagedsessions"), (int64_t)m->sessions_max);
	/* The commands after NG_ACTIVE are those of our own programs. */
	for (int c = NG_NONE + 1; c < NG_ACTIVE; c++)
		add_delay(p, dict, ng_command_name((enum ng_command)c), &m->command[c]);
	for (int c = NG_NONE + 1; c < NG_ACTIVE; c++)
		add_rate(p, dict, ng_command_name((enum ng_command)c), &m->command[c]);
}
