/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Forwards the audio of a terminal to the other session: as decoded samples, or as unchanged
 * payloads. Also handles gaps, comfort noise and telephone events. Packets may be malformed. */
#include "audio/hear.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "audio/cpu.h"
#include "audio/dtmf.h"

#define SECOND     1000000000ull
#define CONCEAL_MS 120u /* longest gap to conceal; a longer one is a pause */
#define PAUSE_S    10u  /* longest pause; a larger step of timestamps begins a new timeline */
#define NOISE_MS   20u
#define AHEAD_NS   (2 * SECOND) /* audio that a network may hold back and deliver at once */
#define LEAST_NS   1000000u     /* each packet counts as at least this much audio */
#define DIGIT_NS   40000000u    /* a digit counts as so long: the shortest that Q.24 accepts */
#define RATE_SLACK 64u /* samples that a resampler may hold back and give with the next ones */
#define COUNTED_NS \
	(SECOND / 16 * 15) /* a second of audio counts as this: a terminal's clock may be fast */

struct said {
	struct rtp_hdr h;
	const uint8_t *payload;
	uint32_t len;
	uint32_t at;   /* index in cfg.type */
	uint32_t lost; /* missing packets before it */
	uint64_t now_ns;
};

static uint32_t scale(uint64_t n, uint32_t to, uint32_t from)
{
	return (uint32_t)(n * to / from);
}

/* --- No faster than real time ----------------------------------------------------------------- */

/* Whether the terminal has sent audio faster than real time. Otherwise a flood of packets would
 * take the thread and the worker's ring from other calls. */
static bool is_early(struct audio_session *s, uint64_t now_ns)
{
	struct audio_rx *r = &s->rx;

	r->until_ns = r->until_ns > now_ns ? r->until_ns : now_ns;
	if (r->until_ns - now_ns > AHEAD_NS) {
		s->stats.early++;
		return true;
	}
	r->until_ns += LEAST_NS;
	return false;
}

static void count_time(struct audio_session *s, uint32_t units, uint32_t clock)
{
	s->rx.until_ns += min_u32(units, clock) * COUNTED_NS / clock;
}

/* --- Position in the other session's timeline ------------------------------------------------- */

/* Timestamp units between the last packet and this one; negative: they overlap. If a new timeline
 * begins, the gap is the time that passed. */
static int64_t gap_before(struct audio_session *s, const struct said *d, uint32_t clock)
{
	struct audio_rx *r = &s->rx;
	int32_t gap = (int32_t)(d->h.ts - r->expected);
	int32_t most = (int32_t)(PAUSE_S * clock);
	uint64_t quiet_ns;

	if (r->placed && r->clock == clock && gap < most && gap > -most)
		return gap;
	r->lost = 0;
	if (!r->last_ns || d->now_ns <= r->last_ns)
		return 0;
	quiet_ns = d->now_ns - r->last_ns;
	return quiet_ns < SECOND / 10 ? 0 : (int64_t)(quiet_ns / 1000 * clock / 1000000);
}

/* Stores that a packet of so many units was processed. */
static void placed(struct audio_session *s, const struct said *d, uint32_t units, uint32_t clock)
{
	struct audio_rx *r = &s->rx;

	r->placed = true;
	r->clock = clock;
	r->expected = d->h.ts + units;
	r->step = units;
	r->last_ns = d->now_ns;
	r->lost = 0;
}

/* --- Payloads forwarded without PCM ----------------------------------------------------------- */

static bool is_named(const struct codec_entry *e, const char *name)
{
	return strcasecmp(e->about.name, name) == 0;
}

/* Whether the other terminal can decode payloads of this type. */
static bool is_same_codec(
	const struct audio_session *s, const struct audio_type *t, const struct audio_type *to)
{
	const struct codec_entry *e = &s->env->codecs->entry[t->entry];
	const struct codec_about *a = &s->env->codecs->entry[to->entry].about;

	/* A codec may have an entry for each rate of its PCM. Payloads do not depend on that. */
	if (t->entry != to->entry && !is_named(e, a->name))
		return false;
	/* Each Opus packet describes itself (RFC 7587 7). */
	if (is_named(e, "opus"))
		return true;
	if (t->clock != to->clock || e->about.channels != a->channels)
		return false;
	return (e->codec && !e->codec->params_size) ||
		(t->fmtp_len == to->fmtp_len && memcmp(t->fmtp, to->fmtp, t->fmtp_len) == 0);
}

