/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flags of an offer or answer that concern the call or a side as a whole. Pure. */
#include "call/dtmf.h"
#include "call/plan.h"
#include "offer/neg_flags.h"

void neg_flags(struct call *c, struct side *from, const struct neg_in *in)
{
	const struct ng_request *r = in->r;
	static const enum media_learning mode[] = {[NG_LEARN_OFF] = MEDIA_LEARN_OFF,
		[NG_LEARN_IMMEDIATE] = MEDIA_LEARN_IMMEDIATE,
		[NG_LEARN_DELAYED] = MEDIA_LEARN_DELAYED,
		[NG_LEARN_HEURISTIC] = MEDIA_LEARN_HEURISTIC};

	if (r->learning != NG_LEARN_DEFAULT)
		c->learning = mode[r->learning];
	if (ng_flag(r, NG_FLAG_STRICT_SOURCE))
		c->strict_source = true;
	if (ng_flag(r, NG_FLAG_SRTCP_TAG_32))
		c->short_tags = true;
	if (r->tos >= 0)
		c->tos = (uint8_t)r->tos;
	from->asymmetric = ng_flag(r, NG_FLAG_ASYMMETRIC);
	from->media_handover = ng_flag(r, NG_FLAG_MEDIA_HANDOVER);
	for (uint32_t i = 0; ng_flag(r, NG_FLAG_NAT_WAIT) && i < c->sides; i++)
		c->side[i]->nat_wait = true;
	for (uint32_t i = 0; ng_flag(r, NG_FLAG_PIERCE_NAT) && i < c->sides; i++)
		c->side[i]->pierce = true;
	for (uint32_t i = 0; ng_flag(r, NG_FLAG_EXCLUDE_RECORDING) && i < c->sides; i++)
		c->side[i]->no_tap = true;
	(void)dtmf_read(from, r); /* digits that are none: nothing changes */
	if (ng_flag(r, NG_FLAG_BLOCK_DTMF) || dtmf_blocks(r))
		from->gate |= MEDIA_GATE_DTMF;
	if (r->dtmf.security == NG_DTMF_OFF)
		from->gate &= (uint8_t)~MEDIA_GATE_DTMF;
	if (!r->dtmf.trigger.len &&
		(ng_flag(r, NG_FLAG_BLOCK_DTMF) || r->dtmf.security != NG_DTMF_DEFAULT))
		dtmf_forget_trigger(from);
	if (r->traffic != NG_TRAFFIC_AS_IT_IS)
		c->gate = (c->gate & (uint8_t)~MEDIA_GATE_DROP) |
			(r->traffic == NG_TRAFFIC_DROP ? MEDIA_GATE_DROP : 0);
	if (r->metadata.len)
		(void)str_replace(&c->metadata, r->metadata); /* only shown */
	if (r->set_label.len || r->label.len)
		(void)str_replace(&from->label, r->set_label.len ? r->set_label : r->label);
}

enum sdp_proto neg_answer_proto(struct plan *plan, const struct leg *to, const struct sdp_media *m,
	uint32_t i, const struct neg_in *in)
{
	enum sdp_proto is = to->said.proto, asked = sdp_proto_find(in->r->transport);
	enum sdp_proto want = asked != SDP_PROTO_OTHER ? asked
		: in->r->transport_accept              ? m->proto
						       : is;

	if (asked != SDP_PROTO_OTHER && sdp_proto_is_secure(asked) != sdp_proto_is_secure(is))
		plan_warn(plan, in->p,
			pool_printf(in->p,
				"media %u: transport-protocol in an answer cannot change "
				"encryption: %s kept",
				(unsigned)i + 1, sdp_proto_name(is)));
	if (sdp_proto_is_feedback(want) == sdp_proto_is_feedback(is))
		return is;
	if (sdp_proto_is_dtls(is))
		return sdp_proto_is_feedback(want) ? SDP_UDP_TLS_RTP_SAVPF : SDP_UDP_TLS_RTP_SAVP;
	return sdp_proto_make(sdp_proto_is_secure(is), sdp_proto_is_feedback(want));
}

void neg_unsupported(struct plan *plan, const struct neg_in *in)
{
	const struct ng_request *r = in->r;

	if (!in->sessions && (r->ice == NG_ICE_FORCE || r->ice == NG_ICE_FORCE_RELAY))
		plan_warn(plan, in->p, STR("ICE is not available: its attributes were removed"));
	if (ng_flag(r, NG_FLAG_INACTIVE) && r->command != NG_SUBSCRIBE_REQUEST)
		plan_warn(plan, in->p,
			STR("'inactive' applies only to subscribe request; SDP directions kept"));
}

void neg_echo(struct plan *plan, struct side *from, struct side *to, const struct neg_in *in,
	bool is_answer)
{
	if (is_answer && !in->r->echo)
		return;
	for (uint32_t i = 0; is_answer && i < from->legs; i++)
		if (from->leg[i] && keying_asks_end_to_end(&from->leg[i]->keying)) {
			plan_warn(plan, in->p, STR("media-echo: media are passed through"));
			return;
		}
	from->echo = in->r->echo & NG_ECHO_BACKWARDS;
	to->echo = in->r->echo & NG_ECHO_FORWARD;
}

/* The other types of loopback wrap received packets in further headers. */
static bool offers_loopback(const struct sdp_media *m)
{
	const struct sdp_line *l = sdp_attr(m->lines, STR("loopback"));
	struct str types = l ? l->arg : STR("");

	if (!sdp_attr(m->lines, STR("loopback-source")))
		return false;
	while (types.len)
		if (str_eq_nocase(str_cut(&types, ' '), STR("rtp-media-loopback")))
			return true;
	return false;
}

void neg_mirror(struct plan_media *pm, const struct sdp_media *m, const struct neg_in *in)
{
	static const enum sdp_dir reverse[] = {[SDP_DIR_SENDRECV] = SDP_DIR_SENDRECV,
		[SDP_DIR_SENDONLY] = SDP_DIR_RECVONLY,
		[SDP_DIR_RECVONLY] = SDP_DIR_SENDONLY,
		[SDP_DIR_INACTIVE] = SDP_DIR_INACTIVE};

	pm->direction = sdp_dir_name(reverse[m->dir]);
	pm->mirror = true;
	if (offers_loopback(m))
		pm->type_lines = in->sdp->crlf
			? STR("a=loopback:rtp-media-loopback\r\na=loopback-mirror\r\n")
			: STR("a=loopback:rtp-media-loopback\na=loopback-mirror\n");
}
