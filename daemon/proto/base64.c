/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Base64 (RFC 4648 4) of key material. Only lengths and the verdict "valid or not" may be seen in
 * the time it takes, so characters are mapped by arithmetic. Bits left over in the last character
 * are ignored: phones differ there. */
#include "proto/base64.h"

#include <errno.h>

#include "base/secmem.h"

/* All ones if lo <= c <= hi, else 0. */
static unsigned in_range(unsigned c, unsigned lo, unsigned hi)
{
	return 0u - (((lo - 1 - c) & (c - hi - 1)) >> 31);
}

/* 0..63; bit 8 is set for characters outside base64. */
static unsigned value_of(unsigned char ch)
{
	unsigned c = ch;
	unsigned upper = in_range(c, 'A', 'Z'), low = in_range(c, 'a', 'z');
	unsigned digit = in_range(c, '0', '9'), plus = in_range(c, '+', '+');
	unsigned slash = in_range(c, '/', '/');

	return (upper & (c - 'A')) | (low & (c - 'a' + 26)) | (digit & (c - '0' + 52)) |
		(plus & 62) | (slash & 63) | (~(upper | low | digit | plus | slash) & 0x100);
}

static char char_of(unsigned v)
{
	return (char)((in_range(v + 1, 1, 26) & (v + 'A')) |
		(in_range(v, 26, 51) & (v + 'a' - 26)) | (in_range(v, 52, 61) & (v + '0' - 52)) |
		(in_range(v, 62, 62) & '+') | (in_range(v, 63, 63) & '/'));
}

int base64_decode(uint8_t *out, size_t cap, struct str text)
{
	uint32_t acc = 0;
	unsigned bits = 0, bad = 0;
	size_t pad = 0, n = 0;

	while (pad < 2 && text.len && text.s[text.len - 1] == '=') {
		text.len--;
		pad++;
	}
	if (text.len % 4 == 1 || (pad && (text.len + pad) % 4) ||
		text.len / 4 * 3 + 2 > INT32_MAX || text.len * 3 / 4 > cap)
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++) {
		unsigned v = value_of((unsigned char)text.s[i]);

		bad |= v;
		acc = acc << 6 | (v & 63);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (uint8_t)(acc >> bits);
		}
	}
	if (bad & 0x100) {
		secmem_wipe(out, n);
		return -EINVAL;
	}
	return (int)n;
}

size_t base64_encode(char *out, const uint8_t *p, size_t len, bool pad)
{
	uint32_t acc = 0;
	unsigned bits = 0;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		acc = acc << 8 | p[i];
		for (bits += 8; bits >= 6; bits -= 6)
			out[n++] = char_of(acc >> (bits - 6) & 63);
	}
	if (bits)
		out[n++] = char_of(acc << (6 - bits) & 63);
	while (pad && n % 4)
		out[n++] = '=';
	return n;
}
