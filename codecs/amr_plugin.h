/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The code that amr.c and amrwb.c share: everything but the library. A plug-in is one file, so it
 * includes this header once, last. First it defines AMR_NAME and AMR_PLUGIN, the names of codec and
 * plug-in, AMR_RATE in Hz, and these:
 *
 *   static const struct amr_kind kind;
 *   static const struct amr_library library; */
#ifndef CODECS_AMR_PLUGIN_H
#define CODECS_AMR_PLUGIN_H

#include <errno.h>

#include "amr_rtp.h"

#define FRAME (AMR_RATE / 50) /* samples of 20 ms */

/* --- The plug-in's state and functions -------------------------------------------------------- */

struct decoder {
	void *library;
	struct amr_params params;
	uint32_t request;
};

struct encoder {
	void *library;
	struct amr_params params;
	struct xcipher_codec_wish wish;
	struct amr_modes modes;
};

static int fmtp_parse(void *params, const char *text, size_t len)
{
	return amr_fmtp_parse(params, &kind, text, len);
}

static int fmtp_write(const void *params, char *out, size_t cap)
{
	return amr_fmtp_write(params, out, cap);
}

/* --- Decoder ---------------------------------------------------------------------------------- */

static int dec_init(void *dec, const void *params)
{
	struct decoder *d = dec;

	d->params = *(const struct amr_params *)params;
	d->request = AMR_NO_REQUEST;
	d->library = library.decoder();
	return d->library ? 0 : -ENOMEM;
}

static void dec_fini(void *dec)
{
	library.decoder_end(((struct decoder *)dec)->library);
}

static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	struct amr_frame frame[AMR_MAX_FRAMES];
	struct decoder *d = dec;
	unsigned request = 0;
	int n = amr_read(&kind, d->params.aligned, in, len, frame, &request);

	if (n < 0)
		return n;
	if ((size_t)n * FRAME > cap)
		return -ENOSPC;
	d->request = request;
	for (int i = 0; i < n; i++)
		library.decode(d->library, frame[i].bytes, pcm + (size_t)i * FRAME);
	return n * FRAME;
}

static int conceal(void *dec, enum xcipher_codec_gap why, size_t samples, int16_t *pcm, size_t cap)
{
	static const struct amr_frame none = {{AMR_NONE}};
	struct decoder *d = dec;

	(void)why; /* the decoder knows whether noise came last */
	if (samples > cap)
		return -ENOSPC;
	if (samples % FRAME != 0)
		return -EINVAL;
	for (size_t at = 0; at < samples; at += FRAME)
		library.decode(d->library, none.bytes, pcm + at);
	return (int)samples;
}

static int requested(const void *dec)
{
	const struct decoder *d = dec;

	return d->request == AMR_NO_REQUEST ? -ENOENT : (int)d->request;
}

/* --- Encoder ---------------------------------------------------------------------------------- */

static int enc_init(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	struct encoder *e = enc;

	e->params = *(const struct amr_params *)params;
	e->wish = *wish;
	e->library = library.encoder(wish->dtx);
	return e->library ? 0 : -ENOMEM;
}

static void enc_fini(void *enc)
{
	library.encoder_end(((struct encoder *)enc)->library);
}

static int adapt(void *enc, const struct xcipher_codec_wish *wish)
{
	struct encoder *e = enc;

	if (library.dtx_at_start && !e->wish.dtx != !wish->dtx) {
		void *next = library.encoder(wish->dtx);

		if (!next)
			return -ENOMEM;
		library.encoder_end(e->library);
		e->library = next;
	}
	e->wish = *wish;
	return 0;
}

static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	struct amr_frame frame[AMR_MAX_FRAMES] = {0};
	struct encoder *e = enc;
	size_t n = samples / FRAME;

	if (n == 0 || n > AMR_MAX_FRAMES || samples % FRAME != 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		library.encode(e->library, amr_next_mode(&e->modes, &kind, &e->params, &e->wish),
			pcm + i * FRAME, frame[i].bytes, e->wish.dtx);
	return amr_write(&kind,
		&(struct amr_payload){
			.frame = frame,
			.n = n,
			.request = amr_request(&kind, &e->wish),
			.aligned = e->params.aligned,
		},
		out, cap);
}

static const struct xcipher_codec codec = {
	.size = sizeof(struct xcipher_codec),
	.flags = XCIPHER_CODEC_HAS_DTX,
	.name = AMR_NAME,
	.clock = AMR_RATE,
	.rate = AMR_RATE,
	.channels = 1,
	.static_pt = -1,
	.ptime = 20,
	.frame_samples = FRAME,
	.params_size = sizeof(struct amr_params),
	.dec_size = sizeof(struct decoder),
	.enc_size = sizeof(struct encoder),
	.align = _Alignof(struct encoder),
	.fmtp_parse = fmtp_parse,
	.fmtp_write = fmtp_write,
	.dec_init = dec_init,
	.dec_fini = dec_fini,
	.decode = decode,
	.conceal = conceal,
	.requested = requested,
	.enc_init = enc_init,
	.enc_fini = enc_fini,
	.encode = encode,
	.adapt = adapt,
};

static const struct xcipher_codec *const codecs[] = {&codec};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = AMR_PLUGIN,
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = sizeof(codecs) / sizeof(codecs[0]),
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}

#endif
