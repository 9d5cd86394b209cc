/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codecs of an answer (offer/neg_codec.h). The answer to an offerer must have codecs of its offer
 * (RFC 3264 6.1), under the offerer's payload types. */
#include "offer/neg_codec.h"

#include <stdio.h>

#include "call/codec_list.h"

enum { TYPES = SDP_TYPES, FORMAT_MAX = 5 }; /* " 127" */

static const struct str events = {"telephone-event", 15};

/* The codecs of an answer, as the offerer gets them. */
struct answer {
	const struct neg_in *in;
	struct plan_media *pm;
	bool sessions; /* there are codec threads */
	struct sdp_filter known;
	struct codec_list theirs, told; /* of the offer */
	struct codec_list said, out;    /* as the terminal answered, and as the offerer gets it */
	struct str name[SDP_TYPES];     /* of each payload type in the answer */
	bool has[TYPES], changed;
	bool events; /* the terminal answered with telephone events */
	char text[TYPES * FORMAT_MAX];
	size_t len;
};

static void put(struct answer *a, uint32_t type)
{
	a->has[type] = true;
	a->len += (size_t)snprintf(
		a->text + a->len, sizeof(a->text) - a->len, "%s%u", a->len ? " " : "", type);
}

static void drop_lines(struct answer *a, uint32_t type)
{
	a->pm->drop_types[type / 64] |= 1ull << type % 64;
	a->changed = true;
}

/* Describes a codec of the offerer, in place of the answerer's lines for this payload type. */
static void add_line(struct answer *a, const struct codec_item *c)
{
	const char *end = a->in->sdp->crlf ? "\r\n" : "\n";

	a->pm->type_lines = pool_printf(a->in->p, STR_FMT "a=rtpmap:%u " STR_FMT "%s",
		STR_ARG(a->pm->type_lines), c->type, STR_ARG(c->name), end);
	if (c->fmtp.len)
		a->pm->type_lines = pool_printf(a->in->p, STR_FMT "a=fmtp:%u " STR_FMT "%s",
			STR_ARG(a->pm->type_lines), c->type, STR_ARG(c->fmtp), end);
	drop_lines(a, c->type);
}

/* Adds a codec of the offerer that the answerer lacks. Our fmtp is the offerer's, because some
 * codecs need the same fmtp in both directions. */
static void put_theirs(struct answer *a, const struct codec_item *c)
{
	struct codec_item own = *c;

	if (a->has[c->type])
		return;
	own.ours = c->fmtp;
	own.accept = false;
	codec_list_add(&a->out, &own);
	add_line(a, c);
	put(a, c->type);
}

static bool knows(const struct answer *a, struct str name)
{
	return sdp_filter_knows(&a->known, name);
}

/* Whether the offerer's codec can be transcoded. */
static bool can(const struct answer *a, const struct codec_item *c)
{
	return sdp_codec_is_voice(c->name) && sdp_filter_takes(&a->known, c->name, c->fmtp);
}

/* The offerer's codec that stands for one of the answer; NULL: the payload is relayed unchanged. */
static const struct codec_item *choose(const struct answer *a, struct str name, uint32_t type)
{
	const struct codec_item *other = NULL;
	int law = sdp_law(name);

	for (uint32_t i = 0; i < a->theirs.n; i++)
		if (a->theirs.at[i].type == type && sdp_codec_is(name, a->theirs.at[i].name))
			return &a->theirs.at[i];
	other = codec_list_find(&a->theirs, name);
	if (other || !knows(a, name))
		return other;
	for (uint32_t i = 0; i < a->theirs.n; i++) {
		const struct codec_item *c = &a->theirs.at[i];

		if (!can(a, c))
			continue;
		if (law >= 0 && sdp_law(c->name) >= 0)
			return c;
		other = other ? other : c;
	}
	return other;
}

/* Whether a codec thread has to transcode between the two legs. */
static bool transcodes(const struct answer *a)
{
	for (uint32_t i = 0; i < a->out.n; i++) {
		const struct codec_item *c = &a->out.at[i];

		if (sdp_codec_is_voice(c->name) && sdp_law(c->name) < 0 &&
			!codec_list_find(&a->said, c->name))
			return true;
	}
	for (uint32_t i = 0; i < a->said.n; i++) {
		const struct codec_item *c = &a->said.at[i];

		if (sdp_codec_is_voice(c->name) && sdp_law(c->name) < 0 &&
			!codec_list_find(&a->out, c->name))
			return true;
	}
	return false;
}

