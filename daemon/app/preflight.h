/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the limits of this machine before the start takes resources: descriptors, lockable memory,
 * addresses. Shortages are logged with a remedy. Only a missing local address is an error. */
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
/* Warns if fewer than need bytes of keys can be locked in memory. */
void preflight_locked(size_t need);
/* Checks that the addresses belong to this machine, before calls fail for lack of them. 0, or
 * -errno with a line in err. */
int preflight_interfaces(const struct relay_local *local, uint32_t n, char *err, size_t err_len);
/* Call after the change of the user. Warns of an ini file that a reload could not read. */
void preflight_config(const struct options *o);
/* Warns of ng addresses that other hosts can reach without a key or token. */
void preflight_ng(const struct options *o);

#endif
