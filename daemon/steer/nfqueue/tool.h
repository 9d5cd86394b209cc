/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs system programs (nft, iptables) without a shell. */
#ifndef STEER_NFQUEUE_TOOL_H
#define STEER_NFQUEUE_TOOL_H

#include "base/bytes.h"

/* Runs argv[0] from /usr/sbin or /sbin, with input on its stdin (NULL: nothing), and waits for it.
 * err receives its first line on stderr, or another cause of failure. 0, -ENOENT if there is no
 * such program, -EIO if it failed. */
int tool_run(const char *const argv[], const char *input, char *err, size_t err_len);

#endif
