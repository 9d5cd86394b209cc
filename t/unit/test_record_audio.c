/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings as WAV: every party's tone in its channel, packets in any order, a full disk, a
 * crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <signal.h>

#include "record/record_audio.h"
#include "record/record_share.h"
#include "record/record_wav.h"

#define MS 1000000ull
enum { PACKET_MS = 20, SAMPLES_MAX = 48000 * 20 };

/* --- Terminals -------------------------------------------------------------------------------- */

struct talker {
	struct codec_stream *coder;
	const struct codec_entry *codec;
	uint8_t type;
	uint16_t port, seq;
	uint32_t ts, ssrc;
	double phase, hertz;
};

struct rig {
	char dir[64], path[96];
	struct codec_registry *codecs;
	struct record_audio_env *env;
	struct record_audio *a;
	struct record_media *media;
	uint64_t now_ns;
	struct talker talker[3];
};

static void rig_init(struct rig *r, uint32_t rate)
{
	*r = (struct rig){.now_ns = 77 * MS};
	strcpy(r->dir, "/tmp/xcipher-wav-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->path, sizeof(r->path), "%s/tape", r->dir);
	assert_int_equal(codec_registry_create(&r->codecs), 0);
	r->env = calloc(1, sizeof(*r->env));
	r->media = calloc(1, sizeof(*r->media) + RECORD_STREAMS * sizeof(r->media->at[0]));
	assert_true(r->env && r->media);
	r->env->codecs = r->codecs;
	r->env->rate = rate;
	r->env->share = RECORD_SHARE_MOST;
}

static void rig_fini(struct rig *r)
{
	char path[160], end[RECORD_NAME_MAX + 1];

	for (uint32_t i = 0; i < 3; i++)
		codec_stream_close(r->talker[i].coder);
	for (uint32_t i = 0; i < RECORD_NAME_ENDS; i++) {
		record_name_end(end, i);
		snprintf(path, sizeof(path), "%s%s", r->path, end);
		unlink(path);
	}
	assert_int_equal(rmdir(r->dir), 0);
	codec_registry_destroy(r->codecs);
	free(r->media);
	free(r->env);
}

/* A party's codec; parties have ports of their own, or that of another one. */
static void joins(struct rig *r, uint32_t n, const char *name, uint32_t clock, uint8_t type)
{
	struct codec_stream_cfg cfg = {.can = CODEC_ENCODES, .wish = {.size = sizeof(cfg.wish)}};
	struct talker *t = &r->talker[n];
	struct record_stream *s = &r->media->at[n];

	codec_stream_close(t->coder);
	t->codec = codec_registry_find(r->codecs, name, clock, 1);
	assert_non_null(t->codec);
	assert_int_equal(codec_stream_open(&t->coder, t->codec, &cfg), 0);
	t->type = type;
	t->port = (uint16_t)(30000 + 2 * n);
	t->ssrc = 1000 + n;
	t->hertz = n ? n > 1 ? 1500 : 1000 : 440;
	*s = (struct record_stream){.port = {.port = t->port}, .side = (uint8_t)n, .types = 1};
	s->type[0] = (struct audio_type){.type = type,
		.kind = AUDIO_CODEC,
		.entry = (uint16_t)(t->codec - r->codecs->entry),
		.clock = clock};
	r->media->n = r->media->n > n ? r->media->n : n + 1;
}

static void begins(struct rig *r)
{
	assert_int_equal(record_audio_open(&r->a, r->env, r->path, r->now_ns), 0);
	record_audio_media(r->a, r->media, r->now_ns);
}

struct packet {
	uint8_t bytes[1500];
	uint32_t len;
};

static struct packet says(struct talker *t)
{
	uint32_t n = t->codec->about.rate * PACKET_MS / 1000;
	int16_t pcm[48 * PACKET_MS];
	struct packet p;
	int got;

	for (uint32_t i = 0; i < n; i++, t->phase += 2 * M_PI * t->hertz / t->codec->about.rate)
		pcm[i] = (int16_t)lrint(8000 * sin(t->phase));
	p.bytes[0] = 0x80;
	p.bytes[1] = t->type;
	put_be16(p.bytes + 2, t->seq++);
	put_be32(p.bytes + 4, t->ts);
	put_be32(p.bytes + 8, t->ssrc);
	t->ts += t->codec->about.clock * PACKET_MS / 1000;
	got = codec_stream_encode(t->coder, pcm, n, p.bytes + 12, sizeof(p.bytes) - 12);
	assert_true(got > 0);
	p.len = 12 + (uint32_t)got;
	return p;
}

static void arrives(struct rig *r, uint32_t n, const struct packet *p)
{
	record_audio_packet(
		r->a, (struct local_port){.port = r->talker[n].port}, p->bytes, p->len, r->now_ns);
}

static void passes(struct rig *r, uint32_t ms)
{
	r->now_ns += ms * MS;
	assert_int_equal(record_audio_tick(r->a, r->now_ns), 0);
}

/* All of these parties talk. */
static void talk(struct rig *r, uint32_t parties, uint32_t ms)
{
	for (uint32_t t = 0; t < ms; t += PACKET_MS) {
		for (uint32_t n = 0; n < 3; n++) {
			struct packet p;

			if (!(parties & 1u << n))
				continue;
			p = says(&r->talker[n]);
			arrives(r, n, &p);
		}
		passes(r, PACKET_MS);
	}
}

static void ends(struct rig *r)
{
	assert_int_equal(record_audio_close(r->a, r->now_ns, false), 0);
	r->a = NULL;
}

/* --- Files ------------------------------------------------------------------------------------ */

struct heard {
	uint32_t channels, rate, frames;
	int16_t *pcm;
};

static uint32_t le(const uint8_t *p, uint32_t n)
{
	return n ? p[0] + 256 * le(p + 1, n - 1) : 0;
}

static struct heard reads(const struct rig *r, const char *end)
{
	static uint8_t bytes[RECORD_WAV_HEADER + 4 * SAMPLES_MAX];
	struct heard h;
	char path[160];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%s%s", r->path, end);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	len = read(fd, bytes, sizeof(bytes));
	close(fd);
	assert_true(
		len >= 80 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 72, "data", 4) == 0);
	assert_int_equal(le(bytes + 4, 4), len - 8);
	assert_int_equal(le(bytes + 76, 4), len - 80);
	h = (struct heard){.channels = le(bytes + 58, 2), .rate = le(bytes + 60, 4)};
	h.frames = (uint32_t)(len - 80) / 2 / h.channels;
	h.pcm = malloc((size_t)len);
	assert_non_null(h.pcm);
	for (uint32_t i = 0; i < h.frames * h.channels; i++)
		h.pcm[i] = (int16_t)le(bytes + 80 + 2 * i, 2);
	return h;
}

