/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP/1.1 requests (RFC 9112). Refused are, other than many servers do: bare line feeds, folded
 * lines, blanks before a colon, a length together with chunks or twice, transfer codings other than
 * chunked. Chunk extensions and trailers are checked for their form and forgotten. Pure. */
#include "proto/http.h"

#include <errno.h>
#include <stdio.h>

#define CHUNK_LINE_MAX 256u /* size and extensions */
#define TRAILER_MAX    4096u

/* --- Characters ------------------------------------------------------------------------------- */

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		(c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_token_char(s.s[i]))
			return false;
	return s.len > 0;
}

/* Of a field's value: no control characters but tabs. */
static bool is_text(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.s[i] < 0x20 && s.s[i] != '\t') || s.s[i] == 0x7f)
			return false;
	return true;
}

/* The line at buf's start without its end: what it takes with it; 0: it has no end; -EBADMSG: not
 * CR LF. */
static int cut_line(struct str *line, struct str buf)
{
	const char *lf = buf.len ? memchr(buf.s, '\n', buf.len) : NULL;

	if (!lf)
		return 0;
	if (lf == buf.s || lf[-1] != '\r')
		return -EBADMSG;
	*line = (struct str){buf.s, (size_t)(lf - buf.s) - 1};
	return (int)(lf - buf.s) + 1;
}

/* --- Heads ------------------------------------------------------------------------------------ */

int http_head_end(struct str buf, size_t *line)
{
	while (buf.len) {
		struct str text;
		int n = cut_line(&text, (struct str){buf.s + *line, buf.len - *line});

		if (n < 0)
			return n;
		if ((n ? *line + (size_t)n : buf.len) > HTTP_HEAD_MAX)
			return -EMSGSIZE;
		if (n == 0)
			return 0;
		*line += (size_t)n;
		if (text.len == 0)
			return (int)*line;
	}
	return 0;
}

/* What a target says: a path, or a whole URI, whose host counts instead of the field (RFC 9112
 * 3.2.2). "*" is a path here. */
static int parse_target(struct http_head *out, struct str target)
{
	static const char *const schemes[] = {"http://", "https://"};
	struct str rest = target;

	for (size_t i = 0; i < target.len; i++)
		if ((unsigned char)target.s[i] <= 0x20 || (unsigned char)target.s[i] > 0x7e)
			return 400;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		struct str scheme = str_from(schemes[i]);

		if (target.len < scheme.len ||
			!str_eq_nocase((struct str){target.s, scheme.len}, scheme))
			continue;
		rest = (struct str){target.s + scheme.len, target.len - scheme.len};
		out->host = rest;
		for (size_t n = 0; n < rest.len; n++)
			if (strchr("/?#", rest.s[n])) {
				out->host.len = n;
				break;
			}
		rest = (struct str){rest.s + out->host.len, rest.len - out->host.len};
		if (out->host.len == 0)
			return 400;
		if (rest.len == 0 || rest.s[0] != '/') /* the path is empty */
			rest = STR("/");
	}
	out->path = str_cut(&rest, '?');
	if (out->path.len == 0)
		return 400;
	return out->path.s[0] == '/' || !str_eq(out->method, STR("GET")) ? 0 : 400;
}

static int parse_request_line(struct http_head *out, struct str line)
{
	struct str rest = line, target;

	out->method = str_cut(&rest, ' ');
	target = str_cut(&rest, ' ');
	if (!is_token(out->method) || target.len == 0)
		return 400;
	if (rest.len != 8 || !str_starts(rest, STR("HTTP/")) || rest.s[6] != '.' ||
		rest.s[7] < '0' || rest.s[7] > '9')
		return 400;
	if (rest.s[5] != '1')
		return 505;
	out->minor = rest.s[7] == '0' ? 0 : 1;
	return parse_target(out, target);
}

static int parse_field(struct http_head *out, struct str line)
{
	struct str rest = line, name = str_cut(&rest, ':');

	if (out->fields == HTTP_FIELDS_MAX)
		return 431;
	if (!rest.s || !is_token(name) || !is_text(rest))
		return 400;
	out->field[out->fields++] = (struct http_field){name, str_trim(rest)};
	return 0;
}

