/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reply tree of query and delete, under the protocol's names. Never contains key material. */
#include "call/leg_audio.h"
#include "call/query.h"
#include "base/clock.h"
#include "call/apply.h"
#include "call/gate.h"
#include "call/model.h"
#include "keying/keying.h"
#include "proto/raw.h"
#include "srtp/suite.h"

struct totals {
	uint64_t packets, bytes, errors;
};

struct query {
	const struct relay *relay;
	struct pool *p;
	const struct call *c;
	struct totals rtp, rtcp;
	struct ngval *ssrcs;
};

static void add_int(struct query *q, struct ngval *d, const char *key, uint64_t v)
{
	ngval_add_int(q->p, d, str_from(key), (int64_t)v);
}

/* Copies a string: after a delete, the tree outlives the call. */
static struct str dup(struct query *q, struct str a)
{
	return a.len ? pool_strdup(q->p, a) : STR("");
}

static void add_text(struct query *q, struct ngval *d, const char *key, const char *v)
{
	ngval_add_str(q->p, d, str_from(key), str_from(v));
}

static void add_word(struct query *q, struct ngval *list, bool yes, const char *word)
{
	if (yes)
		ngval_add_str(q->p, list, STR_NONE, str_from(word));
}

static void add_counts(
	struct query *q, struct ngval *d, uint64_t packets, uint64_t bytes, uint64_t errors)
{
	add_int(q, d, "packets", packets);
	add_int(q, d, "bytes", bytes);
	add_int(q, d, "errors", errors);
}

static const char *family(const struct endpoint *e)
{
	return e->family == AF_INET6 ? "IPv6" : "IPv4";
}

static void add_endpoint(
	struct query *q, struct ngval *d, const char *key, const struct endpoint *e)
{
	struct ngval *x;
	char text[ENDPOINT_STRLEN];

	if (!e->family)
		return;
	x = ngval_add_dict(q->p, d, str_from(key));
	add_text(q, x, "family", family(e));
	ngval_add_str(
		q->p, x, STR("address"), pool_strdup(q->p, str_from(endpoint_fmt_addr(e, text))));
	add_int(q, x, "port", e->port);
}

static const char *suite_name(const struct srtp_params *p)
{
	const struct srtp_suite *row = srtp_suite_get(srtp_params_suite(p));

	return row ? row->name : "";
}

/* Session parameters of the terminal's media (RFC 4568 6.1, 6.3). With a signalled lifetime, also
 * the usage of the keys. */
static void add_crypto_params(struct query *q, struct ngval *d, const struct leg *l)
{
	const struct srtp_params *s = &l->rx;
	struct ngval *x = ngval_add_list(q->p, d, STR("crypto parameters"));
	struct media_key_usage u;

	add_word(q, x, s->unencrypted_srtp, "UNENCRYPTED_SRTP");
	add_word(q, x, s->unencrypted_srtcp, "UNENCRYPTED_SRTCP");
	add_word(q, x, s->key[0].no_rtp_auth, "UNAUTHENTICATED_SRTP");
	if (s->preauth)
		ngval_add_str(q->p, d, STR("SRTP+"),
			str_from(preauth_name((enum preauth_scheme)(s->preauth - 1))));
	if (s->key[0].kdr)
		ngval_add_str(q->p, x, STR_NONE, pool_printf(q->p, "KDR=%u", s->key[0].kdr));
	add_int(q, d, "crypto keys", s->keys);
	if (s->key[0].mki_len)
		add_int(q, d, "MKI length", s->key[0].mki_len);
	for (uint32_t i = 0; i < s->keys && l->committed; i++) {
		q->relay->ops->key_usage(q->relay->arg, q->c->worker, l->rx_slot[i], &u);
		if (!u.lifetime)
			continue;
		add_int(q, d, "crypto lifetime", u.lifetime);
		add_int(q, d, "crypto lifetime used", u.rtp > u.rtcp ? u.rtp : u.rtcp);
		return; /* only the first leg with keys */
	}
}

