/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl top. */
#ifndef CTL_TOP_H
#define CTL_TOP_H

#include "ctl/args.h"

/* Shows the daemon and its calls until q is pressed. The exit status. */
int top_run(const struct args *a);

#endif
