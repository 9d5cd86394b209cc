/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call in a few lines, for lists: the suites of each side and the packets received. Never a
 * key. */
#include "call/summary.h"
#include "base/clock.h"
#include "call/call.h"
#include "call/names.h"
#include "call/sight.h"
#include "srtp/suite.h"

#define VIEW_LEGS  8u   /* of a call; the rest is only counted */
#define TAG_SHOWN  128u /* bytes of a tag */
#define CALL_BYTES 400u /* of a call in a reply, without its legs and Call-ID, at most */
#define LEG_BYTES  400u /* of a leg, without its tag */

/* Readers need only part of a tag to distinguish parties. */
static struct str short_tag(struct str tag)
{
	return (struct str){tag.s, tag.len < TAG_SHOWN ? tag.len : TAG_SHOWN};
}

static void add_quality(struct pool *p, struct ngval *d, const struct media_quality *q)
{
	if (!q->samples)
		return;
	ngval_add_int(p, d, STR("MOS"), q->mean[QUALITY_MOS]);
	ngval_add_int(p, d, STR("lost"), q->lost);
	ngval_add_int(p, d, STR("loss"), q->mean[QUALITY_LOSS]);
	ngval_add_int(p, d, STR("jitter"), q->mean[QUALITY_JITTER]);
	ngval_add_int(p, d, STR("RTT"), q->mean[QUALITY_RTT]);
}

static void add_leg(const struct relay *relay, struct pool *p, const struct call *c, uint32_t side,
	const struct leg *l, struct ngval *list)
{
	const struct side *s = c->side[side];
	struct ngval *d = ngval_add_dict(p, list, STR_NONE);
	struct relay_stats st = {0}, rtcp = {0};
	char text[ENDPOINT_STRLEN];
	const char *keying, *suite;

	leg_stats(relay, c, l, false, &st);
	leg_stats(relay, c, l, true, &rtcp);
	ngval_add_str(p, d, STR("tag"), short_tag(s->tag));
	ngval_add_int(p, d, STR("side"), side);
	if (s->peer != SIDE_NONE)
		ngval_add_int(p, d, STR("peer"), s->peer);
	ngval_add_str(p, d, STR("kind"), str_from(l->kind));
	if (l->codec[0])
		ngval_add_str(p, d, STR("codec"), str_from(l->codec));
	keying = leg_keying_now(relay, c, s, l, st.others);
	suite = leg_suite(l, &l->rx, keying);
	if (suite)
		ngval_add_str(p, d, STR("suite"), str_from(suite));
	if (*keying)
		ngval_add_str(p, d, STR("keying"), str_from(keying));
	ngval_add_int(p, d, STR("active"), l->active);
	ngval_add_int(p, d, STR("port"), l->port.rtp.port);
	if (st.remote.family)
		ngval_add_str(p, d, STR("remote"),
			pool_strdup(p, str_from(endpoint_fmt(&st.remote, text))));
	ngval_add_int(p, d, STR("packets"), (int64_t)st.packets);
	ngval_add_int(p, d, STR("packets out"), (int64_t)st.packets_out);
	ngval_add_int(p, d, STR("errors"), (int64_t)(st.errors + rtcp.errors));
	add_quality(p, d, sight_quality(&st, &rtcp));
}

static void add_sight(struct pool *p, struct ngval *d, const struct sight *s)
{
	struct ngval *list;

	ngval_add_str(p, d, STR("state"), str_from(sight_state_name(s->state)));
	ngval_add_int(p, d, STR("plain"), s->plain);
	ngval_add_int(p, d, STR("packets"), (int64_t)s->packets);
	ngval_add_int(p, d, STR("errors"), (int64_t)s->errors);
	if (s->measured) {
		ngval_add_int(p, d, STR("MOS"), s->mos);
		ngval_add_int(p, d, STR("loss"), s->loss);
		ngval_add_int(p, d, STR("RTT"), s->rtt);
		ngval_add_int(p, d, STR("jitter"), s->jitter);
	}
	list = ngval_add_list(p, d, STR("trouble"));
	for (uint32_t t = 0; t < SIGHT_TROUBLE_COUNT; t++)
		if (s->troubles >> t & 1)
			ngval_add_str(p, list, STR_NONE,
				str_from(sight_trouble_name((enum sight_trouble)t)));
	ngval_add_int(p, d, STR("last packet"), (int64_t)(s->last_ns / NS_PER_SEC));
}

size_t summary_call(const struct relay *relay, struct pool *p, const struct call *c,
	uint64_t now_ns, struct ngval *list)
{
	struct ngval *d = ngval_add_dict(p, list, STR_NONE), *legs;
	struct sight sight;
	struct names names;
	uint32_t n = 0;

	sight_take(&sight, relay, c, now_ns);
	ngval_add_str(p, d, STR("id"), c->id);
	names_of(&names, c);
	ngval_add_str(p, d, STR("from"), short_tag(names.from));
	ngval_add_str(p, d, STR("to"), short_tag(names.to));
	ngval_add_int(p, d, STR("created"), (int64_t)(c->created_ns / NS_PER_SEC));
	ngval_add_int(p, d, STR("answered"), call_is_answered(c));
	ngval_add_int(p, d, STR("emergency"), c->emergency);
	ngval_add_int(p, d, STR("ending"), c->delete_ns != 0);
	ngval_add_int(p, d, STR("worker"), c->worker);
	add_sight(p, d, &sight);
	legs = ngval_add_list(p, d, STR("legs"));
	for (uint32_t i = 0; i < c->sides; i++) {
		const struct side *s = c->side[i];

		for (uint32_t m = 0; m < s->legs && !s->gone; m++)
			if (s->leg[m] && s->leg[m]->has_port && n++ < VIEW_LEGS)
				add_leg(relay, p, c, i, s->leg[m], legs);
	}
	return CALL_BYTES + c->id.len + 2 * TAG_SHOWN +
		min_u32(n, VIEW_LEGS) * (LEG_BYTES + TAG_SHOWN);
}

static void add_traffic(struct calls_ended *e, const struct relay_stats *st)
{
	e->packets += st->packets;
	e->bytes += st->bytes;
	e->errors += st->errors;
}

/* Counts the legs of both sides that should send: those that did, and those that never did. On hold
 * nobody should. */
void summary_ended(const struct relay *relay, const struct call *c, struct calls_ended *e)
{
	uint64_t last_ns = c->signal_ns, heard = 0, silent = 0;

	for (uint32_t i = 0; i < c->sides; i++) {
		const struct side *s = c->side[i];

		for (uint32_t m = 0; m < s->legs && !s->gone; m++) {
			const struct leg *l = s->leg[m];
			struct relay_stats st = {0};

			if (!l || !l->has_port)
				continue;
			leg_stats(relay, c, l, true, &st);
			add_traffic(e, &st);
			leg_stats(relay, c, l, false, &st);
			add_traffic(e, &st);
			if (!call_is_answered(c) || !l->active)
				continue;
			heard += st.packets > 0;
			silent += !st.packets &&
				(l->dir == SDP_DIR_SENDRECV || l->dir == SDP_DIR_SENDONLY);
			if (st.last_packet_ns > last_ns)
				last_ns = st.last_packet_ns;
		}
	}
	e->silent_streams += silent;
	e->one_way += heard && silent;
	e->answered += call_is_answered(c);
	if (last_ns > c->created_ns)
		e->duration_ns += last_ns - c->created_ns;
}
