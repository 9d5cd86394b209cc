/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The module's side of the ng protocol: requests to bytes, replies to a struct. Pure, without
 * Kamailio's headers: only this file includes daemon/proto, because both have macros of the same
 * names. */
#ifndef MODULE_WIRE_H
#define MODULE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	const char *s;
	size_t len;
};

#define TEXT(literal) ((struct text){(literal), sizeof(literal) - 1})

bool text_is(struct text a, const char *z); /* ASCII, case ignored */

#define WIRE_MAX     65507u /* the largest UDP datagram */
#define WIRE_SUITES  256u
#define WIRE_SAS     64u
#define WIRE_PEER    256u
#define WIRE_REASON  128u
#define WIRE_WARNING 256u

struct wire_request {
	const char *command;
	struct text call_id, from_tag, to_tag, via_branch, sdp;
	struct text flags;              /* the script's text, which the daemon parses */
	struct text added;              /* flags added by the module's policies */
	struct text from_name, to_name; /* user parts of From and To; both empty: not sent */
	struct text received_from;
	bool ipv6;     /* of received_from */
	bool reply;    /* the SIP message is a reply */
	unsigned code; /* of a reply */
};

/* The keys of xcipherd's --ng-key-file: the first key signs, all keys verify. In secure memory. */
struct wire_keys;

#define WIRE_ERR 512u

/* 0, or -errno with one line in err; option names the file there. */
int wire_keys_read(
	struct wire_keys **out, const char *option, const char *path, char err[WIRE_ERR]);
void wire_keys_free(struct wire_keys *k);

/* Signer of a request. keys NULL: it is not signed. */
struct wire_sign {
	const struct wire_keys *keys;
	uint64_t seconds; /* since 1970 */
};

/* Writes cookie, signature (with keys), space and bencode to buf. Returns the length, -EMSGSIZE or
 * -ENOMEM. */
int wire_write(char *buf, size_t size, struct wire_sign sign, struct text cookie,
	const struct wire_request *r);

/* Writes the same request with another cookie and other flags. */
int wire_rewrite(char *buf, size_t size, struct wire_sign sign, struct text datagram,
	struct text cookie, struct text flags);
/* Copies the flags of a request; returns their length. */
size_t wire_flags(char *out, size_t size, struct text datagram);

enum wire_result { WIRE_OK, WIRE_PONG, WIRE_LOAD_LIMIT, WIRE_NO_CALL, WIRE_ERROR, WIRE_GARBAGE };

struct wire_sas {
	char text[WIRE_SAS];
	char verified[8]; /* "yes", "no"; empty without SAS */
};

struct wire_reply {
	enum wire_result result;
	char reason[WIRE_REASON];   /* printable */
	char warning[WIRE_WARNING]; /* printable */
	struct text sdp;
	char from_suite[WIRE_SUITES], to_suite[WIRE_SUITES]; /* query: suites of these tags */
	struct wire_sas from_sas, to_sas;                    /* query: SAS of these tags (ZRTP) */
	char from_peer[WIRE_PEER], to_peer[WIRE_PEER]; /* query: identities that MIKEY proved */
	struct text json;                              /* query: everything, for the script */
	void *pool;
};

/* The cookie of a reply as passed to wire_write(), without the signature if there are keys; empty
 * if there is none. */
struct text wire_cookie(const struct wire_keys *keys, const char *p, size_t len);
/* Whether the daemon signed these bytes as the reply to this request; without keys always true. */
bool wire_genuine(const struct wire_keys *keys, struct text request, const char *p, size_t len);
/* Reads any bytes as a reply; the result may be WIRE_GARBAGE. tree: also fills json and suites,
 * those of from_tag and to_tag. Slices point into the datagram or the pool, which wire_fini()
 * wipes. */
void wire_read(struct wire_reply *out, const char *p, size_t len, bool tree, struct text from_tag,
	struct text to_tag);
void wire_fini(struct wire_reply *r);

/* The suites of a body's a=crypto lines, each once, comma-separated; "DTLS" with a fingerprint and
 * none of them; "none" if there is media without any. Empty without media. Returns how many suites
 * were named. */
int wire_sdp_suites(char *out, size_t size, struct text sdp);

/* Writes the suites of the next active RTP media to out, and the remaining text to rest. "none": no
 * suites, or a profile other than SAVP, unless opportunistic SRTP (RFC 8643) counts. False: no
 * media is left. */
bool wire_sdp_media(char *out, size_t size, struct text *rest, bool opportunistic);

/* A line begins with "m=". Reads past NULs of binary parts. */
bool wire_has_media(struct text body);
/* Whether a line begins with "m=", or the body names application/sdp. */
bool wire_has_sdp(struct text body);

/* Wipes the bodies, which hold keys. */
void wire_wipe(void *p, size_t len);

#endif
