/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The header extension for the MID in our SDP (RFC 9143 14). We offer it with each group, and
 * answer it if a bundled terminal offers it. */
#include "offer/bundle.h"

#include "proto/rtp_ext.h"
#include "proto/sdp_bundle.h"

#define ONE_BYTE_IDS 14u

bool bundle_is_written(const struct side *to, uint32_t i, bool is_answer)
{
	const struct leg *l = side_leg_get(to, i);
	bool owner = false;

	if (!l || !is_answer)
		return l && l->asked.shares;
	for (uint32_t k = 0; k < to->legs; k++)
		owner |= to->leg[k] && to->leg[k]->via == i + 1;
	return l->via || owner;
}

/* The ID that the group uses for the MID, or used before, else the first free one. 0: none is
 * free. */
static uint8_t choose(const struct side *to, const struct sdp_ext_ids *ids)
{
	for (uint32_t id = 1; id < SDP_EXT_IDS; id++)
		if (str_eq(ids->uri[id], STR(RTP_MID_URI)))
			return (uint8_t)id;
	for (uint32_t i = 0; i < to->legs; i++)
		if (to->leg[i] && to->leg[i]->mid_ext && !ids->uri[to->leg[i]->mid_ext].len)
			return to->leg[i]->mid_ext;
	for (uint32_t id = 1; id <= ONE_BYTE_IDS; id++)
		if (!ids->uri[id].len)
			return (uint8_t)id;
	return 0;
}

void bundle_ask_mid(struct side *to, const struct sdp_ext_ids *ids, const struct neg_in *in)
{
	uint8_t id = choose(to, ids);

	for (uint32_t i = 0; i < in->sdp->media_count; i++)
		if (side_leg_get(to, i) && to->leg[i]->asked.shares &&
			!sdp_mid_ext(in->sdp, &in->sdp->media[i]))
			to->leg[i]->asked.mid_ext = id;
}

struct str bundle_extension(
	const struct side *to, uint32_t i, const struct neg_in *in, bool is_answer)
{
	const struct leg *l = side_leg_get(to, i);
	uint8_t id = !l ? 0 : is_answer ? l->mid_ext : l->asked.mid_ext;

	if (!id || !bundle_is_written(to, i, is_answer) || sdp_mid_ext(in->sdp, &in->sdp->media[i]))
		return STR("");
	return pool_printf(
		in->p, "a=extmap:%u " RTP_MID_URI "%s", id, in->sdp->crlf ? "\r\n" : "\n");
}
