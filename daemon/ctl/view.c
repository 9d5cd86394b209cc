/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints replies for people (ctl/view.h). A missing value is shown as "-": the daemon may be
 * older. */
#include "ctl/view.h"

#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/print.h"
#include "ctl/columns.h"
#include "srtp/suite.h"

static const struct ngval *get(const struct ngval *d, const char *key)
{
	return d ? ngval_get(d, str_from(key)) : NULL;
}

static int64_t number(const struct ngval *d, const char *key)
{
	return ngval_int(get(d, key), 0);
}

static struct str text(struct pool *p, const struct ngval *d, const char *key)
{
	struct str s = ngval_str(p, get(d, key));

	return s.len ? s : STR("-");
}

static struct str count(struct pool *p, int64_t n)
{
	return pool_printf(p, "%lld", (long long)n);
}

/* "1h02", "3m05", "12s" since a time of day. */
static struct str since(struct pool *p, int64_t unix_s)
{
	int64_t s = (int64_t)time(NULL) - unix_s;

	if (unix_s == 0)
		return STR("-");
	s = s < 0 ? 0 : s;
	if (s >= 86400)
		return pool_printf(
			p, "%lldd%02lldh", (long long)(s / 86400), (long long)(s / 3600 % 24));
	if (s >= 3600)
		return pool_printf(
			p, "%lldh%02lldm", (long long)(s / 3600), (long long)(s / 60 % 60));
	if (s >= 60)
		return pool_printf(p, "%lldm%02llds", (long long)(s / 60), (long long)(s % 60));
	return pool_printf(p, "%llds", (long long)s);
}

/* The part of a suite's brief name that stands for the rest of its name: without the tag's length,
 * which both have. *name_len: of the part of the name. */
static size_t brief_part(const struct srtp_suite *s, size_t *name_len)
{
	const char *tag = strrchr(s->brief, '_');
	size_t cut = tag ? strlen(tag + 1) : 0;

	*name_len = strlen(s->name) - cut;
	return strlen(s->brief) - cut;
}

static struct str suite_short(struct pool *p, struct str name)
{
	for (uint32_t i = SUITE_PLAIN + 1; i < SUITE_COUNT; i++) {
		const struct srtp_suite *s = srtp_suite_get(i);
		size_t n, brief = brief_part(s, &n);

		if (str_starts(name, (struct str){s->name, n}))
			return pool_printf(p, "%.*s" STR_FMT, (int)brief, s->brief,
				(int)(name.len - n), name.s + n);
	}
	return name;
}

const char *suite_long(const char *name, char *buf, size_t len)
{
	for (uint32_t i = SUITE_PLAIN + 1; i < SUITE_COUNT; i++) {
		const struct srtp_suite *s = srtp_suite_get(i);
		size_t n, brief = brief_part(s, &n);

		if (strncasecmp(name, s->brief, brief) != 0)
			continue;
		snprintf(buf, len, "%.*s%s", (int)n, s->name, name + brief);
		return buf;
	}
	return name;
}

/* The first problem, or else the state. */
static struct str state(struct pool *p, const struct ngval *call)
{
	const struct ngval *trouble = get(call, "trouble");

	if (trouble && trouble->first)
		return ngval_str(p, trouble->first);
	if (number(call, "emergency"))
		return STR("emerg");
	if (get(call, "state"))
		return text(p, call, "state");
	return number(call, "ending")      ? STR("ending")
		: number(call, "answered") ? STR("up")
					   : STR("offered");
}

static struct str mos(struct pool *p, int64_t hundredths)
{
	return hundredths ? pool_printf(p, "%.2f", (double)hundredths / 100) : STR("-");
}

/* Adds a word to those of a cell, unless it is the last one there already. */
static void add_word(struct pool *p, struct str *cell, struct str *last, struct str word)
{
	if (last->len && str_eq(*last, word))
		return;
	*cell = last->len ? pool_printf(p, STR_FMT "+" STR_FMT, STR_ARG(*cell), STR_ARG(word))
			  : word;
	*last = word;
}

