/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps of an exchange (exchange_int.h). */
#include "offer/exchange_int.h"

#include "base/secmem.h"
#include "call/apply.h"
#include "call/audio.h"
#include "call/call_int.h"
#include "call/dialog.h"
#include "call/explain.h"
#include "call/lifetime.h"
#include "call/recording.h"
#include "call/session.h"
#include "call/table.h"
#include "keying/dtls_cert.h"
#include "keying/zrtp_store.h"
#include "offer/edit.h"
#include "offer/neg_answer.h"
#include "offer/neg_codec.h"
#include "offer/neg_ice.h"
#include "offer/neg_offer.h"
#include "offer/sources.h"
#include "offer/subscribe.h"

/* --- Copy ------------------------------------------------------------------------------------- */

static void keep_media_address(struct call *c, const struct ng_request *r)
{
	struct endpoint e;

	if (r->media_address.len && endpoint_parse_addr(&e, r->media_address) == 0)
		c->media_address = e;
}

bool exchange_copy(struct exchange *x)
{
	struct calls *c = x->c;

	if (x->prev) {
		x->next = call_clone(&c->keys, x->prev);
	} else {
		x->next = call_new(x->r->call_id, x->now_ns);
		if (x->next) {
			x->next->worker = c->relay->ops->worker_choose(c->relay->arg);
			x->next->learning = c->policy.learning;
			x->next->strict_source = c->policy.strict_source;
			x->next->short_tags = c->policy.short_tags;
			x->next->tos = c->policy.tos;
		}
	}
	if (!x->next) {
		x->out->error = NGE_NOMEM;
		return false;
	}
	if (ng_flag(x->r, NG_FLAG_DEBUG))
		x->next->debug = true;
	x->next->signal_ns = x->now_ns;
	keep_media_address(x->next, x->r);
	return true;
}

void exchange_drop(struct exchange *x)
{
	call_free(&x->c->keys, x->next);
}

/* --- Negotiate -------------------------------------------------------------------------------- */

/* Used keys must not be given to new parties. */
static void look_at_indexes(const struct exchange *x)
{
	const struct relay *r = x->c->relay;
	struct relay_stats st;

	for (uint32_t s = 0; s < x->next->sides; s++)
		for (uint32_t i = 0; i < x->next->side[s]->legs; i++) {
			struct leg *l = x->next->side[s]->leg[i];

			if (!l || !l->has_port || !l->rx.keys ||
				!(ng_flag(x->r, NG_FLAG_PASSTHROUGH) ||
					keying_asks_end_to_end(&l->keying)))
				continue;
			r->ops->stats(r->arg, x->next->worker, l->port.rtp_stream, &st);
			l->rx_roc = st.roc;
		}
}

/* Whether there are keying threads, and the fingerprint of our certificate. */
static void look_at_host(struct exchange *x)
{
	struct neg_in *in = &x->in;
	const struct sessions *s = x->c->relay->sessions;
	enum dtls_hash hash = DTLS_SHA256;
	struct dtls_fingerprint sha256;

	in->sessions = s;
	if (x->c->relay->audio)
		neg_codec_known(in, x->c->relay->audio->ops->codecs(x->c->relay->audio->arg));
	in->host.mikey = x->c->policy.mikey;
	in->host.zrtp_policy = x->c->policy.zrtp;
	in->host.zid = x->c->policy.zrtp_store ? zrtp_store_zid(x->c->policy.zrtp_store) : NULL;
	in->host.zrtp_preshared = zrtp_store_preshared(x->c->policy.zrtp_store);
	for (int h = 0; h < DTLS_HASH_COUNT; h++)
		if (str_eq(x->r->dtls_hash, str_from(dtls_hash_name((enum dtls_hash)h))))
			hash = (enum dtls_hash)h;
	if (!s)
		return;
	in->host.dtls = s->ops->fingerprint(s->arg, &in->host.print, hash) == 0;
	in->host.profiles = s->profiles;
	in->host.sha1 = s->sha1;
	in->host.zrtp = s->zrtp;
	if (s->ops->fingerprint(s->arg, &sha256, DTLS_SHA256) == 0)
		in->host.cert = dtls_cert_id_of(&sha256);
}

/* Collects the input of the negotiation, in addition to the call. */
static bool gather_input(struct exchange *x)
{
	struct calls *c = x->c;
	struct neg_in *in = &x->in;
	int err;

	*in = (struct neg_in){.policy = &c->policy,
		.reach = c->reach,
		.r = x->r,
		.sdp = x->sdp,
		.random.len =
			(x->sdp->media_count + 1) * (KEYING_RANDOM_PER_MEDIA + NEG_ICE_RANDOM),
		.keys = &c->keys,
		.p = x->p,
		.call = x->next,
		.other = SIDE_NONE};
	in->locals = c->relay->ops->locals(c->relay->arg, &in->locals_n);
	look_at_host(x);
	look_at_indexes(x);
	in->random.at = pool_alloc(x->p, in->random.len);
	if (!in->random.at) {
		x->out->error = NGE_NOMEM;
		return false;
	}
	err = secmem_random(in->random.at, in->random.len);
	if (err)
		calls_resource_error(x->out, err, !x->prev);
	return !err;
}

