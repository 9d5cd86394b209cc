/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that a stream's keying takes: media_stream_cfg.side. */
#ifndef MEDIA_SIDE_H
#define MEDIA_SIDE_H

#include "media/state.h"
#include "packet/side.h"

/* Whether the stream's packets of this kind go to the keying thread. */
static inline bool media_side_wants(const struct media *m, uint32_t stream, enum pkt_kind kind)
{
	uint8_t side = m->stream[stream].cfg.side;

	return side && m->cfg.side &&
		((kind == PKT_STUN && side & SIDE_BIT(SIDE_STUN)) ||
			(kind == PKT_DTLS && side & SIDE_BIT(SIDE_DTLS)) ||
			(kind == PKT_ZRTP && side & SIDE_BIT(SIDE_ZRTP)));
}

/* Passes such a packet on. PACKET_SIDE, or why it was dropped. */
uint8_t media_side(struct media *m, const struct arena *a, const struct packet_in *in,
	uint32_t stream, enum pkt_kind kind);

#endif