/* The suites of all m-lines of the caller and its peer, as "GCM256+plain". */
static void suites(struct pool *p, struct str cell[2], struct str *codec, const struct ngval *legs)
{
	int64_t caller = legs && legs->first ? number(legs->first, "side") : 0, callee = -1;
	struct str last[2] = {STR_NONE, STR_NONE}, last_codec = STR_NONE;

	for (const struct ngval *l = legs ? legs->first : NULL; l; l = l->next) {
		int64_t side = number(l, "side");

		if (side == caller && callee < 0)
			callee = ngval_int(get(l, "peer"), -1);
	}
	for (const struct ngval *l = legs ? legs->first : NULL; l; l = l->next) {
		int64_t side = number(l, "side");

		if (side != caller && callee < 0)
			callee = side;
		if (side != caller && side != callee)
			continue;
		add_word(p, &cell[side == callee], &last[side == callee],
			suite_short(p, text(p, l, "suite")));
		if (side == caller && get(l, "codec"))
			add_word(p, codec, &last_codec, text(p, l, "codec"));
	}
}

static struct str milliseconds(struct pool *p, const struct ngval *us)
{
	return us ? pool_printf(p, "%.0f ms", (double)ngval_int(us, 0) / 1000) : STR("-");
}

static void calls_row(struct pool *p, struct str *cell, const struct ngval *call)
{
	cell[0] = text(p, call, "id");
	cell[1] = state(p, call);
	cell[2] = since(p, number(call, "created"));
	cell[3] = cell[4] = cell[10] = STR("-");
	suites(p, &cell[3], &cell[10], get(call, "legs"));
	cell[5] = text(p, call, "packets");
	cell[6] = text(p, call, "errors");
	cell[7] = mos(p, number(call, "MOS"));
	cell[8] = milliseconds(p, get(call, "RTT"));
	cell[9] = since(p, number(call, "last packet"));
}

void view_calls(const struct view *v, const struct ngval *reply)
{
	const struct ngval *list = get(reply, "calls");
	int64_t matched = number(reply, "matched"), shown = 0;
	struct table t;

	table_init(&t, v->p,
		"~CALL-ID|STATE|>AGE|~CALLER|~CALLEE|>PACKETS|>ERRORS|>MOS|>RTT|>LAST PACKET|~CODEC");
	for (const struct ngval *c = list ? list->first : NULL; c; c = c->next) {
		struct str *cell = table_row(&t);

		if (!cell)
			break;
		calls_row(v->p, cell, c);
		shown++;
		if (v->selected)
			cell[0] = pool_printf(v->p, "%c " STR_FMT, shown == v->selected ? '>' : ' ',
				STR_ARG(cell[0]));
	}
	if (shown == 0) {
		fprintf(v->to, "no calls\n");
		return;
	}
	table_print(v->to, &t, v->width, v->rows);
	if (v->rows && shown > v->rows)
		shown = v->rows;
	if (matched > shown)
		fprintf(v->to, "%lld of %lld calls%s\n", (long long)shown, (long long)matched,
			v->rows ? "" : "; --limit=N shows more, --all all");
}

/* --- One call --------------------------------------------------------------------------------- */

static struct str words(struct pool *p, const struct ngval *list)
{
	struct str s = STR("");

	for (const struct ngval *w = list ? list->first : NULL; w; w = w->next)
		s = s.len ? pool_printf(p, STR_FMT "," STR_FMT, STR_ARG(s), STR_ARG(w->str))
			  : w->str;
	return s.len ? s : STR("-");
}

static struct str endpoint(struct pool *p, const struct ngval *e)
{
	return e ? pool_printf(p, STR_FMT ":" STR_FMT, STR_ARG(text(p, e, "address")),
			   STR_ARG(text(p, e, "port")))
		 : STR("-");
}

static void stream_row(struct pool *p, struct str *cell, struct str tag, const struct ngval *media,
	const struct ngval *s)
{
	const struct ngval *in = get(s, "stats"), *out = get(s, "stats_out");

	cell[0] = tag;
	cell[1] = text(p, media, "type");
	cell[2] =
		suite_short(p, get(s, "crypto suite") ? text(p, s, "crypto suite") : STR("plain"));
	cell[3] = pool_printf(p, STR_FMT ":" STR_FMT, STR_ARG(text(p, s, "local address")),
		STR_ARG(text(p, s, "local port")));
	cell[4] = endpoint(p, get(s, "endpoint"));
	cell[5] = text(p, in, "packets");
	cell[6] = text(p, out, "packets");
	cell[7] = text(p, in, "errors");
	cell[8] = since(p, number(s, "last packet"));
	cell[9] = words(p, get(s, "flags"));
}

