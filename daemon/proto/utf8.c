/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF. Pure. */
#include "proto/utf8.h"

size_t utf8_len(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.s;
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (p[0] > 0xf4 || len == 0 || len > s.len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if (p[i] >> 6 != 2)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return len;
}

bool utf8_valid(struct str s)
{
	for (size_t at = 0; at < s.len;) {
		size_t n = utf8_len((struct str){s.s + at, s.len - at});

		if (n == 0)
			return false;
		at += n;
	}
	return true;
}
