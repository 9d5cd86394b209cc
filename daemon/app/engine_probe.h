/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tries an engine in a child process first. OpenCL libraries call abort(), crash or hang where a machine
 * lacks what they need (PoCL without /sys, a driver without its device), and that must not end the daemon. */
#ifndef APP_ENGINE_PROBE_H
#define APP_ENGINE_PROBE_H

#include "batch/engine.h"

/* Opens the engine and tries it on known answers in a child, which is killed after this many seconds. Before
 * this process has called the library. err: one line that says what happened and what to do. 0;
 * -ECHILD: the child crashed; -ETIMEDOUT; other -errno as from open(). */
int engine_probe(const struct engine_ops *ops, const struct engine_config *cfg, uint32_t seconds,
	char *err, size_t err_len);
/* open(), then the known answers. 0 or -errno with err. */
int engine_open_checked(const struct engine_ops *ops, struct engine **out,
	const struct engine_config *cfg, char *err, size_t err_len);

#endif
