/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of ITU-T G.711, as the standard prints them (srtp/g711.h). Both count the decoder's
 * values from the smallest magnitude. A byte on the wire has the sign in its first bit. The other
 * bits are inverted: all of them in the mu-law, every second in the A-law. */
#include "srtp/g711.h"

/* Table 3: mu-law's values 0 to 127 as A-law's values 1 to 128. */
static const uint8_t to_a[128] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10, 11, 12, 13,
	14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 29, 31, 33, 34, 35, 36, 37, 38, 39, 40,
	41, 42, 43, 44, 46, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 64, 65, 66,
	67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 82, 83, 84, 85, 86, 87, 88, 89, 90,
	91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110,
	111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128};

/* Table 4: A-law's values 1 to 128 as mu-law's values 0 to 127. */
static const uint8_t to_u[128] = {1, 3, 5, 7, 9, 11, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
	26, 27, 28, 29, 30, 31, 32, 32, 33, 33, 34, 34, 35, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44,
	45, 46, 47, 48, 48, 49, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 64,
	65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 80, 81, 82, 83, 84, 85, 86,
	87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107,
	108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125,
	126, 127};

enum { SIGN = 0x80, U_BITS = 0x7f, A_BITS = 0x55 };

uint8_t g711_ulaw_to_alaw(uint8_t u)
{
	return (uint8_t)((u & SIGN) | ((to_a[(u & 0x7f) ^ U_BITS] - 1) ^ A_BITS));
}

uint8_t g711_alaw_to_ulaw(uint8_t a)
{
	return (uint8_t)((a & SIGN) | (to_u[(a & 0x7f) ^ A_BITS] ^ U_BITS));
}

void g711_convert(uint8_t *p, size_t len, uint32_t law)
{
	for (size_t i = 0; i < len && law == XC_LAW_U_TO_A; i++)
		p[i] = g711_ulaw_to_alaw(p[i]);
	for (size_t i = 0; i < len && law == XC_LAW_A_TO_U; i++)
		p[i] = g711_alaw_to_ulaw(p[i]);
}
