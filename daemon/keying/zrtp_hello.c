/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hello (RFC 6189 5.2), and the choice of algorithms (4.1.2). */
#include "keying/zrtp_int.h"

#include <errno.h>

#include "base/secmem.h"

#define VERSION     "1.10"
#define BAD_VERSION 0x30u /* code of an Error */
#define CLIENT      "xcipher         "
/* Least time between two changes to another peer. Each costs a key pair and an agreement. */
#define YIELD_NS 250000000ull
/* Hellos without a Commit of the peer's, 1.3 seconds: we commit again. */
#define STEPS_ALONE 7u

static const char *const names[ZRTP_KINDS][ZRTP_LIST] = {
#define X(id, name, size) name,
	[ZRTP_K_HASH] = {ZRTP_HASHES(X)},
	[ZRTP_K_CIPHER] = {ZRTP_CIPHERS(X)},
	[ZRTP_K_TAG] = {ZRTP_TAGS(X)},
	[ZRTP_K_AGREEMENT] = {ZRTP_AGREEMENTS(X)},
	[ZRTP_K_SAS] = {ZRTP_SASES(X)},
#undef X
};
static const uint8_t known[ZRTP_KINDS] = {
	ZRTP_HASH_N, ZRTP_CIPHER_N, ZRTP_TAG_N, ZRTP_AGREEMENT_N, ZRTP_SAS_N};
/* Every implementation has these, whether its Hello names them or not: the choice when nothing else
 * is common. */
static const uint8_t mandatory[ZRTP_KINDS] = {ZRTP_S256, ZRTP_AES1, ZRTP_HS80, ZRTP_DH3K, ZRTP_B32};

void zrtp_prefs_all(struct zrtp_prefs *out)
{
	for (uint32_t k = 0; k < ZRTP_KINDS; k++) {
		out->n[k] = known[k];
		for (uint8_t i = 0; i < known[k]; i++)
			out->list[k][i] = i;
	}
}

const char *zrtp_alg_name(enum zrtp_kind kind, uint32_t alg)
{
	return alg < known[kind] ? names[kind][alg] : "";
}

static bool prefers(const struct zrtp_prefs *p, enum zrtp_kind kind, uint8_t alg)
{
	for (uint32_t i = 0; i < p->n[kind]; i++)
		if (p->list[kind][i] == alg)
			return true;
	return false;
}

int zrtp_alg_find(const struct zrtp *z, enum zrtp_kind kind, const uint8_t name[4])
{
	for (uint8_t i = 0; i < known[kind]; i++)
		if (memcmp(names[kind][i], name, 4) == 0)
			return prefers(&z->prefs, kind, i) ? i : -1;
	return -1;
}

/* --- Our Hello -------------------------------------------------------------------------------- */

static int images(struct zrtp *z)
{
	int err = zrtp_from_seed(z->image[0], ZRTP_IMAGE, z->cfg.seed, "H0");

	for (int i = 1; i < 4 && !err; i++)
		err = zrtp_hash(z->image[i], ZRTP_S256,
			&(struct zrtp_part){z->image[i - 1], ZRTP_IMAGE}, 1);
	return err;
}

static bool prefs_are_sound(const struct zrtp_prefs *p)
{
	for (uint32_t k = 0; k < ZRTP_KINDS; k++) {
		if (!p->n[k] || p->n[k] > ZRTP_LIST)
			return false;
		for (uint32_t i = 0; i < p->n[k]; i++)
			if (p->list[k][i] >= known[k])
				return false;
	}
	return true;
}

int zrtp_hello_make(struct zrtp *z)
{
	static const uint8_t shift[ZRTP_KINDS] = {16, 12, 8, 4, 0};
	struct zrtp_msg *m = &z->me.hello;
	uint32_t flags = (z->cfg.not_mitm ? 0 : HELLO_MITM << 24) |
		(z->cfg.passive ? HELLO_PASSIVE << 24 : 0);
	int err = images(z);

	if (!prefs_are_sound(&z->prefs))
		return -EINVAL;
	if (!err && z->cfg.zid)
		memcpy(z->me.zid, z->cfg.zid, ZRTP_ZID);
	else if (!err)
		err = zrtp_from_seed(z->me.zid, ZRTP_ZID, z->cfg.seed, "ZID");
	if (err)
		return err;
	zrtp_msg_begin(m, ZRTP_M_HELLO);
	zrtp_msg_add(m, VERSION, 4);
	zrtp_msg_add(m, CLIENT, 16);
	zrtp_msg_add(m, z->image[3], ZRTP_IMAGE);
	zrtp_msg_add(m, z->me.zid, ZRTP_ZID);
	for (uint32_t k = 0; k < ZRTP_KINDS; k++)
		flags |= (uint32_t)z->prefs.n[k] << shift[k];
	zrtp_msg_add32(m, flags);
	for (uint32_t k = 0; k < ZRTP_KINDS; k++)
		for (uint32_t i = 0; i < z->prefs.n[k]; i++)
			zrtp_msg_add(m, names[k][z->prefs.list[k][i]], 4);
	return zrtp_add_mac(m, z->image[2]);
}

