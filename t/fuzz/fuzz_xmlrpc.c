/* SPDX-License-Identifier: GPL-2.0-or-later */
/* XML-RPC: a reply is anybody's bytes, and what we call with comes from SIP. A reply's fault lies
 * in the reply and has no tags; a call's parameters are read back as they were, whatever they are;
 * a fault that says one of them is found. */
#include <errno.h>
#include <stdlib.h>

#include "proto/xmlrpc.h"

#define PARAMS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void read_reply(struct str reply)
{
	struct str fault;
	int err = xmlrpc_read_reply(reply, &fault);

	must(err == 0 || err == -EREMOTEIO || err == -EBADMSG);
	if (err != -EREMOTEIO || !fault.len) {
		must(!fault.len);
		return;
	}
	must(fault.s >= reply.s && fault.s + fault.len <= reply.s + reply.len);
	must(!memchr(fault.s, '<', fault.len) && str_eq(fault, str_trim(fault)));
}

/* Decodes the text as an XML parser does. */
static void unescape(struct sbuf *b, struct str text)
{
	static const struct {
		struct str entity, is;
	} T[] = {{STR("&amp;"), STR("&")}, {STR("&lt;"), STR("<")}, {STR("&gt;"), STR(">")}};
	size_t i = 0, k;

	while (i < text.len) {
		struct str rest = {text.s + i, text.len - i};

		for (k = 0; k < ARRAY_LEN(T) && !str_starts(rest, T[k].entity);)
			k++;
		if (k < ARRAY_LEN(T)) {
			sbuf_str(b, T[k].is);
			i += T[k].entity.len;
			continue;
		}
		must(rest.s[0] != '&' && rest.s[0] != '>');
		sbuf_put(b, rest.s, 1);
		i++;
	}
}

static void same_text(struct str written, struct str meant)
{
	struct sbuf b;

	sbuf_init(&b, 0);
	unescape(&b, written);
	must(b.len == meant.len);
	for (size_t i = 0; i < b.len; i++) {
		unsigned char c = (unsigned char)meant.s[i];
		bool xml = (c >= 0x20 && c != 0x7f) || c == '\t';

		must(b.p[i] == (xml ? meant.s[i] : '?'));
	}
	sbuf_fini(&b);
}

/* Takes what is before this word, and the word. */
static struct str up_to(struct str *rest, struct str word)
{
	const char *at = rest->len ? memmem(rest->s, rest->len, word.s, word.len) : NULL;
	struct str before;

	must(at);
	before = (struct str){rest->s, (size_t)(at - rest->s)};
	rest->len -= before.len + word.len;
	rest->s = at + word.len;
	return before;
}

static void write_call(const struct str *param, size_t n)
{
	struct str rest, text;
	struct sbuf b;

	sbuf_init(&b, 0);
	xmlrpc_write_call(&b, param[0], param + 1, n - 1);
	must(!b.err);
	rest = sbuf_view(&b);
	(void)up_to(&rest, STR("<methodName>"));
	same_text(up_to(&rest, STR("</methodName>")), param[0]);
	for (size_t i = 1; i < n; i++) {
		(void)up_to(&rest, STR("<string>"));
		same_text(up_to(&rest, STR("</string>")), param[i]);
	}
	must(!memmem(rest.s, rest.len, "<string>", 8));
	/* The first of them as a server's complaint. */
	b.len = 0;
	xmlrpc_write_call(&b, STR("x"), param, 1);
	rest = sbuf_view(&b);
	(void)up_to(&rest, STR("<string>"));
	text = str_trim(up_to(&rest, STR("</string>")));
	if (text.len) {
		struct sbuf reply;
		struct str fault;

		sbuf_init(&reply, 0);
		sbuf_str(&reply,
			STR("<methodResponse><fault><value><struct><member><name>faultString</name><value><string>"));
		sbuf_str(&reply, text);
		sbuf_str(&reply,
			STR("</string></value></member></struct></value></fault></methodResponse>"));
		must(xmlrpc_read_reply(sbuf_view(&reply), &fault) == -EREMOTEIO);
		must(str_eq(fault, text));
		sbuf_fini(&reply);
	}
	sbuf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *copy = malloc(len ? len : 1);
	struct str rest, param[PARAMS];
	size_t n = 0;

	must(copy);
	memcpy(copy, data, len);
	rest = (struct str){copy, len};
	read_reply(rest);
	do
		param[n++] = str_cut(&rest, 0);
	while (rest.len && n < PARAMS);
	write_call(param, n);
	free(copy);
	return 0;
}
