/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See zrtp_store.h. A hash table with chains, and a list by last use. RFC 6189 4.6.1.1, 4.9. */
#include "keying/zrtp_store.h"

#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/secmem.h"

#define NONE UINT32_MAX
/* Length of a saved entry: ZID, expiry, and both sets of SAS hash, flags and secrets. */
#define SECRETS_LEN (ZRTP_SAS_HASH + 1u + 4u * ZRTP_SECRET)
#define ENTRY_LEN   (ZRTP_ZID + 8u + 2u * SECRETS_LEN)
#define HEAD_LEN    (4u + ZRTP_ZID + 4u)
/* Smaller jumps of the real clock are no reason to save. */
#define JUMP_S 60

static const char magic[4] = {'X', 'Z', 'R', '2'};

struct entry {
	uint8_t zid[ZRTP_ZID];
	uint64_t until_s;            /* UINT64_MAX: never expires */
	bool was_read;               /* until_s is real time; otherwise monotonic */
	struct zrtp_secrets secrets; /* no has_rs1: none yet */
	struct zrtp_secrets aside;   /* of a mismatch; no has_rs1: none */
	/* SAS hashes of the exchanges that made the secrets. */
	uint8_t sas_hash[ZRTP_SAS_HASH], aside_hash[ZRTP_SAS_HASH];
	uint32_t chain;        /* of the same bucket, or of free entries */
	uint32_t newer, older; /* by last use */
};

struct zrtp_store {
	struct zrtp_store_config cfg;
	pthread_mutex_t lock;
	uint8_t zid[ZRTP_ZID], hash_key[16];
	uint64_t version;
	int64_t ahead_s;         /* real clock minus monotonic clock */
	int64_t version_ahead_s; /* ahead_s when a jump last changed the version */
	size_t len;
	uint32_t buckets, count, free, newest, oldest;
	uint32_t *bucket;
	struct entry entry[];
};

/* --- Life ------------------------------------------------------------------------------------- */

static uint32_t buckets_for(uint32_t max)
{
	uint32_t n = 64;

	while (n < max && n < 1u << 20)
		n *= 2;
	return n;
}

static uint64_t to_s(uint64_t mono_ns)
{
	return mono_ns / NS_PER_SEC;
}

static int64_t ahead(uint64_t real_s, uint64_t mono_ns)
{
	return (int64_t)(real_s - to_s(mono_ns));
}

int zrtp_store_create(struct zrtp_store **out, const struct zrtp_store_config *c)
{
	uint32_t buckets = buckets_for(c->max);
	size_t entries = sizeof(struct zrtp_store) + (size_t)c->max * sizeof(struct entry);
	size_t len = entries + buckets * sizeof(uint32_t);
	struct zrtp_store *s = c->max ? secmem_alloc(len) : NULL;

	if (!s)
		return c->max ? -ENOMEM : -EINVAL;
	s->cfg = *c;
	s->ahead_s = s->version_ahead_s = ahead(c->real_s, c->mono_ns);
	s->len = len;
	s->buckets = buckets;
	s->bucket = (uint32_t *)((uint8_t *)s + entries);
	memset(s->bucket, 0xff, buckets * sizeof(uint32_t));
	s->newest = s->oldest = NONE;
	for (uint32_t i = 0; i < c->max; i++)
		s->entry[i].chain = i + 1 < c->max ? i + 1 : NONE;
	pthread_mutex_init(&s->lock, NULL);
	if (secmem_random(s->zid, sizeof(s->zid)) ||
		secmem_random(s->hash_key, sizeof(s->hash_key))) {
		zrtp_store_destroy(s);
		return -EIO;
	}
	*out = s;
	return 0;
}

void zrtp_store_destroy(struct zrtp_store *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	secmem_free(s, s->len);
}

const uint8_t *zrtp_store_zid(const struct zrtp_store *s)
{
	return s->zid;
}

bool zrtp_store_preshared(const struct zrtp_store *s)
{
	return s && s->cfg.preshared;
}

