/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key ZRTP of ng: whether ZRTP ends here, and what happens before there are keys. */
#include "proto/ng_int.h"

bool ng_set_zrtp(struct ng_parser *x, struct str value)
{
	static const struct {
		struct str word;
		uint32_t bit, replaces;
	} words[] = {
		{{"off", 3}, NG_ZRTP_OFF, NG_ZRTP_MODES},
		{{"no", 2}, NG_ZRTP_OFF, NG_ZRTP_MODES},
		{{"disable", 7}, NG_ZRTP_OFF, NG_ZRTP_MODES},
		{{"passthrough", 11}, NG_ZRTP_PASSTHROUGH, NG_ZRTP_MODES},
		{{"terminate", 9}, NG_ZRTP_TERMINATE, NG_ZRTP_MODES},
		{{"require", 7}, NG_ZRTP_REQUIRE, NG_ZRTP_MODES},
		{{"hold", 4}, NG_ZRTP_HOLD, NG_ZRTP_BEFORE},
		{{"clear", 5}, NG_ZRTP_CLEAR, NG_ZRTP_BEFORE},
		{{"goclear", 7}, NG_ZRTP_GOCLEAR, 0},
		{{"fallback", 8}, NG_ZRTP_FALLBACK, 0},
		{{"enrol", 5}, NG_ZRTP_ENROL, 0},
		{{"enroll", 6}, NG_ZRTP_ENROL, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (ng_spelled_like(words[i].word, value)) {
			x->r->zrtp = (x->r->zrtp & ~words[i].replaces) | words[i].bit;
			return true;
		}
	return false;
}