/* Whether an audio codec in the answer to the offerer has the clock rate of these events. */
static bool has_clock(const struct answer *a, struct str name)
{
	for (uint32_t k = 0; k < a->out.n; k++)
		if (sdp_codec_is_voice(a->out.at[k].name) &&
			str_eq(sdp_codec_rate(a->out.at[k].name), sdp_codec_rate(name)))
			return true;
	return false;
}

/* Whether the offerer gets other telephone events than these, because it offered events with the
 * clock rate of its codec (RFC 4733 2.1). Chromium counts the length of events with this rate,
 * whatever rate they have in SDP. */
static bool has_better(const struct answer *a, struct str name)
{
	if (!transcodes(a) || has_clock(a, name))
		return false;
	for (uint32_t i = 0; i < a->theirs.n; i++)
		if (sdp_codec_is(events, a->theirs.at[i].name) &&
			has_clock(a, a->theirs.at[i].name))
			return true;
	return false;
}

/* Translates one codec of the answer. Telephone events come after all others. */
static void take(struct answer *a, uint32_t type, struct str fmtp)
{
	struct str name = a->name[type];
	const struct codec_item *to = NULL;
	bool is_events = name.len && sdp_codec_is(events, name);

	a->events |= is_events;
	if (is_events && a->sessions && has_better(a, name)) {
		drop_lines(a, type);
		return;
	}
	if (!name.len) {
		if (!a->has[type])
			put(a, type);
		return;
	}
	if (a->theirs.n && (a->sessions || sdp_law(name) >= 0))
		to = is_events || !sdp_codec_is_voice(name) ? codec_list_find(&a->theirs, name)
							    : choose(a, name, type);
	if (!to && a->sessions && a->theirs.n && !sdp_codec_is_voice(name)) {
		drop_lines(a, type); /* of a clock rate that only the answerer has */
		return;
	}
	if (to && (to->type != type || !sdp_codec_is(name, to->name))) {
		drop_lines(a, type);
		put_theirs(a, to);
		return;
	}
	if (a->has[type])
		return;
	codec_list_add(&a->out,
		&(struct codec_item){.type = (uint8_t)type,
			.name = name,
			.fmtp = to ? to->fmtp : STR_NONE,
			.ours = fmtp});
	put(a, type);
}

/* Translates the telephone events of the answer, or all other codecs. */
static void take_all(struct answer *a, struct str formats, bool of_events)
{
	while (formats.len) {
		struct str fmtp = STR_NONE;
		uint64_t type;

		if (str_to_u64(&type, str_trim(str_cut(&formats, ' ')), TYPES - 1) ||
			(a->name[type].len && sdp_codec_is(events, a->name[type])) != of_events)
			continue;
		for (uint32_t i = 0; i < a->said.n; i++)
			if (a->said.at[i].type == type)
				fmtp = a->said.at[i].fmtp;
		take(a, (uint32_t)type, fmtp);
	}
}

/* Telephone events at the clock rates of the codecs in the answer to the offerer. */
static void take_events(struct answer *a)
{
	for (uint32_t i = 0; i < a->out.n; i++)
		if (sdp_codec_is(events, a->out.at[i].name))
			return;
	for (uint32_t i = 0; i < a->theirs.n; i++) {
		const struct codec_item *c = &a->theirs.at[i];

		if (sdp_codec_is(events, c->name) && has_clock(a, c->name))
			put_theirs(a, c);
	}
}

/* Our offer's codec for one of the terminal's answer, with the same payload type if possible. NULL:
 * none. */
static const struct codec_item *offered(const struct answer *a, const struct codec_item *c)
{
	const struct codec_item *first = NULL;

	for (uint32_t i = 0; i < a->told.n; i++) {
		const struct codec_item *t = &a->told.at[i];

		if (!sdp_codec_is(c->name, t->name))
			continue;
		if (t->type == c->type)
			return t;
		first = first ? first : t;
	}
	return first;
}

static void gather(struct answer *a, const struct leg *lf, const struct sdp_media *m)
{
	static const struct sdp_filter none;
	struct sdp_codecs c;

	codec_list_read(&a->theirs, lf->audio.theirs);
	codec_list_read(&a->told, lf->audio.told);
	if (!lf->audio.engaged)
		a->theirs.n = 0; /* the offerer gets the answer unchanged */
	sdp_codec_names(m, a->name);
	sdp_filter_codecs(&none, m, &c);
	for (uint32_t i = 0; i < c.theirs.n; i++) {
		struct codec_item said = {.type = c.theirs.at[i].type,
			.name = c.theirs.at[i].name,
			.fmtp = c.theirs.at[i].fmtp};
		const struct codec_item *told = offered(a, &said);

		said.bitrate = told ? told->bitrate : 0;
		said.ours = told ? told->fmtp : STR_NONE;
		codec_list_add(&a->said, &said);
	}
}

