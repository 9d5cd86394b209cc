/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles of sessions, and commands to the keying threads. A handle is reused at once: each time it
 * gets another serial, so that late packets and events of the one before are told apart. */
#include "bridge/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/secmem.h"
#include "side/session_ops.h"

#define CERT_LIFE_S (60u * 86400u) /* renewed after half of it */

struct place {
	uint32_t serial; /* place + a multiple of max; 0: never used */
	uint32_t thread;
	bool taken, open;
	bool closing; /* the command found no room */
};

struct bridge_sessions {
	struct bridge_sessions_config cfg;
	struct session_env env[SESSIONS_THREADS_MAX];
	struct side_thread *thread[SESSIONS_THREADS_MAX];
	struct side_channel *channel[SESSIONS_THREADS_MAX][SESSIONS_WORKERS_MAX];
	struct side_event event[SESSIONS_THREADS_MAX]; /* the next one, serial 0: none */
	struct dtls_cert *cert;
	struct place *place;   /* [max] */
	uint32_t *free_place; /* stack */
	uint32_t free_n, closing;
	uint64_t keys, pairs, failed, lost;
};

/* --- Handles ---------------------------------------------------------------------------------- */

static int op_take(void *arg, uint32_t *session, uint32_t *serial)
{
	struct bridge_sessions *s = arg;
	struct place *p;

	if (!s->free_n)
		return -ENOSPC;
	*session = s->free_place[--s->free_n];
	p = &s->place[*session];
	/* Serial 0 is none. */
	p->serial = p->serial && p->serial < UINT32_MAX - s->cfg.max ? p->serial + s->cfg.max
								     : *session + s->cfg.max;
	p->taken = true;
	p->open = false;
	*serial = p->serial;
	return 0;
}

static void give_back(struct bridge_sessions *s, uint32_t session)
{
	s->place[session].taken = s->place[session].open = s->place[session].closing = false;
	s->free_place[s->free_n++] = session;
}

static bool close_at_thread(struct bridge_sessions *s, const struct place *p)
{
	const struct side_cmd c = {.kind = SIDE_CLOSE, .serial = p->serial};

	return side_thread_command(s->thread[p->thread], &c) == 0;
}

static void op_release(void *arg, uint32_t session)
{
	struct bridge_sessions *s = arg;
	struct place *p = &s->place[session];

	p->taken = false;
	if (!p->open || close_at_thread(s, p)) {
		give_back(s, session);
		return;
	}
	p->closing = true;
	s->closing++;
}

static int op_set(void *arg, uint32_t session, uint32_t worker, const struct relay_port *port,
	const struct session_cfg *cfg)
{
	struct bridge_sessions *s = arg;
	struct place *p = &s->place[session];
	struct side_cmd c = {.kind = p->open ? SIDE_CHANGE : SIDE_OPEN,
		.serial = p->serial,
		.channel = worker / s->cfg.threads,
		.stream = {port->rtp_stream, port->rtcp_stream}};
	struct session_order *order = session_order_new(cfg, s->cert);
	int err;

	if (!order)
		return -ENOMEM;
	p->thread = worker % s->cfg.threads;
	c.cfg = order;
	err = side_thread_command(s->thread[p->thread], &c);
	if (err)
		session_order_free(order);
	else
		p->open = true;
	return err;
}

static int op_fingerprint(void *arg, struct dtls_fingerprint *out, enum dtls_hash h)
{
	struct bridge_sessions *s = arg;

	return dtls_cert_fingerprint(out, s->cert, h);
}

const struct session_ops bridge_session_ops = {
	.take = op_take, .release = op_release, .set = op_set, .fingerprint = op_fingerprint};

/* --- Events ----------------------------------------------------------------------------------- */

static void count(struct bridge_sessions *s, const struct session_event *e)
{
	s->keys += e->kind == SESSION_KEYS;
	s->pairs += e->kind == SESSION_PAIR;
	s->failed += e->kind == SESSION_FAILED;
	s->lost += e->kind == SESSION_LOST;
}

static void close_again(struct bridge_sessions *s)
{
	for (uint32_t i = 0; s->closing && i < s->cfg.max; i++)
		if (s->place[i].closing && close_at_thread(s, &s->place[i])) {
			give_back(s, i);
			s->closing--;
		}
}

/* False: the call cannot take it now. An event is reported once, so it must not be lost: without
 * its keys the call would stay silent. */
