/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One DTLS-SRTP association (RFC 5763, 5764, 8842): from packets to SRTP keys. It has no socket and
 * reads no clock: the caller passes packets and monotonic time, and sends the packets it makes.
 * RTP and RTCP without mux are two associations.
 *
 * Use: dtls_create(), dtls_start(), dtls_take() for each packet, dtls_tick() at dtls_deadline().
 * After each of these: dtls_next() until it returns 0, then dtls_state(). With DTLS_OPEN:
 * dtls_keys(). An association belongs to one thread at a time.
 *
 * dtls_take() trusts its caller about the source: proven by ICE, by dtls_gate.h, or, for a client,
 * equal to the address to which the ClientHello was sent.
 *
 * Time: the library's retransmission timer reads gettimeofday(). The timer's durations come from
 * the configuration, and every decision here is by the caller's clock. One effect remains: a wall
 * clock that is set back during a handshake delays retransmissions, at most until give_up_ns.
 *
 * Memory: struct dtls itself until the first packet of a server or dtls_start() of a client; then
 * OpenSSL's memory until the handshake ended and hold_ns passed, or dtls_settle(). Then OpenSSL's
 * memory is freed, and so are the fingerprints. Our close_notify is made before, and kept as bytes.
 * From then on packets of the peer are dropped, close_notify included: signalling has to report the
 * end. */
#ifndef KEYING_DTLS_H
#define KEYING_DTLS_H

#include "keying/dtls_cert.h"
#include "keying/dtls_filter.h"
#include "srtp/kdf.h"

/* SRTP protection profiles (RFC 5764 4.1.2, RFC 7714 14.2). The two NULL profiles are missing on
 * purpose: they are neither offered nor accepted.
 * X(suite, number, OpenSSL's name, RFC's name) */
/* clang-format off */
#define DTLS_PROFILES(X) \
	X(AEAD_AES_256_GCM, 0x0008, "SRTP_AEAD_AES_256_GCM", "SRTP_AEAD_AES_256_GCM") \
	X(AEAD_AES_128_GCM, 0x0007, "SRTP_AEAD_AES_128_GCM", "SRTP_AEAD_AES_128_GCM") \
	X(AES_CM_128_80, 0x0001, "SRTP_AES128_CM_SHA1_80", "SRTP_AES128_CM_HMAC_SHA1_80") \
	X(AES_CM_128_32, 0x0002, "SRTP_AES128_CM_SHA1_32", "SRTP_AES128_CM_HMAC_SHA1_32")
/* clang-format on */
#define DTLS_PROFILES_MAX 4u

/* Whether a suite has a profile number. */
bool dtls_profile_known(enum srtp_suite_id suite);
/* By OpenSSL's name or the RFC's, with or without "SRTP_", or by the suite's in SDP; ASCII
 * case-insensitive. SUITE_PLAIN: unknown. */
enum srtp_suite_id dtls_profile_find(struct str name);

enum dtls_state {
	DTLS_IDLE,      /* no packet sent or received */
	DTLS_HANDSHAKE, /* in progress */
	DTLS_UNCHECKED, /* handshake completed; keys wait for dtls_expect() */
	DTLS_OPEN,      /* keys are available */
	DTLS_CLOSED,    /* close_notify was sent or received; keys remain available */
	DTLS_FAILED,    /* no keys; dtls_failure() has the reason */
};

/* One reason per failed association.
 * X(id, name in metrics, text) */
/* clang-format off */
#define DTLS_FAILURES(X) \
	X(FINGERPRINT, "fingerprint", "certificate of the peer matches no fingerprint of its SDP") \
	X(NO_CERTIFICATE, "no_certificate", "peer sent no certificate") \
	X(NO_PROFILE, "no_profile", "no SRTP profile in common") \
	X(NO_CIPHER, "no_cipher", "no DTLS version or cipher suite in common") \
	X(REFUSED, "refused", "peer ended the handshake by an alert") \
	X(TIMEOUT, "timeout", "handshake was not completed in time") \
	X(PROTOCOL, "protocol", "peer violated the protocol") \
	X(CLOSED, "closed", "closed before the handshake was completed") \
	X(INTERNAL, "internal", "out of memory, or an error of OpenSSL")
/* clang-format on */

enum dtls_failure {
	DTLS_FAIL_NONE,
#define X(id, name, text) DTLS_FAIL_##id,
	DTLS_FAILURES(X)
#undef X
		DTLS_FAIL_COUNT
};
const char *dtls_failure_name(enum dtls_failure f);
const char *dtls_failure_text(enum dtls_failure f);

