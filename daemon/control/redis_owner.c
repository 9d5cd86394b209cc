/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which node is active. Two that both are would send under the same keys, SSRCs and indexes, and overwrite each other's calls. So
 * whoever becomes active says so, sealed, in the key "xcipher:owner" and on the channel "xcipher:DB:owner"; whoever hears that
 * another did goes on standby, and whoever was cut off asks before it writes again. */
#include <stdio.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "control/redis_int.h"

#define OWNER_KEY "xcipher:owner"
#define FRESH_NS  (60 * NS_PER_SEC) /* an old claim may be somebody's recording */

struct claim {
	uint8_t id[REDIS_ID_LEN];
	uint64_t at_ns;
};

static void on_claimed(void *arg, void *priv, const redisReply *reply)
{
	struct redis *r = arg;

	(void)priv;
	if (!reply)
		r->claim_due = true;
}

void redis_owner_claim(struct redis *r)
{
	struct claim c = {.at_ns = clock_real_ns()};
	struct sbuf b;

	r->claim_due = !redis_link_is_up(r->link);
	if (r->claim_due)
		return;
	memcpy(c.id, r->id, sizeof(c.id));
	sbuf_init(&b, 0);
	if (!seal_close(r->seal, &b, STR(OWNER_KEY), (struct str){(const char *)&c, sizeof(c)})) {
		const struct str set[] = {STR("SET"), STR(OWNER_KEY), sbuf_view(&b)};
		const struct str tell[] = {STR("PUBLISH"), str_from(r->owners), sbuf_view(&b)};

		redis_link_send(r->link, on_claimed, NULL, 3, set);
		redis_link_send(r->link, on_claimed, NULL, 3, tell);
	}
	sbuf_fini(&b);
}

/* Somebody else's claim. */
static bool is_others(struct redis *r, struct str sealed, struct claim *out)
{
	struct sbuf b;
	bool good;

	sbuf_init(&b, 0);
	good = !seal_open(r->seal, &b, STR(OWNER_KEY), sealed) && b.len == sizeof(*out);
	if (good)
		memcpy(out, b.p, sizeof(*out));
	sbuf_fini(&b);
	return good && memcmp(out->id, r->id, sizeof(out->id)) != 0;
}

void redis_owner_heard(struct redis *r, struct str sealed)
{
	uint64_t now = clock_real_ns();
	struct claim c;

	if (r->mode == REDIS_FOLLOWING || !r->claimed || !is_others(r, sealed, &c))
		return;
	if (c.at_ns + FRESH_NS < now || c.at_ns > now + FRESH_NS)
		return;
	redis_give_way(r);
}

static void on_owner(void *arg, void *priv, const redisReply *reply)
{
	struct redis *r = arg;
	struct claim c;

	(void)priv;
	if (!reply)
		return;
	r->unsure = false;
	if (r->mode == REDIS_FOLLOWING)
		return;
	if (reply->type == REDIS_REPLY_STRING &&
		is_others(r, (struct str){reply->str, reply->len}, &c)) {
		/* Not from within the reply. */
		r->give_way = true;
		return;
	}
	redis_owner_claim(r);
	calls_save_all(r->cfg.calls);
}

void redis_owner_ask(struct redis *r)
{
	const struct str get[] = {STR("GET"), STR(OWNER_KEY)};

	r->unsure = true;
	redis_link_send(r->link, on_owner, NULL, 2, get);
}
