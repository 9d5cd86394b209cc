/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See redis_server.h. The old form stays as rtpengine has it: everything before the last '@' is the
 * password. */
#include "persist/redis_server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#define DEFAULT_PORT 6379

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

/* Decodes %XX (RFC 3986 2.1), and appends a zero. */
static int decode(char *out, size_t size, struct str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.s[i];

		if (c == '%') {
			int high = i + 2 < text.len ? hex_digit(text.s[i + 1]) : -1;
			int low = i + 2 < text.len ? hex_digit(text.s[i + 2]) : -1;

			if (high < 0 || low < 0 || (high == 0 && low == 0))
				return -EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (n + 1 >= size)
			return -EINVAL;
		out[n++] = c;
	}
	out[n] = 0;
	return 0;
}

/* Removes "/DB" from the end. */
static int cut_db(struct redis_server *s, struct str *text)
{
	const char *slash = memrchr(text->s, '/', text->len);
	uint64_t db = 0;

	if (slash) {
		struct str number = {slash + 1, (size_t)(text->s + text->len - slash - 1)};

		text->len = (size_t)(slash - text->s);
		if (number.len && str_to_u64(&db, number, 65535))
			return -EINVAL;
	}
	s->db = (uint32_t)db;
	return 0;
}

static bool is_name(struct str text)
{
	if (text.len == 0 || text.len >= sizeof(((struct redis_server *)0)->name))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.s[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '_')
			return false;
	}
	return true;
}

/* HOST[:PORT]; an IPv6 address in brackets. */
static int parse_host(struct redis_server *s, struct str text)
{
	const char *colon = memrchr(text.s, ':', text.len),
		   *bracket = memchr(text.s, ']', text.len);
	uint64_t port = DEFAULT_PORT;
	struct str host = text;

	if (colon && (!bracket || colon > bracket)) {
		struct str number = {colon + 1, (size_t)(text.s + text.len - colon - 1)};

		host.len = (size_t)(colon - text.s);
		if (str_to_u64(&port, number, 65535) || port == 0)
			return -EINVAL;
	}
	if (endpoint_parse_addr(&s->addr, host)) {
		if (!is_name(host))
			return -EINVAL;
		memcpy(s->name, host.s, host.len);
	}
	s->addr.port = (uint16_t)port;
	return 0;
}

/* Parses the part after the scheme. */
static int parse_url(struct redis_server *s, struct str text)
{
	const char *at = text.len ? memrchr(text.s, '@', text.len) : NULL;

	if (at) {
		struct str password = {text.s, (size_t)(at - text.s)}, user;

		text = (struct str){at + 1, text.len - password.len - 1};
		user = str_cut(&password, ':');
		if (decode(s->user, sizeof(s->user), user) ||
			decode(s->password, sizeof(s->password), password))
			return -EINVAL;
	}
	return text.len == 0 || cut_db(s, &text) ? -EINVAL : parse_host(s, text);
}

static int parse_short(struct redis_server *s, struct str text)
{
	const char *at = memrchr(text.s, '@', text.len);

	if (at) {
		size_t len = (size_t)(at - text.s);

		if (len == 0 || len >= sizeof(s->password))
			return -EINVAL;
		memcpy(s->password, text.s, len);
		text = (struct str){at + 1, text.len - len - 1};
	}
	if (text.len && text.s[text.len - 1] == '/')
		return -EINVAL;
	return cut_db(s, &text) || endpoint_parse(&s->addr, text) || s->addr.port == 0 ? -EINVAL
										       : 0;
}

int redis_server_parse(struct redis_server *out, struct str text)
{
	static const struct {
		struct str scheme;
		bool tls;
	} url[] = {{{"redis://", 8}, false}, {{"rediss://", 9}, true}};
	struct redis_server s = {0};

	for (size_t i = 0; i < ARRAY_LEN(url); i++)
		if (str_starts(text, url[i].scheme)) {
			s.tls = url[i].tls;
			text.s += url[i].scheme.len;
			text.len -= url[i].scheme.len;
			if (parse_url(&s, text))
				return -EINVAL;
			*out = s;
			return 0;
		}
	if (text.len == 0 || parse_short(&s, text))
		return -EINVAL;
	*out = s;
	return 0;
}

int redis_server_resolve(struct redis_server *s, char *err, size_t err_len)
{
	struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	uint16_t port = s->addr.port;
	int res;

	if (!s->name[0] || s->addr.family)
		return 0;
	res = getaddrinfo(s->name, NULL, &want, &found);
	for (struct addrinfo *a = res ? NULL : found; a && s->alls < REDIS_ADDRESSES;
		a = a->ai_next) {
		struct sockaddr_storage sa = {0};

		memcpy(&sa, a->ai_addr, a->ai_addrlen < sizeof(sa) ? a->ai_addrlen : sizeof(sa));
		if (endpoint_from_sockaddr(&s->all[s->alls], &sa) == 0)
			s->all[s->alls++].port = port;
	}
	if (found)
		freeaddrinfo(found);
	if (s->alls)
		s->addr = s->all[0];
	else
		res = res ? res : EAI_FAMILY;
	if (res)
		snprintf(err, err_len,
			"--redis: cannot resolve %s: %s. Repair DNS, or use an address and --redis-tls-name",
			s->name, gai_strerror(res));
	return res ? -ENOENT : 0;
}
