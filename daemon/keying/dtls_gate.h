/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stateless cookies (RFC 6347 4.2.1) for servers whose peer's address is not proven by ICE. Until a
 * source has returned a cookie, its packets allocate nothing and reach no association. The reply is
 * shorter than the request, so it amplifies nothing.
 *
 * Use, for a packet whose source is neither selected by ICE nor already remembered as proven:
 *	switch (dtls_gate_take(g, &src, p, len, now_ns, &reply)) {
 *	case DTLS_GATE_PASS:  remember src as proven; dtls_take(a, p, len, now_ns);
 *	case DTLS_GATE_REPLY: send reply.p[0 .. reply.len) to src;
 *	case DTLS_GATE_DROP:  reply.why has the reason;
 *	}
 * Packets from a proven source go directly to dtls_take(). Each thread has a gate of its own. */
#ifndef KEYING_DTLS_GATE_H
#define KEYING_DTLS_GATE_H

#include "base/endpoint.h"
#include "keying/dtls_filter.h"

#define DTLS_COOKIE_LEN     16u
#define DTLS_GATE_REPLY_LEN 64u
/* The secret rotates this often; a cookie is accepted under the current and the previous one. */
#define DTLS_COOKIE_LIFE_NS 30000000000ull

struct dtls_gate;

enum dtls_gate_verdict { DTLS_GATE_DROP, DTLS_GATE_REPLY, DTLS_GATE_PASS };

struct dtls_gate_reply {
	enum dtls_drop why; /* with DTLS_GATE_DROP */
	size_t len;         /* with DTLS_GATE_REPLY: a HelloVerifyRequest */
	uint8_t p[DTLS_GATE_REPLY_LEN];
};

/* 0, -ENOMEM, or an error of secmem_random(). */
int dtls_gate_create(struct dtls_gate **out, uint64_t now_ns);
void dtls_gate_destroy(struct dtls_gate *g); /* NULL is fine */

/* Judges a packet. The cookie is a keyed hash of src and the ClientHello's version, random and
 * session id: a cookie works for one address and one ClientHello. Allocates nothing. */
enum dtls_gate_verdict dtls_gate_take(struct dtls_gate *g, const struct endpoint *src,
	const uint8_t *p, size_t len, uint64_t now_ns, struct dtls_gate_reply *reply);

#endif
