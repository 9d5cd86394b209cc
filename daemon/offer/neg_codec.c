/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codecs of an answer between terminals with different laws of G.711 (offer/neg_codec.h). An
 * offerer must find codecs of its own offer in the answer (RFC 3264 6.1), under its own payload
 * types. */
#include "offer/neg_codec.h"

#include <stdio.h>

enum { TYPES = SDP_TYPES, FORMAT_MAX = 5 }; /* " 127" */

/* The codecs of an answer, as the offerer gets them. */
struct answer {
	struct str name[SDP_TYPES]; /* of each payload type */
	char text[TYPES * FORMAT_MAX];
	size_t len;
	bool has[TYPES];
	uint8_t law[SDP_LAWS]; /* payload type + 1 */
	struct str first;      /* name of the first codec of a law that was replaced or added */
	bool any;              /* the first codec is known */
};

static const struct str law_name[SDP_LAWS] = {{"PCMU/8000", 9}, {"PCMA/8000", 9}};

static void put(struct answer *a, uint32_t type)
{
	a->has[type] = true;
	a->len += (size_t)snprintf(
		a->text + a->len, sizeof(a->text) - a->len, "%s%u", a->len ? " " : "", type);
}

/* The payload type of the offerer for this law, or for the other one. -1: it has neither. */
static int type_of(const struct sdp_laws *l, int law, int *is)
{
	for (int k = 0; k < SDP_LAWS; k++) {
		*is = law ^ k;
		if (l->theirs[*is])
			return l->theirs[*is] - 1;
	}
	return -1;
}

static bool is_codec(struct str name)
{
	struct str base = str_cut(&name, '/');

	return !str_eq_nocase(base, STR("telephone-event")) && !str_eq_nocase(base, STR("CN"));
}

static void add_line(struct plan_media *pm, const struct neg_in *in, int law, uint32_t type)
{
	pm->type_lines =
		pool_printf(in->p, STR_FMT "a=rtpmap:%u " STR_FMT "%s", STR_ARG(pm->type_lines),
			type, STR_ARG(law_name[law]), in->sdp->crlf ? "\r\n" : "\n");
	pm->drop_types[type / 64] |= 1ull << type % 64; /* the answerer's own line */
}

/* One codec of the answer. */
static void take(struct answer *a, struct plan_media *pm, struct leg *lf, uint32_t type,
	const struct neg_in *in)
{
	struct str name = a->name[type];
	int law = sdp_law(name), is = law, to = (int)type;

	if (law >= 0 && !lf->law[law])
		lf->law[law] = (uint8_t)(type + 1);
	if (law >= 0 && lf->asked.laws.engaged)
		to = type_of(&lf->asked.laws, law, &is);
	if (to < 0) {
		to = (int)type;
		is = law;
	}
	if (is != law || to != (int)type)
		pm->drop_types[type / 64] |= 1ull << type % 64;
	if (a->has[to])
		return;
	if (!a->any && is_codec(name)) {
		a->any = true;
		a->first = is == law ? name : law_name[is];
	}
	if (is >= 0)
		a->law[is] = (uint8_t)(to + 1);
	if (is != law || to != (int)type)
		add_line(pm, in, is, (uint32_t)to);
	put(a, (uint32_t)to);
}

void neg_codec_answer(struct plan_media *pm, struct leg *lf, struct leg *lt,
	const struct sdp_media *m, const struct neg_in *in)
{
	const struct sdp_laws *l = &lf->asked.laws;
	struct str rest = m->formats;
	struct answer a = {.len = 0};

	memset(lf->law, 0, sizeof(lf->law));
	memset(lt->law, 0, sizeof(lt->law));
	if (!str_eq_nocase(m->kind, STR("audio")))
		return;
	sdp_codec_names(m, a.name);
	while (rest.len) {
		uint64_t type;

		if (str_to_u64(&type, str_trim(str_cut(&rest, ' ')), TYPES - 1) == 0)
			take(&a, pm, lf, (uint32_t)type, in);
	}
	for (int law = 0; law < SDP_LAWS && (lf->law[0] || lf->law[1]); law++) {
		uint32_t type = l->theirs[law] - 1u;

		if (!(l->accept >> law & 1) || a.law[law] || a.has[type])
			continue;
		a.law[law] = (uint8_t)(type + 1);
		add_line(pm, in, law, type);
		put(&a, type);
	}
	memcpy(lt->law, a.law, sizeof(lt->law));
	if (!(pm->drop_types[0] | pm->drop_types[1]))
		return;
	pm->formats = pool_strdup(in->p, (struct str){a.text, a.len});
	memset(lt->codec, 0, sizeof(lt->codec));
	if (a.first.len && a.first.len < sizeof(lt->codec))
		memcpy(lt->codec, a.first.s, a.first.len);
}

void neg_codec_offer(struct plan *plan, struct leg *to, const struct sdp_media *m, uint32_t i,
	const struct neg_in *in)
{
	const struct sdp_filter *f = &in->r->filter;
	struct sdp_laws *l = &to->asked.laws;

	*l = (struct sdp_laws){.engaged = false};
	if (!str_eq_nocase(m->kind, STR("audio")))
		return;
	sdp_filter_laws(f, m, l);
	for (uint32_t k = 0; k < f->codecs; k++) {
		int law = sdp_law(f->codec[k].name);

		if (f->codec[k].op != SDP_CODEC_TRANSCODE || law < 0 || l->told[law])
			continue;
		plan_warn(plan, in->p,
			plan_media_name(in->p, i,
				law ? "PCMA not offered: the offer has no G.711 to transcode"
				    : "PCMU not offered: the offer has no G.711 to transcode"));
	}
}

/* With reuse-codecs the codecs in force stay the preferred ones. */
const struct sdp_filter *neg_codec_filter(const struct neg_in *in)
{
	struct sdp_filter *f;

	if (!ng_flag(in->r, NG_FLAG_REUSE_CODECS) || in->r->command != NG_OFFER ||
		in->other == SIDE_NONE)
		return &in->r->filter;
	f = pool_alloc(in->p, sizeof(*f));
	if (!f)
		return &in->r->filter;
	*f = in->r->filter;
	for (uint32_t i = 0; i < in->call->side[in->other]->legs; i++) {
		const struct leg *l = in->call->side[in->other]->leg[i];

		if (l && l->active && l->codec[0] && f->codecs < SDP_RULES_MAX)
			f->codec[f->codecs++] = (struct sdp_codec_rule){
				.op = SDP_CODEC_FIRST, .name = str_from(l->codec)};
	}
	return f;
}
