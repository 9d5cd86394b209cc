/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles of sessions, and commands to the keying threads. Handles are reused at once. Each use
 * gets a new serial, so that late packets and events of earlier uses are recognised. */
#include "bridge/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/secmem.h"
#include "side/session_ops.h"

#define CERT_LIFE_S (60u * 86400u) /* renewed after half of its life */
#define WAITING_MAX 1024u          /* limit of queued commands, above which new calls are refused */
#define HELD_MAX    1024u          /* limit of queued events for busy workers */

struct place {
	uint32_t serial; /* place + a multiple of max; 0: never used */
	uint32_t thread;
	uint32_t worker;
	uint32_t stream[SESSION_PORTS], streams;
	bool taken, open;
	/* The command is queued, as the ring had no room. */
	bool in_line, closing;
	struct session_order *order; /* NULL: none waits */
	/* The certificate of the last order. Our offer named it, so its answer needs it, even if
	 * the current one has changed. */
	struct dtls_cert *cert;
	/* The next order, prepared but not in force; NULL: none. */
	struct session_order *next;
	uint32_t next_worker, next_stream[SESSION_PORTS], next_streams;
	struct dtls_cert *next_cert;
};

/* Queue of events for calls whose worker takes no commands now, oldest first. Events of other
 * workers overtake them. If a stuck worker fills the queue, the thread's events wait. */
struct held {
	struct side_event event[HELD_MAX];
	uint32_t n;
	bool busy[SESSIONS_WORKERS_MAX]; /* an event of this worker was refused: keep the order
					  * of the others */
};

struct bridge_sessions {
	struct bridge_sessions_config cfg;
	struct session_env env[SESSIONS_THREADS_MAX];
	struct side_thread *thread[SESSIONS_THREADS_MAX];
	struct side_channel *channel[SESSIONS_THREADS_MAX][SESSIONS_WORKERS_MAX];
	struct held *held[SESSIONS_THREADS_MAX];
	struct dtls_cert *cert; /* the current one */
	struct place *place;    /* [max] */
	uint32_t *free_place;   /* stack */
	uint32_t free_n;
	uint32_t *line; /* places with queued commands, a ring; each at most once */
	uint32_t line_first, line_n;
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
	/* Serial 0 means none. */
	p->serial = p->serial && p->serial < UINT32_MAX - s->cfg.max ? p->serial + s->cfg.max
								     : *session + s->cfg.max;
	p->taken = true;
	p->open = false;
	*serial = p->serial;
	return 0;
}

static void set_cert(struct dtls_cert **held, struct dtls_cert *cert)
{
	dtls_cert_put(*held);
	*held = cert;
}

static void give_back(struct bridge_sessions *s, uint32_t session)
{
	s->place[session].taken = s->place[session].open = s->place[session].closing = false;
	set_cert(&s->place[session].cert, NULL);
	s->free_place[s->free_n++] = session;
}

/* --- Commands --------------------------------------------------------------------------------- */

static void wait_in_line(struct bridge_sessions *s, uint32_t session)
{
	if (s->place[session].in_line)
		return;
	s->place[session].in_line = true;
	s->line[(s->line_first + s->line_n++) % s->cfg.max] = session;
}

/* Sends the place's queued command. False: still no room. */
static bool send_command(struct bridge_sessions *s, uint32_t session)
{
	struct place *p = &s->place[session];
	struct side_cmd c = {.kind = p->closing ? SIDE_CLOSE
			: p->open               ? SIDE_CHANGE
						: SIDE_OPEN,
		.serial = p->serial,
		.channel = p->worker / s->cfg.threads,
		.streams = p->streams,
		.cfg = p->order};

	memcpy(c.stream, p->stream, sizeof(c.stream));
	if (!p->closing && !p->order)
		return true;
	if (side_thread_command(s->thread[p->thread], &c))
		return false;
	p->order = NULL;
	p->open = true;
	if (p->closing)
		give_back(s, session);
	return true;
}

