/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTP payloads of AMR and AMR-WB (RFC 4867), for the two plug-ins: octet-aligned and
 * bandwidth-efficient, mode requests (CMR), and fmtp. The libraries' frames are a byte with type
 * and quality, then the bits of the frame from the highest on: as in files (section 5.3). */
#ifndef CODECS_AMR_RTP_H
#define CODECS_AMR_RTP_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "xcipher_codec.h"

enum {
	AMR_MAX_FRAMES = 32,  /* of a payload: more than the 120 ms of a host, for other senders */
	AMR_FRAME_BYTES = 64, /* room for any frame */
	AMR_NO_REQUEST = 15,
	AMR_LOST = 14, /* frame type of AMR-WB without bits */
	AMR_NO_DATA = 15,
	AMR_NONE = 0x7c, /* a library's frame without data */
};

/* Differences between the two codecs. */
struct amr_kind {
	uint16_t bits[10]; /* of frame types 0 to 9; 0: there is none */
	uint32_t bitrate[9];
	uint8_t modes; /* 8 or 9; the next type is a description of noise (SID) */
};

/* Functions of a codec's library. Frames are as above. */
struct amr_library {
	void *(*decoder)(void); /* NULL: no memory */
	void (*decoder_end)(void *decoder);
	void (*decode)(void *decoder, const uint8_t *frame, int16_t *pcm);
	void *(*encoder)(int dtx); /* NULL: no memory */
	void (*encoder_end)(void *encoder);
	void (*encode)(void *encoder, unsigned mode, const int16_t *pcm, uint8_t *frame, bool dtx);
	bool dtx_at_start; /* the encoder takes DTX when it starts: a change starts it again */
};

struct amr_params {
	uint32_t aligned;  /* octet-align=1 */
	uint32_t mode_set; /* bit m: mode m is allowed; 0: all */
	bool every_other;  /* mode-change-period=2 */
	bool neighbor;     /* mode-change-neighbor=1 */
};

struct amr_modes { /* mode changes of an encoder */
	uint8_t mode;
	bool begun, odd; /* odd: an odd number of frames since the first */
};

struct amr_frame {
	uint8_t bytes[AMR_FRAME_BYTES]; /* in the library's format */
};

/* --- fmtp (section 8) ------------------------------------------------------------------------- */

static inline int amr_mode_set(uint32_t *set, const char *s, size_t len, uint32_t modes)
{
	*set = 0;
	for (size_t i = 0; i < len; i++) {
		if (i % 2 == 0 && s[i] >= '0' && (uint32_t)(s[i] - '0') < modes)
			*set |= 1U << (s[i] - '0');
		else if (i % 2 == 0 || s[i] != ',')
			return -EINVAL;
	}
	return *set ? 0 : -EINVAL;
}

/* CRCs, sorting by sensitivity, interleaving and more channels than one are refused. */
static inline int amr_fmtp_parse(
	struct amr_params *p, const struct amr_kind *k, const char *text, size_t len)
{
	struct xcipher_fmtp f = {.text = text, .len = len};

	*p = (struct amr_params){0};
	while (xcipher_fmtp_next(&f)) {
		int64_t n = xcipher_fmtp_number(f.value, f.value_len, UINT32_MAX);

		if (xcipher_fmtp_is(f.key, f.key_len, "octet-align")) {
			if (n != 0 && n != 1)
				return -EINVAL;
			p->aligned = (uint32_t)n;
		} else if (xcipher_fmtp_is(f.key, f.key_len, "mode-set")) {
			if (amr_mode_set(&p->mode_set, f.value, f.value_len, k->modes))
				return -EINVAL;
		} else if (xcipher_fmtp_is(f.key, f.key_len, "mode-change-period")) {
			p->every_other = n == 2;
		} else if (xcipher_fmtp_is(f.key, f.key_len, "mode-change-neighbor")) {
			p->neighbor = n == 1;
		} else if (xcipher_fmtp_is(f.key, f.key_len, "crc") ||
			xcipher_fmtp_is(f.key, f.key_len, "robust-sorting") ||
			xcipher_fmtp_is(f.key, f.key_len, "interleaving")) {
			if (n != 0)
				return -EINVAL;
		} else if (xcipher_fmtp_is(f.key, f.key_len, "channels") && n != 1) {
			return -EINVAL;
		}
	}
	return 0;
}

