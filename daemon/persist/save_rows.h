/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Macros for rows of the tables (save_tables.c, save_old.c). */
#ifndef PERSIST_SAVE_ROWS_H
#define PERSIST_SAVE_ROWS_H

#include "persist/save_tables.h"

#define SIZE(type, member) sizeof(((struct type *)0)->member)
#define AT(type, member)   .offset = offsetof(struct type, member), .size = SIZE(type, member)
#define N(type, member)    .count = offsetof(struct type, member), .count_size = SIZE(type, member)
#define ONE(type, member)  .offset = offsetof(struct type, member), .size = SIZE(type, member[0])
#define ANY                UINT64_MAX
#define RECORD_OF(table)                \
	{                               \
		table, ARRAY_LEN(table) \
	}
#define NUM(key, type, member, most)                       \
	{                                                  \
		key, NUMBER, AT(type, member), .max = most \
	}
#define FLAG(key, type, member)                         \
	{                                               \
		key, NUMBER, AT(type, member), .max = 1 \
	}
#define ADDR_ROW(key, type, member)          \
	{                                    \
		key, ADDR, AT(type, member), \
	}
#define BYTES_ROW(key, type, member)          \
	{                                     \
		key, BYTES, AT(type, member), \
	}
#define LOCAL_ROW(key, type, member)          \
	{                                     \
		key, LOCAL, AT(type, member), \
	}
#define RECORD_ROW(key, type, member, table)                    \
	{                                                       \
		key, RECORD, AT(type, member), .record = &table \
	}

#endif
