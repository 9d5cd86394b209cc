/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Edits the SDP for the other side: our address and ports, crypto lines, rtcp-mux, a=rtcp, o=.
 * Pure, except for the version of o=, which the side stores. Everything with keys lives in the
 * request's pool. */
#include "offer/edit.h"
#include "base/hash.h"
#include "call/leg_audio.h"
#include "call/plan.h"
#include "offer/bundle.h"
#include "offer/loop_protect.h"
#include "offer/neg_codec.h"
#include "offer/neg_ice.h"
#include "offer/osrtp_legacy.h"
#include "proto/sdp_jsep.h"

static struct endpoint our_address(const struct neg_in *in, const struct side *to)
{
	struct endpoint e;

	if (in->r->media_address.len && endpoint_parse_addr(&e, in->r->media_address) == 0)
		return e;
	return in->locals[to->local].advertised;
}

/* Lines for WebRTC terminals. */
static struct str jsep(
	const struct plan_media *pm, const struct sdp_media *m, const struct neg_in *in)
{
	struct str out = STR("");
	struct sbuf b;

	if (!sdp_proto_is_dtls(pm->proto))
		return out;
	sbuf_init(&b, 0);
	sdp_jsep_write(&b, in->sdp, m, !pm->direction.s && !m->hold);
	if (!b.err && sbuf_view(&b).len)
		out = pool_strdup(in->p, sbuf_view(&b));
	sbuf_fini(&b);
	return out.s ? out : STR("");
}

/* Whether the SDP must not name the sender's SSRCs (RFC 5576), because an audio session sends under
 * its own. */
static bool has_other_sources(const struct call *next, const struct plan *plan, uint32_t i,
	const struct neg_in *in, bool is_answer)
{
	const struct side *to = next->side[plan->to];
	const struct leg *asked = side_leg_get(is_answer ? next->side[plan->from] : to, i);

	return in->known && asked && str_eq_nocase(in->sdp->media[i].kind, STR("audio")) &&
		leg_audio_may_send(next, to, i, &asked->audio);
}

/* The ports that c=, m= and a=rtcp name: those that ICE selected (RFC 8839 4.4.1.2.2), or else the
 * first. */
static const struct relay_port *default_port(const struct leg *l, bool is_answer)
{
	const struct relay_port *first = leg_port_at(l, 0);
	bool selected = l->ice.on && l->ice.pair[0].family && (is_answer || l->ice.asked);

	return first && !selected ? first : &l->port;
}

/* The address of one of them; family 0: that of the session. */
static struct endpoint address_of(
	struct local_port port, const struct side *to, const struct neg_in *in)
{
	struct endpoint none = {0};

	return port.addr == to->local ? none : in->locals[port.addr].advertised;
}

