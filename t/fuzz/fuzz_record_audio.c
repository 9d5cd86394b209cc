/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of strangers in a recording with audio, and codecs that change in between. */
#include <stdlib.h>
#include <string.h>

#include "record/record_audio.h"
#include "record/record_share.h"

#define MS 1000000ull
enum { STEPS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct codec_registry *codecs;
static struct record_audio_env env;

struct input {
	const uint8_t *p;
	size_t len;
};

static uint8_t next(struct input *in)
{
	if (!in->len)
		return 0;
	in->len--;
	return *in->p++;
}

static void change(struct record_audio *a, struct input *in, uint64_t now_ns)
{
	struct record_media *m = calloc(1, sizeof(*m) + 4 * sizeof(m->at[0]));

	if (!m)
		return;
	m->n = 1 + next(in) % 4;
	for (uint32_t i = 0; i < m->n; i++) {
		struct record_stream *s = &m->at[i];

		s->port.port = (uint16_t)(30000 + next(in) % 4);
		s->side = next(in) % (RECORD_NAME_SIDES + 1);
		s->types = next(in) % (AUDIO_TYPES + 2);
		for (uint32_t k = 0; k < s->types && k < AUDIO_TYPES; k++) {
			struct audio_type *t = &s->type[k];

			t->type = next(in) & 0x7f;
			t->kind = next(in) % 3;
			t->entry = next(in) % (codecs->entries + 1);
			t->clock = t->entry < codecs->entries ? codecs->entry[t->entry].about.clock
							      : 8000;
		}
	}
	record_audio_media(a, m, now_ns);
	free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, len};
	struct record_audio_counts n;
	struct record_audio *a;
	uint64_t now_ns = 1000 * MS;

	if (!codecs && codec_registry_create(&codecs))
		abort();
	env.codecs = codecs;
	env.share = RECORD_SHARE_MOST;
	env.rate = next(&in) % 16 ? 8000 : 24000; /* higher ones cost more, and nothing else */
	if (record_audio_open(&a, &env, "/nonexistent/tape", now_ns))
		abort();
	change(a, &in, now_ns);
	for (uint32_t step = 0; in.len && step < STEPS; step++) {
		uint8_t what = next(&in);
		size_t some = next(&in) * (what & 4 ? 8u : 1u);

		if ((what & 3) == 3) {
			now_ns += next(&in) * 4 * MS;
			if (record_audio_tick(a, now_ns))
				abort();
			continue;
		}
		if ((what & 0xf3) == 2) {
			change(a, &in, now_ns);
			continue;
		}
		some = some < in.len ? some : in.len;
		record_audio_packet(a,
			(struct local_port){.port = (uint16_t)(30000 + (what >> 4) % 4)}, in.p,
			(uint32_t)some, now_ns - (what & 8 ? 300 * MS : 0));
		in.p += some;
		in.len -= some;
	}
	record_audio_counts(a, &n);
	if (n.files || record_audio_close(a, now_ns, false))
		abort();
	return 0;
}
