/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the additional destinations of a request over a suspension. */
#ifndef MODULE_FORKS_H
#define MODULE_FORKS_H

#include <core/parser/msg_parser.h>

/* Copies the branches that lookup() or append_branch() added to shared memory. NULL: none, or no
 * memory. */
void *forks_save(int *count);
/* Makes them the destinations besides the request URI, and frees them. */
void forks_restore(struct sip_msg *msg, void *saved, int count);
void forks_free(void *saved);

#endif