bool exchange_negotiate(struct exchange *x)
{
	static void (*const how[])(struct plan * out, struct call * next, struct neg_in * in) = {
		[OFFER] = negotiate_offer,
		[ANSWER] = negotiate_answer,
		[PUBLISH] = negotiate_publish,
		[LISTEN] = negotiate_subscribe,
		[LISTEN_ANSWER] = negotiate_subscribe_answer,
	};

	if (!gather_input(x))
		return false;
	how[x->kind](&x->plan, x->next, &x->in);
	x->out->error = x->plan.error;
	x->out->detail = x->plan.detail;
	x->out->warning = x->plan.warning;
	return !x->plan.error;
}

/* --- Mark ------------------------------------------------------------------------------------- */

/* It belongs to the dialog, not to others with the same Call-ID. */
static void mark_emergency(const struct exchange *x)
{
	uint32_t sides = dialog_sides(x->next, x->plan.from) | dialog_sides(x->next, x->plan.to);
	bool on = ng_flag(x->r, NG_FLAG_EMERGENCY);

	for (uint32_t i = 0; i < x->next->sides; i++)
		on |= sides >> i & 1 && x->next->side[i]->emergency;
	for (uint32_t i = 0; on && i < x->next->sides; i++)
		x->next->side[i]->emergency |= sides >> i & 1;
	x->next->emergency |= on;
}

/* Marks the two sides, or the publisher or listener. A branch whose answer waits says nothing about
 * the caller. */
static void mark_signalled(const struct exchange *x)
{
	struct side *from = x->next->side[x->plan.from], *to = x->next->side[x->plan.to];
	bool early = x->r->sip_code >= 100 && x->r->sip_code < 200;
	bool answer = x->kind == ANSWER || x->kind == PUBLISH;
	bool both = (x->kind == OFFER || x->kind == ANSWER) && !from->parked;

	lifetime_signalled(x->kind == LISTEN ? to : from, x->now_ns);
	if (both)
		lifetime_signalled(to, x->now_ns);
	if (answer)
		lifetime_answered(from, early);
	if (answer && both)
		lifetime_answered(to, early);
}

void exchange_mark(struct exchange *x)
{
	/* A dialog scheduled for deletion continues: negotiate_offer(). */
	if (x->kind == OFFER || x->kind == ANSWER || x->kind == PUBLISH)
		x->next->delete_ns = x->next->deleted_ns = 0;
	mark_emergency(x);
	mark_signalled(x);
}

/* --- Take, write, put in force ---------------------------------------------------------------- */

bool exchange_take(struct exchange *x)
{
	int err = apply_take(x->c->relay, x->prev, x->next);

	if (err)
		calls_resource_error(x->out, err, !x->prev);
	return !err;
}

void exchange_undo(struct exchange *x)
{
	apply_undo(x->c->relay, x->prev, x->next);
}

/* Checks the complete reply, while the change can still be refused. */
static bool can_be_sent(struct exchange *x)
{
	struct call_reply planned = *x->out;

	planned.sdp = x->body;
	if (x->kind == LISTEN)
		subscribe_reply(x->p, x->next, x->r, x->plan.to, x->dict);
	if (x->kind == PUBLISH) {
		ngval_add_str(x->p, x->dict, STR("call-id"), x->r->call_id);
		ngval_add_str(x->p, x->dict, STR("from-tag"), x->r->from_tag);
	}
	return !x->c->fits || x->c->fits(x->c->fits_arg, &planned);
}

bool exchange_write(struct exchange *x)
{
	x->body = x->kind == LISTEN_ANSWER
		? STR("")
		: edit_write(&x->plan, x->next, &x->in, x->kind == ANSWER || x->kind == PUBLISH);
	x->out->warning = x->plan.warning;
	x->out->error = !x->body.s ? NGE_SDP_WRITE : !can_be_sent(x) ? NGE_TOO_LONG : NULL;
	return !x->out->error;
}

bool exchange_put_in_force(struct exchange *x)
{
	int err = calls_put_in_force(x->c, x->p, x->prev, x->next, x->now_ns);

	if (err)
		calls_resource_error(x->out, err, !x->prev);
	return !err;
}

/* The recording flag of an offer or answer. If recording fails, the call continues. */
static void record_from_now(struct exchange *x)
{
	struct call_reply said = {0};
	const struct call *call = call_table_find(&x->c->table, x->r->call_id);
	struct ng_request r = *x->r;

	if (!call || call->tap)
		return;
	r.from_tag = STR_NONE;
	calls_record(x->c, x->p, &r, (struct calls_record){CALL_RECORD_START, ngval_dict(x->p)},
		x->now_ns, &said);
	if (said.error)
		x->out->warning = pool_printf(x->p, STR_FMT "%snot recorded: %s",
			STR_ARG(x->out->warning), x->out->warning.len ? "; " : "", said.error);
}

void exchange_report(struct exchange *x)
{
	const struct plan *plan = &x->plan;

	explain_exchange(x->next, x->now_ns,
		&(struct explain_exchange){.said = x->sdp,
			.from = plan->from,
			.to = plan->to,
			.again = x->prev != NULL,
			.is_answer = x->kind == ANSWER || x->kind == LISTEN_ANSWER});
	if (x->kind != LISTEN_ANSWER)
		x->out->sdp = x->body;
	x->out->notice = plan->notice;
	x->out->kept = plan->kept;
	x->c->counters.keying_fallbacks += plan->fallbacks;
	x->c->counters.weaker_by_order += plan->weaker_by_order;
	x->c->counters.weaker_by_terminal += plan->weaker_by_terminal;
	if (ng_flag(x->r, NG_FLAG_RECORD_CALL))
		record_from_now(x);
}
