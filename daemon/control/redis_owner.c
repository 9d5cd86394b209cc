/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which node is active. Two that both are would send under the same keys, SSRCs and indexes, and overwrite each other's calls. So
 * whoever is active says so, sealed, in the key "xcipher:owner", which it renews and which vanishes with it, and on the channel
 * "xcipher:DB:owner". Each claim has the number after the highest that was heard of: the higher one wins. Whoever hears of a higher
 * one goes on standby; whoever was cut off asks before it writes; whoever starts while another is active is on standby. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "control/redis_int.h"

#define OWNER_KEY "xcipher:owner"
#define RENEW_NS  (2 * NS_PER_SEC)
#define GONE_S    "10" /* so long after its last renewal a claim vanishes */

struct claim {
	uint8_t id[REDIS_ID_LEN];
	uint64_t number;
};

void redis_owner_init(struct redis *r)
{
	static const uint8_t key[2][16] = {"xcipher node 1", "xcipher node 2"};
	struct {
		char machine[32];
		uint64_t network, port;
	} self = {.port = r->cfg.node};
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	struct stat st;

	/* The same after a restart, and another's on each machine, in each network of a machine, and for each instance. */
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
static int compare(const struct redis *r, const struct claim *c)
{
	if (c->number != r->number)
		return c->number > r->number ? 1 : -1;
	return memcmp(c->id, r->id, sizeof(c->id));
}

static void on_claimed(void *arg, void *priv, const redisReply *reply)
{
	struct redis *r = arg;

	(void)priv;
	if (!reply && r->claimed)
		r->claim_due = true;
}

static void say(struct redis *r, bool aloud)
{
	struct claim c = {.number = r->number};
	struct sbuf b;

	r->claim_due = !redis_link_is_up(r->link);
	r->renew_ns = clock_mono_ns() + RENEW_NS;
	if (r->claim_due)
		return;
	memcpy(c.id, r->id, sizeof(c.id));
	sbuf_init(&b, 0);
	if (!seal_close(r->seal, &b, STR(OWNER_KEY), (struct str){(const char *)&c, sizeof(c)})) {
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

void redis_owner_release(struct redis *r)
{
	const struct str del[] = {STR("DEL"), STR(OWNER_KEY)};

	redis_link_tell(r->link, 2, del);
}

/* Somebody else's claim. Of our own, from an earlier life, the number is taken up. */
static bool is_others(struct redis *r, struct str sealed, struct claim *out)
{
	struct sbuf b;
	bool good;

	sbuf_init(&b, 0);
	good = !seal_open(r->seal, &b, STR(OWNER_KEY), sealed) && b.len == sizeof(*out);
	if (good)
		memcpy(out, b.p, sizeof(*out));
	sbuf_fini(&b);
	if (!good || memcmp(out->id, r->id, sizeof(out->id)) != 0)
		return good;
	if (!r->claimed && out->number > r->number)
		r->number = out->number;
	return false;
}

void redis_owner_heard(struct redis *r, struct str sealed)
{
	struct claim c;

	if (!is_others(r, sealed, &c) || compare(r, &c) < 0)
		return;
	if (r->claimed)
		redis_give_way(r);
	r->number = c.number;
}

static void on_owner(void *arg, void *priv, const redisReply *reply)
{
	struct redis *r = arg;
	struct claim c;
	bool others;

	(void)priv;
	if (!reply)
		return;
	others = reply->type == REDIS_REPLY_STRING &&
		is_others(r, (struct str){reply->str, reply->len}, &c);
	r->unsure = false;
	r->decided = true;
	if (others && compare(r, &c) > 0) {
		r->number = c.number;
		/* Not from within the reply. */
		r->give_way = r->mode != REDIS_FOLLOWING;
	} else if (r->claimed) {
		say(r, true);
		calls_save_all(r->cfg.calls);
	}
	if (!r->give_way && !r->scanned && redis_link_is_up(r->read))
		redis_scan_start(r);
}

void redis_owner_ask(struct redis *r)
{
	const struct str get[] = {STR("GET"), STR(OWNER_KEY)};

	r->unsure = true;
	redis_link_send(r->link, on_owner, NULL, 2, get);
}
