/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the explanation of a call. */
#ifndef CTL_EXPLAIN_H
#define CTL_EXPLAIN_H

#include "ctl/view.h"

void view_explain(const struct view *v, const struct ngval *reply);

#endif
