/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call/leg_locals.h"

/* The leg uses ICE, and has its own transport. */
static bool wants(const struct leg *l)
{
	return l->ice.wide && !l->via && leg_has_ice(l);
}

bool leg_has_stream(const struct leg *l, uint32_t rtp_stream)
{
	const struct relay_port *p;

	for (uint32_t i = 0; (p = leg_port_at(l, i)); i++)
		if (p->rtp_stream == rtp_stream)
			return true;
	return false;
}

bool leg_locals_use(struct leg *l, bool rtcp, uint8_t at)
{
	const struct relay_port *p = &l->locals.port[at < LEG_LOCALS ? at : 0];

	if (at >= l->locals.n)
		return at == 0 && !l->locals.n;
	if (!rtcp || l->mux) {
		l->locals.at[0] = at;
		l->port.rtp = p->rtp;
		l->port.rtp_stream = p->rtp_stream;
	}
	if (rtcp || l->mux) {
		l->locals.at[1] = at;
		l->port.rtcp = p->rtcp;
		l->port.rtcp_stream = p->rtcp_stream;
	}
	return true;
}

void leg_locals_take(const struct relay *r, uint32_t worker, struct leg *l)
{
	struct leg_locals *to = &l->locals;
	const struct relay_local *locals;
	uint32_t n;

	if (!wants(l)) {
		for (int rtcp = 0; to->n && rtcp < 2; rtcp++)
			(void)leg_locals_use(l, rtcp, 0);
		memset(to, 0, sizeof(*to));
		return;
	}
	if (to->n)
		return;
	locals = r->ops->locals(r->arg, &n);
	to->port[to->n++] = l->port;
	for (uint32_t i = 0; i < n && to->n < LEG_LOCALS; i++)
		if (i != l->port.rtp.addr &&
			strcmp(locals[i].name, locals[l->port.rtp.addr].name) == 0 &&
			r->ops->port_take_more(r->arg, &to->port[to->n], worker, (uint8_t)i) == 0)
			to->n++;
	if (to->n == 1) { /* its agent cannot get further addresses later */
		l->ice.wide = false;
		memset(to, 0, sizeof(*to));
	}
}

struct media_stream_cfg leg_locals_idle(
	const struct media_stream_cfg *in_use, uint32_t stream, struct local_port local)
{
	return (struct media_stream_cfg){.local = local,
		.ctx = in_use->ctx,
		.rtp_to = MEDIA_NONE,
		.rtcp_to = MEDIA_NONE,
		.rtp = in_use->rtp,
		.rtcp = in_use->rtcp,
		.strict_source = true,
		.learning = MEDIA_LEARN_OFF,
		.emergency = in_use->emergency,
		.tos = in_use->tos,
		.side = in_use->side,
		.serves = stream + 1,
		.side_serial = in_use->side_serial};
}
