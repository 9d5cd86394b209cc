/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Derives audio sessions from the codecs that two legs agreed on. The result is the same however
 * the legs were joined: by offer and answer, a fork, or "connect". */
#include "call/leg_audio.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "audio/tx.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/secmem.h"
#include "call/codec_list.h"
#include "call/dtmf.h"
#include "call/gate.h"
#include "call/law.h"
#include "codec/registry.h"
#include "proto/sdp_filter.h"

static const struct codec_registry *codecs(const struct relay *r)
{
	return r->audio->ops->codecs(r->audio->arg);
}

/* A number in "NAME/NUMBER/NUMBER". place: 1 or 2. Returns 0 if it is missing. */
static uint32_t number_in(struct str name, int place)
{
	uint64_t n = 0;

	while (place-- > 0)
		(void)str_cut(&name, '/');
	(void)str_to_u64(&n, str_cut(&name, '/'), 1000000);
	return (uint32_t)n;
}

/* Finds the codec of a name in the format of a=rtpmap. Opus has two channels in SDP, one here. */
static const struct codec_entry *entry_of(const struct codec_registry *r, struct str name)
{
	uint32_t clock = number_in(name, 1), channels = number_in(name, 2);
	struct str base = str_cut(&name, '/');
	char text[CODEC_NAME_MAX];

	if (base.len >= sizeof(text))
		return NULL;
	snprintf(text, sizeof(text), STR_FMT, STR_ARG(base));
	if (strcasecmp(text, "opus") == 0)
		channels = 1;
	for (uint32_t i = 0; i < r->entries; i++) {
		const struct codec_about *a = &r->entry[i].about;

		if (strcasecmp(a->name, text) == 0 && a->clock == clock &&
			a->channels == (channels ? channels : 1))
			return &r->entry[i];
	}
	return NULL;
}

/* --- Whether it is needed --------------------------------------------------------------------- */

/* Whether each audio codec of a is one of b, or the worker converts it to one of b. */
static bool covered(const struct codec_list *a, const struct codec_list *b)
{
	bool law = false;

	for (uint32_t i = 0; i < b->n; i++)
		law |= sdp_law(b->at[i].name) >= 0;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct codec_item *c = &a->at[i], *same = codec_list_find(b, c->name);

		if (sdp_codec_is_voice(c->name) && !c->also && !(same && same->type == c->type) &&
			!(law && sdp_law(c->name) >= 0))
			return false;
	}
	return true;
}

static bool is_audio(const struct leg *l)
{
	return l && l->active && l->has_port && !l->via && strcmp(l->kind, "audio") == 0 &&
		sdp_proto_is_rtp(l->proto) && !l->rx.pass && !l->tx.pass && l->audio.agreed.len;
}

static bool is_known(const struct codec_registry *r, const struct codec_list *l)
{
	const struct codec_item *first = codec_list_first(l);

	return first && entry_of(r, first->name);
}

/* Whether each codec's PCM can become that of each other one. */
static bool rates_fit(
	const struct codec_registry *r, const struct codec_list *a, const struct codec_list *b)
{
	uint32_t rate = 0;

	for (uint32_t i = 0; i < a->n + b->n; i++) {
		const struct codec_item *c = i < a->n ? &a->at[i] : &b->at[i - a->n];
		const struct codec_entry *e = entry_of(r, c->name);

		if (e && rate && !codec_registry_rates_fit(r, e->about.rate, rate))
			return false;
		rate = e ? e->about.rate : rate;
	}
	return true;
}

/* Whether codec threads transcode between this m-line and its peer. PCMU and PCMA alone are
 * converted by the worker (call/law.h). */
