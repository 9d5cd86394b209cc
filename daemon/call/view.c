/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call in a few lines, for people who look at many: what each side speaks, what came from it. Never a key. */
#include "base/clock.h"
#include "call/model.h"
#include "srtp/suite.h"

#define VIEW_LEGS 8u /* of a call; the rest is only counted */

static bool contains(struct str text, struct str part)
{
	return part.len == 0 || (text.len && memmem(text.s, text.len, part.s, part.len));
}

bool view_matches(const struct call *c, struct str part)
{
	if (contains(c->id, part))
		return true;
	for (uint32_t i = 0; i < c->sides; i++)
		if (!c->side[i]->gone && contains(c->side[i]->tag, part))
			return true;
	return false;
}

static void add_leg(const struct relay *relay, struct pool *p, const struct call *c,
	const struct side *s, const struct leg *l, struct ngval *list, uint64_t *last_ns)
{
	struct ngval *d = ngval_add_dict(p, list, STR_NONE);
	const struct srtp_suite *suite = srtp_suite_get(l->rx.master.suite);
	struct relay_stats st = {0}, rtcp = {0};
	const struct media_quality *quality = &st.quality;
	char text[ENDPOINT_STRLEN];
	const char *keying;

	leg_stats(relay, c, l, false, &st);
	if (!quality->samples) { /* not on one port */
		leg_stats(relay, c, l, true, &rtcp);
		quality = &rtcp.quality;
	}
	ngval_add_str(p, d, STR("tag"), s->tag);
	ngval_add_str(p, d, STR("kind"), str_from(l->kind));
	ngval_add_str(p, d, STR("suite"),
		l->rx.master.suite == SUITE_PLAIN ? STR("plain") : str_from(suite->name));
	keying = leg_keying_now(relay, c, s, l, st.others);
	if (*keying)
		ngval_add_str(p, d, STR("keying"), str_from(keying));
	ngval_add_int(p, d, STR("active"), l->active);
	ngval_add_int(p, d, STR("port"), l->port.rtp.port);
	if (st.remote.family)
		ngval_add_str(p, d, STR("remote"),
			pool_strdup(p, str_from(endpoint_fmt(&st.remote, text))));
	ngval_add_int(p, d, STR("packets"), (int64_t)st.packets);
	ngval_add_int(p, d, STR("packets out"), (int64_t)st.packets_out);
	ngval_add_int(p, d, STR("errors"), (int64_t)st.errors);
	if (quality->samples) {
		ngval_add_int(p, d, STR("MOS"), quality->mean[QUALITY_MOS]);
		ngval_add_int(p, d, STR("lost"), quality->lost);
		ngval_add_int(p, d, STR("loss"), quality->mean[QUALITY_LOSS]);
		ngval_add_int(p, d, STR("jitter"), quality->mean[QUALITY_JITTER]);
		ngval_add_int(p, d, STR("RTT"), quality->mean[QUALITY_RTT]);
	}
	if (st.last_packet_ns > *last_ns)
		*last_ns = st.last_packet_ns;
}

void view_call(const struct relay *relay, struct pool *p, const struct call *c, struct ngval *list)
{
	struct ngval *d = ngval_add_dict(p, list, STR_NONE), *legs;
	uint64_t last_ns = 0;
	uint32_t n = 0;

	ngval_add_str(p, d, STR("id"), c->id);
	ngval_add_int(p, d, STR("created"), (int64_t)(c->created_ns / NS_PER_SEC));
	ngval_add_int(p, d, STR("answered"), c->answered);
	ngval_add_int(p, d, STR("emergency"), c->emergency);
	ngval_add_int(p, d, STR("ending"), c->delete_ns != 0);
	ngval_add_int(p, d, STR("worker"), c->worker);
	legs = ngval_add_list(p, d, STR("legs"));
	for (uint32_t i = 0; i < c->sides; i++) {
		const struct side *s = c->side[i];

		for (uint32_t m = 0; m < s->legs && !s->gone; m++)
			if (s->leg[m] && s->leg[m]->has_port && n++ < VIEW_LEGS)
				add_leg(relay, p, c, s, s->leg[m], legs, &last_ns);
	}
	ngval_add_int(p, d, STR("last packet"), (int64_t)(last_ns / NS_PER_SEC));
}

static void add_traffic(struct calls_ended *e, const struct relay_stats *st)
{
	e->packets += st->packets;
	e->bytes += st->bytes;
	e->errors += st->errors;
}

/* Of both sides' legs that were to send: who did, and who never. On hold nobody is expected to. */
void view_ended(const struct relay *relay, const struct call *c, struct calls_ended *e)
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
			if (!c->answered || !l->active)
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
	e->answered += c->answered;
	if (last_ns > c->created_ns)
		e->duration_ns += last_ns - c->created_ns;
}
