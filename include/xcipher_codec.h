/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface of audio codec plug-ins, version 1. xcipher-codec(7) explains it, template.c is a
 * complete example, and xcipher-codec-test(1) tests a plug-in against these rules.
 *
 * A plug-in is a shared object that exports xcipher_codec_plugin() and nothing else. It describes
 * one or more codecs by constant tables of functions.
 *
 * Units     PCM is int16_t in host order. Channels are interleaved. Counts of samples are per
 *           channel. Capacities of PCM buffers are counts of samples, too. Lengths are bytes.
 * Memory    The caller owns every buffer, and the memory of states and parameters. A function
 *           reads and writes only what it gets, and within the given lengths. It may leave
 *           anything in an output buffer when it fails.
 * Errors    A negative errno. -EBADMSG: the payload does not belong to the codec. -ENOSPC: the
 *           result does not fit. -EINVAL: a parameter or a count of samples that the codec does
 *           not have. -ENOMEM. After an error a state must remain usable.
 * Input     Payloads and fmtp texts come from strangers. Any bytes of any length up to 65,535
 *           must be survived. Inputs need not be aligned, and are not terminated.
 * Threads   Any thread may call. Calls for one state never overlap; those for different states do.
 *           A plug-in has no writable globals, starts no threads or processes, installs no signal
 *           handlers, prints nothing, and opens no files or sockets after its constructors ran.
 * Time      A function returns within a millisecond for 20 ms of audio. A plug-in that does not
 *           return is killed if it runs in a process of its own.
 * Versions  Each structure starts with its size. A later version only appends members. A reader
 *           takes members beyond the size as zero.
 */
#ifndef XCIPHER_CODEC_H
#define XCIPHER_CODEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XCIPHER_CODEC_ABI        1
#define XCIPHER_CODEC_SYMBOL     "xcipher_codec_plugin"
#define XCIPHER_CODEC_MAX_STATE  (1U << 20) /* bytes of a state */
#define XCIPHER_CODEC_MAX_PARAMS 256U       /* bytes of a parameter block */
#define XCIPHER_CODEC_MAX_ALIGN  64U
#define XCIPHER_CODEC_MAX_CODECS 64U   /* codecs of a plug-in */
#define XCIPHER_CODEC_MAX_PCM    5760U /* samples of a call: 120 ms at 48 kHz */
#define XCIPHER_CODEC_MAX_RATE   48000U

/* The state holds no pointers and no resources: it may be copied and moved. */
#define XCIPHER_CODEC_PLAIN_STATE 1U
/* Packets may be left out in silence if the wish has dtx. */
#define XCIPHER_CODEC_HAS_DTX 2U

/* Wishes about an encoder. All members may be zero: the codec's own choice. */
struct xcipher_codec_wish {
	uint32_t size;
	uint32_t bitrate;     /* bits per second */
	uint8_t dtx;          /* 1: send nothing, or comfort noise, in silence */
	uint8_t fec;          /* 1: add redundancy, if the codec has it */
	uint8_t loss_percent; /* expected loss, 0 to 100 */
	uint8_t has_mode;     /* 1: mode is set */
	uint8_t mode;         /* the mode that the far end requested (AMR's CMR) */
	uint8_t has_request;  /* 1: request is set */
	uint8_t request;      /* the mode to request from the far end */
	uint8_t zero;
};

/* Why a decoder has no payload. */
enum xcipher_codec_gap {
	XCIPHER_CODEC_LOST = 0,   /* a packet was lost */
	XCIPHER_CODEC_SILENT = 1, /* the sender is silent and sends nothing (DTX) */
};

/* One unit of a batch. result is what the single function would return. Each has a state of its
 * own. */
struct xcipher_codec_job {
	void *state;
	const uint8_t *in; /* encode: the samples, aligned for int16_t */
	size_t in_len;     /* decode: bytes; encode: samples */
	uint8_t *out;      /* decode: the samples, aligned for int16_t */
	size_t out_cap;    /* decode: samples; encode: bytes */
	int result;
};

