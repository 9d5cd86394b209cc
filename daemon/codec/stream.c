/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "codec/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct codec_stream {
	const struct codec_entry *entry;
	const struct xcipher_codec *c; /* in this process */
	void *params, *dec, *enc;
	bool dec_open, enc_open;
	/* Of codec_streams_foresee(): the state after that packet. in is NULL: there is none. */
	struct {
		void *dec;
		const uint8_t *in;
		size_t len;
		const int16_t *pcm;
		int result;
	} ahead;
	struct codec_remote remote; /* or isolated */
	struct gap gap;
};

static void *aligned(size_t size, size_t align)
{
	void *p = NULL;

	if (align < sizeof(void *))
		align = sizeof(void *);
	if (posix_memalign(&p, align, size ? size : 1))
		return NULL;
	return memset(p, 0, size);
}

/* Decoding ahead works on a copy of the state, so the state must be plain memory. The samples that
 * wait are those of one channel. */
static bool foresees(const struct xcipher_codec *c)
{
	return c->decode_batch && c->flags & XCIPHER_CODEC_PLAIN_STATE && c->channels == 1;
}

static int open_here(struct codec_stream *s, const struct codec_stream_cfg *cfg)
{
	const struct xcipher_codec *c = s->c;
	int rc = 0;

	s->params = aligned(c->params_size, c->align);
	s->dec = aligned(c->dec_size, c->align);
	s->enc = aligned(c->enc_size, c->align);
	s->ahead.dec = foresees(c) ? aligned(c->dec_size, c->align) : NULL;
	if (!s->params || !s->dec || !s->enc || (foresees(c) && !s->ahead.dec))
		return -ENOMEM;
	if (c->fmtp_parse)
		rc = c->fmtp_parse(s->params, cfg->fmtp_len ? cfg->fmtp : "", cfg->fmtp_len);
	if (rc == 0 && cfg->can & CODEC_DECODES) {
		rc = c->dec_init ? c->dec_init(s->dec, s->params) : 0;
		s->dec_open = rc == 0;
	}
	if (rc == 0 && cfg->can & CODEC_ENCODES) {
		rc = c->enc_init ? c->enc_init(s->enc, s->params, &cfg->wish) : 0;
		s->enc_open = rc == 0;
	}
	return rc;
}

int codec_stream_open(
	struct codec_stream **out, const struct codec_entry *e, const struct codec_stream_cfg *cfg)
{
	struct codec_remote_cfg remote = {.codec = e->number,
		.can = cfg->can,
		.fmtp = cfg->fmtp,
		.fmtp_len = cfg->fmtp_len,
		.wish = cfg->wish};
	struct codec_stream_cfg here = *cfg;
	struct codec_stream *s = NULL;
	int rc = 0;

