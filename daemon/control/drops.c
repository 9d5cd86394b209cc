/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of drop reasons. Pure. */
#include "control/handler.h"

const char *handler_drop_name(enum ng_drop reason)
{
	static const char *const names[NG_DROP_COUNT] = {
#define X(id, name, text) name,
		NG_DROPS(X)
#undef X
	};

	return names[reason];
}