/* A conversion of payloads to another codec without PCM between. */
struct xcipher_codec_direct {
	uint32_t size;
	uint32_t to_clock;    /* RTP clock of the other codec, Hz */
	const char *to;       /* its RTP encoding name */
	uint32_t to_channels; /* its channels */
	uint32_t state_size;  /* 0: there is none, and state is NULL */
	int (*init)(void *state);
	/* Returns the bytes written, or -EBADMSG or -ENOSPC. in and out do not overlap. */
	int (*convert)(void *state, const uint8_t *in, size_t in_len, uint8_t *out, size_t cap);
};

struct xcipher_codec {
	uint32_t size;
	uint32_t flags;
	const char *name; /* RTP encoding name: letters, digits, - . _ ; at most 31 */
	uint32_t clock;   /* RTP clock, Hz */
	/* Rate of the PCM, Hz: 8000 to 48000. A codec that can do several has a row for each, the
	 * usual one first. The host takes the rate of the other terminal's codec. */
	uint32_t rate;
	uint32_t channels;      /* of the PCM: 1 or 2 */
	int32_t static_pt;      /* static payload type (RFC 3551), or -1 */
	uint32_t ptime;         /* default packet time, ms */
	uint32_t frame_samples; /* encode takes multiples of this */
	uint32_t params_size;   /* at most XCIPHER_CODEC_MAX_PARAMS; 0: the codec has none */
	uint32_t dec_size;      /* at most XCIPHER_CODEC_MAX_STATE, may be 0 */
	uint32_t enc_size;
	uint32_t align; /* of parameters and states: a power of two, at most MAX_ALIGN */

	/* Fills params from the value of a=fmtp after the payload type. len 0: the defaults.
	 * Ignores parameters that it does not know. -EINVAL: a value excludes the use of the codec.
	 * params holds no pointers. May be NULL: any text is accepted. */
	int (*fmtp_parse)(void *params, const char *text, size_t len);
	/* Writes a text that fmtp_parse accepts, without a terminator. Returns its length, 0 if
	 * there is nothing to say, or -ENOSPC. May be NULL. */
	int (*fmtp_write)(const void *params, char *out, size_t cap);

	/* init prepares zeroed memory of dec_size bytes. fini releases what init took, and is
	 * called once per successful init. May be NULL. */
	int (*dec_init)(void *dec, const void *params);
	void (*dec_fini)(void *dec);
	/* Decodes a payload of one or more frames. Returns the samples, which may be 0. */
	int (*decode)(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap);
	/* Fills a gap of that many samples, a multiple of frame_samples. Returns the samples.
	 * NULL: the host conceals. */
	int (*conceal)(
		void *dec, enum xcipher_codec_gap why, size_t samples, int16_t *pcm, size_t cap);
	/* Decodes the packet before a given one from that one's redundancy. Returns the samples, or
	 * -ENOENT if the packet has none. Call decode with the packet next. May be NULL. */
	int (*recover)(void *dec, const uint8_t *next, size_t len, int16_t *pcm, size_t cap);
	/* The mode that the far end requested in the last payload, or -ENOENT. May be NULL. */
	int (*requested)(const void *dec);

	/* As dec_init and dec_fini. A codec without encode only decodes. */
	int (*enc_init)(void *enc, const void *params, const struct xcipher_codec_wish *wish);
	void (*enc_fini)(void *enc);
	/* Encodes samples, a multiple of frame_samples up to 120 ms, as one payload. Returns its
	 * length. 0: silence, send nothing (only with dtx). */
	int (*encode)(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap);
	/* Changes the wishes between two payloads. May be NULL. */
	int (*adapt)(void *enc, const struct xcipher_codec_wish *wish);