int zrtp_hello_hash(uint8_t hash[ZRTP_HASH], const struct zrtp_config *c)
{
	struct zrtp *z = secmem_alloc(sizeof(*z));
	int err = z ? 0 : -ENOMEM;

	if (z) {
		z->cfg = *c;
		if (c->prefs)
			z->prefs = *c->prefs;
		else
			zrtp_prefs_all(&z->prefs);
		err = zrtp_hello_make(z);
		err = err ? err
			  : zrtp_hash(hash, ZRTP_S256,
				    &(struct zrtp_part){z->me.hello.b, z->me.hello.len}, 1);
		secmem_free(z, sizeof(*z));
	}
	return err;
}

/* --- The peer's ------------------------------------------------------------------------------- */

static uint32_t count_of(const uint8_t *m, enum zrtp_kind kind)
{
	static const uint8_t shift[ZRTP_KINDS] = {16, 12, 8, 4, 0};

	return be32(m + HELLO_FLAGS) >> shift[kind] & 15;
}

bool zrtp_hello_is_sound(const uint8_t *m, uint32_t len)
{
	uint32_t n = 0;

	if (len > ZRTP_MESSAGE_MAX || memcmp(m + 12, VERSION, 3) != 0)
		return false;
	for (uint32_t k = 0; k < ZRTP_KINDS; k++) {
		if (count_of(m, (enum zrtp_kind)k) > ZRTP_LIST)
			return false;
		n += count_of(m, (enum zrtp_kind)k);
	}
	return len == HELLO_FLAGS + 4 + n * 4 + ZRTP_MAC;
}

/* m is not the Hello that was received before. */
static bool is_bound(const struct zrtp *z, const uint8_t *m, uint32_t len)
{
	uint8_t hash[ZRTP_HASH];

	/* Only one Hello has this hash. */
	if (z->cfg.bound && z->peer.hello.len)
		return false;
	return !z->cfg.bound ||
		(zrtp_hash(hash, ZRTP_S256, &(struct zrtp_part){m, len}, 1) == 0 &&
			secmem_equal(hash, z->cfg.bound_hash, sizeof(hash)));
}

static void keep(struct zrtp_msg *to, const uint8_t *m, uint32_t len)
{
	memcpy(to->b, m, len);
	to->len = (uint16_t)len;
}

static void adopt(struct zrtp *z)
{
	z->wants_secrets = z->cfg.cache;
	memcpy(z->peer.zid, z->peer.hello.b + HELLO_ZID, ZRTP_ZID);
	z->peer_known = true;
}

bool zrtp_hello_of(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE])
{
	if (z->peer.hello.len && zrtp_image_fits(h2, z->peer.hello.b + HELLO_H3) &&
		zrtp_has_mac_of(&z->peer.hello, h2))
		return true;
	if (!zrtp_rivals_take_hello(z, h2))
		return false;
	z->stale = true;
	adopt(z);
	return true;
}

bool zrtp_yield(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE], uint64_t now_ns)
{
	if ((z->phase != PH_DHPART2 && z->phase != PH_CONFIRM1) || now_ns < z->yield_ns ||
		zrtp_image_fits(h2, z->peer.hello.b + HELLO_H3) || !zrtp_rivals_has_hello(z, h2))
		return false;
	z->yield_ns = now_ns + YIELD_NS;
	zrtp_rivals_try(z);
	z->matched = -1;
	z->matched_aux = z->matched_pbx = z->mismatched = false;
	return true;
}

bool zrtp_waits_for_all(const struct zrtp *z)
{
	return z->phase == PH_HELLO || z->phase == PH_NO_PEER || z->phase == PH_COMMIT ||
		z->phase == PH_DHPART1 || z->phase == PH_FAILED;
}

/* The peer's version is not ours. It lowers its own if ours is lower; if ours is higher, it has to
 * know that there is no common one (4.1.1). Anybody could have sent it: the exchange goes on. */
static int other_version(struct zrtp *z, const uint8_t *m, uint32_t len)
{
	if (z->phase != PH_HELLO && z->phase != PH_NO_PEER && z->phase != PH_FAILED)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	if (!is_bound(z, m, len))
		return zrtp_drop(z, ZRTP_DROP_BOUND);
	zrtp_reply_empty(z, ZRTP_M_HELLO_ACK);
	if (memcmp(m + 12, VERSION, 3) < 0)
		zrtp_reply_error(z, BAD_VERSION);
	return 0;
}

/* Our Commit may have answered a stranger's Hello. The peer cannot accept it then, and some peers
 * accept no second one. So ours is not repeated for a while, in which the peer can commit. */
static void let_commit(struct zrtp *z, uint64_t now_ns)
{
	if (z->timer.msg != &z->me.commit)
		return;
	zrtp_repeat(z, &z->me.hello, true, now_ns);
	z->timer.left = STEPS_ALONE;
}

