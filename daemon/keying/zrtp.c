/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Life of a ZRTP exchange, its packets and timers (RFC 6189 6). */
#include "keying/zrtp_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "keying/zrtp_agree.h"

#define MS       1000000ull
#define T1_FIRST (50 * MS)
#define T1_MOST  (200 * MS)
#define T1_STEPS 20u
#define T2_FIRST (150 * MS)
#define T2_MOST  (1200 * MS)
#define T2_STEPS 10u
/* T2 ends after 10.65 s. An initiator that is still there has sent its next message by then. */
#define PATIENCE    (12000 * MS)
#define CODE_LENGTH 4u
#define LEAST       3u /* times to send a message, if its acknowledgement has no MAC */

const char *zrtp_failure_name(enum zrtp_failure f)
{
	static const char *const name[ZRTP_FAIL_COUNT] = {
#define X(id, name, text) [ZRTP_FAIL_##id] = name,
		ZRTP_FAILURES(X)
#undef X
	};

	return f && f < ZRTP_FAIL_COUNT ? name[f] : "";
}

const char *zrtp_failure_text(enum zrtp_failure f)
{
	static const char *const text[ZRTP_FAIL_COUNT] = {
#define X(id, name, text) [ZRTP_FAIL_##id] = text,
		ZRTP_FAILURES(X)
#undef X
	};

	return f && f < ZRTP_FAIL_COUNT ? text[f] : "";
}

const char *zrtp_drop_name(enum zrtp_drop d)
{
	static const char *const name[ZRTP_DROP_COUNT] = {
#define X(id, name) [ZRTP_DROP_##id] = name,
		ZRTP_DROPS(X)
#undef X
	};

	return name[d];
}

/* --- Life ------------------------------------------------------------------------------------- */

int zrtp_create(struct zrtp **out, const struct zrtp_config *c)
{
	struct zrtp *z = secmem_alloc(sizeof(*z));
	int err;

	*out = NULL;
	if (!z)
		return -ENOMEM;
	z->cfg = *c;
	z->matched = -1;
	if (c->prefs)
		z->prefs = *c->prefs;
	else
		zrtp_prefs_all(&z->prefs);
	err = zrtp_hello_make(z);
	if (!err && c->only_multi)
		err = zrtp_further_create(z);
	if (err) {
		zrtp_destroy(z);
		return err;
	}
	/* Both point to the caller's memory. */
	z->cfg.zid = NULL;
	z->cfg.prefs = NULL;
	*out = z;
	return 0;
}

void zrtp_destroy(struct zrtp *z)
{
	if (!z)
		return;
	zrtp_pairs_free(z);
	zrtp_rivals_free(z);
	zrtp_further_destroy(z);
	secmem_free(z, sizeof(*z));
}

void zrtp_start(struct zrtp *z, uint64_t now_ns)
{
	if (z->phase != PH_IDLE)
		return;
	z->phase = PH_HELLO;
	if (z->further)
		zrtp_further_start(z, now_ns);
	else
		zrtp_repeat(z, &z->me.hello, true, now_ns);
}

void zrtp_fail(struct zrtp *z, enum zrtp_failure why)
{
	zrtp_stop(z);
	z->phase = PH_FAILED;
	z->failure = why;
	z->matched = -1;
	z->matched_aux = z->matched_pbx = z->mismatched = z->refused = false;
	secmem_wipe(&z->s, sizeof(z->s));
	if (why == ZRTP_FAIL_INTERNAL) {
		zrtp_pairs_free(z);
		zrtp_rivals_free(z);
	}
}

int zrtp_drop(struct zrtp *z, enum zrtp_drop why)
{
	if (z->cfg.counts)
		z->cfg.counts->drop[why]++;
	return -EBADMSG;
}

/* --- Chain ------------------------------------------------------------------------------------ */

