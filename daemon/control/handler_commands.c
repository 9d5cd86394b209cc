/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of the ng protocol, as one table: required keys, whether the command changes state,
 * and its function. Also lists refused commands of other relays. */
#include "control/handler_int.h"

#include "base/clock.h"
#include "call/browse.h"
#include "call/call.h"
#include "call/delete.h"
#include "call/explain.h"
#include "call/play.h"
#include "call/recording.h"
#include "call/tick.h"
#include "control/statistics.h"
#include "offer/connect.h"
#include "offer/exchange.h"
#include "offer/trickle.h"

#define LIST_DEFAULT 32u
#define LIST_MAX     4096u
#define CALLS_BYTES  49152u /* of 65507 in a datagram; leaves room for the rest of the reply */

static void do_ping(struct job *j)
{
	(void)j;
}

/* Trickle ICE (RFC 8840). */
static bool is_fragment(struct job *j, bool is_answer)
{
	if (ng_flag(&j->r, NG_FLAG_FRAGMENT))
		calls_trickle(j->h->calls, j->p, &j->r, is_answer, j->now_ns, &j->reply);
	return ng_flag(&j->r, NG_FLAG_FRAGMENT);
}

static void do_offer(struct job *j)
{
	if (is_fragment(j, false))
		return;
	calls_offer(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_answer(struct job *j)
{
	if (is_fragment(j, true))
		return;
	calls_answer(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_delete(struct job *j)
{
	calls_delete(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void do_query(struct job *j)
{
	calls_query(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void gate(struct job *j, uint8_t which, bool on)
{
	calls_gate(j->h->calls, j->p, &j->r, (struct calls_gate){which, on}, j->now_ns, &j->reply);
}

static void do_block_media(struct job *j)
{
	gate(j, MEDIA_GATE_MEDIA, true);
}

static void do_unblock_media(struct job *j)
{
	gate(j, MEDIA_GATE_MEDIA, false);
}

static void do_block_dtmf(struct job *j)
{
	gate(j, MEDIA_GATE_DTMF, true);
}

static void do_unblock_dtmf(struct job *j)
{
	gate(j, MEDIA_GATE_DTMF, false);
}

static void do_silence_media(struct job *j)
{
	gate(j, MEDIA_GATE_QUIET, true);
}

static void do_unsilence_media(struct job *j)
{
	gate(j, MEDIA_GATE_QUIET, false);
}

static void do_verify_sas(struct job *j)
{
	calls_verify_sas(j->h->calls, j->p, &j->r, true, j->now_ns, &j->reply);
}

static void do_unverify_sas(struct job *j)
{
	calls_verify_sas(j->h->calls, j->p, &j->r, false, j->now_ns, &j->reply);
}

static void do_connect(struct job *j)
{
	calls_connect(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_publish(struct job *j)
{
	calls_publish(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void do_subscribe_request(struct job *j)
{
	calls_subscribe(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void do_subscribe_answer(struct job *j)
{
	calls_subscribe_answer(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_unsubscribe(struct job *j)
{
	calls_unsubscribe(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void record(struct job *j, enum call_record what)
{
	calls_record(j->h->calls, j->p, &j->r, (struct calls_record){what, j->dict}, j->now_ns,
		&j->reply);
}

static void do_start_recording(struct job *j)
{
	record(j, CALL_RECORD_START);
}

static void do_pause_recording(struct job *j)
{
	record(j, CALL_RECORD_PAUSE);
}

static void do_stop_recording(struct job *j)
{
	record(j, ng_flag(&j->r, NG_FLAG_PAUSE) ? CALL_RECORD_PAUSE : CALL_RECORD_STOP);
}

static void do_play_media(struct job *j)
{
	calls_play_media(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void do_stop_media(struct job *j)
{
	calls_stop_media(j->h->calls, j->p, &j->r, j->now_ns, &j->reply, j->dict);
}

static void do_play_dtmf(struct job *j)
{
	calls_play_dtmf(j->h->calls, j->p, &j->r, j->now_ns, &j->reply);
}

static void do_list(struct job *j)
{
	int64_t limit = j->r.limit < 0 ? LIST_DEFAULT : j->r.limit;

	calls_list(j->h->calls, j->p, (uint32_t)(limit > LIST_MAX ? LIST_MAX : limit), j->dict);
}

static void do_calls(struct job *j)
{
	int64_t limit = j->r.limit < 0 ? LIST_DEFAULT : j->r.limit;

	const struct calls_look look = {.part = j->r.part,
		.filter = j->r.find,
		.sort = j->r.sort,
		.after = j->r.after,
		.limit = (uint32_t)(limit > LIST_MAX ? LIST_MAX : limit),
		.bytes = CALLS_BYTES};

	j->reply.error = calls_view(j->h->calls, j->p, &look, j->now_ns, j->dict);
}

static void do_explain(struct job *j)
{
	j->reply.error = calls_explain(j->h->calls, j->p, j->r.call_id, j->now_ns, j->dict);
}

static void do_debug(struct job *j)
{
	bool off = str_eq_nocase(j->r.state, STR("off"));

	if (j->r.state.len && !off && !str_eq_nocase(j->r.state, STR("on")))
		j->reply.error = NGE_DEBUG;
	else if (!calls_set_debug(j->h->calls, j->r.call_id, !off))
		j->reply.error = NGE_UNKNOWN_CALL;
	else
		ngval_add_str(j->p, j->dict, STR("debug"), off ? STR("off") : STR("on"));
}

static void do_operate(struct job *j)
{
	const struct handler *h = j->h;

	j->reply.error =
		h->operate ? h->operate(h->operate_arg, &j->r, j->p, j->dict) : NGE_NOT_HERE;
}

static bool is_shown(struct job *j)
{
	if (!j->h->web)
		j->reply.error = NGE_NO_WEB;
	return j->h->web;
}

static void do_metrics(struct job *j)
{
	struct sbuf text;

	if (!is_shown(j))
		return;
	sbuf_init(&text, 0);
	j->h->web->metrics(j->h->web->arg, &text);
	if (text.err)
		j->reply.error = NGE_NOMEM;
	else
		ngval_add_str(j->p, j->dict, STR("metrics"), pool_strdup(j->p, sbuf_view(&text)));
	sbuf_fini(&text);
}

static void do_page(struct job *j)
{
	const struct page_look look = {.show = j->r.show,
		.filter = j->r.find,
		.sort = j->r.sort,
		.after = j->r.after,
		.ended = j->r.ended,
		.call = j->r.call_id};

	if (is_shown(j))
		page_snapshot(&j->h->web->page, &look, j->p, j->now_ns, j->dict);
}

static void do_page_history(struct job *j)
{
	if (is_shown(j))
		page_history(&j->h->web->page, j->p, j->dict);
}

static void do_statistics(struct job *j)
{
	struct ngval *dict = ngval_add_dict(j->p, j->dict, STR("statistics"));
	const struct handler *h = j->h;
	struct calls_counters c = {0};
	const struct statistics s = {.calls = &c,
		.count = h->count,
		.interval = &h->interval,
		.duplicates = h->duplicates,
		.drops = h->drops,
		.uptime_ns = clock_mono_ns() - h->start_ns};

	calls_counters(h->calls, &c);
	statistics_fill(&s, j->p, dict);
	if (h->stats.fill && dict)
		h->stats.fill(h->stats.arg, j->p, dict);
}

static void do_role(struct job *j)
{
	const struct handler *h = j->h;

	j->reply.error = h->become
		? h->become(h->become_arg, j->r.command == NG_ACTIVE, j->p, &j->reply.warning)
		: NGE_NO_REDIS;
}

static const struct command commands[NG_COMMAND_COUNT] = {
	[NG_PING] = {do_ping, 0},
	[NG_OFFER] = {do_offer, NEED_SDP | NEED_CALL_ID | NEED_FROM_TAG | CHANGES},
	[NG_ANSWER] = {do_answer, NEED_SDP | NEED_CALL_ID | NEED_FROM_TAG | NEED_TO_TAG | CHANGES},
	[NG_DELETE] = {do_delete, NEED_CALL_ID | CHANGES},
	[NG_QUERY] = {do_query, NEED_CALL_ID},
	[NG_LIST] = {do_list, 0},
	[NG_STATISTICS] = {do_statistics, 0},
	[NG_ACTIVE] = {do_role, CHANGES},
	[NG_STANDBY] = {do_role, CHANGES},
	[NG_CALLS] = {do_calls, 0},
	[NG_EXPLAIN] = {do_explain, NEED_CALL_ID},
	[NG_DEBUG] = {do_debug, NEED_CALL_ID | CHANGES},
	[NG_LIMITS_COMMAND] = {do_operate, CHANGES},
	[NG_DRAIN] = {do_operate, CHANGES},
	[NG_LOG_LEVEL] = {do_operate, CHANGES},
	[NG_RELOAD] = {do_operate, CHANGES},
	[NG_CODECS] = {do_operate, 0},
	[NG_METRICS] = {do_metrics, 0},
	[NG_PAGE] = {do_page, 0},
	[NG_PAGE_HISTORY] = {do_page_history, 0},
	[NG_PUBLISH] = {do_publish, NEED_SDP | CHANGES},
	[NG_SUBSCRIBE_REQUEST] = {do_subscribe_request, NEED_CALL_ID | CHANGES},
	[NG_SUBSCRIBE_ANSWER] = {do_subscribe_answer,
		NEED_SDP | NEED_CALL_ID | NEED_TO_TAG | CHANGES},
	[NG_UNSUBSCRIBE] = {do_unsubscribe, NEED_CALL_ID | NEED_TO_TAG | CHANGES},
	[NG_SILENCE_MEDIA] = {do_silence_media, NEED_CALL_ID | CHANGES},
	[NG_UNSILENCE_MEDIA] = {do_unsilence_media, NEED_CALL_ID | CHANGES},
	[NG_BLOCK_MEDIA] = {do_block_media, NEED_CALL_ID | CHANGES},
	[NG_UNBLOCK_MEDIA] = {do_unblock_media, NEED_CALL_ID | CHANGES},
	[NG_BLOCK_DTMF] = {do_block_dtmf, NEED_CALL_ID | CHANGES},
	[NG_VERIFY_SAS] = {do_verify_sas, NEED_CALL_ID | CHANGES},
	[NG_UNVERIFY_SAS] = {do_unverify_sas, NEED_CALL_ID | CHANGES},
	[NG_CONNECT] = {do_connect, NEED_CALL_ID | NEED_FROM_TAG | NEED_TO_TAG | CHANGES},
	[NG_UNBLOCK_DTMF] = {do_unblock_dtmf, NEED_CALL_ID | CHANGES},
	[NG_PLAY_MEDIA] = {do_play_media, NEED_CALL_ID | CHANGES},
	[NG_STOP_MEDIA] = {do_stop_media, NEED_CALL_ID | CHANGES},
	[NG_PLAY_DTMF] = {do_play_dtmf, NEED_CALL_ID | CHANGES},
	[NG_START_RECORDING] = {do_start_recording, NEED_CALL_ID | CHANGES},
	[NG_PAUSE_RECORDING] = {do_pause_recording, NEED_CALL_ID | CHANGES},
	[NG_STOP_RECORDING] = {do_stop_recording, NEED_CALL_ID | CHANGES},
};

const struct command *handler_command(enum ng_command c)
{
	return &commands[c];
}

const char *handler_missing(const struct ng_request *r, uint32_t need)
{
	if (need & NEED_SDP && !r->sdp.len)
		return NGE_NO_SDP;
	if (need & NEED_CALL_ID && !r->call_id.len)
		return NGE_NO_CALL_ID;
	if (need & NEED_FROM_TAG && !r->from_tag.len)
		return NGE_NO_FROM_TAG;
	if (need & NEED_TO_TAG && !r->to_tag.len)
		return NGE_NO_TO_TAG;
	return NULL;
}

/* Commands of other relays. The error-reason distinguishes unsupported commands from misspelled
 * ones. */
static const struct handler_refusal refusals[] = {
	{"transform", NGE_CODEC},
	{"inject start", NGE_MIX},
	{"inject stop", NGE_MIX},
	{"start forwarding", NGE_START_FORWARDING},
	{"stop forwarding", NGE_STOP_FORWARDING},
	{"mesh", NGE_JOIN},
	{"create", NGE_OWN_MEDIA},
	{"create answer", NGE_OWN_MEDIA},
	{"cli", NGE_CLI},
};

const struct handler_refusal *handler_refusals(size_t *n)
{
	*n = sizeof(refusals) / sizeof(refusals[0]);
	return refusals;
}

const char *handler_unknown(struct str command)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (ng_spelled_like(command, str_from(refusals[i].command)))
			return refusals[i].reason;
	return NGE_BAD_COMMAND;
}