/* In the clients' units: MOS * 10, us, ms, percent. */
static void add_opinion(struct query *q, struct ngval *d, const char *key,
	const uint32_t v[QUALITY_FIELDS], const char *more, uint64_t value)
{
	struct ngval *x = ngval_add_dict(q->p, d, str_from(key));

	add_int(q, x, "MOS", (v[QUALITY_MOS] + 5) / 10);
	add_int(q, x, "round-trip time", v[QUALITY_RTT]);
	add_int(q, x, "round-trip time leg", v[QUALITY_RTT_LEG]);
	add_int(q, x, "jitter", (v[QUALITY_JITTER] + 500) / 1000);
	add_int(q, x, "packet loss", (v[QUALITY_LOSS] + 50) / 100);
	add_int(q, x, more, value);
}

/* Quality of this terminal's media, as the other terminal reports it by RTCP. */
static void add_quality(struct query *q, struct ngval *d, const struct media_quality *m)
{
	if (!m->samples)
		return;
	add_int(q, d, "cumulative loss", m->lost);
	add_opinion(q, d, "average MOS", m->mean, "samples", m->samples);
	add_opinion(q, d, "lowest MOS", m->low, "reported at", m->low_ns / NS_PER_SEC);
	add_opinion(q, d, "highest MOS", m->high, "reported at", m->high_ns / NS_PER_SEC);
}

static void add_ssrc(struct query *q, struct ngval *list, const struct relay_stats *st,
	const struct media_quality *quality)
{
	struct ngval *d = ngval_add_dict(q->p, list, STR_NONE), *g;

	add_int(q, d, "SSRC", st->ssrc);
	add_int(q, d, "packets", st->packets);
	add_int(q, d, "bytes", st->bytes);
	g = ngval_add_dict(q->p, q->ssrcs, pool_printf(q->p, "%u", (unsigned)st->ssrc));
	add_int(q, g, "packets", st->packets);
	add_int(q, g, "bytes", st->bytes);
	add_quality(q, d, quality);
	add_quality(q, g, quality);
}

static void add_drops(struct query *q, struct ngval *stream, const struct relay_stats *st)
{
	struct ngval *d = NULL;

	for (int v = 0; v < PACKET_VERDICTS; v++) {
		if (!st->drops[v])
			continue;
		if (!d)
			d = ngval_add_dict(q->p, stream, STR("drops"));
		add_int(q, d, packet_drop_name((enum packet_verdict)v), st->drops[v]);
	}
}

/* Packets of the terminal that are not RTP and that were relayed. One party alone cannot make a
 * call look protected. */
static void add_others(struct query *q, struct ngval *stream, const struct side *s,
	const struct leg *l, const struct relay_stats *st)
{
	struct str name = leg_is_end_to_end(q->relay, q->c, s, l, st->others)
		? STR("end-to-end")
		: STR("offered by one side");
	struct ngval *d = NULL;

	for (int i = 0; i < MEDIA_OTHERS_N; i++) {
		if (!st->others[i])
			continue;
		if (!d)
			d = ngval_add_dict(q->p, stream, name);
		add_int(q, d, media_other_name((enum media_other)i), st->others[i]);
	}
}

/* With BUNDLE, port and source belong to another m-line. */
static void add_transport(
	struct query *q, const struct side *s, const struct leg **l, struct relay_stats *st)
{
	const struct leg *owner = (*l)->via ? side_leg_get(s, (*l)->via - 1) : NULL;
	struct relay_stats of;

	if (!owner)
		return;
	leg_stats(q->relay, q->c, owner, false, &of);
	st->remote = of.remote;
	st->confirmed = of.confirmed;
	*l = owner;
}

/* Our host candidates, if there are several. */
static void add_candidates(struct query *q, struct ngval *d, const struct leg *l, bool rtcp)
{
	const struct relay_local *locals;
	char text[ENDPOINT_STRLEN];
	struct ngval *list;
	uint32_t n;

	if (l->locals.n < 2)
		return;
	locals = q->relay->ops->locals(q->relay->arg, &n);
	list = ngval_add_list(q->p, d, STR("local candidates"));
	for (uint32_t i = 0; i < l->locals.n; i++) {
		const struct local_port *at =
			rtcp ? &l->locals.port[i].rtcp : &l->locals.port[i].rtp;
		struct endpoint e = at->addr < n ? locals[at->addr].addr : (struct endpoint){0};

		e.port = at->port;
		ngval_add_str(
			q->p, list, STR_NONE, pool_strdup(q->p, str_from(endpoint_fmt(&e, text))));
	}
}

