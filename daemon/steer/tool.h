/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Running the system's own tools (nft, iptables) without a shell. */
#ifndef STEER_TOOL_H
#define STEER_TOOL_H

#include "base/bytes.h"

/* Runs argv[0], looked for in /usr/sbin and /sbin only, with input on its stdin (NULL: nothing). Waits for it. err gets the
 * first line it wrote to stderr, or what else went wrong. 0, -ENOENT when there is no such tool, -EIO when it said no. */
int tool_run(const char *const argv[], const char *input, char *err, size_t err_len);

#endif