static void drops(const struct view *v, struct str tag, const struct ngval *stream)
{
	const struct ngval *d = get(stream, "drops");

	for (const struct ngval *c = d ? d->first : NULL; c; c = c->next) {
		fprintf(v->to, "dropped: %lld %.*s, tag ", (long long)c->num, STR_ARG(c->key));
		print_text(v->to, tag);
		fprintf(v->to, ", local port %lld\n", (long long)number(stream, "local port"));
	}
}

void view_call(const struct view *v, const struct ngval *reply)
{
	const struct ngval *tags = get(reply, "tags"), *totals = get(reply, "totals");
	const struct ngval *rec = get(reply, "recording");
	struct table t;

	if (!tags) {
		fputs("debug log of this call: ", v->to);
		print_text(v->to, ngval_str(v->p, get(reply, "debug")));
		fputc('\n', v->to);
		return;
	}
	table_init(
		&t, v->p, "~TAG|MEDIA|SUITE|~LOCAL|~REMOTE|>IN|>OUT|>ERRORS|>LAST PACKET|~FLAGS");
	for (const struct ngval *s = tags ? tags->first : NULL; s; s = s->next) {
		const struct ngval *medias = get(s, "medias");

		for (const struct ngval *m = medias ? medias->first : NULL; m; m = m->next)
			for (const struct ngval *x = get(m, "streams") ? get(m, "streams")->first
								       : NULL;
				x; x = x->next) {
				struct str *cell = table_row(&t);

				if (cell)
					stream_row(v->p, cell, s->key, m, x);
			}
	}
	fprintf(v->to, "up for " STR_FMT ", last signalled " STR_FMT " ago\n",
		STR_ARG(since(v->p, number(reply, "created"))),
		STR_ARG(since(v->p, number(reply, "last signal"))));
	table_print(v->to, &t, v->width, 0);
	for (const struct ngval *s = tags ? tags->first : NULL; s; s = s->next) {
		const struct ngval *medias = get(s, "medias");

		for (const struct ngval *m = medias ? medias->first : NULL; m; m = m->next)
			for (const struct ngval *x = get(m, "streams") ? get(m, "streams")->first
								       : NULL;
				x; x = x->next)
				drops(v, s->key, x);
	}
	fprintf(v->to, "in all " STR_FMT " RTP and " STR_FMT " RTCP packets\n",
		STR_ARG(text(v->p, get(totals, "RTP"), "packets")),
		STR_ARG(text(v->p, get(totals, "RTCP"), "packets")));
	if (rec) {
		fprintf(v->to, "recording:\n");
		print_tree(v->to, rec);
	}
}

/* --- The daemon ------------------------------------------------------------------------------- */

/* In milliseconds; "-" if there was no packet. */
static struct str delay(struct pool *p, const struct ngval *late, const char *key)
{
	struct str us = ngval_str(p, get(late, key));

	if (!us.len || !number(late, "count"))
		return STR("-");
	return pool_printf(p, "%.3f ms", strtod(pool_strdup(p, us).s, NULL) / 1000);
}

