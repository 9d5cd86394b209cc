/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads ng templates (app/templates.h), and parses each, so that a typo fails the start instead of
 * a call. Flags that are known but unsupported only cause warnings in replies, as in a script. */
#include "app/templates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ini.h"

#define TEMPLATES_MAX 256u

struct reader {
	struct ng_template *one; /* [TEMPLATES_MAX] */
	size_t n;
	const char *section;
	const char *complaint; /* constant */
};

static bool line(void *arg, const char *section, const char *name, const char *value)
{
	struct reader *r = arg;
	struct ng_template *last;

	if (strcmp(section, r->section) != 0)
		return true;
	if (r->n == TEMPLATES_MAX) {
		r->complaint = "too many templates";
		return false;
	}
	last = &r->one[r->n++];
	last->name = str_from(strdup(name));
	last->flags = str_from(strdup(value));
	return last->name.s && last->flags.s;
}

/* Parses the flags as part of an offer. 0, or -EINVAL with the unknown flags in err. */
static int try_flags(const struct ng_template *t, const char *file, char *err, size_t err_len)
{
	struct ng_request request;
	struct ngval *msg;
	struct pool *p;
	int ret = 0;

	if (pool_create(&p, 1u << 20))
		return 0;
	msg = ngval_dict(p);
	ngval_add_str(p, msg, STR("command"), STR("offer"));
	ngval_add_str(p, msg, STR("rtpp-flags"), t->flags);
	if (!ng_request_parse(&request, p, msg) &&
		str_starts(request.warning, STR("unknown flag"))) {
		snprintf(err, err_len, "%s: template " STR_FMT ": " STR_FMT, file, STR_ARG(t->name),
			STR_ARG(request.warning));
		ret = -EINVAL;
	}
	pool_destroy(p);
	return ret;
}

int templates_read(
	struct ng_templates *out, const char *file, const char *section, char *err, size_t err_len)
{
	struct reader r = {.one = calloc(TEMPLATES_MAX, sizeof(*r.one)), .section = section};
	int bad = r.one ? ini_read(file, line, &r) : -1, ret = 0;

	*out = (struct ng_templates){r.one, r.n};
	if (bad > 0) {
		snprintf(err, err_len, "%s, line %d: %s", file, bad,
			r.complaint ? r.complaint : "not of the form name = flags");
		ret = -EINVAL;
	} else if (bad < 0 || !r.n) {
		snprintf(err, err_len,
			"--templates=%s: %s has no such section with lines of the form name = flags",
			section, file);
		ret = -EINVAL;
	}
	for (size_t i = 0; i < r.n && !ret; i++)
		ret = try_flags(&r.one[i], file, err, err_len);
	if (ret)
		templates_free(out);
	return ret;
}

void templates_free(struct ng_templates *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free((void *)(uintptr_t)t->one[i].name.s);
		free((void *)(uintptr_t)t->one[i].flags.s);
	}
	free((void *)(uintptr_t)t->one);
	*t = (struct ng_templates){0};
}

bool templates_differ(const struct ng_templates *a, const struct ng_templates *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++)
		if (!str_eq(a->one[i].name, b->one[i].name) ||
			!str_eq(a->one[i].flags, b->one[i].flags))
			return true;
	return a->n != b->n;
}