/* Whether payloads of this type can be forwarded without PCM: nothing listens to it or changes
 * it. */
static bool may_pass(const struct audio_session *s, const struct audio_session *to,
	const struct audio_type *t, uint32_t units)
{
	uint32_t ptime = to->cfg.ptime;

	return !(s->cfg.gate & AUDIO_GATE_QUIET) && !audio_dtmf_makes_events(s, to) &&
		!audio_cover_on(s) && !s->cfg.cover.listen &&
		(!ptime || !units || units == scale(ptime, t->clock, 1000));
}

/* Converts the payload by the codec's function for the other terminal's codec, such as G.711 to
 * L16. Functions with a state are left out: packets that are decoded to PCM would be missing in
 * it. Returns the length of the result, or -errno if there is no such function, if the payload is
 * invalid, or if the result is too long. */
static int convert(const struct audio_session *s, const struct audio_session *to,
	const struct said *d, uint8_t *out, uint32_t cap)
{
	const struct audio_type *t = &s->cfg.type[d->at], *other = &to->cfg.codec;
	const struct xcipher_codec *c = s->env->codecs->entry[t->entry].codec;
	const struct codec_about *a = &s->env->codecs->entry[other->entry].about;

	for (uint32_t i = 0; c && i < c->direct_n; i++) {
		const struct xcipher_codec_direct *f = &c->direct[i];

		if (!f->state_size && f->to_clock == t->clock && f->to_clock == other->clock &&
			f->to_channels == a->channels && strcasecmp(f->to, a->name) == 0)
			return f->convert(NULL, d->payload, d->len, out, cap);
	}
	return -ENOTSUP;
}

/* The packets that are missing before this one, of the length of the last. The terminal gets the
 * same gap, because only its decoder can conceal it. */
static uint32_t missing(const struct audio_session *s, int64_t gap)
{
	uint32_t fit = gap > 0 && s->rx.step ? (uint32_t)gap / s->rx.step : 0;

	return min_u32(s->rx.lost, fit);
}

static void pass(struct audio_session *s, struct audio_session *to, const struct said *d)
{
	const struct audio_type *t = &s->cfg.type[d->at];
	int64_t gap = gap_before(s, d, t->clock);
	/* It follows the last packet without a pause. */
	bool next = s->rx.placed && !d->h.marker && gap > -(int64_t)s->rx.step &&
		gap < (int64_t)t->clock / 8;
	uint32_t since = next ? s->rx.step + (uint32_t)gap : s->rx.step, units;
	struct audio_tx_packet out = {
		.type = to->cfg.codec.type, .payload = d->payload, .len = d->len};

	audio_tx_flush(&to->tx);
	out.skip = next ? missing(s, gap) : 0;
	units = out.skip ? s->rx.step : since;
	if (!units)
		units = scale(s->env->codecs->entry[t->entry].about.ptime, t->clock, 1000);
	to->tx.ts += (uint32_t)gap;
	out.marker = d->h.marker || to->tx.marker;
	out.ts = to->tx.ts;
	audio_tx_payload(&to->tx, &out);
	to->tx.marker = false;
	to->tx.ts += units;
	s->stats.passed++;
	count_time(s, since ? since : units, t->clock);
	placed(s, d, units, t->clock);
}

/* --- PCM -------------------------------------------------------------------------------------- */

/* Gives n samples to the other session, at its rate. A long payload of a low rate may be more than
 * AUDIO_PCM at a higher one. */
