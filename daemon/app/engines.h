/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engines of the daemon: the serial one, and the OpenCL devices that the options name. */
#ifndef APP_ENGINES_H
#define APP_ENGINES_H

#include "app/options.h"
#include "batch/run.h"

struct engines;

/* Opens them and tries each on known answers. Before any thread and any port. err: one line. 0 or
 * -errno. */
int engines_start(struct engines *e, const struct options *o, char *err, size_t err_len);
void engines_stop(struct engines *e);
/* Logs the measurements, one line per device. Call it after the first worker was created. */
void engines_log(const struct engines *e);

#endif
