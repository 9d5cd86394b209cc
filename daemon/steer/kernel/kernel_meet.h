/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Meeting the kernel module, for steer/kernel/kernel.c only. All but kernel_meet() and
 * kernel_hello() are the control thread's, and are what struct steer_ops says of open, close, alive
 * and back. */
#ifndef STEER_KERNEL_KERNEL_MEET_H
#define STEER_KERNEL_KERNEL_MEET_H

#include <stddef.h>
#include <stdint.h>

#include "steer/kernel/kernel_nl.h"
#include "steer/steer.h"

/* Targets of a daemon that is gone stay so long, and the new one has so long to set up its calls
 * again. */
#define KERNEL_GRACE_MS 10000u

/* By which number a worker owns its targets: its queue's, so that the next daemon's worker is the
 * same owner. */
uint32_t kernel_owner(const struct steer_config *cfg, uint32_t worker);

/* A socket that owns the worker's targets, and what both can do. 0, or a negative errno with the
 * reason in err and no socket: -ENOENT without a module, -EPROTO and -EPROTONOSUPPORT with one that
 * cannot be worked with. */
int kernel_meet(struct knl **out, const struct steer_config *cfg, uint32_t worker,
	struct knl_peer *peer, char *err, size_t err_len);

/* The same by a socket that is there, when the module is another. As knl_hello(). */
int kernel_hello(
	struct knl *k, const struct steer_config *cfg, uint32_t worker, struct knl_peer *peer);

/* Sets cfg's knl, events and what follows from the module's features; kernel_close() ends the first
 * two. */
int kernel_open(struct steer_config *cfg, char *err, size_t err_len);
void kernel_close(struct steer_config *cfg);

/* 0; -ENOENT: the module was unloaded. Does not have it loaded. */
int kernel_alive(const struct steer_config *cfg);

/* Whether the module is there again and can do all that the one before could; then cfg's sockets
 * are its. Else a negative errno, and workers must not be told. */
int kernel_back(const struct steer_config *cfg, char *err, size_t err_len);

#endif