/* The tone's share of the energy of a channel, from ms on for some ms. */
static double share(
	const struct heard *h, uint32_t channel, double hertz, uint32_t from, uint32_t ms)
{
	uint32_t first = from * (h->rate / 1000), n = ms * (h->rate / 1000);
	double s = 0, c = 0, all = 0;

	assert_true(first + n <= h->frames);
	for (uint32_t i = first; i < first + n; i++) {
		double x = h->pcm[i * h->channels + channel], w = 2 * M_PI * hertz * i / h->rate;

		s += x * sin(w);
		c += x * cos(w);
		all += x * x;
	}
	return all > 1 ? 2 * (s * s + c * c) / n / all : 0;
}

static double loudness(const struct heard *h, uint32_t channel, uint32_t from, uint32_t ms)
{
	uint32_t first = from * (h->rate / 1000), n = ms * (h->rate / 1000);
	double all = 0;

	assert_true(first + n <= h->frames);
	for (uint32_t i = first; i < first + n; i++)
		all += (double)h->pcm[i * h->channels + channel] *
			h->pcm[i * h->channels + channel];
	return sqrt(all / n);
}

/* --- Tests ------------------------------------------------------------------------------------ */

static const struct {
	uint32_t rate;
	const char *codec[2];
	uint8_t type[2];
} pairs[] = {
	{8000, {"PCMU", "PCMA"}, {0, 8}},
	{8000, {"G722", "PCMU"}, {9, 0}},
	{16000, {"PCMA", "G722"}, {8, 9}},
	{48000, {"G722", "PCMA"}, {9, 8}},
};

