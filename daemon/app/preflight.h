/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this machine allows, looked at before anything is taken from it: descriptors, memory that
 * stays out of swap, addresses. What is scarce is warned of, with what to do; only addresses that
 * are not here are an error. */
#ifndef APP_PREFLIGHT_H
#define APP_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/options.h"
#include "call/relay.h"

/* Disables core dumps and raises the limit of descriptors to the number needed, or as far as
 * allowed. */
void preflight_process(uint64_t descriptors);
/* Keys are to stay out of swap: so many bytes of them. */
void preflight_locked(size_t need);
/* 0, or -errno with a line in err: an address that is not this machine's would only show with the
 * first call. */
int preflight_interfaces(const struct relay_local *local, uint32_t n, char *err, size_t err_len);
/* Call after the change of the user. Warns of an ini file that a reload could not read. */
void preflight_config(const struct options *o);
/* Warns of ng addresses that other hosts can reach without a key or token. */
void preflight_ng(const struct options *o);

#endif
