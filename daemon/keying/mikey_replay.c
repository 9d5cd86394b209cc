/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that were believed (RFC 3830 5.4). A table of small buckets, by a keyed hash: nobody can
 * choose messages that fall into the same one. */
#include <errno.h>
#include <stdlib.h>

#include "base/hmac.h"
#include "base/secmem.h"
#include "keying/mikey_int.h"

#define BUCKET      16u
#define DIGEST      24u
#define ENTRIES_MAX (1u << 22)

struct entry {
	uint8_t digest[DIGEST];
	uint64_t time;   /* of the message, or the highest counter */
	uint32_t skew_s; /* that was allowed for it */
	uint8_t kind;    /* enum kind */
};

enum kind { FREE, MESSAGE, COUNTER };

struct mikey_replay {
	uint8_t key[32];
	uint32_t buckets;
	bool limited;
	uint64_t since; /* if limited */
	struct entry entry[];
};

_Static_assert(sizeof(struct entry) <= 48, "the header promises 48 bytes");

int mikey_replay_create(struct mikey_replay **out, uint32_t entries)
{
	uint32_t buckets = (entries + BUCKET - 1) / BUCKET;
	struct mikey_replay *r;

	*out = NULL;
	if (!entries || entries > ENTRIES_MAX)
		return -EINVAL;
	r = calloc(1, sizeof(*r) + (size_t)buckets * BUCKET * sizeof(r->entry[0]));
	if (!r)
		return -ENOMEM;
	r->buckets = buckets;
	if (secmem_random(r->key, sizeof(r->key))) {
		free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void mikey_replay_destroy(struct mikey_replay *r)
{
	free(r);
}

void mikey_replay_since(struct mikey_replay *r, uint64_t ntp)
{
	r->limited = true;
	r->since = ntp;
}

/* The distance of two NTP times in seconds, rounded up, across the end of an era, too. */
static uint64_t distance_s(uint64_t a, uint64_t b)
{
	uint64_t d = a - b;

	if (d >> 63)
		d = b - a;
	return (d + UINT32_MAX) >> 32;
}

static bool outside(uint64_t time, uint64_t now, uint32_t skew_s)
{
	return distance_s(time, now) > skew_s;
}

static uint32_t skew(const struct mikey_stamp *s)
{
	return s->skew_s ? s->skew_s : MIKEY_SKEW_S;
}

/* From before the start. Later the skew refuses these; a clock that jumped must not lock out. */
static bool is_forgotten(const struct mikey_replay *r, const struct mikey_stamp *s)
{
	return r->limited && (s->time - r->since) >> 63 &&
		!outside(r->since, s->now_ntp, 2 * skew(s));
}

static bool digest_of(
	uint8_t out[HMAC_SHA256_LEN], const struct mikey_replay *r, const struct mikey_stamp *s)
{
	bool counter = s->ts_type == MIKEY_TS_COUNTER;
	uint8_t len[3] = {counter ? COUNTER : MESSAGE, (uint8_t)s->from.len, (uint8_t)s->to.len};
	struct str parts[] = {
		mikey_bytes(len, sizeof(len)), s->from, s->to, counter ? STR_NONE : s->message};

	return hmac_sha256(out, r->key, sizeof(r->key), parts, ARRAY_LEN(parts));
}

static uint32_t bucket_of(const struct mikey_replay *r, const uint8_t *digest)
{
	return be32(digest + DIGEST) % r->buckets * BUCKET;
}

/* The entry of this digest, or BUCKET. */
static uint32_t find(const struct entry *e, const uint8_t *digest)
{
	uint32_t i = 0;

	while (i < BUCKET && (e[i].kind == FREE || memcmp(e[i].digest, digest, DIGEST) != 0))
		i++;
	return i;
}

static enum mikey_failure judge(const struct mikey_replay *r, const struct entry *e, uint32_t i,
	const struct mikey_stamp *s)
{
	if (s->ts_type == MIKEY_TS_COUNTER)
		return i < BUCKET && s->time <= e[i].time ? MIKEY_FAIL_REPLAY : MIKEY_OK;
	if (outside(s->time, s->now_ntp, skew(s)))
		return MIKEY_FAIL_TIME;
	if (is_forgotten(r, s))
		return MIKEY_FAIL_TIME;
	return i < BUCKET ? MIKEY_FAIL_REPLAY : MIKEY_OK;
}

enum mikey_failure mikey_replay_check(const struct mikey_replay *r, const struct mikey_stamp *s)
{
	uint8_t digest[HMAC_SHA256_LEN];
	const struct entry *e;

	if (!digest_of(digest, r, s))
		return MIKEY_FAIL_INTERNAL;
	e = r->entry + bucket_of(r, digest);
	return judge(r, e, find(e, digest), s);
}

/* A place that is free, or whose message would be refused by its timestamp. */
static uint32_t place(const struct entry *e, uint64_t now_ntp)
{
	uint32_t i = 0;

	while (i < BUCKET && e[i].kind != FREE &&
		(e[i].kind == COUNTER || !outside(e[i].time, now_ntp, e[i].skew_s)))
		i++;
	return i;
}

enum mikey_failure mikey_replay_add(struct mikey_replay *r, const struct mikey_stamp *s)
{
	uint8_t digest[HMAC_SHA256_LEN];
	enum mikey_failure f;
	struct entry *e;
	uint32_t i;

	if (!digest_of(digest, r, s))
		return MIKEY_FAIL_INTERNAL;
	e = r->entry + bucket_of(r, digest);
	i = find(e, digest);
	f = judge(r, e, i, s);
	if (f)
		return f;
	if (i == BUCKET)
		i = place(e, s->now_ntp);
	if (i == BUCKET)
		return MIKEY_FAIL_REPLAY_FULL;
	memcpy(e[i].digest, digest, DIGEST);
	e[i].time = s->time;
	e[i].skew_s = skew(s);
	e[i].kind = s->ts_type == MIKEY_TS_COUNTER ? COUNTER : MESSAGE;
	return MIKEY_OK;
}
