/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What calls need of the keying threads, as an interface: sessions of legs (keying/session.h).
 * bridge/ implements it over the side channel, tests implement it in memory. Control thread only;
 * never blocks. */
#ifndef CALL_SESSION_H
#define CALL_SESSION_H

#include "call/relay.h"
#include "keying/session.h"

struct session_ops {
	/* Takes a handle below max; -ENOSPC when all are used. *serial: a new number each time, for
	 * media_stream_cfg.side_serial. */
	int (*take)(void *arg, uint32_t *session, uint32_t *serial);
	/* Ends it. close_notify is sent if there was a handshake. */
	void (*release)(void *arg, uint32_t session);
	/* Prepares the session's settings; unchanged ones stay in use. send() puts them into force,
	 * undo() forgets them. port: cfg->locals pairs. 0, -EAGAIN: the keying thread is
	 * overloaded; -ENOMEM. */
	int (*set)(void *arg, uint32_t session, uint32_t worker, const struct relay_port *port,
		const struct session_cfg *cfg);
	void (*send)(void *arg, uint32_t session); /* never fails; does nothing if nothing is
						    * prepared */
	void (*undo)(void *arg, uint32_t session);
	/* The terminal has sent media under the keys of this association or exchange of ZRTP, so
	 * it has completed it. 0, or -EAGAIN. */
	int (*settle)(void *arg, uint32_t session, uint32_t association, bool rtcp);
	/* Fingerprint of the certificate for new associations. 0 or -EINVAL. */
	int (*fingerprint)(void *arg, struct dtls_fingerprint *out, enum dtls_hash h);
};

struct sessions {
	const struct session_ops *ops;
	void *arg;
	uint32_t max;      /* handles */
	uint32_t profiles; /* bit per suite: SRTP profiles of DTLS */
	bool sha1;         /* accept SHA-1 in a=fingerprint */
	bool zrtp;         /* ZRTP exchanges are available */
};

#endif