static void give_at_rate(struct audio_session *s, struct audio_session *to, uint32_t rate,
	const int16_t *pcm, uint32_t n)
{
	uint32_t most = (uint32_t)((uint64_t)(AUDIO_PCM - RATE_SLACK) * rate / to->tx.rate);

	if (rate == to->tx.rate) {
		audio_player_hear(to, pcm, n);
		return;
	}
	if (audio_rate_set(&s->rx.rate, s->env->codecs, rate, to->tx.rate))
		return;
	for (uint32_t at = 0; at < n; at += most) {
		int got = audio_rate_run(
			&s->rx.rate, pcm + at, min_u32(n - at, most), s->env->other, AUDIO_PCM);

		if (got > 0)
			audio_player_hear(to, s->env->other, (uint32_t)got);
	}
}

/* Gives n decoded samples to the other session. */
static void give_pcm(struct audio_session *s, struct audio_session *to,
	const struct codec_about *from, uint32_t n)
{
	int16_t *pcm = s->env->pcm;

	count_time(s, n, from->rate);
	if (from->channels == 2)
		for (uint32_t i = 0; i < n; i++)
			pcm[i] = (int16_t)((pcm[2 * i] + pcm[2 * i + 1]) / 2);
	if (audio_cover_on(s))
		audio_cover_run(s, from->rate, pcm, n);
	else if (s->cfg.cover.listen && !audio_dtmf_makes_events(s, to))
		audio_cover_listen(s, from->rate, pcm, n);
	else
		s->rx.cover.active = false;
	if (s->cfg.gate & AUDIO_GATE_QUIET)
		memset(pcm, 0, n * sizeof(*pcm));
	give_at_rate(s, to, from->rate, pcm, n);
}

/* Returns the samples of a decoder's result, 0 for an error. */
static uint32_t decoded(struct audio_session *s, int n)
{
	s->broke |= n == -EPIPE;
	return n > 0 && n <= (int)AUDIO_PCM ? (uint32_t)n : 0;
}

static void fill(struct audio_session *s, struct audio_session *to, struct codec_stream *c,
	const struct codec_about *a, uint32_t samples)
{
	uint32_t n = samples - samples % a->frame_samples;

	n = n ? decoded(s, codec_stream_conceal(c, XCIPHER_CODEC_LOST, n, s->env->pcm, AUDIO_PCM))
	      : 0;
	if (n)
		give_pcm(s, to, a, n);
}

/* Replaces lost packets: the last one by redundancy in d if it has any, the others by the codec's
 * concealment. */
static void conceal(struct audio_session *s, struct audio_session *to, const struct said *d,
	struct codec_stream *c, const struct codec_about *a, uint32_t samples)
{
	uint32_t last =
		s->rx.lost > 1 ? scale(s->rx.step, a->rate, s->cfg.type[d->at].clock) : samples;
	uint32_t n = 0;

	s->stats.concealed += s->rx.lost;
	last = last < samples ? last : samples;
	if (!(a->can & CODEC_RECOVERS)) {
		fill(s, to, c, a, samples);
		return;
	}
	fill(s, to, c, a, samples - last);
	n = decoded(s, codec_stream_recover(c, d->payload, d->len, s->env->pcm, AUDIO_PCM));
	s->stats.recovered += n > 0;
	if (n)
		give_pcm(s, to, a, n);
	else
		fill(s, to, c, a, last);
}

static void before(struct audio_session *s, struct audio_session *to, const struct said *d,
	struct codec_stream *c, int64_t gap)
{
	const struct audio_type *t = &s->cfg.type[d->at];
	const struct codec_about *a = &s->env->codecs->entry[t->entry].about;
	uint32_t samples;

	if (gap <= 0)
		return;
	if (s->rx.lost && gap <= (int64_t)scale(CONCEAL_MS, t->clock, 1000)) {
		conceal(s, to, d, c, a, scale((uint64_t)gap, a->rate, t->clock));
		return;
	}
	samples = scale((uint64_t)gap, to->tx.rate, t->clock);
	audio_tx_gap(&to->tx, samples);
}

