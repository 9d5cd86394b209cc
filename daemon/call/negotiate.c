/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offer and answer (RFC 3264, 3605, 5761, 8643) without keys, which are keying.c's: profiles, addresses, rtcp-mux, what is
 * rejected, on hold or new. An offer only notes what it says while an older answer holds; the answer puts both into effect. */
#include "call/negotiate.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"

int nego_copy(struct nego *out, const struct nego *n, uint32_t count)
{
	*out = *n;
	if (count < n->count)
		count = n->count;
	out->media = calloc(count ? count : 1, sizeof(*out->media));
	if (!out->media)
		return -ENOMEM;
	if (n->count)
		memcpy(out->media, n->media, n->count * sizeof(*n->media));
	out->count = count;
	return 0;
}

void nego_fini(struct nego *n)
{
	if (n->media)
		secmem_wipe(n->media, n->count * sizeof(*n->media));
	free(n->media);
	n->media = NULL;
	n->count = 0;
}

/* --- What one side says ------------------------------------------------------------------------------------------ */

static enum media_learning learning(const struct nego_in *in)
{
	static const enum media_learning mode[] = {[NG_LEARN_OFF] = MEDIA_LEARN_OFF,
		[NG_LEARN_IMMEDIATE] = MEDIA_LEARN_IMMEDIATE,
		[NG_LEARN_DELAYED] = MEDIA_LEARN_DELAYED,
		[NG_LEARN_HEURISTIC] = MEDIA_LEARN_HEURISTIC};

	return in->r->learning == NG_LEARN_DEFAULT ? in->policy->learning : mode[in->r->learning];
}

static void read_side(struct nego *n, const struct nego_in *in)
{
	struct nego_side *s = &n->side[in->from];

	s->strict_source = in->policy->strict_source || ng_flag(in->r, NG_FLAG_STRICT_SOURCE);
	s->media_handover = ng_flag(in->r, NG_FLAG_MEDIA_HANDOVER);
	s->asymmetric = ng_flag(in->r, NG_FLAG_ASYMMETRIC);
	s->learning = learning(in);
	if (in->r->tos >= 0 && in->r->tos < 256)
		n->tos = (uint8_t)in->r->tos;
}

/* Where the terminal wants RTP and RTCP. On hold by address (RFC 2543) or rejected: nowhere. */
static void read_address(struct nego_end *e, const struct nego_in *in, const struct sdp_media *m)
{
	struct endpoint a = m->conn.addr;

	e->sig_rtp = e->sig_rtcp = (struct endpoint){0};
	if (m->port == 0 || !m->conn.present || endpoint_is_unspecified(&a))
		return;
	if (ng_flag(in->r, NG_FLAG_SIP_SOURCE_ADDRESS) && in->r->received_from.len)
		endpoint_parse_addr(&a, in->r->received_from);
	e->sig_rtp = a;
	e->sig_rtp.port = m->port;
	e->sig_rtcp = a;
	if (m->has_rtcp) {
		if (m->rtcp.family && !endpoint_is_unspecified(&m->rtcp) &&
			!ng_flag(in->r, NG_FLAG_SIP_SOURCE_ADDRESS))
			e->sig_rtcp = m->rtcp;
		e->sig_rtcp.port = m->rtcp.port;
	} else if (m->port < UINT16_MAX) {
		e->sig_rtcp.port = (uint16_t)(m->port + 1);
	}
}

static const char *read_end(struct nego_end *e, const struct nego_in *in, const struct sdp_media *m)
{
	if (m->port && m->conn.present && m->conn.addr.family == 0)
		return "Incomplete SDP specification";
	e->rejected = m->port == 0;
	e->dir = m->dir;
	e->mux_theirs = m->rtcp_mux || m->rtcp_mux_only;
	read_address(e, in, m);
	return NULL;
}

/* --- Our addresses ------------------------------------------------------------------------------------------------ */

/* Name and family if both can be had, else the name, else the family, else the first. */
static uint8_t pick_local(
	const struct nego_in *in, struct str name, int family, const char **warning)
{
	uint32_t by_name = UINT32_MAX, by_family = UINT32_MAX;

	for (uint32_t i = in->locals; i-- > 0;) {
		bool n = name.len && str_eq(name, str_from(in->local[i].name));
		bool f = family && in->local[i].addr.family == family;

		if (n && (f || by_name == UINT32_MAX || in->local[by_name].addr.family != family))
			by_name = i;
		if (f)
			by_family = i;
	}
	if (by_name != UINT32_MAX)
		return (uint8_t)by_name;
	if (name.len)
		*warning = "unknown interface, default is used";
	return by_family == UINT32_MAX ? 0 : (uint8_t)by_family;
}

static int sdp_family(const struct sdp *s)
{
	for (uint32_t i = 0; i < s->media_count; i++)
		if (s->media[i].port && s->media[i].conn.addr.family)
			return s->media[i].conn.addr.family;
	return s->conn.addr.family;
}

static void choose_locals(struct nego *n, const struct nego_in *in, const char **warning)
{
	int family = sdp_family(in->sdp);
	int to = in->r->address_family ? in->r->address_family : family;

	n->side[in->from].local = pick_local(in, in->r->direction[0], family, warning);
	n->side[!in->from].local = pick_local(in, in->r->direction[1], to, warning);
}

/* --- Offers ---------------------------------------------------------------------------------------------------- */

/* Keys by DTLS are not made here: such a profile is offered as the one with the same security and feedback. */
static enum sdp_proto outward(const struct nego_in *in, enum sdp_proto from)
{
	enum sdp_proto p = in->r->transport.len ? sdp_proto_find(in->r->transport) : from;

