/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises packets that were received before. call/links.h finds circles of calls, but a circle
 * can also lead through address translation, a terminal that echoes, or a second relay. A plain RTP
 * packet has no hop count, and each relay sends it with a new TTL. So the packet itself must be
 * recognised.
 *
 * This costs nothing on the usual path. call/circle.c starts a watch of a stream that gets more
 * packets than a terminal sends, and of every plain stream from time to time. Packets of a watched
 * stream do not take the usual path. The hash of each is compared with those of the last 65,536
 * watched packets of this worker, and a repeated packet is dropped. A watch ends after
 * AGAIN_PACKETS or AGAIN_NS without a repetition.
 *
 * Watches cover plain RTP and RTCP, and SRTP that is passed through. Other SRTP has its replay
 * window, and packets sent under a key have the nonce guard, so a circle with one such leg ends by
 * itself. Not found are circles that take longer than AGAIN_NS, and circles that change the packet.
 * Reads and writes its own tables only. */
#include "media/again.h"
#include "base/hash.h"
#include "media/fast_path.h"
#include "media/state.h"

void media_watch(struct media *m, uint32_t stream)
{
	struct media_stream *s = &m->stream[stream];

	s->watched = true;
	s->fast = false;
	m->watch[stream] = (struct again_watch){.left = AGAIN_PACKETS};
}

static void end(struct media *m, uint32_t stream)
{
	struct media_stream *s = &m->stream[stream];

	s->watched = false;
	s->fast = media_fast_stream(&s->cfg) && !s->guarded;
}

/* RTCP (RFC 5761 4), and packets other than RTP: STUN, BFCP and T.38 retransmit the same bytes. */
static bool may_repeat(const struct media_stream *s, const uint8_t *p, uint32_t len)
{
	return s->cfg.raw || len < 2 || p[0] >> 6 != 2 || (p[1] >= 192 && p[1] <= 223);
}

bool media_came_again(
	struct media *m, uint32_t stream, const uint8_t *p, uint32_t len, uint64_t t_ns)
{
	struct again_watch *w = &m->watch[stream];
	uint8_t key[16];
	uint64_t hash, *slot;
	bool again;

	/* Several streams may get the same packet; in a circle the same stream gets it again. */
	memcpy(key, m->cfg.again_key, sizeof(key));
	for (int i = 0; i < 4; i++)
		key[i] ^= (uint8_t)(stream >> 8 * i);
	hash = hash_siphash(key, p, len) | 1; /* 0 = empty */
	slot = &m->again[hash >> 1 & (AGAIN_HASHES - 1)];
	/* Empty reports of a terminal are identical, but rarely this many (RFC 3550 6.2, RFC
	 * 4585). */
	again = *slot == hash &&
		(!may_repeat(&m->stream[stream], p, len) || ++w->reports > AGAIN_REPORTS);
	*slot = hash;
	w->found |= again;
	if (!w->until_ns)
		w->until_ns = t_ns + AGAIN_NS;
	if (--w->left == 0 || t_ns > w->until_ns) {
		if (w->found)
			*w = (struct again_watch){.left = AGAIN_PACKETS};
		else
			end(m, stream);
	}
	return again;
}
