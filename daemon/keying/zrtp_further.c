/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A further stream of a known peer, in Multistream mode only (RFC 6189 4.4.3). Anybody can send a
 * Hello, a HelloACK or a Commit, so none of them decides anything: several of each are remembered
 * and answered, and the Confirm that proves the common secret decides whose they were. The peer's
 * Hello is not needed for its Commit, because only the responder's Hello is part of the keys.
 *
 * A Commit of ours needs it. It may have been lost, and our Commit ends its repetitions. So we
 * commit at once only to a passive peer, and to another one if it sent no Commit for 1.3 seconds
 * after our first Hello. By then it has sent its Hello up to eight times (T1), and its Commit would
 * have arrived even if a round trip takes a second. */
#include "keying/zrtp_int.h"

#include <errno.h>

#include "base/secmem.h"

#define MS           1000000ull
#define HELLOS       16u /* of the peer, or forged */
#define COMMITS      4u
#define STEP_HELLO   (100 * MS) /* then 200 ms, as T1 */
#define MOST_HELLO   (200 * MS)
#define STEPS_HELLO  20u
#define STEPS_ALONE  7u         /* Hellos without a Commit, 1.3 seconds: we commit */
#define STEP_COMMIT  (150 * MS) /* as T2 */
#define MOST_COMMIT  (1200 * MS)
#define STEPS_COMMIT 10u
/* Least time between two equal messages, however many Hellos arrive. */
#define GAP_NS (100 * MS)
/* An answer to a Commit costs ten key derivations. */
#define ANSWERS    4u
#define ANSWER_NS  (50 * MS)
#define NONCE      16u
#define COMMIT_LEN (COMMIT_HVI + NONCE + ZRTP_MAC)

struct repeated {
	const struct zrtp_msg *msg;
	uint64_t at_ns, sent_ns, step_ns, first_ns, most_ns;
	uint32_t left; /* times that it is still sent */
	uint32_t steps;
};

struct hello { /* the keys that it would give with our Commit */
	struct zrtp_msg msg;
	struct zrtp_session s;
	bool derived;
};

struct commit { /* a Commit that was answered */
	struct zrtp_msg msg, confirm;
	struct zrtp_session s;
	uint8_t alg[ZRTP_KINDS];
};

struct zrtp_further {
	struct hello hello[HELLOS]; /* [hellos % HELLOS] is the next to be overwritten */
	uint32_t hellos;
	struct commit commit[COMMITS];
	uint32_t commits;
	struct repeated own_hello, own_commit;
	uint8_t alg[ZRTP_KINDS]; /* of our Commit: those of the first exchange */
	bool passive; /* the peer never commits: its Hello of the first exchange says so */
	bool started, acked, committed;
	uint32_t answers; /* that are allowed now */
	uint64_t answers_ns;
};

int zrtp_further_create(struct zrtp *z)
{
	struct zrtp_further *f = secmem_alloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->own_hello = (struct repeated){.msg = &z->me.hello,
		.first_ns = STEP_HELLO,
		.most_ns = MOST_HELLO,
		.steps = STEPS_HELLO};
	f->own_commit = (struct repeated){.msg = &z->me.commit,
		.first_ns = STEP_COMMIT,
		.most_ns = MOST_COMMIT,
		.steps = STEPS_COMMIT};
	f->answers = ANSWERS;
	z->further = f;
	return 0;
}

void zrtp_further_destroy(struct zrtp *z)
{
	if (z->further)
		secmem_free(z->further, sizeof(*z->further));
	z->further = NULL;
}

void zrtp_further_of(struct zrtp *z, const struct zrtp *first)
{
	memcpy(z->further->alg, first->alg, sizeof(z->further->alg));
	z->further->alg[ZRTP_K_AGREEMENT] = ZRTP_MULT;
	z->further->alg[ZRTP_K_HASH] = (uint8_t)z->multi_hash;
	z->further->passive = first->peer.hello.b[HELLO_FLAGS] & HELLO_PASSIVE;
	memcpy(z->peer.zid, first->peer.zid, sizeof(z->peer.zid));
	z->peer_known = true;
}

/* --- What is repeated ------------------------------------------------------------------------- */

/* Schedules the message for at_ns or earlier, but GAP_NS after it was last sent, and repeats it. */
static void wake(struct repeated *r, uint64_t at_ns)
{
	uint64_t least = r->sent_ns ? r->sent_ns + GAP_NS : 0;

	at_ns = at_ns > least ? at_ns : least;
	if (!r->left || at_ns < r->at_ns)
		r->at_ns = at_ns;
	r->left = r->steps;
	r->step_ns = r->first_ns;
}

