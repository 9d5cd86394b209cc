/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cache of retained secrets (RFC 6189 4.9), by the ZID of the terminal. It is bounded: a new
 * entry replaces the least recently used one. Keying threads read and write it during exchanges.
 * The control thread marks entries as verified and saves them. All functions hold a lock for less
 * than a microsecond, except zrtp_store_write(), which copies all entries. */
#ifndef KEYING_ZRTP_STORE_H
#define KEYING_ZRTP_STORE_H

#include "base/sbuf.h"
#include "keying/zrtp.h"

struct zrtp_store_config {
	uint32_t max;             /* entries */
	uint64_t life_s;          /* an entry expires this long after its last exchange; 0: never */
	uint64_t real_s, mono_ns; /* the same moment by both clocks, see zrtp_store_clock() */
	bool preshared;           /* exchanges may use preshared mode */
};

struct zrtp_store;

/* Creates an empty store with a random ZID of ours. 0, -EINVAL (max is 0), -ENOMEM or -EIO. */
int zrtp_store_create(struct zrtp_store **out, const struct zrtp_store_config *c);
void zrtp_store_destroy(struct zrtp_store *s); /* wipes it; NULL is fine */
/* Our ZID [ZRTP_ZID]. Only zrtp_store_read() changes it. */
const uint8_t *zrtp_store_zid(const struct zrtp_store *s);
bool zrtp_store_preshared(const struct zrtp_store *s); /* as configured; NULL: false */

/* Gives the present time by both clocks. Sessions pass the monotonic clock. Saved entries have an
 * expiry by the real one, which may be set while the daemon runs. Effects of a jump of the real
 * clock:
 * - Entries made since the start: none, because they expire by the monotonic clock. Saving converts
 *   their expiry to the real clock of that moment. A jump of a minute counts as a change, so they
 *   are saved again.
 * - Entries that were read: they expire at the real time that was saved. If the clock is not set
 *   yet, they stay. If it is ahead, they expire early, and their users compare the SAS again. */
void zrtp_store_clock(struct zrtp_store *s, uint64_t real_s, uint64_t mono_ns);

/* Writes the secrets shared with this terminal to *out, which the caller wipes. False: none. */
bool zrtp_store_get(struct zrtp_store *s, const uint8_t zid[ZRTP_ZID], uint64_t mono_ns,
	struct zrtp_secrets *out);
struct zrtp_kept { /* results of an exchange that are kept */
	struct zrtp_secrets secrets;
	uint8_t sas_hash[ZRTP_SAS_HASH]; /* of this exchange, and no other */
	uint32_t seconds; /* for which the terminal asks to keep them; 0: not at all */
	/* The terminal lost its secrets, or somebody else answers (4.6.1.1). They are put aside
	 * until zrtp_store_verify(). */
	bool mismatched;
};
/* Verified secrets are replaced only by an exchange that began with them or with their
 * predecessors. Other secrets are kept aside, like those of a mismatch. */
void zrtp_store_put(struct zrtp_store *s, const uint8_t zid[ZRTP_ZID], uint64_t mono_ns,
	const struct zrtp_kept *what);
/* This SAS was compared, or not after all. Secrets of its exchange that were put aside come into
 * force. False: the entry has no secrets of that exchange, so nothing becomes verified. */
bool zrtp_store_verify(struct zrtp_store *s, const uint8_t zid[ZRTP_ZID],
	const uint8_t sas_hash[ZRTP_SAS_HASH], bool verified);
uint32_t zrtp_store_count(struct zrtp_store *s);

/* --- Saving ----------------------------------------------------------------------------------- */

/* Differs from the last saved version if there are changes to save. */
uint64_t zrtp_store_version(struct zrtp_store *s);
/* Appends our ZID and all entries in the clear. Call zrtp_store_clock() before. The caller encrypts
 * and wipes them. 0 or -ENOMEM. */
int zrtp_store_write(struct zrtp_store *s, struct sbuf *out);
/* Reads the bytes of zrtp_store_write(), except expired entries. Call it before the threads start.
 * 0; -EBADMSG: other bytes, nothing changed. */
int zrtp_store_read(struct zrtp_store *s, struct str bytes, uint64_t mono_ns);

#endif