int zrtp_add_mac(struct zrtp_msg *m, const uint8_t image[ZRTP_IMAGE])
{
	uint8_t mac[ZRTP_MAC];
	int err;

	zrtp_msg_end(m, ZRTP_MAC);
	err = zrtp_mac(mac, ZRTP_MAC, ZRTP_S256, (struct zrtp_part){image, ZRTP_IMAGE},
		(struct zrtp_part){m->b, m->len});
	if (!err)
		zrtp_msg_add(m, mac, ZRTP_MAC);
	return err;
}

bool zrtp_has_mac_of(const struct zrtp_msg *m, const uint8_t image[ZRTP_IMAGE])
{
	uint8_t mac[ZRTP_MAC];

	return m->len > ZRTP_MAC &&
		zrtp_mac(mac, ZRTP_MAC, ZRTP_S256, (struct zrtp_part){image, ZRTP_IMAGE},
			(struct zrtp_part){m->b, m->len - ZRTP_MAC}) == 0 &&
		secmem_equal(mac, m->b + m->len - ZRTP_MAC, ZRTP_MAC);
}

bool zrtp_image_fits(const uint8_t image[ZRTP_IMAGE], const uint8_t next[ZRTP_IMAGE])
{
	uint8_t hash[ZRTP_IMAGE];

	return zrtp_hash(hash, ZRTP_S256, &(struct zrtp_part){image, ZRTP_IMAGE}, 1) == 0 &&
		secmem_equal(hash, next, ZRTP_IMAGE);
}

/* --- Packets out ------------------------------------------------------------------------------ */

void zrtp_send(struct zrtp *z, const struct zrtp_msg *m)
{
	if (z->outs == ZRTP_OUT)
		return; /* the peer repeats what it misses, or we do */
	z->out[z->outs].len = (uint16_t)zrtp_wrap(z->out[z->outs].b, m, z->seq++, z->cfg.ssrc);
	z->outs++;
}

/* Answers that anybody can cause leave room for the exchange's own messages. */
void zrtp_reply(struct zrtp *z, const struct zrtp_msg *m)
{
	if (z->outs < ZRTP_OUT / 2)
		zrtp_send(z, m);
}

void zrtp_reply_empty(struct zrtp *z, enum zrtp_message type)
{
	struct zrtp_msg m;

	zrtp_msg_begin(&m, type);
	zrtp_msg_end(&m, 0);
	zrtp_reply(z, &m);
}

static void error_make(struct zrtp_msg *m, uint32_t code)
{
	zrtp_msg_begin(m, ZRTP_M_ERROR);
	zrtp_msg_end(m, CODE_LENGTH);
	zrtp_msg_add32(m, code);
}

void zrtp_reply_error(struct zrtp *z, uint32_t code)
{
	struct zrtp_msg m;

	error_make(&m, code);
	zrtp_reply(z, &m);
}

int zrtp_next(struct zrtp *z, uint8_t *buf, size_t cap)
{
	uint16_t len = z->out[0].len;

	if (!z->outs)
		return 0;
	if (cap < len)
		return -EMSGSIZE;
	memcpy(buf, z->out[0].b, len);
	z->outs--;
	memmove(&z->out[0], &z->out[1], z->outs * sizeof(z->out[0]));
	return len;
}

bool zrtp_gives_keys(const uint8_t *p, size_t len)
{
	return zrtp_is_of_type(p, len, ZRTP_M_CONFIRM2) ||
		zrtp_is_of_type(p, len, ZRTP_M_CONF2_ACK);
}

/* --- Timers ----------------------------------------------------------------------------------- */

void zrtp_repeat(struct zrtp *z, const struct zrtp_msg *m, bool hello, uint64_t now_ns)
{
	z->timer = (struct zrtp_timer){.msg = m,
		.step_ns = hello ? T1_FIRST : T2_FIRST,
		.most_ns = hello ? T1_MOST : T2_MOST,
		.left = hello ? T1_STEPS : T2_STEPS,
		.sent = 1};
	z->timer.at_ns = now_ns + z->timer.step_ns;
	zrtp_send(z, m);
}