static void repeat(struct zrtp *z, struct repeated *r, uint64_t now_ns)
{
	if (!r->left || now_ns < r->at_ns)
		return;
	if (r->sent_ns && z->cfg.counts)
		z->cfg.counts->retransmitted++;
	zrtp_send(z, r->msg);
	r->left--;
	r->sent_ns = now_ns;
	r->at_ns = now_ns + r->step_ns;
	r->step_ns = r->step_ns * 2 < r->most_ns ? r->step_ns * 2 : r->most_ns;
}

/* Makes our Commit, once: the Hello that it answers is not part of it. */
static bool commit(struct zrtp *z)
{
	struct zrtp_further *f = z->further;

	memcpy(z->alg, f->alg, sizeof(z->alg));
	z->initiator = true;
	f->committed = f->committed || zrtp_commit_make(z) == 0;
	return f->committed;
}

void zrtp_further_start(struct zrtp *z, uint64_t now_ns)
{
	z->further->started = true;
	wake(&z->further->own_hello, now_ns);
	zrtp_further_tick(z, now_ns);
}

uint64_t zrtp_further_deadline(const struct zrtp *z)
{
	const struct repeated *a = &z->further->own_hello, *b = &z->further->own_commit;
	uint64_t at = a->left ? a->at_ns : UINT64_MAX;

	return b->left && b->at_ns < at ? b->at_ns : at;
}

void zrtp_further_tick(struct zrtp *z, uint64_t now_ns)
{
	struct zrtp_further *f = z->further;

	if (f->own_hello.left == STEPS_HELLO - STEPS_ALONE && f->acked && !f->passive &&
		now_ns >= f->own_hello.at_ns)
		wake(&f->own_commit, now_ns);
	repeat(z, &f->own_hello, now_ns);
	if (f->own_commit.left && now_ns >= f->own_commit.at_ns && commit(z))
		repeat(z, &f->own_commit, now_ns);
	z->phase = f->own_hello.left || f->own_commit.left ? PH_HELLO : PH_NO_PEER;
}

/* --- Hello ------------------------------------------------------------------------------------ */

static bool is_known(const struct zrtp_further *f, const uint8_t *m, uint32_t len)
{
	for (uint32_t i = 0; i < min_u32(f->hellos, HELLOS); i++)
		if (f->hello[i].msg.len == len && memcmp(f->hello[i].msg.b, m, len) == 0)
			return true;
	return false;
}

static int on_hello(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	struct zrtp_further *f = z->further;
	struct hello *h = &f->hello[f->hellos % HELLOS];

	if (!zrtp_hello_is_sound(m, len))
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	if (memcmp(m + HELLO_ZID, z->peer.zid, ZRTP_ZID) != 0)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	zrtp_reply_empty(z, ZRTP_M_HELLO_ACK);
	if (is_known(f, m, len) && z->phase == PH_HELLO)
		return 0;
	if (!is_known(f, m, len)) {
		memcpy(h->msg.b, m, len);
		h->msg.len = (uint16_t)len;
		h->derived = false;
		f->hellos = f->hellos + 1 < 2 * HELLOS ? f->hellos + 1 : HELLOS;
	}
	wake(&f->own_hello, now_ns);
	f->own_commit.left = f->passive ? f->own_commit.left : 0;
	if (f->acked && f->passive)
		wake(&f->own_commit, now_ns);
	return 0;
}

static int on_hello_ack(struct zrtp *z, uint64_t now_ns)
{
	struct zrtp_further *f = z->further;

	if (!f->acked && f->hellos && f->passive)
		wake(&f->own_commit, now_ns);
	f->acked = f->acked || f->hellos;
	return 0;
}

/* --- Commit ----------------------------------------------------------------------------------- */

static bool may_answer(struct zrtp_further *f, uint64_t now_ns)
{
	uint64_t n = f->answers + (now_ns - f->answers_ns) / ANSWER_NS;

	if (n > f->answers) {
		f->answers = n < ANSWERS ? (uint32_t)n : ANSWERS;
		f->answers_ns = now_ns;
	}
	if (!f->answers)
		return false;
	f->answers--;
	return true;
}

static int answer(struct zrtp *z, const uint8_t *m, uint32_t len, const uint8_t alg[ZRTP_KINDS])
{
	struct zrtp_further *f = z->further;
	struct commit *c = &f->commit[f->commits % COMMITS];

	memcpy(z->peer.commit.b, m, len);
	z->peer.commit.len = (uint16_t)len;
	memcpy(z->alg, alg, sizeof(z->alg));
	z->initiator = false;
	if (zrtp_derive(z, NULL, 0) || zrtp_confirm_make(z))
		return zrtp_drop(z, ZRTP_DROP_STATE);
	c->msg = z->peer.commit;
	c->confirm = z->confirm;
	c->s = z->s;
	memcpy(c->alg, alg, sizeof(c->alg));
	f->commits = f->commits + 1 < 2 * COMMITS ? f->commits + 1 : COMMITS;
	zrtp_send(z, &c->confirm);
	return 0;
}