static void send_line(struct bridge_sessions *s)
{
	while (s->line_n && send_command(s, s->line[s->line_first])) {
		s->place[s->line[s->line_first]].in_line = false;
		s->line_first = (s->line_first + 1) % s->cfg.max;
		s->line_n--;
	}
}

static void command(struct bridge_sessions *s, uint32_t session)
{
	if (s->place[session].in_line || !send_command(s, session))
		wait_in_line(s, session);
}

static void op_undo(void *arg, uint32_t session)
{
	struct bridge_sessions *s = arg;

	session_order_free(s->place[session].next);
	s->place[session].next = NULL;
	set_cert(&s->place[session].next_cert, NULL);
}

static void op_release(void *arg, uint32_t session)
{
	struct bridge_sessions *s = arg;
	struct place *p = &s->place[session];

	op_undo(s, session);
	session_order_free(p->order);
	p->order = NULL;
	p->taken = false;
	if (!p->open) {
		give_back(s, session);
		return;
	}
	p->closing = true;
	command(s, session);
}

static bool is_restored(const struct session_cfg *cfg)
{
	return cfg->dtls.established || cfg->zrtp.established || cfg->selected[0].family;
}

/* The certificate that SDP named to this terminal. If it is gone with an earlier process, the
 * current one. */
static struct dtls_cert *find_cert(
	const struct bridge_sessions *s, const struct place *p, uint64_t id)
{
	return p->cert && dtls_cert_id(p->cert) == id ? p->cert : s->cert;
}

static int op_set(void *arg, uint32_t session, uint32_t worker, const struct relay_port *port,
	const struct session_cfg *cfg)
{
	struct bridge_sessions *s = arg;
	struct place *p = &s->place[session];
	struct dtls_cert *cert = find_cert(s, p, cfg->dtls.cert);
	struct session_order *order;

	if (s->line_n >= WAITING_MAX && !p->open && !p->order && !is_restored(cfg))
		return -EAGAIN;
	order = session_order_new(cfg, cert);
	if (!order)
		return -ENOMEM;
	op_undo(s, session);
	p->next = order;
	p->next_cert = dtls_cert_get(cert);
	p->next_worker = worker;
	p->next_streams = 0;
	for (uint32_t i = 0; i < cfg->locals && i < SESSION_LOCALS; i++) {
		p->next_stream[p->next_streams++] = port[i].rtp_stream;
		p->next_stream[p->next_streams++] = port[i].rtcp_stream;
	}
	return 0;
}

static void op_send(void *arg, uint32_t session)
{
	struct bridge_sessions *s = arg;
	struct place *p = &s->place[session];

	if (!p->next)
		return;
	session_order_free(p->order);
	p->order = p->next;
	p->next = NULL;
	set_cert(&p->cert, p->next_cert);
	p->next_cert = NULL;
	p->worker = p->next_worker;
	p->thread = p->worker % s->cfg.threads;
	p->streams = p->next_streams;
	memcpy(p->stream, p->next_stream, sizeof(p->stream));
	command(s, session);
}

/* Queued commands go first. */
static int op_settle(void *arg, uint32_t session, uint32_t association, bool rtcp)
{
	struct bridge_sessions *s = arg;
	const struct place *p = &s->place[session];
	const struct side_cmd c = {
		.kind = SIDE_SETTLE, .serial = p->serial, .association = association, .rtcp = rtcp};

	return p->in_line || !p->open ? -EAGAIN : side_thread_command(s->thread[p->thread], &c);
}

static int op_fingerprint(void *arg, struct dtls_fingerprint *out, enum dtls_hash h)
{
	struct bridge_sessions *s = arg;

	return dtls_cert_fingerprint(out, s->cert, h);
}

const struct session_ops bridge_session_ops = {.take = op_take,
	.release = op_release,
	.set = op_set,
	.send = op_send,
	.undo = op_undo,
	.settle = op_settle,
	.fingerprint = op_fingerprint};

