/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decodes and mixes the audio of a recording (record/record_audio.h). A line is the audio of one
 * port: it puts packets in order. A voice is one codec of a line: its decoder, and a window of its
 * samples at the rate of the codec. A block is half a second, written at once. Packets may be
 * malformed. */
#include "record/record_audio.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "audio/reorder.h"
#include "audio/resample.h"
#include "base/clock.h"
#include "proto/rtp.h"
#include "record/record_share.h"
#include "record/record_sound.h"

enum {
	BLOCK_MS = 500,
	WAIT_MS = 500,   /* between the end of a block and its writing */
	MARGIN_MS = 100, /* of older samples, for the resampler */
	WINDOW_MS = MARGIN_MS + BLOCK_MS + WAIT_MS + 500,
	ASTRAY_MS = 300,  /* a timestamp further from its arrival is ignored */
	CONCEAL_MS = 120, /* a longer gap is silence */
	VOICES = 24,
	PORT_VOICES = 3, /* a change of codec, and one more */
	PACKET_MS = 2,   /* a packet costs at least this */
	OPEN_MS = 50,    /* so does the start of a decoder */
	TEXT = RECORD_PATH_MAX + RECORD_NAME_MAX + 1,
};

struct line {
	struct local_port port;
	bool heard, placed;
	uint32_t ssrc, ts, clock; /* the timestamp ts, in units of clock, */
	int64_t at;               /* is so many units after the beginning */
	struct reorder order;
	struct record_bucket decoded;
};

struct voice {
	struct audio_type type;
	struct local_port port;
	uint8_t side;
	uint64_t ended_ns; /* 0: the SDP has it */
	struct codec_stream *decoder;
	const struct codec_about *about;
	int16_t *pcm;    /* the window */
	int64_t from;    /* position of pcm[0], in samples after the beginning */
	uint32_t cap;    /* samples of the window */
	int64_t written; /* end of the last samples in it */
};

struct record_audio {
	struct record_audio_env *env;
	char path[RECORD_PATH_MAX];
	uint64_t begun_ns;
	uint64_t blocks; /* written */
	struct record_media *media;
	struct line *line[RECORD_STREAMS]; /* by place in media */
	struct voice *voice[VOICES];
	struct record_sound *sound[RECORD_NAME_SOUNDS];
	uint32_t opened; /* bit per file that was opened or refused */
	uint32_t sides;  /* bit per side that was heard */
	struct record_bucket decoded;
	struct record_audio_counts counts;
	int err; /* of this tick */
};

/* --- Files ------------------------------------------------------------------------------------ */

static uint32_t block_frames(const struct record_audio *a)
{
	return a->env->rate * BLOCK_MS / 1000;
}

/* Opens a file when it has something to store. A party that joins later begins with silence. */
static struct record_sound *file(struct record_audio *a, uint32_t which)
{
	const struct record_audio_env *e = a->env;
	struct record_sound_cfg cfg = {.opus = e->opus,
		.rate = e->rate,
		.channels = which == RECORD_NAME_MIX && e->by_channels ? 2 : 1};
	char path[TEXT], end[RECORD_NAME_MAX + 1];
	int err;

	if (a->opened & 1u << which)
		return a->sound[which];
	a->opened |= 1u << which;
	record_name_sound(end, which, e->opus != NULL);
	snprintf(path, sizeof(path), "%s%s", a->path, end);
	err = record_sound_open(&a->sound[which], path, &cfg);
	if (err) {
		a->err = err;
		return NULL;
	}
	a->counts.files++;
	record_sound_silence(a->sound[which], a->blocks * block_frames(a));
	return a->sound[which];
}

static void store(struct record_audio *a, struct record_sound *s, uint32_t n)
{
	int err = record_sound_write(s, a->env->out, n);

	a->err = err ? err : a->err;
}

static int16_t clipped(int32_t v)
{
	return (int16_t)(v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v);
}