static bool leg_audio_needed(
	const struct relay *r, const struct call *c, const struct side *s, uint32_t media)
{
	const struct leg *l = side_leg_get(s, media), *peer = leg_peer(c, s, media);
	struct codec_list ours, theirs;
	bool same, ours_too; /* ours_too: a session is needed even for equal codecs */

	if (!r->audio || !is_audio(l) || !is_audio(peer) || s->parked || s->listener || s->echo ||
		c->side[s->peer]->parked || c->side[s->peer]->echo ||
		leg_peer(c, c->side[s->peer], media) != l)
		return false;
	codec_list_read(&ours, l->audio.agreed);
	codec_list_read(&theirs, peer->audio.agreed);
	ours_too = leg_plays(l) || leg_plays(peer) || dtmf_needs_session(c, s) ||
		dtmf_needs_session(c, c->side[s->peer]) || gate_needs_session(c, s, l) ||
		gate_needs_session(c, c->side[s->peer], peer);
	if (!is_known(codecs(r), &ours) || !is_known(codecs(r), &theirs))
		return false;
	same = covered(&ours, &theirs) && covered(&theirs, &ours);
	return (same && ours_too) ||
		((ours_too || l->audio.resize || peer->audio.resize || !same) &&
			rates_fit(codecs(r), &ours, &theirs));
}

bool leg_audio_may_send(
	const struct call *c, const struct side *to, uint32_t media, const struct leg_audio *asked)
{
	const struct leg *l = side_leg_get(to, media), *peer = leg_peer(c, to, media);
	const struct side *from = to->peer < c->sides ? c->side[to->peer] : NULL;
	bool resize = l && (l->audio.resize || l->audio.next_resize);

	resize |= peer && (peer->audio.resize || peer->audio.next_resize);
	return l &&
		(l->audio.ssrc || asked->engaged || resize || dtmf_needs_session(c, to) ||
			(from && dtmf_needs_session(c, from)));
}

/* --- Its handle ------------------------------------------------------------------------------- */

/* After a session with more packets than SENT_MAX, the next one has another SSRC. SENT_MAX and
 * LEFT_OUT together are less than half a cycle of sequence numbers, so a terminal may miss them
 * all. */
enum { SENT_MAX = 16000, LEFT_OUT = 128 };

static int draw_ssrc(uint32_t *ssrc)
{
	int err = secmem_random(ssrc, sizeof(*ssrc));

	*ssrc = err ? 0 : *ssrc ? *ssrc : 1;
	return err;
}

/* Time after which the ceiling grows by one: 31/32 of the packet time to the terminal, because the
 * clocks of the two terminals differ. */
static uint32_t unit_of(const struct relay *r, const struct leg *l)
{
	struct codec_list list;
	uint64_t ns = 20 * 1000000;

	codec_list_read(&list, l->audio.agreed);
	for (uint32_t i = 0; i < list.n; i++) {
		const struct codec_entry *e = sdp_codec_is_voice(list.at[i].name)
			? entry_of(codecs(r), list.at[i].name)
			: NULL;

		if (e) {
			ns = audio_tx_frame(&e->about, l->audio.ptime) * NS_PER_SEC / e->about.rate;
			break;
		}
	}
	return (uint32_t)(ns - ns / 32);
}

static int draw(struct leg_audio *a)
{
	uint16_t first;
	int err = draw_ssrc(&a->ssrc);

	err = err ? err : draw_ssrc(&a->spare);
	err = err ? err : secmem_random(&first, sizeof(first));
	a->index = err ? 0 : first & 0x7fff;
	a->ceiling = (struct ceiling){.first = (uint32_t)a->index};
	return err;
}

static int draw_with_ceiling(const struct relay *r, struct leg *l)
{
	int err = draw(&l->audio);

	l->audio.ceiling.from_ns = r->audio->ops->now_ns(r->audio->arg);
	l->audio.ceiling.unit_ns = unit_of(r, l);
	return err;
}

/* The first session of a leg sends under an SSRC of its own, and later ones keep it: under one key
 * few SSRCs are sent (media.h: MEDIA_PAST). The worker refuses an index that was sent before,
 * so no keystream is used again (RFC 3711 9.1). If sessions follow each other so fast that the
 * SSRC's ceiling has no room, later ones have an SSRC without one. The spare one is never kept: a
 * session may begin it below where another has left it, and the worker would refuse its packets. */
static int take(const struct relay *r, uint32_t near, struct leg *l)
{
	struct leg_audio *a = &l->audio;
	int err = 0;

	if (!a->ssrc)
		err = draw_with_ceiling(r, l);
	else if (!ceiling_allows(&a->ceiling, a->index - 1, r->audio->ops->now_ns(r->audio->arg)))
		err = draw(a);
	else
		err = draw_ssrc(&a->spare);
	if (err)
		return err;
	err = r->audio->ops->take(r->audio->arg, near, &a->handle, &a->serial);
	a->has = !err;
	return err;
}

