/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codecs of an offer (offer/neg_codec.h). */
#include "offer/neg_codec.h"

#include <strings.h>

#include "call/codec_list.h"
#include "codec/registry.h"

enum { TELEPHONE_RATE = 8000 };
enum { LEAST_PTIME = 10 /* ms */ };

/* --- Codecs that can be transcoded ------------------------------------------------------------ */

/* The fmtp to offer a codec with. Without it Opus has no FEC, and AMR is bandwidth-efficient, which
 * some terminals do not support. */
static struct str usual_fmtp(const char *name)
{
	if (strcasecmp(name, "opus") == 0)
		return STR("useinbandfec=1");
	if (strcasecmp(name, "AMR") == 0 || strcasecmp(name, "AMR-WB") == 0)
		return STR("octet-align=1;mode-change-capability=2");
	return STR_NONE;
}

/* Opus always has two channels in SDP, however many are coded (RFC 7587 7). */
static bool is_mono_opus(const struct codec_about *a)
{
	return strcasecmp(a->name, "opus") == 0 && a->channels == 1;
}

/* Whether a plug-in in this process accepts the terminal's fmtp. For example, AMR with interleaving
 * is refused. */
static bool takes(const void *codec, struct str fmtp)
{
	_Alignas(XCIPHER_CODEC_MAX_ALIGN) uint8_t params[XCIPHER_CODEC_MAX_PARAMS] = {0};
	const struct xcipher_codec *c = codec;

	return c->fmtp_parse(params, fmtp.len ? fmtp.s : "", fmtp.len) == 0;
}

void neg_codec_known(struct neg_in *in, const struct codec_registry *r)
{
	struct sdp_known *k = pool_alloc(in->p, (r->entries + 1) * sizeof(*k));
	uint32_t n = 0;

	for (uint32_t i = 0; k && i < r->entries; i++) {
		const struct xcipher_codec *c = r->entry[i].codec;
		const struct codec_about *a = &r->entry[i].about;
		const char *channels = a->channels > 1 ? "/2" : "";

		if ((a->can & (CODEC_DECODES | CODEC_ENCODES)) != (CODEC_DECODES | CODEC_ENCODES) ||
			is_mono_opus(a) || !codec_registry_rates_fit(r, a->rate, TELEPHONE_RATE))
			continue;
		k[n] = (struct sdp_known){.type = a->static_pt,
			.fmtp = usual_fmtp(a->name),
			.takes = c && c->fmtp_parse ? takes : NULL,
			.codec = c};
		k[n].name = pool_printf(in->p, "%s/%u%s", a->name, a->clock, channels);
		n += k[n].name.s != NULL;
	}
	in->known = k;
	in->knowns = n;
}

/* With reuse-codecs the codecs in force stay the preferred ones. */
static void put_used_first(struct sdp_filter *f, const struct neg_in *in)
{
	if (!ng_flag(in->r, NG_FLAG_REUSE_CODECS) || in->r->command != NG_OFFER ||
		in->other == SIDE_NONE)
		return;
	for (uint32_t i = 0; i < in->call->side[in->other]->legs; i++) {
		const struct leg *l = in->call->side[in->other]->leg[i];

		if (l && l->active && l->codec[0] && f->codecs < SDP_RULES_MAX)
			f->codec[f->codecs++] = (struct sdp_codec_rule){
				.op = SDP_CODEC_FIRST, .name = str_from(l->codec)};
	}
}

/* The ptime that the request chose for the receiver of this SDP; 0: none. */
static uint8_t chosen_ptime(const struct neg_in *in)
{
	const struct side *to = in->other == SIDE_NONE ? NULL : in->call->side[in->other];

	if (!in->known)
		return 0;
	if (in->r->command == NG_OFFER)
		return in->r->ptime;
	for (uint32_t i = 0; to && in->r->command == NG_ANSWER && i < to->legs; i++)
		if (to->leg[i] && to->leg[i]->audio.resize)
			return to->leg[i]->audio.ptime;
	return 0;
}

static void write_ptime(struct sdp_filter *f, const struct neg_in *in)
{
	uint8_t ms = chosen_ptime(in);
	struct sdp_attr_rule rule = {.op = SDP_ATTR_ADD, .section = STR("audio")};

	for (uint32_t i = 0; i < in->sdp->media_count; i++)
		if (sdp_attr(in->sdp->media[i].lines, STR("ptime"))) {
			rule.op = SDP_ATTR_SUBSTITUTE;
			rule.attr = STR("ptime");
		}
	if (!ms || f->attrs == SDP_RULES_MAX)
		return;
	rule.with = pool_printf(in->p, "ptime:%u", ms);
	if (rule.op == SDP_ATTR_ADD)
		rule.attr = rule.with;
	if (rule.with.s)
		f->attr[f->attrs++] = rule;
}

const struct sdp_filter *neg_codec_filter(const struct neg_in *in)
{
	struct sdp_filter *f = pool_alloc(in->p, sizeof(*f));

	if (!f)
		return &in->r->filter;
	*f = in->r->filter;
	f->known = in->known;
	f->knowns = in->knowns;
	put_used_first(f, in);
	write_ptime(f, in);
	return f;
}

/* --- Offer ------------------------------------------------------------------------------------ */

static bool is_everything(struct str name)
{
	return str_eq_nocase(name, STR("all")) || str_eq_nocase(name, STR("full")) ||
		str_eq_nocase(name, STR("any"));
}

static bool has(const struct sdp_formats *l, struct str name)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (sdp_codec_is(name, l->at[i].name))
			return true;
	return false;
}