/* --- Voices ----------------------------------------------------------------------------------- */

static void voice_free(struct voice *v)
{
	if (!v)
		return;
	codec_stream_close(v->decoder);
	if (v->pcm)
		explicit_bzero(v->pcm, v->cap * sizeof(*v->pcm));
	free(v->pcm);
	free(v);
}

static int64_t block_start(uint64_t block, uint32_t rate)
{
	return (int64_t)(block * BLOCK_MS * rate / 1000);
}

static struct voice *voice_open(
	struct record_audio *a, const struct record_stream *s, const struct audio_type *t)
{
	const struct codec_registry *r = a->env->codecs;
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES,
		.fmtp = t->fmtp,
		.fmtp_len = t->fmtp_len,
		.wish = {.size = sizeof(cfg.wish)}};
	struct voice *v = t->entry < r->entries && t->clock && t->fmtp_len <= AUDIO_FMTP
		? calloc(1, sizeof(*v))
		: NULL;

	if (!v)
		return NULL;
	*v = (struct voice){.type = *t, .port = s->port, .side = s->side};
	v->about = &r->entry[t->entry].about;
	v->from = block_start(a->blocks, v->about->rate) - v->about->rate * MARGIN_MS / 1000;
	v->cap = v->about->rate / 1000 * WINDOW_MS;
	v->pcm = calloc(v->cap, sizeof(*v->pcm));
	if (!v->pcm || codec_stream_open(&v->decoder, &r->entry[t->entry], &cfg)) {
		voice_free(v);
		return NULL;
	}
	return v;
}

static bool same_port(struct local_port a, struct local_port b)
{
	return a.port == b.port && a.addr == b.addr;
}

static bool is_voice_of(
	const struct voice *v, const struct record_stream *s, const struct audio_type *t)
{
	return same_port(v->port, s->port) && v->side == s->side && v->type.type == t->type &&
		audio_type_same(&v->type, t);
}

/* Whether its window has samples that are not written yet. */
static bool sounds(const struct voice *v)
{
	return v->written > v->from;
}

/* The place for a new voice: an empty one, or that of a voice that has nothing left to write.
 * NULL: none is free, so audio of further codecs is not recorded. */
static struct voice **place_of(struct record_audio *a, struct local_port port)
{
	struct voice **empty = NULL, **own = NULL, **other = NULL;
	uint32_t n = 0, most = 0;

	/* In a BUNDLE group several m-lines share a port. */
	for (uint32_t i = 0; i < a->media->n; i++)
		most += same_port(a->media->at[i].port, port) ? PORT_VOICES : 0;
	for (uint32_t i = 0; i < VOICES; i++) {
		struct voice *v = a->voice[i];

		if (!v) {
			empty = &a->voice[i];
			continue;
		}
		n += same_port(v->port, port);
		if (!sounds(v) && same_port(v->port, port))
			own = &a->voice[i];
		else if (!sounds(v))
			other = &a->voice[i];
	}
	if (n >= most)
		return own;
	return empty ? empty : own ? own : other;
}

/* The voice of a payload type; opened when its first packet is there. NULL: its codec refuses, or
 * no place is left. */
static struct voice *voice_of(struct record_audio *a, struct record_bucket *decoded,
	const struct record_stream *s, const struct audio_type *t)
{
	struct voice **place;

	for (uint32_t i = 0; i < VOICES; i++)
		if (a->voice[i] && !a->voice[i]->ended_ns && is_voice_of(a->voice[i], s, t))
			return a->voice[i];
	place = place_of(a, s->port);
	if (!place)
		return NULL;
	voice_free(*place);
	*place = voice_open(a, s, t);
	record_bucket_use(decoded, OPEN_MS * 1000000ull);
	record_bucket_use(&a->decoded, OPEN_MS * 1000000ull);
	return *place;
}

