/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the keying thread, which knows packets and places, and a session, which knows neither. */
#include "side/session_ops.h"

#include <stdlib.h>

#include "side/session_int.h"

#include "base/secmem.h"

struct session_order *session_order_new(const struct session_cfg *cfg, struct dtls_cert *cert)
{
	struct session_order *o = calloc(1, sizeof(*o));

	if (!o || secmem_random(o->seed, sizeof(o->seed))) {
		free(o);
		return NULL;
	}
	o->cfg = *cfg;
	o->cert = dtls_cert_get(cert);
	return o;
}

void session_order_free(struct session_order *o)
{
	if (!o)
		return;
	dtls_cert_put(o->cert);
	secmem_wipe(o, sizeof(*o));
	free(o);
}

static void cfg_free(void *cfg)
{
	session_order_free(cfg);
}

static void change(void *session, void *cfg, uint64_t now_ns)
{
	(void)session_set(session, cfg, now_ns); /* session_event() reports a failure */
	cfg_free(cfg);
}

static void *open_session(void *arg, void *cfg, uint64_t now_ns)
{
	struct session *s;

	if (session_create(&s, arg)) {
		cfg_free(cfg);
		return NULL;
	}
	change(s, cfg, now_ns);
	return s;
}

static void end(void *session, uint64_t now_ns)
{
	session_close(session, now_ns);
}

static void settle(void *session, uint32_t association, bool rtcp, uint64_t now_ns)
{
	session_settle(session, association, rtcp, now_ns);
}

static void destroy(void *session)
{
	session_destroy(session);
}

static void take(void *session, uint32_t port, const struct side_packet *p, uint64_t now_ns)
{
	const struct session_in in = {.rtcp = port % 2,
		.at = (uint8_t)(port / 2),
		.dtls = p->kind == SIDE_DTLS,
		.zrtp = p->kind == SIDE_ZRTP,
		.believed = p->believed,
		.src = &p->peer,
		.p = p->bytes,
		.len = p->len};

	session_take(session, &in, now_ns);
}

static bool next(void *session, uint32_t *port, struct side_packet *out)
{
	struct session_out o;

	if (!session_next(session, &o))
		return false;
	*port = session_port(o.at, o.rtcp);
	out->kind = o.zrtp ? SIDE_ZRTP : dtls_is(o.packet, o.len) ? SIDE_DTLS : SIDE_STUN;
	out->believed = o.proved;
	out->follows = o.follows;
	out->peer = o.dst;
	out->len = o.len;
	memcpy(out->bytes, o.packet, o.len);
	return true;
}

static bool event(void *session, struct session_event *out)
{
	return session_event(session, out);
}

static uint64_t deadline(const void *session)
{
	return session_deadline(session);
}

static void tick(void *session, uint64_t now_ns)
{
	session_tick(session, now_ns);
}

const struct side_session_ops session_ops_side = {.open = open_session,
	.change = change,
	.end = end,
	.settle = settle,
	.destroy = destroy,
	.cfg_free = cfg_free,
	.take = take,
	.next = next,
	.event = event,
	.deadline = deadline,
	.tick = tick};