static int on_commit(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	struct zrtp_further *f = z->further;
	uint8_t alg[ZRTP_KINDS];

	for (uint32_t i = 0; i < min_u32(f->commits, COMMITS); i++)
		if (f->commit[i].msg.len == len && memcmp(f->commit[i].msg.b, m, len) == 0) {
			zrtp_send(z, &f->commit[i].confirm);
			return 0;
		}
	if (len != COMMIT_LEN || zrtp_commit_algorithms(alg, z, m))
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	if (memcmp(m + COMMIT_ZID, z->peer.zid, ZRTP_ZID) != 0)
		return zrtp_drop(z, ZRTP_DROP_CHAIN);
	if (alg[ZRTP_K_AGREEMENT] != ZRTP_MULT || alg[ZRTP_K_HASH] != z->multi_hash)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	/* Both sent one: the peer answers ours, which has the greater nonce (4.2). */
	if (f->committed && memcmp(z->me.commit.b + COMMIT_HVI, m + COMMIT_HVI, NONCE) > 0)
		return 0;
	if (!may_answer(f, now_ns))
		return zrtp_drop(z, ZRTP_DROP_STATE);
	return answer(z, m, len, alg);
}

/* --- Confirm ---------------------------------------------------------------------------------- */

/* Keeps the H3 of the peer's Hello, which zrtp_begins_another() compares. */
static int found(struct zrtp *z)
{
	struct zrtp_msg *h = &z->peer.hello;

	if (!z->initiator) {
		memset(h, 0, sizeof(*h));
		(void)zrtp_hash(h->b + HELLO_H3, ZRTP_S256,
			&(struct zrtp_part){z->peer.commit.b + COMMIT_H2, ZRTP_IMAGE}, 1);
	}
	zrtp_further_destroy(z);
	return 0;
}

static int not_found(struct zrtp *z, enum zrtp_phase phase)
{
	z->phase = phase;
	return zrtp_drop(z, ZRTP_DROP_MAC);
}

/* From a responder. Its keys depend on its Hello, so each known Hello is tried. */
static int on_confirm1(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	struct zrtp_further *f = z->further;
	enum zrtp_phase phase = z->phase;

	if (!f->committed)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	memcpy(z->alg, f->alg, sizeof(z->alg));
	z->initiator = true;
	z->phase = PH_DHPART2;
	for (uint32_t i = 0; i < min_u32(f->hellos, HELLOS); i++) {
		struct hello *h = &f->hello[i];

		z->peer.hello = h->msg;
		if (!h->derived && zrtp_derive(z, NULL, 0))
			continue;
		if (h->derived)
			z->s = h->s;
		h->s = z->s;
		h->derived = true;
		if (zrtp_confirm_try(z, m, len, now_ns) == 0)
			return found(z);
	}
	return not_found(z, phase);
}

static int on_confirm2(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	struct zrtp_further *f = z->further;
	enum zrtp_phase phase = z->phase;

	z->initiator = false;
	z->phase = PH_CONFIRM1;
	for (uint32_t i = 0; i < min_u32(f->commits, COMMITS); i++) {
		z->peer.commit = f->commit[i].msg;
		z->s = f->commit[i].s;
		memcpy(z->alg, f->commit[i].alg, sizeof(z->alg));
		if (zrtp_confirm_try(z, m, len, now_ns) == 0)
			return found(z);
	}
	return not_found(z, phase);
}

/* --- Packets ---------------------------------------------------------------------------------- */

static int on_message(
	struct zrtp *z, enum zrtp_message type, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	switch (type) {
	case ZRTP_M_HELLO:
		return on_hello(z, m, len, now_ns);
	case ZRTP_M_HELLO_ACK:
		return on_hello_ack(z, now_ns);
	case ZRTP_M_COMMIT:
		return on_commit(z, m, len, now_ns);
	case ZRTP_M_CONFIRM1:
		return on_confirm1(z, m, len, now_ns);
	case ZRTP_M_CONFIRM2:
		return on_confirm2(z, m, len, now_ns);
	case ZRTP_M_ERROR: /* anybody can send it */
		zrtp_reply_empty(z, ZRTP_M_ERROR_ACK);
		return 0;
	case ZRTP_M_PING:
		return zrtp_on_after(z, type, m, len);
	default:
		return zrtp_drop(z, ZRTP_DROP_STATE);
	}
}

int zrtp_further_take(
	struct zrtp *z, enum zrtp_message type, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	int res;

	if (!z->multi || !z->further->started)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	res = on_message(z, type, m, len, now_ns);
	if (z->further)
		zrtp_further_tick(z, now_ns);
	return res;
}
