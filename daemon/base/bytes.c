/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slices of text. ASCII only and independent of the locale, because protocols are. */
#include "base/bytes.h"

#include <errno.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (lower(a.s[i]) != lower(b.s[i]))
			return false;
	return true;
}

bool str_starts(struct str a, struct str prefix)
{
	return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.s, prefix.s, prefix.len) == 0);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_word(struct str *rest)
{
	struct str word;

	while (rest->len && (*rest->s == ' ' || *rest->s == '\t')) {
		rest->s++;
		rest->len--;
	}
	word = (struct str){rest->s, 0};
	while (word.len < rest->len && rest->s[word.len] != ' ' && rest->s[word.len] != '\t')
		word.len++;
	if (word.len) {
		rest->s += word.len;
		rest->len -= word.len;
	}
	return word;
}

struct str str_trim(struct str a)
{
	while (a.len && is_space(a.s[0])) {
		a.s++;
		a.len--;
	}
	while (a.len && is_space(a.s[a.len - 1]))
		a.len--;
	return a;
}

bool str_has_control(struct str a)
{
	for (size_t i = 0; i < a.len; i++) {
		unsigned char c = (unsigned char)a.s[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return true;
	}
	return false;
}

struct str str_cut(struct str *rest, char sep)
{
	struct str head = *rest;
	const char *at = rest->len ? memchr(rest->s, sep, rest->len) : NULL;

	if (!at) {
		*rest = STR_NONE;
		return head;
	}
	head.len = (size_t)(at - rest->s);
	rest->s = at + 1;
	rest->len -= head.len + 1;
	return head;
}

int str_to_u64(uint64_t *out, struct str a, uint64_t max)
{
	uint64_t v = 0;

	if (a.len == 0)
		return -EINVAL;
	for (size_t i = 0; i < a.len; i++) {
		unsigned digit = (unsigned char)a.s[i] - '0';

		if (digit > 9)
			return -EINVAL;
		if (v > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		v = v * 10 + digit;
	}
	if (v > max)
		return -ERANGE;
	*out = v;
	return 0;
}