/* LEFT_OUT: the session may still send packets until it has ended. */
static void leave(const struct relay *r, struct leg_audio *a)
{
	struct audio_stats stats;

	if (!a->has)
		return;
	r->audio->ops->stats(r->audio->arg, a->handle, &stats);
	a->has = false;
	a->index += stats.sent + stats.skipped + LEFT_OUT;
	if (stats.sent + stats.skipped > SENT_MAX)
		a->ssrc = 0;
}

/* We have a new key, so the worker counts roll-overs from 0 again (RFC 3711 3.3.1). The session
 * does not, because its ceiling bounds whole indexes. So after the first roll-over it needs another
 * SSRC. */
static int rekeyed(const struct relay *r, struct leg *l)
{
	struct audio_stats stats = {0};

	if (l->audio.has)
		r->audio->ops->stats(r->audio->arg, l->audio.handle, &stats);
	return l->audio.index + stats.sent + stats.skipped + LEFT_OUT > UINT16_MAX
		? draw_with_ceiling(r, l)
		: 0;
}

/* Any session of the call; AUDIO_NONE: it has none. */
static uint32_t session_of(const struct call *c)
{
	for (uint32_t k = 0; k < c->sides; k++)
		for (uint32_t i = 0; i < c->side[k]->legs; i++)
			if (c->side[k]->leg[i] && c->side[k]->leg[i]->audio.has)
				return c->side[k]->leg[i]->audio.handle;
	return AUDIO_NONE;
}

int leg_audio_take(const struct relay *r, struct call *c)
{
	int err = 0;

	for (uint32_t k = 0; k < c->sides; k++)
		for (uint32_t i = 0; i < c->side[k]->legs && !err; i++) {
			struct leg *l = c->side[k]->leg[i];

			if (!l)
				continue;
			if (l->tx_new && l->audio.ssrc)
				err = rekeyed(r, l);
			if (!leg_audio_needed(r, c, c->side[k], i))
				leave(r, &l->audio);
			else if (!l->audio.has && !err)
				err = take(r, session_of(c), l);
		}
	return err;
}

/* --- Its settings ----------------------------------------------------------------------------- */

/* Codecs of the process, and the PCM rate to prefer where a codec has several: that of the other
 * terminal's codec, because then nothing is resampled. */
struct choice {
	const struct codec_registry *codecs;
	uint32_t rate;
};

/* Telephone events and comfort noise have the clock rate of a codec. With a lower rate a packet may
 * last less than one unit of timestamps. With a higher one timestamps may wrap within a second. */
enum { CLOCK_MIN = 8000, CLOCK_MAX = 192000 };

static bool is_usual(uint32_t clock)
{
	return clock >= CLOCK_MIN && clock <= CLOCK_MAX;
}

static bool is_events(const struct codec_item *c)
{
	return sdp_codec_is(STR("telephone-event"), c->name) && is_usual(number_in(c->name, 1));
}

static bool type_of(struct audio_type *out, const struct choice *from, const struct codec_item *c,
	struct str fmtp)
{
	const struct codec_entry *e;

	*out = (struct audio_type){.type = c->type, .clock = number_in(c->name, 1)};
	if (!out->clock)
		return false;
	if (!sdp_codec_is_voice(c->name)) {
		out->kind = sdp_codec_is(STR("CN"), c->name) ? AUDIO_CN : AUDIO_EVENTS;
		return is_usual(out->clock);
	}
	if (fmtp.len > sizeof(out->fmtp))
		return false;
	out->fmtp_len = (uint16_t)fmtp.len;
	if (fmtp.len)
		memcpy(out->fmtp, fmtp.s, fmtp.len);
	e = entry_of(from->codecs, c->name);
	e = e ? codec_registry_variant(from->codecs, e, from->rate) : NULL;
	out->kind = AUDIO_CODEC;
	out->entry = e ? (uint16_t)(e - from->codecs->entry) : 0;
	return e;
}

/* Payload types that the terminal may send: its codecs, then events and comfort noise. These have
 * up to OTHERS places of their own, so that a long list of codecs leaves digits their place. */