void zrtp_stop(struct zrtp *z)
{
	z->timer.msg = NULL;
}

void zrtp_acked(struct zrtp *z)
{
	if (z->timer.sent >= LEAST)
		zrtp_stop(z);
	else
		z->timer.left = LEAST - z->timer.sent;
}

void zrtp_wait(struct zrtp *z, uint64_t now_ns)
{
	z->patience_ns = now_ns + PATIENCE;
}

static bool is_waiting(const struct zrtp *z)
{
	return z->patience_ns && (z->phase == PH_DHPART1 || z->phase == PH_CONFIRM1);
}

uint64_t zrtp_deadline(const struct zrtp *z)
{
	uint64_t at = z->timer.msg ? z->timer.at_ns : UINT64_MAX;

	if (z->further)
		return zrtp_further_deadline(z);
	return is_waiting(z) && z->patience_ns < at ? z->patience_ns : at;
}

static bool commits_without_value(const struct zrtp *z)
{
	return z->phase == PH_COMMIT &&
		!zrtp_value_len((enum zrtp_agreement)z->alg[ZRTP_K_AGREEMENT]);
}

/* Turns to another Hello that was received: that of the attempt before was perhaps not the peer's.
 * The cache may have other secrets for this one. Each Hello has one turn. */
static bool next_attempt(struct zrtp *z, uint64_t now_ns)
{
	if (!zrtp_rivals_next_hello(z))
		return false;
	z->phase = PH_HELLO;
	z->wants_secrets = z->cfg.cache;
	zrtp_repeat(z, &z->me.hello, true, now_ns);
	zrtp_may_commit(z, now_ns);
	return true;
}

void zrtp_refuse(struct zrtp *z, enum zrtp_failure why, uint32_t code, uint64_t now_ns)
{
	zrtp_fail(z, why);
	if (!next_attempt(z, now_ns)) {
		error_make(&z->relay, code);
		zrtp_repeat(z, &z->relay, false, now_ns);
	}
}

/* Nobody continued this attempt, which a stranger may have begun. That is reported, unless it was
 * our first Commit, and there is another Hello to try. */
static void end_attempt(struct zrtp *z, uint64_t now_ns)
{
	bool first = z->phase == PH_COMMIT && !z->tried;

	z->tried = true;
	if (first && next_attempt(z, now_ns))
		return;
	if (z->phase == PH_DHPART1)
		zrtp_rivals_commit(z); /* the terminal's DHPart2 may still come */
	zrtp_fail(z, z->refused ? ZRTP_FAIL_REFUSED : ZRTP_FAIL_TIMEOUT);
	(void)next_attempt(z, now_ns);
}

static void give_up(struct zrtp *z, uint64_t now_ns)
{
	zrtp_stop(z);
	if (z->phase == PH_HELLO && !zrtp_rivals_tried(z))
		z->phase = PH_NO_PEER;
	else if (z->phase == PH_CONFIRM2)
		z->phase =
			PH_OPEN; /* Confirm1 proved the responder's keys; its Conf2ACKs were lost */
	else if (z->phase == PH_HELLO || z->phase == PH_COMMIT || z->phase == PH_DHPART2)
		end_attempt(z, now_ns);
}

void zrtp_tick(struct zrtp *z, uint64_t now_ns)
{
	struct zrtp_timer *t = &z->timer;

	if (z->further) {
		zrtp_further_tick(z, now_ns);
		return;
	}
	if (is_waiting(z) && now_ns >= z->patience_ns)
		end_attempt(z, now_ns);
	if (!t->msg || now_ns < t->at_ns)
		return;
	/* Not before, since a forged Error must not cross a Confirm1 that is on its way. */
	if (z->needs_values && commits_without_value(z)) {
		z->phase = PH_HELLO;
		zrtp_may_commit(z, now_ns);
		return;
	}
	if (!t->left) {
		give_up(z, now_ns);
		return;
	}
	t->left--;
	t->sent++;
	t->step_ns = t->step_ns * 2 < t->most_ns ? t->step_ns * 2 : t->most_ns;
	t->at_ns = now_ns + t->step_ns;
	if (z->cfg.counts)
		z->cfg.counts->retransmitted++;
	/* Anybody may have sent the HelloACK: perhaps the peer began later, and needs our Hello. */
	if (t->msg == &z->me.commit || (z->phase == PH_DHPART2 && z->rivals))
		zrtp_send(z, &z->me.hello);
	zrtp_send(z, t->msg);
}