static bool deliver(struct bridge_sessions *s, const struct side_event *e)
{
	uint32_t id = e->serial % s->cfg.max;

	if (!s->place[id].taken || s->place[id].serial != e->serial)
		return true;
	if (s->cfg.event(s->cfg.event_arg, id, &e->what) == -EAGAIN)
		return false;
	count(s, &e->what);
	return true;
}

void bridge_sessions_poll(struct bridge_sessions *s)
{
	for (uint32_t t = 0; t < s->cfg.threads; t++) {
		struct side_event *e = &s->event[t];

		while ((e->serial || side_thread_event(s->thread[t], e)) && deliver(s, e))
			secmem_wipe(e, sizeof(*e));
	}
	close_again(s);
}

void bridge_sessions_tick(struct bridge_sessions *s, uint64_t now_s)
{
	struct dtls_cert *fresh;

	if (!dtls_cert_is_old(s->cert, now_s) || dtls_cert_create(&fresh, now_s, CERT_LIFE_S))
		return;
	dtls_cert_put(s->cert);
	s->cert = fresh;
}

void bridge_sessions_usage(const struct bridge_sessions *s, struct bridge_sessions_usage *out)
{
	*out = (struct bridge_sessions_usage){.sessions = s->cfg.max - s->free_n,
		.keys = s->keys,
		.pairs = s->pairs,
		.failed = s->failed,
		.lost = s->lost};
	for (uint32_t t = 0; t < s->cfg.threads; t++) {
		struct side_thread_counts c = side_thread_counts(s->thread[t]);

		out->threads.packets += c.packets;
		out->threads.strays += c.strays;
		out->threads.waiting_full += c.waiting_full;
		out->threads.events += c.events;
		out->threads.sessions += c.sessions;
	}
}

/* --- Start and stop --------------------------------------------------------------------------- */

static int thread_create(struct bridge_sessions *s, uint32_t t)
{
	struct session_env *env = &s->env[t];
	struct side_thread_config cfg = {.ops = &session_ops_side,
		.arg = env,
		.channel = s->channel[t],
		.max = s->cfg.max,
		.event_fd = s->cfg.event_fd,
		.index = t,
		.keep_not = s->cfg.keep_not};
	struct timespec now;

	for (uint32_t w = t; w < s->cfg.workers; w += s->cfg.threads)
		s->channel[t][cfg.channels++] = s->cfg.channel[w];
	for (uint32_t i = 0; i < SUITE_COUNT && s->cfg.profile[i] != SUITE_PLAIN; i++)
		if (env->profiles < DTLS_PROFILES_MAX)
			env->profile[env->profiles++] = (enum srtp_suite_id)s->cfg.profile[i];
	env->sha1 = s->cfg.sha1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int err = dtls_gate_create(&env->gate, (uint64_t)now.tv_sec * 1000000000u);

	return err ? err : side_thread_create(&s->thread[t], &cfg);
}

int bridge_sessions_create(struct bridge_sessions **out, const struct bridge_sessions_config *cfg)
{
	struct bridge_sessions *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->place = calloc(cfg->max, sizeof(*s->place));
	s->free_place = calloc(cfg->max, sizeof(*s->free_place));
	err = s->place && s->free_place ? 0 : -ENOMEM;
	for (uint32_t i = 0; !err && i < cfg->max; i++)
		s->free_place[s->free_n++] = cfg->max - 1 - i;
	err = err ? err : dtls_cert_create(&s->cert, (uint64_t)time(NULL), CERT_LIFE_S);
	for (uint32_t t = 0; !err && t < cfg->threads; t++)
		err = thread_create(s, t);
	if (err)
		bridge_sessions_destroy(s);
	else
		*out = s;
	return err;
}

int bridge_sessions_start(struct bridge_sessions *s)
{
	int err = 0;

	for (uint32_t t = 0; !err && t < s->cfg.threads; t++)
		err = side_thread_start(s->thread[t]);
	return err;
}

void bridge_sessions_destroy(struct bridge_sessions *s)
{
	if (!s)
		return;
	for (uint32_t t = 0; t < s->cfg.threads; t++) {
		side_thread_destroy(s->thread[t]);
		dtls_gate_destroy(s->env[t].gate);
	}
	dtls_cert_put(s->cert);
	free(s->place);
	free(s->free_place);
	secmem_wipe(s, sizeof(*s));
	free(s);
}
