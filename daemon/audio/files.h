/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio files that calls play. A separate thread reads and decodes them, so a slow disk delays no
 * call. Clips are cached and shared. A file that changed is read again.
 *
 * Formats: WAV, and samples without a header, mono at 8000 Hz, whose ending names the format: .ul
 * and .ulaw, .al and .alaw, .sw and .raw (16 bits, little-endian). Ogg Opus, Ogg Vorbis and MP3 are
 * decoded in a process of their own (audio/decoder.h). Only plain files below one folder are read,
 * and no symbolic link is followed. */
#ifndef AUDIO_FILES_H
#define AUDIO_FILES_H

#include "base/bytes.h"

struct audio_clip;
struct audio_files;

enum { AUDIO_FILE_NAME = 256, AUDIO_FILES = 32 };

/* Most bytes of cached clips, and of the blobs that they were decoded from. The least recently used
 * clip is removed first; the newest always stays. Clips that are played count only while cached. */
#define AUDIO_FILES_BYTES (256u << 20)

/* Opens the folder and starts the thread. folder: NULL: only blobs are played. decoder: the path of
 * xcipher-av, or "". most: AUDIO_FILES_BYTES, or less in tests. 0 or -errno. */
int audio_files_create(
	struct audio_files **out, const char *folder, const char *decoder, uint64_t most);
/* Stops the thread. Clips that callers hold stay valid. NULL is fine. */
void audio_files_destroy(struct audio_files *f);

/* Gets the clip of a file. Control thread. name: relative to the folder, or absolute and below it.
 * Waits some milliseconds for the thread. 0: the caller owns a reference to *out. -EAGAIN: the file
 * is still being read, call again later; -EACCES: the name leads out of the folder, or to a link;
 * -ENODEV: there is no folder; -ENOENT; -EFBIG: longer than AUDIO_CLIP_MAX as samples; -ENOMSG: not
 * audio of a known format; -EBADMSG: malformed; -ENOTSUP: a coding that is not played; -ENOPKG:
 * xcipher-av is missing; -ETIME: it took too long; -EBUSY: too many files at once; -ENOMEM;
 * -EIO. */
int audio_files_get(struct audio_files *f, struct str name, struct audio_clip **out);
/* Gets the clip of a file in memory. A compressed one is decoded by the thread, and the result is
 * found by the same bytes. f: NULL: there is no thread. Errors as above. */
int audio_files_blob(
	struct audio_files *f, const uint8_t *bytes, size_t len, struct audio_clip **out);

/* Decodes a file in memory that is not compressed. name: only its ending counts; may be empty.
 * Errors as above. */
int audio_files_decode(struct str name, const uint8_t *bytes, size_t len, struct audio_clip **out);

#endif