	/* May be NULL. Arrays of direct_n; functions for many streams. */
	const struct xcipher_codec_direct *direct;
	uint32_t direct_n;
	uint32_t zero;
	void (*decode_batch)(struct xcipher_codec_job *job, size_t n);
	void (*encode_batch)(struct xcipher_codec_job *job, size_t n);
};

/* Converts PCM between rates. */
struct xcipher_resampler {
	uint32_t size;
	uint32_t state_size;
	uint32_t align;
	uint32_t zero;
	int (*init)(void *state, uint32_t channels, uint32_t from_rate, uint32_t to_rate);
	void (*fini)(void *state);
	/* Takes all samples of in. Returns the samples written, or -ENOSPC. */
	int (*run)(void *state, const int16_t *in, size_t samples, int16_t *out, size_t cap);
};

struct xcipher_codec_plugin {
	uint32_t abi;  /* XCIPHER_CODEC_ABI */
	uint32_t size; /* sizeof(struct xcipher_codec_plugin) */
	const char *name, *version, *license;
	const struct xcipher_codec *const *codec;
	uint32_t codecs;
	uint32_t zero;
	const struct xcipher_resampler *resampler; /* or NULL */
};

/* The one symbol that a plug-in exports. The tables stay valid until it is unloaded. NULL: the
 * plug-in cannot work on this machine. */
const struct xcipher_codec_plugin *xcipher_codec_plugin(void);

#define XCIPHER_CODEC_EXPORT __attribute__((visibility("default")))

/* --- Help for plug-ins ------------------------------------------------------------------------ */

/* A walk through an fmtp text. The caller sets text and len, and zeroes the rest. */
struct xcipher_fmtp {
	const char *text;
	size_t len;
	size_t at;               /* where the next parameter starts */
	const char *key, *value; /* the current parameter, slices of text */
	size_t key_len, value_len;
};

/* Steps to the next parameter of a text like "a=1; b = 2;c". Returns 1, or 0 at the end. The key
 * or the value may be empty. Reads len bytes at most. */
static inline int xcipher_fmtp_next(struct xcipher_fmtp *f)
{
	const char *text = f->text;
	size_t len = f->len, i = f->at, end, eq;

	while (i < len && (text[i] == ';' || text[i] == ' ' || text[i] == '\t'))
		i++;
	if (i >= len)
		return 0;
	for (end = i; end < len && text[end] != ';'; end++)
		;
	f->at = end;
	while (text[end - 1] == ' ' || text[end - 1] == '\t')
		end--; /* stops at i at the latest, which is neither */
	for (eq = i; eq < end && text[eq] != '='; eq++)
		;
	f->key = text + i;
	f->value = text + (eq < end ? eq + 1 : end);
	while (f->value < text + end && (*f->value == ' ' || *f->value == '\t'))
		f->value++;
	f->value_len = (size_t)(text + end - f->value);
	while (eq > i && (text[eq - 1] == ' ' || text[eq - 1] == '\t'))
		eq--;
	f->key_len = eq - i;
	return 1;
}

/* Compares a slice with a word, letters of either case. */
static inline int xcipher_fmtp_is(const char *s, size_t len, const char *word)
{
	size_t i;

	for (i = 0; i < len && word[i]; i++)
		if ((s[i] | (s[i] >= 'A' && s[i] <= 'Z' ? 0x20 : 0)) !=
			(word[i] | (word[i] >= 'A' && word[i] <= 'Z' ? 0x20 : 0)))
			return 0;
	return i == len && !word[i];
}

/* A decimal number up to max, or -1. */
static inline int64_t xcipher_fmtp_number(const char *s, size_t len, uint32_t max)
{
	uint64_t n = 0;

	if (len == 0 || len > 10)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		n = n * 10 + (uint64_t)(s[i] - '0');
	}
	return n <= max ? (int64_t)n : -1;
}

#ifdef __cplusplus
}
#endif

#endif
