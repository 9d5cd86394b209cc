/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values that belong to a thread, after a fork. */
#ifndef XCIPHER_MODULE_TLS_OWN_H
#define XCIPHER_MODULE_TLS_OWN_H

/* Sets each thread-specific value (pthread_setspecific()) of the calling thread that points into
 * memory shared with other processes to NULL. Its library then makes another one when it needs it.
 * The old ones are not freed: they belong to the process that made them. Returns how many values
 * were set; -1: it changed nothing, because it cannot read /proc/self/maps. */
int own_values(void);

#endif
