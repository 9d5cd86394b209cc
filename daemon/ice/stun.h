/* SPDX-License-Identifier: GPL-2.0-or-later */
/* STUN messages (RFC 8489) as ICE uses them (RFC 8445): binding requests, responses and
 * indications. Pure, bounded, allocates nothing. */
#ifndef ICE_STUN_H
#define ICE_STUN_H

#include "base/endpoint.h"
#include "ice/hmac_sha1.h"

#define STUN_HEADER_LEN   20u
#define STUN_TXID_LEN     12u
#define STUN_PACKET_MAX   1280u /* longer packets are refused */
#define STUN_USERNAME_MAX 508u  /* RFC 8489 14.3: less than 509 bytes */
#define STUN_UNKNOWN_MAX  8u

enum stun_class { STUN_REQUEST, STUN_INDICATION, STUN_SUCCESS, STUN_ERROR };

/* clang-format off */
/* X(id, code): error codes that we send (RFC 8489 14.8, RFC 8445 7.3.1.1) */
#define STUN_ERRORS(X) \
	X(BAD_REQUEST, 400) \
	X(UNAUTHENTICATED, 401) \
	X(UNKNOWN_ATTRIBUTE, 420) \
	X(ROLE_CONFLICT, 487) \
	X(SERVER_ERROR, 500)
/* clang-format on */
enum stun_error {
#define X(id, code) STUN_##id = code,
	STUN_ERRORS(X)
#undef X
};

enum stun_role { STUN_ROLE_NONE, STUN_ROLE_CONTROLLED, STUN_ROLE_CONTROLLING };

/* Key of a short-term password (RFC 8489 9.1.1). As secret as the password: wipe it. */
struct stun_key {
	struct hmac_sha1_key hmac;
};
void stun_key_init(struct stun_key *key, struct str password);

struct stun_msg {
	enum stun_class cls;
	uint8_t txid[STUN_TXID_LEN];
	struct str username; /* a slice of the packet; s = NULL: absent */
	bool has_priority, use_candidate, has_fingerprint, has_mapped;
	enum stun_role role; /* of the sender: ICE-CONTROLLED or ICE-CONTROLLING */
	uint32_t priority;
	uint64_t tie_breaker;   /* valid if role is set */
	struct endpoint mapped; /* XOR-MAPPED-ADDRESS */
	uint16_t error;         /* of an error response, 300..699; 0 = absent */
	/* offset of MESSAGE-INTEGRITY in the packet; 0 = absent */
	uint16_t integrity_off;
	uint16_t unknown[STUN_UNKNOWN_MAX]; /* comprehension-required ones (RFC 8489 14) */
	uint8_t unknown_count;              /* those that fit */
};

/* Whether a datagram starts like STUN (RFC 7983: first byte 0..3; magic cookie, length). Costs a
 * few instructions. */
bool stun_is(const uint8_t *packet, size_t len);
/* Parses a binding message. 0, or -EBADMSG: not STUN, another method, malformed, or with a wrong
 * FINGERPRINT. Attributes after MESSAGE-INTEGRITY other than FINGERPRINT are ignored (RFC 8489
 * 14.5). The first of two equal attributes counts. */
int stun_parse(struct stun_msg *out, const uint8_t *packet, size_t len);
/* Whether MESSAGE-INTEGRITY is there and right. Takes constant time. */
bool stun_verify(const struct stun_msg *m, const uint8_t *packet, const struct stun_key *key);

/* A message being written. A write that does not fit sets full, and later writes do nothing. */
struct stun_writer {
	uint8_t *p;
	size_t len, cap;
	bool full;
};
void stun_write_head(struct stun_writer *w, enum stun_class cls, const uint8_t txid[STUN_TXID_LEN]);
void stun_write_username(struct stun_writer *w, struct str remote, struct str local);
void stun_write_priority(struct stun_writer *w, uint32_t priority);
void stun_write_use_candidate(struct stun_writer *w);
void stun_write_role(struct stun_writer *w, enum stun_role role, uint64_t tie_breaker);
void stun_write_mapped(struct stun_writer *w, const struct endpoint *e);
void stun_write_error(struct stun_writer *w, enum stun_error code); /* empty reason phrase */
void stun_write_unknown(struct stun_writer *w, const uint16_t *type, uint8_t count);
/* Adds MESSAGE-INTEGRITY (key NULL: none) and FINGERPRINT. The length of the packet, or 0: full. */
size_t stun_write_end(struct stun_writer *w, const struct stun_key *key);

#endif
