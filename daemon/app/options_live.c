/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares two sets of options, and applies the differences that a running daemon can apply: the
 * rows that are LIVE. Their values are read for each call or each second. */
#include "app/options_int.h"

#include "app/templates.h"
#include "control/teardown.h"

struct span { /* bytes of struct options */
	size_t off, len;
};

/* The memory of an option's value: up to two places. Strings are compared separately. */
static void spans(const struct option_row *row, struct span out[2])
{
#define SPAN(field) \
	((struct span){offsetof(struct options, field), sizeof(((struct options *)0)->field)})
	static const size_t len[] = {[ENDPOINT] = sizeof(struct endpoint),
		[LISTEN] = sizeof(struct endpoint),
		[PORT] = 2,
		[STEERING] = sizeof(void *),
		[XDP_MODE] = sizeof(int),
		[ENGINE] = sizeof(int),
		[QUEUE_SEND] = sizeof(int),
		[UDP_IO] = sizeof(int),
		[UINT8] = 1,
		[UINT16] = 2,
		[UINT32] = 4,
		[UINT64] = 8,
		[DECIMAL] = sizeof(double),
		[LEARNING] = sizeof(int),
		[ZRTP] = sizeof(enum zrtp_policy),
		[PREAUTH] = sizeof(struct preauth_policy),
		[BOOL] = sizeof(bool),
		[FLAG] = sizeof(bool),
		[LEVEL] = sizeof(int),
		[REDIS] = sizeof(struct redis_server),
		[RECORDING] = sizeof(int),
		[MIX] = sizeof(bool),
		[FORMAT] = sizeof(bool),
		[ISOLATION] = sizeof(enum codec_isolation),
		[PROFILES] = SUITE_COUNT,
		[NETS] = sizeof(struct call_nets),
		[SOME_NETS] = sizeof(struct call_nets)};

	out[0] = (struct span){row->offset, row->kind < ARRAY_LEN(len) ? len[row->kind] : 0};
	out[1] = (struct span){0, 0};
	if (row->kind == INTERFACE) {
		out[0] = SPAN(local);
		out[1] = SPAN(locals);
	} else if (row->kind == DEVICES) {
		out[0] = SPAN(device);
		out[1] = SPAN(devices);
	} else if (row->kind == MINS) {
		out[0] = SPAN(opencl_min);
	} else if (row->kind == SDES_OFFER) {
		out[0] = SPAN(sdes.offer);
	} else if (row->kind == SDES_ACCEPT) {
		out[0] = SPAN(sdes.accept);
		out[1] = SPAN(sdes.params);
	}
#undef SPAN
}

bool option_differs(const struct option_row *row, const struct options *a, const struct options *b)
{
	const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
	struct span at[2];

	if (option_is_text(row))
		return strcmp(*(const char *const *)(x + row->offset),
			       *(const char *const *)(y + row->offset)) != 0;
	spans(row, at);
	return memcmp(x + at[0].off, y + at[0].off, at[0].len) != 0 ||
		memcmp(x + at[1].off, y + at[1].off, at[1].len) != 0;
}

uint32_t options_take_live(struct options *now, struct options *next,
	void (*other)(void *arg, const char *name), void *arg)
{
	uint32_t changed = 0;

	if (templates_differ(&now->ng_templates, &next->ng_templates)) {
		const struct ng_templates old = now->ng_templates;

		now->ng_templates = next->ng_templates;
		next->ng_templates = old; /* freed with it */
		changed++;
	}

	for (size_t i = 0; i < OPTION_ROWS; i++) {
		struct span at[2];

		/* Without --workers, the steering set the number: ignore the difference. */
		if (!option_differs(&option_rows[i], now, next) ||
			(next->workers_auto && strcmp(option_rows[i].name, "workers") == 0))
			continue;
		if (!option_rows[i].live) {
			other(arg, option_rows[i].name);
			continue;
		}
		spans(&option_rows[i], at);
		for (int k = 0; k < 2; k++)
			memcpy((uint8_t *)now + at[k].off, (const uint8_t *)next + at[k].off,
				at[k].len);
		changed++;
	}
	return changed;
}
