/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of calls, and what offer and answer do to it: find the call and the side, negotiate on a copy, take what is
 * needed, write the SDP, publish, and only then let the copy become the call. Control thread only. */
#include "call/model.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/secmem.h"

#define BUCKETS_MIN 256u

/* --- Table ----------------------------------------------------------------------------------------------------- */

int calls_create(struct calls **out, const struct call_policy *policy, const struct relay *relay)
{
	struct calls *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->policy = *policy;
	c->relay = *relay;
	c->mask = BUCKETS_MIN - 1;
	c->bucket = calloc(BUCKETS_MIN, sizeof(struct call *));
	err = c->bucket ? secmem_random(c->seed, sizeof(c->seed)) : -ENOMEM;
	if (err) {
		free(c->bucket);
		free(c);
		return err;
	}
	*out = c;
	return 0;
}

void calls_destroy(struct calls *c)
{
	if (!c)
		return;
	while (c->first)
		call_end(c, c->first);
	free(c->bucket);
	secmem_wipe(c->seed, sizeof(c->seed));
	free(c);
}

void calls_counters(const struct calls *c, struct calls_counters *out)
{
	*out = c->count;
}

struct call *calls_find(const struct calls *c, struct str id)
{
	uint64_t hash = hash_siphash(c->seed, id.s, id.len);
	struct call *call = c->bucket[hash & c->mask];

	while (call && !(call->hash == hash && str_eq((struct str){call->id, call->id_len}, id)))
		call = call->next_hash;
	return call;
}

/* A bigger table is a matter of speed: without memory for it the chains grow. */
static void grow(struct calls *c)
{
	uint32_t mask = 2 * c->mask + 1;
	struct call **bucket, *call = c->first;

	if (c->count.current <= c->mask || mask > 1u << 24)
		return;
	bucket = calloc((size_t)mask + 1, sizeof(struct call *));
	if (!bucket)
		return;
	for (uint64_t i = 0; i < c->count.current; i++, call = call->next) {
		call->next_hash = bucket[call->hash & mask];
		bucket[call->hash & mask] = call;
	}
	free(c->bucket);
	c->bucket = bucket;
	c->mask = mask;
}

static void insert(struct calls *c, struct call *call)
{
	struct call **bucket = &c->bucket[call->hash & c->mask];

	call->next_hash = *bucket;
	*bucket = call;
	if (c->first) {
		call->next = c->first;
		call->prev = c->first->prev;
		call->prev->next = call->next->prev = call;
	} else {
		c->first = call->next = call->prev = call;
	}
	c->count.current++;
	c->count.total++;
	grow(c);
}

static uint32_t ports_of(const struct held *h, uint32_t n)
{
	uint32_t ports = 0;

	for (uint32_t i = 0; i < n; i++)
		ports += 2u * h[i].has_port[0] + 2u * h[i].has_port[1];
	return ports;
}

static void call_free(struct call *call)
{
	nego_fini(&call->nego);
	free(call->held);
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < call->side[s].n; i++)
			free(call->side[s].tag[i]);
	free(call->id);
	free(call);
}

void call_end(struct calls *c, struct call *call)
{
	struct call **at = &c->bucket[call->hash & c->mask];

	while (*at != call)
		at = &(*at)->next_hash;
	*at = call->next_hash;
	if (c->cursor == call)
		c->cursor = call->next == call ? NULL : call->next;
	if (c->first == call)
		c->first = call->next == call ? NULL : call->next;
	call->next->prev = call->prev;
	call->prev->next = call->next;
	c->count.current--;
	c->count.streams -= ports_of(call->held, call->nego.count);
	apply_release(&c->relay, call->worker, call->held, call->nego.count, NULL, 0);
	call_free(call);
}

static struct call *call_create(struct calls *c, struct str id, uint64_t now_ns)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->id = strndup(id.s, id.len);
	call->id_len = id.len;
	if (!call->id || strlen(call->id) != id.len) { /* a zero inside is no Call-ID */
		call_free(call);
		return NULL;
	}
	call->hash = hash_siphash(c->seed, id.s, id.len);
	call->worker = c->relay.ops->worker_choose(c->relay.arg);
	call->created_ns = call->side[0].created_ns = now_ns;
	return call;
}

/* --- Sides ----------------------------------------------------------------------------------------------------- */

int call_side_find(const struct call *call, struct str tag)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < call->side[s].n; i++)
			if (str_eq(str_from(call->side[s].tag[i]), tag))
				return s;
	return -1;
}

