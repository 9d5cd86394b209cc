/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hellos and Commits that may be the peer's, among those that strangers sent in its name. Anybody
 * can send them, and only the next message of the hash chain proves which are the peer's (RFC 6189
 * 9). Until then none takes the place of another for good. Of each kind a number is remembered: the
 * first half of the places keeps what came first, so a later flood does not displace it, and the
 * other half what came last. Exchanges that wait for a Confirm are remembered in the same way when
 * another one begins. Most exchanges have no rivals, and no memory for them. */
#include "keying/zrtp_int.h"

#include "base/secmem.h"

enum { HELLOS = 16, COMMITS = 8, OURS = 4, TRIED = 4 };

struct answered { /* a Commit, and the state in which it was answered by a DHPart1 */
	struct zrtp_msg commit, dhpart, hello;
	uint8_t alg[ZRTP_KINDS];
	struct zrtp_secrets secrets;
	bool has_secrets;
};

struct ours { /* a Commit of ours, and its state. dhpart: our DHPart2 */
	struct answered state;
	struct zrtp_msg commit;
};

/* The members of struct zrtp that belong to an exchange which waits for a Confirm. */
#define TRIED_MEMBERS(X) \
	X(peer)          \
	X(confirm)       \
	X(s)             \
	X(alg)           \
	X(secrets)       \
	X(matched)       \
	X(initiator)     \
	X(has_secrets)   \
	X(mismatched)    \
	X(matched_aux)   \
	X(matched_pbx)

struct tried {
#define X(name) __typeof__(((struct zrtp *)0)->name) name;
	TRIED_MEMBERS(X)
#undef X
};

struct zrtp_rivals {
	struct zrtp_msg hello[HELLOS];
	uint32_t hellos;
	struct answered commit[COMMITS];
	uint32_t commits;
	struct ours ours[OURS];
	uint32_t owns;
	struct tried tried[TRIED + 1]; /* the last one is the present one, while others are tried */
	uint32_t tries;
};

static struct zrtp_rivals *rivals_of(struct zrtp *z)
{
	if (!z->rivals)
		z->rivals = secmem_alloc(sizeof(*z->rivals));
	return z->rivals;
}

void zrtp_rivals_free(struct zrtp *z)
{
	if (z->rivals)
		secmem_free(z->rivals, sizeof(*z->rivals));
	z->rivals = NULL;
}

static bool is(const struct zrtp_msg *a, const uint8_t *m, uint32_t len)
{
	return a->len == len && memcmp(a->b, m, len) == 0;
}

/* The place of one more in a list of max: after the others. In a full one the first of the second
 * half is forgotten. */
static void *add(void *list, size_t size, uint32_t max, uint32_t *n)
{
	uint8_t *half = (uint8_t *)list + max / 2 * size;

	if (*n == max)
		memmove(half, half + size, (max / 2 - 1) * size);
	else
		++*n;
	return (uint8_t *)list + (*n - 1) * size;
}

/* --- Hellos ----------------------------------------------------------------------------------- */

void zrtp_rivals_hello(struct zrtp *z, const uint8_t *m, uint32_t len)
{
	struct zrtp_rivals *r = rivals_of(z);
	struct zrtp_msg *to;

	if (!r)
		return;
	for (uint32_t i = 0; i < r->hellos; i++)
		if (is(&r->hello[i], m, len))
			return;
	to = add(r->hello, sizeof(*to), HELLOS, &r->hellos);
	memcpy(to->b, m, len);
	to->len = (uint16_t)len;
}

bool zrtp_rivals_has_hello(const struct zrtp *z, const uint8_t h2[ZRTP_IMAGE])
{
	const struct zrtp_rivals *r = z->rivals;

	for (uint32_t i = 0; r && i < r->hellos; i++)
		if (zrtp_image_fits(h2, r->hello[i].b + HELLO_H3) &&
			zrtp_has_mac_of(&r->hello[i], h2))
			return true;
	return false;
}

bool zrtp_rivals_take_hello(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE])
{
	struct zrtp_rivals *r = z->rivals;

	for (uint32_t i = r ? r->hellos : 0; i-- > 0;) {
		struct zrtp_msg m = r->hello[i];

		if (!zrtp_image_fits(h2, m.b + HELLO_H3) || !zrtp_has_mac_of(&m, h2))
			continue;
		r->hello[i] = z->peer.hello;
		z->peer.hello = m;
		return true;
	}
	return false;
}

bool zrtp_rivals_next_hello(struct zrtp *z)
{
	if (!z->rivals || !z->rivals->hellos)
		return false;
	z->peer.hello = z->rivals->hello[--z->rivals->hellos];
	memcpy(z->peer.zid, z->peer.hello.b + HELLO_ZID, ZRTP_ZID);
	return true;
}

/* --- Commits ---------------------------------------------------------------------------------- */

static void put(struct answered *to, const struct zrtp *z)
{
	to->commit = z->peer.commit;
	to->dhpart = z->me.dhpart;
	to->hello = z->peer.hello;
	memcpy(to->alg, z->alg, sizeof(to->alg));
	to->secrets = z->secrets;
	to->has_secrets = z->has_secrets;
}