static bool edit_media(struct sdp_media_edit *e, const struct plan *plan, const struct side *to,
	uint32_t i, const struct neg_in *in, bool is_answer)
{
	const struct plan_media *pm = &plan->media[i];
	const struct leg *l = side_leg_get(to, i);
	uint32_t owner = bundle_owner(to, i, plan, in, is_answer);
	const struct sdp_media *m = &in->sdp->media[i];
	const struct endpoint addr = our_address(in, to);
	const struct relay_port *port;
	uint32_t mux = in->r->rtcp_mux;

	e->omit = pm->omit;
	if (pm->omit)
		return true;
	e->keep = pm->keep;
	e->reject = pm->reject;
	e->proto = pm->proto;
	/* Also for a rejected m-line: a browser refuses an answer with another MID. */
	if (is_answer && l && l->said.mid[0])
		e->mid_text = str_from(l->said.mid);
	if (pm->keep && (!pm->reject || !m->port))
		return true;
	e->keep = false;
	if (pm->reject || !l)
		return true;
	e->direction = pm->direction;
	e->formats = pm->formats;
	e->drop_loopback = pm->mirror;
	memcpy(e->drop_types, pm->drop_types, sizeof(e->drop_types));
	l = to->leg[owner];
	port = default_port(l, is_answer);
	e->port = port->rtp.port;
	e->addr = address_of(port->rtp, to, in);
	if (!sdp_proto_is_rtp(m->proto)) {
		e->keep_dtls = e->keep_feedback = e->drop_rtcp_mux = true;
		return true;
	}
	e->rtcp_mux = pm->mux;
	/* a=rtcp-mux-only is written only if the relay demands it */
	e->drop_rtcp_mux = !(pm->mux && mux & NG_RTCP_MUX_REQUIRE && !is_answer);
	/* An offer names the port to fall back to when mux is refused (RFC 5761 5.1.1), unless the
	 * script demands mux. Then a=rtcp must have the port of RTP (RFC 8858 4.2). */
	e->rtcp_port = pm->mux && (is_answer || mux & NG_RTCP_MUX_REQUIRE || owner != i)
		? port->rtp.port
		: port->rtcp.port;
	if (port->rtcp.addr != port->rtp.addr)
		e->rtcp_addr = in->locals[port->rtcp.addr].advertised;
	if (ng_flag(in->r, NG_FLAG_NO_RTCP_ATTRIBUTE))
		e->rtcp_port = 0;
	e->rtcp_full = ng_flag(in->r, NG_FLAG_FULL_RTCP_ATTRIBUTE);
	e->keep_feedback = sdp_proto_is_feedback(pm->proto) || !sdp_proto_is_feedback(m->proto);
	if (owner != i && in->r->bundle & NG_BUNDLE_STRICT) {
		e->lines = STR("");
	} else {
		e->lines = neg_ice_lines(l, is_answer, &addr, in);
		e->keying = plan->media[owner].lines.line;
		e->keying_count = plan->media[owner].lines.n;
	}
	if (e->lines.s)
		e->lines = pool_printf(in->p, STR_FMT STR_FMT STR_FMT, STR_ARG(e->lines),
			STR_ARG(bundle_extension(to, i, in, is_answer)), STR_ARG(jsep(pm, m, in)));
	if (e->lines.s && pm->type_lines.s)
		e->lines = pool_printf(
			in->p, STR_FMT STR_FMT, STR_ARG(pm->type_lines), STR_ARG(e->lines));
	return e->lines.s;
}

/* The mids of the m-lines on one transport. If all have their own, returns the mid of one that is
 * bundled alone: browsers demand a group (RFC 9143 7.3.3: the answer may leave m-lines out). */
static struct str bundle(const struct side *to, const struct plan *plan,
	const struct sdp_media_edit *me, const struct neg_in *in, bool is_answer)
{
	struct str mids = bundle_mids(to, me, in, is_answer);

	if (mids.s)
		return mids;
	for (uint32_t i = 0; i < in->sdp->media_count; i++) {
		const struct leg *l = side_leg_get(to, i);
		struct str mid = in->sdp->media[i].mid;

		if (!l || me[i].omit || me[i].reject || plan->media[i].keep || me[i].drop_mid)
			continue;
		if (!mid.len && me[i].mid_text.s)
			mid = me[i].mid_text;
		else if (!mid.len && me[i].mid)
			mid = pool_printf(in->p, "%u", me[i].mid);
		if (mid.len && (is_answer ? l->said.bundle : sdp_proto_is_dtls(me[i].proto)))
			return mid;
	}
	return STR_NONE;
}

/* emptied: see sdp_filter_apply(). */
static struct str write_once(const struct sdp_edit *e, const struct neg_in *in, uint32_t *emptied)
{
	struct str out = STR_NONE;
	struct sbuf b;

	sbuf_init(&b, 0);
	sdp_write(&b, in->sdp, e);
	if (!b.err)
		out = pool_strdup(in->p, sbuf_view(&b));
	sbuf_fini(&b);
	return out.s ? sdp_filter_apply(neg_codec_filter(in), in->p, out, emptied) : out;
}

/* Raises the version of o= by one whenever the SDP written to a side changes (RFC 3264 8). */
static struct str with_version(
	struct side *to, struct sdp_edit *e, struct str body, const struct neg_in *in)
{
	static const uint8_t no_secret[16];
	uint64_t hash = hash_siphash(no_secret, body.s, body.len), version;
	bool force = in->r->replace >> NG_REPLACE_FORCE_INCREMENT & 1;
	uint32_t emptied;