static void add_stream(struct query *q, struct ngval *list, const struct side *s,
	const struct leg *l, bool rtcp, struct relay_stats *st)
{
	const struct leg *transport = l;
	struct ngval *d = ngval_add_dict(q->p, list, STR_NONE), *x;
	const struct endpoint *remote = rtcp ? &l->rtcp_remote : &l->remote;
	bool raw = leg_raw(l) != RAW_NONE;
	struct totals *t = rtcp ? &q->rtcp : &q->rtp;
	const struct relay_local *locals;
	char text[ENDPOINT_STRLEN];
	uint32_t n, local;

	locals = q->relay->ops->locals(q->relay->arg, &n);
	leg_stats(q->relay, q->c, l, rtcp, st);
	add_transport(q, s, &transport, st);
	add_int(q, d, "local port", rtcp ? transport->port.rtcp.port : transport->port.rtp.port);
	local = rtcp ? transport->port.rtcp.addr : transport->port.rtp.addr;
	if (local < n) {
		ngval_add_str(q->p, d, STR("local address"),
			pool_strdup(q->p, str_from(endpoint_fmt_addr(&locals[local].addr, text))));
		add_text(q, d, "family", family(&locals[local].addr));
	}
	add_candidates(q, d, transport, rtcp);
	add_endpoint(q, d, "endpoint", st->remote.family ? &st->remote : remote);
	add_endpoint(q, d, "advertised endpoint", remote);
	if (l->rx.keys)
		add_text(q, d, "crypto suite", suite_name(&l->rx));
	add_int(q, d, "last packet", st->last_packet_ns / NS_PER_SEC);
	if (st->ssrc)
		add_int(q, d, "SSRC", st->ssrc);
	if (st->handovers)
		add_int(q, d, "handovers", st->handovers);
	x = ngval_add_list(q->p, d, STR("flags"));
	add_word(q, x, !rtcp && !raw, "RTP");
	add_word(q, x, rtcp || (l->mux && !raw), "RTCP");
	add_word(q, x, raw, "datagrams");
	add_word(q, x, remote->family && remote->port, "filled");
	add_word(q, x, st->confirmed, "confirmed");
	add_word(q, x, q->c->strict_source, "strict source address");
	add_word(q, x, s->media_handover, "media handover");
	add_word(q, x, l->keyed && l->rx.keys && *keying_proof(&l->keying),
		keying_proof(&l->keying));
	add_word(q, x, l->ice.on && l->ice.pair[rtcp && !l->mux].family, "ICE");
	x = ngval_add_dict(q->p, d, STR("stats"));
	add_counts(q, x, st->packets, st->bytes, st->errors);
	x = ngval_add_dict(q->p, d, STR("stats_out"));
	add_counts(q, x, st->packets_out, st->bytes_out, 0);
	add_drops(q, d, st);
	add_others(q, d, s, l, st);
	t->packets += st->packets;
	t->bytes += st->bytes;
	t->errors += st->errors;
}

static void add_keying_words(struct query *q, struct ngval *list, const struct leg *l)
{
	for (const char *const *f = keying_flags(&l->keying, l->rx.keys != 0); *f; f++)
		add_word(q, list, true, *f);
	add_word(q, list, l->ice.on, "ICE");
	add_word(q, list, l->ice.on && l->ice.controlling, "ICE controlling");
	add_word(q, list, l->ice.on && l->ice.lite, "ICE-lite self");
	add_word(q, list, l->ice.on && l->ice.remote_lite, "ICE-lite peer");
}

