/* SPDX-License-Identifier: GPL-2.0-or-later */
/* t/vectors/srtp.json as structs: 240 cases, 20 for each suite (described there by their field
 * names). */
#ifndef UNIT_VECTORS_H
#define UNIT_VECTORS_H

#include "srtp/kdf.h"

#define VECTORS_PATH    "t/vectors/srtp.json"
#define VECTORS_MAX_PKT 2048

struct vector_bytes {
	uint8_t b[VECTORS_MAX_PKT];
	uint32_t len;
};

struct vector {
	/* without its MKI: those of the vectors are longer than signalling allows */
	struct srtp_master master;
	uint8_t mki[128];
	uint32_t mki_len;
	uint32_t roc, srtcp_index;
	bool srtcp_encrypted;
	struct vector_bytes rtp, srtp, rtcp, srtcp;
	struct srtp_session_keys session[2]; /* SRTP, SRTCP */
};

/* Loads the vectors. NULL, with the cause on stderr: a missing or malformed file. Free with
 * free(). */
struct vector *vectors_load(const char *path, size_t *n);

#endif