/* Counters, owned by the caller and shared by the associations of one thread. */
struct dtls_counts {
	uint64_t drop[DTLS_DROP_COUNT];
	uint64_t retransmitted; /* flights that a timer sent again */
};

#define DTLS_MTU_DEFAULT 1200u /* UDP payload; with headers within IPv6's 1,280 */
#define DTLS_MTU_MIN     256u
#define DTLS_MTU_MAX     1472u
#define DTLS_PACKET_MAX  DTLS_MTU_MAX /* room that dtls_next() needs at most */
#define DTLS_FIRST_NS    100000000ull /* doubles up to DTLS_LAST_NS; RFC 6347 4.2.4.1 */
#define DTLS_LAST_NS     4000000000ull
#define DTLS_GIVE_UP_NS  30000000000ull
#define DTLS_HOLD_NS     10000000000ull
#define DTLS_REFUSED_NS  5000000000ull /* from an unauthenticated alert to the failure */
#define DTLS_NO_DEADLINE UINT64_MAX

struct dtls_config {
	struct dtls_cert *cert; /* the association takes a reference of its own */
	enum dtls_role role;    /* DTLS_ROLE_CLIENT or DTLS_ROLE_SERVER */
	/* Profiles in order of preference. A server's order decides. */
	enum srtp_suite_id profile[DTLS_PROFILES_MAX];
	uint32_t profiles;
	bool allow_sha1; /* accept sha-1 in fingerprints; otherwise such lines count as absent */
	uint16_t mtu;    /* UDP payload in bytes; 0 = DTLS_MTU_DEFAULT */
	/* Nanoseconds; 0 = the default above. */
	uint64_t first_ns;          /* first retransmission */
	uint64_t give_up_ns;        /* the handshake fails so long after its first packet */
	uint64_t hold_ns;           /* OpenSSL's memory is kept so long after the handshake */
	struct dtls_counts *counts; /* NULL = not counted */
};

struct dtls;

/* 0, -EINVAL (no certificate, role or profile, an unknown profile, MTU out of range), -ENOMEM. */
int dtls_create(struct dtls **out, const struct dtls_config *c);
void dtls_destroy(struct dtls *a); /* wipes the keys; sends nothing; NULL is fine */

/* Fingerprints that the peer's SDP names. They may come before, during or after the handshake; no
 * key is given out before. Any match is enough (RFC 8122 5). A list without a usable entry matches
 * nothing. Before the end of the handshake a later list replaces an earlier one. 0, or
 * -EKEYREJECTED: the peer's certificate is known and matches none. An unchecked association then
 * fails; an open one stays open, because RFC 8842 demands a new association. After the hold an open
 * one compares nothing: 0. */
int dtls_expect(struct dtls *a, const struct dtls_fingerprints *f, uint64_t now_ns);

/* A client makes its ClientHello. A server gets ready at its first packet; for it this does
 * nothing. 0, -EALREADY, -ENOMEM. */
int dtls_start(struct dtls *a, uint64_t now_ns);

/* One received datagram. 0: taken, or ignored without harm. -EBADMSG: dropped by the filter, and
 * counted. Never reads beyond len. */
int dtls_take(struct dtls *a, const uint8_t *p, size_t len, uint64_t now_ns);

/* The next packet to send. Its length, 0 = none, -EMSGSIZE = cap is too small (the packet stays).
 */
int dtls_next(struct dtls *a, uint8_t *buf, size_t cap);

/* When to call dtls_tick(), in the caller's nanoseconds; DTLS_NO_DEADLINE = never. */
uint64_t dtls_deadline(const struct dtls *a);
void dtls_tick(struct dtls *a, uint64_t now_ns); /* early calls do nothing */

enum dtls_state dtls_state(const struct dtls *a);
enum dtls_failure dtls_failure(const struct dtls *a);

/* Master keys (RFC 5764 4.2): rx opens the peer's packets, tx protects ours. In DTLS_OPEN, and in
 * DTLS_CLOSED after DTLS_OPEN. 0, or -EAGAIN: none (yet). The caller wipes them. */
int dtls_keys(const struct dtls *a, struct srtp_master *rx, struct srtp_master *tx);

/* The peer has proven that it finished the handshake, by SRTP that opens with its key. Ends the
 * hold, and frees OpenSSL's memory now. Otherwise does nothing. */
void dtls_settle(struct dtls *a, uint64_t now_ns);

/* Ends the association by close_notify, if the handshake came that far: one packet. */
void dtls_close(struct dtls *a, uint64_t now_ns);

#endif
