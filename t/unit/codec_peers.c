/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spandsp, by its functions alone, and the measure of quality. */
#include "codec_peers.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

uint32_t codec_hash(uint32_t i)
{
	i = (i ^ 61 ^ i >> 16) * 9;
	i = (i ^ i >> 4) * 0x27d4eb2d;
	return (i ^ i >> 15) * 0x85ebca6b >> 7;
}

double codec_snr(const int16_t *want, const int16_t *got, size_t n, size_t max_shift)
{
	double best = -100;

	for (size_t shift = 0; shift <= max_shift && shift < n; shift++) {
		double ww = 0, gg = 0, wg = 0, noise = 0;

		for (size_t i = 0; i + shift < n; i++) {
			ww += (double)want[i] * want[i];
			gg += (double)got[i + shift] * got[i + shift];
			wg += (double)want[i] * got[i + shift];
		}
		if (gg == 0 || ww == 0 || wg <= 0)
			continue;
		noise = ww - wg * wg / gg;
		if (noise <= 0)
			return 200;
		best = fmax(best, 10 * log10(ww / noise));
	}
	return best;
}

static void *spandsp(const char *symbol)
{
	void *lib = dlopen("libspandsp.so.2", RTLD_NOW | RTLD_LOCAL);

	return lib ? dlsym(lib, symbol) : NULL;
}

int peer_spandsp_g711_encode(int ulaw, const int16_t *pcm, size_t n, uint8_t *out)
{
	void *(*init)(void *, int) = (void *(*)(void *, int))spandsp("g711_init");
	int (*run)(void *, uint8_t *, const int16_t *, int) =
		(int (*)(void *, uint8_t *, const int16_t *, int))spandsp("g711_encode");
	void *s = init && run ? init(NULL, ulaw) : NULL;

	if (!s)
		return -ENOENT;
	run(s, out, pcm, (int)n);
	free(s);
	return 0;
}

int peer_spandsp_g711_decode(int ulaw, const uint8_t *in, size_t n, int16_t *pcm)
{
	void *(*init)(void *, int) = (void *(*)(void *, int))spandsp("g711_init");
	int (*run)(void *, int16_t *, const uint8_t *, int) =
		(int (*)(void *, int16_t *, const uint8_t *, int))spandsp("g711_decode");
	void *s = init && run ? init(NULL, ulaw) : NULL;

	if (!s)
		return -ENOENT;
	run(s, pcm, in, (int)n);
	free(s);
	return 0;
}

/* Options of spandsp: G722_SAMPLE_RATE_8000. */
enum { SPANDSP_8K = 1 };

static int spandsp_g722_encode(
	uint32_t rate, int options, const int16_t *pcm, size_t samples, uint8_t *out)
{
	void *(*init)(void *, int, int) = (void *(*)(void *, int, int))spandsp("g722_encode_init");
	int (*run)(void *, uint8_t *, const int16_t *, int) =
		(int (*)(void *, uint8_t *, const int16_t *, int))spandsp("g722_encode");
	int (*release)(void *) = (int (*)(void *))spandsp("g722_encode_free");
	unsigned spare = (64000 - rate) / 8000;
	void *s = NULL;
	int n = 0;

	if (!init || !run || !release)
		return -ENOENT;
	s = init(NULL, (int)rate, options);
	n = run(s, out, pcm, (int)samples);
	release(s);
	/* It moves the audio bits to the low end of the byte. */
	for (int i = 0; i < n; i++)
		out[i] = (uint8_t)(out[i] << spare);
	return 0;
}

int peer_spandsp_g722_encode(uint32_t rate, const int16_t *pcm, size_t samples, uint8_t *out)
{
	return spandsp_g722_encode(rate, 0, pcm, samples, out);
}

int peer_spandsp_g722_encode_low(uint32_t rate, const int16_t *pcm, size_t samples, uint8_t *out)
{
	return spandsp_g722_encode(rate, SPANDSP_8K, pcm, samples, out);
}

static int spandsp_g722_decode(
	uint32_t rate, int options, const uint8_t *in, size_t bytes, int16_t *pcm)
{
	void *(*init)(void *, int, int) = (void *(*)(void *, int, int))spandsp("g722_decode_init");
	int (*run)(void *, int16_t *, const uint8_t *, int) =
		(int (*)(void *, int16_t *, const uint8_t *, int))spandsp("g722_decode");
	int (*release)(void *) = (int (*)(void *))spandsp("g722_decode_free");
	unsigned spare = (64000 - rate) / 8000, step = options & SPANDSP_8K ? 1 : 2;
	void *s = NULL;

	if (!init || !run || !release)
		return -ENOENT;
	s = init(NULL, (int)rate, options);
	for (size_t i = 0; i < bytes; i++) {
		uint8_t code = (uint8_t)(in[i] >> spare);

		run(s, pcm + step * i, &code, 1);
	}
	release(s);
	return 0;
}

int peer_spandsp_g722_decode(uint32_t rate, const uint8_t *in, size_t bytes, int16_t *pcm)
{
	return spandsp_g722_decode(rate, 0, in, bytes, pcm);
}

int peer_spandsp_g722_decode_low(uint32_t rate, const uint8_t *in, size_t bytes, int16_t *pcm)
{
	return spandsp_g722_decode(rate, SPANDSP_8K, in, bytes, pcm);
}
