/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Derives conversions from the G.711 that two legs agreed to (call/law.h). So it does not matter
 * how they were joined: by offer and answer, a fork, or "connect". */
#include "call/law.h"

_Static_assert(SDP_LAWS == 2 && ARRAY_LEN(((struct leg *)0)->law) == SDP_LAWS, "two laws");

static uint32_t convert(const uint8_t from[SDP_LAWS], const uint8_t to[SDP_LAWS])
{
	uint32_t entries = 0, n = 0;

	for (uint32_t law = 0; law < SDP_LAWS; law++) {
		uint32_t same = to[law], other = to[law ^ 1];

		if (!from[law] || same == from[law] || !(same || other))
			continue;
		entries |= (same ? MEDIA_CONVERT(from[law] - 1u, same - 1u, XC_LAW_KEEP)
				 : MEDIA_CONVERT(from[law] - 1u, other - 1u,
					   law == 0 ? XC_LAW_U_TO_A : XC_LAW_A_TO_U))
			<< 16 * n++;
	}
	return entries;
}

uint32_t law_convert(const struct leg *l, const struct leg *peer)
{
	if (l->rx.pass || peer->tx.pass)
		return 0;
	/* Early media: from the codecs offered to the terminal, to those of the offerer. */
	if (!l->active)
		return convert(l->asked.laws.told, l->asked.laws.theirs);
	return convert(l->law, peer->law);
}

/* The conversion of packets from this m-line's terminal: 0: PCMU to PCMA, 1: PCMA to PCMU, -1: they
 * leave unchanged. */
static int law_pair(const struct call *c, const struct side *s, uint32_t media)
{
	const struct leg *l = side_leg_get(s, media), *peer = leg_peer(c, s, media);
	uint32_t e = 0;

	if (l && peer && l->active && peer->active && !s->parked && !s->echo && !l->audio.has)
		e = law_convert(l, peer);
	for (; e; e >>= 16)
		if (e >> 14 & 3)
			return (e >> 14 & 3) == XC_LAW_A_TO_U;
	return -1;
}

const char *law_pair_text(const struct call *c, const struct side *s, uint32_t media)
{
	int pair = law_pair(c, s, media);

	return pair < 0 ? NULL : pair ? "PCMA to PCMU" : "PCMU to PCMA";
}
