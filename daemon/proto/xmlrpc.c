/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of XML-RPC that reports need: calls with escaped strings. A reply is only searched for
 * success or a fault, not parsed, because nothing in it is acted upon. Pure. */
#include "proto/xmlrpc.h"

#include <errno.h>

static void put_text(struct sbuf *b, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.s[i];

		if (c == '&')
			sbuf_str(b, STR("&amp;"));
		else if (c == '<')
			sbuf_str(b, STR("&lt;"));
		else if (c == '>')
			sbuf_str(b, STR("&gt;"));
		else if ((c < 0x20 && c != '\t') || c == 0x7f)
			sbuf_put(b, "?", 1);
		else
			sbuf_put(b, &s.s[i], 1);
	}
}

void xmlrpc_write_call(struct sbuf *b, struct str method, const struct str *param, size_t n)
{
	sbuf_str(b, STR("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<methodCall><methodName>"));
	put_text(b, method);
	sbuf_str(b, STR("</methodName><params>"));
	for (size_t i = 0; i < n; i++) {
		sbuf_str(b, STR("<param><value><string>"));
		put_text(b, param[i]);
		sbuf_str(b, STR("</string></value></param>"));
	}
	sbuf_str(b, STR("</params></methodCall>\r\n"));
}

/* The text after the first occurrence of word, or s = NULL. */
static struct str text_after(struct str text, struct str word)
{
	const char *at = text.len ? memmem(text.s, text.len, word.s, word.len) : NULL;

	if (!at)
		return STR_NONE;
	at += word.len;
	return (struct str){at, (size_t)(text.s + text.len - at)};
}

/* The text of the value that comes next: between the end of a tag and the beginning of another, the
 * first that is not empty. */
static struct str next_text(struct str rest)
{
	while (rest.len) {
		struct str text;

		rest = text_after(rest, STR(">"));
		text = str_trim(str_cut(&rest, '<'));
		if (text.len)
			return text;
	}
	return STR_NONE;
}

int xmlrpc_read_reply(struct str reply, struct str *fault)
{
	struct str in = text_after(reply, STR("<methodResponse")), wrong;

	*fault = STR_NONE;
	if (!in.s)
		return -EBADMSG;
	wrong = text_after(in, STR("<fault"));
	if (!wrong.s)
		return text_after(in, STR("<params")).s ? 0 : -EBADMSG;
	/* <member><name>faultString</name><value><string>TEXT */
	wrong = text_after(wrong, STR("faultString</name"));
	if (wrong.s)
		*fault = next_text(wrong);
	return -EREMOTEIO;
}
