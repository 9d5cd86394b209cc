/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between the host and the processes of a plug-in. The host trusts no value that it reads
 * here: it copies each once, and checks it. */
#ifndef CODEC_SHARED_H
#define CODEC_SHARED_H

#include "codec/about.h"

enum {
	CODEC_SHARED_BYTES = XCIPHER_CODEC_MAX_PCM * 2 * 2, /* samples of two channels */
	CODEC_FMTP_MAX = 512,
	CODEC_CONTROL_FD = 3, /* of the program: a socket to the host */
};

enum codec_op {
	CODEC_OP_OPEN,
	CODEC_OP_DECODE,
	CODEC_OP_CONCEAL,
	CODEC_OP_RECOVER,
	CODEC_OP_REQUESTED,
	CODEC_OP_ENCODE,
	CODEC_OP_ADAPT,
	CODEC_OP_FMTP, /* returns the text of fmtp_write() */
};

/* A request. Length and cap in the unit of the codec's function: bytes or samples. */
struct codec_request {
	uint32_t op, codec; /* codec: its number in the plug-in */
	uint32_t len, cap;
	uint32_t gap; /* enum xcipher_codec_gap */
	uint32_t can; /* OPEN: CODEC_DECODES, CODEC_ENCODES or both */
	struct xcipher_codec_wish wish;
};

/* Memory that a stream's process shares with the host. A byte on their socket gives the turn. */
struct codec_shared {
	struct codec_request request; /* written by the host */
	int32_t result;               /* written by the process, as is the output */
	uint32_t overwrote; /* 1: the plug-in wrote outside of a buffer, the process ends */
	_Alignas(64) uint8_t in[CODEC_SHARED_BYTES];
	_Alignas(64) uint8_t out[CODEC_SHARED_BYTES];
};

/* The first message of the program. */
struct codec_hello {
	uint32_t loaded;   /* 0: refused, why has the reason */
	uint32_t landlock; /* 1: the plug-in's files are limited by Landlock, too */
	char why[CODEC_WHY_MAX];
	char name[CODEC_NAME_MAX], version[CODEC_NAME_MAX], license[CODEC_NAME_MAX];
	uint32_t codecs;
	uint32_t resampler; /* 1: it has one, which isolation cannot use */
	struct codec_about about[XCIPHER_CODEC_MAX_CODECS];
};

/* Then the host sends a byte with two descriptors, the memory and a socket, for each stream. The
 * answer is an int32_t, 0 or -errno, with a descriptor of the new process. */

#endif
