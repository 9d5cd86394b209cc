/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keying threads in memory (call/session.h). A mock hands out handles, checks every use of them,
 * and remembers the settings of each session. Each test includes it once. */
#ifndef MOCK_SESSIONS_H
#define MOCK_SESSIONS_H

#include <errno.h>
#include <string.h>

#include "call/call_int.h"
#include "call/session.h"
#include "mock_relay.h"

#define MOCK_SESSIONS 8u

struct mock_sessions {
	struct sessions sessions;
	bool taken[MOCK_SESSIONS];
	struct session_cfg cfg[MOCK_SESSIONS];  /* in force */
	struct session_cfg next[MOCK_SESSIONS]; /* until send() or undo() */
	bool has_next[MOCK_SESSIONS];
	struct relay_port port[MOCK_SESSIONS][SESSION_LOCALS];
	uint32_t sets;
	uint32_t settled[2]; /* associations, by [rtcp] */
	uint8_t cert;        /* which one */
	bool full;           /* the keying thread takes no commands */
};

static int mock_session_take(void *arg, uint32_t *session, uint32_t *serial)
{
	struct mock_sessions *m = arg;
	uint32_t i = 0;

	while (i < MOCK_SESSIONS && m->taken[i])
		i++;
	if (i == MOCK_SESSIONS)
		return -ENOSPC;
	m->taken[i] = true;
	memset(m->port[i], 0, sizeof(m->port[i]));
	*session = i;
	*serial = i + 1;
	return 0;
}

static void mock_session_release(void *arg, uint32_t session)
{
	struct mock_sessions *m = arg;

	assert_true(m->taken[session]);
	m->taken[session] = false;
}

static int mock_session_set(void *arg, uint32_t session, uint32_t worker,
	const struct relay_port *port, const struct session_cfg *cfg)
{
	struct mock_sessions *m = arg;

	(void)worker;
	assert_true(m->taken[session]);
	if (m->full)
		return -EAGAIN;
	m->next[session] = *cfg;
	m->has_next[session] = true;
	memset(m->port[session], 0, sizeof(m->port[session]));
	memcpy(m->port[session], port, cfg->locals * sizeof(*port));
	m->sets++;
	return 0;
}

static void mock_session_send(void *arg, uint32_t session)
{
	struct mock_sessions *m = arg;

	assert_true(m->taken[session]);
	if (m->has_next[session])
		m->cfg[session] = m->next[session];
	m->has_next[session] = false;
}

static void mock_session_undo(void *arg, uint32_t session)
{
	struct mock_sessions *m = arg;

	m->has_next[session] = false;
}

static int mock_session_settle(void *arg, uint32_t session, uint32_t association, bool rtcp)
{
	struct mock_sessions *m = arg;

	assert_true(m->taken[session]);
	if (m->full)
		return -EAGAIN;
	assert_int_not_equal(m->settled[rtcp], association); /* told once */
	m->settled[rtcp] = association;
	return 0;
}

static int mock_session_fingerprint(void *arg, struct dtls_fingerprint *out, enum dtls_hash h)
{
	const struct mock_sessions *m = arg;

	*out = (struct dtls_fingerprint){.hash = (uint8_t)h, .value = {0xab, 0xcd, m->cert}};
	return 0;
}

/* Gives calls these sessions. The caller has zeroed m, or keeps it over a restart of the calls. */
static inline void mock_sessions_start(
	struct mock_sessions *m, struct mock_relay *relay, struct calls *calls)
{
	static const struct session_ops ops = {.take = mock_session_take,
		.release = mock_session_release,
		.set = mock_session_set,
		.send = mock_session_send,
		.undo = mock_session_undo,
		.settle = mock_session_settle,
		.fingerprint = mock_session_fingerprint};

	m->sessions.ops = &ops;
	m->sessions.arg = m;
	m->sessions.max = MOCK_SESSIONS;
	m->sessions.profiles = UINT32_MAX;
	relay->relay.sessions = &m->sessions;
	assert_int_equal(calls_set_sessions(calls, MOCK_SESSIONS), 0);
}

/* Checks that all sessions were released. */
static inline void mock_sessions_end(const struct mock_sessions *m)
{
	for (uint32_t i = 0; i < MOCK_SESSIONS; i++)
		assert_false(m->taken[i] || m->has_next[i]);
}

/* Returns the handle of the session whose leg has this local port, or MOCK_SESSIONS. */
static inline uint32_t mock_session_at(const struct mock_sessions *m, uint16_t port)
{
	uint32_t i = 0;

	while (i < MOCK_SESSIONS && !(m->taken[i] && m->port[i][0].rtp.port == port))
		i++;
	return i;
}

#endif
