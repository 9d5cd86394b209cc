/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_sound.h"

#include <errno.h>
#include <stdlib.h>

#include "record/record_opus.h"
#include "record/record_wav.h"

struct record_sound { /* one of them */
	struct record_wav *wav;
	struct record_opus *opus;
};

int record_sound_open(
	struct record_sound **out, const char *path, const struct record_sound_cfg *cfg)
{
	struct record_sound *s = calloc(1, sizeof(*s));
	int err = !s        ? -ENOMEM
		: cfg->opus ? record_opus_open(&s->opus, path, cfg->opus, cfg->channels)
			    : record_wav_open(&s->wav, path, cfg->rate, cfg->channels);

	if (err)
		free(s);
	else
		*out = s;
	return err;
}

int record_sound_write(struct record_sound *s, const int16_t *pcm, uint32_t n)
{
	return s->opus ? record_opus_write(s->opus, pcm, n) : record_wav_write(s->wav, pcm, n);
}

void record_sound_silence(struct record_sound *s, uint64_t n)
{
	if (s->opus)
		record_opus_silence(s->opus, n);
	else
		record_wav_silence(s->wav, n);
}

int record_sound_close(struct record_sound *s, bool discard)
{
	int err;

	if (!s)
		return 0;
	err = record_opus_close(s->opus, discard);
	record_wav_close(s->wav, discard);
	free(s);
	return err;
}