static inline int amr_fmtp_write(const struct amr_params *p, char *out, size_t cap)
{
	char text[64];
	size_t n = 0;

	if (p->aligned)
		n += (size_t)snprintf(text, sizeof(text), "octet-align=1");
	for (uint32_t m = 0, first = 1; m < 9; m++)
		if (p->mode_set & 1U << m) {
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u",
				!first      ? ","
					: n ? ";mode-set="
					    : "mode-set=",
				m);
			first = 0;
		}
	if (n > cap)
		return -ENOSPC;
	memcpy(out, text, n);
	return (int)n;
}

/* --- Bits ------------------------------------------------------------------------------------- */

struct amr_bits {
	const uint8_t *in;
	uint8_t *out;
	size_t at, end; /* in bits */
};

/* The next n bits, at most 8, or -1. */
static inline int amr_get(struct amr_bits *b, unsigned n)
{
	unsigned v = 0;

	if (b->at + n > b->end)
		return -1;
	for (; n > 0; n--, b->at++)
		v = v << 1 | (b->in[b->at / 8] >> (7 - b->at % 8) & 1);
	return (int)v;
}

/* out must be zero, and have room. */
static inline void amr_put(struct amr_bits *b, unsigned v, unsigned n)
{
	for (; n > 0; n--, b->at++)
		b->out[b->at / 8] |= (uint8_t)((v >> (n - 1) & 1) << (7 - b->at % 8));
}

static inline size_t amr_round(size_t bits, bool aligned)
{
	return aligned ? (bits + 7) / 8 * 8 : bits;
}

/* Whether the codec has frames of the type, and how many bits they have. */
static inline bool amr_type_bits(const struct amr_kind *k, unsigned type, size_t *bits)
{
	*bits = type <= k->modes ? k->bits[type] : 0;
	return type <= k->modes || type == AMR_NO_DATA || (k->modes == 9 && type == AMR_LOST);
}

/* --- Payloads (sections 4.3 and 4.4) ---------------------------------------------------------- */

/* Reads all of a payload. Returns the number of frames, or -EBADMSG. *request: the mode that the
 * far end wants, or AMR_NO_REQUEST. */
static inline int amr_read(const struct amr_kind *k, bool aligned, const uint8_t *in, size_t len,
	struct amr_frame *f, unsigned *request)
{
	struct amr_bits b = {.in = in, .end = len * 8};
	int cmr = amr_get(&b, 4), toc = 0, n = 0;
	size_t bits = 0;

	if (aligned)
		amr_get(&b, 4);
	do { /* the table of contents: more, type, quality */
		toc = amr_get(&b, 6);
		if (cmr < 0 || toc < 0 || n == AMR_MAX_FRAMES ||
			!amr_type_bits(k, toc >> 1 & 15, &bits))
			return -EBADMSG;
		if (aligned)
			amr_get(&b, 2);
		f[n++].bytes[0] = (uint8_t)((toc & 31) << 2);
	} while (toc & 32);
	for (int i = 0; i < n; i++) {
		amr_type_bits(k, f[i].bytes[0] >> 3, &bits);
		memset(f[i].bytes + 1, 0, sizeof(f[i].bytes) - 1);
		for (size_t done = 0; done < bits; done += 8) {
			unsigned some = bits - done < 8 ? (unsigned)(bits - done) : 8;
			int v = amr_get(&b, some);

			if (v < 0)
				return -EBADMSG;
			f[i].bytes[1 + done / 8] = (uint8_t)(v << (8 - some));
		}
		b.at = amr_round(b.at, aligned);
	}
	*request = (unsigned)cmr < k->modes ? (unsigned)cmr : AMR_NO_REQUEST;
	return n;
}

