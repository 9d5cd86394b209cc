/* SPDX-License-Identifier: GPL-2.0-or-later */
/* delete, query and list: what a call is, as a tree for the reply (never keys), and its end. */
#include "call/model.h"

#include <stdlib.h>

#include "base/clock.h"

#define NOT_FOUND "Call-ID not found or tags didn't match"

static void add_u64(struct pool *p, struct ngval *d, const char *key, uint64_t v)
{
	ngval_add_int(p, d, str_from(key), (int64_t)(v > INT64_MAX ? (uint64_t)INT64_MAX : v));
}

static void add_text(struct pool *p, struct ngval *d, const char *key, const char *text)
{
	ngval_add_str(p, d, str_from(key), pool_strdup(p, str_from(text)));
}

static void add_endpoint(struct pool *p, struct ngval *d, const char *key, const struct endpoint *e)
{
	struct ngval *v;
	char text[ENDPOINT_STRLEN];

	if (e->family == 0)
		return;
	v = ngval_add_dict(p, d, str_from(key));
	add_text(p, v, "family", e->family == AF_INET6 ? "IPv6" : "IPv4");
	add_text(p, v, "address", endpoint_fmt_addr(e, text));
	add_u64(p, v, "port", e->port);
}

struct totals {
	uint64_t packets, bytes, errors;
};

static void add_totals(struct pool *p, struct ngval *d, const char *key, const struct totals *t)
{
	struct ngval *v = ngval_add_dict(p, d, str_from(key));

	add_u64(p, v, "packets", t->packets);
	add_u64(p, v, "bytes", t->bytes);
	add_u64(p, v, "errors", t->errors);
}

struct describe {
	struct calls *c;
	const struct call *call;
	struct pool *p;
	struct totals total[2]; /* RTP, RTCP */
	const struct relay_local *local;
};

static void add_stream(struct describe *d, struct ngval *list, uint32_t i, int s, bool rtcp)
{
	const struct held *h = &d->call->held[i];
	const struct nego_end *e = &d->call->nego.media[i].end[s];
	const struct local_port *port = rtcp ? &h->port[s].rtcp : &h->port[s].rtp;
	struct ngval *v = ngval_add_dict(d->p, list, STR_NONE), *flags;
	struct relay_stats st = {0};
	char text[ENDPOINT_STRLEN];

	d->c->relay.ops->stats(d->c->relay.arg, d->call->worker,
		rtcp ? h->port[s].rtcp_stream : h->port[s].rtp_stream, &st);
	add_u64(d->p, v, "local port", port->port);
	add_text(d->p, v, "local address", endpoint_fmt_addr(&d->local[port->addr].addr, text));
	add_text(d->p, v, "family", d->local[port->addr].addr.family == AF_INET6 ? "IPv6" : "IPv4");
	add_endpoint(d->p, v, "endpoint", &st.remote);
	add_endpoint(d->p, v, "advertised endpoint", rtcp ? &e->rtcp : &e->rtp);
	if (e->rx.master.suite != SUITE_PLAIN)
		add_text(d->p, v, "crypto suite", srtp_suite_get(e->rx.master.suite)->name);
	add_u64(d->p, v, "last packet", st.last_packet_ns / NS_PER_SEC);
	if (st.ssrc)
		add_u64(d->p, v, "SSRC", st.ssrc);
	flags = ngval_add_list(d->p, v, STR("flags"));
	if (!rtcp)
		ngval_add_str(d->p, flags, STR_NONE, STR("RTP"));
	if (rtcp || e->mux)
		ngval_add_str(d->p, flags, STR_NONE, STR("RTCP"));
	if (st.remote.port)
		ngval_add_str(d->p, flags, STR_NONE, STR("filled"));
	if (st.confirmed)
		ngval_add_str(d->p, flags, STR_NONE, STR("confirmed"));
	if (d->call->nego.side[s].strict_source)
		ngval_add_str(d->p, flags, STR_NONE, STR("strict source address"));
	if (d->call->nego.side[s].media_handover)
		ngval_add_str(d->p, flags, STR_NONE, STR("media handover"));
	add_totals(d->p, v, "stats", &(struct totals){st.packets, st.bytes, st.errors});
	add_totals(d->p, v, "stats_out", &(struct totals){st.packets_out, st.bytes_out, 0});
	d->total[rtcp].packets += st.packets;
	d->total[rtcp].bytes += st.bytes;
	d->total[rtcp].errors += st.errors;
}

static void add_media(struct describe *d, struct ngval *list, uint32_t i, int s)
{
	const struct nego_media *m = &d->call->nego.media[i];
	struct ngval *v = ngval_add_dict(d->p, list, STR_NONE), *flags, *streams;

	add_u64(d->p, v, "index", i + 1);
	add_text(d->p, v, "type", m->kind);
	if (!m->kept)
		add_text(d->p, v, "protocol", sdp_proto_name(m->end[s].proto));
	streams = ngval_add_list(d->p, v, STR("streams"));
	for (int rtcp = 0; rtcp < 2 && m->wanted; rtcp++)
		add_stream(d, streams, i, s, rtcp);
	flags = ngval_add_list(d->p, v, STR("flags"));
	if (!m->wanted)
		return;
	ngval_add_str(d->p, flags, STR_NONE, STR("initialized"));
	if (d->call->nego.side[s].asymmetric)
		ngval_add_str(d->p, flags, STR_NONE, STR("asymmetric"));
	if (m->end[s].dir == SDP_DIR_SENDRECV || m->end[s].dir == SDP_DIR_SENDONLY)
		ngval_add_str(d->p, flags, STR_NONE, STR("send"));
	if (m->end[s].dir == SDP_DIR_SENDRECV || m->end[s].dir == SDP_DIR_RECVONLY)
		ngval_add_str(d->p, flags, STR_NONE, STR("recv"));
	if (m->end[s].mux)
		ngval_add_str(d->p, flags, STR_NONE, STR("rtcp-mux"));
	if (m->end[s].rx.master.suite != SUITE_PLAIN)
		ngval_add_str(d->p, flags, STR_NONE, STR("SDES"));
}

