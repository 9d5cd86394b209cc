/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Remembers accepted messages (RFC 3830 5.4) in a table of small buckets. The hash is keyed, so
 * nobody can choose messages of one bucket. A message goes into the emptier of two buckets. */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/hmac.h"
#include "base/secmem.h"
#include "keying/mikey_int.h"

#define BUCKET      16u
#define DIGEST      24u
#define OWNERS      4096u /* counters of entries, by a hash of the owner */
#define ENTRIES_MAX (1u << 22)

struct entry {
	uint8_t digest[DIGEST];
	uint64_t time;   /* of the message */
	uint32_t skew_s; /* that was allowed for it */
	uint16_t owner;  /* index of its counter */
	bool used;
};

struct mikey_replay {
	uint8_t key[32];
	uint32_t buckets, used;
	bool limited;
	uint64_t since;     /* if limited */
	uint64_t swept_ntp; /* when old entries were last removed */
	uint64_t removed;   /* latest timestamp of a removed entry; 0: none */
	struct mikey_marks *marks;
	uint64_t passed[OWNERS]; /* mikey_replay_passed(): latest, by hash of the sender; 0: none */
	uint32_t count[OWNERS];
	struct entry entry[];
};

/* The place of a message, or its possible places. */
struct place {
	struct entry *bucket[2];
	struct entry *found; /* NULL: new */
	uint16_t owner;
	uint8_t digest[DIGEST];
};

_Static_assert(sizeof(struct entry) <= 40, "the header promises 40 bytes");

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
	if (r)
		mikey_marks_close(r->marks);
	free(r);
}

