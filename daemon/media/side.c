/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker's end of the side channel. STUN, DTLS and ZRTP that end at this relay go to the keying
 * thread, which verifies them. They do not change the stream: no source is learned, and they
 * do not keep a call alive. Called for packets that are
 * neither RTP nor RTCP, so it costs RTP nothing. */
#include "media/side.h"

#include <errno.h>

#include "media/ahead.h"
#include "media/checked.h"
#include "media/source.h"

static enum side_kind kind_of(enum pkt_kind kind)
{
	return kind == PKT_STUN ? SIDE_STUN : kind == PKT_DTLS ? SIDE_DTLS : SIDE_ZRTP;
}

static bool is_believed(const struct learn *l, const struct endpoint *src)
{
	return endpoint_eq(&l->signalled, src) || (l->confirmed && endpoint_eq(&l->source, src));
}

uint8_t media_side(struct media *m, const struct arena *a, const struct packet_in *in,
	uint32_t stream, enum pkt_kind kind)
{
	const struct media_stream *s = &m->stream[stream];
	enum packet_verdict belief = media_believe(m, s, in);
	const struct side_packet head = {.kind = (uint8_t)kind_of(kind),
		.believed = is_believed(&s->learn, &in->src),
		.emergency = s->cfg.emergency,
		.local = in->local,
		.stream = stream,
		.serial = s->cfg.side_serial,
		.peer = in->src,
		.t_ns = in->t_ns};
	int err;

	if (belief != PACKET_JOB)
		return media_drop(m, stream, belief);
	err = side_take(m->cfg.side, &m->trial[stream].side, &head, a->in + in->in_off, in->len);
	if (err)
		return media_drop(
			m, stream, err == -EMSGSIZE ? PACKET_DROP_TOO_LONG : PACKET_DROP_SIDE_FULL);
	media_count(&m->side[head.kind], 1);
	media_count(&m->counters[stream].side[head.kind], 1);
	return PACKET_SIDE;
}

/* Checked first: neither checks nor responses may go to a forbidden address. */
static bool may_go(const struct media *m, const struct media_stream *s, const struct side_packet *p,
	const struct endpoint *to)
{
	if (!to->family || !to->port || endpoint_is_unspecified(to) || endpoint_is_multicast(to))
		return false;
	if (p->kind == SIDE_STUN && m->cfg.may_check)
		return m->cfg.may_check(m->cfg.may_learn_arg, to);
	return !m->cfg.may_learn || m->cfg.may_learn(m->cfg.may_learn_arg, &s->cfg.remote, to);
}

enum media_side_result media_side_out(struct media *m, const struct arena *a, uint32_t slot,
	const struct side_packet *p, struct packet_out *out)
{
	const struct endpoint *to = &p->peer;
	const struct media_stream *s;

	if (p->stream >= m->cfg.max_stream)
		return MEDIA_SIDE_STALE;
	s = &m->stream[p->stream];
	if (!s->set || !s->cfg.side || s->cfg.side_serial != p->serial)
		return MEDIA_SIDE_STALE;
	if (p->follows && s->learn.confirmed && s->learn.proved)
		to = &s->learn.remote;
	if (p->len > SIDE_PACKET_MAX || !may_go(m, s, p, to))
		return MEDIA_SIDE_REFUSED;
	*out = (struct packet_out){.dst = *to,
		.local = s->cfg.local,
		.out_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.len = p->len,
		.tos = s->cfg.tos,
		.in = MEDIA_NONE};
	memcpy(a->out + out->out_off, p->bytes, p->len);
	if (p->kind == SIDE_STUN && p->believed)
		media_checked_add(m, p->stream, &p->peer);
	if (p->kind == SIDE_ZRTP && p->believed)
		media_ahead_expect(m, p->stream);
	return MEDIA_SIDE_SENDS;
}

uint64_t media_side_count(const struct media *m, enum side_kind k)
{
	return k < SIDE_KINDS_N ? atomic_load_explicit(&m->side[k], memory_order_relaxed) : 0;
}
