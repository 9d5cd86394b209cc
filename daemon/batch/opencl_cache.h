/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes PoCL keep compiled kernels in a folder that no other user can change. */
#ifndef BATCH_OPENCL_CACHE_H
#define BATCH_OPENCL_CACHE_H

#include <stddef.h>

#define OPENCL_CACHE_MADE 32u

/* Sets POCL_CACHE_DIR: to its own value without symbolic links, else to a folder below
 * XDG_CACHE_HOME or HOME, else to a new private folder. made receives the path of the new folder,
 * else "". Call it before the first OpenCL call, without other threads. 0, or negative errno with a
 * line in err: POCL_CACHE_DIR names an unusable folder; -EPERM if another user owns or can write it
 * or a folder above it. */
int opencl_cache_choose(char made[OPENCL_CACHE_MADE], char *err, size_t err_len);
/* Removes the new private folder with its content; "": nothing. */
void opencl_cache_remove(const char made[OPENCL_CACHE_MADE]);

#endif
