/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMAC of many messages in lanes (batch/sha1_lanes.h). Each lane hashes whole blocks of its
 * message, one or two padded blocks, and the outer block. Then it takes the next message, so lanes
 * stay full with messages of any length. */

/* HMAC starts from stored SHA-1 states, which only libcrypto's low-level calls allow. Duplicating
 * an EVP_MAC context per packet costs more than hashing the packet. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "batch/sha1_lanes.h"

#include <endian.h>
#include <openssl/sha.h>
#include <stddef.h>

#include "srtp/sha1_pair.h"

/* Fewer messages than this leave too many lanes empty. */
enum { LANES_FEW = 7 };
enum stage { WHOLE, TAIL, OUTER };

struct lane {
	struct hmac_job *job; /* NULL: none is left */
	uint32_t left;        /* blocks left in this stage */
	uint32_t tail;        /* blocks of that one, which are made in advance */
	enum stage stage;
	uint8_t block[128];
};

struct lanes {
	_Alignas(64) uint32_t h[5][SHA1_LANES];
	const uint8_t *p[SHA1_LANES];
	struct lane lane[SHA1_LANES];
	struct hmac_job *next, *end;
};

/* --- Blocks ----------------------------------------------------------------------------------- */

/* Writes the last one or two blocks of the inner message: the rest of the packet, the word, and
 * padding. The length in the padding includes HMAC's key block. Returns the number of blocks. */
static uint32_t tail_make(uint8_t *block, const struct hmac_job *j)
{
	uint32_t rest = j->len % 64, n = rest + 4 + 1 + 8 > 64 ? 2 : 1;

	memcpy(block, j->msg + j->len - rest, 64); /* may read into the slack */
	memset(block + rest, 0, 64);
	if (n == 2)
		memset(block + 64, 0, 64);
	memcpy(block + rest, j->word, 4);
	block[rest + 4] = 0x80;
	put_be32(block + 64 * n - 4, 8 * (64 + j->len + 4));
	return n;
}

/* Uses few wide stores, because the block is soon read in words as wide. */
static void digest_put(uint8_t out[20], const uint32_t h[5])
{
	const uint64_t x = htobe64((uint64_t)h[0] << 32 | h[1]);
	const uint64_t y = htobe64((uint64_t)h[2] << 32 | h[3]);

	memcpy(out, &x, 8);
	memcpy(out + 8, &y, 8);
	put_be32(out + 16, h[4]);
}

/* The rest of the outer block, after the inner digest. */
static void outer_pad(uint8_t *block)
{
	memset(block + 20, 0, 44);
	block[20] = 0x80;
	put_be32(block + 60, 8 * (64 + 20));
}

static void outer_make(uint8_t *block, const uint32_t h[5])
{
	digest_put(block, h);
	outer_pad(block);
}

/* --- Lanes ------------------------------------------------------------------------------------ */

static void state_load(struct lanes *s, uint32_t l, const uint32_t state[5])
{
	for (int i = 0; i < 5; i++)
		s->h[i][l] = state[i];
}

static void digest_store(const struct lanes *s, uint32_t l, uint8_t *out)
{
	const uint32_t h[5] = {s->h[0][l], s->h[1][l], s->h[2][l], s->h[3][l], s->h[4][l]};

	digest_put(out, h);
}

static void tail_begin(struct lanes *s, uint32_t l)
{
	struct lane *a = &s->lane[l];

	a->stage = TAIL;
	a->left = a->tail;
	s->p[l] = a->block;
}

static void message_begin(struct lanes *s, uint32_t l)
{
	struct lane *a = &s->lane[l];

	a->job = s->next < s->end ? s->next++ : NULL;
	if (!a->job) {
		a->left = UINT32_MAX;
		return;
	}
	state_load(s, l, a->job->key->inner);
	/* Written early: a load soon after a store of another width is slow. */
	a->tail = tail_make(a->block, a->job);
	a->stage = WHOLE;
	a->left = a->job->len / 64;
	s->p[l] = a->job->msg;
	if (a->left == 0)
		tail_begin(s, l);
}

