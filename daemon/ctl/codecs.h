/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the codecs of a daemon. */
#ifndef CTL_CODECS_H
#define CTL_CODECS_H

#include "ctl/view.h"

void view_codecs(const struct view *v, const struct ngval *reply);

#endif