int mikey_replay_keep(struct mikey_replay *r, const char *path)
{
	mikey_marks_close(r->marks);
	return mikey_marks_open(&r->marks, path);
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

/* The latest timestamp that can be genuine. A later mark was written while our clock was ahead, and
 * is ignored: otherwise all messages would be refused until our clock reaches it. */
static uint64_t latest(const struct mikey_stamp *s)
{
	return s->now_ntp +
		((uint64_t)skew(s) << 33); /* twice the skew: our clock may be wrong, too */
}

/* Whether a genuine message can have this timestamp. */
static bool is_possible(uint64_t mark, const struct mikey_stamp *s)
{
	return !((latest(s) - mark) >> 63);
}

static uint32_t place_of(const struct mikey_replay *r, struct str name)
{
	return (uint32_t)(hash_siphash(r->key, name.s, name.len) % OWNERS);
}

static bool is_not_later(uint64_t time, uint64_t mark)
{
	return mark && (time == mark || (time - mark) >> 63);
}

/* Whether the message is older than our memory of messages. The start counts only while it is
 * within twice the skew: later the skew refuses such messages, and a clock that jumped must not
 * make all of them look old. Entries are removed when the skew refuses their messages. It allows
 * such messages again if the clock is set back or a reload raises the skew. */
static bool is_forgotten(const struct mikey_replay *r, const struct mikey_stamp *s)
{
	return (r->limited && (s->time - r->since) >> 63 &&
		       !outside(r->since, s->now_ntp, 2 * skew(s))) ||
		(is_possible(r->removed, s) && is_not_later(s->time, r->removed));
}

void mikey_replay_passed(struct mikey_replay *r, struct str from, uint64_t time)
{
	uint64_t *mark = &r->passed[place_of(r, from)];

	if (!is_not_later(time, *mark))
		*mark = time;
}

/* The last run or another process accepted this message or a later one. */
static bool is_before_mark(const struct mikey_replay *r, const struct mikey_stamp *s)
{
	uint64_t mark = r->marks ? mikey_marks_before(r->marks, s->owner, latest(s)) : 0;
	uint64_t passed = r->passed[place_of(r, s->from)];

	return is_not_later(s->time, mark) ||
		(is_possible(passed, s) && is_not_later(s->time, passed));
}

/* --- Places -----------------------------------------------------------------------------------*/

static bool digest_of(
	uint8_t out[HMAC_SHA256_LEN], const struct mikey_replay *r, const struct mikey_stamp *s)
{
	uint8_t len[2] = {(uint8_t)s->from.len, (uint8_t)s->to.len};
	struct str parts[] = {mikey_bytes(len, sizeof(len)), s->from, s->to, s->message};

	return hmac_sha256(out, r->key, sizeof(r->key), parts, ARRAY_LEN(parts));
}

static struct entry *find(struct entry *bucket, const uint8_t *digest)
{
	for (uint32_t i = 0; i < BUCKET; i++)
		if (bucket[i].used && memcmp(bucket[i].digest, digest, DIGEST) == 0)
			return &bucket[i];
	return NULL;
}

static bool look(struct place *p, struct mikey_replay *r, const struct mikey_stamp *s)
{
	uint8_t digest[HMAC_SHA256_LEN];

	if (!digest_of(digest, r, s))
		return false;
	memcpy(p->digest, digest, DIGEST);
	p->owner = (uint16_t)place_of(r, s->owner);
	p->found = NULL;
	for (uint32_t i = 0; i < 2; i++) {
		p->bucket[i] = r->entry + be32(digest + DIGEST + 4 * i) % r->buckets * BUCKET;
		p->found = p->found ? p->found : find(p->bucket[i], digest);
	}
	return true;
}

/* An entry that is ahead, because our clock was set back, stays: our clock will reach it. */
static bool is_old(const struct entry *e, uint64_t now_ntp)
{
	return e->used && (e->time - now_ntp) >> 63 && outside(e->time, now_ntp, e->skew_s);
}

/* s: the message that needs the place. A mark that is later than possible was made while our clock
 * was ahead, and is replaced. */
static void release(struct mikey_replay *r, struct entry *e, const struct mikey_stamp *s)
{
	if (!is_possible(r->removed, s) || !is_not_later(e->time, r->removed))
		r->removed = e->time;
	r->count[e->owner]--;
	r->used--;
	e->used = false;
}

/* Costs a millisecond, so at most once a second. */
static void sweep(struct mikey_replay *r, const struct mikey_stamp *s)
{
	if (r->swept_ntp && distance_s(r->swept_ntp, s->now_ntp) < 2)
		return;
	r->swept_ntp = s->now_ntp;
	for (uint32_t i = 0; i < r->buckets * BUCKET; i++)
		if (is_old(&r->entry[i], s->now_ntp))
			release(r, &r->entry[i], s);
}

/* An owner may use half of what is free. An eighth of the table does not count, so that buckets
 * have room. */
static bool has_share(const struct mikey_replay *r, uint16_t owner)
{
	uint32_t limit = r->buckets * (BUCKET - BUCKET / 8);

	return r->used < limit && r->count[owner] < (limit - r->used + 1) / 2;
}

static struct entry *take(
	struct mikey_replay *r, const struct place *p, const struct mikey_stamp *s)
{
	struct entry *e = NULL;
	uint32_t most = 0;

	for (uint32_t b = 0; b < 2; b++) {
		struct entry *first = NULL;
		uint32_t room = 0;

		for (uint32_t i = 0; i < BUCKET; i++) {
			struct entry *x = &p->bucket[b][i];

			if (is_old(x, s->now_ntp))
				release(r, x, s);
			first = !first && !x->used ? x : first;
			room += !x->used;
		}
		e = room > most ? first : e;
		most = room > most ? room : most;
	}
	return e;
}

/* --- Messages ---------------------------------------------------------------------------------*/

static enum mikey_failure judge(
	const struct mikey_replay *r, const struct entry *found, const struct mikey_stamp *s)
{
	if (outside(s->time, s->now_ntp, skew(s)) || is_forgotten(r, s))
		return MIKEY_FAIL_TIME;
	return found || is_before_mark(r, s) ? MIKEY_FAIL_REPLAY : MIKEY_OK;
}

enum mikey_failure mikey_replay_check(struct mikey_replay *r, const struct mikey_stamp *s)
{
	struct place p;

	return look(&p, r, s) ? judge(r, p.found, s) : MIKEY_FAIL_INTERNAL;
}

static void fill(struct mikey_replay *r, struct entry *e, const struct place *p)
{
	memcpy(e->digest, p->digest, DIGEST);
	e->owner = p->owner;
	r->count[p->owner]++;
	r->used++;
}

enum mikey_failure mikey_replay_add(struct mikey_replay *r, const struct mikey_stamp *s)
{
	enum mikey_failure f;
	struct entry *e;
	struct place p;

	if (!look(&p, r, s))
		return MIKEY_FAIL_INTERNAL;
	f = judge(r, p.found, s);
	if (f)
		return f;
	if (!has_share(r, p.owner)) {
		sweep(r, s);
		if (!has_share(r, p.owner))
			return MIKEY_FAIL_REPLAY_FULL;
	}
	e = take(r, &p, s);
	if (!e)
		return MIKEY_FAIL_REPLAY_FULL;
	fill(r, e, &p);
	e->time = s->time;
	e->skew_s = skew(s);
	e->used = true;
	if (r->marks)
		mikey_marks_note(r->marks, s->owner, s->time, latest(s));
	return MIKEY_OK;
}
