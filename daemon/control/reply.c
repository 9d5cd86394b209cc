/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See reply.h. */
#include "control/reply.h"
#include "proto/bencode.h"
#include "proto/json.h"

#include <errno.h>

void reply_write(struct sbuf *b, const struct ngval *tree, enum ng_encoding enc)
{
	if (enc == NG_JSON)
		json_write(b, tree, false);
	else
		bencode_write(b, tree);
}

bool reply_fits(const struct sbuf *b, const struct ngval *tree, enum ng_encoding enc)
{
	struct sbuf trial;
	bool fits;

	if (!tree)
		return false;
	sbuf_init(&trial, (b->limit ? b->limit : REPLY_UNLIMITED) - b->len);
	reply_write(&trial, tree, enc);
	fits = !trial.err;
	sbuf_fini(&trial);
	return fits;
}

void reply_write_error(struct sbuf *b, size_t start, enum ng_encoding enc)
{
	const char *why = b->err == -EMSGSIZE ? NGE_TOO_LONG : NGE_NOMEM;

	b->err = 0;
	b->len = start;
	if (enc == NG_JSON)
		sbuf_printf(b, "{\"result\":\"error\",\"error-reason\":\"%s\"}", why);
	else
		sbuf_printf(b, "d6:result5:error12:error-reason%zu:%se", strlen(why), why);
}

#define DONE "done, but the reply is too long: the rest is omitted"

void reply_write_done(struct sbuf *b, size_t start, enum ng_encoding enc)
{
	_Static_assert(sizeof(DONE) - 1 == 52, "as below");
	b->err = 0;
	b->len = start;
	if (enc == NG_JSON)
		sbuf_printf(b, "{\"result\":\"ok\",\"warning\":\"%s\"}", DONE);
	else
		sbuf_printf(b, "d6:result2:ok7:warning52:%se", DONE);
}