enum { OTHERS = 3 };

static void receives(struct audio_cfg *cfg, const struct choice *from, const struct codec_list *l)
{
	struct audio_type other[OTHERS];
	uint32_t others = 0;

	for (uint32_t i = 0; i < l->n && others < OTHERS; i++)
		if (!sdp_codec_is_voice(l->at[i].name) &&
			type_of(&other[others], from, &l->at[i], l->at[i].ours))
			others++;
	for (uint32_t i = 0; i < l->n && cfg->types < AUDIO_TYPES - others; i++)
		if (sdp_codec_is_voice(l->at[i].name) &&
			type_of(&cfg->type[cfg->types], from, &l->at[i], l->at[i].ours))
			cfg->types++;
	for (uint32_t i = 0; i < others; i++)
		cfg->type[cfg->types++] = other[i];
}

uint32_t leg_audio_types(
	const struct relay *r, const struct leg *l, struct audio_type out[AUDIO_TYPES])
{
	struct audio_cfg cfg = {.types = 0};
	struct choice from = {.codecs = codecs(r)};
	struct codec_list list;

	if (!r->audio || l->rx.pass || !l->audio.agreed.len)
		return 0;
	codec_list_read(&list, l->audio.agreed);
	receives(&cfg, &from, &list);
	if (cfg.type[0].kind != AUDIO_CODEC)
		cfg.types = 0;
	memset(out, 0, AUDIO_TYPES * sizeof(*out));
	for (uint32_t i = 0; i < cfg.types; i++)
		out[i] = cfg.type[i];
	return cfg.types;
}

static bool fits_better(
	const struct audio_type *t, const struct audio_type *than, uint32_t codec_clock)
{
	return than->type == AUDIO_NO_TYPE ||
		(t->clock == codec_clock && than->clock != codec_clock);
}

/* Comfort noise has the clock rate of the codec. So should telephone events (RFC 4733 2.1), but
 * many phones agree to those of 8000 Hz only, whatever their codec is. */
static void sends(struct audio_cfg *cfg, const struct choice *from, const struct codec_list *l)
{
	struct audio_type t;

	cfg->codec.type = cfg->events.type = cfg->cn.type = AUDIO_NO_TYPE;
	for (uint32_t i = 0; i < l->n && cfg->codec.type == AUDIO_NO_TYPE; i++)
		if (sdp_codec_is_voice(l->at[i].name) &&
			type_of(&t, from, &l->at[i], l->at[i].fmtp)) {
			cfg->codec = t;
			cfg->bitrate = l->at[i].bitrate;
		}
	for (uint32_t i = 0; i < l->n; i++) {
		if (sdp_codec_is_voice(l->at[i].name) ||
			!type_of(&t, from, &l->at[i], l->at[i].fmtp))
			continue;
		if (t.kind == AUDIO_EVENTS && fits_better(&t, &cfg->events, cfg->codec.clock))
			cfg->events = t;
		else if (t.kind == AUDIO_CN && t.clock == cfg->codec.clock &&
			cfg->cn.type == AUDIO_NO_TYPE)
			cfg->cn = t;
	}
}

static bool has_events(const struct codec_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (is_events(&l->at[i]))
			return true;
	return false;
}

/* Digits where one of the two terminals has no telephone events. */
static void sends_digits(
	struct audio_cfg *cfg, const struct codec_list *ours, const struct codec_list *theirs)
{
	cfg->events_to_tone = !has_events(ours) && has_events(theirs);
	cfg->tone_to_events = cfg->events_to_tone;
}

/* PCM rate of the first codec that the process has; 0: it has none. */
static uint32_t rate_of(const struct codec_registry *r, const struct codec_list *l)
{
	const struct codec_entry *e = NULL;

	for (uint32_t i = 0; i < l->n && !e; i++)
		e = sdp_codec_is_voice(l->at[i].name) ? entry_of(r, l->at[i].name) : NULL;
	return e ? e->about.rate : 0;
}

/* Whether a codec here has an fmtp that a session cannot store. */
static bool is_too_long(const struct codec_registry *r, const struct codec_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if ((l->at[i].fmtp.len > AUDIO_FMTP || l->at[i].ours.len > AUDIO_FMTP) &&
			sdp_codec_is_voice(l->at[i].name) && entry_of(r, l->at[i].name))
			return true;
	return false;
}