static void decode(struct audio_session *s, struct audio_session *to, const struct said *d)
{
	const struct audio_type *t = &s->cfg.type[d->at];
	const struct codec_about *a = &s->env->codecs->entry[t->entry].about;
	struct codec_stream *c = s->rx.decoder[d->at];
	uint64_t from;
	uint32_t n;
	int got;

	if (!c || !to->tx.encoder)
		return;
	/* While something plays, the clock advances the timestamps. */
	if (!audio_player_on(to))
		before(s, to, d, c, gap_before(s, d, t->clock));
	from = audio_cpu_begin(s->env);
	got = codec_stream_decode(c, d->payload, d->len, s->env->pcm, AUDIO_PCM);
	s->stats.cpu_ns += audio_cpu_end(s->env, from);
	n = decoded(s, got);
	if (got < 0) {
		s->stats.broken++;
		s->rx.lost++;
		return;
	}
	s->stats.decoded++;
	if (a->can & CODEC_REQUESTS && s->cfg.codec.entry == t->entry && s->tx.encoder)
		audio_tx_mode(&s->tx, codec_stream_requested(c));
	if (n && a->channels == 1 && audio_dtmf_makes_events(s, to) && !audio_cover_on(s))
		audio_dtmf_listen(s, to, s->env->pcm, n, a->rate, d->now_ns);
	if (n)
		give_pcm(s, to, a, n);
	placed(s, d, scale(n, t->clock, a->rate), t->clock);
}

/* Audio of the terminal is not forwarded now. Its next packet follows without a gap. */
static void forget_place(struct audio_session *s, uint64_t now_ns)
{
	s->rx.placed = false;
	s->rx.last_ns = now_ns;
	s->rx.lost = 0;
}

static void hear_codec(struct audio_session *s, struct audio_session *to, const struct said *d)
{
	const struct audio_type *t = &s->cfg.type[d->at];
	uint8_t converted[AUDIO_PACKET_MAX - RTP_FIXED_LEN];
	struct said other = *d;
	int len;

	s->rx.cn = false;
	if (!to || to->cfg.codec.type == AUDIO_NO_TYPE ||
		s->cfg.gate & (AUDIO_GATE_MEDIA | AUDIO_GATE_DROP))
		return;
	audio_tx_at(&to->tx, audio_real(s, d->now_ns));
	/* The terminal sends audio during an event, which the other one gets as a tone. */
	if (s->rx.event.as_tone && s->rx.placed && s->rx.clock == t->clock &&
		(int32_t)(d->h.ts - s->rx.expected) < 0)
		return;
	s->rx.event.as_tone = false;
	if (audio_player_replaces(to)) {
		forget_place(s, d->now_ns);
	} else if (audio_player_on(to) || !may_pass(s, to, t, s->rx.step)) {
		decode(s, to, d);
	} else if (is_same_codec(s, t, &to->cfg.codec)) {
		pass(s, to, d);
	} else if ((len = convert(s, to, d, converted, sizeof(converted))) > 0) {
		other.payload = converted;
		other.len = (uint32_t)len;
		pass(s, to, &other);
	} else {
		decode(s, to, d);
	}
}

/* --- Comfort noise ---------------------------------------------------------------------------- */

static void hear_noise(struct audio_session *s, struct audio_session *to, const struct said *d)
{
	const struct audio_type *t = &s->cfg.type[d->at];
	struct audio_tx_packet out = {.payload = d->payload, .len = d->len};
	int64_t gap;

	if (!to || to->cfg.codec.type == AUDIO_NO_TYPE ||
		s->cfg.gate & (AUDIO_GATE_MEDIA | AUDIO_GATE_QUIET | AUDIO_GATE_DROP))
		return;
	if (audio_player_on(to)) {
		s->rx.cn = false;
		forget_place(s, d->now_ns);
		return;
	}
	audio_tx_at(&to->tx, audio_real(s, d->now_ns));
	if (to->cfg.cn.type == AUDIO_NO_TYPE || to->cfg.cn.clock != to->cfg.codec.clock) {
		if (noise_take(&s->rx.noise, d->payload, d->len))
			return;
		if (!s->rx.cn)
			s->rx.noise_ns = d->now_ns;
		s->rx.cn = to->tx.encoder;
		audio_hear_noise(s, to, d->now_ns);
		return;
	}
	audio_tx_flush(&to->tx);
	gap = gap_before(s, d, t->clock);
	if (gap > 0)
		to->tx.ts += scale((uint64_t)gap, to->cfg.codec.clock, t->clock);
	out.type = to->cfg.cn.type;
	out.ts = to->tx.ts;
	audio_tx_payload(&to->tx, &out);
	to->tx.marker = true;
	s->rx.cn = false;
	placed(s, d, 0, t->clock);
}