/* The latest tag comes first, those before it stay as aliases. A copy that cannot be had is not worth a call. */
static void side_tag(struct call *call, int s, struct str tag, uint64_t now_ns)
{
	struct call_side *side = &call->side[s];
	uint32_t at = 0;
	char *copy;

	if (tag.len == 0)
		return;
	while (at < side->n && !str_eq(str_from(side->tag[at]), tag))
		at++;
	if (at < side->n) {
		copy = side->tag[at];
	} else {
		copy = strndup(tag.s, tag.len);
		if (!copy)
			return;
		if (side->n == 0)
			side->created_ns = now_ns;
		if (side->n == CALL_MAX_TAGS)
			free(side->tag[--at]);
		else
			side->n++;
	}
	memmove(&side->tag[1], &side->tag[0], at * sizeof(side->tag[0]));
	side->tag[0] = copy;
}

/* Which side offers: the one with this tag, or the one that is not the other's. */
static int offering_side(const struct call *call, const struct ng_request *r)
{
	int from = call_side_find(call, r->from_tag);
	int to = r->to_tag.len ? call_side_find(call, r->to_tag) : -1;

	if (from < 0)
		return to < 0 ? -1 : !to;
	return to == from ? -1 : from;
}

/* From and to of an answer are the offer's: the tag that is answered is the offerer's. */
static int answering_side(const struct call *call, const struct ng_request *r)
{
	int offerer = call_side_find(call, r->from_tag);
	int to = call_side_find(call, r->to_tag);

	if (offerer < 0 || offerer == to)
		return -1;
	/* Turned round by the script, and both are known: what was offered last tells. */
	if (to >= 0 && offerer != call->nego.offerer)
		return offerer;
	return !offerer;
}

/* --- One request ------------------------------------------------------------------------------------------------- */

struct exchange {
	struct calls *c;
	struct call *call;
	struct pool *p;
	const struct ng_request *r;
	struct call_reply *out;
	struct sdp *sdp;
	struct nego_in in;
	struct nego next;
	struct held *now;
	uint64_t now_ns;
	uint64_t version, hash; /* of the SDP written, when it is ours to count */
	bool answer;
};

static void fail(struct call_reply *out, int err)
{
	out->error = err == -ENOSPC ? "Ran out of ports"
		: err == -ENOMEM    ? "Out of memory"
		: err == -EAGAIN    ? "Relay is busy"
				    : "Relay cannot take the call";
}

static bool parse(struct exchange *x)
{
	uint32_t line = 0;
	enum sdp_err err;

	x->sdp = pool_alloc(x->p, sizeof(*x->sdp));
	if (!x->sdp) {
		fail(x->out, -ENOMEM);
		return false;
	}
	err = sdp_parse(x->sdp, x->p, x->r->sdp, &line);
	if (!err)
		return true;
	x->out->error = "Failed to parse SDP";
	x->out->detail = pool_printf(x->p, "line %u: %s", (unsigned)line, sdp_err_text(err));
	return false;
}

/* The SDP went through this very instance before: two passes would only relay to ourselves. */
static bool is_loop(const struct exchange *x)
{
	const struct sdp_line *l;

	if (!ng_flag(x->r, NG_FLAG_LOOP_PROTECT))
		return false;
	l = sdp_attr(x->sdp->session, STR("xcipher"));
	for (; l; l = sdp_attr(l->next, STR("xcipher")))
		if (str_eq(l->arg, str_from(x->c->policy.loop_id)))
			return true;
	return false;
}

static void set_version(struct exchange *x, struct sdp_edit *e)
{
	const struct call_side *to = &x->call->side[!x->in.from];
	uint64_t hash = hash_siphash(x->c->seed, x->r->sdp.s, x->r->sdp.len);
	bool force = x->r->replace & 1u << NG_REPLACE_FORCE_INCREMENT;
	uint64_t v;

	if (!force && !(x->r->replace & 1u << NG_REPLACE_SDP_VERSION))
		return;
	if (str_to_u64(&v, x->sdp->origin_version, INT64_MAX))
		return;
	if (to->sdp_version)
		v = to->sdp_version + (force || hash != to->sdp_hash);
	e->origin_version = pool_printf(x->p, "%llu", (unsigned long long)v);
	x->version = v;
	x->hash = hash;
}

static int write_sdp(struct exchange *x)
{
	struct nego_port *port = pool_alloc(x->p, (x->next.count + 1) * sizeof(struct nego_port));
	struct sdp_edit edit;
	struct sbuf b;
	int err;

	if (!port)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->next.count; i++) {
		port[i].rtp = x->now[i].port[!x->in.from].rtp.port;
		port[i].rtcp = x->now[i].port[!x->in.from].rtcp.port;
	}
	err = nego_edit(&edit, x->p, &x->next, &x->in, port, x->answer);
	if (err)
		return err;
	set_version(x, &edit);
	sbuf_init(&b, 0);
	sdp_write(&b, x->sdp, &edit);
	err = b.err;
	if (!err)
		x->out->sdp = pool_strdup(x->p, sbuf_view(&b));
	sbuf_fini(&b);
	return err ? err : x->out->sdp.s && !pool_failed(x->p) ? 0 : -ENOMEM;
}