/* --- Packets in ------------------------------------------------------------------------------- */

static int on_hello_ack(struct zrtp *z, uint64_t now_ns)
{
	if (z->phase != PH_HELLO)
		return 0;
	z->hello_acked = true;
	zrtp_may_commit(z, now_ns);
	return 0;
}

void zrtp_settle(struct zrtp *z)
{
	if (z->phase == PH_CONFIRM2) {
		zrtp_stop(z);
		z->phase = PH_OPEN;
	}
	z->confirmed |= z->phase == PH_OPEN;
}

static int on_conf2_ack(struct zrtp *z)
{
	if (z->phase != PH_CONFIRM2)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	zrtp_settle(z);
	return 0;
}

/* It acknowledges the Error that is repeated. */
static int on_error_ack(struct zrtp *z)
{
	if (z->phase == PH_FAILED)
		zrtp_stop(z);
	return 0;
}

/* An attacker could have sent it: the exchange continues, and fails when its timer ends. */
static int on_error(struct zrtp *z, const uint8_t *m)
{
	zrtp_reply_empty(z, ZRTP_M_ERROR_ACK);
	if (be32(m + ZRTP_PREAMBLE) == ERROR_NO_SECRET && commits_without_value(z))
		z->needs_values = true;
	else
		z->refused = true;
	return 0;
}

static int on_message(
	struct zrtp *z, enum zrtp_message type, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	switch (type) {
	case ZRTP_M_HELLO:
		return zrtp_on_hello(z, m, len, now_ns);
	case ZRTP_M_HELLO_ACK:
		return on_hello_ack(z, now_ns);
	case ZRTP_M_COMMIT:
		return zrtp_on_commit(z, m, len, now_ns);
	case ZRTP_M_DHPART1:
		return zrtp_on_dhpart1(z, m, len, now_ns);
	case ZRTP_M_DHPART2:
		return zrtp_on_dhpart2(z, m, len, now_ns);
	case ZRTP_M_CONFIRM1:
	case ZRTP_M_CONFIRM2:
		return zrtp_on_confirm(z, m, len, now_ns);
	case ZRTP_M_CONF2_ACK:
		return on_conf2_ack(z);
	case ZRTP_M_ERROR:
		return on_error(z, m);
	case ZRTP_M_ERROR_ACK:
		return on_error_ack(z);
	default:
		return zrtp_on_after(z, type, m, len);
	}
}

int zrtp_take(struct zrtp *z, const uint8_t *p, size_t len, uint64_t now_ns)
{
	enum zrtp_message type;
	const uint8_t *m;
	uint32_t n;

	switch (zrtp_parse(&type, &m, &n, p, len)) {
	case 0:
		break;
	case -EBADMSG:
		return zrtp_drop(z, ZRTP_DROP_LENGTH);
	case -EPROTO:
		return zrtp_drop(z, ZRTP_DROP_COOKIE);
	case -EILSEQ:
		return zrtp_drop(z, ZRTP_DROP_CRC);
	default:
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	}
	if (z->phase == PH_IDLE || z->failure == ZRTP_FAIL_INTERNAL)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	z->peer_ssrc = zrtp_packet_ssrc(p);
	if (z->further)
		return zrtp_further_take(z, type, m, n, now_ns);
	return on_message(z, type, m, n, now_ns);
}

/* --- Results ---------------------------------------------------------------------------------- */