static void each_party_has_its_channel_and_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct heard h;
		struct rig r;

		rig_init(&r, pairs[i].rate);
		r.env->mixed = r.env->single = r.env->by_channels = true;
		for (uint32_t n = 0; n < 2; n++)
			joins(&r, n, pairs[i].codec[n], 8000, pairs[i].type[n]);
		begins(&r);
		talk(&r, 3, 3000);
		ends(&r);
		h = reads(&r, "-mix.wav");
		assert_int_equal(h.rate, pairs[i].rate);
		assert_int_equal(h.frames, 3 * pairs[i].rate);
		assert_true(share(&h, 0, 440, 100, 2800) > 0.99);
		assert_true(share(&h, 1, 1000, 100, 2800) > 0.99);
		assert_true(fabs(loudness(&h, 0, 100, 2800) - 8000 / sqrt(2)) < 200);
		free(h.pcm);
		h = reads(&r, "-1.wav");
		assert_true(h.channels == 1 && share(&h, 0, 440, 100, 2800) > 0.99);
		free(h.pcm);
		h = reads(&r, "-2.wav");
		assert_true(h.channels == 1 && share(&h, 0, 1000, 100, 2800) > 0.99);
		free(h.pcm);
		rig_fini(&r);
	}
}

static void mixed_directly_both_are_in_one_channel(void **state)
{
	struct heard h;
	struct rig r;

	(void)state;
	rig_init(&r, 8000);
	r.env->mixed = true;
	joins(&r, 0, "PCMU", 8000, 0);
	joins(&r, 1, "PCMA", 8000, 8);
	begins(&r);
	talk(&r, 3, 2000);
	talk(&r, 2, 1000);
	ends(&r);
	h = reads(&r, "-mix.wav");
	assert_true(h.channels == 1 && h.frames == 3 * 8000);
	assert_true(fabs(share(&h, 0, 440, 100, 1800) - 0.5) < 0.01);
	assert_true(fabs(share(&h, 0, 1000, 100, 1800) - 0.5) < 0.01);
	assert_true(share(&h, 0, 1000, 2100, 800) > 0.99);
	free(h.pcm);
	rig_fini(&r);
}

/* Late, doubled and swapped packets; one in ten is lost; then a pause, and a new SSRC. */
static void a_bad_network(void **state)
{
	struct record_audio_counts n;
	struct packet held;
	struct heard h;
	struct rig r;

	(void)state;
	rig_init(&r, 8000);
	r.env->single = true;
	joins(&r, 0, "PCMU", 8000, 0);
	begins(&r);
	for (uint32_t i = 0; i < 200; i++) {
		struct packet p = says(&r.talker[0]);

		if (i % 10 == 3) {
			held = p;
		} else if (i % 10 == 5) {
			arrives(&r, 0, &p);
			arrives(&r, 0, &held); /* two packets late */
			arrives(&r, 0, &held);
		} else if (i % 10 != 8 || i > 100) {
			arrives(&r, 0, &p);
		}
		passes(&r, PACKET_MS);
	}
	record_audio_counts(r.a, &n);
	assert_int_equal(n.lost, 10);
	assert_int_equal(n.decoded, 190);
	passes(&r, 2000);
	r.talker[0].ssrc = 5;
	r.talker[0].seq = 9000;
	r.talker[0].ts = 0x7fffffff;
	talk(&r, 1, 1000);
	ends(&r);
	h = reads(&r, "-1.wav");
	assert_int_equal(h.frames, 7 * 8000);
	assert_true(share(&h, 0, 440, 2200, 1700) > 0.99);
	assert_true(loudness(&h, 0, 4100, 1800) < 20);
	assert_true(share(&h, 0, 440, 6100, 800) > 0.99);
	free(h.pcm);
	rig_fini(&r);
}