void zrtp_store_clock(struct zrtp_store *s, uint64_t real_s, uint64_t mono_ns)
{
	int64_t jump;

	pthread_mutex_lock(&s->lock);
	s->ahead_s = ahead(real_s, mono_ns);
	jump = s->ahead_s - s->version_ahead_s;
	if (jump >= JUMP_S || jump <= -JUMP_S) {
		s->version_ahead_s = s->ahead_s;
		s->version++;
	}
	pthread_mutex_unlock(&s->lock);
}

/* --- Entries ---------------------------------------------------------------------------------- */

static uint32_t *bucket_of(struct zrtp_store *s, const uint8_t *zid)
{
	return &s->bucket[hash_siphash(s->hash_key, zid, ZRTP_ZID) & (s->buckets - 1)];
}

static void unlink_use(struct zrtp_store *s, uint32_t i)
{
	struct entry *e = &s->entry[i];

	*(e->newer == NONE ? &s->newest : &s->entry[e->newer].older) = e->older;
	*(e->older == NONE ? &s->oldest : &s->entry[e->older].newer) = e->newer;
}

static void link_use(struct zrtp_store *s, uint32_t i)
{
	struct entry *e = &s->entry[i];

	e->newer = NONE;
	e->older = s->newest;
	*(s->newest == NONE ? &s->oldest : &s->entry[s->newest].newer) = i;
	s->newest = i;
}

static void forget(struct zrtp_store *s, uint32_t i)
{
	uint32_t *at = bucket_of(s, s->entry[i].zid);

	while (*at != i)
		at = &s->entry[*at].chain;
	*at = s->entry[i].chain;
	unlink_use(s, i);
	secmem_wipe(&s->entry[i], sizeof(s->entry[i]));
	s->entry[i].chain = s->free;
	s->free = i;
	s->count--;
	s->version++;
}

/* NONE: the entry does not exist. */
static uint32_t look_up(struct zrtp_store *s, const uint8_t *zid)
{
	uint32_t i = *bucket_of(s, zid);

	while (i != NONE && memcmp(s->entry[i].zid, zid, ZRTP_ZID) != 0)
		i = s->entry[i].chain;
	return i;
}

static uint64_t real_s(const struct zrtp_store *s, uint64_t mono_s)
{
	return mono_s + (uint64_t)s->ahead_s;
}

/* NONE: the entry does not exist, or has expired. */
static uint32_t find(struct zrtp_store *s, const uint8_t *zid, uint64_t mono_s)
{
	uint32_t i = look_up(s, zid);
	const struct entry *e = i == NONE ? NULL : &s->entry[i];

	if (e && e->until_s <= (e->was_read ? real_s(s, mono_s) : mono_s)) {
		forget(s, i);
		return NONE;
	}
	return i;
}

static uint32_t add(struct zrtp_store *s, const uint8_t *zid)
{
	uint32_t i, *bucket;

	if (s->free == NONE)
		forget(s, s->oldest);
	i = s->free;
	s->free = s->entry[i].chain;
	bucket = bucket_of(s, zid);
	memcpy(s->entry[i].zid, zid, ZRTP_ZID);
	s->entry[i].chain = *bucket;
	*bucket = i;
	link_use(s, i);
	s->count++;
	return i;
}

bool zrtp_store_get(struct zrtp_store *s, const uint8_t zid[ZRTP_ZID], uint64_t mono_ns,
	struct zrtp_secrets *out)
{
	uint32_t i;
	bool has;

	pthread_mutex_lock(&s->lock);
	i = find(s, zid, to_s(mono_ns));
	has = i != NONE && (s->entry[i].secrets.has_rs1 || s->entry[i].secrets.has_pbx);
	if (has)
		*out = s->entry[i].secrets;
	pthread_mutex_unlock(&s->lock);
	return has;
}

static uint64_t expiry(const struct zrtp_store *s, uint32_t seconds, uint64_t now_s)
{
	uint64_t life = s->cfg.life_s ? s->cfg.life_s : UINT64_MAX;

	if (seconds != UINT32_MAX && seconds < life)
		life = seconds;
	return life == UINT64_MAX ? life : now_s + life;
}

static bool follows(const struct zrtp_secrets *now, const uint8_t *before, bool has_before)
{
	return now->has_rs2 && has_before && secmem_equal(now->rs2, before, ZRTP_SECRET);
}