struct str http_head_field(const struct http_head *h, const char *name)
{
	for (uint32_t i = 0; i < h->fields; i++)
		if (str_eq_nocase(h->field[i].name, str_from(name)))
			return h->field[i].value;
	return STR_NONE;
}

bool http_list_next(struct http_list *l, const struct http_head *h, struct str *out)
{
	for (;;) {
		while (l->rest.len) {
			*out = str_trim(str_cut(&l->rest, ','));
			if (out->len)
				return true;
		}
		while (l->field < h->fields &&
			!str_eq_nocase(h->field[l->field].name, str_from(l->name)))
			l->field++;
		if (l->field == h->fields)
			return false;
		l->rest = h->field[l->field++].value;
	}
}

static bool has_member(const struct http_head *h, const char *name, const char *member)
{
	struct http_list l = {.name = name};
	struct str one;

	while (http_list_next(&l, h, &one))
		if (str_eq_nocase(one, str_from(member)))
			return true;
	return false;
}

/* Of these there must be one at most: a second one would be read by somebody else. */
static bool once(const struct http_head *h)
{
	static const char *const names[] = {"Host", "Content-Length", "Transfer-Encoding",
		"Authorization", "Origin", "Expect", "Sec-WebSocket-Key", "Sec-WebSocket-Version"};

	for (size_t n = 0; n < ARRAY_LEN(names); n++) {
		uint32_t found = 0;

		for (uint32_t i = 0; i < h->fields; i++)
			found += str_eq_nocase(h->field[i].name, str_from(names[n]));
		if (found > 1)
			return false;
	}
	return true;
}

/* RFC 9112 6. */
static int parse_framing(struct http_head *out)
{
	struct str length = http_head_field(out, "Content-Length");
	struct str coding = http_head_field(out, "Transfer-Encoding");
	int err;

	if (coding.s) {
		if (length.s || out->minor == 0)
			return 400;
		if (!str_eq_nocase(coding, STR("chunked")))
			return 501;
		out->framing = HTTP_BODY_CHUNKED;
	} else if (length.s) {
		err = str_to_u64(&out->length, length, UINT64_MAX);
		if (err && err != -ERANGE)
			return 400;
		if (err)
			out->length = UINT64_MAX;
		out->framing = HTTP_BODY_LENGTH;
	}
	return 0;
}

/* What the fields say together. */
static int judge(struct http_head *out)
{
	struct str host = http_head_field(out, "Host"), expect = http_head_field(out, "Expect");
	int status;

	if (!once(out) || (!host.s && out->minor > 0))
		return 400;
	if (!out->host.s)
		out->host = host;
	status = parse_framing(out);
	if (status)
		return status;
	if (expect.s && out->minor > 0) {
		if (!str_eq_nocase(expect, STR("100-continue")))
			return 417;
		out->expects = true;
	}
	out->keep = !has_member(out, "Connection", "close") &&
		(out->minor > 0 || has_member(out, "Connection", "keep-alive"));
	out->websocket = out->minor > 0 && str_eq(out->method, STR("GET")) &&
		has_member(out, "Connection", "upgrade") && has_member(out, "Upgrade", "websocket");
	return 0;
}

int http_head_parse(struct http_head *out, struct str head)
{
	struct str line;
	size_t at = 0;
	int n, status;

	out->method = out->path = out->host = STR_NONE;
	out->minor = out->fields = 0;
	out->keep = out->expects = out->websocket = false;
	out->framing = HTTP_BODY_NONE;
	out->length = 0;
	for (bool first = true;; first = false) {
		n = cut_line(&line, (struct str){head.s + at, head.len - at});
		if (n <= 0)
			return 400;
		at += (size_t)n;
		if (!first && line.len == 0)
			break;
		status = first ? parse_request_line(out, line) : parse_field(out, line);
		if (status)
			return status;
	}
	return at == head.len ? judge(out) : 400;
}

/* --- Bodies ----------------------------------------------------------------------------------- */

void http_body_init(struct http_body *b, const struct http_head *h, size_t max)
{
	*b = (struct http_body){.chunked = h->framing == HTTP_BODY_CHUNKED, .max = max};
	if (!b->chunked) {
		b->state = HTTP_BODY_DATA;
		b->left = h->framing == HTTP_BODY_LENGTH ? h->length : 0;
	}
}

