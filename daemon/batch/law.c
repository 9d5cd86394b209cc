/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two conversions of G.711 as sums of ramps (batch/law.h). */
#include "batch/law.h"

#define ALL(x)                                                                                 \
	{                                                                                      \
		(x), (x), (x), (x), (x), (x), (x), (x), (x), (x), (x), (x), (x), (x), (x), (x) \
	}

const struct law_rule *law_rule(uint32_t law)
{
	static const struct law_rule rule[] = {
		{.in = ALL(0x7f),
			.out = ALL(0x55),
			.from = {ALL(0), ALL(32), ALL(47), ALL(63), ALL(80)},
			.most = {ALL(16), ALL(4), ALL(2), ALL(1), ALL(1)},
			.all = {ALL(0), ALL(0xff), ALL(0xff)},
			.down = ALL(0),
			.one = ALL(0)},
		{.in = ALL(0x55),
			.out = ALL(0x7f),
			.from = {ALL(0), ALL(24), ALL(44), ALL(62), ALL(79)},
			.most = {ALL(7), ALL(8), ALL(4), ALL(1), ALL(1)},
			.all = {ALL(0xff), ALL(0), ALL(0)},
			.down = ALL(0xff),
			.one = ALL(1)},
	};

	return &rule[law == XC_LAW_A_TO_U];
}

void law_bytes(uint8_t *p, size_t len, uint32_t law)
{
	const struct law_rule *r = law_rule(law);
	law_vec x = {};
	size_t i = 0;

	if (law == XC_LAW_KEEP)
		return;
	for (; i + sizeof(x) <= len; i += sizeof(x)) {
		memcpy(&x, p + i, sizeof(x));
		x = law_vector(x, r);
		memcpy(p + i, &x, sizeof(x));
	}
	if (i == len)
		return;
	memcpy(&x, p + i, len - i);
	x = law_vector(x, r);
	memcpy(p + i, &x, len - i);
}
