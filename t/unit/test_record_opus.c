/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings as Ogg Opus: read back page by page and packet by packet, and by xcipher-av. Tones in
 * their channels, silence, a full disk, a crash, an encoder that returns nonsense. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audio/clip.h"
#include "audio/decoder.h"
#include "base/bytes.h"
#include "codec/loader.h"
#include "codec/stream.h"
#include "codec_paths.h"
#include "record/record_ogg.h"
#include "record/record_opus.h"

enum { FULL = 48000, PRE_SKIP = 312, HEADER_PAGES = 2, BLOCK_MS = 500 };

struct rig {
	char dir[CODEC_PATH], path[CODEC_PATH + 32];
	struct codec_registry *codecs;
	struct record_opus *o;
	uint32_t rate, channels;
	uint64_t at; /* samples given */
};

/* Loads the plug-in once for all tests, because that tests it. NULL: it is not built. */
static int load_plugin(void **state)
{
	char plugins[CODEC_PATH], program[CODEC_PATH], folder[CODEC_PATH];
	struct codec_loader_cfg cfg = {
		.folder = folder, .ours = true, .isolation = CODEC_ISOLATE_NONE};
	struct codec_registry *r;

	*state = NULL;
	codec_path(plugins, "codecs/opus.so");
	if (access(plugins, R_OK))
		return 0;
	codec_folder(folder);
	codec_copy(plugins, folder, "opus.so");
	codec_home_defaults(&cfg.home);
	cfg.home.program = codec_path(program, "xcipher-codec-worker");
	if (codec_registry_create(&r) || codec_loader_run(r, &cfg) != 1)
		return -1;
	codec_folder_remove(folder);
	*state = r;
	return 0;
}

static int unload(void **state)
{
	if (*state)
		codec_registry_destroy(*state);
	return 0;
}

static void rig_init(struct rig *g, void **state, uint32_t rate, uint32_t channels)
{
	if (!*state)
		skip();
	*g = (struct rig){.rate = rate, .channels = channels, .codecs = *state};
	codec_folder(g->dir);
	snprintf(g->path, sizeof(g->path), "%s/tape-mix.opus", g->dir);
}

static void rig_fini(const struct rig *g)
{
	codec_folder_remove(g->dir);
}

static void begins(struct rig *g)
{
	const struct codec_entry *e = record_opus_codec(g->codecs, g->rate);

	assert_non_null(e);
	assert_int_equal(record_opus_open(&g->o, g->path, e, (uint16_t)g->channels), 0);
	g->at = 0;
}

/* Channel c has a tone of 440 or 1000 Hz. */
static int talks(struct rig *g, uint32_t samples)
{
	int16_t *pcm = malloc(2 * sizeof(*pcm) * samples);
	int err;

	assert_non_null(pcm);
	for (uint32_t i = 0; i < samples; i++, g->at++)
		for (uint32_t c = 0; c < g->channels; c++)
			pcm[i * g->channels + c] = (int16_t)lrint(
				8000 * sin(2 * M_PI * (c ? 1000 : 440) * (double)g->at / g->rate));
	err = record_opus_write(g->o, pcm, samples);
	free(pcm);
	return err;
}

static void talks_for(struct rig *g, uint32_t blocks)
{
	for (uint32_t i = 0; i < blocks; i++)
		assert_int_equal(talks(g, g->rate * BLOCK_MS / 1000), 0);
}

static void silent(struct rig *g, uint32_t ms)
{
	uint64_t n = (uint64_t)ms * g->rate / 1000;

	record_opus_silence(g->o, n);
	g->at += n;
}

static void ends(struct rig *g)
{
	assert_int_equal(record_opus_close(g->o, false), 0);
	g->o = NULL;
}

/* --- Reading ---------------------------------------------------------------------------------- */

struct file {
	uint8_t *bytes;
	size_t len;
};

static struct file load(const char *path)
{
	struct file f = {0};
	struct stat st;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	f.len = (size_t)st.st_size;
	f.bytes = malloc(f.len + 1);
	assert_non_null(f.bytes);
	assert_int_equal(read(fd, f.bytes, f.len), f.len);
	close(fd);
	return f;
}

