/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers for all parts of the start: how to report a failure, and how to leave the loop. */
#include "app/daemon.h"
#include <stdio.h>
#include <string.h>

int daemon_fail(struct daemon *d, int err, const char *what)
{
	if (!d->err[0])
		snprintf(d->err, sizeof(d->err), "%s: %s", what, strerror(-err));
	return err;
}

void daemon_end(void *arg)
{
	struct daemon *d = arg;

	d->stopping = true;
	loop_stop(d->loop);
}