/* A re-INVITE changes the codec; a third party joins with its own file, as long as the others. */
static void codecs_and_parties_change(void **state)
{
	struct heard h;
	struct rig r;

	(void)state;
	rig_init(&r, 8000);
	r.env->mixed = r.env->single = r.env->by_channels = true;
	joins(&r, 0, "PCMU", 8000, 0);
	joins(&r, 1, "PCMA", 8000, 8);
	begins(&r);
	talk(&r, 3, 2000);
	joins(&r, 0, "G722", 8000, 9);
	joins(&r, 2, "PCMU", 8000, 0);
	record_audio_media(r.a, r.media, r.now_ns);
	talk(&r, 7, 2000);
	ends(&r);
	h = reads(&r, "-1.wav");
	assert_int_equal(h.frames, 4 * 8000);
	assert_true(share(&h, 0, 440, 100, 1800) > 0.99 && share(&h, 0, 440, 2100, 1800) > 0.99);
	free(h.pcm);
	h = reads(&r, "-3.wav");
	assert_int_equal(h.frames, 4 * 8000);
	assert_true(loudness(&h, 0, 0, 1900) < 1 && share(&h, 0, 1500, 2100, 1800) > 0.99);
	free(h.pcm);
	h = reads(&r, "-mix.wav");
	assert_true(fabs(share(&h, 1, 1000, 2100, 1800) - 0.5) < 0.01);
	assert_true(fabs(share(&h, 1, 1500, 2100, 1800) - 0.5) < 0.01);
	free(h.pcm);
	rig_fini(&r);
}

/* Telephone events, RTCP, unknown types and other ports leave no sound. */
static void only_agreed_audio_is_heard(void **state)
{
	struct heard h;
	struct packet p;
	struct rig r;

	(void)state;
	rig_init(&r, 8000);
	r.env->mixed = true;
	joins(&r, 0, "PCMU", 8000, 0);
	r.media->at[0].types = 2;
	r.media->at[0].type[1] =
		(struct audio_type){.type = 101, .kind = AUDIO_EVENTS, .clock = 8000};
	begins(&r);
	for (uint32_t i = 0; i < 100; i++) {
		p = says(&r.talker[0]);
		p.bytes[1] = i % 2 ? 101 : 34;
		arrives(&r, 0, &p);
		p.bytes[1] = 0;
		r.talker[0].port++;
		arrives(&r, 0, &p);
		r.talker[0].port--;
		p.len = i % 13;
		arrives(&r, 0, &p);
		passes(&r, PACKET_MS);
	}
	ends(&r);
	h = reads(&r, "-mix.wav");
	assert_int_equal(h.frames, 2 * 8000);
	assert_true(loudness(&h, 0, 0, 2000) < 1);
	free(h.pcm);
	rig_fini(&r);
}

/* A full disk: the missing part is silence, and later audio keeps its position. */
static void a_full_disk_is_silence(void **state)
{
	struct rlimit old, few;
	struct heard h;
	struct rig r;
	int err = 0;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	rig_init(&r, 8000);
	r.env->single = true;
	joins(&r, 0, "PCMU", 8000, 0);
	begins(&r);
	talk(&r, 1, 3000);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	few = old;
	few.rlim_cur = 80 + 5 * 8000; /* the next block does not fit */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	for (uint32_t i = 0; i < 25; i++) {
		struct packet p = says(&r.talker[0]);

		arrives(&r, 0, &p);
		r.now_ns += PACKET_MS * MS;
		err = err ? err : record_audio_tick(r.a, r.now_ns);
	}
	assert_int_equal(err, -EFBIG);
	h = reads(&r, "-1.wav"); /* complete up to there */
	assert_int_equal(h.frames, 5 * 4000);
	free(h.pcm);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	talk(&r, 1, 1500);
	ends(&r);
	h = reads(&r, "-1.wav");
	assert_int_equal(h.frames, 10 * 4000);
	assert_true(loudness(&h, 0, 2500, 500) < 1);
	assert_true(share(&h, 0, 440, 3000, 2000) > 0.99);
	free(h.pcm);
	rig_fini(&r);
}

/* A running recording is a file that plays at any moment. The start corrects a file whose header
 * was lost, but no other program's files. */