int leg_audio_set(const struct relay *r, const struct call *c, const struct side *s, uint32_t media)
{
	const struct leg *l = s->leg[media], *peer = leg_peer(c, s, media);
	struct audio_cfg cfg = {.to = peer && peer->audio.has ? peer->audio.handle : AUDIO_NONE,
		.ssrc = l->audio.ssrc,
		.index = l->audio.index,
		.ceiling = l->audio.ceiling,
		.spare = l->audio.spare,
		.ptime = l->audio.ptime,
		.emergency = s->emergency};
	struct codec_list list, theirs = {.n = 0};
	struct choice from = {.codecs = codecs(r)};
	static const uint8_t name[16] = "cname", times[16] = "timestamps";
	int err;

	codec_list_read(&list, l->audio.agreed);
	if (is_too_long(from.codecs, &list))
		return -ENOPROTOOPT;
	if (cfg.to != AUDIO_NONE)
		codec_list_read(&theirs, peer->audio.agreed);
	from.rate = rate_of(from.codecs, &theirs);
	receives(&cfg, &from, &list);
	sends(&cfg, &from, &list);
	sends_digits(&cfg, &list, &theirs);
	cfg.cover = s->dtmf.cover;
	cfg.cover.listen |= s->dtmf.trigger[0] != 0;
	cfg.gate = gate_of_side(c, s) | gate_of_flow(c, call_side_index(c, s), s->peer);
	snprintf(cfg.cname, sizeof(cfg.cname), "%016llx",
		(unsigned long long)hash_siphash(name, &l->audio.ssrc, sizeof(l->audio.ssrc)));
	cfg.ts = (uint32_t)hash_siphash(times, &l->audio.ssrc, sizeof(l->audio.ssrc));
	err = r->audio->ops->set(r->audio->arg, l->audio.handle, c->worker, &l->port, l->mux, &cfg);
	return err == -EINVAL ? -ENOPROTOOPT : err;
}

/* --- Text for operators ----------------------------------------------------------------------- */

/* Its name without clock and channels. */
static struct str short_name(const struct codec_list *l)
{
	const struct codec_item *c = codec_list_first(l);
	struct str name = c ? c->name : STR_NONE;

	return str_cut(&name, '/');
}

bool leg_audio_pair_text(const struct call *c, const struct side *s, uint32_t media, char *text)
{
	const struct leg *l = side_leg_get(s, media), *peer = leg_peer(c, s, media);
	const char *law = law_pair_text(c, s, media);
	struct codec_list ours, theirs;

	if (!l || !peer || !l->audio.has || !peer->audio.has) {
		snprintf(text, CALL_PAIR_TEXT, "%s", law ? law : "");
		return law;
	}
	codec_list_read(&ours, l->audio.agreed);
	codec_list_read(&theirs, peer->audio.agreed);
	if (codec_list_find(&theirs, short_name(&ours)))
		return false; /* the same codec: only resized, silenced or mixed */
	snprintf(text, CALL_PAIR_TEXT, STR_FMT " to " STR_FMT, STR_ARG(short_name(&ours)),
		STR_ARG(short_name(&theirs)));
	return true;
}

struct str leg_audio_pair(
	const struct call *c, const struct side *s, uint32_t media, struct pool *p)
{
	char text[CALL_PAIR_TEXT];

	return leg_audio_pair_text(c, s, media, text) ? pool_strdup(p, str_from(text)) : STR_NONE;
}

struct str leg_audio_counts(const struct relay *r, const struct leg *l, struct pool *p)
{
	struct audio_stats n;

	if (!l->audio.has)
		return STR_NONE;
	r->audio->ops->stats(r->audio->arg, l->audio.handle, &n);
	return pool_printf(p,
		"%llu packets decoded, %llu passed; %llu lost, %llu concealed (%llu by redundancy), %llu late",
		(unsigned long long)n.decoded, (unsigned long long)n.passed,
		(unsigned long long)n.lost, (unsigned long long)n.concealed,
		(unsigned long long)n.recovered, (unsigned long long)n.late);
}
