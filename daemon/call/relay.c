/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of a local address (call/relay.h). Pure. */
#include "call/relay.h"

bool relay_local_has_name(const struct relay_local *l, struct str name)
{
	struct str rest = str_from(l->alias);

	if (str_eq(str_from(l->name), name))
		return true;
	for (struct str one = str_word(&rest); one.len; one = str_word(&rest))
		if (str_eq(one, name))
			return true;
	return false;
}