static void outer_begin(struct lanes *s, uint32_t l)
{
	struct lane *a = &s->lane[l];

	digest_store(s, l, a->block);
	outer_pad(a->block);
	state_load(s, l, a->job->key->outer);
	a->stage = OUTER;
	a->left = 1;
	s->p[l] = a->block;
}

static void stage_end(struct lanes *s, uint32_t l)
{
	switch (s->lane[l].stage) {
	case WHOLE:
		tail_begin(s, l);
		break;
	case TAIL:
		outer_begin(s, l);
		break;
	case OUTER:
		digest_store(s, l, s->lane[l].job->mac);
		message_begin(s, l);
		break;
	}
}

/* The lane whose stage ends first; SHA1_LANES: all have finished. */
static uint32_t shortest(const struct lanes *s)
{
	uint32_t best = SHA1_LANES, left = UINT32_MAX;

	for (uint32_t l = 0; l < SHA1_LANES; l++)
		if (s->lane[l].left < left) {
			left = s->lane[l].left;
			best = l;
		}
	return best;
}

static void hmac_lanes(const struct sha1_way *way, struct hmac_job *job, uint32_t n)
{
	struct lanes s;
	uint32_t l;

	s.next = job;
	s.end = job + n;
	for (l = 0; l < SHA1_LANES; l++)
		message_begin(&s, l);
	while ((l = shortest(&s)) < SHA1_LANES) {
		uint32_t blocks = s.lane[l].left;

		/* Lanes without a message need something to read. */
		for (uint32_t i = 0; i < SHA1_LANES; i++)
			if (!s.lane[i].job)
				s.p[i] = s.p[l];
		way->lanes(s.h, s.p, blocks);
		for (uint32_t i = 0; i < SHA1_LANES; i++) {
			if (!s.lane[i].job)
				continue;
			s.lane[i].left -= blocks;
			s.p[i] += 64 * (size_t)blocks;
			if (s.lane[i].left == 0)
				stage_end(&s, i);
		}
	}
}

/* --- Eight of equal lengths: the common case -------------------------------------------------- */

static bool all_equal(const struct hmac_job *job)
{
	uint32_t differ = 0;

	for (uint32_t l = 1; l < SHA1_LANES; l++)
		differ |= job[l].len ^ job[0].len;
	return !differ;
}

_Static_assert(
	offsetof(struct xc_key, outer) == offsetof(struct xc_key, inner) + 20, "sha1_hmacs.state");
_Static_assert(sizeof(((struct hmac_job *)0)->mac) >= 32, "sha1_hmacs.mac");

static void tail_copy(uint8_t *block, const struct hmac_job *j)
{
	memcpy(block, j->msg + j->len - 60, 60);
	memcpy(block + 60, j->word, 4);
}

static void hmac_eight(const struct sha1_way *way, struct hmac_job *job)
{
	uint8_t block[SHA1_LANES][128];
	struct sha1_hmacs e; /* all is set below */

	e.whole = job[0].len / 64;
	/* The message with its word fills all blocks: the padding is the same in all lanes. */
	e.bits = (job[0].len + 4) % 64 == 0 ? 8 * (64 + job[0].len + 4) : 0;
	e.tails = 1;
	for (uint32_t l = 0; l < SHA1_LANES; l++) {
		if (e.bits)
			tail_copy(block[l], &job[l]);
		else
			e.tails = tail_make(block[l], &job[l]);
		e.state[l] = job[l].key->inner;
		e.msg[l] = job[l].msg;
		e.tail[l] = block[l];
		e.mac[l] = job[l].mac;
	}
	way->hmacs(&e);
}

/* --- Two at a time ---------------------------------------------------------------------------- */