static void store(const char *path, const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

struct heard {
	uint32_t channels, pages;
	bool ended;
	uint64_t n;      /* samples of a channel, at 48 kHz */
	int16_t *pcm[2]; /* of the caller */
};

struct reader {
	struct heard h;
	struct codec_stream *decoder[2];
	uint64_t decoded, room;
};

static void hears(struct reader *r, uint32_t c, const uint8_t *p, size_t len)
{
	int got;

	assert_true(r->decoded + FULL / 50 <= r->room);
	got = codec_stream_decode(r->decoder[c], p, len, r->h.pcm[c] + r->decoded, FULL / 50);
	assert_int_equal(got, FULL / 50);
}

/* A packet of all channels: the first of two states its length (RFC 6716 appendix B). */
static void packet(struct reader *r, const uint8_t *p, size_t len)
{
	uint8_t one[1500];
	size_t n, head = 2;

	if (r->h.channels == 2) {
		assert_true(len > 2);
		n = p[1];
		if (n >= 252)
			n += 4u * p[head++];
		assert_true(head + n < len);
		one[0] = p[0];
		memcpy(one + 1, p + head, n);
		hears(r, 0, one, 1 + n);
		p += head + n;
		len -= head + n;
	}
	hears(r, r->h.channels - 1, p, len);
	r->decoded += FULL / 50;
}

static void read_head(struct reader *r, const struct rig *g, const uint8_t *p, size_t len)
{
	assert_true(len >= 19 && memcmp(p, "OpusHead\1", 9) == 0);
	r->h.channels = p[9];
	assert_int_equal(p[9], g->channels);
	assert_int_equal(p[10] | p[11] << 8, PRE_SKIP);
	assert_int_equal(p[12] | p[13] << 8 | p[14] << 16, g->rate);
	assert_int_equal(p[18], g->channels - 1);
	assert_int_equal(len, g->channels == 2 ? 23 : 19);
	if (g->channels == 2)
		assert_memory_equal(p + 19, "\2\0\0\1", 4);
}

/* The packets of a page, which starts with its lacing. */
static void page(struct reader *r, const struct rig *g, const uint8_t *p)
{
	const uint8_t *lacing = p + RECORD_OGG_HEADER, *at = lacing + p[26];

	for (uint32_t i = 0, len = 0; i < p[26]; i++) {
		len += lacing[i];
		if (lacing[i] == 255)
			continue;
		if (r->h.pages == 0)
			read_head(r, g, at, len);
		else if (r->h.pages == 1)
			assert_memory_equal(at, RECORD_OPUS_TAGS, sizeof(RECORD_OPUS_TAGS) - 1);
		else
			packet(r, at, len);
		at += len;
		len = 0;
	}
}

/* Decodes all whole pages, and cuts what the last page and the head say. */
static struct heard decode(const struct rig *g, const struct file *f)
{
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES, .wish = {.size = sizeof(cfg.wish)}};
	const struct codec_entry *e = record_opus_codec(g->codecs, FULL);
	struct reader r = {.room = f->len * FULL / 50 / 2 + FULL};
	struct record_ogg_page o = {0};
	uint64_t granule = 0;
	size_t n;

	for (uint32_t c = 0; c < g->channels; c++) {
		assert_int_equal(codec_stream_open(&r.decoder[c], e, &cfg), 0);
		r.h.pcm[c] = malloc(r.room * sizeof(int16_t));
		assert_non_null(r.h.pcm[c]);
	}
	for (size_t at = 0; (n = record_ogg_read(&o, f->bytes + at, f->len - at)); at += n) {
		assert_int_equal(o.number, r.h.pages);
		assert_int_equal(!!(o.flags & RECORD_OGG_FIRST), at == 0);
		assert_false(r.h.ended);
		page(&r, g, f->bytes + at);
		assert_true(o.granule <= r.decoded);
		assert_true(o.flags & RECORD_OGG_LAST || o.granule == r.decoded);
		granule = o.granule;
		r.h.ended = o.flags & RECORD_OGG_LAST;
		r.h.pages++;
	}
	for (uint32_t c = 0; c < g->channels; c++) {
		codec_stream_close(r.decoder[c]);
		if (granule > PRE_SKIP)
			memmove(r.h.pcm[c], r.h.pcm[c] + PRE_SKIP,
				(granule - PRE_SKIP) * sizeof(int16_t));
	}
	r.h.n = granule > PRE_SKIP ? granule - PRE_SKIP : 0;
	return r.h;
}