/* Why a codec that the request names is not transcoded; NULL: it is. */
static const char *why_not(
	const struct sdp_codecs *c, const struct sdp_filter *f, const struct sdp_codec_rule *r)
{
	bool named = !is_everything(r->name) && sdp_codec_is_voice(r->name);

	if (r->op == SDP_CODEC_TRANSCODE && sdp_codec_is(r->name, STR("telephone-event")) &&
		!has(&c->told, r->name))
		return "not added: the offerer has no telephone events";
	if (!named ||
		(r->op != SDP_CODEC_TRANSCODE && r->op != SDP_CODEC_ACCEPT &&
			r->op != SDP_CODEC_SET))
		return NULL;
	if (!sdp_filter_knows(f, r->name) && !f->known)
		return "only PCMU and PCMA are transcoded (--codec-threads=0)";
	if (!sdp_filter_knows(f, r->name))
		return "no such codec here, so it is not transcoded: see xcipherctl codecs";
	if (r->op == SDP_CODEC_TRANSCODE && !has(&c->told, r->name))
		return f->known ? "not offered: the offer has no codec to transcode from"
				: "not offered: the offer has no G.711 to transcode";
	return NULL;
}

static void warn(struct plan *plan, const struct sdp_codecs *c, const struct sdp_filter *f,
	uint32_t i, const struct neg_in *in)
{
	for (uint32_t k = 0; k < f->codecs; k++) {
		const char *why = why_not(c, f, &f->codec[k]);
		struct str text;

		if (!why)
			continue;
		text = pool_printf(in->p, "codec " STR_FMT ": %s", STR_ARG(f->codec[k].name), why);
		if (text.s)
			plan_warn(plan, in->p, plan_media_name(in->p, i, text.s));
	}
}

/* The bitrate that the request chose for a codec; 0: none. */
static uint32_t bitrate_of(const struct sdp_filter *f, struct str name)
{
	uint32_t bitrate = 0;

	for (uint32_t i = 0; i < f->codecs; i++)
		if (f->codec[i].op != SDP_CODEC_ACCEPT && f->codec[i].bitrate &&
			sdp_codec_is(f->codec[i].name, name))
			bitrate = f->codec[i].bitrate;
	return bitrate;
}

/* Stores a list in the leg. If memory runs out, the leg is not transcoded. f: NULL, or has the
 * bitrates. */
static void keep(struct str *to, const struct sdp_formats *from, const struct sdp_filter *f,
	const struct neg_in *in)
{
	struct codec_list l = {.n = 0};
	struct str text = STR_NONE;

	for (uint32_t i = 0; from && i < from->n; i++)
		codec_list_add(&l,
			&(struct codec_item){.type = from->at[i].type,
				.accept = from->at[i].accept,
				.name = from->at[i].name,
				.fmtp = from->at[i].fmtp,
				.bitrate = f ? bitrate_of(f, from->at[i].name) : 0});
	if (l.n)
		text = codec_list_write(&l, in->p);
	(void)str_replace(to, text);
}

/* Stores the request's codec options in the leg. The answer puts them into force. */
static void options(const struct neg_codec_pair *pair, const struct sdp_filter *f,
	const struct sdp_media *m, const struct neg_in *in)
{
	struct leg_audio *to = &pair->to->audio, *from = &pair->from->audio;

	to->next_ptime = in->r->ptime;
	to->next_resize = in->known && in->r->ptime;
	from->next_ptime = in->r->ptime_reverse ? in->r->ptime_reverse : neg_codec_ptime(m);
	from->next_resize = in->known && in->r->ptime_reverse;
	for (uint32_t i = 0; i < f->codecs; i++) {
		const struct sdp_codec_rule *r = &f->codec[i];

		if (r->op == SDP_CODEC_ACCEPT)
			continue;
		to->next_ptime = r->ptime && !in->r->ptime ? r->ptime : to->next_ptime;
	}
}

/* A terminal with a=ptime:1 would cause twenty times the usual work without sending more. */
uint8_t neg_codec_ptime(const struct sdp_media *m)
{
	const struct sdp_line *l = sdp_attr(m->lines, STR("ptime"));
	uint64_t ms;

	if (!l || str_to_u64(&ms, str_trim(l->arg), NG_PTIME_MAX) || !ms)
		return 0;
	return ms < LEAST_PTIME ? LEAST_PTIME : (uint8_t)ms;
}

void neg_codec_offer(struct plan *plan, const struct neg_codec_pair *pair,
	const struct sdp_media *m, uint32_t i, const struct neg_in *in)
{
	const struct sdp_filter *f = neg_codec_filter(in);
	bool audio = str_eq_nocase(m->kind, STR("audio"));
	struct sdp_codecs c = {.engaged = false};
	struct leg *to = pair->to;
	bool kept;

	if (audio)
		sdp_filter_codecs(f, m, &c);
	kept = c.engaged || (audio && in->known);
	to->asked.laws = c.laws;
	to->audio.engaged = c.engaged;
	keep(&to->audio.theirs, kept ? &c.theirs : NULL, NULL, in);
	keep(&to->audio.told, kept ? &c.told : NULL, f, in);
	if (!audio)
		return;
	options(pair, f, m, in);
	warn(plan, &c, f, i, in);
	if ((in->r->ptime || in->r->ptime_reverse) && !in->known)
		plan_warn(plan, in->p,
			plan_media_name(
				in->p, i, "ptime: packets are not resized (--codec-threads=0)"));
}
