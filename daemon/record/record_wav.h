/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A WAV file that grows: PCM of 16 bits. The header has the right length after every write, so a
 * crash leaves a file that plays. Above 4 GiB it becomes an RF64 file (EBU Tech 3306). While it is
 * open it has a lock (flock). One thread only; may block. */
#ifndef RECORD_RECORD_WAV_H
#define RECORD_RECORD_WAV_H

#include <stdbool.h>
#include <stdint.h>

#define RECORD_WAV_HEADER 80u

struct record_wav;

/* Creates the file, which must not exist, readable by the owner only. rate: Hz; channels: 1 or 2.
 * 0 or -errno. */
int record_wav_open(struct record_wav **out, const char *path, uint32_t rate, uint16_t channels);
/* Appends n samples of each channel, interleaved. 0, or -errno: none was written, and the next ones
 * follow after that much silence. */
int record_wav_write(struct record_wav *w, const int16_t *pcm, uint32_t n);
/* Puts n samples of silence of each channel before the next ones, at no cost: the file gets a hole.
 * Nothing is written without next ones. */
void record_wav_silence(struct record_wav *w, uint64_t n);
/* Closes the file. discard: removes it, too. NULL is fine. */
void record_wav_close(struct record_wav *w, bool discard);

/* Corrects the lengths in the headers of the folder's recordings, after a crash or loss of power.
 * Touches only files that record_wav_open() named and wrote, not those to which another program
 * appended chunks. Returns the number of files that it changed. A file that a process has open
 * stays as it is. */
uint32_t record_wav_repair(const char *dir);

#endif