static void a_crash_leaves_a_file_that_plays(void **state)
{
	char path[160], other[160];
	uint8_t wrong[4] = {1, 0, 0, 0};
	struct heard h;
	struct rig r;
	int fd;

	(void)state;
	rig_init(&r, 8000);
	r.env->mixed = r.env->by_channels = true;
	joins(&r, 0, "PCMU", 8000, 0);
	begins(&r);
	for (uint32_t i = 0; i < 30; i++) {
		talk(&r, 1, 100);
		h = reads(&r, "-mix.wav");
		free(h.pcm);
	}
	ends(&r);
	snprintf(path, sizeof(path), "%s-mix.wav", r.path);
	snprintf(other, sizeof(other), "%s/song.wav", r.dir);
	assert_int_equal(link(path, other), 0);
	assert_int_equal(record_wav_repair(r.dir), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, wrong, 4, 76), 4);
	assert_int_equal(pwrite(fd, wrong, 3, 80 + 4 * 24000), 3); /* a part of a sample */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(record_wav_repair(r.dir), 0); /* song.wav has not our name */
	assert_int_equal(link(other, path), 0);
	assert_int_equal(record_wav_repair(r.dir), 1);
	h = reads(&r, "-mix.wav");
	assert_int_equal(h.frames, 24000);
	assert_true(share(&h, 0, 440, 100, 2800) > 0.99);
	free(h.pcm);
	assert_int_equal(pwrite(fd, "LIST", 4, 72), 4); /* not as we write it */
	assert_int_equal(pwrite(fd, wrong, 4, 76), 4);
	assert_int_equal(record_wav_repair(r.dir), 0);
	close(fd);
	unlink(other);
	rig_fini(&r);
}

/* A file of an earlier version, whose header is shorter. */
static void an_old_file_is_corrected(void **state)
{
	static const uint8_t old[44 + 101] =
		"RIFF\1\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data";
	uint8_t now[sizeof(old)];
	char path[160];
	struct rig r;
	int fd;

	(void)state;
	rig_init(&r, 8000);
	snprintf(path, sizeof(path), "%s-2.wav", r.path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, old, sizeof(old)), sizeof(old));
	assert_int_equal(record_wav_repair(r.dir), 1);
	assert_int_equal(pread(fd, now, sizeof(now), 0), 144);
	assert_int_equal(le(now + 4, 4), 136);
	assert_int_equal(le(now + 40, 4), 100);
	assert_memory_equal(now + 8, old + 8, 32);
	assert_int_equal(record_wav_repair(r.dir), 0);
	close(fd);
	rig_fini(&r);
}

/* The lengths of a file (RIFF and, at "data", of its samples), and the chunk after these. */
static void put_tag(int fd, uint32_t len, uint32_t samples, uint32_t tag)
{
	uint8_t b[4], chunk[8 + 10] = "LIST\x0a\0\0\0INFOIXYZ";
	uint32_t riff = len + samples + samples % 2 + 8 + tag - 8;

	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(riff >> 8 * i);
	assert_int_equal(pwrite(fd, b, 4, 4), 4);
	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(samples >> 8 * i);
	assert_int_equal(pwrite(fd, b, 4, len - 4), 4);
	assert_int_equal(ftruncate(fd, len + samples), 0);
	assert_int_equal(pwrite(fd, chunk, 8 + tag, len + samples + samples % 2), 8 + tag);
}

/* An operator's program wrote a title behind the samples: it does not become sound at the next
 * start. A length that does not fit, or rubbish there, is corrected all the same. */