	if (cfg->can & ~e->about.can & (CODEC_DECODES | CODEC_ENCODES))
		return -ENOTSUP;
	if (cfg->fmtp_len > CODEC_FMTP_MAX)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	here.wish.size = sizeof(here.wish);
	s->entry = e;
	s->c = e->codec;
	gap_init(&s->gap, e->about.rate, e->about.channels);
	rc = s->c ? open_here(s, &here) : codec_remote_open(&s->remote, e->home, &remote);
	if (rc) {
		codec_stream_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void codec_stream_close(struct codec_stream *s)
{
	if (!s)
		return;
	if (s->dec_open && s->c->dec_fini)
		s->c->dec_fini(s->dec);
	if (s->enc_open && s->c->enc_fini)
		s->c->enc_fini(s->enc);
	if (!s->c)
		codec_remote_close(&s->remote);
	free(s->params);
	free(s->dec);
	free(s->enc);
	free(s->ahead.dec);
	free(s);
}

/* A plug-in in this process is trusted. But a result that is larger than the buffer would send the
 * memory after it to a terminal. */
static int within(int result, size_t cap)
{
	return result > 0 && (size_t)result > cap ? -EIO : result;
}

static void all_within(struct xcipher_codec_job *job, size_t n)
{
	for (size_t i = 0; i < n; i++)
		job[i].result = within(job[i].result, job[i].out_cap);
}

/* --- Several streams -------------------------------------------------------------------------- */

bool codec_stream_batches(const struct codec_stream *s)
{
	return s->enc_open && s->c->encode_batch;
}

bool codec_stream_foresees(const struct codec_stream *s)
{
	return s->dec_open && s->ahead.dec;
}

/* The number of streams, from the first on, with the codec of the first. */
static size_t alike(struct codec_stream *const *s, size_t n)
{
	size_t i = 1;

	while (i < n && s[i]->c == s[0]->c)
		i++;
	return i;
}

void codec_streams_encode(struct codec_stream *const *s, struct xcipher_codec_job *job, size_t n,
	const struct g722_device_ops *device)
{
	for (size_t i = 0, end; i < n; i = end) {
		end = i + alike(s + i, n - i);
		for (size_t k = i; k < end; k++)
			job[k].state = s[k]->enc;
		if (codec_stream_batches(s[i])) {
			if (s[i]->c->encode_batch == g722_batch_encode)
				g722_batch_encode_with(device, job + i, end - i);
			else
				s[i]->c->encode_batch(job + i, end - i);
			all_within(job + i, end - i);
			continue;
		}
		for (size_t k = i; k < end; k++)
			job[k].result =
				codec_stream_encode(s[k], (const int16_t *)(const void *)job[k].in,
					job[k].in_len, job[k].out, job[k].out_cap);
	}
}

void codec_streams_foresee(struct codec_stream *const *s, struct xcipher_codec_job *job, size_t n,
	const struct g722_device_ops *device)
{
	for (size_t i = 0; i < n; i++) {
		memcpy(s[i]->ahead.dec, s[i]->dec, s[i]->c->dec_size);
		job[i].state = s[i]->ahead.dec;
	}
	for (size_t i = 0, end; i < n; i = end) {
		end = i + alike(s + i, n - i);
		if (s[i]->c->decode_batch == g722_batch_decode)
			g722_batch_decode_with(device, job + i, end - i);
		else
			s[i]->c->decode_batch(job + i, end - i);
	}
	all_within(job, n);
	for (size_t i = 0; i < n; i++) {
		s[i]->ahead.in = job[i].in;
		s[i]->ahead.len = job[i].in_len;
		s[i]->ahead.pcm = (const int16_t *)(const void *)job[i].out;
		s[i]->ahead.result = job[i].result;
	}
}

void codec_stream_forget(struct codec_stream *s)
{
	s->ahead.in = NULL;
}

/* Takes the result of codec_streams_foresee(). False: it was for another packet, or there is
 * none. */
static bool take_foreseen(struct codec_stream *s, const struct codec_call *call, int *n)
{
	bool same = s->ahead.in && s->ahead.in == call->in && s->ahead.len == call->len;
	int got = s->ahead.result;
	void *dec = s->dec;

	s->ahead.in = NULL;
	if (!same || got < 0 || (size_t)got > call->cap)
		return false;
	memcpy(call->out, s->ahead.pcm, (size_t)got * s->c->channels * sizeof(*s->ahead.pcm));
	s->dec = s->ahead.dec;
	s->ahead.dec = dec;
	*n = got;
	return true;
}

/* --- One stream ------------------------------------------------------------------------------- */

int codec_stream_decode(
	struct codec_stream *s, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	struct codec_call call = {
		.op = CODEC_OP_DECODE, .in = in, .len = len, .out = pcm, .cap = cap};
	int n = -EINVAL;

	if (!s->c)
		n = codec_remote_call(&s->remote, &call);
	else if (s->dec_open && !take_foreseen(s, &call, &n))
		n = within(s->c->decode(s->dec, in, len, pcm, cap), cap);
	if (n > 0 && !(s->entry->about.can & CODEC_CONCEALS))
		gap_heard(&s->gap, pcm, (size_t)n);
	return n;
}

int codec_stream_encode(
	struct codec_stream *s, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	struct codec_call call = {
		.op = CODEC_OP_ENCODE, .in = pcm, .len = samples, .out = out, .cap = cap};

	if (!s->c)
		return codec_remote_call(&s->remote, &call);
	return s->enc_open ? within(s->c->encode(s->enc, pcm, samples, out, cap), cap) : -EINVAL;
}

int codec_stream_conceal(struct codec_stream *s, enum xcipher_codec_gap why, size_t samples,
	int16_t *pcm, size_t cap)
{
	struct codec_call call = {
		.op = CODEC_OP_CONCEAL, .gap = why, .len = samples, .out = pcm, .cap = cap};
	int n = -ENOTSUP;

	if (samples > cap)
		return -ENOSPC;
	if (s->entry->about.can & CODEC_CONCEALS) {
		codec_stream_forget(s);
		if (!s->c)
			n = codec_remote_call(&s->remote, &call);
		else if (s->dec_open)
			n = within(s->c->conceal(s->dec, why, samples, pcm, cap), cap);
	}
	if (n >= 0)
		return n;
	if (why == XCIPHER_CODEC_SILENT)
		gap_silence(&s->gap);
	gap_fill(&s->gap, pcm, samples);
	return (int)samples;
}

int codec_stream_recover(
	struct codec_stream *s, const uint8_t *next, size_t len, int16_t *pcm, size_t cap)
{
	struct codec_call call = {
		.op = CODEC_OP_RECOVER, .in = next, .len = len, .out = pcm, .cap = cap};

	if (!(s->entry->about.can & CODEC_RECOVERS))
		return -ENOENT;
	codec_stream_forget(s);
	if (!s->c)
		return codec_remote_call(&s->remote, &call);
	return s->dec_open ? within(s->c->recover(s->dec, next, len, pcm, cap), cap) : -EINVAL;
}

int codec_stream_requested(struct codec_stream *s)
{
	struct codec_call call = {.op = CODEC_OP_REQUESTED};

	if (!(s->entry->about.can & CODEC_REQUESTS))
		return -ENOENT;
	if (!s->c)
		return codec_remote_call(&s->remote, &call);
	return s->dec_open ? s->c->requested(s->dec) : -ENOENT;
}

int codec_stream_adapt(struct codec_stream *s, const struct xcipher_codec_wish *wish)
{
	struct xcipher_codec_wish w = *wish;

	w.size = sizeof(w);
	if (!(s->entry->about.can & CODEC_ADAPTS))
		return -ENOTSUP;
	if (!s->c)
		return codec_remote_adapt(&s->remote, &w);
	return s->enc_open ? s->c->adapt(s->enc, &w) : -EINVAL;
}

int codec_stream_fmtp(struct codec_stream *s, char *out, size_t cap)
{
	struct codec_call call = {.op = CODEC_OP_FMTP, .out = out, .cap = cap};

	if (!s->c)
		return codec_remote_call(&s->remote, &call);
	return s->c->fmtp_write ? within(s->c->fmtp_write(s->params, out, cap), cap) : 0;
}
