/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What reflect.c has for others. */
#ifndef KEYING_REFLECT_H
#define KEYING_REFLECT_H

#include "call/plan.h"

/* reflect.c: NULL, or the reason why the terminal must not send under the keys of this line.
 * more: the line's further keys. */
const char *reflect_refusal(
	const struct neg_in *in, const struct sdes *line, const struct srtp_master *more);

#endif
