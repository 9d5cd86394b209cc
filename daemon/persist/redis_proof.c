/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Proves that the claim of another node is not an old one, replayed by an attacker who can write to
 * Redis. We publish a random number, and the active node publishes its claim with this number in
 * it. The claim also shows its current salt (persist/redis_crypt.h). From then on its messages are
 * accepted in the order of their counters, each once.
 *
 *   claim, question   kind(1), sealed under "xcipher:DB:owner/KIND": id(16) number(8) nonce(16) */
#include <errno.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "persist/redis_int.h"

#define AGAIN_NS \
	(NS_PER_SEC / 5) /* between questions: the other node may not have subscribed
				      * yet */
#define PROOF_NS    (3 * NS_PER_SEC)
#define DEAF_NS     (10 * NS_PER_SEC) /* pause if the subscription fails */
#define ANSWERS     50u               /* a second */
#define CLAIM_BYTES (REDIS_ID_LEN + 8 + REDIS_NONCE_LEN)

static struct str name_of(const struct redis *r, char out[40], char kind)
{
	size_t len = strlen(r->owners);

	memcpy(out, r->owners, len);
	out[len] = '/';
	out[len + 1] = kind;
	return (struct str){out, len + 2};
}

int redis_claim_write(struct redis *r, struct sbuf *out, char kind, const struct redis_claim *c)
{
	uint8_t b[CLAIM_BYTES];
	char name[40];

	memcpy(b, c->id, REDIS_ID_LEN);
	put_be32(b + REDIS_ID_LEN, (uint32_t)(c->number >> 32));
	put_be32(b + REDIS_ID_LEN + 4, (uint32_t)c->number);
	memcpy(b + REDIS_ID_LEN + 8, c->nonce, REDIS_NONCE_LEN);
	sbuf_put(out, &kind, 1);
	return redis_crypt_close(
		r->crypt, out, name_of(r, name, kind), (struct str){(const char *)b, sizeof(b)});
}

int redis_claim_read(
	struct redis *r, struct redis_claim *out, struct redis_crypt_origin *from, struct str text)
{
	char kind = text.len ? text.s[0] : 0, name[40];
	const uint8_t *b;
	struct str sealed;
	struct sbuf plain;
	int err;

	if (kind != REDIS_SAYS_CLAIM && kind != REDIS_SAYS_ASK)
		return -EBADMSG;
	sealed = (struct str){text.s + 1, text.len - 1};
	sbuf_init(&plain, 0);
	err = redis_crypt_open(r->crypt, &plain, name_of(r, name, kind), sealed);
	if (!err && plain.len != CLAIM_BYTES)
		err = -EBADMSG;
	if (!err) {
		b = (const uint8_t *)plain.p;
		memcpy(out->id, b, REDIS_ID_LEN);
		out->number = (uint64_t)be32(b + REDIS_ID_LEN) << 32 | be32(b + REDIS_ID_LEN + 4);
		memcpy(out->nonce, b + REDIS_ID_LEN + 8, REDIS_NONCE_LEN);
		*from = (struct redis_crypt_origin){0};
		redis_crypt_origin(from, sealed);
	}
	sbuf_fini(&plain);
	return err ? err : kind;
}

static void publish(struct redis *r, char kind, const struct redis_claim *c)
{
	struct sbuf b;

	sbuf_init(&b, 0);
	if (!redis_claim_write(r, &b, kind, c))
		redis_link_send(r->link, redis_on_published, NULL, 3,
			(struct str[]){STR("PUBLISH"), str_from(r->owners), sbuf_view(&b)});
	sbuf_fini(&b);
}

/* --- Asking ----------------------------------------------------------------------------------- */

void redis_proof_start(struct redis *r)
{
	struct redis_proof *p = &r->proof;
	uint64_t now = clock_mono_ns();

	if (p->pending || secmem_random(p->nonce, sizeof(p->nonce)))
		return;
	p->pending = true;
	p->began_ns = now;
	p->again_ns = 0;
	redis_proof_step(r);
}

void redis_proof_step(struct redis *r)
{
	struct redis_proof *p = &r->proof;
	struct redis_claim c = {.number = r->number};
	uint64_t now;

	if (!p->pending)
		return;
	now = clock_mono_ns();
	if (now > p->began_ns + (r->listening ? PROOF_NS : DEAF_NS)) {
		p->pending = false;
		p->failed_ns = now;
		/* Without a connection, the question is repeated when there is one. */
		if (r->mode == REDIS_FOLLOWING || redis_link_is_up(r->link))
			redis_owner_unproved(r);
		return;
	}
	if (now < p->again_ns || !r->listening || !redis_link_is_up(r->link))
		return;
	p->again_ns = now + AGAIN_NS;
	memcpy(c.id, r->id, sizeof(c.id));
	memcpy(c.nonce, p->nonce, sizeof(c.nonce));
	publish(r, REDIS_SAYS_ASK, &c);
}

bool redis_proof_check(
	struct redis *r, const struct redis_claim *c, const struct redis_crypt_origin *from)
{
	struct redis_proof *p = &r->proof;
	bool new_life;

	if (!p->pending || !secmem_equal(c->nonce, p->nonce, sizeof(c->nonce)))
		return false;
	new_life = !redis_proof_known(r, from);
	p->pending = false;
	p->proved = true;
	if (new_life || from->counter > p->active.counter)
		p->active = *from;
	redis_owner_proved(r, c, new_life);
	return true;
}

bool redis_proof_known(const struct redis *r, const struct redis_crypt_origin *from)
{
	return r->proof.proved && memcmp(r->proof.active.salt, from->salt, sizeof(from->salt)) == 0;
}

bool redis_proof_is_next(struct redis *r, const struct redis_crypt_origin *from)
{
	if (!redis_proof_known(r, from) || from->counter <= r->proof.active.counter)
		return false;
	r->proof.active.counter = from->counter;
	return true;
}

/* --- Answering -------------------------------------------------------------------------------- */

/* An attacker may replay questions, so answers are limited. */
void redis_proof_answer(struct redis *r, const struct redis_claim *question)
{
	struct redis_proof *p = &r->proof;
	struct redis_claim c = *question;
	uint64_t now = clock_mono_ns();

	if (now > p->answers_ns + NS_PER_SEC) {
		p->answers_ns = now;
		p->answers = 0;
	}
	if (p->answers++ >= ANSWERS)
		return;
	memcpy(c.id, r->id, sizeof(c.id));
	c.number = r->number;
	publish(r, REDIS_SAYS_CLAIM, &c);
}
