/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reply to ng's "statistics", under the names of the protocol. app/ adds the packet side.
 * Pure. */
#include "control/statistics.h"

#include "base/clock.h"
#include "call/call.h"

static void add(struct pool *p, struct ngval *d, const char *key, uint64_t value)
{
	ngval_add_int(
		p, d, str_from(key), (int64_t)(value > INT64_MAX ? (uint64_t)INT64_MAX : value));
}

static void add_seconds(struct pool *p, struct ngval *d, const char *key, uint64_t ns)
{
	ngval_add_str(p, d, str_from(key), pool_printf(p, "%.6f", (double)ns / 1e9));
}

/* The difference, but at least 0: the counters are read at different moments. */
static uint64_t less(uint64_t all, uint64_t some)
{
	return all > some ? all - some : 0;
}

/* Media of one side whose packets are transcoded. */
static uint64_t transcoded(const struct calls_counters *c)
{
	uint64_t n = 0;

	for (int i = 0; i < CALL_CODEC_PAIRS; i++)
		n += c->transcoded[i].n;
	return n;
}

static void fill_current(const struct calls_counters *c, struct pool *p, struct ngval *d)
{
	add(p, d, "sessionsown", c->current);
	add(p, d, "sessionsforeign", 0);
	add(p, d, "sessionstotal", c->current);
	add(p, d, "transcodedmedia", transcoded(c));
	add(p, d, "portsused", c->streams);
}

/* Packets count ended calls only. */
static void fill_total(const struct statistics *s, struct pool *p, struct ngval *d)
{
	const struct calls_counters *c = s->calls;
	const struct calls_ended *e = &c->ended;
	uint64_t ended = less(c->total, c->current);

	add(p, d, "uptime", s->uptime_ns / NS_PER_SEC);
	add(p, d, "managedsessions", c->total);
	add(p, d, "rejectedsessions", c->refused);
	add(p, d, "timeoutsessions",
		less(c->timeouts, c->silent_timeouts + c->final_timeouts + c->offer_timeouts));
	add(p, d, "silenttimeoutsessions", c->silent_timeouts);
	add(p, d, "finaltimeoutsessions", c->final_timeouts);
	add(p, d, "offertimeoutsessions", c->offer_timeouts);
	add(p, d, "regularterminatedsessions", less(ended, c->timeouts));
	add(p, d, "forcedterminatedsessions", 0);
	add(p, d, "relayedpackets", e->packets);
	add(p, d, "relayedpacketerrors", e->errors);
	add(p, d, "relayedbytes", e->bytes);
	add(p, d, "zerowaystreams", e->silent_streams);
	add(p, d, "onewaystreams", e->one_way);
	add_seconds(p, d, "avgcallduration", ended ? e->duration_ns / ended : 0);
	add_seconds(p, d, "totalcallsduration", e->duration_ns);
	add(p, d, "srtptortpbyflags", c->weaker_by_order);
	add(p, d, "srtptortpbyterminal", c->weaker_by_terminal);
	add(p, d, "keyingfallbacks", c->keying_fallbacks);
	add(p, d, "digitsheard", c->digits);
	add(p, d, "offers", c->offers);
	add(p, d, "answers", c->answers);
	add(p, d, "deletes", c->deletes);
}

static void fill_control(const struct statistics *s, struct pool *p, struct ngval *d)
{
	struct ngval *dropped;
	uint64_t errors = 0;

	for (int c = NG_NONE + 1; c < NG_COMMAND_COUNT; c++) {
		const char *name = ng_command_name((enum ng_command)c);

		ngval_add_int(
			p, d, pool_printf(p, "total%scount", name), (int64_t)s->count[c].requests);
		ngval_add_int(
			p, d, pool_printf(p, "total%serrors", name), (int64_t)s->count[c].errors);
	}
	for (int c = NG_NONE; c < NG_COMMAND_COUNT; c++)
		errors += s->count[c].errors;
	add(p, d, "totalerrorcount", errors);
	add(p, d, "totalinvalidcount", s->count[NG_NONE].errors);
	add(p, d, "totalduplicatecount", s->duplicates);
	dropped = ngval_add_dict(p, d, STR("dropped"));
	for (int i = 0; i < NG_DROP_COUNT; i++)
		add(p, dropped, handler_drop_name((enum ng_drop)i), s->drops[i]);
}

void statistics_fill(const struct statistics *s, struct pool *p, struct ngval *dict)
{
	struct ngval *suites, *list;

	fill_current(s->calls, p, ngval_add_dict(p, dict, STR("currentstatistics")));
	fill_total(s, p, ngval_add_dict(p, dict, STR("totalstatistics")));
	interval_fill(s->interval, p, ngval_add_dict(p, dict, STR("intervalstatistics")));
	fill_control(s, p, ngval_add_dict(p, dict, STR("controlstatistics")));
	suites = ngval_add_dict(p, dict, STR("mediasuites"));
	for (uint32_t i = 0; i < SUITE_COUNT; i++)
		add(p, suites, i ? srtp_suite_get(i)->name : "plain", s->calls->suite[i]);
	list = ngval_add_list(p, dict, STR("transcoders"));
	for (int i = 0; i < CALL_CODEC_PAIRS; i++) {
		struct ngval *d;

		if (!s->calls->transcoded[i].n)
			continue;
		d = ngval_add_dict(p, list, STR_NONE);
		ngval_add_str(
			p, d, STR("chain"), pool_strdup(p, str_from(s->calls->transcoded[i].name)));
		add(p, d, "num", s->calls->transcoded[i].n);
	}
}