static void get(struct zrtp *z, const struct answered *from)
{
	z->peer.commit = from->commit;
	z->me.dhpart = from->dhpart;
	z->peer.hello = from->hello;
	memcpy(z->peer.zid, z->peer.hello.b + HELLO_ZID, ZRTP_ZID);
	memcpy(z->alg, from->alg, sizeof(z->alg));
	z->secrets = from->secrets;
	z->has_secrets = from->has_secrets;
	z->wants_secrets = false;
}

void zrtp_rivals_commit(struct zrtp *z)
{
	struct zrtp_rivals *r = rivals_of(z);

	if (!r || zrtp_rivals_answer(z, z->peer.commit.b, z->peer.commit.len))
		return;
	put(add(r->commit, sizeof(r->commit[0]), COMMITS, &r->commits), z);
}

const struct zrtp_msg *zrtp_rivals_answer(const struct zrtp *z, const uint8_t *m, uint32_t len)
{
	const struct zrtp_rivals *r = z->rivals;

	for (uint32_t i = 0; r && i < r->commits; i++)
		if (is(&r->commit[i].commit, m, len))
			return &r->commit[i].dhpart;
	return NULL;
}

/* A peer that has committed twice proves both by the same image: its hvi tells them apart. */
static bool is_of(const struct answered *a, const struct zrtp *z, const struct zrtp_msg *dhpart2)
{
	const uint8_t *h1 = dhpart2->b + DHPART_H1;
	uint8_t hvi[32];

	return zrtp_image_fits(h1, a->commit.b + COMMIT_H2) && zrtp_has_mac_of(&a->commit, h1) &&
		zrtp_hvi(hvi, (enum zrtp_hash)a->alg[ZRTP_K_HASH], dhpart2, &z->me.hello) == 0 &&
		secmem_equal(hvi, a->commit.b + COMMIT_HVI, sizeof(hvi));
}

bool zrtp_rivals_take_commit(struct zrtp *z, const struct zrtp_msg *dhpart2)
{
	struct zrtp_rivals *r = z->rivals;

	for (uint32_t i = 0; r && i < r->commits; i++)
		if (is_of(&r->commit[i], z, dhpart2)) {
			if (z->phase == PH_CONFIRM1)
				zrtp_rivals_try(z);
			get(z, &r->commit[i]);
			return true;
		}
	return false;
}

void zrtp_rivals_own_commit(struct zrtp *z)
{
	struct zrtp_rivals *r = rivals_of(z);
	struct ours *to;

	for (uint32_t i = 0; r && i < r->owns; i++)
		if (is(&r->ours[i].commit, z->me.commit.b, z->me.commit.len))
			return;
	if (!r)
		return;
	to = add(r->ours, sizeof(*to), OURS, &r->owns);
	put(&to->state, z);
	to->commit = z->me.commit;
}

bool zrtp_rivals_take_own(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE])
{
	struct zrtp_rivals *r = z->rivals;

	for (uint32_t i = 0; r && i < r->owns; i++) {
		const struct ours *o = &r->ours[i];

		if (!zrtp_image_fits(h2, o->state.hello.b + HELLO_H3) ||
			!zrtp_has_mac_of(&o->state.hello, h2))
			continue;
		if (z->phase == PH_DHPART1)
			zrtp_rivals_commit(z);
		zrtp_rivals_hello(z, z->peer.hello.b, z->peer.hello.len);
		get(z, &o->state);
		z->me.commit = o->commit;
		z->initiator = true;
		z->stale = false;
		return true;
	}
	return false;
}

void zrtp_rivals_forget_commits(struct zrtp *z)
{
	if (z->rivals)
		z->rivals->commits = z->rivals->owns = 0;
}

/* --- Exchanges that wait for a Confirm -------------------------------------------------------- */

static void store(struct tried *to, const struct zrtp *z)
{
#define X(name) memcpy(&to->name, &z->name, sizeof(to->name));
	TRIED_MEMBERS(X)
#undef X
}

static void load(struct zrtp *z, const struct tried *from)
{
#define X(name) memcpy(&z->name, &from->name, sizeof(z->name));
	TRIED_MEMBERS(X)
#undef X
}

void zrtp_rivals_try(struct zrtp *z)
{
	struct zrtp_rivals *r = rivals_of(z);

	if (!r)
		return;
	store(add(r->tried, sizeof(r->tried[0]), TRIED, &r->tries), z);
}

bool zrtp_rivals_tried(const struct zrtp *z)
{
	return z->rivals && z->rivals->tries;
}

const struct zrtp_msg *zrtp_rivals_confirm_for(const struct zrtp *z, const uint8_t *m, uint32_t len)
{
	const struct zrtp_rivals *r = z->rivals;

	for (uint32_t i = 0; r && i < r->tries; i++)
		if (!r->tried[i].initiator && is(&r->tried[i].peer.dhpart, m, len))
			return &r->tried[i].confirm;
	return NULL;
}

bool zrtp_rivals_confirm(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	struct zrtp_rivals *r = z->rivals;
	const bool from_initiator = m[11] == '2';

	if (!r || !r->tries)
		return false;
	store(&r->tried[TRIED], z);
	for (uint32_t i = 0; i < r->tries; i++) {
		if (r->tried[i].initiator == from_initiator)
			continue;
		load(z, &r->tried[i]);
		if (zrtp_confirm_try(z, m, len, now_ns) == 0)
			return true; /* it has freed the rivals */
	}
	load(z, &r->tried[TRIED]);
	secmem_wipe(&r->tried[TRIED], sizeof(r->tried[TRIED]));
	return false;
}