static void a_tag_behind_the_samples_stays(void **state)
{
	static const uint8_t old[44] =
		"RIFF\1\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data";
	uint8_t before[80 + 160 + 18], after[80 + 160 + 18];
	struct record_wav *w;
	int16_t pcm[80] = {0};
	char path[160];
	struct rig r;
	int fd;

	(void)state;
	rig_init(&r, 8000);
	for (uint32_t len = 80; len; len = len == 80 ? 44 : 0) {
		ssize_t size = len + 160 + 18;

		snprintf(path, sizeof(path), "%s-%c.wav", r.path, len == 80 ? '1' : '2');
		assert_int_equal(record_wav_open(&w, path, 8000, 1), 0);
		assert_int_equal(record_wav_write(w, pcm, 80), 0);
		record_wav_close(w, false);
		fd = open(path, O_RDWR);
		if (len == 44)
			assert_int_equal(pwrite(fd, old, 44, 0), 44);
		put_tag(fd, len, 160, 10);
		assert_int_equal(pread(fd, before, sizeof(before), 0), size);
		assert_int_equal(record_wav_repair(r.dir), 0);
		assert_int_equal(pread(fd, after, sizeof(after), 0), size);
		assert_memory_equal(before, after, (size_t)size);
		assert_int_equal(pwrite(fd, "\x0b", 1, len + 160 + 4), 1);
		assert_int_equal(record_wav_repair(r.dir), 1);
		put_tag(fd, len, 160, 10);
		assert_int_equal(pwrite(fd, "\x01", 1, len + 160), 1);
		assert_int_equal(record_wav_repair(r.dir), 1);
		put_tag(fd, len, 160, 10);
		assert_int_equal(pwrite(fd, "\x01", 1, 4), 1); /* RIFF */
		assert_int_equal(record_wav_repair(r.dir), 1);
		assert_int_equal(record_wav_repair(r.dir), 0);
		close(fd);
	}
	rig_fini(&r);
}

/* Files with our names that are no plain files, too short, or with a header that overflows. */
static void what_is_not_ours_stays(void **state)
{
	uint8_t h[80], now[80];
	struct record_wav *w;
	char path[160], other[160];
	struct stat st;
	struct rig r;
	int fd;

	(void)state;
	rig_init(&r, 8000);
	snprintf(path, sizeof(path), "%s-1.wav", r.path);
	snprintf(other, sizeof(other), "%s/other", r.dir);
	assert_int_equal(record_wav_open(&w, path, 8000, 1), 0);
	record_wav_close(w, false);
	assert_int_equal(rename(path, other), 0);
	fd = open(other, O_RDWR);
	assert_int_equal(pread(fd, h, 80, 0), 80);
	assert_int_equal(ftruncate(fd, 100), 0); /* would be corrected */
	assert_int_equal(symlink("other", path), 0);
	assert_int_equal(record_wav_repair(r.dir), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(record_wav_repair(r.dir), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(record_wav_repair(r.dir), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(other, path), 0);
	for (int i = 0; i < 4; i++) { /* channels: none, three, 257; samples of eight bits */
		static const uint8_t at[4] = {58, 58, 59, 70}, to[4] = {0, 3, 1, 8};

		assert_int_equal(pwrite(fd, h, 80, 0), 80);
		assert_int_equal(pwrite(fd, &to[i], 1, at[i]), 1);
		assert_int_equal(record_wav_repair(r.dir), 0);
		assert_int_equal(pread(fd, now, 80, 0), 80);
		assert_int_equal(now[at[i]], to[i]);
	}
	assert_int_equal(pwrite(fd, h, 80, 0), 80);
	for (off_t len = 0; len < 80; len++) {
		assert_int_equal(ftruncate(fd, len), 0);
		assert_int_equal(record_wav_repair(r.dir), 0);
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 79);
	close(fd);
	rig_fini(&r);
}

/* Another daemon starts with the same folder: what this one writes stays as it is, also between two
 * writes, when the header is not yet right. */
static void a_file_in_use_is_not_corrected(void **state)
{
	uint8_t wrong[4] = {1, 0, 0, 0}, now[4];
	struct record_wav *w;
	int16_t pcm[80] = {0};
	char path[160];
	struct rig r;
	int fd;

	(void)state;
	rig_init(&r, 8000);
	snprintf(path, sizeof(path), "%s-mix.wav", r.path);
	assert_int_equal(record_wav_open(&w, path, 8000, 1), 0);
	assert_int_equal(record_wav_write(w, pcm, 80), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, wrong, 4, 76), 4);
	assert_int_equal(record_wav_repair(r.dir), 0);
	assert_int_equal(pread(fd, now, 4, 76), 4);
	assert_memory_equal(now, wrong, 4);
	record_wav_close(w, false);
	assert_int_equal(record_wav_repair(r.dir), 1);
	assert_int_equal(pread(fd, now, 4, 76), 4);
	assert_int_equal(le(now, 4), 160);
	close(fd);
	rig_fini(&r);
}

/* A recording longer than a RIFF file can be: it continues, as RF64. The start corrects that. */
static void above_4_gib_it_is_rf64(void **state)
{
	const uint64_t before = (UINT32_MAX - 80ull) / 4, after = 5ull << 30;
	uint8_t h[80], wrong[8] = {0};
	int16_t pcm[8] = {1, -1, 2, -2, 3, -3, 4, -4};
	struct record_wav *w;
	struct stat st;
	char path[160];
	struct rig r;
	int fd;

	(void)state;
	rig_init(&r, 8000);
	snprintf(path, sizeof(path), "%s-mix.wav", r.path);
	assert_int_equal(record_wav_open(&w, path, 48000, 2), 0);
	record_wav_silence(w, before);
	assert_int_equal(record_wav_write(w, pcm, 1), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, h, 80, 0), 80);
	assert_memory_equal(h, "RIFF", 4);
	assert_int_equal(le(h + 4, 4), 72 + 4 * (before + 1));
	record_wav_silence(w, after / 4 - before - 2);
	assert_int_equal(record_wav_write(w, pcm, 4), 0);
	record_wav_close(w, false);
	assert_int_equal(pread(fd, h, 80, 0), 80);
	assert_memory_equal(h, "RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0", 20);
	assert_int_equal(le(h + 20, 4) + ((uint64_t)le(h + 24, 4) << 32), 72 + after + 12);
	assert_int_equal(le(h + 28, 4) + ((uint64_t)le(h + 32, 4) << 32), after + 12);
	assert_int_equal(le(h + 36, 4) + ((uint64_t)le(h + 40, 4) << 32), after / 4 + 3);
	assert_memory_equal(h + 44, "\0\0\0\0fmt ", 8);
	assert_int_equal(le(h + 76, 4), UINT32_MAX);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 80 + after + 12);
	assert_int_equal(record_wav_repair(r.dir), 0);
	assert_int_equal(pwrite(fd, wrong, 8, 28), 8);
	assert_int_equal(record_wav_repair(r.dir), 1);
	assert_int_equal(pread(fd, wrong, 8, 28), 8);
	assert_memory_equal(wrong, h + 28, 8);
	close(fd);
	rig_fini(&r);
}

