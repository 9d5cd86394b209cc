/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All calls: the table, counters, gates, queries. Each change copies, negotiates, takes, writes,
 * commits, replaces (exchange.c, delete.c, recording.c, gates here). Control thread only; logs
 * nothing. */
#include "call/call.h"

#include <stdio.h>
#include "call/call_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "call/apply.h"
#include "call/closing.h"
#include "call/dtmf.h"
#include "call/gate.h"
#include "call/leg_audio.h"
#include "call/pierce.h"
#include "call/query.h"
#include "call/record_media.h"
#include "call/session_places.h"
#include "call/summary.h"
#include "call/table.h"
#include "call/trace.h"
#include "call/unsaved.h"
#include "keying/keying.h"
#include "keying/mikey_host.h"

/* Counters of pairs stay, so that their metrics do not come and go. */
static void count_pair(struct call_codec_pair *list, const char *name, uint64_t one)
{
	uint32_t i = 0;

	while (i < CALL_CODEC_PAIRS - 1 && list[i].name[0] && strcmp(list[i].name, name) != 0)
		i++;
	if (!list[i].name[0])
		snprintf(list[i].name, sizeof(list[i].name), "%s",
			i < CALL_CODEC_PAIRS - 1 ? name : "others");
	list[i].n += one;
}

int calls_create(struct calls **out, const struct call_policy *policy, const struct relay *relay)
{
	struct calls *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->policy = *policy;
	c->relay = relay;
	c->reach_default.local = relay->ops->locals(relay->arg, &c->reach_default.locals);
	c->reach_default.port_max = UINT16_MAX;
	c->reach = &c->reach_default;
	err = call_table_init(&c->table);
	err = err ? err : saver_init(&c->saver, &c->table, relay);
	err = err ? err : links_init(&c->links, c->reach_default.locals);
	if (err) {
		call_table_fini(&c->table);
		free(c);
		return err;
	}
	for (int law = 0; law < 2; law++)
		count_pair(c->counters.transcoded, law ? "PCMA to PCMU" : "PCMU to PCMA", 0);
	*out = c;
	return 0;
}

void calls_set_reach(struct calls *c, const struct reach *r)
{
	c->reach = r;
}

/* Adds a call's resources to the counters, or subtracts them. */
static void account(struct calls *c, const struct call *call, bool in)
{
	char pair[CALL_PAIR_TEXT];
	uint64_t one = in ? 1 : UINT64_MAX;

	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			const struct leg *l = call->side[s]->leg[i];

			if (!l || !l->has_port)
				continue;
			for (uint32_t k = 0; leg_port_at(l, k); k++)
				c->counters.streams += 2 * one;
			if (l->active)
				c->counters.suite[srtp_params_suite(&l->rx)] += one;
			if (l->active && l->rx.pass)
				c->counters.passed += one;
			if (leg_audio_pair_text(call, call->side[s], i, pair))
				count_pair(c->counters.transcoded, pair, one);
		}
}

void calls_end(struct calls *c, struct call *call, enum call_end why, uint64_t now_ns)
{
	if (c->cursor == call)
		c->cursor = call->next;
	if (c->again.at == call)
		c->again.at = call->next;
	trace_call(&c->trace, c->relay, call);
	if (c->ended && !c->leaving)
		closing_report(c, call, why, now_ns ? now_ns : clock_real_ns());
	if (call->tap)
		c->rec->ops->stop(c->rec->arg, call->tap, call->tap_discard);
	account(c, call, false);
	summary_ended(c->relay, call, &c->counters.ended);
	save_ended(&c->saver, call);
	session_places_change(c, call, NULL);
	keying_call_ended(c->policy.mikey, call->id);
	call_table_remove(&c->table, call);
	/* Before its ports are free, so that no call sends to their next owner. */
	links_end(c, call);
	apply_release_all(c->relay, call);
	call_free(&c->keys, call);
}

void calls_destroy(struct calls *c)
{
	if (!c)
		return;
	c->leaving |= c->saver.on; /* the calls stay in Redis */
	while (c->table.first)
		calls_end(c, c->table.first, CALL_END_STOPPED, 0);
	saver_fini(&c->saver);
	links_fini(&c->links);
	call_table_fini(&c->table);
	keystore_fini(&c->keys);
	free(c->session_place);
	free(c->audio_place);
	free(c);
}

/* --- Changing a call -------------------------------------------------------------------------- */

void calls_resource_error(struct call_reply *out, int err, bool is_new)
{
	switch (err) {
	case -ENOSPC:
		out->error = NGE_PORTS;
		break;
	case -ENOMEM:
		out->error = NGE_NOMEM;
		break;
	case -EADDRNOTAVAIL:
		out->error = REACH_ERROR;
		out->detail = STR("it is a media port of this relay that no other call uses");
		break;
	case -ELOOP:
		out->error = REACH_ERROR;
		out->detail =
			STR("media would pass through this relay in a circle, or too many times");
		break;
	case -ENOPROTOOPT: /* leg_audio_set() */
		out->error = NGE_FMTP;
		break;
	case -EAGAIN: /* another relay may be less busy */
		out->load_limit = is_new;
		out->again = !is_new;
		out->error = is_new ? NGE_LOAD : NGE_BUSY;
		break;
	default:
		out->error = NGE_INTERNAL;
		out->detail = str_from(strerrordesc_np(-err));
	}
}

int calls_put_in_force(
	struct calls *c, struct pool *p, struct call *prev, struct call *next, uint64_t now_ns)
{
	struct link *planned;
	int err = links_plan(c, prev, next, &planned);