/* Generates at most one packet time per call. After a delay of a second it skips the rest. */
void audio_hear_noise(struct audio_session *s, struct audio_session *to, uint64_t now_ns)
{
	uint32_t n;

	if (!s->rx.cn || now_ns < s->rx.noise_ns)
		return;
	if (!to || !to->tx.encoder || audio_player_on(to)) {
		s->rx.cn = false;
		return;
	}
	n = to->tx.rate * NOISE_MS / 1000;
	noise_make(&s->rx.noise, s->env->pcm, n);
	audio_tx_at(&to->tx, audio_real(s, now_ns));
	audio_tx_pcm(&to->tx, s->env->pcm, n);
	if (s->rx.placed) {
		s->rx.expected += scale(n, s->rx.clock, to->tx.rate);
		s->rx.last_ns = now_ns;
	}
	s->rx.noise_ns += NOISE_MS * 1000000u;
	if (s->rx.noise_ns + SECOND < now_ns)
		s->rx.noise_ns = now_ns;
}

/* --- Telephone events ------------------------------------------------------------------------- */

/* The timestamp to send a new event with. It differs from that of the event before. */
static uint32_t event_ts(struct audio_session *s, struct audio_session *to, const struct said *d)
{
	uint32_t clock = s->cfg.type[d->at].clock;
	int64_t gap = gap_before(s, d, clock);
	uint32_t ts = to->tx.ts + audio_tx_units(&to->tx, to->tx.n);

	if (gap > 0)
		ts += scale((uint64_t)gap, to->cfg.codec.clock, clock);
	if (s->rx.event.known && (int32_t)(ts - s->rx.event.to_ts) <= 0)
		ts = s->rx.event.to_ts + 1;
	return ts;
}

/* Whether digits come faster than anybody dials. Their reports would fill the control thread's
 * queue, and digits of other calls would be lost, which may have to begin a block. */
static bool is_hasty(struct audio_session *s, uint64_t now_ns)
{
	uint64_t *until = &s->rx.event.heard_ns;

	*until = *until > now_ns ? *until : now_ns;
	if (*until - now_ns > AHEAD_NS)
		return true;
	*until += DIGIT_NS;
	return false;
}

/* A new event's first packet. */
static void begin_event(struct audio_session *s, struct audio_session *to, const struct said *d)
{
	if (s->rx.event.known && s->rx.event.ts == d->h.ts)
		return;
	if (d->payload[0] < 16 && !is_hasty(s, d->now_ns))
		audio_dtmf_heard(s, d->payload[0]);
	audio_cover_begin(s);
	s->stats.events++;
	if (to)
		s->rx.event.to_ts = event_ts(s, to, d);
	s->rx.event.ts = d->h.ts;
	s->rx.event.hidden = s->cfg.gate & AUDIO_GATE_DTMF;
	s->rx.event.known = true;
	s->rx.event.done = 0;
}

static void as_tone(struct audio_session *s, struct audio_session *to, const struct said *d)
{
	const uint32_t clock = s->cfg.type[d->at].clock;
	const struct audio_dtmf_event e = {.event = d->payload[0],
		.volume = d->payload[1] & 0x3f,
		.done = s->rx.event.done,
		.lasts = be16(d->payload + 2),
		.clock = clock};
	int64_t gap = e.done || audio_player_on(to) ? 0 : gap_before(s, d, clock);
	uint32_t step = s->rx.step;

	if (gap > 0)
		audio_tx_gap(&to->tx, scale((uint64_t)gap, to->tx.rate, clock));
	if (!audio_dtmf_tone(s, to, &e))
		return;
	s->rx.event.as_tone = true;
	s->rx.event.done = e.lasts;
	placed(s, d, e.lasts, clock);
	s->rx.step = step;
}