static struct heard reads(const struct rig *g)
{
	struct file f = load(g->path);
	struct heard h = decode(g, &f);

	free(f.bytes);
	return h;
}

static void heard_free(struct heard *h)
{
	free(h->pcm[0]);
	free(h->pcm[1]);
}

/* The tone's share of the energy, and the effective value, of so many ms. */
static double share(const int16_t *pcm, double hertz, uint32_t rate, uint32_t from, uint32_t ms)
{
	uint32_t first = from * (rate / 100) / 10, n = ms * (rate / 100) / 10;
	double s = 0, c = 0, all = 0;

	for (uint32_t i = first; i < first + n; i++) {
		double x = pcm[i], w = 2 * M_PI * hertz * i / rate;

		s += x * sin(w);
		c += x * cos(w);
		all += x * x;
	}
	return all > 1 ? 2 * (s * s + c * c) / n / all : 0;
}

static double loudness(const int16_t *pcm, uint32_t from, uint32_t ms)
{
	uint32_t first = from * (FULL / 1000), n = ms * (FULL / 1000);
	double all = 0;

	for (uint32_t i = first; i < first + n; i++)
		all += (double)pcm[i] * pcm[i];
	return sqrt(all / n);
}

/* --- Tests ------------------------------------------------------------------------------------ */

static void each_channel_has_its_tone(void **state)
{
	static const uint32_t rates[] = {8000, 16000, 48000};
	struct heard h;
	struct rig g;

	for (uint32_t i = 0; i < 2 * ARRAY_LEN(rates); i++) {
		uint32_t rest = 137 * rates[i / 2] / 8000;

		rig_init(&g, state, rates[i / 2], i % 2 + 1);
		begins(&g);
		talks_for(&g, 6);
		assert_int_equal(talks(&g, rest), 0);
		ends(&g);
		h = reads(&g);
		assert_true(h.ended);
		assert_int_equal(h.n, g.at * FULL / g.rate);
		assert_true(share(h.pcm[0], 440, FULL, 100, 2800) > 0.98);
		assert_true(fabs(loudness(h.pcm[0], 100, 2800) - 8000 / sqrt(2)) < 600);
		if (g.channels == 2) {
			assert_true(share(h.pcm[1], 1000, FULL, 100, 2800) > 0.98);
			/* The other party is not heard at all. */
			assert_true(share(h.pcm[1], 440, FULL, 100, 2800) < 0.001);
			assert_true(share(h.pcm[0], 1000, FULL, 100, 2800) < 0.001);
		}
		heard_free(&h);
		rig_fini(&g);
	}
}

/* The encoder's delay is skipped: what was said after a second is heard after a second. */
static void the_time_is_right(void **state)
{
	struct heard h;
	struct rig g;
	uint64_t first = 0;

	rig_init(&g, state, 48000, 1);
	begins(&g);
	silent(&g, 1000);
	talks_for(&g, 2);
	ends(&g);
	h = reads(&g);
	assert_int_equal(h.n, 2 * FULL);
	while (first < h.n && abs(h.pcm[0][first]) < 1000)
		first++;
	assert_in_range(first, FULL - FULL / 200, FULL + FULL / 200);
	heard_free(&h);
	rig_fini(&g);
}