typedef void (*two_messages)(
	uint32_t *a, uint32_t *b, const uint8_t *p, const uint8_t *q, uint32_t n);

/* Two messages of equal length; a and b may be the same. */
static void hmac_two(two_messages two, struct hmac_job *a, struct hmac_job *b)
{
	uint32_t x[5], y[5], n;
	uint8_t s[128], t[128];

	memcpy(x, a->key->inner, sizeof(x));
	memcpy(y, b->key->inner, sizeof(y));
	two(x, y, a->msg, b->msg, a->len / 64);
	n = tail_make(s, a);
	(void)tail_make(t, b);
	two(x, y, s, t, n);
	outer_make(s, x);
	outer_make(t, y);
	memcpy(x, a->key->outer, sizeof(x));
	memcpy(y, b->key->outer, sizeof(y));
	two(x, y, s, t, 1);
	digest_put(a->mac, x);
	digest_put(b->mac, y);
}

/* RFC 2104 from the two stored states. The outer message is one block, so it is padded here. */
void hmac_sha1_one(uint8_t mac[20], const struct xc_key *k, const uint8_t *msg, size_t len,
	const uint8_t word[4])
{
	SHA_CTX c = {.h0 = k->inner[0],
		.h1 = k->inner[1],
		.h2 = k->inner[2],
		.h3 = k->inner[3],
		.h4 = k->inner[4],
		.Nl = 512};
	uint8_t block[64] = {[20] = 0x80, [62] = (64 + 20) * 8 >> 8, [63] = (64 + 20) * 8 & 0xff};

	SHA1_Update(&c, msg, len);
	SHA1_Update(&c, word, 4);
	SHA1_Final(block, &c);
	c.h0 = k->outer[0];
	c.h1 = k->outer[1];
	c.h2 = k->outer[2];
	c.h3 = k->outer[3];
	c.h4 = k->outer[4];
	SHA1_Transform(&c, block);
	put_be32(mac, c.h0);
	put_be32(mac + 4, c.h1);
	put_be32(mac + 8, c.h2);
	put_be32(mac + 12, c.h3);
	put_be32(mac + 16, c.h4);
}

static void hmac_pairs(const struct sha1_way *way, struct hmac_job *job, uint32_t n)
{
	for (uint32_t i = 0, step; i < n; i += step) {
		step = i + 1 < n && job[i].len == job[i + 1].len ? 2 : 1;
		hmac_two(way->two, &job[i], &job[i + step - 1]);
	}
}

/* Eight consecutive messages of equal length need no bookkeeping per lane. */
static void hmac_in_lanes(const struct sha1_way *way, struct hmac_job *job, uint32_t n)
{
	uint32_t i = 0;

	for (; i + SHA1_LANES <= n && all_equal(job + i); i += SHA1_LANES)
		hmac_eight(way, job + i);
	if (i < n)
		hmac_lanes(way, job + i, n - i);
}

static void hmac_by(const struct sha1_way *way, struct hmac_job *job, uint32_t n)
{
	if (way && n >= way->least && way->two)
		hmac_pairs(way, job, n);
	else if (way && n >= way->least)
		hmac_in_lanes(way, job, n);
	else
		for (uint32_t i = 0; i < n; i++)
			hmac_sha1_one(job[i].mac, job[i].key, job[i].msg, job[i].len, job[i].word);
}

void hmac_sha1_all(const struct sha1_ways *ways, struct hmac_job *job, uint32_t n)
{
	uint32_t full = n % SHA1_LANES < LANES_FEW ? n - n % SHA1_LANES : n;

	if (full)
		hmac_by(ways->many, job, full);
	/* One packet: the received message and the one to send. */
	if (n - full == 2 && ways->pair && job[full].len == job[full + 1].len)
		hmac_two(sha1_pair, &job[full], &job[full + 1]);
	else
		hmac_by(ways->few, job + full, n - full);
}