/* The SAS is not secret: people read it to each other. */
static void add_sas(struct query *q, struct ngval *d, const struct leg *l)
{
	const struct keying_zrtp *z = keying_sas(&l->keying);
	struct ngval *x;

	if (!z)
		return;
	x = ngval_add_dict(q->p, d, STR("ZRTP"));
	ngval_add_str(q->p, x, STR("SAS"), pool_strdup(q->p, str_from(z->sas)));
	add_text(q, x, "verified", z->verified ? "yes" : "no");
	if (z->mismatched)
		add_text(q, x, "retained secrets", "mismatch");
	if (z->enrolled)
		add_text(q, x, "enrolled", "yes");
	if (z->discloses)
		add_text(q, x, "discloses", "yes");
}

/* The identity that MIKEY proved. The proxy can compare it with the party that SIP names. */
static void add_mikey(struct query *q, struct ngval *d, const struct leg *l)
{
	struct str peer = keying_mikey_peer(&l->keying);

	if (peer.len)
		ngval_add_str(q->p, ngval_add_dict(q->p, d, STR("MIKEY")), STR("peer"),
			pool_strdup(q->p, peer));
}

/* Packets of this terminal, as the codec thread counted them. */
static void add_audio(struct query *q, struct ngval *d, const struct leg *l)
{
	struct audio_stats n;
	struct ngval *x;

	if (!l->audio.has)
		return;
	q->relay->audio->ops->stats(q->relay->audio->arg, l->audio.handle, &n);
	x = ngval_add_dict(q->p, d, STR("transcoder"));
	add_int(q, x, "decoded", n.decoded);
	add_int(q, x, "passed", n.passed);
	add_int(q, x, "lost", n.lost);
	add_int(q, x, "concealed", n.concealed);
	add_int(q, x, "recovered", n.recovered);
	add_int(q, x, "late", n.late);
}

static void add_media(
	struct query *q, struct ngval *list, const struct side *s, const struct leg *l, uint32_t i)
{
	struct ngval *d = ngval_add_dict(q->p, list, STR_NONE), *x;
	enum sdp_proto proto = l->active ? l->proto
		: l->said.relayed        ? l->said.proto
					 : l->asked.proto;
	struct relay_stats rtp, rtcp = {0};
	struct str transcoded;
	const char *keying;

	add_int(q, d, "index", i + 1);
	ngval_add_str(q->p, d, STR("type"), pool_strdup(q->p, str_from(l->kind)));
	add_text(q, d, "protocol", sdp_proto_name(proto));
	if (l->codec[0])
		ngval_add_str(q->p, d, STR("codec"), pool_strdup(q->p, str_from(l->codec)));
	transcoded = leg_audio_pair(q->c, s, i, q->p);
	if (transcoded.len)
		ngval_add_str(q->p, d, STR("transcoded"), transcoded);
	add_audio(q, d, l);
	/* Directions differ in suite only after a re-keying; the terminal's direction has
	 * precedence. */
	if (l->rx.keys)
		add_text(q, d, "crypto suite", suite_name(&l->rx));
	if (l->rx.keys)
		add_crypto_params(q, d, l);
	x = ngval_add_list(q->p, d, STR("streams"));
	add_stream(q, x, s, l, false, &rtp);
	if (leg_raw(l) == RAW_NONE)
		add_stream(q, x, s, l, true, &rtcp);
	if (l->via)
		add_int(q, d, "bundled with", l->via);
	keying = leg_keying_now(q->relay, q->c, s, l, rtp.others);
	if (*keying)
		add_text(q, d, "keying", keying);
	add_sas(q, d, l);
	add_mikey(q, d, l);
	x = ngval_add_list(q->p, d, STR("flags"));
	add_word(q, x, l->active, "initialized");
	add_word(q, x, s->asymmetric, "asymmetric");
	add_word(q, x, l->dir == SDP_DIR_SENDRECV || l->dir == SDP_DIR_SENDONLY, "send");
	add_word(q, x, l->dir == SDP_DIR_SENDRECV || l->dir == SDP_DIR_RECVONLY, "recv");
	add_word(q, x, l->mux, "rtcp-mux");
	add_word(q, x, l->via, "BUNDLE");
	add_word(q, x, transcoded.len, "transcoding");
	add_keying_words(q, x, l);
	add_word(q, x, l->active && l->rx.pass, "passthrough");
	x = ngval_add_list(q->p, d, STR("ingress SSRCs"));
	if (rtp.ssrc)
		add_ssrc(q, x, &rtp, rtp.quality.samples ? &rtp.quality : &rtcp.quality);
	ngval_add_list(q->p, d, STR("egress SSRCs"));
}

