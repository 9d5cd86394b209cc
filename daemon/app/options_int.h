/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of options. Private to the files that read, set and compare them. */
#ifndef XCIPHER_APP_OPTIONS_INT_H
#define XCIPHER_APP_OPTIONS_INT_H

#include "app/options.h"

enum kind {
	CONFIG,
	INTERFACE,
	ENDPOINT,
	LISTEN,
	REDIS,
	PORT,
	STEERING,
	XDP_MODE,
	ENGINE,
	QUEUE_SEND,
	UDP_IO,
	DEVICES,
	MINS,
	STRING,
	NAMES,
	UINT8,
	UINT16,
	UINT32,
	UINT64,
	DECIMAL,
	LEARNING,
	ZRTP,
	PREAUTH,
	RECORDING,
	MIX,
	FORMAT,
	ISOLATION,
	SDES_OFFER,
	SDES_ACCEPT,
	PROFILES,
	NETS,
	SOME_NETS,
	BOOL,
	FLAG,
	LEVEL,
};

struct option_row {
	const char *name;
	bool live; /* the column when */
	enum kind kind;
	size_t offset;
	const char *def, *arg, *help;
};

#define X(name, when, kind, field, def, arg, help) +1
enum { OPTION_ROWS = OPTIONS(X) };
#undef X
extern const struct option_row option_rows[OPTION_ROWS];

/* Stores the value (options_value.c). NULL, or a constant description of valid values. */
const char *option_set(struct options *o, const struct option_row *row, const char *value);

/* Whether the option's value differs (options_live.c). */
bool option_differs(const struct option_row *row, const struct options *a, const struct options *b);
/* Sets all but the interfaces. False: out of memory. Call options_free() in any case. */
bool options_defaults(struct options *o);

static inline bool option_is_text(const struct option_row *row)
{
	return row->kind == STRING || row->kind == NAMES || row->kind == CONFIG;
}

/* The separator of a list option; 0: the option is not a list. */
static inline char option_separator(const struct option_row *row)
{
	switch (row->kind) {
	case INTERFACE:
		return ';';
	case NAMES:
	case DEVICES:
	case MINS:
	case SDES_OFFER:
	case SDES_ACCEPT:
	case PROFILES:
	case NETS:
	case SOME_NETS:
		return ',';
	default:
		return 0;
	}
}

#endif