/* RFC 9112 7.1: 1*HEXDIG, then extensions. */
static int parse_size(uint64_t *out, struct str line)
{
	struct str rest = line, digits = str_trim(str_cut(&rest, ';'));

	if (digits.len == 0 || digits.len > 15 || digits.s != line.s || !is_text(rest))
		return -EBADMSG;
	*out = 0;
	for (size_t i = 0; i < digits.len; i++) {
		char c = digits.s[i];
		int v = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;

		if (v < 0)
			return -EBADMSG;
		*out = *out << 4 | (uint64_t)v;
	}
	return 0;
}

/* 1: a line was taken; 0: it has no end yet. */
static int read_line(struct http_body *b, struct str rest)
{
	struct str line = STR_NONE;
	int n = cut_line(&line, rest), err;
	size_t max = b->state == HTTP_BODY_TRAILER ? TRAILER_MAX - b->trailer : CHUNK_LINE_MAX;

	if (n < 0)
		return n;
	if ((n ? (size_t)n : rest.len) > max)
		return -EBADMSG;
	if (n == 0)
		return 0;
	b->at += (size_t)n;
	switch (b->state) {
	case HTTP_BODY_SIZE:
		err = parse_size(&b->left, line);
		if (err)
			return err;
		b->state = b->left ? HTTP_BODY_DATA : HTTP_BODY_TRAILER;
		return 1;
	case HTTP_BODY_DATA_END:
		b->state = HTTP_BODY_SIZE;
		return line.len ? -EBADMSG : 1;
	default: /* the trailer */
		b->trailer += (size_t)n;
		if (line.len == 0)
			b->state = HTTP_BODY_DONE;
		return is_text(line) ? 1 : -EBADMSG;
	}
}

static void read_data(struct http_body *b, char *buf, size_t have)
{
	size_t n = b->left < have ? (size_t)b->left : have;

	if (b->len != b->at)
		memmove(buf + b->len, buf + b->at, n);
	b->len += n;
	b->at += n;
	b->left -= n;
	if (b->left == 0)
		b->state = b->chunked ? HTTP_BODY_DATA_END : HTTP_BODY_DONE;
}

int http_body_read(struct http_body *b, char *buf, size_t *len)
{
	int got = 1;

	while (got > 0 && b->state != HTTP_BODY_DONE) {
		size_t have = *len - b->at;

		if (have == 0 && (b->state != HTTP_BODY_DATA || b->left)) {
			got = b->left > b->max || b->len + b->left > b->max ? -EMSGSIZE : 0;
			break;
		}
		if (b->state != HTTP_BODY_DATA) {
			got = read_line(b, (struct str){buf + b->at, have});
			continue;
		}
		if (b->left > b->max || b->len + b->left > b->max)
			return -EMSGSIZE;
		read_data(b, buf, have);
	}
	if (got != 0)
		return got;
	/* what is left moves up, so that no more than a line is kept besides the body */
	if (b->len != b->at && *len > b->at)
		memmove(buf + b->len, buf + b->at, *len - b->at);
	*len = b->len + (*len - b->at);
	b->at = b->len;
	return 0;
}

/* --- Replies ---------------------------------------------------------------------------------- */

const char *http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} T[] = {{101, "Switching Protocols"}, {200, "OK"}, {400, "Bad Request"},
		{401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
		{405, "Method Not Allowed"}, {411, "Length Required"}, {413, "Content Too Large"},
		{417, "Expectation Failed"}, {426, "Upgrade Required"},
		{431, "Request Header Fields Too Large"}, {500, "Internal Server Error"},
		{501, "Not Implemented"}, {503, "Service Unavailable"},
		{505, "HTTP Version Not Supported"}};

	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		if (T[i].status == status)
			return T[i].reason;
	return "";
}

const char *http_date(char out[HTTP_DATE_LEN], time_t t)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct tm tm = {0};

	gmtime_r(&t, &tm);
	snprintf(out, HTTP_DATE_LEN, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
		days + 3 * (tm.tm_wday % 7), (unsigned)tm.tm_mday % 100,
		months + 3 * (tm.tm_mon % 12), (unsigned)(tm.tm_year + 1900) % 10000,
		(unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
	return out;
}
