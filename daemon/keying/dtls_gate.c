/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cookies of HelloVerifyRequest (RFC 6347 4.2.1). */
#include "keying/dtls_gate.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/secmem.h"

#define SECRET_LEN 16u
#define TEXT_MAX   (2 + 4 + 16 + 32 + 32) /* address, random, session id */

struct dtls_gate {
	uint64_t rotated_ns;
	uint8_t secret[2][SECRET_LEN]; /* current, previous */
};

int dtls_gate_create(struct dtls_gate **out, uint64_t now_ns)
{
	struct dtls_gate *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	err = secmem_random(g->secret, sizeof(g->secret));
	if (err) {
		dtls_gate_destroy(g);
		return err;
	}
	g->rotated_ns = now_ns;
	*out = g;
	return 0;
}

void dtls_gate_destroy(struct dtls_gate *g)
{
	if (!g)
		return;
	secmem_wipe(g, sizeof(*g));
	free(g);
}

/* After a pause of two periods both secrets are replaced. If the kernel has no random bytes, the
 * old secret stays: it is still unknown to others. */
static void rotate(struct dtls_gate *g, uint64_t now_ns)
{
	uint8_t fresh[SECRET_LEN];
	int rounds = 0;

	while (rounds < 2 && now_ns >= g->rotated_ns + DTLS_COOKIE_LIFE_NS) {
		if (secmem_random(fresh, sizeof(fresh)))
			return;
		memcpy(g->secret[1], g->secret[0], SECRET_LEN);
		memcpy(g->secret[0], fresh, SECRET_LEN);
		g->rotated_ns += DTLS_COOKIE_LIFE_NS;
		rounds++;
	}
	if (rounds == 2)
		g->rotated_ns = now_ns;
	secmem_wipe(fresh, sizeof(fresh));
}

/* SipHash with 128 bits. OpenSSL 3.0 allocates memory for each HMAC, and takes ten times as
 * long. */
static void make_cookie(const struct dtls_gate *g, uint8_t out[DTLS_COOKIE_LEN], uint32_t which,
	const struct endpoint *src, const struct dtls_hello *h)
{
	uint8_t text[TEXT_MAX] = {src->family, (uint8_t)h->session.len};
	size_t at = 2;

	put_be16(text + at, src->port);
	put_be16(text + at + 2, h->version);
	at += 4;
	memcpy(text + at, src->addr, sizeof(src->addr));
	at += sizeof(src->addr);
	memcpy(text + at, h->random.s, h->random.len);
	at += h->random.len;
	if (h->session.len)
		memcpy(text + at, h->session.s, h->session.len);
	at += h->session.len;
	hash_siphash128(out, g->secret[which], text, at);
}

/* HelloVerifyRequest with the record sequence number of the ClientHello, as RFC 6347 4.2.1
 * demands. Its version is DTLS 1.0, whatever will be negotiated. */
static size_t write_verify(
	uint8_t *p, const struct dtls_hello *h, const uint8_t cookie[DTLS_COOKIE_LEN])
{
	const uint8_t body = 3 + DTLS_COOKIE_LEN;
	uint8_t *m = p + DTLS_RECORD_HDR;

	memset(p, 0, DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR);
	p[0] = 22;
	put_be16(p + 1, 0xfeff);
	put_be16(p + 5, (uint16_t)(h->record_seq >> 32));
	put_be32(p + 7, (uint32_t)h->record_seq);
	put_be16(p + 11, DTLS_HANDSHAKE_HDR + body);
	m[0] = 3;
	m[3] = m[11] = body;
	m += DTLS_HANDSHAKE_HDR;
	put_be16(m, 0xfeff);
	m[2] = DTLS_COOKIE_LEN;
	memcpy(m + 3, cookie, DTLS_COOKIE_LEN);
	return DTLS_RECORD_HDR + DTLS_HANDSHAKE_HDR + body;
}

static enum dtls_gate_verdict drop(struct dtls_gate_reply *reply, enum dtls_drop why)
{
	reply->why = why;
	return DTLS_GATE_DROP;
}

enum dtls_gate_verdict dtls_gate_take(struct dtls_gate *g, const struct endpoint *src,
	const uint8_t *p, size_t len, uint64_t now_ns, struct dtls_gate_reply *reply)
{
	uint8_t cookie[DTLS_COOKIE_LEN];
	struct dtls_hello h;
	enum dtls_drop why = dtls_filter(p, len, false);

	reply->why = DTLS_DROP_NONE;
	reply->len = 0;
	if (why != DTLS_DROP_NONE)
		return drop(reply, why);
	if (dtls_hello_parse(&h, p, len))
		return drop(reply, DTLS_DROP_UNPROVEN);
	rotate(g, now_ns);
	for (uint32_t i = 0; h.cookie.len == DTLS_COOKIE_LEN && i < 2; i++) {
		make_cookie(g, cookie, i, src, &h);
		if (secmem_equal(cookie, h.cookie.s, DTLS_COOKIE_LEN))
			return DTLS_GATE_PASS;
	}
	/* A wrong cookie counts as none (RFC 6347 4.2.1): it may have expired. */
	make_cookie(g, cookie, 0, src, &h);
	reply->len = write_verify(reply->p, &h, cookie);
	return DTLS_GATE_REPLY;
}