static void set_laws(uint8_t law[SDP_LAWS], const struct codec_list *l)
{
	memset(law, 0, SDP_LAWS);
	for (uint32_t i = 0; i < l->n; i++) {
		int at = sdp_law(l->at[i].name);

		if (at >= 0 && !law[at])
			law[at] = (uint8_t)(l->at[i].type + 1);
	}
}

static void set_codec(struct leg *l, const struct codec_list *list)
{
	const struct codec_item *first = codec_list_first(list);

	memset(l->codec, 0, sizeof(l->codec));
	if (first && first->name.len < sizeof(l->codec))
		memcpy(l->codec, first->name.s, first->name.len);
}

static void keep(struct leg *l, const struct codec_list *list, const struct answer *a)
{
	struct str text = a->sessions ? codec_list_write(list, a->in->p) : STR_NONE;

	(void)str_replace(&l->audio.agreed, text); /* without memory it is not transcoded */
}

/* Packet times: those that the request chose, else those of each terminal's a=ptime. */
static void ptimes(struct leg_audio *lf, struct leg_audio *lt, const struct sdp_media *m)
{
	lf->resize = lf->next_resize;
	lf->ptime = lf->next_ptime ? lf->next_ptime : neg_codec_ptime(m);
	lt->resize = lt->next_resize;
	lt->ptime = lt->next_ptime;
}

static bool has_number(const struct codec_list *l, uint32_t type)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->at[i].type == type)
			return true;
	return false;
}

/* An answer may have payload types of its own, which are sent to the terminal. The terminal must
 * send those of the offer (RFC 3264 6.1), but some terminals send their own. */
static void add_numbers(struct answer *a)
{
	for (uint32_t i = 0, n = a->said.n; i < n; i++) {
		struct codec_item c = a->said.at[i];
		const struct codec_item *told = offered(a, &c);

		if (!told || has_number(&a->said, told->type))
			continue;
		c.type = told->type;
		c.also = true;
		codec_list_add(&a->said, &c);
	}
}

/* Adds codecs that were offered to the terminal, but are not in its answer: it may send them. */
static void add_rejected(struct answer *a)
{
	for (uint32_t i = 0; i < a->told.n; i++) {
		struct codec_item c = a->told.at[i];

		if (!sdp_codec_is_voice(c.name) || c.fmtp.len > SDP_FMTP_MAX ||
			codec_list_find(&a->said, c.name))
			continue;
		c.ours = c.fmtp;
		c.accept = false;
		codec_list_add(&a->said, &c);
	}
}

void neg_codec_answer(struct plan_media *pm, struct leg *lf, struct leg *lt,
	const struct sdp_media *m, const struct neg_in *in)
{
	struct answer a = {.in = in,
		.pm = pm,
		.sessions = in->known,
		.known = {.known = in->known, .knowns = in->knowns}};
	bool audio = str_eq_nocase(m->kind, STR("audio"));

	memset(lf->law, 0, sizeof(lf->law));
	memset(lt->law, 0, sizeof(lt->law));
	ptimes(&lf->audio, &lt->audio, m);
	keep(lf, &a.said, &a);
	keep(lt, &a.out, &a);
	if (!audio)
		return;
	gather(&a, lf, m);
	take_all(&a, m->formats, false);
	take_all(&a, m->formats, true);
	for (uint32_t i = 0; i < a.theirs.n && a.out.n; i++)
		if (a.theirs.at[i].accept && !codec_list_find(&a.out, a.theirs.at[i].name))
			put_theirs(&a, &a.theirs.at[i]);
	/* If the terminal has no events, its session turns the offerer's events into tones. */
	if (a.sessions && (a.events || transcodes(&a)))
		take_events(&a);
	set_laws(lf->law, &a.said);
	if (lf->audio.engaged && a.sessions && ng_flag(in->r, NG_FLAG_ASYMMETRIC_CODECS))
		add_rejected(&a);
	set_laws(lt->law, &a.out);
	add_numbers(&a);
	keep(lf, &a.said, &a);
	keep(lt, &a.out, &a);
	if (!a.changed)
		return;
	pm->formats = pool_strdup(in->p, (struct str){a.text, a.len});
	set_codec(lt, &a.out);
}
