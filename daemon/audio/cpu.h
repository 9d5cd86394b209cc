/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU time of decoders and encoders: one of many calls is measured, by chance, because reading the
 * clock takes as long as G.711. */
#ifndef AUDIO_CPU_H
#define AUDIO_CPU_H

#include "audio/session.h"

enum { AUDIO_CPU_EACH = 64 };

/* 0: this call is not measured. */
static inline uint64_t audio_cpu_begin(struct audio_env *env)
{
	uint64_t first, second;

	env->cpu_draw = env->cpu_draw * 1664525 + 1013904223;
	if (!env->cpu_ns || env->cpu_draw >> 26)
		return 0;
	first = env->cpu_ns();
	second = env->cpu_ns();
	return second + (second - first); /* without the time that the clock itself takes */
}

/* What the call stands for, in ns. */
static inline uint64_t audio_cpu_end(const struct audio_env *env, uint64_t begin)
{
	uint64_t now = begin ? env->cpu_ns() : 0;

	return now > begin ? AUDIO_CPU_EACH * (now - begin) : 0;
}

#endif