	if (p == SDP_PROTO_OTHER)
		p = from;
	return sdp_proto_make(sdp_proto_is_secure(p), sdp_proto_is_feedback(p));
}

static const char *check_offer(const struct nego_end *from, const struct nego_in *in)
{
	if (!sdp_proto_is_secure(from->proto) || keying_usable(from, in->policy->suites))
		return NULL;
	if (from->theirs_n == 0 &&
		(from->proto == SDP_UDP_TLS_RTP_SAVP || from->proto == SDP_UDP_TLS_RTP_SAVPF))
		return "DTLS-SRTP is not available and no a=crypto was offered";
	return "No common crypto suite";
}

static void put_into_effect(struct nego_end *e)
{
	e->rtp = e->sig_rtp;
	e->rtcp = e->mux ? e->sig_rtp : e->sig_rtcp;
}

static const char *offer_media(struct nego *n, const struct nego_in *in, uint32_t i)
{
	const struct sdp_media *m = &in->sdp->media[i];
	struct nego_media *nm = &n->media[i];
	struct nego_end *from = &nm->end[in->from], *to = &nm->end[!in->from];
	uint32_t mux = in->r->rtcp_mux;
	const char *err = read_end(from, in, m);

	if (err)
		return err;
	memset(nm->kind, 0, sizeof(nm->kind));
	memcpy(nm->kind, m->kind.s, min_u32((uint32_t)m->kind.len, sizeof(nm->kind) - 1));
	nm->kept = m->proto == SDP_PROTO_OTHER;
	if (nm->kept || from->rejected)
		return NULL;
	from->proto = m->proto;
	to->proto = outward(in, m->proto);
	from->osrtp_accept = in->r->osrtp & NG_OSRTP_ACCEPT;
	from->mux_reject = mux & NG_RTCP_MUX_REJECT;
	to->mux_ours = (from->mux_theirs && !(mux & (NG_RTCP_MUX_DEMUX | NG_RTCP_MUX_REJECT))) ||
		mux & (NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE);
	err = keying_read(from, m);
	err = err ? err : check_offer(from, in);
	err = err ? err : keying_offer(to, from, in, in->random + (size_t)i * NEGO_RANDOM);
	if (err)
		return err;
	if (!n->answered || !nm->wanted) { /* nothing holds yet that this could disturb */
		put_into_effect(from);
		nm->linked = !sdp_proto_is_secure(from->proto) && !sdp_proto_is_secure(to->proto) &&
			to->ours_n == 0;
	}
	nm->wanted = true;
	return NULL;
}

static void warn(const struct nego_in *in, const char **warning)
{
	if (in->r->ice == NG_ICE_FORCE || in->r->ice == NG_ICE_FORCE_RELAY)
		*warning = "ICE is not available, its attributes were removed";
	if (in->r->dtls == NG_DTLS_PASSIVE || in->r->dtls == NG_DTLS_ACTIVE ||
		str_starts(in->r->transport, STR("UDP/TLS/")))
		*warning = "DTLS-SRTP is not available, SDES is offered";
}

const char *nego_offer(struct nego *n, const struct nego_in *in, const char **warning)
{
	const char *err = NULL;

	warn(in, warning);
	if (!n->started) {
		n->tos = in->policy->tos;
		choose_locals(n, in, warning);
		n->side[!in->from].learning = in->policy->learning;
		n->side[!in->from].strict_source = in->policy->strict_source;
	}
	read_side(n, in);
	n->started = true;
	n->offerer = in->from;
	for (uint32_t i = 0; i < in->sdp->media_count && !err; i++)
		err = offer_media(n, in, i);
	return err;
}

/* --- Answers --------------------------------------------------------------------------------------------------- */

static const char *answer_media(struct nego *n, const struct nego_in *in, uint32_t i)
{
	const struct sdp_media *m = &in->sdp->media[i];
	struct nego_media *nm = &n->media[i];
	struct nego_end *b = &nm->end[in->from], *a = &nm->end[!in->from];
	const char *err;

	if (nm->kept)
		return NULL;
	if (a->rejected) { /* offered with port 0: gone for good */
		nm->wanted = nm->linked = false;
		secmem_wipe(&nm->end, sizeof(nm->end));
		a->rejected = b->rejected = true;
		return NULL;
	}
	err = read_end(b, in, m);
	if (err)
		return err;
	if (m->proto == SDP_PROTO_OTHER)
		b->rejected = true;
	if (b->rejected) { /* ports stay: another branch may still take it */
		nm->linked = false;
		return NULL;
	}
	err = keying_answer(a, b, in, m, in->random + (size_t)i * NEGO_RANDOM);
	if (err)
		return err;
	a->mux_ours = a->mux_theirs && !a->mux_reject && !(in->r->rtcp_mux & NG_RTCP_MUX_REJECT);
	a->mux = a->mux_ours;
	b->mux = b->mux_ours && b->mux_theirs;
	put_into_effect(a);
	put_into_effect(b);
	nm->linked = nm->wanted;
	return NULL;
}

const char *nego_answer(struct nego *n, const struct nego_in *in, const char **warning)
{
	const char *err = NULL;

	warn(in, warning);
	if (!n->started || in->sdp->media_count > n->count)
		return "Invalid dialogue association";
	read_side(n, in);
	for (uint32_t i = 0; i < in->sdp->media_count && !err; i++)
		err = answer_media(n, in, i);
	for (uint32_t i = in->sdp->media_count; i < n->count; i++)
		n->media[i].linked = false; /* not answered: refused */
	n->answered = true;
	return err;
}
