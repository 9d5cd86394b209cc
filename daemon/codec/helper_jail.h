/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes privileges from processes that run a plug-in, or decode a file. */
#ifndef CODEC_HELPER_JAIL_H
#define CODEC_HELPER_JAIL_H

#include <stdbool.h>
#include <stdint.h>

/* Before the plug-in is loaded: no capabilities, no new ones, no core, few files; system calls that
 * loading and forking need, and no others; with Landlock, files only of libraries and of the
 * plug-in's folder, to read. *landlock: whether the kernel has it. 0 or -errno. */
int jail_load(const char *plugin, bool *landlock);
/* In the process of a stream, before the plug-in's functions run: memory, and reading and writing
 * open descriptors. 0 or -errno. */
int jail_stream(void);
/* In the process that decodes a file (daemon/av/main.c), before its first byte is read: no
 * capabilities, no files but open descriptors, bounded memory, at most so many seconds of a
 * processor; system calls as in jail_stream, and lseek. Single-threaded. 0 or -errno. */
int jail_file(uint32_t seconds);

#endif