uint32_t view_head(const struct view *v, const struct ngval *reply, struct view_before *before)
{
	const struct ngval *s = get(reply, "statistics"), *x = get(s, "xcipher");
	const struct ngval *now = get(s, "currentstatistics"), *all = get(s, "totalstatistics");
	const struct ngval *late = get(x, "latency now"), *burst = get(x, "burst size");
	const struct ngval *dropped = get(x, "drops");
	struct view_before b = {.mono_ns = clock_mono_ns(),
		.in = number(x, "packets received"),
		.out = number(x, "packets sent")};
	double seconds = before->mono_ns ? (double)(b.mono_ns - before->mono_ns) / 1e9 : 0;
	struct pool *p = v->p;

	for (const struct ngval *d = dropped ? dropped->first : NULL; d; d = d->next)
		b.drops += d->num;
	fprintf(v->to,
		"xcipherd " STR_FMT ", up " STR_FMT ", engine " STR_FMT ", steering " STR_FMT
		", %lld workers\n",
		STR_ARG(text(p, x, "version")),
		STR_ARG(since(p, (int64_t)time(NULL) - number(x, "uptime"))),
		STR_ARG(text(p, x, "engine")), STR_ARG(text(p, x, "steering")),
		(long long)number(x, "workers"));
	fprintf(v->to,
		"calls   %lld now, %lld in all, %lld refused, %lld timed out; limit reached: " STR_FMT
		"\n",
		(long long)number(now, "sessionstotal"), (long long)number(all, "managedsessions"),
		(long long)number(all, "rejectedsessions"),
		(long long)(number(all, "timeoutsessions") + number(all, "silenttimeoutsessions") +
			number(all, "finaltimeoutsessions") + number(all, "offertimeoutsessions")),
		STR_ARG(text(p, get(x, "limits"), "reached")));
	if (seconds > 0)
		fprintf(v->to, "packets %.0f/s in, %.0f/s out, %.0f/s dropped\n",
			(double)(b.in - before->in) / seconds,
			(double)(b.out - before->out) / seconds,
			(double)(b.drops - before->drops) / seconds);
	else
		fprintf(v->to, "packets %lld in, %lld out, %lld dropped\n", (long long)b.in,
			(long long)b.out, (long long)b.drops);
	fprintf(v->to,
		"delay   " STR_FMT " median, " STR_FMT " p99 in the last %lld s; bursts of " STR_FMT
		" (p99 " STR_FMT "); ports %lld used, %lld free\n",
		STR_ARG(delay(p, late, "p50_us")), STR_ARG(delay(p, late, "p99_us")),
		(long long)number(late, "seconds"), STR_ARG(text(p, burst, "p50")),
		STR_ARG(text(p, burst, "p99")), (long long)number(x, "ports used"),
		(long long)number(x, "ports free"));
	*before = b;
	return 4;
}

void view_stats(const struct view *v, const struct ngval *reply)
{
	const struct ngval *x = get(get(reply, "statistics"), "xcipher"), *list;
	struct view_before none = {0};
	struct table t;

	view_head(v, reply, &none);
	list = get(x, "drops");
	table_init(&t, v->p, "DROPPED BECAUSE|>PACKETS");
	for (const struct ngval *d = list ? list->first : NULL; d; d = d->next) {
		struct str *cell = d->num ? table_row(&t) : NULL;

		if (cell) {
			cell[0] = d->key;
			cell[1] = count(v->p, d->num);
		}
	}
	if (t.first)
		table_print(v->to, &t, v->width, 0);
	list = get(get(reply, "statistics"), "mediasuites");
	table_init(&t, v->p, "SUITE|>MEDIA");
	for (const struct ngval *s = list ? list->first : NULL; s; s = s->next) {
		struct str *cell = s->num ? table_row(&t) : NULL;

		if (cell) {
			cell[0] = s->key;
			cell[1] = count(v->p, s->num);
		}
	}
	if (t.first)
		table_print(v->to, &t, v->width, 0);
}

void view_limits(const struct view *v, const struct ngval *reply)
{
	const struct ngval *d = get(reply, "limits");
	struct table t;

	table_init(&t, v->p, "LIMIT|>NOW|>AT MOST|>REFUSED");
	for (const struct ngval *c = d ? d->first : NULL; c; c = c->next) {
		struct str *cell = c->type == NGVAL_DICT ? table_row(&t) : NULL;

		if (!cell)
			continue;
		cell[0] = c->key;
		cell[1] = text(v->p, c, "now");
		cell[2] = text(v->p, c, "limit");
		cell[3] = text(v->p, c, "refused");
	}
	table_print(v->to, &t, v->width, 0);
	fprintf(v->to, "reached: " STR_FMT "; %lld emergency calls, which no limit refuses\n",
		STR_ARG(text(v->p, d, "reached")), (long long)number(d, "emergency calls"));
}
