/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sipbody.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DEPTH_MAX    4
#define PARTS_MAX    32 /* per multipart */
#define BOUNDARY_MAX 70 /* RFC 2046 section 5.1.1 */
#define PIDF_TYPE    "application/pidf+xml"

static struct span trim(struct span s)
{
	while (s.len && memchr(" \t\r\n", *s.s, 4)) {
		s.s++;
		s.len--;
	}
	while (s.len && memchr(" \t\r\n", s.s[s.len - 1], 4))
		s.len--;
	return s;
}

static struct span after(struct span s, const char *at)
{
	return (struct span){at, (size_t)(s.s + s.len - at)};
}

bool span_begins(struct span s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.len >= n && !strncasecmp(s.s, prefix, n);
}

bool geolocation_next(struct span *value, struct span *uri)
{
	const char *open = value->len ? memchr(value->s, '<', value->len) : NULL, *close;
	struct span rest;

	if (!open)
		return false;
	rest = after(*value, open + 1);
	close = rest.len ? memchr(rest.s, '>', rest.len) : NULL;
	if (!close)
		return false;
	*uri = trim((struct span){open + 1, (size_t)(close - open - 1)});
	*value = after(*value, close + 1);
	return true;
}

/* --- MIME ------------------------------------------------------------------------------------- */

/* The headers of a part that matter. */
struct headers {
	struct span type, id, encoding;
};

static bool next_line(struct span *rest, struct span *line)
{
	const char *end;

	if (!rest->len)
		return false;
	end = memchr(rest->s, '\n', rest->len);
	*line = (struct span){rest->s, end ? (size_t)(end - rest->s) : rest->len};
	*rest = end ? after(*rest, end + 1) : (struct span){rest->s + rest->len, 0};
	if (line->len && line->s[line->len - 1] == '\r')
		line->len--;
	return true;
}

/* Splits a part into headers and content. Folded headers continue the previous value. */
static struct span read_headers(struct span part, struct headers *h)
{
	struct span line, *last = NULL;
	static const char *const names[] = {
		"content-type:", "content-id:", "content-transfer-encoding:"};
	struct span *const fields[] = {&h->type, &h->id, &h->encoding};

	while (next_line(&part, &line) && line.len) {
		if (*line.s == ' ' || *line.s == '\t') {
			if (last)
				last->len = (size_t)(line.s + line.len - last->s);
			continue;
		}
		last = NULL;
		for (size_t i = 0; i < 3; i++)
			if (span_begins(line, names[i])) {
				last = fields[i];
				*last = after(line, line.s + strlen(names[i]));
			}
	}
	h->type = trim(h->type);
	h->id = trim(h->id);
	h->encoding = trim(h->encoding);
	return part;
}

/* The boundary parameter of a multipart type. */
static bool boundary_of(struct span type, char out[BOUNDARY_MAX + 3], size_t *len)
{
	struct span value = {0};

	for (size_t i = 0; i + 9 <= type.len && !value.s; i++)
		if (i && strchr("; \t\r\n", type.s[i - 1]) &&
			!strncasecmp(type.s + i, "boundary=", 9))
			value = after(type, type.s + i + 9);
	if (!value.s)
		return false;
	if (value.len && *value.s == '"') {
		const char *end = memchr(value.s + 1, '"', value.len - 1);

		if (!end)
			return false;
		value = (struct span){value.s + 1, (size_t)(end - value.s - 1)};
	} else {
		size_t n = 0;

		while (n < value.len && !strchr("; \t\r\n", value.s[n]))
			n++;
		value.len = n;
	}
	if (!value.len || value.len > BOUNDARY_MAX)
		return false;
	memcpy(out, "--", 2);
	memcpy(out + 2, value.s, value.len);
	out[value.len + 2] = 0;
	*len = value.len + 2;
	return true;
}

/* Takes the next part. *rest begins after a delimiter line. */
static bool next_part(struct span *rest, const char *delimiter, size_t len, struct span *part)
{
	const char *begin = rest->s, *end = NULL;
	struct span line;

	if (!rest->s)
		return false;
	while (next_line(rest, &line)) {
		if (line.len < len || memcmp(line.s, delimiter, len))
			continue;
		end = line.s;
		if (line.len >= len + 2 && !memcmp(line.s + len, "--", 2))
			*rest = (struct span){NULL, 0};
		break;
	}
	if (!end)
		return false;
	/* The line break before the delimiter belongs to the delimiter. */
	if (end > begin && end[-1] == '\n')
		end--;
	if (end > begin && end[-1] == '\r')
		end--;
	*part = (struct span){begin, (size_t)(end - begin)};
	return true;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

/* Content-ID "<a@b>" against the rest of a cid URI. */
static bool same_id(struct span id, struct span cid)
{
	size_t at = 0;

	if (id.len < 2 || id.s[0] != '<' || id.s[id.len - 1] != '>')
		return false;
	id = (struct span){id.s + 1, id.len - 2};
	for (size_t i = 0; i < cid.len; i++, at++) {
		char c = cid.s[i];

		if (c == '%' && i + 2 < cid.len && hex(cid.s[i + 1]) >= 0 &&
			hex(cid.s[i + 2]) >= 0) {
			c = (char)(hex(cid.s[i + 1]) * 16 + hex(cid.s[i + 2]));
			i += 2;
		}
		if (at >= id.len || id.s[at] != c)
			return false;
	}
	return at == id.len;
}

static bool is_plain(struct span encoding)
{
	return !encoding.len || (encoding.len == 4 && span_begins(encoding, "7bit")) ||
		(encoding.len == 4 && span_begins(encoding, "8bit")) ||
		(encoding.len == 6 && span_begins(encoding, "binary"));
}

static bool find(
	const struct headers *h, struct span body, struct span cid, struct span *found, int depth)
{
	char delimiter[BOUNDARY_MAX + 3];
	struct span part;
	size_t len;

	if (!span_begins(h->type, "multipart/")) {
		*found = trim(body);
		return found->len && is_plain(h->encoding) &&
			(cid.len ? same_id(h->id, cid) : span_begins(h->type, PIDF_TYPE));
	}
	if (depth >= DEPTH_MAX || !boundary_of(h->type, delimiter, &len))
		return false;
	/* Text before the first delimiter does not count (RFC 2046 section 5.1.1). */
	if (!next_part(&body, delimiter, len, &part))
		return false;
	for (int i = 0; i < PARTS_MAX && next_part(&body, delimiter, len, &part); i++) {
		struct headers inner = {0};
		struct span content = read_headers(part, &inner);

		if (find(&inner, content, cid, found, depth + 1))
			return true;
	}
	return false;
}

bool body_part(
	struct span type, struct span own_id, struct span body, struct span cid, struct span *part)
{
	struct headers h = {.type = trim(type), .id = trim(own_id)};

	return body.len && find(&h, body, cid, part, 0);
}
