/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes while the daemon runs. Input is checked completely before any of it takes effect. Present
 * calls are never touched. A reload restores the values of the command line and the file. */
#include "app/operate.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/codecs.h"
#include "base/clock.h"
#include "base/log.h"
#include "call/call.h"

#define LIMITS_LOG_NS (10 * NS_PER_SEC)

struct call_policy operate_policy(const struct options *o)
{
	return (struct call_policy){
		.sdes = o->sdes,
		.zrtp = o->zrtp,
		.learning = o->learning,
		.strict_source = o->strict_source,
		.early_media = o->early_media,
		.short_tags = o->short_tags,
		.tos = o->tos,
		.timeout_ns = o->timeout * NS_PER_SEC,
		.silent_timeout_ns = o->silent_timeout * NS_PER_SEC,
		.offer_timeout_ns = o->offer_timeout * NS_PER_SEC,
		.delete_delay_ns = o->delete_delay * NS_PER_SEC,
		.final_timeout_ns = o->final_timeout * NS_PER_SEC,
		.max_calls = o->max_sessions,
		.max_medias = o->max_medias,
		.told = !o->b2b_url[0]             ? CALL_TOLD_NOBODY
			: strstr(o->b2b_url, "%%") ? CALL_TOLD_ADDRESS
						   : CALL_TOLD_FIXED,
		.told_nets = o->b2b_allow,
	};
}

/* Applies the present options. */
static void take_effect(struct operate *op)
{
	struct call_policy policy = operate_policy(op->o);

	calls_set_policy(op->calls, &policy);
	op->limits->cfg = op->o->limits;
	op->stats->max_sessions = op->o->max_sessions;
	log_set_level(op->o->log_level);
}

/* --- Limits ----------------------------------------------------------------------------------- */

static void look(struct operate *op)
{
	struct limits_sample s = {0};
	enum call_limit before = op->limits->reached, now;
	char text[80];
	uint64_t held;

	limits_measure(&s);
	for (uint32_t i = 0; i < op->stats->workers; i++)
		s.bytes += atomic_load_explicit(
			&op->stats->worker[i]->bytes_relayed, memory_order_relaxed);
	now = limits_step(op->limits, &s);
	calls_limit(op->calls, now);
	if (now == before || !log_limit_pass(&op->log, s.mono_ns, LIMITS_LOG_NS, &held))
		return;
	if (now)
		log_warn("load limit: %s: new calls are refused",
			limits_text(op->limits, now, text));
	else
		log_info("load limit: new calls are accepted again");
}

static const char *set_limits(struct operate *op, const struct ng_request *r)
{
	static const char *const name[NG_LIMITS] = {
		"max-sessions", "max-cpu", "max-load", "max-bandwidth"};
	struct options next = *op->o;

	for (int i = 0; i < NG_LIMITS; i++) {
		char text[32];

		if (!r->max[i].len)
			continue;
		snprintf(text, sizeof(text), STR_FMT, STR_ARG(r->max[i]));
		if (r->max[i].len >= sizeof(text) || options_set(&next, name[i], text))
			return NGE_LIMITS;
	}
	op->o->max_sessions = next.max_sessions;
	op->o->limits = next.limits;
	take_effect(op);
	look(op);
	return NULL;
}

static void show_limits(const struct operate *op, struct pool *p, struct ngval *dict)
{
	struct ngval *d = ngval_dict(p);

	/* As in "statistics". */
	stats_fill_limits(op->stats, p, d);
	if (d && d->first) {
		ngval_add_dict(p, dict, STR("limits"));
		dict->last->first = d->first->first;
		dict->last->last = d->first->last;
	}
}

/* --- Draining --------------------------------------------------------------------------------- */

static const char *drain(
	struct operate *op, const struct ng_request *r, struct pool *p, struct ngval *dict)
{
	bool off = str_eq_nocase(r->state, STR("off"));
	struct calls_counters c;

	if (r->state.len && !off && !str_eq_nocase(r->state, STR("on")))
		return NGE_DRAIN_VALUE;
	if (op->limits->draining == off)
		log_info(
			off ? "draining ended by command: new calls are accepted"
			    : "draining by command: new calls are refused; xcipherd ends with the last call");
	op->limits->draining = !off;
	look(op);
	calls_counters(op->calls, &c);
	ngval_add_str(p, dict, STR("draining"), off ? STR("off") : STR("on"));
	ngval_add_int(p, dict, STR("sessions"), (int64_t)c.current);
	return NULL;
}

void operate_second(struct operate *op)
{
	struct calls_counters c;

	stats_second(op->stats);
	look(op);
	if (!op->limits->draining)
		return;
	calls_counters(op->calls, &c);
	if (c.current)
		return;
	log_info("drained: the last call has ended, stopping");
	op->stop(op->stop_arg);
}

/* --- The log and the options ------------------------------------------------------------------ */

static const char *level(
	struct operate *op, const struct ng_request *r, struct pool *p, struct ngval *dict)
{
	char text[8];

	if (r->level.len) {
		snprintf(text, sizeof(text), STR_FMT, STR_ARG(r->level));
		if (r->level.len >= sizeof(text) || options_set(op->o, "log-level", text))
			return NGE_LEVEL;
		log_set_level(op->o->log_level);
	}
	ngval_add_int(p, dict, STR("level"), log_level());
	return NULL;
}

struct stays { /* options that need a restart */
	struct pool *p;
	struct ngval *names; /* NULL: only logged */
};

static void needs_restart(void *arg, const char *name)
{
	struct stays *s = arg;

	log_warn("reload: %s has changed, which needs a restart; it stays as it is", name);
	if (s->names)
		ngval_add_str(s->p, s->names, STR_NONE, str_from(name));
}

const char *operate_reload(struct operate *op, struct pool *p, struct ngval *dict)
{
	struct stays stays = {.p = p};
	struct options next;
	enum options_result res =
		options_again(&next, op->argc, op->argv, op->err, sizeof(op->err));
	uint32_t changed;

	cdr_reopen(op->cdr);
	/* the same file may contain other keys now */
	if (res == OPTIONS_RUN && op->keys && op->keys(op->keys_arg, op->err, sizeof(op->err)))
		res = OPTIONS_EXIT_ERROR;
	if (res != OPTIONS_RUN) {
		log_err("reload: %s. Nothing was changed", op->err);
		options_free(&next);
		return op->err;
	}
	if (dict)
		stays.names = ngval_add_list(p, dict, STR("needs restart"));
	changed = options_take_live(op->o, &next, needs_restart, &stays);
	options_free(&next);
	take_effect(op);
	log_info("reload: %u option%s changed, calls continue", changed, changed == 1 ? "" : "s");
	if (dict)
		ngval_add_int(p, dict, STR("changed"), changed);
	return NULL;
}

const char *operate_request(
	void *arg, const struct ng_request *r, struct pool *p, struct ngval *dict)
{
	struct operate *op = arg;
	const char *wrong = NULL;

	switch (r->command) {
	case NG_LIMITS_COMMAND:
		wrong = set_limits(op, r);
		if (!wrong)
			show_limits(op, p, dict);
		return wrong;
	case NG_DRAIN:
		return drain(op, r, p, dict);
	case NG_LOG_LEVEL:
		return level(op, r, p, dict);
	case NG_RELOAD:
		return operate_reload(op, p, dict);
	case NG_CODECS:
		app_codecs_show(op->codecs, p, dict);
		app_codecs_show_threads(op->audio, p, dict);
		return NULL;
	default:
		return NGE_BAD_COMMAND;
	}
}
