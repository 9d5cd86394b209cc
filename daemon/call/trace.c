/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Debug lines of a call: one for each stream, passed to a callback. Never a key. */
#include "call/trace.h"
#include "base/clock.h"
#include "call/model.h"
#include "srtp/suite.h"

static struct call_trace stream(const struct relay *relay, struct pool *p, const struct call *c,
	const struct side *s, uint32_t media, bool rtcp)
{
	const struct leg *l = s->leg[media];
	const struct srtp_suite *rx = srtp_suite_get(srtp_params_suite(&l->rx)),
				*tx = srtp_suite_get(srtp_params_suite(&l->tx));
	struct call_trace line = {
		.call_id = c->id, .tag = s->tag, .media = media + 1, .rtcp = rtcp};
	struct str drops = STR(""), remote = STR("nowhere yet");
	struct relay_stats st = {0};
	char text[ENDPOINT_STRLEN];

	leg_stats(relay, c, l, rtcp, &st);
	if (st.remote.family)
		remote = pool_strdup(p, str_from(endpoint_fmt(&st.remote, text)));
	for (int v = 0; v < PACKET_VERDICTS; v++)
		if (st.drops[v])
			drops = pool_printf(p, STR_FMT ", %llu %s", STR_ARG(drops),
				(unsigned long long)st.drops[v],
				packet_drop_name((enum packet_verdict)v));
	line.text = pool_printf(p,
		"%s, port %u, remote " STR_FMT
		"%s, from it %s, to it %s: %llu packets in, %llu out, %llu dropped" STR_FMT,
		l->active ? "active" : "not active",
		(unsigned)(rtcp ? l->port.rtcp.port : l->port.rtp.port), STR_ARG(remote),
		st.confirmed ? " (confirmed)" : "", !l->rx.keys ? "plain" : rx->name,
		!l->tx.keys ? "plain" : tx->name, (unsigned long long)st.packets,
		(unsigned long long)st.packets_out, (unsigned long long)st.errors, STR_ARG(drops));
	return line;
}

void trace_call(const struct trace *t, const struct relay *relay, const struct call *c)
{
	struct pool *p;

	if (!t->fn || !c->debug || pool_create(&p, 1u << 20))
		return;
	for (uint32_t i = 0; i < c->sides; i++)
		for (uint32_t m = 0; m < c->side[i]->legs && !c->side[i]->gone; m++) {
			const struct leg *l = c->side[i]->leg[m];

			if (!l || !l->has_port)
				continue;
			for (int rtcp = 0; rtcp < (l->mux ? 1 : 2); rtcp++) {
				struct call_trace line = stream(relay, p, c, c->side[i], m, rtcp);

				t->fn(t->arg, &line);
			}
		}
	pool_destroy(p);
}
