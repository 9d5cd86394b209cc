/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one table of SRTP crypto suites: RFC 3711, 4568 6.2, 6188, 7714. */
#ifndef SRTP_SUITE_H
#define SRTP_SUITE_H

#include "base/bytes.h"

#define SUITE_MAX_KEY_LEN  32
#define SUITE_MAX_SALT_LEN 14
#define SUITE_MAX_TAG_LEN  16
#define SUITE_MAX_MKI_LEN  128 /* bytes in a packet (RFC 4568 9.2) */
/* An MKI is a number. Signalling refuses numbers above 16 bytes, so any bytes before the last 16
 * are zeroes and are not stored. */
#define SUITE_MKI_KEPT 16

/* The suites, one row each; all else derives from it: SDP, keys, engines, policy (module/policy.c),
 * the columns of xcipherctl. In the order in which generated offers prefer them. Records of calls
 * store the numbers: a new row goes to the end.
 * X(id, name, alias, brief, cipher, auth, key, salt, SRTP tag, SRTCP tag, RFC)
 * brief: as xcipherctl shows it; after the last "_", if there is one, as in name. */
/* clang-format off */
#define SRTP_SUITES(X) \
	X(AEAD_AES_256_GCM, "AEAD_AES_256_GCM", "", "GCM256", \
		GCM, GCM, 32, 12, 16, 16, "RFC 7714") \
	X(AEAD_AES_128_GCM, "AEAD_AES_128_GCM", "", "GCM128", \
		GCM, GCM, 16, 12, 16, 16, "RFC 7714") \
	X(AES_256_CM_80, "AES_256_CM_HMAC_SHA1_80", "AES_CM_256_HMAC_SHA1_80", "CM256_80", \
		AES_CM, HMAC_SHA1, 32, 14, 10, 10, "RFC 6188") \
	X(AES_256_CM_32, "AES_256_CM_HMAC_SHA1_32", "AES_CM_256_HMAC_SHA1_32", "CM256_32", \
		AES_CM, HMAC_SHA1, 32, 14, 4, 10, "RFC 6188") \
	X(AES_192_CM_80, "AES_192_CM_HMAC_SHA1_80", "AES_CM_192_HMAC_SHA1_80", "CM192_80", \
		AES_CM, HMAC_SHA1, 24, 14, 10, 10, "RFC 6188") \
	X(AES_192_CM_32, "AES_192_CM_HMAC_SHA1_32", "AES_CM_192_HMAC_SHA1_32", "CM192_32", \
		AES_CM, HMAC_SHA1, 24, 14, 4, 10, "RFC 6188") \
	X(AES_CM_128_80, "AES_CM_128_HMAC_SHA1_80", "AES_128_CM_HMAC_SHA1_80", "CM128_80", \
		AES_CM, HMAC_SHA1, 16, 14, 10, 10, "RFC 4568") \
	X(AES_CM_128_32, "AES_CM_128_HMAC_SHA1_32", "AES_128_CM_HMAC_SHA1_32", "CM128_32", \
		AES_CM, HMAC_SHA1, 16, 14, 4, 10, "RFC 4568") \
	X(F8_128_80, "F8_128_HMAC_SHA1_80", "AES_F8_128_HMAC_SHA1_80", "F8_80", \
		AES_F8, HMAC_SHA1, 16, 14, 10, 10, "RFC 4568") \
	X(F8_128_32, "F8_128_HMAC_SHA1_32", "AES_F8_128_HMAC_SHA1_32", "F8_32", \
		AES_F8, HMAC_SHA1, 16, 14, 4, 10, "RFC 3711") \
	X(NULL_80, "NULL_HMAC_SHA1_80", "", "NULL_80", \
		NULL, HMAC_SHA1, 16, 14, 10, 10, "RFC 3711") \
	X(NULL_32, "NULL_HMAC_SHA1_32", "", "NULL_32", \
		NULL, HMAC_SHA1, 16, 14, 4, 10, "RFC 3711")
/* clang-format on */

enum srtp_suite_id {
	SUITE_PLAIN, /* plain RTP and RTCP */
#define X(id, ...) SUITE_##id,
	SRTP_SUITES(X)
#undef X
		SUITE_COUNT
};

struct srtp_suite {
	enum srtp_suite_id id;
	const char *name;     /* as written in SDP; "" for SUITE_PLAIN */
	const char *alias;    /* a spelling of deployed phones, or "" */
	const char *brief;    /* for tables */
	uint32_t cipher;      /* XC_CIPHER_* of kernels/layout.h */
	uint32_t auth;        /* XC_AUTH_* */
	uint8_t key_len;      /* bytes of the master key (and of the session encryption key) */
	uint8_t salt_len;     /* bytes of the master salt */
	uint8_t rtp_tag_len;  /* bytes */
	uint8_t rtcp_tag_len; /* bytes */
	const char *rfc;
};

/* Number of bytes stored of an MKI of this length: the last ones. */
static inline uint32_t srtp_mki_kept(uint32_t len)
{
	return min_u32(len, SUITE_MKI_KEPT);
}

/* Whether the len bytes of a packet are this MKI. It is public, so the comparison need not be
 * constant-time. */
static inline bool srtp_mki_is(
	const uint8_t *packet, const uint8_t kept[SUITE_MKI_KEPT], uint32_t len)
{
	while (len > SUITE_MKI_KEPT) {
		if (*packet++)
			return false;
		len--;
	}
	return memcmp(packet, kept, len) == 0;
}

static inline void srtp_mki_put(uint8_t *packet, const uint8_t kept[SUITE_MKI_KEPT], uint32_t len)
{
	while (len > SUITE_MKI_KEPT) {
		*packet++ = 0;
		len--;
	}
	memcpy(packet, kept, len);
}

/* NULL only for an id out of range. */
const struct srtp_suite *srtp_suite_get(enum srtp_suite_id id);
/* By name or alias, ASCII case-insensitive; NULL if unknown or empty. */
const struct srtp_suite *srtp_suite_find(struct str name);

#endif
