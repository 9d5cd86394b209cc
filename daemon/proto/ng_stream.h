/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the ends of ng messages in a byte stream: cookie, space, dictionary, next cookie. Walks the
 * dictionary without decoding it; bencode_parse() and json_parse() do that. Pure. */
#ifndef PROTO_NG_STREAM_H
#define PROTO_NG_STREAM_H

#include "base/bytes.h"

/* Maximum length of a message with its cookie: four times that of a datagram. */
#define NG_STREAM_MAX (256u << 10)

enum ng_stream_state {
	NG_STREAM_BETWEEN, /* white space before a cookie */
	NG_STREAM_COOKIE,
	NG_STREAM_SPACE, /* before the dictionary */
	NG_STREAM_BENCODE,
	NG_STREAM_BENCODE_INT,
	NG_STREAM_BENCODE_LEN,
	NG_STREAM_BENCODE_BYTES,
	NG_STREAM_JSON,
	NG_STREAM_JSON_STRING,
	NG_STREAM_JSON_ESCAPE,
	NG_STREAM_DONE,
};

struct ng_stream {
	enum ng_stream_state state;
	size_t start;   /* of the cookie */
	size_t at;      /* bytes walked so far */
	uint32_t depth; /* of dictionaries and lists */
	size_t left;    /* of a bencoded string: its length, then its bytes */
};

/* buf: all bytes since the end of the message before; each call may bring more of them than the
 * last. 1: there is a message, from s->start to s->at; 0: not yet; -EPROTO: a cookie with no
 * dictionary after it; -EBADMSG: no end can be found (the cookie is at s->start, up to the first
 * space); -ENOMSG: no cookie; -EMSGSIZE: longer than NG_STREAM_MAX. After 1, cut buf at s->at and
 * start again from a zeroed struct; after an error there is nothing to go on with. */
int ng_stream_walk(struct ng_stream *s, struct str buf);

#endif
