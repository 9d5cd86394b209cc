/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests an engine in a child process first. OpenCL libraries abort, crash or hang on machines that
 * lack something they need (PoCL without /sys, a driver without its device). This must not end the
 * daemon. */
#ifndef APP_ENGINE_PROBE_H
#define APP_ENGINE_PROBE_H

#include "batch/engine.h"

/* Opens the engine in a child and tests it on known answers. The child is killed after this many
 * seconds. Call it before this process has called the library. err: one line that says what
 * happened and what to do. 0; -ECHILD: the child crashed; -ETIMEDOUT; other -errno as from open().
 */
int engine_probe(const struct engine_ops *ops, const struct engine_config *cfg, uint32_t seconds,
	char *err, size_t err_len);
/* Opens the engine and tests it on known answers. 0 or -errno with err. */
int engine_open_checked(const struct engine_ops *ops, struct engine **out,
	const struct engine_config *cfg, char *err, size_t err_len);

#endif
