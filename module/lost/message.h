/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of LoST (RFC 5222) and HELD (RFC 5985, 6155, 6753). */
#ifndef LOST_MESSAGE_H
#define LOST_MESSAGE_H

#include "answer.h"
#include "place.h"

/* X(id, value of the parameter) */
#define BOUNDARIES(X)             \
	X(REFERENCE, "reference") \
	X(VALUE, "value")         \
	X(NONE, "none")

enum boundary {
#define X(id, name) BOUNDARY_##id,
	BOUNDARIES(X)
#undef X
		BOUNDARY_COUNT
};

/* Writers return a string that the caller frees, or NULL: no memory. */
char *lost_find_service(
	const char *service, const struct place *p, enum boundary boundary, bool recursive);
char *lost_list_services(const char *service, const struct place *p, bool recursive);
char *lost_get_boundary(const char *key);
/* response_ms: time that the server may take. identity: URI of the device; NULL: the asking one */
char *held_request(const char *identity, int response_ms);

enum reply {
	REPLY_OK,       /* the answer that the request wanted */
	REPLY_ERROR,    /* <errors>, or <error> of HELD; A_error and A_message are set */
	REPLY_REDIRECT, /* A_server is the target's name */
	REPLY_GARBAGE,  /* nothing of this */
};

enum lost_op {
	LOST_FIND,
	LOST_LIST,
	LOST_BOUNDARY,
};

/* The geometry that came with a reply. The caller frees area. */
struct extent {
	struct area *area; /* of a boundary by value; NULL: none, or not to be judged */
	bool no_cache;
	int64_t expires; /* seconds since 1970; INT64_MAX: never; 0: unknown */
};

/* Reads a reply into the answer, and where it may be used again into e. */
enum reply lost_read(
	enum lost_op op, const char *s, size_t len, struct answer *a, struct extent *e);
/* Reads locationResponse or a bare PIDF-LO into A_pidf and A_location_uri. */
enum reply held_read(const char *s, size_t len, struct answer *a);

/* Seconds since 1970 of an xs:dateTime; 0: not one. Without a zone it means UTC. */
int64_t date_time(const char *s);

#endif