/* Ports and keys are taken, SDP is written, commands are published; the first that fails undoes those before. */
static int apply(struct exchange *x)
{
	struct calls *c = x->c;
	struct call *call = x->call;
	int err = apply_take(&c->relay, call->worker, &call->nego, call->held, &x->next, &x->now);

	if (err)
		return err;
	err = write_sdp(x);
	if (!err)
		err = apply_commit(&c->relay, call->worker, &call->nego, call->held, &x->next,
			x->now, x->now_ns);
	if (err) {
		apply_release(&c->relay, call->worker, x->now, x->next.count, call->held,
			call->nego.count);
		free(x->now);
		x->out->sdp = STR_NONE;
		return err;
	}
	c->count.streams -= ports_of(call->held, call->nego.count);
	c->count.streams += ports_of(x->now, x->next.count);
	nego_fini(&call->nego);
	free(call->held);
	call->nego = x->next;
	call->held = x->now;
	x->next = (struct nego){0};
	return 0;
}

static bool negotiate(struct exchange *x)
{
	size_t random_len = (size_t)x->sdp->media_count * NEGO_RANDOM;
	uint8_t *random = pool_alloc(x->p, random_len + 1);
	const char *warning = NULL;
	int err = random ? secmem_random(random, random_len) : -ENOMEM;

	x->in.r = x->r;
	x->in.sdp = x->sdp;
	x->in.policy = &x->c->policy;
	x->in.local = x->c->relay.ops->locals(x->c->relay.arg, &x->in.locals);
	x->in.random = random;
	if (!err)
		err = nego_copy(&x->next, &x->call->nego, x->answer ? 0 : x->sdp->media_count);
	if (!err) {
		x->out->error = x->answer ? nego_answer(&x->next, &x->in, &warning)
					  : nego_offer(&x->next, &x->in, &warning);
		if (!x->out->error)
			err = apply(x);
	}
	if (random)
		secmem_wipe(random, random_len);
	nego_fini(&x->next);
	x->out->warning = str_from(warning);
	if (err)
		fail(x->out, err);
	return !x->out->error;
}

static void signalled(struct exchange *x)
{
	int offerer = x->answer ? !x->in.from : x->in.from;

	/* of what is turned round by the script each tag stays with its side */
	if (call_side_find(x->call, x->r->from_tag) != !offerer)
		side_tag(x->call, offerer, x->r->from_tag, x->now_ns);
	if (call_side_find(x->call, x->r->to_tag) != offerer)
		side_tag(x->call, !offerer, x->r->to_tag, x->now_ns);
	if (x->version) {
		x->call->side[!x->in.from].sdp_version = x->version;
		x->call->side[!x->in.from].sdp_hash = x->hash;
	}
	x->call->signal_ns = x->now_ns;
	x->call->delete_ns = 0;
}

static bool offer_call(struct exchange *x, bool *fresh)
{
	struct calls *c = x->c;
	int from;

	x->call = calls_find(c, x->r->call_id);
	if (x->call) {
		from = offering_side(x->call, x->r);
		if (from < 0)
			x->out->error = "Invalid dialogue association";
		x->in.from = (uint8_t)(from < 0 ? 0 : from);
		return from >= 0;
	}
	if (c->policy.max_calls && c->count.current >= c->policy.max_calls) {
		x->out->load_limit = true;
		c->count.refused++;
		return false;
	}
	x->call = call_create(c, x->r->call_id, x->now_ns);
	*fresh = true;
	if (!x->call)
		fail(x->out, -ENOMEM);
	return x->call != NULL;
}

void calls_offer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct exchange x = {.c = c, .p = p, .r = r, .out = out, .now_ns = now_ns};
	bool fresh = false;

	*out = (struct call_reply){0};
	c->count.offers++;
	if (!parse(&x))
		return;
	if (is_loop(&x)) {
		out->sdp = r->sdp;
		return;
	}
	if (!offer_call(&x, &fresh))
		return;
	if (!negotiate(&x)) {
		if (fresh) {
			call_free(x.call);
			c->count.refused++;
		}
		return;
	}
	signalled(&x);
	if (fresh)
		insert(c, x.call);
}

void calls_answer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	struct exchange x = {.c = c, .p = p, .r = r, .out = out, .now_ns = now_ns, .answer = true};
	int from;

	*out = (struct call_reply){0};
	c->count.answers++;
	if (!parse(&x))
		return;
	if (is_loop(&x)) {
		out->sdp = r->sdp;
		return;
	}
	x.call = calls_find(c, r->call_id);
	if (!x.call) {
		out->error = "Unknown call-id";
		return;
	}
	from = answering_side(x.call, r);
	if (from < 0) {
		out->error = "Invalid dialogue association";
		return;
	}
	x.in.from = (uint8_t)from;
	if (negotiate(&x))
		signalled(&x);
}
