/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks and opens the kernel module, for steer/kernel/kernel.c only. All but kernel_meet() and
 * kernel_hello() run in the control thread, and implement open, close, alive and back of struct
 * steer_ops. */
#ifndef STEER_KERNEL_KERNEL_MEET_H
#define STEER_KERNEL_KERNEL_MEET_H

#include <stddef.h>
#include <stdint.h>

#include "steer/kernel/kernel_nl.h"
#include "steer/steer.h"

/* Targets of a dead daemon stay for this time, in which the next one must restore its calls. */
#define KERNEL_GRACE_MS 10000u

/* The number by which a worker owns its targets: its queue's number, so that the next daemon's
 * worker is the same owner. */
uint32_t kernel_owner(const struct steer_config *cfg, uint32_t worker);

/* Opens a socket that owns the worker's targets, and negotiates features. 0, or a negative errno
 * with the reason in err and no socket: -ENOENT: no module; -EPROTO, -EPROTONOSUPPORT: it is
 * unusable. */
int kernel_meet(struct knl **out, const struct steer_config *cfg, uint32_t worker,
	struct knl_peer *peer, char *err, size_t err_len);

/* The same on an open socket, after the module was loaded again. Errors as knl_hello(). */
int kernel_hello(
	struct knl *k, const struct steer_config *cfg, uint32_t worker, struct knl_peer *peer);

/* Sets cfg's knl, events and the module's features; kernel_close() closes the first two. */
int kernel_open(struct steer_config *cfg, char *err, size_t err_len);
void kernel_close(struct steer_config *cfg);

/* 0; -ENOENT: the module was unloaded. Never loads it. */
int kernel_alive(const struct steer_config *cfg);
int kernel_over_source_rate(const struct steer_config *cfg, uint64_t *packets);

/* Whether the module is loaded again, with all previous features; cfg's sockets are then connected
 * to it. Otherwise a negative errno, and workers must not be notified. */
int kernel_back(const struct steer_config *cfg, char *err, size_t err_len);

#endif