static void silence_costs_little(void **state)
{
	struct heard h;
	struct stat st;
	struct rig g;

	rig_init(&g, state, 8000, 2);
	begins(&g);
	silent(&g, 20000);
	assert_int_equal(stat(g.path, &st), 0);
	assert_true(st.st_size < 200); /* nothing without samples after it */
	talks_for(&g, 2);
	silent(&g, 500);
	talks_for(&g, 2);
	ends(&g);
	assert_int_equal(stat(g.path, &st), 0);
	assert_true(st.st_size < 1000 * 8 + 20000);
	h = reads(&g);
	assert_int_equal(h.n, 22500ull * (FULL / 1000));
	for (uint32_t c = 0; c < 2; c++) {
		assert_true(loudness(h.pcm[c], 0, 19900) < 1);
		assert_true(share(h.pcm[c], c ? 1000 : 440, FULL, 20100, 800) > 0.98);
		assert_true(share(h.pcm[c], c ? 1000 : 440, FULL, 21600, 800) > 0.98);
	}
	heard_free(&h);
	rig_fini(&g);
}

/* The missing part is silence, and later audio keeps its position. */
static void a_full_disk_is_silence(void **state)
{
	struct rlimit old, few;
	struct heard h;
	struct stat st;
	struct rig g;

	signal(SIGXFSZ, SIG_IGN);
	rig_init(&g, state, 8000, 1);
	begins(&g);
	talks_for(&g, 4);
	assert_int_equal(stat(g.path, &st), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)st.st_size + 100; /* a part of the next page fits */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(talks(&g, 4000), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	h = reads(&g); /* complete up to there */
	assert_int_equal(h.n, 2 * FULL - PRE_SKIP);
	heard_free(&h);
	talks_for(&g, 4);
	ends(&g);
	h = reads(&g);
	assert_true(h.ended && h.n == 5ull * FULL);
	assert_true(share(h.pcm[0], 440, FULL, 100, 1800) > 0.98);
	assert_true(loudness(h.pcm[0], 2200, 700) < 30);
	assert_true(share(h.pcm[0], 440, FULL, 3100, 1800) > 0.98);
	heard_free(&h);
	rig_fini(&g);
}

/* Every prefix plays, and the next start ends it. */
static void a_crash_leaves_a_file_that_plays(void **state)
{
	uint32_t pages = 0;
	struct heard h;
	struct file f;
	struct rig g;

	rig_init(&g, state, 8000, 2);
	begins(&g);
	for (uint32_t i = 0; i < 3; i++) {
		talks_for(&g, 1);
		h = reads(&g);
		assert_int_equal(h.n, (i + 1) * FULL / 2 - PRE_SKIP);
		assert_false(h.ended);
		heard_free(&h);
	}
	f = load(g.path);
	assert_int_equal(record_opus_repair(g.dir, RECORD_OPUS_PAGES), 0); /* it has a lock */
	assert_int_equal(record_opus_close(g.o, true), 0);
	assert_int_equal(access(g.path, F_OK), -1);
	for (size_t len = 0; len < f.len + 611; len += 611) {
		struct record_ogg_page o;
		size_t at = 0, n;
		struct file cut;

		len = len < f.len ? len : f.len;
		store(g.path, f.bytes, len);
		for (pages = 0; (n = record_ogg_read(&o, f.bytes + at, len - at)); pages++)
			at += n;
		n = record_opus_repair(g.dir, RECORD_OPUS_PAGES);
		assert_int_equal(n, pages > HEADER_PAGES || (pages == HEADER_PAGES && at != len));
		if (pages >= HEADER_PAGES) {
			cut = load(g.path);
			assert_int_equal(cut.len, at);
			h = decode(&g, &cut);
			assert_int_equal(h.pages, pages);
			assert_int_equal(h.ended, pages > HEADER_PAGES);
			heard_free(&h);
			free(cut.bytes);
		}
		assert_int_equal(record_opus_repair(g.dir, RECORD_OPUS_PAGES), 0);
	}
	free(f.bytes);
	rig_fini(&g);
}

/* A file may have very many short pages. One of too many stays as it is, and so do those after the
 * pages of all have been read. */
static void a_start_reads_so_many_pages(void **state)
{
	enum { SHORT = 12 };
	struct file f;
	struct rig g;
	char path[sizeof(g.path) + 4];

	rig_init(&g, state, 8000, 1);
	begins(&g);
	talks_for(&g, SHORT - HEADER_PAGES);
	f = load(g.path);
	assert_int_equal(record_opus_close(g.o, true), 0);
	store(g.path, f.bytes, f.len);
	assert_int_equal(record_opus_repair(g.dir, SHORT - 1), 0);
	assert_int_equal(record_opus_repair(g.dir, SHORT), 1);
	for (uint32_t n = 0; n < RECORD_OPUS_FILES + 2; n++) {
		snprintf(path, sizeof(path), "%.*s%u-mix.opus", (int)strlen(g.path) - 9, g.path, n);
		store(path, f.bytes, f.len);
	}
	assert_int_equal(record_opus_repair(g.dir, SHORT), RECORD_OPUS_FILES);
	assert_int_equal(record_opus_repair(g.dir, SHORT), 2);
	free(f.bytes);
	rig_fini(&g);
}

static void files_of_others_stay(void **state)
{
	char other[CODEC_PATH + 32];
	struct file f;
	struct rig g;

	rig_init(&g, state, 8000, 1);
	begins(&g);
	talks_for(&g, 2);
	f = load(g.path);
	ends(&g);
	assert_int_equal(record_opus_repair(g.dir, RECORD_OPUS_PAGES), 0); /* it has its end */
	snprintf(other, sizeof(other), "%s/song.opus", g.dir);
	store(other, f.bytes, f.len); /* not our name */
	assert_int_equal(record_opus_repair(g.dir, RECORD_OPUS_PAGES), 0);
	f.bytes[28 + 19 + 28 + 12] ^= 1; /* the program's name, of another one */
	store(g.path, f.bytes, f.len);
	assert_int_equal(record_opus_repair(g.dir, RECORD_OPUS_PAGES), 0);
	store(g.path, (const uint8_t *)"hello", 5);
	assert_int_equal(record_opus_repair(g.dir, RECORD_OPUS_PAGES), 0);
	store(g.path, (const uint8_t *)"", 0);
	assert_int_equal(record_opus_repair(g.dir, RECORD_OPUS_PAGES), 0);
	assert_int_equal(record_opus_repair("/no/such/folder", RECORD_OPUS_PAGES), 0);
	/* A file that exists is not replaced. */
	assert_int_equal(
		record_opus_open(&g.o, g.path, record_opus_codec(g.codecs, 8000), 1), -EEXIST);
	free(f.bytes);
	rig_fini(&g);
}

static int nonsense(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	uint32_t *calls = enc;

	(void)pcm;
	(void)samples;
	memset(out, 0xff, cap);
	switch ((*calls)++ % 4) {
	case 0:
		return 5; /* several frames */
	case 1:
		return -EBADMSG;
	case 2:
		return 0;
	default:
		out[0] = 0xf4; /* stereo */
		return (int)cap;
	}
}

/* Its process may be isolated because it is not trusted. */
static void an_encoder_that_lies_is_silence(void **state)
{
	static const struct xcipher_codec codec = {.size = sizeof(codec),
		.name = "opus",
		.clock = FULL,
		.rate = 8000,
		.channels = 1,
		.static_pt = -1,
		.ptime = 20,
		.frame_samples = 160,
		.enc_size = 16,
		.align = 8,
		.encode = nonsense};
	struct codec_entry e = {.codec = &codec, .plugin = UINT32_MAX};
	struct heard h;
	struct rig g;

	rig_init(&g, state, 8000, 1);
	codec_about_fill(&e.about, &codec);
	assert_int_equal(record_opus_open(&g.o, g.path, &e, 1), 0);
	talks_for(&g, 4);
	ends(&g);
	h = reads(&g);
	assert_true(h.ended && h.n == 2 * FULL);
	assert_true(loudness(h.pcm[0], 0, 2000) < 1);
	heard_free(&h);
	rig_fini(&g);
}

/* Another reader of the format, by ffmpeg's libraries. */
static void xcipher_av_plays_it(void **state)
{
	char program[CODEC_PATH];
	struct audio_decoder d = {codec_path(program, "xcipher-av"), -1, 60000};
	struct audio_clip *c = NULL;
	struct file f;
	struct rig g;

	for (uint32_t channels = 1; channels <= 2; channels++) {
		rig_init(&g, state, 16000, channels);
		if (access(program, X_OK)) {
			rig_fini(&g);
			skip();
		}
		begins(&g);
		silent(&g, 1000);
		talks_for(&g, 4);
		assert_int_equal(talks(&g, 77), 0);
		ends(&g);
		f = load(g.path);
		assert_int_equal(audio_decoder_bytes(&d, f.bytes, f.len, &c), 0);
		assert_int_equal(c->rate, FULL);
		assert_int_equal(c->samples, g.at * 3);
		assert_true(loudness(c->pcm, 0, 900) < 1);
		assert_true(share(c->pcm, 440, FULL, 1100, 1800) > (channels == 1 ? 0.98 : 0.48));
		assert_true(channels == 1 || share(c->pcm, 1000, FULL, 1100, 1800) > 0.48);
		audio_clip_unref(c);
		free(f.bytes);
		rig_fini(&g);
	}
}

static void rates_that_opus_has(void **state)
{
	struct codec_registry *none;
	struct rig g;

	rig_init(&g, state, 8000, 1);
	for (uint32_t rate = 8000; rate <= 48000; rate += 8000)
		assert_int_equal(record_opus_codec(g.codecs, rate) != NULL,
			rate == 8000 || rate == 16000 || rate == 48000);
	assert_int_equal(codec_registry_create(&none), 0);
	assert_null(record_opus_codec(none, 8000));
	codec_registry_destroy(none);
	rig_fini(&g);
}

/* Packets of every length, around those at which the lacing changes. */
static void pages_hold_packets(void **state)
{
	static uint8_t packet[RECORD_OGG_PACKET + 1], out[RECORD_OGG_MAX];
	static struct record_ogg o;
	struct record_ogg_page p = {.flags = RECORD_OGG_LAST, .granule = 1ull << 40, .serial = 7},
			       got;
	size_t len, n = 0;

	(void)state;
	assert_false(record_ogg_add(&o, packet, sizeof(packet)));
	for (len = 0; record_ogg_add(&o, packet, len); len += 85)
		n++;
	assert_true(n > 10);
	len = record_ogg_end(&o, &p, out);
	assert_int_equal(record_ogg_read(&got, out, sizeof(out)), len);
	assert_true(got.granule == p.granule && got.serial == 7 && got.flags == RECORD_OGG_LAST);
	assert_int_equal(record_ogg_read(&got, out, len - 1), 0);
	assert_int_equal(record_ogg_len(out, RECORD_OGG_HEADER + RECORD_OGG_SEGMENTS), len);
	assert_int_equal(record_ogg_len(out, RECORD_OGG_HEADER), 0);
	for (size_t at = 0; at < len; at += 97) {
		out[at] ^= 4;
		assert_int_equal(record_ogg_read(&got, out, len), 0);
		out[at] ^= 4;
	}
	record_ogg_flag(out, len, 0);
	assert_int_equal(record_ogg_read(&got, out, len), len);
	assert_int_equal(got.flags, 0);
	assert_true(record_ogg_add(&o, packet, RECORD_OGG_PACKET));
	assert_false(record_ogg_add(&o, packet, 0));
	assert_int_equal(record_ogg_end(&o, &p, out), RECORD_OGG_HEADER + 255 + 254 * 255);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_channel_has_its_tone),
		cmocka_unit_test(the_time_is_right),
		cmocka_unit_test(silence_costs_little),
		cmocka_unit_test(a_full_disk_is_silence),
		cmocka_unit_test(a_crash_leaves_a_file_that_plays),
		cmocka_unit_test(a_start_reads_so_many_pages),
		cmocka_unit_test(files_of_others_stay),
		cmocka_unit_test(an_encoder_that_lies_is_silence),
		cmocka_unit_test(xcipher_av_plays_it),
		cmocka_unit_test(rates_that_opus_has),
		cmocka_unit_test(pages_hold_packets),
	};

	return cmocka_run_group_tests(tests, load_plugin, unload);
}
