/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A reply to "explain" on a terminal (ctl/view.h). */
#include "ctl/explain.h"

#include <time.h>

#include "ctl/print.h"
#include "ctl/view.h"

static const struct ngval *get(const struct ngval *d, const char *key)
{
	return d ? ngval_get(d, str_from(key)) : NULL;
}

static void put(const struct view *v, const struct ngval *d, const char *key)
{
	print_text(v->to, ngval_str(v->p, get(d, key)));
}

/* "  before: value", if there is one. */
static void put_line(
	const struct view *v, const char *before, const struct ngval *d, const char *key)
{
	if (!get(d, key))
		return;
	fprintf(v->to, "  %s", before);
	put(v, d, key);
	fputc('\n', v->to);
}

static void put_leg(const struct view *v, const struct ngval *l)
{
	put(v, l, "role");
	fputc(' ', v->to);
	put(v, l, "tag");
	fprintf(v->to, ", media %lld: ", (long long)ngval_int(get(l, "media"), 0));
	put(v, l, "kind");
	fputc(' ', v->to);
	put(v, l, "codec");
	fputs(get(l, "codec") ? ", " : "", v->to);
	put(v, l, "protocol");
	fputs(", ", v->to);
	put(v, l, "direction");
	fputs("\n  suite: ", v->to);
	put(v, l, "suite in");
	if (!str_eq(ngval_str(v->p, get(l, "suite in")), ngval_str(v->p, get(l, "suite out")))) {
		fputs(" from the terminal, to it ", v->to);
		put(v, l, "suite out");
	}
	fputc('\n', v->to);
	put_line(v, "because: ", l, "why");
	put_line(v, "transcoded: ", l, "transcoded");
	put_line(v, "its audio: ", l, "audio");
	put_line(v, "SRTP+: ", l, "SRTP+");
	put_line(v, "ZRTP SAS between this terminal and the relay: ", l, "SAS");
	put_line(v, "identity that MIKEY proved: ", l, "MIKEY peer");
	put_line(v, "blocked by command: ", l, "blocked");
	put_line(v, "address: ", l, "source");
	put_line(v, "", l, "received");
	put_line(v, "", l, "sent");
	put_line(v, "dropped: ", l, "dropped");
	put_line(v, "RTCP dropped: ", l, "RTCP dropped");
	put_line(v, "TROUBLE: ", l, "trouble");
}

static void put_event(const struct view *v, const struct ngval *e)
{
	int64_t ms = ngval_int(get(e, "time"), 0);
	time_t s = (time_t)(ms / 1000);
	char when[32] = "";
	struct tm tm;

	if (localtime_r(&s, &tm))
		strftime(when, sizeof(when), "%H:%M:%S", &tm);
	fprintf(v->to, "  %s.%03lld  ", when, (long long)(ms % 1000));
	put(v, e, "event");
	if (get(e, "tag")) {
		fputc(' ', v->to);
		put(v, e, "tag");
	}
	fputs(": ", v->to);
	put(v, e, "text");
	fputc('\n', v->to);
}

void view_explain(const struct view *v, const struct ngval *reply)
{
	const struct ngval *summary = get(reply, "summary"), *legs = get(reply, "legs");
	const struct ngval *events = get(reply, "events");
	int64_t left_out = ngval_int(get(reply, "events left out"), 0);

	put(v, reply, "call-id");
	fputc('\n', v->to);
	for (const struct ngval *s = summary ? summary->first : NULL; s; s = s->next) {
		fputs("  ", v->to);
		print_text(v->to, ngval_str(v->p, s));
		fputc('\n', v->to);
	}
	for (const struct ngval *l = legs ? legs->first : NULL; l; l = l->next) {
		fputc('\n', v->to);
		put_leg(v, l);
	}
	fputs("\nWhat happened\n", v->to);
	for (const struct ngval *e = events ? events->first : NULL; e; e = e->next)
		put_event(v, e);
	if (left_out)
		fprintf(v->to, "  %lld events in between are not kept\n", (long long)left_out);
}
