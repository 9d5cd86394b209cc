/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl codecs: what the daemon can transcode, and its plug-ins. */
#include "ctl/columns.h"
#include "ctl/print.h"
#include "ctl/view.h"

static struct str text(struct pool *p, const struct ngval *dict, const char *key)
{
	return ngval_str(p, ngval_get(dict, str_from(key)));
}

static bool yes(const struct ngval *dict, const char *key)
{
	return ngval_int(ngval_get(dict, str_from(key)), 0);
}

static void list(const struct view *v, const struct ngval *codecs)
{
	struct table t;

	table_init(&t, v->p, "CODEC|>CLOCK|>RATE|>CHANNELS|>PTIME|DIRECTIONS|PLUG-IN");
	for (const struct ngval *c = codecs ? codecs->first : NULL; c; c = c->next) {
		struct str *cell = table_row(&t);

		if (!cell)
			return;
		cell[0] = text(v->p, c, "name");
		cell[1] = text(v->p, c, "clock");
		cell[2] = text(v->p, c, "rate");
		cell[3] = text(v->p, c, "channels");
		cell[4] = text(v->p, c, "ptime");
		cell[5] = yes(c, "encodes") ? STR("both") : STR("decodes");
		cell[6] = text(v->p, c, "plug-in");
		if (yes(c, "isolated"))
			cell[6] = pool_printf(v->p, STR_FMT ", isolated", STR_ARG(cell[6]));
	}
	table_print(v->to, &t, v->width, 0);
}

void view_codecs(const struct view *v, const struct ngval *reply)
{
	const struct ngval *plugins = ngval_get(reply, STR("plug-ins"));

	list(v, ngval_get(reply, STR("codecs")));
	if (str_eq(text(v->p, reply, "resampler"), STR("none")))
		fputs("there is no resampler (speexdsp.so): only codecs with a rate of 8000 are transcoded\n",
			v->to);
	for (const struct ngval *c = plugins ? plugins->first : NULL; c; c = c->next) {
		struct str refused = text(v->p, c, "refused");

		if (!refused.len)
			continue;
		print_text(v->to, text(v->p, c, "file"));
		fputs(" is refused: ", v->to);
		print_text(v->to, refused);
		fputc('\n', v->to);
	}
}