enum zrtp_state zrtp_state(const struct zrtp *z)
{
	static const uint8_t of[] = {[PH_IDLE] = ZRTP_IDLE,
		[PH_HELLO] = ZRTP_DISCOVERY,
		[PH_NO_PEER] = ZRTP_NO_PEER,
		[PH_COMMIT] = ZRTP_AGREEING,
		[PH_DHPART1] = ZRTP_AGREEING,
		[PH_DHPART2] = ZRTP_AGREEING,
		[PH_CONFIRM1] = ZRTP_AGREEING,
		[PH_CONFIRM2] = ZRTP_AGREEING,
		[PH_OPEN] = ZRTP_OPEN,
		[PH_CLEAR] = ZRTP_CLEAR,
		[PH_RESTORED] = ZRTP_OPEN,
		[PH_FAILED] = ZRTP_FAILED};

	/* A Commit may fit another Hello. */
	if (z->wants_secrets && zrtp_waits_for_all(z))
		return ZRTP_WANTS_SECRETS;
	return z->failure ? ZRTP_FAILED : (enum zrtp_state)of[z->phase];
}

enum zrtp_failure zrtp_failure(const struct zrtp *z)
{
	return z->failure;
}

static void master(struct srtp_master *out, const struct zrtp *z, bool initiator)
{
	static const uint8_t suite[ZRTP_CIPHER_N][ZRTP_TAG_N] = {
		[ZRTP_AES1] =
			{[ZRTP_HS80] = SUITE_AES_CM_128_80, [ZRTP_HS32] = SUITE_AES_CM_128_32},
		[ZRTP_AES2] =
			{[ZRTP_HS80] = SUITE_AES_192_CM_80, [ZRTP_HS32] = SUITE_AES_192_CM_32},
		[ZRTP_AES3] =
			{[ZRTP_HS80] = SUITE_AES_256_CM_80, [ZRTP_HS32] = SUITE_AES_256_CM_32},
	};

	*out = (struct srtp_master){
		.suite = (enum srtp_suite_id)suite[z->alg[ZRTP_K_CIPHER]][z->alg[ZRTP_K_TAG]]};
	memcpy(out->key, z->s.srtp_key[initiator],
		zrtp_key_len((enum zrtp_cipher)z->alg[ZRTP_K_CIPHER]));
	memcpy(out->salt, z->s.srtp_salt[initiator], sizeof(z->s.srtp_salt[0]));
}

/* An initiator has them with the Confirm1, which proves the peer: media can overtake a Conf2ACK. */
static bool has_keys(const struct zrtp *z)
{
	return z->phase == PH_OPEN || z->phase == PH_CONFIRM2;
}

int zrtp_keys(const struct zrtp *z, struct srtp_master *rx, struct srtp_master *tx)
{
	if (!has_keys(z))
		return -EAGAIN;
	master(rx, z, !z->initiator);
	master(tx, z, z->initiator);
	return 0;
}

/* A stream that begins after GoClear has the SAS of the exchange before. */
static bool has_sas(const struct zrtp *z)
{
	return has_keys(z) || z->phase == PH_CLEAR;
}

const char *zrtp_sas(const struct zrtp *z)
{
	return has_sas(z) ? z->s.sas : "";
}

const uint8_t *zrtp_sas_hash(const struct zrtp *z)
{
	return has_sas(z) ? z->s.sas_hash : NULL;
}

bool zrtp_sas_verified(const struct zrtp *z)
{
	return has_sas(z) && z->peer_verified && z->matched >= 0 && z->secrets.verified;
}

const char *zrtp_algorithm(const struct zrtp *z, enum zrtp_kind kind)
{
	return z->phase < PH_COMMIT || z->phase == PH_FAILED ? ""
							     : zrtp_alg_name(kind, z->alg[kind]);
}

bool zrtp_initiated(const struct zrtp *z)
{
	return z->initiator;
}

const uint8_t *zrtp_peer_zid(const struct zrtp *z)
{
	return z->peer_known ? z->peer.zid : NULL;
}