/* The exchange began when the cache had other secrets than the verified ones. */
static bool is_overtaken(const struct entry *e, const struct zrtp_secrets *now)
{
	const struct zrtp_secrets *has = &e->secrets;

	return has->verified && !follows(now, has->rs1, has->has_rs1) &&
		!follows(now, has->rs2, has->has_rs2);
}

static void put_aside(struct entry *e, const struct zrtp_kept *what)
{
	e->aside = what->secrets;
	e->aside.verified = false;
	memcpy(e->aside_hash, what->sas_hash, sizeof(e->aside_hash));
}

/* fresh: the entry is new. Otherwise the operator may have changed "verified" meanwhile. */
static void bring_in_force(struct entry *e, const struct zrtp_kept *what, bool fresh)
{
	bool verified = fresh ? what->secrets.verified : e->secrets.verified;

	e->secrets = what->secrets;
	e->secrets.verified = verified;
	memcpy(e->sas_hash, what->sas_hash, sizeof(e->sas_hash));
	secmem_wipe(&e->aside, sizeof(e->aside));
}

void zrtp_store_put(struct zrtp_store *s, const uint8_t zid[ZRTP_ZID], uint64_t mono_ns,
	const struct zrtp_kept *what)
{
	uint64_t now_s = to_s(mono_ns);
	bool aside, fresh;
	struct entry *e;
	uint32_t i;

	pthread_mutex_lock(&s->lock);
	i = find(s, zid, now_s);
	fresh = i == NONE;
	aside = what->mismatched || (!fresh && is_overtaken(&s->entry[i], &what->secrets));
	if (!what->seconds && !aside) {
		if (!fresh)
			forget(s, i);
	} else {
		if (fresh)
			i = add(s, zid);
		e = &s->entry[i];
		unlink_use(s, i);
		link_use(s, i);
		if (aside)
			put_aside(e, what);
		else
			bring_in_force(e, what, fresh);
		/* A stranger with this ZID does not shorten the life of the terminal's secrets. */
		if (!aside || !e->until_s) {
			e->until_s = expiry(s, what->seconds, now_s);
			e->was_read = false;
		}
		s->version++;
	}
	pthread_mutex_unlock(&s->lock);
}

/* False: the secrets are not of this exchange. What is taken back is taken from all of them, except
 * that a stranger's SAS says nothing of the terminal. */
static bool verify(struct entry *e, const uint8_t *sas_hash, bool verified)
{
	bool is_aside =
		e->aside.has_rs1 && secmem_equal(e->aside_hash, sas_hash, sizeof(e->aside_hash));

	if (!verified) {
		e->secrets.verified = e->secrets.verified && is_aside;
		return true;
	}
	if (is_aside) {
		e->secrets = e->aside;
		memcpy(e->sas_hash, e->aside_hash, sizeof(e->sas_hash));
		secmem_wipe(&e->aside, sizeof(e->aside));
	} else if (!secmem_equal(e->sas_hash, sas_hash, sizeof(e->sas_hash))) {
		return false;
	}
	e->secrets.verified = true;
	return true;
}

bool zrtp_store_verify(struct zrtp_store *s, const uint8_t zid[ZRTP_ZID],
	const uint8_t sas_hash[ZRTP_SAS_HASH], bool verified)
{
	bool ok;
	uint32_t i;

	pthread_mutex_lock(&s->lock);
	i = look_up(s, zid);
	ok = i != NONE && verify(&s->entry[i], sas_hash, verified);
	s->version += ok;
	pthread_mutex_unlock(&s->lock);
	return ok;
}

