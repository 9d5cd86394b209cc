/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds message ends in a stream, reading each byte once. Bencode: counts openings and closings,
 * and skips strings by length, so nesting costs no memory. JSON: counts brackets outside strings.
 * Both are laxer than the parsers, which check the message afterwards. Pure. */
#include "proto/ng_stream.h"

#include <errno.h>

#include "proto/ng.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int opens(struct ng_stream *s, char c)
{
	s->depth = 1;
	if (c == 'd')
		s->state = NG_STREAM_BENCODE;
	else if (c == '{')
		s->state = NG_STREAM_JSON;
	else
		return -EPROTO;
	return 0;
}

static void closes(struct ng_stream *s)
{
	if (--s->depth == 0)
		s->state = NG_STREAM_DONE;
}

static int frame_byte(struct ng_stream *s, char c)
{
	switch (s->state) {
	case NG_STREAM_BETWEEN:
		if (is_space(c)) {
			s->start = s->at + 1;
			return 0;
		}
		s->state = NG_STREAM_COOKIE;
		return ng_cookie_byte(c) ? 0 : -ENOMSG;
	case NG_STREAM_COOKIE:
		if (c == ' ')
			s->state = NG_STREAM_SPACE;
		else if (!ng_cookie_byte(c) || s->at - s->start >= NG_COOKIE_MAX)
			return -ENOMSG;
		return 0;
	default: /* NG_STREAM_SPACE */
		return is_space(c) ? 0 : opens(s, c);
	}
}

static int bencode_byte(struct ng_stream *s, char c)
{
	switch (s->state) {
	case NG_STREAM_BENCODE:
		if (c == 'd' || c == 'l') {
			s->depth++;
		} else if (c == 'e') {
			closes(s);
		} else if (c == 'i') {
			s->state = NG_STREAM_BENCODE_INT;
		} else if (c >= '0' && c <= '9') {
			s->left = (size_t)(c - '0');
			s->state = NG_STREAM_BENCODE_LEN;
		} else {
			return -EBADMSG;
		}
		return 0;
	case NG_STREAM_BENCODE_INT:
		if (c == 'e')
			s->state = NG_STREAM_BENCODE;
		else if (c != '-' && (c < '0' || c > '9'))
			return -EBADMSG;
		return 0;
	default: /* NG_STREAM_BENCODE_LEN */
		if (c == ':') {
			s->state = s->left ? NG_STREAM_BENCODE_BYTES : NG_STREAM_BENCODE;
			return 0;
		}
		if (c < '0' || c > '9')
			return -EBADMSG;
		s->left = 10 * s->left + (size_t)(c - '0');
		return s->left > NG_STREAM_MAX ? -EMSGSIZE : 0;
	}
}

static int json_byte(struct ng_stream *s, char c)
{
	switch (s->state) {
	case NG_STREAM_JSON:
		if (c == '"')
			s->state = NG_STREAM_JSON_STRING;
		else if (c == '{' || c == '[')
			s->depth++;
		else if (c == '}' || c == ']')
			closes(s);
		return 0;
	case NG_STREAM_JSON_STRING:
		if (c == '"')
			s->state = NG_STREAM_JSON;
		else if (c == '\\')
			s->state = NG_STREAM_JSON_ESCAPE;
		return 0;
	default: /* NG_STREAM_JSON_ESCAPE */
		s->state = NG_STREAM_JSON_STRING;
		return 0;
	}
}

static int byte(struct ng_stream *s, char c)
{
	if (s->state <= NG_STREAM_SPACE)
		return frame_byte(s, c);
	return s->state < NG_STREAM_JSON ? bencode_byte(s, c) : json_byte(s, c);
}

int ng_stream_walk(struct ng_stream *s, struct str buf)
{
	while (s->at < buf.len && s->state != NG_STREAM_DONE) {
		int err;

		if (s->at - s->start >= NG_STREAM_MAX)
			return -EMSGSIZE;
		if (s->state == NG_STREAM_BENCODE_BYTES) {
			size_t n = buf.len - s->at < s->left ? buf.len - s->at : s->left;

			s->left -= n;
			s->at += n;
			if (s->left == 0)
				s->state = NG_STREAM_BENCODE;
			continue;
		}
		err = byte(s, buf.s[s->at]);
		if (err)
			return err;
		s->at++;
	}
	if (s->state != NG_STREAM_DONE)
		return s->at - s->start >= NG_STREAM_MAX ? -EMSGSIZE : 0;
	return s->at - s->start > NG_STREAM_MAX ? -EMSGSIZE : 1;
}
