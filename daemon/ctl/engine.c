/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl engine: the devices and what was measured at start, from the reply to "statistics". */
#include "ctl/engine.h"

#include <stdio.h>

#include "ctl/print.h"

static const char *const device_keys[] = {
	"state", "weight", "batches", "jobs", "errors", "ns per packet", "minimum"};
static const int shown[] = {1, 4, 16, 64, 256, 1024};

static struct str text(struct pool *p, const struct ngval *dict, const char *key)
{
	return ngval_str(p, ngval_get(dict, str_from(key)));
}

/* "device/serial" at one size, or "-". */
static const char *measured(struct pool *p, const struct ngval *kind, int batch)
{
	const struct ngval *list = ngval_get(kind, STR("measured"));

	for (const struct ngval *m = list ? list->first : NULL; m; m = m->next)
		if (ngval_int(ngval_get(m, STR("batch")), 0) == batch) {
			struct str s = pool_printf(p, "%lld/%lld",
				(long long)ngval_int(ngval_get(m, STR("device ns")), 0),
				(long long)ngval_int(ngval_get(m, STR("serial ns")), 0));

			return s.s ? s.s : "-";
		}
	return "-";
}

static void class_show(struct pool *p, const struct ngval *kind)
{
	printf("  %-8.*s %10.*s ", STR_ARG(kind->key), STR_ARG(text(p, kind, "from batch")));
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		printf(" %11s", measured(p, kind, shown[i]));
	putchar('\n');
}

static void device_show(struct pool *p, const struct ngval *d, int index)
{
	const struct ngval *classes = ngval_get(d, STR("classes"));

	printf("device %d: ", index);
	print_tree(stdout, ngval_get(d, STR("name")));
	for (size_t i = 0; i < ARRAY_LEN(device_keys); i++)
		printf("%s%s " STR_FMT, i ? ", " : "  ", device_keys[i],
			STR_ARG(text(p, d, device_keys[i])));
	printf("\n  %-8s %10s  ns per packet, device/serial, in batches of\n  %-8s %10s ", "class",
		"from batch", "", "");
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		printf(" %11d", shown[i]);
	putchar('\n');
	for (const struct ngval *c = classes ? classes->first : NULL; c; c = c->next)
		class_show(p, c);
}

bool engine_show(struct pool *p, const struct ngval *reply, bool json)
{
	const struct ngval *x = ngval_get(ngval_get(reply, STR("statistics")), STR("xcipher"));
	const struct ngval *list = ngval_get(x, STR("devices"));
	static const char *const keys[] = {"engine", "batches", "jobs", "mean batch",
		"device batches", "device jobs", "device errors", "engine ns per packet"};
	struct ngval *out = ngval_dict(p);
	int index = 0;

	if (!list) {
		fprintf(stderr,
			"xcipherctl: engine: the reply does not mention engines; is this an xcipherd?\n");
		return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct ngval *v = ngval_get(x, str_from(keys[i]));

		if (v && v->type == NGVAL_INT)
			ngval_add_int(p, out, str_from(keys[i]), v->num);
		else
			ngval_add_str(p, out, str_from(keys[i]), ngval_str(p, v));
	}
	if (json) {
		struct ngval *copy = ngval_add_list(p, out, STR("devices"));

		copy->first = list->first;
		copy->last = list->last;
		print_json(stdout, out);
		return true;
	}
	print_tree(stdout, out);
	for (const struct ngval *d = list->first; d; d = d->next)
		device_show(p, d, index++);
	if (index == 0)
		printf("no device: the serial engine processes all packets\n");
	return true;
}
