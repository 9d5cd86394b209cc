/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which node is active. Two that both are would send under the same keys, SSRCs and indexes, and
 * overwrite each other's calls. So the active node claims it, sealed, in the key "xcipher:owner",
 * which it renews and which vanishes with it, and on the channel "xcipher:DB:owner". Each claim has
 * the number after the highest known: the higher one wins. A node that learns of a higher one goes
 * on standby; a node that was cut off asks before it writes; a node that starts while another is
 * active is on standby. Redis is not trusted: a claim may be a replayed old one. So a claim of
 * another node counts only after that node has answered a random challenge (redis_proof.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "call/unsaved.h"
#include "persist/redis_int.h"

#define OWNER_KEY "xcipher:owner"
#define RENEW_NS  (2 * NS_PER_SEC)
#define PAUSE_NS  NS_PER_SEC /* pause after a claim that no node proved */
#define GONE_S    "10"       /* a claim expires this long after its last renewal */

void redis_owner_init(struct redis *r)
{
	static const uint8_t key[2][16] = {"xcipher node 1", "xcipher node 2"};
	struct {
		char machine[32];
		uint64_t network, port;
	} self = {.port = r->cfg.node};
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	struct stat st;

	/* Stable across restarts, and different for each machine, network namespace and
	 * instance. */
	if (fd >= 0) {
		(void)!read(fd, self.machine, sizeof(self.machine));
		close(fd);
	}
	if (stat("/proc/self/ns/net", &st) == 0)
		self.network = st.st_ino;
	for (int i = 0; i < 2; i++) {
		uint64_t h = hash_siphash(key[i], &self, sizeof(self));

		memcpy(r->id + 8 * i, &h, sizeof(h));
	}
}

/* > 0: this claim is above ours. */
static int compare(const struct redis *r, const struct redis_claim *c)
{
	if (c->number != r->number)
		return c->number > r->number ? 1 : -1;
	return memcmp(c->id, r->id, sizeof(c->id));
}

static void on_claimed(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;

	(void)priv;
	if (!reply && r->claimed)
		r->claim_due = true;
	else if (reply && reply->type == RESP_ERROR)
		redis_told_error(r, reply->text);
}

static void say(struct redis *r, bool aloud)
{
	struct redis_claim c = {.number = r->number};
	struct sbuf b;

	r->claim_due = !redis_link_is_up(r->link);
	r->renew_ns = clock_mono_ns() + RENEW_NS;
	if (r->claim_due)
		return;
	memcpy(c.id, r->id, sizeof(c.id));
	sbuf_init(&b, 0);
	if (!redis_claim_write(r, &b, REDIS_SAYS_CLAIM, &c)) {
		const struct str set[] = {
			STR("SET"), STR(OWNER_KEY), sbuf_view(&b), STR("EX"), STR(GONE_S)};
		const struct str tell[] = {STR("PUBLISH"), str_from(r->owners), sbuf_view(&b)};

		redis_link_send(r->link, on_claimed, NULL, 5, set);
		if (aloud)
			redis_link_send(r->link, on_claimed, NULL, 3, tell);
	}
	sbuf_fini(&b);
}

void redis_owner_claim(struct redis *r)
{
	if (!r->claimed)
		r->number++;
	r->claimed = true;
	say(r, true);
}

void redis_owner_renew(struct redis *r)
{
	if (r->claimed && !r->unsure && !r->claim_due && clock_mono_ns() > r->renew_ns)
		say(r, false);
}

/* Another node may have asked or claimed while we were not subscribed. */
void redis_owner_listening(struct redis *r)
{
	if (r->claimed && !r->unsure)
		redis_owner_ask(r);
}

void redis_owner_release(struct redis *r)
{
	const struct str del[] = {STR("DEL"), STR(OWNER_KEY)};

	redis_link_send(r->link, NULL, NULL, 2, del);
}

/* A node without a claim records every number, its own of an earlier life included: its claim must
 * be higher. */
static void take_up(struct redis *r, const struct redis_claim *c)
{
	if (!r->claimed && c->number > r->number)
		r->number = c->number;
}

/* Whether this claim of another node forbids us to be active. */
static bool is_above(struct redis *r, const struct redis_claim *c)
{
	take_up(r, c);
	return !r->claimed || compare(r, c) > 0;
}

static bool is_own(const struct redis *r, const struct redis_claim *c)
{
	return memcmp(c->id, r->id, sizeof(c->id)) == 0;
}

/* The active node is known now: continues work that waited for this. */
static void decide(struct redis *r)
{
	bool ask_again = r->unsure && r->claimed && !r->give_way;

	r->unsure = false;
	r->decided = true;
	if (ask_again) {
		say(r, true);
		calls_save_all(r->cfg.calls);
	}
	if (!r->give_way && !r->scanned && redis_link_is_up(r->read))
		redis_scan_start(r);
}

void redis_owner_proved(struct redis *r, const struct redis_claim *c, bool new_life)
{
	bool above = is_above(r, c);

	if (c->number > r->number)
		r->number = c->number;
	if (r->mode == REDIS_FOLLOWING) {
		if (new_life || r->scan_due)
			redis_follow_scan(r);
		return;
	}
	r->give_way |= above; /* not inside a reply function */
	decide(r);
}

void redis_owner_unproved(struct redis *r)
{
	if (r->mode == REDIS_FOLLOWING) {
		if (r->scan_due)
			redis_follow_scan(r);
	} else if (r->unsure || !r->decided) {
		log_warn(
			"redis: Redis names another active node, but no node proves to be it: ignoring the claim");
		decide(r);
	}
}

void redis_owner_heard(struct redis *r, struct str text)
{
	struct redis_crypt_origin from = {0};
	struct redis_claim c;
	int kind = redis_claim_read(r, &c, &from, text);

	if (kind < 0) {
		redis_refused(r, "a claim of a node");
		return;
	}
	if (is_own(r, &c)) {
		if (kind == REDIS_SAYS_CLAIM)
			take_up(r, &c);
		return;
	}
	if (kind == REDIS_SAYS_ASK) {
		if (r->claimed && !r->unsure)
			redis_proof_answer(r, &c);
		return;
	}
	if (redis_proof_check(r, &c, &from))
		return;
	if (clock_mono_ns() < r->proof.failed_ns + PAUSE_NS)
		return;
	if (is_above(r, &c) && !(r->mode == REDIS_FOLLOWING && redis_proof_known(r, &from)))
		redis_proof_start(r);
}

static void on_owner(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;
	struct redis_crypt_origin from;
	struct redis_claim c;
	bool above = false;

	(void)priv;
	if (!reply)
		return;
	if (reply->type == RESP_ERROR)
		redis_told_error(r, reply->text);
	if (reply->type == RESP_STRING) {
		if (redis_claim_read(r, &c, &from, reply->text) != REDIS_SAYS_CLAIM)
			redis_refused(r, "the key " OWNER_KEY);
		else if (is_own(r, &c))
			take_up(r, &c);
		else
			above = is_above(r, &c);
	}
	if (above && r->mode != REDIS_FOLLOWING)
		redis_proof_start(r);
	else
		decide(r);
}

void redis_owner_ask(struct redis *r)
{
	const struct str get[] = {STR("GET"), STR(OWNER_KEY)};

	r->unsure = true;
	redis_link_send(r->link, on_owner, NULL, 2, get);
}
