/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keying/mikey_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/secmem.h"
#include "keying/keying.h"

int mikey_host_init(struct mikey_host *h, struct mikey_config *config, enum mikey_use use,
	const struct mikey_clocks *clock)
{
	int err;

	*h = (struct mikey_host){.config = config, .use = use, .clock = *clock};
	err = secmem_random(h->hash_key, sizeof(h->hash_key));
	err = err ? err : mikey_replay_create(&h->replay, MIKEY_REPLAYS);
	/* A message from before the start may be one that was answered then. */
	if (!err)
		mikey_host_take_over(h);
	return err;
}

int mikey_host_keep(struct mikey_host *h, const char *path)
{
	return mikey_replay_keep(h->replay, path);
}

void mikey_host_take_over(struct mikey_host *h)
{
	mikey_replay_since(h->replay, mikey_ntp(h->clock.real()));
}

bool mikey_host_afford(struct mikey_host *h, const struct mikey_peer *peer, bool emergency)
{
	const struct mikey_id *name = peer->owner.len ? &peer->owner : &peer->id;
	const struct mikey_rates rates = {
		.all = mikey_config_limits(h->config)->rates.all, .peer = peer->rate};

	return mikey_budget_take(&h->budget, &rates,
		mikey_host_hash(h, (struct str){name->name, name->len}), emergency,
		h->clock.mono());
}

void mikey_talk_destroy(struct mikey_talk *t)
{
	if (!t)
		return;
	free(t->response);
	secmem_free(t, sizeof(*t));
}

static void forget(struct mikey_host *h, struct mikey_talk *t)
{
	struct mikey_talk **at = &h->bucket[t->id & 255];

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	*(t->older ? &t->older->newer : &h->oldest) = t->newer;
	*(t->newer ? &t->newer->older : &h->newest) = t->older;
	h->talks--;
	mikey_talk_destroy(t);
}

void mikey_host_fini(struct mikey_host *h)
{
	while (h->oldest)
		forget(h, h->oldest);
	mikey_replay_destroy(h->replay);
	mikey_config_destroy(h->config);
	memset(h, 0, sizeof(*h));
}

void mikey_host_reload(struct mikey_host *h, struct mikey_config *config)
{
	mikey_config_destroy(h->config);
	h->config = config;
	h->check_ns = 0;
}

void mikey_host_check(struct mikey_host *h, void (*warn)(void *arg, const char *line), void *arg)
{
	uint64_t now_ns = h->clock.mono();

	if (!h->config || now_ns < h->check_ns)
		return;
	h->check_ns = now_ns + MIKEY_CHECK_SECONDS * NS_PER_SEC;
	mikey_config_check(h->config, (int64_t)(h->clock.real() / NS_PER_SEC), warn, arg);
}

uint64_t mikey_host_hash(const struct mikey_host *h, struct str text)
{
	return hash_siphash(h->hash_key, text.s, text.len);
}

/* The oldest exchange of a call that has MIKEY_TALKS_CALL of them. NULL: it has fewer. */
static struct mikey_talk *surplus(const struct mikey_host *h, uint64_t call)
{
	struct mikey_talk *first = NULL;
	uint32_t n = 0;

	for (struct mikey_talk *t = h->oldest; t; t = t->newer)
		if (t->call == call) {
			first = first ? first : t;
			n++;
		}
	return n >= MIKEY_TALKS_CALL ? first : NULL;
}

void keying_call_ended(struct mikey_host *h, struct str call_id)
{
	uint64_t call = h && h->talks ? mikey_host_hash(h, call_id) : 0;

	for (struct mikey_talk *t = call ? h->oldest : NULL, *newer; t; t = newer) {
		newer = t->newer;
		if (t->call == call)
			forget(h, t);
	}
}

/* The exchange that a new one of this call replaces. NULL: there is room, or none may be replaced.
 * An exchange of another call may be replaced once its keys were wiped: then only its response is
 * left, and calls continue without that. */
static struct mikey_talk *replaceable(const struct mikey_host *h, uint64_t call)
{
	struct mikey_talk *t = surplus(h, call);

	if (t || h->talks < MIKEY_TALKS_MAX)
		return t;
	for (t = h->oldest; t && !t->spent; t = t->newer)
		;
	return t;
}

enum mikey_failure mikey_talk_create(
	struct mikey_talk **out, struct mikey_host *h, struct str call_id, size_t room)
{
	uint64_t call = mikey_host_hash(h, call_id);
	struct mikey_talk *t;

	*out = NULL;
	if (h->talks >= MIKEY_TALKS_MAX && !replaceable(h, call))
		return MIKEY_FAIL_FULL;
	t = secmem_alloc(sizeof(*t));
	if (!t)
		return MIKEY_FAIL_INTERNAL;
	t->call = call;
	t->response = room ? malloc(room) : NULL;
	if (room && !t->response) {
		mikey_talk_destroy(t);
		return MIKEY_FAIL_INTERNAL;
	}
	*out = t;
	return MIKEY_OK;
}

static void give_back(struct mikey_talk *t)
{
	uint8_t *less;

	if (!t->len) {
		free(t->response);
		t->response = NULL;
		return;
	}
	less = realloc(t->response, t->len);
	if (less)
		t->response = less;
}

void mikey_talk_add(struct mikey_host *h, struct mikey_talk *t, uint64_t id)
{
	struct mikey_talk *old = replaceable(h, t->call);

	if (old)
		forget(h, old);
	give_back(t);
	t->id = id;
	t->born_ns = h->clock.mono();
	t->next = h->bucket[id & 255];
	h->bucket[id & 255] = t;
	t->older = h->newest;
	*(h->newest ? &h->newest->newer : &h->oldest) = t;
	h->newest = t;
	h->talks++;
}

static bool is_over(uint64_t since_ns, uint64_t seconds, uint64_t now_ns)
{
	return now_ns > since_ns + seconds * 1000000000ull;
}

/* A responder's message stays: a re-INVITE may repeat the offer, and its legs have the keys. */
static void tick(struct mikey_host *h, struct mikey_talk *t, uint64_t now)
{
	if (!t->answered_ns && is_over(t->born_ns, MIKEY_TALK_SECONDS, now)) {
		forget(h, t);
	} else if (t->answered_ns && !t->spent &&
		is_over(t->answered_ns, MIKEY_KEEP_SECONDS, now)) {
		if (!t->responder) {
			forget(h, t);
			return;
		}
		secmem_wipe(&t->run, sizeof(t->run));
		secmem_wipe(&t->keys, sizeof(t->keys));
		t->spent = true;
	}
}

void mikey_host_tick(struct mikey_host *h)
{
	uint64_t now = h->clock.mono();

	for (struct mikey_talk *t = h->oldest, *newer; t; t = newer) {
		newer = t->newer;
		tick(h, t, now);
	}
}

struct mikey_talk *mikey_talk_find(struct mikey_host *h, uint64_t id)
{
	struct mikey_talk *t = h->bucket[id & 255];

	while (t && t->id != id)
		t = t->next;
	return t;
}

void mikey_host_count(
	struct mikey_host *h, enum mikey_mode mode, bool initiator, enum mikey_failure f)
{
	uint32_t m = mode < MIKEY_MODE_COUNT ? mode : MIKEY_MODE_COUNT;

	if (f < MIKEY_FAIL_COUNT)
		h->count[m][initiator][f]++;
}
