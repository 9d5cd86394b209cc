/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio files that calls play. A separate thread reads and decodes them, so a slow disk delays no
 * call. Clips are cached and shared. A file that changed is read again.
 *
 * Formats: WAV, and samples without a header, mono at 8000 Hz, whose ending names the format: .ul
 * and .ulaw, .al and .alaw, .sw and .raw (16 bits, little-endian). Only plain files below one
 * folder are read, and no symbolic link is followed. */
#ifndef AUDIO_FILES_H
#define AUDIO_FILES_H

#include "base/bytes.h"

struct audio_clip;
struct audio_files;

enum { AUDIO_FILE_NAME = 256, AUDIO_FILES = 32 };

/* Opens the folder and starts the thread. 0 or -errno. */
int audio_files_create(struct audio_files **out, const char *folder);
/* Stops the thread. Clips that callers hold stay valid. NULL is fine. */
void audio_files_destroy(struct audio_files *f);

/* Gets the clip of a file. Control thread. name: relative to the folder, or absolute and below it.
 * Waits some milliseconds for the thread. 0: the caller owns a reference to *out. -EAGAIN: the file
 * is still being read, call again later; -EACCES: the name leads out of the folder, or to a link;
 * -ENOENT; -EFBIG: longer than AUDIO_CLIP_MAX as samples; -ENOMSG: not audio of a known format;
 * -EBADMSG: malformed; -ENOTSUP: a coding that is not played; -EBUSY: too many files at once;
 * -ENOMEM; -EIO. */
int audio_files_get(struct audio_files *f, struct str name, struct audio_clip **out);

/* Decodes a file in memory. name: only its ending counts; may be empty. Errors as above. */
int audio_files_decode(struct str name, const uint8_t *bytes, size_t len, struct audio_clip **out);

#endif
