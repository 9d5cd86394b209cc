/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See ng_proxy.h. */
#include "proto/ng_proxy.h"

#include <errno.h>

static const char *const status_names[NG_PROXY_STATUS_COUNT] = {
	[NG_PROXY_OK] = "ok",
	[NG_PROXY_DROPPED] = "dropped",
	[NG_PROXY_DENIED] = "denied",
	[NG_PROXY_FAILED] = "failed",
};

/* The line without its end. Its length with the end, 0 or -EBADMSG as the callers return it. */
static int line_of(struct str *line, struct str buf)
{
	size_t max = buf.len < NG_PROXY_LINE_MAX ? buf.len : NG_PROXY_LINE_MAX;
	const char *end = max ? memchr(buf.s, '\n', max) : NULL;

	if (!end)
		return buf.len < NG_PROXY_LINE_MAX ? 0 : -EBADMSG;
	*line = (struct str){buf.s, (size_t)(end - buf.s)};
	return (int)line->len + 1;
}

static bool read_len(size_t *out, struct str text, size_t max)
{
	uint64_t n;

	if (str_to_u64(&n, text, max))
		return false;
	*out = (size_t)n;
	return true;
}

/* One of two words. */
static bool read_choice(bool *out, struct str word, const char *yes, const char *no)
{
	*out = str_eq(word, str_from(yes));
	return *out || str_eq(word, str_from(no));
}

int ng_proxy_read_hello(struct ng_proxy_hello *out, struct str buf)
{
	static const struct str magic = {NG_PROXY_HELLO, sizeof(NG_PROXY_HELLO) - 1};
	struct str line;
	int n = line_of(&line, buf);

	*out = (struct ng_proxy_hello){0};
	if (n <= 0)
		return n;
	if (!str_starts(line, magic))
		return -EBADMSG;
	line = (struct str){line.s + magic.len, line.len - magic.len};
	return read_choice(&out->keys, line, "keys", "open") ? n : -EBADMSG;
}

void ng_proxy_write_hello(struct sbuf *b, const struct ng_proxy_hello *hello)
{
	sbuf_printf(b, NG_PROXY_HELLO "%s\n", hello->keys ? "keys" : "open");
}

int ng_proxy_read_request(struct ng_proxy_request *out, struct str buf, size_t max)
{
	struct str line, form, right, client;
	int n = line_of(&line, buf);

	*out = (struct ng_proxy_request){0};
	if (n <= 0)
		return n;
	form = str_cut(&line, ' ');
	right = str_cut(&line, ' ');
	client = str_cut(&line, ' ');
	if (!read_choice(&out->plain, form, "plain", "cookie") ||
		!read_choice(&out->token, right, "token", "none") ||
		!read_len(&out->len, line, max))
		return -EBADMSG;
	if (!str_eq(client, STR("-")) && endpoint_parse(&out->client, client))
		return -EBADMSG;
	return n;
}

void ng_proxy_write_request(struct sbuf *b, const struct ng_proxy_request *request)
{
	char client[ENDPOINT_STRLEN] = "-";

	if (request->client.family)
		endpoint_fmt(&request->client, client);
	sbuf_printf(b, "%s %s %s %zu\n", request->plain ? "plain" : "cookie",
		request->token ? "token" : "none", client, request->len);
}

int ng_proxy_read_reply(struct ng_proxy_reply *out, struct str buf)
{
	struct str line, status;
	int n = line_of(&line, buf);

	*out = (struct ng_proxy_reply){.status = NG_PROXY_STATUS_COUNT};
	if (n <= 0)
		return n;
	status = str_cut(&line, ' ');
	for (int i = 0; i < NG_PROXY_STATUS_COUNT; i++)
		if (str_eq(status, str_from(status_names[i])))
			out->status = (enum ng_proxy_status)i;
	if (out->status == NG_PROXY_STATUS_COUNT || !read_len(&out->len, line, NG_PROXY_REPLY_MAX))
		return -EBADMSG;
	return n;
}

void ng_proxy_write_reply(struct sbuf *b, const struct ng_proxy_reply *reply)
{
	sbuf_printf(b, "%s %zu\n", status_names[reply->status], reply->len);
}
