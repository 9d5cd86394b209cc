/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Derives session keys from a master key and salt: RFC 3711 4.3 (and RFC 6188, 7714 11). */
#ifndef SRTP_KDF_H
#define SRTP_KDF_H

#include "layout.h"
#include "srtp/suite.h"

struct srtp_master {
	enum srtp_suite_id suite;
	uint8_t key[SUITE_MAX_KEY_LEN];   /* suite's key_len bytes */
	uint8_t salt[SUITE_MAX_SALT_LEN]; /* suite's salt_len bytes */
	uint8_t mki[SUITE_MKI_KEPT];      /* srtp_mki_kept(mki_len) bytes */
	uint8_t mki_len;                  /* 0 = no MKI */
	/* Session parameters of the crypto line (RFC 4568 6.1, 6.3). The same key with other
	 * parameters remains the same key: it gets another slot, and no index is reset. */
	uint8_t kdr; /* session keys change every 2^kdr packets, 1 to SRTP_KDR_MAX; 0 = never */
	bool no_rtp_auth; /* UNAUTHENTICATED_SRTP; not with AEAD suites */
	/* packets that SRTP and SRTCP may protect; 0 = the limit of RFC 3711 9.2 */
	uint64_t lifetime;
};
#define SRTP_KDR_MAX 24 /* RFC 3711 4.3.1, RFC 4568 6.3.1 */

struct srtp_session_keys {
	uint8_t enc[SUITE_MAX_KEY_LEN];
	uint8_t auth[20];
	uint8_t salt[SUITE_MAX_SALT_LEN];
};

/* The session keys of SRTP (rtcp = false) or SRTCP; r: the packet index DIV the key derivation rate
 * (RFC 3711 4.3.1), 0 without one. 0, or -EINVAL for an unknown suite. */
int srtp_kdf(struct srtp_session_keys *out, const struct srtp_master *m, bool rtcp, uint64_t r);

/* Derives len bytes of key material under this label (RFC 3711 4.3.1), with r = 0. 0, or -EINVAL
 * for a suite without encryption. */
int srtp_kdf_label(uint8_t *out, unsigned len, const struct srtp_master *m, uint8_t label);

/* Fills the two key slots of a context, pair[0] for SRTP and pair[1] for SRTCP, for any engine:
 * round keys, HMAC states, salt, tag length. With a kdr they are those of r = 0. For SUITE_PLAIN
 * both become "plain". 0, or -EINVAL for an impossible combination (kdr above SRTP_KDR_MAX, AEAD
 * without authentication). On error the pair is wiped. */
int srtp_key_fill(struct xc_key pair[2], const struct srtp_master *m);

/* Fills one slot from known session keys. slot must be zeroed before. */
void srtp_slot_fill(struct xc_key *slot, const struct srtp_suite *s,
	const struct srtp_session_keys *k, bool rtcp);

/* For keys with a kdr. The first function stores the master key's round keys and salt in a slot of
 * the key table. This slot is never valid for jobs, and is wiped like any other. The second derives
 * the slot of epoch r from it: about 10 microseconds, no allocation. */
void srtp_vault_fill(struct xc_key *vault, const struct srtp_master *m);
void srtp_slot_derive(struct xc_key *slot, const struct xc_key *vault, enum srtp_suite_id suite,
	bool no_rtp_auth, bool rtcp, uint64_t r);

#endif
