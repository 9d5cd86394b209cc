/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One codec with at most one decoder and one encoder. Every buffer that the plug-in gets ends at a
 * guard page, so that writing too far ends this process before it can damage a result. */
#include "codec/helper_stream.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec/guard.h"
#include "codec/helper_jail.h"

struct stream {
	const struct xcipher_codec_plugin *plugin;
	const struct xcipher_codec *c; /* NULL: not open */
	struct codec_shared *shared;
	struct guard params_at, dec_at, enc_at, in_at, out_at;
	void *params, *dec, *enc;
	bool dec_open, enc_open;
};

static void *zeroed(struct guard *g, size_t len, size_t align)
{
	return memset(guard_tail(g, len, align), 0, len);
}

static int open_codec(struct stream *s, const struct codec_request *q)
{
	const struct xcipher_codec *c = NULL;
	char *text = NULL;
	int rc = 0;

	if (s->c || q->codec >= s->plugin->codecs || q->len > CODEC_FMTP_MAX)
		return -EINVAL;
	c = s->plugin->codec[q->codec];
	if (guard_create(&s->params_at, c->params_size) || guard_create(&s->dec_at, c->dec_size) ||
		guard_create(&s->enc_at, c->enc_size))
		return -ENOMEM;
	s->params = zeroed(&s->params_at, c->params_size, c->align);
	s->dec = zeroed(&s->dec_at, c->dec_size, c->align);
	s->enc = zeroed(&s->enc_at, c->enc_size, c->align);
	text = memcpy(guard_tail(&s->in_at, q->len, 1), s->shared->in, q->len);
	if (c->fmtp_parse)
		rc = c->fmtp_parse(s->params, text, q->len);
	if (rc == 0 && q->can & CODEC_DECODES && c->decode) {
		rc = c->dec_init ? c->dec_init(s->dec, s->params) : 0;
		s->dec_open = rc == 0;
	}
	if (rc == 0 && q->can & CODEC_ENCODES && c->encode) {
		rc = c->enc_init ? c->enc_init(s->enc, s->params, &q->wish) : 0;
		s->enc_open = rc == 0;
	}
	if (rc == 0)
		s->c = c;
	return rc;
}

/* Operations that turn bytes or nothing into samples. */
static int to_pcm(struct stream *s, const struct codec_request *q)
{
	const struct xcipher_codec *c = s->c;
	size_t frame = c->channels * sizeof(int16_t);
	const uint8_t *in = NULL;
	int16_t *out = NULL;
	int n = 0;

	if (!s->dec_open || q->cap * frame > CODEC_SHARED_BYTES || q->len > CODEC_SHARED_BYTES)
		return -EINVAL;
	out = guard_tail(&s->out_at, q->cap * frame, sizeof(*out));
	if (q->op == CODEC_OP_CONCEAL) {
		if (!c->conceal)
			return -ENOTSUP;
		n = c->conceal(s->dec, (enum xcipher_codec_gap)q->gap, q->len, out, q->cap);
	} else {
		in = memcpy(guard_tail(&s->in_at, q->len, 1), s->shared->in, q->len);
		if (q->op == CODEC_OP_RECOVER && !c->recover)
			return -ENOTSUP;
		n = q->op == CODEC_OP_RECOVER ? c->recover(s->dec, in, q->len, out, q->cap)
					      : c->decode(s->dec, in, q->len, out, q->cap);
	}
	s->shared->overwrote |= !guard_intact(&s->out_at, q->cap * frame, sizeof(*out));
	if (n > 0 && (size_t)n <= q->cap)
		memcpy(s->shared->out, out, (size_t)n * frame);
	return n;
}

static int encode(struct stream *s, const struct codec_request *q)
{
	size_t bytes = (size_t)q->len * s->c->channels * sizeof(int16_t);
	int16_t *in = NULL;
	uint8_t *out = NULL;
	int n = 0;

	if (!s->enc_open || bytes > CODEC_SHARED_BYTES || q->cap > CODEC_SHARED_BYTES)
		return -EINVAL;
	in = memcpy(guard_tail(&s->in_at, bytes, sizeof(*in)), s->shared->in, bytes);
	out = guard_tail(&s->out_at, q->cap, 1);
	n = s->c->encode(s->enc, in, q->len, out, q->cap);
	s->shared->overwrote |= !guard_intact(&s->out_at, q->cap, 1);
	if (n > 0 && (size_t)n <= q->cap)
		memcpy(s->shared->out, out, (size_t)n);
	return n;
}

static int write_fmtp(struct stream *s, const struct codec_request *q)
{
	char *out = NULL;
	int n = 0;

	if (q->cap > CODEC_FMTP_MAX || !s->c->fmtp_write)
		return 0;
	out = guard_tail(&s->out_at, q->cap, 1);
	n = s->c->fmtp_write(s->params, out, q->cap);
	if (n > 0 && (size_t)n <= q->cap)
		memcpy(s->shared->out, out, (size_t)n);
	return n;
}

static int serve(struct stream *s, const struct codec_request *q)
{
	if (q->op == CODEC_OP_OPEN)
		return open_codec(s, q);
	if (!s->c)
		return -EINVAL;
	switch (q->op) {
	case CODEC_OP_DECODE:
	case CODEC_OP_CONCEAL:
	case CODEC_OP_RECOVER:
		return to_pcm(s, q);
	case CODEC_OP_ENCODE:
		return encode(s, q);
	case CODEC_OP_REQUESTED:
		return s->dec_open && s->c->requested ? s->c->requested(s->dec) : -ENOENT;
	case CODEC_OP_ADAPT:
		return s->enc_open && s->c->adapt ? s->c->adapt(s->enc, &q->wish) : -ENOTSUP;
	case CODEC_OP_FMTP:
		return write_fmtp(s, q);
	default:
		return -EINVAL;
	}
}

static bool state_intact(const struct stream *s)
{
	return !s->c ||
		(guard_intact(&s->params_at, s->c->params_size, s->c->align) &&
			guard_intact(&s->dec_at, s->c->dec_size, s->c->align) &&
			guard_intact(&s->enc_at, s->c->enc_size, s->c->align));
}

void helper_stream(const struct xcipher_codec_plugin *p, int memory, int sock)
{
	struct stream s = {.plugin = p};
	uint8_t turn = 0;

	s.shared = mmap(NULL, sizeof(*s.shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	close(memory);
	if (s.shared == MAP_FAILED || guard_create(&s.in_at, CODEC_SHARED_BYTES) ||
		guard_create(&s.out_at, CODEC_SHARED_BYTES) || jail_stream())
		_exit(2);
	while (read(sock, &turn, 1) == 1) {
		struct codec_request q = s.shared->request;

		s.shared->result = serve(&s, &q);
		s.shared->overwrote |= !state_intact(&s);
		if (write(sock, &turn, 1) != 1 || s.shared->overwrote)
			break;
	}
	_exit(0);
}
