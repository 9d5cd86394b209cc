/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keying/mikey_host.h"

#include <string.h>

#include "base/secmem.h"

int mikey_host_init(struct mikey_host *h, struct mikey_config *config, enum mikey_use use,
	uint64_t (*now_ns)(void))
{
	*h = (struct mikey_host){.config = config, .use = use, .now_ns = now_ns};
	return mikey_replay_create(&h->replay, MIKEY_REPLAYS);
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
	secmem_free(t, t->size);
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
}

struct mikey_talk *mikey_talk_add(struct mikey_host *h, uint64_t id, size_t len)
{
	uint64_t now = h->now_ns();
	size_t size = sizeof(struct mikey_talk) + len;
	struct mikey_talk *t = secmem_alloc(size);

	if (!t)
		return NULL;
	while (h->oldest &&
		(h->talks >= MIKEY_TALKS_MAX ||
			now > h->oldest->born_ns + MIKEY_TALK_SECONDS * 1000000000ull))
		forget(h, h->oldest);
	t->id = id;
	t->size = size;
	t->len = len;
	t->born_ns = now;
	t->next = h->bucket[id & 255];
	h->bucket[id & 255] = t;
	t->older = h->newest;
	*(h->newest ? &h->newest->newer : &h->oldest) = t;
	h->newest = t;
	h->talks++;
	return t;
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