static void discarded_and_existing_files(void **state)
{
	struct record_wav *w;
	char path[160];
	struct rig r;

	(void)state;
	rig_init(&r, 8000);
	r.env->mixed = r.env->single = true;
	joins(&r, 0, "PCMU", 8000, 0);
	begins(&r);
	talk(&r, 1, 2000);
	assert_int_equal(record_audio_close(r.a, r.now_ns, true), 0);
	snprintf(path, sizeof(path), "%s-mix.wav", r.path);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(record_wav_open(&w, path, 8000, 1), 0);
	record_wav_close(w, false);
	assert_int_equal(record_audio_open(&r.a, r.env, r.path, r.now_ns), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
	rig_fini(&r);
}

/* A silent party of a long call begins to speak: the hours before cost no disk, and no time in
 * which packets of other recordings are lost. */
static void silence_before_a_late_party_is_a_hole(void **state)
{
	struct stat st;
	int16_t pcm[800];
	char path[160];
	bool loud = false;
	struct rig r;
	int fd;

	(void)state;
	rig_init(&r, 8000);
	r.env->single = true;
	joins(&r, 0, "PCMU", 8000, 0);
	begins(&r);
	passes(&r, 3600 * 1000);
	talk(&r, 1, 2000);
	ends(&r);
	snprintf(path, sizeof(path), "%s-1.wav", r.path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 80 + 3602 * 16000);
	assert_true(st.st_blocks * 512 < 1 << 20);
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, pcm, sizeof(pcm), st.st_size - (off_t)sizeof(pcm)), sizeof(pcm));
	close(fd);
	for (uint32_t i = 0; i < ARRAY_LEN(pcm); i++)
		loud |= pcm[i] > 1000;
	assert_true(loud);
	rig_fini(&r);
}

