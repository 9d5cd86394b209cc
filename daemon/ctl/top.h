/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl top: a screen of the daemon and its calls that updates every second. */
#ifndef CTL_TOP_H
#define CTL_TOP_H

#include "ctl/args.h"

/* Runs until the user presses q. Returns the exit status. */
int top_run(const struct args *a);

#endif