	if (err)
		apply_undo(c->relay, prev, next);
	else
		err = apply_commit(c->relay, p, prev, next, &(struct apply_cmds){.now_ns = now_ns});
	if (err) {
		links_drop(planned);
		call_free(&c->keys, next);
		return err;
	}
	links_replace(c, prev, next, planned);
	record_metadata_tell(c, prev, next);
	record_media_tell(c, next);
	session_places_change(c, prev, next);
	if (prev)
		account(c, prev, false);
	account(c, next, true);
	pierce_start(c->relay, next, now_ns);
	next->traced_ns = now_ns;
	if (call_is_answered(next) && !next->answered_ns)
		next->answered_ns = now_ns;
	trace_call(&c->trace, c->relay, next);
	c->counters.emergencies += next->emergency && !(prev && prev->emergency);
	if (!prev) {
		call_table_add(&c->table, next);
		c->counters.total++;
		save_changed(&c->saver, NULL, next);
		return 0;
	}
	next->history = prev->history;
	prev->history = NULL;
	call_table_replace(&c->table, prev, next);
	save_changed(&c->saver, prev, next);
	if (c->cursor == prev)
		c->cursor = next;
	if (c->again.at == prev)
		c->again.at = next;
	call_free(&c->keys, prev);
	return 0;
}

/* --- Gates ------------------------------------------------------------------------------------ */

void calls_gate(struct calls *c, struct pool *p, const struct ng_request *r,
	struct calls_gate order, uint64_t now_ns, struct call_reply *out)
{
	struct call *call = call_table_find(&c->table, r->call_id), *next;
	bool held_back, dropped;
	int err;

	*out = (struct call_reply){0};
	if (!call) {
		out->error = NGE_UNKNOWN_CALL;
		return;
	}
	next = call_clone(&c->keys, call);
	if (!next) {
		out->error = NGE_NOMEM;
		return;
	}
	out->error = gate_set(next, r, order.gate, order.on);
	if (out->error) {
		call_free(&c->keys, next);
		return;
	}
	err = apply_take(c->relay, call, next);
	held_back = order.gate == MEDIA_GATE_QUIET && order.on && gate_holds_back(next);
	dropped = order.gate == MEDIA_GATE_DTMF && order.on && dtmf_only_drops(next);
	if (err)
		call_free(&c->keys, next);
	else
		err = calls_put_in_force(c, p, call, next, now_ns);
	if (err)
		calls_resource_error(out, err, false);
	else if (dropped)
		out->warning = STR(
			"digits are dropped: xcipherd lacks the codec of the audio, or codec threads");
	else if (held_back)
		out->warning = STR(
			"packets of codecs that xcipherd lacks are dropped: they cannot be silenced");
}

/* --- Saved calls ------------------------------------------------------------------------------ */

struct keystore *calls_keys(struct calls *c)
{
	return &c->keys;
}

void calls_adopt(struct calls *c, struct call *call)
{
	account(c, call, true);
	c->counters.emergencies += call->emergency;
	c->counters.total++;
	call_table_add(&c->table, call);
	history_add(&call->history, clock_real_ns(), HISTORY_RESTORED, STR_NONE,
		"this node took the call over from Redis; events before are not known here");
	links_adopt(c, call);
	session_places_change(c, NULL, call);
	save_changed(&c->saver, NULL, call);
}

void calls_passive(struct calls *c, bool passive)
{
	if (c->passive && !passive && c->policy.mikey)
		mikey_host_take_over(c->policy.mikey);
	c->passive = passive;
}

void calls_leave(struct calls *c)
{
	c->saver.on = false;
	c->leaving = true;
	while (c->table.first)
		calls_end(c, c->table.first, CALL_END_STOPPED, 0);
	c->leaving = false;
}

/* --- Queries ---------------------------------------------------------------------------------- */

void calls_query(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	const struct call *call;

	(void)now_ns;
	*out = (struct call_reply){0};
	if (!r->call_id.len) {
		out->error = NGE_NO_CALL_ID;
		return;
	}
	call = call_table_find(&c->table, r->call_id);
	if (!call)
		out->error = NGE_UNKNOWN_CALL;
	else
		query_tree(c->relay, p, call, r->from_tag, r->to_tag, dict);
}

void calls_list(struct calls *c, struct pool *p, uint32_t limit, struct ngval *dict)
{
	struct ngval *list = ngval_add_list(p, dict, STR("calls"));
	const struct call *call = c->table.first;

	for (uint32_t i = 0; call && i < limit; i++, call = call->next)
		ngval_add_str(p, list, STR_NONE, call->id);
}

void calls_each_port(const struct calls *c,
	void (*fn)(void *arg, struct str call_id, uint32_t worker, const struct relay_port *port),
	void *arg)
{
	for (const struct call *call = c->table.first; call; call = call->next)
		for (uint32_t s = 0; s < call->sides; s++)
			for (uint32_t i = 0; i < call->side[s]->legs; i++) {
				const struct leg *l = call->side[s]->leg[i];
				const struct relay_port *port;

				for (uint32_t k = 0; l && (port = leg_port_at(l, k)); k++)
					fn(arg, call->id, call->worker, port);
			}
}

void calls_counters(const struct calls *c, struct calls_counters *out)
{
	*out = c->counters;
	out->current = c->table.count;
}

void calls_reply_room(struct calls *c, call_reply_fits *fits, void *arg)
{
	c->fits = fits;
	c->fits_arg = arg;
}

void calls_set_policy(struct calls *c, const struct call_policy *policy)
{
	struct call_policy next = *policy;

	memcpy(next.loop_key, c->policy.loop_key, sizeof(next.loop_key));
	next.mikey = c->policy.mikey;
	next.zrtp_store = c->policy.zrtp_store;
	c->policy = next;
}

void calls_limit(struct calls *c, enum call_limit reached)
{
	c->limit = reached;
}