uint32_t zrtp_store_count(struct zrtp_store *s)
{
	uint32_t n;

	pthread_mutex_lock(&s->lock);
	n = s->count;
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* --- Saving ----------------------------------------------------------------------------------- */

uint64_t zrtp_store_version(struct zrtp_store *s)
{
	uint64_t v;

	pthread_mutex_lock(&s->lock);
	v = s->version;
	pthread_mutex_unlock(&s->lock);
	return v;
}

static uint8_t *write_secrets(uint8_t *p, const struct zrtp_secrets *s, const uint8_t *sas_hash)
{
	memcpy(p, sas_hash, ZRTP_SAS_HASH);
	p += ZRTP_SAS_HASH;
	*p++ = (uint8_t)(s->has_rs1 | s->has_rs2 << 1 | s->has_aux << 2 | s->has_pbx << 3 |
		s->verified << 4);
	memcpy(p, s->rs1, ZRTP_SECRET);
	memcpy(p + ZRTP_SECRET, s->rs2, ZRTP_SECRET);
	memcpy(p + (size_t)2 * ZRTP_SECRET, s->aux, ZRTP_SECRET);
	memcpy(p + (size_t)3 * ZRTP_SECRET, s->pbx, ZRTP_SECRET);
	return p + (size_t)4 * ZRTP_SECRET;
}

static const uint8_t *read_secrets(struct zrtp_secrets *s, uint8_t *sas_hash, const uint8_t *p)
{
	memcpy(sas_hash, p, ZRTP_SAS_HASH);
	p += ZRTP_SAS_HASH;
	*s = (struct zrtp_secrets){.has_rs1 = *p & 1,
		.has_rs2 = *p >> 1 & 1,
		.has_aux = *p >> 2 & 1,
		.has_pbx = *p >> 3 & 1,
		.verified = *p >> 4 & 1};
	p++;
	memcpy(s->rs1, p, ZRTP_SECRET);
	memcpy(s->rs2, p + ZRTP_SECRET, ZRTP_SECRET);
	memcpy(s->aux, p + (size_t)2 * ZRTP_SECRET, ZRTP_SECRET);
	memcpy(s->pbx, p + (size_t)3 * ZRTP_SECRET, ZRTP_SECRET);
	return p + (size_t)4 * ZRTP_SECRET;
}

static void write_entry(struct sbuf *out, const struct zrtp_store *s, const struct entry *e)
{
	bool as_it_is = e->was_read || e->until_s == UINT64_MAX;
	uint64_t until_s = as_it_is ? e->until_s : real_s(s, e->until_s);
	uint8_t b[ENTRY_LEN], *p = b;

	memcpy(p, e->zid, ZRTP_ZID);
	put_be32(p + ZRTP_ZID, (uint32_t)(until_s >> 32));
	put_be32(p + ZRTP_ZID + 4, (uint32_t)until_s);
	p = write_secrets(p + ZRTP_ZID + 8, &e->secrets, e->sas_hash);
	write_secrets(p, &e->aside, e->aside_hash);
	sbuf_put(out, b, sizeof(b));
	secmem_wipe(b, sizeof(b));
}

int zrtp_store_write(struct zrtp_store *s, struct sbuf *out)
{
	uint8_t n[4];

	pthread_mutex_lock(&s->lock);
	put_be32(n, s->count);
	sbuf_put(out, magic, sizeof(magic));
	sbuf_put(out, s->zid, sizeof(s->zid));
	sbuf_put(out, n, sizeof(n));
	for (uint32_t i = s->oldest; i != NONE; i = s->entry[i].newer)
		write_entry(out, s, &s->entry[i]);
	pthread_mutex_unlock(&s->lock);
	return out->err;
}

static void read_entry(struct zrtp_store *s, const uint8_t *p, uint64_t mono_s)
{
	uint64_t until_s = (uint64_t)be32(p + ZRTP_ZID) << 32 | be32(p + ZRTP_ZID + 4);
	struct entry *e;

	if (until_s <= real_s(s, mono_s) || find(s, p, mono_s) != NONE)
		return;
	e = &s->entry[add(s, p)];
	e->until_s = until_s;
	e->was_read = true;
	p = read_secrets(&e->secrets, e->sas_hash, p + ZRTP_ZID + 8);
	read_secrets(&e->aside, e->aside_hash, p);
}

int zrtp_store_read(struct zrtp_store *s, struct str bytes, uint64_t mono_ns)
{
	const uint8_t *p = (const uint8_t *)bytes.s;
	uint32_t n;

	if (bytes.len < HEAD_LEN || memcmp(p, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	n = be32(p + 4 + ZRTP_ZID);
	if (bytes.len != HEAD_LEN + (uint64_t)n * ENTRY_LEN)
		return -EBADMSG;
	memcpy(s->zid, p + 4, ZRTP_ZID);
	p += HEAD_LEN;
	for (uint32_t i = 0; i < n; i++, p += ENTRY_LEN)
		read_entry(s, p, to_s(mono_ns));
	return 0;
}