int zrtp_on_hello(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	bool same = z->peer.hello.len == len && memcmp(z->peer.hello.b, m, len) == 0;
	bool rests = z->phase == PH_NO_PEER || z->phase == PH_FAILED;

	if (memcmp(m + 12, VERSION, 3) != 0)
		return other_version(z, m, len);
	if (!zrtp_hello_is_sound(m, len))
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	if (memcmp(m + HELLO_ZID, z->me.zid, ZRTP_ZID) == 0) {
		/* Our own packet, or an attack: nothing is lost by waiting for another Hello. */
		return zrtp_drop(z, ZRTP_DROP_STATE);
	}
	if (!same && !is_bound(z, m, len))
		return zrtp_drop(z, ZRTP_DROP_BOUND);
	zrtp_reply_empty(z, ZRTP_M_HELLO_ACK);
	if (same && !rests)
		return 0;
	if (z->phase != PH_HELLO && !rests) {
		if (z->phase < PH_OPEN)
			zrtp_rivals_hello(z, m, len);
		if (z->phase == PH_COMMIT && !z->tried)
			let_commit(z, now_ns);
		/* It begins while we wait for somebody else, and needs our Hello. */
		if ((z->phase == PH_DHPART1 || z->phase == PH_CONFIRM1) && !z->timer.msg)
			zrtp_repeat(z, &z->me.hello, true, now_ns);
		return 0;
	}
	if (z->peer.hello.len && !same)
		zrtp_rivals_hello(z, z->peer.hello.b, z->peer.hello.len);
	keep(&z->peer.hello, m, len);
	adopt(z);
	if (rests) {
		z->phase = PH_HELLO;
		zrtp_repeat(z, &z->me.hello, true, now_ns);
	}
	zrtp_may_commit(z, now_ns);
	return 0;
}

/* --- Choice ----------------------------------------------------------------------------------- */

/* m: a Hello that zrtp_hello_is_sound(). */
static bool has(const uint8_t *m, enum zrtp_kind kind, uint8_t alg)
{
	const uint8_t *at = m + HELLO_FLAGS + 4;

	for (uint32_t k = 0; k < (uint32_t)kind; k++)
		at += 4 * count_of(m, (enum zrtp_kind)k);
	for (uint32_t i = 0; i < count_of(m, kind); i++)
		if (memcmp(at + 4 * i, names[kind][alg], 4) == 0)
			return true;
	return false;
}

static bool peer_has(const struct zrtp *z, enum zrtp_kind kind, uint8_t alg)
{
	return has(z->peer.hello.b, kind, alg);
}

bool zrtp_begins_another(const struct zrtp *z, const uint8_t *p, size_t len)
{
	enum zrtp_message type;
	const uint8_t *m;
	uint32_t n;

	return z->peer_known && zrtp_parse(&type, &m, &n, p, len) == 0 && type == ZRTP_M_HELLO &&
		zrtp_hello_is_sound(m, n) && memcmp(m + HELLO_ZID, z->peer.zid, ZRTP_ZID) == 0 &&
		memcmp(m + HELLO_H3, z->peer.hello.b + HELLO_H3, ZRTP_IMAGE) != 0 &&
		has(m, ZRTP_K_AGREEMENT, ZRTP_MULT) &&
		prefers(&z->prefs, ZRTP_K_AGREEMENT, ZRTP_MULT);
}

/* The agreement can be used now: Mult and Prsh need a retained secret. */
static bool is_possible(const struct zrtp *z, enum zrtp_kind kind, uint8_t alg)
{
	bool shared = z->has_secrets && z->secrets.has_rs1 && !z->needs_values;

	return kind != ZRTP_K_AGREEMENT ||
		(alg == ZRTP_MULT                  ? z->multi && !z->needs_values
				: alg == ZRTP_PRSH ? shared && z->prefs.list[kind][0] == alg
						   : true);
}

/* Our preference decides. The RFC takes the faster one of both sides' first choices, which it lets
 * both compute; but only the Commit counts, and a responder accepts whatever its Hello names. */
void zrtp_choose(struct zrtp *z)
{
	for (uint32_t k = 0; k < ZRTP_KINDS; k++) {
		z->alg[k] = mandatory[k];
		for (uint32_t i = z->prefs.n[k]; i-- > 0;) {
			uint8_t alg = z->prefs.list[k][i];

			if (peer_has(z, (enum zrtp_kind)k, alg) &&
				is_possible(z, (enum zrtp_kind)k, alg))
				z->alg[k] = alg;
		}
	}
	if (z->multi && !z->needs_values && peer_has(z, ZRTP_K_AGREEMENT, ZRTP_MULT) &&
		prefers(&z->prefs, ZRTP_K_AGREEMENT, ZRTP_MULT)) {
		z->alg[ZRTP_K_AGREEMENT] = ZRTP_MULT;
		z->alg[ZRTP_K_HASH] = z->multi_hash;
	}
	/* P-384 goes with SHA-384 and AES-256 (5.1.5). */
	if (z->alg[ZRTP_K_AGREEMENT] == ZRTP_EC38 && peer_has(z, ZRTP_K_HASH, ZRTP_S384) &&
		prefers(&z->prefs, ZRTP_K_HASH, ZRTP_S384))
		z->alg[ZRTP_K_HASH] = ZRTP_S384;
}
