/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock that nodes share is that of the Redis server that they write to. Each node reads it
 * once a second (TIME) and keeps the difference to its own clock, also while Redis is unreachable.
 * The clocks of nodes therefore need not agree. */
#include <stdlib.h>

#include "base/clock.h"
#include "call/unsaved.h"
#include "persist/redis_int.h"

#define ASK_NS NS_PER_SEC
#define YEARS_S \
	4102444800ull /* the year 2100; later times are invalid, so that differences fit int64_t */
#define DIFFER_LOG \
	"redis: the clock of this machine is %lld s %s that of Redis: times of calls are converted; check NTP on both"

bool redis_read_time(uint64_t *ns, const struct resp *reply)
{
	uint64_t s, us;

	if (reply->type != RESP_ARRAY || reply->elements != 2 ||
		reply->element[0].type != RESP_STRING || reply->element[1].type != RESP_STRING ||
		str_to_u64(&s, reply->element[0].text, YEARS_S) ||
		str_to_u64(&us, reply->element[1].text, 999999))
		return false;
	*ns = s * NS_PER_SEC + us * 1000;
	return true;
}

static void log_difference(struct redis *r, int64_t ahead_ns)
{
	bool differs = ahead_ns > CLOCK_STEP_NS || ahead_ns < -CLOCK_STEP_NS;

	if (differs && !r->clock.differs)
		log_warn(DIFFER_LOG, (long long)llabs(ahead_ns) / (long long)NS_PER_SEC,
			ahead_ns > 0 ? "behind" : "ahead of");
	r->clock.differs = differs;
}

static void on_time(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;
	uint64_t took_ns = clock_mono_ns() - r->clock.asked_ns, ns;

	(void)priv;
	r->clock.pending = false;
	if (!reply)
		return;
	if (reply->type == RESP_ERROR) {
		if (!r->clock.refused)
			log_warn("redis: its clock cannot be read (" STR_FMT
				 "): the clocks of all nodes must agree; allow the command TIME",
				STR_ARG(reply->text));
		r->clock.refused = true;
		return;
	}
	if (!redis_read_time(&ns, reply)) {
		redis_link_fail(r->link, "its reply does not fit TIME");
		return;
	}
	r->clock.refused = false;
	r->clock.ahead_ns = (int64_t)(ns + took_ns / 2 - clock_real_ns());
	calls_shared_clock(r->cfg.calls, r->clock.ahead_ns);
	log_difference(r, r->clock.ahead_ns);
}

void redis_clock_ask(struct redis *r)
{
	const struct str word[] = {STR("TIME")};
	uint64_t now = clock_mono_ns();

	if (r->clock.pending || (r->clock.asked_ns && now - r->clock.asked_ns < ASK_NS))
		return;
	r->clock.asked_ns = now;
	r->clock.pending = redis_link_send(r->link, on_time, NULL, 1, word) == 0;
}
