/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of a saved call, used by save_write.c and save_read.c. */
#ifndef PERSIST_SAVE_TABLES_H
#define PERSIST_SAVE_TABLES_H

#include "call/model.h"

enum kind {
	NUMBER, /* a number of size bytes; at most max */
	BYTES,  /* at most size bytes; trailing zeroes are not written */
	TEXT,   /* struct str, on the heap */
	ADDR,   /* struct endpoint */
	LOCAL,  /* uint8_t: index of a local address, written as the address */
	RECORD, /* a struct by its own table */
	LIST,   /* an array of structs with a count; at most max */
	TEXTS,  /* an array of struct str with a count; at most max */
	SIDES,  /* struct call's */
	LEGS,   /* struct side's */
};

struct field {
	const char *key;
	enum kind kind;
	size_t offset, size; /* size: of an element */
	uint64_t max;
	const struct record *record;
	size_t count; /* offset of the count, */
	size_t count_size;
};

struct record {
	const struct field *field;
	size_t fields;
};

extern const struct record save_call, save_state, save_leg_state;
extern const struct record save_master, save_sdes, save_bag;

#endif