/* A terminal that sends in turn under eight payload types, which the SDP has: three decoders at
 * once, whichever were first. When it keeps to one, that is heard. */
static void few_codecs_of_a_port_at_once(void **state)
{
	struct record_audio_counts n;
	struct heard h;
	struct rig r;

	(void)state;
	rig_init(&r, 8000);
	r.env->single = true;
	joins(&r, 0, "PCMU", 8000, 0);
	r.media->at[0].types = AUDIO_TYPES;
	for (uint8_t i = 1; i < AUDIO_TYPES; i++) {
		r.media->at[0].type[i] = r.media->at[0].type[0];
		r.media->at[0].type[i].type = (uint8_t)(96 + i);
	}
	begins(&r);
	for (uint32_t i = 0; i < 160; i++) {
		r.talker[0].type = i % AUDIO_TYPES ? (uint8_t)(96 + i % AUDIO_TYPES) : 0;
		talk(&r, 1, PACKET_MS);
	}
	record_audio_counts(r.a, &n);
	assert_int_equal(n.decoded, 160 / AUDIO_TYPES * 3);
	assert_int_equal(n.decoded + n.skipped, 160);
	r.talker[0].type = 103;
	talk(&r, 1, 3000);
	ends(&r);
	h = reads(&r, "-1.wav");
	assert_true(share(&h, 0, 440, 5000, 1100) > 0.99);
	free(h.pcm);
	rig_fini(&r);
}

/* Twenty times as many packets as real time needs, and a new SSRC in each: decoded is twice as much
 * as real time. Less if the thread falls behind, but never less than a call needs. */
static void a_flood_is_decoded_in_part(void **state)
{
	static const struct {
		uint32_t share, least, most;
	} T[] = {{RECORD_SHARE_MOST, 500, 610}, {RECORD_SHARE_LEAST, 500, 610}, {1, 250, 310}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct record_audio_counts n;
		struct heard h;
		struct rig r;

		rig_init(&r, 8000);
		r.env->single = true;
		r.env->share = T[i].share;
		joins(&r, 0, "PCMU", 8000, 0);
		begins(&r);
		for (uint32_t t = 0; t < 5000; t += PACKET_MS) {
			for (uint32_t k = 0; k < 20; k++) {
				struct packet p = says(&r.talker[0]);

				arrives(&r, 0, &p);
				r.talker[0].ssrc++;
			}
			passes(&r, PACKET_MS);
		}
		record_audio_counts(r.a, &n);
		assert_in_range(n.decoded, T[i].least, T[i].most);
		assert_int_equal(n.decoded + n.skipped, 5000);
		talk(&r, 1, 2000); /* all of it is heard again, after the bucket has drained */
		ends(&r);
		h = reads(&r, "-1.wav");
		assert_int_equal(h.frames, 7 * 8000);
		assert_true(T[i].share == 1 || share(&h, 0, 440, 6500, 400) > 0.99);
		free(h.pcm);
		rig_fini(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_party_has_its_channel_and_file),
		cmocka_unit_test(mixed_directly_both_are_in_one_channel),
		cmocka_unit_test(a_bad_network),
		cmocka_unit_test(codecs_and_parties_change),
		cmocka_unit_test(only_agreed_audio_is_heard),
		cmocka_unit_test(a_full_disk_is_silence),
		cmocka_unit_test(a_crash_leaves_a_file_that_plays),
		cmocka_unit_test(silence_before_a_late_party_is_a_hole),
		cmocka_unit_test(discarded_and_existing_files),
		cmocka_unit_test(an_old_file_is_corrected),
		cmocka_unit_test(a_tag_behind_the_samples_stays),
		cmocka_unit_test(what_is_not_ours_stays),
		cmocka_unit_test(a_file_in_use_is_not_corrected),
		cmocka_unit_test(above_4_gib_it_is_rf64),
		cmocka_unit_test(few_codecs_of_a_port_at_once),
		cmocka_unit_test(a_flood_is_decoded_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
