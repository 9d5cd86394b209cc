/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a call is written down: the tables, as save_write.c and save_read.c walk them. */
#ifndef PERSIST_SAVE_TABLES_H
#define PERSIST_SAVE_TABLES_H

#include "call/model.h"

enum kind {
	NUMBER, /* of size bytes; at most max */
	BYTES,  /* of at most size; zeroes at the end are not written */
	TEXT,   /* struct str, on the heap */
	ADDR,   /* struct endpoint */
	LOCAL,  /* uint8_t: index of a local address, written as the address */
	RECORD, /* a struct by its own table */
	LIST,   /* of structs in an array, as many as the count says; at most max */
	TEXTS,  /* of struct str likewise */
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