/* --- Events ----------------------------------------------------------------------------------- */

/* False: the call cannot take the event now. Events are reported once and must not be lost: without
 * keys the call would stay silent. */
static bool deliver(struct bridge_sessions *s, const struct side_event *e)
{
	uint32_t id = e->serial % s->cfg.max;

	if (!s->place[id].taken || s->place[id].serial != e->serial)
		return true;
	if (s->cfg.event(s->cfg.event_arg, id, &e->what) == -EAGAIN)
		return false;
	return true;
}

static bool passes(struct bridge_sessions *s, struct held *h, const struct side_event *e)
{
	bool *busy = &h->busy[s->place[e->serial % s->cfg.max].worker];

	*busy = *busy || !deliver(s, e);
	return !*busy;
}

static void retry(struct bridge_sessions *s, struct held *h)
{
	uint32_t n = h->n;

	memset(h->busy, 0, sizeof(h->busy));
	h->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!passes(s, h, &h->event[i])) {
			if (h->n != i)
				h->event[h->n] = h->event[i];
			h->n++;
		}
	}
	secmem_wipe(&h->event[h->n], (n - h->n) * sizeof(h->event[0]));
}

void bridge_sessions_poll(struct bridge_sessions *s)
{
	for (uint32_t t = 0; t < s->cfg.threads; t++) {
		struct held *h = s->held[t];

		retry(s, h);
		while (h->n < HELD_MAX && side_thread_event(s->thread[t], &h->event[h->n]))
			if (passes(s, h, &h->event[h->n]))
				secmem_wipe(&h->event[h->n], sizeof(h->event[0]));
			else
				h->n++;
	}
	send_line(s);
}

void bridge_sessions_tick(struct bridge_sessions *s, uint64_t now_s)
{
	struct dtls_cert *fresh;

	if (!dtls_cert_is_old(s->cert, now_s) || dtls_cert_create(&fresh, now_s, CERT_LIFE_S))
		return;
	set_cert(&s->cert, fresh);
}

void bridge_sessions_use_cert(struct bridge_sessions *s, struct dtls_cert *cert)
{
	set_cert(&s->cert, dtls_cert_get(cert));
}

void bridge_sessions_usage(const struct bridge_sessions *s, struct bridge_sessions_usage *out)
{
	*out = (struct bridge_sessions_usage){
		.sessions = s->cfg.max - s->free_n, .waiting = s->line_n, .totals = s->cfg.threads};
	for (uint32_t t = 0; t < s->cfg.threads; t++) {
		struct side_thread_counts c = side_thread_counts(s->thread[t]);

		out->total[t] = &s->env[t].total;
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
	env->zrtp_disclose = s->cfg.zrtp_disclose;
	env->store = s->cfg.zrtp_store;
	s->held[t] = calloc(1, sizeof(*s->held[t]));
	if (!s->held[t])
		return -ENOMEM;
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
	s->line = calloc(cfg->max, sizeof(*s->line));
	err = s->place && s->free_place && s->line ? 0 : -ENOMEM;
	for (uint32_t i = 0; !err && i < cfg->max; i++)
		s->free_place[s->free_n++] = cfg->max - 1 - i;
	if (cfg->cert)
		s->cert = dtls_cert_get(cfg->cert);
	else
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
		if (s->held[t])
			secmem_wipe(s->held[t], sizeof(*s->held[t]));
		free(s->held[t]);
	}
	dtls_cert_put(s->cert);
	for (uint32_t i = 0; s->place && i < s->cfg.max; i++) {
		session_order_free(s->place[i].order);
		op_undo(s, i);
		set_cert(&s->place[i].cert, NULL);
	}
	free(s->place);
	free(s->free_place);
	free(s->line);
	secmem_wipe(s, sizeof(*s));
	free(s);
}