static void add_tag(struct describe *d, struct ngval *tags, int s)
{
	const struct call_side *side = &d->call->side[s];
	/* not answered yet: what it is told already belongs to it, under an empty tag */
	struct str tag = side->n ? pool_strdup(d->p, str_from(side->tag[0])) : STR("");
	struct ngval *v = ngval_add_dict(d->p, tags, tag), *list;

	ngval_add_str(d->p, v, STR("tag"), tag);
	add_u64(d->p, v, "created", side->created_ns / NS_PER_SEC);
	list = ngval_add_list(d->p, v, STR("tag-aliases"));
	for (uint32_t i = 1; i < side->n; i++)
		ngval_add_str(d->p, list, STR_NONE, pool_strdup(d->p, str_from(side->tag[i])));
	list = ngval_add_list(d->p, v, STR("medias"));
	for (uint32_t i = 0; i < d->call->nego.count; i++)
		add_media(d, list, i, s);
}

void call_describe(struct calls *c, const struct call *call, struct pool *p, struct ngval *dict)
{
	struct describe d = {.c = c, .call = call, .p = p};
	struct ngval *tags, *totals;
	uint32_t n;

	d.local = c->relay.ops->locals(c->relay.arg, &n);
	add_u64(p, dict, "created", call->created_ns / NS_PER_SEC);
	add_u64(p, dict, "created_us", call->created_ns % NS_PER_SEC / 1000);
	add_u64(p, dict, "last signal", call->signal_ns / NS_PER_SEC);
	tags = ngval_add_dict(p, dict, STR("tags"));
	for (int s = 0; s < 2; s++)
		add_tag(&d, tags, s);
	totals = ngval_add_dict(p, dict, STR("totals"));
	add_totals(p, totals, "RTP", &d.total[0]);
	add_totals(p, totals, "RTCP", &d.total[1]);
}

static struct call *find(const struct calls *c, const struct ng_request *r)
{
	struct call *call = calls_find(c, r->call_id);

	if (call && r->from_tag.len && call_side_find(call, r->from_tag) < 0)
		return NULL;
	return call;
}

void calls_query(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	const struct call *call = find(c, r);

	(void)now_ns;
	*out = (struct call_reply){0};
	if (!call) {
		out->error = "Unknown call-id";
		return;
	}
	call_describe(c, call, p, dict);
}

/* Only one of several branches that answered goes away: the call goes on with the others. */
static bool drop_alias(struct call *call, const struct ng_request *r)
{
	struct call_side *side;
	int s;

	if (!ng_flag(r, NG_FLAG_TO_TAG) || r->to_tag.len == 0)
		return false;
	s = call_side_find(call, r->to_tag);
	if (s < 0)
		return false;
	side = &call->side[s];
	for (uint32_t i = 1; i < side->n; i++)
		if (str_eq(str_from(side->tag[i]), r->to_tag)) {
			free(side->tag[i]);
			memmove(&side->tag[i], &side->tag[i + 1],
				(side->n - i - 1) * sizeof(side->tag[0]));
			side->n--;
			return true;
		}
	return false;
}

void calls_delete(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	struct call *call = find(c, r);
	uint64_t delay = c->policy.delete_delay_ns, at;

	*out = (struct call_reply){0};
	c->count.deletes++;
	if (call && ng_flag(r, NG_FLAG_TO_TAG) && r->to_tag.len &&
		call_side_find(call, r->to_tag) < 0)
		call = NULL;
	if (!call) {
		if (ng_flag(r, NG_FLAG_FATAL))
			out->error = NOT_FOUND;
		else
			out->warning = STR(NOT_FOUND);
		return;
	}
	if (!ng_flag(r, NG_FLAG_FAST))
		call_describe(c, call, p, dict);
	if (drop_alias(call, r))
		return;
	if (r->delete_delay >= 0)
		delay = (uint64_t)(r->delete_delay < 86400 ? r->delete_delay : 86400) * NS_PER_SEC;
	if (delay == 0) {
		call_end(c, call);
		return;
	}
	at = now_ns + delay;
	if (call->delete_ns == 0 || at < call->delete_ns)
		call->delete_ns = at;
}

void calls_list(struct calls *c, struct pool *p, uint32_t limit, struct ngval *dict)
{
	struct ngval *list = ngval_add_list(p, dict, STR("calls"));
	const struct call *call = c->first;

	for (uint64_t i = 0; i < c->count.current && i < limit; i++, call = call->next)
		ngval_add_str(
			p, list, STR_NONE, pool_strdup(p, (struct str){call->id, call->id_len}));
}
