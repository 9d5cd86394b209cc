/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates and ends the keying threads: a side channel for each worker, the threads, and their
 * connection with calls. */
#include "app/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "app/cert_file.h"
#include "app/privileges.h"
#include "base/log.h"
#include "packet/side.h"

int daemon_channel_create(struct daemon *d)
{
	struct side_channel *c;

	if (!d->o.keying_threads)
		return 0;
	c = aligned_alloc(64, (sizeof(*c) + 63) / 64 * 64);
	if (!c || side_init(c)) {
		free(c);
		return -ENOMEM;
	}
	d->channel[d->channels++] = c;
	return 0;
}

static int on_event(void *arg, uint32_t session, const struct session_event *e)
{
	struct daemon *d = arg;

	return calls_session_event(d->calls, session, e, clock_real_ns());
}

static void on_ready(void *arg, uint32_t events)
{
	struct daemon *d = arg;
	uint64_t count;

	(void)events;
	(void)!read(d->sessions_fd, &count, sizeof(count));
	bridge_sessions_poll(d->sessions);
}

static void zrtp_notice(const struct call_session_notice *n, const struct log_about *about)
{
	const char *verified = n->verified ? "verified" : "not verified";

	switch (n->kind) {
	case SESSION_KEYS:
		log_call(LOG_INFO, about, "ZRTP exchange completed: %s, SAS %s, %s", n->why, n->sas,
			verified);
		if (n->mismatched)
			log_call(LOG_WARNING, about,
				"ZRTP: retained secrets of the terminal do not match; its user should compare the SAS");
		if (n->discloses)
			log_call(LOG_WARNING, about,
				"ZRTP: the terminal says that it may disclose keys or media to others");
		break;
	case SESSION_ABSENT:
		log_call(LOG_WARNING, about,
			"the terminal does not answer ZRTP: its media are in clear");
		break;
	case SESSION_FALLBACK:
		log_call(LOG_WARNING, about,
			"ZRTP failed: %s; its media are in clear, as the request allows (ZRTP=fallback)",
			n->why);
		break;
	case SESSION_CLEAR:
		log_call(LOG_WARNING, about,
			"the terminal ended SRTP by GoClear: its media are in clear");
		break;
	case SESSION_FAILED:
		log_call(LOG_WARNING, about, "ZRTP failed: %s", n->why);
		break;
	}
}

static void session_notice(void *arg, const struct call_session_notice *n)
{
	struct log_about about = {
		.call_id = n->call_id, .side = n->tag, .stream = n->rtcp ? "RTCP" : "RTP"};

	(void)arg;
	if (n->sas) {
		zrtp_notice(n, &about);
		return;
	}
	switch (n->kind) {
	case SESSION_KEYS:
		log_call(LOG_INFO, &about, "DTLS handshake completed: %s", n->why);
		break;
	case SESSION_FAILED:
		log_call(LOG_WARNING, &about, "no media: %s", n->why);
		break;
	case SESSION_FALLBACK:
		log_call(LOG_WARNING, &about,
			"%s: media of this emergency call are in clear (allow-RTP-answer)", n->why);
		break;
	case SESSION_LOST:
		log_call(LOG_NOTICE, &about, "ICE consent lost: nothing is sent to the terminal");
		break;
	default:
		break;
	}
}

int daemon_cert_load(const struct daemon *d, struct dtls_cert **out, char *err, size_t err_len)
{
	const char *key = d->o.dtls_key;

	return d->o.dtls_cert[0]
		? cert_file_load(out, d->o.dtls_cert, key[0] ? key : NULL, err, err_len)
		: 0;
}

static int sessions_create(struct daemon *d, struct bridge_sessions_config *cfg)
{
	int err = daemon_cert_load(d, &cfg->cert, d->err, sizeof(d->err));

	err = err ? err : bridge_sessions_create(&d->sessions, cfg);
	dtls_cert_put(cfg->cert);
	return err;
}

int daemon_keying_create(struct daemon *d)
{
	struct bridge_sessions_config cfg = {.channel = d->channel,
		.workers = d->workers,
		.threads = d->o.keying_threads,
		.max = d->legs,
		.keep_not = ~0ull,
		.sha1 = d->o.dtls_sha1,
		.event = on_event,
		.event_arg = d};
	int err;

	memcpy(cfg.profile, d->o.dtls_profile, sizeof(cfg.profile));
	err = daemon_zrtp_create(d);
	if (err || !cfg.threads)
		return err;
	cfg.zrtp_disclose = d->o.zrtp_disclosure;
	cfg.zrtp_store = d->zrtp.store;
	if (cfg.threads > cfg.workers)
		cfg.threads = cfg.workers; /* each worker's sessions use a single thread */
	d->sessions_fd = cfg.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = cfg.event_fd < 0 ? -errno : sessions_create(d, &cfg);
	return err ? daemon_fail(d, err, "keying-threads") : 0;
}

int daemon_keying_start(struct daemon *d)
{
	struct loop_io *io;
	int err;

	if (!d->sessions)
		return 0;
	d->sessions_border = (struct sessions){.ops = &bridge_session_ops,
		.arg = d->sessions,
		.max = d->legs,
		.sha1 = d->o.dtls_sha1,
		.zrtp = true};
	for (uint32_t i = 0; i < SUITE_COUNT && d->o.dtls_profile[i] != SUITE_PLAIN; i++)
		d->sessions_border.profiles |= 1u << d->o.dtls_profile[i];
	d->relay_border.sessions = &d->sessions_border;
	calls_on_session(d->calls, session_notice, d);
	err = calls_set_sessions(d->calls, d->sessions_border.max);
	err = err ? err : loop_io_add(d->loop, &io, d->sessions_fd, EPOLLIN, on_ready, d);
	err = err ? err : bridge_sessions_start(d->sessions);
	return err ? daemon_fail(d, err, "keying-threads") : 0;
}

void daemon_keying_tick(struct daemon *d)
{
	if (!d->sessions)
		return;
	bridge_sessions_poll(d->sessions);
	bridge_sessions_tick(d->sessions, clock_real_ns() / NS_PER_SEC);
}

void daemon_keying_stop(struct daemon *d)
{
	bridge_sessions_destroy(d->sessions);
	if (d->sessions && d->sessions_fd >= 0)
		close(d->sessions_fd);
	d->sessions = NULL;
}

void daemon_channels_destroy(struct daemon *d)
{
	for (uint32_t i = 0; i < d->channels; i++) {
		side_fini(d->channel[i]);
		free(d->channel[i]);
	}
	d->channels = 0;
}