/* Content of a payload: n frames of the library, and the mode requested from the far end. */
struct amr_payload {
	const struct amr_frame *frame;
	size_t n;
	unsigned request; /* CMR, or AMR_NO_REQUEST */
	bool aligned;     /* octet-aligned, else bandwidth-efficient */
};

/* Writes a payload. Returns its bytes, -ENOSPC, or 0 if no frame has data. */
static inline int amr_write(
	const struct amr_kind *k, const struct amr_payload *p, uint8_t *out, size_t cap)
{
	const struct amr_frame *f = p->frame;
	const bool aligned = p->aligned;
	const size_t n = p->n;
	struct amr_bits b = {.out = out};
	size_t total = aligned ? 8 + 8 * n : 4 + 6 * n, bits = 0, any = 0;

	for (size_t i = 0; i < n; i++) {
		amr_type_bits(k, f[i].bytes[0] >> 3 & 15, &bits);
		total += amr_round(bits, aligned);
		any += bits;
	}
	if (any == 0)
		return 0;
	if ((total + 7) / 8 > cap)
		return -ENOSPC;
	memset(out, 0, (total + 7) / 8);
	amr_put(&b, p->request, 4);
	b.at = amr_round(b.at, aligned);
	for (size_t i = 0; i < n; i++) {
		amr_put(&b, (i + 1 < n ? 32U : 0U) | (f[i].bytes[0] >> 2 & 31), 6);
		b.at = amr_round(b.at, aligned);
	}
	for (size_t i = 0; i < n; i++) {
		amr_type_bits(k, f[i].bytes[0] >> 3 & 15, &bits);
		for (size_t done = 0; done < bits; done += 8) {
			unsigned some = bits - done < 8 ? (unsigned)(bits - done) : 8;

			amr_put(&b, f[i].bytes[1 + done / 8] >> (8 - some), some);
		}
		b.at = amr_round(b.at, aligned);
	}
	return (int)((total + 7) / 8);
}

/* The mode to encode with: that of the request, else that of the bitrate, else the highest. Of the
 * mode set, the highest one that is not above; if there is none, the lowest. */
static inline unsigned amr_choose(
	const struct amr_kind *k, const struct amr_params *p, const struct xcipher_codec_wish *w)
{
	uint32_t set = p->mode_set ? p->mode_set : (1U << k->modes) - 1;
	unsigned mode = k->modes - 1U, chosen = k->modes;

	if (w->has_mode && w->mode < k->modes)
		mode = w->mode;
	else
		while (w->bitrate && mode > 0 && k->bitrate[mode] > w->bitrate)
			mode--;
	for (unsigned m = 0; m < k->modes; m++)
		if (set & 1U << m && (m <= mode || chosen == k->modes))
			chosen = m;
	return chosen;
}

/* The mode of the next frame. Moves toward amr_choose() as the terminal's fmtp allows: in any frame
 * or in every other one, and to any mode or to the next one of the set (RFC 4867 8.1). */
static inline unsigned amr_next_mode(struct amr_modes *now, const struct amr_kind *k,
	const struct amr_params *p, const struct xcipher_codec_wish *w)
{
	uint32_t set = p->mode_set ? p->mode_set : (1U << k->modes) - 1;
	unsigned to = amr_choose(k, p, w), mode = now->mode;

	if (!now->begun || (!p->neighbor && !(p->every_other && now->odd)))
		mode = to;
	else if (to != mode && !(p->every_other && now->odd))
		do
			mode = to > mode ? mode + 1 : mode - 1;
		while (mode != to && !(set >> mode & 1));
	*now = (struct amr_modes){.mode = (uint8_t)mode, .begun = true, .odd = !now->odd};
	return mode;
}

static inline unsigned amr_request(const struct amr_kind *k, const struct xcipher_codec_wish *w)
{
	return w->has_request && w->request < k->modes ? w->request : AMR_NO_REQUEST;
}

#endif
