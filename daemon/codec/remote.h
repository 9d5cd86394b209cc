/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream of an isolated plug-in. Each call waits for the stream's process. A process that
 * crashes, does not answer in time, or writes outside of a buffer is replaced by a new one with a
 * new state, up to the limits of the home. One thread at a time. */
#ifndef CODEC_REMOTE_H
#define CODEC_REMOTE_H

#include "codec/home.h"

struct codec_remote_cfg {
	uint32_t codec; /* its number in the plug-in */
	uint32_t can;   /* CODEC_DECODES, CODEC_ENCODES or both */
	const char *fmtp;
	size_t fmtp_len;
	struct xcipher_codec_wish wish;
};

struct codec_remote {
	struct codec_home *home;
	struct codec_process process;         /* sock < 0: there is none */
	uint32_t codec, can, restarts, frame; /* frame: bytes of a sample of all channels */
	struct xcipher_codec_wish wish;
	char fmtp[CODEC_FMTP_MAX];
	size_t fmtp_len;
};

/* 0 or -errno: -EINVAL also if the codec refuses the fmtp. */
int codec_remote_open(
	struct codec_remote *r, struct codec_home *h, const struct codec_remote_cfg *cfg);
void codec_remote_close(struct codec_remote *r);

/* One call. in and out as the operation has them (shared.h). Returns what the codec's function
 * returns; -EIO: the process failed, and the stream has a new one; -EPIPE: and it has none. */
struct codec_call {
	enum codec_op op;
	const void *in;
	size_t len; /* bytes or samples, as of the codec's function */
	enum xcipher_codec_gap gap;
	void *out;
	size_t cap;
};
int codec_remote_call(struct codec_remote *r, const struct codec_call *c);
int codec_remote_adapt(struct codec_remote *r, const struct xcipher_codec_wish *wish);

#endif
