/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths of the files that make built, for the tests of codecs. */
#ifndef CODEC_PATHS_H
#define CODEC_PATHS_H

#include <stddef.h>

enum { CODEC_PATH = 512 };

/* BUILD/name, as an absolute path: this program is BUILD/t/test_X. */
const char *codec_path(char path[CODEC_PATH], const char *name);
/* A new folder below /tmp, mode 755, and its removal with all files in it. */
const char *codec_folder(char path[CODEC_PATH]);
void codec_folder_remove(const char *path);
/* Copies a file; 0755. */
void codec_copy(const char *from, const char *folder, const char *name);

#endif