static bool replaced_by_audio(const struct audio_session *s, const struct audio_session *to)
{
	return audio_cover_event(s) && !audio_cover_by_digits(s) && to->tx.encoder;
}

static void hear_event(struct audio_session *s, struct audio_session *to, const struct said *d)
{
	uint32_t clock = s->cfg.type[d->at].clock, lasts;
	uint8_t payload[4];

	if (d->len < sizeof(payload)) {
		s->stats.broken++;
		return;
	}
	if (to)
		audio_tx_at(&to->tx, audio_real(s, d->now_ns));
	begin_event(s, to, d);
	/* Events are dropped at once, but not replaced in the middle: that would be two digits. */
	if (s->cfg.cover.mode == AUDIO_COVER_DROP)
		s->rx.event.hidden |= s->cfg.gate & AUDIO_GATE_DTMF;
	if (!to || s->cfg.gate & AUDIO_GATE_DROP || (s->rx.event.hidden && !audio_cover_event(s)))
		return;
	if (audio_dtmf_makes_tones(to) || replaced_by_audio(s, to))
		as_tone(s, to, d);
	if (to->cfg.events.type == AUDIO_NO_TYPE || replaced_by_audio(s, to))
		return;
	memcpy(payload, d->payload, sizeof(payload));
	if (audio_cover_event(s))
		payload[0] = s->rx.cover.digit;
	lasts = scale(be16(payload + 2), to->cfg.events.clock, clock);
	put_be16(payload + 2, (uint16_t)min_u32(lasts, UINT16_MAX));
	audio_tx_payload(&to->tx,
		&(struct audio_tx_packet){.type = to->cfg.events.type,
			.marker = d->h.marker,
			.ts = s->rx.event.to_ts,
			.payload = payload,
			.len = sizeof(payload)});
}

/* --- Every packet ----------------------------------------------------------------------------- */

void audio_hear_start(struct audio_session *s)
{
	audio_cover_reset(s);
	s->rx.placed = s->rx.cn = s->rx.event.known = s->rx.event.as_tone = false;
	s->rx.lost = 0;
	s->rx.step = 0;
}

/* Parses the header, and finds the payload without padding. False: malformed. */
static bool parse(struct said *d, const struct audio_packet *p)
{
	int hdr = rtp_parse(&d->h, p->bytes, p->len);
	uint32_t padding;

	if (hdr < 0)
		return false;
	d->payload = p->bytes + hdr;
	d->len = p->len - (uint32_t)hdr;
	padding = p->bytes[0] & RTP_P_BIT && d->len ? d->payload[d->len - 1] : 0;
	if (padding > d->len)
		return false;
	d->len -= padding;
	return true;
}

void audio_hear(struct audio_session *s, struct audio_session *to, const struct audio_packet *p,
	uint32_t lost, uint64_t now_ns)
{
	struct said d = {.now_ns = now_ns};

	s->stats.lost += lost;
	s->rx.lost += lost;
	if (!parse(&d, p)) {
		s->stats.broken++;
		return;
	}
	while (d.at < s->cfg.types && s->cfg.type[d.at].type != d.h.pt)
		d.at++;
	if (d.at == s->cfg.types) {
		s->stats.unknown++;
		return;
	}
	d.lost = lost;
	/* Packets with nothing but a header keep a path open. */
	if (!d.len || is_early(s, now_ns))
		return;
	switch (s->cfg.type[d.at].kind) {
	case AUDIO_CODEC:
		hear_codec(s, to, &d);
		break;
	case AUDIO_EVENTS:
		hear_event(s, to, &d);
		break;
	case AUDIO_CN:
		hear_noise(s, to, &d);
	}
}
