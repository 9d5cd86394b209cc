/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl codecs: what the daemon can transcode, and its plug-ins. */
#include "ctl/codecs.h"

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

/* A daemon without codec threads, or of an earlier version, has nothing to show. */
static void threads(const struct view *v, const struct ngval *t)
{
	int64_t packets = ngval_int(ngval_get(t, STR("packets")), 0);
	int64_t ms = ngval_int(ngval_get(t, STR("cpu ms")), 0);

	if (!packets)
		return;
	fprintf(v->to, "codec threads: %lld sessions, %lld packets, %.1f s of CPU, %.1f us each",
		(long long)ngval_int(ngval_get(t, STR("sessions")), 0), (long long)packets,
		(double)ms / 1e3, (double)ms * 1e3 / (double)packets);
	fprintf(v->to, "; %lld dropped, %lld sessions broken\n",
		(long long)ngval_int(ngval_get(t, STR("dropped")), 0),
		(long long)ngval_int(ngval_get(t, STR("broken")), 0));
}

static void pairs(const struct view *v, const struct ngval *list)
{
	for (const struct ngval *c = list ? list->first : NULL; c; c = c->next) {
		print_text(v->to, text(v->p, c, "codecs"));
		fprintf(v->to, ": %lld packets decoded, %lld passed",
			(long long)ngval_int(ngval_get(c, STR("decoded")), 0),
			(long long)ngval_int(ngval_get(c, STR("passed")), 0));
		fprintf(v->to, "; %lld lost, %lld concealed, %lld late",
			(long long)ngval_int(ngval_get(c, STR("lost")), 0),
			(long long)ngval_int(ngval_get(c, STR("concealed")), 0),
			(long long)ngval_int(ngval_get(c, STR("late")), 0));
		fprintf(v->to, "; about %.3f s of CPU in codecs\n",
			(double)ngval_int(ngval_get(c, STR("cpu us")), 0) / 1e6);
	}
}

void view_codecs(const struct view *v, const struct ngval *reply)
{
	const struct ngval *plugins = ngval_get(reply, STR("plug-ins"));

	list(v, ngval_get(reply, STR("codecs")));
	threads(v, ngval_get(reply, STR("threads")));
	pairs(v, ngval_get(reply, STR("pairs")));
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