static void add_subscriptions(
	struct query *q, struct ngval *d, const char *key, const struct side *s)
{
	struct ngval *list = ngval_add_list(q->p, d, str_from(key)), *x;

	if (s->peer == SIDE_NONE)
		return;
	x = ngval_add_dict(q->p, list, STR_NONE);
	ngval_add_str(q->p, x, STR("tag"), dup(q, q->c->side[s->peer]->tag));
	add_text(q, x, "type", "offer/answer");
}

static void add_side(struct query *q, struct ngval *tags, const struct side *s, bool shown)
{
	/* Totals include sides that are not shown: their trees are discarded. */
	struct ngval *d = shown ? ngval_add_dict(q->p, tags, dup(q, s->tag)) : ngval_dict(q->p), *x;

	ngval_add_str(q->p, d, STR("tag"), dup(q, s->tag));
	if (s->via_branch.len)
		ngval_add_str(q->p, d, STR("via-branch"), dup(q, s->via_branch));
	if (gate_of_side(q->c, s) & MEDIA_GATE_MEDIA)
		ngval_add_int(q->p, d, STR("block media"), 1);
	if (gate_of_side(q->c, s) & MEDIA_GATE_DTMF)
		ngval_add_int(q->p, d, STR("block DTMF"), 1);
	if (gate_of_side(q->c, s) & MEDIA_GATE_QUIET)
		ngval_add_int(q->p, d, STR("silence media"), 1);
	if (s->label.len)
		ngval_add_str(q->p, d, STR("label"), dup(q, s->label));
	if (s->aliases) {
		x = ngval_add_list(q->p, d, STR("tag-aliases"));
		for (uint32_t i = 0; i < s->aliases; i++)
			ngval_add_str(q->p, x, STR_NONE, dup(q, s->alias[i]));
	}
	add_int(q, d, "created", q->c->created_ns / NS_PER_SEC);
	add_subscriptions(q, d, "subscriptions", s);
	add_subscriptions(q, d, "subscribers", s);
	x = ngval_add_list(q->p, d, STR("medias"));
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->has_port)
			add_media(q, x, s, s->leg[i], i);
}

static bool is_shown(const struct side *s, struct str from_tag, struct str to_tag)
{
	return (!from_tag.len && !to_tag.len) || side_has_tag(s, from_tag) ||
		side_has_tag(s, to_tag);
}

void query_tree(const struct relay *relay, struct pool *p, const struct call *c,
	struct str from_tag, struct str to_tag, struct ngval *dict)
{
	struct query q = {.relay = relay, .p = p, .c = c};
	struct ngval *tags, *totals;
	bool unnamed = false;

	add_int(&q, dict, "created", c->created_ns / NS_PER_SEC);
	add_int(&q, dict, "created_us", c->created_ns % NS_PER_SEC / 1000);
	add_int(&q, dict, "last signal", c->signal_ns / NS_PER_SEC);
	add_int(&q, dict, "last redis update", 0);
	if (c->metadata.len)
		ngval_add_str(p, dict, STR("metadata"), dup(&q, c->metadata));
	q.ssrcs = ngval_add_dict(p, dict, STR("SSRC"));
	tags = ngval_add_dict(p, dict, STR("tags"));
	for (uint32_t i = 0; i < c->sides; i++) {
		const struct side *s = c->side[i];

		/* A side without an answer has no tag; keys of a dictionary are unique. */
		if (!s->gone)
			add_side(&q, tags, s,
				is_shown(s, from_tag, to_tag) && (s->tag.len || !unnamed));
		unnamed |= !s->gone && !s->tag.len;
	}
	totals = ngval_add_dict(p, dict, STR("totals"));
	add_counts(&q, ngval_add_dict(p, totals, STR("RTP")), q.rtp.packets, q.rtp.bytes,
		q.rtp.errors);
	add_counts(&q, ngval_add_dict(p, totals, STR("RTCP")), q.rtcp.packets, q.rtcp.bytes,
		q.rtcp.errors);
}