	if (to->out_version == 0 && str_to_u64(&version, in->sdp->origin_version, INT64_MAX) == 0)
		to->out_version = version + (force ? 1 : 0);
	else if (to->out_version == 0)
		to->out_version = 1;
	else if (force || hash != to->out_hash)
		to->out_version++;
	to->out_hash = hash;
	e->origin_version = pool_printf(in->p, "%llu", (unsigned long long)to->out_version);
	return write_once(e, in, &emptied);
}

struct str edit_write(struct plan *plan, struct call *next, const struct neg_in *in, bool is_answer)
{
	struct side *to = next->side[plan->to];
	uint32_t replace = in->r->replace;
	struct sdp_media_edit *me = pool_alloc(in->p, (in->sdp->media_count + 1) * sizeof(*me));
	struct sdp_edit e = {.addr = our_address(in, to),
		.replace_origin =
			replace >> NG_REPLACE_ORIGIN & 1 || replace >> NG_REPLACE_ORIGIN_FULL & 1,
		.keep_zero_conn = !(replace >> NG_REPLACE_ZERO_ADDRESS & 1),
		.remove_ice = true,
		.remove_dtls = true,
		.remove_bundle = true,
		.media = me};
	uint32_t emptied;
	struct str out;

	for (uint32_t i = 0; me && i < in->sdp->media_count; i++)
		me[i].mid = ng_flag(in->r, NG_FLAG_GENERATE_MID) ||
				(side_leg_get(to, i) && to->leg[i]->asked.shares && !is_answer)
			? i + 1
			: 0;
	for (uint32_t i = 0; me && is_answer && i < in->sdp->media_count; i++) {
		const struct leg *from = side_leg_get(next->side[plan->from], i);

		me[i].drop_mid_ext = from && from->asked.mid_ext;
	}
	for (uint32_t i = 0; me && i < in->sdp->media_count; i++) {
		me[i].drop_transport_cc = bundle_of_one(next->side[plan->from], to, is_answer);
		me[i].drop_sources = has_other_sources(next, plan, i, in, is_answer);
	}
	for (uint32_t i = 0; me && i < in->sdp->media_count; i++)
		if (!edit_media(&me[i], plan, to, i, in, is_answer) ||
			!osrtp_legacy_edit(&me[i], to, i, &plan->media[i], in))
			me = NULL;
	if (!me)
		return STR_NONE;
	e.bundle = bundle(to, plan, me, in, is_answer);
	for (uint32_t i = 0; i < in->sdp->media_count && !e.keying.s; i++)
		if (!me[i].omit && !me[i].reject)
			e.keying = plan->media[i].lines.session;
	for (uint32_t i = 0; i < to->legs; i++)
		e.ice_lite |= to->leg[i] && to->leg[i]->ice.lite &&
			(is_answer ? to->leg[i]->ice.on : to->leg[i]->ice.asked);
	if (replace >> NG_REPLACE_USERNAME & 1 || replace >> NG_REPLACE_ORIGIN_FULL & 1)
		e.origin_user = STR("-");
	if (replace >> NG_REPLACE_SESSION_NAME & 1)
		e.session_name = STR("-");
	if (ng_flag(in->r, NG_FLAG_LOOP_PROTECT))
		e.loop_id = STR(LOOP_NO_MARK);
	if (replace >> NG_REPLACE_SDP_VERSION & 1 || replace >> NG_REPLACE_FORCE_INCREMENT & 1)
		e.origin_version = STR("0"); /* the terminal's own version is not compared */
	out = write_once(&e, in, &emptied);
	if (out.s && emptied)
		plan_warn(plan, in->p, STR("no codec would be left: codecs not stripped"));
	if (out.s && e.origin_version.s)
		out = with_version(to, &e, out, in);
	if (out.s && e.loop_id.s)
		out = loop_mark(in->p, in->policy, in->r->call_id, out);
	return out;
}