/* Puts samples into the window; those outside are dropped. */
static void put(struct voice *v, int64_t at, const int16_t *pcm, uint32_t n)
{
	int64_t first = at - v->from, skip = first < 0 ? -first : 0;
	int64_t room = v->cap - (first < 0 ? 0 : first), count = (int64_t)n - skip;

	if (count > room)
		count = room;
	if (count <= 0)
		return;
	memcpy(v->pcm + first + skip, pcm + skip, (size_t)count * sizeof(*pcm));
	if (at + skip + count > v->written)
		v->written = at + skip + count;
}

/* Moves the window to the next block. */
static void move(const struct record_audio *a, struct voice *v)
{
	int64_t from =
		block_start(a->blocks, v->about->rate) - (int64_t)v->about->rate * MARGIN_MS / 1000;
	size_t by = (size_t)(from - v->from);

	if (from <= v->from)
		return;
	by = by < v->cap ? by : v->cap;
	memmove(v->pcm, v->pcm + by, (v->cap - by) * sizeof(*v->pcm));
	memset(v->pcm + v->cap - by, 0, by * sizeof(*v->pcm));
	v->from = from;
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* Position of the packet in units of its clock, or of its arrival if its timestamp is far off. */
static int64_t position(struct line *l, const struct rtp_hdr *h, uint32_t clock, int64_t arrived)
{
	int64_t at = l->placed && l->clock == clock ? l->at + (int32_t)(h->ts - l->ts) : arrived;
	int64_t most = (int64_t)clock * ASTRAY_MS / 1000;

	if (at - arrived > most || arrived - at > most)
		at = arrived;
	l->placed = true;
	l->clock = clock;
	l->ts = h->ts;
	l->at = at;
	return at;
}

/* Downmixes to one channel. */
static void to_mono(int16_t *pcm, uint32_t n, uint32_t channels)
{
	for (uint32_t i = 0; channels == 2 && i < n; i++)
		pcm[i] = (int16_t)((pcm[2 * i] + pcm[2 * i + 1]) / 2);
}

/* Returns the number of samples that replace the lost ones. */
static uint32_t conceal(struct record_audio *a, struct voice *v, int64_t at)
{
	int64_t gap = at - v->written;
	uint32_t n;
	int got;

	if (!v->written || gap <= 0 || gap > v->about->rate * CONCEAL_MS / 1000)
		return 0;
	n = (uint32_t)gap - (uint32_t)gap % v->about->frame_samples;
	got = n ? codec_stream_conceal(v->decoder, XCIPHER_CODEC_LOST, n, a->env->pcm, AUDIO_PCM)
		: 0;
	if (got <= 0 || got > (int)AUDIO_PCM)
		return 0;
	to_mono(a->env->pcm, (uint32_t)got, v->about->channels);
	put(v, at - gap, a->env->pcm, (uint32_t)got);
	return (uint32_t)got;
}

/* Whether the audio of this packet is decoded: a terminal may send any number of packets, and each
 * may hold much audio. */
static bool may_decode(struct record_audio *a, struct line *l, uint64_t t_ns)
{
	return record_bucket_may(&l->decoded, RECORD_SHARE_PORT, t_ns) &&
		record_bucket_may(&a->decoded, a->env->share, t_ns);
}

static void charge(struct record_audio *a, struct line *l, const struct voice *v, uint32_t samples)
{
	uint64_t ns = samples * NS_PER_SEC / v->about->rate;

	if (ns < PACKET_MS * 1000000ull)
		ns = PACKET_MS * 1000000ull;
	record_bucket_use(&l->decoded, ns);
	record_bucket_use(&a->decoded, ns);
}

/* The payload without padding. False: malformed, or nothing is left. */
static bool payload(const struct audio_packet *p, struct rtp_hdr *h, const uint8_t **at, size_t *n)
{
	int hdr = rtp_parse(h, p->bytes, p->len);
	uint32_t padding;

	if (hdr < 0 || (uint32_t)hdr >= p->len)
		return false;
	*at = p->bytes + hdr;
	*n = p->len - (uint32_t)hdr;
	padding = p->bytes[0] & RTP_P_BIT ? (*at)[*n - 1] : 0;
	if (padding >= *n)
		return false;
	*n -= padding;
	return true;
}

static void hear(
	struct record_audio *a, uint32_t place, const struct audio_packet *p, uint32_t lost)
{
	const struct record_stream *s = &a->media->at[place];
	const struct audio_type *t = NULL;
	struct line *l = a->line[place];
	uint32_t filled = 0;
	int64_t at, arrived;
	const uint8_t *bytes;
	struct rtp_hdr h;
	struct voice *v;
	size_t n;
	int got;

	a->counts.lost += lost;
	if (!payload(p, &h, &bytes, &n))
		return;
	for (uint32_t i = 0; i < s->types && !t; i++)
		if (s->type[i].type == h.pt && s->type[i].kind == AUDIO_CODEC)
			t = &s->type[i];
	if (!t)
		return;
	v = may_decode(a, l, p->t_ns) ? voice_of(a, &l->decoded, s, t) : NULL;
	if (!v) {
		a->counts.skipped++;
		return;
	}
	arrived = p->t_ns > a->begun_ns
		? (int64_t)((p->t_ns - a->begun_ns) / 1000 * t->clock / 1000000)
		: 0;
	at = position(l, &h, t->clock, arrived) * v->about->rate / t->clock;
	if (lost)
		filled = conceal(a, v, at);
	got = codec_stream_decode(v->decoder, bytes, n, a->env->pcm, AUDIO_PCM);
	charge(a, l, v, filled + (got > 0 ? (uint32_t)got : 0));
	if (got < 0 || got > (int)AUDIO_PCM) {
		a->counts.broken++;
		return;
	}
	a->counts.decoded++;
	a->sides |= 1u << s->side;
	to_mono(a->env->pcm, (uint32_t)got, v->about->channels);
	put(v, at, a->env->pcm, (uint32_t)got);
}

static void drain(struct record_audio *a, uint32_t place, uint64_t now_ns)
{
	const struct audio_packet *p;
	uint32_t lost;

	while ((p = reorder_next(&a->line[place]->order, &lost, now_ns)))
		hear(a, place, p, lost);
}

static bool has_type(const struct record_stream *s, uint8_t type)
{
	for (uint32_t i = 0; i < s->types; i++)
		if (s->type[i].type == type)
			return true;
	return false;
}

/* The line of a port and payload type; in a BUNDLE group several m-lines share a port. */
static struct line *line_of(
	struct record_audio *a, struct local_port to, uint8_t type, uint32_t *place)
{
	for (uint32_t i = 0; a->media && i < a->media->n; i++) {
		if (!same_port(a->media->at[i].port, to) || !has_type(&a->media->at[i], type))
			continue;
		if (!a->line[i])
			a->line[i] = calloc(1, sizeof(*a->line[i]));
		if (a->line[i])
			a->line[i]->port = to;
		*place = i;
		return a->line[i];
	}
	return NULL;
}

void record_audio_packet(struct record_audio *a, struct local_port to, const uint8_t *bytes,
	uint32_t len, uint64_t t_ns)
{
	struct audio_packet p = {.t_ns = t_ns, .len = (uint16_t)len};
	struct rtp_hdr h;
	struct line *l;
	uint32_t place;

	if (len > AUDIO_PACKET_MAX || rtp_parse(&h, bytes, len) < 0)
		return;
	l = line_of(a, to, h.pt, &place);
	if (!l)
		return;
	if (!l->heard || l->ssrc != h.ssrc) {
		l->heard = true;
		l->ssrc = h.ssrc;
		l->placed = l->order.started = false;
	}
	memcpy(p.bytes, bytes, len);
	switch (reorder_take(&l->order, h.seq, &p, t_ns)) {
	case REORDER_AGAIN:
		l->placed = false;
		hear(a, place, &p, 0);
		break;
	case REORDER_NOW:
		hear(a, place, &p, 0);
		break;
	case REORDER_HELD:
	case REORDER_LATE:
	case REORDER_DOUBLE:
	case REORDER_ASTRAY:
		break;
	}
	drain(a, place, t_ns);
}

/* --- What arrives where ----------------------------------------------------------------------- */

static bool stays(const struct voice *v, const struct record_media *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		for (uint32_t k = 0; k < m->at[i].types; k++)
			if (m->at[i].type[k].kind == AUDIO_CODEC &&
				is_voice_of(v, &m->at[i], &m->at[i].type[k]))
				return true;
	return false;
}

static bool is_sound(const struct record_media *m)
{
	bool sound = m->n <= RECORD_STREAMS;

	for (uint32_t i = 0; sound && i < m->n; i++)
		sound = m->at[i].types <= AUDIO_TYPES && m->at[i].side < RECORD_NAME_SIDES;
	return sound;
}

void record_audio_media(struct record_audio *a, const struct record_media *m, uint64_t now_ns)
{
	size_t size = sizeof(*m) + m->n * sizeof(m->at[0]);
	struct record_media *next = is_sound(m) ? malloc(size) : NULL;
	struct line *old[RECORD_STREAMS];

	if (!next)
		return;
	memcpy(next, m, size);
	for (uint32_t i = 0; i < RECORD_STREAMS; i++)
		if (a->line[i])
			drain(a, i, UINT64_MAX);
	free(a->media);
	a->media = next;
	memcpy(old, a->line, sizeof(old));
	memset(a->line, 0, sizeof(a->line));
	for (uint32_t i = 0; i < next->n; i++)
		for (uint32_t k = 0; k < RECORD_STREAMS && !a->line[i]; k++)
			if (old[k] && same_port(old[k]->port, next->at[i].port)) {
				a->line[i] = old[k];
				old[k] = NULL;
			}
	for (uint32_t k = 0; k < RECORD_STREAMS; k++)
		free(old[k]);
	for (uint32_t i = 0; i < VOICES; i++)
		if (a->voice[i] && !a->voice[i]->ended_ns && !stays(a->voice[i], next))
			a->voice[i]->ended_ns = now_ns ? now_ns : 1;
}

/* --- Blocks ----------------------------------------------------------------------------------- */

/* Adds the voices of a side for this block. */
static void add_side(struct record_audio *a, uint32_t side, uint32_t n)
{
	memset(a->env->side, 0, n * sizeof(a->env->side[0]));
	for (uint32_t i = 0; i < VOICES; i++) {
		const struct voice *v = a->voice[i];
		struct resample r;

		if (!v || v->side != side || !sounds(v))
			continue;
		r = (struct resample){v->pcm, v->cap, v->about->rate, a->env->rate};
		resample_run(&r,
			(uint64_t)(block_start(a->blocks, v->about->rate) - v->from) * a->env->rate,
			a->env->out, n);
		for (uint32_t k = 0; k < n; k++)
			a->env->side[k] += a->env->out[k];
	}
}

static void write_single(struct record_audio *a, uint32_t side, uint32_t n)
{
	struct record_sound *w = file(a, RECORD_NAME_SIDE + side);

	for (uint32_t k = 0; w && k < n; k++)
		a->env->out[k] = clipped(a->env->side[k]);
	if (w)
		store(a, w, n);
}

static void write_mixed(struct record_audio *a, uint32_t n)
{
	struct record_sound *w = file(a, RECORD_NAME_MIX);
	struct record_audio_env *e = a->env;

	for (uint32_t k = 0; w && k < n; k++) {
		if (e->by_channels) {
			e->out[2 * k] = clipped(e->left[k]);
			e->out[2 * k + 1] = clipped(e->right[k]);
		} else {
			e->out[k] = clipped(e->left[k] + e->right[k]);
		}
	}
	if (w)
		store(a, w, n);
}

/* n: samples, fewer than a block only at the end. */
static void write_block(struct record_audio *a, uint32_t n)
{
	struct record_audio_env *e = a->env;

	memset(e->left, 0, n * sizeof(e->left[0]));
	memset(e->right, 0, n * sizeof(e->right[0]));
	for (uint32_t side = 0; side < RECORD_NAME_SIDES; side++) {
		int32_t *to = side ? e->right : e->left;

		if (!(a->sides & 1u << side))
			continue;
		add_side(a, side, n);
		for (uint32_t k = 0; k < n; k++)
			to[k] += e->side[k];
		if (e->single)
			write_single(a, side, n);
	}
	if (e->mixed)
		write_mixed(a, n);
	a->blocks++;
	for (uint32_t i = 0; i < VOICES; i++)
		if (a->voice[i])
			move(a, a->voice[i]);
}

static void free_ended(struct record_audio *a, uint64_t now_ns)
{
	for (uint32_t i = 0; i < VOICES; i++) {
		struct voice *v = a->voice[i];

		if (!v || !v->ended_ns || now_ns < v->ended_ns + WINDOW_MS * 1000000ull)
			continue;
		voice_free(v);
		a->voice[i] = NULL;
	}
}

static uint64_t block_end_ns(const struct record_audio *a)
{
	return a->begun_ns + (a->blocks + 1) * BLOCK_MS * 1000000ull;
}

int record_audio_tick(struct record_audio *a, uint64_t now_ns)
{
	a->err = 0;
	for (uint32_t i = 0; i < RECORD_STREAMS; i++)
		if (a->line[i])
			drain(a, i, now_ns);
	while (now_ns >= block_end_ns(a) + WAIT_MS * 1000000ull)
		write_block(a, block_frames(a));
	free_ended(a, now_ns);
	return a->err;
}

/* --- Life ------------------------------------------------------------------------------------- */

int record_audio_open(
	struct record_audio **out, struct record_audio_env *env, const char *path, uint64_t now_ns)
{
	struct record_audio *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->env = env;
	a->begun_ns = now_ns;
	snprintf(a->path, sizeof(a->path), "%s", path);
	if (env->mixed)
		(void)file(a, RECORD_NAME_MIX);
	err = a->err;
	if (err)
		(void)record_audio_close(a, now_ns, true);
	else
		*out = a;
	return err;
}

void record_audio_counts(const struct record_audio *a, struct record_audio_counts *out)
{
	*out = a->counts;
}

/* The last blocks, of which the end may be shorter. */
static void write_rest(struct record_audio *a, uint64_t now_ns)
{
	for (uint32_t i = 0; i < RECORD_STREAMS; i++)
		if (a->line[i])
			drain(a, i, UINT64_MAX);
	while (now_ns >= block_end_ns(a))
		write_block(a, block_frames(a));
	now_ns -= block_end_ns(a) - BLOCK_MS * 1000000ull;
	write_block(a, (uint32_t)(now_ns / 1000 * a->env->rate / 1000000));
}

int record_audio_close(struct record_audio *a, uint64_t now_ns, bool discard)
{
	int err;

	if (!a)
		return 0;
	a->err = 0;
	if (!discard && now_ns >= a->begun_ns)
		write_rest(a, now_ns);
	err = a->err;
	for (uint32_t i = 0; i < RECORD_NAME_SOUNDS; i++) {
		int last = record_sound_close(a->sound[i], discard);

		err = err ? err : last;
	}
	for (uint32_t i = 0; i < VOICES; i++)
		voice_free(a->voice[i]);
	for (uint32_t i = 0; i < RECORD_STREAMS; i++)
		free(a->line[i]);
	free(a->media);
	free(a);
	return err;
}
